"""Functions on a grid of equal steps: the normal density, running integrals, and shifts.

A running integral takes every cell from the polynomial through the eight nodes around it; a shift
by any distance interpolates by the same. Functions are rows of arrays, and are zero (a density) or
constant (an integral) beyond their first and last nodes. Indices are unsigned: those need no test
for negative ones, and the loops then use the vector instructions.
"""

import math
from typing import NamedTuple

import numpy as np

from revealed._types import Floats
from revealed.kernels._compile import compiled, compiled_no_nan
from revealed.kernels.normal import LOG_ROOT_TWO_PI
from revealed.kernels.vectors import multiply_add


class CellRule(NamedTuple):
    """Integral over one cell as weights of the eight nodes around it, from the outside in.

    max_excess: a cell has not much more than its larger end times the step.
    """

    outer: float
    middle: float
    inner: float
    end: float
    max_excess: float


# The weights integrate the polynomial through eight nodes exactly; their sum is 1 / 2. The bound of
# five per cent only acts far out, where a density grows many times over from node to node.
CELL = CellRule(
    outer=-191.0 / 120960.0,
    middle=1879.0 / 120960.0,
    inner=-9531.0 / 120960.0,
    end=68323.0 / 120960.0,
    max_excess=1.05,
)
# unsigned, so that sums of indices stay unsigned
ONE, TWO, THREE, FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)


@compiled
def normal_density(left: float, step: float, mean: float, sd: float, out: Floats) -> None:
    """Write the normal density at the nodes left, left + step, ... into out.

    By two products a node: the ratio of neighbours changes by one factor from node to node.
    """
    tail = 37.0  # sds beyond which a density is zero in double precision
    # only nodes within the tails are computed
    low = min(max(math.ceil((mean - tail * sd - left) / step), 0), out.size)
    high = min(max(int((mean + tail * sd - left) / step), low), out.size)
    z, h = (left + low * step - mean) / sd, step / sd
    value = math.exp(-0.5 * z * z - LOG_ROOT_TWO_PI) / sd
    ratio, ratio_change = math.exp(-h * z - 0.5 * h * h), math.exp(-h * h)
    out[:low] = 0.0
    for i in range(np.uint64(low), np.uint64(high)):
        out[i] = value
        value *= ratio
        ratio *= ratio_change
    out[high:] = 0.0


@compiled_no_nan
def integrate_cells(g: Floats, step: float, out: Floats) -> None:
    """Write the integral of g from every node to the next one into out.

    Far out g grows many times over from node to node, and a polynomial through eight of them says
    nothing: a cell is never less than its smaller end has, nor much more than its larger.
    """
    size = np.uint64(g.size)
    # the rule needs three nodes to the left and four to the right
    out[:3] = 0.0
    out[g.size - 4 :] = 0.0
    for i in range(THREE, size - FOUR):
        a, b = g[i], g[i + ONE]
        cell = CELL.outer * (g[i - THREE] + g[i + FOUR])
        cell = multiply_add(CELL.middle, g[i - TWO] + g[i + THREE], cell)
        cell = multiply_add(CELL.inner, g[i - ONE] + g[i + TWO], cell)
        cell = multiply_add(CELL.end, a + b, cell)
        out[i] = step * min(max(cell, min(a, b)), CELL.max_excess * max(a, b))


@compiled
def integrate_from_left(cell: Floats, out: Floats) -> None:
    """Write the integral up to every node, from those over cells."""
    total = 0.0
    for i in range(np.uint64(cell.size)):
        out[i] = total
        total += cell[i]


@compiled
def integrate_from_right(cell: Floats, out: Floats) -> None:
    """Write the integral from every node on, from those over cells."""
    total = 0.0
    last = np.uint64(cell.size - 1)
    for i in range(np.uint64(cell.size)):
        total += cell[last - i]
        out[last - i] = total


@compiled_no_nan
def shift(values: Floats, offset: float, out: Floats) -> None:
    """Write into node i of out what values have at i - offset.

    By Lagrange interpolation through eight nodes, never below zero; values are constant beyond
    both ends.
    """
    if offset == 0.0:
        out[:] = values
        return
    whole = math.floor(-offset)
    u = -offset - whole
    # Lagrange weights at u, the same for all nodes
    weight = np.ones(8)
    for a in range(8):
        for b in range(8):
            if a != b:
                weight[a] *= (u + 3.0 - b) / (a - b)
    # the nodes for which all eight neighbours exist
    last = values.size - 1
    low, high = (
        min(max(3 - whole, 0), last),
        max(min(last - 3 - whole, last + 1), 0),
    )
    out[:low] = values[0]
    out[max(high, low) :] = values[last]
    # eight names, so that the weights stay in registers
    p, q, r, s, t, v, w, x = weight
    for i in range(np.uint64(low), np.uint64(max(high, low))):
        # wraps round where whole is negative, and back again
        j = np.uint64(i + np.uint64(whole))
        # two sums of four: an addition waits for the one before it
        left = multiply_add(q, values[j - TWO], p * values[j - THREE])
        left = multiply_add(s, values[j], multiply_add(r, values[j - ONE], left))
        right = multiply_add(v, values[j + TWO], t * values[j + ONE])
        right = multiply_add(x, values[j + FOUR], multiply_add(w, values[j + THREE], right))
        out[i] = max(left + right, 0.0)
