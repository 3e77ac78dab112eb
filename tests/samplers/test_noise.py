"""A noise that the package does not have: evidence, coordinates and likelihoods of groups.

`tests/conformance` compares every sampler that takes it with exact posteriors, and calibrates it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import revealed as rv
from revealed._types import Floats
from revealed.data.chunks import InMemoryChunks
from revealed.data.unique import deduplicate
from revealed.kernels import group_values
from revealed.kernels.noise import NoiseArguments
from revealed.models.likelihood import derivatives, posterior_mode
from revealed.models.noise import Noise
from revealed.models.priors import resolve_prior
from revealed.samplers.composite.sampler import CompositeSampler
from revealed.samplers.composite.transform import WhiteningTransform
from revealed.samplers.executors import ThreadExecutor
from revealed.samplers.hierarchical import HierarchicalSampler
from revealed.samplers.ibis import IBISSampler
from revealed.samplers.laplace import Laplace
from revealed.samplers.model_kind import kind_of
from revealed.samplers.registry import REGISTRY, BuildArguments
from tests.kernels.test_noise import LOGISTIC, PRIOR, decisions
from tests.support.cases import warmed_up_draws
from tests.support.statistical_asserts import (
    assert_mean,
    assert_scores,
    assert_sd,
    grid_moments,
)


@cache
def exact_moments(noise: Noise) -> tuple[Floats, Floats, float]:
    """Mean and sd of both coefficients, and the log evidence, by a sum over a grid."""
    d = decisions()
    prior, axis = resolve_prior(PRIOR, d), np.linspace(-6.0, 6.0, 121)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    log_density = rv.log_likelihood(d, grid, noise).sum(axis=1) + prior.log_density(grid)
    largest, cell = log_density.max(), (axis[1] - axis[0]) ** 2
    constant = -math.log(2.0 * math.pi) + 0.5 * np.linalg.slogdet(prior.precision)[1]
    evidence = largest + math.log(np.exp(log_density - largest).sum() * cell) + constant
    return *grid_moments(grid, log_density), evidence


def assert_moments(draws: Floats) -> None:
    mean, sd, _ = exact_moments(LOGISTIC)
    for k in range(2):
        assert_mean(draws[:, k], mean[k], false_alarm=1e-6)
        assert_sd(draws[:, k], mean[k], sd[k], false_alarm=1e-6)


def test_composite_sampler_has_no_augmentation() -> None:
    model = rv.ChoiceModel(prior=PRIOR, noise=LOGISTIC)
    build = REGISTRY.find("auto", kind_of(model)).build
    assert build is not None
    sampler = build(model.resolve(decisions()), BuildArguments({}, 1000))
    assert isinstance(sampler, CompositeSampler)
    assert not sampler.can_augment


class CauchyNoise(Noise):
    """Between two actions, noise whose difference is Cauchy: its likelihood is not log-concave."""

    name = "cauchy"

    @staticmethod
    def log_probability(gaps: Floats, parameters: Floats, slopes: Floats) -> float:
        p = math.atan2(1.0, gaps[0]) / math.pi
        slopes[:] = -1.0 / (math.pi * p * (1.0 + gaps[0] ** 2))
        return math.log(p)


def test_coordinates_exist_where_the_likelihood_is_not_log_concave() -> None:
    # choices against v = (-9, -9), where log P bends upwards, under a prior that says little
    rows = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0], [0.0, 0.0]] * 20)
    d, noise = rv.Decisions(rows, range(0, 81, 2), [0] * 40), CauchyNoise()
    unique, prior = deduplicate(d), resolve_prior(rv.Normal(100.0), d)
    values = np.random.default_rng(1).normal(-9.0, 1.0, (200, 2))
    assert derivatives(d, values.mean(axis=0), noise)[2].diagonal().min() > 0.0
    made = WhiteningTransform.from_curvature(unique, prior, values, 20, noise.kernel())
    np.testing.assert_allclose(made.whiten @ made.unwhiten, np.eye(2), atol=1e-12)
    # a noise that only claims to be log-concave has none
    kind = noise.law().kind
    assert kind is not None
    claimed = NoiseArguments(replace(kind, log_concave=True), np.empty(0))
    with pytest.raises(ValueError, match="curvature is lost to rounding"):
        WhiteningTransform.from_curvature(unique, prior, values, 20, claimed)
    # and the mode is found from there
    mode, _ = posterior_mode(d, replace(prior, mean=values[0]), noise=noise.kernel())
    assert derivatives(d, mode, noise)[1] == pytest.approx((mode - values[0]) / 1e4, abs=1e-6)


@pytest.mark.slow
def test_laplace_agrees_with_the_grid() -> None:
    d = decisions()
    chunks = InMemoryChunks(d, np.ones(len(d)))
    sampler = Laplace(
        chunks,
        ThreadExecutor(chunks, 1),
        resolve_prior(PRIOR, d),
        chains=1,
        draws_per_chain=20_000,
        seed=1,
        noise=LOGISTIC.kernel(),
    )
    for _ in sampler.iterate():
        pass
    draws, stats, _ = sampler.draws()
    assert_moments(draws)
    # 20,000 weights of a good proposal: the error of their mean is far below a hundredth
    assert stats["log_evidence"][0] == pytest.approx(exact_moments(LOGISTIC)[2], abs=0.03)


@pytest.mark.slow
def test_ibis_agrees_with_the_grid() -> None:
    d, (mean, _, evidence) = decisions(), exact_moments(LOGISTIC)
    sampler = IBISSampler(d, resolve_prior(PRIOR, d), 300, LOGISTIC.kernel())
    # independent sets of particles, whose means are compared with the grid
    found = []
    for seed in range(20):
        draws, stats = warmed_up_draws(np.random.default_rng(seed), sampler, len(d), 300)
        found.append([*draws["value"].mean(axis=0), np.exp(stats["log_evidence"][0] - evidence)])
    each = np.array(found)
    error = each.std(axis=0, ddof=1) / np.sqrt(len(each))
    assert_scores((each.mean(axis=0) - [*mean, 1.0]) / error, false_alarm=1e-6, degrees=19)


@pytest.mark.slow
def test_hierarchical_sampler_runs_and_has_the_likelihood_of_its_groups() -> None:
    d, group = decisions(), np.arange(21) % 4
    sampler = HierarchicalSampler.build(
        d, group, resolve_prior(PRIOR, d), 1.0, threads=1, noise=LOGISTIC.law()
    )
    rng = np.random.default_rng(1)
    draws, _ = warmed_up_draws(rng, sampler, 60, 60)
    assert all(np.isfinite(array).all() for array in draws.values())
    q, zeros, eye = rng.normal(size=(4, 2)), np.zeros(2), np.eye(2)
    sums = group_values.LikelihoodSums(np.zeros(1), np.zeros(2), np.zeros((2, 2)))
    (groups,) = sampler.executor.partitions  # type: ignore[attr-defined]
    group_values.add_log_likelihood(groups, q, zeros, eye, zeros, eye, sums)
    of_group = [derivatives(d[np.flatnonzero(group == i)], q[i], LOGISTIC) for i in range(4)]
    assert sums.log_likelihood[0] == pytest.approx(sum(value for value, _, _ in of_group))
    np.testing.assert_allclose(sums.grad, sum(gradient for _, gradient, _ in of_group))
