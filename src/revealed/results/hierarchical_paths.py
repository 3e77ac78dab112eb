"""HierarchicalPathPosterior: values of many groups that change, and what groups have in common.

    first value of group i ~ N(mean, covariance)
    log sd of its steps ~ N(log m, s^2)

Both laws are drawn with the path of every group; a group never seen before begins at a value of the
first, and moves by steps of the second.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from revealed._types import Floats, Ints
from revealed._validation import Seed, as_generator
from revealed.data.decisions import Decisions
from revealed.data.times import check_times
from revealed.models.choice import ChoiceModel
from revealed.models.coordinates import coordinates
from revealed.models.group_paths import GroupPaths
from revealed.models.groups import Pooled
from revealed.models.over_time import RandomWalk
from revealed.models.priors import HalfStudentT, Normal
from revealed.results.base import Columns
from revealed.results.choice import fixed_coefficients
from revealed.results.group_noise import draw_new_group
from revealed.results.hierarchical import HierarchicalPosterior
from revealed.results.joined_observations import join_observations
from revealed.results.loo import Observations
from revealed.results.path_values import Steps, draw_between, first_positions, sizes_in_coordinates
from revealed.results.paths import PathPosterior
from revealed.results.prediction import Prediction
from revealed.results.prediction_by_group import check_new_groups, predict_by_group
from revealed.results.shrinkage import Shrinkage
from revealed.results.summary import Summary


@dataclass(frozen=True, eq=False, repr=False)
class HierarchicalPathPosterior(HierarchicalPosterior):
    """Draws of a population, and of the path of each of its groups.

    ``draws["value"]`` is (chain, draw, N, K), the paths of all groups one after the other;
    ``draws["drift_sd"]`` (chain, draw, group, steps) how far each group moves in one unit of time.
    ``draws["drift_sd_population"]`` is the median group's, and ``draws["drift_sd_spread"]`` the sd
    of groups' logs. ``draws["population_mean"]`` and ``draws["population_covariance"]`` are of the
    values that groups begin with.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> likes = np.linspace([-2.0, -1.0, 0.0], [0.0, 1.0, 2.0], 60)  # three people, 60 days
    >>> taken = (rng.logistic(size=(60, 3)) < likes).astype(int).ravel()
    >>> days, who = np.repeat(range(60), 3), ["ann", "ben", "cem"] * 60
    >>> d = rv.Decisions([[0.0], [1.0]] * 180, range(0, 361, 2), taken, groups=who, times=days)
    >>> model = rv.ChoiceModel(
    ...     noise=rv.LogitNoise(), groups=rv.Hierarchical(), over_time=rv.RandomWalk()
    ... )
    >>> people = rv.fit(d, model, draws=1000)
    >>> people
    <HierarchicalPathPosterior: 4 chains of 1000 draws, 3 groups, 1 coefficients at 180 times, ...>
    >>> early, late = people.select(group="ann").at([10.0, 50.0]).mean(axis=0)
    >>> bool(early[0] < late[0])
    True
    """

    @property
    def paths(self) -> GroupPaths:
        """How the values of each group change: their times, and where their nodes stand."""
        found: GroupPaths = self.resolved.group_paths
        return found

    def columns(self) -> Columns:
        """Mean and sd of the values that groups begin with, then what they have in common of steps.

        Correlations are left out, and groups have a table of their own.
        """
        common = super().columns()
        draws, names = [common.draws], list(common.names)
        for parameter in self.parameters:
            if not parameter.name.endswith(("_population", "_spread")):
                continue
            draws.append(self.draws[parameter.name])
            words = parameter.name.replace("_", " ")
            names += [f"({words}) {label}" for label in parameter.coords["step"]]
        fixed = np.zeros(len(names), np.bool_)
        fixed[: len(common.fixed)] = common.fixed
        return Columns(np.concatenate(draws, axis=2), tuple(names), fixed)

    def columns_of_groups(self) -> list[Columns]:
        """What is told of each group: the sds of its steps, and its values at first and last."""
        fixed = fixed_coefficients(self.decisions, self.prior)
        found = []
        for i, label in enumerate(self.groups):
            draws, names = [], []
            for parameter in self.paths.of_first.parameters:
                draws.append(self.draws[parameter.name][:, :, i])
                words = parameter.name.replace("_", " ")
                names += [f"{label} ({words}) {step}" for step in parameter.coords["step"]]
            # all times of all groups would take longer than the fit
            own, times = self.paths.nodes_of(i), self.paths.paths[i].times
            ends = np.unique([0, len(times) - 1])
            draws += [self.draws["value"][:, :, own.start + n] for n in ends]
            flags = [False] * len(names) + list(fixed) * len(ends)
            names += [f"{label} {name} at {times[n]:g}" for n in ends for name in self.names]
            found.append(
                Columns(np.concatenate(draws, axis=2), tuple(names), np.array(flags, np.bool_))
            )
        return found

    @cached_property
    def _summary_of_groups(self) -> Summary:
        parts = self.columns_of_groups()
        return self._summarise(
            Columns(
                np.concatenate([part.draws for part in parts], axis=2),
                tuple(name for part in parts for name in part.names),
                np.concatenate([part.fixed for part in parts]),
            )
        )

    def select(self, **coords: Any) -> Any:
        """The posterior of one group's path; its prior is the population, as inferred on average.

        Parameters
        ----------
        **coords
            ``group=label``, or what the decisions call their groups: ``person="ann"``.
        """
        i = self._index(label := self._selected(coords))
        assert isinstance(self.model, ChoiceModel)
        constants = coordinates(self.decisions, self.prior.sum_to_zero)[1]
        prior = Normal(
            mean=self.mean("population_mean"),
            sum_to_zero=self.prior.sum_to_zero,
            # constants, which no choice depends on, get variance one
            covariance=self.mean("population_covariance") + constants @ constants.T,
        )
        model = self.model.replace(prior=prior, groups=Pooled(), over_time=self._walk_of_one())
        # paths of all groups stand one after the other
        drawn = {"value": self.draws["value"][:, :, self.paths.nodes_of(i)]}
        for parameter in self.paths.of_first.parameters:
            drawn[parameter.name] = self.draws[parameter.name][:, :, i]
        own = self.decisions[self._decisions_of[label]]
        stats = self.sample_stats
        return PathPosterior(drawn, own, model, self.sampler, stats, self.settings)

    def _walk_of_one(self) -> RandomWalk:
        """How the values of one group change, sds with priors about as wide as the population."""
        assert isinstance(self.model, ChoiceModel)
        walk = self.model.over_time
        assert isinstance(walk, RandomWalk)
        scales = {}
        for name, field in (("drift_sd", "sd"), ("drift_sd_between_sessions", "between_sessions")):
            if name in self.draws:
                m = self.stacked(f"{name}_population")
                scales[field] = HalfStudentT(scale=float(np.exp(np.log(m).mean())))
        return replace(walk, **scales)  # type: ignore[arg-type]

    def new_group_at(self, times: Any, *, sessions: Any = None, seed: Seed = 0) -> Floats:
        """(S, M, K) values, at these times, of a group never seen before; it begins at the first.

        One from each draw of the population.

        Parameters
        ----------
        times
            M times; numbers, or dates where those of the decisions were.
        sessions
            M labels, where steps between sessions differ; default: one session.
        seed
            A number or a numpy Generator; the same number gives the same values.
        """
        rng, prior = as_generator(seed), self.resolved.prior
        # one path goes through all wanted times, in their order
        wanted = check_times(times, np.arange(np.size(times)))
        order = np.argsort(wanted, kind="stable")
        labels = np.zeros(len(wanted)) if sessions is None else np.asarray(sessions)[order]
        # where it begins, then how fast it moves, and the path from there
        first = draw_new_group(self, rng).values
        free = ((first - prior.mean) @ prior.basis)[:, None]
        steps, at = self._new_steps(rng), wanted[order]
        drawn = draw_between(rng, steps, at[:1], labels[:1], free, at, labels)
        found = np.empty((len(first), len(wanted), len(self.names)))
        found[:, order] = drawn @ prior.basis.T + prior.mean
        return found

    def _new_steps(self, rng: np.random.Generator) -> Steps:
        """The law of steps of a new group under every draw."""
        one = self.paths.of_first
        process, known, count = one.process, np.exp(one.known), int(np.prod(self.shape))

        def drawn(name: str) -> Floats:
            if name not in self.draws:
                at = one.places[name]
                sizes = np.tile(known[at : at + process.sizes], (count, 1))
            else:
                # one of the law that groups' log sds come from
                m, s = (self.stacked(f"{name}_{what}") for what in ("population", "spread"))
                sizes = m * np.exp(s * rng.standard_normal(s.shape))
            return sizes_in_coordinates(process, sizes)

        sd = drawn("drift_sd")
        between = drawn("drift_sd_between_sessions") if process.between else None
        return Steps(sd, None, between, np.zeros_like(sd))

    def predict(
        self,
        decisions: Decisions,
        method: str = "average",
        *,
        new_groups: Iterable[Hashable] = (),
        seed: Seed = 0,
        draws: int | str | None = None,
    ) -> Prediction:
        """What each group will do, given who decides each time, and when.

        Parameters
        ----------
        decisions
            What is offered; their groups say to whom, their times when.
        method
            "average", "vote" or "point".
        new_groups
            Labels of groups never seen before, predicted from the population, which begin at their
            first decision; any other label that was not in the fit is refused.
        seed
            Of values at times that were not seen, and of the votes' noise.
        draws
            How many draws are used: "all", or at most so many; default: as the error asks for.
        """
        fresh = check_new_groups(new_groups, self._positions)

        def predict_group(label: Hashable, own: Decisions) -> Prediction:
            found: Prediction = (
                self._as_seen(own, seed).predict(own, method, seed=seed, draws=draws)
                if label in fresh
                else self.select(group=label).predict(own, method, seed=seed, draws=draws)
            )
            return found

        return predict_by_group(self.names, decisions, method, predict_group)

    def _as_seen(self, own: Decisions, seed: Seed) -> PathPosterior:
        """A new group as a posterior that has a value at each time of its decisions."""
        assert isinstance(self.model, ChoiceModel)
        # which action was chosen is not looked at where values are drawn from the population
        seen = own if own.chosen is not None else own.with_choices(np.zeros(len(own), np.int64))
        model = self.model.replace(
            prior=Normal(1.0, sum_to_zero=self.prior.sum_to_zero),
            groups=Pooled(),
            over_time=RandomWalk(1.0),
        )
        if own.times is None:
            raise ValueError(
                "values change, so that a prediction needs to know when: give the decisions "
                'times=..., or time="column" to the reader'
            )
        # decisions at one time have one value, in every draw
        times, node = np.unique(own.times, return_inverse=True)
        labels = None if own.sessions is None else own.sessions[first_positions(node)]
        values = self.new_group_at(times, sessions=labels, seed=seed)
        return PathPosterior(
            {"value": values.reshape(*self.shape, *values.shape[1:])}, seen, model, self.sampler
        )

    def log_likelihood(self) -> Floats:
        """(chain, draw, T) the exact log-likelihood of every choice, under its group's draws."""
        found = np.empty((*self.shape, len(self.decisions)))
        for label, which in self._decisions_of.items():
            found[:, :, which] = self.select(group=label).log_likelihood()
        return found

    def _observations(self) -> Observations:
        """The choices, each with the value of its group at its time."""
        parts = [self.select(group=label)._observations() for label in self.groups]
        group: Ints = self.resolved.group_of_decision
        return join_observations(parts, group, int(np.prod(self.shape)))

    def shrinkage(self) -> Shrinkage:
        """Refused: values that change have no one number of a group by itself."""
        raise ValueError(
            "shrinkage needs a HierarchicalPosterior of values that are constant; of values that "
            "change, compare select(group=...) with a fit of that group alone"
        )

    def _contents(self) -> str:
        return (
            f"{len(self.groups)} groups, {len(self.names)} coefficients at "
            f"{len(self.paths.node_labels)} times"
        )
