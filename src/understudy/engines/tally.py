"""Decisions counted, not listed: what the likelihood needs to see only once.

Equal decisions become one with a weight, and equal rivals within a decision become one with a number of copies. The
likelihood is the same to the last digit of its sum; a grid world's thousands of decisions are a few hundred.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from understudy._arrays import Floats, Ints
from understudy.decisions import Decisions
from understudy.kernels._jit import jit
from understudy.kernels.collapsed import Offers


@dataclass(frozen=True, eq=False)
class Tally:
    """The different decisions with their weights, and what was chosen against what.

    unique: the different decisions. leads: (R, K) rival's row minus the chosen row, dense or sparse.
    """

    unique: Decisions
    leads: Any
    offers: Offers


def tally(decisions: Decisions, weights: Floats | None = None) -> Tally:
    """Count equal decisions and equal rivals; a decision counts once, or as much as its weight (T,) says."""
    where, weight = _distinct(decisions, np.ones(len(decisions)) if weights is None else weights)
    unique = decisions if len(where) == len(decisions) else decisions[where]
    rows = unique.rows
    if sp.issparse(rows):
        # Each row as a number for its content: equal rows have the same.
        _, content = np.unique([_digest(rows, p, p + 1) for p in range(rows.shape[0])], return_inverse=True)
        same = content.astype(np.float64)[:, None]
    else:
        same = rows
    copies = np.empty(rows.shape[0])
    count_copies(np.ascontiguousarray(same), unique.start, unique.taken, copies)
    rivals = np.flatnonzero(copies)
    chosen = np.repeat(unique.taken, unique.sizes)[rivals]
    leads = rows[rivals] - rows[chosen]
    if sp.issparse(rows):
        leads = sp.csr_array(leads)
        leads.eliminate_zeros()
    first = np.searchsorted(rivals, unique.start)
    return Tally(unique, leads, Offers(first.astype(np.int64), copies[rivals], weight))


def _distinct(decisions: Decisions, weights: Floats) -> tuple[Ints, Floats]:
    """The first of every kind of decision, and the weight of its kind."""
    kinds: dict[bytes, int] = {}
    where: list[int] = []
    weight: list[float] = []
    start = decisions.start.tolist()
    for t, chosen in enumerate((decisions.taken - decisions.start[:-1]).tolist()):
        key = _digest(decisions.rows, start[t], start[t + 1]) + chosen.to_bytes(8, "little")
        kind = kinds.setdefault(key, len(where))
        if kind == len(where):
            where.append(t)
            weight.append(0.0)
        weight[kind] += weights[t]
    return np.array(where), np.array(weight)


def _digest(rows: Any, low: int, high: int) -> bytes:
    """Sixteen bytes that stand for the content of rows low to high."""
    if not sp.issparse(rows):
        return hashlib.blake2b(rows[low:high].tobytes(), digest_size=16).digest()
    first, last = rows.indptr[low], rows.indptr[high]
    parts = (np.diff(rows.indptr[low : high + 1]), rows.indices[first:last], rows.data[first:last])
    return hashlib.blake2b(b"".join(p.tobytes() for p in parts), digest_size=16).digest()


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
