"""Tables of Phi and phi/Phi for nodes on a lattice, in single precision: what `collapsed.py` reads.

Nodes lie at z = k h, and every step h is a whole number of table cells, a stride. All nodes of one rival then have the same place u
within their cells. So the polynomials in u of cells that are a stride apart stand side by side in memory, for each stride and phase.
"""

from collections.abc import Callable

import numpy as np
from scipy.special import log_ndtr, ndtr

from understudy._arrays import Floats, Ints, Singles
from understudy.kernels.normal import LOG_ROOT_TWO_PI

CELLS = 16  # table cells a unit
LOW, HIGH = -27.0, 9.0  # of the tables; no node of a decision less than DEEP lies left of them and matters
STRIDES = np.array([16, 14, 12, 10, 8, 7, 6, 5, 4, 3, 2, 1])  # cells a step: h is 1, 7/8, ... 1/16
NODES = 16
DEGREE = 4
SPAN = round((HIGH - LOW) * CELLS)
REACH = 40 * CELLS  # the lattice's table of phi runs from -REACH to REACH cells
WIDTHS = -(-SPAN // STRIDES) + NODES  # of a phase in the tables
PER_STRIDE = 1.0 / STRIDES
STEP_FOR = np.array([np.flatnonzero(max(cells, 1) >= STRIDES)[0] for cells in range(2 * CELLS)])


def _ratio(x: Floats) -> Floats:
    return np.asarray(np.exp(-0.5 * x * x - LOG_ROOT_TWO_PI - log_ndtr(x)))


def _polynomials(function: Callable[[Floats], Floats]) -> Floats:
    """(DEGREE + 1, SPAN) coefficients of the function in u, the place within a cell from 0 to 1."""
    points = 0.5 - 0.5 * np.cos((2 * np.arange(DEGREE + 1) + 1) * np.pi / (2 * (DEGREE + 1)))
    left = LOW + np.arange(SPAN) / CELLS
    values = function(left[:, None] + points[None, :] / CELLS)
    return np.asarray(np.linalg.solve(np.vander(points, DEGREE + 1, increasing=True), values.T))


def _by_phase(function: Callable[[Floats], Floats], beyond: float) -> tuple[Singles, Ints]:
    """For each stride the polynomials with cells a stride apart side by side; and where each stride's begin.

    Coefficient k of cell n * stride + phase stands at begin + (phase * (DEGREE + 1) + k) * width + n, with `width` from
    WIDTHS; behind the last cell the function is `beyond`.
    """
    cells = _polynomials(function)
    parts, begin = [], [0]
    for stride in STRIDES:
        padded = np.zeros((DEGREE + 1, stride * (-(-SPAN // stride) + NODES)))
        padded[0] = beyond
        padded[:, :SPAN] = cells
        parts.append(padded.reshape(DEGREE + 1, -1, stride).transpose(2, 0, 1).ravel())
        begin.append(begin[-1] + parts[-1].size)
    return np.concatenate(parts).astype(np.float32), np.array(begin[:-1])


PHI, BEGIN = _by_phase(ndtr, 1.0)
RATIO, _ = _by_phase(_ratio, 0.0)
_CELL = np.arange(SPAN)[None, :]
FIRST = np.ascontiguousarray(  # (steps, SPAN) where the constant coefficient of a cell stands
    BEGIN[:, None] + _CELL % STRIDES[:, None] * (DEGREE + 1) * WIDTHS[:, None] + _CELL // STRIDES[:, None]
).astype(np.uint32)


def _lattice() -> tuple[Singles, Ints]:
    """For each stride exp(-z^2/2) at z = k h, and where k = 0 stands."""
    parts, zero, at = [], [], 0
    for stride in STRIDES:
        k = np.arange(-(REACH // stride), REACH // stride + 1)
        parts.append(np.exp(-0.5 * (k * stride / CELLS) ** 2))
        zero.append(at + REACH // stride)
        at += k.size
    return np.concatenate(parts).astype(np.float32), np.array(zero)


BELL, ZERO = _lattice()


def _rough() -> Singles:
    """(SPAN, 4) phi/Phi, minus its first derivative and its second, at the middle of every cell; and nothing."""
    x = LOW + (np.arange(SPAN) + 0.5) / CELLS
    ratio = _ratio(x)
    bend = np.clip(ratio * (x + ratio), 0.0, 1.0)
    twist = bend * (x + 2.0 * ratio) - ratio
    return np.ascontiguousarray(np.stack([ratio, bend, twist, 0.0 * x], axis=1)).astype(np.float32)


ROUGH = _rough()
