"""The prior itself as a part of the independence proposal, where its scale is inferred.

With sd integrated out, the prior of v has a pole at its mean and tails like those of a Student-t
with four degrees of freedom. A mixture of normals m has neither, so that posterior / m is unbounded
at both ends: an independence step is next to never accepted from there. The proposal is therefore

    q = (1 - share) m + share p_s,   p_s(v) = (scale / s)^D p(mean + (scale / s) (v - mean)),

p being the prior and p_s the same with another scale s of its hyperprior. Pole and tails of p and
p_s have the same powers, so that posterior / q is bounded, and the steps are uniformly ergodic
(Mengersen and Tweedie 1996, theorem 2.1; "defensive" mixture, Hesterberg 1995).
"""

import math

import numpy as np

from revealed._types import Floats
from revealed.kernels._compile import compiled_internal, inlined
from revealed.kernels.coordinates import TransformArrays, coordinates_from_value
from revealed.kernels.independence import Mixture, draw_from_mixture
from revealed.kernels.log_posterior import LogPosterior, PosteriorWorkspace, write_value
from revealed.kernels.prior_scale import (
    PriorScale,
    interpolate_log_marginal,
    mahalanobis_squared,
    student_tail_inverse,
)
from revealed.kernels.vectors import dot


@compiled_internal
def draw_from_prior_part(
    rng: np.random.Generator,
    prior_scale: PriorScale,
    transform: TransformArrays,
    mixture: Mixture,
    noise: Floats,
    v: Floats,
    block_constants: Floats,
    x: Floats,
) -> None:
    """Write the coordinates of a draw of p_s into x (D,).

    sd is s times a half-Student-t, and v given sd is normal. noise (D,), v (K,) and block_constants
    (L,) are written to.
    """
    sd = mixture.prior_part[1] * student_tail_inverse(rng.random())
    for d in range(noise.size):
        noise[d] = sd * rng.standard_normal()
    width = v.size - prior_scale.unscaled
    for k in range(width):
        v[k] = prior_scale.mean[k] + dot(mixture.prior_factor[k], noise)
    # what the scale leaves alone is standard normal, and independent of the rest
    for k in range(width, v.size):
        v[k] = rng.standard_normal()
    # v has its blocks' constants in it.
    block_constants[:] = 0.0
    coordinates_from_value(transform, v, block_constants, x)


@compiled_internal
def add_prior_part(
    target: LogPosterior,
    workspace: PosteriorWorkspace,
    prior_scale: PriorScale,
    mixture: Mixture,
    x: Floats,
    log_density: float,
) -> float:
    """The log density of q at x (D,), where that of the mixture of normals is log_density."""
    share, own_scale, log_constant = mixture.prior_part
    log_jacobian = write_value(target, workspace, x)
    quad = mahalanobis_squared(prior_scale, workspace.value, workspace.precision_times_offset)
    ratio = prior_scale.scale / own_scale
    prior = interpolate_log_marginal(target.prior_scale_table, ratio * ratio * quad)[0]
    for k in range(workspace.value.size - prior_scale.unscaled, workspace.value.size):
        prior -= 0.5 * workspace.value[k] * workspace.value[k]
    # Log of the sum of two exponentials, less the larger.
    first = math.log1p(-share) + log_density
    second = math.log(share) + log_constant + prior + log_jacobian
    log_sum: float = max(first, second) + math.log1p(math.exp(-abs(first - second)))
    return log_sum


@inlined
def draw_proposal_with_prior_part(
    rng: np.random.Generator,
    prior_scale: PriorScale,
    transform: TransformArrays,
    mixture: Mixture,
    noise: Floats,
    v: Floats,
    block_constants: Floats,
    proposal: Floats,
) -> None:
    """Write a draw of what independence steps propose where the prior's sd is inferred, (D,).

    noise (D,), v (K,) and block_constants (L,) are workspaces.
    """
    if mixture.prior_part.size > 0 and rng.random() < mixture.prior_part[0]:
        draw_from_prior_part(
            rng, prior_scale, transform, mixture, noise, v, block_constants, proposal
        )
    else:
        draw_from_mixture(rng, mixture, noise, proposal)


@inlined
def with_prior_part(
    target: LogPosterior,
    workspace: PosteriorWorkspace,
    prior_scale: PriorScale,
    mixture: Mixture,
    x: Floats,
    log_density: float,
) -> float:
    """The log density at x (D,) of what independence steps propose, given that of the normals."""
    if mixture.prior_part.size > 0:
        log_density = add_prior_part(target, workspace, prior_scale, mixture, x, log_density)
    return log_density
