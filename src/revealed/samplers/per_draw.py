"""Linear algebra of draws that does not depend on how many of them are at hand.

A run is cut into chunks by the clock. `draws @ matrix.T` hands a whole chunk to the linear algebra
library, which picks a routine, and with it an order of summation, by the number of rows: the same
draw would then differ in its last bit from one run to the next.
"""

from __future__ import annotations

import numpy as np

from revealed._types import Floats


def multiply_draws(draws: Floats, matrix: Floats) -> Floats:
    """(n, K) matrix @ draw for each of draws (n, D), with matrix (K, D).

    A product of its own for every draw, of the same shapes whatever n.
    """
    # one row times a matrix, stacked: some microseconds a draw, beside an iteration's milliseconds
    return np.asarray(np.matmul(draws[:, None, :], matrix.T)[:, 0, :])
