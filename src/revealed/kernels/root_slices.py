"""The root of a population's covariance given standardised values, entry by entry, by slices.

    q_i = mean + root z_i,    log-likelihood of q_i: b_i' q_i - q_i' G_i q_i / 2

Given every z_i the log-likelihood is a parabola in any entry of the root, and in the factor of any
of its rows. The prior is that of `population.py`: its density in log d and R, root = d R, depends
on the diagonal of the precision and on log d alone. All is exact, with nothing to adapt
(slice sampling: Neal 2003).
"""

import math
from typing import NamedTuple

import numpy as np

from revealed._types import Floats
from revealed.kernels._compile import compiled
from revealed.kernels.population import (
    PopulationPrior,
    inverse_gamma_conditionals,
    log_density_of_rescaled_sd,
)


class SliceSettings(NamedTuple):
    """How far a slice is stepped out at a time; any is correct, wrong ones cost evaluations.

    step: in logarithms of an sd and in regressions R, about what the prior spans. step_in_errors:
    of an entry, in standard errors of the likelihood, where that is narrower. max_steps_out,
    max_shrinks: after which a slice ends; a slice that was halved so often is where it began.
    """

    step: float = 2.0
    step_in_errors: float = 4.0
    max_steps_out: int = 100_000
    max_shrinks: int = 1000


SLICES = SliceSettings()


class RootDirection(NamedTuple):
    """A direction in which the root moves: entry (k, j) for j < k, or the factor of row k = j.

    linear, square: the log-likelihood is linear x - square x^2 / 2, x being what is added to the
    entry, or the factor less one. precision (F, F), inverse (F, F) of the root: where it begins.
    """

    k: int
    j: int
    linear: float
    square: float
    precision: Floats
    inverse: Floats


@compiled
def log_density_in_direction(prior: PopulationPrior, direction: RootDirection, t: float) -> float:
    """The log density at t: what is added to an entry, or the logarithm of a row's factor."""
    k, j, precision = direction.k, direction.j, direction.precision
    if j == k:
        x = math.exp(t) - 1.0
        total: float = log_density_of_rescaled_sd(prior, k, precision, t)
        return total + direction.linear * x - 0.5 * direction.square * x * x
    # the inverse less t inverse[:, k] inverse[j]: what that does to the precision's diagonal
    diagonal = np.zeros_like(precision)
    for c in range(prior.scale_group.size):
        change = t * direction.inverse[j, c]
        diagonal[c, c] = (
            precision[c, c] - 2.0 * change * precision[c, k] + change * change * precision[k, k]
        )
    shape, rate = inverse_gamma_conditionals(diagonal, prior.sd_scale, prior.scale_group)
    total = direction.linear * t - 0.5 * direction.square * t * t
    for g in range(shape.size):
        total -= shape[g] * math.log(rate[g])
    return total


@compiled
def slice_in_direction(
    rng: np.random.Generator, prior: PopulationPrior, direction: RootDirection, step: float
) -> float:
    """A draw of t by a slice from zero: stepped out, then shrunk."""
    level = log_density_in_direction(prior, direction, 0.0) - rng.standard_exponential()
    low = -step * rng.random()
    high = low + step
    for _ in range(SLICES.max_steps_out):
        if not log_density_in_direction(prior, direction, low) > level:
            break
        low -= step
    for _ in range(SLICES.max_steps_out):
        if not log_density_in_direction(prior, direction, high) > level:
            break
        high += step
    for _ in range(SLICES.max_shrinks):
        t = low + (high - low) * rng.random()
        if log_density_in_direction(prior, direction, t) > level:
            return t
        # zero stays inside, so that this ends
        if t < 0.0:
            low = t
        else:
            high = t
    return 0.0


@compiled
def draw_root_given_standardised(
    rng: np.random.Generator,
    prior: PopulationPrior,
    gram: Floats,
    moment: Floats,
    mean: Floats,
    covariance: Floats,
    q: Floats,
) -> None:
    """Draw each entry of the root given each group's z; covariance and values follow, in place.

    gram (N, F, F) and moment (N, F): G and b of each group.
    """
    groups, width = q.shape
    root = np.ascontiguousarray(np.linalg.cholesky(covariance))
    inverse = np.ascontiguousarray(np.linalg.inv(root))
    z = (q - mean) @ inverse.T
    # derivative of the log-likelihood in each value
    slope = np.empty_like(q)
    for i in range(groups):
        slope[i] = moment[i] - gram[i] @ q[i]
    shift = np.empty(groups)
    for k in range(width):
        for j in range(k + 1):
            # how far each value moves for a unit of x: by z_j, or as a row by all it deviates
            linear, square = 0.0, 0.0
            for i in range(groups):
                shift[i] = z[i, j] if j < k else q[i, k] - mean[k]
                linear += slope[i, k] * shift[i]
                square += gram[i, k, k] * shift[i] * shift[i]
            direction = RootDirection(k, j, linear, square, inverse.T @ inverse, inverse)
            if j < k:
                # neither d nor the likelihood's curvature changes along an entry
                step = SLICES.step * root[k, k]
                if square > 0.0:
                    step = min(step, SLICES.step_in_errors / math.sqrt(square))
                x = slice_in_direction(rng, prior, direction, step)
                root[k, j] += x
                inverse -= x * np.outer(inverse[:, k], inverse[j])
            else:
                x = math.exp(slice_in_direction(rng, prior, direction, SLICES.step)) - 1.0
                root[k] *= 1.0 + x
                inverse[:, k] /= 1.0 + x
            for i in range(groups):
                q[i, k] += x * shift[i]
                for c in range(width):
                    slope[i, c] -= x * shift[i] * gram[i, c, k]
    covariance[:] = root @ np.ascontiguousarray(root.T)
