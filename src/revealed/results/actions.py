"""Actions of decisions in tables: the best of each decision, marks on rows, columns of labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from revealed._types import Bools, Floats, Ints
from revealed.data.decisions import Decisions


def first_best(values: Floats, start: Ints) -> Ints:
    """(..., T) the position of the largest of each decision's values (..., P); first of equals."""
    # the first row of each decision that reaches its maximum
    sizes, rows = np.diff(start), values.shape[-1]
    best = np.repeat(np.maximum.reduceat(values, start[:-1], axis=-1), sizes, axis=-1)
    index = np.where(values == best, np.arange(rows), rows)
    return np.asarray(np.minimum.reduceat(index, start[:-1], axis=-1) - start[:-1], dtype=np.int64)


def row_flags(decisions: Decisions, action: Ints) -> Bools:
    """(P,) true on the row of each decision's action."""
    flags = np.zeros(decisions.rows.shape[0], np.bool_)
    flags[decisions.start[:-1] + action] = True
    return flags


def action_table(decisions: Decisions, columns: dict[str, Any]) -> Any:
    """A pyarrow table with a row for each action: decision, action, and these columns."""
    import pyarrow as pa

    def to_column(labels: np.ndarray[Any, Any]) -> Any:
        # a column holds one kind, so that mixed labels become text
        return pa.array(labels if labels.dtype.kind in "biufUmM" else labels.astype(str))

    # labels of decisions are repeated for each of their actions
    number = decisions.decision_of_row
    position = np.arange(len(number)) - decisions.start[number]
    labels = {
        "decision": to_column(decisions.ids).take(pa.array(number)),
        "action": to_column(position if decisions.actions is None else decisions.actions),
    }
    return pa.table({**labels, **{name: pa.array(values) for name, values in columns.items()}})
