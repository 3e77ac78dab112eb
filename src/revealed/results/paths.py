"""PathPosterior: what one controller values at each time, how fast that moves, and what follows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from revealed._types import Floats, Ints
from revealed._validation import Seed, as_generator
from revealed.data.decisions import Decisions
from revealed.data.times import check_times
from revealed.models.choice import ChoiceModel
from revealed.models.drawn_probabilities import log_probabilities_of_choices
from revealed.models.likelihood import log_likelihood
from revealed.models.noise import KnownNoise
from revealed.models.over_time import ResolvedOverTime
from revealed.results.base import Columns
from revealed.results.choice import fixed_coefficients
from revealed.results.drawn_noise import drawn_noise
from revealed.results.given_draws import check_same_coefficients
from revealed.results.lapses import Lapses, find_lapses
from revealed.results.loo import Observations
from revealed.results.of_decisions import DecisionsPosterior
from revealed.results.path_evidence import path_evidence
from revealed.results.path_values import (
    Steps,
    draw_between,
    first_positions,
    parts_of,
    sizes_in_coordinates,
    with_utilities,
)
from revealed.results.policy import Policy, policy
from revealed.results.prediction import Prediction
from revealed.results.prediction_by_group import join_predictions
from revealed.results.predictive import predict
from revealed.samplers.path_evidence import Evidence
from revealed.samplers.path_update import update_sampler
from revealed.samplers.run_settings import RunSettings


@dataclass(frozen=True, eq=False, repr=False)
class PathPosterior(DecisionsPosterior):
    """Draws of a value at every time at which something was decided.

    ``draws["value"]`` is (chain, draw, N, K), at the N `times`. ``draws["drift_sd"]`` is how far a
    coefficient moves in one unit of time, (chain, draw, steps), and
    ``draws["drift_sd_between_sessions"]`` from one session to the next; of values that revert,
    ``draws["stationary_sd"]``, ``draws["reversion_rate"]`` and ``draws["long_run_mean"]``. What was
    given is not among the draws.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> likes = np.linspace(-2.0, 2.0, 200)  # what is liked changes over 200 decisions
    >>> taken = (rng.logistic(size=200) < likes).astype(int)
    >>> d = rv.Decisions([[0.0], [1.0]] * 200, range(0, 401, 2), taken, times=range(200))
    >>> model = rv.ChoiceModel(noise=rv.LogitNoise(), over_time=rv.RandomWalk())
    >>> post = rv.fit(d, model, draws=500)
    >>> post
    <PathPosterior: 4 chains of 500 draws, 1 coefficients at 200 times, sampler state-space>
    >>> early, late = post.at([20.0, 180.0]).mean(axis=0)
    >>> bool(early[0] < late[0])
    True
    """

    @property
    def over_time(self) -> ResolvedOverTime:
        """How values change, for these decisions.

        Times, nodes and the process that the sampler had.
        """
        found: ResolvedOverTime = self.resolved.over_time
        return found

    @property
    def times(self) -> Floats:
        """(N,) the times at which something was decided, in order."""
        return self.over_time.times

    def columns(self) -> Columns:
        """What is unknown of steps and noise, then the coefficients at some times.

        Times are spread evenly: with thousands of them, all would take longer than the fit.
        """
        draws, names = [], []
        for parameter in self.parameters:
            # paths come last, and of them only some times
            if parameter.name == "value":
                continue
            array = self.draws[parameter.name]
            draws.append(array.reshape(*self.shape, -1))
            labels = parameter.coords[parameter.dims[0]] if parameter.dims else ("",)
            names += [f"({parameter.name.replace('_', ' ')}) {label}".strip() for label in labels]
        fixed = [np.zeros(len(names), np.bool_)]
        for n in self.shown_times:
            draws.append(self.draws["value"][:, :, n])
            names += [f"{name} at {self.times[n]:g}" for name in self.names]
            fixed.append(fixed_coefficients(self.decisions, self.prior))
        return Columns(np.concatenate(draws, axis=2), tuple(names), np.concatenate(fixed))

    @property
    def shown_times(self) -> Ints:
        """Positions of the times whose values a summary shows."""
        # first and last time at least
        some = max(2, 60 // len(self.names))
        return np.unique(np.linspace(0, len(self.times) - 1, some).round().astype(np.int64))

    @property
    def _noise(self) -> KnownNoise:
        """The noise under every draw.

        With rates of lapses and degrees of freedom where these are inferred.
        """
        return drawn_noise(self)

    @cached_property
    def _steps(self) -> Steps:
        """The law of steps under every draw.

        Sizes that were given are the same in all draws.
        """
        process, known = self.over_time.process, np.exp(self.over_time.known)
        places = self.over_time.places
        count = self.shape[0] * self.shape[1]

        def drawn(name: str) -> Floats:
            given = known[places[name] : places[name] + process.sizes]
            sizes = self.stacked(name) if name in self.draws else np.tile(given, (count, 1))
            return sizes_in_coordinates(process, sizes)

        # of the law that the draws have: centre in the same coordinates as the steps
        basis, mean = self.resolved.prior.basis, self.resolved.prior.mean
        if process.reverts:
            centre = (self.stacked("long_run_mean") - mean) @ basis
            # rates and sds stand in theta by size, and are wanted by coordinate
            rate = drawn("reversion_rate")
            return Steps(drawn("stationary_sd"), rate, None, centre)
        between = drawn("drift_sd_between_sessions") if process.between else None
        return Steps(drawn("drift_sd"), None, between, np.zeros((count, basis.shape[1])))

    def at(self, times: Any, *, sessions: Any = None, seed: Seed = 0) -> Floats:
        """(S, M, K) draws of the value at these times, also between and after those that were seen.

        Between two times it is drawn given both, and after the last one the path goes on: the
        later, the less is known.

        Parameters
        ----------
        times
            M times, none before the first decision; numbers, or dates where those of the decisions
            were.
        sessions
            M labels, where steps between sessions differ; default: sessions never seen.
        seed
            A number or a numpy Generator; the same number gives the same draws.
        """
        wanted = check_times(times, np.arange(np.size(times)))
        if wanted.size and wanted.min() < self.times[0]:
            raise ValueError(
                f"a value is wanted at {wanted.min():g}, and the first decision was made at "
                f"{self.times[0]:g}; nothing is assumed of earlier times"
            )
        prior, first = self.resolved.prior, first_positions(self.over_time.node)
        seen = self.decisions.sessions
        # one path goes through all wanted times, in their order
        order = np.argsort(wanted, kind="stable")
        labels = None if sessions is None else np.asarray(sessions)[order]
        # steps are independent in the free coordinates of the prior alone
        free = (self.stacked("value") - prior.mean) @ prior.basis
        drawn = draw_between(
            as_generator(seed),
            self._steps,
            self.times,
            None if seen is None else seen[first],
            free,
            wanted[order],
            labels,
        )
        found = np.empty((len(free), len(wanted), len(self.names)))
        found[:, order] = drawn @ prior.basis.T + prior.mean
        return found

    def _own_values(self, which: Ints) -> Floats:
        """(S, n, K) the values of decisions of the fit, at their times."""
        return self.stacked("value")[:, self.over_time.node[which]]

    def log_likelihood(self) -> Floats:
        """(chain, draw, T) the exact log-likelihood of every choice under every draw."""
        found = np.empty((self.shape[0] * self.shape[1], len(self.decisions)))
        # part by part: a coefficient for every row would fill memory with long records
        for which in parts_of(self.decisions).values():
            alone, utilities = with_utilities(self.decisions, self._own_values, which)
            found[:, which] = log_likelihood(alone, utilities, self._noise)
        return found.reshape(*self.shape, -1)

    def _observations(self) -> Observations:
        """The choices, each with the value of its time.

        Left out one by one they are predicted by a path that saw all others.
        """

        def logs_of(which: Ints) -> Floats:
            alone, utilities = with_utilities(self.decisions, self._own_values, which)
            return log_probabilities_of_choices(alone, utilities, self._noise)

        return Observations(np.arange(len(self.decisions)), logs_of)

    def _values_for(self, decisions: Decisions, seed: Seed) -> Any:
        """From positions of decisions to draws of their values, at any times."""
        check_same_coefficients(self.names, decisions.names)
        if decisions.times is None:
            raise ValueError(
                "values change, so that a prediction needs to know when: give the decisions "
                'times=..., or time="column" to the reader'
            )
        # decisions at one time have one value, in every draw
        times, node = np.unique(decisions.times, return_inverse=True)
        sessions = decisions.sessions
        labels = None if sessions is None else sessions[first_positions(node)]
        values = self.at(times, sessions=labels, seed=seed)
        return lambda which: values[:, node[which]]

    def predict(
        self,
        decisions: Decisions,
        method: str = "average",
        *,
        seed: Seed = 0,
        draws: int | str | None = None,
    ) -> Prediction:
        """What is chosen in each of these decisions, at their times.

        Parameters
        ----------
        decisions
            What is offered, and when. Where choices were seen, the prediction can be scored.
        method
            "average", "vote" or "point".
        seed
            Of values at times that were not seen, and of the votes' noise.
        draws
            How many draws are used: "all", or at most so many; default: as the error asks for.
        """
        values_of = self._values_for(decisions, seed)

        def predict_part(label: Any, which: Ints) -> Prediction:
            alone, utilities = with_utilities(decisions, values_of, which)
            chains = utilities.reshape(*self.shape, -1)
            return predict(chains, alone, method, seed=seed, noise=self._noise, draws=draws)

        return join_predictions(decisions, method, parts_of(decisions), predict_part)

    def update(
        self,
        new: Decisions,
        *,
        draws: int = 80,
        warmup: int = 40,
        seed: Seed = 0,
        progress: bool | None = None,
    ) -> PathPosterior:
        """The posterior of the decisions so far and of these, which came later.

        Chains go on from the last draws of this posterior, in the coordinates that its draws have
        shown to be good: a warm-up of a few iterations is enough. Ctrl-C before every chain has a
        draw is a KeyboardInterrupt.

        Parameters
        ----------
        new
            Decisions with choices, times and the same coefficients; none may be before the first
            decision of this posterior.
        draws, warmup
            Kept draws a chain, and iterations before them; a tenth of a fit's. With very much that
            is new, fit all of it.
        seed
            The same number gives the same draws.
        progress
            Whether there is a progress bar; default: only on a terminal.

        Returns
        -------
        PathPosterior
            As from ``rv.fit``, of all decisions.
        """
        return update_paths(self, new, draws, warmup, seed, progress)

    def lapses(self) -> Lapses:
        """How probable it is that each choice was a lapse; refuses a model without lapses."""
        probability, rate = np.empty(len(self.decisions)), 0.0
        for which in parts_of(self.decisions).values():
            alone, utilities = with_utilities(self.decisions, self._own_values, which)
            found = find_lapses(alone, utilities, self._noise)
            probability[which], rate = found.probability, found.rate
        return Lapses(probability, rate, self.decisions)

    def policy(self, decisions: Decisions, *, seed: Seed = 0) -> Policy:
        """Which action is best in each of these decisions at its time, and how sure that is."""
        every = np.arange(len(decisions))
        alone, utilities = with_utilities(decisions, self._values_for(decisions, seed), every)
        return policy(utilities, alone, self._noise)

    def evidence(self, method: str = "bridge", *, draws: int = 500, seed: Seed = 0) -> Evidence:
        """The log probability of all choices before any was seen, and its Monte-Carlo error.

        It says how models of the same choices compare, such as with drift and without, and depends
        on the priors. Refused where its error is not known, or large.

        Parameters
        ----------
        method
            "bridge": bridge sampling between the draws and a normal law near them. "filter": where
            none is near, as with many lapses: importance sampling, paths summed over by a particle
            filter. "laplace": the path's normal approximation, all else given as numbers.
        draws
            About how many draws or proposals are used; more take longer, with a smaller error.
        seed
            Of the proposals; a number or a numpy Generator.

        Examples
        --------
        >>> d = rv.Decisions([[0.0], [1.0]] * 40, range(0, 81, 2), [0, 1] * 20, times=range(40))
        >>> model = rv.ChoiceModel(noise=rv.LogitNoise(), over_time=rv.RandomWalk())
        >>> post = rv.fit(d, model, draws=500)
        >>> -40.0 < post.evidence().log_evidence < -20.0
        True
        """
        return path_evidence(self, method, draws, seed)

    def _contents(self) -> str:
        return f"{len(self.names)} coefficients at {len(self.times)} times"


def update_paths(
    post: PathPosterior,
    new: Decisions,
    draws: int,
    warmup: int,
    seed: Seed,
    progress: bool | None,
) -> PathPosterior:
    """A posterior of the decisions of another one and of new ones; see `PathPosterior.update`."""
    if not isinstance(new, Decisions) or new.times is None:
        raise ValueError("update takes Decisions with times")
    new.require_choices()
    check_same_coefficients(post.names, new.names)
    assert isinstance(post.model, ChoiceModel)
    data = post.decisions + new
    resolved = post.model.resolve(data)
    over_time = resolved.over_time
    assert over_time is not None
    # paths at all times: those that are new between or after the others
    labels = None
    if data.sessions is not None:
        labels = data.sessions[first_positions(over_time.node)]
    values = post.at(over_time.times, sessions=labels, seed=seed)
    prior = post.resolved.prior
    paths = ((values - prior.mean) @ prior.basis).reshape(*post.shape, len(values[0]), -1)
    settings = RunSettings.check(
        draws=draws,
        warmup=warmup,
        chains=post.shape[0],
        thin=1,
        seed=seed,
        executor=None,
        progress=progress,
        checkpoint=None,
        resume=False,
        checkpoint_seconds=0.0,
    )
    sampler = update_sampler(resolved, dict(post.draws), paths)
    # each chain is told its number, and begins at its own last draw
    numbers = np.arange(post.shape[0], dtype=np.float64)[:, None]
    run, complete = settings.run(sampler, init=numbers)
    made, stats = run.collect()
    recorded = settings.recorded(updated=len(new), complete=complete)
    return PathPosterior(resolved.name_draws(made), data, post.model, sampler.name, stats, recorded)
