"""What users give an MDP, checked: transitions, which actions exist, labels and positions, numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from understudy._arrays import Bools, Floats, Ints
from understudy.decisions import Rows


def stacked_transitions(transitions: Any) -> tuple[Rows, int, int]:
    """All rows as one (M N, N) table, action by action, with M and N."""
    if sp.issparse(transitions):
        raise ValueError("transitions is one sparse matrix; give a list of them, one (N, N) matrix for each action")
    if isinstance(transitions, list | tuple) and any(sp.issparse(each) for each in transitions):
        try:
            matrices = [sp.csr_array(each) for each in transitions]
        except (TypeError, ValueError):
            raise ValueError("transitions must be a list of (N, N) matrices of numbers, one for each action") from None
        N = matrices[0].shape[0]
        for a, each in enumerate(matrices):
            if each.shape != (N, N) or N == 0:
                raise ValueError(f"transitions[{a}] has shape {each.shape}; every action needs an (N, N) matrix")
            if each.dtype.kind not in "biuf":
                raise ValueError(f"transitions[{a}] must hold real numbers, not {each.dtype}")
        tidy = sp.csr_array(sp.vstack(matrices), dtype=np.float64, copy=True)
        tidy.sum_duplicates()
        tidy.eliminate_zeros()
        return tidy, len(matrices), N
    whole = table_of("transitions", transitions)
    if whole.ndim != 3 or 0 in whole.shape or whole.shape[1] != whole.shape[2]:
        said = f"transitions has shape {whole.shape}; it must be (M, N, N), transitions[a, x, y] = p(y | x, a)"
        if whole.ndim == 3 and whole.shape[0] == whole.shape[2]:
            said += ": this looks like [x, a, y], so give transitions.transpose(1, 0, 2)"
        elif whole.ndim == 3 and whole.shape[0] == whole.shape[1]:
            said += ": this looks like [x, y, a], so give transitions.transpose(2, 0, 1)"
        raise ValueError(said)
    return whole.reshape(-1, whole.shape[2]), whole.shape[0], whole.shape[1]


def availability(available: Any, N: int, M: int) -> Bools:
    """Which action each state has, as (N, M) booleans."""
    if available is None:
        return np.ones((N, M), bool)
    given = table_of("available", available)
    if given.shape != (N, M):
        hint = "; this is its transpose" if given.shape == (M, N) else ""
        raise ValueError(f"available has shape {given.shape}, but must be (N, M) = ({N}, {M}), states first{hint}")
    if not np.isin(given, (0.0, 1.0)).all():
        raise ValueError("available must be True or False for each state and action")
    return given.astype(bool)


def labels_for(what: str, labels: Sequence[Any] | None, count: int) -> tuple[Any, ...]:
    """One label for each of `count` things; positions where none are given."""
    try:
        given = tuple(range(count)) if labels is None else tuple(labels)
        hash(given)
    except TypeError:
        raise ValueError(f"{what} must be a list of labels, each a word or a tuple; it is {labels!r}") from None
    if len(given) != count:
        raise ValueError(f"{len(given)} labels for {count} {what}; give one label for each")
    for i, label in enumerate(given):
        if isinstance(label, int | float | np.number) and label != i:
            raise ValueError(
                f"{what}: the label {label} at position {i} is a number, and numbers mean positions; "
                f"label with words, such as '{label}'"
            )
    seen: set[str] = set()
    for label in given:
        if str(label) in seen:
            raise ValueError(f"{what}: the label {label} is used twice; labels must differ")
        seen.add(str(label))
    return given


def positions_of(where: str, what: str, given: Any, labels: tuple[Any, ...]) -> Ints:
    """Labels or positions, as positions."""
    count = len(labels)
    if isinstance(given, np.ndarray) and given.ndim == 1 and given.dtype.kind in "iu":
        whole = given.astype(np.int64)
        found = np.where((whole >= 0) & (whole < count), whole, -1)
    else:
        try:
            known = {label: i for i, label in enumerate(labels)} | {i: i for i in range(count)}
            found = np.array([known.get(item, -1) for item in given], dtype=np.int64)
        except TypeError:
            raise ValueError(f"{what}s must be a list of labels or positions, one for each time") from None
    wrong = np.flatnonzero(found < 0)
    if wrong.size:
        t = int(wrong[0])
        span = f"0 to {count - 1}" + ("" if labels == tuple(range(count)) else f", or a label such as {labels[0]}")
        at = f"{where} {t}" if where == "time" else where
        raise ValueError(f"{at}: {what} {list(given)[t]} is unknown; the {what}s are {span}")
    return found


def table_of(what: str, given: Any) -> np.ndarray[Any, Any]:
    """What was given as an array of numbers."""
    try:
        table = np.array(given)
        if table.dtype.kind not in "biuf":
            raise TypeError
        return table.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise ValueError(f"{what} must be a table of numbers, with rows of equal length") from None


def numbers_of(what: str, given: Any) -> Floats:
    """The same, all finite."""
    numbers = table_of(what, given)
    if not np.isfinite(numbers).all():
        raise ValueError(f"{what} holds a NaN or infinite number; all must be finite")
    return numbers


def discount_of(discount: Any) -> float:
    """A discount, above 0 and at most 1."""
    if not isinstance(discount, int | float | np.integer | np.floating) or not 0.0 < discount <= 1.0:
        raise ValueError(f"discount must be above 0 and at most 1; it is {discount}")
    return float(discount)
