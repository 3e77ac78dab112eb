"""The stochastic shortest path problem: what a discount of one needs.

With discount one the sum of rewards has to end. An *end* is a state that offers no action, or an
absorbing state that pays nothing. A policy is *proper* when it reaches an end from every state with
probability one. Bellman's equation then has one solution, the value of the best policy, if

    there is a proper policy, and
    every other policy earns minus infinity from some state

(Bertsekas and Tsitsiklis 1991). The second holds when every step away from the ends costs
something, and exactly when no policy that stays away for ever earns zero or more a step on average.

Bertsekas and Tsitsiklis (1991), An analysis of stochastic shortest path problems, Mathematics of
Operations Research 16, 580-595.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp

from revealed._types import Bools, Floats, Ints
from revealed.data.decisions import Rows
from revealed.kernels.noise import NoiseArguments
from revealed.mdp.bellman import SETTINGS, reduce_by_state, solve_bellman, state_of_row


def solve_without_discount(
    rows: Rows,
    start: Ints,
    reward: Floats,
    action_reward: Floats,
    noise: NoiseArguments | None,
    states: tuple[Any, ...],
) -> Floats:
    """(N,) the value with discount one; refuses, in a sentence, where there is none.

    action_reward: (P,) of each row. noise: its law, where it is part of the reward.
    """
    noisy = noise is not None
    paid = reduce_by_state(np.logical_or, action_reward != 0.0, start, False)
    reachable = sp.csr_array(rows) > 0.0
    ends = _end_states(reachable, start, (reward == 0.0) & ~paid, noisy)
    proper = _proper_policy(rows, reachable, start, ends, noisy, states)
    # The sum of rewards ends in the ends: they go on with zero.
    problem = (rows, start, reward, action_reward, np.where(ends, 0.0, 1.0), noise)
    everywhere = np.ones(len(action_reward), np.bool_)
    if not _staying_away(reachable, start, ends, everywhere).any():
        return solve_bellman(*problem)

    def check_policy(shares: Floats) -> None:
        """Refuse a policy that is as good as those before it and never ends."""
        lost = ~_reaching(reachable[shares > 0.0], state_of_row(start)[shares > 0.0], ends)
        if lost.any():
            _refuse_staying_away(states[int(np.argmax(lost))], noisy)

    # From a proper policy on, each is better than the one before: it ends too, or is refused.
    try:
        value = solve_bellman(*problem, shares=None if noisy else proper, check=check_policy)
    except ArithmeticError:
        _refuse_staying_away(None, noisy)
    # With the noise every action is taken at times, so that a solution is the only one. Without it
    # a policy that stays away may be as good as the best that ends.
    if not noisy:
        utilities = action_reward + rows @ value
        best = np.repeat(reduce_by_state(np.maximum, utilities, start, 0.0), np.diff(start))
        ties = utilities >= best - SETTINGS.tie * max(1.0, float(np.abs(value).max()))
        away = _staying_away(reachable, start, ends, ties)
        if away.any():
            _refuse_staying_away(states[int(np.argmax(away))], noisy)
    return value


def _end_states(reachable: Rows, start: Ints, unpaid: Bools, noise: bool) -> Bools:
    """(N,) the states without actions, and the absorbing ones among `unpaid` (N,).

    A state is absorbing when all its actions stay in it. noise: whether the noise is part of the
    reward; then an absorbing end has a single action, since the best of several noises pays.
    """
    sizes = np.diff(start)
    stays = (np.diff(reachable.indptr) == 1) & (
        reachable.indices[reachable.indptr[:-1]] == state_of_row(start)
    )
    absorbing = reduce_by_state(np.logical_and, stays, start, False) & unpaid
    return np.asarray((sizes == 0) | (absorbing & (sizes == 1) if noise else absorbing))


def _proper_policy(
    rows: Rows, reachable: Rows, start: Ints, ends: Bools, noise: bool, states: tuple[Any, ...]
) -> Floats:
    """(P,) the shares of a policy that reaches an end from every state; refuses if there is none.

    Each state takes the action that most probably comes nearer to an end, counted in steps.
    """
    state, reached = state_of_row(start), ends.copy()
    shares = np.zeros(len(state))
    while not reached.all():
        nearer = np.where(reached[state], 0.0, rows @ reached.astype(np.float64))
        best = reduce_by_state(np.maximum, nearer, start, 0.0)
        found = np.flatnonzero(best > 0.0)
        if not found.size:
            alone = " and has one action" if noise else ""
            raise ValueError(
                f"discount 1 needs a policy that ends, but from state "
                f"{states[int(np.argmin(reached))]} none does: an end is a state without actions, "
                f"or one that is never left, pays nothing{alone}; give a discount below 1"
            )
        for x in found:
            shares[start[x] + int(np.argmax(nearer[start[x] : start[x + 1]]))] = 1.0
        reached[found] = True
    # Ends go on with zero, whichever action they take.
    shares[start[:-1][ends & (np.diff(start) > 0)]] = 1.0
    return shares


def _reaching(reachable: Rows, state: Ints, ends: Bools) -> Bools:
    """(N,) the states from which rows, of these states (P,), lead to an end if all are taken."""
    reached, before = ends.copy(), -1
    while before < reached.sum():
        before = int(reached.sum())
        leads = reachable @ reached.astype(np.int64) > 0
        reached[state[leads]] = True
    return reached


def _staying_away(reachable: Rows, start: Ints, ends: Bools, allowed: Bools) -> Bools:
    """(N,) the states from which some policy of the allowed rows (P,) never comes to an end.

    The largest set of states in which each has an action that never leaves the set: states
    without such an action are taken away until nothing changes.
    """
    away, smaller = np.ones_like(ends), ~ends
    while smaller.sum() < away.sum():
        away = smaller
        inside = (reachable @ (~away).astype(np.int64) == 0) & allowed
        smaller = away & reduce_by_state(np.logical_or, inside, start, False)
    return away


def _refuse_staying_away(state: Any, noise: bool) -> NoReturn:
    """The sentence for where a policy that never ends earns as much as the best that does."""
    where = "" if state is None else f" from state {state}"
    counted = ", the noise of the best action counted," if noise else ""
    raise ValueError(
        f"discount 1 needs every policy that never ends to earn minus infinity, but{where} one "
        f"that never ends earns{counted} zero or more a step; give lower rewards on the way, or a "
        "discount below 1"
    )
