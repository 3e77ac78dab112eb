"""Functions on a lattice of equal steps: the normal density, running integrals, and shifts by any distance.

A running integral takes every cell from the polynomial through the eight nodes around it. Functions are rows of arrays, and
are zero (a density) or constant (an integral) beyond their first and last nodes. Places are unsigned: those need no test
for negative ones, and the loops then use the vector instructions.
"""

import math

import numpy as np

from understudy._arrays import Floats
from understudy.kernels._jit import fast, jit
from understudy.kernels.normal import LOG_ROOT_TWO_PI

TAIL = 37.0  # sds beyond which a density is zero in double precision
FAR, NEAR, NEXT, HERE = (
    np.array([-191.0, 1879.0, -9531.0, 68323.0]) / 120960.0
)  # weights of a cell, from the outside in
MOST = 1.05  # a cell has not much more than its larger end
ONE, TWO, THREE, FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)


@jit
def bell(left: float, step: float, mean: float, sd: float, out: Floats) -> None:
    """The normal density at the nodes left, left + step, ..., by two products a node."""
    low = min(max(math.ceil((mean - TAIL * sd - left) / step), 0), out.size)
    high = min(max(int((mean + TAIL * sd - left) / step), low), out.size)
    z, h = (left + low * step - mean) / sd, step / sd
    value = math.exp(-0.5 * z * z - LOG_ROOT_TWO_PI) / sd
    factor, shrink = math.exp(-h * z - 0.5 * h * h), math.exp(-h * h)
    out[:low] = 0.0
    for i in range(np.uint64(low), np.uint64(high)):
        out[i] = value
        value *= factor
        factor *= shrink
    out[high:] = 0.0


@fast
def cells(g: Floats, step: float, out: Floats) -> None:
    """The integral of g from every node to the next one.

    Far out g grows many times over from node to node, and eight of them say nothing: a cell is never less than its
    smaller end has, nor much more than its larger.
    """
    size = np.uint64(g.size)
    out[:3] = 0.0
    out[g.size - 4 :] = 0.0
    for i in range(THREE, size - FOUR):
        a, b = g[i], g[i + ONE]
        cell = FAR * (g[i - THREE] + g[i + FOUR]) + NEAR * (g[i - TWO] + g[i + THREE])
        cell += NEXT * (g[i - ONE] + g[i + TWO]) + HERE * (a + b)
        out[i] = step * min(max(cell, min(a, b)), MOST * max(a, b))


@jit
def rising(cell: Floats, out: Floats) -> None:
    """The integral up to every node."""
    total = 0.0
    for i in range(np.uint64(cell.size)):
        out[i] = total
        total += cell[i]


@jit
def falling(cell: Floats, out: Floats) -> None:
    """The integral from every node on."""
    total = 0.0
    last = np.uint64(cell.size - 1)
    for i in range(np.uint64(cell.size)):
        total += cell[last - i]
        out[last - i] = total


@fast
def shift(values: Floats, offset: float, out: Floats) -> None:
    """Out at node i is what values have at i - offset, by eight nodes; values are constant beyond both ends."""
    if offset == 0.0:
        out[:] = values
        return
    whole = math.floor(-offset)
    u = -offset - whole
    weight = np.ones(8)
    for a in range(8):
        for b in range(8):
            if a != b:
                weight[a] *= (u + 3.0 - b) / (a - b)
    last = values.size - 1
    low, high = min(max(3 - whole, 0), last), max(min(last - 3 - whole, last + 1), 0)  # where all eight nodes are there
    out[:low] = values[0]
    out[max(high, low) :] = values[last]
    p, q, r, s, t, v, w, x = weight
    for i in range(np.uint64(low), np.uint64(max(high, low))):
        j = np.uint64(i + np.uint64(whole))  # wraps round where whole is negative, and back again
        total = p * values[j - THREE] + q * values[j - TWO] + r * values[j - ONE] + s * values[j]
        total += t * values[j + ONE] + v * values[j + TWO] + w * values[j + THREE] + x * values[j + FOUR]
        out[i] = max(total, 0.0)
