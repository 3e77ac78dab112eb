"""What was seen of controllers in a finite Markov decision process.

A trajectory is states x_0, x_1, ... and actions a_0, a_1, ...: in x_t the controller chose a_t and
came to x_{t+1}. The last state needs no action; where it has one, that decision counts, and where
it led was not seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from revealed._types import Ints, Labels
from revealed.data.labels import check_labels, missing_label, to_positions


@dataclass(frozen=True, eq=False)
class Trajectory:
    """The state a controller was in and the action it chose, time by time.

    states, actions: (T,) positions among the states and actions of the process, not labels.
    """

    # Time t is index t of both.
    states: Ints
    actions: Ints

    def __len__(self) -> int:
        return len(self.states)


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Trajectories:
    """Trajectories through the states of one process; frozen, and checked when made.

    Parameters
    ----------
    trajectories
        A pair (states, actions), what ``mdp.simulate`` returns, or a list of these; labels or
        positions. The last state needs no action.
    states, actions
        How many there are, or their labels.
    episodes
        (T,) the episode of each decision, which cuts one flat trajectory into several.
    groups
        Who made each trajectory, one label for each; optional.

    Examples
    --------
    >>> seen = rv.Trajectories(([0, 1, 0], [0, 0]), states=2, actions=1)
    >>> seen, seen.counts[0]
    (<Trajectories: 1 trajectories, 2 decisions, 2 states, 1 actions>, array([[0, 1],
           [1, 0]]))
    """

    paths: tuple[Trajectory, ...]
    states: tuple[Any, ...]
    actions: tuple[Any, ...]
    groups: Labels | None
    counts: Ints

    def __init__(
        self, trajectories: Any, states: Any, actions: Any, episodes: Any = None, groups: Any = None
    ) -> None:
        state_labels, action_labels = _as_labels("states", states), _as_labels("actions", actions)
        pairs = _as_pairs(trajectories)
        if episodes is not None and len(pairs) != 1:
            raise ValueError(
                "episodes cut one flat trajectory (states, actions); "
                "a list of trajectories is cut already"
            )
        paths = []
        for i, (visited, chosen) in enumerate(pairs):
            where = f"trajectory {i}, " if len(pairs) > 1 else ""
            try:
                x = to_positions("time", "state", visited, state_labels)
                a = to_positions("time", "action", chosen, action_labels)
            except ValueError as wrong:
                raise ValueError(f"{where}{wrong}") from None
            _check_lengths(where, x.size, a.size)
            paths += [Trajectory(x, a)] if episodes is None else _cut_at_episodes(x, a, episodes)
        self._set(tuple(paths), state_labels, action_labels, _check_groups(groups, len(paths)))

    def _set(
        self,
        paths: tuple[Trajectory, ...],
        states: tuple[Any, ...],
        actions: tuple[Any, ...],
        groups: Labels | None,
        counts: Ints | None = None,
    ) -> None:
        """Set all fields; transitions are counted where they were not counted before.

        counts: (M, N, N) with counts[a, x, y] transitions from x to y under action a, those of all
        trajectories together, since each informs every row.
        """
        if counts is None:
            counts = _count_transitions(paths, len(states), len(actions))
        fields = {
            "paths": paths,
            "states": states,
            "actions": actions,
            "groups": groups,
            "counts": counts,
        }
        # frozen dataclasses set their fields this way
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @staticmethod
    def from_counts(
        decisions: tuple[Ints, Ints],
        counts: Ints,
        states: tuple[Any, ...],
        actions: tuple[Any, ...],
    ) -> Trajectories:
        """What is left of trajectories in older files: decisions (x, a), and transitions counted.

        Which decision led where is not known any more.
        """
        found = object.__new__(Trajectories)
        single = [Trajectory(x[None], a[None]) for x, a in zip(*decisions, strict=True)]
        found._set(tuple(single), states, actions, None, counts)
        return found

    def take(self, which: Iterable[int]) -> Trajectories:
        """Some of the trajectories, by their positions."""
        picked = list(which)
        some = object.__new__(Trajectories)
        groups = None if self.groups is None else self.groups[picked]
        some._set(tuple(self.paths[i] for i in picked), self.states, self.actions, groups)
        return some

    def __len__(self) -> int:
        """How many decisions were seen."""
        return len(self.action_position)

    def __repr__(self) -> str:
        return (
            f"<Trajectories: {len(self.paths)} trajectories, {len(self)} decisions, "
            f"{len(self.states)} states, {len(self.actions)} actions>"
        )

    @cached_property
    def state_position(self) -> Ints:
        """(T,) the state of each decision; a last state without an action is no decision."""
        return np.concatenate([path.states[: len(path.actions)] for path in self.paths])

    @cached_property
    def action_position(self) -> Ints:
        """(T,) what was chosen in each decision."""
        return np.concatenate([path.actions for path in self.paths])

    @property
    def group_of_decision(self) -> Labels:
        """(T,) the label of who made each decision; refuses where the groups are not known."""
        if self.groups is None:
            raise ValueError(
                "the trajectories do not say whose they are: give groups=, one label a trajectory"
            )
        return np.repeat(self.groups, [len(path.actions) for path in self.paths])


def _count_transitions(paths: Iterable[Trajectory], N: int, M: int) -> Ints:
    """(M, N, N) how often each transition was seen."""
    counts = np.zeros((M, N, N), np.int64)
    for path in paths:
        x, a = path.states, path.actions[: len(path.states) - 1]
        # add.at, because the same transition may occur many times
        np.add.at(counts, (a, x[:-1], x[1:]), 1)
    return counts


def _check_groups(groups: Any, count: int) -> Labels | None:
    """(count,) the label of who made each trajectory, or None."""
    if groups is None:
        return None
    labels = np.array(groups)
    if labels.shape != (count,):
        raise ValueError(
            f"groups has shape {labels.shape}, but there are {count} trajectories; "
            "give one label for each"
        )
    wrong = missing_label(labels)
    if wrong is not None:
        raise ValueError(f"trajectory {wrong}: the label of who decided is missing")
    return labels


def _check_lengths(where: str, states: int, actions: int) -> None:
    """Check that a trajectory has an action for each state, or for each but the last.

    where: how a message begins, naming the trajectory if there are several.
    """
    if actions not in (states, states - 1):
        raise ValueError(
            f"{where}{states} states and {actions} actions: give one action for each state, "
            "or one fewer where the last state is only where the last action led"
        )
    if actions == 0:
        raise ValueError(
            f"{where}there are no decisions; a trajectory needs at least one state with an action"
        )


def _as_labels(what: str, given: Any) -> tuple[Any, ...]:
    """Labels of states or actions, from a list of them or from how many there are."""
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        if given < 1:
            raise ValueError(
                f"{what} must be how many there are, at least 1, or their labels; it is {given}"
            )
        return check_labels(what, None, int(given))
    if isinstance(given, str) or not isinstance(given, Sequence | np.ndarray) or len(given) == 0:
        raise ValueError(f"{what} must be how many there are, or their labels; it is {given!r}")
    return check_labels(what, list(given), len(given))


def _as_pairs(trajectories: Any) -> list[tuple[Any, Any]]:
    """Pairs (states, actions), one for each trajectory; a list is several of them."""
    # A tuple is one trajectory, a pair; a list is several.
    listed = trajectories if isinstance(trajectories, list) else [trajectories]
    pairs = []
    for i, one in enumerate(listed):
        if isinstance(one, Trajectory):
            pairs.append((one.states, one.actions))
        elif isinstance(one, tuple) and len(one) == 2:
            pairs.append((one[0], one[1]))
        else:
            raise ValueError(
                f"trajectory {i} is a {type(one).__name__}; a trajectory is a pair "
                "(states, actions) or what mdp.simulate returns, and several of them are a list"
            )
    if not pairs:
        raise ValueError("there are no trajectories; at least one is needed")
    return pairs


def _cut_at_episodes(x: Ints, a: Ints, episodes: Any) -> list[Trajectory]:
    """One trajectory for each episode: where its last decision led was not seen."""
    # Episodes may be called anything; only where they change matters.
    ids = np.asarray(episodes)
    if x.size != a.size or ids.shape != a.shape:
        raise ValueError(
            f"episodes has shape {ids.shape}, with {x.size} states and {a.size} actions; "
            "flat trajectories have one state, one action and one episode for each decision"
        )
    # As many changes as there are episodes, less one: otherwise one of them comes back.
    ends = np.flatnonzero(ids[1:] != ids[:-1]) + 1
    if len(np.unique(ids)) != 1 + ends.size:
        raise ValueError(
            "the decisions of an episode must stand together: "
            "an episode comes back after another one"
        )
    pieces = zip(np.split(x, ends), np.split(a, ends), strict=True)
    return [Trajectory(states, actions) for states, actions in pieces]
