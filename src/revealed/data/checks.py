"""What callers give as decisions, checked and in the types of `Decisions`."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from revealed._types import Ints, Labels
from revealed._validation import NUMBERS


def check_flat(what: str, values: Any) -> Labels:
    """The values as an array, a copy.

    Of whatever type numpy finds: labels may be numbers or text. Lists of different lengths inside
    the list are refused; numpy's own message about them would help nobody.
    """
    try:
        return np.array(values)
    except ValueError:  # numpy's word for lists of different lengths inside the list
        raise ValueError(f"{what} must be a flat list, not a list of lists") from None


def check_whole(what: str, given: Labels) -> Ints:
    """The numbers as int64; floats are taken where they are whole, as those of a table may be."""
    # Beyond 2^62 in size a float may not be the number that was meant.
    if (
        given.dtype.kind not in "iuf"
        or not ((np.floor(given) == given) & (given < 2**62) & (given > -(2**62))).all()
    ):
        raise ValueError(f"{what} must be whole numbers")
    return given.astype(np.int64)


def check_starts(start: Any) -> Ints:
    """(T + 1,) where each decision's rows begin.

    From 0, never decreasing, with T at least one. Two equal positions are a decision without
    actions, which `Decisions` refuses by its id.
    """
    given = check_flat("start", start)
    if given.ndim != 1 or given.size == 0:
        raise ValueError(
            "start must be a list of positions: where each decision's rows begin, "
            "then the number of rows"
        )
    # One position is the end of no rows at all.
    if given.size == 1:
        raise ValueError("there are no decisions; at least one is needed")
    positions = check_whole("start", given)
    # Otherwise some rows would belong to no decision, or to two.
    if positions[0] != 0 or (np.diff(positions) < 0).any():
        raise ValueError("start must begin with 0 and never decrease")
    return positions


def check_rows(rows: Any) -> Any:
    """(P, K) rows with K at least one: a C-ordered float array, or a read-only CSR array.

    Always a copy, so that nobody can change the decisions through what was given.
    """
    if sp.issparse(rows):
        matrix = sp.csr_array(rows, dtype=np.float64, copy=True)
        # Cells given twice are added up, so that equal rows have equal bytes.
        matrix.sum_duplicates()
        # A sparse array has no flag of its own: its three arrays are made read-only.
        for part in (matrix.data, matrix.indices, matrix.indptr):
            part.flags.writeable = False
        given: Any = matrix
    else:
        try:
            # C order, because kernels walk along rows.
            given = np.array(rows, dtype=np.float64, order="C")
        except (TypeError, ValueError):
            raise ValueError(
                "rows must be a table of numbers, one row an action, all of the same length"
            ) from None
    if given.ndim != 2 or given.shape[1] == 0:
        raise ValueError(
            f"rows must be a (P, K) table with at least one column; it has shape {given.shape}"
        )
    return given


def check_labels(what: str, labels: Any, count: int, item: str) -> Labels:
    """(count,) labels; `item` says what each of them belongs to, a row or a decision."""
    # Labels may be anything numpy can hold; only their number is checked.
    given = check_flat(what, labels)
    if given.shape != (count,):
        raise ValueError(
            f"{what} has shape {given.shape}, but there are {count} {item}s; "
            f"give one label for each {item}"
        )
    return given


def find_bad_row(rows: Any) -> tuple[int, str] | None:
    """The first row with a number that cannot be computed with, and what is wrong; or None.

    In a sparse matrix only stored cells are looked at; the others are zero.
    """
    # Coordinates, because a stored number must be traced back to its row.
    cells = sp.coo_array(rows) if sp.issparse(rows) else None
    numbers = rows if cells is None else cells.data
    # Written so that a NaN is among them.
    bad = np.nonzero(~(np.abs(numbers) <= NUMBERS.largest))
    if not bad[0].size:
        return None
    worst = float(numbers[tuple(index[0] for index in bad)])
    row = int(bad[0][0] if cells is None else cells.row[bad[0][0]])
    if np.isfinite(worst):
        return row, f"a feature is {worst:g}; bring the features to a scale of about one"
    return row, "a feature is NaN or infinite; all features must be finite numbers"
