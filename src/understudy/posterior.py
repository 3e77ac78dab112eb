"""Posterior: the draws, what they were learnt from, and whether to trust them.

A posterior is draws of the coefficients, (chain, draw, K), kept together with the decisions, the prior and the
settings that made them, so that the file is enough to predict from and to run again. Files are NetCDF with the groups
ArviZ reads (posterior, sample_stats, observed_data, constant_data); what is not an array is JSON in the attributes.
A file ends with a checksum, which NetCDF readers pass over, because HDF5 may hang on a damaged one or misread it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from understudy._arrays import Floats
from understudy._netcdf import Array, Variables, content, read_file, to_arviz, write_file
from understudy.decisions import Block, Decisions
from understudy.diagnostics import Summary, spread, summarise
from understudy.noise import FullNoise, KnownNoise, PlacedNoise, place_noise
from understudy.priors import Flat, Gaussian, Placed, Prior, place

FORMAT = 2  # of the file; raise it when an older understudy could no longer read what is written
INDEPENDENT = 1  # the format of a posterior with independent noise, which older ones can read
SIZE = "prior_sd"  # the stat that holds the size of the prior, where that was learnt


@dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    """Draws of the coefficients with all they came from; frozen, and checked when made.

    Args:
        draws: (chain, draw, K) finite numbers, unweighted.
        decisions: what they were learnt from.
        prior: what was believed before.
        engine: the name of the engine that drew them.
        stats: what the engine tells of each draw, such as its acceptance rate; each (chain, draw).
        settings: how it was run (seed, draws, warmup, thin, options, complete); anything JSON can hold.
        noise: where the noise has a covariance to be learnt, what was believed of it.
        covariance: its draws, (chain, draw, D, D), of the actions' noise less the base's; see `known_noise`.

    >>> rows = [[1.0, 0.0], [0.0, 1.0]] * 20  # tea or coffee, twenty times
    >>> d = us.Decisions(rows, start=range(0, 41, 2), chosen=[0] * 14 + [1] * 6, names=["tea", "coffee"])
    >>> post = us.fit(d, us.Gaussian(1.0))
    >>> post
    <Posterior: 4 chains of 1000 draws, 2 coefficients, engine blended>
    >>> post.names[post.mean.argmax()], post["tea"].shape, post.values.shape
    ('tea', (4, 1000), (4000, 2))
    >>> post.summary().verdict
    'Converged: ...'
    """

    draws: Floats
    decisions: Decisions
    prior: Prior
    engine: str
    stats: Mapping[str, Array] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    noise: FullNoise | None = None
    covariance: Floats | None = None

    def __post_init__(self) -> None:
        draws = np.array(self.draws, dtype=np.float64, order="C")
        if draws.ndim != 3 or 0 in draws.shape:
            raise ValueError(
                f"draws must be a (chain, draw, K) array with at least one draw; its shape is {draws.shape}"
            )
        if draws.shape[2] != len(self.names):
            raise ValueError(f"draws of {draws.shape[2]} coefficients, but the decisions have {len(self.names)}")
        bad = np.argwhere(~np.isfinite(draws))
        if bad.size:
            chain, draw, k = bad[0]
            raise ValueError(
                f"chain {chain}, draw {draw}: {self.names[k]} is {draws[chain, draw, k]}; draws must be finite"
            )
        _ = self.decisions.taken  # refuses decisions whose choices were not seen
        if not isinstance(self.prior, Gaussian | Flat):
            raise ValueError(f"prior must be us.Gaussian(variance) or us.Flat(), not {self.prior!r}")
        if (self.noise is None) != (self.covariance is None):
            raise ValueError("noise and covariance go together: what was believed of the covariance, and its draws")
        if self.covariance is not None:
            object.__setattr__(self, "covariance", self._checked(self.covariance, draws.shape[:2]))
        stats = {name: np.array(values) for name, values in self.stats.items()}
        for name, values in stats.items():
            if not name.isidentifier() or name in ("chain", "draw"):
                raise ValueError(f"the stat {name!r} needs another name: one word, and neither chain nor draw")
            if values.shape != draws.shape[:2]:
                raise ValueError(
                    f"the stat {name!r} has shape {values.shape}; it needs one number a draw, {draws.shape[:2]}"
                )
        if isinstance(self.prior, Gaussian) and self.prior.learns and SIZE not in stats:
            raise ValueError(f"a prior whose size was learnt needs the draws of it: stats holds no {SIZE!r}")
        for array in (draws, *stats.values()):
            array.flags.writeable = False
        try:
            # through JSON and back, so that a saved posterior has the same settings as the one it was saved from
            settings = json.loads(json.dumps(dict(self.settings), default=_plain))
        except (TypeError, ValueError) as reason:
            raise ValueError(f"the settings must be text, numbers, lists and mappings only ({reason})") from None
        for name, value in (("draws", draws), ("stats", stats), ("settings", settings)):
            object.__setattr__(self, name, value)

    @property
    def names(self) -> tuple[str, ...]:
        """The K coefficient names."""
        return self.decisions.names

    def _checked(self, covariance: Floats, each: tuple[int, ...]) -> Floats:
        """The covariance's draws, one matrix for each of the coefficients'."""
        size = len(self.placed_noise.others)
        given = np.array(covariance, dtype=np.float64)
        if given.shape != (*each, size, size) or not np.isfinite(given).all():
            raise ValueError(f"the covariance must be {(*each, size, size)} finite numbers; its shape is {given.shape}")
        given.flags.writeable = False
        return given

    @property
    def placed_noise(self) -> PlacedNoise:
        """Which labels the noise covariance has; refuses where noise is independent."""
        if self.noise is None:
            raise ValueError("the noise of this posterior is independent and has no covariance")
        return place_noise(self.noise, self.decisions)

    @property
    def known_noise(self) -> KnownNoise | None:
        """The draws of the noise covariance, chains one after the other, as predictions need them."""
        if self.covariance is None:
            return None
        placed, size = self.placed_noise, self.covariance.shape[-1]
        return KnownNoise(placed.labels[placed.base], placed.others, self.covariance.reshape(-1, size, size))

    @property
    def values(self) -> Floats:
        """(chains * draws, K) the draws of all chains, one after the other."""
        return self.draws.reshape(-1, self.draws.shape[2])

    @property
    def mean(self) -> Floats:
        """(K,) posterior means."""
        return np.asarray(self.values.mean(axis=0))

    @property
    def sd(self) -> Floats:
        """(K,) posterior standard deviations; NaN from a single draw, which has none."""
        return spread(self.draws)

    @property
    def placed(self) -> Placed:
        """The prior in the coordinates of the decisions; a size that was learnt is the median of its draws."""
        placed = place(self.prior, self.decisions)
        return placed.of_size(float(np.median(self.stats[SIZE]))) if placed.scale is not None else placed

    def __getitem__(self, name: str) -> Floats:
        """(chain, draw) the draws of one coefficient."""
        if name not in self.names:
            some = ", ".join(self.names[:8]) + (", ..." if len(self.names) > 8 else "")
            raise ValueError(f"there is no coefficient {name!r}; there are {some}")
        return self.draws[:, :, self.names.index(name)]

    def __repr__(self) -> str:
        chains, draws, width = self.draws.shape
        return f"<Posterior: {chains} chains of {draws} draws, {width} coefficients, engine {self.engine}>"

    def summary(self) -> Summary:
        """Means, spreads and diagnostics of each coefficient, and in words whether to trust them.

        Where a noise covariance or the size of the prior was learnt, it comes last.
        """
        blocks, centred = self.decisions.blocks, self.prior.centred
        # a coefficient alone in a centred block can only be zero, and is not stuck
        alone = [b.size == 1 and (b.centred if centred is None else centred) for b in blocks]
        draws, names, fixed = self.draws, self.names, np.repeat(alone, [b.size for b in blocks])
        if self.covariance is not None:
            others, (i, j) = self.placed_noise.others, np.tril_indices(self.covariance.shape[-1])
            draws = np.concatenate([draws, self.covariance[:, :, i, j]], axis=2)
            pairs = zip(i.tolist(), j.tolist(), strict=True)
            names += tuple(f"var({others[a]})" if a == b else f"cov({others[a]}, {others[b]})" for a, b in pairs)
            known = (i + j == 0) & (self.placed_noise.scale == "first" or len(others) == 1)
            fixed = np.concatenate([fixed, known])
        if SIZE in self.stats:
            draws, names = np.concatenate([draws, self.stats[SIZE][:, :, None]], axis=2), (*names, "(prior sd)")
            fixed = np.append(fixed, False)
        return summarise(
            draws,
            names,
            fixed=fixed,
            interrupted=self.settings.get("complete") is False,
            requested=self.settings.get("draws"),
        )

    def to_arviz(self, log_likelihood: bool = True) -> Any:
        """The same as ArviZ's InferenceData (ArviZ 0.x) or xarray DataTree (ArviZ 1.x).

        Args:
            log_likelihood: add the exact log-likelihood of every choice under every draw, as arviz.loo needs.
        """
        return to_arviz(attributes(self), groups(self, log_likelihood))

    def save(self, path: str | os.PathLike[str], log_likelihood: bool = False) -> None:
        """Write a NetCDF file that `load` and ArviZ read; the file is there whole or not at all."""
        write_file(path, attributes(self), groups(self, log_likelihood))


def load(path: str | os.PathLike[str]) -> Posterior:
    """Read a posterior that `Posterior.save` wrote.

    >>> rows = [[1.0, 0.0], [0.0, 1.0]] * 20  # tea or coffee, twenty times
    >>> d = us.Decisions(rows, start=range(0, 41, 2), chosen=[0] * 14 + [1] * 6, names=["tea", "coffee"])
    >>> us.fit(d, us.Gaussian(1.0)).save("tea.nc")
    >>> us.load("tea.nc")
    <Posterior: 4 chains of 1000 draws, 2 coefficients, engine blended>
    """
    return read_file(path, "a posterior", FORMAT, read_posterior)


def _plain(value: Any) -> Any:
    """What JSON does not know of, as what it does."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{value!r} is a {type(value).__name__}")


def attributes(post: Posterior) -> dict[str, Any]:
    """Everything that is not an array, as text."""
    notes = attributes_of(post.decisions, post.prior, post.engine, post.settings)
    return notes if post.noise is None else notes | {
        "format_version": FORMAT, "noise": json.dumps(vars(post.noise), default=_plain),
    }  # fmt: skip


def attributes_of(d: Decisions, belief: Prior, engine: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """What is not an array of any result that decisions and a prior led to, as text."""
    if isinstance(belief, Flat):
        prior = {"kind": "flat", "centred": belief.centred}
    else:
        known = ("variance", "mean", "centred", *(("shape", "scale") if belief.learns else ()))
        prior = {"kind": "gaussian", **{f: getattr(belief, f) for f in known}}
    return {
        "created_by": "understudy",
        "format_version": INDEPENDENT,
        "engine": engine,
        "settings": json.dumps(dict(settings)),
        "prior": json.dumps(prior, default=_plain),
        "blocks": json.dumps([[b.name, b.size, b.centred] for b in d.blocks], default=_plain),
    }


def groups(post: Posterior, log_likelihood: bool) -> dict[str, Variables]:
    """Everything that is an array, as ArviZ groups it; a variable named like its dimension labels it."""
    d, (chains, draws, _) = post.decisions, post.draws.shape
    each = ("chain", "draw")
    drawn: Variables = {"chain": (("chain",), np.arange(chains)), "draw": (("draw",), np.arange(draws))}
    names: Variables = {"coefficient": (("coefficient",), np.array(post.names, dtype=object))}
    decision: Variables = {"decision": (("decision",), d.ids)}
    groups: dict[str, Variables] = {"posterior": {**drawn, **names, "v": ((*each, "coefficient"), post.draws)}}
    if post.covariance is not None:
        labels = np.array(post.placed_noise.others)
        groups["posterior"] |= {
            "action": (("action",), labels),
            "against": (("against",), labels),
            "noise_covariance": ((*each, "action", "against"), post.covariance),
        }
    if post.stats:
        groups["sample_stats"] = {**drawn, **{name: (each, values) for name, values in post.stats.items()}}
    if log_likelihood:
        from understudy.likelihood import log_likelihood as exact

        chosen = exact(d, post.values, post.known_noise).reshape(chains, draws, len(d))
        groups["log_likelihood"] = {**drawn, **decision, "choice": ((*each, "decision"), chosen)}
    return groups | stored(d)


def stored(d: Decisions) -> dict[str, Variables]:
    """Decisions as groups of arrays."""
    decision: Variables = {"decision": (("decision",), d.ids)}
    names: Variables = {"coefficient": (("coefficient",), np.array(d.names, dtype=object))}
    groups: dict[str, Variables] = {"observed_data": {**decision, "chosen": (("decision",), d.taken - d.start[:-1])}}
    constant: Variables = {**names, "start": (("boundary",), d.start), "ids": (("decision",), d.ids)}
    if sp.issparse(d.rows):
        constant["rows_indptr"] = (("pointer",), d.rows.indptr)
        constant["rows_indices"] = (("cell",), d.rows.indices)
        constant["rows_data"] = (("cell",), d.rows.data)
    else:
        constant["rows"] = (("row", "coefficient"), d.rows)
    for label, dimension, values in (("actions", "row", d.actions), ("groups", "decision", d.groups)):
        if values is not None:
            constant[label] = ((dimension,), values)
    groups["constant_data"] = constant
    return groups


def reader(file: Any) -> Callable[..., Any]:
    """A function that reads an array of the file by its name, in the type it had."""

    def get(name: str, optional: bool = False) -> Any:
        return None if optional and name not in file else content(file[name])

    return get


def read_origin(file: Any) -> tuple[Decisions, Prior, dict[str, Any]]:
    """The decisions, the prior and the settings behind what a file holds, checked afresh as they are put together."""
    get = reader(file)
    names, start = get("posterior/coefficient"), get("constant_data/start")
    rows = get("constant_data/rows", optional=True)
    if rows is None:
        parts = tuple(get(f"constant_data/rows_{part}") for part in ("data", "indices", "indptr"))
        rows = sp.csr_array(parts, shape=(int(start[-1]), len(names)))
    notes = {key: json.loads(file.attrs[key]) for key in ("blocks", "prior", "settings")}
    decisions = Decisions(
        rows,
        start,
        get("observed_data/chosen"),
        names=names,
        actions=get("constant_data/actions", optional=True),
        groups=get("constant_data/groups", optional=True),
        blocks=[Block(*block) for block in notes["blocks"]],
        ids=get("constant_data/ids"),
    )
    kind = {"gaussian": Gaussian, "flat": Flat}[notes["prior"].pop("kind")]
    numbers = {
        key: np.array(value, float) if isinstance(value, list) else value for key, value in notes["prior"].items()
    }
    return decisions, kind(**numbers), notes["settings"]


def read_posterior(file: Any) -> Posterior:
    """What `save` wrote."""
    get = reader(file)
    decisions, prior, settings = read_origin(file)
    stats = {key: get(f"sample_stats/{key}") for key in file.get("sample_stats", ()) if key not in ("chain", "draw")}
    noise = json.loads(file.attrs["noise"]) if "noise" in file.attrs else None
    return Posterior(
        get("posterior/v"), decisions, prior, file.attrs["engine"], stats, settings,
        None if noise is None else FullNoise(**noise), get("posterior/noise_covariance", optional=True),
    )  # fmt: skip
