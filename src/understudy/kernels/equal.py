"""What is equal to what: decisions, and rivals within a decision."""

from typing import Any

import numpy as np

from understudy._arrays import Floats, Ints
from understudy.kernels._jit import jit


@jit
def find_first(rows: Floats, bits: Any, start: Ints, mark: Ints, table: Ints, first: Ints) -> None:
    """The first decision that offers the same rows as each and bears the same mark, which tells its choice.

    They are kept by the rows' bits (P, K) in a table of -1, whose size is a power of two and more than that of mark (T,).
    """
    count, places = mark.size, table.size
    zero = np.uint64(1) << np.uint64(63)  # of minus zero, which equals zero
    for t in range(count):
        code = np.uint64(mark[t]) + np.uint64(0x9E3779B97F4A7C15)
        for p in range(start[t], start[t + 1]):
            for k in range(rows.shape[1]):
                if bits[p, k] != zero:
                    code ^= bits[p, k]
                code *= np.uint64(0xFF51AFD7ED558CCD)
                code ^= code >> np.uint64(32)
        at = np.int64(code & np.uint64(places - 1))
        while table[at] >= 0 and not _equal(rows, start, mark, table[at], t):
            at = (at + 1) & (places - 1)
        if table[at] < 0:
            table[at] = t
        first[t] = table[at]


@jit
def _equal(rows: Floats, start: Ints, mark: Ints, one: int, other: int) -> bool:
    """Whether two decisions offer the same rows and bear the same mark."""
    size = start[one + 1] - start[one]
    if mark[one] != mark[other] or size != start[other + 1] - start[other]:
        return False
    for p in range(size):
        for k in range(rows.shape[1]):
            if rows[start[one] + p, k] != rows[start[other] + p, k]:
                return False
    return True


@jit
def count_copies(rows: Floats, start: Ints, taken: Ints, copies: Floats) -> None:
    """How many rivals of a decision have the row that first stands at p; zero for the others and the chosen one."""
    for t in range(taken.size):
        for p in range(start[t], start[t + 1]):
            copies[p] = 1.0
        copies[taken[t]] = 0.0
        for p in range(start[t], start[t + 1]):
            if copies[p] > 0.0:
                for other in range(p + 1, start[t + 1]):
                    if copies[other] > 0.0:
                        equal = True
                        for k in range(rows.shape[1]):
                            if rows[p, k] != rows[other, k]:
                                equal = False
                                break
                        if equal:
                            copies[p] += 1.0
                            copies[other] = 0.0
