"""Learning from decisions one at a time: each one in, the posterior out.

A set of weighted particles carries the posterior (Chopin 2002): a decision multiplies each weight
by the probability of the choice, and now and then the particles are resampled and moved.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from revealed._types import Floats
from revealed._validation import Seed, as_generator, as_seed_number, check_count
from revealed.data.decisions import Block, Decisions
from revealed.io.netcdf import Variables, read_file, write_file
from revealed.io.old_files import group_name
from revealed.models.choice import ChoiceModel
from revealed.models.priors import DEFAULT_SD, Normal, Prior, resolve_prior
from revealed.results.choice import ChoicePosterior
from revealed.results.load import read_posterior
from revealed.results.storage import FORMAT, array_reader
from revealed.samplers.ibis import ParticleSet, assimilate
from revealed.samplers.particles import (
    check_proper_prior,
    choice_probabilities,
    dense_rows,
    draw_prior_sds,
    systematic_resample,
)

MIN_PARTICLES = 100  # with fewer, resampling leaves too few different values to move on from


class OnlineLearner:
    """Learn from decisions as they come, with a set of particles (Chopin 2002).

    A decision costs as much as its probability under every particle; now and then the particles
    are resampled and move, which costs as much as all decisions so far. The same seed and
    decisions give the same particles.

    Parameters
    ----------
    names
        The names of the K coefficients, or how many there are.
    prior
        Default: ``Normal(50.0)``; a flat one is refused.
    particles
        How many values carry the posterior.
    seed
        Of all random numbers: a number, a numpy Generator or None.
    blocks
        The blocks of coefficients, as in ``Decisions``.

    Examples
    --------
    >>> learner = rv.OnlineLearner(["price", "speed"], rv.Normal(1.0), seed=1)
    >>> learner.update([[1.0, 0.0], [0.0, 1.0]], chosen=1)
    <OnlineLearner: 1 decisions, 2 coefficients, 1000 particles, ...>
    >>> len(learner), bool(learner.mean[1] > learner.mean[0])
    (1, True)
    """

    def __init__(
        self,
        names: Sequence[str] | int,
        prior: Prior | None = None,
        particles: int = 1000,
        seed: Seed = 0,
        *,
        blocks: Sequence[Block] | None = None,
    ) -> None:
        # Mistakes in arguments are found before anything is drawn.
        count = check_count("particles", particles, MIN_PARTICLES)
        seed_number = as_seed_number(seed)
        if isinstance(names, int):
            names = [f"v{k}" for k in range(names)]
        if not len(names):
            raise ValueError(
                "there is nothing to learn: "
                "give the names of the coefficients, or how many there are"
            )
        self.prior: Prior = Normal(DEFAULT_SD) if prior is None else prior
        # A decision with a single action says nothing; it only carries names and blocks.
        self._no_decision = Decisions(
            np.zeros((1, len(names))), [0, 1], [0], names=names, blocks=blocks
        )
        self._resolved_prior = resolve_prior(self.prior, self._no_decision)
        check_proper_prior(self._resolved_prior)
        self._rng = np.random.Generator(np.random.PCG64(seed_number))
        self._particles = ParticleSet.from_prior(self._rng, self._resolved_prior, count)
        self._rows: list[Floats] = []
        self._chosen: list[int] = []
        self._settings: dict[str, Any] = {"seed": seed_number, "particles": count}

    @property
    def names(self) -> tuple[str, ...]:
        """(K,) the names of the coefficients."""
        return self._no_decision.names

    def __len__(self) -> int:
        """How many decisions have been learnt from."""
        return len(self._chosen)

    def __repr__(self) -> str:
        return (
            f"<OnlineLearner: {len(self)} decisions, {len(self.names)} coefficients, "
            f"{len(self.particles)} particles, {self.effective_sample_size:.0f} effective, "
            f"log evidence {self.log_evidence:.2f}>"
        )

    def update(self, rows: Any, chosen: Any = None) -> OnlineLearner:
        """Learn from one decision, or from Decisions one after the other.

        Parameters
        ----------
        rows
            (M, K) the actions of one decision; or Decisions with choices.
        chosen
            Which of the rows was chosen, counted from 0; Decisions know their own choices.

        Returns
        -------
        OnlineLearner
            Itself, so that updates can be chained.
        """
        if isinstance(rows, Decisions):
            if chosen is not None:
                raise ValueError("Decisions know their own choices; leave out chosen")
            self._check_same_coefficients(rows)
            # One after the other, as if they had come that way.
            for first, last, row in zip(
                rows.start[:-1], rows.start[1:], rows.chosen_row, strict=True
            ):
                self._learn(dense_rows(rows.rows[first:last]), int(row - first))
            return self
        # Checked as Decisions would be, so that the sentences are the same.
        offered = self._check_rows(rows)
        if not isinstance(chosen, int | np.integer) or not 0 <= chosen < len(offered):
            raise ValueError(
                f"decision {len(self)}: chosen is {chosen!r}, "
                f"but {len(offered)} actions are offered; it counts from 0"
            )
        self._learn(offered, int(chosen))
        return self

    def _learn(self, rows: Floats, chosen: int) -> None:
        """Learn from one decision; if that fails, be as before it."""
        before = len(self)
        # Kept, because moving the particles needs the likelihood of all decisions so far.
        self._rows.append(rows)
        self._chosen.append(chosen)
        generator_state = self._rng.bit_generator.state
        try:
            self._particles = assimilate(
                self._rng,
                self._particles,
                rows,
                chosen,
                lambda: self.decisions,
                self._resolved_prior,
            )
        except BaseException:  # Ctrl-C too
            del self._rows[before:], self._chosen[before:]
            self._rng.bit_generator.state = generator_state
            raise

    def _check_rows(self, rows: Any) -> Floats:
        """(M, K) the rows as finite numbers; `Decisions` has all the sentences for others."""
        return dense_rows(Decisions(rows, [0, len(rows)], names=self.names, ids=[len(self)]).rows)

    def _check_same_coefficients(self, decisions: Decisions) -> None:
        """Refuse decisions with other coefficients or blocks."""
        if decisions.names != self.names:
            raise ValueError(
                f"the decisions have the coefficients {', '.join(decisions.names)}, "
                f"but the learner has {', '.join(self.names)}"
            )
        # Blocks decide what the prior constrains, so they must agree as well.
        if decisions.blocks != self._no_decision.blocks:
            raise ValueError("the decisions have other blocks of coefficients than the learner")

    @property
    def decisions(self) -> Decisions:
        """All that was learnt from, as Decisions."""
        if not len(self):
            raise ValueError("the learner has not seen any decision yet")
        start = np.concatenate([[0], np.cumsum([len(rows) for rows in self._rows])])
        return Decisions(
            np.vstack(self._rows),
            start,
            self._chosen,
            names=self.names,
            blocks=self._no_decision.blocks,
        )

    @property
    def particles(self) -> Floats:
        """(N, K) values; with `weights` they stand for the posterior."""
        return self._particles.values

    @property
    def weights(self) -> Floats:
        """(N,) the weights of the particles; they sum to one."""
        return self._particles.weights

    @property
    def effective_sample_size(self) -> float:
        """How many particles of equal weight would be worth as much: 1 / sum of squares."""
        return self._particles.effective

    @property
    def log_evidence(self) -> float:
        """The log probability of all choices so far under prior and model."""
        return self._particles.log_evidence

    @property
    def mean(self) -> Floats:
        """(K,) posterior means."""
        return np.asarray(self.weights @ self.particles)

    @property
    def sd(self) -> Floats:
        """(K,) posterior standard deviations."""
        return np.asarray(np.sqrt(self.weights @ (self.particles - self.mean) ** 2))

    def probabilities(self, rows: Any) -> Floats:
        """How likely each action is to be chosen next, averaged over the posterior.

        Parameters
        ----------
        rows
            (M, K) the actions that would be offered.

        Returns
        -------
        array
            (M,) probabilities, which sum to one.

        Examples
        --------
        >>> rv.OnlineLearner(1, rv.Normal(1.0)).probabilities([[0.5], [0.5]])
        array([0.5, 0.5])
        """
        # Every particle's probabilities, averaged by the weights.
        probabilities = choice_probabilities(self._check_rows(rows), self.particles)
        return np.asarray(self.weights @ probabilities)

    def draw(self, seed: Seed = None) -> Floats:
        """One value from the posterior.

        Parameters
        ----------
        seed
            A numpy Generator, which is used; or a number, or None.

        Returns
        -------
        array
            (K,) one of the particles, picked by its weight.
        """
        rng = as_generator(seed)
        return np.asarray(self.particles[rng.choice(len(self.weights), p=self.weights)])

    def posterior(self) -> ChoicePosterior:
        """The posterior so far, as `rv.fit` would give it.

        Returns
        -------
        ChoicePosterior
            One chain of as many draws as there are particles, picked by their weights.
        """
        # Seeded by how much was seen, so that asking does not change what is learnt next.
        rng = np.random.default_rng([self._settings["seed"], len(self)])
        # Systematic resampling: each particle as often as its weight says, rounded up or down.
        parents = systematic_resample(rng, self.weights)
        count = len(parents)
        values = self.particles[parents]
        # The weights relative to equal ones, for whoever wants to reweight.
        stats = {
            "log_weight": np.log(count * self.weights[parents])[None],
            "log_evidence": np.full((1, count), self.log_evidence),
        }
        draws = {"value": values[None]}
        if self._resolved_prior.scale is not None:
            draws["prior_sd"] = draw_prior_sds(rng, self._resolved_prior, values)[None]
        model = ChoiceModel(prior=self.prior)
        return ChoicePosterior(draws, self.decisions, model, "ibis", stats, self._settings)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file from which `OnlineLearner.load` goes on exactly.

        `rv.load` and ArviZ read it as a posterior.

        Parameters
        ----------
        path
            Usually ends with .nc; the file is written whole or not at all.
        """
        posterior = self.posterior()
        particles: Variables = {
            "values": (("particle", "component"), self.particles),
            "log_weights": (("particle",), self._particles.log_weights),
            "log_evidence": (("one",), np.array([self.log_evidence])),
        }
        # The generator's state is what makes it go on exactly.
        generator = json.dumps(self._rng.bit_generator.state)
        write_file(
            path,
            posterior.attributes() | {"generator": generator},
            posterior.groups_of_arrays(False) | {"particles": particles},
        )

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
        get = array_reader(file)
        found = read_posterior(file)
        assert isinstance(found, ChoicePosterior)
        decisions, settings = found.decisions, found.settings
        learner = cls(
            decisions.names,
            found.prior,
            settings["particles"],
            settings["seed"],
            blocks=decisions.blocks,
        )
        # Decisions were stored stacked; the learner keeps them one by one.
        rows_by_decision = np.split(decisions.rows, decisions.start[1:-1])
        learner._rows = [np.ascontiguousarray(rows) for rows in rows_by_decision]
        learner._chosen = decisions.require_choices().tolist()
        # Version 0.1.0 called the group otherwise.
        group = group_name(file, "particles")
        values, log_weights = (
            np.ascontiguousarray(get(f"{group}/{name}")) for name in ("values", "log_weights")
        )
        log_evidence = float(get(f"{group}/log_evidence")[0])
        learner._particles = ParticleSet(values, log_weights, log_evidence)
        learner._rng.bit_generator.state = json.loads(file.attrs["generator"])
        return learner
