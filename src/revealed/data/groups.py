"""Who decided: the label of each decision's group, and which decisions are whose."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from revealed._types import Ints, Labels
from revealed.data.decisions import Decisions
from revealed.data.labels import missing_label


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


def group_labels(decisions: Decisions) -> Labels:
    """(T,) the label of who made each decision; refuses decisions that do not say it of all."""
    if not isinstance(decisions, Decisions):
        raise ValueError(f"groups are told apart in Decisions, not in {type(decisions).__name__}")
    if decisions.groups is None:
        raise ValueError(
            "the decisions do not say who decided: read them with from_dataframe(table, "
            "group=...), or give Decisions(..., groups=...), one label a decision"
        )
    wrong = missing_label(decisions.groups)
    if wrong is not None:
        raise ValueError(f"decision {decisions.ids[wrong]}: the label of who decided is missing")
    return decisions.groups
