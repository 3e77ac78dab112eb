"""A prior whose sd is inferred beside anything else: the sd integrated out, then drawn.

Chains move in the value alone, under its prior with the sd integrated out (`kernels.prior_scale`).
After each draw the sd is drawn from its law given that value, which is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from revealed._types import Floats
from revealed.kernels.prior_scale import HYPERPRIOR_DF, MarginalPrior, marginal_table
from revealed.kernels.root_slices import SLICES
from revealed.models.priors import ResolvedPrior
from revealed.samplers.base import Draws, Stats
from revealed.samplers.particles import draw_prior_sds

# How far from the prior mean the slope is taken at least, in the likely sd, squared: of a single
# coefficient, whose path cannot pass the pole on one side. Larger is smoother and less exact.
SOFTENING_IN_VARIANCES = 0.1


def marginal_prior(prior: ResolvedPrior, likely: Callable[[], ResolvedPrior]) -> MarginalPrior:
    """The prior over its sd, as kernels take it; empty where the sd is given.

    likely: the prior at its likely sd, asked for where there is one coefficient only.
    """
    width = prior.basis.shape[1] - prior.unscaled
    if prior.scale is None:
        return MarginalPrior(np.zeros((0, 2)), 0.0)
    softening = 0.0
    if width == 1:
        variance = prior.constant_precision / likely().constant_precision
        softening = SOFTENING_IN_VARIANCES * variance
    return MarginalPrior(marginal_table(width, prior.scale), softening)


def sample_with_scale(
    rng: np.random.Generator,
    prior: ResolvedPrior,
    draws: int,
    sample: Callable[[int], tuple[Draws, Stats]],
) -> tuple[Draws, Stats]:
    """So many draws and their stats, with the prior's sd where it is inferred.

    sample: makes a number of draws. They are made one by one where each is followed by its sd, so
    that no number depends on how a run is cut.
    """
    if prior.scale is None:
        return sample(draws)
    made = []
    for _ in range(draws):
        drawn, stats = sample(1)
        sd = draw_prior_sds(rng, prior, drawn["value"])
        made.append((drawn | {"prior_sd": sd}, stats))
    joined, statistics = (
        {name: np.concatenate([one[i][name] for one in made]) for name in made[0][i]}
        for i in (0, 1)
    )
    return joined, statistics


def interweave_scale(
    rng: np.random.Generator, prior: ResolvedPrior, mean: Floats, q: Floats, covariance: Floats
) -> tuple[Floats, float]:
    """A population's mean (D,) and the sd of its prior, each after a move that keeps their law.

    q: (N, D) the groups' values, normal about the mean with this covariance (D, D). The sd is drawn
    given the mean; then given the standardised offset z = (mean - m) / sd instead, which the values
    say something about, and the mean follows. They take turns because either alone is slow where
    the other is quick (interweaving, Yu and Meng 2011).
    """
    assert prior.scale is not None
    sd = float(draw_prior_sds(rng, prior, (prior.basis @ mean)[None])[0])
    # coordinates that the sd leaves alone stay where they are
    free = len(mean) - prior.unscaled
    centre = np.append((prior.mean @ prior.basis)[:free], mean[free:])
    z = (mean - centre) / sd
    # the log density of the values is linear sd - square sd^2 / 2, up to a constant
    precision = np.linalg.inv(covariance)
    linear = float(z @ precision @ (q - centre).sum(axis=0))
    square = float(len(q) * z @ precision @ z)
    sd = slice_sample_half_t(rng, sd, linear, square, prior.scale)
    return centre + sd * z, sd


def slice_sample_half_t(
    rng: np.random.Generator, sd: float, linear: float, square: float, scale: float
) -> float:
    """Draw sd from exp(linear sd - square sd^2 / 2) times its half-t prior, from where it is.

    A normal likelihood of something proportional to sd. Slice sampling in log sd (Neal 2003), by
    stepping out and shrinking: no step size to choose, and far jumps where little is known.
    """

    def log_density(log_sd: float) -> float:
        value = math.exp(log_sd)
        log_prior = -0.5 * (HYPERPRIOR_DF + 1.0) * math.log1p((value / scale) ** 2 / HYPERPRIOR_DF)
        # the last term is the Jacobian of the logarithm
        return linear * value - 0.5 * square * value * value + log_prior + log_sd

    # twice as wide as the prior's log sd; stepping out makes up for any width
    width, most = 2.0, 60.0
    now = math.log(sd)
    level = log_density(now) - rng.standard_exponential()
    low = now - width * rng.random()
    high = low + width
    while low > now - most and log_density(low) > level:
        low -= width
    while high < now + most and log_density(high) > level:
        high += width
    for _ in range(SLICES.max_shrinks):
        proposed = low + (high - low) * rng.random()
        if log_density(proposed) > level:
            return math.exp(proposed)
        # shrink towards where it is, which always ends
        if proposed < now:
            low = proposed
        else:
            high = proposed
    return sd
