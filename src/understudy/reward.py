"""Reward and value: Bellman's equation read forwards and backwards (paper, section 2).

    plain:                           V(x) = r(x) + max_a {r2(a) + discount (R_x V)(a)}
    the noise is part of the reward: V(x) = r(x) + E max_a {e(a) + r2(a) + discount (R_x V)(a)}

Forwards, a reward and a discount determine the value; backwards, a value and a discount determine the reward.
Here an MDP is its stacked rows: rows[start[x]:start[x + 1]] is R_x, and `offered` names the action of each row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu
from scipy.special import ndtr

from understudy._arrays import Floats, Ints
from understudy.decisions import Rows

# Trapezoid nodes around the best action: error below 1e-12 with up to 5,000 tied actions.
_STEP = 0.125
_NODES = np.arange(-9.0, 9.0 + _STEP, _STEP)
_CELLS = 4_000_000  # how many utilities are held at once when there are many draws
_NEWTON = 1000  # steps before Bellman's equation is given up; a dozen is usual


@dataclass(frozen=True, eq=False, repr=False)
class Reward:
    """The reward of each state, as draws; known up to an additive constant, because the value is.

    Adding c to every value v changes no choice, and moves every state's reward by the same amount:

        c (1 - discount)             v = V: the plain reading without action rewards
        c (1 - discount) / discount  v = discount V: action rewards, or the noise is part of the reward

    and adding c to every action reward lowers every state's reward by c. Differences between states are free
    of all this, so each draw is centred: it sums to zero over the states. With discount 1 an absorbing state
    earns zero, so ``draws - draws[..., [absorbing]]`` is the reward itself.

    Attributes:
        draws: (..., N) one reward for each draw and state.
        states: N labels of the states.
        note: what is known and what is not, in a sentence.
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
        """(N,) the posterior standard deviation of each state's reward; zero when there is one draw."""
        return np.asarray(self._flat.std(axis=0))

    @property
    def _flat(self) -> Floats:
        return self.draws.reshape(-1, len(self.states))

    def __repr__(self) -> str:
        return f"<Reward: {len(self.states)} states, draws of shape {self.draws.shape}, {self.note}>"


def recover(
    rows: Rows,
    start: Ints,
    offered: Ints,
    states: tuple[Any, ...],
    v: Floats,
    extra: Floats | None,
    discount: float,
    noise: bool,
) -> Reward:
    """Bellman backwards: the reward behind values v (..., N) and action rewards (M,) or (..., M)."""

    def best(utilities: Floats) -> Floats:
        return expected_maximum(utilities, start) if noise else _maximum(utilities, start)

    return behind(states, v, each_draw(rows, offered, v, extra, best), discount, noise or extra is not None)


def behind(states: tuple[Any, ...], v: Floats, ahead: Floats, discount: float, discounted: bool) -> Reward:
    """The reward from values v (..., N) and the best of what each state leads to; discounted: v is discount V."""
    if discounted:
        draws, shift = v / discount - ahead, "c (1 - discount) / discount"
    else:
        draws, shift = v - discount * ahead, "c (1 - discount)"
    note = f"known up to an additive constant: c more on every value is {shift} more on every reward"
    if discount == 1.0:
        note = "known up to an additive constant, which the zero reward of an absorbing state fixes"
    return Reward(draws - draws.mean(axis=-1, keepdims=True), states, note)


def solve_bellman(rows: Rows, start: Ints, reward: Floats, extra: Floats, discount: Floats, noise: bool) -> Floats:
    """Bellman forwards: the value (N,), with `extra` (P,) the action rewards and one discount for each state.

    A state with discount 0 and no reward has value 0: that is how an absorbing state ends the sum. Newton's
    method on a convex equation: from any start, the first step lands below the answer and the others climb.
    """
    look = expected_maximum_and_shares if noise else maximum_and_shares
    of_row = np.repeat(discount, np.diff(start))
    value = np.zeros(len(reward))
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(_NEWTON):
            best, shares = look(extra + of_row * (rows @ value), start)
            short = reward + best - value
            solved = np.abs(short).max() <= 1e-13 * max(1.0, np.abs(value).max())
            mix = sp.csr_array((of_row * shares, np.arange(len(shares)), start), shape=(len(value), len(shares)))
            try:
                value = value + _newton_step(mix @ rows, short)
            except (np.linalg.LinAlgError, RuntimeError):
                break
            if not np.isfinite(value).all():
                break
            if solved:  # and refined once more by this last step, which matters when the discount is almost 1
                return value
    raise ValueError(
        "Bellman's equation cannot be solved in floating point; give smaller rewards or a smaller discount"
    )


def _newton_step(moves: Rows, short: Floats) -> Floats:
    if sp.issparse(moves):
        return np.asarray(splu(sp.csc_array(sp.eye_array(len(short)) - moves)).solve(short))
    return np.asarray(np.linalg.solve(np.eye(len(short)) - moves, short))


def each_draw(
    rows: Rows, offered: Ints, v: Floats, extra: Floats | None, work: Callable[[Floats], np.ndarray[Any, Any]]
) -> np.ndarray[Any, Any]:
    """(..., N) `work` on the utilities of every draw, some draws at a time so that memory stays bounded."""
    flat, parts = v.reshape(-1, v.shape[-1]), []
    if extra is not None:
        extra = np.broadcast_to(extra, (*v.shape[:-1], extra.shape[-1])).reshape(len(flat), extra.shape[-1])
    some = max(1, _CELLS // len(offered))
    for at in range(0, len(flat), some):
        now = slice(at, at + some)
        utilities = np.ascontiguousarray((rows @ flat[now].T).T)
        parts.append(work(utilities if extra is None else utilities + extra[now][:, offered]))
    return np.concatenate(parts).reshape(v.shape)


def maximum_and_shares(utilities: Floats, start: Ints) -> tuple[Floats, Floats]:
    """The best utility of each state, and a share (..., P) of one for its action, divided between equals."""
    best, sizes = _maximum(utilities, start), np.diff(start)
    hit = (utilities == np.repeat(best, sizes, axis=-1)).astype(np.float64)
    return best, hit / np.repeat(np.add.reduceat(hit, start[:-1], axis=-1), sizes, axis=-1)


def expected_maximum(utilities: Floats, start: Ints) -> Floats:
    """(..., N) the mean of max_a {e(a) + u(a)} in each state, e(a) independent N(0, 1).

    `utilities` is (..., P), and utilities[..., start[x]:start[x + 1]] are the actions of state x. With m the
    largest u, the mean is m plus the integral of Phi(z) - prod_a Phi(z + m - u(a)): both terms are
    distribution functions, the first with mean zero. The integrand is smooth and never negative.
    """
    best, gap = _around_best(utilities, start)
    area = np.zeros_like(best)
    for z in _NODES:
        area += ndtr(z) - np.multiply.reduceat(ndtr(z - gap), start[:-1], axis=-1)
    return np.asarray(best + _STEP * area)


def expected_maximum_and_shares(utilities: Floats, start: Ints) -> tuple[Floats, Floats]:
    """The expected maximum, and its gradient (..., P): how probably each action is the best of its state."""
    best, gap = _around_best(utilities, start)
    area, shares, sizes = np.zeros_like(best), np.zeros_like(gap), np.diff(start)
    for z in _NODES:
        below = ndtr(z - gap)
        all_below = np.multiply.reduceat(below, start[:-1], axis=-1)
        area += ndtr(z) - all_below
        shares += np.repeat(all_below, sizes, axis=-1) / below * np.exp(-0.5 * (z - gap) ** 2)
    return best + _STEP * area, shares * (_STEP / np.sqrt(2.0 * np.pi))


def _maximum(utilities: Floats, start: Ints) -> Floats:
    return np.asarray(np.maximum.reduceat(utilities, start[:-1], axis=-1))


def _around_best(utilities: Floats, start: Ints) -> tuple[Floats, Floats]:
    best = _maximum(utilities, start)
    # An action forty below is never taken; the floor keeps the square of the gap finite.
    return best, np.maximum(utilities - np.repeat(best, np.diff(start), axis=-1), -40.0)
