"""A noise covariance: both samplers agree on both scales, and mutants do not."""

from __future__ import annotations

import importlib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed._types import Floats
from revealed.models.correlated_noise import resolve_noise
from revealed.models.priors import resolve_prior
from revealed.samplers.covariance_gibbs import CovarianceGibbsSampler
from revealed.samplers.ghk_hmc import GHKSampler
from tests.conformance.problems import choose_correlated, labelled_offers
from tests.support.cases import warmed_up_draws
from tests.support.statistical_asserts import (
    assert_scores,
    must_fail,
    patched_package,
    z_of_mean,
)

pytestmark = pytest.mark.proves(model="choices, noise covariance")


def coefficients_and_covariance(
    rng: np.random.Generator, built: Any, warmup: int, draws: int, thin: int
) -> Floats:
    """(draws, 3 + 6) coefficients and the covariance's lower triangle, after a warm-up."""
    made, _ = warmed_up_draws(rng, built, warmup, draws, thin)
    i, j = np.tril_indices(3)
    return np.hstack([made["value"], made["noise_covariance"][:, i, j]])


@cache
def tamed_draws(sampler: Any, warmup: int, draws: int, thin: int, scale: str, flat: bool) -> Floats:
    """(draws, 9) after a warm-up, on 60 decisions; arcsinh, so that means exist."""
    d = labelled_offers(60, seed=5)
    noise = resolve_noise(rv.CorrelatedNoise(base="b", scale=scale), d)
    seen = choose_correlated(
        np.random.default_rng(6), d, noise, np.array([0.8, -0.4, 0.2]), 0.5 + 0.5 * np.eye(3)
    )
    prior = rv.Flat() if flat else rv.Normal(0.3**0.5, mean=[0.5, 0.0, 0.0])
    built = sampler(seen, resolve_prior(prior, seen), noise)
    rng = np.random.default_rng(7)
    return np.asarray(np.arcsinh(coefficients_and_covariance(rng, built, warmup, draws, thin)))


def assert_agreement(ghk: Any, gibbs: Any, scale: str, flat: bool, longer: int = 1) -> None:
    """Means and squares of the two samplers agree; longer: how many times as many draws."""
    one = tamed_draws(ghk, 1_000, longer * 8_000, 1, scale, flat)
    two = tamed_draws(gibbs, 1_000, longer * 5_000, 8, scale, flat)
    scores = []
    for power in (1, 2):
        for k in np.flatnonzero(one.std(axis=0) > 1e-9):
            a, b = one[:, k] ** power, two[:, k] ** power
            error = np.hypot(a.mean() / z_of_mean(a, 0.0), b.mean() / z_of_mean(b, 0.0))
            scores.append((a.mean() - b.mean()) / error)
    assert_scores(scores, false_alarm=1e-6, how="agreement")


@pytest.mark.proves(sampler="ghk-hmc and da", problem="{scale}")
@pytest.mark.parametrize(("scale", "flat"), [("trace", True), ("first", False)])
def test_samplers_agree_under_flat_and_proper_priors(scale: str, flat: bool) -> None:
    assert_agreement(GHKSampler, CovarianceGibbsSampler, scale, flat)


MUTANTS = {
    # Imai and van Dyk's step, as if the coefficients' prior did not depend on the scale
    "every covariance accepted, whatever its scale": (
        "kernels/covariance_gibbs.py",
        "if log_ratio < -rng.standard_exponential():",
        "if log_ratio < -np.inf:",
    ),
    # the coordinates of the covariance have a density of their own
    "Jacobian of the covariance's coordinates forgotten": (
        "kernels/ghk_posterior.py",
        "jacobian_power = float(i)",
        "jacobian_power = 0.0",
    ),
    # the coefficients' prior is on the reported scale, not on the one the chain works in
    "the coefficients' prior on the wrong scale": (
        "kernels/ghk_posterior.py",
        "scale_power = float(n_free)",
        "scale_power = 0.0",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_wrong_kernel_is_caught(name: str, tmp_path: Path) -> None:
    file, old, new = MUTANTS[name]
    package = patched_package(tmp_path, file, old, new).__name__
    # the mistake in the prior's scale shows where the prior is proper
    scale, flat = ("first", False) if "prior" in name else ("trace", True)
    if file == "kernels/covariance_gibbs.py":
        wrong = importlib.import_module(f"{package}.samplers.covariance_gibbs")
        samplers, about = (GHKSampler, wrong.CovarianceGibbsSampler), "da"
    else:
        wrong = importlib.import_module(f"{package}.samplers.ghk_hmc")
        samplers, about = (wrong.GHKSampler, CovarianceGibbsSampler), "ghk-hmc"
    with must_fail(name, sampler=about):
        # the forgotten Jacobian is six standard errors away with the draws of the right samplers
        assert_agreement(*samplers, scale, flat, longer=3)
