"""SeparatePosterior: a posterior for every group, none of which says anything about another."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from revealed._types import Floats, Ints
from revealed._validation import Seed
from revealed.data.decisions import Decisions
from revealed.models.choice import ChoiceModel
from revealed.models.groups import Pooled
from revealed.results.base import Columns, Posterior
from revealed.results.choice import ChoicePosterior
from revealed.results.joined_observations import join_observations
from revealed.results.lapses import Lapses
from revealed.results.loo import Observations
from revealed.results.mdp import MDPPosterior
from revealed.results.paths import PathPosterior
from revealed.results.prediction import Prediction
from revealed.results.prediction_by_group import predict_by_group
from revealed.results.summary import Summary


@dataclass(frozen=True, eq=False, repr=False)
class SeparatePosterior(Posterior):
    """A posterior for every group; draws have the dimension "group" after chain and draw.

    Of values that change, groups have times of their own: ``draws["value"]`` is (chain, draw, N,
    K), the paths of all groups one after the other.

    Where the work was interrupted, the data are those of the groups that were reached, and
    ``settings["not_fitted"]`` names the others.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> rows = rng.normal(size=(400, 1))
    >>> best = (rows[:, 0] + rng.normal(size=400)).reshape(-1, 2).argmax(axis=1)
    >>> d = rv.Decisions(rows, range(0, 401, 2), best, groups=np.repeat(["ann", "ben"], 100))
    >>> found = rv.fit(d, rv.ChoiceModel(prior=rv.Normal(2.0), groups=rv.Separate()))
    >>> found.groups, found.not_converged, found.select(group="ann").mean() > 0.0
    (('ann', 'ben'), (), array([ True]))
    """

    @property
    def groups(self) -> tuple[Hashable, ...]:
        """The labels, in the order in which they first appear."""
        found: tuple[Hashable, ...] = self.resolved.groups
        return found

    @property
    def names(self) -> tuple[str, ...]:
        """The K coefficient names."""
        found: tuple[str, ...] = self.resolved.coefficients.names
        return found

    @property
    def not_fitted(self) -> tuple[str, ...]:
        """The labels of those that are missing, because the work was interrupted."""
        return tuple(self.settings.get("not_fitted", ()))

    @property
    def stat_dims(self) -> Mapping[str, tuple[Any, ...]]:
        """Every group has statistics of its own."""
        return {"group": self.groups}

    @cached_property
    def _parts(self) -> dict[Hashable, Any]:
        """The data of each group."""
        found: dict[Hashable, Any] = self.resolved.split()
        return found

    def select(self, **coords: Any) -> Any:
        """The posterior of one group, as a fit of its data alone would give it.

        Parameters
        ----------
        **coords
            ``group=label``, or what the decisions call their groups: ``person="ann"``.
        """
        called = {"group", getattr(self.data, "group_name", None) or "group"}
        if len(coords) != 1 or not set(coords) <= called:
            raise ValueError(
                f"select takes one label by the name of its groups, "
                f"{' or '.join(sorted(called))}; it is given {', '.join(coords) or 'nothing'}"
            )
        label = next(iter(coords.values()))
        if label not in self._parts:
            why = (
                "was not reached before the work was interrupted"
                if str(label) in self.not_fitted
                else "is not one of them"
            )
            raise ValueError(
                f"there are posteriors of {len(self.groups)} groups, and {label!r} {why}"
            )
        return self._part(self.groups.index(label), label)

    def _part(self, i: int, label: Hashable) -> Any:
        """The posterior of the i-th group."""
        assert isinstance(self.model, ChoiceModel)
        # settings of all groups together are not those of one
        of_all = ("of_group", "not_fitted")
        own = {name: value for name, value in self.settings.items() if name not in of_all}
        own |= {name: values[i] for name, values in self.settings.get("of_group", {}).items()}
        sampler = own.pop("sampler", self.sampler)
        paths = self.resolved.group_paths
        kind: Any = MDPPosterior if self.resolved.concentration is not None else ChoicePosterior
        drawn = {name: array[:, :, i] for name, array in self.draws.items() if name != "value"}
        value = self.draws["value"]
        if paths is None:
            drawn["value"] = value[:, :, i]
        else:
            kind, drawn["value"] = PathPosterior, value[:, :, paths.nodes_of(i)]
        return kind(
            {name: drawn[name] for name in self.draws},
            self._parts[label],
            self.model.replace(groups=Pooled()),
            sampler,
            {name: array[:, :, i] for name, array in self.sample_stats.items()},
            own,
        )

    def __iter__(self) -> Iterator[Hashable]:
        """The labels of the groups."""
        return iter(self.groups)

    def __len__(self) -> int:
        """How many groups there are."""
        return len(self.groups)

    def columns(self) -> Columns:
        """Every number of every group, under the group's label and its own name."""
        parts = [(label, self._part(i, label).columns()) for i, label in enumerate(self.groups)]
        return Columns(
            np.concatenate([columns.draws for _, columns in parts], axis=2),
            tuple(f"{label} {name}" for label, columns in parts for name in columns.names),
            np.concatenate([columns.fixed for _, columns in parts]),
        )

    @cached_property
    def summaries(self) -> dict[Hashable, Summary]:
        """The summary of each group's draws, by label."""
        return {label: self._part(i, label).summary() for i, label in enumerate(self.groups)}

    @property
    def not_converged(self) -> tuple[Hashable, ...]:
        """The labels of those whose draws have not converged.

        Each has a message of its own in `summaries`.
        """
        return tuple(label for label, summary in self.summaries.items() if not summary.converged)

    @property
    def converged(self) -> bool:
        """Whether every group was fitted, and nothing speaks against any group's draws."""
        return not self.not_converged and not self.not_fitted

    @property
    def message(self) -> str:
        """In words how many groups are missing, and how many have not converged."""
        problems = []
        if self.not_fitted:
            total = len(self) + len(self.not_fitted)
            problems.append(
                f"the work was interrupted, and {len(self.not_fitted)} of {total} groups are "
                "missing"
            )
        failed = self.not_converged
        if failed:
            some = ", ".join(map(repr, failed[:3])) + (", ..." if len(failed) > 3 else "")
            problems.append(
                f"{len(failed)} of {len(self)} groups have not converged ({some}); run longer"
            )
        return "; also ".join(problems) if problems else self.summary().message

    def predict(
        self,
        decisions: Decisions,
        method: str = "average",
        *,
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
        seed
            Of the votes' noise.
        draws
            How many draws are used: "all", or at most so many; default: as the error asks for.
        """
        if self.resolved.concentration is not None:
            raise ValueError(
                "where transitions are unknown, states are predicted of one group at a time: "
                f"select(group={self.groups[0]!r}).predict(states)"
            )

        def predict_group(label: Hashable, own: Decisions) -> Prediction:
            part = self.select(group=label)
            found: Prediction = part.predict(own, method, seed=seed, draws=draws)
            return found

        return predict_by_group(self.names, decisions, method, predict_group)

    def log_likelihood(self) -> Floats:
        """(chain, draw, T) the exact log-likelihood of every choice, under its group's draws."""
        position: Ints = self.resolved.group_of_decision
        found = np.empty((*self.shape, len(position)))
        for i, label in enumerate(self.groups):
            found[:, :, position == i] = self._part(i, label).log_likelihood()
        return found

    def lapses(self) -> Lapses:
        """How probable it is that each choice was a lapse; refuses a model without lapses."""
        position: Ints = self.resolved.group_of_decision
        parts = [self._part(i, label).lapses() for i, label in enumerate(self.groups)]
        probability = np.empty(len(position))
        for i, part in enumerate(parts):
            probability[position == i] = part.probability
        # the mean over the groups, each of which has a rate of its own
        return Lapses(probability, float(self.draws["lapse"].mean()), self.resolved.coefficients)

    def _observations(self) -> Observations:
        """The observations of all groups, each group's by its own draws."""
        position: Ints = self.resolved.group_of_decision
        parts = [self._part(i, label)._observations() for i, label in enumerate(self.groups)]
        return join_observations(parts, position, int(np.prod(self.shape)))

    def identification(self) -> Any:
        """Refused: what the decisions identify is told of one group at a time."""
        raise ValueError(
            "what the decisions identify is told of one group at a time: "
            f"select(group={self.groups[0]!r}).identification()"
        )

    def to_dataframe(self) -> Any:
        """A pyarrow table, one row a number of a group.

        Columns: group, coefficient, mean, sd, low, high, r_hat, ess, converged.
        """
        import pyarrow as pa

        # long, as databases like it
        summaries = list(self.summaries.items())
        columns: dict[str, Any] = {
            "group": [label for label, s in summaries for _ in s.names],
            "coefficient": [name for _, s in summaries for name in s.names],
        }
        for name in ("mean", "sd", "low", "high", "r_hat"):
            columns[name] = np.concatenate([getattr(s, name) for _, s in summaries])
        columns["ess"] = np.concatenate([np.minimum(s.ess_bulk, s.ess_tail) for _, s in summaries])
        columns["converged"] = [s.converged for _, s in summaries for _ in s.names]
        return pa.table(columns)

    def _contents(self) -> str:
        missing = f", {len(self.not_fitted)} not fitted" if self.not_fitted else ""
        return (
            f"{len(self.groups)} groups, {len(self.not_converged)} not converged{missing}, "
            f"{len(self.names)} coefficients"
        )


def join_parts(
    parts: Mapping[Hashable, Posterior],
    data: Any,
    model: ChoiceModel,
    settings: Mapping[str, Any],
) -> SeparatePosterior:
    """One posterior of separate groups from those of each.

    Data are those of these groups.
    """
    found = list(parts.values())
    stats = [name for name in found[0].sample_stats if all(name in p.sample_stats for p in found)]
    # what is not the same for all, such as the seed, is recorded of each: a group that was reached
    # is complete, also where others are missing
    recorded = [{**part.settings, "sampler": part.sampler} for part in found]
    common = {
        name: value
        for name, value in recorded[0].items()
        if all(name in one and one[name] == value for one in recorded)
    }
    of_group = {
        name: [one.get(name) for one in recorded]
        for name in recorded[0]
        if name not in common or name in settings
    }
    samplers = dict.fromkeys(part.sampler for part in found)
    common.pop("sampler", None)
    drawn = {name: [part.draws[name] for part in found] for name in found[0].draws}
    paths = isinstance(found[0], PathPosterior)
    return SeparatePosterior(
        {
            # paths are of different lengths, and stand one after the other
            name: np.concatenate(arrays, axis=2)
            if paths and name == "value"
            else np.stack(arrays, axis=2)
            for name, arrays in drawn.items()
        },
        data,
        model,
        ", ".join(samplers),
        {name: np.stack([part.sample_stats[name] for part in found], axis=2) for name in stats},
        {**common, **settings, "of_group": of_group},
    )
