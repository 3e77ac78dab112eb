"""What an online learner is told of a decision, checked: rows, who decides, labels of actions."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from revealed._types import Floats
from revealed.data.decisions import Decisions
from revealed.data.groups import group_labels
from revealed.models.choice import ChoiceModel
from revealed.models.correlated_noise import CorrelatedNoise, check_labels_unique
from revealed.models.groups import Pooled
from revealed.samplers.particles import dense_rows

CheckedDecision = tuple[Floats, int, Hashable, Sequence[Any]]
"""Rows (M, K), which of them was chosen, who decided, and M labels; see `Observation`."""


def tells_actions_apart(model: ChoiceModel) -> bool:
    """Whether the labels of actions matter: under correlated noise, and to lapses by habit."""
    if isinstance(model.noise, CorrelatedNoise):
        return True
    return model.noise.lapse is not None and model.noise.lapse.to == "habit"


def refuse_labels(model: ChoiceModel, actions: Any) -> None:
    """Refuse labels that the model has no use for."""
    if actions is not None and not tells_actions_apart(model):
        raise ValueError("only correlated noise and habits tell actions apart; leave out actions")


@dataclass(frozen=True, eq=False)
class ObservationChecks:
    """What fits the model and the decisions before.

    coefficients: decisions that carry names and blocks. actions: all labels that may be offered,
    none where the model does not tell actions apart. Messages call a decision by its number.
    """

    model: ChoiceModel
    coefficients: Decisions
    actions: Sequence[Any]

    def rows(self, rows: Any, number: int) -> Floats:
        """(M, K) the rows as finite numbers; `Decisions` has all the sentences for others."""
        names = self.coefficients.names
        return dense_rows(Decisions(rows, [0, len(rows)], names=names, ids=[number]).rows)

    def group(self, group: Any, number: int, first: Hashable) -> Hashable:
        """The label of who decides; refuses one that is missing, or where there are no groups.

        first: the label met first, None where there is none yet.
        """
        if isinstance(self.model.groups, Pooled):
            if group is not None:
                raise ValueError(
                    "the model has one value for all; leave out group, or give the model "
                    "groups=rv.Separate() or rv.Hierarchical()"
                )
            return None
        if group is None or group != group:
            raise ValueError(f"decision {number}: the model has groups; say who decides, group=...")
        label: Hashable = group.item() if isinstance(group, np.generic) else group
        # labels become one array, where 1 and "1" would be the same
        if first is not None and type(label) is not type(first):
            raise ValueError(
                f"decision {number}: the group {label!r} is of another kind than {first!r}; "
                "call groups all by words, or all by numbers"
            )
        return label

    def labels(self, rows: Any, actions: Any, number: int) -> Sequence[Any]:
        """The labels of the rows, each known; none where the model does not tell actions apart.

        Under correlated noise none is there twice.
        """
        refuse_labels(self.model, actions)
        if not tells_actions_apart(self.model):
            return ()
        correlated = isinstance(self.model.noise, CorrelatedNoise)
        if actions is None:
            needy = "correlated noise needs" if correlated else "habits need"
            raise ValueError(
                f"decision {number}: {needy} to know which action is which; "
                "give actions, one label for each row"
            )
        names, start = self.coefficients.names, [0, rows.shape[0]]
        offer = Decisions(rows, start, names=names, actions=actions, ids=[number])
        assert offer.actions is not None
        if correlated:
            found, of_row = np.unique(offer.actions, return_inverse=True)
            check_labels_unique(offer, of_row, found)
        labels: list[Any] = offer.actions.tolist()
        for label in labels:
            if label not in self.actions:
                raise ValueError(
                    f"decision {number} offers {label!r}, and the learner was told of "
                    f"{', '.join(map(repr, self.actions))} only"
                )
        return labels

    def decisions(self, d: Decisions, number: int, first: Hashable) -> Iterator[CheckedDecision]:
        """What is told of each of these decisions; all are checked before the first is given."""
        self._check_coefficients(d)
        chosen, count = d.require_choices().tolist(), len(d)
        grouped = not isinstance(self.model.groups, Pooled)
        labels = group_labels(d).tolist() if grouped else [None] * count
        groups = [self.group(label, number + t, first) for t, label in enumerate(labels)]
        ranges = list(zip(d.start[:-1], d.start[1:], strict=True))
        labelled = tells_actions_apart(self.model)
        actions = [None if d.actions is None or not labelled else d.actions[a:b] for a, b in ranges]
        named = [
            self.labels(d.rows[a:b], actions[t], number + t) for t, (a, b) in enumerate(ranges)
        ]
        return (
            (dense_rows(d.rows[a:b]), chosen[t], groups[t], named[t])
            for t, (a, b) in enumerate(ranges)
        )

    def _check_coefficients(self, decisions: Decisions) -> None:
        """Refuse decisions with other coefficients or blocks."""
        if decisions.names != self.coefficients.names:
            raise ValueError(
                f"the decisions have the coefficients {', '.join(decisions.names)}, "
                f"but the learner has {', '.join(self.coefficients.names)}"
            )
        # blocks decide what the prior constrains, so they must agree as well
        if decisions.blocks != self.coefficients.blocks:
            raise ValueError("the decisions have other blocks of coefficients than the learner")
