"""Population: draws of what many groups have in common, and of each of them.

    v_i ~ N(mean, covariance)   for each group i

Mean, covariance and all v_i are drawn together; a group never seen before is predicted from mean
and covariance alone.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from revealed._types import Floats, Ints
from revealed._validation import Seed, as_generator
from revealed.data.decisions import Decisions
from revealed.data.groups import decisions_by_group, group_labels
from revealed.io.netcdf import Variables, read_file, to_arviz, write_file
from revealed.models.likelihood import posterior_mode
from revealed.models.priors import Normal, coordinates, resolve_prior
from revealed.results.posterior import Posterior, fixed_coefficients
from revealed.results.prediction import Prediction, predict
from revealed.results.storage import (
    FORMAT,
    array_reader,
    decision_groups,
    draw_dimensions,
    origin_attributes,
    read_origin,
    read_stats,
    stat_variables,
)
from revealed.results.summary import Summary, summarise


@dataclass(frozen=True, eq=False)
class Shrinkage:
    """Each group alone, and as one of many; arrays are (N, K).

    unpooled: the most likely value of each group by itself, under the prior of the population mean.
    pooled: the posterior mean as one of the population. centre: (K,) the population's mean.
    """

    names: tuple[str, ...]
    groups: tuple[Hashable, ...]
    decisions: Ints
    unpooled: Floats
    pooled: Floats
    centre: Floats

    @property
    def shrinkage_factor(self) -> Floats:
        """(K,) sd between pooled estimates, as a share of that between unpooled ones."""
        return np.asarray(self.pooled.std(axis=0) / np.maximum(self.unpooled.std(axis=0), 1e-300))

    def __str__(self) -> str:
        # a line a coefficient
        lines = [
            f"{len(self.groups)} groups with {np.median(self.decisions):g} decisions each (median)"
        ]
        wide = max(map(len, self.names))
        for k, name in enumerate(self.names):
            lines.append(
                f"{name.ljust(wide)}  spread of separate estimates "
                f"{self.unpooled[:, k].std():.3g}, of shrunken ones {self.pooled[:, k].std():.3g} "
                f"({self.shrinkage_factor[k]:.0%}), "
                f"about {self.centre[k]:.3g}"
            )
        return "\n".join(lines)


@dataclass(frozen=True, eq=False, repr=False)
class Population:
    """Draws of the population and of all its groups.

    Parameters
    ----------
    mean
        (chain, draw, K) the population's mean.
    covariance
        (chain, draw, K, K) its covariance.
    values
        (chain, draw, N, K) the value of every group.
    groups
        N labels.
    decisions
        What all were inferred from, with their groups.
    prior
        Of the mean.
    scale
        Of the sds' prior.
    stats, settings
        As in ``Posterior``.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> rows = rng.normal(size=(300, 2))  # ten people decide fifteen times between two things
    >>> likes = np.repeat(rng.normal([1.0, -1.0], 0.5, (10, 2)), 30, axis=0)
    >>> utility = (rows * likes).sum(axis=1) + rng.normal(size=300)
    >>> best = utility.reshape(-1, 2).argmax(axis=1)
    >>> d = rv.Decisions(rows, range(0, 301, 2), best, groups=np.repeat(range(10), 15))
    >>> population = rv.fit_population(d, draws=3000)
    >>> population.group(3)
    <Posterior: 4 chains of 3000 draws, 2 coefficients, ...>
    >>> population.new_group().mean(axis=0) > 0.0  # draws of somebody never seen
    array([ True, False])
    """

    mean: Floats
    covariance: Floats
    values: Floats
    groups: tuple[Hashable, ...]
    decisions: Decisions
    prior: Normal
    scale: float
    stats: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The K coefficient names."""
        return self.decisions.names

    @property
    def sd(self) -> Floats:
        """(chain, draw, K) how far groups differ in each coefficient.

        The roots of the covariance's diagonal.
        """
        return np.asarray(np.sqrt(np.maximum(np.einsum("...kk->...k", self.covariance), 0.0)))

    def __repr__(self) -> str:
        chains, draws, width = self.mean.shape
        return (
            f"<Population: {len(self.groups)} groups, {chains} chains of {draws} draws, {width} "
            "coefficients>"
        )

    def summary(self) -> Summary:
        """The population's mean and sd of each coefficient, and in words whether they converged."""
        # correlations are not summarised: there are too many of them to read
        names = tuple(f"{what} {name}" for what in ("mean", "sd") for name in self.names)
        return self._summarise(np.concatenate([self.mean, self.sd], axis=2), names, 2)

    def summary_of_groups(self) -> Summary:
        """The same for every coefficient of every group.

        Computed once and kept, as it takes a while with very many groups.
        """
        return self._summary_of_groups

    @cached_property
    def _summary_of_groups(self) -> Summary:
        names = tuple(f"{group} {name}" for group in self.groups for name in self.names)
        draws = self.values.reshape(*self.values.shape[:2], -1)
        return self._summarise(draws, names, len(self.groups))

    def _summarise(self, draws: Floats, names: tuple[str, ...], times: int) -> Summary:
        """The summary of draws that hold all coefficients so many times."""
        return summarise(
            draws,
            names,
            fixed=np.tile(fixed_coefficients(self.decisions, self.prior), times),
            interrupted=self.settings.get("complete") is False,
            requested=self.settings.get("draws"),
        )

    def group(self, label: Hashable) -> Posterior:
        """The posterior of one group; its prior is the population, as it was inferred on average.

        Parameters
        ----------
        label
            Of the group.
        """
        i = self._index(label)
        mean, covariance = self.mean.mean(axis=(0, 1)), self.covariance.mean(axis=(0, 1))
        # the covariance of a prior must be positive definite: constants, which no choice depends
        # on, get variance one
        constants = coordinates(self.decisions, self.prior.sum_to_zero)[1]
        prior = Normal(
            mean=mean,
            sum_to_zero=self.prior.sum_to_zero,
            covariance=covariance + constants @ constants.T,
        )
        own = self.decisions[self._decisions_of[label]]
        return Posterior(
            self.values[:, :, i], own, prior, "hierarchical", self.stats, self.settings
        )

    def new_group(self, seed: Seed = 0) -> Floats:
        """(chains * draws, K) values of a group never seen before.

        One from each draw of the population: mean plus root z, root root' the covariance.

        Parameters
        ----------
        seed
            A number or a numpy Generator; the same number gives the same values.
        """
        # in the free coordinates, where the covariance is positive definite
        rng = as_generator(seed)
        basis = coordinates(self.decisions, self.prior.sum_to_zero)[0]
        root = np.linalg.cholesky(basis.T @ self.covariance @ basis)
        z = rng.standard_normal((*self.mean.shape[:2], basis.shape[1]))
        offset = np.einsum("...ij,...j->...i", root, z)
        return np.asarray((self.mean + offset @ basis.T).reshape(-1, len(self.names)))

    def predict(
        self, decisions: Decisions, groups: Any = None, new: Iterable[Hashable] = (), seed: Seed = 0
    ) -> Prediction:
        """What each group will do, given who decides each time.

        Parameters
        ----------
        decisions
            What is offered; their groups say to whom.
        groups
            Who decides, as in `fit_population`.
        new
            Labels that are new groups, predicted from the population; any other label that was not
            in the fit is refused.
        seed
            Of the new groups' values.
        """
        group_of_decision = group_labels(decisions, groups)
        # a known label that is called new is nearly always a mistake
        fresh = set(new)
        for label in fresh:
            if label in self._positions:
                raise ValueError(
                    f"{label!r} is called new, but is one of the {len(self.groups)} groups of this "
                    "fit"
                )
        probabilities, logs = np.empty(decisions.rows.shape[0]), np.empty(len(decisions))
        # each group by its own draws, and put back in the order of the decisions
        for label, which in decisions_by_group(group_of_decision).items():
            draws = self.new_group(seed) if label in fresh else self._values_of(label)
            found = predict(draws, decisions[which])
            rows = np.concatenate([np.arange(*decisions.start[t : t + 2]) for t in which])
            probabilities[rows] = found.probabilities
            chosen = found.log_probability_chosen
            logs[which] = 0.0 if chosen is None else chosen
        return Prediction(
            probabilities, "average", decisions, None if decisions.chosen is None else logs
        )

    def shrinkage(self) -> Shrinkage:
        """Each group by itself and as one of the population.

        What pooling does: the difference is largest for groups with few decisions.
        """
        # alone, a group has the prior of the population's mean and nothing to lean on
        own_decisions = [self.decisions[self._decisions_of[label]] for label in self.groups]
        alone = np.array(
            [posterior_mode(own, resolve_prior(self.prior, own))[0] for own in own_decisions]
        )
        return Shrinkage(
            self.names,
            self.groups,
            np.array([len(own) for own in own_decisions]),
            alone,
            self.values.mean(axis=(0, 1)),
            self.mean.mean(axis=(0, 1)),
        )

    def to_arviz(self) -> Any:
        """The same as ArviZ's InferenceData (ArviZ 0.x) or xarray DataTree (ArviZ 1.x)."""
        return to_arviz(self._attributes(), self._groups())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a NetCDF file that `rv.load` and ArviZ read; it is there whole or not at all."""
        write_file(path, self._attributes(), self._groups())

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Population:
        """Read what `save` wrote."""
        return read_file(path, "a population", FORMAT, read_population)

    def _attributes(self) -> dict[str, Any]:
        """Everything that is not an array, as text or a number."""
        return {
            **origin_attributes(self.decisions, self.prior, "hierarchical", self.settings),
            "kind": "a population",
            "scale": self.scale,
        }

    def _groups(self) -> dict[str, Variables]:
        """Everything that is an array, as ArviZ groups it."""
        chains, draws, _ = self.mean.shape
        by_draw, names = ("chain", "draw"), np.array(self.names, dtype=object)
        posterior: Variables = {
            **draw_dimensions(chains, draws),
            "coefficient": (("coefficient",), names),
            "other": (("other",), names),
            "group": (("group",), np.array(self.groups)),
            "mean": ((*by_draw, "coefficient"), self.mean),
            "covariance": ((*by_draw, "coefficient", "other"), self.covariance),
            "v": ((*by_draw, "group", "coefficient"), self.values),
        }
        stats = stat_variables(chains, draws, self.stats)
        return {"posterior": posterior, "sample_stats": stats, **decision_groups(self.decisions)}

    @cached_property
    def _decisions_of(self) -> dict[Hashable, Ints]:
        """Which decisions each group made."""
        return decisions_by_group(group_labels(self.decisions, None))

    @cached_property
    def _positions(self) -> dict[Hashable, int]:
        """The position of each group among the values."""
        return {label: i for i, label in enumerate(self.groups)}

    def _index(self, label: Hashable) -> int:
        """The position of a group; refuses one that is not in the fit.

        The sentence says how a new group is predicted.
        """
        if label not in self._positions:
            raise ValueError(
                f"group {label!r} made none of the decisions of this fit, which knows "
                f"{len(self.groups)} groups; a new group is predicted from the population, by "
                f"new_group() or predict(..., new=[{label!r}])"
            )
        return self._positions[label]

    def _values_of(self, label: Hashable) -> Floats:
        """(chains * draws, K) the values of one group."""
        return self.values[:, :, self._index(label)].reshape(-1, len(self.names))


def read_population(file: Any) -> Population:
    """The population of an open file that `Population.save` wrote."""
    get = array_reader(file)
    decisions, prior, settings = read_origin(file)
    assert isinstance(prior, Normal)
    mean, covariance, values = (get(f"posterior/{name}") for name in ("mean", "covariance", "v"))
    # version 0.1.0 called groups players
    labels = get("posterior/group", optional=True)
    groups = get("posterior/player") if labels is None else labels
    return Population(
        mean,
        covariance,
        values,
        tuple(groups.tolist()),
        decisions,
        prior,
        float(np.ravel(file.attrs["scale"])[0]),
        read_stats(file),
        settings,
    )
