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

from revealed._types import Labels
from revealed.data.blocks import Block
from revealed.data.data_warning import warn_of_similar_labels
from revealed.data.decisions import Decisions
from revealed.io.column_values import (
    encode_labels,
    read_feature,
    read_flags,
    read_groups,
    read_times,
)
from revealed.io.columns import Arrow, collect_columns, open_dataframe
from revealed.io.table_checks import (
    check_choices,
    check_repeated_actions,
    missing_column,
    warn_of_features,
)

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
    time: str | None = None,
    session: str | None = None,
) -> Decisions:
    """Decisions from a long table: pandas, polars, pyarrow, or whatever narwhals understands.

    What looks like a mistake comes with a DataWarning: a column taken for a feature that looks like
    an id or is the same for all actions of every decision, labels that differ in case or blanks
    only, an action that is twice in a decision. A row that is there twice is refused.

    Parameters
    ----------
    table
        One row for each (decision, action); a lazy table is collected.
    decision
        The column of decision ids, numbers or text.
    chosen
        The column that marks the action chosen: true or false, yes or no, or 1 or 0, also as
        text; None where choices were not seen.
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
    time
        The column of when a decision was made, constant within it: numbers, or dates, which become
        days since 1970-01-01, also as text such as 2024-03-01 or 2024-03-01T15:30.
    session
        The column of sessions, constant within a decision.

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
    >>> dated = table.append_column("day", pa.array(["1970-01-05", "1970-01-05"]))
    >>> rv.from_dataframe(dated, time="day").times
    array([4.])
    """
    frame, columns = open_dataframe(table)
    # The default names are taken where they exist, and not missed where they do not.
    action = None if action == "action" and action not in columns else action
    group = None if group == "group" and group not in columns else group
    named = (decision, chosen, action, group, available, time, session)
    roles = [name for name in named if name is not None]
    picked = _pick_features(columns, roles, features)
    table = collect_columns(frame, list(dict.fromkeys([*roles, *picked])))

    # Which decision each row of the table belongs to, whether it was on offer, and chosen.
    code, ids = encode_labels(table, decision)
    offered = np.ones(len(code), dtype=np.bool_)
    if available is not None:
        offered = read_flags(table, available, code, ids)
    is_chosen = None if chosen is None else read_flags(table, chosen, code, ids)
    sizes = np.bincount(code[offered], minlength=len(ids))

    # The rows on offer, brought together by decision; a stable sort keeps the order of actions.
    start = np.concatenate([[0], np.cumsum(sizes)])
    order = np.argsort(code, kind="stable")
    order = order[offered[order]]
    rows = np.empty((len(order), len(picked)))
    # One column at a time: a wide table is never held twice.
    for k, name in enumerate(picked):
        rows[:, k] = read_feature(table, name, order, code, ids, features is not None)
    labels = None
    if action is not None:
        kind, names = encode_labels(table, action)
        labels = names[kind[order]]
        warn_of_similar_labels(f"column {action!r}", names)
        check_repeated_actions(rows, kind[order], names, code[order], ids)
    if is_chosen is not None:
        check_choices(is_chosen, offered, code, ids)
    if not sizes.all():
        raise ValueError(
            f"decision {ids[np.argmin(sizes)]}: no action is available; "
            "every decision needs at least one"
        )
    groups = None if group is None else read_groups(table, group, order, start, ids)
    if groups is not None:
        warn_of_similar_labels(f"column {group!r}", dict.fromkeys(groups.tolist()))
    sessions = None
    if session is not None:
        sessions = read_groups(table, session, order, start, ids, "is made in one session")
        warn_of_similar_labels(f"column {session!r}", dict.fromkeys(sessions.tolist()))
    # Where no choices were seen nothing is learnt, and a feature may well be the same for all.
    if features is None and is_chosen is not None:
        warn_of_features(rows, picked, start, order)
    return Decisions(
        rows,
        start,
        None if is_chosen is None else np.flatnonzero(is_chosen[order]) - start[:-1],
        names=picked,
        actions=labels,
        groups=groups,
        group_name=group,
        blocks=blocks,
        ids=ids,
        times=None if time is None else read_times(table, time, order, start, ids),
        sessions=sessions,
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
        Columns: decision, action (positions 0, 1, ... where there are no labels), group, time,
        session and chosen where known, then the features. Times are numbers, and read back with
        ``from_dataframe(table, time="time", session="session")``.

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
    # Only decisions that have times need a column for them.
    given = (("time", decisions.times), ("session", decisions.sessions))
    optional = {name: values for name, values in given if values is not None}
    for name in decisions.names:
        if _is_reserved(name) or name in optional:
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
    for name, values in optional.items():
        columns[name] = _to_arrow(f"{name}s", values).take(pa.array(number))
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
    name in CSV, as __index_level_0__ in Parquet, which it reads itself as Unnamed: 0.
    """
    return name in RESERVED or name == "" or name.startswith(("__index_level_", "Unnamed: "))


def _pick_features(
    columns: list[str], roles: list[str], features: Sequence[str] | None
) -> list[str]:
    """The feature columns: those given, or all that are left.

    Checks that all columns exist.
    """
    if features is None:
        picked = [name for name in columns if name not in roles and not _is_reserved(name)]
    else:
        picked = [features] if isinstance(features, str) else list(features)
    for name in [*roles, *picked]:
        if name not in columns:
            raise ValueError(missing_column(name, columns))
    # A table of labels alone says nothing of why an action was chosen.
    if not picked:
        raise ValueError(f"the table has no feature column, only {', '.join(map(repr, columns))}")
    return picked


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
