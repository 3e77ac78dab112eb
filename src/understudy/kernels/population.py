"""The population given its players: mean and covariance from their conditionals, and a common move of all.

    q_i ~ N(mean, covariance)
    mean ~ N(middle, tight^-1)
    covariance ~ inverse Wishart(2 + D - 1, 4 diag(1 / a)),  a ~ inverse gamma(1/2, 1 / scale^2)

(Huang and Wand 2013): every sd is scale times |t|, t Student with two degrees of freedom, every correlation uniform.
"""

import math
from typing import Any

import numpy as np

from understudy._arrays import Floats, Ints
from understudy.kernels._jit import jit
from understudy.kernels.crowd import Crowd, likelihood_of_all
from understudy.kernels.hamiltonian import HOPELESS

DEGREES = 2.0
WINDOW = 2.0  # what a log stretch is stepped out by
FAR = 30.0  # a log sd at which a path is given up


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
    q: Floats,
    middle: Floats,
    tight: Floats,
    scale: float,
    shares: Ints,
    mean: Floats,
    covariance: Floats,
) -> None:
    """Mean (D,), and covariance (D, D) given a fresh a, in place; shares (D,) says which coordinates share one."""
    count, width = q.shape
    precision: Any = np.linalg.inv(covariance)
    shape, heavy = sums(precision, scale, shares)
    one_over_a = np.empty(shape.size)
    for g in range(shape.size):
        one_over_a[g] = rng.standard_gamma(shape[g]) / heavy[g]
    root = np.linalg.cholesky(tight + count * precision)
    centre = np.linalg.solve(root, tight @ middle + precision @ q.sum(axis=0))
    for k in range(width):
        centre[k] += rng.standard_normal()
    mean[:] = np.linalg.solve(np.ascontiguousarray(root.T), centre)

    apart = q - mean
    rate = np.ascontiguousarray(apart.T) @ apart
    for k in range(width):
        rate[k, k] += 2.0 * DEGREES * one_over_a[shares[k]]
    covariance[:] = draw_inverse_wishart(rng, DEGREES + width - 1.0 + count, rate)


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
def _look(
    crowd: Crowd,
    middle: Floats,
    tight: Floats,
    scale: float,
    shares: Ints,
    z: Floats,
    theta: Floats,
    q: Floats,
    gradient: Floats,
) -> float:
    """Log density of theta given every player's place z (N, D) within the population, and its gradient.

    With a integrated out, the covariance has in theta the density prod d^-(2 + D - 1) prod rate^-shape over all a.
    """
    count, width = z.shape
    mean, root, slopes = np.empty(width), np.empty((width, width)), np.empty((count, width))
    unfold(theta, mean, root)
    q[:] = z @ np.ascontiguousarray(root.T) + mean
    total = likelihood_of_all(crowd, 0, count, q, slopes)
    by_root = np.ascontiguousarray(slopes.T) @ z
    pulled = tight @ (mean - middle)
    inverse = np.linalg.inv(root)
    turned = np.ascontiguousarray(inverse.T)
    precision = turned @ inverse
    shape, heavy = sums(precision, scale, shares)
    for g in range(shape.size):
        total -= shape[g] * math.log(heavy[g])
    rate = np.zeros((width, width))
    for k in range(width):
        rate[k, k] = 2.0 * DEGREES * shape[shares[k]] / heavy[shares[k]]
    by_root += precision @ rate @ turned
    at = 2 * width
    for i in range(width):
        total -= 0.5 * (mean[i] - middle[i]) * pulled[i] + (DEGREES + width - 1.0) * theta[width + i]
        gradient[i] = slopes[:, i].sum() - pulled[i]
        gradient[width + i] = by_root[i, i] * root[i, i] - (DEGREES + width - 1.0)
        for j in range(i):
            gradient[width + i] += by_root[i, j] * root[i, j]
            gradient[at] = by_root[i, j] * root[i, i]
            at += 1
    return total


@jit
def move_together(
    rng: np.random.Generator,
    crowd: Crowd,
    middle: Floats,
    tight: Floats,
    scale: float,
    shares: Ints,
    metric: Floats,
    step: float,
    steps: int,
    mean: Floats,
    covariance: Floats,
    q: Floats,
) -> float:
    """Mean and covariance given each player's place within the population, by a Hamiltonian path on which all follow.

    q_i = mean + root z_i with z_i kept; mean, covariance and q change in place. metric: a root of theta's covariance.
    Returns the acceptance probability.
    """
    width = mean.size
    root: Any = np.linalg.cholesky(covariance)
    z = np.ascontiguousarray(np.linalg.solve(root, np.ascontiguousarray((q - mean).T)).T)
    theta, other = fold(mean, root), np.empty_like(q)
    gradient, momentum, turned = np.empty(theta.size), np.empty(theta.size), np.ascontiguousarray(metric.T)
    for d in range(theta.size):
        momentum[d] = rng.standard_normal()
    epsilon = step * (0.9 + 0.2 * rng.random())
    count = steps // 2 + int(rng.random() * (steps + 1))
    height = _look(crowd, middle, tight, scale, shares, z, theta, other, gradient)
    energy = 0.5 * (momentum * momentum).sum() - height
    for _ in range(count):
        momentum += 0.5 * epsilon * (turned @ gradient)
        theta += epsilon * (metric @ momentum)
        if np.abs(theta[width : 2 * width]).max() > FAR:
            return 0.0
        height = _look(crowd, middle, tight, scale, shares, z, theta, other, gradient)
        momentum += 0.5 * epsilon * (turned @ gradient)
        if not 0.5 * (momentum * momentum).sum() - height < energy + HOPELESS:
            return 0.0
    probability = math.exp(min(energy - 0.5 * (momentum * momentum).sum() + height, 0.0))
    if rng.random() < probability:
        q[:] = other
        unfold(theta, mean, root)
        covariance[:] = root @ np.ascontiguousarray(root.T)
    return probability


@jit
def stretch_one(
    rng: np.random.Generator,
    crowd: Crowd,
    scale: float,
    shares: Ints,
    mean: Floats,
    covariance: Floats,
    q: Floats,
) -> None:
    """The sd of one coordinate, any of them, given each player's place along it; the players follow.

    Where players are all but equal, sds may lie anywhere below what could be noticed, and the way back is long for paths.
    Slice sampling (Neal 2003) in the log stretch l steps out as far as it takes. Its density is exp(-(2 + D - 1) l), the law of
    the covariance with a integrated out, and the likelihood.
    """
    count, width = q.shape
    k = int(rng.random() * width)
    precision: Any = np.linalg.inv(covariance)
    apart, own = q[:, k] - mean[k], precision[k, k]
    slopes = np.empty_like(q)

    def height(l: float) -> float:
        for i in range(count):
            q[i, k] = mean[k] + math.exp(l) * apart[i]
        precision[k, k] = own * math.exp(-2.0 * l)
        shape, heavy = sums(precision, scale, shares)
        law: float = shape[shares[k]] * math.log(heavy[shares[k]])
        total: float = likelihood_of_all(crowd, 0, count, q, slopes) - (DEGREES + width - 1.0) * l - law
        return total

    level = height(0.0) - rng.standard_exponential()
    low = -WINDOW * rng.random()
    high = low + WINDOW
    while low > -FAR and height(low) >= level:
        low -= WINDOW
    while high < FAR and height(high) >= level:
        high += WINDOW
    l = low + (high - low) * rng.random()
    while height(l) < level:
        if l < 0.0:
            low = l
        else:
            high = l
        l = low + (high - low) * rng.random()
    for j in range(width):
        covariance[k, j] *= math.exp(l)
        covariance[j, k] *= math.exp(l)
