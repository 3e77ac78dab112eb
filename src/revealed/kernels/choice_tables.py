"""Tables of Phi and phi/Phi for nodes on a lattice, in single precision: for `choice_lattice.py`.

Nodes lie at z = k h, and every step h is a whole number of table cells, a stride. All nodes of one
rival then have the same position u within their cells. So the polynomials in u of cells that are a
stride apart stand side by side in memory, for each stride and phase (cell number modulo stride).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtr

from revealed._types import Floats, Ints, Singles
from revealed.kernels.normal import LOG_ROOT_TWO_PI


class LatticeShape(NamedTuple):
    """The range and fineness of the tables.

    cells: from low to high. nodes: that are worked on together, a block. reach: the table of phi
    runs from -reach to reach cells.
    """

    cells_per_unit: int
    low: float
    high: float
    cells: int
    nodes: int
    degree: int
    reach: int


# cells_per_unit, degree: the error of the polynomials is below that of single precision, 6e-8.
# low, high: no node lies left of the tables and matters, where the bound of the mode is less than
# `max_mode_bound` of `choice_lattice.py`; right of them Phi is one.
# nodes: sixteen single-precision numbers fill one 512-bit register, or two of 256 bits.
# reach: 40 units, further than any node goes.
LATTICE = LatticeShape(
    cells_per_unit=16,
    low=-27.0,
    high=9.0,
    cells=round((9.0 + 27.0) * 16),
    nodes=16,
    degree=4,
    reach=40 * 16,
)

# Cells a step: h is 1, 7/8, ... 1/16.
STRIDES = np.array([16, 14, 12, 10, 8, 7, 6, 5, 4, 3, 2, 1])
STEPS_PER_CELL = np.divide(1.0, STRIDES)
# Entries of one phase in the tables: its cells rounded up, and a block beyond them.
PHASE_WIDTHS = np.add(-(-LATTICE.cells // STRIDES), LATTICE.nodes)
# The largest step of at most so many cells, as a position in STRIDES.
STEP_FOR_WIDTH = np.array(
    [np.flatnonzero(max(cells, 1) >= STRIDES)[0] for cells in range(2 * LATTICE.cells_per_unit)]
)


def _ratio(x: Floats) -> Floats:
    """phi(x) / Phi(x)."""
    return np.asarray(np.exp(-0.5 * x * x - LOG_ROOT_TWO_PI - log_ndtr(x)))


def _cell_polynomials(function: Callable[[Floats], Floats]) -> Floats:
    """(degree + 1, cells) coefficients of a function in u, by interpolation at Chebyshev points.

    u is the position within a cell, from 0 to 1.
    """
    terms = LATTICE.degree + 1
    points = 0.5 - 0.5 * np.cos((2 * np.arange(terms) + 1) * np.pi / (2 * terms))
    left = LATTICE.low + np.arange(LATTICE.cells) / LATTICE.cells_per_unit
    values = function(left[:, None] + points[None, :] / LATTICE.cells_per_unit)
    return np.asarray(np.linalg.solve(np.vander(points, terms, increasing=True), values.T))


def _by_phase(function: Callable[[Floats], Floats], beyond: float) -> tuple[Singles, Ints]:
    """For each stride the polynomials of cells a stride apart side by side; where each begins.

    Coefficient k of cell n * stride + phase stands at

        begin + (phase * (degree + 1) + k) * width + n,   width from PHASE_WIDTHS.

    Behind the last cell the function is `beyond`.
    """
    polynomials, terms = _cell_polynomials(function), LATTICE.degree + 1
    parts, begin = [], [0]
    for stride in STRIDES:
        padded = np.zeros((terms, stride * (-(-LATTICE.cells // stride) + LATTICE.nodes)))
        padded[0] = beyond
        padded[:, : LATTICE.cells] = polynomials
        # (terms, n, phase) -> (phase, terms, n), the order of the formula above.
        parts.append(padded.reshape(terms, -1, stride).transpose(2, 0, 1).ravel())
        begin.append(begin[-1] + parts[-1].size)
    return np.concatenate(parts).astype(np.float32), np.array(begin[:-1])


def _cell_offsets(begin: Ints) -> Ints:
    """(steps, cells) where the constant coefficient of a cell stands in the tables."""
    cell, stride = np.arange(LATTICE.cells)[None, :], STRIDES[:, None]
    return np.ascontiguousarray(
        begin[:, None]
        + cell % stride * (LATTICE.degree + 1) * PHASE_WIDTHS[:, None]
        + cell // stride
    ).astype(np.uint32)


def _normal_on_lattice() -> tuple[Singles, Ints]:
    """For each stride exp(-z^2/2) at z = k h, and where k = 0 stands."""
    parts, zero, begin = [], [], 0
    for stride in STRIDES:
        k = np.arange(-(LATTICE.reach // stride), LATTICE.reach // stride + 1)
        parts.append(np.exp(-0.5 * (k * stride / LATTICE.cells_per_unit) ** 2))
        zero.append(begin + LATTICE.reach // stride)
        begin += k.size
    return np.concatenate(parts).astype(np.float32), np.array(zero)


def _log_cdf_derivatives() -> Singles:
    """(cells, 4) first derivative of log Phi, minus the second, the third, at every cell's middle.

    The last column is zero and makes a row 16 bytes. Minus the second derivative is r (x + r) with
    r = phi/Phi, which rounding must not take out of its range, 0 to 1.
    """
    x = LATTICE.low + (np.arange(LATTICE.cells) + 0.5) / LATTICE.cells_per_unit
    ratio = _ratio(x)
    curvature = np.clip(ratio * (x + ratio), 0.0, 1.0)
    third = curvature * (x + 2.0 * ratio) - ratio
    return np.ascontiguousarray(np.stack([ratio, curvature, third, 0.0 * x], axis=1)).astype(
        np.float32
    )


CDF_TABLE, _BEGIN = _by_phase(ndtr, 1.0)
RATIO_TABLE, _ = _by_phase(_ratio, 0.0)
CELL_OFFSETS = _cell_offsets(_BEGIN)
NORMAL_TABLE, NORMAL_ZERO = _normal_on_lattice()
DERIVATIVE_TABLE = _log_cdf_derivatives()
