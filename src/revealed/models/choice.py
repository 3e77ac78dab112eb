"""ChoiceModel: what is assumed of somebody who chooses, in independent parts.

    utility = row @ v + noise,    the action of the largest utility is chosen

The parts are the prior of v, the noise, who shares values with whom (groups), whether values change
(over_time), and whether the rows are known (transitions). Each has a default, and each can be
replaced without touching the others. `resolve` fits a model to data, once: every complaint about
the two together is raised there.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from revealed._types import Bools, Floats, Ints
from revealed.data.blocks import Coefficients
from revealed.data.decisions import Decisions
from revealed.data.groups import decisions_by_group, group_labels, group_positions
from revealed.data.offsets import without_far_offsets
from revealed.data.trajectories import Trajectories
from revealed.io.parquet_folder import ParquetDecisions
from revealed.kernels.noise import (
    NORMAL,
    AnyNoise,
    NoiseArguments,
    count_coordinates,
)
from revealed.models.base import Parameter
from revealed.models.choice_parameters import fingerprint_of, parameters_of
from revealed.models.correlated_noise import (
    CorrelatedNoise,
    ResolvedNoise,
    check_all_offered,
    resolve_noise,
)
from revealed.models.group_paths import GroupPaths, resolve_group_paths
from revealed.models.groups import Groups, Hierarchical, Pooled, Separate
from revealed.models.habit import ResolvedHabit, resolve_habit, with_habits
from revealed.models.noise import Noise, NormalNoise
from revealed.models.noise_coordinates import with_noise_coordinates
from revealed.models.noise_draws import name_draws_of_groups, name_noise
from revealed.models.over_time import (
    Constant,
    OverTime,
    ResolvedOverTime,
    refuse_with_changes,
    resolve_over_time,
)
from revealed.models.priors import DEFAULT_SD, Flat, Normal, Prior, ResolvedPrior, resolve_prior
from revealed.models.propriety import refuse_flat_under, refuse_improper
from revealed.models.switching import (
    ResolvedSwitching,
    Switching,
    refuse_with_switching,
    resolve_switching,
)
from revealed.models.transitions import (
    Dirichlet,
    Known,
    Transitions,
    check_concentration,
    mean_process,
)

# The prior sd of a population's mean. Much smaller, and the mean is drawn towards zero; much
# larger, and groups whose choices are separable carry the mean away with them.
POPULATION_MEAN_SD = 10.0

ChoiceData = Decisions | ParquetDecisions | Trajectories
"""What a `ChoiceModel` is fitted to."""


@dataclass(frozen=True, eq=False)
class ChoiceModel:
    """What is assumed of somebody who chooses; frozen, with a default for each part.

    Parameters
    ----------
    prior
        Of the value: ``Normal(sd)``, where sd may be a prior of its own, or ``Flat()``. With
        hierarchical groups, of the population's mean. Default: ``Normal(50.0)``, and
        ``Normal(10.0)`` of a population's mean.
    noise
        ``NormalNoise()``, independent with variance one, ``LogitNoise()``, or ``StudentNoise()``
        with heavy tails, each perhaps with ``lapse=Lapse()``; another ``Noise`` with a formula of
        its own; or ``CorrelatedNoise(base=...)``, with an inferred covariance of labelled actions.
    groups
        ``Pooled()``, ``Separate()`` or ``Hierarchical()``; the data say who decided.
    over_time
        ``Constant()``; ``RandomWalk()`` and ``MeanReverting()``, whose values change with the times
        of the decisions; or ``Switching(states)``, whose strategies take turns.
    transitions
        ``Known()``; or ``Dirichlet(concentration)``, inferred with the values from
        ``Trajectories``.

    Examples
    --------
    >>> rows = [[1.0, 3.0], [0.0, 2.0], [1.0, 2.0], [0.0, 2.0]] * 10  # tea or coffee
    >>> d = rv.Decisions(rows, range(0, 41, 2), [0] * 14 + [1] * 6, names=["tea", "price"])
    >>> model = rv.ChoiceModel(prior=rv.Normal(1.0))
    >>> flat = model.replace(prior=rv.Flat(True))
    >>> rv.fit(d, model).mean().argmax(), rv.fit(d, flat).mean().argmax()
    (np.int64(0), np.int64(0))
    """

    prior: Prior | None = None
    noise: Noise | CorrelatedNoise = field(default_factory=NormalNoise)
    groups: Groups = field(default_factory=Pooled)
    transitions: Transitions = field(default_factory=Known)
    over_time: OverTime = field(default_factory=Constant)

    def __post_init__(self) -> None:
        # a class in place of an instance is the usual slip
        for name, kinds, example in (
            ("prior", Normal | Flat | None, "rv.Normal(sd) or rv.Flat()"),
            ("noise", Noise | CorrelatedNoise, "rv.NormalNoise() or rv.CorrelatedNoise()"),
            ("groups", Groups, "rv.Pooled(), rv.Separate() or rv.Hierarchical()"),
            ("transitions", Transitions, "rv.Known() or rv.Dirichlet(1.0)"),
            (
                "over_time",
                OverTime,
                "rv.Constant(), rv.RandomWalk(), rv.MeanReverting() or rv.Switching(states)",
            ),
        ):
            given = getattr(self, name)
            if not isinstance(given, kinds):
                raise ValueError(f"{name} must be {example}; it is {given!r}")
        if isinstance(self.prior, Flat):
            refuse_flat_under(self.noise)
        if isinstance(self.over_time, Switching):
            refuse_with_switching(self.prior, self.groups)
        elif not isinstance(self.over_time, Constant):
            refuse_with_changes(self.prior)
        lapse = getattr(self.noise, "lapse", None)
        if lapse is not None and lapse.by == "group" and not isinstance(self.groups, Hierarchical):
            raise ValueError(
                'lapses by="group" come from a population of groups: give '
                "groups=rv.Hierarchical(), or leave by out"
            )

    def replace(self, **parts: Any) -> ChoiceModel:
        """The same model with other parts."""
        return replace(self, **parts)

    @property
    def value_prior(self) -> Prior:
        """The prior, with the default in its place where none was given."""
        if self.prior is not None:
            return self.prior
        hierarchical = isinstance(self.groups, Hierarchical)
        return Normal(POPULATION_MEAN_SD if hierarchical else DEFAULT_SD)

    @property
    def _kernel(self) -> AnyNoise:
        """The law of independent noise; where it is correlated, that of its differences."""
        return self.noise.kernel() if isinstance(self.noise, Noise) else NORMAL

    def resolve(self, data: Any) -> ResolvedChoiceModel:
        """The model in terms of these data, checked against them."""
        trajectories = isinstance(self.transitions, Dirichlet)
        kind: Any = Trajectories if trajectories else Decisions | ParquetDecisions
        if not isinstance(data, kind):
            needed = (
                "Dirichlet transitions are inferred from rv.Trajectories"
                if trajectories
                else "a ChoiceModel is fitted to Decisions; rv.from_dataframe makes them from a "
                "table"
            )
            raise ValueError(f"{needed}, and these data are {type(data).__name__}")
        if isinstance(data, Trajectories):
            return self._resolve_trajectories(data)
        if isinstance(data, ParquetDecisions) and count_coordinates(self._kernel):
            raise ValueError(
                "a folder of files is fitted without lapses, and with known df; read its decisions "
                "into memory"
            )
        # offers without choices say nothing of the value
        if isinstance(data, Decisions):
            data.require_choices()
        prior = resolve_prior(self.value_prior, data)
        groups, group_of_decision = self._resolve_groups(data)
        noise = None
        if isinstance(self.noise, CorrelatedNoise):
            # labels of actions are needed, which a folder is not asked for
            noise = resolve_noise(self.noise, data)
        habit = resolve_habit(data) if self._has_habits else None
        over_time, switching, group_paths = None, None, None
        if not isinstance(self.over_time, Constant):
            if isinstance(data, ParquetDecisions):
                raise ValueError(
                    "a folder of files is fitted with values that never change; read its decisions "
                    "into memory"
                )
            if isinstance(self.over_time, Switching):
                switching = resolve_switching(self.over_time, data)
            elif group_of_decision is None:
                over_time = resolve_over_time(self.over_time, data, prior)
            else:
                group_paths = resolve_group_paths(
                    self.over_time,
                    data,
                    prior,
                    groups,
                    group_of_decision,
                    of_population=isinstance(self.groups, Hierarchical),
                )
        labelled = noise or habit
        if labelled is not None and isinstance(self.groups, Separate):
            assert group_of_decision is not None
            check_all_offered(labelled, group_of_decision[data.decision_of_row], groups)
        return ResolvedChoiceModel(
            model=self,
            data=data,
            coefficients=data,
            prior=prior,
            noise=noise,
            groups=groups,
            group_of_decision=group_of_decision,
            habit=habit,
            over_time=over_time,
            switching=switching,
            group_paths=group_paths,
        )

    @property
    def _has_habits(self) -> bool:
        """Whether lapses follow habits, which are inferred."""
        lapse = getattr(self.noise, "lapse", None)
        return lapse is not None and lapse.to == "habit"

    def _resolve_groups(self, data: Any) -> tuple[tuple[Hashable, ...], Ints | None]:
        """The labels of the groups in the order of first appearance, and whose each decision is."""
        if isinstance(self.groups, Pooled):
            return (), None
        if isinstance(data, ParquetDecisions):
            raise ValueError("a folder of files is fitted with groups=rv.Pooled() only")
        labels = data.group_of_decision if isinstance(data, Trajectories) else group_labels(data)
        groups = tuple(decisions_by_group(labels))
        # one group says nothing about how groups differ
        if isinstance(self.groups, Hierarchical) and len(groups) < 2:
            raise ValueError(
                f"a population needs two groups or more, and all decisions are by {groups[0]!r}; "
                "use groups=rv.Pooled()"
            )
        return groups, group_positions(labels, groups)

    def _resolve_trajectories(self, data: Trajectories) -> ResolvedChoiceModel:
        """The same where the rows are unknown.

        Decisions are made at their expectations.
        """
        assert isinstance(self.transitions, Dirichlet)
        concentration, exists = check_concentration(self.transitions, data)
        process = mean_process(data, concentration, exists)
        decisions = process.decisions(
            data.state_position,
            data.action_position,
            action_rewards=self.transitions.action_rewards,
        )
        groups, group_of_decision = self._resolve_groups(data)
        return ResolvedChoiceModel(
            model=self,
            data=data,
            coefficients=decisions,
            prior=resolve_prior(self.value_prior, decisions),
            noise=None,
            groups=groups,
            group_of_decision=group_of_decision,
            concentration=concentration,
            exists=exists,
        )


@dataclass(frozen=True, eq=False)
class ResolvedChoiceModel:
    """A `ChoiceModel` for one set of data.

    coefficients: their names and blocks, the data themselves where these are decisions. prior: in
    the coordinates of the data. noise: None where it is independent. groups: N labels, none where
    all are pooled. group_of_decision: (T,) positions among them. concentration: (M, N, N), and
    exists: (N, M), of the Dirichlet prior of unknown rows. habit: None where lapses follow none.
    over_time: None where values have no paths, or each group one: group_paths. switching: None
    where no strategies take turns.
    """

    model: ChoiceModel
    data: ChoiceData
    coefficients: Coefficients
    prior: ResolvedPrior
    noise: ResolvedNoise | None
    groups: tuple[Hashable, ...] = ()
    group_of_decision: Ints | None = None
    concentration: Floats | None = None
    exists: Bools | None = None
    habit: ResolvedHabit | None = None
    over_time: ResolvedOverTime | None = None
    switching: ResolvedSwitching | None = None
    group_paths: GroupPaths | None = None

    @property
    def kernel(self) -> AnyNoise:
        """The law of independent noise, as compiled loops take it."""
        kernel = self.model._kernel
        return kernel if self.habit is None else with_habits(kernel, len(self.habit.labels))

    @property
    def law(self) -> NoiseArguments:
        """The law of independent noise without lapses."""
        noise = self.model.noise
        return noise.law() if isinstance(noise, Noise) else NORMAL

    @cached_property
    def decisions(self) -> Decisions:
        """The decisions as samplers take them, where they are in memory."""
        assert isinstance(self.data, Decisions)
        return without_far_offsets(self.data)

    @cached_property
    def sampled_decisions(self) -> Decisions:
        """The decisions with a column of zeros for each coordinate of the noise.

        Coefficients and such coordinates are then one vector for samplers.
        """
        labels = None if self.habit is None else self.habit.of_row
        return with_noise_coordinates(self.decisions, count_coordinates(self.kernel), labels)

    @cached_property
    def sampled_prior(self) -> ResolvedPrior:
        """The prior of the coefficients and of the coordinates of the noise."""
        return self.prior.with_standard_normal(count_coordinates(self.kernel))

    def start_at(self, value: Floats | None) -> Floats | None:
        """Where chains start, for samplers: coordinates of the noise at their prior mean, zero."""
        if value is None:
            return None
        # zero is the median of the prior of such a coordinate
        zeros = np.zeros((*value.shape[:-1], count_coordinates(self.kernel)))
        return np.concatenate([value, zeros], axis=-1)

    @property
    def own_coordinates(self) -> int:
        """How many coordinates of the noise each group has for itself: those of its lapses."""
        lapse = getattr(self.model.noise, "lapse", None)
        if lapse is None or lapse.by == "all":
            return 0
        return count_coordinates(self.kernel) - count_coordinates(self.law)

    def name_draws(self, draws: Mapping[str, Floats]) -> dict[str, Floats]:
        """Draws by the names of `parameters`, from those of a sampler."""
        count = count_coordinates(self.kernel)
        # data augmentation has draws of the rate itself
        if count == 0 or "lapse" in draws:
            return dict(draws)
        if isinstance(self.model.groups, Hierarchical):
            return name_draws_of_groups(
                self.kernel, draws, self.own_coordinates, len(self.coefficients.names)
            )
        if "noise" in draws:
            own = {name: drawn for name, drawn in draws.items() if name != "noise"}
            return own | name_noise(self.kernel, draws["noise"])
        # the coordinates of the noise are the last coefficients
        value = draws["value"]
        named = name_noise(self.kernel, value[..., -count:])
        return {**draws, "value": np.ascontiguousarray(value[..., :-count]), **named}

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """Everything unknown, in the order in which it is reported."""
        return parameters_of(self)

    def split(self) -> dict[Hashable, Any]:
        """The data of each group by itself, groups in the order in which they first appear."""
        if isinstance(self.data, Trajectories):
            assert self.data.groups is not None
            by_group = decisions_by_group(self.data.groups)
            return {label: self.data.take(which) for label, which in by_group.items()}
        by_group = decisions_by_group(group_labels(self.decisions))
        return {label: self.decisions[which] for label, which in by_group.items()}

    @property
    def fingerprint_parts(self) -> tuple[Any, ...]:
        """What a checkpoint must agree with: all that decides the posterior."""
        return fingerprint_of(self)

    def refuse_improper(self) -> None:
        """Under a flat prior, refuse decisions that leave a direction unbounded, and name it.

        The posterior would be improper: it could not be normalised, and chains would drift away.
        """
        if not self.prior.flat or not isinstance(self.data, Decisions):
            return
        refuse_improper(self.data, self.prior)
