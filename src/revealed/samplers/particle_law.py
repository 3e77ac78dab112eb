"""Particles that follow a posterior one decision at a time, whatever they are draws of.

A particle is a draw of everything unknown. Each decision multiplies its weight by the probability
of the choice, and the weighted mean of these factors is what the decision adds to the evidence
(Chopin 2002). Where too few particles carry the weight they are resampled and moved, and a decision
that would leave next to none of them is tempered: its probability to a power that leaves enough,
then the rest (Del Moral, Doucet and Jasra 2006). What is particular to a model is its law:

    draw_prior    particles before the first decision
    extend        unknowns that a decision brings along, drawn given the others: the value of a
                  group not met before, the normals of a simulated probability
    log_factors   the log probability of a choice under every particle, or of an unbiased estimate
                  of it whose random numbers are part of the particle
    move          every particle by moves that leave the posterior so far as it is
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from revealed._types import Floats, Ints
from revealed.data.decisions import Decisions
from revealed.kernels.interrupt import LoopsStopped, count_stops, stopped_since
from revealed.samplers.base import Draws
from revealed.samplers.particles import effective_size, systematic_resample


@dataclass(frozen=True)
class ParticleSettings:
    """When particles are resampled, and when decisions are tempered."""

    # With fewer effective particles than this share they are resampled and moved: one half, as is
    # usual. Later, few ancestors would carry the weight; earlier, moves are made in vain.
    ess_resample_below: float = 0.5
    # A decision that leaves less than the first share is tempered, in parts that leave the second
    # each, and at most the third of what there was, so that every part gets somewhere.
    ess_temper_below: float = 0.1
    ess_temper_target: float = 0.3
    ess_temper_factor: float = 0.9
    # Particles are moved in so many chunks, by threads; changing it changes draws.
    chunks: int = 8
    # How much the logarithm of a step size changes with the acceptance rate from one iteration to
    # the next, and the largest step in whitened coordinates: next to 2 leapfrog becomes unstable.
    step_adaptation_rate: float = 1.5
    max_step_size: float = 1.5


PARTICLES = ParticleSettings()


class Observation(NamedTuple):
    """One decision: the choice of that one of rows (M, K).

    group: who decided, None where nobody is told apart. position: of the group among those met, in
    the order in which they were. actions: M labels of the rows, none where they have none.
    """

    rows: Floats
    chosen: int
    group: Hashable = None
    position: int = 0
    actions: Sequence[Any] = ()


@dataclass(frozen=True, eq=False)
class ParticleSet:
    """Weighted particles of a posterior.

    parts: (N, ...) for each unknown, by name. log_weights: (N,), the largest zero. log_evidence: of
    the decisions so far. shared: what all particles have in common, by name.
    """

    parts: Mapping[str, Floats]
    log_weights: Floats
    log_evidence: float = 0.0
    shared: Mapping[str, Floats] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.log_weights)

    @property
    def weights(self) -> Floats:
        """(N,) weights that sum to one."""
        w = np.exp(self.log_weights)
        return np.asarray(w / w.sum())

    @property
    def effective(self) -> float:
        """How many particles of equal weight are worth as much."""
        return effective_size(self.log_weights)

    def reweighted(self, log_factors: Floats) -> ParticleSet:
        """The particles with weights multiplied by factors (N,).

        The factors' weighted mean goes into the evidence.
        """
        # log of the weighted mean of the factors, with the largest taken out of the exponential.
        top = log_factors.max()
        log_mean = top + np.log(self.weights @ np.exp(log_factors - top))
        log_weights = self.log_weights + log_factors
        return replace(
            self,
            log_weights=log_weights - log_weights.max(),
            log_evidence=self.log_evidence + float(log_mean),
        )

    def picked(self, parents: Ints) -> ParticleSet:
        """Particles of equal weight, copies of those at these positions."""
        return replace(
            self,
            parts={name: part[parents] for name, part in self.parts.items()},
            log_weights=np.zeros(len(parents)),
        )

    def resampled(self, rng: np.random.Generator) -> ParticleSet:
        """Particles of equal weight, each a copy of one drawn by weight.

        The evidence is that of the particles before.
        """
        return self.picked(systematic_resample(rng, self.weights))

    def with_parts(self, **parts: Floats) -> ParticleSet:
        """The particles with these parts replaced or added."""
        return replace(self, parts={**self.parts, **parts})


class ParticleLaw(Protocol):
    """What particles are draws of, and how a decision changes them."""

    def draw_prior(self, rng: np.random.Generator, count: int) -> ParticleSet:
        """So many draws of the prior, of equal weight."""
        ...

    def extend(
        self, rng: np.random.Generator, particles: ParticleSet, seen: Observation
    ) -> ParticleSet:
        """The particles with the unknowns that this decision brings along."""
        ...

    def log_factors(self, particles: ParticleSet, seen: Observation) -> Floats:
        """(N,) the log probability of the choice under each particle."""
        ...

    def move(
        self,
        rng: np.random.Generator,
        particles: ParticleSet,
        decisions: Decisions,
        exponent: float,
    ) -> ParticleSet:
        """Particles of equal weight, each moved until it has about forgotten where it was.

        decisions: all so far; the last one counts with this exponent.
        """
        ...

    def values(self, particles: ParticleSet) -> Floats:
        """(N, K) the value of each particle, or (N, G, K) those of the groups met."""
        ...

    def value_of(
        self, rng: np.random.Generator, particles: ParticleSet, position: int | None
    ) -> Floats:
        """(N, K) the value of the group at this position.

        Of one never met where that is None.
        """
        ...

    def probabilities(
        self,
        rng: np.random.Generator,
        particles: ParticleSet,
        seen: Observation,
        position: int | None,
    ) -> Floats:
        """(N, M) the probability of each row under each particle.

        Who decides as in `value_of`.
        """
        ...

    def draws(self, rng: np.random.Generator, particles: ParticleSet) -> Draws:
        """Every parameter of the model under each particle, by name: (N, ...)."""
        ...


def assimilate(
    rng: np.random.Generator,
    law: ParticleLaw,
    particles: ParticleSet,
    seen: Observation,
    decisions_so_far: Callable[[], Decisions],
) -> ParticleSet:
    """The particles after one more decision.

    decisions_so_far: returns all decisions up to this one; called only when particles have to move.
    """
    stops = count_stops()
    particles = law.extend(rng, particles, seen)
    exponent = 0.0
    while True:
        log_factors = law.log_factors(particles, seen)
        count, rest = len(log_factors), 1.0 - exponent
        # Temper: as much of the decision as leaves enough effective particles.
        if (
            effective_size(particles.log_weights + rest * log_factors)
            < PARTICLES.ess_temper_below * count
        ):
            enough = min(
                PARTICLES.ess_temper_target * count,
                PARTICLES.ess_temper_factor * particles.effective,
            )
            rest = _tempering_exponent(particles.log_weights, log_factors, enough, rest)
        # So much of the decision is in the weights now.
        exponent += rest
        particles = particles.reweighted(rest * log_factors)
        if exponent >= 1.0:
            break
        particles = law.move(rng, particles.resampled(rng), decisions_so_far(), exponent)
    if particles.effective < PARTICLES.ess_resample_below * len(particles):
        particles = law.move(rng, particles.resampled(rng), decisions_so_far(), 1.0)
    # moves that were cut short by Ctrl-C leave no law behind
    if stopped_since(stops):
        raise LoopsStopped
    return particles


def _tempering_exponent(
    log_weights: Floats, log_factors: Floats, enough: float, most: float
) -> float:
    """The power of the factors, at most `most`, that leaves just enough effective particles.

    By bisection: the effective number falls as the power grows.
    """
    low, high = 0.0, most
    for _ in range(40):
        middle = 0.5 * (low + high)
        if effective_size(log_weights + middle * log_factors) > enough:
            low = middle
        else:
            high = middle
    return high


def move_in_chunks(rng: np.random.Generator, move: Callable[..., None], *parts: Floats) -> None:
    """Call move(rng, *parts) for chunks of the particles, each part (N, ...), in threads.

    Every chunk has a generator of its own, so that the moves do not depend on how many threads
    there are; moves change the parts in place.
    """
    chunks, key = PARTICLES.chunks, int(rng.integers(2**63))
    bounds = np.linspace(0, len(parts[0]), chunks + 1).astype(int)

    def move_chunk(i: int) -> None:
        own = np.random.Generator(np.random.Philox(key=np.array([key, i], dtype=np.uint64)))
        move(own, *(part[bounds[i] : bounds[i + 1]] for part in parts))

    # kernels release the interpreter's lock, so threads are enough
    with ThreadPoolExecutor(min(chunks, os.cpu_count() or 1)) as pool:
        list(pool.map(move_chunk, range(chunks)))


def next_step_size(
    step_size: Floats | float, acceptance: Floats | float, target_acceptance: float
) -> Floats:
    """Larger step sizes where more was accepted than is best, smaller ones where less was.

    acceptance: the rate of all particles in the last iteration, for each step size.
    """
    factor = np.exp(PARTICLES.step_adaptation_rate * (acceptance - target_acceptance))
    return np.minimum(step_size * factor, PARTICLES.max_step_size)


def max_correlation(before: Floats, after: Floats) -> float:
    """The largest absolute correlation of coordinates (N, D) before with those after.

    That of squared distances from the mean counts as well: it shows a scale that does not move.
    """
    pairs = (
        (before, after),
        ((before - before.mean(0)) ** 2, (after - after.mean(0)) ** 2),
    )
    return max(
        float(np.abs(np.einsum("nd,nd->d", _standardised(a), _standardised(b))).max() / len(a))
        for a, b in pairs
    )


def _standardised(x: Floats) -> Floats:
    """x (N, D) with mean zero and sd one in every column."""
    return np.asarray((x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-300))
