"""Decisions counted, not listed: what the likelihood needs to see only once.

Equal decisions become one with a weight, and equal rivals within a decision become one with a number of copies. The
likelihood is the same to the last digit of its sum; a grid world's thousands of decisions are a few hundred.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from understudy._arrays import Floats, Ints
from understudy.decisions import Decisions
from understudy.kernels.collapsed import Offers
from understudy.kernels.equal import count_copies, find_first

SOME = 8192  # decisions that show whether many are equal


@dataclass(frozen=True, eq=False)
class Tally:
    """The different decisions with their weights, and what was chosen against what.

    unique: the different decisions. leads: (R, K) rival's row minus the chosen row, dense or sparse. owner: of each different decision.
    """

    unique: Decisions
    leads: Any
    offers: Offers
    owner: Ints


def merged(decisions: Decisions) -> tuple[Decisions, Floats]:
    """The different decisions and how often each was made, where the first thousands say that it pays; else as they are."""
    some, ones, nobody = decisions[:SOME], np.ones(len(decisions)), np.zeros(len(decisions), dtype=np.int64)
    if 2 * len(_distinct(some, ones[:SOME], nobody[:SOME])[0]) > len(some):
        return decisions, ones
    where, weight = _distinct(decisions, ones, nobody)
    return decisions[where], weight


def tally(decisions: Decisions, weights: Floats | None = None, owner: Ints | None = None) -> Tally:
    """Count equal decisions and equal rivals; a decision counts once, or as much as its weight (T,) says.

    owner: (T,) whose a decision is, if that matters: equal decisions of different owners are different then.
    """
    owner = np.zeros(len(decisions), dtype=np.int64) if owner is None else owner
    where, weight = _distinct(decisions, np.ones(len(decisions)) if weights is None else weights, owner)
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
    return Tally(unique, leads, Offers(first.astype(np.int64), copies[rivals], weight), owner[where])


def _distinct(decisions: Decisions, weights: Floats, owner: Ints) -> tuple[Ints, Floats]:
    """The first of every kind of decision, and the weight of its kind."""
    rows, start = decisions.rows, decisions.start
    mark = decisions.taken - start[:-1] + (owner << 32)
    if sp.issparse(rows):
        _, content = np.unique([_digest(rows, low, high) for low, high in pairwise(start)], return_inverse=True)
        rows, start = content.astype(np.float64)[:, None], np.arange(len(decisions) + 1)
    first = np.empty(len(decisions), dtype=np.int64)
    rows = np.ascontiguousarray(rows)
    table = np.full(2 << len(decisions).bit_length(), -1)
    find_first(rows, rows.view(np.uint64), start, mark, table, first)
    where, kind = np.unique(first, return_inverse=True)
    return where, np.bincount(kind, weights, len(where)).astype(np.float64)


def _digest(rows: Any, low: int, high: int) -> bytes:
    """Sixteen bytes that stand for the content of rows low to high."""
    if not sp.issparse(rows):
        return hashlib.blake2b(rows[low:high].tobytes(), digest_size=16).digest()
    first, last = rows.indptr[low], rows.indptr[high]
    parts = (np.diff(rows.indptr[low : high + 1]), rows.indices[first:last], rows.data[first:last])
    return hashlib.blake2b(b"".join(p.tobytes() for p in parts), digest_size=16).digest()
