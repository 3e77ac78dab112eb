"""Trajectories, counted: which actions were taken where, and where they led.

A trajectory is states x_0, x_1, ... and actions a_0, a_1, ...: in x_t the controller took a_t and landed in x_{t+1}. The
last state needs no action; where it has one, that decision counts, and nobody saw where it led.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy._arrays import Bools, Floats, Ints
from understudy.mdp import Trajectory
from understudy.mdp_input import availability, labels_for, numbers_of, positions_of


@dataclass(frozen=True, eq=False)
class Seen:
    """What trajectories hold: T decisions in the order they were made, and how often each transition was seen.

    x, a: (T,) the state and the action, as positions. counts: (M, N, N) with counts[a, x, y] transitions from x to y.
    """

    x: Ints
    a: Ints
    counts: Ints
    states: tuple[Any, ...]
    actions: tuple[Any, ...]


def see(trajectories: Any, states: Any, actions: Any, episodes: Any = None) -> Seen:
    """Read trajectories: a `Trajectory`, a pair (states, actions), or a list of them; flat ones are cut by `episodes`."""
    of_state, of_action = _labels("states", states), _labels("actions", actions)
    N, M = len(of_state), len(of_action)
    counts = np.zeros((M, N, N), np.int64)
    parts = []
    pairs = _pairs(trajectories)
    for i, (visited, taken) in enumerate(pairs):
        where = f"trajectory {i}, " if len(pairs) > 1 else ""
        try:
            x = positions_of("time", "state", visited, of_state)
            a = positions_of("time", "action", taken, of_action)
        except ValueError as wrong:
            raise ValueError(f"{where}{wrong}") from None
        if a.size not in (x.size, x.size - 1):
            raise ValueError(
                f"{where}{x.size} states and {a.size} actions: give one action for each state, "
                "or one fewer where the last state is only where the last action led"
            )
        if a.size == 0:
            raise ValueError(f"{where}there are no decisions; a trajectory needs at least one state with an action")
        last = np.zeros(a.size, bool) if episodes is None else _ends(episodes, x.size, a.size)
        moves = np.flatnonzero(~last[: x.size - 1])
        np.add.at(counts, (a[moves], x[moves], x[moves + 1]), 1)
        parts.append((x[: a.size], a))
    if episodes is not None and len(pairs) != 1:
        raise ValueError("episodes cut one flat trajectory (states, actions); a list of trajectories is cut already")
    x, a = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Seen(x, a, counts, of_state, of_action)


def _labels(what: str, given: Any) -> tuple[Any, ...]:
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        if given < 1:
            raise ValueError(f"{what} must be how many there are, at least 1, or their labels; it is {given}")
        return labels_for(what, None, int(given))
    if isinstance(given, str) or not isinstance(given, Sequence | np.ndarray) or len(given) == 0:
        raise ValueError(f"{what} must be how many there are, or their labels; it is {given!r}")
    return labels_for(what, list(given), len(given))


def _pairs(trajectories: Any) -> list[tuple[Any, Any]]:
    each = trajectories if isinstance(trajectories, list) else [trajectories]
    pairs = []
    for i, one in enumerate(each):
        if isinstance(one, Trajectory):
            pairs.append((one.states, one.actions))
        elif isinstance(one, tuple) and len(one) == 2:
            pairs.append((one[0], one[1]))
        else:
            raise ValueError(
                f"trajectory {i} is a {type(one).__name__}; a trajectory is a pair (states, actions) or what "
                "mdp.simulate returns, and several of them are a list"
            )
    if not pairs:
        raise ValueError("there are no trajectories; at least one is needed")
    return pairs


def _ends(episodes: Any, states: int, decisions: int) -> Bools:
    """(T,) the last decision of each episode, which nobody saw the landing of."""
    ids = np.asarray(episodes)
    if states != decisions or ids.shape != (decisions,):
        raise ValueError(
            f"episodes has shape {ids.shape}, with {states} states and {decisions} actions; "
            "flat trajectories have one state, one action and one episode for each decision"
        )
    change = ids[1:] != ids[:-1]
    if len(np.unique(ids)) != 1 + int(change.sum()):
        raise ValueError("the decisions of an episode must stand together: an episode comes back after another one")
    return np.append(change, True)


def concentrations(given: Any, available: Any, seen: Seen) -> tuple[Floats, Bools]:
    """The Dirichlet prior of every row, (M, N, N), zero where a transition is impossible; and (N, M) which rows exist."""
    N, M = len(seen.states), len(seen.actions)
    prior = numbers_of("concentration", given)
    if prior.shape not in ((), (N,), (M, N, N)):
        hint = "; transpose(1, 0, 2) puts the actions first" if prior.shape == (N, M, N) else ""
        raise ValueError(
            f"concentration has shape {prior.shape}; give a number, one for each of the {N} next states, or (M, N, N) = "
            f"({M}, {N}, {N}), concentration[a, x, y]{hint}"
        )
    if (prior < 0).any():
        raise ValueError(f"concentration must not be negative; it is {prior.min():g} somewhere")
    exists = availability(available, N, M)
    dead = np.flatnonzero(~exists.any(axis=1))
    if dead.size:
        raise ValueError(f"state {seen.states[dead[0]]}: no action is available; every state needs at least one")
    wrong = np.flatnonzero(~exists[seen.x, seen.a])
    if wrong.size:
        t = int(wrong[0])
        raise ValueError(
            f"decision {t}: action {seen.actions[seen.a[t]]} is not available in state {seen.states[seen.x[t]]}"
        )
    whole = np.broadcast_to(prior, (M, N, N)) * exists.T[:, :, None]
    for a, x, y in np.argwhere((whole == 0.0) & (seen.counts > 0))[:1]:
        raise ValueError(
            f"state {seen.states[x]}, action {seen.actions[a]}: a move to state {seen.states[y]} was seen "
            f"{seen.counts[a, x, y]} times, but its concentration is zero, which says that it cannot happen"
        )
    for x, a in np.argwhere(exists & (whole.sum(axis=2) == 0.0).T)[:1]:
        raise ValueError(
            f"state {seen.states[x]}, action {seen.actions[a]}: the concentration is zero for every next state, so it leads "
            "nowhere; give positive numbers, or mark the action as not available"
        )
    return whole, exists
