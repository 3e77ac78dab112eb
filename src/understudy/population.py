"""Population: draws of what many players have in common and of each of them; what it predicts, and how it is kept."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from understudy._arrays import Floats, Ints
from understudy._netcdf import Variables, read_file, to_arviz, write_file
from understudy.decisions import Decisions
from understudy.diagnostics import Summary, summarise
from understudy.groups import who_decided, whose
from understudy.likelihood import posterior_mode
from understudy.posterior import FORMAT, Posterior, attributes_of, read_origin, reader, stored
from understudy.predict import Prediction, predict
from understudy.priors import Gaussian, coordinates, place


@dataclass(frozen=True, eq=False)
class Shrinkage:
    """Each player alone, and as one of many; arrays are (N, K).

    separate: the most likely value of each player by himself, under the prior of the population mean. shrunken: the
    posterior mean as one of the population. centre: (K,) the population's mean.
    """

    names: tuple[str, ...]
    players: tuple[Hashable, ...]
    decisions: Ints
    separate: Floats
    shrunken: Floats
    centre: Floats

    @property
    def kept(self) -> Floats:
        """(K,) the share of the spread between separate estimates that is left between the shrunken ones."""
        return np.asarray(self.shrunken.std(axis=0) / np.maximum(self.separate.std(axis=0), 1e-300))

    def __str__(self) -> str:
        lines = [f"{len(self.players)} players with {np.median(self.decisions):g} decisions each (median)"]
        wide = max(map(len, self.names))
        for k, name in enumerate(self.names):
            lines.append(
                f"{name.ljust(wide)}  spread of separate estimates {self.separate[:, k].std():.3g}, "
                f"of shrunken ones {self.shrunken[:, k].std():.3g} ({self.kept[k]:.0%}), about {self.centre[k]:.3g}"
            )
        return "\n".join(lines)


@dataclass(frozen=True, eq=False, repr=False)
class Population:
    """Draws of the population and of all its players.

    Args:
        mean: (chain, draw, K) the population's mean.
        covariance: (chain, draw, K, K) its covariance.
        values: (chain, draw, N, K) the value of every player.
        players: N labels. decisions: what all were learnt from, with their groups.
        prior: of the mean. scale: of the sds' prior. stats, settings: as in ``Posterior``.

    >>> rng = np.random.default_rng(1)
    >>> rows = rng.normal(size=(300, 2))  # ten people decide fifteen times between two things
    >>> likes = np.repeat(rng.normal([1.0, -1.0], 0.5, (10, 2)), 30, axis=0)
    >>> utility = (rows * likes).sum(axis=1) + rng.normal(size=300)
    >>> d = us.Decisions(rows, range(0, 301, 2), utility.reshape(-1, 2).argmax(axis=1), groups=np.repeat(range(10), 15))
    >>> population = us.fit_population(d, draws=3000)
    >>> population.player(3)
    <Posterior: 4 chains of 3000 draws, 2 coefficients, ...>
    >>> population.new_player().mean(axis=0) > 0.0  # draws of somebody never seen
    array([ True, False])
    """

    mean: Floats
    covariance: Floats
    values: Floats
    players: tuple[Hashable, ...]
    decisions: Decisions
    prior: Gaussian
    scale: float
    stats: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The K coefficient names."""
        return self.decisions.names

    @property
    def sd(self) -> Floats:
        """(chain, draw, K) how far players differ in each coefficient."""
        return np.asarray(np.sqrt(np.maximum(np.einsum("...kk->...k", self.covariance), 0.0)))

    def __repr__(self) -> str:
        chains, draws, width = self.mean.shape
        return f"<Population: {len(self.players)} players, {chains} chains of {draws} draws, {width} coefficients>"

    def summary(self) -> Summary:
        """The population's mean and sd of each coefficient, and in words whether to trust them."""
        names = tuple(f"{what} {name}" for what in ("mean", "sd") for name in self.names)
        return self._summarise(np.concatenate([self.mean, self.sd], axis=2), names, 2)

    def summary_of_players(self) -> Summary:
        """The same for every coefficient of every player."""
        return self._of_players

    @cached_property
    def _of_players(self) -> Summary:
        names = tuple(f"{player} {name}" for player in self.players for name in self.names)
        return self._summarise(self.values.reshape(*self.values.shape[:2], -1), names, len(self.players))

    def _summarise(self, draws: Floats, names: tuple[str, ...], times: int) -> Summary:
        blocks, centred = self.decisions.blocks, self.prior.centred
        alone = [b.size == 1 and (b.centred if centred is None else centred) for b in blocks]
        return summarise(
            draws,
            names,
            fixed=np.tile(np.repeat(alone, [b.size for b in blocks]), times),
            interrupted=self.settings.get("complete") is False,
            requested=self.settings.get("draws"),
        )

    def player(self, label: Hashable) -> Posterior:
        """What was learnt of one player; his prior is the population as it was learnt on average."""
        i = self._index(label)
        mean, spread = self.mean.mean(axis=(0, 1)), self.covariance.mean(axis=(0, 1))
        constants = coordinates(self.decisions, self.prior.centred)[1]
        prior = Gaussian(spread + constants @ constants.T, mean, self.prior.centred)
        own = self.decisions[self._whose[label]]
        return Posterior(self.values[:, :, i], own, prior, "population", self.stats, self.settings)

    def new_player(self, seed: int = 0) -> Floats:
        """(chains * draws, K) values of a player never seen before, one from each draw of the population."""
        rng = np.random.default_rng(seed)
        basis = coordinates(self.decisions, self.prior.centred)[0]
        root = np.linalg.cholesky(basis.T @ self.covariance @ basis)
        off = np.einsum("...ij,...j->...i", root, rng.standard_normal((*self.mean.shape[:2], basis.shape[1])))
        return np.asarray((self.mean + off @ basis.T).reshape(-1, len(self.names)))

    def predict(self, decisions: Decisions, by: Any = None, new: Iterable[Hashable] = (), seed: int = 0) -> Prediction:
        """What each player will do, given who decides each time.

        Args:
            decisions: what is offered; their groups say to whom.
            by: as in `fit_population`.
            new: labels that are new players, predicted from the population; any other label that was not in the fit is refused.
            seed: of the new players' values.
        """
        who = who_decided(decisions, by)
        fresh = set(new)
        for label in fresh:
            if label in self._places:
                raise ValueError(f"{label!r} is called new, but is one of the {len(self.players)} players of this fit")
        probabilities, logs = np.empty(decisions.rows.shape[0]), np.empty(len(decisions))
        for label, at in whose(who).items():
            draws = self.new_player(seed) if label in fresh else self._values_of(label)
            found = predict(draws, decisions[at])
            rows = np.concatenate([np.arange(*decisions.start[t : t + 2]) for t in at])
            probabilities[rows] = found.probabilities
            logs[at] = 0.0 if found.log_taken is None else found.log_taken
        return Prediction(probabilities, "average", decisions, None if decisions.chosen is None else logs)

    def shrinkage(self) -> Shrinkage:
        """Each player by himself and as one of the population."""
        each = [self.decisions[self._whose[label]] for label in self.players]
        alone = np.array([posterior_mode(own, place(self.prior, own))[0] for own in each])
        return Shrinkage(
            self.names, self.players, np.array([len(own) for own in each]), alone,
            self.values.mean(axis=(0, 1)), self.mean.mean(axis=(0, 1)),
        )  # fmt: skip

    def to_arviz(self) -> Any:
        """The same as ArviZ's InferenceData (ArviZ 0.x) or xarray DataTree (ArviZ 1.x)."""
        return to_arviz(self._attributes(), self._groups())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a NetCDF file that `Population.load` and ArviZ read; the file is there whole or not at all."""
        write_file(path, self._attributes(), self._groups())

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Population:
        """Read what `save` wrote."""
        return read_file(path, "a population", FORMAT, _read)

    def _attributes(self) -> dict[str, Any]:
        return {
            **attributes_of(self.decisions, self.prior, "population", self.settings),
            "kind": "a population",
            "scale": self.scale,
        }

    def _groups(self) -> dict[str, Variables]:
        chains, draws, _ = self.mean.shape
        each = ("chain", "draw")
        drawn: Variables = {"chain": (("chain",), np.arange(chains)), "draw": (("draw",), np.arange(draws))}
        names = np.array(self.names, dtype=object)
        posterior: Variables = {
            **drawn,
            "coefficient": (("coefficient",), names),
            "other": (("other",), names),
            "player": (("player",), np.array(self.players)),
            "mean": ((*each, "coefficient"), self.mean),
            "covariance": ((*each, "coefficient", "other"), self.covariance),
            "v": ((*each, "player", "coefficient"), self.values),
        }
        stats: Variables = {**drawn, **{name: (each, np.asarray(values)) for name, values in self.stats.items()}}
        return {"posterior": posterior, "sample_stats": stats, **stored(self.decisions)}

    @cached_property
    def _whose(self) -> dict[Hashable, Ints]:
        return whose(who_decided(self.decisions, None))

    @cached_property
    def _places(self) -> dict[Hashable, int]:
        return {label: i for i, label in enumerate(self.players)}

    def _index(self, label: Hashable) -> int:
        if label not in self._places:
            raise ValueError(_STRANGER.format(label=label, count=len(self.players)))
        return self._places[label]

    def _values_of(self, label: Hashable) -> Floats:
        return self.values[:, :, self._index(label)].reshape(-1, len(self.names))


_STRANGER = (
    "player {label!r} made none of the decisions of this fit, which knows {count} players; a new player is predicted from "
    "the population, by new_player() or predict(..., new=[{label!r}])"
)


def _read(file: Any) -> Population:
    get = reader(file)
    decisions, prior, settings = read_origin(file)
    assert isinstance(prior, Gaussian)
    stats = {key: get(f"sample_stats/{key}") for key in file.get("sample_stats", ()) if key not in ("chain", "draw")}
    mean, covariance, values = (get(f"posterior/{name}") for name in ("mean", "covariance", "v"))
    players = tuple(get("posterior/player").tolist())
    return Population(
        mean, covariance, values, players, decisions, prior, float(np.ravel(file.attrs["scale"])[0]), stats, settings
    )
