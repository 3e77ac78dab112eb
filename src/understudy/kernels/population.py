"""The population given its players: mean and covariance from their conditionals, and their law given the players' places.

    q_i ~ N(mean, covariance)
    mean ~ N(middle, tight^-1)
    covariance ~ inverse Wishart(2 + D - 1, 4 diag(1 / a)),  a ~ inverse gamma(1/2, 1 / scale^2)

(Huang and Wand 2013): every sd is scale times |t|, t Student with two degrees of freedom, every correlation uniform.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from understudy._arrays import Floats, Ints
from understudy.kernels._jit import jit

DEGREES = 2.0


class Beliefs(NamedTuple):
    """Of the population, before anything is seen: middle (D,) and tight (D, D) of its mean, scale of its sds; shares (D,) says which
    coordinates share one a.
    """

    middle: Floats
    tight: Floats
    scale: float
    shares: Ints


@jit
def draw_inverse_wishart(rng: np.random.Generator, degrees: float, rate: Floats) -> Floats:
    """Bartlett's way: the inverse of a Wishart matrix with these degrees of freedom and scale rate^-1."""
    width = rate.shape[0]
    lower = np.zeros((width, width))
    for i in range(width):
        for j in range(i):
            lower[i, j] = rng.standard_normal()
        lower[i, i] = math.sqrt(2.0 * rng.standard_gamma(0.5 * (degrees - i)))
    root: Any = np.linalg.solve(lower, np.ascontiguousarray(np.linalg.cholesky(rate).T))
    product: Floats = np.ascontiguousarray(root.T) @ root
    return product


@jit
def sums(precision: Floats, scale: float, shares: Ints) -> tuple[Floats, Floats]:
    """Shape and rate of the inverse gamma law of each a given the population's precision matrix."""
    groups, width = shares.max() + 1, shares.size
    shape, heavy = np.full(groups, 0.5), np.full(groups, 1.0 / (scale * scale))
    for k in range(width):
        shape[shares[k]] += 0.5 * (DEGREES + width - 1.0)
        heavy[shares[k]] += DEGREES * precision[k, k]
    return shape, heavy


@jit
def draw_population(
    rng: np.random.Generator,
    beliefs: Beliefs,
    count: int,
    about: Floats,
    first: Floats,
    second: Floats,
    covariance: Floats,
) -> tuple[Floats, Floats]:
    """Mean (D,), and covariance (D, D) given a fresh a, from the sums of q - about (D,) and of its squares (D, D) over count players."""
    width = about.size
    precision: Any = np.linalg.inv(covariance)
    shape, heavy = sums(precision, beliefs.scale, beliefs.shares)
    one_over_a = np.empty(shape.size)
    for g in range(shape.size):
        one_over_a[g] = rng.standard_gamma(shape[g]) / heavy[g]
    root = np.linalg.cholesky(beliefs.tight + count * precision)
    centre = np.linalg.solve(root, beliefs.tight @ beliefs.middle + precision @ (first + count * about))
    for k in range(width):
        centre[k] += rng.standard_normal()
    mean: Any = np.linalg.solve(np.ascontiguousarray(root.T), centre)

    off = mean - about
    rate = second.copy()
    for k in range(width):
        for j in range(width):
            rate[k, j] += count * off[k] * off[j] - first[k] * off[j] - off[k] * first[j]
        rate[k, k] += 2.0 * DEGREES * one_over_a[beliefs.shares[k]]
    return mean, draw_inverse_wishart(rng, DEGREES + width - 1.0 + count, rate)


@jit
def unfold(theta: Floats, mean: Floats, root: Floats) -> None:
    """Mean and root (D, D) of the covariance from theta: the mean, log d, and the rows of R below its diagonal of ones.

    The root is d R, lower triangular: log d are the logarithms of conditional sds, R holds regressions on those before.
    """
    width, at = mean.size, 2 * mean.size
    root[:] = 0.0
    for i in range(width):
        mean[i] = theta[i]
        root[i, i] = math.exp(theta[width + i])
        for j in range(i):
            root[i, j] = root[i, i] * theta[at]
            at += 1


@jit
def fold(mean: Floats, root: Floats) -> Floats:
    """Theta from mean and root."""
    width, at = mean.size, 2 * mean.size
    theta = np.empty(2 * width + width * (width - 1) // 2)
    for i in range(width):
        theta[i] = mean[i]
        theta[width + i] = math.log(root[i, i])
        for j in range(i):
            theta[at] = root[i, j] / root[i, i]
            at += 1
    return theta


@jit
def density(beliefs: Beliefs, theta: Floats, log_p: float, push: Floats, by_place: Floats, gradient: Floats) -> float:
    """Log density of theta given every player's place z within the population, and its gradient.

    log_p: of all choices. push (D,), by_place (D, D): the sums over players of its slopes, and of the slopes times z. With a integrated
    out, the covariance has in theta the density prod d^-(2 + D - 1) prod rate^-shape over all a.
    """
    width, total = push.size, log_p
    mean, root = np.empty(width), np.empty((width, width))
    unfold(theta, mean, root)
    pulled = beliefs.tight @ (mean - beliefs.middle)
    inverse = np.linalg.inv(root)
    turned = np.ascontiguousarray(inverse.T)
    precision = turned @ inverse
    shape, heavy = sums(precision, beliefs.scale, beliefs.shares)
    for g in range(shape.size):
        total -= shape[g] * math.log(heavy[g])
    rate = np.zeros((width, width))
    for k in range(width):
        rate[k, k] = 2.0 * DEGREES * shape[beliefs.shares[k]] / heavy[beliefs.shares[k]]
    by_root = by_place + precision @ rate @ turned
    at = 2 * width
    for i in range(width):
        total -= 0.5 * (mean[i] - beliefs.middle[i]) * pulled[i] + (DEGREES + width - 1.0) * theta[width + i]
        gradient[i] = push[i] - pulled[i]
        gradient[width + i] = by_root[i, i] * root[i, i] - (DEGREES + width - 1.0)
        for j in range(i):
            gradient[width + i] += by_root[i, j] * root[i, j]
            gradient[at] = by_root[i, j] * root[i, i]
            at += 1
    return total


@jit
def stretched(beliefs: Beliefs, k: int, precision: Floats, l: float) -> float:
    """The log law of the covariance once coordinate k is stretched by exp(l), up to a constant; precision is the one before."""
    width = precision.shape[0]
    after = precision.copy()
    after[k, k] *= math.exp(-2.0 * l)
    shape, heavy = sums(after, beliefs.scale, beliefs.shares)
    own = beliefs.shares[k]
    total: float = -(DEGREES + width - 1.0) * l - shape[own] * math.log(heavy[own])
    return total
