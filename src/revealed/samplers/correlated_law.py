"""Particles with a noise covariance: coefficients, covariance, and normals of every decision.

A particle is (theta, z) of `kernels/ghk_posterior.py`. A decision brings fresh standard normals
along, and multiplies the weight by the GHK simulator's estimate of the probability of the choice at
these. The estimate is unbiased and its normals are part of the particle, so that the law of theta
is the exact posterior (pseudo-marginal: Andrieu and Roberts 2009; for particles Chopin, Jacob and
Papaspiliopoulos 2013). The evidence is consistent as the number of particles grows; unbiased it
would be if step sizes were not adapted to the particles. Moves are iterations of the sampler
"ghk-hmc", which draw normals given theta and theta given normals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from revealed._types import Floats, Ints
from revealed.data.blocks import Block
from revealed.data.decisions import Decisions
from revealed.kernels.ghk_hmc import WhitenedGHK, log_weights_of_particles, move_particles
from revealed.kernels.ghk_posterior import GHKLogPosterior, make_workspace
from revealed.kernels.hmc import PathPlan, init_dual_averaging
from revealed.kernels.population import draw_inverse_wishart
from revealed.models.correlated_noise import NoiseCovariance, ResolvedNoise
from revealed.models.likelihood import choice_probabilities
from revealed.models.priors import ResolvedPrior
from revealed.samplers.adaptation import covariance_roots
from revealed.samplers.base import Draws
from revealed.samplers.ghk_hmc import GHK, GHKSampler
from revealed.samplers.particle_law import (
    Observation,
    ParticleSet,
    max_correlation,
    move_in_chunks,
    next_step_size,
)
from revealed.samplers.particles import check_proper_prior, draw_prior_sds


@dataclass(frozen=True)
class CorrelatedLawSettings:
    """How particles are moved; wrong settings cost time, never correctness.

    max_correlation: moving ends when no coordinate of theta has a larger correlation with where it
    was, or after max_cycles iterations; what is left of it the next moves go on with. step_size: of
    the first iteration, in whitened coordinates. lattice_points: of predicted probabilities, few
    because errors of particles average out.
    """

    max_correlation: float = 0.2
    max_cycles: int = 5
    step_size: float = 0.7
    lattice_points: int = 16


CORRELATED = CorrelatedLawSettings()


@dataclass(frozen=True, eq=False)
class CorrelatedLaw:
    """The law of coefficients and noise covariance.

    resolved_prior: of the value. noise: in terms of all labels that may be offered; of no rows.
    names, blocks: of the coefficients.
    """

    resolved_prior: ResolvedPrior
    noise: ResolvedNoise
    names: tuple[str, ...]
    blocks: tuple[Block, ...]

    def __post_init__(self) -> None:
        check_proper_prior(self.resolved_prior)

    def draw_prior(self, rng: np.random.Generator, count: int) -> ParticleSet:
        """So many draws of coefficients and covariance, both on the reported scale."""
        values = self.resolved_prior.draw(rng, count)
        rate = self.noise.root @ self.noise.root.T
        size, sampler, theta = len(rate), self._sampler(None), []
        for value in values:
            covariance = draw_inverse_wishart(rng, self.noise.df, rate)
            first = self.noise.scale == "first"
            scale = covariance[0, 0] if first else np.trace(covariance) / size
            theta.append(sampler.to_theta(value, covariance / scale))
        parts = {"theta": np.array(theta), "z": np.empty((count, 0))}
        return ParticleSet(parts, np.zeros(count), shared={"order": np.empty(0)})

    def extend(
        self, rng: np.random.Generator, particles: ParticleSet, seen: Observation
    ) -> ParticleSet:
        """The particles with normals for this decision.

        Its rivals are conditioned on in the order that is best at the particles' mean, and stay in
        it: another order would give the normals another meaning.
        """
        if len(seen.rows) < 2:
            return particles
        order = self._sampler(seen).conditioning_rows(particles.weights @ particles.parts["theta"])
        fresh = rng.standard_normal((len(particles), len(seen.rows) - 2))
        z = np.ascontiguousarray(np.hstack([particles.parts["z"], fresh]))
        orders = np.concatenate([particles.shared["order"], order])
        return replace(particles.with_parts(z=z), shared={"order": orders})

    def log_factors(self, particles: ParticleSet, seen: Observation) -> Floats:
        """(N,) the log of an unbiased estimate of the probability of the choice.

        Exact where there is one rival, which needs no normals.
        """
        if len(seen.rows) < 2:
            return np.zeros(len(particles))
        theta, z = particles.parts["theta"], particles.parts["z"]
        order = particles.shared["order"][1 - len(seen.rows) :].astype(np.int64)
        target, work = self._sampler(seen).posterior_in_order(order)
        out, own = np.empty(len(theta)), z[:, z.shape[1] - (len(seen.rows) - 2) :]
        log_weights_of_particles(target, work, theta, np.ascontiguousarray(own), out)
        return out

    def move(
        self,
        rng: np.random.Generator,
        particles: ParticleSet,
        decisions: Decisions,
        exponent: float,
    ) -> ParticleSet:
        """Theta and normals after iterations of the sampler, each particle by itself.

        Coordinates and step size of the paths are adapted to the particles themselves.
        """
        sampler = self._sampler_of(decisions)
        sizes = sampler.informative_decisions.sizes
        powers = np.ones(len(sizes))
        # a last decision with a single action is not tempered, as it changes nothing
        powers[-1] = exponent
        offset = np.repeat(sampler.informative_decisions.start[:-1], sizes - 1)
        order = particles.shared["order"].astype(np.int64) + offset
        target, _ = sampler.posterior_in_order(order, powers)
        theta, z = particles.parts["theta"], particles.parts["z"].copy()
        centre = theta.mean(axis=0)
        root = _coordinates(theta - centre)
        x = np.ascontiguousarray(np.linalg.solve(root, (theta - centre).T).T)
        before, step = x.copy(), CORRELATED.step_size
        acceptance = np.empty(len(x))
        for _ in range(CORRELATED.max_cycles):
            plan = PathPlan(GHK.path_length, 0.0, init_dual_averaging(step))
            move_in_chunks(rng, partial(_move_chunk, target, centre, root, plan), x, z, acceptance)
            # the particles' own acceptance rate says which step size is right
            step = float(next_step_size(step, acceptance.mean(), GHK.target_acceptance))
            if max_correlation(before, x) < CORRELATED.max_correlation:
                break
        return particles.with_parts(theta=centre + x @ root.T, z=z)

    def values(self, particles: ParticleSet) -> Floats:
        """(N, K) the values, on the reported scale."""
        return self._sampler(None).to_reported_scale(particles.parts["theta"])["value"]

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
        """(N, M) the probability of each row under each particle, by a lattice."""
        drawn = self._sampler(None).to_reported_scale(particles.parts["theta"])
        noise = NoiseCovariance(
            self.noise.labels[self.noise.base],
            self.noise.non_base,
            drawn["noise_covariance"],
            CORRELATED.lattice_points,
        )
        return choice_probabilities(self._decision(seen), drawn["value"], noise)

    def draws(self, rng: np.random.Generator, particles: ParticleSet) -> Draws:
        """Value and noise covariance of each particle, and the prior's sd where it is inferred."""
        drawn = self._sampler(None).to_reported_scale(particles.parts["theta"])
        if self.resolved_prior.scale is None:
            return drawn
        return drawn | {"prior_sd": draw_prior_sds(rng, self.resolved_prior, drawn["value"])}

    def labels(self, actions: Sequence[Any]) -> Ints:
        """The positions of these labels among all."""
        known = {label: i for i, label in enumerate(self.noise.labels)}
        return np.array([known[label] for label in actions], dtype=np.int64)

    def _decision(self, seen: Observation) -> Decisions:
        """One decision as Decisions."""
        return Decisions(
            seen.rows,
            [0, len(seen.rows)],
            [seen.chosen],
            names=self.names,
            blocks=self.blocks,
            actions=list(seen.actions),
        )

    def _sampler(self, seen: Observation | None) -> GHKSampler:
        """The sampler for one decision; for none where only its coordinates are needed."""
        if seen is None:
            seen = Observation(np.zeros((1, len(self.names))), 0, actions=self.noise.labels[:1])
        return self._sampler_of(self._decision(seen))

    def _sampler_of(self, decisions: Decisions) -> GHKSampler:
        """The sampler for all of these decisions."""
        assert decisions.actions is not None
        of_row = self.labels(decisions.actions.tolist())
        return GHKSampler(decisions, self.resolved_prior, replace(self.noise, of_row=of_row))


def _move_chunk(
    posterior: GHKLogPosterior,
    centre: Floats,
    root: Floats,
    plan: PathPlan,
    rng: np.random.Generator,
    x: Floats,
    z: Floats,
    acceptance: Floats,
) -> None:
    """One iteration of some particles, in place, with a workspace of their own."""
    target = WhitenedGHK(posterior, np.empty((z.shape[1], 2)), centre, root)
    move_particles(rng, target, make_workspace(posterior), plan, x, z, acceptance)


def _coordinates(offsets: Floats) -> Floats:
    """A root (D, D) of the covariance of offsets from their mean (N, D)."""
    # brought to unit variance first, as the covariance is shrunk towards the identity
    sd = np.maximum(offsets.std(axis=0), 1e-12)
    return np.ascontiguousarray(sd[:, None] * covariance_roots(offsets / sd, 1.0)[0])
