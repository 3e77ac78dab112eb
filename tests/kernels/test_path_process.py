"""The law of paths against dense normal laws, and slopes of the evidence against differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed._types import Floats
from revealed.data.decisions import Decisions
from revealed.kernels.state_space import (
    add_evidence_slope,
    evaluate_path,
    make_path_workspace,
    make_placed,
    place_law,
)
from revealed.models.over_time import OverTime
from revealed.samplers.builders import BuildArguments, build_state_space
from revealed.samplers.state_space import StateSpaceSampler

TIMES = np.array([0.0, 0.5, 0.5, 2.0, 3.5, 3.5, 4.0])
HALF_T = rv.HalfStudentT(scale=0.7)
WAYS: dict[str, OverTime] = {
    "walk": rv.RandomWalk(HALF_T),
    "shared": rv.RandomWalk(HALF_T, shared=True),
    "sessions": rv.RandomWalk(HALF_T, between_sessions=rv.HalfStudentT(scale=1.5)),
    "reverting": rv.MeanReverting(HALF_T, rv.HalfStudentT(scale=0.4)),
}


def sampler_of(over_time: OverTime, prior: Any) -> StateSpaceSampler:
    """For seven decisions among three actions at five times, in two sessions."""
    rng = np.random.default_rng(3)
    sessions = np.where(TIMES < 3.0, "a", "b")
    d = Decisions(
        rng.standard_normal((21, 2)),
        range(0, 22, 3),
        rng.integers(0, 3, 7),
        times=TIMES,
        sessions=sessions,
    )
    model = rv.ChoiceModel(noise=rv.LogitNoise(), prior=prior, over_time=over_time)
    made = build_state_space(model.resolve(d), BuildArguments({}, 1))
    assert isinstance(made, StateSpaceSampler)
    return made


def theta_of(sampler: StateSpaceSampler) -> Floats:
    """Some theta, with every number of its own."""
    return np.random.default_rng(4).uniform(-0.8, 0.3, len(sampler.known))


def covariance_of_paths(sampler: StateSpaceSampler, theta: Floats) -> Floats:
    """(N, N, D) the prior covariance of each coordinate about its centre, step by step."""
    process = sampler.process
    count, sizes = len(process.gap), process.sizes
    covariance = np.zeros((count, count, 2))
    for i in range(2):
        sd = np.exp(theta[process.size[i]])
        times = np.cumsum(process.gap)
        if process.reverts:
            rate = np.exp(theta[sizes + process.size[i]])
            covariance[:, :, i] = sd**2 * np.exp(-rate * np.abs(times[:, None] - times))
            continue
        steps = sd**2 * process.gap
        if process.between:
            between = np.exp(2.0 * theta[sizes + process.size[i]])
            steps = np.where(process.crosses, between, steps)
        start = np.exp(2.0 * theta[-1]) if process.infers_start else 1.0
        total = start / process.start_precision[i, i] + np.cumsum(steps)
        covariance[:, :, i] = np.minimum(total[:, None], total)
    return covariance


@pytest.mark.parametrize("way", list(WAYS))
@pytest.mark.parametrize("infers", [False, True])
def test_evidence_is_that_of_a_dense_normal_law(way: str, infers: bool) -> None:
    """log Z against the same integral by dense algebra, as differences between two thetas."""
    prior = rv.Normal(rv.HalfStudentT(scale=1.0)) if infers else rv.Normal(1.3)
    if infers and way == "reverting":
        pytest.skip("a long-run mean has a prior of known sd")
    sampler = sampler_of(WAYS[way], prior)
    nodes, stand_in = sampler.nodes, sampler.start.stand_in
    normal = sampler.finder.normal(stand_in)
    work = make_path_workspace(sampler.data, nodes, 2)
    placed = make_placed(nodes, 2, len(sampler.known))
    found, dense = [], []
    for shift in (0.0, 0.37):
        theta = theta_of(sampler) + shift
        assert place_law(normal, work, theta, placed)
        found.append(placed.log_density[1])
        prior_covariance = np.zeros((nodes, 2, nodes, 2))
        for i in range(2):
            prior_covariance[:, i, :, i] = covariance_of_paths(sampler, theta)[:, :, i]
        wide = prior_covariance.reshape(2 * nodes, 2 * nodes)
        centre = np.tile(theta[-2:] if sampler.process.reverts else np.zeros(2), nodes)
        curvature = np.zeros((nodes, 2, nodes, 2))
        for n in range(nodes):
            curvature[n, :, n] = stand_in.curvature[n]
        inside = curvature.reshape(2 * nodes, 2 * nodes)
        linear = stand_in.linear.ravel()
        precision = np.linalg.inv(wide)
        total = precision + inside
        right = linear + precision @ centre
        mean = np.linalg.solve(total, right)
        log_z = stand_in.constant + 0.5 * right @ mean - 0.5 * centre @ precision @ centre
        log_z -= 0.5 * (np.linalg.slogdet(wide)[1] + np.linalg.slogdet(total)[1])
        dense.append(log_z)
        np.testing.assert_allclose((placed.law.centre + placed.mean).ravel(), mean, atol=1e-9)
    assert found[1] - found[0] == pytest.approx(dense[1] - dense[0], abs=1e-8)


@pytest.mark.parametrize("way", list(WAYS))
@pytest.mark.parametrize("infers", [False, True])
def test_slope_of_the_evidence(way: str, infers: bool) -> None:
    prior = rv.Normal(rv.HalfStudentT(scale=1.0)) if infers else rv.Normal(1.3)
    sampler = sampler_of(WAYS[way], prior)
    normal = sampler.finder.normal(sampler.start.stand_in)
    work = make_path_workspace(sampler.data, sampler.nodes, 2)
    placed = make_placed(sampler.nodes, 2, len(sampler.known))
    theta = theta_of(sampler)
    place_law(normal, work, theta, placed)
    add_evidence_slope(normal, work, placed)
    slope, step = placed.gradient.copy(), 1e-5
    for p in range(len(theta)):
        logs = []
        for sign in (1.0, -1.0):
            moved = theta.copy()
            moved[p] += sign * step
            place_law(normal, work, moved, placed)
            logs.append(placed.log_density[0])
        assert slope[p] == pytest.approx((logs[0] - logs[1]) / (2.0 * step), rel=1e-5, abs=1e-6)


def test_likelihood_of_a_path_is_that_of_its_decisions() -> None:
    sampler = sampler_of(WAYS["walk"], rv.Normal(1.3))
    path = np.random.default_rng(5).standard_normal((sampler.nodes, 2))
    work = make_path_workspace(sampler.data, sampler.nodes, 2)
    slope, none = np.empty_like(path), np.empty(0)
    found = evaluate_path(sampler.data, work, path, none, slope, none)
    rng = np.random.default_rng(3)
    rows, chosen = rng.standard_normal((21, 2)), rng.integers(0, 3, 7)
    node = np.unique(TIMES, return_inverse=True)[1]
    utility = (rows * path[np.repeat(node, 3)]).sum(axis=1).reshape(7, 3)
    log_p = utility - np.log(np.exp(utility).sum(axis=1, keepdims=True))
    assert found == pytest.approx(log_p[np.arange(7), chosen].sum(), rel=1e-12)
