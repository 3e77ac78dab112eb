"""IBIS: particles that follow the posterior of a value one decision at a time (Chopin 2002).

A particle is a value, drawn from the prior. Each decision multiplies its weight by the exact
probability of the choice (`particle_law.py` has what all laws of particles share). When too few
particles carry the weight, they are resampled, and each is moved by cycles of the default sampler's
moves, which leave the posterior of all decisions so far as it is, until the particles no longer
depend on where they were.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from revealed._types import Floats
from revealed.data.decisions import Decisions
from revealed.kernels.composite import Cycle, move_particles
from revealed.kernels.independence import Mixture
from revealed.kernels.interrupt import raise_if_stopping
from revealed.kernels.noise import NORMAL, AnyNoise
from revealed.models.priors import ResolvedPrior
from revealed.samplers.base import Draws, State, Stats
from revealed.samplers.composite.cost import CostModel
from revealed.samplers.composite.cycle import adapt_step_size, hmc_only_cycle
from revealed.samplers.composite.proposal import PROPOSAL, Proposal, fit_proposal, null_mixture
from revealed.samplers.composite.sampler import CompositeSampler
from revealed.samplers.composite.warmup import WARMUP
from revealed.samplers.particle_law import (
    Observation,
    ParticleSet,
    assimilate,
    max_correlation,
)
from revealed.samplers.particles import (
    check_proper_prior,
    choice_probabilities,
    dense_rows,
    draw_prior_sds,
    log_choice_probabilities,
    systematic_resample,
)


@dataclass(frozen=True)
class IBISSettings:
    """How particles are moved."""

    # Hamiltonian moves that adapt the step size.
    step_size_moves: int = 30
    # Moving ends when no coordinate has a larger correlation with where it was, or after so many
    # cycles. More of it repeats what the weights know already; less leaves copies of particles.
    max_correlation: float = 0.1
    max_cycles: int = 20
    # Independence steps in a cycle, where a mixture fits, and importance draws in each round of
    # fitting it.
    independence_steps: int = 3
    proposal_draws: int = 500
    # Sweeps that cost more than so many Hamiltonian moves are left out.
    max_augmentation_cost: float = 3.0


IBIS = IBISSettings()


@dataclass(frozen=True, eq=False)
class ValueLaw:
    """Particles that are values, of one controller with independent noise.

    resolved_prior: of the value. noise: of the utilities.
    """

    resolved_prior: ResolvedPrior
    noise: AnyNoise = NORMAL

    def __post_init__(self) -> None:
        check_proper_prior(self.resolved_prior)

    def draw_prior(self, rng: np.random.Generator, count: int) -> ParticleSet:
        """So many draws of the prior, of equal weight."""
        return ParticleSet({"values": self.resolved_prior.draw(rng, count)}, np.zeros(count))

    def extend(
        self, rng: np.random.Generator, particles: ParticleSet, seen: Observation
    ) -> ParticleSet:
        """The particles as they are: a decision brings no unknowns along."""
        return particles

    def log_factors(self, particles: ParticleSet, seen: Observation) -> Floats:
        """(N,) the exact log probability of the choice under each value."""
        return log_choice_probabilities(
            seen.rows, seen.chosen, particles.parts["values"], self.noise, seen.actions
        )

    def move(
        self,
        rng: np.random.Generator,
        particles: ParticleSet,
        decisions: Decisions,
        exponent: float,
    ) -> ParticleSet:
        """The values after cycles of the default sampler's moves."""
        values = particles.parts["values"]
        moved = _move_values(rng, values, decisions, self.resolved_prior, exponent, self.noise)
        return particles.with_parts(values=moved)

    def values(self, particles: ParticleSet) -> Floats:
        """(N, K) the values."""
        return particles.parts["values"]

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
        """(N, M) the exact probability of each row under each value."""
        return choice_probabilities(seen.rows, self.values(particles), self.noise, seen.actions)

    def draws(self, rng: np.random.Generator, particles: ParticleSet) -> Draws:
        """The values, and where the prior's sd is inferred a draw of it given each."""
        values = self.values(particles)
        if self.resolved_prior.scale is None:
            return {"value": values}
        sd = draw_prior_sds(rng, self.resolved_prior, values)
        return {"value": values, "prior_sd": sd}


def _move_values(
    rng: np.random.Generator,
    particles: Floats,
    decisions: Decisions,
    resolved_prior: ResolvedPrior,
    exponent: float,
    noise: AnyNoise,
) -> Floats:
    """Values (N, K) after cycles of moves for each, until they have forgotten where they were.

    The moves leave the posterior as it is in which the last decision counts with this exponent.
    Coordinates, step size and proposal are adapted to the particles themselves.
    """
    # The last decision counts with its exponent so far.
    weight = np.ones(len(decisions))
    weight[-1] = exponent
    sampler = CompositeSampler.build(
        decisions, resolved_prior, weight if exponent < 1.0 else None, noise
    )
    # Whitened coordinates from the particles, as in the composite sampler's warm-up.
    values = _with_random_constants(rng, resolved_prior, particles)
    whitened = sampler.whitening_from_draws(rng, particles)
    initial = whitened.coordinates(values)
    transform = whitened.rescaled(initial, WARMUP.metric_covariance_power)
    directions = sampler.interweaving_directions(whitened.rescaled(initial, 1.0))
    tuning_problem = sampler.tuning_problem(transform)
    prior_scale = sampler.prior_scale(transform.unwhiten.shape[1])
    x = np.ascontiguousarray(transform.coordinates(values))
    initial = x.copy()
    # A step size, from a particle drawn at random.
    step_size, _ = adapt_step_size(
        rng, tuning_problem, prior_scale, 0.5, x[rng.integers(len(x))], IBIS.step_size_moves
    )
    cost = CostModel.at(tuning_problem.target, x[0], decisions.rows.shape[0])
    proposal = (
        fit_proposal(rng, tuning_problem, prior_scale, x, IBIS.proposal_draws)
        if sampler.mixture_feasible
        else None
    )
    cycle, mixture = _particle_cycle(step_size, proposal, cost, sampler.can_augment)
    problem = sampler.problem(transform, directions, mixture, cycle)
    # Move all particles together, cycle by cycle, until they have forgotten where they were.
    moved, acceptance = np.empty_like(particles), np.empty(len(x))
    mode_offset = np.zeros(len(decisions))
    for _ in range(IBIS.max_cycles):
        move_particles(rng, problem, prior_scale, mode_offset, x, moved, acceptance)
        raise_if_stopping()
        if max_correlation(initial, x) < IBIS.max_correlation:
            break
    if not np.isfinite(moved).all():
        raise ValueError(
            "utilities are too large for data augmentation in double precision; bring the "
            "features to a scale of about one, or give a smaller prior sd"
        )
    return moved


def _particle_cycle(
    step_size: float, proposal: Proposal | None, cost: CostModel, can_augment: bool
) -> tuple[Cycle, Mixture]:
    """One cycle for every particle, and its mixture.

    A Hamiltonian move, independence steps if the proposal is usable, and a sweep unless it costs
    too much or the proposal fits so well that it needs no more than a Hamiltonian move beside it.
    """
    cycle, mixture = hmc_only_cycle(step_size), null_mixture(cost.width)
    if proposal is not None and proposal.usable:
        cycle = cycle._replace(independence=IBIS.independence_steps)
        mixture = proposal.mixture
    fits_well = proposal is not None and proposal.min_safe_share == PROPOSAL.min_safe_share_good
    affordable = cost.augmentation < IBIS.max_augmentation_cost * cost.hmc(cycle)
    if can_augment and not fits_well and affordable:
        cycle = cycle._replace(augmentation=1)
    length = cycle.hmc + cycle.augmentation + cycle.independence
    return cycle._replace(moves_per_draw=length), mixture


def _with_random_constants(
    rng: np.random.Generator, resolved_prior: ResolvedPrior, values: Floats
) -> Floats:
    """Values (N, K) with the constants of sum-to-zero blocks drawn from their prior.

    Where the prior scale is inferred, each at a scale drawn given its own value.
    """
    if resolved_prior.scale is None:
        return resolved_prior.with_random_constants(rng, values)
    constants = resolved_prior.constant_directions
    # One normal for each block and particle, in units of the particle's prior sd.
    noise = rng.standard_normal((len(values), constants.shape[1])) / np.sqrt(
        resolved_prior.constant_precision
    )
    sds = draw_prior_sds(rng, resolved_prior, values)
    return np.asarray(values + (sds[:, None] * noise) @ constants.T)


@dataclass(frozen=True, eq=False)
class IBISSampler:
    """The sampler: one set of particles a chain, one decision an iteration of its warm-up.

    particles: as many as there are to be draws. noise: of the utilities.
    """

    decisions: Decisions
    resolved_prior: ResolvedPrior
    particles: int
    noise: AnyNoise = NORMAL

    def __post_init__(self) -> None:
        check_proper_prior(self.resolved_prior)

    @cached_property
    def law(self) -> ValueLaw:
        """What the particles are draws of."""
        return ValueLaw(self.resolved_prior, self.noise)

    @property
    def name(self) -> str:
        """The name by which users ask for it."""
        return "ibis"

    def init(self, rng: np.random.Generator, position: Floats | None) -> State:
        """The state before the first decision: draws of the prior.

        `position` is not used, as particles have to begin in the prior's law.
        """
        return _to_state(self.law.draw_prior(rng, self.particles), n_assimilated=0)

    def warmup(
        self, rng: np.random.Generator, state: State, remaining: int, chunk: int
    ) -> tuple[State, int]:
        """Assimilate about `chunk` of the `remaining` decisions, one an iteration.

        After the last, the parents of particles of equal weight are drawn, for `sample`.
        """
        particles, first = _from_state(state), int(state["n_assimilated"][0])
        count = min(chunk, remaining)
        for t in range(first, first + count):
            particles = self._assimilate(rng, particles, t)
        new = _to_state(particles, n_assimilated=first + count)
        if count == remaining:
            new["parents"] = systematic_resample(rng, particles.weights).astype(np.float64)
        return new, count

    def _assimilate(self, rng: np.random.Generator, particles: ParticleSet, t: int) -> ParticleSet:
        """The particles after decision t."""
        d = self.decisions
        rows = dense_rows(d.rows[d.start[t] : d.start[t + 1]])
        labels = () if d.actions is None else d.actions[d.start[t] : d.start[t + 1]].tolist()
        seen = Observation(rows, int(d.chosen_row[t] - d.start[t]), actions=labels)
        return assimilate(rng, self.law, particles, seen, lambda: d.first(t + 1))

    def sample(
        self, rng: np.random.Generator, state: State, draws: int, thin: int
    ) -> tuple[State, Draws, Stats]:
        """The next particles (draws, K), and two stats of each.

        These are the log of its weight, times N, before it was picked, and the log evidence.
        """
        first, particles = int(state["n_drawn"][0]), _from_state(state)
        parents = state["parents"][first : first + draws].astype(np.int64)
        values = particles.parts["values"][parents]
        drawn = {"value": values}
        stats = {
            "log_weight": np.log(len(particles) * particles.weights[parents]),
            "log_evidence": np.full(draws, particles.log_evidence),
        }
        if self.resolved_prior.scale is not None:
            # One by one, so that no number depends on how many are drawn now (`per_draw.py`).
            one_by_one = [draw_prior_sds(rng, self.resolved_prior, v[None]) for v in values]
            drawn["prior_sd"] = np.concatenate(one_by_one)
        return state | {"n_drawn": np.array([first + draws])}, drawn, stats


def _to_state(particles: ParticleSet, n_assimilated: int) -> State:
    """Particles that nothing was drawn from yet, as plain arrays."""
    return {
        "values": particles.parts["values"],
        "log_weights": particles.log_weights,
        "log_evidence": np.array([particles.log_evidence]),
        "n_assimilated": np.array([n_assimilated], dtype=np.float64),
        "n_drawn": np.zeros(1),
    }


def _from_state(state: State) -> ParticleSet:
    """The particles that `_to_state` made into arrays."""
    parts, log_weights = {"values": state["values"]}, state["log_weights"]
    return ParticleSet(parts, log_weights, float(state["log_evidence"][0]))
