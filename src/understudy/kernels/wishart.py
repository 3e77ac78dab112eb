"""Data augmentation with a full noise covariance: utilities, coefficients and covariance in turn.

What the paper's section 4.1.4 takes from Imai and van Dyk (2005), with the correction of Jiao and van Dyk (2015). The
covariance S has a fixed scale. Its inverse Wishart prior is that of a^2 S, a a working parameter, so that

    a^2 given S               tr(C C' S^-1) / chi-squared of df D
    a^2 S given a w and a v   inverse Wishart, times a^-K where v is flat: the density of a v is that of v over a^K

The factor is what was missing: the inverse Wishart is only proposed, and accepted with min(1, (old a / new a)^K) under
a flat prior, times the ratio of the prior of v under a Gaussian one. Then v, w and S are all divided by the one new a.
"""

import math
from typing import NamedTuple

import numpy as np

from understudy._arrays import Bools, Floats, Ints
from understudy.kernels._jit import jit
from understudy.kernels.design import dot
from understudy.kernels.normal import draw_below


class Panel(NamedTuple):
    """T decisions among D labels and the base, utilities less the base's.

    design (T, D, K): rows less the base's; zero where a label is not offered, whose utility is then its noise. The base
    counts as zero where it is not offered. chosen (T,): the label taken, or -1 for the base.
    """

    design: Floats
    offered: Bools
    base_offered: Bools
    chosen: Ints
    basis: Floats
    precision: Floats
    middle: Floats
    df: float
    spread: Floats
    trace: bool


@jit
def draw_utilities(rng: np.random.Generator, panel: Panel, mu: Floats, inverse: Floats, w: Floats) -> None:
    """Each utility of w (T, D) given all others, with means mu (T, D) and the covariance's inverse."""
    size = w.shape[1]
    for t in range(w.shape[0]):
        chosen = panel.chosen[t]
        for d in range(size):
            mean, sd = 0.0, 1.0 / math.sqrt(inverse[d, d])
            for k in range(size):
                if k != d:
                    mean -= inverse[d, k] * (w[t, k] - mu[t, k])
            mean = mu[t, d] + mean / inverse[d, d]
            if not panel.offered[t, d]:
                w[t, d] = mean + sd * rng.standard_normal()
            elif d == chosen:
                best = 0.0 if panel.base_offered[t] else -np.inf
                for k in range(size):
                    if k != d and panel.offered[t, k]:
                        best = max(best, w[t, k])
                w[t, d] = mean - sd * draw_below(rng, (mean - best) / sd)
            else:
                best = 0.0 if chosen < 0 else w[t, chosen]
                w[t, d] = mean + sd * draw_below(rng, (best - mean) / sd)


@jit
def draw_coefficients(rng: np.random.Generator, panel: Panel, inverse: Floats, w: Floats) -> Floats:
    """V given utilities and covariance: v = basis q, q normal."""
    width = panel.design.shape[2]
    gram, pull = np.zeros((width, width)), np.zeros(width)
    for t in range(w.shape[0]):
        weighted = panel.design[t].T @ inverse
        gram += weighted @ panel.design[t]
        pull += weighted @ w[t]
    root = np.linalg.cholesky(panel.basis.T @ gram @ panel.basis + panel.precision)
    half = np.linalg.solve(root, panel.basis.T @ pull + panel.precision @ panel.middle)
    for d in range(half.size):
        half[d] += rng.standard_normal()
    return panel.basis @ np.linalg.solve(root.T, half)


@jit
def draw_inverse_wishart(rng: np.random.Generator, df: float, scatter: Floats) -> Floats:
    """IW(df, scatter), by Bartlett's decomposition."""
    size = scatter.shape[0]
    bartlett = np.zeros((size, size))
    for i in range(size):
        bartlett[i, i] = math.sqrt(rng.chisquare(df - i))
        for j in range(i):
            bartlett[i, j] = rng.standard_normal()
    root = np.linalg.cholesky(scatter) @ np.linalg.inv(bartlett).T
    return root @ root.T


@jit
def log_prior(panel: Panel, v: Floats) -> float:
    """Log prior density of v, up to a constant."""
    off = panel.basis.T @ v - panel.middle
    return -0.5 * dot(off, panel.precision @ off)


@jit
def draw_covariance(rng: np.random.Generator, panel: Panel, v: Floats, w: Floats, covariance: Floats) -> bool:
    """The covariance given utilities and coefficients, all three rescaled; whether the proposal was accepted."""
    size = covariance.shape[0]
    apart = np.linalg.solve(np.linalg.cholesky(covariance), panel.spread)
    old = math.sqrt(np.sum(apart * apart) / rng.chisquare(panel.df * size))
    noise = np.empty_like(w)
    for t in range(w.shape[0]):
        noise[t] = old * (w[t] - panel.design[t] @ v)
    wide = draw_inverse_wishart(rng, panel.df + w.shape[0], panel.spread @ panel.spread.T + noise.T @ noise)
    new = math.sqrt(np.trace(wide) / size if panel.trace else wide[0, 0])
    ratio = old / new
    log_ratio = panel.basis.shape[1] * math.log(ratio) + log_prior(panel, ratio * v) - log_prior(panel, v)
    if log_ratio < -rng.standard_exponential():
        return False
    v *= ratio
    w *= ratio
    covariance[:] = wide / new**2
    return True


@jit
def sweep(
    rng: np.random.Generator,
    panel: Panel,
    thin: int,
    v: Floats,
    w: Floats,
    covariance: Floats,
    out: Floats,
    matrices: Floats,
    accepted: Floats,
) -> None:
    """As many draws of v and the covariance as out (n, K) and matrices (n, D, D) have."""
    mu, inverse = np.empty_like(w), np.empty_like(covariance)
    for n in range(out.shape[0]):
        accepted[n] = 0.0
        for _ in range(thin):
            inverse[:] = np.linalg.inv(covariance)
            for t in range(w.shape[0]):
                mu[t] = panel.design[t] @ v
            draw_utilities(rng, panel, mu, inverse, w)
            v[:] = draw_coefficients(rng, panel, inverse, w)
            accepted[n] += draw_covariance(rng, panel, v, w, covariance) / thin
        out[n] = v
        matrices[n] = covariance
