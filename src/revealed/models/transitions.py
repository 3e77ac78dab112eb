"""Whether the transitions of a Markov decision process are known, or inferred with the values.

Where they are not known, each row p(. | x, a) has a Dirichlet prior. The transitions seen inform
it, and so do the choices: an action that is always taken says something about where it leads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

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
    support
        Which transitions are possible: (N, N), support[x, y] whatever the action, as the graph of a
        maze; or (M, N, N), support[a, x, y]; also sparse. Default: all of positive concentration.
        Only possible ones are drawn and kept.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> maze = rv.random_mdp(rng, states=3, actions=2)
    >>> seen = rv.Trajectories(maze.simulate(rng, [2.0, 0.0, -2.0], 200), states=3, actions=2)
    >>> rv.fit(seen, rv.ChoiceModel(prior=rv.Normal(2.0), transitions=rv.Dirichlet(1.0)))
    <MDPPosterior: ...>

    A corridor of four places, where one comes to the next place at most; each row has two or three
    possible next states:

    >>> near = np.eye(4) + np.eye(4, k=1) + np.eye(4, k=-1)
    >>> walk = rv.Trajectories(([0, 1, 2, 3, 2], [1, 1, 1, 0]), states=4, actions=2)
    >>> model = rv.ChoiceModel(transitions=rv.Dirichlet(1.0, support=near))
    >>> model.resolve(walk).parameters[1].shape
    (20,)
    """

    concentration: Any = 1.0
    available: Any = None
    action_rewards: bool = False
    support: Any = None

    def __post_init__(self) -> None:
        # frozen dataclasses set their fields this way
        object.__setattr__(self, "support", _as_dense(self.support))


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
    _check_possible(concentration, exists, seen, "its concentration is zero, which")
    if dirichlet.support is not None:
        concentration = concentration * _check_support(dirichlet.support, N, M)
        _check_possible(concentration, exists, seen, "the support")
    return concentration, exists


def _as_dense(support: Any) -> Any:
    """The same without sparse matrices.

    A list of them has one for each action.
    """
    if sp.issparse(support):
        return support.toarray()
    if isinstance(support, list | tuple) and any(sp.issparse(one) for one in support):
        return [one.toarray() if sp.issparse(one) else one for one in support]
    return support


def _check_support(support: Any, N: int, M: int) -> Bools:
    """(N, N) or (M, N, N) which transitions are possible: those that are true, or not zero."""
    table = check_finite_table("support", support)
    if table.shape not in ((N, N), (M, N, N)):
        hint = "; transpose(1, 0, 2) puts the actions first" if table.shape == (N, M, N) else ""
        raise ValueError(
            f"support has shape {table.shape}; give (N, N) = ({N}, {N}), support[x, y], or "
            f"(M, N, N) = ({M}, {N}, {N}), support[a, x, y]{hint}"
        )
    return np.asarray(table != 0.0)


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


def _check_possible(concentration: Floats, exists: Bools, seen: Trajectories, reason: str) -> None:
    """Check that every row leads somewhere, and that what was seen has positive concentration.

    reason: what says that a transition cannot happen, as a message calls it.
    """
    for a, x, y in np.argwhere((concentration == 0.0) & (seen.counts > 0))[:1]:
        raise ValueError(
            f"state {seen.states[x]}, action {seen.actions[a]}: a move to state "
            f"{seen.states[y]} was seen {seen.counts[a, x, y]} times, "
            f"but {reason} says that it cannot happen"
        )
    for x, a in np.argwhere(exists & (concentration.sum(axis=2) == 0.0).T)[:1]:
        raise ValueError(
            f"state {seen.states[x]}, action {seen.actions[a]}: "
            + (
                "the support has no next state"
                if reason == "the support"
                else "the concentration is zero for every next state"
            )
            + ", so it leads nowhere; give positive numbers, or mark the action as not available"
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
