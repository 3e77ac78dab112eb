"""Posterior: draws of everything unknown, what they were inferred from, and whether they converged.

Every model has the same kind of result: draws of named parameters, (chain, draw, ...), kept
together with the data, the model and the settings that made them, so that a file is enough to
predict from and to run again. What a posterior can tell beyond that depends on the model, and is
added by the classes derived from this one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from revealed._types import Bools, Floats
from revealed.io.netcdf import Array, Variables, to_arviz, write_file
from revealed.models.base import Parameter
from revealed.models.choice import ChoiceModel
from revealed.models.ranking import RankingModel
from revealed.results.diagnostics import standard_deviation
from revealed.results.loo import LeaveOneOut, Observations, all_observations, leave_one_out
from revealed.results.storage import (
    data_groups,
    likelihood_variables,
    model_attributes,
    parameter_variables,
    stat_variables,
    to_json_value,
)
from revealed.results.summary import Summary, summarise


class Columns(NamedTuple):
    """Every number that is reported, side by side.

    draws: (chain, draw, n). names: n. fixed: (n,) which of them cannot move, such as a coefficient
    that is alone in a block that sums to zero; that they stand still is no fault of the sampler.
    """

    draws: Floats
    names: tuple[str, ...]
    fixed: Bools


@dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    """Draws of everything unknown with all they came from; frozen, and checked when made.

    Parameters
    ----------
    draws
        By the name of the parameter, (chain, draw, ...) finite numbers, unweighted.
    data
        What they were inferred from.
    model
        What was assumed.
    sampler
        The name of the sampler that drew them.
    sample_stats
        Statistics of each draw, such as its acceptance rate; each (chain, draw).
    settings
        How it was run (seed, draws, warmup, thin, options, complete); anything JSON can hold.

    Examples
    --------
    >>> rows = [[1.0, 3.0], [0.0, 2.0], [1.0, 2.0], [0.0, 2.0]] * 10  # tea or coffee
    >>> d = rv.Decisions(rows, range(0, 41, 2), [0] * 14 + [1] * 6, names=["tea", "price"])
    >>> post = rv.fit(d, rv.ChoiceModel(prior=rv.Normal(1.0)))
    >>> post
    <ChoicePosterior: 4 chains of 1000 draws, 2 coefficients, sampler laplace>
    >>> post.draws["value"].shape, post.mean("value").argmax(), post.converged
    ((4, 1000, 2), np.int64(0), True)
    """

    draws: Mapping[str, Floats]
    data: Any
    model: ChoiceModel | RankingModel
    sampler: str
    sample_stats: Mapping[str, Array] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)

    main: ClassVar[str] = "value"
    """The parameter that is meant where none is named."""
    unit: ClassVar[str] = "decisions"
    """What is left out, one by one, to compare models."""

    def __post_init__(self) -> None:
        # frozen dataclasses check themselves here, and set fields by object.__setattr__
        draws = self._check_draws()
        sizes = tuple(len(labels) for labels in self.stat_dims.values())
        stats = self._check_stats((*next(iter(draws.values())).shape[:2], *sizes))
        # frozen means the numbers too
        for array in (*draws.values(), *stats.values()):
            array.flags.writeable = False
        try:
            # through JSON and back, so that a saved posterior has the settings it was saved from
            settings = json.loads(json.dumps(dict(self.settings), default=to_json_value))
        except (TypeError, ValueError) as reason:
            raise ValueError(
                f"the settings must be text, numbers, lists and mappings only ({reason})"
            ) from None
        for name, value in (("draws", draws), ("sample_stats", stats), ("settings", settings)):
            object.__setattr__(self, name, value)

    @cached_property
    def resolved(self) -> Any:
        """The model in terms of the data."""
        return self.model.resolve(self.data)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Everything unknown: names, dimensions and labels."""
        found: tuple[Parameter, ...] = self.resolved.parameters
        return found

    def parameter(self, name: str | None = None) -> Parameter:
        """One parameter by its name; the main one where none is named."""
        for parameter in self.parameters:
            if parameter.name == (name or self.main):
                return parameter
        known = ", ".join(parameter.name for parameter in self.parameters)
        raise ValueError(f"there is no parameter {name!r}; there are {known}")

    def _check_draws(self) -> dict[str, Floats]:
        """The draws as new arrays, each (chain, draw, ...) of its parameter's shape, all finite.

        Refuses other shapes, and names the first number that is not finite.
        """
        expected = [parameter.name for parameter in self.parameters]
        if set(self.draws) != set(expected):
            raise ValueError(
                f"this model has the parameters {', '.join(expected)}, and there are draws of "
                f"{', '.join(self.draws) or 'none'}"
            )
        checked: dict[str, Floats] = {}
        for parameter in self.parameters:
            # a copy, so that nobody else can change it
            array = np.array(self.draws[parameter.name], dtype=np.float64, order="C")
            shape = next(iter(checked.values())).shape[:2] if checked else array.shape[:2]
            if array.shape != (*shape, *parameter.shape) or len(shape) < 2 or 0 in shape:
                raise ValueError(
                    f"draws of {parameter.name} must be a (chain, draw"
                    f"{''.join(f', {size}' for size in parameter.shape)}) array with at least one "
                    f"draw; its shape is {array.shape}"
                )
            self._check_finite(parameter, array)
            checked[parameter.name] = array
        return checked

    def _check_finite(self, parameter: Parameter, array: Floats) -> None:
        """Refuse numbers that are not finite, and say where the first is."""
        bad = np.argwhere(~np.isfinite(array))
        if bad.size:
            chain, draw, *where = bad[0]
            labels = [
                str(parameter.coords[dim][i]) for dim, i in zip(parameter.dims, where, strict=True)
            ]
            name = ", ".join(labels) or parameter.name
            raise ValueError(
                f"chain {chain}, draw {draw}: {name} is {array[tuple(bad[0])]}; draws must be "
                "finite"
            )

    def _check_stats(self, shape: tuple[int, ...]) -> dict[str, Array]:
        """The stats as new arrays of this shape, (chain, draw), with names that a file can hold."""
        stats = {name: np.array(values) for name, values in self.sample_stats.items()}
        for name, values in stats.items():
            if not name.isidentifier() or name in ("chain", "draw"):
                raise ValueError(
                    f"the stat {name!r} needs another name: one word, and neither chain nor draw"
                )
            if values.shape != shape:
                raise ValueError(
                    f"the stat {name!r} has shape {values.shape}; it needs one number a draw, "
                    f"{shape}"
                )
        return stats

    @property
    def stat_dims(self) -> Mapping[str, tuple[Any, ...]]:
        """Dimensions of statistics beyond chain and draw, with their labels; usually none."""
        return {}

    @property
    def shape(self) -> tuple[int, int]:
        """How many chains there are, and draws in each."""
        chains, draws = next(iter(self.draws.values())).shape[:2]
        return int(chains), int(draws)

    def stacked(self, name: str | None = None) -> Floats:
        """(chains * draws, ...) the draws of a parameter, chains one after the other."""
        draws = self.draws[self.parameter(name).name]
        return draws.reshape(-1, *draws.shape[2:])

    def mean(self, name: str | None = None) -> Floats:
        """The posterior means of a parameter.

        Of the main one where none is named.
        """
        return np.asarray(self.stacked(name).mean(axis=0))

    def sd(self, name: str | None = None) -> Floats:
        """The posterior standard deviations; NaN from a single draw, which has none.

        Of the draws of all chains together.
        """
        return standard_deviation(self.draws[self.parameter(name).name])

    def quantile(self, name: str | None = None, q: Any = (0.05, 0.95)) -> Floats:
        """Quantiles of a parameter over the draws of all chains.

        The quantiles come first.
        """
        return np.asarray(np.quantile(self.stacked(name), q, axis=0))

    def columns(self) -> Columns:
        """Every number that is reported, side by side, under the name a table gives it."""
        # parameters of any shape become numbers side by side
        draws, names = [], []
        for parameter in self.parameters:
            array = self.draws[parameter.name]
            draws.append(array.reshape(*array.shape[:2], -1))
            names += _component_names(parameter)
        joined = np.concatenate(draws, axis=2)
        return Columns(joined, tuple(names), np.zeros(len(names), np.bool_))

    def summary(self) -> Summary:
        """Means, sds and diagnostics of all that was inferred, and in words whether it converged.

        Computed once and kept, as it takes a while with very many parameters.
        """
        return self._summary

    @cached_property
    def _summary(self) -> Summary:
        return self._summarise(self.columns())

    def _summarise(self, columns: Columns) -> Summary:
        return summarise(
            columns.draws,
            columns.names,
            fixed=columns.fixed,
            interrupted=self.settings.get("complete") is False,
            requested=self.settings.get("draws"),
        )

    @property
    def converged(self) -> bool:
        """Whether nothing speaks against the draws; `message` says what does.

        Every number of `columns()` counts.
        """
        return self.summary().converged

    @property
    def message(self) -> str:
        """In words whether the draws have converged, and what to do where they have not."""
        return self.summary().message

    def select(self, **coords: Any) -> Posterior:
        """The posterior of one of several groups, such as ``select(person="ann")``."""
        raise ValueError(
            f"there is nothing to select by {', '.join(coords) or 'no name'}: this model has no "
            "groups"
        )

    def log_likelihood(self) -> Floats:
        """(chain, draw, n) the exact log-likelihood of everything observed, under every draw."""
        raise NotImplementedError

    def loo(self) -> LeaveOneOut:
        """How well each observation is predicted from the others (PSIS-LOO)."""
        return leave_one_out(self._observations(), *self.shape)

    def _observations(self) -> Observations:
        """What was observed, as leaving one out needs it: equal observations once."""
        logs = self.log_likelihood()
        return all_observations(logs.reshape(-1, logs.shape[2]))

    def identification(self) -> Any:
        """What the data identify, and what only the prior says.

        Print it for a report.
        """
        raise ValueError(
            f"what the data identify is not worked out for a {type(self).__name__}; compare its "
            "sds with those of the prior"
        )

    def report(self, path: str | os.PathLike[str], title: str | None = None) -> None:
        """Write a page about this posterior: one HTML file, with figures inside.

        Parameters
        ----------
        path
            Of the file.
        title
            Of the page.
        """
        # pictures need matplotlib, which is optional
        from revealed.plots.report import write_report

        write_report(self, path, title)

    def to_arviz(self, log_likelihood: bool = True) -> Any:
        """The same as ArviZ's InferenceData (ArviZ 0.x) or xarray DataTree (ArviZ 1.x).

        Parameters
        ----------
        log_likelihood
            Add the exact log-likelihood of every observation under every draw, as arviz.loo needs.
        """
        return to_arviz(self.attributes(), self.groups_of_arrays(log_likelihood))

    def save(self, path: str | os.PathLike[str], log_likelihood: bool = False) -> None:
        """Write a NetCDF file that `rv.load` and ArviZ read; it is there whole or not at all.

        Parameters
        ----------
        path
            Of the file.
        log_likelihood
            Add the exact log-likelihood of every observation under every draw.
        """
        write_file(path, self.attributes(), self.groups_of_arrays(log_likelihood))

    def attributes(self) -> dict[str, Any]:
        """Everything that is not an array, as text."""
        return model_attributes(self.model, self.data, self.sampler, self.settings)

    def groups_of_arrays(self, log_likelihood: bool) -> dict[str, Variables]:
        """Everything that is an array, as ArviZ groups it.

        log_likelihood: whether to add that of every observation under every draw.
        """
        chains, draws = self.shape
        groups = {"posterior": parameter_variables(self.parameters, self.draws)}
        if self.sample_stats:
            groups["sample_stats"] = stat_variables(
                chains, draws, self.sample_stats, self.stat_dims
            )
        # observations times draws numbers, which few need, so that they are added on demand
        if log_likelihood:
            groups["log_likelihood"] = likelihood_variables(self.data, self.log_likelihood())
        return groups | data_groups(self.data)

    def __repr__(self) -> str:
        chains, draws = self.shape
        return (
            f"<{type(self).__name__}: {chains} chains of {draws} draws, {self._contents()}, "
            f"sampler {self.sampler}>"
        )

    def _contents(self) -> str:
        """What was inferred, in a few words."""
        return ", ".join(parameter.name for parameter in self.parameters)


def _component_names(parameter: Parameter) -> list[str]:
    """The name of each number of a parameter, in the order of its raveled array."""
    names = [""]
    for dim in parameter.dims:
        names = [f"{name} {label}".strip() for name in names for label in parameter.coords[dim]]
    return names if parameter.dims else [parameter.name]
