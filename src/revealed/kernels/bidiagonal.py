"""Many tridiagonal systems at once: paths of one coordinate, nodes of a path one after the other.

A precision A has diagonal a_n and coupling c_n between node n and the one before it, zero at the
first node of a path. Its Cholesky factor L has two diagonals: d_n, and l_n = c_n / d_{n-1} left of
it. All of it is linear in the number of nodes, and none of it needs more than two numbers of the
node before.
"""

import math

from revealed._types import Floats
from revealed.kernels._compile import compiled


@compiled
def factorise_bidiagonal(
    diagonal: Floats, coupling: Floats, inverse: Floats, lower: Floats
) -> float:
    """Write 1 / d and l of the Cholesky factor; returns the log determinant of the precision.

    Minus infinity where it is not positive definite.
    """
    total = 0.0
    for n in range(diagonal.size):
        # a coupling of zero begins a new path: nothing of the node before is left
        lower[n] = coupling[n] * inverse[n - 1] if n > 0 else 0.0
        pivot = diagonal[n] - lower[n] * lower[n]
        # written so that a NaN is refused too
        if not pivot > 0.0:
            return -math.inf
        total += math.log(pivot)
        # solving divides by d many times, and multiplies by this
        inverse[n] = 1.0 / math.sqrt(pivot)
    return total


@compiled
def solve_factor(inverse: Floats, lower: Floats, b: Floats, x: Floats) -> None:
    """Write L^-1 b to x, which may be b.

    From the first node to the last.
    """
    before = 0.0
    # d_n x_n = b_n - l_n x_{n-1}
    for n in range(b.size):
        before = (b[n] - lower[n] * before) * inverse[n]
        x[n] = before


@compiled
def solve_factor_transposed(inverse: Floats, lower: Floats, b: Floats, x: Floats) -> None:
    """Write L^-T b to x, which may be b.

    From the last node to the first.
    """
    after, coupling = 0.0, 0.0
    # d_n x_n = b_n - l_{n+1} x_{n+1}
    for n in range(b.size - 1, -1, -1):
        after = (b[n] - coupling * after) * inverse[n]
        x[n] = after
        coupling = lower[n]


@compiled
def write_variances(inverse: Floats, lower: Floats, variance: Floats) -> None:
    """Write the diagonal of A^-1.

    Backwards, from that of the node after: a path given its next node is one step of a walk.
    """
    after, coupling = 0.0, 0.0
    # var x_n = (1 + l_{n+1}^2 var x_{n+1}) / d_n^2
    for n in range(inverse.size - 1, -1, -1):
        after = inverse[n] * inverse[n] * (1.0 + coupling * coupling * after)
        variance[n] = after
        coupling = lower[n]


@compiled
def multiply_precision(diagonal: Floats, coupling: Floats, x: Floats, y: Floats) -> None:
    """Write A x to y, which must be another array."""
    for n in range(x.size):
        total = diagonal[n] * x[n]
        # the node before couples as this row says, the node after as its own does
        if n > 0:
            total += coupling[n] * x[n - 1]
        if n + 1 < x.size:
            total += coupling[n + 1] * x[n + 1]
        y[n] = total
