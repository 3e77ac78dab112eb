"""A mixture of normals with a Student-t part for the tails: fitted to weighted points, drawn from, and proposed from.

The independence step accepts a draw y in place of x with probability min(1, w(y) / w(x)), w = posterior / mixture.
"""

import math
from typing import NamedTuple

import numpy as np

from understudy._arrays import Floats
from understudy.kernels._jit import inline, jit, part
from understudy.kernels.normal import LOG_ROOT_TWO_PI
from understudy.kernels.target import Target, Work, log_posterior

FREEDOM = 5.0  # of the Student-t part, which is the last


class Mixture(NamedTuple):
    """share: (C,) adding to one. mean: (C, D). factor: (C, D, D) lower triangular. inverse: (C, D, D) its inverse.

    height: (C,) log of share times the density at the part's mean.
    """

    share: Floats
    mean: Floats
    factor: Floats
    inverse: Floats
    height: Floats


def heights(share: Floats, inverse: Floats) -> Floats:
    """Log of each part's share times its density at its own mean; the last part is the Student-t."""
    width = inverse.shape[1]
    out = np.log(share) + np.log(np.diagonal(inverse, axis1=1, axis2=2)).sum(axis=1) - width * LOG_ROOT_TWO_PI
    out[-1] += math.lgamma(0.5 * (FREEDOM + width)) - math.lgamma(0.5 * FREEDOM) - 0.5 * width * math.log(0.5 * FREEDOM)
    return np.asarray(out)


@inline
def _distance(inverse: Floats, mean: Floats, c: int, y: Floats) -> float:
    """The square of how far y (D,) lies from the mean of part c, in its own units."""
    square = 0.0
    for d in range(y.size):
        z = 0.0
        for e in range(d + 1):
            z += inverse[c, d, e] * (y[e] - mean[c, e])
        square += z * z
    return square


@jit
def log_density(mixture: Mixture, y: Floats, logs: Floats) -> float:
    """Log density of the mixture at y (D,); leaves each part's in logs (C,)."""
    parts, width = mixture.mean.shape
    top = -np.inf
    for c in range(parts):
        square = _distance(mixture.inverse, mixture.mean, c, y)
        if c == parts - 1:
            logs[c] = mixture.height[c] - 0.5 * (FREEDOM + width) * math.log1p(square / FREEDOM)
        else:
            logs[c] = mixture.height[c] - 0.5 * square
        top = max(top, logs[c])
    total = 0.0
    for c in range(parts):
        if logs[c] > top - 40.0:
            total += math.exp(logs[c] - top)
    return top + math.log(total)


@part
def draw(rng: np.random.Generator, mixture: Mixture, noise: Floats, y: Floats) -> None:
    """A draw from the mixture into y (D,)."""
    parts, width = mixture.mean.shape
    left = rng.random()
    c = 0
    while c < parts - 1 and left >= mixture.share[c]:
        left -= mixture.share[c]
        c += 1
    scale = 1.0
    if c == parts - 1:
        scale = math.sqrt(0.5 * FREEDOM / rng.standard_gamma(0.5 * FREEDOM))
    for d in range(width):
        noise[d] = scale * rng.standard_normal()
    for d in range(width):
        y[d] = mixture.mean[c, d]
        for e in range(d + 1):
            y[d] += mixture.factor[c, d, e] * noise[e]


@jit
def sample(
    rng: np.random.Generator, target: Target, work: Work, mixture: Mixture, out: Floats, log_weights: Floats
) -> None:
    """Draws from the mixture into out (n, D), and the log of posterior over mixture at each."""
    noise, logs, none = np.empty(out.shape[1]), np.empty(mixture.share.size), np.empty(0)
    for n in range(out.shape[0]):
        draw(rng, mixture, noise, out[n])
        log_weights[n] = log_posterior(target, work, out[n], -np.inf, none) - log_density(mixture, out[n], logs)


@part
def invert_root(covariance: Floats, inverse: Floats) -> None:
    """Write the inverse of the lower Cholesky factor of a covariance (D, D), a column after the other, into inverse (D, D)."""
    width = covariance.shape[0]
    root = np.zeros((width, width))
    for d in range(width):
        for e in range(d + 1):
            rest = covariance[d, e]
            for f in range(e):
                rest -= root[d, f] * root[e, f]
            root[d, e] = math.sqrt(max(rest, 1e-300)) if d == e else rest / root[e, e]
    for e in range(width):
        for d in range(width):
            rest = 1.0 if d == e else 0.0
            for f in range(e, d):
                rest -= root[d, f] * inverse[f, e]
            inverse[d, e] = rest / root[d, d] if d >= e else 0.0


@jit
def refine(
    points: Floats, weights: Floats, share: Floats, mean: Floats, covariance: Floats, ridge: float, rounds: int
) -> None:
    """Expectation-maximisation for a mixture of normals on weighted points (n, D), in place; weights add to one.

    Each covariance is pulled towards ridge times the identity with the force of D + 1 points of average weight.
    """
    count, width = points.shape
    parts = share.size
    inverse, height = np.empty_like(covariance), np.empty(parts)
    owned, logs = np.empty((count, parts)), np.empty(parts)
    force = (width + 1.0) / count
    for _ in range(rounds):
        for c in range(parts):
            invert_root(covariance[c], inverse[c])
            height[c] = math.log(share[c] + 1e-300)
            for d in range(width):
                height[c] += math.log(inverse[c, d, d])
        for n in range(count):
            top = -np.inf
            for c in range(parts):
                logs[c] = height[c] - 0.5 * _distance(inverse, mean, c, points[n])
                top = max(top, logs[c])
            total = 0.0
            for c in range(parts):
                owned[n, c] = math.exp(logs[c] - top)
                total += owned[n, c]
            for c in range(parts):
                owned[n, c] *= weights[n] / total
        for c in range(parts):
            mass = 1e-12
            for d in range(width):
                mean[c, d] = 0.0
                for e in range(width):
                    covariance[c, d, e] = 0.0
            for n in range(count):
                mass += owned[n, c]
                for d in range(width):
                    mean[c, d] += owned[n, c] * points[n, d]
            for d in range(width):
                mean[c, d] /= mass
            for n in range(count):
                own = owned[n, c]
                if own > 0.0:
                    for d in range(width):
                        for e in range(d + 1):
                            covariance[c, d, e] += own * (points[n, d] - mean[c, d]) * (points[n, e] - mean[c, e])
            for d in range(width):
                for e in range(d):
                    covariance[c, d, e] /= mass + force
                    covariance[c, e, d] = covariance[c, d, e]
                covariance[c, d, d] = (covariance[c, d, d] + force * ridge) / (mass + force)
            share[c] = mass
