"""From whitened coordinates x to the value v, and back: v = centre + scale * skew(unwhiten x).

Where blocks sum to zero, the part of v in the span of their constants is not identified, and kept
apart from it.
"""

from typing import NamedTuple

from revealed._types import Floats
from revealed.kernels._compile import compiled_internal
from revealed.kernels.skew_transform import skew_scalar, unskew_scalar
from revealed.kernels.vectors import dot


class TransformArrays(NamedTuple):
    """v = centre + scale * skew(unwhiten x), and x = whiten unskew((v - centre) / scale).

    centre, scale, skew: (K,). unwhiten: (K, D). whiten: (D, K). constants: (K, L) unit columns of
    sum-to-zero blocks; the part of v in their span is not identified and kept apart, as (L,)
    `block_constants`.
    """

    centre: Floats
    scale: Floats
    skew: Floats
    unwhiten: Floats
    whiten: Floats
    constants: Floats


@compiled_internal
def value_from_coordinates(
    transform: TransformArrays, x: Floats, v: Floats, block_constants: Floats
) -> None:
    """Write the value v (K,) of the coordinates x (D,), and the constants of its blocks (L,).

    v = centre + scale * skew(unwhiten x), minus its part in the span of the constants.
    """
    for k in range(v.size):
        v[k] = transform.centre[k] + transform.scale[k] * skew_scalar(
            dot(transform.unwhiten[k], x), transform.skew[k]
        )
    # The constants are orthonormal columns: project on one after the other, and take it out.
    for block in range(block_constants.size):
        block_constants[block] = 0.0
        for k in range(v.size):
            block_constants[block] += transform.constants[k, block] * v[k]
        for k in range(v.size):
            v[k] -= transform.constants[k, block] * block_constants[block]


@compiled_internal
def add_constants(transform: TransformArrays, v: Floats, block_constants: Floats) -> None:
    """Add the constants of its blocks (L,) to v (K,), in place."""
    for block in range(block_constants.size):
        for k in range(v.size):
            v[k] += transform.constants[k, block] * block_constants[block]


@compiled_internal
def coordinates_from_value(
    transform: TransformArrays, v: Floats, block_constants: Floats, x: Floats
) -> None:
    """Write the coordinates x (D,) of v (K,) and the constants of its blocks (L,).

    x = whiten unskew((v + constants - centre) / scale), the inverse of `value_from_coordinates`.
    """
    x[:] = 0.0
    for k in range(v.size):
        value = v[k]
        for block in range(block_constants.size):
            value += transform.constants[k, block] * block_constants[block]
        w = unskew_scalar((value - transform.centre[k]) / transform.scale[k], transform.skew[k])
        for d in range(x.size):
            x[d] += transform.whiten[d, k] * w
