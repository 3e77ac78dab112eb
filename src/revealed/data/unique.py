"""Equal decisions and equal rivals, counted: what the likelihood needs to see only once.

Equal decisions become one with a weight, and equal rivals within a decision become one with a
multiplicity. The likelihood is the same to the last digit of its sum; a grid world's thousands of
decisions are a few hundred.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from revealed._types import Floats, Ints
from revealed.data.decisions import Decisions
from revealed.kernels.choice_fast import RivalIndex
from revealed.kernels.deduplicate import count_multiplicity, find_first_equal


@dataclass(frozen=True, eq=False)
class UniqueDecisions:
    """The U different decisions with their weights, and what was chosen against what.

    unique: the different decisions. rival_minus_chosen: (R, K) each rival's row minus the chosen
    row, dense or sparse. offers: which rivals are each decision's, their multiplicities, and the
    decisions' weights. group: (U,) whose each different decision is.
    """

    unique: Decisions
    rival_minus_chosen: Any
    rival_index: RivalIndex
    group: Ints


def deduplicate_if_worthwhile(
    decisions: Decisions, group: Ints | None = None
) -> tuple[Decisions, Floats]:
    """The different decisions and how often each was made, where that halves them at least.

    Whether it does is seen from the first thousands. Otherwise the decisions as they are, with
    weights of one. group: as in `deduplicate`.
    """
    sample_size = 8192
    ones = np.ones(len(decisions))
    # one group where nobody is told apart
    group = np.zeros(len(decisions), dtype=np.int64) if group is None else group
    sample = decisions[:sample_size]
    found, _ = _find_distinct(sample, ones[:sample_size], group[:sample_size])
    # Counting costs a pass over the data, and pays when the decisions get half as many.
    if 2 * len(found) > len(sample):
        return decisions, ones
    where, weight = _find_distinct(decisions, ones, group)
    return decisions[where], weight


def deduplicate(
    decisions: Decisions, weights: Floats | None = None, group: Ints | None = None
) -> UniqueDecisions:
    """Count equal decisions and equal rivals.

    weights: (T,) how often each decision counts; default: once. group: (T,) whose a decision is,
    if that matters: equal decisions of different groups are different then.
    """
    group = np.zeros(len(decisions), dtype=np.int64) if group is None else group
    weights = np.ones(len(decisions)) if weights is None else weights
    where, weight = _find_distinct(decisions, weights, group)
    unique = decisions if len(where) == len(decisions) else decisions[where]
    rows = unique.rows
    if sp.issparse(rows):
        # Each row as a number for its content: equal rows have the same.
        _, content = np.unique(
            [_digest(rows, p, p + 1) for p in range(rows.shape[0])], return_inverse=True
        )
        compared = content.astype(np.float64)[:, None]
    else:
        compared = rows

    # Rivals that are counted with an equal one before them, and the chosen rows, have none.
    multiplicity = np.empty(rows.shape[0])
    count_multiplicity(
        np.ascontiguousarray(compared), unique.start, unique.chosen_row, multiplicity
    )
    rivals = np.flatnonzero(multiplicity)
    chosen = np.repeat(unique.chosen_row, unique.sizes)[rivals]
    rival_minus_chosen = rows[rivals] - rows[chosen]
    # Equal cells of rival and chosen cancel to stored zeros, which would cost time.
    if sp.issparse(rows):
        rival_minus_chosen = sp.csr_array(rival_minus_chosen)
        rival_minus_chosen.eliminate_zeros()
    # Where each decision's remaining rivals begin.
    start = np.searchsorted(rivals, unique.start).astype(np.int64)
    offers = RivalIndex(start, multiplicity[rivals], weight)
    return UniqueDecisions(unique, rival_minus_chosen, offers, group[where])


def find_kinds(
    decisions: Decisions, of_decision: Ints | None = None, of_row: Ints | None = None
) -> tuple[Ints, Ints]:
    """(U,) the first decision of every kind, and (T,) the kind of each decision.

    Two decisions are of one kind when their rows are equal, whatever was chosen. of_decision: (T,)
    numbers from zero on that must be equal too, such as the choice. of_row: (P,) the same of each
    row, such as the label of its action.
    """
    rows, start = decisions.rows, decisions.start
    if of_row is not None:
        column = of_row[:, None].astype(np.float64)
        # one more column; sparse rows have no stored zeros by position, so that zero counts too
        rows = (
            sp.csr_array(sp.hstack([rows, column + 1.0]))
            if sp.issparse(rows)
            else np.hstack([rows, column])
        )
    label = np.zeros(len(decisions), np.int64) if of_decision is None else of_decision
    where, kind = np.unique(_first_equal(rows, start, label), return_inverse=True)
    return where, kind


def find_label_kinds(decisions: Decisions, of_row: Ints, of_decision: Ints) -> tuple[Ints, Ints]:
    """As `find_kinds`, of decisions that offer the same labels, whatever their rows and order are.

    of_row: (P,) the label of each row, as a number. of_decision: (T,) numbers that must be equal
    too.
    """
    # labels in the same order in every decision
    order = np.lexsort((of_row, decisions.decision_of_row))
    column = of_row[order].astype(np.float64)[:, None]
    first = _first_equal(column, decisions.start, of_decision)
    where, kind = np.unique(first, return_inverse=True)
    return where, kind


def _find_distinct(decisions: Decisions, weights: Floats, group: Ints) -> tuple[Ints, Floats]:
    """(U,) the first decision of every kind, and the summed weight of its kind.

    weights: (T,). group: (T,) whose a decision is, as small whole numbers. Two decisions are of one
    kind when rows, choice and group are equal.
    """
    where, kind = find_kinds(decisions, choice_labels(decisions, group))
    return where, np.bincount(kind, weights, len(where)).astype(np.float64)


def choice_labels(decisions: Decisions, group: Ints | int = 0) -> Ints:
    """(T,) choice and group of each decision in one 64-bit number.

    group: small whole numbers, or one for all.
    """
    return np.asarray(decisions.chosen_row - decisions.start[:-1] + (group << 32))


def _first_equal(rows: Any, start: Ints, label: Ints) -> Ints:
    """(T,) for each decision the first one with the same rows and the same label."""
    count = len(label)
    if sp.issparse(rows):
        _, content = np.unique(
            [_digest(rows, low, high) for low, high in pairwise(start)], return_inverse=True
        )
        # One number a decision takes the place of its rows.
        rows, start = content.astype(np.float64)[:, None], np.arange(count + 1)
    first = np.empty(count, dtype=np.int64)
    # The kernel hashes the bits of rows that lie one after another.
    rows = np.ascontiguousarray(rows)
    # The hash table is at most half full.
    table = np.full(2 << count.bit_length(), -1)
    find_first_equal(rows, rows.view(np.uint64), start, label, table, first)
    return first


def _digest(rows: Any, low: int, high: int) -> bytes:
    """Sixteen bytes that stand for the content of rows low to high.

    A BLAKE2 hash: two different contents share one with probability 2^-128.
    """
    if not sp.issparse(rows):
        return hashlib.blake2b(rows[low:high].tobytes(), digest_size=16).digest()
    # Where cells are and what they hold; positions relative to the first row.
    first, last = rows.indptr[low], rows.indptr[high]
    parts = (np.diff(rows.indptr[low : high + 1]), rows.indices[first:last], rows.data[first:last])
    return hashlib.blake2b(b"".join(p.tobytes() for p in parts), digest_size=16).digest()
