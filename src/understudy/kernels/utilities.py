"""The utilities w given the value: w ~ N(mu, I) conditioned on the chosen one being the largest (paper, appendix).

The chosen utility z has density proportional to f(z) = phi(z - mu_c) prod over rivals of Phi(z - mu_j); given z, every
rival is a normal cut off at z. Two ways to draw z:

exact       log f(z) + z^2/2 is concave, so with slope g = (log f)'(m) at any point m
                log f(z) <= log f(m) + g (z - m) - (z - m)^2 / 2:
            propose z ~ N(m + g, 1) and accept with the ratio. Any m is right; one near the mode is quick, and
            where the mode was last time is a good place to look. To the right of m log Phi bends less than at m,
            so that most proposals there are accepted without looking at the rivals again.
metropolis  the paper's step: an independent N(m, s^2) proposal at the mode with its curvature, accepted or not
            against the utility held so far.
"""

import math

import numpy as np

from understudy._arrays import Floats, Ints
from understudy.kernels._jit import inline, jit
from understudy.kernels.normal import HIGH, draw_below, log_cdf, log_cdf_and_ratio

NEAR = 8.0  # rivals further than this below the mode steer neither Newton nor the proposal


@inline
def _find_near(mu: Floats, first: int, last: int, c: int, near: Floats) -> tuple[int, float, float]:
    """Copy the rivals that matter near the mode; return their number, a lower bound of the mode, the best left out.

    The mode is at least mu_c, and at least half way to the best rival when that one is better.
    """
    best = -np.inf
    for j in range(first, last):
        if j != c and mu[j] > best:
            best = mu[j]
    bound = mu[c] if best < mu[c] else 0.5 * (mu[c] + best)
    count = 0
    far = -np.inf
    for j in range(first, last):
        if j != c:
            if mu[j] > bound - NEAR:
                near[count] = mu[j]
                count += 1
            elif mu[j] > far:
                far = mu[j]
    return count, bound, far


@inline
def _newton(
    mean: float, near: Floats, count: int, m: float, steps: int, tolerance: float
) -> tuple[float, float, float, float]:
    """Newton steps to the mode of log f from m; returns the last m, and there the rivals' log Phi, slope, curvature."""
    height = 0.0
    slope = 0.0
    curvature = -1.0
    for step in range(steps + 1):
        height = 0.0
        slope = mean - m
        curvature = -1.0
        for k in range(count):
            x = m - near[k]
            value, ratio = log_cdf_and_ratio(x)
            height += value
            slope += ratio
            curvature -= ratio * (x + ratio)
        if step == steps or slope * slope < tolerance * -curvature:
            break
        m -= slope / curvature
    return m, height, slope, curvature


@jit
def draw_utilities(
    rng: np.random.Generator, mu: Floats, start: Ints, taken: Ints, near: Floats, lead: Floats, w: Floats
) -> float:
    """Draw w (P,) exactly given mu = X v; returns the share of proposals that were accepted.

    lead (T,) keeps how far above its lower bound each mode was found, for the next time.
    """
    tries = 0
    for t in range(taken.size):
        first, last, c = start[t], start[t + 1], taken[t]
        count, bound, far = _find_near(mu, first, last, c, near)
        m, height, slope, curvature = _newton(mu[c], near, count, bound + lead[t], 30, 0.05)
        lead[t] = m - bound
        lean = slope + m - mu[c]  # the slope of the rivals' part alone
        while True:
            z = m + slope + rng.standard_normal()
            tries += 1
            allowed = -rng.standard_exponential()
            if z >= m and allowed <= 0.5 * (curvature + 1.0) * (z - m) ** 2:
                break
            log_ratio = -height - lean * (z - m)
            for k in range(count):
                log_ratio += log_cdf(z - near[k])
                if log_ratio < allowed:  # what is left can only lower it
                    break
            if z - far < HIGH:
                for j in range(first, last):
                    if j != c and mu[j] <= bound - NEAR:
                        log_ratio += log_cdf(z - mu[j])
            if allowed <= log_ratio:
                break
        for j in range(first, last):
            w[j] = z if j == c else mu[j] + draw_below(rng, z - mu[j])
    return taken.size / tries


@inline
def _paper_proposal(mean: float, near: Floats, count: int) -> float:
    """The paper's crude mode: multiply by N(mu_j, 1), best rivals first, while mu_j lies above the mean so far."""
    near[:count].sort()
    m = mean
    weight = 1.0
    for k in range(count - 1, -1, -1):
        if near[k] <= m:
            break
        m = (weight * m + near[k]) / (weight + 1.0)
        weight += 1.0
    return m


@jit
def move_utilities(
    rng: np.random.Generator, mu: Floats, start: Ints, taken: Ints, near: Floats, steps: int, w: Floats
) -> float:
    """The paper's Metropolis-Hastings step on w (P,), in place; returns the share of decisions that accepted."""
    accepted = 0
    for t in range(taken.size):
        first, last, c = start[t], start[t + 1], taken[t]
        count, _, _ = _find_near(mu, first, last, c, near)
        m, _, _, curvature = _newton(mu[c], near, count, _paper_proposal(mu[c], near, count), steps, 0.0)
        s = 1.0 / math.sqrt(-curvature)
        held = w[c]
        z = m + s * rng.standard_normal()
        log_ratio = 0.5 * ((held - mu[c]) ** 2 - (z - mu[c]) ** 2)
        log_ratio += 0.5 * (((z - m) / s) ** 2 - ((held - m) / s) ** 2)
        for j in range(first, last):
            if j != c:
                log_ratio += log_cdf(z - mu[j]) - log_cdf(held - mu[j])
        if -rng.standard_exponential() <= log_ratio:
            accepted += 1
        else:
            z = held
        for j in range(first, last):
            w[j] = z if j == c else mu[j] + draw_below(rng, z - mu[j])
    return accepted / taken.size
