"""One chain of paths of many groups and their population: arrays, and the moves of an iteration.

Given the groups the population is drawn from its conditionals: mean and covariance of first values
as those of any values (`kernels/population.py`), m and s of each step from the groups' log sds,

    log m:  half-t prior    times  prod over groups of N(log sd; log m, s^2)
    log s:  half-normal     times  the same

by slices (Neal 2003). All that is done with the groups given their population, and with the
population given the groups' coordinates, is in `kernels/path_groups.py` and
`kernels/path_population.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from revealed.kernels.interrupt import raise_if_stopping
from revealed.kernels.path_groups import (
    GroupChains,
    PathGroups,
    PathPopulation,
    sweep_groups,
)
from revealed.kernels.path_population import StepPrior, log_prior_of_steps, move_population
from revealed.kernels.population import PopulationPrior, draw_population, pack, unpack
from revealed.kernels.root_slices import SLICES
from revealed.kernels.state_space import (
    NormalPaths,
    make_path_workspace,
    make_placed,
    make_point,
)
from revealed.kernels.state_space_moves import PathStats
from revealed.samplers.base import State


class PathPopulationChain:
    """A chain: its arrays, and iterations that move them.

    It begins where a state is, and copies it. targets: acceptance that step sizes adapt to.
    """

    def __init__(
        self,
        groups: PathGroups,
        prior: PopulationPrior,
        steps: StepPrior,
        state: State,
        sweeps: int,
        moves: int,
        targets: tuple[float, float],
    ) -> None:
        # loops write the present population into the process: every chain has one of its own
        process, nodes = groups.process, len(groups.process.gap)
        process = process._replace(
            mean=process.mean.copy(), start_precision=process.start_precision.copy()
        )
        self.groups, self.prior, self.steps = groups._replace(process=process), prior, steps
        self.sweeps, self.moves, self.targets = sweeps, moves, targets
        self.eta, self.scale = state["eta"].copy(), state["scale"]
        self.width, self.count = len(process.size), len(state["theta"])
        self.chains = GroupChains(
            state["path"].copy(),
            np.zeros((nodes, self.width)),
            state["theta"].copy(),
            np.zeros((self.count, state["root"].shape[2])),
            state["centre"],
            state["root"],
            state["curvature"],
            state["linear"],
            state["constant"],
            state["adaptation"].copy(),
        )
        # theta from its coordinates is linear: these are got back by the pseudo-inverse
        self.to_xi = np.linalg.pinv(state["root"])
        size = groups.at.size
        self.normal = NormalPaths(
            process,
            state["curvature"],
            state["linear"],
            float(state["constant"].sum()),
            np.zeros(size),
            np.zeros((size, 0)),
        )
        self.work = make_path_workspace(groups.data, nodes, self.width)
        line = nodes, self.width
        # two laws that chains are at and go to, and two on the way there
        laws = [make_placed(*line, size) for _ in range(4)]
        self.placed = laws[0], laws[1], laws[2], laws[3]
        self.points = make_point(*line, 0), make_point(*line, 0)
        self.stats = PathStats(*(np.zeros(self.count) for _ in PathStats._fields))

    def iterate(self, rng: np.random.Generator) -> tuple[float, float, float, float]:
        """One iteration; acceptance of paths and sizes, kicks, and acceptance of the population."""
        raise_if_stopping()
        # centred, then with all paths following, then groups given the population
        before = self.eta.copy()
        self.draw_first_values(rng)
        self.draw_steps(rng)
        accepted = self._move_population(rng)
        # where rounding leaves no law of paths there is no posterior either: what was drawn is
        # refused, as a proposal would be
        if math.isnan(accepted):
            self.eta[:] = before
            accepted = self._move_population(rng)
        self.chains.xi[:] = np.einsum(
            "gup,gp->gu", self.to_xi, self.chains.theta - self.chains.centre
        )
        sweep_groups(
            rng,
            self.groups,
            self.population(),
            self.chains,
            self.work,
            self.placed,
            self.points,
            self.sweeps,
            self.targets,
            self.stats,
        )
        raise_if_stopping()
        paths, sizes, kicks = (float(values.mean()) for values in self.stats)
        return paths, sizes, kicks, accepted

    def _move_population(self, rng: np.random.Generator) -> float:
        """Move the population while groups keep their coordinates."""
        found: float = move_population(
            rng,
            self.groups,
            self.steps,
            self.prior,
            self.normal,
            self.chains,
            self.work,
            self.placed[0],
            self.points[0],
            self.eta,
            self.scale,
            self.moves,
        )
        return found

    def population(self) -> PathPopulation:
        """The population as groups see it."""
        process, unknown = self.groups.process, self.steps.unknown
        log_mean = np.zeros(self.groups.at.shape[1])
        log_sd = np.ones(len(log_mean))
        # of sds that are known no prior is looked at
        log_mean[unknown] = self.eta[: len(unknown)]
        log_sd[unknown] = np.exp(self.eta[len(unknown) : 2 * len(unknown)])
        return PathPopulation(process.start_precision, process.mean, log_mean, log_sd)

    def draw_first_values(self, rng: np.random.Generator) -> None:
        """Draw mean and covariance of first values given these."""
        at = 2 * len(self.steps.unknown)
        mean, root = np.empty(self.width), np.empty((self.width, self.width))
        unpack(self.eta[at:], mean, root)
        # only sums over groups matter to the population
        away = self.chains.path[self.groups.node[:-1]] - mean
        new_mean, covariance = draw_population(
            rng, self.prior, self.count, mean, away.sum(axis=0), away.T @ away, root @ root.T
        )
        self.eta[at:] = pack(new_mean, np.asarray(np.linalg.cholesky(covariance)))

    def draw_steps(self, rng: np.random.Generator) -> None:
        """Draw m and s of each step given the log sds of groups."""
        count = len(self.steps.unknown)
        for k, p in enumerate(self.steps.unknown):
            own = self.chains.theta[:, p]
            mean, square = float(own.mean()), float(((own - own.mean()) ** 2).sum())
            log_m, log_s = float(self.eta[k]), float(self.eta[count + k])

            def of_m(x: float, k: int = k, mean: float = mean, log_s: float = log_s) -> float:
                return self.log_density_of_steps(k, x, log_s, mean, 0.0)

            log_m = slice_sample(rng, of_m, log_m)

            def of_s(
                x: float, k: int = k, mean: float = mean, square: float = square, m: float = log_m
            ) -> float:
                return self.log_density_of_steps(k, m, x, mean, square)

            self.eta[k] = log_m
            self.eta[count + k] = slice_sample(rng, of_s, log_s)

    def log_density_of_steps(
        self, k: int, log_m: float, log_s: float, mean: float, square: float
    ) -> float:
        """The log density of m and s given log sds of groups with this mean and sum of squares."""
        squares = square + self.count * (mean - log_m) ** 2
        found: float = log_prior_of_steps(self.steps, k, log_m, log_s)
        return found - self.count * log_s - 0.5 * squares * math.exp(-2.0 * log_s)


def slice_sample(
    rng: np.random.Generator, log_density: Callable[[float], float], now: float
) -> float:
    """A number after a move that leaves its density invariant: a slice, stepped out and shrunk."""
    # about what is left open of the log of m or s; stepping out makes up for any width
    window = 1.5
    # the height of the slice, then out on both sides, then back
    level = log_density(now) - rng.standard_exponential()
    low = now - window * rng.random()
    high = low + window
    while log_density(low) > level:
        low -= window
    while log_density(high) > level:
        high += window
    for _ in range(SLICES.max_shrinks):
        proposed = low + (high - low) * rng.random()
        if log_density(proposed) > level:
            return proposed
        # the present point stays inside, so that this ends
        if proposed < now:
            low = proposed
        else:
            high = proposed
    return now
