"""Who decided: the label of each decision's group, and which decisions are whose."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from revealed._types import Ints, Labels
from revealed.data.decisions import Decisions


def group_positions(labels: Labels, groups: Sequence[Hashable]) -> Ints:
    """(T,) the position in `groups` of each of the labels (T,)."""
    # A mapping, since labels may be text as well as numbers.
    position = {group: i for i, group in enumerate(groups)}
    return np.array([position[label] for label in labels.tolist()], dtype=np.int64)


def decisions_by_group(labels: Labels) -> dict[Hashable, Ints]:
    """The positions of each group's decisions, groups in the order in which they first appear."""
    # A dict keeps the order in which labels come first, where a set would not.
    groups = tuple(dict.fromkeys(labels.tolist()))
    positions = group_positions(labels, groups)
    # A stable sort brings the decisions of a group together and keeps their order.
    order = np.argsort(positions, kind="stable")
    # Where each group's decisions end in that order.
    ends = np.cumsum(np.bincount(positions))[:-1]
    return dict(zip(groups, np.split(order, ends), strict=True))


def group_labels(decisions: Decisions, groups: Any) -> Labels:
    """(T,) the label of who made each decision.

    groups: None for the decisions' own groups; the name of those groups, which is checked; or T
    labels, one for each decision. No label may be missing.
    """
    if not isinstance(decisions, Decisions):
        raise ValueError(f"groups are told apart in Decisions, not in {type(decisions).__name__}")
    if groups is None or isinstance(groups, str):
        labels = _own_labels(decisions, groups)
    else:
        labels = np.array(groups)
        if labels.shape != (len(decisions),):
            raise ValueError(
                f"groups has shape {labels.shape}, but there are {len(decisions)} decisions; "
                "give one label for each"
            )
    # NaN is the only value that differs from itself: a table's way to say that a label is missing.
    wrong = [t for t, label in enumerate(labels.tolist()) if label is None or label != label]
    if wrong:
        raise ValueError(f"decision {decisions.ids[wrong[0]]}: the label of who decided is missing")
    return labels


def _own_labels(decisions: Decisions, name: str | None) -> Labels:
    """(T,) the groups of the decisions themselves.

    name: what the caller calls these groups, or None; where the decisions say what their groups
    are, it must be the same.
    """
    if decisions.groups is None:
        raise ValueError(
            "the decisions do not say who decided: read them with from_dataframe(table, "
            "group=...), or give groups=, one label a decision"
        )
    # Decisions that do not say what their groups are cannot contradict the name.
    if name is not None and decisions.group_name is not None and name != decisions.group_name:
        raise ValueError(
            f"the decisions are grouped by {decisions.group_name!r}, and know nothing of {name!r}"
        )
    return decisions.groups
