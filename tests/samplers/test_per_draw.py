"""What is stored of a draw is the same to the last bit, however the clock cuts a run into chunks."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed._types import Floats
from revealed.data.blocks import Block
from revealed.data.decisions import Decisions
from revealed.kernels.hmc import PathOutcome
from revealed.models.correlated_noise import resolve_noise
from revealed.models.priors import ResolvedPrior, resolve_prior
from revealed.samplers.base import State
from revealed.samplers.ghk_hmc import GHKSampler
from revealed.samplers.hierarchical import HierarchicalSampler, Iteration
from revealed.samplers.ibis import IBISSampler
from revealed.samplers.noncentred import PopulationMove
from revealed.samplers.per_draw import multiply_draws
from tests.support.statistical_asserts import assert_same

DRAWS = 24
WIDTH = 120  # free coordinates: enough that the linear algebra library has a routine for each size
CHUNKS = [1, 2, 3, 7]


def problem(width: int) -> Decisions:
    """Decisions whose coefficients are one sum-to-zero block with so many free coordinates."""
    rng = np.random.default_rng(1)
    return Decisions(
        rng.standard_normal((8, width + 1)),
        [0, 2, 4, 6, 8],
        [0, 1, 0, 1],
        blocks=[Block("value", width + 1, True)],
        actions=["a", "b"] * 4,
        groups=["one", "one", "two", "two"],
    )


def prior_of(width: int, prior: rv.Normal | None = None) -> ResolvedPrior:
    return resolve_prior(prior or rv.Normal(2.0), problem(width))


def in_chunks(function: Callable[[Floats], Floats], draws: Floats, size: int) -> Floats:
    """The function of every chunk of so many draws, put together again."""
    ends = [*range(0, len(draws), size), len(draws)]
    return np.concatenate([function(draws[low:high]) for low, high in pairwise(ends)])


@pytest.mark.parametrize("size", CHUNKS)
def test_product_of_draws_in_chunks_of_any_size_is_the_same(size: int) -> None:
    draws = np.random.default_rng(0).standard_normal((DRAWS, WIDTH))
    basis = prior_of(WIDTH).basis

    def product(chunk: Floats) -> Floats:
        return multiply_draws(chunk, basis)

    assert_same(in_chunks(product, draws, size), product(draws))
    # it is the product, but for rounding: n terms are added up, in any order, with an error of at
    # most n eps times the sum of their sizes, here twice, and no entry of the basis is above one
    bound = 2 * WIDTH * np.finfo(np.float64).eps * np.abs(draws).sum(axis=1).max()
    np.testing.assert_allclose(product(draws), draws @ basis.T, rtol=0.0, atol=bound)


@pytest.mark.parametrize("size", CHUNKS)
def test_population_of_a_run_in_chunks_of_any_size_is_the_same(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampler = HierarchicalSampler.build(
        problem(WIDTH), np.array([0, 0, 1, 1]), prior_of(WIDTH), scale=1.0, threads=1
    )

    # other moves would take long, and what is stored of a draw does not depend on how it was made
    def move(sampler: HierarchicalSampler, rng: np.random.Generator, state: State) -> Any:
        state["q"], state["mean"] = rng.standard_normal((2, WIDTH)), rng.standard_normal(WIDTH)
        state["covariance"] = rng.standard_normal((WIDTH, WIDTH))
        outcome = PathOutcome(1.0, True, False, 1)
        moved = PopulationMove(state["mean"], state["covariance"], 0.0, outcome, np.zeros(1))
        return Iteration(np.ones(2), np.zeros(2), moved, 0.0)

    monkeypatch.setattr(HierarchicalSampler, "_iterate", move)

    def drawn(size: int) -> dict[str, Floats]:
        rng, parts = np.random.default_rng(0), []
        state = sampler.init(rng, None)
        for low in range(0, DRAWS, size):
            state, made, _ = sampler.sample(rng, state, min(size, DRAWS - low), 1)
            parts.append(made)
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    whole, found = drawn(DRAWS), drawn(size)
    assert list(whole) == ["population_mean", "population_covariance", "value"]
    for name, array in whole.items():
        assert_same(found[name], array)


@pytest.mark.parametrize("size", CHUNKS)
@pytest.mark.parametrize("scale", ["first", "trace"])
def test_draws_under_correlated_noise_in_chunks_of_any_size_are_the_same(
    scale: str, size: int
) -> None:
    d = problem(WIDTH)
    noise = resolve_noise(rv.CorrelatedNoise(base="a", scale=scale), d)
    sampler = GHKSampler(d, prior_of(WIDTH), noise)
    # coefficients, and nothing else: one action beside the base has one variance, which is fixed
    theta = np.random.default_rng(0).standard_normal((DRAWS, WIDTH))
    whole = sampler.to_reported_scale(theta)

    def value(part: Floats) -> Floats:
        return sampler.to_reported_scale(part)["value"]

    def covariance(part: Floats) -> Floats:
        return sampler.to_reported_scale(part)["noise_covariance"]

    assert_same(in_chunks(value, theta, size), whole["value"])
    assert_same(in_chunks(covariance, theta, size), whole["noise_covariance"])


@pytest.mark.parametrize("size", CHUNKS)
@pytest.mark.parametrize("width", [2, WIDTH])
def test_prior_sd_of_particles_in_chunks_of_any_size_is_the_same(width: int, size: int) -> None:
    sampler = IBISSampler(
        problem(width), prior_of(width, rv.Normal(rv.HalfStudentT(scale=1.0))), DRAWS
    )
    first = sampler.init(np.random.default_rng(0), None)
    first["parents"] = np.arange(DRAWS, dtype=np.float64)

    def prior_sds(size: int) -> Floats:
        rng, state, found = np.random.default_rng(1), first, []
        for low in range(0, DRAWS, size):
            state, made, _ = sampler.sample(rng, state, min(size, DRAWS - low), 1)
            found.append(made["prior_sd"])
        return np.concatenate(found)

    assert_same(prior_sds(size), prior_sds(DRAWS))
