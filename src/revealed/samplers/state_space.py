"""Values that change: paths of values and the sizes of their steps by Hamiltonian moves.

`kernels/state_space.py` has the posterior and its coordinates, `kernels/state_space_moves.py` the
moves. Here is what surrounds them: the data as kernels take them, where chains begin, and the
warm-up. In its windows step sizes are adapted; where one ends, some more paths are drawn, the
stand-in is taken anew as right on average over these, and coordinates of theta and noise are scaled
by the window's draws. At a mode it would be wrong where other sizes take the path: with choices
that are nearly certain, curvature falls away fast. From then on all of these are fixed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from revealed._types import Floats
from revealed.data.decisions import Decisions
from revealed.kernels.block_tridiagonal import multiply_upper
from revealed.kernels.common_shift import NO_SHIFT, CommonShift
from revealed.kernels.hmc import init_dual_averaging
from revealed.kernels.interrupt import raise_if_stopping
from revealed.kernels.joint_moves import sample_joint_paths
from revealed.kernels.noise import AnyNoise, without_lapses
from revealed.kernels.path_process import PathProcess
from revealed.kernels.skill_likelihood import SkillData
from revealed.kernels.state_space import (
    NormalPaths,
    PathData,
    PathPoint,
    PathTarget,
    Placed,
    make_path_workspace,
    make_placed,
    make_point,
    place_law,
)
from revealed.kernels.state_space_moves import PathState, PathStats, sample_paths
from revealed.models.over_time import ResolvedOverTime
from revealed.models.priors import ResolvedPrior
from revealed.samplers.adaptation import (
    WindowPlan,
    add_to_window,
    covariance_roots,
    draws_of_window,
    run_windows,
    settle_step_size,
)
from revealed.samplers.base import Draws, State, Stats
from revealed.samplers.coarse_paths import longest_block, make_coarse_paths
from revealed.samplers.path_data import make_path_data
from revealed.samplers.path_draws import name_path_draws
from revealed.samplers.path_reference import (
    NoiseReference,
    PathReference,
    ReferenceFinder,
    StandIn,
    first_guess,
)


@dataclass(frozen=True)
class StateSpaceSettings:
    """Settings of the warm-up; wrong ones cost time, never correctness.

    path_acceptance, size_acceptance: that dual averaging aims at. walk_acceptance: the same of
    random walks of sizes, of which .234 to .44 are best (Roberts, Gelman and Gilks 1997).
    path_step, size_step: before any is adapted; a step as long as a path is one kick. discarded:
    the share of a window that is on its way to the posterior. paths, apart: so many paths make a
    stand-in, so many iterations apart.
    checks: thetas that blocks of nodes are tried at.
    """

    path_acceptance: float = 0.9
    size_acceptance: float = 0.8
    walk_acceptance: float = 0.35
    path_step: float = 0.8
    size_step: float = 0.7
    discarded: float = 1.0 / 3.0
    paths: int = 20
    apart: int = 2
    checks: int = 20


STATE_SPACE = StateSpaceSettings()
# All windows adapt step sizes, all but the last one the stand-in and coordinates.
WINDOWS = WindowPlan((0.2, 0.3, 0.3, 0.2), min_iterations=20)


class Position(NamedTuple):
    """Where a chain is: theta (P,), coordinates of the noise (E,), and its path (N, D)."""

    theta: Floats
    noise: Floats
    path: Floats


class PathRun(NamedTuple):
    """What a chain has done: its state, draws (n, ...), statistics, and where it is now."""

    state: State
    theta: Floats
    noise: Floats
    paths: Floats
    stats: PathStats
    position: Position


@dataclass(frozen=True, eq=False)
class StateSpaceSampler:
    """The sampler, ready for one set of decisions."""

    data: PathData | SkillData
    process: PathProcess
    known: Floats
    places: Mapping[str, int]
    prior: ResolvedPrior
    # where chains begin, where that is known already
    given_start: PathReference | None
    # of everybody on a date, which skills have
    shift: CommonShift = NO_SHIFT

    @property
    def name(self) -> str:
        """What users see."""
        return "state-space"

    @staticmethod
    def build(
        decisions: Decisions,
        prior: ResolvedPrior,
        over_time: ResolvedOverTime,
        noise: AnyNoise,
        start: PathReference | None = None,
    ) -> StateSpaceSampler:
        """The sampler for all decisions; prior: of the first value, or of the long-run mean.

        start: where chains begin, where that is known already.
        """
        data = make_path_data(decisions, prior, over_time, noise)
        process, known = over_time.process, over_time.known
        return StateSpaceSampler(data, process, known, over_time.places, prior, start)

    @cached_property
    def start(self) -> PathReference:
        """Where chains begin, or near which they look for a mode: the same for all.

        Found when a chain begins: one that goes on does not need it.
        """
        if self.given_start is not None:
            return self.given_start
        # without lapses: their stand-in is no likelihood's curvature, and its evidence would prefer
        # steps so large that paths follow every single choice
        data = self.data
        if isinstance(data, PathData):
            data = data._replace(noise=without_lapses(data.noise))
        # a path of zeros is as good as any to begin Newton's method from
        path, noise = np.zeros((self.nodes, self.width)), np.zeros(data.coordinates)
        finder = ReferenceFinder(data, self.process, self.known)
        return finder.find(first_guess(self.process, self.known), path, noise)

    @property
    def nodes(self) -> int:
        """How many different times there are."""
        return len(self.process.gap)

    @property
    def width(self) -> int:
        """D, the free coordinates of a value."""
        return len(self.process.size)

    @property
    def coordinates(self) -> int:
        """How many numbers of the noise are unknown.

        None under a noise that is known, one for a rate of lapses or degrees of freedom.
        """
        return self.data.coordinates

    @property
    def follows_evidence(self) -> bool:
        """Whether sizes are proposed along the evidence of the stand-in, paths staying behind.

        If not, they move with paths (`kernels/joint_moves.py`).
        """
        return self.data.is_log_concave

    @property
    def finder(self) -> ReferenceFinder:
        """What finds modes; chains are made at once, so each has one of its own."""
        return ReferenceFinder(self.data, self.process, self.known)

    def init(self, rng: np.random.Generator, position: Floats | None) -> State:
        """Theta and path drawn from the normal approximation.

        Where path and noise may have several modes, from that of a mode near a noise which is drawn
        from its prior.
        """
        found, of_noise = self._begin_near(rng)
        # chains start apart: R-hat can then say whether they came together
        unknown = found.root.shape[1]
        steps = [STATE_SPACE.path_step, STATE_SPACE.size_step]
        near = rng.standard_normal((STATE_SPACE.checks, unknown)) @ found.root.T
        return {
            "longest": self.longest_block(found.stand_in, found.theta + near),
            "z": rng.standard_normal((self.nodes, self.width)),
            "e": rng.standard_normal(self.coordinates),
            "xi": self._first_theta(found, rng.standard_normal((unknown,))),
            "curvature": found.stand_in.curvature,
            "linear": found.stand_in.linear,
            "constant": np.array([found.stand_in.constant]),
            "theta_centre": found.theta,
            "theta_root": found.root,
            "noise_centre": of_noise.noise,
            "noise_root": of_noise.root,
            "adaptation": init_dual_averaging(np.array(steps)),
            "done": np.zeros(1),
        }

    def _begin_near(self, rng: np.random.Generator) -> tuple[PathReference, NoiseReference]:
        """Where a chain begins, and its noise."""
        count = self.coordinates
        if count == 0 or self.data.is_log_concave:
            return self.start, NoiseReference(np.zeros(count), np.eye(count))
        return self.finder.find_with_noise(self.start, rng.standard_normal(count))

    def _first_theta(self, found: PathReference, xi: Floats) -> Floats:
        """Coordinates of theta that there is a law of paths for: these, or some nearer the mode."""
        placed = self._empty_law()
        work = make_path_workspace(self.data, self.nodes, self.width)
        normal = self.finder.normal(found.stand_in)
        while not place_law(normal, work, found.theta + found.root @ xi, placed):
            xi = 0.5 * xi
        return xi

    def longest_block(self, stand_in: StandIn, thetas: Floats) -> Floats:
        """(1,) how many nodes a block may have, on which sizes are proposed; thetas: likely ones.

        None are needed where sizes are known, or move with paths.
        """
        if not (self.follows_evidence and np.isnan(self.known).any()):
            return np.ones(1)
        return np.array([float(longest_block(self.data, self.finder.normal(stand_in), thetas))])

    def _empty_law(self) -> Placed:
        """Arrays for the law of paths at one theta.

        Of this sampler's size.
        """
        return make_placed(self.nodes, self.width, len(self.known))

    def _empty_point(self) -> PathPoint:
        """Arrays for one path."""
        return make_point(self.nodes, self.width, self.coordinates)

    def _target(self, state: State) -> PathTarget:
        normal = NormalPaths(
            self.process,
            state["curvature"],
            state["linear"],
            float(state["constant"][0]),
            state["theta_centre"],
            state["theta_root"],
        )
        return PathTarget(self.data, normal, state["noise_centre"], state["noise_root"])

    def _run(
        self,
        rng: np.random.Generator,
        state: State,
        draws: int,
        thin: int = 1,
        targets: tuple[float, float] = (0.0, 0.0),
        keep_paths: bool = False,
    ) -> PathRun:
        """So many draws; targets: acceptance that step sizes adapt to, zero where they stay."""
        # copies: a checkpoint of the state before must stay what it is
        chain = PathState(*(state[name].copy() for name in PathState._fields))
        theta = np.empty((draws, len(self.known)))
        noise = np.empty((draws, self.coordinates))
        paths = np.empty((draws if keep_paths else 0, self.nodes, self.width))
        stats = PathStats(*(np.empty(draws) for _ in PathStats._fields))
        placed = self._empty_law(), self._empty_law()
        points = self._empty_point(), self._empty_point()
        work = make_path_workspace(self.data, self.nodes, self.width)
        arrays = work, placed, points, chain, thin, targets, theta, noise, paths, stats
        self._iterate(rng, self._target(state), int(state["longest"][0]), arrays)
        raise_if_stopping()
        position = Position(placed[0].theta, points[0].noise, points[0].value)
        return PathRun(state | chain._asdict(), theta, noise, paths, stats, position)

    def _iterate(
        self, rng: np.random.Generator, target: PathTarget, longest: int, arrays: Any
    ) -> None:
        """Move a chain, and write its draws.

        longest: block of nodes that sizes are proposed on. arrays: what `sample_paths` takes after
        these.
        """
        if self.follows_evidence:
            coarse = make_coarse_paths(self.data, target.normal, longest)
            sample_paths(rng, target, coarse, *arrays)
        else:
            sample_joint_paths(rng, target, self.shift, *arrays)

    def warmup(
        self, rng: np.random.Generator, state: State, remaining: int, chunk: int
    ) -> tuple[State, int]:
        """Adapt stand-in, coordinates and step sizes."""
        return run_windows(self, WINDOWS, rng, state, remaining, chunk)

    def adapt(self, rng: np.random.Generator, state: State, count: int, window: int) -> State:
        """Iterate while step sizes adapt; theta and noise are added to the window's draws."""
        of_sizes = STATE_SPACE.size_acceptance
        if not self.follows_evidence:
            of_sizes = STATE_SPACE.walk_acceptance
        targets = (STATE_SPACE.path_acceptance, of_sizes)
        # paths are not kept: where they are needed, at the end of a window, some more are drawn
        made = self._run(rng, state, count, targets=targets)
        return add_to_window(made.state, np.concatenate([made.theta, made.noise], axis=1))

    def end_window(self, rng: np.random.Generator, state: State, window: int) -> State:
        """Settle step sizes, and but for the last window stand-in and coordinates."""
        new = state | {"adaptation": settle_step_size(state["adaptation"])}
        draws = draws_of_window(state, STATE_SPACE.discarded)
        if window == len(WINDOWS.shares) - 1 or len(draws) < 2:
            return new
        # with the settled step sizes, so that these are draws as good as later ones
        made = self._run(rng, new, STATE_SPACE.paths, STATE_SPACE.apart, keep_paths=True)
        stand_in = self.finder.mean_stand_in(made.paths, made.noise)
        new = made.state | _stand_in_state(stand_in)
        theta, noise = np.split(draws, [len(self.known)], axis=1)
        mean_theta, mean_noise = theta.mean(axis=0), noise.mean(axis=0)
        new["theta_centre"], new["noise_centre"] = mean_theta, mean_noise
        if state["theta_root"].shape[1]:
            new["theta_root"] = scaled_root(state["theta_root"], theta - mean_theta)
        if self.coordinates:
            new["noise_root"] = scaled_root(state["noise_root"], noise - mean_noise)
        some = np.linspace(0, len(theta) - 1, STATE_SPACE.checks).round().astype(np.int64)
        new["longest"] = self.longest_block(stand_in, theta[some])
        # the chain goes on from where it is, in the new coordinates
        return self.at_position(new, made.position)

    def at_position(self, state: State, position: Position) -> State:
        """The state with its coordinates, at a theta, noise and path."""
        placed = self._empty_law()
        work = make_path_workspace(self.data, self.nodes, self.width)
        root, z = state["theta_root"], np.empty((self.nodes, self.width))
        if place_law(self._target(state).normal, work, position.theta, placed):
            u = position.path - placed.law.centre - placed.mean
            multiply_upper(placed.factor, self.process.first, u, z)
        return state | {
            "xi": np.asarray(np.linalg.pinv(root) @ (position.theta - state["theta_centre"])),
            "e": np.asarray(
                np.linalg.solve(state["noise_root"], position.noise - state["noise_centre"])
            ),
            "z": z,
        }

    def sample(
        self, rng: np.random.Generator, state: State, draws: int, thin: int
    ) -> tuple[State, Draws, Stats]:
        """Make draws * thin iterations."""
        new, theta, noise, paths, stats, _ = self._run(rng, state, draws, thin, keep_paths=True)
        drawn = name_path_draws(self.process, self.places, self.known, self.prior, theta, paths)
        if self.coordinates:
            drawn["noise"] = noise
        return new, drawn, stats._asdict()


def _stand_in_state(stand_in: StandIn) -> State:
    """A stand-in as arrays of a state.

    Under the names that `_target` reads.
    """
    return {
        "curvature": stand_in.curvature,
        "linear": stand_in.linear,
        "constant": np.array([stand_in.constant]),
    }


def scaled_root(root: Floats, centred: Floats) -> Floats:
    """A root (P, U) of the covariance of centred draws (n, P), in the span of an earlier one."""
    old = centred @ np.linalg.pinv(root).T
    return np.ascontiguousarray(root @ covariance_roots(old, power=1.0)[0])
