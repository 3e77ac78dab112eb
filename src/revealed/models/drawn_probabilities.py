"""Probabilities of all actions under some of many draws, added up batch by batch of the draws."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from revealed._types import Floats, Ints
from revealed.data.decisions import Decisions
from revealed.kernels import choice
from revealed.models.correlated_noise import NoiseCovariance
from revealed.models.ghk_probabilities import ghk_log_probabilities, normalise
from revealed.models.lapse import KnownLapse
from revealed.models.likelihood import log_likelihood, mean_utilities
from revealed.models.noise import KnownNoise, Noise, NormalNoise, as_kernel
from revealed.models.student import (
    StudentDraws,
    StudentNoise,
    add_student_probabilities,
    df_of_draws,
)


@dataclass(frozen=True)
class ProbabilityLimits:
    """How much is worked on at once, and how exact probabilities are.

    Attributes
    ----------
    utilities
        Held at once, 1 MB: they are read as soon as they are written, and fit the cache.
    points
        Of the lattice for a draw, at least: with fewer, a single draw's probabilities are too rough
        even for an average.
    actions
        Beyond so many, the probability of one choice alone is cheaper than that of all.
    decisions
        Whose choices are worked on at once, 16 MB with four actions and 4,000 draws.
    smallest_of_normal
        Small probabilities of normal noise are off by 8e-8 at most
        (`kernels/mean_probabilities.py`): of those below this, a part in 50,000 or more, and their
        logarithms are worked out afresh.
    smallest
        Those of other noises lose nothing before doubles end.
    """

    utilities: int = 131_072
    points: int = 8
    actions: int = 64
    decisions: int = 128
    smallest_of_normal: float = 4e-3
    smallest: float = 1e-290

    def smallest_under(self, noise: Noise | None) -> float:
        """The smallest probability whose logarithm can be taken, under this noise."""
        return self.smallest_of_normal if is_mixture_of_normals(noise) else self.smallest


LIMITS = ProbabilityLimits()


def is_mixture_of_normals(noise: Noise | None) -> bool:
    """Whether probabilities are made of those of normal noise; None is normal noise."""
    return noise is None or isinstance(noise, NormalNoise | StudentNoise | StudentDraws)


@dataclass(frozen=True, eq=False)
class DrawnProbabilities:
    """What adds probabilities of some decisions under some draws.

    values: (S, K) all draws. points: of the lattice, for each draw, under noise with a covariance.
    same_points: whether draws have the same points, as their differences need it; otherwise each
    its own, as an average needs it.
    """

    decisions: Decisions
    values: Floats
    noise: KnownNoise | None
    points: int = LIMITS.points
    same_points: bool = False

    def __call__(self, which: Ints, draws: Ints, batch: Ints, out: Floats) -> None:
        """Add the probability of every action of decisions `which` to out (rows, batches).

        That under draw draws[i] goes to column batch[i].
        """
        some = self.decisions if len(which) == len(self.decisions) else self.decisions[which]
        at_once = max(1, LIMITS.utilities // some.rows.shape[0])
        for first in range(0, len(draws), at_once):
            now = slice(first, first + at_once)
            mu = mean_utilities(some.rows, self.values[draws[now]])
            if isinstance(self.noise, NoiseCovariance):
                self._add_correlated(some, mu, draws[now], batch[now], out)
            elif isinstance(self.noise, KnownLapse):
                self._add_with_lapses(some, mu, draws[now], batch[now], out)
            else:
                _add_independent(self.noise, mu, some.start, draws[now], batch[now], out)

    def _add_with_lapses(
        self, some: Decisions, mu: Floats, draws: Ints, batch: Ints, out: Floats
    ) -> None:
        """The same with lapses, at the rate of each draw."""
        assert isinstance(self.noise, KnownLapse)
        # rates differ between draws, so that probabilities are mixed before they are added
        own, columns = np.zeros((len(mu), len(draws))), np.arange(len(draws))
        _add_independent(self.noise.without_lapses, mu, some.start, draws, columns, own)
        noise = self.noise.of_draws(draws)
        mixed = noise.mix(own.T, noise.shares(some))
        for b, column in zip(batch.tolist(), mixed, strict=True):
            out[:, b] += column

    def _add_correlated(
        self, some: Decisions, mu: Floats, draws: Ints, batch: Ints, out: Floats
    ) -> None:
        """The same under noise with a covariance, that of each draw."""
        assert isinstance(self.noise, NoiseCovariance)
        found = ghk_log_probabilities(
            some,
            zip(draws.tolist(), np.ascontiguousarray(mu.T), strict=True),
            len(self.values),
            self.noise,
            np.ones(len(mu), np.bool_),
            self.points,
            self.same_points,
        )
        for b, (_, logs) in zip(batch.tolist(), found, strict=True):
            out[:, b] += normalise(some, logs)


def _add_independent(
    noise: Noise | None, mu: Floats, start: Ints, draws: Ints, batch: Ints, out: Floats
) -> None:
    """Add the probability of every action under draw draws[s] to column batch[s] of out (P, B)."""
    df = None if noise is None else df_of_draws(noise, draws)
    if df is None:
        choice.add_probabilities(as_kernel(noise), mu, start, batch, out)
    else:
        add_student_probabilities(df, mu, start, batch, out)


def log_probabilities_of_choices(d: Decisions, values: Floats, noise: KnownNoise | None) -> Floats:
    """(S, T) the log probability of each choice under each draw, to a part in 50,000 at least.

    Under normal noise ten times as fast as the exact one, which has the small ones.
    """
    if isinstance(noise, KnownLapse):
        without = log_probabilities_of_choices(d, values, noise.without_lapses)
        return noise.log_mix(without, noise.shares_of_choices(d))
    if isinstance(noise, NoiseCovariance) or not is_mixture_of_normals(noise):
        return log_likelihood(d, values, noise)
    out = np.empty((len(values), len(d)))
    # with very many actions the one that was chosen is cheaper alone
    many = np.flatnonzero(d.sizes > LIMITS.actions)
    if many.size:
        out[:, many] = log_likelihood(d[many], values, noise)
    few = np.flatnonzero(d.sizes <= LIMITS.actions)
    for part in np.split(few, np.arange(LIMITS.decisions, len(few), LIMITS.decisions)):
        if part.size:
            out[:, part] = _of_few_actions(d[part], values, noise).T
    return out


def _of_few_actions(d: Decisions, values: Floats, noise: Noise | None) -> Floats:
    """(T, S) the same from the probabilities of all actions."""
    draws = np.arange(len(values))
    found = np.zeros((d.rows.shape[0], len(values)))
    DrawnProbabilities(d, values, noise)(np.arange(len(d)), draws, draws, found)
    chosen = found[d.chosen_row]
    small = chosen < LIMITS.smallest_of_normal
    logs = np.log(np.maximum(chosen, LIMITS.smallest_of_normal))
    again = np.flatnonzero(small.any(axis=1))
    if again.size:
        exact = log_likelihood(d[again], values, noise).T
        logs[again] = np.where(small[again], exact, logs[again])
    return np.asarray(logs)
