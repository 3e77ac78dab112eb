"""Decisions from a feature matrix X, as scikit-learn has them.

Either rows with the same id compete within a decision, or each row is a decision of its own: take
it, or leave it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from revealed._types import Bools, Floats, Ints, Labels
from revealed.data.decisions import Decisions


def decisions_from_matrix(
    X: Any,
    decision: Any,
    is_chosen: Bools | None,
    names: list[str],
    intercept: bool,
    group: Any = None,
) -> tuple[Decisions, Ints]:
    """The decisions in a feature matrix, and for each of their rows the row of X it came from.

    X: (n, K), dense or sparse. decision: (n,) ids of the decisions in which rows compete; or None,
    where each row is a decision of its own. is_chosen: (n,) which rows were chosen, or None.
    names: (K,). intercept: whether taking a row is worth a constant more; only without ids. group:
    (n,) who decides, the same on all rows of a decision; or None.
    """
    groups = None if group is None else _check_group(group, X.shape[0])
    if decision is None:
        rows = np.repeat(np.arange(X.shape[0]), 2)
        return _take_or_leave(X, is_chosen, names, intercept, groups), rows
    # Rows of one decision need not be adjacent in X, but are in Decisions.
    order, start, ids = _sort_by_decision(decision, X.shape[0])
    chosen = None if is_chosen is None else _chosen_positions(is_chosen[order], start, ids)
    if groups is not None:
        groups = _group_of_decision(groups[order], start, ids)
    return Decisions(X[order], start, chosen, names=names, ids=ids, groups=groups), order


def marked_rows(y: Labels | None, classes: Labels, count: int) -> Bools | None:
    """(count,) which rows the labels y mark as chosen: those with the second of two classes.

    None where there are no labels.
    """
    if y is None:
        return None
    if len(y) != count:
        raise ValueError(
            f"y has {len(y)} labels, but X has {count} rows; give one label for each row"
        )
    unknown = ~np.isin(y, classes)
    if unknown.any():
        raise ValueError(f"y holds the label {y[unknown][0]}, but fit saw only {classes.tolist()}")
    return np.asarray(y == classes[1])


def two_classes(y: Labels) -> Labels:
    """(2,) the labels in y, sorted, of which there are at most two.

    Refuses a single one.
    """
    classes = np.unique(y)
    if len(classes) == 1:
        raise ValueError(
            f"y holds one class only, {classes[0]}; "
            "give two, of which the larger marks the chosen rows"
        )
    return classes


def check_no_extras(y: Any, decision: Any, group: Any) -> None:
    """Refuse labels and ids beside Decisions, which have their own."""
    for name, value in (("y", y), ("decision", decision), ("group", group)):
        if value is not None:
            raise ValueError(f"Decisions know their own choices and choice sets; leave out {name}")


def decision_weights(weights: Any, decisions: Decisions, order: Ints | None) -> Floats:
    """(T,) how much each decision counts.

    weights: one for each row of a matrix, the same within a decision, or for each decision where
    order is None. order: the row of the matrix behind each row of the decisions.
    """
    given = np.asarray(weights, dtype=np.float64)
    count = len(decisions) if order is None else int(order.max()) + 1
    if given.shape != (count,) or not (np.isfinite(given) & (given >= 0.0)).all():
        what = "decision" if order is None else "row"
        raise ValueError(
            f"sample_weight must be {count} finite numbers, one for each {what}, none negative"
        )
    if not given.any():
        raise ValueError("sample_weight is zero throughout; some decision must count")
    if order is None:
        return given
    by_row = given[order]
    first = by_row[decisions.start[:-1]]
    differs = by_row != first[decisions.decision_of_row]
    if differs.any():
        t = decisions.decision_of_row[np.argmax(differs)]
        raise ValueError(
            f"decision {decisions.ids[t]}: its rows have different sample weights; "
            "a decision counts as a whole"
        )
    return np.asarray(first)


def _check_group(group: Any, count: int) -> Labels:
    """(count,) a label for each row."""
    given = np.asarray(group)
    if given.shape != (count,):
        raise ValueError(
            f"group has shape {given.shape}, but X has {count} rows; give one label for each row"
        )
    return given


def _group_of_decision(groups: Labels, start: Ints, ids: Labels) -> Labels:
    """(T,) who decides, from the labels (n,) of rows that are brought together."""
    first = groups[start[:-1]]
    differs = groups != np.repeat(first, np.diff(start))
    if differs.any():
        t = np.searchsorted(start, np.argmax(differs), side="right") - 1
        raise ValueError(f"decision {ids[t]}: its rows have different groups; one decides")
    return first


def _take_or_leave(
    X: Any,
    is_chosen: Bools | None,
    names: list[str],
    intercept: bool,
    groups: Labels | None,
) -> Decisions:
    """Each row of X a decision between leaving it and taking it.

    Action 0 leaves it, a row of zeros; action 1 takes it. The intercept is a feature that is one
    where a row is taken.
    """
    count = X.shape[0]
    if intercept:
        constant = np.ones((count, 1))
        X = sp.hstack([X, constant], format="csr") if sp.issparse(X) else np.hstack([X, constant])
        names = [*names, "intercept"]
    if sp.issparse(X):
        # Every row of X behind a row of zeros, without ever being dense.
        rows = sp.kron(X, np.array([[0.0], [1.0]]), format="csr")
    else:
        rows = np.zeros((2 * count, X.shape[1]))
        rows[1::2] = X
    chosen = None if is_chosen is None else is_chosen.astype(np.int64)
    return Decisions(rows, 2 * np.arange(count + 1), chosen, names=names, groups=groups)


def _sort_by_decision(decision: Any, count: int) -> tuple[Ints, Ints, Labels]:
    """Rows brought together by id, decisions in order of first appearance.

    Returns the order of rows, where each decision starts in it, and the decisions' ids.
    """
    given = np.asarray(decision)
    if given.shape != (count,):
        raise ValueError(
            f"decision has shape {given.shape}, but X has {count} rows; give one id for each row"
        )
    try:
        ids, first, code = np.unique(given, return_index=True, return_inverse=True)
        missing = any(label is None or label != label for label in ids.tolist())
    except TypeError:  # numpy cannot sort text among numbers, nor None among either
        missing = True
    # None, NaN, and a mixture of kinds all end here.
    if missing:
        raise ValueError(
            "the decision ids must be all numbers or all text, and none may be missing"
        )
    # From positions among sorted ids to positions in the order of first appearance.
    appeared = np.argsort(first)
    rank = np.empty_like(appeared)
    rank[appeared] = np.arange(len(ids))
    code = rank[code]
    start = np.concatenate([[0], np.cumsum(np.bincount(code))])
    return np.argsort(code, kind="stable"), start, ids[appeared]


def _chosen_positions(is_chosen: Bools, start: Ints, ids: Labels) -> Ints:
    """(T,) the position of the one row marked in each decision."""
    # How many rows of each decision are marked; one is right.
    marked = np.add.reduceat(is_chosen.astype(np.int64), start[:-1])
    wrong = np.flatnonzero(marked != 1)
    if wrong.size:
        t = wrong[0]
        found = "no row is" if marked[t] == 0 else f"{marked[t]} rows are"
        raise ValueError(f"decision {ids[t]}: {found} marked chosen in y; exactly one must be")
    return np.flatnonzero(is_chosen) - start[:-1]


def weighted_share(right: Bools, weights: Floats) -> float:
    """The weighted share of decisions that were predicted right.

    right, weights: of the decisions with more than one action; others cannot be predicted wrongly.
    """
    if not weights.any():
        raise ValueError(
            "only decisions with a single action have a weight, so that there is nothing to predict"
        )
    return float(np.average(right, weights=weights))
