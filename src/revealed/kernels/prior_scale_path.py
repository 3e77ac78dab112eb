"""A move of the value and the prior scale together, where the prior scale is inferred.

Scale and distance go together: a wide prior lets the value go far, and a value far from the prior
mean wants a wide prior. With sd integrated out and c the factor by which v - mean is multiplied,
log c has the density

    prior at c^2 Q  times  c^D  times  likelihood at mean + c (v - mean),

in which the rivals' utility gaps are linear in c. It is drawn by slice sampling (Neal 2003): step
out, then shrink. (A module of its own, because the log posterior imports `prior_scale.py`.)
"""

import math
from typing import NamedTuple

import numpy as np

from revealed._types import Floats
from revealed.kernels._compile import compiled_internal
from revealed.kernels.choice import log_likelihood
from revealed.kernels.design import multiply
from revealed.kernels.log_posterior import LogPosterior, PosteriorWorkspace
from revealed.kernels.noise import count_coordinates, read_coordinates
from revealed.kernels.prior_scale import interpolate_log_marginal
from revealed.kernels.vectors import dot


class SliceSettings(NamedTuple):
    """How the slice in log c is stepped out and shrunk.

    width: of a step out. Any leaves the draws exact; a much smaller one steps out more often, a
    much larger one shrinks more often. max_steps_out, max_shrinks: after which either ends. The
    square of exp(1.5 * 200) is about all that a double holds, and a slice that was halved a
    thousand times is where it began: neither is met.
    """

    width: float = 1.5
    max_steps_out: int = 200
    max_shrinks: int = 1000


SLICE = SliceSettings()


@compiled_internal
def _log_density(
    target: LogPosterior,
    workspace: PosteriorWorkspace,
    quad: float,
    mean_gap: Floats,
    offset_gap: Floats,
    log_factor: float,
    floor: float,
) -> float:
    """Log density of log c, or minus infinity where that is sure to be below `floor`.

    quad: Q of the value at c = 1. mean_gap, offset_gap: (R,) the rivals' utility gaps at the prior
    mean, and what v - mean adds to them at c = 1.
    """
    c = math.exp(log_factor)
    for j in range(mean_gap.size):
        workspace.utility_gap[j] = mean_gap[j] + c * offset_gap[j]
    # The prior and the Jacobian cost little; the likelihood is given up where it is sure to be
    # below the rest.
    known: float = (
        interpolate_log_marginal(target.prior_scale_table, c * c * quad)[0]
        + (target.unwhiten.shape[1] - count_coordinates(target.noise)) * log_factor
    )
    likelihood: float = log_likelihood(
        target.noise,
        workspace.utility_gap,
        target.rival_index,
        workspace.choice,
        floor - known,
        workspace.grad_gap[:0],
    )
    return known + likelihood


@compiled_internal
def slice_sample_scale(
    rng: np.random.Generator, target: LogPosterior, workspace: PosteriorWorkspace, v: Floats
) -> None:
    """Move v (K,), with the constants of its blocks, towards or away from the prior mean.

    Its last coordinates, those of the noise, stay.
    """
    width, rivals = v.size - count_coordinates(target.noise), target.rival_index.multiplicity.size
    mean_gap, offset_gap, offset = np.empty(rivals), np.empty(rivals), np.empty(v.size)
    for k in range(v.size):
        offset[k] = v[k] - target.prior_mean[k] if k < width else 0.0
    read_coordinates(v, workspace.utility_gap, rivals)
    multiply(target.design, target.prior_mean, mean_gap)
    multiply(target.design, offset, offset_gap)
    quad = 0.0
    for k in range(offset.size):
        quad += offset[k] * (
            dot(target.prior_full[k], offset)
            if target.prior_full.size > 0
            else target.prior_diag[k] * offset[k]
        )
    # The height of the slice: the log density at c = 1 minus an exponential.
    level = (
        _log_density(target, workspace, quad, mean_gap, offset_gap, 0.0, -np.inf)
        - rng.standard_exponential()
    )
    # Step out from an interval placed at random about c = 1.
    low = -SLICE.width * rng.random()
    high = low + SLICE.width
    for _ in range(SLICE.max_steps_out):
        if not (_log_density(target, workspace, quad, mean_gap, offset_gap, low, level) >= level):
            break
        low -= SLICE.width
    for _ in range(SLICE.max_steps_out):
        if not (_log_density(target, workspace, quad, mean_gap, offset_gap, high, level) >= level):
            break
        high += SLICE.width
    # Draw within the interval, and shrink it towards c = 1 at each failure.
    log_factor, found = 0.0, False
    for _ in range(SLICE.max_shrinks):
        log_factor = low + (high - low) * rng.random()
        if _log_density(target, workspace, quad, mean_gap, offset_gap, log_factor, level) >= level:
            found = True
            break
        if log_factor < 0.0:
            low = log_factor
        else:
            high = log_factor
    c = math.exp(log_factor) if found else 1.0
    for k in range(width):
        v[k] = target.prior_mean[k] + c * offset[k]
