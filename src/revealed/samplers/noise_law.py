"""Particles that are values with what is unknown of the noise: a rate of lapses, habits.

Coordinates of the noise come behind the coefficients of the value (`models/noise_draws.py`), with a
standard normal prior. Utilities do not depend on them, so that rows get a column of zeros for each;
apart from that, particles are those of values (`ibis.py`).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from revealed._types import Floats
from revealed.data.decisions import Decisions
from revealed.kernels.noise import AnyNoise, count_coordinates
from revealed.models.habit import label_positions
from revealed.models.noise_coordinates import with_noise_coordinates
from revealed.models.noise_draws import name_noise
from revealed.models.priors import ResolvedPrior
from revealed.samplers.base import Draws
from revealed.samplers.ibis import ValueLaw
from revealed.samplers.particle_law import Observation, ParticleSet


@dataclass(frozen=True, eq=False)
class NoiseLaw:
    """Particles that are a value and the coordinates of a noise, of one controller.

    value_prior: of the value. noise: of the utilities, with coordinates. labels: of all actions
    that may be offered, where habits are learnt.
    """

    value_prior: ResolvedPrior
    noise: AnyNoise
    labels: tuple[Hashable, ...] = ()

    @cached_property
    def count(self) -> int:
        """How many coordinates the noise has.

        They are the last of every particle.
        """
        return count_coordinates(self.noise)

    @cached_property
    def together(self) -> ValueLaw:
        """The law of value and coordinates as one vector.

        Coordinates have a standard normal prior, whatever that of the value is.
        """
        return ValueLaw(self.value_prior.with_standard_normal(self.count), self.noise)

    def draw_prior(self, rng: np.random.Generator, count: int) -> ParticleSet:
        """So many draws of the prior, of equal weight."""
        return self.together.draw_prior(rng, count)

    def extend(
        self, rng: np.random.Generator, particles: ParticleSet, seen: Observation
    ) -> ParticleSet:
        """The particles as they are: a decision brings no unknowns along."""
        return particles

    def log_factors(self, particles: ParticleSet, seen: Observation) -> Floats:
        """(N,) the exact log probability of the choice under each particle.

        With what the particle says of the noise, such as its rate of lapses.
        """
        return self.together.log_factors(particles, self._with_coordinates(seen))

    def move(
        self,
        rng: np.random.Generator,
        particles: ParticleSet,
        decisions: Decisions,
        exponent: float,
    ) -> ParticleSet:
        """The particles after cycles of the default sampler's moves.

        Value and coordinates move together.
        """
        # habits depend on labels, which the padded rows say by number
        of_row = label_positions(self.labels, decisions) if self.labels else None
        padded = with_noise_coordinates(decisions, self.count, of_row)
        return self.together.move(rng, particles, padded, exponent)

    def values(self, particles: ParticleSet) -> Floats:
        """(N, K) the values, without the coordinates behind them."""
        return particles.parts["values"][:, : -self.count]

    def value_of(
        self, rng: np.random.Generator, particles: ParticleSet, position: int | None
    ) -> Floats:
        """(N, K) the values, whoever decides."""
        return self.values(particles)

    def probabilities(
        self,
        rng: np.random.Generator,
        particles: ParticleSet,
        seen: Observation,
        position: int | None,
    ) -> Floats:
        """(N, M) the exact probability of each row under each particle, lapses included."""
        padded = self._with_coordinates(seen)
        return self.together.probabilities(rng, particles, padded, position)

    def draws(self, rng: np.random.Generator, particles: ParticleSet) -> Draws:
        """The values, what is known of the noise, and the prior's sd where that is inferred."""
        drawn = self.together.draws(rng, particles)
        # coordinates are standard normal a priori; users are told rates and frequencies
        noise = name_noise(self.noise, particles.parts["values"][:, -self.count :])
        return {**drawn, "value": np.ascontiguousarray(self.values(particles)), **noise}

    def _with_coordinates(self, seen: Observation) -> Observation:
        """The decision with a column of zeros for each coordinate, and labels as numbers."""
        rows = np.hstack([seen.rows, np.zeros((len(seen.rows), self.count))])
        return seen._replace(rows=rows, actions=[self.labels.index(a) for a in seen.actions])
