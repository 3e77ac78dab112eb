"""The population by the root of its precision: coordinates, prior density and its gradient.

    q_i ~ N(mean, (T T')^-1),   T = diag(t) C,   C lower triangular with a diagonal of ones

theta is the mean, log t, and the rows of C below its diagonal. Multiplying a coordinate of the
values by a number divides one t by it and changes no entry of C.

With a integrated out, the prior of `population.py` has for P = T T' the density

    |P|^((nu - 2) / 2)  prod over all a of rate^-shape,

as the covariance has |covariance|^-((nu + 2 D) / 2) times that, and the map to its inverse
the Jacobian |P|^-(D + 1). From T to P the Jacobian is 2^D prod t_k^(D - k + 1), k = 1 to D; from
C_kj to T_kj = t_k C_kj and from log t_k to t_k it is t_k^(k - 1) t_k. Together, with the first
factor: prod t_k^(nu + D - 1).
"""

import math

import numpy as np

from revealed._types import Floats
from revealed.kernels._compile import compiled
from revealed.kernels.population import SD_PRIOR_DF, PopulationPrior, inverse_gamma_conditionals


@compiled
def unpack_precision(theta: Floats, mean: Floats, root: Floats) -> None:
    """Write mean (D,) and the lower root T (D, D) of the precision from theta."""
    width, at = mean.size, 2 * mean.size
    root[:] = 0.0
    for k in range(width):
        mean[k] = theta[k]
        root[k, k] = math.exp(theta[width + k])
        for j in range(k):
            root[k, j] = root[k, k] * theta[at]
            at += 1


@compiled
def pack_precision(mean: Floats, root: Floats) -> Floats:
    """Theta from the mean and the lower root of the precision: the inverse of the above."""
    width, at = mean.size, 2 * mean.size
    theta = np.empty(2 * width + width * (width - 1) // 2)
    for k in range(width):
        theta[k] = mean[k]
        theta[width + k] = math.log(root[k, k])
        for j in range(k):
            theta[at] = root[k, j] / root[k, k]
            at += 1
    return theta


@compiled
def log_density_of_population(
    prior: PopulationPrior,
    theta: Floats,
    root: Floats,
    precision: Floats,
    count: int,
    grad_mean: Floats,
    grad_precision: Floats,
    gradient: Floats,
) -> float:
    """Log prior density of theta and log |T|^count, and the gradient of these and all else.

    root, precision: T and T T' at theta. count: of groups, each of which has a factor |T| in its
    normal density. grad_mean (D,), grad_precision (D, D): derivatives of everything else in the
    mean and in the precision, of whose two equal entries each has a derivative of its own.
    """
    width, total = grad_mean.size, 0.0
    shape, rate = inverse_gamma_conditionals(precision, prior.sd_scale, prior.scale_group)
    for g in range(shape.size):
        total -= shape[g] * math.log(rate[g])
    for k in range(width):
        # the rate of a grows with the diagonal of the precision
        own = prior.scale_group[k]
        grad_precision[k, k] -= SD_PRIOR_DF * shape[own] / rate[own]
    power, at = SD_PRIOR_DF + width - 1.0 + count, 2 * width
    for k in range(width):
        pull = 0.0
        for j in range(width):
            pull += prior.precision[k, j] * (theta[j] - prior.mean[j])
        total += power * theta[width + k] - 0.5 * (theta[k] - prior.mean[k]) * pull
        gradient[k] = grad_mean[k] - pull
        # from the precision to its root: 2 G T on and below the diagonal; then to log t and C
        gradient[width + k] = power
        for j in range(k + 1):
            grad_root = 0.0
            for l in range(j, width):
                grad_root += 2.0 * grad_precision[k, l] * root[l, j]
            gradient[width + k] += grad_root * root[k, j]
            if j < k:
                gradient[at] = grad_root * root[k, k]
                at += 1
    return total
