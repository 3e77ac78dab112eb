"""Decisions as long tables: one row for each action that was offered, in any dataframe.

    decision  action  chosen  height  holes
    0         left    false   3.0     1.0
    0         right   true    2.0     0.0
    1         left    true    4.0     1.0

Rows of one decision share its id. They need not be adjacent, and decisions may offer different numbers of
actions. Decisions keep the order in which they first appear, and so do the actions of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from understudy._arrays import Bools, Floats, Ints
from understudy.decisions import Block, Decisions

Labels = np.ndarray[Any, Any]
Arrow = Any  # a pyarrow array or table; pyarrow is imported only where it is used

RESERVED = ("decision", "action", "group", "chosen")


def from_frame(
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
    """Decisions from a long table: pandas, polars, pyarrow, or any other dataframe that narwhals understands.

    Args:
        table: one row for each (decision, action); a lazy table is collected.
        decision: the column of decision ids, numbers or text.
        chosen: the column that marks the action taken, true or false, or 1 or 0; None where choices were not seen.
        action: the column of action labels; None, or no column called "action", keeps no labels.
        group: the column of who decided, constant within a decision; None, or no column called "group", keeps none.
        available: the column that says, as `chosen` does, which actions were on offer; the others are left out.
        features: the feature columns; None takes every other column in the table's order, except those called
            decision, action, group or chosen, and the unnamed row numbers that pandas writes to files.
        blocks: the coefficient blocks, as in ``Decisions``.

    >>> import pyarrow as pa
    >>> us.from_frame(pa.table({"decision": [7, 7], "chosen": [0, 1], "height": [3.0, 2.0]}))
    <Decisions: 1 decisions of 2 actions, 1 coefficients, dense>
    """
    frame, columns = opened(table)
    action = None if action == "action" and action not in columns else action
    group = None if group == "group" and group not in columns else group
    roles = [name for name in (decision, chosen, action, group, available) if name is not None]
    if features is None:
        picked = [name for name in columns if name not in roles and not _set_aside(name)]
    else:
        picked = [features] if isinstance(features, str) else list(features)
    for name in [*roles, *picked]:
        if name not in columns:
            hint = "; pass chosen=None if choices were not seen" if name == "chosen" else ""
            raise ValueError(f"the table has no column {name!r}, only {', '.join(map(repr, columns))}{hint}")
    if not picked:
        raise ValueError(f"the table has no feature column, only {', '.join(map(repr, columns))}")
    table = collected(frame, list(dict.fromkeys([*roles, *picked])))

    code, ids = _encoded(table, decision)
    offered = np.ones(len(code), dtype=np.bool_) if available is None else _flags(table, available, code, ids)
    taken = None if chosen is None else _flags(table, chosen, code, ids)
    if taken is not None:
        _refuse_bad_choices(taken, offered, code, ids)
    sizes = np.bincount(code[offered], minlength=len(ids))
    if not sizes.all():
        raise ValueError(f"decision {ids[np.argmin(sizes)]}: no action is available; every decision needs at least one")
    start = np.concatenate([[0], np.cumsum(sizes)])
    order = np.argsort(code, kind="stable")
    order = order[offered[order]]

    rows = np.empty((len(order), len(picked)))
    for k, name in enumerate(picked):
        rows[:, k] = _feature(table, name, order, code, ids)
    labels = None
    if action is not None:
        kind, names = _encoded(table, action)
        labels = names[kind[order]]
    return Decisions(
        rows,
        start,
        None if taken is None else np.flatnonzero(taken[order]) - start[:-1],
        names=picked,
        actions=labels,
        groups=None if group is None else _groups(table, group, order, start, ids),
        group_name=group,
        blocks=blocks,
        ids=ids,
    )


def to_frame(decisions: Decisions, backend: str = "pyarrow") -> Any:
    """The decisions as a long table of pyarrow, pandas or polars, which `from_frame` reads back.

    Columns: decision, action (positions 0, 1, ... where there are no labels), group and chosen where known, then
    the features, dense. Blocks are not written; give them to `from_frame` again.

    >>> us.to_frame(us.Decisions(np.eye(2), [0, 2], [1], names=["tea", "coffee"])).to_pylist()[0]
    {'decision': 0, 'action': 0, 'chosen': False, 'tea': 1.0, 'coffee': 0.0}
    """
    import narwhals as nw
    import pyarrow as pa

    if backend not in ("pyarrow", "pandas", "polars"):
        raise ValueError(f"backend must be 'pyarrow', 'pandas' or 'polars', not {backend!r}")
    for name in decisions.names:
        if _set_aside(name):
            raise ValueError(
                f"a feature is called {name!r}, a column name with a meaning of its own; rename it before writing"
            )
    number = decisions.decision_of_row
    position = np.arange(len(number)) - decisions.start[number]
    columns = {
        "decision": _written("ids", decisions.ids).take(pa.array(number)),
        "action": pa.array(position) if decisions.actions is None else _written("actions", decisions.actions),
    }
    if len(columns["decision"].unique()) != len(decisions):
        raise ValueError("two decisions have the same id, and a table could not tell them apart; give them other ids")
    if decisions.groups is not None:
        columns["group"] = _written("groups", decisions.groups).take(pa.array(number))
    if decisions.chosen is not None:
        columns["chosen"] = pa.array(position == decisions.chosen[number])
    rows = decisions.rows.toarray() if sp.issparse(decisions.rows) else decisions.rows
    table = pa.table(columns | {name: pa.array(rows[:, k]) for k, name in enumerate(decisions.names)})
    if backend == "pyarrow":
        return table
    frame = nw.from_native(table, eager_only=True)
    try:
        return frame.to_pandas() if backend == "pandas" else frame.to_polars()
    except ModuleNotFoundError:
        raise ValueError(f"this table needs {backend}, which is not installed; pip install {backend}") from None


def _set_aside(name: str) -> bool:
    return name in RESERVED or name == "" or name.startswith("__index_level_")


def opened(table: Any) -> tuple[Any, list[str]]:
    """A dataframe of any kind as narwhals sees it, and the names of its columns."""
    import narwhals as nw
    from narwhals.exceptions import DuplicateError

    try:
        frame = nw.from_native(table)
        columns = frame.collect_schema().names()
    except DuplicateError as error:
        twice = ", ".join(line.strip("- ") for line in str(error).splitlines()[1:])
        raise ValueError(f"the table uses a column name twice ({twice}); names must differ") from None
    except TypeError:
        raise ValueError(
            f"table must be a dataframe (pandas, polars, pyarrow, ...), not {type(table).__name__}"
        ) from None
    for name in columns:
        if not isinstance(name, str):
            raise ValueError(f"the table has a column called {name!r}; column names must be text")
    return frame, columns


def collected(frame: Any, columns: list[str]) -> dict[str, Arrow]:
    """The columns as single Arrow arrays of plain values."""
    import narwhals as nw
    import pyarrow as pa

    frame = frame.select(columns)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect("pyarrow")
    if len(frame) == 0:
        raise ValueError("the table has no rows; at least one decision is needed")
    table = {}
    for name in columns:
        try:
            values = frame[name].to_arrow()
        except (pa.ArrowException, TypeError):
            raise ValueError(f"column {name!r} mixes values of several kinds, or holds one that is not known") from None
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        table[name] = values
    return table


def _encoded(table: dict[str, Arrow], name: str) -> tuple[Ints, Labels]:
    """A column of labels as positions in a list of distinct labels, in order of first appearance."""
    import pyarrow as pa

    column = table[name]
    if pa.types.is_floating(column.type):
        column = pa.array(column.to_numpy(zero_copy_only=False), from_pandas=True)  # NaN is missing too
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise ValueError(f"row {row} of the table: column {name!r} has no value; every row needs one")
    try:
        coded = column.dictionary_encode()
    except pa.ArrowException:
        raise ValueError(f"column {name!r} holds {column.type}; labels must be numbers or text") from None
    labels = coded.dictionary.to_numpy(zero_copy_only=False)
    if labels.dtype == object and isinstance(labels[0], str):
        labels = labels.astype(np.str_)
    return coded.indices.to_numpy().astype(np.int64), labels


def _numbers(column: Arrow) -> Floats | None:
    """The column as floats, missing values as NaN; None where it does not hold numbers."""
    import pyarrow as pa

    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal, pa.types.is_null)
    if not any(kind(column.type) for kind in kinds):
        return None
    numbers: Floats = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return numbers


def _flags(table: dict[str, Arrow], name: str, code: Ints, ids: Labels) -> Bools:
    numbers = _numbers(table[name])
    if numbers is None:
        raise ValueError(f"column {name!r} holds {table[name].type}; it must hold true or false, or 1 or 0")
    wrong = np.flatnonzero((numbers != 0) & (numbers != 1))
    if wrong.size:
        where, what = ids[code[wrong[0]]], numbers[wrong[0]]
        held = "no value" if np.isnan(what) else f"{what:g}"
        raise ValueError(f"decision {where}: column {name!r} holds {held}; it must hold true or false, or 1 or 0")
    return numbers.astype(np.bool_)


def _refuse_bad_choices(taken: Bools, offered: Bools, code: Ints, ids: Labels) -> None:
    marked = np.bincount(code[taken], minlength=len(ids))
    wrong = np.flatnonzero(marked != 1)
    if wrong.size:
        count = marked[wrong[0]]
        found = "no action is" if count == 0 else f"{count} actions are"
        raise ValueError(f"decision {ids[wrong[0]]}: {found} marked chosen; exactly one must be")
    lost = code[taken & ~offered]
    if lost.size:
        raise ValueError(
            f"decision {ids[lost.min()]}: the chosen action is marked as not available; what was taken was on offer"
        )


def _feature(table: dict[str, Arrow], name: str, order: Ints, code: Ints, ids: Labels) -> Floats:
    numbers = _numbers(table[name])
    if numbers is None:
        raise ValueError(
            f"column {name!r} is not numeric ({table[name].type}); pass features=[...] to pick the columns"
        )
    kept = numbers[order]
    wrong = np.flatnonzero(~np.isfinite(kept))
    if wrong.size:
        raise ValueError(
            f"decision {ids[code[order[wrong[0]]]]}, column {name!r}: "
            "a feature is missing, NaN or infinite; all features must be finite numbers"
        )
    return kept


def _groups(table: dict[str, Arrow], name: str, order: Ints, start: Ints, ids: Labels) -> Labels:
    code, labels = _encoded(table, name)
    code = code[order]
    first = code[start[:-1]]
    decision = np.repeat(np.arange(len(ids)), np.diff(start))
    wrong = np.flatnonzero(code != first[decision])
    if wrong.size:
        t = decision[wrong[0]]
        raise ValueError(
            f"decision {ids[t]}: column {name!r} holds both {labels[first[t]]} and {labels[code[wrong[0]]]}; "
            "one decision belongs to one group"
        )
    return labels[first]


def _written(what: str, labels: Labels) -> Arrow:
    import pyarrow as pa

    try:
        column = pa.array(labels, from_pandas=True)
    except pa.ArrowException:
        raise ValueError(f"{what} mixes values of several kinds; a table column holds numbers or text") from None
    if column.null_count:
        raise ValueError(f"{what} has a label that is missing or NaN; a table needs one for each")
    return column
