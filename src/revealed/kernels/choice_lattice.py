"""The integrand of one choice at nodes on a lattice: the inner loops of `choice_fast.py`.

With gap_j = mu_j - mu_c the integrand is phi(z) times the product over rivals of Phi(z - gap_j).

- Nodes lie at z = k h, and every step h is a whole number of table cells. All nodes of one rival
  then have the same position u within their cells, so that Phi at sixteen nodes is one polynomial
  in u with coefficients that lie side by side in memory: nothing is looked up twice, and no
  logarithm or exponential is taken before the end. Single precision is enough for factors of one
  integrand, and does twice as many at a time.
- The step is at most `step_few_rivals` of the integrand's width, taken where it is sharpest;
  sixteen nodes reach five widths to the left and more to the right, and further ones are added
  while the ends matter.
- Where to put them is found by Halley's method on tables read without interpolation, from a lower
  bound of the mode. With two or three rivals there is nothing to find: the integrand is at least
  half as wide as phi, its mode within a quarter of the largest gap, and 0.9, of the bound; and all
  of it is one loop without memory.
"""

import math
from typing import NamedTuple

import numpy as np

from revealed._types import Floats, Singles
from revealed.kernels import vectors
from revealed.kernels._compile import inlined_formula
from revealed.kernels.choice_tables import (
    CDF_TABLE,
    CELL_OFFSETS,
    DERIVATIVE_TABLE,
    LATTICE,
    NORMAL_TABLE,
    NORMAL_ZERO,
    PHASE_WIDTHS,
    RATIO_TABLE,
    STEP_FOR_WIDTH,
    STEPS_PER_CELL,
    STRIDES,
)
from revealed.kernels.normal import LOG_ROOT_TWO_PI
from revealed.kernels.vectors import multiply, multiply_add, quartic_block, sum_block


class LatticeRule(NamedTuple):
    """The tuning constants of the fast integral; errors are those of `choice_fast.py`."""

    irrelevance_margin: float
    max_nodes: int
    step_few_rivals: float
    step_many_rivals: float
    many_rivals: int
    end_tolerance: float
    min_integral: float
    max_mode_bound: float
    widths_left: float
    three_rivals_left: float
    min_gap_to_shift: float


# irrelevance_margin: Phi(-8 / sqrt(2)) = 8e-9, in units of utility: smaller loses digits, larger
# costs time.
# max_nodes: that a decision may need; beyond, its ends are cut.
# step_*: steps in widths of the integrand, below and from `many_rivals` on: chosen by measured
# error, as larger ones lose digits and smaller ones cost time.
# end_tolerance: blocks are added while the integrand at an end is more than this share of the sum.
# min_integral: a smaller one is left to the exact rule, as single precision ends at 1e-38.
# max_mode_bound: beyond it products of Phi grow too small, and the exact rule is used at once.
# widths_left: how many widths left of the mode the nodes begin.
# three_rivals_left: how far left of the bound they begin with two or three rivals.
# min_gap_to_shift: below this largest gap the mode is next to its bound, and is sought from there.
FAST_RULE = LatticeRule(
    irrelevance_margin=8.0,
    max_nodes=16 * LATTICE.nodes,
    step_few_rivals=0.95,
    step_many_rivals=0.6,
    many_rivals=50,
    end_tolerance=1e-5,
    min_integral=1e-30,
    max_mode_bound=9.0,
    widths_left=4.8,
    three_rivals_left=4.25,
    min_gap_to_shift=-1.0,
)

# Where to look for the mode first, above its bound, by the number of rivals: it grows as their log.
MODE_SHIFTS = np.multiply(0.3, np.log(np.arange(1.0, 65.0)))

ZERO = np.float32(0.0)


class FixedStep(NamedTuple):
    """What the tables hold for one step of the lattice; log_step: log(h / sqrt(2 pi))."""

    stride: int
    width: np.uint64
    zero: int
    log_step: float


def _fixed_step(step: int) -> FixedStep:
    """The tables' entries for a step, by its position in STRIDES."""
    stride = int(STRIDES[step])
    return FixedStep(
        stride,
        np.uint64(PHASE_WIDTHS[step]),
        int(NORMAL_ZERO[step]),
        math.log(stride / LATTICE.cells_per_unit) - LOG_ROOT_TWO_PI,
    )


# With two or three rivals one step, 5/8, serves all: sixteen nodes of it nearly always do.
THREE_RIVALS = _fixed_step(3)
THREE_RIVALS_OFFSETS = np.ascontiguousarray(CELL_OFFSETS[3])


@inlined_formula
def place_nodes(
    gaps: Floats, multiplicity: Floats, count: np.uint64, bound: float, largest_gap: float
) -> tuple[int, int]:
    """The step for this integrand, as a position in STRIDES, and the first node k.

    Halley's method for the mode of the log-integrand on tables read without interpolation.
    """
    mode = bound
    if largest_gap > FAST_RULE.min_gap_to_shift:
        mode += MODE_SHIFTS[min(count, np.uint64(MODE_SHIFTS.size - 1))]
    curvature = 1.0
    for _ in range(6):
        # Slope, minus the second derivative, and the third of -z^2/2 + sum of log Phi(z - gap).
        slope, curvature, third = -mode, 1.0, 0.0
        offset = (mode - LATTICE.low) * LATTICE.cells_per_unit
        for j in range(count):
            i = np.uint32(
                min(max(offset - gaps[j] * LATTICE.cells_per_unit, 0.0), LATTICE.cells - 1.0)
            )
            slope = multiply_add(multiplicity[j], DERIVATIVE_TABLE[i, 0], slope)
            curvature = multiply_add(multiplicity[j], DERIVATIVE_TABLE[i, 1], curvature)
            third = multiply_add(multiplicity[j], DERIVATIVE_TABLE[i, 2], third)
        # Newton's step, and Halley's correction of it, which at most doubles it.
        move = slope / curvature
        mode += move / max(0.5, 1.0 - 0.5 * move * third / curvature)
        if move * slope < 1.5:
            curvature = max(1.0, curvature - third * move)
            break
    # The width one width to the left of the mode, where the integrand is sharpest.
    curvature += third / math.sqrt(curvature)
    width = LATTICE.cells_per_unit / math.sqrt(curvature)
    step = STEP_FOR_WIDTH[
        int(
            (
                FAST_RULE.step_few_rivals
                if count < FAST_RULE.many_rivals
                else FAST_RULE.step_many_rivals
            )
            * width
        )
    ]
    return step, math.floor(
        (mode * LATTICE.cells_per_unit - FAST_RULE.widths_left * width) * STEPS_PER_CELL[step]
    )


@inlined_formula
def _look_up(y: float, step: int) -> tuple[np.uint64, np.float32]:
    """Where coefficients for a first node y cells into the table stand, and its position u."""
    inside = max(y, 0.0)
    cell = np.uint32(inside)
    return np.uint64(CELL_OFFSETS[step, cell]), np.float32(inside - cell)


@inlined_formula
def _fill_block(
    gaps: Floats,
    multiplicity: Floats,
    count: np.uint64,
    step: int,
    k: int,
    begin: int,
    nodes: Singles,
) -> float:
    """The sum of the integrand at a block of nodes from k on.

    The integrand goes into nodes, from `begin` on.
    """
    width = np.uint64(PHASE_WIDTHS[step])
    block = vectors.load(NORMAL_TABLE, np.uint64(NORMAL_ZERO[step] + k))
    # Multiply by Phi of every rival, once for each of its copies. Right of the table Phi is one.
    left = float(k * STRIDES[step]) - LATTICE.low * LATTICE.cells_per_unit
    for j in range(count):
        y = left - gaps[j] * LATTICE.cells_per_unit
        if y < LATTICE.cells:
            a, u = _look_up(y, step)
            cdf = quartic_block(CDF_TABLE, a, width, u)
            for _ in range(int(multiplicity[j])):
                block = multiply(block, cdf)
    vectors.store(nodes, np.uint64(begin), block)
    return float(sum_block(block))


@inlined_formula
def integrate_on_lattice(
    gaps: Floats,
    multiplicity: Floats,
    nodes: Singles,
    count: np.uint64,
    bound: float,
    largest_gap: float,
) -> tuple[float, int, int, int, int]:
    """The sum of the integrand over the nodes of one decision, which go into nodes.

    Also where they begin and end there, the step as a position in STRIDES, and the first node's k.
    """
    step, k = place_nodes(gaps, multiplicity, count, bound, largest_gap)
    low = (FAST_RULE.max_nodes - LATTICE.nodes) // 2
    high = low + LATTICE.nodes
    begin, total = low, 0.0
    # A block in the middle of the array, then one more at whichever end still matters.
    while True:
        total += _fill_block(gaps, multiplicity, count, step, k + begin - low, begin, nodes)
        if nodes[low] > FAST_RULE.end_tolerance * total and low >= LATTICE.nodes:
            low -= LATTICE.nodes
            k -= LATTICE.nodes
            begin = low
        elif (
            nodes[high - 1] > FAST_RULE.end_tolerance * total
            and high <= FAST_RULE.max_nodes - LATTICE.nodes
        ):
            begin = high
            high += LATTICE.nodes
        else:
            return total, low, high, step, k


@inlined_formula
def sum_ratio(gap: float, nodes: Singles, low: int, high: int, step: int, k: int) -> float:
    """The sum over nodes of the integrand times phi/Phi of one rival.

    Divided by the sum of the integrand it is E_q[r_j], minus the slope of log P in the rival's gap.
    """
    width = np.uint64(PHASE_WIDTHS[step])
    total = np.float32(0.0)
    for block in range(low, high, LATTICE.nodes):
        y = float((k + block - low) * STRIDES[step]) - (LATTICE.low + gap) * LATTICE.cells_per_unit
        # Right of the table phi/Phi is zero.
        if y < LATTICE.cells:
            a, u = _look_up(y, step)
            ratios = quartic_block(RATIO_TABLE, a, width, u)
            total += sum_block(multiply(vectors.load(nodes, np.uint64(block)), ratios))
    return float(total)


@inlined_formula
def _look_up_fixed(y: float) -> tuple[np.uint64, np.float32]:
    """The same as `_look_up` for the one step of `THREE_RIVALS`, on both sides of the table."""
    inside = min(max(y, 0.0), LATTICE.cells - 1.0)
    cell = np.uint32(inside)
    return np.uint64(THREE_RIVALS_OFFSETS[cell]), np.float32(inside - cell)


@inlined_formula
def integrate_three_rivals(
    gap_1: float, gap_2: float, gap_3: float, bound: float, with_slopes: bool
) -> tuple[float, float, float, float, bool]:
    """The sum of the integrand against three rivals, one block of nodes, nothing stored.

    Then, if asked for, the sums of the integrand times phi/Phi of each, and whether the nodes were
    enough: whether the integrand at the last one is next to nothing.
    """
    k = math.floor(
        (bound - FAST_RULE.three_rivals_left) * LATTICE.cells_per_unit / THREE_RIVALS.stride
    )
    left = float(k * THREE_RIVALS.stride) - LATTICE.low * LATTICE.cells_per_unit
    # Coefficients of the first node and position within its cell, for each rival.
    a, u = _look_up_fixed(left - gap_1 * LATTICE.cells_per_unit)
    b, v = _look_up_fixed(left - gap_2 * LATTICE.cells_per_unit)
    c, w = _look_up_fixed(left - gap_3 * LATTICE.cells_per_unit)
    width = THREE_RIVALS.width
    others = multiply(quartic_block(CDF_TABLE, b, width, v), quartic_block(CDF_TABLE, c, width, w))
    block = vectors.load(NORMAL_TABLE, np.uint64(THREE_RIVALS.zero + k))
    block = multiply(multiply(block, quartic_block(CDF_TABLE, a, width, u)), others)
    total, sum_1, sum_2, sum_3 = sum_block(block), ZERO, ZERO, ZERO
    if with_slopes:
        sum_1 = sum_block(multiply(block, quartic_block(RATIO_TABLE, a, width, u)))
        sum_2 = sum_block(multiply(block, quartic_block(RATIO_TABLE, b, width, v)))
        sum_3 = sum_block(multiply(block, quartic_block(RATIO_TABLE, c, width, w)))
    enough = vectors.last_of_block(block) <= FAST_RULE.end_tolerance * total
    return float(total), float(sum_1), float(sum_2), float(sum_3), enough
