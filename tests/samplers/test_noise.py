"""Every sampler that moves by the likelihood takes a noise that the package does not have."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed._types import Floats, Ints
from revealed.data.chunks import InMemoryChunks
from revealed.data.unique import deduplicate
from revealed.kernels import group_values
from revealed.kernels.noise import NoiseArguments
from revealed.models.likelihood import derivatives, posterior_mode
from revealed.models.noise import Noise, NormalNoise
from revealed.models.priors import resolve_prior
from revealed.samplers.composite.sampler import CompositeSampler
from revealed.samplers.composite.transform import WhiteningTransform
from revealed.samplers.executors import ThreadExecutor
from revealed.samplers.hierarchical import HierarchicalSampler
from revealed.samplers.ibis import IBISSampler
from revealed.samplers.laplace import Laplace
from revealed.samplers.model_kind import kind_of
from revealed.samplers.registry import REGISTRY, BuildArguments
from revealed.samplers.transition_problem import build_unknown_transitions
from tests.kernels.test_noise import LOGISTIC, PRIOR, decisions
from tests.support.cases import warmed_up_draws
from tests.support.logistic_noise import LogisticNoise
from tests.support.statistical_asserts import (
    OutsideTolerance,
    assert_mean,
    assert_scores,
    assert_sd,
    assert_uniform_ranks,
    grid_moments,
    must_fail,
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


def test_composite_sampler_agrees_with_the_grid_and_has_no_augmentation() -> None:
    d = decisions()
    model = rv.ChoiceModel(prior=PRIOR, noise=LOGISTIC)
    build = REGISTRY.find("auto", kind_of(model)).build
    assert build is not None
    sampler = build(model.resolve(d), BuildArguments({}, 1000))
    assert isinstance(sampler, CompositeSampler)
    assert not sampler.can_augment
    rng = np.random.default_rng(3)
    draws = warmed_up_draws(rng, sampler, 500, 10_000)[0]["value"]
    assert_moments(draws)
    # the check can fail: under normal noise the means are others
    with pytest.raises(OutsideTolerance):
        assert_mean(draws[:, 0], exact_moments(NormalNoise())[0][0], false_alarm=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("prior", [rv.Flat(), rv.Normal(rv.HalfStudentT())])
def test_composite_sampler_runs_under_other_priors(prior: Any) -> None:
    d = decisions()
    sampler = CompositeSampler.build(d, resolve_prior(prior, d), noise=LOGISTIC.kernel())
    draws = warmed_up_draws(np.random.default_rng(3), sampler, 500, 500)[0]["value"]
    mean, sd, _ = exact_moments(LOGISTIC)
    # another prior on twenty decisions moves the mean by less than a posterior sd
    assert np.all(np.abs(draws.mean(axis=0) - mean) < sd)


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
    kind = noise.kernel().kind
    assert kind is not None
    claimed = NoiseArguments(replace(kind, log_concave=True), np.empty(0))
    with pytest.raises(np.linalg.LinAlgError):
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
        20_000,
        1,
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
        d, group, resolve_prior(PRIOR, d), 1.0, threads=1, noise=LOGISTIC.kernel()
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


@pytest.mark.slow
def test_unknown_transitions_agree_with_a_known_row() -> None:
    # rows that lead to one state each, but for one that 40,000 transitions have nearly settled
    x, a = np.repeat([0, 0, 1, 1], [9, 2, 3, 1]), np.repeat([0, 1, 0, 1], [9, 2, 3, 1])
    counts, prior = np.zeros((2, 2, 2), np.int64), np.zeros((2, 2, 2))
    counts[0, 0], prior[0, 0] = (10_000, 30_000), 1.0
    prior[1, 0, 1] = prior[0, 1, 0] = prior[1, 1, 1] = 1.0
    seen = rv.Trajectories.from_counts((x, a), counts, (0, 1), (0, 1))
    model = rv.ChoiceModel(
        prior=rv.Normal(2.0), noise=LOGISTIC, transitions=rv.Dirichlet(concentration=prior)
    )
    resolved = model.resolve(seen)
    sampler = build_unknown_transitions(resolved)
    draws = warmed_up_draws(np.random.default_rng(1), sampler, 500, 5000)[0]["value"]
    # then the value has the posterior of known rows, on the line of sum zero
    line = np.linspace(-6.0, 6.0, 2001)
    values = np.stack([line, -line], axis=1)
    decisions_at_mean_rows = resolved.coefficients
    assert isinstance(decisions_at_mean_rows, rv.Decisions)
    logs = rv.log_likelihood(decisions_at_mean_rows, values, LOGISTIC).sum(axis=1)
    mean, sd = grid_moments(values, logs + resolved.prior.log_density(values))
    assert_mean(draws[:, 0], mean[0], false_alarm=1e-6)
    assert_sd(draws[:, 0], mean[0], sd[0], false_alarm=1e-6)


# Calibration: the truth is drawn from the prior, choices under the plug-in's noise


def calibration_ranks(sampler_name: str, replications: int) -> Ints:
    """(replications, 3) ranks of the truth among fifteen thinned draws, of both coefficients.

    And of its log-likelihood.
    """
    rng, count = np.random.default_rng(7), 15
    out = np.empty((replications, 3), dtype=np.int64)
    for i in range(replications):
        rows = rng.normal(size=(24, 2))
        truth = 1.5 * rng.standard_normal(2)
        utility = (rows @ truth + LOGISTIC.sample(rng, 24)).reshape(-1, 3)
        d = rv.Decisions(rows, range(0, 25, 3), utility.argmax(axis=1))
        model = rv.ChoiceModel(prior=rv.Normal(1.5), noise=LOGISTIC)
        thin = 1 if sampler_name in ("ibis", "laplace") else 6
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", rv.NotConvergedWarning)
            post = rv.fit(
                d,
                model,
                sampler=sampler_name,
                draws=60 * count if thin == 1 else count,
                warmup=None if thin == 1 else 150,
                chains=1,
                seed=i,
                executor=1,
                progress=False,
                thin=thin,
            )
        # particles and resampled draws repeat one another: some, far apart, are nearly independent
        draws = post.values[:: 60 if thin == 1 else 1]
        fit = rv.log_likelihood(d, np.vstack([draws, truth]), LOGISTIC).sum(axis=1)
        out[i] = [*(draws < truth).sum(axis=0), (fit[:-1] < fit[-1]).sum()]
    return out


@pytest.mark.slow
@pytest.mark.parametrize("sampler_name", ["composite", "ibis", "laplace"])
def test_ranks_are_uniform_under_a_noise_from_elsewhere(sampler_name: str) -> None:
    assert_uniform_ranks(calibration_ranks(sampler_name, 300), 15, false_alarm=1e-6)


@pytest.mark.slow
def test_noise_of_another_scale_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = rv.fit
    wrong = rv.ChoiceModel(prior=rv.Normal(1.5), noise=LogisticNoise(scale=0.06))
    monkeypatch.setattr(rv, "fit", lambda d, model, **more: right(d, wrong, **more))
    with must_fail("noise ten times as narrow"):
        assert_uniform_ranks(calibration_ranks("composite", 150), 15, false_alarm=1e-6)
