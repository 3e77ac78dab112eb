"""A mixture of normals with a Student-t part for the tails, as an independence proposal.

The independence Metropolis-Hastings step (Tierney 1994) accepts a draw y in place of x with
probability

    min(1, w(y) / w(x)),   w = posterior / mixture.

Here the mixture is drawn from and evaluated; how it is fitted and judged is in
`samplers/composite/proposal.py`. The heavy-tailed part bounds w where normals alone would not
("defensive" mixture, Hesterberg 1995).
"""

import math
from typing import NamedTuple

import numpy as np

from revealed._types import Floats
from revealed.kernels._compile import compiled, compiled_internal, inlined
from revealed.kernels.normal import LOG_ROOT_TWO_PI

# Degrees of freedom of the Student-t part, which is the last. Its tails are heavier than those of a
# log-concave posterior; with fewer, more of its draws would be far out and wasted.
TAIL_DF = 5.0


class Mixture(NamedTuple):
    """C parts in D dimensions, the last one a Student-t, the others normal.

    weight: (C,) adding to one. mean: (C, D). cholesky: (C, D, D) lower triangular factors of the
    covariances. inverse_cholesky: (C, D, D) their inverses. log_peak: (C,) log of the weight times
    the density at the part's own mean. Where the prior's scale is inferred, one more part has the
    prior's shape (`prior_part.py`), and is not among the C: prior_part (3,) holds its share, its
    own scale and the log constant of its density, prior_factor (K, D) a factor of the prior's
    covariance at sd one. Both are empty where there is no such part.
    """

    weight: Floats
    mean: Floats
    cholesky: Floats
    inverse_cholesky: Floats
    log_peak: Floats
    prior_part: Floats
    prior_factor: Floats


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
