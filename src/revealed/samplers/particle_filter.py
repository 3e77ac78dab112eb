"""One set of particles with all it has seen, and which law it follows under which model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from revealed._types import Floats
from revealed.data.decisions import Decisions
from revealed.io.netcdf import Variables
from revealed.kernels.noise import count_coordinates
from revealed.models.choice import ChoiceModel
from revealed.models.correlated_noise import resolve_noise
from revealed.models.groups import Hierarchical
from revealed.models.habit import with_habits
from revealed.models.noise import Noise
from revealed.models.over_time import Constant
from revealed.models.priors import ResolvedPrior, resolve_prior
from revealed.models.transitions import Dirichlet
from revealed.samplers.base import Draws, Stats
from revealed.samplers.correlated_law import CorrelatedLaw
from revealed.samplers.ibis import ValueLaw
from revealed.samplers.noise_law import NoiseLaw
from revealed.samplers.observations import tells_actions_apart
from revealed.samplers.particle_law import Observation, ParticleLaw, ParticleSet, assimilate
from revealed.samplers.particles import systematic_resample
from revealed.samplers.population_law import PopulationLaw


def make_law(model: ChoiceModel, coefficients: Decisions, actions: Sequence[Any]) -> ParticleLaw:
    """What particles are draws of under this model, for one set of them.

    coefficients: decisions that carry names and blocks. actions: all labels that may be offered.
    """
    if not isinstance(model.over_time, Constant):
        raise ValueError(
            "an online learner takes a value for constant; give over_time=rv.Constant(), or fit "
            "decisions with times by rv.fit, whose posterior has update"
        )
    if isinstance(model.transitions, Dirichlet):
        raise ValueError(
            "an online learner is shown the rows of each decision, so transitions cannot be "
            "unknown; use rv.fit"
        )
    prior = resolve_prior(model.value_prior, coefficients)
    if isinstance(model.noise, Noise):
        return _independent_law(model, model.noise, prior, actions)
    if isinstance(model.groups, Hierarchical):
        raise ValueError(
            "an online learner has hierarchical groups or correlated noise, not both; change one "
            "of the two"
        )
    _check_labels_given("under correlated noise", actions)
    width, count = len(coefficients.names), len(actions)
    every = Decisions(np.zeros((count, width)), [0, count], actions=actions)
    resolved = resolve_noise(model.noise, every)
    return CorrelatedLaw(prior, resolved, coefficients.names, coefficients.blocks)


def _independent_law(
    model: ChoiceModel, noise: Noise, prior: ResolvedPrior, actions: Sequence[Any]
) -> ParticleLaw:
    """What particles are draws of under independent noise, parts of which may be unknown."""
    kernel = noise.kernel()
    unknown = count_coordinates(kernel)
    if count_coordinates(noise.law()):
        raise ValueError("an online learner infers no df: give a number in rv.StudentNoise(df)")
    if isinstance(model.groups, Hierarchical):
        if unknown:
            raise ValueError(
                "an online learner has hierarchical groups, or a noise of which something is "
                "inferred, such as lapses; give groups=rv.Separate() or rv.Pooled(), a noise that "
                "is known, or use rv.fit"
            )
        return PopulationLaw(prior, model.groups.sd_scale, noise.law())
    if not unknown:
        return ValueLaw(prior, noise.law())
    if not tells_actions_apart(model):
        return NoiseLaw(prior, kernel)
    _check_labels_given("where lapses follow habits", actions)
    return NoiseLaw(prior, with_habits(kernel, len(actions)), tuple(actions))


def _check_labels_given(where: str, actions: Sequence[Any]) -> None:
    """Refuse a learner that is not told which actions there are."""
    if not len(actions):
        raise ValueError(
            f"{where} a learner has to know from the start which actions there are; "
            "give all their labels as OnlineLearner(..., actions=[...])"
        )


def stack_observations(seen: Sequence[Observation], coefficients: Decisions) -> Decisions:
    """These observations as Decisions, with the names and blocks of `coefficients`."""
    start = np.concatenate([[0], np.cumsum([len(one.rows) for one in seen])])
    labels = [label for one in seen for label in one.actions]
    return Decisions(
        np.vstack([one.rows for one in seen]),
        start,
        [one.chosen for one in seen],
        names=coefficients.names,
        blocks=coefficients.blocks,
        actions=labels or None,
        groups=None if seen[0].group is None else [one.group for one in seen],
    )


class ParticleFilter:
    """Particles, their generator, and the decisions that they have seen.

    seed: of the generator. coefficients: decisions that carry names and blocks.
    """

    sampler: ClassVar[str] = "ibis"
    """As `rv.fit` calls the same algorithm."""

    def __init__(self, law: ParticleLaw, count: int, seed: int, coefficients: Decisions) -> None:
        self.law, self.seed, self.coefficients = law, seed, coefficients
        self.rng = np.random.Generator(np.random.PCG64(seed))
        self.particles = law.draw_prior(self.rng, count)
        # kept, because moving the particles needs the likelihood of all decisions so far
        self.seen: list[Observation] = []

    def learn(self, seen: Observation) -> None:
        """Learn from one decision; if that fails, be as before it."""
        state = self.rng.bit_generator.state
        try:
            self.particles = assimilate(
                self.rng,
                self.law,
                self.particles,
                seen,
                lambda: stack_observations([*self.seen, seen], self.coefficients),
            )
        except BaseException:  # Ctrl-C too
            self.rng.bit_generator.state = state
            raise
        self.seen.append(seen)

    @property
    def decisions(self) -> Decisions:
        """All that was learnt from."""
        return stack_observations(self.seen, self.coefficients)

    @property
    def values(self) -> Floats:
        """(N, K) values, or (N, G, K) of G groups."""
        return self.law.values(self.particles)

    @property
    def weights(self) -> Floats:
        """(N,) weights that sum to one."""
        return self.particles.weights

    @property
    def mean(self) -> Floats:
        """(K,) posterior means of the value, or (G, K)."""
        return self._average(self.values)

    @property
    def sd(self) -> Floats:
        """(K,) posterior sds of the value, or (G, K)."""
        return np.sqrt(self._average((self.values - self.mean) ** 2))

    def _average(self, numbers: Floats) -> Floats:
        """The mean over particles (N, ...), by their weights."""
        flat = numbers.reshape(len(numbers), -1)
        return np.asarray(self.particles.weights @ flat).reshape(numbers.shape[1:])

    def draws_and_stats(self) -> tuple[Draws, Stats]:
        """One chain of draws of every parameter, picked by weight, and their statistics.

        Seeded by how much was seen, so that asking does not change what is learnt next.
        """
        rng = np.random.default_rng([self.seed, len(self.seen)])
        weights = self.particles.weights
        # systematic resampling: each particle as often as its weight says, rounded up or down
        parents = systematic_resample(rng, weights)
        count = len(parents)
        # the weights relative to equal ones, for whoever wants to reweight
        stats = {
            "log_weight": np.log(count * weights[parents])[None],
            "log_evidence": np.full((1, count), self.particles.log_evidence),
        }
        drawn = self.law.draws(rng, self.particles.picked(parents))
        return {name: array[None] for name, array in drawn.items()}, stats

    def variables(self) -> Variables:
        """The particles as arrays of a file; empty ones are left out."""
        particles = self.particles
        found: Variables = {}
        for name, part in particles.parts.items():
            dims = ("particle", *(f"{name}_{i}" for i in range(1, part.ndim)))
            found[name] = (dims, part)
        for name, array in particles.shared.items():
            found[name] = ((f"{name}_0",), array)
        found["log_weights"] = (("particle",), particles.log_weights)
        found["log_evidence"] = (("one",), np.array([particles.log_evidence]))
        return {name: entry for name, entry in found.items() if entry[1].size}

    def restore(self, get: Any, folder: str, state: Any) -> None:
        """Set the particles that `variables` gave, and the generator's state.

        get: reads an array by its name below this folder of a file, None where it is missing.
        """
        initial = self.particles

        def read(name: str, default: Floats) -> Floats:
            found = get(f"{folder}/{name}", optional=True)
            return default if found is None else np.ascontiguousarray(found)

        # what is missing is as empty as it was before the first decision
        self.particles = ParticleSet(
            {name: read(name, part) for name, part in initial.parts.items()},
            read("log_weights", initial.log_weights),
            float(get(f"{folder}/log_evidence")[0]),
            {name: read(name, array) for name, array in initial.shared.items()},
        )
        self.rng.bit_generator.state = state
