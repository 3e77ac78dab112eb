"""Probabilities of all actions under some of many draws, added up batch by batch of the draws."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from revealed._types import Floats, Ints
from revealed.data.decisions import Decisions
from revealed.kernels import choice
from revealed.models.ghk_probabilities import ghk_log_probabilities, normalise
from revealed.models.likelihood import mean_utilities
from revealed.models.noise import Noise, NoiseCovariance, as_kernel

# Utilities held at once, 1 MB: they are read as soon as they are written, and fit the cache.
UTILITIES_AT_ONCE = 131_072

# Points of the lattice for a draw at least: with fewer, a single draw's probabilities are too rough
# even for an average.
MIN_POINTS = 8


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
