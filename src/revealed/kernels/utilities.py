"""The utilities w given the value: w ~ N(mu, I) conditioned on the chosen one being the largest.

This is the paper's appendix. The chosen utility z has density proportional to

    f(z) = phi(z - mu_c) prod over rivals j of Phi(z - mu_j);

given z, every rival is a normal cut off at z. There are two ways to draw z:

exact       log f(z) + z^2/2 is concave, so with slope g = (log f)'(m) at any point m
                log f(z) <= log f(m) + g (z - m) - (z - m)^2 / 2:
            propose z ~ N(m + g, 1) and accept with the ratio. Any m is right; one near the mode
            is quick, and where the mode was last time is a good place to begin Newton's steps.
            To the right of m the rivals' log Phi has less curvature than at m, so that most
            proposals there are accepted without evaluating the rivals again.
metropolis  the paper's step: an independent N(m, s^2) proposal at the mode with its curvature,
            accepted or not against the current utility.

Names used below: c is the row of the chosen action, m a point near the mode of log f.
"""

import math
from typing import NamedTuple

import numpy as np

from revealed._types import Floats, Ints
from revealed.kernels._compile import compiled, inlined
from revealed.kernels.normal import GRID, draw_below, log_cdf, log_cdf_and_ratio

# How far below the mode, in noise sds, a rival's mean is left out of Newton's steps and of the
# proposal: Phi(8) is one to fifteen digits. The exact draw is right for any value (the rivals left
# out are checked at the end where they matter); too small costs rejected proposals, too large time.
RELEVANT_RIVAL_DISTANCE = 8.0


class UtilityLimits(NamedTuple):
    """Where utilities are too large for the usual formulas, in noise sds.

    largest: mean up to which the noise behind a utility is still known to four digits after
    rounding; beyond, there is no data augmentation in double precision. far_below: distance to a
    rival beyond which log Phi is minus half a square to eight digits; its formula would be a
    difference of numbers that are too large to have one. max_proposals: for a chosen utility, times
    the root of its number of rows, after which it is given up as NaN; one in about so many roots is
    accepted, so that this never comes by chance.
    """

    largest: float = 1e12
    far_below: float = -1e4
    max_proposals: int = 1000


LIMITS = UtilityLimits()


@compiled
def are_in_range(mu: Floats) -> bool:
    """Whether all means of utilities (P,) are numbers, of at most `LIMITS.largest`."""
    in_range = True
    for p in range(mu.size):
        # written so that a NaN is out of range, and without a branch
        in_range &= abs(mu[p]) <= LIMITS.largest
    return in_range


@inlined
def _relevant_rivals(
    mu: Floats, first: int, last: int, c: int, rivals: Floats
) -> tuple[int, float, float]:
    """How many rivals matter near the mode, a lower bound of the mode, and the best mean left out.

    The means of those that matter are copied to the front of `rivals`. The mode is at least
    mu_c, and at least half way to the best rival when that one is better.
    """
    best = -np.inf
    for j in range(first, last):
        if j != c and mu[j] > best:
            best = mu[j]
    bound = mu[c] if best < mu[c] else 0.5 * (mu[c] + best)
    count = 0
    best_left_out = -np.inf
    for j in range(first, last):
        if j != c:
            if mu[j] > bound - RELEVANT_RIVAL_DISTANCE:
                rivals[count] = mu[j]
                count += 1
            elif mu[j] > best_left_out:
                best_left_out = mu[j]
    return count, bound, best_left_out


@inlined
def _newton_to_mode(
    mean: float, rivals: Floats, count: int, m: float, steps: int, tolerance: float
) -> tuple[float, float, float, float]:
    """The point reached by Newton's method on log f from m, and three numbers there.

    These are the rivals' sum of log Phi, the slope of log f and its curvature. Steps end when
    the squared Newton decrement, slope^2 / -curvature, is below `tolerance`.
    """
    rivals_log_cdf = 0.0
    slope = 0.0
    curvature = -1.0
    for step in range(steps + 1):
        # log f and its derivatives at m: the normal of the chosen one, then a log Phi per rival.
        rivals_log_cdf = 0.0
        slope = mean - m
        curvature = -1.0
        for k in range(count):
            x = m - rivals[k]
            log_phi, ratio = log_cdf_and_ratio(x)
            rivals_log_cdf += log_phi
            slope += ratio
            curvature -= ratio * (x + ratio) if x > LIMITS.far_below else 1.0
        if step == steps or slope * slope < tolerance * -curvature:
            break
        m -= slope / curvature
    return m, rivals_log_cdf, slope, curvature


@inlined
def _log_ratio_far(rivals: Floats, count: int, m: float, z: float) -> float:
    """The rivals' sum of log Phi(z - mu_j) against its tangent at m, where some are far above m.

    Rival by rival: the sums of all, at z and at m, would be equal to the last digit.
    """
    total, step = 0.0, z - m
    for k in range(count):
        x = m - rivals[k]
        if x > LIMITS.far_below:
            log_phi, ratio = log_cdf_and_ratio(x)
            total += log_cdf(z - rivals[k]) - log_phi - ratio * step
        else:
            total -= 0.5 * step * step
    return total


@compiled
def draw_utilities(
    rng: np.random.Generator,
    mu: Floats,
    start: Ints,
    chosen_row: Ints,
    rivals: Floats,
    mode_offset: Floats,
    w: Floats,
) -> float:
    """Draw the utilities w (P,) exactly given their means mu = X v; returns the acceptance rate.

    rivals: workspace for the rivals of the largest decision.
    mode_offset: (T,) how far above its lower bound each mode was found; written, and where
    Newton's method begins the next time. Where the means are out of range, all utilities are NaN,
    and so is the rate.
    """
    if not are_in_range(mu):
        w[:] = np.nan
        return np.nan
    proposals = 0
    for t in range(chosen_row.size):
        first, last, c = start[t], start[t + 1], chosen_row[t]
        count, bound, best_left_out = _relevant_rivals(mu, first, last, c, rivals)
        # At most 30 steps to a decrement of 0.05: the envelope is exact at any m, so a rough
        # mode is enough.
        m, rivals_log_cdf, slope, curvature = _newton_to_mode(
            mu[c], rivals, count, bound + mode_offset[t], 30, 0.05
        )
        mode_offset[t] = m - bound
        rivals_slope = slope + m - mu[c]
        far = rivals_log_cdf < -0.5 * LIMITS.far_below * LIMITS.far_below
        z, accepted = np.nan, False
        for _ in range(int(LIMITS.max_proposals * math.sqrt(1.0 + last - first))):
            z = m + slope + rng.standard_normal()
            proposals += 1
            allowed = -rng.standard_exponential()
            # Squeeze: to the right of m the log ratio is at least this parabola.
            if z >= m and allowed <= 0.5 * (curvature + 1.0) * (z - m) ** 2:
                accepted = True
                break
            if far:
                log_ratio = _log_ratio_far(rivals, count, m, z)
            else:
                log_ratio = -rivals_log_cdf - rivals_slope * (z - m)
                for k in range(count):
                    log_ratio += log_cdf(z - rivals[k])
                    # Each further rival can only lower the ratio.
                    if log_ratio < allowed:
                        break
            # The rivals left out count only where Phi(z - mu_j) is not one to the last digit.
            if z - best_left_out < GRID.high:
                for j in range(first, last):
                    if j != c and mu[j] <= bound - RELEVANT_RIVAL_DISTANCE:
                        log_ratio += log_cdf(z - mu[j])
            if allowed <= log_ratio:
                accepted = True
                break
        if not accepted:
            z = np.nan
        # Given z, the rivals are independent normals cut off at z.
        for j in range(first, last):
            w[j] = z if j == c else mu[j] + draw_below(rng, z - mu[j])
    return chosen_row.size / proposals


@inlined
def _crude_mode(mean: float, rivals: Floats, count: int) -> float:
    """The paper's first guess of the mode: a running mean over rivals that lie above it.

    It multiplies N(mean, 1) by N(mu_j, 1), best rivals first, while mu_j lies above the mean so
    far. The first `count` entries of `rivals` are sorted.
    """
    rivals[:count].sort()
    m = mean
    weight = 1.0
    for k in range(count - 1, -1, -1):
        if rivals[k] <= m:
            break
        m = (weight * m + rivals[k]) / (weight + 1.0)
        weight += 1.0
    return m


@compiled
def metropolis_utilities(
    rng: np.random.Generator,
    mu: Floats,
    start: Ints,
    chosen_row: Ints,
    rivals: Floats,
    steps: int,
    w: Floats,
) -> float:
    """Move the utilities w (P,) by the paper's Metropolis-Hastings step; returns its rate.

    steps: Newton steps that refine the paper's guess of the mode, where the proposal stands.
    The rate is the share of decisions whose proposal was accepted. Where the means are out of
    range, all utilities are NaN, and so is the rate.
    """
    if not are_in_range(mu):
        w[:] = np.nan
        return np.nan
    accepted = 0
    for t in range(chosen_row.size):
        first, last, c = start[t], start[t + 1], chosen_row[t]
        count, _, _ = _relevant_rivals(mu, first, last, c, rivals)
        m, _, _, curvature = _newton_to_mode(
            mu[c], rivals, count, _crude_mode(mu[c], rivals, count), steps, 0.0
        )
        s = 1.0 / math.sqrt(-curvature)
        current = w[c]
        z = m + s * rng.standard_normal()
        # Log of f(z) / f(current), and of the proposal's densities the other way round.
        log_ratio = 0.5 * ((current - mu[c]) ** 2 - (z - mu[c]) ** 2)
        log_ratio += 0.5 * (((z - m) / s) ** 2 - ((current - m) / s) ** 2)
        for j in range(first, last):
            if j != c:
                log_ratio += log_cdf(z - mu[j]) - log_cdf(current - mu[j])
        if -rng.standard_exponential() <= log_ratio:
            accepted += 1
        else:
            z = current
        for j in range(first, last):
            w[j] = z if j == c else mu[j] + draw_below(rng, z - mu[j])
    return accepted / chosen_row.size
