"""Trajectories, counted: which actions were chosen in which states, and where they led.

A trajectory is states x_0, x_1, ... and actions a_0, a_1, ...: in x_t the controller chose a_t and
came to x_{t+1}. The last state needs no action; where it has one, that decision counts, and where
it led was not seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from revealed._types import Bools, Floats, Ints
from revealed.data.trajectories import Trajectory
from revealed.mdp.checks import check_availability, check_finite_table, check_labels, to_positions


@dataclass(frozen=True, eq=False)
class TransitionCounts:
    """T decisions in the order they were made, and how often each transition was seen.

    state_position, action_position: (T,) where each decision was made, and what was chosen.
    counts: (M, N, N) with counts[a, x, y] transitions from x to y under action a. states, actions:
    the N and M labels.
    """

    state_position: Ints
    action_position: Ints
    counts: Ints
    states: tuple[Any, ...]
    actions: tuple[Any, ...]


def count_transitions(
    trajectories: Any, states: Any, actions: Any, episodes: Any = None
) -> TransitionCounts:
    """The decisions and transitions of trajectories.

    trajectories: a `Trajectory`, a pair (states, actions), or a list of them. states, actions:
    how many there are, or their labels. episodes: (T,) the episode each decision belongs to,
    which cuts one flat trajectory into several.
    """
    state_labels, action_labels = _as_labels("states", states), _as_labels("actions", actions)
    N, M = len(state_labels), len(action_labels)
    # Trajectories are counted together: transitions of all of them inform every row.
    counts = np.zeros((M, N, N), np.int64)
    parts = []
    pairs = _as_pairs(trajectories)
    for i, (visited, chosen) in enumerate(pairs):
        where = f"trajectory {i}, " if len(pairs) > 1 else ""
        try:
            x = to_positions("time", "state", visited, state_labels)
            a = to_positions("time", "action", chosen, action_labels)
        except ValueError as wrong:
            raise ValueError(f"{where}{wrong}") from None
        _check_lengths(where, x.size, a.size)
        # Transitions that were seen: all but those out of the last decision of an episode.
        is_last = np.zeros(a.size, bool) if episodes is None else _ends(episodes, x.size, a.size)
        seen = np.flatnonzero(~is_last[: x.size - 1])
        # add.at, because the same transition may occur many times.
        np.add.at(counts, (a[seen], x[seen], x[seen + 1]), 1)
        # A last state without an action is no decision.
        parts.append((x[: a.size], a))
    if episodes is not None and len(pairs) != 1:
        raise ValueError(
            "episodes cut one flat trajectory (states, actions); "
            "a list of trajectories is cut already"
        )
    x, a = (np.concatenate(part) for part in zip(*parts, strict=True))
    return TransitionCounts(x, a, counts, state_labels, action_labels)


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


def _ends(episodes: Any, states: int, decisions: int) -> Bools:
    """(T,) whether a decision is the last of its episode: where it led was not seen."""
    # Episodes may be called anything; only where they change matters.
    ids = np.asarray(episodes)
    if states != decisions or ids.shape != (decisions,):
        raise ValueError(
            f"episodes has shape {ids.shape}, with {states} states and {decisions} actions; "
            "flat trajectories have one state, one action and one episode for each decision"
        )
    # As many changes as there are episodes, less one: otherwise one of them comes back.
    change = ids[1:] != ids[:-1]
    if len(np.unique(ids)) != 1 + int(change.sum()):
        raise ValueError(
            "the decisions of an episode must stand together: "
            "an episode comes back after another one"
        )
    return np.append(change, True)


def check_concentration(
    given: Any, available: Any, counted: TransitionCounts
) -> tuple[Floats, Bools]:
    """The Dirichlet prior of every row (M, N, N), and which rows exist (N, M).

    given: a number, one for each of the N next states, or (M, N, N). It is zero where a transition
    is impossible, and for rows that do not exist. Checked against the transitions that were seen.
    """
    N, M = len(counted.states), len(counted.actions)
    prior = check_finite_table("concentration", given)
    if prior.shape not in ((), (N,), (M, N, N)):
        hint = "; transpose(1, 0, 2) puts the actions first" if prior.shape == (N, M, N) else ""
        raise ValueError(
            f"concentration has shape {prior.shape}; give a number, one for each of the {N} next "
            f"states, or (M, N, N) = ({M}, {N}, {N}), concentration[a, x, y]{hint}"
        )
    if (prior < 0).any():
        raise ValueError(f"concentration must not be negative; it is {prior.min():g} somewhere")
    exists = check_availability(available, N, M)
    _check_chosen_exist(exists, counted)
    # Rows that do not exist have no prior.
    concentration = np.broadcast_to(prior, (M, N, N)) * exists.T[:, :, None]
    _check_possible(concentration, exists, counted)
    return concentration, exists


def _check_chosen_exist(exists: Bools, counted: TransitionCounts) -> None:
    """Check that every state has an action, and every action that was chosen its row (N, M)."""
    empty = np.flatnonzero(~exists.any(axis=1))
    if empty.size:
        raise ValueError(
            f"state {counted.states[empty[0]]}: no action is available; "
            "every state needs at least one"
        )
    x, a = counted.state_position, counted.action_position
    wrong = np.flatnonzero(~exists[x, a])
    if wrong.size:
        t = int(wrong[0])
        raise ValueError(
            f"decision {t}: action {counted.actions[a[t]]} is not available "
            f"in state {counted.states[x[t]]}"
        )


def _check_possible(concentration: Floats, exists: Bools, counted: TransitionCounts) -> None:
    """Check that every row leads somewhere, and that what was seen has positive concentration."""
    for a, x, y in np.argwhere((concentration == 0.0) & (counted.counts > 0))[:1]:
        raise ValueError(
            f"state {counted.states[x]}, action {counted.actions[a]}: a move to state "
            f"{counted.states[y]} was seen {counted.counts[a, x, y]} times, "
            "but its concentration is zero, which says that it cannot happen"
        )
    for x, a in np.argwhere(exists & (concentration.sum(axis=2) == 0.0).T)[:1]:
        raise ValueError(
            f"state {counted.states[x]}, action {counted.actions[a]}: the concentration is zero "
            "for every next state, so it leads nowhere; give positive numbers, or mark the action "
            "as not available"
        )
