"""Eight groups at a time: their values from coordinates that hardly depend on the population.

Of each group's likelihood there is a normal stand-in, exp(h'q - q'H q / 2), H positive
semi-definite. With P the population's precision,

    R R' = P + H,   m = (P + H)^-1 (P mean + h),   q = m + R^-T z:

where the stand-in is exact, z is standard normal whatever the population is. The derivatives of
anything in z, the mean and P follow from that in q, grad, without a derivative of the Cholesky
factor: with e = q - mean, g = grad - P e, w = R^-1 g and s = R^-T w,

    in z     w
    in mean  P (e + s)
    in P     R^-T M R^-1 - (s (m - mean)' + (m - mean) s') / 2 - e e' / 2,

M_ab = -z_a w_b / 2 for a > b, mirrored, and M_aa = -(z_a w_a + 1) / 2. These are those of
grad's function plus -e'P e / 2 - log |R|.

All numbers of eight groups lie side by side, so that vector instructions work on eight groups as on
one (`vectors.py`). Triangles are stored by rows, without what is above the diagonal.
"""

import math
from typing import NamedTuple

import numpy as np

from revealed._types import Floats
from revealed.kernels._compile import compiled_internal
from revealed.kernels.vectors import (
    EIGHT,
    add,
    divide,
    load,
    multiply,
    multiply_add,
    repeat,
    square_root,
    store,
    subtract_product,
    sum_block,
)


class BlockLayout(NamedTuple):
    """How groups are put together."""

    lanes: int
    factors_per_log: int
    rivals_per_batch: int


# lanes: groups of a block, as many as a vector register has doubles.
# factors_per_log: diagonal entries of R that are multiplied before one logarithm is taken. With
# log t within 30, and curvatures in reason, a product of six is far from both ends of double
# precision.
# rivals_per_batch: about how many a batch of blocks has (`group_batches.py`): their gaps, slopes
# and rows stay in the fast memory of a core. Draws depend on it in their last digits, as sums are
# made batch by batch.
BLOCKS = BlockLayout(lanes=8, factors_per_log=6, rivals_per_batch=4096)


class GroupBlock(NamedTuple):
    """What the work on eight groups writes to, with eight numbers for each entry.

    inverse: the triangle of R^-1. centre, offset: (D,) m - mean and q - mean. These are what
    `place_values` leaves for `add_slopes`; all else is `BlockScratch`.
    """

    inverse: Floats
    centre: Floats
    offset: Floats


class BlockScratch(NamedTuple):
    """Arrays that are free again after each call, with eight numbers for each entry.

    factor, product: triangles. value: (D,) q. grad: (D,) the derivative in q, which becomes g.
    half, back: (D,) w and s. logs: of the diagonal of R.
    """

    factor: Floats
    product: Floats
    value: Floats
    grad: Floats
    half: Floats
    back: Floats
    logs: Floats


def make_block_scratch(width: int) -> BlockScratch:
    """Arrays for values of so many coordinates."""
    line, triangle = BLOCKS.lanes * width, BLOCKS.lanes * (width * (width + 1) // 2)
    return BlockScratch(
        np.empty(triangle),
        np.empty(triangle),
        np.empty(line),
        np.empty(line),
        np.empty(line),
        np.empty(line),
        np.empty(BLOCKS.lanes),
    )


@compiled_internal
def at_entry(a: int, b: int) -> np.uint64:
    """Where the eight numbers of entry (a, b) of a triangle begin, b at most a."""
    return np.uint64(a * (a + 1) // 2 + b) * EIGHT


@compiled_internal
def at_coordinate(a: int) -> np.uint64:
    """Where the eight numbers of coordinate a begin."""
    return np.uint64(a) * EIGHT


@compiled_internal
def factorise(
    precision: Floats, curvature: Floats, inverse: Floats, factor: Floats, diagonals: Floats
) -> float:
    """Write R and R^-1 of P + H for eight groups; returns minus the sum of their log |R|.

    precision: (D, D) P. curvature: the triangles of H. diagonals: (8,) is written to.
    """
    width, logs = precision.shape[0], 0.0
    one, product = repeat(1.0), repeat(1.0)
    for a in range(width):
        for b in range(a + 1):
            left = add(repeat(precision[a, b]), load(curvature, at_entry(a, b)))
            for c in range(b):
                left = subtract_product(
                    load(factor, at_entry(a, c)), load(factor, at_entry(b, c)), left
                )
            if b < a:
                # the inverse has one over the diagonal
                store(factor, at_entry(a, b), multiply(left, load(inverse, at_entry(b, b))))
            else:
                diagonal = square_root(left)
                store(factor, at_entry(a, a), diagonal)
                store(inverse, at_entry(a, a), divide(one, diagonal))
                product = multiply(product, diagonal)
        if a % BLOCKS.factors_per_log == BLOCKS.factors_per_log - 1 or a == width - 1:
            store(diagonals, np.uint64(0), product)
            for lane in range(BLOCKS.lanes):
                logs -= math.log(diagonals[lane])
            product = repeat(1.0)
    # the inverse of a triangle, row by row
    zero = repeat(0.0)
    for a in range(1, width):
        minus = subtract_product(one, load(inverse, at_entry(a, a)), zero)
        for b in range(a):
            total = zero
            for c in range(b, a):
                total = multiply_add(
                    load(factor, at_entry(a, c)), load(inverse, at_entry(c, b)), total
                )
            store(inverse, at_entry(a, b), multiply(total, minus))
    return logs


@compiled_internal
def multiply_inverse(inverse: Floats, x: Floats, out: Floats, width: int) -> None:
    """Write R^-1 x for eight groups."""
    for a in range(width):
        total = repeat(0.0)
        for b in range(a + 1):
            total = multiply_add(load(inverse, at_entry(a, b)), load(x, at_coordinate(b)), total)
        store(out, at_coordinate(a), total)


@compiled_internal
def multiply_inverse_transposed(inverse: Floats, x: Floats, out: Floats, width: int) -> None:
    """Write R^-T x for eight groups."""
    for a in range(width):
        total = repeat(0.0)
        for b in range(a, width):
            total = multiply_add(load(inverse, at_entry(b, a)), load(x, at_coordinate(b)), total)
        store(out, at_coordinate(a), total)


@compiled_internal
def place_values(
    precision: Floats,
    mean: Floats,
    precision_times_mean: Floats,
    curvature: Floats,
    linear: Floats,
    z: Floats,
    block: GroupBlock,
    scratch: BlockScratch,
) -> float:
    """Write the values q of eight groups, and what they are made of.

    Returns minus the sum of log |R|. precision, mean: of the population, and their product.
    curvature, linear: H and h of the stand-ins. z: (D,) of each group.
    """
    width = mean.size
    logs = factorise(precision, curvature, block.inverse, scratch.factor, scratch.logs)
    # grad is not needed yet, and holds P mean + h
    for a in range(width):
        summed = add(repeat(precision_times_mean[a]), load(linear, at_coordinate(a)))
        store(scratch.grad, at_coordinate(a), summed)
    multiply_inverse(block.inverse, scratch.grad, scratch.half, width)
    multiply_inverse_transposed(block.inverse, scratch.half, block.centre, width)
    multiply_inverse_transposed(block.inverse, z, block.offset, width)
    for a in range(width):
        at, minus_mean = at_coordinate(a), repeat(-mean[a])
        centre = load(block.centre, at)
        value = add(centre, load(block.offset, at))
        store(scratch.value, at, value)
        store(block.centre, at, add(centre, minus_mean))
        store(block.offset, at, add(value, minus_mean))
    return logs


@compiled_internal
def add_slopes(
    precision: Floats,
    z: Floats,
    block: GroupBlock,
    scratch: BlockScratch,
    grad_z: Floats,
    sums: Floats,
    grad_precision: Floats,
) -> float:
    """Write the derivatives in z, and add those in mean and precision to sums; eight groups each.

    scratch.grad: the derivative of the log-likelihood in q. sums: (D,) of e + s. grad_precision: a
    triangle. Returns -e'P e / 2, summed over the eight groups.
    """
    width, half = precision.shape[0], repeat(0.5)
    squares = repeat(0.0)
    for a in range(width):
        at, pull = at_coordinate(a), repeat(0.0)
        for b in range(width):
            pull = multiply_add(repeat(precision[a, b]), load(block.offset, at_coordinate(b)), pull)
        squares = multiply_add(pull, load(block.offset, at), squares)
        store(scratch.grad, at, subtract_product(pull, repeat(1.0), load(scratch.grad, at)))
    multiply_inverse(block.inverse, scratch.grad, scratch.half, width)
    multiply_inverse_transposed(block.inverse, scratch.half, scratch.back, width)
    for a in range(width):
        at = at_coordinate(a)
        store(grad_z, at, load(scratch.half, at))
        both = add(load(block.offset, at), load(scratch.back, at))
        store(sums, at, add(load(sums, at), both))
    # minus M R^-1, with half of its diagonal, as the other half comes from its mirror image
    for b in range(width):
        before = repeat(0.0)
        for a in range(b, width):
            entry = load(block.inverse, at_entry(a, b))
            term = multiply(load(scratch.half, at_coordinate(a)), entry)
            inside = multiply_add(half, term, before)
            store(
                scratch.product,
                at_entry(a, b),
                multiply_add(load(z, at_coordinate(a)), inside, multiply(half, entry)),
            )
            before = add(before, term)
    for a in range(width):
        back_a, centre_a = (
            load(scratch.back, at_coordinate(a)),
            load(block.centre, at_coordinate(a)),
        )
        offset_a = load(block.offset, at_coordinate(a))
        for b in range(a + 1):
            total = repeat(0.0)
            for c in range(a, width):
                total = multiply_add(
                    load(block.inverse, at_entry(c, a)),
                    load(scratch.product, at_entry(c, b)),
                    total,
                )
            for c in range(a, width):
                total = multiply_add(
                    load(block.inverse, at_entry(c, b)),
                    load(scratch.product, at_entry(c, a)),
                    total,
                )
            total = multiply_add(back_a, load(block.centre, at_coordinate(b)), total)
            total = multiply_add(load(scratch.back, at_coordinate(b)), centre_a, total)
            total = multiply_add(offset_a, load(block.offset, at_coordinate(b)), total)
            at = at_entry(a, b)
            store(grad_precision, at, subtract_product(half, total, load(grad_precision, at)))
    return -0.5 * float(sum_block(squares))
