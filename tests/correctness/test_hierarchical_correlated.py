"""Hierarchical groups with correlated noise: equal to what is known, and wrong kernels are caught.

Groups that hardly differ leave the posterior of "ghk-hmc", and no decisions leave the prior. Ranks,
the joint test and an exact posterior are in `tests/conformance`.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed._types import Floats, Ints
from revealed.kernels.hierarchical_gibbs import iterate
from revealed.models.correlated_noise import resolve_noise
from revealed.models.priors import resolve_prior
from revealed.samplers import hierarchical_gibbs
from revealed.samplers.ghk_hmc import GHKSampler
from revealed.samplers.hierarchical_gibbs import HierarchicalGibbsSampler
from tests.conformance.problems import choose_correlated, draw_noise_covariance, labelled_offers
from tests.correctness.test_hierarchical import MEAN_LOG_T
from tests.support.cases import mark_slow, warmed_up_draws
from tests.support.statistical_asserts import (
    assert_scores,
    must_fail,
    patched_package,
    record_check,
    z_of_mean,
)

pytestmark = pytest.mark.proves(model="population, noise covariance", sampler="hierarchical-gibbs")
GROUPS = 6
SD_SCALE = 1.0  # of the population's sds under their prior, as in the hierarchical sampler's tests
PRIOR = rv.Normal(2.0**0.5, mean=[0.5, -0.5])


def group_of(count: int) -> Ints:
    """Whose each decision is: the first group has one, others more and more."""
    cuts = np.linspace(0.0, 1.0, GROUPS + 1)[1:] ** 1.3
    return np.searchsorted(cuts * (count - 1), np.arange(count)).astype(np.int64)


def assert_agree(one: Floats, two: Floats) -> None:
    """Means and squares of two runs agree, column by column; arcsinh, so that means exist."""
    scores = []
    for power in (1, 2):
        for a, b in zip(np.arcsinh(one).T ** power, np.arcsinh(two).T ** power, strict=True):
            if a.std() > 1e-9:
                error = np.hypot(a.mean() / z_of_mean(a, 0.0), b.mean() / z_of_mean(b, 0.0))
                scores.append((a.mean() - b.mean()) / error)
    assert_scores(scores, false_alarm=1e-6, how="agreement")


@pytest.mark.slow
@pytest.mark.proves(problem="{scale}")
@pytest.mark.parametrize("scale", ["trace", "first"])
def test_groups_that_hardly_differ_leave_the_pooled_posterior(scale: str) -> None:
    d, group = labelled_offers(120, seed=8, features=2, actions="abc"), group_of(120)
    noise = resolve_noise(rv.CorrelatedNoise("b", scale), d)
    seen = choose_correlated(
        np.random.default_rng(9), d, noise, np.array([0.8, -0.4]), 0.5 + 0.5 * np.eye(2)
    )
    prior, rng = resolve_prior(PRIOR, d), np.random.default_rng(10)
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
    prior, rng = resolve_prior(PRIOR, d), np.random.default_rng(1)
    group = np.array([0, 0, 1, 1, 2, 2])
    made, _ = warmed_up_draws(rng, sampler.build(d, group, prior, SD_SCALE, noise), 50, draws)
    mean, covariance = made["population_mean"], made["population_covariance"]
    sd = np.sqrt(np.einsum("nkk->nk", covariance))
    correlation = covariance[:, 0, 1] / sd[:, 0] / sd[:, 1]
    # log sds are those of |t|, correlations uniform; the mean has its own law
    known = [
        (mean[:, 0], 0.5),
        ((mean[:, 1] + 0.5) ** 2, 2.0),
        (np.log(sd[:, 0]), MEAN_LOG_T),
        (np.log(sd[:, 1]), MEAN_LOG_T),
        (correlation, 0.0),
        (correlation**2, 1.0 / 3.0),
    ]
    scores = [z_of_mean(x, truth) for x, truth in known]
    # the noise against as many draws of its prior
    exact = np.array([draw_noise_covariance(rng, noise) for _ in range(20_000)])
    for a, b in zip(summaries(made["noise_covariance"]), summaries(exact), strict=True):
        error = np.hypot(a.mean() / z_of_mean(a, 0.0), b.std() / np.sqrt(len(b)))
        scores.append(float((a.mean() - b.mean()) / error))
    return scores


@pytest.mark.parametrize("scale", mark_slow(["trace", "first"], lambda scale: scale == "first"))
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
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_wrong_kernel_is_caught(name: str, tmp_path: Path) -> None:
    package = patched_package(tmp_path, *MUTANTS[name]).__name__
    wrong = importlib.import_module(f"{package}.samplers.hierarchical_gibbs")
    with must_fail(name):
        try:
            assert_scores(scores_without_information(wrong.HierarchicalGibbsSampler, 10_000))
        except np.linalg.LinAlgError as broken:
            record_check(False, f"the scale ran away and broke down: {broken}", how="breakdown")
