"""MDPPosterior: values and transitions of a finite process, inferred together from trajectories.

Each draw has transitions of its own, so that predictions, policies and rewards are worked out draw
by draw, and what is not known of the transitions shows in all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from revealed._types import Bools, Floats, Ints
from revealed.data.decisions import Decisions
from revealed.data.labels import to_positions
from revealed.data.trajectories import Trajectories
from revealed.kernels.choice import add_probabilities, all_probabilities, log_probabilities
from revealed.kernels.noise import NoiseArguments
from revealed.mdp.bellman import Reward, expected_maximum, maximum_and_shares, reward_from_value
from revealed.mdp.checks import check_discount, check_noise
from revealed.mdp.process import MDP
from revealed.models.choice import ChoiceModel
from revealed.models.drawn_probabilities import LIMITS
from revealed.models.lapse import KnownLapse
from revealed.models.student import StudentNoise
from revealed.models.transitions import Known
from revealed.results.averaging import average_probabilities
from revealed.results.base import Columns, Posterior
from revealed.results.choice import ChoicePosterior
from revealed.results.diagnostics import standard_deviation
from revealed.results.draw_batches import plan_draws, rows_of
from revealed.results.identification import Identification
from revealed.results.lapses import Lapses, lapse_share, require_lapses
from revealed.results.loo import Observations
from revealed.results.policy import Policy
from revealed.results.prediction import Prediction
from revealed.results.predictive import (
    average_logs,
    make_prediction,
    times_chosen,
)


@dataclass(frozen=True, eq=False, repr=False)
class MDPPosterior(Posterior):
    """Values and transitions inferred together from trajectories.

    ``draws["value"]`` is (chain, draw, K), and ``draws["transition"]`` (chain, draw, C) the
    probability of each possible transition, in the same draws; C counts only transitions that are
    not ruled out by the support or a concentration of zero, which is what memory grows with.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> maze = rv.random_mdp(rng, states=3, actions=2)
    >>> seen = rv.Trajectories(maze.simulate(rng, [2.0, 0.0, -2.0], 200), states=3, actions=2)
    >>> model = rv.ChoiceModel(prior=rv.Normal(2.0), transitions=rv.Dirichlet())
    >>> post = rv.fit(seen, model)
    >>> post.mean_transitions.shape, post.mean().argmax()
    ((2, 3, 3), np.int64(0))
    """

    @property
    def trajectories(self) -> Trajectories:
        """What it was inferred from."""
        found: Trajectories = self.data
        return found

    @property
    def states(self) -> tuple[Any, ...]:
        """The labels of the N states."""
        return self.trajectories.states

    @property
    def actions(self) -> tuple[Any, ...]:
        """The labels of the M actions."""
        return self.trajectories.actions

    @property
    def concentration(self) -> Floats:
        """(M, N, N) the concentrations, zero where a transition is impossible."""
        found: Floats = self.resolved.concentration
        return found

    @property
    def available(self) -> Bools:
        """(N, M) which actions each state has."""
        found: Bools = self.resolved.exists
        return found

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the values: of states, then of action rewards where there are any."""
        found: tuple[str, ...] = self.resolved.coefficients.names
        return found

    @property
    def values(self) -> Floats:
        """(chains * draws, K) the draws of the value, chains one after the other."""
        return self.stacked("value")

    @cached_property
    def _possible(self) -> tuple[Ints, Ints, Ints]:
        """(C,) state, action and next state of each possible transition, state by state."""
        x, a, y = np.nonzero(self.concentration.transpose(1, 0, 2) > 0.0)
        return x, a, y

    def _as_matrices(self, numbers: Floats) -> Floats:
        """(..., M, N, N) from numbers for each possible transition, (..., C); zero elsewhere."""
        x, a, y = self._possible
        matrices = np.zeros((*numbers.shape[:-1], *self.concentration.shape))
        matrices[..., a, x, y] = numbers
        return matrices

    @property
    def transitions(self) -> Floats:
        """(chain, draw, M, N, N) draws of p(y | x, a) as transitions[..., a, x, y], as in `MDP`."""
        return self._as_matrices(self.draws["transition"])

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
        row = np.zeros((*self.draws["transition"].shape[:2], len(self.states)))
        row[..., to_state[mine]] = self.draws["transition"][..., mine]
        return row

    @property
    def mean_transitions(self) -> Floats:
        """(M, N, N) posterior means of the transition probabilities.

        Laid out as mean[a, x, y], zero where a transition is impossible.
        """
        return self._as_matrices(self.mean("transition"))

    @property
    def sd_transitions(self) -> Floats:
        """(M, N, N) posterior standard deviations of the transition probabilities."""
        return self._as_matrices(standard_deviation(self.draws["transition"]))

    @cached_property
    def mdp(self) -> MDP:
        """The MDP with the posterior means as its transitions."""
        return MDP(self.mean_transitions, self.available, states=self.states, actions=self.actions)

    @property
    def _noise(self) -> NoiseArguments:
        """The noise without lapses, as compiled loops take it."""
        found: NoiseArguments = self.resolved.law
        return found

    def _noise_of_draw(self, s: int) -> NoiseArguments:
        """The same at draw s, which may have degrees of freedom of its own."""
        return StudentNoise(self.stacked("df")[s]).law() if "df" in self.draws else self._noise

    @property
    def _lapses(self) -> KnownLapse | None:
        """The rates of lapses of all draws; None where there are no lapses."""
        assert isinstance(self.model, ChoiceModel)
        if "lapse" not in self.draws:
            return None
        return KnownLapse(self.model.noise, self.stacked("lapse"))

    def columns(self) -> Columns:
        """Values, then possible transitions, each called p(next state | state, action)."""
        x, a, _ = self._possible
        labels = self.parameter("transition").coords["cell"]
        value = self.value_at_mean_transitions.columns()
        # the only state that a row can lead to has probability one
        certain = (self.concentration > 0.0).sum(axis=2)[a, x] == 1
        return Columns(
            np.concatenate([value.draws, self.draws["transition"]], axis=2),
            (*value.names, *labels),
            np.concatenate([value.fixed, certain]),
        )

    @cached_property
    def value_at_mean_transitions(self) -> ChoicePosterior:
        """The draws of the value as if the rows were known to be their posterior means.

        What is predicted from it alone forgets that the rows are not known: use `predict` and
        `policy` of this object.
        """
        seen = self.trajectories
        assert isinstance(self.model, ChoiceModel)
        drawn = {name: array for name, array in self.draws.items() if name != "transition"}
        return ChoicePosterior(
            drawn,
            self._decisions(seen.state_position, seen.action_position),
            self.model.replace(transitions=Known()),
            self.sampler,
            self.sample_stats,
            self.settings,
        )

    def identification(self) -> Identification:
        """What the choices identify of the values, at the posterior means of the transitions."""
        return self.value_at_mean_transitions.identification()

    def _contents(self) -> str:
        return (
            f"{len(self.states)} states, {len(self.actions)} actions, {len(self.names)} values "
            f"and {self.draws['transition'].shape[2]} transition probabilities"
        )

    @property
    def has_action_rewards(self) -> bool:
        """Whether actions have rewards of their own, beside the values of states."""
        return len(self.names) > len(self.states)

    @cached_property
    def _utilities(self) -> Floats:
        """(S, P) the utility of each available pair in each draw, without noise.

        It is p(. | x, a) v, plus the action's reward where there is one.
        """
        x, a, y = self._possible
        v, N = self.values, len(self.states)
        p = self.draws["transition"].reshape(-1, self.draws["transition"].shape[2])
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
            all_probabilities(self._noise_of_draw(s), self._utilities[s], self.mdp.start, out[s])
        sizes = np.diff(self.mdp.start)
        return out if self._lapses is None else self._lapses.mix(out, 1.0 / np.repeat(sizes, sizes))

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

    def predict(
        self, states: Any, actions: Any = None, *, draws: int | str | None = None
    ) -> Prediction:
        """What is chosen in these states, averaged over values and transitions.

        Parameters
        ----------
        states
            Labels or positions, one a decision.
        actions
            What was chosen, to score the prediction against; default: not known.
        draws
            How many draws are used: "all", or at most so many; default: as the error asks for.
        """
        d, rows = self._decisions(states, actions), self._pairs_of(states)
        batches = plan_draws(*self.shape, draws)
        # each state once: its rows are those of its available pairs
        kind, start = to_positions("time", "state", states, self.states), self.mdp.start

        def add(which: Ints, draws: Ints, batch: Ints, out: Floats) -> None:
            pairs = self._utilities[np.ix_(draws, rows_of(start, which))]
            if self._lapses is not None or "df" in self.draws:
                # each draw has a rate, or degrees of freedom, of its own
                mine = np.ix_(draws, rows_of(start, which))
                np.add.at(out.T, batch, self._choice_probabilities[mine])
                return
            begin = np.concatenate([[0], np.cumsum(np.diff(start)[which])])
            add_probabilities(self._noise, np.ascontiguousarray(pairs.T), begin, batch, out)

        def rare(which: Ints) -> tuple[Floats, Floats]:
            used = batches.used
            logs = self._log_likelihood(d[which], rows[rows_of(d.start, which)])[used]
            return average_logs(logs, batches.batch[used])

        smallest = LIMITS.smallest_of_normal if self._noise.is_normal else LIMITS.smallest
        times = times_chosen(d, kind, start)
        average = average_probabilities(start, add, batches, times, smallest)
        return make_prediction("average", d, kind, start, average, rare, smallest, len(self.values))

    def reward(self, discount: float, *, noise: bool = False) -> Reward:
        """The reward of each state, draw by draw with that draw's transitions.

        Parameters
        ----------
        discount
            Above 0 and at most 1.
        noise
            Whether the controller counts on its own noise; see `MDP.reward` for the equations.
            Nobody counts on lapses.
        """
        discount = check_discount(discount)
        assert isinstance(self.model, ChoiceModel)
        attending = KnownLapse(self.model.noise, 0.0).without_lapses
        law = check_noise(attending if noise else False)
        # Bellman's equation in each draw: reward is value less the discounted best of what follows
        utilities, start = self._utilities, self.mdp.start
        best = (
            maximum_and_shares(utilities, start)[0]
            if law is None
            else expected_maximum(utilities, start, law)
        )
        v = self.values[:, : len(self.states)]
        found = reward_from_value(
            self.states,
            v,
            best,
            discount,
            noise or self.has_action_rewards,
        )
        shape = (*self.draws["transition"].shape[:2], len(self.states))
        return Reward(found.draws.reshape(shape), found.states, found.note)

    def log_likelihood(self) -> Floats:
        """(chain, draw, T) the exact log-likelihood of every choice, with each draw's transitions.

        That of the value alone would take the mean rows for the true ones.
        """
        seen = self.trajectories
        decisions = self._decisions(seen.state_position, seen.action_position)
        logs = self._log_likelihood(decisions, self._pairs_of(seen.state_position))
        return logs.reshape(*self.shape, len(seen))

    def _observations(self) -> Observations:
        """The choices, each action in each state once."""
        seen = self.trajectories
        pair = seen.state_position * len(self.actions) + seen.action_position
        _, first, kind = np.unique(pair, return_index=True, return_inverse=True)

        def logs_of(which: Ints) -> Floats:
            states = seen.state_position[first[which]]
            decisions = self._decisions(states, seen.action_position[first[which]])
            return self._log_likelihood(decisions, self._pairs_of(states))

        return Observations(kind, logs_of)

    def lapses(self) -> Lapses:
        """How probable it is that each choice was a lapse; refuses a model without lapses."""
        seen, known = self.trajectories, require_lapses(self._lapses)
        d = self._decisions(seen.state_position, seen.action_position)
        logs = self._log_likelihood(d, self._pairs_of(seen.state_position))
        return Lapses(lapse_share(logs, known, 1.0 / d.sizes), float(known.rate.mean()), d)

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
            mine = np.ascontiguousarray(u[rows])
            log_probabilities(self._noise_of_draw(s), mine, d.start, d.chosen_row, out[s])
        return out if self._lapses is None else self._lapses.log_mix(out, 1.0 / d.sizes)
