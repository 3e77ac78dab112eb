"""The standard normal: log Phi, phi/Phi, quantiles, and draws that are truncated.

Everything in this model leans on log Phi, so it is one polynomial table: degree 5 on cells 1/16
wide between -12 and 8.5, interpolating at Chebyshev points; its error is below 1e-13 (3e-11 in the
ratio phi/Phi, the inverse Mills ratio). Left of the table the continued fraction

    phi(x) / Phi(x) = y + 1/(y + 2/(y + 3/(y + ...))),   y = -x

has converged to the last bit after a dozen terms; right of it log Phi is zero in double precision.
The inverse, from log Phi(x) to x, is a table of the same kind in -log(-log Phi). Truncated draws
are those of the paper's appendix on the MH kernel.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from revealed._types import Floats
from revealed.kernels._compile import compiled, inlined_formula
from revealed.kernels.vectors import multiply_add

LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)  # log of the normal density's constant


class TableGrid(NamedTuple):
    """Where the table of log Phi begins and ends, and how fine it is.

    end: a hair inside the table, so that rounding cannot step over its last cell.
    """

    low: float
    high: float
    cells_per_unit: float
    degree: int
    end: float


# The range is set by double precision: below -12 the continued fraction is exact after 12 terms,
# above 8.5 log Phi is -1e-17. Cells and degree were chosen by measured error (module docstring):
# with half as many cells it would be 2^6 times as large.
GRID = TableGrid(low=-12.0, high=8.5, cells_per_unit=16.0, degree=5, end=8.5 - 1e-9)


def _chebyshev_table(function: Callable[[Floats], Floats], low: float, high: float) -> Floats:
    """(cells, degree + 1) polynomial coefficients of a function between low and high, cell by cell.

    In u, the position within a cell from -1/2 to 1/2, by interpolation at Chebyshev points.
    """
    terms = GRID.degree + 1
    points = 0.5 * np.cos((2 * np.arange(terms) + 1) * np.pi / (2 * terms))
    cells = math.ceil((high - low) * GRID.cells_per_unit)
    middles = low + (np.arange(cells) + 0.5) / GRID.cells_per_unit
    values = function(middles[:, None] + points[None, :] / GRID.cells_per_unit)
    powers = np.vander(points, terms, increasing=True)
    return np.ascontiguousarray(np.linalg.solve(powers, values.T).T)


class QuantileRange(NamedTuple):
    """The log Phi between which the inverse is a table, and -log(-log Phi) at its left end."""

    min_log_cdf: float
    max_log_cdf: float
    low: float


# Left of min_log_cdf Newton's method takes over; 1 - Phi is below 1e-16 at max_log_cdf, where
# doubles cannot tell Phi from one.
QUANTILE = QuantileRange(
    min_log_cdf=float(log_ndtr(GRID.low)),
    max_log_cdf=-1e-16,
    low=-math.log(-float(log_ndtr(GRID.low))),
)
LOG_CDF_TABLE = _chebyshev_table(log_ndtr, GRID.low, GRID.high)
QUANTILE_TABLE = _chebyshev_table(
    lambda y: ndtri_exp(-np.exp(-y)),
    QUANTILE.low,
    -math.log(-QUANTILE.max_log_cdf) + 1.0 / GRID.cells_per_unit,
)


@inlined_formula
def _evaluate_cell(table: Floats, i: np.uint64, u: float) -> float:
    """The polynomial of cell i at the position u within it, by Horner's rule."""
    value: float = table[i, GRID.degree]
    for k in range(GRID.degree - 1, -1, -1):
        value = multiply_add(u, value, table[i, k])
    return value


@inlined_formula
def _tail_ratio(x: float) -> float:
    """phi(x) / Phi(x) for x <= -12, by the continued fraction, from its twelfth term inwards."""
    y = -x
    tail = 0.0
    for k in range(12, 0, -1):
        tail = k / (y + tail)
    return y + tail


@inlined_formula
def log_cdf(x: float) -> float:
    """Log Phi(x).

    In the left tail log phi(x) - log(phi(x) / Phi(x)), else Horner's rule on the cell of x.
    """
    if x >= GRID.end:
        return 0.0
    if x <= GRID.low:
        return -0.5 * x * x - LOG_ROOT_TWO_PI - math.log(_tail_ratio(x))
    y = (x - GRID.low) * GRID.cells_per_unit
    i = np.uint64(np.int64(y))  # unsigned: no test for a negative index
    u = y - np.int64(y) - 0.5
    return _evaluate_cell(LOG_CDF_TABLE, i, u)


@inlined_formula
def log_cdf_and_ratio(x: float) -> tuple[float, float]:
    """Log Phi(x), and its derivative phi(x) / Phi(x): the table's polynomial and its derivative."""
    if x >= GRID.end:
        return 0.0, 0.0
    if x <= GRID.low:
        ratio = _tail_ratio(x)
        return -0.5 * x * x - LOG_ROOT_TWO_PI - math.log(ratio), ratio
    y = (x - GRID.low) * GRID.cells_per_unit
    i = np.uint64(np.int64(y))  # unsigned: no test for a negative index
    u = y - np.int64(y) - 0.5
    # Horner's rule for the polynomial and its derivative together.
    value, slope = LOG_CDF_TABLE[i, GRID.degree], 0.0
    for k in range(GRID.degree - 1, -1, -1):
        slope = multiply_add(u, slope, value)
        value = multiply_add(u, value, LOG_CDF_TABLE[i, k])
    # The slope is in u; a unit of x is so many cells.
    return value, GRID.cells_per_unit * slope


@inlined_formula
def quantile_from_log_cdf(p: float) -> float:
    """The x with log Phi(x) = p, to 1e-10."""
    # In the left tail Newton's method on log Phi, from the first term of its expansion,
    # log Phi(x) = -x^2/2 - log(-x) - log(2 pi)/2; four steps reach the last digit.
    if p < QUANTILE.min_log_cdf:
        x = -math.sqrt(-2.0 * (p + LOG_ROOT_TWO_PI) - math.log(-2.0 * p))
        for _ in range(4):
            ratio = _tail_ratio(x)
            x -= (-0.5 * x * x - LOG_ROOT_TWO_PI - math.log(ratio) - p) / ratio
        return x
    y = (-math.log(-min(p, QUANTILE.max_log_cdf)) - QUANTILE.low) * GRID.cells_per_unit
    i = np.uint64(np.int64(y))  # unsigned: no test for a negative index
    u = y - np.int64(y) - 0.5
    return _evaluate_cell(QUANTILE_TABLE, i, u)


class TruncationLimits(NamedTuple):
    """Where truncated draws leave rejection.

    max_proposals: of a loop, after which the answer comes by inversion. One in twenty or more is
    accepted, so that so many refusals never come by chance; they end a loop whatever its numbers
    are. far_tail: a bound below which a truncated normal is an exponential to the last digit;
    squares of the bound would in the end be infinite.
    """

    max_proposals: int = 10_000
    far_tail: float = -1e8


TRUNCATION = TruncationLimits()


@compiled
def draw_below(rng: np.random.Generator, bound: float) -> float:
    """A draw of a standard normal conditioned to lie below `bound`; NaN where that is NaN.

    Plain rejection where the bound leaves 30 % or more of the mass, else rejection from a shifted
    exponential of the best rate (Robert 1995).
    """
    # written so that a NaN comes here too, and goes out again
    if not bound > TRUNCATION.far_tail:
        return bound + rng.standard_exponential() / bound
    if bound > -0.5:
        for _ in range(TRUNCATION.max_proposals):
            z = rng.standard_normal()
            if z <= bound:
                return z
    else:
        # With rate a, density ratio exp(-(z + a)^2 / 2) is the probability to accept; an
        # exponential number compared with its logarithm is such an event.
        rate = 0.5 * (math.sqrt(bound * bound + 4.0) - bound)
        for _ in range(TRUNCATION.max_proposals):
            z = bound - rng.standard_exponential() / rate
            if rng.standard_exponential() >= 0.5 * (z + rate) ** 2:
                return z
    return _below_by_inversion(rng.standard_exponential(), bound)


@compiled
def _below_by_inversion(e: float, bound: float) -> float:
    """The number below `bound` that leaves exp(-e) of the standard normal's mass there."""
    return quantile_from_log_cdf(log_cdf(bound) - e)


@compiled
def draw_between(rng: np.random.Generator, low: float, high: float) -> float:
    """A draw of a standard normal conditioned to lie between `low` and `high`.

    By the rejection that suits the interval: from the normal, from an exponential, or uniform.
    Where low >= high, as rounding may leave it, the answer is low; so it is where one is NaN.
    """
    if not low < high:
        return low
    # Mirror an interval that lies below zero, so that the mass is always next to `low`.
    if high < 0.0:
        return -draw_between(rng, -high, -low)
    # The interval holds a quarter of the mass or more: draw normals until one falls into it.
    if high - low > 2.5 if low < 0.0 else low < 0.5 and high - low > 1.0:
        for _ in range(TRUNCATION.max_proposals):
            z = rng.standard_normal()
            if low <= z <= high:
                return z
    width = high - low
    # Far in the tail: a truncated exponential that falls as the normal does at `low`.
    if low * width > 1.0:
        for _ in range(TRUNCATION.max_proposals):
            z = low - math.log1p(rng.random() * math.expm1(-low * width)) / low
            if rng.standard_exponential() >= 0.5 * (z - low) ** 2:
                return z
    # A narrow interval: uniform, accepted by the density against its maximum.
    nearest = max(low, 0.0)
    for _ in range(TRUNCATION.max_proposals):
        z = low + width * rng.random()
        if rng.standard_exponential() >= 0.5 * (z * z - nearest * nearest):
            return z
    return _between_by_inversion(rng.random(), low, high)


@compiled
def _between_by_inversion(u: float, low: float, high: float) -> float:
    """The u-th part of the way, in mass, from `low` to `high` of a standard normal.

    From the right, where its mass beyond either end is not one to the last digit.
    """
    beyond_low, beyond_high = log_cdf(-low), log_cdf(-high)
    share = (1.0 - u) + u * math.exp(beyond_high - beyond_low)
    return min(max(-quantile_from_log_cdf(beyond_low + math.log(share)), low), high)
