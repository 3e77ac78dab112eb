"""IBIS: particles that follow the posterior one decision at a time (Chopin 2002).

A particle is a value, drawn from the prior. Each decision multiplies its weight by the exact
probability of the choice, and the weighted mean of these factors is what the decision adds to the
evidence. When too few particles carry the weight, they are resampled, and each is moved by cycles
of the default sampler's moves, which leave the posterior of all decisions so far as it is, until
the particles no longer depend on where they were. A decision that would leave next to no effective
particles is tempered: its probability to a power that leaves enough of them, then the rest (Del
Moral, Doucet and Jasra 2006).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from revealed._types import Floats
from revealed.data.decisions import Decisions
from revealed.kernels.composite import Cycle, move_particles
from revealed.kernels.independence import Mixture
from revealed.kernels.noise import NORMAL, NoiseArguments
from revealed.models.priors import ResolvedPrior
from revealed.samplers.base import Draws, State, Stats
from revealed.samplers.composite.cost import CostModel
from revealed.samplers.composite.cycle import adapt_step_size, hmc_only_cycle
from revealed.samplers.composite.proposal import PROPOSAL, Proposal, fit_proposal, null_mixture
from revealed.samplers.composite.sampler import CompositeSampler
from revealed.samplers.composite.warmup import WARMUP
from revealed.samplers.particles import (
    check_proper_prior,
    dense_rows,
    draw_prior_sds,
    effective_size,
    log_choice_probabilities,
    systematic_resample,
)


@dataclass(frozen=True)
class IBISSettings:
    """When particles are resampled, and how they are moved."""

    # With fewer effective particles than this share they are resampled and moved: one half, as is
    # usual. Later, few ancestors would carry the weight; earlier, moves are made in vain.
    ess_resample_below: float = 0.5
    # A decision that leaves less than the first share is tempered, in parts that leave the second
    # each, and at most the third of what there was, so that every part gets somewhere.
    ess_temper_below: float = 0.1
    ess_temper_target: float = 0.3
    ess_temper_factor: float = 0.9
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
class ParticleSet:
    """Weighted particles of a posterior.

    values: (N, K). log_weights: (N,), the largest zero. log_evidence: of the decisions so far.
    """

    values: Floats
    log_weights: Floats
    log_evidence: float = 0.0

    @staticmethod
    def from_prior(
        rng: np.random.Generator, resolved_prior: ResolvedPrior, count: int
    ) -> ParticleSet:
        """As many draws of the prior, of equal weight."""
        return ParticleSet(resolved_prior.draw(rng, count), np.zeros(count))

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
        return ParticleSet(
            self.values, log_weights - log_weights.max(), self.log_evidence + float(log_mean)
        )

    def resampled(self, rng: np.random.Generator) -> ParticleSet:
        """Particles of equal weight, each a copy of one drawn by weight.

        The evidence is that of the particles before.
        """
        return replace(
            self,
            values=self.values[systematic_resample(rng, self.weights)],
            log_weights=np.zeros(len(self.values)),
        )


def assimilate(
    rng: np.random.Generator,
    particles: ParticleSet,
    rows: Floats,
    chosen: int,
    decisions_so_far: Callable[[], Decisions],
    resolved_prior: ResolvedPrior,
    noise: NoiseArguments = NORMAL,
) -> ParticleSet:
    """The particles after one more decision, the choice of that one of rows (M, K).

    decisions_so_far: returns all decisions up to this one; called only when particles have to move.
    """
    exponent = 0.0
    while True:
        log_factors = log_choice_probabilities(rows, chosen, particles.values, noise)
        count, rest = len(log_factors), 1.0 - exponent
        # Temper: as much of the decision as leaves enough effective particles.
        if (
            effective_size(particles.log_weights + rest * log_factors)
            < IBIS.ess_temper_below * count
        ):
            enough = min(
                IBIS.ess_temper_target * count, IBIS.ess_temper_factor * particles.effective
            )
            rest = _tempering_exponent(particles.log_weights, log_factors, enough, rest)
        # So much of the decision is in the weights now.
        exponent += rest
        particles = particles.reweighted(rest * log_factors)
        if exponent >= 1.0:
            break
        particles = _rejuvenate(
            rng, particles.resampled(rng), decisions_so_far(), resolved_prior, exponent, noise
        )
    if particles.effective < IBIS.ess_resample_below * len(particles.values):
        particles = _rejuvenate(
            rng, particles.resampled(rng), decisions_so_far(), resolved_prior, 1.0, noise
        )
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


def _rejuvenate(
    rng: np.random.Generator,
    particles: ParticleSet,
    decisions: Decisions,
    resolved_prior: ResolvedPrior,
    exponent: float,
    noise: NoiseArguments,
) -> ParticleSet:
    """The particles after cycles of moves for each, until they have forgotten where they were.

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
    values = _with_random_constants(rng, resolved_prior, particles.values)
    whitened = sampler.whitening_from_draws(rng, particles.values)
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
    moved, acceptance = np.empty_like(particles.values), np.empty(len(x))
    mode_offset = np.zeros(len(decisions))
    for _ in range(IBIS.max_cycles):
        move_particles(rng, problem, prior_scale, mode_offset, x, moved, acceptance)
        if _max_correlation(initial, x) < IBIS.max_correlation:
            break
    return replace(particles, values=moved)


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


def _max_correlation(before: Floats, after: Floats) -> float:
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


@dataclass(frozen=True, eq=False)
class IBISSampler:
    """The sampler: one set of particles a chain, one decision an iteration of its warm-up.

    particles: as many as there are to be draws. noise: of the utilities.
    """

    decisions: Decisions
    resolved_prior: ResolvedPrior
    particles: int
    noise: NoiseArguments = NORMAL

    def __post_init__(self) -> None:
        check_proper_prior(self.resolved_prior)

    @property
    def name(self) -> str:
        """The name by which users ask for it."""
        return "ibis"

    def init(self, rng: np.random.Generator, position: Floats | None) -> State:
        """The state before the first decision: draws of the prior.

        `position` is not used, as particles have to begin in the prior's law.
        """
        particles = ParticleSet.from_prior(rng, self.resolved_prior, self.particles)
        return _to_state(particles, n_assimilated=0)

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
        chosen = int(d.chosen_row[t] - d.start[t])
        return assimilate(
            rng, particles, rows, chosen, lambda: d.first(t + 1), self.resolved_prior, self.noise
        )

    def sample(
        self, rng: np.random.Generator, state: State, draws: int, thin: int
    ) -> tuple[State, Draws, Stats]:
        """The next particles (draws, K), and two stats of each.

        These are the log of its weight, times N, before it was picked, and the log evidence.
        """
        first, particles = int(state["n_drawn"][0]), _from_state(state)
        parents = state["parents"][first : first + draws].astype(np.int64)
        values = particles.values[parents]
        drawn = {"value": values}
        stats = {
            "log_weight": np.log(len(particles.values) * particles.weights[parents]),
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
        "values": particles.values,
        "log_weights": particles.log_weights,
        "log_evidence": np.array([particles.log_evidence]),
        "n_assimilated": np.array([n_assimilated], dtype=np.float64),
        "n_drawn": np.zeros(1),
    }


def _from_state(state: State) -> ParticleSet:
    """The particles that `_to_state` made into arrays."""
    return ParticleSet(state["values"], state["log_weights"], float(state["log_evidence"][0]))
