"""Finite Markov decision processes: a controller among N states with M actions (paper, section 2).

In state x the controller takes action a and lands in y with probability p(y | x, a). Only *available* pairs
(x, a) exist (paper, 4.1.3); their rows p(. | x, a) are stacked state by state, as in `Decisions`:

    rows    (P, N)    rows[start[x]:start[x + 1]] is the paper's R_x
    start   (N + 1,)  where each state's rows begin
    offered (P,)      the action each row belongs to

The value V solves Bellman's equation, r(x) the reward of a state and r2(a) of an action (paper, 4.1.1):

    plain:                           V(x) = r(x) + max_a {r2(a) + discount (R_x V)(a)}
    the noise is part of the reward: V(x) = r(x) + E max_a {e(a) + r2(a) + discount (R_x V)(a)}

and the noisy controller takes the action with the largest e(a) + r2(a) + (R_x v)(a), e(a) ~ N(0, 1). The v in
it, which is what an engine infers, is V itself in the plain reading without action rewards (the paper's
observation model), and discount * V when there are action rewards or when the noise is part of the reward.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from understudy._arrays import Bools, Floats, Ints
from understudy.decisions import Block, Decisions, Rows
from understudy.kernels.walk import walk
from understudy.mdp_input import availability, discount_of, labels_for, numbers_of, positions_of, stacked_transitions
from understudy.reward import Reward, each_draw, maximum_and_shares, recover, solve_bellman


@dataclass(frozen=True, eq=False)
class Trajectory:
    """What was seen of a controller: the state it was in and the action it took, as positions, time by time."""

    states: Ints
    actions: Ints

    def __len__(self) -> int:
        return len(self.states)


@dataclass(frozen=True, eq=False, init=False, repr=False)
class MDP:
    """A finite Markov decision process; frozen, and checked when made.

    Args:
        transitions: (M, N, N) with ``transitions[a, x, y]`` = p(y | x, a), or a list of M scipy sparse (N, N)
            matrices, which stay sparse.
        available: (N, M) booleans, which actions each state has; default all. Rows of other pairs are ignored.
        states: N labels; default 0, 1, ... A whole number always means a position, so labels are words (or pairs).
        actions: M labels, likewise.

    >>> mdp = us.MDP([[[0.8, 0.2], [0.0, 1.0]], [[0.3, 0.7], [0.5, 0.5]]], actions=["wait", "run"])
    >>> value = mdp.solve(reward=[0.0, 1.0], discount=0.9)
    >>> [mdp.actions[a] for a in mdp.policy(value)]
    ['run', 'wait']
    """

    rows: Rows
    start: Ints
    offered: Ints
    available: Bools
    states: tuple[Any, ...]
    actions: tuple[Any, ...]

    def __init__(
        self,
        transitions: Any,
        available: Any = None,
        *,
        states: Sequence[Any] | None = None,
        actions: Sequence[Any] | None = None,
    ) -> None:
        def put(field: str, value: Any) -> None:
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, field, value)

        stacked, M, N = stacked_transitions(transitions)
        put("states", labels_for("states", states, N))
        put("actions", labels_for("actions", actions, M))
        put("available", availability(available, N, M))
        dead = np.flatnonzero(~self.available.any(axis=1))
        if dead.size:
            raise ValueError(f"state {self.states[dead[0]]}: no action is available; every state needs at least one")
        owner, offered = np.nonzero(self.available)
        put("start", np.concatenate([[0], np.cumsum(self.available.sum(axis=1))]).astype(np.int64))
        put("offered", offered.astype(np.int64))
        put("rows", stacked[offered * N + owner])
        if sp.issparse(self.rows):
            for part in (self.rows.data, self.rows.indices, self.rows.indptr):
                part.flags.writeable = False
        self._refuse_bad_rows(owner)

    @property
    def transitions(self) -> Any:
        """As given, (M, N, N) or a tuple of M sparse matrices, with zeros for pairs that are not available."""
        shape = (len(self.states), len(self.states))
        if not sp.issparse(self.rows):
            whole = np.zeros((len(self.actions), *shape))
            whole[self.offered, self._owner] = self.rows
            return whole
        cells = sp.coo_array(self.rows)
        owner, offered = self._owner[cells.row], self.offered[cells.row]
        picks = [offered == a for a in range(len(self.actions))]
        return tuple(sp.csr_array((cells.data[k], (owner[k], cells.col[k])), shape=shape) for k in picks)

    def solve(self, reward: Any, discount: float, *, action_reward: Any = None, noise: bool = False) -> Floats:
        """The value V (N,) that solves Bellman's equation, in the plain reading or with the noise in the reward.

        Newton's method on the equation: with the plain maximum that is policy iteration; with the noise, each
        policy is the probabilities of the actions. Both climb to the answer from any start.

        Discount 1 is allowed when every policy ends, from every state, in an absorbing state that pays nothing:
        zero reward, zero for each of its actions and, when the noise is part of the reward, a single action
        (the best of several noises pays for ever). Its value is zero.
        """
        discount = discount_of(discount)
        state_reward = numbers_of("reward", reward)
        if state_reward.shape != (len(self.states),):
            raise ValueError(
                f"reward has shape {state_reward.shape}; give one number for each of {len(self.states)} states"
            )
        extra = np.zeros(len(self.actions)) if action_reward is None else self._action_reward(action_reward)
        extra = extra[self.offered]
        going = np.ones(len(self.states))
        if discount == 1.0:
            paid = np.logical_or.reduceat(extra != 0.0, self.start[:-1])
            going[self._ends((state_reward == 0.0) & ~paid, noise)] = 0.0
        return solve_bellman(self.rows, self.start, state_reward, extra, discount * going, noise)

    def policy(self, value: Any, *, action_reward: Any = None) -> Ints:
        """The best action of each state, argmax_a {r2(a) + (R_x v)(a)}, as positions; the first of equals.

        `value` is v: (..., N), or (..., N + M) with the action rewards behind. Draws give a policy each.
        """

        def first_best(utilities: Floats) -> Ints:
            best = maximum_and_shares(utilities, self.start)[1] > 0.0
            return np.minimum.reduceat(np.where(best, self.offered, len(self.actions)), self.start[:-1], axis=-1)

        v, extra = self._split(value, action_reward)
        return np.asarray(each_draw(self.rows, self.offered, v, extra, first_best), dtype=np.int64)

    def simulate(
        self, rng: np.random.Generator, value: Any, length: int, start: Any = None, *, action_reward: Any = None
    ) -> Trajectory:
        """Watch the noisy controller for `length` decisions: the largest e(a) + r2(a) + (R_x v)(a) is taken.

        `value` is v, (N,) or (N + M,) with the action rewards behind. For a controller that plans with `solve`,
        v is V in the plain reading, and discount * V with action rewards or with noise as part of the reward.
        `start` is the first state; by default it is drawn, all states alike.
        """
        _refuse_other_rng(rng)
        if not isinstance(length, int | np.integer) or length < 1:
            raise ValueError(f"length must be a whole number of decisions, at least one; it is {length}")
        v, extra = self._split(value, action_reward)
        if v.ndim != 1:
            raise ValueError(f"one controller has one value: simulate needs {v.shape[-1]} numbers, not {v.shape}")
        if start is None:
            x = int(rng.integers(len(self.states)))
        else:
            x = int(positions_of("start", "state", [start], self.states)[0])
        utilities = self.rows @ v if extra is None else self.rows @ v + extra[self.offered]
        cells = sp.csr_array(self.rows)
        landing = cells.data.copy(), cells.indices.astype(np.int64), cells.indptr.astype(np.int64)
        seen = Trajectory(np.empty(length, np.int64), np.empty(length, np.int64))
        walk(rng, x, utilities, self.start, self.offered, *landing, seen.states, seen.actions)
        return seen

    def decisions(self, states: Any, actions: Any = None, *, action_rewards: bool = False) -> Decisions:
        """The decisions of a trajectory: in each visited state, a row p(. | x, a) for every available action.

        `states` and `actions` are labels or positions. Without `actions` the choices were not seen. With
        `action_rewards` the rows are [p(. | x, a), unit(a)] and the coefficients [discount V, r2].
        """
        x = positions_of("time", "state", states, self.states)
        if x.size == 0:
            raise ValueError("there are no decisions: states is empty; at least one is needed")
        chosen = None
        if actions is not None:
            a = positions_of("time", "action", actions, self.actions)
            if a.size != x.size:
                raise ValueError(f"there are {x.size} states and {a.size} actions; give one action for each state")
            wrong = np.flatnonzero(~self.available[x, a])
            if wrong.size:
                t = int(wrong[0])
                offer = ", ".join(str(self.actions[k]) for k in np.flatnonzero(self.available[x[t]]))
                raise ValueError(
                    f"time {t}: action {self.actions[a[t]]} is not available in state {self.states[x[t]]}, "
                    f"which offers {offer}"
                )
            chosen = (np.cumsum(self.available, axis=1) - 1)[x, a]
        sizes = np.diff(self.start)[x]
        begin = np.concatenate([[0], np.cumsum(sizes)])
        pick = np.repeat(self.start[x] - begin[:-1], sizes) + np.arange(begin[-1])
        rows, names, blocks = self.rows, [f"V({s})" for s in self.states], [Block("value", len(self.states), True)]
        if action_rewards:
            units = sp.eye_array(len(self.actions), format="csr")[self.offered]
            rows = sp.hstack([rows, units], format="csr") if sp.issparse(rows) else np.hstack([rows, units.toarray()])
            names += [f"r({label})" for label in self.actions]
            blocks.append(Block("action reward", len(self.actions), True))
        plain = all(isinstance(label, int) for label in self.actions)
        labels = np.array(self.actions if plain else [str(label) for label in self.actions])
        return Decisions(rows[pick], begin, chosen, names=names, actions=labels[self.offered[pick]], blocks=blocks)

    def reward(self, value: Any, discount: float, *, noise: bool = False, action_reward: Any = None) -> Reward:
        """The reward of each state behind the values v an engine inferred: one vector, or draws of it.

            plain, no action rewards:        r(x) = v(x) - discount max_a (R_x v)(a)
            plain, action rewards r2:        r(x) = v(x) / discount - max_a {r2(a) + (R_x v)(a)}
            the noise is part of the reward: r(x) = v(x) / discount - E max_a {e(a) + r2(a) + (R_x v)(a)}

        `value` is (..., N), or (..., N + M) with the action rewards behind, as posterior draws come. The answer
        is centred and known up to an additive constant: see `Reward`. Discount 1 needs absorbing states, as in
        `solve`.
        """
        discount = discount_of(discount)
        v, extra = self._split(value, action_reward)
        if discount == 1.0:
            self._ends(np.ones(len(self.states), bool), noise)
        return recover(self.rows, self.start, self.offered, self.states, v, extra, discount, noise)

    def __repr__(self) -> str:
        kind = "sparse" if sp.issparse(self.rows) else "dense"
        some = "" if self.available.all() else f", {len(self.offered)} available pairs"
        return f"<MDP: {len(self.states)} states, {len(self.actions)} actions{some}, {kind}>"

    @property
    def _owner(self) -> Ints:
        return np.repeat(np.arange(len(self.states)), np.diff(self.start))

    def _ends(self, unpaid: Bools, noise: bool) -> Bools:
        """The absorbing states among `unpaid`; refuses when some policy can avoid them for ever."""
        if noise:
            unpaid = unpaid & (np.diff(self.start) == 1)
        reach = sp.csr_array(self.rows) > 0.0
        stays = (np.diff(reach.indptr) == 1) & (reach.indices[reach.indptr[:-1]] == self._owner)
        ends = unpaid & np.logical_and.reduceat(stays, self.start[:-1])
        # The largest set of states in which each has an action that never leaves the set.
        avoiding, smaller = np.ones_like(ends), ~ends
        while smaller.sum() < avoiding.sum():
            avoiding = smaller
            inside = reach @ (~avoiding).astype(np.int64) == 0
            smaller = avoiding & np.logical_or.reduceat(inside, self.start[:-1])
        if avoiding.any():
            alone = " and a single action" if noise else ""
            stuck = int(np.argmax(avoiding * (1 + np.logical_or.reduceat(stays, self.start[:-1]))))
            raise ValueError(
                f"discount 1 needs absorbing states with zero reward{alone} that every policy reaches, but from state "
                f"{self.states[stuck]} they can be avoided for ever; give a discount below 1"
            )
        return np.asarray(ends)

    def _action_reward(self, given: Any, lead: tuple[int, ...] = ()) -> Floats:
        extra, each = numbers_of("action_reward", given), (len(self.actions),)
        if extra.shape not in (each, (*lead, *each)):
            hint = f", or {(*lead, *each)} like the draws of the value" if lead else ""
            raise ValueError(f"action_reward has shape {extra.shape}, but must be {each}, one number an action{hint}")
        return extra

    def _split(self, value: Any, action_reward: Any) -> tuple[Floats, Floats | None]:
        """The values of the states (..., N), and the action rewards if there are any, (M,) or (..., M)."""
        N, M = len(self.states), len(self.actions)
        v = numbers_of("value", value)
        if v.size == 0 or v.ndim == 0 or v.shape[-1] not in (N, N + M):
            raise ValueError(
                f"value has shape {v.shape}; the last axis must hold the {N} states, or them and the {M} actions"
            )
        if v.shape[-1] == N:
            return v, None if action_reward is None else self._action_reward(action_reward, v.shape[:-1])
        if action_reward is not None:
            raise ValueError("value holds the action rewards already (N + M numbers); leave action_reward out")
        return v[..., :N], v[..., N:]

    def _refuse_bad_rows(self, owner: Ints) -> None:
        def pair(row: int) -> str:
            return f"state {self.states[owner[row]]}, action {self.actions[self.offered[row]]}"

        sparse = sp.issparse(self.rows)
        cells = self.rows.data if sparse else self.rows.ravel()
        for bad, fault in ((~np.isfinite(cells), "NaN or infinite"), (cells < 0.0, "negative")):
            if bad.any():
                at = int(np.flatnonzero(bad)[0])
                row = int(np.searchsorted(self.rows.indptr, at, side="right")) - 1 if sparse else at // len(self.states)
                raise ValueError(f"{pair(row)}: a transition probability is {fault} ({cells[at]:g})")
        sums = np.asarray(self.rows.sum(axis=1))
        wrong = np.flatnonzero(np.abs(sums - 1.0) > 1e-8)
        if wrong.size:
            row = int(wrong[0])
            raise ValueError(
                f"{pair(row)}: the transition probabilities sum to {sums[row]:.10g}, not 1; transitions[a, x, y] is "
                "p(y | x, a), and pairs that do not exist are marked in available"
            )


def _refuse_other_rng(rng: Any) -> None:
    if not isinstance(rng, np.random.Generator):
        raise ValueError(f"rng must be a numpy Generator, such as numpy.random.default_rng(0), not {rng!r}")


def random_mdp(rng: np.random.Generator, states: int = 7, actions: int = 3, concentration: float = 1.0) -> MDP:
    """An MDP whose rows are drawn from Dirichlet(concentration, ...); by default as large as the paper's toy.

    >>> us.random_mdp(np.random.default_rng(1), states=4, actions=2)
    <MDP: 4 states, 2 actions, dense>
    """
    _refuse_other_rng(rng)
    whole = all(isinstance(count, int | np.integer) and count >= 1 for count in (states, actions))
    if not whole or not 0.0 < concentration < np.inf:
        raise ValueError(
            "a random MDP needs a whole number of states and of actions, at least one, and a positive concentration; "
            f"these are {states}, {actions} and {concentration}"
        )
    return MDP(rng.dirichlet(np.full(states, concentration), size=(actions, states)))
