"""MDPPosterior: what trajectories say of a controller's values and of the transitions, together.

Every draw is a value and a row p(. | x, a) for each available pair, so that whatever depends on
both (how probable an action is, what a state pays) is computed draw by draw, and averages over what
is unknown of either.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from revealed._types import Bools, Floats, Ints
from revealed.data.decisions import Decisions
from revealed.io.netcdf import read_file, to_arviz, write_file
from revealed.kernels.choice import all_probabilities, log_probabilities
from revealed.kernels.noise import NORMAL
from revealed.mdp.bellman import Reward, expected_maximum, maximum_and_shares, reward_from_value
from revealed.mdp.checks import check_discount, to_positions
from revealed.mdp.process import MDP
from revealed.results.diagnostics import standard_deviation
from revealed.results.policy import Policy
from revealed.results.posterior import (
    Posterior,
    posterior_attributes,
    posterior_groups,
    read_posterior,
)
from revealed.results.prediction import Prediction
from revealed.results.storage import FORMAT, draw_dimensions
from revealed.results.summary import Summary, summarise


@dataclass(frozen=True, eq=False, repr=False)
class MDPPosterior:
    """Values and transitions inferred together from trajectories; made by `fit_mdp`.

    Parameters
    ----------
    value
        The draws of the value as a `Posterior`. Its decisions are those seen, with the rows'
        posterior means: what is predicted from it alone forgets that the rows are not known. Use
        `predict` and `policy` of this object.
    transition_probs
        (chain, draw, C) the probability of each possible transition, in the same draws; C counts
        only transitions that are not ruled out by a concentration of zero, which is what memory
        grows with.
    prior
        (M, N, N) the concentrations, zero where a transition is impossible.
    counts
        (M, N, N) the transitions seen.
    available
        (N, M) which actions each state has.
    visited
        (T,) the state in which each decision was made, as a position.
    states, actions
        Labels.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> maze = rv.random_mdp(rng, states=3, actions=2)
    >>> path = maze.simulate(rng, [2.0, 0.0, -2.0], 200)
    >>> post = rv.fit_mdp(path, states=3, actions=2, prior=rv.Normal(2.0))
    >>> post.mean_transitions.shape, post.value.mean.argmax()
    ((2, 3, 3), np.int64(0))
    """

    value: Posterior
    transition_probs: Floats
    prior: Floats
    counts: Ints
    available: Bools
    visited: Ints
    states: tuple[Any, ...]
    actions: tuple[Any, ...]

    @cached_property
    def _possible(self) -> tuple[Ints, Ints, Ints]:
        """(C,) state, action and next state of each possible transition, state by state."""
        x, a, y = np.nonzero(self.prior.transpose(1, 0, 2) > 0.0)
        return x, a, y

    def _as_matrices(self, numbers: Floats) -> Floats:
        """(..., M, N, N) from numbers for each possible transition, (..., C); zero elsewhere."""
        x, a, y = self._possible
        matrices = np.zeros((*numbers.shape[:-1], *self.prior.shape))
        matrices[..., a, x, y] = numbers
        return matrices

    @property
    def transitions(self) -> Floats:
        """(chain, draw, M, N, N) draws of p(y | x, a) as transitions[..., a, x, y], as in `MDP`."""
        return self._as_matrices(self.transition_probs)

    def transition(self, state: Any, action: Any) -> Floats:
        """(chain, draw, N) draws of one row p(. | state, action)."""
        # labels and positions are both taken
        x = to_positions("state", "state", [state], self.states)[0]
        a = to_positions("action", "action", [action], self.actions)[0]
        if not self.available[x, a]:
            raise ValueError(f"action {action} is not available in state {state}")
        # impossible transitions stay zero
        from_state, by_action, to_state = self._possible
        mine = (from_state == x) & (by_action == a)
        row = np.zeros((*self.transition_probs.shape[:2], len(self.states)))
        row[..., to_state[mine]] = self.transition_probs[..., mine]
        return row

    @property
    def mean_transitions(self) -> Floats:
        """(M, N, N) posterior means of the transition probabilities.

        Laid out as mean[a, x, y], zero where a transition is impossible.
        """
        return self._as_matrices(self.transition_probs.mean(axis=(0, 1)))

    @property
    def sd_transitions(self) -> Floats:
        """(M, N, N) posterior standard deviations of the transition probabilities."""
        return self._as_matrices(standard_deviation(self.transition_probs))

    @cached_property
    def mdp(self) -> MDP:
        """The MDP with the posterior means as its transitions."""
        return MDP(self.mean_transitions, self.available, states=self.states, actions=self.actions)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all that is drawn: values, action rewards, then possible transitions.

        A transition is called p(next state | state, action).
        """
        possible = zip(*self._possible, strict=True)
        return (
            *self.value.names,
            *(f"p({self.states[y]} | {self.states[x]}, {self.actions[a]})" for x, a, y in possible),
        )

    @property
    def draws(self) -> Floats:
        """(chain, draw, K + C) values and transition probabilities, in the order of `names`."""
        return np.concatenate([self.value.draws, self.transition_probs], axis=2)

    def summary(self) -> Summary:
        """Means, sds and diagnostics of values and transitions, and whether all converged."""
        # values and transitions must both have converged
        x, a, _ = self._possible
        # the only state that a row can lead to has probability one
        certain = (self.prior > 0.0).sum(axis=2)[a, x] == 1
        settings = self.value.settings
        return summarise(
            self.draws,
            self.names,
            fixed=np.concatenate([self.value.summary().fixed, certain]),
            interrupted=settings.get("complete") is False,
            requested=settings.get("draws"),
        )

    def __repr__(self) -> str:
        chains, draws, possible = self.transition_probs.shape
        return (
            f"<MDPPosterior: {len(self.states)} states, {len(self.actions)} actions, {chains} "
            f"chains of {draws} draws, {len(self.value.names)} values and {possible} transition "
            "probabilities>"
        )

    @property
    def has_action_rewards(self) -> bool:
        """Whether actions have rewards of their own, beside the values of states."""
        return len(self.value.names) > len(self.states)

    @cached_property
    def _utilities(self) -> Floats:
        """(S, P) the utility of each available pair in each draw, without noise.

        It is p(. | x, a) v, plus the action's reward where there is one.
        """
        x, a, y = self._possible
        v, N = self.value.values, len(self.states)
        p = self.transition_probs.reshape(-1, self.transition_probs.shape[2])
        # p v is a sum over the cells of each row, which lie together
        pair = self.mdp.start[x] + (np.cumsum(self.available, axis=1) - 1)[x, a]
        begin = np.searchsorted(pair, np.arange(len(self.mdp.offered)))
        utilities = np.add.reduceat(p * v[:, y], begin, axis=1)
        if v.shape[1] > N:
            utilities = utilities + v[:, N + self.mdp.offered]
        return np.ascontiguousarray(utilities)

    @cached_property
    def _choice_probabilities(self) -> Floats:
        """(S, P) the exact probability of each available action in each state and draw."""
        out = np.empty_like(self._utilities)
        # draw by draw: each has transitions of its own
        for s in range(len(out)):
            all_probabilities(NORMAL, self._utilities[s], self.mdp.start, out[s])
        return out

    def policy(self) -> Policy:
        """For every state: which action is best and how probably each is taken, over all unknowns.

        One decision for each state, in order; see `Policy` for `optimal`, `probability`, and its 5%
        and 95% quantiles.
        """
        # the share of draws in which an action is best, ties divided
        shares = maximum_and_shares(self._utilities, self.mdp.start)[1]
        probabilities = self._choice_probabilities
        low, high = np.quantile(probabilities, [0.05, 0.95], axis=0)
        every_state = self._decisions(range(len(self.states)))
        return Policy(shares.mean(axis=0), probabilities.mean(axis=0), low, high, every_state)

    def predict(self, states: Any, actions: Any = None) -> Prediction:
        """What is chosen in these states, averaged over values and transitions.

        Parameters
        ----------
        states
            Labels or positions, one a decision.
        actions
            What was chosen, to score the prediction against; default: not known.
        """
        d, rows = self._decisions(states, actions), self._pairs_of(states)
        probabilities = self._choice_probabilities.mean(axis=0)[rows]
        log_chosen = None
        if d.chosen is not None:
            # the mean over draws of probabilities, not of their logarithms
            logs = self._log_likelihood(d, rows)
            log_chosen = np.logaddexp.reduce(logs, axis=0) - np.log(len(logs))
        return Prediction(probabilities, "average", d, log_chosen)

    def reward(self, discount: float, *, noise: bool = False) -> Reward:
        """The reward of each state, draw by draw with that draw's transitions.

        Parameters
        ----------
        discount
            Below one.
        noise
            Whether the controller counts on its own noise; see `MDP.reward` for the equations.
        """
        discount = check_discount(discount)
        if discount == 1.0:
            raise ValueError(
                "where transitions are not known nothing is sure to end: give a discount below 1"
            )
        # Bellman's equation in each draw: reward is value less the discounted best of what follows
        best = expected_maximum if noise else lambda u, start: maximum_and_shares(u, start)[0]
        v = self.value.values[:, : len(self.states)]
        found = reward_from_value(
            self.states,
            v,
            best(self._utilities, self.mdp.start),
            discount,
            noise or self.has_action_rewards,
        )
        shape = (*self.transition_probs.shape[:2], len(self.states))
        return Reward(found.draws.reshape(shape), found.states, found.note)

    def to_arviz(self, log_likelihood: bool = True) -> Any:
        """The same as ArviZ has it: `v` and `transitions` (chain, draw, cell).

        Parameters
        ----------
        log_likelihood
            Add the exact log-likelihood of every choice under every draw.
        """
        return to_arviz(posterior_attributes(self.value), self._groups(log_likelihood))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a NetCDF file that `rv.load` and ArviZ read; it is there whole or not at all."""
        # labels as text, and whether they were only counted
        labels = {
            "states": [str(s) for s in self.states],
            "actions": [str(a) for a in self.actions],
        }
        counted = {name: all(isinstance(s, int) for s in getattr(self, name)) for name in labels}
        notes = posterior_attributes(self.value) | {"labels": json.dumps([labels, counted])}
        write_file(path, notes, self._groups(False))

    @staticmethod
    def load(path: str | os.PathLike[str]) -> MDPPosterior:
        """Read what `save` wrote."""
        found = read_file(path, "a posterior", FORMAT, read_posterior_or_mdp)
        if isinstance(found, Posterior):
            raise ValueError(f"{path} holds a posterior without transitions; rv.load reads it")
        return found

    def _groups(self, log_likelihood: bool) -> Any:
        """Everything that is an array, as ArviZ groups it."""
        # a file of the value, with the transitions added
        contents = posterior_groups(self.value, False)
        x, a, y = self._possible
        contents["posterior"]["transitions"] = (("chain", "draw", "cell"), self.transition_probs)
        for name, positions in (("from_state", x), ("by_action", a), ("to_state", y)):
            contents["posterior"][name] = (("cell",), positions)
        dimensions = ("action_position", "state_position", "next_position")
        contents["constant_data"]["concentration"] = (dimensions, self.prior)
        contents["constant_data"]["counts"] = (dimensions, self.counts)
        contents["constant_data"]["available"] = (
            ("state_position", "action_position"),
            self.available,
        )
        contents["constant_data"]["visited"] = (("decision",), self.visited)
        # that of the value alone would take the mean rows for the true ones
        if log_likelihood:
            d, (chains, draws, _) = self.value.decisions, self.transition_probs.shape
            logs = self._log_likelihood(d, self._pairs_of(self.visited))
            contents["log_likelihood"] = {
                **draw_dimensions(chains, draws),
                "decision": (("decision",), d.ids),
                "choice": (("chain", "draw", "decision"), logs.reshape(chains, draws, len(d))),
            }
        return contents

    def _decisions(self, states: Any, actions: Any = None) -> Decisions:
        """Decisions in these states, with the posterior means of the rows."""
        return self.mdp.decisions(states, actions, action_rewards=self.has_action_rewards)

    def _pairs_of(self, states: Any) -> Ints:
        """For each row of the decisions in these states, its position among available pairs.

        Decisions in a state have the rows of all its available actions.
        """
        x = to_positions("time", "state", states, self.states)
        start = self.mdp.start
        return np.concatenate([np.arange(start[i], start[i + 1]) for i in x])

    def _log_likelihood(self, d: Decisions, rows: Ints) -> Floats:
        """(S, T) the exact log-likelihood of each choice in each draw.

        rows: as `_pairs_of` gives them for these decisions.
        """
        out = np.empty((len(self._utilities), len(d)))
        for s, u in enumerate(self._utilities):
            log_probabilities(NORMAL, np.ascontiguousarray(u[rows]), d.start, d.chosen_row, out[s])
        return out


def read_posterior_or_mdp(file: Any) -> MDPPosterior | Posterior:
    """What an open file holds: a posterior, or one with transitions."""
    value = read_posterior(file)
    if "labels" not in file.attrs:
        return value
    # a posterior with labels of states is one with transitions
    labels, counted = json.loads(file.attrs["labels"])
    return MDPPosterior(
        value,
        file["posterior/transitions"][...],
        file["constant_data/concentration"][...],
        file["constant_data/counts"][...],
        file["constant_data/available"][...].astype(bool),
        file["constant_data/visited"][...],
        *(
            tuple(range(len(labels[name])) if counted[name] else labels[name])
            for name in ("states", "actions")
        ),
    )
