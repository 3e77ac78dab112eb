"""Decisions as long tables: one row for each action that was offered, in any dataframe.

    decision  action  chosen  height  holes
    0         left    false   3.0     1.0
    0         right   true    2.0     0.0
    1         left    true    4.0     1.0

Rows of one decision share its id. They need not be adjacent, and decisions may offer different
numbers of actions. Decisions keep the order in which they first appear, and so do the actions of
each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from revealed._types import Bools, Floats, Ints, Labels
from revealed.data.decisions import Block, Decisions
from revealed.io.columns import Arrow, collect_columns, open_dataframe

# Columns with a meaning of their own, which no feature may be called.
RESERVED = frozenset({"decision", "action", "group", "chosen"})


def from_dataframe(
    table: Any,
    *,
    decision: str = "decision",
    chosen: str | None = "chosen",
    action: str | None = "action",
    group: str | None = "group",
    available: str | None = None,
    features: Sequence[str] | None = None,
    blocks: Sequence[Block] | None = None,
) -> Decisions:
    """Decisions from a long table: pandas, polars, pyarrow, or whatever narwhals understands.

    Parameters
    ----------
    table
        One row for each (decision, action); a lazy table is collected.
    decision
        The column of decision ids, numbers or text.
    chosen
        The column that marks the action chosen, true or false, or 1 or 0; None where choices were
        not seen.
    action
        The column of action labels; None, or no column called "action", keeps no labels.
    group
        The column of who decided, constant within a decision; None, or no column called "group",
        keeps none.
    available
        The column that says, as `chosen` does, which actions were on offer; the others are left
        out.
    features
        The feature columns; None takes every other column in the table's order, except those
        called decision, action, group or chosen, and the unnamed row numbers that pandas writes
        to files.
    blocks
        The coefficient blocks, as in ``Decisions``.

    Returns
    -------
    Decisions
        In the order in which their ids first appear.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"decision": [7, 7], "chosen": [0, 1], "height": [3.0, 2.0]})
    >>> rv.from_dataframe(table)
    <Decisions: 1 decisions of 2 actions, 1 coefficients, dense>
    """
    frame, columns = open_dataframe(table)
    # The default names are taken where they exist, and not missed where they do not.
    action = None if action == "action" and action not in columns else action
    group = None if group == "group" and group not in columns else group
    roles = [name for name in (decision, chosen, action, group, available) if name is not None]
    picked = _pick_features(columns, roles, features)
    table = collect_columns(frame, list(dict.fromkeys([*roles, *picked])))

    # Which decision each row of the table belongs to, whether it was on offer, and chosen.
    code, ids = _encode_labels(table, decision)
    offered = np.ones(len(code), dtype=np.bool_)
    if available is not None:
        offered = _read_flags(table, available, code, ids)
    is_chosen = None if chosen is None else _read_flags(table, chosen, code, ids)
    if is_chosen is not None:
        _check_choices(is_chosen, offered, code, ids)
    sizes = np.bincount(code[offered], minlength=len(ids))
    if not sizes.all():
        raise ValueError(
            f"decision {ids[np.argmin(sizes)]}: no action is available; "
            "every decision needs at least one"
        )

    # The rows on offer, brought together by decision; a stable sort keeps the order of actions.
    start = np.concatenate([[0], np.cumsum(sizes)])
    order = np.argsort(code, kind="stable")
    order = order[offered[order]]
    rows = np.empty((len(order), len(picked)))
    # One column at a time: a wide table is never held twice.
    for k, name in enumerate(picked):
        rows[:, k] = _read_feature(table, name, order, code, ids)
    labels = None
    if action is not None:
        kind, names = _encode_labels(table, action)
        labels = names[kind[order]]
    return Decisions(
        rows,
        start,
        None if is_chosen is None else np.flatnonzero(is_chosen[order]) - start[:-1],
        names=picked,
        actions=labels,
        groups=None if group is None else _read_groups(table, group, order, start, ids),
        group_name=group,
        blocks=blocks,
        ids=ids,
    )


def to_dataframe(decisions: Decisions, backend: str = "pyarrow") -> Any:
    """The decisions as a long table, which `from_dataframe` reads back.

    Parameters
    ----------
    decisions
        Whose features are written densely. Blocks are not written; give them to `from_dataframe`
        again.
    backend
        "pyarrow", "pandas" or "polars".

    Returns
    -------
    table
        Columns: decision, action (positions 0, 1, ... where there are no labels), group and chosen
        where known, then the features.

    Examples
    --------
    >>> d = rv.Decisions(np.eye(2), [0, 2], [1], names=["tea", "coffee"])
    >>> rv.to_dataframe(d).to_pylist()[0]
    {'decision': 0, 'action': 0, 'chosen': False, 'tea': 1.0, 'coffee': 0.0}
    """
    import narwhals as nw
    import pyarrow as pa

    if backend not in ("pyarrow", "pandas", "polars"):
        raise ValueError(f"backend must be 'pyarrow', 'pandas' or 'polars', not {backend!r}")
    for name in decisions.names:
        if _is_reserved(name):
            raise ValueError(
                f"a feature is called {name!r}, a column name with a meaning of its own; "
                "rename it before writing"
            )
    # One row of the table for each action, in the order of the decisions.
    number = decisions.decision_of_row
    position = np.arange(len(number)) - decisions.start[number]
    columns = {
        "decision": _to_arrow("ids", decisions.ids).take(pa.array(number)),
        "action": pa.array(position)
        if decisions.actions is None
        else _to_arrow("actions", decisions.actions),
    }
    # Ids are what brings rows of a decision together again.
    if len(columns["decision"].unique()) != len(decisions):
        raise ValueError(
            "two decisions have the same id, and a table could not tell them apart; "
            "give them other ids"
        )
    if decisions.groups is not None:
        columns["group"] = _to_arrow("groups", decisions.groups).take(pa.array(number))
    if decisions.chosen is not None:
        columns["chosen"] = pa.array(position == decisions.chosen[number])
    # A table has no sparse columns.
    rows = decisions.rows.toarray() if sp.issparse(decisions.rows) else decisions.rows
    table = pa.table(
        columns | {name: pa.array(rows[:, k]) for k, name in enumerate(decisions.names)}
    )
    if backend == "pyarrow":
        return table
    frame = nw.from_native(table, eager_only=True)
    try:
        return frame.to_pandas() if backend == "pandas" else frame.to_polars()
    except ModuleNotFoundError:
        raise ValueError(
            f"this table needs {backend}, which is not installed; pip install {backend}"
        ) from None


def _is_reserved(name: str) -> bool:
    """Whether a column is no feature unless asked for.

    Columns with a meaning of their own, and the row numbers that pandas writes to files: without a
    name in CSV, as __index_level_0__ in Parquet.
    """
    return name in RESERVED or name == "" or name.startswith("__index_level_")


def _pick_features(
    columns: list[str], roles: list[str], features: Sequence[str] | None
) -> list[str]:
    """The feature columns: those given, or all that are left; checks that all columns exist."""
    if features is None:
        picked = [name for name in columns if name not in roles and not _is_reserved(name)]
    else:
        picked = [features] if isinstance(features, str) else list(features)
    for name in [*roles, *picked]:
        if name not in columns:
            hint = "; pass chosen=None if choices were not seen" if name == "chosen" else ""
            raise ValueError(
                f"the table has no column {name!r}, only {', '.join(map(repr, columns))}{hint}"
            )
    # A table of labels alone says nothing of why an action was chosen.
    if not picked:
        raise ValueError(f"the table has no feature column, only {', '.join(map(repr, columns))}")
    return picked


def _encode_labels(table: dict[str, Arrow], name: str) -> tuple[Ints, Labels]:
    """A column of labels as positions in a list of distinct labels, and that list.

    Labels are in the order in which they first appear; none may be missing.
    """
    import pyarrow as pa

    column = table[name]
    if pa.types.is_floating(column.type):
        # NaN counts as missing too.
        column = pa.array(column.to_numpy(zero_copy_only=False), from_pandas=True)
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise ValueError(
            f"row {row} of the table: column {name!r} has no value; every row needs one"
        )
    try:
        coded = column.dictionary_encode()
    except pa.ArrowException:
        raise ValueError(
            f"column {name!r} holds {column.type}; labels must be numbers or text"
        ) from None
    labels = coded.dictionary.to_numpy(zero_copy_only=False)
    if labels.dtype == object and isinstance(labels[0], str):
        labels = labels.astype(np.str_)
    return coded.indices.to_numpy().astype(np.int64), labels


def _numbers(column: Arrow) -> Floats | None:
    """The column as floats, missing values as NaN; None where it does not hold numbers."""
    import pyarrow as pa

    # Booleans count as 0 and 1, and a column of nothing as missing numbers.
    kinds = (
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_boolean,
        pa.types.is_decimal,
        pa.types.is_null,
    )
    if not any(kind(column.type) for kind in kinds):
        return None
    numbers: Floats = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return numbers


def _read_flags(table: dict[str, Arrow], name: str, code: Ints, ids: Labels) -> Bools:
    """(rows,) a column of true and false, or of 1 and 0, as booleans.

    code, ids: which decision each row belongs to, to name the one with a mistake.
    """
    numbers = _numbers(table[name])
    if numbers is None:
        raise ValueError(
            f"column {name!r} holds {table[name].type}; it must hold true or false, or 1 or 0"
        )
    # A missing value is NaN here, and neither 0 nor 1.
    wrong = np.flatnonzero((numbers != 0) & (numbers != 1))
    if wrong.size:
        where, what = ids[code[wrong[0]]], numbers[wrong[0]]
        held = "no value" if np.isnan(what) else f"{what:g}"
        raise ValueError(
            f"decision {where}: column {name!r} holds {held}; it must hold true or false, or 1 or 0"
        )
    return numbers.astype(np.bool_)


def _check_choices(is_chosen: Bools, offered: Bools, code: Ints, ids: Labels) -> None:
    """Check that one action of each decision is marked chosen, and that it was on offer."""
    marked = np.bincount(code[is_chosen], minlength=len(ids))
    wrong = np.flatnonzero(marked != 1)
    if wrong.size:
        count = marked[wrong[0]]
        found = "no action is" if count == 0 else f"{count} actions are"
        raise ValueError(f"decision {ids[wrong[0]]}: {found} marked chosen; exactly one must be")
    # A contradiction in the table, more likely a mistake than a miracle.
    lost = code[is_chosen & ~offered]
    if lost.size:
        raise ValueError(
            f"decision {ids[lost.min()]}: the chosen action is marked as not available; "
            "what was chosen was on offer"
        )


def _read_feature(
    table: dict[str, Arrow], name: str, order: Ints, code: Ints, ids: Labels
) -> Floats:
    """(P,) a column of numbers in the order of the decisions' rows.

    order: which rows of the table, in which order. Missing, NaN and infinite values are refused by
    decision and column.
    """
    numbers = _numbers(table[name])
    if numbers is None:
        raise ValueError(
            f"column {name!r} is not numeric ({table[name].type}); "
            "pass features=[...] to pick the columns"
        )
    # Rows that were not on offer may hold anything.
    kept = numbers[order]
    wrong = np.flatnonzero(~np.isfinite(kept))
    if wrong.size:
        raise ValueError(
            f"decision {ids[code[order[wrong[0]]]]}, column {name!r}: "
            "a feature is missing, NaN or infinite; all features must be finite numbers"
        )
    return kept


def _read_groups(
    table: dict[str, Arrow], name: str, order: Ints, start: Ints, ids: Labels
) -> Labels:
    """(T,) the label of who decided; the rows of a decision must agree."""
    code, labels = _encode_labels(table, name)
    code = code[order]
    # Every row of a decision is compared with its first.
    first = code[start[:-1]]
    decision = np.repeat(np.arange(len(ids)), np.diff(start))
    wrong = np.flatnonzero(code != first[decision])
    if wrong.size:
        t = decision[wrong[0]]
        raise ValueError(
            f"decision {ids[t]}: column {name!r} holds both {labels[first[t]]} and "
            f"{labels[code[wrong[0]]]}; one decision belongs to one group"
        )
    return labels[first]


def _to_arrow(what: str, labels: Labels) -> Arrow:
    """Labels as a column of a table.

    All numbers or all text, and none missing; `what` names them in the message.
    """
    import pyarrow as pa

    try:
        # from_pandas: NaN and None both count as missing.
        column = pa.array(labels, from_pandas=True)
    except pa.ArrowException:
        raise ValueError(
            f"{what} mixes values of several kinds; a table column holds numbers or text"
        ) from None
    if column.null_count:
        raise ValueError(f"{what} has a label that is missing or NaN; a table needs one for each")
    return column
