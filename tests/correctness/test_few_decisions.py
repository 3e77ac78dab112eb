"""An inferred prior scale with few decisions: chains that never stand still, and exact tails.

With three decisions the posterior of two coefficients keeps the pole of its prior at zero and the
prior's heavy tails. Quantiles are compared with the exact ones, summed on a grid of log radius and
angle, in which the posterior is smooth.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats as st

import revealed as rv
from revealed._types import Floats
from revealed.data.decisions import Decisions
from revealed.kernels.prior_scale import log_marginal
from revealed.results.diagnostics import longest_stretch
from tests.support.statistical_asserts import (
    assert_error,
    assert_scores,
    record_check,
    z_of_mean,
)

pytestmark = pytest.mark.proves(model="choices, inferred prior scale", sampler="composite")
PROBABILITIES = np.array([0.01, 0.05, 0.95, 0.99])
# Draws that may be the same, one after the other, in four chains of 20,000.
MOST_EQUAL = 30


def problem(seed: int) -> tuple[Decisions, rv.Normal]:
    """Three choices among two or three actions on two normal features, made at random."""
    rng, actions = np.random.default_rng(seed), 2 + seed % 2
    rows = rng.standard_normal((3 * actions, 2))
    scale = (1.0, 10.0)[seed // 2 % 2]
    d = Decisions(rows, np.arange(4) * actions, rng.integers(0, actions, 3))
    return d, rv.Normal(rv.HalfStudentT(scale=scale))


def exact_quantiles(d: Decisions, scale: float, refine: int = 1) -> Floats:
    """(3, 4) the quantiles of both coefficients and of the prior sd, at PROBABILITIES.

    refine: how many times more radii and angles; `test_exact_quantiles_are_exact` compares them.
    """
    log_radius = np.linspace(np.log(scale) - 16.0, np.log(scale) + 7.0, 1150 * refine)
    angle = np.linspace(0.0, 2.0 * np.pi, 480 * refine, endpoint=False)
    directions = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    radius = np.exp(log_radius)
    values = (radius[:, None, None] * directions).reshape(-1, 2)
    likelihood = np.exp(rv.log_likelihood(d, values).sum(axis=1)).reshape(len(radius), len(angle))
    # Two dimensions: r dr = r^2 d(log r).
    prior = log_marginal(radius**2, 2, scale)[0] + 2.0 * log_radius
    weight = np.exp(prior - prior.max())[:, None] * likelihood
    found = [weighted_quantiles(values[:, k], weight.ravel()) for k in range(2)]
    # The prior sd given the radius, on a grid of its own.
    log_sd = np.linspace(np.log(scale) - 16.0, np.log(scale) + 7.0, 2300)
    sd = np.exp(log_sd)
    given = -0.5 * (radius[:, None] / sd) ** 2 - 2.0 * log_sd
    joint = np.exp(given + 2.0 * log_radius[:, None]) * likelihood.mean(axis=1)[:, None]
    over_sd = joint.sum(axis=0) * np.exp(st.t.logpdf(sd / scale, 4) + log_sd)
    return np.array([*found, weighted_quantiles(sd, over_sd)])


def weighted_quantiles(values: Floats, weight: Floats) -> Floats:
    """The quantiles of weighted values, interpolated between the middles of their weights."""
    order = np.argsort(values)
    below = np.cumsum(weight[order])
    middle = (below - 0.5 * weight[order]) / below[-1]
    return np.asarray(np.interp(PROBABILITIES, middle, values[order]))


def tail_scores(draws: Floats, quantiles: Floats) -> Floats:
    """How many standard errors the share of draws (n,) below each exact quantile is off."""
    return np.array(
        [
            z_of_mean(draws <= q, probability)
            for q, probability in zip(quantiles, PROBABILITIES, strict=True)
        ]
    )


def fitted(seed: int, draws: int) -> tuple[Floats, Floats]:
    """(chain, draw, 3) coefficients and prior sd by default settings, and the exact quantiles."""
    d, prior = problem(seed)
    post = rv.fit(d, rv.ChoiceModel(prior=prior), draws=draws, seed=seed)
    assert isinstance(prior.sd, rv.HalfStudentT)
    both = np.concatenate([post.draws["value"], post.draws["prior_sd"][:, :, None]], axis=2)
    return both, exact_quantiles(d, prior.sd.scale)


def assert_moves_and_tails(seeds: list[int]) -> None:
    """No chain stands still for more than MOST_EQUAL draws, and all tails are exact."""
    scores = []
    for seed in seeds:
        draws, quantiles = fitted(seed, 20_000)
        longest = longest_stretch(draws).max()
        record_check(
            bool(longest <= MOST_EQUAL),
            f"problem {seed}: {longest:.0f} equal draws in a row",
            how="error",
            error=float(longest),
            limit=MOST_EQUAL,
            count=draws.size,
        )
        scores += [tail_scores(draws[:, :, k], quantiles[k]) for k in range(3)]
    assert_scores(scores, false_alarm=1e-4)


def test_chains_move_and_tails_are_exact() -> None:
    """One problem with a hyperprior of scale one, and one of scale ten."""
    assert_moves_and_tails([5, 11])


@pytest.mark.slow
def test_chains_move_and_tails_are_exact_for_ten_problems() -> None:
    assert_moves_and_tails(list(range(10)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 2])
def test_exact_quantiles_are_exact(seed: int) -> None:
    """On a grid of twice as many radii and angles, quantiles differ by less than 0.3 of their error."""
    d, prior = problem(seed)
    assert isinstance(prior.sd, rv.HalfStudentT)
    draws, coarse = fitted(seed, 20_000)
    fine = exact_quantiles(d, prior.sd.scale, refine=2)
    for k in range(3):
        change = [
            np.mean((draws[:, :, k] > min(a, b)) & (draws[:, :, k] <= max(a, b)))
            for a, b in zip(coarse[k], fine[k], strict=True)
        ]
        error = np.sqrt(PROBABILITIES * (1.0 - PROBABILITIES) / draws[:, :, k].size)
        assert_error(change / error, 0.3)
