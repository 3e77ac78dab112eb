"""Habits: which action a lapse takes, where that is learnt from the labels of the actions.

    q = pi[label of the choice] / sum over the actions offered of pi[label],
    pi ~ Dirichlet(1, ..., 1)

A label that is offered twice in a decision counts twice in the sum, so that the probabilities of
all actions offered add up to one. How coordinates of samplers become pi stands in
`kernels/habit.py`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from revealed._types import Floats, Ints
from revealed.data.decisions import Decisions
from revealed.data.unique import find_label_kinds
from revealed.kernels.habit import HabitIndex, unbound_habit, write_weights
from revealed.kernels.noise import AnyNoise, LapseArguments


@dataclass(frozen=True, eq=False)
class ResolvedHabit:
    """The labels of one set of decisions.

    labels: L of them in sorted order. of_row: (P,) which of them each row has.
    """

    labels: tuple[Hashable, ...]
    of_row: Ints


def resolve_habit(d: Decisions) -> ResolvedHabit:
    """The labels of these decisions; refuses those without labels, or with a single one."""
    if d.actions is None:
        raise ValueError(
            'lapses to="habit" need to know which action is which, and these decisions have no '
            'labels; give Decisions(..., actions=...), an action column, or to="uniform"'
        )
    # sorted, so that the meaning of a draw does not depend on the order of rows
    labels, of_row = np.unique(d.actions, return_inverse=True)
    names = tuple(labels.tolist())
    if len(names) < 2:
        raise ValueError(
            f"all rows have the label {names[0]!r}, of which there is no habit to learn; "
            'give lapses to="uniform"'
        )
    return ResolvedHabit(names, of_row.astype(np.int64))


def check_all_offered(
    labels: tuple[Hashable, ...], of_row: Ints, group_of_row: Ints, groups: tuple[Hashable, ...]
) -> None:
    """Refuse separate groups that were not all offered the same actions.

    The noise covariance, or the habits, of each would have other actions, and they could not stand
    side by side. of_row, group_of_row: (P,) positions among the labels and among the groups.
    """
    offered = np.zeros((len(groups), len(labels)), np.bool_)
    offered[group_of_row, of_row] = True
    # the first that is missing is enough for a sentence
    for i, k in np.argwhere(~offered)[:1]:
        raise ValueError(
            f"group {groups[i]!r} was never offered {labels[k]!r}; separate groups with "
            "correlated noise or habits need the same actions: leave out the group, or the action"
        )


def with_habits(noise: AnyNoise, labels: int) -> AnyNoise:
    """The noise with habits of so many labels, a coordinate for each."""
    assert isinstance(noise, LapseArguments)
    return noise._replace(coordinates=1 + labels, habit=unbound_habit(labels))


def bind_habits(noise: AnyNoise, d: Decisions, of_row: Any = None) -> AnyNoise:
    """The noise for these decisions: habits know which labels each of them offers.

    of_row: (P,) the position of each row's label; default: that is what the labels of d are. Any
    noise without habits is left as it is.
    """
    if not isinstance(noise, LapseArguments) or not noise.has_habits:
        return noise
    # decisions of samplers have numbers for labels
    label = np.asarray(d.actions if of_row is None else of_row, dtype=np.int64)
    index = index_offers(d, label, noise.habit.weights.size)
    return noise._replace(habit=index._replace(weights=noise.habit.weights))


def index_offers(d: Decisions, of_row: Ints, labels: int) -> HabitIndex:
    """Which labels each decision offers and which was chosen, decisions of one kind once."""
    # q depends on which labels are offered and on which was chosen, and on nothing else
    chosen = of_row[d.chosen_row]
    where, kind = find_label_kinds(d, of_row, chosen)
    offered = np.zeros((len(where), labels))
    # the rows of the first decision of every kind
    first = d[where]
    picked = np.repeat(d.start[where] - first.start[:-1], first.sizes) + np.arange(first.start[-1])
    np.add.at(offered, (first.decision_of_row, of_row[picked]), 1.0)
    return HabitIndex(offered, chosen[where], kind.astype(np.int64), np.ones(labels))


def kinds_of_offers(noise: AnyNoise) -> Ints | None:
    """(T,) which labels each decision offered, as small numbers; None where that does not matter.

    noise: bound to these decisions.
    """
    if not isinstance(noise, LapseArguments) or not noise.has_habits:
        return None
    return noise.habit.of_decision


def for_kinds(noise: AnyNoise, kinds: Ints) -> AnyNoise:
    """The noise for decisions that have these kinds of offers (U,), such as the different ones."""
    if not isinstance(noise, LapseArguments) or not noise.has_habits:
        return noise
    return noise._replace(habit=noise.habit._replace(of_decision=np.ascontiguousarray(kinds)))


def weights_and_slopes(z: Floats) -> Floats:
    """(3, L) the weights of labels at coordinates z (L,), and two derivatives of their logs."""
    out = np.empty((3, z.size))
    write_weights(np.ascontiguousarray(z, dtype=np.float64), out)
    return out


def weights_of(z: Floats) -> Floats:
    """The weight of each label at its coordinate, z of any shape."""
    return np.asarray(weights_and_slopes(z.ravel())[0].reshape(z.shape))


def habits_of(z: Floats) -> Floats:
    """(..., L) the probabilities of the labels at coordinates z (..., L)."""
    # normalised exponentials are uniform on the simplex
    weights = weights_of(z)
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


class HabitDerivatives:
    """Derivatives of log q of every kind of decision in the coordinates z (L,) of habits.

    first: (H, L). share: (H, L) of each label in the sum over the actions offered.
    """

    def __init__(self, habit: HabitIndex, z: Floats) -> None:
        weights, self._of_log, self._second_of_log = weights_and_slopes(z)
        # what each label has of the sum over the actions offered, of every kind
        shares = habit.offered * weights
        self.share = shares / shares.sum(axis=1, keepdims=True)
        # d log q / d log g: one for what was chosen, less the share of each
        self._by_log = -self.share
        self._by_log[np.arange(len(habit.chosen)), habit.chosen] += 1.0
        self.first = self._by_log * self._of_log

    def second(self, times: Floats) -> Floats:
        """(L, L) the second derivatives, kinds counted so many times (H,)."""
        # of log g_c: on the diagonal; of log sum g: also the covariance of the shares
        scaled = self.share * self._of_log
        own = times @ (self._by_log * self._second_of_log - scaled * self._of_log)
        return np.asarray(np.diag(own) + scaled.T @ (times[:, None] * scaled))


def check_habit(habit: Any) -> dict[Hashable, Floats]:
    """A mapping from labels to their probabilities, each a number or (S,) numbers of S draws."""
    if not isinstance(habit, Mapping) or len(habit) == 0:
        raise ValueError("habit must be a mapping from action labels to probabilities")
    # one number each, or one for each draw, the same number of draws for all labels
    found = {label: np.asarray(p, dtype=np.float64) for label, p in habit.items()}
    shapes = {p.shape for p in found.values()}
    total = sum(found.values()) if len(shapes) == 1 else np.zeros(1)
    # zero probabilities would leave decisions in which nothing can be chosen
    positive = all(p.ndim <= 1 and p.size and (p > 0.0).all() for p in found.values())
    if not positive or not np.allclose(np.asarray(total), 1.0, atol=1e-6):
        raise ValueError(
            "the probabilities of a habit must be positive and add up to one: each a number, or "
            "(S,) numbers of S draws"
        )
    return found


def label_positions(labels: tuple[Hashable, ...], d: Decisions) -> Ints:
    """(P,) the position of each row's label among labels; refuses labels that are not there."""
    if d.actions is None:
        raise ValueError(
            "these decisions have no action labels, which habits need; give actions=..."
        )
    # labels are looked up once each, not once a row
    found, of_row = np.unique(d.actions, return_inverse=True)
    known = {label: i for i, label in enumerate(labels)}
    for label in found.tolist():
        if label not in known:
            row = int(np.argmax(d.actions == label))
            raise ValueError(
                f"decision {d.ids[d.decision_of_row[row]]} offers {label!r}, and habits are known "
                f"of {', '.join(map(repr, labels))} alone"
            )
    return np.array([known[label] for label in found.tolist()], dtype=np.int64)[of_row]
