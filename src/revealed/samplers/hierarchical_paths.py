"""Values of many groups that change: paths of groups and their population in turn.

`kernels/path_population.py` has the posterior. An iteration draws mean and covariance of first
values, then m and s of the sizes of steps, each given the groups (centred); moves all of these once
more while groups keep their coordinates, so that paths follow (non-centred; interweaving, Yu and
Meng 2011); and moves path and sizes of each group given the population, as `state_space.py` does
for one. Its warm-up has the same windows: stand-ins, coordinates and scales are learnt in them, and
fixed from then on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from revealed._types import Floats, Ints
from revealed.data.decisions import Decisions
from revealed.kernels.hmc import init_dual_averaging
from revealed.kernels.noise import AnyNoise
from revealed.kernels.path_groups import PathGroups
from revealed.kernels.path_likelihood import PathData
from revealed.kernels.path_population import StepPrior
from revealed.kernels.path_process import PathProcess
from revealed.kernels.population import PopulationPrior, pack, unpack
from revealed.models.group_paths import STEP_POPULATION, GroupPaths
from revealed.models.priors import ResolvedPrior
from revealed.samplers.adaptation import (
    WindowPlan,
    add_to_window,
    draws_of_window,
    run_windows,
    settle_step_size,
)
from revealed.samplers.base import Draws, State, Stats
from revealed.samplers.path_groups import data_of_groups, join_groups
from revealed.samplers.path_population import PathPopulationChain
from revealed.samplers.path_reference import PathReference, ReferenceFinder, first_guess
from revealed.samplers.population_prior import population_prior
from revealed.samplers.state_space import STATE_SPACE, scaled_root


@dataclass(frozen=True)
class HierarchicalPathSettings:
    """Settings of moves and warm-up; wrong ones cost time, never correctness.

    sweeps: of each group in an iteration. moves: of numbers of the population, in turn, or any of
    them where there are more; one costs about a kick of all paths. With 20 groups of 60 choices,
    12 of them halved the effective draws of s. first_scale: of these moves, before draws tell how
    far they go.
    """

    sweeps: int = 1
    moves: int = 32
    first_scale: float = 0.5


SETTINGS = HierarchicalPathSettings()
WINDOWS = WindowPlan((0.2, 0.3, 0.3, 0.2), min_iterations=20)


class GroupRun(NamedTuple):
    """What a chain has done: its state, draws (n, ...) and statistics."""

    state: State
    theta: Floats
    eta: Floats
    paths: Floats
    stats: Stats


@dataclass(frozen=True, eq=False)
class HierarchicalPathSampler:
    """The sampler, ready for one set of groups.

    prior: of the population of first values. steps: of m and s. known (P,): of a group's theta, NaN
    where it is inferred. places: where the sds of each name begin in it. alone: of each group, its
    choices and the law of its path in a population as wide as the noise.
    """

    groups: PathGroups
    prior: PopulationPrior
    mean_prior: ResolvedPrior
    steps: StepPrior
    known: Floats
    places: Mapping[str, int]
    alone: tuple[tuple[PathData, PathProcess], ...]

    @property
    def name(self) -> str:
        """What users see."""
        return "hierarchical-state-space"

    @staticmethod
    def build(
        decisions: Decisions,
        group: Ints,
        prior: ResolvedPrior,
        scale: float,
        paths: GroupPaths,
        noise: AnyNoise,
    ) -> HierarchicalPathSampler:
        """The sampler for all decisions; group (T,): whose each is. scale: of the groups' sds."""
        parts = data_of_groups(decisions, group, prior, paths, noise)
        first = paths.of_first
        known = first.known
        unknown = np.flatnonzero(np.isnan(known))
        width = len(first.process.size)
        alone = [
            (part, path.process._replace(start_precision=np.eye(width)))
            for part, path in zip(parts, paths.paths, strict=True)
        ]
        # paths are counted from the prior mean
        population = population_prior(prior, scale)._replace(mean=np.zeros(width))
        return HierarchicalPathSampler(
            join_groups(parts, paths),
            population,
            prior,
            StepPrior(first.process.scales[unknown], STEP_POPULATION.spread, unknown),
            known,
            first.places,
            tuple(alone),
        )

    @cached_property
    def starts(self) -> tuple[PathReference, ...]:
        """Where each group begins: where it would be alone.

        Found when a chain begins: one that goes on does not need it.
        """
        found = []
        for data, process in self.alone:
            finder = ReferenceFinder(data, process, self.known)
            zeros = np.zeros((len(process.gap), self.width))
            found.append(finder.find(first_guess(process, self.known), zeros, np.zeros(0)))
        return tuple(found)

    @property
    def width(self) -> int:
        """D, the free coordinates of a value."""
        return len(self.groups.process.size)

    @property
    def count(self) -> int:
        """G, how many groups there are."""
        return len(self.alone)

    @property
    def nodes(self) -> int:
        """N, the times of all groups."""
        return len(self.groups.process.gap)

    def init(self, rng: np.random.Generator, position: Floats | None) -> State:
        """Paths near those that groups have alone, in a population that is about as wide."""
        starts, unknown = self.starts, self.steps.unknown
        theta = np.stack([start.theta for start in starts])
        root = np.stack([start.root for start in starts])
        xi = rng.standard_normal((self.count, len(unknown)))
        # apart, but not so far that there is no law of paths
        theta = theta + 0.5 * np.clip(np.einsum("gpu,gu->gp", root, xi), -2.0, 2.0)
        path = np.concatenate([start.path for start in starts])
        # chains begin apart: R-hat can then say whether they came together
        first = path[self.groups.node[:-1]]
        path = path + 0.3 * rng.standard_normal(path.shape)
        covariance = np.eye(self.width) * (0.5 + first.var(axis=0))
        eta = np.concatenate(
            [
                np.median(theta[:, unknown], axis=0),
                np.full(len(unknown), math.log(self.steps.spread)),
                pack(first.mean(axis=0), np.linalg.cholesky(covariance)),
            ]
        )
        # dual averaging of two step sizes, for each group
        steps = [STATE_SPACE.path_step, STATE_SPACE.size_step]
        return {
            "path": path,
            "theta": theta,
            "eta": eta,
            "curvature": np.concatenate([start.stand_in.curvature for start in starts]),
            "linear": np.concatenate([start.stand_in.linear for start in starts]),
            "constant": np.array([start.stand_in.constant for start in starts]),
            "centre": np.stack([start.theta for start in starts]),
            "root": root,
            "scale": np.full(len(eta), SETTINGS.first_scale),
            "adaptation": np.tile(init_dual_averaging(np.array(steps)), (self.count, 1, 1)),
            "done": np.zeros(1),
        }

    def warmup(
        self, rng: np.random.Generator, state: State, remaining: int, chunk: int
    ) -> tuple[State, int]:
        """Adapt stand-ins, coordinates and step sizes."""
        return run_windows(self, WINDOWS, rng, state, remaining, chunk)

    def adapt(self, rng: np.random.Generator, state: State, count: int, window: int) -> State:
        """Iterate while step sizes adapt; theta and eta are added to the window's draws."""
        targets = (STATE_SPACE.path_acceptance, STATE_SPACE.size_acceptance)
        # paths are not kept: where they are needed, at the end of a window, some more are drawn
        made = self._run(rng, state, count, targets=targets)
        flat = made.theta.reshape(count, -1)
        return add_to_window(made.state, np.concatenate([flat, made.eta], axis=1))

    def end_window(self, rng: np.random.Generator, state: State, window: int) -> State:
        """Settle step sizes, and but for the last window stand-ins, coordinates and scales."""
        new = state | {"adaptation": settle_step_size(state["adaptation"])}
        draws = draws_of_window(state, STATE_SPACE.discarded)
        if window == len(WINDOWS.shares) - 1 or len(draws) < 2:
            return new
        # with the settled step sizes, so that these are draws as good as later ones
        made = self._run(rng, new, STATE_SPACE.paths, STATE_SPACE.apart, keep_paths=True)
        # nodes do not depend on one another given their values: groups are done together
        finder = ReferenceFinder(
            self.groups.data, self.groups.process, np.zeros(self.groups.at.size)
        )
        found = finder.mean_stand_in(made.paths, np.zeros((len(made.paths), 0)))
        new = made.state | {
            "curvature": found.curvature,
            "linear": found.linear,
            "constant": np.zeros(self.count),
        }
        theta = draws[:, : self.groups.at.size].reshape(len(draws), *self.groups.at.shape)
        new["centre"] = theta.mean(axis=0)
        new["root"] = np.stack(
            [
                scaled_root(root, own)
                for root, own in zip(
                    state["root"], (theta - new["centre"]).swapaxes(0, 1), strict=True
                )
            ]
        )
        # how far the numbers of the population went is how far they should move
        new["scale"] = draws[:, self.groups.at.size :].std(axis=0)
        return new

    def sample(
        self, rng: np.random.Generator, state: State, draws: int, thin: int
    ) -> tuple[State, Draws, Stats]:
        """Make draws * thin iterations."""
        made = self._run(rng, state, draws, thin, keep_paths=True)
        basis, centre = self.mean_prior.basis, self.mean_prior.mean
        mean, root = np.empty((draws, self.width)), np.empty((draws, self.width, self.width))
        count = len(self.steps.unknown)
        for n in range(draws):
            unpack(made.eta[n, 2 * count :], mean[n], root[n])
        # from free coordinates to coefficients
        covariance = root @ root.transpose(0, 2, 1)
        drawn: Draws = {
            "population_mean": np.stack([basis @ one for one in mean]) + centre,
            "population_covariance": basis @ covariance @ basis.T,
            "value": made.paths @ basis.T + centre,
        }
        sizes, unknown = self.groups.sizes, self.steps.unknown
        for name, at in self.places.items():
            if not np.isnan(self.known[at]):
                continue
            # m and s have numbers of what is inferred only
            k = int(np.searchsorted(unknown, at))
            drawn[name] = np.exp(made.theta[:, :, at : at + sizes])
            drawn[f"{name}_population"] = np.exp(made.eta[:, k : k + sizes])
            drawn[f"{name}_spread"] = np.exp(made.eta[:, count + k : count + k + sizes])
        return made.state, drawn, made.stats

    def _run(
        self,
        rng: np.random.Generator,
        state: State,
        draws: int,
        thin: int = 1,
        targets: tuple[float, float] = (0.0, 0.0),
        keep_paths: bool = False,
    ) -> GroupRun:
        """So many draws; targets: acceptance that step sizes adapt to, zero where they stay."""
        chain = PathPopulationChain(
            self.groups,
            self.prior,
            self.steps,
            state,
            SETTINGS.sweeps,
            SETTINGS.moves,
            targets,
        )
        theta = np.empty((draws, *self.groups.at.shape))
        eta = np.empty((draws, len(state["eta"])))
        paths = np.empty((draws if keep_paths else 0, self.nodes, self.width))
        names = ("acceptance_rate", "size_acceptance", "n_steps", "population_acceptance_rate")
        stats = {name: np.zeros(draws) for name in names}
        for n in range(draws):
            for _ in range(thin):
                found = chain.iterate(rng)
                for name, value in zip(names, found, strict=True):
                    stats[name][n] += value / thin
            theta[n], eta[n] = chain.chains.theta, chain.eta
            if keep_paths:
                paths[n] = chain.chains.path
        new = state | {
            "path": chain.chains.path,
            "theta": chain.chains.theta,
            "eta": chain.eta,
            "adaptation": chain.chains.adaptation,
        }
        return GroupRun(new, theta, eta, paths, stats)
