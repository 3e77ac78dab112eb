"""Blocks of nodes: what they merge, how near their evidence is, and that they change no law."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats as st

import revealed as rv
from revealed._types import Floats
from revealed.kernels.path_sizes import propose_theta
from revealed.kernels.state_space import make_path_workspace
from revealed.samplers.builders import BuildArguments, build_state_space
from revealed.samplers.coarse_paths import (
    COARSE,
    log_densities,
    longest_block,
    make_coarse_paths,
    merge_nodes,
)
from revealed.samplers.state_space import StateSpaceSampler
from tests.support.statistical_asserts import must_fail, record_check

HALF_T = rv.HalfStudentT(scale=0.3)
SESSIONS = rv.RandomWalk(HALF_T, between_sessions=rv.HalfStudentT(scale=0.5))


def sampler_of(count: int, over_time: Any) -> StateSpaceSampler:
    """For choices by a value that walks slowly, in sessions of 25 trials."""
    rng = np.random.default_rng(1)
    value = np.cumsum(rng.normal(0.0, 0.05, count))
    rows, times = np.zeros((2 * count, 1)), np.cumsum(rng.integers(1, 3, count))
    rows[1::2] = rng.choice([0.5, 1.0], (count, 1))
    d = rv.Decisions(
        rows,
        range(0, 2 * count + 1, 2),
        (rng.logistic(size=count) < value * rows[1::2, 0]).astype(int),
        times=times,
        sessions=np.arange(count) // 25,
    )
    model = rv.ChoiceModel(noise=rv.LogitNoise(), over_time=over_time)
    made = build_state_space(model.resolve(d), BuildArguments({}, 1))
    assert isinstance(made, StateSpaceSampler)
    return made


def likely(sampler: StateSpaceSampler, count: int) -> Floats:
    """(count, P) thetas about the one where chains begin."""
    start = sampler.start
    return start.theta + np.random.default_rng(2).normal(size=(count, len(start.theta))) * 0.4


@pytest.mark.parametrize("over_time", [SESSIONS, rv.RandomWalk(HALF_T), rv.MeanReverting()])
def test_blocks_keep_sessions_and_time(over_time: Any) -> None:
    sampler = sampler_of(103, over_time)
    process = sampler.process
    same = merge_nodes(process, 1)
    np.testing.assert_array_equal(same.begin, np.arange(103))
    np.testing.assert_allclose(same.process.gap[1:], process.gap[1:])
    found = merge_nodes(process, 7)
    lengths = np.diff(np.append(found.begin, 103))
    assert lengths.max() <= 7
    assert lengths.min() >= 3
    # where sessions have steps of their own, each begins a block, and its gap is not read
    if process.between:
        assert np.isin(np.flatnonzero(process.crosses), found.begin).all()
        assert found.process.crosses.sum() == process.crosses.sum() == 4
    else:
        # mean times of blocks, one after the other
        times = np.cumsum(process.gap)
        mean = [part.mean() for part in np.split(times, found.begin[1:])]
        np.testing.assert_allclose(found.process.gap[1:], np.diff(mean))


@pytest.mark.parametrize("over_time", [SESSIONS, rv.RandomWalk(HALF_T), rv.MeanReverting()])
def test_evidence_of_blocks_is_near(over_time: Any) -> None:
    """Blocks of one node have the evidence itself; of more the error grows, as they are asked."""
    sampler = sampler_of(400, over_time)
    normal, thetas = sampler.finder.normal(sampler.start.stand_in), likely(sampler, 30)
    work = make_path_workspace(sampler.data, 400, 1)
    exact, errors = log_densities(normal, work, thetas), []
    for longest in (1, 4, 40):
        coarse = make_coarse_paths(sampler.data, normal, longest)
        errors.append(float(np.std(log_densities(coarse.normal, coarse.work, thetas) - exact)))
    assert errors[0] == 0.0
    assert errors[0] < errors[1] < errors[2]
    longest = longest_block(sampler.data, normal, thetas)
    assert longest in (1, 2, 4)
    assert longest == 1 or errors[1] < 2.0 * COARSE.error
    # few nodes are not merged
    assert longest_block(*_of(sampler_of(60, over_time))) == 1


def _of(sampler: StateSpaceSampler) -> tuple[Any, Any, Floats]:
    return sampler.data, sampler.finder.normal(sampler.start.stand_in), likely(sampler, 5)


def proposals(sampler: StateSpaceSampler, count: int, forget: bool) -> Floats:
    """Log sizes by proposals on blocks of ten nodes, accepted by the evidence of all nodes.

    forget: to leave what blocks know out of the ratio.
    """
    rng, start = np.random.default_rng(3), sampler.start
    normal = sampler.finder.normal(start.stand_in)._replace(
        theta_centre=start.theta, theta_root=start.root
    )
    coarse = make_coarse_paths(sampler.data, normal, 10)
    work = make_path_workspace(sampler.data, sampler.nodes, 1)
    xi, found = np.zeros(start.root.shape[1]), np.empty((count, len(start.theta)))
    theta = start.theta
    here = log_densities(normal, work, theta[None])[0]
    for n in range(count):
        proposed = xi.copy()
        ratio = propose_theta(rng, coarse, proposed, 0.5)[0]
        moved = start.theta + start.root @ proposed
        there = log_densities(normal, work, moved[None])[0]
        if np.log(rng.random()) < there - here + (0.0 if forget else ratio):
            xi, theta, here = proposed, moved, there
        found[n] = theta
    return found


def test_proposals_on_blocks_have_the_law_of_all_nodes() -> None:
    """Draws of a log size against its law on a grid; a ratio without the blocks' is seen."""
    sampler = sampler_of(100, rv.RandomWalk(HALF_T))
    normal = sampler.finder.normal(sampler.start.stand_in)
    grid = np.linspace(-9.0, 1.5, 400)
    work = make_path_workspace(sampler.data, 100, 1)
    log_density = log_densities(normal, work, grid[:, None])
    share = np.cumsum(np.exp(log_density - log_density.max()))
    share /= share[-1]

    def check(draws: Floats) -> None:
        # ranks under the law, in batches that hardly depend on one another
        batches = np.interp(draws[:, 0], grid, share).reshape(50, -1).mean(axis=1)
        z = (batches.mean() - 0.5) / (batches.std(ddof=1) / np.sqrt(50))
        record_check(2.0 * st.t.sf(abs(z), 49) > 1e-6, f"z is {z:.2f}", z=float(z))

    check(proposals(sampler, 5_000, forget=False))
    with must_fail("a ratio without the evidence of blocks"):
        check(proposals(sampler, 5_000, forget=True))
