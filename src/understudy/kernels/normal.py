"""The standard normal: log Phi, phi/Phi, and draws cut off from above (paper, appendix on the MH kernel).

Everything in this model leans on log Phi, so it is one polynomial table: degree 5 on cells 1/16 wide between -12
and 8.5, interpolating at Chebyshev points; its error is below 1e-13 (3e-11 in the ratio). Left of the table the continued fraction

    phi(x) / Phi(x) = y + 1/(y + 2/(y + 3/(y + ...))),   y = -x

has converged to the last bit after a dozen terms; right of it log Phi is zero in double precision. The way back,
from log Phi(x) to x, is a table of the same kind in -log(-log Phi).
"""

import math
from collections.abc import Callable

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from understudy._arrays import Floats
from understudy.kernels._jit import formula, jit

LOW, HIGH, CELLS, DEGREE = -12.0, 8.5, 16.0, 5
END = HIGH - 1e-9  # a hair inside the table, so that rounding cannot step over its last cell
LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)


def _table(function: Callable[[Floats], Floats], low: float, high: float) -> Floats:
    """(cells, DEGREE + 1) coefficients of a function in u, the place within a cell from -1/2 to 1/2."""
    points = 0.5 * np.cos((2 * np.arange(DEGREE + 1) + 1) * np.pi / (2 * (DEGREE + 1)))
    middles = low + (np.arange(math.ceil((high - low) * CELLS)) + 0.5) / CELLS
    values = function(middles[:, None] + points[None, :] / CELLS)
    powers = np.vander(points, DEGREE + 1, increasing=True)
    return np.ascontiguousarray(np.linalg.solve(powers, values.T).T)


TABLE = _table(log_ndtr, LOW, HIGH)
FAR, NEAR = float(log_ndtr(LOW)), -1e-16  # log Phi at the ends of the way back
BACK_LOW = -math.log(-FAR)
BACK = _table(lambda y: ndtri_exp(-np.exp(-y)), BACK_LOW, -math.log(-NEAR) + 1.0 / CELLS)


@formula
def _far_ratio(x: float) -> float:
    """phi(x) / Phi(x) for x <= -12, by the continued fraction."""
    y = -x
    tail = 0.0
    for k in range(12, 0, -1):
        tail = k / (y + tail)
    return y + tail


@formula
def log_cdf(x: float) -> float:
    """Log Phi(x)."""
    if x >= END:
        return 0.0
    if x <= LOW:
        return -0.5 * x * x - LOG_ROOT_TWO_PI - math.log(_far_ratio(x))
    y = (x - LOW) * CELLS
    i = int(y)
    u = y - i - 0.5
    value: float = TABLE[i, 0] + u * (
        TABLE[i, 1] + u * (TABLE[i, 2] + u * (TABLE[i, 3] + u * (TABLE[i, 4] + u * TABLE[i, 5])))
    )
    return value


@formula
def log_cdf_and_ratio(x: float) -> tuple[float, float]:
    """Log Phi(x), and its derivative phi(x) / Phi(x)."""
    if x >= END:
        return 0.0, 0.0
    if x <= LOW:
        ratio = _far_ratio(x)
        return -0.5 * x * x - LOG_ROOT_TWO_PI - math.log(ratio), ratio
    y = (x - LOW) * CELLS
    i = int(y)
    u = y - i - 0.5
    value = TABLE[i, 0] + u * (
        TABLE[i, 1] + u * (TABLE[i, 2] + u * (TABLE[i, 3] + u * (TABLE[i, 4] + u * TABLE[i, 5])))
    )
    slope = TABLE[i, 1] + u * (
        2.0 * TABLE[i, 2] + u * (3.0 * TABLE[i, 3] + u * (4.0 * TABLE[i, 4] + u * 5.0 * TABLE[i, 5]))
    )
    return value, CELLS * slope


@formula
def quantile_of_log(p: float) -> float:
    """X with log Phi(x) = p, to 1e-10; left of the tables by Newton's steps from the first term of the expansion."""
    if p < FAR:
        x = -math.sqrt(-2.0 * (p + LOG_ROOT_TWO_PI) - math.log(-2.0 * p))
        for _ in range(4):
            ratio = _far_ratio(x)
            x -= (-0.5 * x * x - LOG_ROOT_TWO_PI - math.log(ratio) - p) / ratio
        return x
    y = (-math.log(-min(p, NEAR)) - BACK_LOW) * CELLS
    i = np.uint64(np.int64(y))
    u = y - np.int64(y) - 0.5
    value: float = BACK[i, 0] + u * (
        BACK[i, 1] + u * (BACK[i, 2] + u * (BACK[i, 3] + u * (BACK[i, 4] + u * BACK[i, 5])))
    )
    return value


@jit
def draw_below(rng: np.random.Generator, bound: float) -> float:
    """A standard normal conditioned to lie below `bound`: plain rejection, or an exponential in the tail."""
    if bound > -0.5:
        while True:
            z = rng.standard_normal()
            if z <= bound:
                return z
    rate = 0.5 * (math.sqrt(bound * bound + 4.0) - bound)
    while True:
        z = bound - rng.standard_exponential() / rate
        if rng.standard_exponential() >= 0.5 * (z + rate) ** 2:
            return z


@jit
def draw_between(rng: np.random.Generator, low: float, high: float) -> float:
    """A standard normal conditioned to lie between `low` and `high`, by the rejection that suits the interval."""
    if not low < high:
        return low
    if high < 0.0:
        return -draw_between(rng, -high, -low)
    if high - low > 2.5 if low < 0.0 else low < 0.5 and high - low > 1.0:  # holds a quarter of the mass or more
        while True:
            z = rng.standard_normal()
            if low <= z <= high:
                return z
    width = high - low
    if low * width > 1.0:  # out in the tail: an exponential that falls as the normal does at low
        while True:
            z = low - math.log1p(rng.random() * math.expm1(-low * width)) / low
            if rng.standard_exponential() >= 0.5 * (z - low) ** 2:
                return z
    nearest = max(low, 0.0)
    while True:
        z = low + width * rng.random()
        if rng.standard_exponential() >= 0.5 * (z * z - nearest * nearest):
            return z
