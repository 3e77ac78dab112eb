"""A noise covariance: calibration of both samplers on both scales, their agreement, and mutants.

The truth is simulated by other means: the covariance by scipy's inverse Wishart, brought to scale;
the noise by its Cholesky factor; the choice by comparing utilities.
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
from revealed.models.noise import ResolvedNoise, resolve_noise
from revealed.models.priors import resolve_prior
from revealed.samplers.covariance_gibbs import CovarianceGibbsSampler
from revealed.samplers.ghk_hmc import GHKSampler
from tests.support.cases import warmed_up_draws
from tests.support.statistical_asserts import (
    assert_scores,
    assert_uniform_ranks,
    must_fail,
    patched_package,
    z_of_mean,
)

pytestmark = pytest.mark.proves(model="choices, noise covariance")
DRAWS = 63
PRIOR = rv.Normal(1.0)
SAMPLERS = {  # with their warm-up, and thinning by their autocorrelation times
    "ghk-hmc": (GHKSampler, 300, 3),
    "da": (CovarianceGibbsSampler, 200, 25),
}
SCALES = ("trace", "first")


def offers(count: int, seed: int) -> rv.Decisions:
    """Decisions among two to four of the actions a, b, c, d, with three features.

    The base b is not always among them.
    """
    rng = np.random.default_rng(seed)
    shown = [rng.permutation(4)[: rng.integers(2, 5)] for _ in range(count)]
    start = np.concatenate([[0], np.cumsum([len(s) for s in shown])])
    rows = rng.standard_normal((start[-1], 3))
    return rv.Decisions(
        rows, start, np.zeros(count, int), actions=np.array(list("abcd"))[np.concatenate(shown)]
    )


OFFERS = offers(20, seed=1)


def truth(rng: np.random.Generator, noise: ResolvedNoise) -> tuple[Floats, Floats]:
    """Coefficients and covariance from their priors."""
    size = len(noise.non_base)
    wide = np.atleast_2d(st.invwishart(noise.df, noise.root @ noise.root.T).rvs(random_state=rng))
    scale = wide[0, 0] if noise.scale == "first" else np.trace(wide) / size
    return rng.standard_normal(3), wide / scale


def choose(
    rng: np.random.Generator, d: rv.Decisions, noise: ResolvedNoise, v: Floats, covariance: Floats
) -> rv.Decisions:
    """The same offers with simulated choices."""
    each = np.zeros((len(d), len(noise.labels)))
    others = np.delete(np.arange(len(noise.labels)), noise.base)
    each[:, others] = rng.multivariate_normal(np.zeros(len(others)), covariance, size=len(d))
    w = d.rows @ v + each[d.decision_of_row, noise.of_row]
    best = [int(np.argmax(w[a:b])) for a, b in zip(d.start[:-1], d.start[1:], strict=True)]
    return d.with_choices(best)


def coefficients_and_covariance(
    rng: np.random.Generator, built: Any, warmup: int, draws: int, thin: int
) -> Floats:
    """(draws, 3 + 6) coefficients and the covariance's lower triangle, after a warm-up."""
    made, _ = warmed_up_draws(rng, built, warmup, draws, thin)
    i, j = np.tril_indices(3)
    return np.hstack([made["value"], made["noise_covariance"][:, i, j]])


def ranks(
    sampler: Any,
    warmup: int,
    thin: int,
    scale: str,
    replications: int,
    seed: int,
    prior: Any = PRIOR,
) -> Ints:
    """(replications, 3 + 6) ranks of true coefficients and covariance among 63 thinned draws."""
    rng = np.random.default_rng(seed)
    noise = resolve_noise(
        rv.CorrelatedNoise(base="b", scale=scale, df=5.0, centre="independent"), OFFERS
    )
    low, out = np.tril_indices(3), np.empty((replications, 9), dtype=np.int64)
    for i in range(replications):
        v, covariance = truth(rng, noise)
        seen = choose(rng, OFFERS, noise, v, covariance)
        built = sampler(seen, resolve_prior(prior, seen), noise)
        draws = coefficients_and_covariance(rng, built, warmup, DRAWS, thin)
        out[i] = (draws < np.concatenate([v, covariance[low]])).sum(axis=0)
    return out[:, [k for k in range(9) if scale == "trace" or k != 3]]


@pytest.mark.proves(sampler="{name}", problem="{scale}")
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", SAMPLERS)
def test_ranks_are_uniform(name: str, scale: str) -> None:
    """100 replications."""
    assert_uniform_ranks(ranks(*SAMPLERS[name], scale, 100, seed=2), DRAWS, false_alarm=1e-6)


@pytest.mark.slow
@pytest.mark.proves(sampler="{name}", problem="{scale}")
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", SAMPLERS)
def test_ranks_are_uniform_in_the_long_run(name: str, scale: str) -> None:
    """The full run: 2,000 replications."""
    assert_uniform_ranks(ranks(*SAMPLERS[name], scale, 2_000, seed=3), DRAWS, false_alarm=1e-6)


@cache
def tamed_draws(sampler: Any, warmup: int, draws: int, thin: int, scale: str, flat: bool) -> Floats:
    """(draws, 9) after a warm-up, on 60 decisions; arcsinh, so that means exist."""
    d = offers(60, seed=5)
    noise = resolve_noise(rv.CorrelatedNoise(base="b", scale=scale), d)
    seen = choose(
        np.random.default_rng(6), d, noise, np.array([0.8, -0.4, 0.2]), 0.5 + 0.5 * np.eye(3)
    )
    prior = rv.Flat() if flat else rv.Normal(0.3**0.5, mean=[0.5, 0.0, 0.0])
    built = sampler(seen, resolve_prior(prior, seen), noise)
    rng = np.random.default_rng(7)
    return np.asarray(np.arcsinh(coefficients_and_covariance(rng, built, warmup, draws, thin)))


def assert_agreement(ghk: Any, gibbs: Any, scale: str, flat: bool) -> None:
    """Means and squares of the two samplers agree."""
    one = tamed_draws(ghk, 1_000, 8_000, 1, scale, flat)
    two = tamed_draws(gibbs, 1_000, 5_000, 8, scale, flat)
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
        assert_agreement(*samplers, scale, flat)
