"""The log posterior with utilities integrated out, in whitened coordinates x.

    v = centre + scale * skew(unwhiten x)

Each coefficient is skewed by a curve of its own (`skew_transform.py`), so that x is about standard
normal. With g = design v the rivals' utility gaps, N(prior_mean, precision^-1) the prior of v and
w = unwhiten x, the log density in x is, up to a constant,

    sum over decisions of log P(choice given g)                 likelihood (`choice.py`)
    - (v - prior_mean)' precision (v - prior_mean) / 2          prior
    + sum over k of log skew'(w_k)                              Jacobian of the skew curves
"""

import math
from typing import NamedTuple

import numpy as np

from revealed._types import Floats
from revealed.kernels._compile import compiled_no_nan, inlined
from revealed.kernels.choice import log_likelihood
from revealed.kernels.choice_fast import ChoiceWorkspace, RivalIndex, make_choice_workspace
from revealed.kernels.design import Design, multiply, transpose_multiply
from revealed.kernels.log_density import log_density_of
from revealed.kernels.noise import (
    AnyNoise,
    count_coordinates,
    read_coordinates,
    read_slopes,
)
from revealed.kernels.prior_scale import interpolate_log_marginal
from revealed.kernels.skew_transform import skew_derivative_scalar, skew_second_derivative_scalar
from revealed.kernels.vectors import dot, multiply_add

# Derivatives of skew curves that are multiplied before one logarithm is taken. Each lies between
# 0.1 and 1.9, so a product of 16 lies between 1e-16 and 3e4; with hundreds it would underflow.
FACTORS_PER_LOG = 16


class LogPosterior(NamedTuple):
    """What a posterior density is made of, for K coefficients, D coordinates and R rivals.

    design: (R, K) rows of rivals minus those of the chosen actions. prior_mean: (K,). The prior's
    precision is prior_full (K, K), or where that is empty the diagonal prior_diag (K,).
    prior_scale_table: the log prior where its scale is inferred (`prior_scale.py`), else empty. It
    has a pole at the prior mean; the gradient is taken pole_softening (in squared distance) further
    out, which keeps Hamiltonian paths together. Any force that depends on the position alone leaves
    their law exact. centre, scale, skew: (K,), and unwhiten: (K, D), as in the module's formula.
    noise: of the utilities.
    """

    design: Design
    rival_index: RivalIndex
    prior_diag: Floats
    prior_full: Floats
    prior_mean: Floats
    prior_scale_table: Floats
    pole_softening: float
    centre: Floats
    scale: Floats
    skew: Floats
    unwhiten: Floats
    noise: AnyNoise


class PosteriorWorkspace(NamedTuple):
    """Arrays that one evaluation of the log posterior writes to.

    utility_gap, grad_gap: (R,) the rivals' utility gaps and the derivative of the log-likelihood in
    them, and behind them those of the noise's own coordinates. unwhitened: (K,) unwhiten x. value:
    (K,) first v, then v - prior_mean. precision_times_offset: (K,) minus the prior's gradient in v.
    grad_value: (K,) the log-likelihood's gradient in v. choice: what the likelihood of a decision
    writes to.
    """

    utility_gap: Floats
    grad_gap: Floats
    unwhitened: Floats
    value: Floats
    precision_times_offset: Floats
    grad_value: Floats
    choice: ChoiceWorkspace


def make_posterior_workspace(target: LogPosterior) -> PosteriorWorkspace:
    """A workspace for one chain."""
    rivals, width = target.rival_index.multiplicity.size, target.unwhiten.shape[0]
    size = rivals + count_coordinates(target.noise)
    return PosteriorWorkspace(
        np.empty(size),
        np.empty(size),
        np.empty(width),
        np.empty(width),
        np.empty(width),
        np.empty(width),
        make_choice_workspace(target.rival_index),
    )


@inlined
def write_value(target: LogPosterior, workspace: PosteriorWorkspace, x: Floats) -> float:
    """The log Jacobian of the skew curves at x (D,), in units of the scales.

    Writes w = unwhiten x and v into the workspace.
    """
    log_jacobian, jacobian = 0.0, 1.0
    for k in range(workspace.unwhitened.size):
        # v_k and its skew curve's derivative share the square root.
        w = dot(target.unwhiten[k], x)
        root = math.sqrt(1.0 + w * w)
        workspace.unwhitened[k] = w
        workspace.value[k] = target.centre[k] + target.scale[k] * (
            w + target.skew[k] * (root - 1.0)
        )
        jacobian *= 1.0 + target.skew[k] * w / root
        # One logarithm for many factors: it costs as much as the rest of the loop.
        if k % FACTORS_PER_LOG == FACTORS_PER_LOG - 1:
            log_jacobian += math.log(jacobian)
            jacobian = 1.0
    return log_jacobian + math.log(jacobian)


@inlined
def utility_gaps(target: LogPosterior, workspace: PosteriorWorkspace, x: Floats) -> float:
    """The log Jacobian as `write_value` has it; also writes the rivals' utility gaps."""
    log_jacobian = write_value(target, workspace, x)
    rivals = target.rival_index.multiplicity.size
    multiply(target.design, workspace.value, workspace.utility_gap[:rivals])
    read_coordinates(workspace.value, workspace.utility_gap, rivals)
    return log_jacobian


@inlined
def _log_prior(target: LogPosterior, workspace: PosteriorWorkspace) -> float:
    """The log prior of v up to a constant.

    Turns workspace.value from v into v - prior_mean, and writes minus the prior's gradient in v
    into workspace.precision_times_offset.
    """
    total = 0.0
    for k in range(workspace.value.size):
        workspace.value[k] -= target.prior_mean[k]
    # -offset' precision offset / 2, with a full precision or a diagonal one.
    for k in range(workspace.value.size):
        workspace.precision_times_offset[k] = (
            dot(target.prior_full[k], workspace.value)
            if target.prior_full.size > 0
            else target.prior_diag[k] * workspace.value[k]
        )
        total -= 0.5 * workspace.value[k] * workspace.precision_times_offset[k]
    # With an inferred scale the quadratic form is only the argument of the marginal prior, whose
    # derivative acts as a precision; see `pole_softening` for why that is taken further out.
    if target.prior_scale_table.size > 0:
        # The scale is that of the value; coordinates of the noise are standard normal.
        width, rest = workspace.value.size - count_coordinates(target.noise), 0.0
        for k in range(width, workspace.value.size):
            rest += workspace.value[k] * workspace.value[k]
        quad = -2.0 * total - rest
        precision = interpolate_log_marginal(
            target.prior_scale_table, quad + target.pole_softening
        )[1]
        total = interpolate_log_marginal(target.prior_scale_table, quad)[0] - 0.5 * rest
        for k in range(width):
            workspace.precision_times_offset[k] *= precision
    return total


@inlined
def _write_gradient(target: LogPosterior, workspace: PosteriorWorkspace, gradient: Floats) -> None:
    """Write the gradient in x (D,), by the chain rule from the slopes in the utility gaps.

    d log density / d w_k = (likelihood - prior gradient in v_k) scale_k skew'(w_k)
    + skew''(w_k) / skew'(w_k), the last term being the Jacobian's; then w = unwhiten x.
    """
    rivals = target.rival_index.multiplicity.size
    transpose_multiply(target.design, workspace.grad_gap[:rivals], workspace.grad_value)
    read_slopes(workspace.grad_gap, rivals, workspace.grad_value)
    gradient[:] = 0.0
    for k in range(workspace.grad_value.size):
        w, skew = workspace.unwhitened[k], target.skew[k]
        derivative = skew_derivative_scalar(w, skew)
        grad_w = (workspace.grad_value[k] - workspace.precision_times_offset[k]) * target.scale[
            k
        ] * derivative + skew_second_derivative_scalar(w, skew) / derivative
        for d in range(gradient.size):
            gradient[d] = multiply_add(grad_w, target.unwhiten[k, d], gradient[d])


@log_density_of(LogPosterior)
@compiled_no_nan
def log_posterior(
    target: LogPosterior, workspace: PosteriorWorkspace, x: Floats, floor: float, gradient: Floats
) -> float:
    """The log posterior at x (D,) up to a constant, or minus infinity where it is below `floor`.

    Its gradient goes into gradient (D,), unless that is empty.
    """
    # Prior and Jacobian are cheap and come first: the likelihood stops as soon as the sum is sure
    # to end below the floor.
    known = utility_gaps(target, workspace, x) + _log_prior(target, workspace)
    grad_gap = workspace.grad_gap if gradient.size > 0 else workspace.grad_gap[:0]
    value = known + log_likelihood(
        target.noise,
        workspace.utility_gap,
        target.rival_index,
        workspace.choice,
        floor - known,
        grad_gap,
    )
    if gradient.size > 0:
        _write_gradient(target, workspace, gradient)
    return value
