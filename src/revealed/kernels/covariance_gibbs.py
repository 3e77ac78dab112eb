"""Data augmentation with a full noise covariance: utilities, coefficients and covariance in turn.

What the paper's section 4.1.4 takes from Imai and van Dyk (2005), with the correction of Jiao and
van Dyk (2015). The covariance S has a fixed scale. Its inverse Wishart prior is that of a^2 S, a
being a working parameter, so that

    a^2 given S               tr(C C' S^-1) / chi-squared of df D
    a^2 S given a w and a v   inverse Wishart, times a^-K where v is flat:
                              the density of a v is that of v over a^K

The factor is what was missing: the inverse Wishart is only proposed, and accepted with
min(1, (old a / new a)^K) under a flat prior, times the ratio of the prior of v under a normal one.
Then v, w and S are all divided by the one new a.
"""

import math
from typing import NamedTuple

import numpy as np

from revealed._types import Bools, Floats, Ints
from revealed.kernels._compile import compiled
from revealed.kernels.interrupt import stop_requested
from revealed.kernels.normal import draw_below
from revealed.kernels.vectors import dot


class DifferencedDecisions(NamedTuple):
    """T decisions among D labels and the base, utilities less the base's.

    design (T, D, K): rows less the base's; zero where a label is not offered, whose utility is
    then its noise. offered (T, D), base_offered (T,); the base counts as zero where it is not
    offered. chosen (T,): the chosen label, or -1 for the base.
    """

    design: Floats
    offered: Bools
    base_offered: Bools
    chosen: Ints


class CoefficientPrior(NamedTuple):
    """The prior of v = basis q, basis (K, F): precision (F, F) and mean (F,) of q."""

    basis: Floats
    precision: Floats
    mean: Floats


class NoisePrior(NamedTuple):
    """The prior IW(df, C C') of the noise, centre_root C (D, D), its scale left out.

    scaled_by_trace: whether the covariance S has trace D; else its first entry is one.
    """

    df: float
    centre_root: Floats
    scaled_by_trace: bool


@compiled
def draw_utilities(
    rng: np.random.Generator,
    decisions: DifferencedDecisions,
    mu: Floats,
    inverse: Floats,
    w: Floats,
) -> None:
    """Draw each utility of w (T, D) given all others, in place.

    mu (T, D) are their means, inverse (D, D) that of their covariance. What was chosen is above
    every other offered utility, and all others are below it.
    """
    size = w.shape[1]
    for t in range(w.shape[0]):
        chosen = decisions.chosen[t]
        for d in range(size):
            # mean and sd of this utility given the others of its decision
            mean, sd = 0.0, 1.0 / math.sqrt(inverse[d, d])
            # what the other utilities say, by a row of the inverse covariance
            for k in range(size):
                if k != d:
                    mean -= inverse[d, k] * (w[t, k] - mu[t, k])
            mean = mu[t, d] + mean / inverse[d, d]
            # truncated by the choice, unless it was not on offer
            if not decisions.offered[t, d]:
                w[t, d] = mean + sd * rng.standard_normal()
            # above the best of the others that were offered
            elif d == chosen:
                best = 0.0 if decisions.base_offered[t] else -np.inf
                for k in range(size):
                    if k != d and decisions.offered[t, k]:
                        best = max(best, w[t, k])
                w[t, d] = mean - sd * draw_below(rng, (mean - best) / sd)
            # below the chosen one, which is the base where chosen is -1
            else:
                best = 0.0 if chosen < 0 else w[t, chosen]
                w[t, d] = mean + sd * draw_below(rng, (best - mean) / sd)


@compiled
def draw_coefficients(
    rng: np.random.Generator,
    decisions: DifferencedDecisions,
    prior: CoefficientPrior,
    inverse: Floats,
    w: Floats,
) -> Floats:
    """The coefficients v (K,) given utilities and covariance: v = basis q, q normal.

    Its precision is the prior's plus the sum of X' S^-1 X over decisions.
    """
    width = decisions.design.shape[2]
    gram, weighted_sum = np.zeros((width, width)), np.zeros(width)
    for t in range(w.shape[0]):
        weighted = decisions.design[t].T @ inverse
        gram += weighted @ decisions.design[t]
        weighted_sum += weighted @ w[t]
    basis = prior.basis
    # a draw from N(P^-1 b, P^-1): with P = L L', solve L' q = L^-1 b + standard normals
    root = np.linalg.cholesky(basis.T @ gram @ basis + prior.precision)
    half = np.linalg.solve(root, basis.T @ weighted_sum + prior.precision @ prior.mean)
    for d in range(half.size):
        half[d] += rng.standard_normal()
    return basis @ np.linalg.solve(root.T, half)


@compiled
def draw_inverse_wishart(rng: np.random.Generator, df: float, scatter: Floats) -> Floats:
    """A draw from IW(df, scatter), (D, D), by Bartlett's decomposition."""
    size = scatter.shape[0]
    bartlett = np.zeros((size, size))
    for i in range(size):
        bartlett[i, i] = math.sqrt(rng.chisquare(df - i))
        for j in range(i):
            bartlett[i, j] = rng.standard_normal()
    # scatter = L L'; L A'^-1 is a root of the inverse of the Wishart draw L'^-1 A A' L^-1
    root = np.linalg.cholesky(scatter) @ np.linalg.inv(bartlett).T
    return root @ root.T


@compiled
def log_prior(prior: CoefficientPrior, v: Floats) -> float:
    """Log prior density of v, up to a constant."""
    offset = prior.basis.T @ v - prior.mean
    return -0.5 * dot(offset, prior.precision @ offset)


@compiled
def propose_covariance(
    rng: np.random.Generator, prior: NoisePrior, residuals: Floats, covariance: Floats
) -> tuple[Floats, float]:
    """A covariance (D, D) given the noise of utilities (T, D), and old a / new a.

    All utilities and values are to be multiplied by the ratio with it. It has its law but for the
    prior of what is rescaled, which decides whether it is accepted.
    """
    # the working parameter given the covariance
    size = covariance.shape[0]
    solved = np.linalg.solve(np.linalg.cholesky(covariance), prior.centre_root)
    old = math.sqrt(np.sum(solved * solved) / rng.chisquare(prior.df * size))
    # a^2 S from its conditional, but for the prior of the values
    noise = old * residuals
    unscaled = draw_inverse_wishart(
        rng,
        prior.df + residuals.shape[0],
        prior.centre_root @ prior.centre_root.T + noise.T @ noise,
    )
    new = math.sqrt(np.trace(unscaled) / size if prior.scaled_by_trace else unscaled[0, 0])
    return unscaled / new**2, old / new


@compiled
def draw_covariance(
    rng: np.random.Generator,
    decisions: DifferencedDecisions,
    prior: CoefficientPrior,
    noise_prior: NoisePrior,
    v: Floats,
    w: Floats,
    covariance: Floats,
) -> bool:
    """Propose the covariance given utilities and coefficients; returns whether it was accepted.

    If so, v, w and covariance are all rescaled by the working parameter, in place.
    """
    residuals = np.empty_like(w)
    for t in range(w.shape[0]):
        residuals[t] = w[t] - decisions.design[t] @ v
    proposed, ratio = propose_covariance(rng, noise_prior, residuals, covariance)
    # Metropolis-Hastings for the prior of the coefficients, which are rescaled with it
    log_ratio = (
        prior.basis.shape[1] * math.log(ratio) + log_prior(prior, ratio * v) - log_prior(prior, v)
    )
    # a logarithm of a uniform draw is minus an exponential one
    if log_ratio < -rng.standard_exponential():
        return False
    v *= ratio
    w *= ratio
    covariance[:] = proposed
    return True


@compiled
def sample_chain(
    rng: np.random.Generator,
    decisions: DifferencedDecisions,
    prior: CoefficientPrior,
    noise_prior: NoisePrior,
    thin: int,
    v: Floats,
    w: Floats,
    covariance: Floats,
    out_values: Floats,
    out_covariances: Floats,
    acceptance_rate: Floats,
) -> None:
    """Write draws of v into out_values (n, K) and of the covariance into out_covariances (n, D, D).

    v (K,), w (T, D) and covariance (D, D) are the state of the chain, changed in place.
    """
    mu, inverse = np.empty_like(w), np.empty_like(covariance)
    for n in range(out_values.shape[0]):
        acceptance_rate[n] = 0.0
        for _ in range(thin):
            if stop_requested():
                return
            # one Gibbs cycle: utilities, coefficients, covariance
            inverse[:] = np.linalg.inv(covariance)
            for t in range(w.shape[0]):
                mu[t] = decisions.design[t] @ v
            draw_utilities(rng, decisions, mu, inverse, w)
            v[:] = draw_coefficients(rng, decisions, prior, inverse, w)
            accepted = draw_covariance(rng, decisions, prior, noise_prior, v, w, covariance)
            acceptance_rate[n] += accepted / thin
        out_values[n] = v
        out_covariances[n] = covariance
