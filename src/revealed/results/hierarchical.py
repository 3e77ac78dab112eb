"""HierarchicalPosterior: draws of what many groups have in common, and of each of them.

    v_i ~ N(mean, covariance)   for each group i

Mean, covariance and all v_i are drawn together; a group never seen before is predicted from mean
and covariance alone.
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
from revealed.data.groups import decisions_by_group, group_labels
from revealed.data.unique import choice_labels, find_kinds
from revealed.models.choice import ChoiceModel
from revealed.models.coordinates import coordinates
from revealed.models.correlated_noise import CorrelatedNoise, NoiseCovariance
from revealed.models.drawn_probabilities import log_probabilities_of_choices
from revealed.models.groups import Pooled
from revealed.models.likelihood import log_likelihood, posterior_mode
from revealed.models.noise import LogitNoise, NormalNoise
from revealed.models.priors import Normal, ResolvedPrior, resolve_prior
from revealed.models.student import StudentNoise
from revealed.results.base import Columns
from revealed.results.choice import ChoicePosterior, fixed_coefficients
from revealed.results.drawn_noise import (
    refuse_noise_covariance,
    resolved_noise,
    with_noise_columns,
)
from revealed.results.group_noise import (
    GroupDraws,
    draw_new_group,
    draws_of_group,
    has_own_noise,
    kernel_of_group,
    lapse_columns,
)
from revealed.results.lapses import Lapses, find_lapses
from revealed.results.loo import Observations
from revealed.results.of_decisions import DecisionsPosterior
from revealed.results.prediction import Prediction
from revealed.results.prediction_by_group import check_new_groups, predict_by_group
from revealed.results.predictive import predict
from revealed.results.shrinkage import Shrinkage
from revealed.results.summary import Summary


@dataclass(frozen=True, eq=False, repr=False)
class HierarchicalPosterior(DecisionsPosterior):
    """Draws of the population and of all its groups.

    ``draws["population_mean"]`` is (chain, draw, K), ``draws["population_covariance"]``
    (chain, draw, K, K), and ``draws["value"]`` (chain, draw, N, K), the value of every group. Where
    the noise covariance was inferred, ``draws["noise_covariance"]`` is (chain, draw, D, D), one for
    all groups.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> rows = rng.normal(size=(300, 2))  # ten people decide fifteen times between two things
    >>> likes = np.repeat(rng.normal([1.0, -1.0], 0.5, (10, 2)), 30, axis=0)
    >>> utility = (rows * likes).sum(axis=1) + rng.normal(size=300)
    >>> best = utility.reshape(-1, 2).argmax(axis=1)
    >>> d = rv.Decisions(rows, range(0, 301, 2), best, groups=np.repeat(range(10), 15))
    >>> people = rv.fit(d, rv.ChoiceModel(groups=rv.Hierarchical()), draws=3000)
    >>> people.select(group=3)
    <ChoicePosterior: 4 chains of 3000 draws, 2 coefficients, ...>
    >>> people.new_group().mean(axis=0) > 0.0  # draws of somebody never seen
    array([ True, False])
    """

    @property
    def prior(self) -> Normal:
        """Of the population's mean."""
        prior = self.model.value_prior  # type: ignore[union-attr]
        assert isinstance(prior, Normal)
        return prior

    @property
    def groups(self) -> tuple[Hashable, ...]:
        """The N labels, in the order in which they first appear."""
        found: tuple[Hashable, ...] = self.resolved.groups
        return found

    @property
    def population_sd(self) -> Floats:
        """(chain, draw, K) how far groups differ in each coefficient.

        The roots of the covariance's diagonal.
        """
        variance = np.einsum("...kk->...k", self.draws["population_covariance"])
        return np.asarray(np.sqrt(np.maximum(variance, 0.0)))

    def columns(self) -> Columns:
        """The population's mean and sd of each coefficient, and the noise covariance if inferred.

        Correlations are left out, being too many to read, and groups have a table of their own.
        """
        names = tuple(f"{what} {name}" for what in ("mean", "sd") for name in self.names)
        draws = np.concatenate([self.draws["population_mean"], self.population_sd], axis=2)
        fixed = np.tile(fixed_coefficients(self.decisions, self.prior), 2)
        if "prior_sd" in self.draws:
            draws = np.concatenate([draws, self.draws["prior_sd"][:, :, None]], axis=2)
            names, fixed = (*names, "(prior sd)"), np.append(fixed, False)
        if "df" in self.draws:
            draws = np.concatenate([draws, self.draws["df"][:, :, None]], axis=2)
            names, fixed = (*names, "(df)"), np.append(fixed, False)
        if "lapse" in self.draws:
            more = lapse_columns(self)
            draws = np.concatenate([draws, more.draws], axis=2)
            names, fixed = (*names, *more.names), np.append(fixed, more.fixed)
        return with_noise_columns(self, Columns(draws, names, fixed))

    def summary_of_groups(self) -> Summary:
        """The summary of every coefficient of every group.

        Computed once and kept, as it takes a while with very many groups.
        """
        return self._summary_of_groups

    @cached_property
    def _summary_of_groups(self) -> Summary:
        names = tuple(f"{group} {name}" for group in self.groups for name in self.names)
        draws = self.draws["value"].reshape(*self.shape, -1)
        fixed = np.tile(fixed_coefficients(self.decisions, self.prior), len(self.groups))
        if has_own_noise(self):
            names += tuple(f"{group} (lapse)" for group in self.groups)
            draws = np.concatenate([draws, self.draws["lapse"]], axis=2)
            fixed = np.append(fixed, np.zeros(len(self.groups), np.bool_))
        return self._summarise(Columns(draws, names, fixed))

    @property
    def converged(self) -> bool:
        """Whether nothing speaks against the draws of the population and of every group."""
        return self.summary().converged and self.summary_of_groups().converged

    @property
    def message(self) -> str:
        """In words whether they have converged, or the first problem: others may follow from it."""
        summary, of_groups = self.summary(), self.summary_of_groups()
        return (
            summary.message if of_groups.converged or not summary.converged else of_groups.message
        )

    def select(self, **coords: Any) -> ChoicePosterior:
        """The posterior of one group; its prior is the population, as it was inferred on average.

        Parameters
        ----------
        **coords
            ``group=label``, or what the decisions call their groups: ``person="ann"``.
        """
        i = self._index(label := self._selected(coords))
        mean, covariance = self.mean("population_mean"), self.mean("population_covariance")
        # the covariance of a prior must be positive definite: constants, which no choice depends
        # on, get variance one
        constants = coordinates(self.decisions, self.prior.sum_to_zero)[1]
        prior = Normal(
            mean=mean,
            sum_to_zero=self.prior.sum_to_zero,
            covariance=covariance + constants @ constants.T,
        )
        assert isinstance(self.model, ChoiceModel)
        # one group has one rate of lapses, whether others have it too or not
        noise = self.model.noise
        if has_own_noise(self):
            assert isinstance(noise, NormalNoise | LogitNoise | StudentNoise)
            assert noise.lapse is not None
            noise = replace(noise, lapse=replace(noise.lapse, by="all", sd_scale=1.0))
        model = self.model.replace(prior=prior, groups=Pooled(), noise=noise)
        drawn = {"value": self.draws["value"][:, :, i]}
        own = self.decisions[self._decisions_of[label]]
        if isinstance(model.noise, CorrelatedNoise):
            drawn["noise_covariance"] = self.draws["noise_covariance"]
            model = model.replace(noise=self._noise_of(label, own))
        if "df" in self.draws:
            drawn["df"] = self.draws["df"]
        if getattr(model.noise, "lapse", None) is not None:
            rates = self.draws["lapse"]
            drawn["lapse"] = rates[:, :, i] if has_own_noise(self) else rates
        return ChoicePosterior(
            drawn,
            own,
            model,
            self.sampler,
            self.sample_stats,
            self.settings,
        )

    def _noise_of(self, label: Hashable, own: Decisions) -> CorrelatedNoise:
        """The noise of one group's decisions; refuses those that never offered some action."""
        assert isinstance(self.model, ChoiceModel)
        assert isinstance(self.model.noise, CorrelatedNoise)
        noise = resolved_noise(self)
        offered = set(np.asarray(own.actions).tolist())
        for action in noise.labels:
            if action not in offered:
                raise ValueError(
                    f"group {label!r} was never offered {action!r}, of whose noise its own "
                    'decisions know nothing; take its values from draws["value"], and its choices '
                    "from predict(...)"
                )
        # by default the base is the first label in sorted order; here it is said
        return replace(self.model.noise, base=noise.labels[noise.base])

    def _selected(self, coords: dict[str, Any]) -> Hashable:
        """The label that the arguments of `select` name."""
        dims = {"group", self.decisions.group_name or "group"}
        if len(coords) != 1 or not set(coords) <= dims:
            raise ValueError(
                f"select takes one label by the name of its groups, {' or '.join(sorted(dims))}; "
                f"it is given {', '.join(coords) or 'nothing'}"
            )
        label: Hashable = next(iter(coords.values()))
        return label

    def new_group(self, seed: Seed = 0) -> Floats:
        """(chains * draws, K) values of a group never seen before.

        One from each draw of the population: mean plus root z, root root' the covariance.

        Parameters
        ----------
        seed
            A number or a numpy Generator; the same number gives the same values.
        """
        return draw_new_group(self, as_generator(seed)).values

    def predict(
        self,
        decisions: Decisions,
        method: str = "average",
        *,
        new_groups: Iterable[Hashable] = (),
        seed: Seed = 0,
        draws: int | str | None = None,
    ) -> Prediction:
        """What each group will do, given who decides each time.

        Parameters
        ----------
        decisions
            What is offered; their groups say to whom.
        method
            "average", "vote" or "point".
        new_groups
            Labels of groups never seen before, predicted from the population; any other label that
            was not in the fit is refused.
        seed
            Of the new groups' values, and of the votes' noise.
        draws
            How many draws are used: "all", or at most so many; default: as the error asks for.
        """
        fresh = check_new_groups(new_groups, self._positions)

        def predict_group(label: Hashable, own: Decisions) -> Prediction:
            group = (
                draw_new_group(self, as_generator(seed))
                if label in fresh
                else self._draws_of(label)
            )
            chains = group.values.reshape(*self.shape, -1)
            return predict(chains, own, method, seed=seed, noise=group.noise, draws=draws)

        return predict_by_group(self.names, decisions, method, predict_group)

    def log_likelihood(self) -> Floats:
        """(chain, draw, T) the exact log-likelihood of every choice, under its group's draws."""
        found = np.empty((*self.shape, len(self.decisions)))
        for label, which in self._decisions_of.items():
            logs = log_likelihood(self.decisions[which], *self._draws_of(label))
            found[:, :, which] = logs.reshape(*self.shape, len(which))
        return found

    def _observations(self) -> Observations:
        """The choices, equal ones of a group in equal decisions once."""
        d, of_first = self.decisions, draws_of_group(self, 0).noise
        labels = of_first.label_of_row(d) if isinstance(of_first, NoiseCovariance) else None
        group = self.resolved.group_of_decision
        where, kind = find_kinds(d, choice_labels(d, group), labels)

        def logs_of(which: Ints) -> Floats:
            of_group = group[where[which]]
            logs = np.empty((self.shape[0] * self.shape[1], len(which)))
            for i in np.unique(of_group):
                some = d[where[which[of_group == i]]]
                logs[:, of_group == i] = log_probabilities_of_choices(
                    some, *draws_of_group(self, i)
                )
            return logs

        return Observations(kind, logs_of)

    def lapses(self) -> Lapses:
        """How probable it is that each choice was a lapse; refuses a model without lapses."""
        parts = {
            label: find_lapses(self.decisions[which], *self._draws_of(label))
            for label, which in self._decisions_of.items()
        }
        probability = np.empty(len(self.decisions))
        for label, which in self._decisions_of.items():
            probability[which] = parts[label].probability
        # where groups differ, the mean over them
        return Lapses(probability, float(self.draws["lapse"].mean()), self.decisions)

    def identification(self) -> Any:
        """Refused: what the decisions identify is told of one group at a time."""
        refuse_noise_covariance(self)
        label = self.groups[0]
        raise ValueError(
            "what the decisions identify is told of one group at a time, given the population: "
            f"select(group={label!r}).identification()"
        )

    def shrinkage(self) -> Shrinkage:
        """Each group by itself and as one of the population.

        What pooling does: the difference is largest for groups with few decisions. Where a noise
        covariance was inferred, a group by itself has independent noise, which is on both scales.
        """
        # alone, a group has only the prior of the population's mean
        own_decisions = [self.decisions[self._decisions_of[label]] for label in self.groups]
        # differences of independent noise have variance two, on the scale of a covariance one
        scale = 1.0 if self.resolved.noise is None else np.sqrt(2.0)
        alone = np.array(
            [
                posterior_mode(own, self._prior_of(own, scale), noise=kernel_of_group(self, i))[0]
                for i, own in enumerate(own_decisions)
            ]
        )
        return Shrinkage(
            self.names,
            self.groups,
            np.array([len(own) for own in own_decisions]),
            alone / scale,
            self.mean("value"),
            self.mean("population_mean"),
        )

    def _prior_of(self, decisions: Decisions, scale: float) -> ResolvedPrior:
        """The prior of the mean for these decisions, at the median of its sd where inferred.

        On a scale that is so many times as large.
        """
        prior = resolve_prior(self.prior, decisions)
        sd = 1.0 if prior.scale is None else float(np.median(self.draws["prior_sd"]))
        return replace(prior.at_scale(sd * scale), mean=scale * prior.mean)

    def _contents(self) -> str:
        return f"{len(self.groups)} groups, {len(self.names)} coefficients"

    @cached_property
    def _decisions_of(self) -> dict[Hashable, Ints]:
        """Which decisions each group made."""
        return decisions_by_group(group_labels(self.decisions))

    @cached_property
    def _positions(self) -> dict[Hashable, int]:
        """The position of each group among the values."""
        return {label: i for i, label in enumerate(self.groups)}

    def _index(self, label: Hashable) -> int:
        """The position of a group; refuses one that is not in the fit, and says what to do."""
        if label not in self._positions:
            raise ValueError(
                f"group {label!r} made none of the decisions of this fit, which knows "
                f"{len(self.groups)} groups; a new group is predicted from the population, by "
                f"new_group() or predict(..., new_groups=[{label!r}])"
            )
        return self._positions[label]

    def _draws_of(self, label: Hashable) -> GroupDraws:
        """The values of one group, and its noise."""
        return draws_of_group(self, self._index(label))
