"""Learning from decisions one at a time: each one in, the posterior out.

A set of weighted particles carries the posterior (Chopin 2002): a decision multiplies each weight
by the probability of the choice, and now and then the particles are resampled and moved. What a
particle is depends on the model (`samplers/particle_filter.py`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from revealed._types import Floats
from revealed._validation import Seed, as_generator, as_seed_number, check_count
from revealed.data.blocks import Block
from revealed.data.decisions import Decisions
from revealed.io.netcdf import read_file, write_file
from revealed.models.choice import ChoiceModel
from revealed.models.description import from_description
from revealed.models.groups import Pooled
from revealed.models.noise import KnownNoise
from revealed.results.base import Posterior
from revealed.results.classes import make_posterior
from revealed.results.load import read_posterior
from revealed.results.separate import join_parts
from revealed.results.storage import (
    FORMAT,
    array_reader,
    data_groups,
    model_attributes,
    read_data,
)
from revealed.samplers.observations import ObservationChecks, refuse_labels
from revealed.samplers.particle_filter import ParticleFilter
from revealed.samplers.particle_filters import ParticleFilters
from revealed.samplers.particle_law import Observation

MIN_PARTICLES = 100  # with fewer, resampling leaves too few different values to move on from


class OnlineLearner:
    """Learn from decisions as they come, with a set of particles (Chopin 2002).

    A decision costs as much as its probability under every particle; now and then the particles
    are resampled and move, which costs as much as all decisions so far. The same seed and
    decisions give the same particles.

    Parameters
    ----------
    model
        What is assumed: any ``ChoiceModel`` with known transitions and a prior that is not flat.
        Separate groups have a set of particles each, made when they are first met; hierarchical
        ones together with correlated noise or lapses are refused.
    names
        The names of the K coefficients, or how many there are.
    particles
        How many values carry the posterior.
    seed
        Of all random numbers: a number, a numpy Generator or None.
    blocks
        The blocks of coefficients, as in ``Decisions``.
    actions
        Under correlated noise and with habits, the labels of all actions that may be offered.

    Examples
    --------
    >>> model = rv.ChoiceModel(prior=rv.Normal(1.0))
    >>> learner = rv.OnlineLearner(model, ["price", "speed"], seed=1)
    >>> learner.update([[1.0, 0.0], [0.0, 1.0]], chosen=1)
    <OnlineLearner: 1 decisions, 2 coefficients, 1000 particles, ...>
    >>> len(learner), bool(learner.mean[1] > learner.mean[0])
    (1, True)
    """

    def __init__(
        self,
        model: ChoiceModel,
        names: Sequence[str] | int,
        particles: int = 1000,
        seed: Seed = 0,
        *,
        blocks: Sequence[Block] | None = None,
        actions: Any = None,
    ) -> None:
        # Mistakes in arguments are found before anything is drawn.
        if not isinstance(model, ChoiceModel):
            raise ValueError(
                "an online learner takes the model first, then the names: "
                f"OnlineLearner(rv.ChoiceModel(prior=...), names); the first is {model!r}"
            )
        count = check_count("particles", particles, MIN_PARTICLES)
        number = as_seed_number(seed)
        if isinstance(names, int):
            names = [f"v{k}" for k in range(names)]
        if not len(names):
            raise ValueError(
                "there is nothing to learn: "
                "give the names of the coefficients, or how many there are"
            )
        self.model = model
        # A decision with a single action says nothing; it only carries names and blocks.
        self._no_decision = Decisions(
            np.zeros((1, len(names))), [0, 1], [0], names=names, blocks=blocks
        )
        # In sorted order, as noise covariances and habits have them.
        self._actions: list[Any] = [] if actions is None else np.unique(actions).tolist()
        refuse_labels(model, actions)
        self._checks = ObservationChecks(model, self._no_decision, self._actions)
        self._filters = ParticleFilters(model, self._no_decision, count, number, self._actions)

    @property
    def names(self) -> tuple[str, ...]:
        """(K,) the names of the coefficients."""
        return self._no_decision.names

    @property
    def groups(self) -> tuple[Hashable, ...]:
        """The labels of the groups met so far; none where all are pooled."""
        return tuple(self._filters.groups)

    def __len__(self) -> int:
        """How many decisions have been learnt from."""
        return len(self._filters.seen)

    def __repr__(self) -> str:
        groups = "" if isinstance(self.model.groups, Pooled) else f"{len(self.groups)} groups, "
        return (
            f"<OnlineLearner: {len(self)} decisions, {groups}{len(self.names)} coefficients, "
            f"{self._filters.count} particles, {self.effective_sample_size:.0f} effective, "
            f"log evidence {self.log_evidence:.2f}>"
        )

    def update(
        self, rows: Any, chosen: Any = None, *, group: Hashable = None, actions: Any = None
    ) -> OnlineLearner:
        """Learn from one decision, or from Decisions one after the other.

        Parameters
        ----------
        rows
            (M, K) the actions of one decision; or Decisions with choices.
        chosen
            Which of the rows was chosen, counted from 0; Decisions know their own choices.
        group
            Who decided, where the model has groups; Decisions have a column.
        actions
            M labels of the rows, under correlated noise and with habits; Decisions have theirs.

        Returns
        -------
        OnlineLearner
            Itself, so that updates can be chained.
        """
        if isinstance(rows, Decisions):
            for name, given in (("chosen", chosen), ("group", group), ("actions", actions)):
                if given is not None:
                    raise ValueError(f"Decisions know their own choices; leave out {name}")
            # One after the other, as if they had come that way.
            for given in self._checks.decisions(rows, len(self), self._filters.first_group):
                self._filters.learn(given)
            return self
        # Checked as Decisions would be, so that the sentences are the same.
        offered = self._checks.rows(rows, len(self))
        if not isinstance(chosen, int | np.integer) or not 0 <= chosen < len(offered):
            raise ValueError(
                f"decision {len(self)}: chosen is {chosen!r}, "
                f"but {len(offered)} actions are offered; it counts from 0"
            )
        labels = self._checks.labels(offered, actions, len(self))
        self._filters.learn((offered, int(chosen), self._check_group(group), labels))
        return self

    def _check_group(self, group: Hashable) -> Hashable:
        """The label of who decides."""
        return self._checks.group(group, len(self), self._filters.first_group)

    @property
    def decisions(self) -> Decisions:
        """All that was learnt from, as Decisions."""
        if not len(self):
            raise ValueError("the learner has not seen any decision yet")
        return self._filters.decisions

    @property
    def particles(self) -> Floats:
        """(N, K) values, which with `weights` stand for the posterior; (N, G, K) of groups."""
        return self._filters.joined("values", axis=1)

    @property
    def weights(self) -> Floats:
        """(N,) the weights of the particles, which sum to one; (N, G) of separate groups."""
        return self._filters.joined("weights", axis=1)

    @property
    def effective_sample_size(self) -> float:
        """How many particles of equal weight would be worth as much: 1 / sum of squares.

        Of separate groups the least.
        """
        return self._filters.effective

    @property
    def log_evidence(self) -> float:
        """The log probability of all choices so far under prior and model.

        The probability is estimated without bias, also where noise is correlated and that of each
        choice is an unbiased estimate itself.
        """
        return self._filters.log_evidence

    @property
    def mean(self) -> Floats:
        """(K,) posterior means; (G, K) where there are groups."""
        return self._filters.joined("mean", axis=0)

    @property
    def sd(self) -> Floats:
        """(K,) posterior standard deviations; (G, K) where there are groups."""
        return self._filters.joined("sd", axis=0)

    def probabilities(self, rows: Any, *, group: Hashable = None, actions: Any = None) -> Floats:
        """How likely each action is to be chosen next, averaged over the posterior.

        Parameters
        ----------
        rows
            (M, K) the actions that would be offered.
        group
            Who decides, where the model has groups; also one not met before.
        actions
            M labels of the rows, under correlated noise and with habits.

        Returns
        -------
        array
            (M,) probabilities, which sum to one.

        Examples
        --------
        >>> model = rv.ChoiceModel(prior=rv.Normal(1.0))
        >>> rv.OnlineLearner(model, 1).probabilities([[0.5], [0.5]])
        array([0.5, 0.5])
        """
        offered, label = self._checks.rows(rows, len(self)), self._check_group(group)
        labels = self._checks.labels(offered, actions, len(self))
        seen = Observation(offered, 0, actions=labels)
        own, groups = self._filters.of(label), self._filters.groups
        # Seeded by how much was seen, so that asking does not change what is learnt next.
        rng = np.random.default_rng([self._filters.seed, len(self)])
        # Every particle's probabilities, averaged by the weights.
        found = own.law.probabilities(rng, own.particles, seen, groups.get(label))
        return np.asarray(own.weights @ found)

    def known_noise(self, *, group: Hashable = None) -> KnownNoise:
        """The noise as predictions need it, with the lapses of every particle where it has them.

        Parameters
        ----------
        group
            Whose, where the model has groups.
        """
        return self._filters.known_noise(self._check_group(group))

    def draw(self, seed: Seed = None, *, group: Hashable = None) -> Floats:
        """One value from the posterior.

        Parameters
        ----------
        seed
            A numpy Generator, which is used; or a number, or None.
        group
            Whose, where the model has groups; also of one not met before.

        Returns
        -------
        array
            (K,) that of one of the particles, picked by its weight.
        """
        rng, label = as_generator(seed), self._check_group(group)
        own, groups = self._filters.of(label), self._filters.groups
        picked = own.particles.picked(np.array([rng.choice(len(own.weights), p=own.weights)]))
        return np.asarray(own.law.value_of(rng, picked, groups.get(label))[0])

    def posterior(self) -> Any:
        """The posterior so far, of the class that `rv.fit` gives.

        Returns
        -------
        Posterior
            One chain of as many draws as there are particles, picked by their weights.
        """
        data, filters = self.decisions, self._filters
        if filters.missing is not None:
            raise ValueError(f"there is no posterior yet: {filters.missing}")
        if not filters.separate:
            return self._posterior_of(filters.of(None), self.model, data)
        pooled = self.model.replace(groups=Pooled())
        parts = {
            label: self._posterior_of(own, pooled, own.decisions)
            for label, own in filters.filters.items()
        }
        return join_parts(parts, data, self.model, self._settings(filters.seed))

    def _posterior_of(self, own: ParticleFilter, model: ChoiceModel, data: Decisions) -> Posterior:
        """What one set of particles stands for."""
        draws, stats = own.draws_and_stats()
        return make_posterior(model, data, draws, own.sampler, stats, self._settings(own.seed))

    def _settings(self, seed: int) -> dict[str, Any]:
        """What a learner with this seed is made with, besides model and coefficients."""
        actions = {"actions": self._actions} if self._actions else {}
        return {"seed": seed, "particles": self._filters.count, **actions}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file from which `OnlineLearner.load` goes on exactly.

        `rv.load` and ArviZ read it as a posterior, once there is one.

        Parameters
        ----------
        path
            Usually ends with .nc; the file is written whole or not at all.
        """
        data, filters = self.decisions, self._filters
        settings = self._settings(filters.seed)
        attributes = model_attributes(self.model, data, ParticleFilter.sampler, settings)
        groups = data_groups(data)
        if filters.missing is None:
            posterior = self.posterior()
            attributes, groups = posterior.attributes(), posterior.groups_of_arrays(False)
        attributes["generator"] = json.dumps(filters.states)
        write_file(path, attributes, groups | filters.variables())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> OnlineLearner:
        """Read what `save` wrote, and go on as if nothing had happened.

        Parameters
        ----------
        path
            A file that `save` wrote.

        Returns
        -------
        OnlineLearner
            With the same particles, decisions and state of the generator.
        """
        (learner,) = read_file(path, "a posterior", FORMAT, lambda file: (cls._read(file),))
        if learner is None:
            raise ValueError(
                f"{path} holds a posterior, but not a learner that could go on; "
                "OnlineLearner.save writes those"
            )
        return learner

    @classmethod
    def _read(cls, file: Any) -> OnlineLearner | None:
        """The learner in an open file; None where it holds a posterior only."""
        if "generator" not in file.attrs:
            return None
        model, data, settings = read_model_and_data(file)
        assert isinstance(model, ChoiceModel)
        learner = cls(
            model,
            data.names,
            settings["particles"],
            settings["seed"],
            blocks=data.blocks,
            actions=settings.get("actions"),
        )
        # Decisions were stored stacked; the learner keeps them one by one.
        for given in learner._checks.decisions(data, 0, None):
            learner._filters.learn(given, remembered=True)
        states = json.loads(file.attrs["generator"])
        learner._filters.restore(file, array_reader(file), states)
        return learner


def read_model_and_data(file: Any) -> tuple[Any, Any, Any]:
    """Model, data and settings of an open file, also where it has no posterior yet."""
    if "model" in file.attrs:
        model = from_description(json.loads(file.attrs["model"]))
        return model, read_data(file), json.loads(file.attrs["settings"])
    found = read_posterior(file)
    return found.model, found.data, found.settings
