"""Parameter expansion: rescale and shift the utilities, and draw the value with them.

This is the paper's algorithm 2. The expanded utilities are y = sqrt(z1) (w + X C z2), with C the
unit indicator columns of the sum-to-zero blocks. Given y,

    Z1 ~ IG(shape, rate)   and   u | Z1 ~ N(F h, Z1 F F'),
    h = F' X'y,   F F' = (X'X + prior precision)^-1,

and v = (I - C C') u / sqrt(Z1) are coefficients on the model's own scale. The samplers da,
px-scale, px-translate and px-both differ in the columns that F spans and in how many half units of
shape are lost; `samplers/data_augmentation.py` sets them.
"""

import math
from typing import NamedTuple

import numpy as np

from revealed._types import Floats
from revealed.kernels._compile import compiled_internal
from revealed.kernels.design import Design, multiply, transpose_multiply
from revealed.kernels.vectors import dot


class ExpansionMove(NamedTuple):
    """One of the paper's moves on one problem.

    factor: (K, D) F above. precision_times_mean: (K,) prior precision times prior mean.
    constants: (L, K) C', empty unless the move translates. constant_utilities: (L, P) (X C)'.
    translation_sd: prior sd of each z2, zero when it is not drawn. rescales: whether z1 moves.
    scale_shape, scale_rate: of the IG(a, b) prior of z1, zero for the improper one.
    lost_df: degrees of freedom taken by a translation with a flat prior. prior_diag, prior_full:
    (K,) or (K, K), the other one empty, and times prior_factor: the prior precision of v.
    """

    factor: Floats
    precision_times_mean: Floats
    constants: Floats
    constant_utilities: Floats
    translation_sd: float
    rescales: bool
    scale_shape: float
    scale_rate: float
    lost_df: float
    prior_diag: Floats
    prior_full: Floats
    prior_factor: float


class LeastSquaresLimits(NamedTuple):
    """Where utilities are too large for their sum of squares.

    far_mean_square: of the utilities, in noise sds, beyond which least squares are solved about the
    present value. Smaller, and ordinary draws pay for it; at this size dot(w, w) still leaves eight
    digits for the residuals.
    """

    far_mean_square: float = 1e8


LEAST_SQUARES = LeastSquaresLimits()


class ExpansionWorkspace(NamedTuple):
    """Arrays that the move writes to, so that nothing is allocated inside the loop.

    cross_products: (K,) X'y. projection: (D,) F'X'y and then with noise. coefficients: (K,) u.
    factor, precision_times_mean: (K, D) and (K,), those of the move at the present prior scale;
    empty where the prior scale is given.
    """

    cross_products: Floats
    projection: Floats
    coefficients: Floats
    factor: Floats
    precision_times_mean: Floats


@compiled_internal
def draw_working_scale(
    rng: np.random.Generator, move: ExpansionMove, rows: int, quad: float, z1: float
) -> float:
    """Draw Z1 given the expanded utilities, whose residual sum of squares is `quad`.

    With the improper prior of z1, a translation with a flat prior takes half a unit of shape for
    each dimension; with a proper one, its sum of squares is drawn instead.
    """
    # The posterior of z1 is IG(shape + rows / 2, rate + quad / 2), less what the translation took.
    proper = move.scale_rate > 0.0
    shape = move.scale_shape + 0.5 * (rows if proper else rows - move.lost_df)
    if proper and move.lost_df > 0.0:
        quad += 2.0 * z1 * rng.standard_gamma(0.5 * move.lost_df)
    return (move.scale_rate + 0.5 * quad) / rng.standard_gamma(shape)


@compiled_internal
def residual_projection(
    move: ExpansionMove,
    design: Design,
    workspace: ExpansionWorkspace,
    translation: Floats,
    root: float,
    v: Floats,
    y: Floats,
) -> float:
    """Least squares about a = root (v + C z2), where utilities are so large that w'w says nothing.

    With r = y - X a, which is root times the noise, h - F^-1 a = F' (X'r - P a + P mean) goes into
    the workspace's projection, and a into its coefficients; returns the residual sum of squares

        w'w - h'h = r'r + a'P a - |F' (X'r - P a)|^2   (under a prior mean of zero),

    without the difference of two large numbers. translation: (K,) C z2.
    """
    a, cross_products, projection = (
        workspace.coefficients,
        workspace.cross_products,
        workspace.projection,
    )
    residual = np.empty(y.size)
    for k in range(v.size):
        a[k] = root * (v[k] + translation[k])
    multiply(design, a, residual)
    for p in range(y.size):
        residual[p] = y[p] - residual[p]
    transpose_multiply(design, residual, cross_products)
    quad = dot(residual, residual)
    projection[:] = 0.0
    for k in range(v.size):
        # The prior precision times a: that of the value, and that of the constants.
        prior: float = (
            dot(move.prior_full[k], v) if move.prior_full.size > 0 else move.prior_diag[k] * v[k]
        )
        prior *= move.prior_factor
        if move.translation_sd > 0.0:
            prior += translation[k] / (move.translation_sd * move.translation_sd)
        quad += root * prior * a[k]
        total = cross_products[k] - root * prior + move.precision_times_mean[k]
        for d in range(projection.size):
            projection[d] += move.factor[k, d] * total
    return quad - dot(projection, projection)


@compiled_internal
def draw_expanded_value(
    rng: np.random.Generator,
    move: ExpansionMove,
    design: Design,
    workspace: ExpansionWorkspace,
    v: Floats,
    w: Floats,
) -> float:
    """Draw v (K,) given the utilities w (P,) with the working parameters; returns Z1.

    Both v and w are updated in place. w leaves on the model's own scale again, so that w - X v
    is still the noise.
    """
    cross_products, projection = workspace.cross_products, workspace.projection
    u = workspace.coefficients
    translations = move.constants.shape[0]

    # Expand: y = sqrt(z1) (w + X C z2), with working parameters from their own prior.
    z1, root, translation = 1.0, 1.0, np.zeros(v.size)
    if move.rescales and move.scale_rate > 0.0:
        z1 = move.scale_rate / rng.standard_gamma(move.scale_shape)
    if move.translation_sd > 0.0:
        for block in range(translations):
            z2 = move.translation_sd * rng.standard_normal()
            for k in range(v.size):
                translation[k] += move.constants[block, k] * z2
            for p in range(w.size):
                w[p] += move.constant_utilities[block, p] * z2
    # Not rescaled where z1 is one: the product would be the same, and takes a pass over the rows.
    if z1 != 1.0:
        root = math.sqrt(z1)
        for p in range(w.size):
            w[p] *= root

    # h = F' (X'y + prior precision times mean), and Z1 given y with u integrated out.
    squares = dot(w, w)
    far = squares > LEAST_SQUARES.far_mean_square * w.size
    if far:
        quad = residual_projection(move, design, workspace, translation, root, v, w)
    else:
        transpose_multiply(design, w, cross_products)
        projection[:] = 0.0
        for k in range(v.size):
            total = cross_products[k] + move.precision_times_mean[k]
            for d in range(projection.size):
                projection[d] += move.factor[k, d] * total
        quad = squares - dot(projection, projection)
    # quad is the residual sum of squares; rounding must not make it negative.
    new_z1 = 1.0
    if move.rescales:
        new_z1 = draw_working_scale(rng, move, w.size, max(quad, 0.0), z1)

    # u = F (h + sqrt(Z1) noise), and back to the model's own scale.
    root = math.sqrt(new_z1)
    for d in range(projection.size):
        projection[d] += root * rng.standard_normal()
    for k in range(v.size):
        drawn = dot(move.factor[k], projection)
        # u holds the point about which least squares were solved
        u[k] = u[k] + drawn if far else drawn
        v[k] = u[k] / root
    for p in range(w.size):
        w[p] /= root
    # Take the constants of the blocks out of v, and what they add out of the utilities.
    for block in range(translations):
        z2 = dot(move.constants[block], u) / root
        for k in range(v.size):
            v[k] -= z2 * move.constants[block, k]
        for p in range(w.size):
            w[p] -= z2 * move.constant_utilities[block, p]
    return new_z1
