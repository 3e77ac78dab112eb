"""Particles that are populations: mean and covariance, and the value of every group met so far.

    q_i ~ N(mean, covariance)        group i, in the free coordinates

A decision of a group changes a particle's weight by the probability of the choice under that
group's value in the particle; a group met for the first time gets a value drawn from the particle's
population. Moves are iterations of the hierarchical sampler (`kernels/population_particles.py`),
with the priors of `kernels/population.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from revealed._types import Floats
from revealed.data.decisions import Decisions
from revealed.data.groups import decisions_by_group, group_labels, group_positions
from revealed.kernels.group_values import GroupedDecisions, GroupMetric, transfer_values
from revealed.kernels.hmc import init_dual_averaging
from revealed.kernels.noise import NORMAL, NoiseArguments
from revealed.kernels.population import SD_PRIOR_DF, PopulationPrior, draw_inverse_wishart
from revealed.kernels.population_particles import (
    PopulationPaths,
    move_populations,
    noncentred_gradients,
)
from revealed.models.priors import ResolvedPrior
from revealed.samplers.base import Draws
from revealed.samplers.hierarchical import HIERARCHICAL
from revealed.samplers.hierarchical_adaptation import MOMENTS, adapted_metric
from revealed.samplers.inferred_scale import interweave_scale
from revealed.samplers.noncentred import NONCENTRED
from revealed.samplers.particle_law import (
    Observation,
    ParticleSet,
    max_correlation,
    move_in_chunks,
    next_step_size,
)
from revealed.samplers.particles import (
    check_proper_prior,
    choice_probabilities,
    draw_prior_sds,
    log_choice_probabilities,
)
from revealed.samplers.partitions import prepare_partition
from revealed.samplers.population_prior import population_prior


@dataclass(frozen=True)
class PopulationLawSettings:
    """How populations are moved; wrong settings cost time, never correctness.

    max_correlation: moving ends when no coordinate of the population has a larger correlation with
    where it was, or after max_cycles iterations; what is left of it the next moves go on with.
    gradient_particles: how many give the coordinates of the population's path. step_size: of the
    first iteration, in whitened coordinates.
    """

    max_correlation: float = 0.3
    max_cycles: int = 2
    gradient_particles: int = 200
    step_size: float = 0.8


POPULATION = PopulationLawSettings()


@dataclass(frozen=True, eq=False)
class PopulationLaw:
    """The law of populations.

    mean_prior: of the population's mean. sd_scale: that of the prior of the sds. noise: of the
    utilities.
    """

    mean_prior: ResolvedPrior
    sd_scale: float
    noise: NoiseArguments = NORMAL

    def __post_init__(self) -> None:
        check_proper_prior(self.mean_prior)

    @cached_property
    def prior(self) -> PopulationPrior:
        """The prior of the population, at an sd of one where that of its mean is inferred."""
        prior = self.mean_prior
        return population_prior(prior, self.sd_scale)

    @property
    def basis(self) -> Floats:
        """(K, D) from free coordinates to coefficients."""
        return self.mean_prior.basis

    def draw_prior(self, rng: np.random.Generator, count: int) -> ParticleSet:
        """So many populations from their prior, without groups."""
        mean = self.mean_prior.draw(rng, count)
        inferred = self.mean_prior.scale is not None
        sd = draw_prior_sds(rng, self.mean_prior, mean) if inferred else np.ones(count)
        scale_group = self.prior.scale_group
        df = SD_PRIOR_DF + len(scale_group) - 1.0
        # 1 / a is gamma, and the covariance inverse Wishart given it
        one_over_a = self.prior.sd_scale**2 * rng.standard_gamma(
            0.5, (count, len(self.prior.sd_scale))
        )
        rates = 2.0 * SD_PRIOR_DF * one_over_a[:, scale_group]
        covariance = np.array([draw_inverse_wishart(rng, df, np.diag(rate)) for rate in rates])
        parts = {
            "mean": np.ascontiguousarray(mean @ self.basis),
            "covariance": covariance,
            "q": np.empty((count, 0, len(scale_group))),
            "prior_sd": sd,
        }
        return ParticleSet(parts, np.zeros(count))

    def extend(
        self, rng: np.random.Generator, particles: ParticleSet, seen: Observation
    ) -> ParticleSet:
        """The particles with a value of the group that decides, where it was not met before."""
        # groups are numbered as they are met, so that only the next one can be new
        q = particles.parts["q"]
        if seen.position < q.shape[1]:
            return particles
        new = self._draw_new(rng, particles)[:, None]
        return particles.with_parts(q=np.ascontiguousarray(np.concatenate([q, new], axis=1)))

    def _draw_new(self, rng: np.random.Generator, particles: ParticleSet) -> Floats:
        """(N, D) a group never met, drawn from each population."""
        mean, covariance = particles.parts["mean"], particles.parts["covariance"]
        z = rng.standard_normal(mean.shape)
        return np.asarray(mean + np.einsum("nij,nj->ni", np.linalg.cholesky(covariance), z))

    def log_factors(self, particles: ParticleSet, seen: Observation) -> Floats:
        """(N,) the exact log probability of the choice under the deciding group's values."""
        values = particles.parts["q"][:, seen.position] @ self.basis.T
        return log_choice_probabilities(seen.rows, seen.chosen, values, self.noise)

    def move(
        self,
        rng: np.random.Generator,
        particles: ParticleSet,
        decisions: Decisions,
        exponent: float,
    ) -> ParticleSet:
        """The populations after iterations of the hierarchical sampler.

        Coordinates and step sizes of all paths are adapted to the particles themselves.
        """
        groups = self._grouped(decisions, exponent)
        q, mean, covariance, sd = (
            particles.parts[name].copy() for name in ("q", "mean", "covariance", "prior_sd")
        )
        count, n_groups, _ = q.shape
        # adapted once, from particles before they move: later ones would depend on their own moves
        metric = self._adapted(groups, q, mean, covariance, sd)
        value_step = np.full(n_groups, POPULATION.step_size)
        step = POPULATION.step_size
        value_rate, rate = np.empty((count, n_groups)), np.empty(count)
        before = _population_coordinates(mean, covariance)
        for _ in range(POPULATION.max_cycles):
            paths = PopulationPaths(
                HIERARCHICAL.path_length,
                0,  # independence moves would cost as much again, and particles are spread already
                NONCENTRED.path_length,
                NONCENTRED.max_steps,
                step,
                metric["metric"],
                NONCENTRED.max_log_sd,
            )
            own = GroupMetric(metric["group_centre"], metric["group_scale"], value_step)
            move_in_chunks(
                rng,
                partial(_move_chunk, groups, self.prior, own, paths),
                sd,
                q,
                mean,
                covariance,
                value_rate,
                rate,
            )
            if self.mean_prior.scale is not None:
                for n in range(count):
                    mean[n], sd[n] = interweave_scale(
                        rng, self.mean_prior, mean[n], q[n], covariance[n]
                    )
            # the particles' own acceptance rates say which step sizes are right
            target = HIERARCHICAL.target_acceptance
            value_step = next_step_size(value_step, value_rate.mean(axis=0), target)
            step = float(next_step_size(step, rate.mean(), target))
            after = _population_coordinates(mean, covariance)
            if max_correlation(before, after) < POPULATION.max_correlation:
                break
        return particles.with_parts(q=q, mean=mean, covariance=covariance, prior_sd=sd)

    def _grouped(self, decisions: Decisions, exponent: float) -> GroupedDecisions:
        """The decisions as the kernels take them, the last one with its exponent so far."""
        labels = group_labels(decisions)
        position = group_positions(labels, tuple(decisions_by_group(labels)))
        # a decision that is taken in by and by counts with a power of its probability
        weight = np.ones(len(decisions))
        weight[-1] = exponent
        order = np.argsort(position, kind="stable")
        return prepare_partition(
            decisions[order], position[order], self.basis, self.noise, weight[order]
        )

    def _adapted(
        self, groups: GroupedDecisions, q: Floats, mean: Floats, covariance: Floats, sd: Floats
    ) -> Draws:
        """The coordinates of all paths, from the moments of the particles."""
        count, _, width = q.shape
        root = np.linalg.cholesky(covariance)
        origin, identity = np.zeros(width), np.eye(width)
        z = np.array(
            [transfer_values(q[n], mean[n], root[n], origin, identity) for n in range(count)]
        )
        some = min(POPULATION.gradient_particles, count)
        gradients = np.empty((some, 2 * width + width * (width - 1) // 2))
        # particles are in the order of their parents: spread over all of them
        pick = np.linspace(0, count - 1, some).astype(np.int64)
        noncentred_gradients(
            groups,
            self.prior,
            sd[pick],
            NONCENTRED.max_log_sd,
            q[pick],
            mean[pick],
            covariance[pick],
            gradients,
        )
        # what the hierarchical sampler sums over its warm-up is summed over particles here
        log_sd = 0.5 * np.log(np.einsum("nkk->nk", covariance))
        moments = (
            z.sum(axis=0),
            np.einsum("ngi,ngj->gij", z, z),
            gradients.T @ gradients * (count / some),
            np.stack([np.full(width, float(count)), log_sd.sum(axis=0), (log_sd**2).sum(axis=0)]),
        )
        step_sizes = init_dual_averaging(np.full(q.shape[1], POPULATION.step_size))
        state = dict(zip(MOMENTS, moments, strict=True))
        return adapted_metric(state | {"mean": mean[0], "group_adaptation": step_sizes})

    def values(self, particles: ParticleSet) -> Floats:
        """(N, G, K) the values of the groups met."""
        return np.asarray(particles.parts["q"] @ self.basis.T)

    def value_of(
        self, rng: np.random.Generator, particles: ParticleSet, position: int | None
    ) -> Floats:
        """(N, K) the value of one group; drawn from each population where it was never met."""
        q = (
            self._draw_new(rng, particles)
            if position is None
            else particles.parts["q"][:, position]
        )
        return np.asarray(q @ self.basis.T)

    def probabilities(
        self,
        rng: np.random.Generator,
        particles: ParticleSet,
        seen: Observation,
        position: int | None,
    ) -> Floats:
        """(N, M) the exact probability of each row under the group's value in each particle."""
        return choice_probabilities(seen.rows, self.value_of(rng, particles, position), self.noise)

    def draws(self, rng: np.random.Generator, particles: ParticleSet) -> Draws:
        """Population and values of each particle, and the sd of its mean's prior if inferred."""
        parts, basis = particles.parts, self.basis
        drawn = {
            "population_mean": parts["mean"] @ basis.T,
            "population_covariance": basis @ parts["covariance"] @ basis.T,
            "value": self.values(particles),
        }
        return drawn if self.mean_prior.scale is None else drawn | {"prior_sd": parts["prior_sd"]}


def _move_chunk(
    groups: GroupedDecisions,
    prior: PopulationPrior,
    metric: GroupMetric,
    paths: PopulationPaths,
    rng: np.random.Generator,
    sd: Floats,
    *particles: Floats,
) -> None:
    """One iteration of some particles, in place."""
    move_populations(rng, groups, prior, sd, metric, paths, *particles)


def _population_coordinates(mean: Floats, covariance: Floats) -> Floats:
    """(N, 2 D) mean and log sds, by which it is seen whether particles have moved."""
    return np.hstack([mean, np.log(np.einsum("nkk->nk", covariance))])
