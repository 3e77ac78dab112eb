"""Finite Markov decision processes: a controller among N states with M actions (paper, section 2).

In state x the controller takes action a and comes to y with probability p(y | x, a). Only
*available* pairs (x, a) exist (paper, 4.1.3); their rows p(. | x, a) are stacked state by state, as
in `Decisions`:

    rows    (P, N)    rows[start[x]:start[x + 1]] is the paper's R_x
    start   (N + 1,)  where each state's rows begin
    offered (P,)      the action each row belongs to

The value V solves Bellman's equation, r(x) the reward of a state and r2(a) of an action (paper,
4.1.1):

    plain:                           V(x) = r(x) + max_a {r2(a) + discount (R_x V)(a)}
    the noise is part of the reward: V(x) = r(x) + E max_a {e(a) + r2(a) + discount (R_x V)(a)}

and the noisy controller takes the action with the largest e(a) + r2(a) + (R_x v)(a), with e(a)
independent N(0, 1). The v in it, which is what a sampler infers, is V itself in the plain reading
without action rewards (the paper's observation model), and discount * V when there are action
rewards or when the noise is part of the reward.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from revealed._types import Bools, Floats, Ints
from revealed._validation import Seed, as_generator, check_count
from revealed.data.blocks import Block
from revealed.data.decisions import Decisions, Rows
from revealed.data.labels import check_labels, to_positions
from revealed.data.trajectories import Trajectory
from revealed.mdp.absorbing import solve_without_discount
from revealed.mdp.bellman import (
    Reward,
    map_draws,
    maximum_and_shares,
    recover_reward,
    reduce_by_state,
    solve_bellman,
    state_of_row,
)
from revealed.mdp.checks import (
    check_action_reward,
    check_availability,
    check_discount,
    check_finite_table,
    check_noise,
    check_simulated_noise,
    check_transition_rows,
    positions_among_available,
    split_value,
    stack_transitions,
)
from revealed.mdp.simulation import walk


@dataclass(frozen=True, eq=False, init=False, repr=False)
class MDP:
    """A finite Markov decision process; frozen, and checked when made.

    Parameters
    ----------
    transitions
        (M, N, N) with ``transitions[a, x, y]`` = p(y | x, a), or a list of M scipy sparse (N, N)
        matrices, which stay sparse.
    available
        (N, M) booleans, which actions each state has; default all. Rows of other pairs are
        ignored. A state without actions is terminal: paths end there.
    states
        N labels; default 0, 1, ... A whole number always means a position, so labels are words
        (or pairs).
    actions
        M labels, likewise.

    Examples
    --------
    >>> transitions = [[[0.8, 0.2], [0.0, 1.0]], [[0.3, 0.7], [0.5, 0.5]]]
    >>> mdp = rv.MDP(transitions, actions=["wait", "run"])
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
        stacked, M, N = stack_transitions(transitions)
        self._set("states", check_labels("states", states, N))
        self._set("actions", check_labels("actions", actions, M))
        self._set("available", check_availability(available, N, M))
        if not self.available.any():
            raise ValueError("no action is available in any state; at least one is needed")
        # From rows stacked action by action to the available ones, stacked state by state.
        row_state, offered = np.nonzero(self.available)
        start = np.concatenate([[0], np.cumsum(self.available.sum(axis=1))]).astype(np.int64)
        self._set("start", start)
        self._set("offered", offered.astype(np.int64))
        self._set("rows", stacked[offered * N + row_state])
        # A sparse array has no flag of its own: its three arrays are made read-only.
        if sp.issparse(self.rows):
            for part in (self.rows.data, self.rows.indices, self.rows.indptr):
                part.flags.writeable = False
        check_transition_rows(
            self.rows,
            lambda row: f"state {self.states[row_state[row]]}, action {self.actions[offered[row]]}",
        )

    @property
    def transitions(self) -> Any:
        """As given: (M, N, N), or a tuple of M sparse matrices.

        Zeros where not available.
        """
        shape = (len(self.states), len(self.states))
        row_state = state_of_row(self.start)
        if not sp.issparse(self.rows):
            dense = np.zeros((len(self.actions), *shape))
            dense[self.offered, row_state] = self.rows
            return dense
        # Every stored cell goes to the matrix of its action.
        cells = sp.coo_array(self.rows)
        state, action = row_state[cells.row], self.offered[cells.row]
        picks = [action == a for a in range(len(self.actions))]
        return tuple(
            sp.csr_array((cells.data[k], (state[k], cells.col[k])), shape=shape) for k in picks
        )

    def solve(
        self, reward: Any, discount: float, *, action_reward: Any = None, noise: Any = False
    ) -> Floats:
        """The value V that solves Bellman's equation.

        Newton's method on the equation: with the plain maximum that is policy iteration; with the
        noise, each policy is the probabilities of the actions. Both climb to the answer from any
        start.

        Parameters
        ----------
        reward
            (N,) the reward of each state.
        discount
            Above 0 and at most 1. Discount 1 needs a policy that ends from every state, and
            every policy that does not to earn minus infinity, as when each step away from the
            ends costs something (Bertsekas and Tsitsiklis 1991). An end is a state without
            actions; or an absorbing one that pays nothing: zero reward, zero for each of its
            actions and, when the noise is part of the reward, a single action (the best of
            several noises pays for ever). Its value is zero.
        action_reward
            (M,) the reward of each action; default none.
        noise
            Whether the noise is part of the reward: False, True for normal noise, or the noise,
            ``rv.LogitNoise()``.

        Returns
        -------
        array
            (N,) the value of each state; that of a state without actions is its reward.
        """
        # Everything that callers give is checked before anything is computed.
        discount = check_discount(discount)
        state_reward = check_finite_table("reward", reward)
        if state_reward.shape != (len(self.states),):
            raise ValueError(
                f"reward has shape {state_reward.shape}; "
                f"give one number for each of {len(self.states)} states"
            )
        by_action = np.zeros(len(self.actions))
        if action_reward is not None:
            by_action = check_action_reward(action_reward, len(self.actions))
        by_row, law = by_action[self.offered], check_noise(noise)
        problem = (self.rows, self.start, state_reward, by_row)
        if discount == 1.0:
            return solve_without_discount(*problem, law, self.states)
        return solve_bellman(*problem, np.full(len(self.states), discount), law)

    def policy(self, value: Any, *, action_reward: Any = None) -> Ints:
        """The best action of each state, argmax_a {r2(a) + (R_x v)(a)}; the first of equals.

        Parameters
        ----------
        value
            v: (..., N), or (..., N + M) with the action rewards behind.
        action_reward
            (M,) or (..., M), where they are not behind the value; default none.

        Returns
        -------
        array
            (..., N) positions of actions, -1 in a state without any; draws of the value give a
            policy each.
        """

        def first_best(utilities: Floats) -> Ints:
            # An action has a share of the maximum where it is among the best.
            is_best = maximum_and_shares(utilities, self.start)[1] > 0.0
            positions = np.where(is_best, self.offered, len(self.actions))
            return reduce_by_state(np.minimum, positions, self.start, -1)

        v, by_action = split_value(value, action_reward, len(self.states), len(self.actions))
        found = map_draws(self.rows, self.offered, v, by_action, first_best)
        return np.asarray(found, dtype=np.int64)

    def simulate(
        self,
        seed: Seed,
        value: Any,
        length: int,
        start: Any = None,
        *,
        action_reward: Any = None,
        noise: Any = True,
    ) -> Trajectory:
        """A path of the noisy controller, who takes the largest e(a) + r2(a) + (R_x v)(a).

        It ends on arrival at a state without actions, which is then its last state.

        Parameters
        ----------
        seed
            A numpy Generator, which is used; or a number, or None.
        value
            v, (N,) or (N + M,) with the action rewards behind. For a controller that plans with
            `solve`, v is V in the plain reading, and discount * V with action rewards or with
            noise as part of the reward.
        length
            How many decisions, at most.
        start
            The first state; by default it is drawn, all states with actions alike.
        action_reward
            (M,) where they are not behind the value; default none.
        noise
            Of the utilities: ``rv.LogitNoise()`` or ``rv.StudentNoise()``, or
            ``rv.KnownLapse(rv.LogitNoise(), 0.05)`` for a controller who now and then chooses
            blindly; default normal noise.

        Returns
        -------
        Trajectory
            `states` and `actions`, (length,) positions; where the path has ended before, fewer,
            and one state more than actions.
        """
        rng, (law, lapse_rate) = as_generator(seed), check_simulated_noise(noise)
        check_count("length", length)
        if law is None:
            raise ValueError("a controller without noise is no part of simulate; see MDP.policy")
        v, by_action = split_value(value, action_reward, len(self.states), len(self.actions))
        if v.ndim != 1:
            raise ValueError(
                f"one controller has one value: simulate needs {v.shape[-1]} numbers, not {v.shape}"
            )
        acts = np.diff(self.start) > 0
        if start is None:
            # The first draw of the generator, and made only where no start is given.
            state = int(np.flatnonzero(acts)[rng.integers(acts.sum())])
        else:
            state = int(to_positions("start", "state", [start], self.states)[0])
            if not acts[state]:
                raise ValueError(
                    f"state {self.states[state]} offers no action: a path cannot start there"
                )
        # What each action is worth before the noise, in every state at once.
        utilities = self.rows @ v
        if by_action is not None:
            utilities = utilities + by_action[self.offered]
        return walk(
            rng, self.rows, self.start, self.offered, utilities, law, lapse_rate, state, length
        )

    def decisions(
        self,
        states: Any,
        actions: Any = None,
        *,
        action_rewards: bool = False,
        times: Any = None,
        sessions: Any = None,
    ) -> Decisions:
        """The decisions of a path: in each state, a row p(. | x, a) for every available action.

        Parameters
        ----------
        states, actions
            Labels or positions, one for each time; a last state without actions needs none.
            Without actions the choices were not seen.
        action_rewards
            Whether to infer rewards of actions too: then the rows are [p(. | x, a), unit(a)] and
            the coefficients [discount V, r2].
        times, sessions
            When each decision was made, and its session, as in ``Decisions``; optional.

        Returns
        -------
        Decisions
            With a sum-to-zero block "value" and, where asked for, one "action reward".
        """
        x = to_positions("time", "state", states, self.states)
        if x.size == 0:
            raise ValueError("there are no decisions: states is empty; at least one is needed")
        sizes = np.diff(self.start)
        # A path may end where nothing is decided any more.
        if actions is not None and x.size > 1 and not sizes[x[-1]] and len(actions) == x.size - 1:
            x = x[:-1]
        nothing = np.flatnonzero(sizes[x] == 0)
        if nothing.size:
            raise ValueError(
                f"time {nothing[0]}: state {self.states[x[nothing[0]]]} offers no action, "
                "so nothing is decided there; leave it out"
            )
        chosen = None
        if actions is not None:
            chosen = positions_among_available(
                x, actions, self.available, self.states, self.actions
            )
        # Which rows of the process each decision offers: those of its state.
        sizes = sizes[x]
        begin = np.concatenate([[0], np.cumsum(sizes)])
        pick = np.repeat(self.start[x] - begin[:-1], sizes) + np.arange(begin[-1])
        rows, names = self.rows, [f"V({label})" for label in self.states]
        # Only differences of values matter to a choice: they sum to zero.
        blocks = [Block("value", len(self.states), True)]
        if action_rewards:
            units = sp.eye_array(len(self.actions), format="csr")[self.offered]
            if sp.issparse(rows):
                rows = sp.hstack([rows, units], format="csr")
            else:
                rows = np.hstack([rows, units.toarray()])
            names += [f"r({label})" for label in self.actions]
            blocks.append(Block("action reward", len(self.actions), True))
        # Labels other than whole numbers become text, so that an array can hold them.
        unlabelled = all(isinstance(label, int) for label in self.actions)
        labels = np.array(self.actions if unlabelled else [str(label) for label in self.actions])
        offered = labels[self.offered[pick]]
        more = {"actions": offered, "times": times, "sessions": sessions}
        return Decisions(rows[pick], begin, chosen, names=names, blocks=blocks, **more)

    def reward(
        self, value: Any, discount: float, *, noise: Any = False, action_reward: Any = None
    ) -> Reward:
        """The reward of each state behind the values v a sampler inferred.

            plain, no action rewards:  r(x) = v(x) - discount max_a (R_x v)(a)
            plain, action rewards r2:  r(x) = v(x) / discount - max_a {r2(a) + (R_x v)(a)}
            noise in the reward:       r(x) = v(x) / discount - E max_a {e(a) + r2(a) + (R_x v)(a)}

        Parameters
        ----------
        value
            (..., N), or (..., N + M) with the action rewards behind, as posterior draws come.
        discount
            Above 0 and at most 1.
        noise
            Whether the noise is part of the reward: False, True for normal noise, or the noise,
            ``rv.LogitNoise()``.
        action_reward
            (M,) or (..., M), where they are not behind the value; default none.

        Returns
        -------
        Reward
            Centred, and known up to an additive constant: see `Reward`.
        """
        discount, law = check_discount(discount), check_noise(noise)
        v, by_action = split_value(value, action_reward, len(self.states), len(self.actions))
        return recover_reward(
            self.rows, self.start, self.offered, self.states, v, by_action, discount, law
        )

    def __repr__(self) -> str:
        kind = "sparse" if sp.issparse(self.rows) else "dense"
        some = "" if self.available.all() else f", {len(self.offered)} available pairs"
        return f"<MDP: {len(self.states)} states, {len(self.actions)} actions{some}, {kind}>"

    def _set(self, field: str, value: Any) -> None:
        """Set a field of this frozen object, while it is being made.

        Arrays become read-only.
        """
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
        object.__setattr__(self, field, value)
