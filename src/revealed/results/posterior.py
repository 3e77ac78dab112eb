"""Posterior: draws of the coefficients, what they were inferred from, and whether they converged.

A posterior is draws of the coefficients, (chain, draw, K), kept together with the decisions, the
prior and the settings that made them, so that the file is enough to predict from and to run again.
Files are NetCDF with the groups ArviZ reads; `results/storage.py` has their layout.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from revealed._types import Bools, Floats
from revealed.data.decisions import Decisions
from revealed.io.netcdf import Array, Variables, read_file, to_arviz, write_file
from revealed.models.noise import CorrelatedNoise, NoiseCovariance, ResolvedNoise, resolve_noise
from revealed.models.priors import Flat, Normal, Prior, ResolvedPrior, resolve_prior
from revealed.results.diagnostics import standard_deviation
from revealed.results.storage import (
    FORMAT,
    array_reader,
    decision_groups,
    draw_dimensions,
    origin_attributes,
    read_origin,
    read_sampler_name,
    read_stats,
    stat_variables,
    to_json_value,
)
from revealed.results.summary import Summary, summarise

# the statistic that holds the draws of the prior's sd, where that was inferred
PRIOR_SD = "prior_sd"


@dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    """Draws of the coefficients with all they came from; frozen, and checked when made.

    Parameters
    ----------
    draws
        (chain, draw, K) finite numbers, unweighted.
    decisions
        What they were inferred from.
    prior
        What was assumed before.
    sampler
        The name of the sampler that drew them.
    stats
        Statistics of each draw, such as its acceptance rate; each (chain, draw).
    settings
        How it was run (seed, draws, warmup, thin, options, complete); anything JSON can hold.
    noise
        Where the noise covariance was inferred, what was assumed of it.
    covariance
        Its draws, (chain, draw, D, D), of the actions' noise less the base's; see `known_noise`.

    Examples
    --------
    >>> rows = [[1.0, 0.0], [0.0, 1.0]] * 20  # tea or coffee, twenty times
    >>> d = rv.Decisions(rows, range(0, 41, 2), [0] * 14 + [1] * 6, names=["tea", "coffee"])
    >>> post = rv.fit(d, rv.Normal(1.0))
    >>> post
    <Posterior: 4 chains of 1000 draws, 2 coefficients, sampler composite>
    >>> post.names[post.mean.argmax()], post["tea"].shape, post.values.shape
    ('tea', (4, 1000), (4000, 2))
    >>> post.summary().message
    'Converged: ...'
    """

    draws: Floats
    decisions: Decisions
    prior: Prior
    sampler: str
    stats: Mapping[str, Array] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    noise: CorrelatedNoise | None = None
    covariance: Floats | None = None

    def __post_init__(self) -> None:
        # frozen dataclasses check themselves here, and set fields by object.__setattr__
        draws = self._check_draws(self.draws)
        self.decisions.require_choices()
        if not isinstance(self.prior, Normal | Flat):
            raise ValueError(f"prior must be rv.Normal(sd) or rv.Flat(), not {self.prior!r}")
        if (self.noise is None) != (self.covariance is None):
            raise ValueError(
                "noise and covariance go together: what was believed of the covariance, and its "
                "draws"
            )
        if self.covariance is not None:
            covariance = self._check_covariance(self.covariance, draws.shape[:2])
            object.__setattr__(self, "covariance", covariance)
        stats = self._check_stats(draws.shape[:2])
        # frozen means the numbers too
        for array in (draws, *stats.values()):
            array.flags.writeable = False
        try:
            # through JSON and back, so that a saved posterior has the settings it was saved from
            settings = json.loads(json.dumps(dict(self.settings), default=to_json_value))
        except (TypeError, ValueError) as reason:
            raise ValueError(
                f"the settings must be text, numbers, lists and mappings only ({reason})"
            ) from None
        for name, value in (("draws", draws), ("stats", stats), ("settings", settings)):
            object.__setattr__(self, name, value)

    def _check_draws(self, given: Floats) -> Floats:
        """The draws as a new array, (chain, draw, K), all finite.

        Refuses other shapes, and names the first coefficient that is not finite.
        """
        # a copy, so that nobody else can change it
        draws = np.array(given, dtype=np.float64, order="C")
        if draws.ndim != 3 or 0 in draws.shape:
            raise ValueError(
                "draws must be a (chain, draw, K) array with at least one draw; its shape is "
                f"{draws.shape}"
            )
        if draws.shape[2] != len(self.names):
            raise ValueError(
                f"draws of {draws.shape[2]} coefficients, but the decisions have {len(self.names)}"
            )
        # say where, which is the first thing one wants to know
        bad = np.argwhere(~np.isfinite(draws))
        if bad.size:
            chain, draw, k = bad[0]
            raise ValueError(
                f"chain {chain}, draw {draw}: {self.names[k]} is {draws[chain, draw, k]}; draws "
                "must be finite"
            )
        return draws

    def _check_stats(self, shape: tuple[int, ...]) -> dict[str, Array]:
        """The stats as new arrays of this shape, (chain, draw), with names that a file can hold."""
        stats = {name: np.array(values) for name, values in self.stats.items()}
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
        if isinstance(self.prior, Normal) and self.prior.infers_sd and PRIOR_SD not in stats:
            raise ValueError(
                f"a prior whose sd was inferred needs the draws of it: stats holds no {PRIOR_SD!r}"
            )
        return stats

    def _check_covariance(self, covariance: Floats, shape: tuple[int, ...]) -> Floats:
        """The covariance's draws, one matrix for each of the coefficients' draws.

        (chain, draw, D, D), where D counts the labels other than the base's.
        """
        size = len(self.resolved_noise.non_base)
        given = np.array(covariance, dtype=np.float64)
        if given.shape != (*shape, size, size) or not np.isfinite(given).all():
            raise ValueError(
                f"the covariance must be {(*shape, size, size)} finite numbers; its shape is "
                f"{given.shape}"
            )
        given.flags.writeable = False
        return given

    @property
    def names(self) -> tuple[str, ...]:
        """The K coefficient names."""
        return self.decisions.names

    @property
    def resolved_noise(self) -> ResolvedNoise:
        """Which labels the noise covariance has; refuses where noise is independent.

        What was assumed of it, in terms of the labels of these decisions.
        """
        if self.noise is None:
            raise ValueError("the noise of this posterior is independent and has no covariance")
        return resolve_noise(self.noise, self.decisions)

    @property
    def known_noise(self) -> NoiseCovariance | None:
        """The draws of the noise covariance, chains one after the other, as predictions need them.

        None where noise is independent.
        """
        if self.covariance is None:
            return None
        # covariances and coefficients of one draw belong together: both in the order of `values`
        noise, size = self.resolved_noise, self.covariance.shape[-1]
        return NoiseCovariance(
            noise.labels[noise.base], noise.non_base, self.covariance.reshape(-1, size, size)
        )

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
        """(K,) posterior standard deviations; NaN from a single draw, which has none.

        Of the draws of all chains together.
        """
        return standard_deviation(self.draws)

    @property
    def resolved_prior(self) -> ResolvedPrior:
        """The prior in the coordinates of the decisions.

        Where its sd was inferred, it is taken at the median of the draws of it.
        """
        prior = resolve_prior(self.prior, self.decisions)
        if prior.scale is None:
            return prior
        return prior.at_scale(float(np.median(self.stats[PRIOR_SD])))

    def __getitem__(self, name: str) -> Floats:
        """(chain, draw) the draws of one coefficient."""
        # a typing error in a name is best answered with the names
        if name not in self.names:
            some = ", ".join(self.names[:8]) + (", ..." if len(self.names) > 8 else "")
            raise ValueError(f"there is no coefficient {name!r}; there are {some}")
        return self.draws[:, :, self.names.index(name)]

    def __repr__(self) -> str:
        chains, draws, width = self.draws.shape
        return (
            f"<Posterior: {chains} chains of {draws} draws, {width} coefficients, sampler "
            f"{self.sampler}>"
        )

    def summary(self) -> Summary:
        """Means, sds and diagnostics of each coefficient, and in words whether they converged.

        Where a noise covariance or the sd of the prior was inferred, it comes last.
        """
        # all that was inferred, side by side
        draws, names, fixed = self.draws, self.names, fixed_coefficients(self.decisions, self.prior)
        if self.covariance is not None:
            noise, (i, j) = self.resolved_noise, np.tril_indices(self.covariance.shape[-1])
            labels = noise.non_base
            draws = np.concatenate([draws, self.covariance[:, :, i, j]], axis=2)
            pairs = zip(i.tolist(), j.tolist(), strict=True)
            names += tuple(
                f"var({labels[a]})" if a == b else f"cov({labels[a]}, {labels[b]})"
                for a, b in pairs
            )
            # the scale of the covariance is fixed, on one scale by its first element
            known = (i + j == 0) & (noise.scale == "first" or len(labels) == 1)
            fixed = np.concatenate([fixed, known])
        # an inferred sd mixes worst of all where it mixes badly, so that it must be looked at
        if PRIOR_SD in self.stats:
            draws = np.concatenate([draws, self.stats[PRIOR_SD][:, :, None]], axis=2)
            names, fixed = (*names, "(prior sd)"), np.append(fixed, False)
        return summarise(
            draws,
            names,
            fixed=fixed,
            interrupted=self.settings.get("complete") is False,
            requested=self.settings.get("draws"),
        )

    def to_arviz(self, log_likelihood: bool = True) -> Any:
        """The same as ArviZ's InferenceData (ArviZ 0.x) or xarray DataTree (ArviZ 1.x).

        Parameters
        ----------
        log_likelihood
            Add the exact log-likelihood of every choice under every draw, as arviz.loo needs.
        """
        return to_arviz(posterior_attributes(self), posterior_groups(self, log_likelihood))

    def save(self, path: str | os.PathLike[str], log_likelihood: bool = False) -> None:
        """Write a NetCDF file that `load` and ArviZ read; the file is there whole or not at all.

        Parameters
        ----------
        path
            Of the file.
        log_likelihood
            Add the exact log-likelihood of every choice under every draw.
        """
        write_file(path, posterior_attributes(self), posterior_groups(self, log_likelihood))

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Posterior:
        """Read a posterior that `save` wrote; of an `MDPPosterior` or a stream, the value."""
        return read_file(path, "a posterior", FORMAT, read_posterior)


def fixed_coefficients(decisions: Decisions, prior: Prior) -> Bools:
    """(K,) which coefficients can only be zero, being alone in a block that sums to zero.

    They never move, which is not a fault of the sampler.
    """
    blocks, sum_to_zero = decisions.blocks, prior.sum_to_zero
    alone = [
        block.size == 1 and (block.sum_to_zero if sum_to_zero is None else sum_to_zero)
        for block in blocks
    ]
    return np.repeat(alone, [block.size for block in blocks])


def posterior_attributes(post: Posterior) -> dict[str, Any]:
    """Everything of a posterior that is not an array, as text."""
    attributes = origin_attributes(post.decisions, post.prior, post.sampler, post.settings)
    if post.noise is not None:
        attributes["noise"] = json.dumps(vars(post.noise), default=to_json_value)
    return attributes


def posterior_groups(post: Posterior, log_likelihood: bool) -> dict[str, Variables]:
    """Everything of a posterior that is an array, as ArviZ groups it.

    log_likelihood: whether to add that of every choice under every draw.
    """
    d, (chains, draws, _) = post.decisions, post.draws.shape
    # ArviZ wants chain and draw first
    by_draw, dimensions = ("chain", "draw"), draw_dimensions(chains, draws)
    groups: dict[str, Variables] = {
        "posterior": {
            **dimensions,
            "coefficient": (("coefficient",), np.array(post.names, dtype=object)),
            "v": ((*by_draw, "coefficient"), post.draws),
        }
    }
    if post.covariance is not None:
        labels = np.array(post.resolved_noise.non_base)
        groups["posterior"] |= {
            "action": (("action",), labels),
            "against": (("against",), labels),
            "noise_covariance": ((*by_draw, "action", "against"), post.covariance),
        }
    if post.stats:
        groups["sample_stats"] = stat_variables(chains, draws, post.stats)
    # decisions times draws numbers, which few need, so that they are added on demand
    if log_likelihood:
        from revealed.models.likelihood import log_likelihood as exact

        chosen = exact(d, post.values, post.known_noise).reshape(chains, draws, len(d))
        groups["log_likelihood"] = {
            **dimensions,
            "decision": (("decision",), d.ids),
            "choice": ((*by_draw, "decision"), chosen),
        }
    return groups | decision_groups(d)


def read_posterior(file: Any) -> Posterior:
    """The posterior of an open file that `Posterior.save` wrote."""
    get = array_reader(file)
    decisions, prior, settings = read_origin(file)
    # put together by the constructor, which checks everything afresh
    noise = json.loads(file.attrs["noise"]) if "noise" in file.attrs else None
    return Posterior(
        get("posterior/v"),
        decisions,
        prior,
        read_sampler_name(file),
        read_stats(file),
        settings,
        None if noise is None else CorrelatedNoise(**noise),
        get("posterior/noise_covariance", optional=True),
    )
