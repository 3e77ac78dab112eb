"""Skewed numbers from symmetric ones, coordinate by coordinate, with the Jacobian of the map.

For a log density -|x|^2 / 2 + C[x, x, x] / 6 and a vector z, coordinate k given those before it is

    x_k = shift_k + sum over i, j < k of C_ijk x_i x_j / 2 + exp(s_k) skew(z_k),
    s_k = sum over i < k of C_ikk x_i / 2,

with `skew` the curve of `skew_transform.py`. The map is triangular and increasing in each z_k, so
that it has an inverse wherever it goes and the logarithm of its Jacobian is a sum:

    log |dx / dz| = sum over k of s_k + log skew'(z_k).
"""

import math
from typing import NamedTuple

import numpy as np

from revealed._types import Floats
from revealed.kernels._compile import compiled
from revealed.kernels.skew_transform import skew_derivative_scalar, skew_scalar


class SkewedBounds(NamedTuple):
    """Beyond these third derivatives say nothing any more, and numbers might overflow.

    log_scale: of s_k, up or down. centre: of what x_k has beside the curve, up or down.
    """

    log_scale: float = 1.0
    centre: float = 10.0


BOUNDS = SkewedBounds()


@compiled
def write_skewed(
    third: Floats, amount: Floats, shift: Floats, z: Floats, x: Floats, log_jacobian: Floats
) -> None:
    """Write the skewed x (D, n) of z (D, n), and log |dx / dz| (n,).

    third: (D, D, D) the C of the module's formula. amount: (D,) of each coordinate's curve. shift:
    (D,) what is added to each.
    """
    width, count = z.shape
    # some vectors at a time, in the fastest memory, each operation on all of them
    together = 64
    inner, centre, log_scale = np.empty(together), np.empty(together), np.empty(together)
    for low in range(0, count, together):
        size = min(together, count - low)
        for p in range(size):
            log_jacobian[low + p] = 0.0
        for k in range(width):
            for p in range(size):
                centre[p] = shift[k]
                log_scale[p] = 0.0
            for i in range(k):
                # products of two coordinates stand once, but for squares, which count half
                square = 0.5 * third[k, i, i]
                for p in range(size):
                    inner[p] = square * x[i, low + p]
                for j in range(i):
                    product = third[k, i, j]
                    for p in range(size):
                        inner[p] += product * x[j, low + p]
                slope = 0.5 * third[k, k, i]
                for p in range(size):
                    centre[p] += inner[p] * x[i, low + p]
                    log_scale[p] += slope * x[i, low + p]
            for p in range(size):
                # kept within bounds; the Jacobian is that of the map with its bounds
                s = min(max(log_scale[p], -BOUNDS.log_scale), BOUNDS.log_scale)
                c = min(max(centre[p], -BOUNDS.centre), BOUNDS.centre)
                x[k, low + p] = c + math.exp(s) * skew_scalar(z[k, low + p], amount[k])
                log_jacobian[low + p] += s + math.log(
                    skew_derivative_scalar(z[k, low + p], amount[k])
                )
