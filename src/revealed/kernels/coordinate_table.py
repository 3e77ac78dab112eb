"""Coordinates of a noise: standard normal numbers in place of what is unknown of it.

    parameter = m(z),   m increasing,   z ~ N(0, 1)

The parameter then has the prior of which m is the quantile function, of normal quantiles. A table
has m and its slope at evenly spaced z.
"""

from typing import NamedTuple

import numpy as np

from revealed._types import Floats
from revealed.kernels._compile import compiled, compiled_within


class CoordinateTable(NamedTuple):
    """Where m(z) and its slope are written down: from -reach to reach, so many for each one of z.

    Between two of them m is a cubic polynomial, beyond the last it is a straight line. With 16 for
    each unit the density of a rate of lapses is right to a millionth.
    """

    reach: int = 9
    density: int = 16

    @property
    def nodes(self) -> Floats:
        """The places z."""
        return np.linspace(-self.reach, self.reach, 2 * self.reach * self.density + 1)


TABLE = CoordinateTable()


@compiled_within
def read_table(table: Floats, z: float) -> tuple[float, float, float]:
    """m(z), and its first and second derivative; table (2, n) has m and its slope at the nodes."""
    # which two nodes z lies between; beyond the first and the last there is one
    last = table.shape[1] - 2
    place = (z + TABLE.reach) * TABLE.density
    if place <= 0.0 or place >= last + 1.0:
        end = 0 if place <= 0.0 else last + 1
        distance = (place - end) / TABLE.density
        return table[0, end] + table[1, end] * distance, table[1, end], 0.0
    i = min(int(place), last)
    u, width = place - i, 1.0 / TABLE.density
    # Hermite's polynomial: both values, both slopes
    low, high = table[0, i], table[0, i + 1]
    slope_low, slope_high = width * table[1, i], width * table[1, i + 1]
    a = 2.0 * (low - high) + slope_low + slope_high
    b = 3.0 * (high - low) - 2.0 * slope_low - slope_high
    # and its derivatives, each by Horner's rule
    value = low + u * (slope_low + u * (b + u * a))
    first = (slope_low + u * (2.0 * b + 3.0 * u * a)) / width
    return value, first, (2.0 * b + 6.0 * u * a) / width**2


def table_values(table: Floats, z: Floats) -> Floats:
    """(3, ...) m and its first and second derivative at every one of z, of any shape."""
    out = np.empty((3, np.size(z)))
    _write_values(table, np.ascontiguousarray(z, dtype=np.float64).ravel(), out)
    return out.reshape(3, *np.shape(z))


@compiled
def _write_values(table: Floats, z: Floats, out: Floats) -> None:
    """Write them into out (3, n), for z (n,)."""
    for i in range(z.size):
        out[0, i], out[1, i], out[2, i] = read_table(table, z[i])
