"""Whether the transitions of a Markov decision process are known, or inferred with the values.

Where they are not known, each row p(. | x, a) has a Dirichlet prior. The transitions seen inform
it, and so do the choices: an action that is always taken says something about where it leads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from revealed._types import Bools, Floats
from revealed.data.trajectories import Trajectories
from revealed.mdp.checks import check_availability, check_finite_table
from revealed.mdp.process import MDP


@dataclass(frozen=True)
class Known:
    """The rows of the decisions are what the controller goes by.

    Examples
    --------
    >>> rv.ChoiceModel().transitions
    Known()
    """


@dataclass(frozen=True, eq=False)
class Dirichlet:
    """Each row p(. | x, a) is Dirichlet before anything is seen; for `Trajectories`.

    Controller and observer are taken to mean the same transitions.

    Parameters
    ----------
    concentration
        A number, one for each of the N next states, or (M, N, N), concentration[a, x, y]; zero
        rules a transition out.
    available
        (N, M) which actions each state has; default: all.
    action_rewards
        Whether actions have rewards of their own, beside the values of states.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> maze = rv.random_mdp(rng, states=3, actions=2)
    >>> seen = rv.Trajectories(maze.simulate(rng, [2.0, 0.0, -2.0], 200), states=3, actions=2)
    >>> rv.fit(seen, rv.ChoiceModel(prior=rv.Normal(2.0), transitions=rv.Dirichlet(1.0)))
    <MDPPosterior: ...>
    """

    concentration: Any = 1.0
    available: Any = None
    action_rewards: bool = False


Transitions = Known | Dirichlet
"""What `ChoiceModel.transitions` may be."""


def check_concentration(dirichlet: Dirichlet, seen: Trajectories) -> tuple[Floats, Bools]:
    """The concentrations of every row (M, N, N), and which rows exist (N, M).

    A concentration is zero where a transition is impossible, and for rows that do not exist.
    Checked against the transitions that were seen.
    """
    N, M = len(seen.states), len(seen.actions)
    prior = check_finite_table("concentration", dirichlet.concentration)
    if prior.shape not in ((), (N,), (M, N, N)):
        hint = "; transpose(1, 0, 2) puts the actions first" if prior.shape == (N, M, N) else ""
        raise ValueError(
            f"concentration has shape {prior.shape}; give a number, one for each of the {N} next "
            f"states, or (M, N, N) = ({M}, {N}, {N}), concentration[a, x, y]{hint}"
        )
    if (prior < 0).any():
        raise ValueError(f"concentration must not be negative; it is {prior.min():g} somewhere")
    exists = check_availability(dirichlet.available, N, M)
    _check_chosen_exist(exists, seen)
    # Rows that do not exist have no prior.
    concentration = np.broadcast_to(prior, (M, N, N)) * exists.T[:, :, None]
    _check_possible(concentration, exists, seen)
    return concentration, exists


def _check_chosen_exist(exists: Bools, seen: Trajectories) -> None:
    """Check that every state has an action, and every action that was chosen its row (N, M)."""
    empty = np.flatnonzero(~exists.any(axis=1))
    if empty.size:
        raise ValueError(
            f"state {seen.states[empty[0]]}: no action is available; every state needs at least one"
        )
    x, a = seen.state_position, seen.action_position
    wrong = np.flatnonzero(~exists[x, a])
    if wrong.size:
        t = int(wrong[0])
        raise ValueError(
            f"decision {t}: action {seen.actions[a[t]]} is not available "
            f"in state {seen.states[x[t]]}"
        )


def _check_possible(concentration: Floats, exists: Bools, seen: Trajectories) -> None:
    """Check that every row leads somewhere, and that what was seen has positive concentration."""
    for a, x, y in np.argwhere((concentration == 0.0) & (seen.counts > 0))[:1]:
        raise ValueError(
            f"state {seen.states[x]}, action {seen.actions[a]}: a move to state "
            f"{seen.states[y]} was seen {seen.counts[a, x, y]} times, "
            "but its concentration is zero, which says that it cannot happen"
        )
    for x, a in np.argwhere(exists & (concentration.sum(axis=2) == 0.0).T)[:1]:
        raise ValueError(
            f"state {seen.states[x]}, action {seen.actions[a]}: the concentration is zero "
            "for every next state, so it leads nowhere; give positive numbers, or mark the action "
            "as not available"
        )


def mean_process(seen: Trajectories, concentration: Floats, exists: Bools) -> MDP:
    """The process at the means p(. | x, a) that the transitions alone suggest.

    Given the transitions alone, a row is Dirichlet(concentration + counts).
    """
    shape = row_shapes(seen, concentration)
    # pairs that do not exist have no row, and a sum of zero
    mean = shape / np.where(exists.T, shape.sum(axis=2), 1.0)[:, :, None]
    return MDP(mean, exists, states=seen.states, actions=seen.actions)


def row_shapes(seen: Trajectories, concentration: Floats) -> Floats:
    """(M, N, N) the Dirichlet law of each row, given the transitions seen and nothing else."""
    return np.asarray(concentration + seen.counts * (concentration > 0.0))
