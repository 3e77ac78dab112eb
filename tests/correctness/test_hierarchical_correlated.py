"""Hierarchical groups with correlated noise: calibrated on both scales, and equal to what is known.

Two actions leave the hierarchical sampler's posterior, groups that hardly differ leave that of
"ghk-hmc", and no decisions leave the prior. The truth is simulated by other means: covariances by
scipy's inverse Wishart, the noise by its Cholesky factor, the choice by comparing utilities.
"""

from __future__ import annotations

import importlib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats as st

import revealed as rv
from revealed._types import Floats, Ints
from revealed.kernels.hierarchical_gibbs import iterate
from revealed.models.noise import ResolvedNoise, resolve_noise
from revealed.models.priors import resolve_prior
from revealed.samplers import hierarchical_gibbs
from revealed.samplers.ghk_hmc import GHKSampler
from revealed.samplers.hierarchical import HierarchicalSampler, scale_groups
from revealed.samplers.hierarchical_gibbs import HierarchicalGibbsSampler
from tests.correctness.test_hierarchical import MEAN_LOG_T, draw_covariance, ranked_quantities
from tests.correctness.test_noise_covariance import choose
from tests.support.cases import warmed_up_draws
from tests.support.statistical_asserts import (
    assert_scores,
    assert_uniform_ranks,
    must_fail,
    patched_package,
    z_of_mean,
)

pytestmark = pytest.mark.proves(model="population, noise covariance", sampler="hierarchical-gibbs")
GROUPS = 6
DRAWS = 15  # that a truth is ranked among
THIN = 4  # the slowest autocorrelation time is about three iterations
WARMUP = 60
SD_SCALE = 1.0  # of the population's sds under their prior, as in the hierarchical sampler's tests
PRIORS = {
    "given sd": rv.Normal(2.0**0.5, mean=[0.5, -0.5]),
    "inferred sd": rv.Normal(rv.HalfStudentT(scale=1.0)),
}


def offers(count: int, seed: int, labels: str = "abc") -> rv.Decisions:
    """Decisions of two features among two labels or more; some groups never see some label."""
    rng = np.random.default_rng(seed)
    shown = [rng.permutation(len(labels))[: rng.integers(2, len(labels) + 1)] for _ in range(count)]
    start = np.concatenate([[0], np.cumsum([len(s) for s in shown])])
    return rv.Decisions(
        rng.standard_normal((start[-1], 2)),
        start,
        np.zeros(count, int),
        actions=np.array(list(labels))[np.concatenate(shown)],
    )


def group_of(count: int) -> Ints:
    """Whose each decision is: the first group has one, others more and more."""
    cuts = np.linspace(0.0, 1.0, GROUPS + 1)[1:] ** 1.3
    return np.searchsorted(cuts * (count - 1), np.arange(count)).astype(np.int64)


def draw_noise(rng: np.random.Generator, noise: ResolvedNoise) -> Floats:
    """A noise covariance from its prior."""
    wide = np.atleast_2d(st.invwishart(noise.df, noise.root @ noise.root.T).rvs(random_state=rng))
    return np.asarray(wide / (wide[0, 0] if noise.scale == "first" else np.trace(wide) / len(wide)))


def columns(made: dict[str, Floats]) -> Floats:
    """(draws, ...) mean, covariance, groups, then the noise's lower triangle and the prior's sd."""
    i, j = np.tril_indices(made["noise_covariance"].shape[-1])
    names = ("population_mean", "population_covariance", "value")
    parts = [made[name].reshape(len(made["value"]), -1) for name in names]
    population = ranked_quantities(np.hstack(parts), made["value"].shape[-1])
    rest = [made["noise_covariance"][:, i, j]]
    if "prior_sd" in made:
        rest.append(made["prior_sd"][:, None])
    return np.hstack([population, *rest])


def ranks(scale: str, prior: str, replications: int, seed: int) -> Ints:
    """(replications, quantities) ranks of the truth among thinned draws."""
    rng, found = np.random.default_rng(seed), []
    d, group = offers(36, seed=1), group_of(36)
    noise = resolve_noise(rv.CorrelatedNoise("b", scale, df=4.0, centre="independent"), d)
    resolved = resolve_prior(PRIORS[prior], d)
    for _ in range(replications):
        sd = 2.0**0.5 if resolved.scale is None else resolved.scale * abs(rng.standard_t(4))
        mean = resolved.mean + sd * rng.standard_normal(2)
        covariance = draw_covariance(rng, scale_groups(resolved))
        each = mean + rng.standard_normal((GROUPS, 2)) @ np.linalg.cholesky(covariance).T
        truth = {
            "population_mean": mean[None],
            "population_covariance": covariance[None],
            "value": each[None],
            "noise_covariance": draw_noise(rng, noise)[None],
        }
        if resolved.scale is not None:
            truth["prior_sd"] = np.array([sd])
        # the choices of each group, by its own value
        best = np.zeros(len(d), np.int64)
        for i in range(GROUPS):
            seen = choose(rng, d, noise, each[i], truth["noise_covariance"][0])
            assert seen.chosen is not None
            best[group == i] = seen.chosen[group == i]
        sampler = HierarchicalGibbsSampler.build(
            d.with_choices(best), group, resolved, SD_SCALE, noise
        )
        made, _ = warmed_up_draws(rng, sampler, WARMUP, DRAWS, THIN)
        found.append((columns(made) < columns(truth)).sum(axis=0))
    # what the scale fixes has no rank
    fixed = 4 + 1 + 2 + 1
    return np.array(found)[:, [k for k in range(len(found[0])) if scale == "trace" or k != fixed]]


@pytest.mark.proves(problem="{scale}, {prior}")
@pytest.mark.parametrize(("scale", "prior"), [("trace", "given sd"), ("first", "inferred sd")])
def test_ranks_are_uniform(scale: str, prior: str) -> None:
    """48 replications."""
    assert_uniform_ranks(ranks(scale, prior, 48, seed=2), DRAWS, false_alarm=1e-6)


@pytest.mark.slow
@pytest.mark.proves(problem="{scale}, {prior}")
@pytest.mark.parametrize("scale", ["trace", "first"])
@pytest.mark.parametrize("prior", PRIORS)
def test_ranks_are_uniform_in_the_long_run(scale: str, prior: str) -> None:
    assert_uniform_ranks(ranks(scale, prior, 1000, seed=3), DRAWS, false_alarm=1e-6)


def assert_agree(one: Floats, two: Floats) -> None:
    """Means and squares of two runs agree, column by column; arcsinh, so that means exist."""
    scores = []
    for power in (1, 2):
        for a, b in zip(np.arcsinh(one).T ** power, np.arcsinh(two).T ** power, strict=True):
            if a.std() > 1e-9:
                error = np.hypot(a.mean() / z_of_mean(a, 0.0), b.mean() / z_of_mean(b, 0.0))
                scores.append((a.mean() - b.mean()) / error)
    assert_scores(scores, false_alarm=1e-6, how="agreement")


@cache
def of_two_actions(independent: bool) -> Floats:
    """Draws of a population that chose between two actions, by either sampler.

    Independent noise of both has differences of variance two, which rows times its root make up.
    """
    d, group = offers(60, seed=5, labels="ab"), group_of(60)
    noise = resolve_noise(rv.CorrelatedNoise("a"), d)
    seen = choose(np.random.default_rng(6), d, noise, np.array([1.0, -0.4]), np.eye(1))
    prior, rng = resolve_prior(PRIORS["given sd"], d), np.random.default_rng(7)
    if not independent:
        built = HierarchicalGibbsSampler.build(seen, group, prior, SD_SCALE, noise)
        made, _ = warmed_up_draws(rng, built, 100, 3_000)
        np.testing.assert_allclose(made["noise_covariance"], 1.0)
        return columns(made)
    wider = rv.Decisions(np.sqrt(2.0) * np.asarray(d.rows), d.start, seen.chosen)
    other = HierarchicalSampler.build(wider, group, prior, SD_SCALE, threads=1)
    made, _ = warmed_up_draws(rng, other, 600, 6_000)
    return columns(made | {"noise_covariance": np.ones((6_000, 1, 1))})


def test_two_actions_leave_the_hierarchical_samplers_posterior() -> None:
    assert_agree(of_two_actions(independent=True), of_two_actions(independent=False))


@pytest.mark.slow
@pytest.mark.proves(problem="{scale}")
@pytest.mark.parametrize("scale", ["trace", "first"])
def test_groups_that_hardly_differ_leave_the_pooled_posterior(scale: str) -> None:
    d, group = offers(120, seed=8), group_of(120)
    noise = resolve_noise(rv.CorrelatedNoise("b", scale), d)
    seen = choose(np.random.default_rng(9), d, noise, np.array([0.8, -0.4]), 0.5 + 0.5 * np.eye(2))
    prior, rng = resolve_prior(PRIORS["given sd"], d), np.random.default_rng(10)
    i, j = np.tril_indices(2)
    # sds of a thousandth are far below what the decisions could show
    built = HierarchicalGibbsSampler.build(seen, group, prior, 1e-3, noise)
    made, _ = warmed_up_draws(rng, built, 200, 6_000)
    pooled, _ = warmed_up_draws(rng, GHKSampler(seen, prior, noise), 1_000, 12_000)
    assert_agree(
        np.hstack([made["population_mean"], made["noise_covariance"][:, i, j]]),
        np.hstack([pooled["value"], pooled["noise_covariance"][:, i, j]]),
    )


def summaries(noise: Floats) -> Floats:
    """(2, n) log ratio of variances, and correlation, of n covariances of two."""
    one, two = noise[:, 0, 0], noise[:, 1, 1]
    return np.stack([np.log(one / two), noise[:, 0, 1] / np.sqrt(one * two)])


def scores_without_information(sampler: Any, draws: int, scale: str = "trace") -> list[float]:
    """How far draws given decisions of one action, which say nothing, are from the prior."""
    d = rv.Decisions(np.ones((6, 2)), range(7), np.zeros(6, int), actions=list("abcabc"))
    noise = resolve_noise(
        rv.CorrelatedNoise("b", scale, df=4.0, centre=[[1.0, 0.3], [0.3, 2.0]]), d
    )
    prior, rng = resolve_prior(PRIORS["given sd"], d), np.random.default_rng(1)
    group = np.array([0, 0, 1, 1, 2, 2])
    made, _ = warmed_up_draws(rng, sampler.build(d, group, prior, SD_SCALE, noise), 50, draws)
    found = columns(made)
    # log sds are those of |t|, correlations uniform; the mean has its own law
    known = [
        (found[:, 0], 0.5),
        ((found[:, 1] + 0.5) ** 2, 2.0),
        (np.log(found[:, 2]), MEAN_LOG_T),
        (np.log(found[:, 3]), MEAN_LOG_T),
        (found[:, 4], 0.0),
        (found[:, 4] ** 2, 1.0 / 3.0),
    ]
    scores = [z_of_mean(x, truth) for x, truth in known]
    # the noise against as many draws of its prior
    exact = np.array([draw_noise(rng, noise) for _ in range(20_000)])
    for a, b in zip(summaries(made["noise_covariance"]), summaries(exact), strict=True):
        error = np.hypot(a.mean() / z_of_mean(a, 0.0), b.std() / np.sqrt(len(b)))
        scores.append(float((a.mean() - b.mean()) / error))
    return scores


@pytest.mark.parametrize("scale", ["trace", "first"])
def test_no_information_leaves_the_prior(scale: str) -> None:
    assert_scores(scores_without_information(HierarchicalGibbsSampler, 3_000, scale))


def test_wrong_prior_of_the_sds_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(rng: Any, utilities: Any, prior: Any, chain: Any) -> Any:
        return iterate(rng, utilities, prior._replace(sd_scale=1.3 * prior.sd_scale), chain)

    monkeypatch.setattr(hierarchical_gibbs, "iterate", wrong)
    with must_fail("a prior of the sds that is too wide"):
        assert_scores(scores_without_information(HierarchicalGibbsSampler, 3_000))


MUTANTS = {
    # as if the population's prior did not depend on the scale
    "every noise covariance accepted, whatever its scale": (
        "kernels/hierarchical_gibbs.py",
        "if log_ratio < -rng.standard_exponential():",
        "if log_ratio < -np.inf:",
    ),
    "Jacobian of the population's scale miscounted": (
        "kernels/hierarchical_gibbs.py",
        "powers = width * (SD_PRIOR_DF + width - 1.0)",
        "powers = width * (SD_PRIOR_DF + width - 2.0)",
    ),
    "prior of the root's entries forgotten": (
        "kernels/root_slices.py",
        "total -= shape[g] * math.log(rate[g])",
        "total -= 0.0 * math.log(rate[g])",
    ),
    "values left on the old scale": (
        "kernels/hierarchical_gibbs.py",
        "state.covariance[:] *= ratio**2",
        "state.covariance[:] *= ratio",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_wrong_kernel_is_caught(name: str, tmp_path: Path) -> None:
    package = patched_package(tmp_path, *MUTANTS[name]).__name__
    wrong = importlib.import_module(f"{package}.samplers.hierarchical_gibbs")
    with must_fail(name):
        assert_scores(scores_without_information(wrong.HierarchicalGibbsSampler, 10_000))
