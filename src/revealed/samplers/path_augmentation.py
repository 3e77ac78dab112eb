"""The paper's data augmentation for values that change: utilities, sizes of steps, path in turn.

`kernels/path_augmentation.py` has the moves. It takes normal noise alone and mixes more slowly than
"state-space", with which it shares no line of what is drawn: the two are a check of each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from revealed._types import Floats
from revealed.data.decisions import Decisions
from revealed.kernels.interrupt import raise_if_stopping
from revealed.kernels.path_augmentation import (
    Filtered,
    PathAugmentationWorkspace,
    PathUtilities,
    augment_paths,
)
from revealed.models.over_time import ResolvedOverTime
from revealed.models.priors import ResolvedPrior
from revealed.samplers.base import Draws, State, Stats
from revealed.samplers.path_draws import name_path_draws
from revealed.samplers.path_reference import first_guess


@dataclass(frozen=True, eq=False)
class PathAugmentationSampler:
    """The sampler, ready for one set of decisions; known, places: of theta."""

    problem: PathUtilities
    known: Floats
    places: Mapping[str, int]
    prior: ResolvedPrior

    @property
    def name(self) -> str:
        """What users see."""
        return "da"

    @staticmethod
    def build(
        decisions: Decisions, prior: ResolvedPrior, over_time: ResolvedOverTime
    ) -> PathAugmentationSampler:
        """The sampler for all decisions; prior: of the first value, or of the long-run mean."""
        # decisions in the order of their times; a decision keeps its own utilities
        order = np.argsort(over_time.node, kind="stable")
        ordered, node = decisions[order], over_time.node[order]
        # the first decision of every node, and where its rows begin
        first = np.searchsorted(node, np.arange(len(over_time.times) + 1))
        rows, process = ordered.rows, over_time.process
        problem = PathUtilities(
            np.ascontiguousarray(np.asarray(rows @ prior.basis)),
            np.ascontiguousarray(np.asarray(rows @ prior.mean)),
            ordered.start.astype(np.int64),
            ordered.chosen_row.astype(np.int64),
            ordered.start[first].astype(np.int64),
            process,
            np.asarray(np.linalg.inv(process.start_precision), np.float64),
            np.isnan(over_time.known),
        )
        return PathAugmentationSampler(problem, over_time.known, over_time.places, prior)

    def init(self, rng: np.random.Generator, position: Floats | None) -> State:
        """Sizes of steps about half the scales of their priors, and a path of zeros.

        Chains begin apart in the sizes; the first utilities make their paths differ.
        """
        theta = first_guess(self.problem.process, self.known)
        theta = theta + np.where(self.problem.unknown, rng.standard_normal(theta.shape), 0.0)
        process = self.problem.process
        return {
            "theta": theta,
            "path": np.zeros((len(process.gap), len(process.size))),
            "mode_offset": np.zeros(len(self.problem.chosen_row)),
        }

    def warmup(
        self, rng: np.random.Generator, state: State, remaining: int, chunk: int
    ) -> tuple[State, int]:
        """Continue the chain by `chunk` iterations, or all that remain: nothing is adapted."""
        made = min(remaining, chunk)
        return self.sample(rng, state, 1, made)[0], made

    def sample(
        self, rng: np.random.Generator, state: State, draws: int, thin: int
    ) -> tuple[State, Draws, Stats]:
        """Make draws * thin iterations; acceptance_rate is that of proposals of utilities."""
        # copies: a checkpoint of the state before must stay what it is
        new = {name: array.copy() for name, array in state.items()}
        theta = np.empty((draws, len(self.known)))
        paths = np.empty((draws, *new["path"].shape))
        acceptance = np.empty(draws)
        augment_paths(
            rng,
            self.problem,
            self._workspace(),
            thin,
            new["theta"],
            new["path"],
            new["mode_offset"],
            theta,
            paths,
            acceptance,
        )
        raise_if_stopping()
        process = self.problem.process
        drawn = name_path_draws(process, self.places, self.known, self.prior, theta, paths)
        return new, drawn, {"acceptance_rate": acceptance}

    def _workspace(self) -> PathAugmentationWorkspace:
        """Arrays for one chain.

        Means and covariances of all nodes are the largest of them.
        """
        problem, count = self.problem, len(self.problem.offset)
        nodes, width = len(problem.process.gap), len(problem.process.size)
        filtered = Filtered(np.empty((nodes, width)), np.empty((nodes, width, width)))
        most = int(np.diff(problem.start).max())
        return PathAugmentationWorkspace(np.empty(count), np.empty(count), np.empty(most), filtered)
