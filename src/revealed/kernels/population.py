"""The population given its groups: mean and covariance, centred and non-centred.

    q_i ~ N(mean, covariance)
    mean ~ N(prior mean, precision^-1)
    covariance ~ inverse Wishart(2 + D - 1, 4 diag(1 / a)),  a ~ inverse gamma(1/2, 1 / scale^2)

(Huang and Wand 2013): every sd is scale times |t|, t Student with two degrees of freedom, every
correlation uniform. Given the values q_i all conditionals are known (centred). Given the
standardised values z_i, q_i = mean + root z_i, there is a log density with its gradient
(non-centred; Papaspiliopoulos, Roberts and Skoeld 2007).
"""

import math
from typing import Any, NamedTuple

import numpy as np

from revealed._types import Floats, Ints
from revealed.kernels._compile import compiled

# Degrees of freedom nu of Huang and Wand's prior: the sds are half-t with so many, and correlations
# are uniform with 2 and no other number.
SD_PRIOR_DF = 2.0


class PopulationPrior(NamedTuple):
    """The prior of the population.

    mean (D,) and precision (D, D) of its mean; scale_group (D,): equal numbers for coordinates
    that share one a; sd_scale: of the sds of each of these.
    """

    mean: Floats
    precision: Floats
    sd_scale: Floats
    scale_group: Ints


@compiled
def draw_inverse_wishart(rng: np.random.Generator, df: float, rate: Floats) -> Floats:
    """The inverse of a draw from a Wishart law with df degrees of freedom and scale rate^-1.

    (D, D), by Bartlett's decomposition.
    """
    width = rate.shape[0]
    # Bartlett: a lower triangle of normals, with roots of chi-squared draws on its diagonal
    lower = np.zeros((width, width))
    for i in range(width):
        for j in range(i):
            lower[i, j] = rng.standard_normal()
        lower[i, i] = math.sqrt(2.0 * rng.standard_gamma(0.5 * (df - i)))
    root: Any = np.linalg.solve(lower, np.ascontiguousarray(np.linalg.cholesky(rate).T))
    product: Floats = np.ascontiguousarray(root.T) @ root
    return product


@compiled
def inverse_gamma_conditionals(
    precision: Floats, sd_scale: Floats, scale_group: Ints
) -> tuple[Floats, Floats]:
    """Shape and rate of the inverse gamma law of each a given the population's precision matrix."""
    width = scale_group.size
    shape, rate = np.full(sd_scale.size, 0.5), 1.0 / (sd_scale * sd_scale)
    for k in range(width):
        # every coordinate of a scale group adds to the same a
        shape[scale_group[k]] += 0.5 * (SD_PRIOR_DF + width - 1.0)
        rate[scale_group[k]] += SD_PRIOR_DF * precision[k, k]
    return shape, rate


@compiled
def draw_population(
    rng: np.random.Generator,
    prior: PopulationPrior,
    count: int,
    reference: Floats,
    first: Floats,
    second: Floats,
    covariance: Floats,
) -> tuple[Floats, Floats]:
    """Draw a, then the mean (D,), then the covariance (D, D), each given all else.

    With e = q - reference, from the sums over `count` groups of e, first (D,), and of e e',
    second (D, D); covariance is the present one.
    """
    width = reference.size
    precision: Any = np.linalg.inv(covariance)
    shape, a_rate = inverse_gamma_conditionals(precision, prior.sd_scale, prior.scale_group)
    one_over_a = np.empty(shape.size)
    for g in range(shape.size):
        # 1 / a is gamma
        one_over_a[g] = rng.standard_gamma(shape[g]) / a_rate[g]
    # mean: normal, its precision the prior's plus count times the population's
    root = np.linalg.cholesky(prior.precision + count * precision)
    half = np.linalg.solve(
        root, prior.precision @ prior.mean + precision @ (first + count * reference)
    )
    for k in range(width):
        half[k] += rng.standard_normal()
    mean: Any = np.linalg.solve(np.ascontiguousarray(root.T), half)

    # covariance: inverse Wishart, from the squares about the new mean
    shift = mean - reference
    rate = second.copy()
    for k in range(width):
        for j in range(width):
            rate[k, j] += count * shift[k] * shift[j] - first[k] * shift[j] - shift[k] * first[j]
        # the prior's scale matrix, 2 nu diag(1 / a)
        rate[k, k] += 2.0 * SD_PRIOR_DF * one_over_a[prior.scale_group[k]]
    return mean, draw_inverse_wishart(rng, SD_PRIOR_DF + width - 1.0 + count, rate)


@compiled
def unpack(theta: Floats, mean: Floats, root: Floats) -> None:
    """Write mean (D,) and root (D, D) of the covariance from theta.

    theta is the mean, log d, and the rows of R below its diagonal of ones; the root is d R, lower
    triangular: log d are the logarithms of conditional sds, R holds regressions on those before.
    """
    width, at = mean.size, 2 * mean.size
    root[:] = 0.0
    for i in range(width):
        mean[i] = theta[i]
        root[i, i] = math.exp(theta[width + i])
        for j in range(i):
            root[i, j] = root[i, i] * theta[at]
            at += 1


@compiled
def pack(mean: Floats, root: Floats) -> Floats:
    """Theta from mean and root: the inverse of `unpack`."""
    width, at = mean.size, 2 * mean.size
    theta = np.empty(2 * width + width * (width - 1) // 2)
    for i in range(width):
        theta[i] = mean[i]
        theta[width + i] = math.log(root[i, i])
        for j in range(i):
            theta[at] = root[i, j] / root[i, i]
            at += 1
    return theta


@compiled
def log_density_noncentred(
    prior: PopulationPrior,
    theta: Floats,
    log_likelihood: float,
    grad: Floats,
    grad_outer_z: Floats,
    gradient: Floats,
) -> float:
    """Log density of theta given every group's standardised value z, and its gradient.

    log_likelihood: of all choices. grad (D,), grad_outer_z (D, D): the sums over groups of its
    derivatives dl/dq, and of dl/dq z'. With a integrated out, the covariance has in theta the
    density prod d^-(2 + D - 1) prod rate^-shape over all a.
    """
    width, total = grad.size, log_likelihood
    mean, root = np.empty(width), np.empty((width, width))
    unpack(theta, mean, root)
    # minus the gradient of the log prior of the mean
    prior_grad = prior.precision @ (mean - prior.mean)
    # prior of the covariance, as a function of its inverse
    inverse = np.linalg.inv(root)
    inverse_transposed = np.ascontiguousarray(inverse.T)
    precision = inverse_transposed @ inverse
    shape, a_rate = inverse_gamma_conditionals(precision, prior.sd_scale, prior.scale_group)
    for g in range(shape.size):
        total -= shape[g] * math.log(a_rate[g])
    # its derivative in the root, by the chain rule through the precision's diagonal
    rate = np.zeros((width, width))
    for k in range(width):
        group = prior.scale_group[k]
        rate[k, k] = 2.0 * SD_PRIOR_DF * shape[group] / a_rate[group]
    grad_root = grad_outer_z + precision @ rate @ inverse_transposed
    # prior of the mean and Jacobian; then from the root d R to log d and R
    at = 2 * width
    for i in range(width):
        total -= (
            0.5 * (mean[i] - prior.mean[i]) * prior_grad[i]
            + (SD_PRIOR_DF + width - 1.0) * theta[width + i]
        )
        gradient[i] = grad[i] - prior_grad[i]
        gradient[width + i] = grad_root[i, i] * root[i, i] - (SD_PRIOR_DF + width - 1.0)
        for j in range(i):
            gradient[width + i] += grad_root[i, j] * root[i, j]
            gradient[at] = grad_root[i, j] * root[i, i]
            at += 1
    return total


@compiled
def log_density_of_rescaled_sd(
    prior: PopulationPrior, k: int, precision: Floats, log_factor: float
) -> float:
    """Log density of the covariance once the sd of coordinate k is multiplied by exp(log_factor).

    Up to a constant; precision (D, D) is the one before.
    """
    width = precision.shape[0]
    after = precision.copy()
    # a larger sd divides row and column k; only the diagonal matters here
    after[k, k] *= math.exp(-2.0 * log_factor)
    shape, rate = inverse_gamma_conditionals(after, prior.sd_scale, prior.scale_group)
    own = prior.scale_group[k]
    total: float = -(SD_PRIOR_DF + width - 1.0) * log_factor - shape[own] * math.log(rate[own])
    return total
