"""Reward and value: Bellman's equation read forwards and backwards (paper, section 2).

    plain:                           V(x) = r(x) + max_a {r2(a) + discount (R_x V)(a)}
    the noise is part of the reward: V(x) = r(x) + E max_a {e(a) + r2(a) + discount (R_x V)(a)}

Forwards, a reward and a discount determine the value; backwards, a value and a discount determine
the reward. In this module an MDP is its stacked rows: rows[start[x]:start[x + 1]] is R_x, and
`offered` is the action of each row. A state without rows ends the path: its best next is zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu
from scipy.special import ndtr

from revealed._types import Bools, Floats, Ints
from revealed.data.decisions import Rows
from revealed.kernels.noise import NORMAL, NoiseArguments


@dataclass(frozen=True)
class BellmanSettings:
    """How exactly and how long Bellman's equation is worked on."""

    # Between the trapezoid nodes of the expected maximum, in standard deviations of the noise:
    # with nodes from -9 to 9 the error is below 1e-12 with up to 5,000 tied actions.
    node_spacing: float = 0.125
    # Newton steps before the equation is given up; a dozen is usual.
    max_newton_steps: int = 1000
    # Utilities held at once when there are many draws: 32 MB. More cost memory, fewer time.
    utilities_at_a_time: int = 4_000_000
    # By how much the equation may be violated without a discount, in units of the largest reward of
    # a step: larger takes a diverging value for a solution, smaller refuses values above 1e9 steps.
    max_residual: float = 1e-6
    # Without a discount, actions worse than the best by less than this share of the largest value
    # count as equally good: far above rounding, far below what a step costs.
    tie: float = 1e-9


SETTINGS = BellmanSettings()
NODES = np.arange(-9.0, 9.0 + SETTINGS.node_spacing, SETTINGS.node_spacing)


@dataclass(frozen=True, eq=False, repr=False)
class Reward:
    """The reward of each state, as draws; known up to an additive constant, because the value is.

    Adding c to every value v changes no choice, and moves every state's reward by the same amount:

        c (1 - discount)             v = V: the plain reading without action rewards
        c (1 - discount) / discount  v = discount V: action rewards, or noise in the reward

    and adding c to every action reward lowers every state's reward by c. Differences between
    states are free of all this, so each draw is centred: it sums to zero over the states. With
    discount 1 an absorbing state earns zero, so ``draws - draws[..., [absorbing]]`` is the reward
    itself.

    A state without actions earns its value, once: c more on every value is c more there. Where
    there are such states, each draw is instead made to sum to zero over them.

    Attributes
    ----------
    draws
        (..., N) one reward for each draw and state.
    states
        N labels of the states.
    note
        What is known and what is not, in a sentence.
    """

    draws: Floats
    states: tuple[Any, ...]
    note: str

    @property
    def mean(self) -> Floats:
        """(N,) the posterior mean of each state's reward."""
        return np.asarray(self._flat.mean(axis=0))

    @property
    def sd(self) -> Floats:
        """(N,) the posterior sd of each state's reward.

        Zero when there is one draw.
        """
        return np.asarray(self._flat.std(axis=0))

    @property
    def _flat(self) -> Floats:
        """(S, N) the draws of all chains under one another."""
        return self.draws.reshape(-1, len(self.states))

    def __repr__(self) -> str:
        return (
            f"<Reward: {len(self.states)} states, draws of shape {self.draws.shape}, {self.note}>"
        )


def recover_reward(
    rows: Rows,
    start: Ints,
    offered: Ints,
    states: tuple[Any, ...],
    v: Floats,
    action_reward: Floats | None,
    discount: float,
    noise: NoiseArguments | None,
) -> Reward:
    """Bellman backwards: the reward behind values v (..., N).

    action_reward: (M,) or (..., M), or None. noise: the law of the noise where that is part of the
    reward, else None.
    """

    def best(utilities: Floats) -> Floats:
        if noise is None:
            return _maximum(utilities, start)
        return expected_maximum(utilities, start, noise)

    best_next = map_draws(rows, offered, v, action_reward, best)
    discounted = noise is not None or action_reward is not None
    terminal = np.diff(start) == 0
    return reward_from_value(states, v, best_next, discount, discounted, terminal)


def reward_from_value(
    states: tuple[Any, ...],
    v: Floats,
    best_next: Floats,
    discount: float,
    discounted: bool,
    terminal: Bools | None = None,
) -> Reward:
    """The reward from values v (..., N) and the best (..., N) of what each state leads to.

    discounted: whether v is discount V, rather than V itself. terminal: (N,) which states offer
    no action; default none.
    """
    if discounted:
        # v = discount V, so V = v / discount, and v is what the rows are averaged over.
        draws, shift = v / discount - best_next, "c (1 - discount) / discount"
    else:
        draws, shift = v - discount * best_next, "c (1 - discount)"
    # The sentence goes with the draws, since their level means nothing.
    note = (
        f"known up to an additive constant: c more on every value is {shift} more on every reward"
    )
    if discount == 1.0:
        note = (
            "known up to an additive constant, "
            "which the zero reward of an absorbing state fixes where there is one"
        )
    if terminal is not None and terminal.any():
        # c more on every value V is c more on these rewards, and c (1 - discount) on the others.
        level = draws[..., terminal].mean(axis=-1, keepdims=True)
        note = (
            "where the states without actions pay zero on average: "
            "c more for them would be c (1 - discount) more for every other state"
        )
        return Reward(draws - level * np.where(terminal, 1.0, 1.0 - discount), states, note)
    # The constant that is not identified is taken out of every draw.
    return Reward(draws - draws.mean(axis=-1, keepdims=True), states, note)


def solve_bellman(
    rows: Rows,
    start: Ints,
    reward: Floats,
    action_reward: Floats,
    discount: Floats,
    noise: NoiseArguments | None,
    shares: Floats | None = None,
    check: Callable[[Floats], None] | None = None,
) -> Floats:
    """Bellman forwards: the value (N,), with action rewards (P,) and a discount (N,) each state.

    A state with discount 0 and no reward has value 0: that is how an absorbing state ends the sum.
    Newton's method on a convex equation: from any start, the first step lands below the answer
    and the others climb.

    noise: as in `recover_reward`. shares: (P,) the policy to begin with; default the best for a
    value of zero. check: is given the shares of each policy before its value is worked out, and may
    refuse it. Where it is given the equation need not have a solution, and an ArithmeticError says
    that none was found.
    """
    # With noise, an action's share is the probability that it is the best.
    best_and_shares = (
        maximum_and_shares if noise is None else partial(expected_maximum_and_shares, noise=noise)
    )
    discount_of_row = np.repeat(discount, np.diff(start))

    def derivative(shares: Floats) -> Rows:
        # Of the best next value: the rows averaged by the shares of the actions.
        averaging = sp.csr_array(
            (discount_of_row * shares, np.arange(len(shares)), start),
            shape=(len(reward), len(shares)),
        )
        return averaging @ rows

    # Without a contraction a residual that is small beside a huge value proves nothing.
    step = np.abs(reward).max() + np.abs(action_reward).max() + 1.0
    largest = np.inf if check is None else SETTINGS.max_residual * step
    value = np.zeros(len(reward))
    with np.errstate(over="ignore", invalid="ignore"):
        if shares is not None:
            paid = reward + reduce_by_state(np.add, shares * action_reward, start, 0.0)
            value = _newton_step(derivative(shares), paid)
        for _ in range(SETTINGS.max_newton_steps):
            best, shares = best_and_shares(action_reward + discount_of_row * (rows @ value), start)
            # By how much the equation is violated; zero at the answer.
            residual = reward + best - value
            size = np.abs(residual).max()
            solved = size <= min(1e-13 * max(1.0, np.abs(value).max()), largest)
            if check is not None:
                check(shares)
            try:
                value = value + _newton_step(derivative(shares), residual)
            except (np.linalg.LinAlgError, RuntimeError):
                break
            # Overflow, with huge rewards or a discount that rounds to one.
            if not np.isfinite(value).all():
                break
            # Refined once more by this last step, which matters when the discount is almost 1.
            if solved:
                return value
    if check is not None:
        raise ArithmeticError("no solution was found")
    raise ValueError(
        "Bellman's equation cannot be solved in floating point; "
        "give smaller rewards or a smaller discount"
    )


def _newton_step(derivative: Rows, residual: Floats) -> Floats:
    """(I - derivative)^-1 residual, sparse or dense as the derivative (N, N) is."""
    if sp.issparse(derivative):
        matrix = sp.csc_array(sp.eye_array(len(residual)) - derivative)
        return np.asarray(splu(matrix).solve(residual))
    return np.asarray(np.linalg.solve(np.eye(len(residual)) - derivative, residual))


def map_draws(
    rows: Rows,
    offered: Ints,
    v: Floats,
    action_reward: Floats | None,
    function: Callable[[Floats], np.ndarray[Any, Any]],
) -> np.ndarray[Any, Any]:
    """(..., N) `function` of the utilities (S, P) of every draw of v (..., N).

    Worked out some draws at a time, so that memory stays bounded.
    """
    # All draws of all chains under one another.
    flat, parts = v.reshape(-1, v.shape[-1]), []
    if action_reward is not None:
        width = action_reward.shape[-1]
        # One action reward may serve all draws.
        action_reward = np.broadcast_to(action_reward, (*v.shape[:-1], width))
        action_reward = action_reward.reshape(len(flat), width)
    # Draws times rows is what takes memory.
    at_a_time = max(1, SETTINGS.utilities_at_a_time // len(offered))
    for first in range(0, len(flat), at_a_time):
        some = slice(first, first + at_a_time)
        utilities = np.ascontiguousarray((rows @ flat[some].T).T)
        if action_reward is not None:
            utilities = utilities + action_reward[some][:, offered]
        parts.append(function(utilities))
    return np.concatenate(parts).reshape(v.shape)


def maximum_and_shares(utilities: Floats, start: Ints) -> tuple[Floats, Floats]:
    """The best utility of each state, and a share (..., P) of one for its best action.

    Equally good actions divide the share between them.
    """
    best, sizes = _maximum(utilities, start), np.diff(start)
    # Exact equality: the largest is one of the numbers themselves.
    is_best = (utilities == np.repeat(best, sizes, axis=-1)).astype(np.float64)
    count = reduce_by_state(np.add, is_best, start, 1.0)
    return best, is_best / np.repeat(count, sizes, axis=-1)


def expected_maximum(utilities: Floats, start: Ints, noise: NoiseArguments = NORMAL) -> Floats:
    """(..., N) the mean of max_a {e(a) + u(a)} in each state, e(a) independent with mean zero.

    `utilities` is (..., P), and utilities[..., start[x]:start[x + 1]] are the actions of state x.
    Under normal noise, with m the largest u, the mean is m plus the integral of
    Phi(z) - prod_a Phi(z + m - u(a)): both terms are distribution functions, the first with mean
    zero. The integrand is smooth and never negative. Under logit noise it is log sum exp(u), the
    Gumbel distribution shifted to mean zero. A state without actions has mean zero.
    """
    acts = np.diff(start) > 0
    if not acts.all():
        return _with_zeros(expected_maximum(utilities, _starts_of(start, acts), noise), acts)
    best, gap = _gaps_to_best(utilities, start)
    # in closed form, relative to the best so that nothing overflows
    if noise.is_logit:
        return np.asarray(best + np.log(np.add.reduceat(np.exp(gap), start[:-1], axis=-1)))
    # The trapezoid rule; its error falls faster than any power of the spacing.
    area = np.zeros_like(best)
    for z in NODES:
        area += ndtr(z) - np.multiply.reduceat(ndtr(z - gap), start[:-1], axis=-1)
    return np.asarray(best + SETTINGS.node_spacing * area)


def expected_maximum_and_shares(
    utilities: Floats, start: Ints, noise: NoiseArguments = NORMAL
) -> tuple[Floats, Floats]:
    """The expected maximum (..., N), and its gradient (..., P).

    The gradient is how probably each action is the best of its state: under normal noise the
    integral of phi(z + m - u(a)) times the product of the other actions' Phi.
    """
    acts = np.diff(start) > 0
    if not acts.all():
        means, shares = expected_maximum_and_shares(utilities, _starts_of(start, acts), noise)
        return _with_zeros(means, acts), shares
    best, gap = _gaps_to_best(utilities, start)
    sizes = np.diff(start)
    if noise.is_logit:
        shares = np.exp(gap)
        total = np.add.reduceat(shares, start[:-1], axis=-1)
        return best + np.log(total), shares / np.repeat(total, sizes, axis=-1)
    area, shares = np.zeros_like(best), np.zeros_like(gap)
    for z in NODES:
        # Every action's chance to be below z, and the product over those of a state.
        below = ndtr(z - gap)
        all_below = np.multiply.reduceat(below, start[:-1], axis=-1)
        area += ndtr(z) - all_below
        shares += np.repeat(all_below, sizes, axis=-1) / below * np.exp(-0.5 * (z - gap) ** 2)
    spacing = SETTINGS.node_spacing
    return best + spacing * area, shares * (spacing / np.sqrt(2.0 * np.pi))


def reduce_by_state(
    operation: np.ufunc, of_rows: np.ndarray[Any, Any], start: Ints, empty: Any
) -> np.ndarray[Any, Any]:
    """(..., N) a sum, maximum or the like over the rows (..., P) of each state.

    empty: what a state without rows gets.
    """
    acts = np.diff(start) > 0
    # `reduceat` takes the rows from one start to the next, and knows no empty run.
    found = operation.reduceat(of_rows, start[:-1][acts], axis=-1)
    if acts.all():
        return np.asarray(found)
    out = np.full((*found.shape[:-1], len(acts)), empty, dtype=found.dtype)
    out[..., acts] = found
    return out


def state_of_row(start: Ints) -> Ints:
    """(P,) the state that each row belongs to, as a position."""
    return np.repeat(np.arange(len(start) - 1), np.diff(start))


def _starts_of(start: Ints, acts: Bools) -> Ints:
    """Where the rows of those states begin that have any, and the number of rows."""
    return np.append(start[:-1][acts], start[-1])


def _with_zeros(numbers: Floats, acts: Bools) -> Floats:
    """(..., N) numbers of the states that act, with zeros for the others."""
    out = np.zeros((*numbers.shape[:-1], len(acts)))
    out[..., acts] = numbers
    return out


def _maximum(utilities: Floats, start: Ints) -> Floats:
    """(..., N) the largest utility of each state.

    Zero where there is no action.
    """
    return reduce_by_state(np.maximum, utilities, start, 0.0)


def _gaps_to_best(utilities: Floats, start: Ints) -> tuple[Floats, Floats]:
    """(..., N) the largest utility of each state, and (..., P) how far each action is below it."""
    best = _maximum(utilities, start)
    # An action forty below is never taken; the floor keeps the square of the gap finite.
    return best, np.maximum(utilities - np.repeat(best, np.diff(start), axis=-1), -40.0)
