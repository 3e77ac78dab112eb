"""All that an online learner has learnt: one set of particles, or one for each separate group."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from revealed._types import Floats
from revealed.data.decisions import Decisions
from revealed.io.netcdf import Variables
from revealed.io.old_files import group_name
from revealed.models.choice import ChoiceModel
from revealed.models.groups import Hierarchical, Separate
from revealed.models.lapse import KnownLapse
from revealed.models.noise import KnownNoise, Noise
from revealed.samplers.observations import CheckedDecision
from revealed.samplers.particle_filter import ParticleFilter, make_law, stack_observations
from revealed.samplers.particle_law import Observation
from revealed.samplers.separate import seed_for


class ParticleFilters:
    """Particles under any model, with the decisions and groups that they have met.

    coefficients: decisions that carry names and blocks. count: of particles in each set. actions:
    all labels that may be offered, none where noise is independent.
    """

    def __init__(
        self,
        model: ChoiceModel,
        coefficients: Decisions,
        count: int,
        seed: int,
        actions: Sequence[Any],
    ) -> None:
        self.model, self.coefficients, self.actions = model, coefficients, actions
        self.count, self.seed = count, seed
        self.law = make_law(model, coefficients, actions)
        self.separate = isinstance(model.groups, Separate)
        self.seen: list[Observation] = []
        # labels with their positions, in the order of first appearance
        self.groups: dict[Hashable, int] = {}
        # under None where one set stands for all
        self.filters: dict[Hashable, ParticleFilter] = {}
        if not self.separate:
            self.filters[None] = self._make_filter(seed)

    def _make_filter(self, seed: int) -> ParticleFilter:
        """A set of particles that has seen nothing."""
        return ParticleFilter(self.law, self.count, seed, self.coefficients)

    def of(self, group: Hashable) -> ParticleFilter:
        """The particles that stand for a group; fresh ones where it is separate and new."""
        found = self.filters.get(group if self.separate else None)
        return found or self._make_filter(seed_for(self.seed, len(self.groups)))

    @property
    def first_group(self) -> Hashable:
        """The label met first, None where there is none."""
        return next(iter(self.groups), None)

    def learn(self, given: CheckedDecision, remembered: bool = False) -> None:
        """Learn from one decision; if that fails, be as before it.

        remembered: whether the particles, which are to be restored, have learnt from it already.
        """
        rows, chosen, group, actions = given
        position = self.groups.get(group, len(self.groups))
        seen, own = Observation(rows, chosen, group, position, actions), self.of(group)
        if remembered:
            own.seen.append(seen)
        else:
            own.learn(seen)
        # noted only now, when nothing can fail any more
        self.seen.append(seen)
        if group is not None:
            self.groups[group] = position
        self.filters[group if self.separate else None] = own

    @property
    def decisions(self) -> Decisions:
        """All that was learnt from, in the order in which it came."""
        return stack_observations(self.seen, self.coefficients)

    def joined(self, name: str, axis: int) -> Floats:
        """An array of the only set; or those of separate groups side by side along an axis."""
        found = [getattr(own, name) for own in self.filters.values()]
        if not self.separate:
            return np.asarray(found[0])
        # a set of the group to come shows the shape where there is none yet
        return np.stack(found, axis=axis) if found else self._no_group(name, axis)

    def _no_group(self, name: str, axis: int) -> Floats:
        """What `joined` gives before any group is met."""
        own = np.asarray(getattr(self.of(None), name))
        return np.empty((*own.shape[:axis], 0, *own.shape[axis:]))

    @property
    def effective(self) -> float:
        """The least effective number of particles of any set."""
        return min(
            (own.particles.effective for own in self.filters.values()), default=float(self.count)
        )

    @property
    def log_evidence(self) -> float:
        """Of all decisions."""
        return float(sum(own.particles.log_evidence for own in self.filters.values()))

    @property
    def missing(self) -> str | None:
        """Why there is no posterior of the model yet; None where there is."""
        if isinstance(self.model.groups, Hierarchical) and len(self.groups) < 2:
            return "a population needs decisions of two groups or more"
        for own in self.filters.values():
            offered = {label for seen in own.seen for label in seen.actions}
            for label in self.actions:
                if label not in offered:
                    return f"{label!r} has not been offered yet, and every action has to be once"
        return None

    def known_noise(self, group: Hashable) -> KnownNoise:
        """The noise of who decides, with the lapses of every particle where it has them."""
        noise, own = self.model.noise, self.of(group)
        if not isinstance(noise, Noise):
            raise ValueError(
                "the noise of particles is told where it is independent; posterior() has "
                "covariances"
            )
        if noise.lapse is None:
            return noise
        # rates and habits are functions of the particles: nothing is drawn for them
        drawn = own.law.draws(np.random.default_rng(0), own.particles)
        labels = self.actions if "habit" in drawn else ()
        habit = dict(zip(labels, drawn["habit"].T, strict=True)) if labels else None
        return KnownLapse(noise, drawn["lapse"], habit)

    def variables(self) -> dict[str, Variables]:
        """All particles as groups of arrays of a file."""
        return {_folder(i): own.variables() for i, own in enumerate(self.filters.values())}

    @property
    def states(self) -> list[Any]:
        """The states of the generators, which make a learner go on exactly."""
        return [own.rng.bit_generator.state for own in self.filters.values()]

    def restore(self, file: Any, get: Any, states: Any) -> None:
        """Set the particles of an open file and the generators; decisions were learnt before.

        get: reads an array by its name. Older files have one state, not a list, and version 0.1.0
        called the group of arrays otherwise.
        """
        given = states if isinstance(states, list) else [states]
        for i, (own, state) in enumerate(zip(self.filters.values(), given, strict=True)):
            own.restore(get, group_name(file, _folder(i)), state)


def _folder(i: int) -> str:
    """Where a file has the i-th set of particles."""
    return f"particles_{i}" if i else "particles"
