"""The posterior of coefficients and noise covariance together, without utilities.

The model is the multinomial probit (MNP: Imai and van Dyk 2005). Only differences of utilities are
seen, and only up to scale. So the noise of the D actions other than the base is N N' with N lower
triangular and the product of its diagonal one, and the base's is zero; the coefficients u are on
that scale too. theta = (q, rows of N below the diagonal, log diagonal without its first) with
u = basis q. What is reported is on the user's scale: s u and s^2 N N', with s^2 N N' of trace D or
with first entry one.

    prior of N      IW(df, C C'), its size integrated out: tr(C' (N N')^-1 C)^(-df D / 2),
                    and what the coordinates add
    prior of s u    normal or flat
    likelihood      the mean over z of the product of the GHK weights (`ghk.log_mean_weights`);
                    z is a variable of the chain

A chain that moves (theta, z) under prior(theta) N(z; 0, I) prod weight(theta, z) has the exact
posterior as its law of theta, because each weight's mean over z is the probability of the choice
(pseudo-marginal: Andrieu and Roberts 2009).
"""

import math
from typing import NamedTuple

import numpy as np

from revealed._types import Floats
from revealed.kernels._compile import compiled
from revealed.kernels.design import Design, multiply, transpose_multiply
from revealed.kernels.ghk import (
    GHKWorkspace,
    OrderedRivals,
    factorise_differences,
    factorise_differences_backward,
    log_mean_weights,
    log_mean_weights_backward,
    make_ghk_workspace,
)
from revealed.kernels.prior_scale import MarginalPrior, log_prior_of_quad
from revealed.kernels.vectors import dot


class GHKLogPosterior(NamedTuple):
    """What the log posterior depends on besides theta and z.

    design (R, K): rows of the rivals less the chosen one's. basis (K, F): u = basis q. precision
    (F, F) and mean (F,): the prior of q on the reported scale, marginal over its sd where that is
    inferred. base: its position among the
    labels. df and centre_root (D, D): the inverse Wishart prior IW(df, C C') of the noise.
    scaled_by_trace: whether the reported covariance has trace D; else its first entry is one.
    """

    design: Design
    rivals: OrderedRivals
    basis: Floats
    precision: Floats
    mean: Floats
    marginal: MarginalPrior
    base: int
    df: float
    centre_root: Floats
    scaled_by_trace: bool


class GHKPosteriorWorkspace(NamedTuple):
    """Arrays that the kernels of this module write to.

    value, grad_value (K,): u and the derivatives in it. noise_root (D, D): N. noise (M, M): the
    covariance of all labels. m, grad_m (R,); factors, grad_factors (C, D, D); ghk: see `ghk.py`.
    log_weights (T,): where they were last asked for; current_log_weights: where the chain is. theta
    and grad_theta: of a path, where it was evaluated last.
    """

    value: Floats
    grad_value: Floats
    noise_root: Floats
    noise: Floats
    m: Floats
    grad_m: Floats
    factors: Floats
    grad_factors: Floats
    ghk: GHKWorkspace
    log_weights: Floats
    current_log_weights: Floats
    theta: Floats
    grad_theta: Floats


@compiled
def make_workspace(target: GHKLogPosterior) -> GHKPosteriorWorkspace:
    """A workspace for one chain."""
    size, width = target.centre_root.shape[0], target.basis.shape[0]
    n_rivals, choice_sets = target.rivals.start[-1], target.rivals.n_rivals.size
    # q, and N without one number of its diagonal
    n_theta = target.mean.size + size * (size + 1) // 2 - 1
    return GHKPosteriorWorkspace(
        np.empty(width),
        np.empty(width),
        np.zeros((size, size)),
        np.zeros((size + 1, size + 1)),
        np.empty(n_rivals),
        np.empty(n_rivals),
        np.zeros((choice_sets, size, size)),
        np.zeros((choice_sets, size, size)),
        make_ghk_workspace(target.rivals),
        np.empty(target.rivals.choice_set.size),
        np.empty(target.rivals.choice_set.size),
        np.empty(n_theta),
        np.empty(n_theta),
    )


@compiled
def unpack_noise_root(theta: Floats, n_free: int, root: Floats) -> None:
    """Write N (D, D) from theta, whose first n_free numbers are q.

    The logarithms of its diagonal sum to zero, so the first of them is minus the others.
    """
    # below the diagonal, row by row
    at, log_sum = n_free, 0.0
    for i in range(1, root.shape[0]):
        for j in range(i):
            root[i, j] = theta[at]
            at += 1
    # the diagonal, whose logarithms are free but for the first
    for i in range(1, root.shape[0]):
        root[i, i] = math.exp(theta[at])
        log_sum += theta[at]
        at += 1
    root[0, 0] = math.exp(-log_sum)


@compiled
def reported_scale(root: Floats, by_trace: bool) -> float:
    """The factor s by which coefficients and N are multiplied before they are reported."""
    total = 0.0
    # tr(N N') is the sum of squares of N
    for i in range(root.shape[0]):
        for j in range(i + 1):
            total += root[i, j] ** 2
    return math.sqrt(root.shape[0] / total) if by_trace else 1.0 / root[0, 0]


@compiled
def log_inverse_wishart_prior(target: GHKLogPosterior, root: Floats, grad_root: Floats) -> float:
    """The log prior of N, -df D / 2 log tr(A A') with A = N^-1 C.

    Its derivatives in N are added to grad_root (D, D). They are (df D / tr) N'^-1 A A', of which
    the lower triangle counts.
    """
    # A by forward substitution, column by column, and its squared norm
    size = root.shape[0]
    solved, trace = np.empty((size, size)), 0.0
    for c in range(size):
        for i in range(size):
            rest = target.centre_root[i, c]
            for k in range(i):
                rest -= root[i, k] * solved[k, c]
            solved[i, c] = rest / root[i, i]
            trace += solved[i, c] ** 2
    # N'^-1 A A' by back substitution, column by column
    column = np.empty(size)
    for j in range(size):
        for i in range(size - 1, -1, -1):
            rest = dot(solved[i], solved[j])
            for k in range(i + 1, size):
                rest -= root[k, i] * column[k]
            column[i] = rest / root[i, i]
            if i >= j:
                grad_root[i, j] += target.df * size / trace * column[i]
    value: float = -0.5 * target.df * size * math.log(trace)
    return value


@compiled
def multiply_matrix(matrix: Floats, x: Floats, out: Floats) -> None:
    """Write matrix x into out."""
    for i in range(out.size):
        out[i] = dot(matrix[i], x)


@compiled
def multiply_transpose(matrix: Floats, y: Floats, out: Floats) -> None:
    """Write matrix' y into out."""
    out[:] = 0.0
    for i in range(y.size):
        for j in range(out.size):
            out[j] += matrix[i, j] * y[i]


@compiled
def set_parameters(target: GHKLogPosterior, work: GHKPosteriorWorkspace, theta: Floats) -> bool:
    """Write N, the noise covariance, all factors and the means m at theta.

    Returns False where rounding leaves a covariance of differences that is not positive definite.
    """
    n_free, size, base = target.mean.size, work.noise_root.shape[0], target.base
    unpack_noise_root(theta, n_free, work.noise_root)
    # N N' among the labels beside the base, whose row and column stay zero
    for i in range(size):
        for j in range(i + 1):
            total = 0.0
            for k in range(j + 1):
                total += work.noise_root[i, k] * work.noise_root[j, k]
            a, b = i + (i >= base), j + (j >= base)
            work.noise[a, b] = total
            work.noise[b, a] = total
    # coefficients, means of the differences, and their Cholesky factors
    multiply_matrix(target.basis, theta[:n_free], work.value)
    multiply(target.design, work.value, work.m)
    return factorise_differences(work.noise, target.rivals, work.factors)


@compiled
def add_coefficient_prior(
    target: GHKLogPosterior, theta: Floats, scale: float, total: float, gradient: Floats
) -> tuple[float, float]:
    """The sum `total` with the log prior of s q added, and the derivative in s.

    With F free coefficients the density of q is that of s q times s^F. The derivatives in q are
    added to the first F entries of gradient.
    """
    n_free = target.mean.size
    scale_power = float(n_free)
    total += scale_power * math.log(scale)
    grad_scale = scale_power / scale
    # the quadratic form (s q - mean)' precision (s q - mean), row by row
    precision_times_offset, quad = np.zeros(n_free), 0.0
    for i in range(n_free):
        for j in range(n_free):
            precision_times_offset[i] += target.precision[i, j] * (
                scale * theta[j] - target.mean[j]
            )
        quad += (scale * theta[i] - target.mean[i]) * precision_times_offset[i]
    log_prior, precision = log_prior_of_quad(target.marginal, quad)
    for i in range(n_free):
        gradient[i] -= scale * precision * precision_times_offset[i]
        grad_scale -= precision * precision_times_offset[i] * theta[i]
    return total + log_prior, grad_scale


@compiled
def log_posterior(
    target: GHKLogPosterior,
    work: GHKPosteriorWorkspace,
    theta: Floats,
    log_cdf_z: Floats,
    gradient: Floats,
) -> float:
    """The log of prior times weights at theta, with its gradient in theta.

    log_cdf_z (R - T, 2) is what `ghk.log_cdf_pairs` makes of z. Minus infinity where a covariance
    cannot be factorised.
    """
    if not set_parameters(target, work, theta):
        return -np.inf
    # likelihood: forward, then backward to the coefficients and to the noise of all labels
    total: float = log_mean_weights(
        target.rivals, work.m, work.factors, log_cdf_z, work.ghk, work.log_weights
    )
    log_mean_weights_backward(target.rivals, work.factors, work.ghk, work.grad_m, work.grad_factors)
    n_free, size, root = target.mean.size, work.noise_root.shape[0], work.noise_root
    transpose_multiply(target.design, work.grad_m, work.grad_value)
    multiply_transpose(target.basis, work.grad_value, gradient[:n_free])
    grad_noise = np.zeros((size + 1, size + 1))
    factorise_differences_backward(target.rivals, work.factors, work.grad_factors, grad_noise)
    # from the noise N N' to N
    grad_root = np.zeros((size, size))
    for i in range(size):
        for k in range(size):
            a, b = i + (i >= target.base), k + (k >= target.base)
            for j in range(i + 1):
                grad_root[i, j] += (grad_noise[a, b] + grad_noise[b, a]) * root[k, j]

    # priors; that of the coefficients depends on N through the reported scale
    scale = reported_scale(root, target.scaled_by_trace)
    total, grad_scale = add_coefficient_prior(target, theta, scale, total, gradient)
    # s^2 = D / tr(N N'), or s = 1 / N_11: its derivatives in N
    if target.scaled_by_trace:
        factor = grad_scale * scale**3 / size
        for i in range(size):
            for j in range(i + 1):
                grad_root[i, j] -= factor * root[i, j]
    else:
        grad_root[0, 0] -= grad_scale * scale / root[0, 0]
    total += log_inverse_wishart_prior(target, root, grad_root)

    # from N to its coordinates
    at = n_free
    for i in range(1, size):
        for j in range(i):
            gradient[at] = grad_root[i, j]
            at += 1
    for i in range(1, size):
        # the Jacobian of the coordinates is exp(-sum over i of (i + 1) log N_ii), and the first
        # log N_ii is minus the others
        jacobian_power = float(i)
        total -= jacobian_power * theta[at]
        gradient[at] = grad_root[i, i] * root[i, i] - grad_root[0, 0] * root[0, 0] - jacobian_power
        at += 1
    return total
