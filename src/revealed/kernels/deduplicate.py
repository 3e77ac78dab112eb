"""Equal decisions, and equal rivals within a decision: found by hashing and by comparison.

Collapsed moves need each different decision once, with a weight, and each different rival once,
with a multiplicity: the likelihood is the same, and often ten times cheaper.
"""

from typing import Any

import numpy as np

from revealed._types import Floats, Ints
from revealed.kernels._compile import compiled


@compiled
def find_first_equal(
    rows: Floats, bits: Any, start: Ints, label: Ints, table: Ints, first: Ints
) -> None:
    """Write for each decision the first one with the same rows and the same label into first (T,).

    label: (T,) which of its rows a decision chose, and whose it is. bits: (P, K) the rows as
    unsigned integers. table: -1 everywhere; its size is a power of two and larger than T. An open
    hash table with linear probing, whose entries are decisions.
    """
    count, slots = label.size, table.size
    minus_zero = np.uint64(1) << np.uint64(63)  # its bits differ from zero's, which it equals
    for t in range(count):
        # Multiply-and-shift hashing of all bits; minus zero is taken for zero. The constants are
        # those of splitmix64 (the golden ratio) and of MurmurHash3's finaliser.
        code = np.uint64(label[t]) + np.uint64(0x9E3779B97F4A7C15)
        for p in range(start[t], start[t + 1]):
            for k in range(rows.shape[1]):
                if bits[p, k] != minus_zero:
                    code ^= bits[p, k]
                code *= np.uint64(0xFF51AFD7ED558CCD)
                code ^= code >> np.uint64(32)
        # The slot of an equal decision, or the first empty one.
        slot = np.int64(code & np.uint64(slots - 1))
        while table[slot] >= 0 and not _are_equal(rows, start, label, table[slot], t):
            slot = (slot + 1) & (slots - 1)
        if table[slot] < 0:
            table[slot] = t
        first[t] = table[slot]


@compiled
def _are_equal(rows: Floats, start: Ints, label: Ints, one: int, other: int) -> bool:
    """Whether two decisions have the same rows in the same order, and the same label."""
    size = start[one + 1] - start[one]
    if label[one] != label[other] or size != start[other + 1] - start[other]:
        return False
    for p in range(size):
        for k in range(rows.shape[1]):
            if rows[start[one] + p, k] != rows[start[other] + p, k]:
                return False
    return True


@compiled
def count_multiplicity(rows: Floats, start: Ints, chosen_row: Ints, multiplicity: Floats) -> None:
    """Write how many rivals of a decision share a row into multiplicity (P,), at the first of them.

    Zero for the others and for the chosen row itself. A rival with the row of the chosen action
    still counts: the choice between the two was made by the noise.
    """
    for t in range(chosen_row.size):
        for p in range(start[t], start[t + 1]):
            multiplicity[p] = 1.0
        multiplicity[chosen_row[t]] = 0.0
        # Compare every remaining rival with those behind it, and add the equal ones to it.
        for p in range(start[t], start[t + 1]):
            if multiplicity[p] > 0.0:
                for other in range(p + 1, start[t + 1]):
                    if multiplicity[other] > 0.0:
                        equal = True
                        for k in range(rows.shape[1]):
                            if rows[p, k] != rows[other, k]:
                                equal = False
                                break
                        if equal:
                            multiplicity[p] += 1.0
                            multiplicity[other] = 0.0
