"""LearntMDP: what trajectories alone say of a controller, its values and the world's transitions, drawn together.

Every draw is a value and a row p(. | x, a) for each available pair, so that whatever depends on both (how probable an action is,
what a state pays) is worked out draw by draw and averages over what is unknown of either.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from understudy._arrays import Bools, Floats, Ints
from understudy._netcdf import read_file, to_arviz, write_file
from understudy.decisions import Decisions
from understudy.diagnostics import Summary, spread, summarise
from understudy.kernels.integral import all_probabilities, log_probabilities
from understudy.mdp import MDP
from understudy.mdp_input import discount_of, positions_of
from understudy.posterior import FORMAT, Posterior, attributes, groups, read_posterior
from understudy.predict import Policy, Prediction
from understudy.reward import Reward, behind, expected_maximum, maximum_and_shares


@dataclass(frozen=True, eq=False, repr=False)
class LearntMDP:
    """Values and transitions learnt together from trajectories; made by `learn_mdp`.

    Attributes:
        value: the draws of the value as a `Posterior`. Its decisions are those seen, with the rows' posterior means: what
            is predicted from it alone forgets that the rows are not known. Use `predict` and `policy` of this object.
        cells: (chain, draw, C) the probability of each possible transition, in the same draws; C counts only transitions
            that are not ruled out by a concentration of zero, which is what memory grows with.
        prior: (M, N, N) the concentrations, zero where a transition is impossible.
        counts: (M, N, N) the transitions seen.
        available: (N, M) which actions each state has.
        visited: (T,) the state in which each decision was made, as a position.
        states, actions: labels.

    >>> rng = np.random.default_rng(1)
    >>> world = us.random_mdp(rng, states=3, actions=2)
    >>> learnt = us.learn_mdp(world.simulate(rng, [2.0, 0.0, -2.0], 200), states=3, actions=2, prior=us.Gaussian(4.0))
    >>> learnt.mean_transitions.shape, learnt.value.mean.argmax()
    ((2, 3, 3), np.int64(0))
    """

    value: Posterior
    cells: Floats
    prior: Floats
    counts: Ints
    available: Bools
    visited: Ints
    states: tuple[Any, ...]
    actions: tuple[Any, ...]

    @cached_property
    def _where(self) -> tuple[Ints, Ints, Ints]:
        """(C,) state, action and next state of each cell, state by state and action by action."""
        x, a, y = np.nonzero(self.prior.transpose(1, 0, 2) > 0.0)
        return x, a, y

    def _whole(self, cells: Floats) -> Floats:
        """(..., M, N, N) from numbers for each cell, (..., C); zero for impossible transitions."""
        x, a, y = self._where
        whole = np.zeros((*cells.shape[:-1], *self.prior.shape))
        whole[..., a, x, y] = cells
        return whole

    @property
    def transitions(self) -> Floats:
        """(chain, draw, M, N, N) draws of p(y | x, a) as transitions[..., a, x, y], laid out as `MDP` has them."""
        return self._whole(self.cells)

    def transition(self, state: Any, action: Any) -> Floats:
        """(chain, draw, N) draws of one row p(. | state, action)."""
        x = positions_of("state", "state", [state], self.states)[0]
        a = positions_of("action", "action", [action], self.actions)[0]
        if not self.available[x, a]:
            raise ValueError(f"action {action} is not available in state {state}")
        mine = (self._where[0] == x) & (self._where[1] == a)
        row = np.zeros((*self.cells.shape[:2], len(self.states)))
        row[..., self._where[2][mine]] = self.cells[..., mine]
        return row

    @property
    def mean_transitions(self) -> Floats:
        """(M, N, N) posterior means of the transition probabilities."""
        return self._whole(self.cells.mean(axis=(0, 1)))

    @property
    def sd_transitions(self) -> Floats:
        """(M, N, N) their posterior standard deviations."""
        return self._whole(spread(self.cells))

    @cached_property
    def mdp(self) -> MDP:
        """The MDP with the posterior means as its transitions."""
        return MDP(self.mean_transitions, self.available, states=self.states, actions=self.actions)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all that is drawn: values, action rewards, then p(y | x, a) of each possible transition."""
        label = zip(*self._where, strict=True)
        return (
            *self.value.names,
            *(f"p({self.states[y]} | {self.states[x]}, {self.actions[a]})" for x, a, y in label),
        )

    @property
    def draws(self) -> Floats:
        """(chain, draw, K + C) values and transition probabilities side by side, as `names` has them."""
        return np.concatenate([self.value.draws, self.cells], axis=2)

    def summary(self) -> Summary:
        """Means, spreads and diagnostics of values and transitions, and in words whether to trust them all."""
        x, a, _ = self._where
        sure = (self.prior > 0.0).sum(axis=2)[a, x] == 1  # the only place a row can lead to
        settings = self.value.settings
        return summarise(
            self.draws,
            self.names,
            fixed=np.concatenate([self.value.summary().fixed, sure]),
            interrupted=settings.get("complete") is False,
            requested=settings.get("draws"),
        )

    def __repr__(self) -> str:
        chains, draws, cells = self.cells.shape
        return (
            f"<LearntMDP: {len(self.states)} states, {len(self.actions)} actions, {chains} chains of {draws} draws, "
            f"{len(self.value.names)} values and {cells} transition probabilities>"
        )

    @cached_property
    def _utilities(self) -> Floats:
        """(S, P) what each available pair is worth in each draw: p(. | x, a) v, and its action's reward."""
        x, a, y = self._where
        v, p, N = self.value.values, self.cells.reshape(-1, self.cells.shape[2]), len(self.states)
        pair = self.mdp.start[x] + (np.cumsum(self.available, axis=1) - 1)[x, a]
        begin = np.searchsorted(pair, np.arange(len(self.mdp.offered)))
        worth = np.add.reduceat(p * v[:, y], begin, axis=1)
        return np.ascontiguousarray(worth + v[:, N + self.mdp.offered] if v.shape[1] > N else worth)

    @property
    def _rewarded(self) -> bool:
        return len(self.value.names) > len(self.states)

    @cached_property
    def _chances(self) -> Floats:
        """(S, P) the exact probability of each available action in each state and draw."""
        out = np.empty_like(self._utilities)
        for s in range(len(out)):
            all_probabilities(self._utilities[s], self.mdp.start, out[s])
        return out

    def policy(self) -> Policy:
        """For every state: which action is best and how probably each is taken, over all that is unknown.

        One decision for each state, in order; see `Policy` for `optimal`, `probability`, and its 5% and 95% quantiles.
        """
        shares = maximum_and_shares(self._utilities, self.mdp.start)[1]
        low, high = np.quantile(self._chances, [0.05, 0.95], axis=0)
        return Policy(
            shares.mean(axis=0), self._chances.mean(axis=0), low, high, self._decisions(range(len(self.states)))
        )

    def predict(self, states: Any, actions: Any = None) -> Prediction:
        """What is chosen in these states, averaged over values and transitions; scored against `actions` where given."""
        d = self._decisions(states, actions)
        row = self._rows_of(states)
        chances = self._chances.mean(axis=0)[row]
        log_taken = None
        if d.chosen is not None:
            logs = self._log_taken(d, row)
            log_taken = np.logaddexp.reduce(logs, axis=0) - np.log(len(logs))
        return Prediction(chances, "average", d, log_taken)

    def reward(self, discount: float, *, noise: bool = False) -> Reward:
        """The reward of each state, draw by draw with that draw's transitions; see `MDP.reward` for the equations."""
        discount = discount_of(discount)
        if discount == 1.0:
            raise ValueError("where transitions are not known nothing is sure to end: give a discount below 1")
        best = expected_maximum if noise else lambda u, start: maximum_and_shares(u, start)[0]
        v = self.value.values[:, : len(self.states)]
        found = behind(self.states, v, best(self._utilities, self.mdp.start), discount, noise or self._rewarded)
        shape = (*self.cells.shape[:2], len(self.states))
        return Reward(found.draws.reshape(shape), found.states, found.note)

    def to_arviz(self, log_likelihood: bool = True) -> Any:
        """The same as ArviZ has it: `v` and `transitions` (chain, draw, cell), and the log-likelihood of every choice."""
        return to_arviz(attributes(self.value), self._groups(log_likelihood))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a NetCDF file: `LearntMDP.load` reads it, ArviZ does, and `us.load` reads the value from it."""
        labels = {"states": [str(s) for s in self.states], "actions": [str(a) for a in self.actions]}
        plain = {name: all(isinstance(s, int) for s in getattr(self, name)) for name in labels}
        notes = attributes(self.value) | {"labels": json.dumps([labels, plain])}
        write_file(path, notes, self._groups(False))

    @staticmethod
    def load(path: str | os.PathLike[str]) -> LearntMDP:
        """Read what `save` wrote."""
        found = read_file(path, "a posterior", FORMAT, _read)
        if isinstance(found, Posterior):
            raise ValueError(f"{path} holds a posterior without transitions; us.load reads it")
        return found

    def _groups(self, log_likelihood: bool) -> Any:
        contents = groups(self.value, False)
        x, a, y = self._where
        contents["posterior"]["transitions"] = (("chain", "draw", "cell"), self.cells)
        for name, at in (("from_state", x), ("by_action", a), ("to_state", y)):
            contents["posterior"][name] = (("cell",), at)
        each = ("action_position", "state_position", "next_position")
        contents["constant_data"]["concentration"] = (each, self.prior)
        contents["constant_data"]["counts"] = (each, self.counts)
        contents["constant_data"]["available"] = (("state_position", "action_position"), self.available)
        contents["constant_data"]["visited"] = (("decision",), self.visited)
        if log_likelihood:
            d, chains = self.value.decisions, self.cells.shape[:2]
            logs = self._log_taken(d, self._rows_of(self.visited)).reshape(*chains, len(d))
            contents["log_likelihood"] = {
                "chain": (("chain",), np.arange(chains[0])), "draw": (("draw",), np.arange(chains[1])),
                "decision": (("decision",), d.ids), "choice": (("chain", "draw", "decision"), logs),
            }  # fmt: skip
        return contents

    def _decisions(self, states: Any, actions: Any = None) -> Decisions:
        return self.mdp.decisions(states, actions, action_rewards=self._rewarded)

    def _rows_of(self, states: Any) -> Ints:
        """(P,) for each row of the decisions in these states, its place among the available pairs."""
        x = positions_of("time", "state", states, self.states)
        start = self.mdp.start
        return np.concatenate([np.arange(start[i], start[i + 1]) for i in x])

    def _log_taken(self, d: Decisions, row: Ints) -> Floats:
        """(S, T) the exact log-likelihood of each choice in each draw."""
        out = np.empty((len(self._utilities), len(d)))
        for s, u in enumerate(self._utilities):
            log_probabilities(np.ascontiguousarray(u[row]), d.start, d.taken, out[s])
        return out


def _read(file: Any) -> LearntMDP | Posterior:
    value = read_posterior(file)
    if "labels" not in file.attrs:
        return value
    labels, plain = json.loads(file.attrs["labels"])
    return LearntMDP(
        value,
        file["posterior/transitions"][...],
        file["constant_data/concentration"][...],
        file["constant_data/counts"][...],
        file["constant_data/available"][...].astype(bool),
        file["constant_data/visited"][...],
        *(tuple(range(len(labels[name])) if plain[name] else labels[name]) for name in ("states", "actions")),
    )
