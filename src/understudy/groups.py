"""Who decided: the label of each decision's controller, and which decisions are whose."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from understudy._arrays import Ints
from understudy.decisions import Decisions
from understudy.frames import Labels, from_frame


def decided(decisions: Any, by: Any) -> tuple[Decisions, Labels]:
    """Decisions, or a long table of them, with the label of who made each; refuses those without choices.

    by: with a table the column of labels, otherwise as in `who_decided`.
    """
    if not isinstance(decisions, Decisions):
        decisions = from_frame(decisions, group=by) if isinstance(by, str) else from_frame(decisions)
        by = None
    who = who_decided(decisions, by)
    _ = decisions.taken
    return decisions, who


def numbered(who: Labels, players: Sequence[Hashable]) -> Ints:
    """(T,) which player each label stands for, counted from zero."""
    place = {label: i for i, label in enumerate(players)}
    return np.array([place[label] for label in who.tolist()], dtype=np.int64)


def whose(who: Labels) -> dict[Hashable, Ints]:
    """Which decisions are each label's, in the order in which labels first appear."""
    labels = tuple(dict.fromkeys(who.tolist()))
    numbers = numbered(who, labels)
    order = np.argsort(numbers, kind="stable")
    return dict(zip(labels, np.split(order, np.cumsum(np.bincount(numbers))[:-1]), strict=True))


def who_decided(decisions: Decisions, by: Any) -> Labels:
    """(T,) the label of who made each decision: its group's, or one of those given; by may also be the name of the groups."""
    if not isinstance(decisions, Decisions):
        raise ValueError(f"players are told apart in Decisions, not in {type(decisions).__name__}")
    if by is None or isinstance(by, str):
        if decisions.groups is None:
            raise ValueError(
                "the decisions do not say who decided: read them with from_frame(table, group=...), or give by=, one label "
                "a decision"
            )
        if isinstance(by, str) and decisions.group_name is not None and by != decisions.group_name:
            raise ValueError(f"the decisions are grouped by {decisions.group_name!r}, and know nothing of {by!r}")
        who = decisions.groups
    else:
        who = np.array(by)
        if who.shape != (len(decisions),):
            raise ValueError(
                f"by has shape {who.shape}, but there are {len(decisions)} decisions; give one label for each"
            )
    wrong = [t for t, label in enumerate(who.tolist()) if label is None or label != label]
    if wrong:
        raise ValueError(f"decision {decisions.ids[wrong[0]]}: the label of who decided is missing")
    return who
