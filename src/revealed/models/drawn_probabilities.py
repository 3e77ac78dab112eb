"""Probabilities of all actions under some of many draws, added up batch by batch of the draws."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from revealed._types import Floats, Ints
from revealed.data.decisions import Decisions
from revealed.kernels import choice
from revealed.models.ghk_probabilities import ghk_log_probabilities, normalise
from revealed.models.likelihood import log_likelihood, mean_utilities
from revealed.models.noise import Noise, NoiseCovariance, as_kernel

# Utilities held at once, 1 MB: they are read as soon as they are written, and fit the cache.
UTILITIES_AT_ONCE = 131_072

# Points of the lattice for a draw at least: with fewer, a single draw's probabilities are too rough
# even for an average.
MIN_POINTS = 8


# Of one choice: beyond so many actions its probability alone is cheaper than that of all; and so
# many decisions at once bound the memory, 16 MB with four actions and 4,000 draws.
MOST_ACTIONS_AT_ONCE = 64
DECISIONS_AT_ONCE = 128

# Probabilities of normal noise are off by 2e-8 at most (`kernels/mean_probabilities.py`): of those
# below this, more than a part in 50,000, and their logarithms are worked out afresh. Those of other
# noises lose nothing before doubles end.
SMALLEST_OF_NORMAL_NOISE = 1e-3
SMALLEST = 1e-290


@dataclass(frozen=True, eq=False)
class DrawnProbabilities:
    """What adds probabilities of some decisions under some draws.

    values: (S, K) all draws. points: of the lattice, for each draw, under noise with a covariance.
    same_points: whether draws have the same points, as their differences need it; otherwise each
    its own, as an average needs it.
    """

    decisions: Decisions
    values: Floats
    noise: Noise | NoiseCovariance | None
    points: int = MIN_POINTS
    same_points: bool = False

    def __call__(self, which: Ints, draws: Ints, batch: Ints, out: Floats) -> None:
        """Add the probability of every action of decisions `which` to out (rows, batches).

        That under draw draws[i] goes to column batch[i].
        """
        some = self.decisions if len(which) == len(self.decisions) else self.decisions[which]
        at_once = max(1, UTILITIES_AT_ONCE // some.rows.shape[0])
        for first in range(0, len(draws), at_once):
            now = slice(first, first + at_once)
            mu = mean_utilities(some.rows, self.values[draws[now]])
            if isinstance(self.noise, NoiseCovariance):
                self._add_correlated(some, mu, draws[now], batch[now], out)
            else:
                kernel = as_kernel(self.noise)
                choice.add_probabilities(kernel, mu, some.start, batch[now], out)

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


def log_probabilities_of_choices(
    d: Decisions, values: Floats, noise: Noise | NoiseCovariance | None
) -> Floats:
    """(S, T) the log probability of each choice under each draw, to a part in 50,000 at least.

    Under normal noise ten times as fast as the exact one, which has the small ones.
    """
    if isinstance(noise, NoiseCovariance) or not as_kernel(noise).is_normal:
        return log_likelihood(d, values, noise)
    out = np.empty((len(values), len(d)))
    # with very many actions the one that was chosen is cheaper alone
    many = np.flatnonzero(d.sizes > MOST_ACTIONS_AT_ONCE)
    if many.size:
        out[:, many] = log_likelihood(d[many], values, noise)
    few = np.flatnonzero(d.sizes <= MOST_ACTIONS_AT_ONCE)
    for part in np.split(few, np.arange(DECISIONS_AT_ONCE, len(few), DECISIONS_AT_ONCE)):
        if part.size:
            out[:, part] = _of_few_actions(d[part], values, noise).T
    return out


def _of_few_actions(d: Decisions, values: Floats, noise: Noise | None) -> Floats:
    """(T, S) the same from the probabilities of all actions."""
    draws = np.arange(len(values))
    found = np.zeros((d.rows.shape[0], len(values)))
    DrawnProbabilities(d, values, noise)(np.arange(len(d)), draws, draws, found)
    chosen = found[d.chosen_row]
    small = chosen < SMALLEST_OF_NORMAL_NOISE
    logs = np.log(np.maximum(chosen, SMALLEST_OF_NORMAL_NOISE))
    again = np.flatnonzero(small.any(axis=1))
    if again.size:
        exact = log_likelihood(d[again], values, noise).T
        logs[again] = np.where(small[again], exact, logs[again])
    return np.asarray(logs)
