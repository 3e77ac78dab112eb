"""What looks like a mistake in a long table: no choice or two, an action twice, ids as features."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from revealed._types import Bools, Floats, Ints, Labels
from revealed.data.data_warning import warn_of_data


@dataclass(frozen=True)
class FeatureDoubts:
    """When a column that nobody asked for is doubted to be a feature.

    Attributes
    ----------
    id_name
        Names of ids: id, person_id, respondentID. Wider, it would meet "price_index" and "paid".
    min_rows
        Rows of a table from which a column that counts them is taken for row numbers: that ten
        measurements are ten consecutive numbers in order is no accident. Lower, small tables of
        whole numbers are doubted.
    min_actions, min_decisions
        From which a column 1, 2, 3 in each decision is taken to number its actions. Two actions
        would meet every feature that the second one has and the first one has not.
    """

    id_name: re.Pattern[str] = re.compile(r"(?:(?i:(?:^|.*[_\-. ])(?:id|uuid|idx))|.*[a-z]I[dD])")
    min_rows: int = 10
    min_actions: int = 3
    min_decisions: int = 3


DOUBTS = FeatureDoubts()


def missing_column(name: str, columns: Sequence[str]) -> str:
    """The sentence for a column that the table does not have."""
    near = [column for column in columns if column.strip().casefold() == name.strip().casefold()]
    hint = f"; {near[0]!r} differs only in case or blanks" if near else ""
    if not near and name == "chosen":
        hint = "; pass chosen=None if choices were not seen"
    return f"the table has no column {name!r}, only {', '.join(map(repr, columns))}{hint}"


def check_choices(is_chosen: Bools, offered: Bools, code: Ints, ids: Labels) -> None:
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


def check_repeated_actions(
    rows: Floats, kind: Ints, labels: Labels, decision: Ints, ids: Labels
) -> None:
    """Refuse a row that is in the table twice, and warn where a label is twice in a decision.

    rows: (P, K) features. kind: (P,) the label of each row, a position in labels. decision: (P,)
    its decision, a position in ids.
    """
    key = decision * len(labels) + kind
    by_key = np.argsort(key, kind="stable")
    again = np.flatnonzero(key[by_key][1:] == key[by_key][:-1])
    if not again.size:
        return
    first, second = by_key[again], by_key[again + 1]
    # Also where only one of the two is marked chosen: one action is not two.
    same = np.flatnonzero((rows[first] == rows[second]).all(axis=1))
    row = int(first[same[0]] if same.size else first[0])
    what = f"decision {ids[decision[row]]}: action {str(labels[kind[row]])!r} is in the table twice"
    if same.size:
        raise ValueError(
            f"{what}, with the same features; give every action one row, or a name of its own"
        )
    warn_of_data(
        f"{what}, with other features; it is taken for two actions, and would better have two names"
    )


def _counts_up(column: Floats) -> bool:
    """Whether each number is one more than the one before."""
    return bool((column[1:] == column[:-1] + 1.0).all())


def warn_of_features(rows: Floats, names: Sequence[str], start: Ints, order: Ints) -> None:
    """Warn of columns that were taken for features without being asked for, and look like none.

    rows: (P, K) in the order of the decisions, which begin at start (T + 1,). order: (P,) the row
    of the table behind each of them.
    """
    sizes = np.diff(start)
    first = np.repeat(start[:-1], sizes)
    position = np.arange(len(rows)) - first
    table_order = np.argsort(order)
    # A single decision may well have a feature that is the same for all its actions.
    several = len(sizes) > 1 and sizes.max() > 1
    doubts = []
    for k, name in enumerate(names):
        column = rows[:, k]
        if DOUBTS.id_name.fullmatch(name):
            doubts.append(f"{name!r} is named like an id")
        # A state that no action leads to is a column of zeros, and no mistake.
        elif several and column.any() and (column == column[first]).all():
            doubts.append(
                f"{name!r} is the same for all actions of every decision and cannot inform a choice"
            )
        elif len(rows) >= DOUBTS.min_rows and _counts_up(column[table_order]):
            doubts.append(f"{name!r} counts the rows")
        elif (
            sizes.min() >= DOUBTS.min_actions
            and len(sizes) >= DOUBTS.min_decisions
            and column[0] in (0.0, 1.0)
            and (column - position == column[0]).all()
        ):
            doubts.append(f"{name!r} numbers the actions of each decision")
    if doubts:
        warn_of_data(
            f"every column was taken for a feature ({', '.join(map(repr, names))}), but "
            f"{'; '.join(doubts)}; pass features=[...] (on the command line --features) to pick "
            "the columns"
        )
