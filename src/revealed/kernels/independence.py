"""A mixture of normals with a Student-t part for the tails, as an independence proposal.

The independence Metropolis-Hastings step (Tierney 1994) accepts a draw y in place of x with
probability

    min(1, w(y) / w(x)),   w = posterior / mixture.

Here the mixture is fitted to weighted points by expectation-maximisation, drawn from, evaluated,
and judged by importance draws. The heavy-tailed part bounds w where normals alone would not
("defensive" mixture, Hesterberg 1995).
"""

import math
from typing import NamedTuple

import numpy as np

from revealed._types import Floats
from revealed.kernels._compile import compiled, compiled_internal, inlined
from revealed.kernels.log_posterior import LogPosterior, PosteriorWorkspace, log_posterior
from revealed.kernels.normal import LOG_ROOT_TWO_PI

# Degrees of freedom of the Student-t part, which is the last. Its tails are heavier than those of a
# log-concave posterior; with fewer, more of its draws would be far out and wasted.
TAIL_DF = 5.0


class Mixture(NamedTuple):
    """C parts in D dimensions, the last one a Student-t, the others normal.

    weight: (C,) adding to one. mean: (C, D). cholesky: (C, D, D) lower triangular factors of the
    covariances. inverse_cholesky: (C, D, D) their inverses. log_peak: (C,) log of the weight times
    the density at the part's own mean.
    """

    weight: Floats
    mean: Floats
    cholesky: Floats
    inverse_cholesky: Floats
    log_peak: Floats


def log_peak_densities(weight: Floats, inverse_cholesky: Floats) -> Floats:
    """(C,) log of each part's weight times its density at its own mean; the last is the Student-t.

    log weight + log det of the inverse factor - D/2 log(2 pi), and for the Student-t with f degrees
    of freedom log Gamma((f + D)/2) - log Gamma(f/2) - D/2 log(f/2) more.
    """
    width = inverse_cholesky.shape[1]
    out = (
        np.log(weight)
        + np.log(np.diagonal(inverse_cholesky, axis1=1, axis2=2)).sum(axis=1)
        - width * LOG_ROOT_TWO_PI
    )
    out[-1] += (
        math.lgamma(0.5 * (TAIL_DF + width))
        - math.lgamma(0.5 * TAIL_DF)
        - 0.5 * width * math.log(0.5 * TAIL_DF)
    )
    return np.asarray(out)


@inlined
def _squared_distance(inverse_cholesky: Floats, mean: Floats, c: int, y: Floats) -> float:
    """The squared Mahalanobis distance of y (D,) from the mean of part c."""
    square = 0.0
    for d in range(y.size):
        z = 0.0
        for e in range(d + 1):
            z += inverse_cholesky[c, d, e] * (y[e] - mean[c, e])
        square += z * z
    return square


@compiled
def mixture_log_density(mixture: Mixture, y: Floats, part_log_densities: Floats) -> float:
    """The log density of the mixture at y (D,); each part's goes into part_log_densities (C,)."""
    parts, width = mixture.mean.shape
    # Each part: its peak, less what its distance costs; the last falls off as a Student-t.
    top = -np.inf
    for c in range(parts):
        square = _squared_distance(mixture.inverse_cholesky, mixture.mean, c, y)
        if c == parts - 1:
            part_log_densities[c] = mixture.log_peak[c] - 0.5 * (TAIL_DF + width) * math.log1p(
                square / TAIL_DF
            )
        else:
            part_log_densities[c] = mixture.log_peak[c] - 0.5 * square
        top = max(top, part_log_densities[c])
    # Log of the sum of exponentials, less its largest term; those below exp(-40) add nothing.
    total = 0.0
    for c in range(parts):
        if part_log_densities[c] > top - 40.0:
            total += math.exp(part_log_densities[c] - top)
    return top + math.log(total)


@compiled_internal
def draw_from_mixture(rng: np.random.Generator, mixture: Mixture, noise: Floats, y: Floats) -> None:
    """Write a draw from the mixture into y (D,); noise (D,) is written to."""
    parts, width = mixture.mean.shape
    # The part, by inversion.
    remaining = rng.random()
    c = 0
    while c < parts - 1 and remaining >= mixture.weight[c]:
        remaining -= mixture.weight[c]
        c += 1
    # A Student-t is a normal divided by the root of a chi-squared over its degrees of freedom.
    scale = 1.0
    if c == parts - 1:
        scale = math.sqrt(0.5 * TAIL_DF / rng.standard_gamma(0.5 * TAIL_DF))
    for d in range(width):
        noise[d] = scale * rng.standard_normal()
    for d in range(width):
        y[d] = mixture.mean[c, d]
        for e in range(d + 1):
            y[d] += mixture.cholesky[c, d, e] * noise[e]


@compiled
def importance_sample(
    rng: np.random.Generator,
    target: LogPosterior,
    workspace: PosteriorWorkspace,
    mixture: Mixture,
    out: Floats,
    log_weights: Floats,
) -> None:
    """Write draws from the mixture into out (n, D), and log of posterior over mixture at each.

    The log importance weights (n,) are up to a constant.
    """
    noise, part_log_densities = np.empty(out.shape[1]), np.empty(mixture.weight.size)
    none = np.empty(0)
    for n in range(out.shape[0]):
        draw_from_mixture(rng, mixture, noise, out[n])
        log_weights[n] = log_posterior(
            target, workspace, out[n], -np.inf, none
        ) - mixture_log_density(mixture, out[n], part_log_densities)


@compiled_internal
def _write_inverse_cholesky(covariance: Floats, inverse: Floats) -> None:
    """Write the inverse of the lower Cholesky factor of a covariance (D, D) into inverse (D, D).

    A variance that rounding has made negative is taken for 1e-300: the part is then never chosen.
    """
    width = covariance.shape[0]
    root = np.zeros((width, width))
    # Cholesky, row by row.
    for d in range(width):
        for e in range(d + 1):
            rest = covariance[d, e]
            for f in range(e):
                rest -= root[d, f] * root[e, f]
            root[d, e] = math.sqrt(max(rest, 1e-300)) if d == e else rest / root[e, e]
    # Forward substitution, a column of the identity after the other.
    for e in range(width):
        for d in range(width):
            rest = 1.0 if d == e else 0.0
            for f in range(e, d):
                rest -= root[d, f] * inverse[f, e]
            inverse[d, e] = rest / root[d, d] if d >= e else 0.0


@inlined
def _expectation_step(
    points: Floats,
    point_weights: Floats,
    weight: Floats,
    mean: Floats,
    covariance: Floats,
    inverse: Floats,
    log_peak: Floats,
    log_densities: Floats,
    responsibility: Floats,
) -> None:
    """Write each point's weight, divided among the parts by their densities there.

    Into responsibility (n, C). inverse (C, D, D), log_peak and log_densities (C,) are written to.
    """
    count, width = points.shape
    parts = weight.size
    # Each part's normalising constant, up to one that all parts share.
    for c in range(parts):
        _write_inverse_cholesky(covariance[c], inverse[c])
        log_peak[c] = math.log(weight[c] + 1e-300)
        for d in range(width):
            log_peak[c] += math.log(inverse[c, d, d])
    # The share of each part in the density at a point, times the point's weight.
    for n in range(count):
        top = -np.inf
        for c in range(parts):
            log_densities[c] = log_peak[c] - 0.5 * _squared_distance(inverse, mean, c, points[n])
            top = max(top, log_densities[c])
        total = 0.0
        for c in range(parts):
            responsibility[n, c] = math.exp(log_densities[c] - top)
            total += responsibility[n, c]
        for c in range(parts):
            responsibility[n, c] *= point_weights[n] / total


@inlined
def _maximisation_step(
    points: Floats,
    responsibility: Floats,
    shrinkage: float,
    ridge: float,
    c: int,
    weight: Floats,
    mean: Floats,
    covariance: Floats,
) -> None:
    """Write part c's weight, mean and covariance given the responsibilities (n, C)."""
    # The part's mass and mean.
    count, width = points.shape
    mass = 1e-12  # never zero, so that an empty part does not divide by it
    for d in range(width):
        mean[c, d] = 0.0
        for e in range(width):
            covariance[c, d, e] = 0.0
    for n in range(count):
        mass += responsibility[n, c]
        for d in range(width):
            mean[c, d] += responsibility[n, c] * points[n, d]
    for d in range(width):
        mean[c, d] /= mass
    # Weighted products of deviations, below the diagonal.
    for n in range(count):
        own = responsibility[n, c]
        if own > 0.0:
            for d in range(width):
                for e in range(d + 1):
                    covariance[c, d, e] += (
                        own * (points[n, d] - mean[c, d]) * (points[n, e] - mean[c, e])
                    )
    # The mean with ridge times the identity, which counts as mass of the amount shrinkage.
    for d in range(width):
        for e in range(d):
            covariance[c, d, e] /= mass + shrinkage
            covariance[c, e, d] = covariance[c, d, e]
        covariance[c, d, d] = (covariance[c, d, d] + shrinkage * ridge) / (mass + shrinkage)
    weight[c] = mass


@compiled
def fit_mixture(
    points: Floats,
    point_weights: Floats,
    weight: Floats,
    mean: Floats,
    covariance: Floats,
    ridge: float,
    iterations: int,
) -> None:
    """Expectation-maximisation for a mixture of normals on weighted points (n, D), in place.

    point_weights (n,) add to one. weight (C,), mean (C, D) and covariance (C, D, D) are where to
    begin, and what comes out. Each covariance is shrunk towards ridge times the identity with the
    force of D + 1 points of average weight.
    """
    count, width = points.shape
    parts = weight.size
    inverse, log_peak = np.empty_like(covariance), np.empty(parts)
    responsibility, log_densities = np.empty((count, parts)), np.empty(parts)
    # As many points as it takes to fix a covariance, so that no part can collapse onto a few.
    shrinkage = (width + 1.0) / count
    for _ in range(iterations):
        _expectation_step(
            points,
            point_weights,
            weight,
            mean,
            covariance,
            inverse,
            log_peak,
            log_densities,
            responsibility,
        )
        for c in range(parts):
            _maximisation_step(
                points, responsibility, shrinkage, ridge, c, weight, mean, covariance
            )
