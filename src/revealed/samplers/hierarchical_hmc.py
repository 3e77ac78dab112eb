"""Hierarchical groups by Hamiltonian paths of the population and all its groups together.

    q_i ~ N(mean, covariance),  v_i = basis q_i        each group, in the free coordinates

with the priors of `kernels/population.py`. A path moves the mean, the root of the precision, and
each group's z, in which its value is standardised by the population *and* by a normal stand-in of
its own likelihood (`kernels/hierarchical_hmc.py`): a group that decided a lot hardly moves when the
population does, and one that decided little moves with it. In these coordinates the joint posterior
is close to a standard normal law, and one path crosses it. Stand-ins and the coordinates of the
population are adapted in warm-up, and fixed from then on.

Where the prior sd of the mean is inferred, it is drawn given the mean and the values after each
path (`inferred_scale.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from revealed._types import Floats, Ints
from revealed.data.decisions import Decisions
from revealed.kernels.group_batches import GroupBatches, make_batches
from revealed.kernels.group_blocks import LANES
from revealed.kernels.hierarchical_hmc import (
    HierarchicalTarget,
    HierarchicalWorkspace,
    joint_log_density,
    make_hierarchical_workspace,
    sample_joint_paths,
)
from revealed.kernels.hmc import (
    PathPlan,
    PathStatistics,
    init_dual_averaging,
    make_path_statistics,
)
from revealed.kernels.interrupt import raise_if_stopping
from revealed.kernels.noise import NORMAL, NoiseArguments
from revealed.kernels.population import PopulationPrior
from revealed.kernels.precision_root import pack_precision, unpack_precision
from revealed.models.priors import ResolvedPrior
from revealed.samplers.adaptation import (
    WINDOW,
    WindowPlan,
    add_to_window,
    covariance_roots,
    curvature_root,
    draws_of_window,
    run_windows,
    settle_step_size,
)
from revealed.samplers.base import Draws, State, Stats
from revealed.samplers.hierarchical import population_prior, prior_at_sd
from revealed.samplers.inferred_scale import interweave_scale
from revealed.samplers.partitions import prepare_partition
from revealed.samplers.per_draw import multiply_draws
from revealed.samplers.stand_ins import (
    PopulationStart,
    StandIns,
    coordinates_of,
    group_curvatures,
    group_slopes,
    in_lanes,
    laplace_start,
    make_stand_ins,
    triangles,
)


@dataclass(frozen=True)
class HierarchicalHMCSettings:
    """Settings of warm-up and paths; wrong ones cost time, never correctness.

    path_length: in whitened coordinates; a normal law is crossed in pi / 2.
    target_acceptance: that dual averaging aims at; for a step of two stages in many dimensions
    about 0.65 costs least. initial_step_size: before any is adapted.
    interval: iterations between values at which curvatures are averaged.
    discarded: the share of a window that is on its way to the posterior.
    least_information: of a coordinate of theta, in groups; least_eigenvalue: of the information
    brought to unit diagonal. Both only matter to where and how chains begin.
    """

    path_length: float = 2.4
    target_acceptance: float = 0.75
    initial_step_size: float = 0.4
    interval: int = 10
    discarded: float = 1.0 / 3.0
    least_information: float = 0.05
    least_eigenvalue: float = 0.02


HIERARCHICAL_HMC = HierarchicalHMCSettings()
# All windows adapt the step size, all but the last one the stand-ins and coordinates.
WINDOWS = WindowPlan((0.15, 0.25, 0.35, 0.25), min_iterations=20)
# Names of what a window sums up in the state: values, slopes and curvatures of groups, and how
# often.
SUMS = tuple(f"{WINDOW}{name}" for name in ("value", "slope", "curvature", "count"))


@dataclass(frozen=True, eq=False)
class HierarchicalHMCSampler:
    """The sampler, ready for one set of groups.

    prior: of the population, at an sd of one where that of its mean is inferred. mean_prior: of the
    mean alone.
    """

    batches: GroupBatches
    prior: PopulationPrior
    mean_prior: ResolvedPrior

    @property
    def basis(self) -> Floats:
        """(K, D) from free coordinates to coefficients."""
        return self.mean_prior.basis

    @property
    def name(self) -> str:
        """What users see."""
        return "hierarchical-hmc"

    @staticmethod
    def build(
        decisions: Decisions,
        group: Ints,
        prior: ResolvedPrior,
        scale: float,
        noise: NoiseArguments = NORMAL,
    ) -> HierarchicalHMCSampler:
        """The sampler for all decisions.

        group (T,) says whose each is, counted from zero. prior: of the mean. scale: that of the
        prior of the sds.
        """
        order = np.argsort(group, kind="stable")
        groups = prepare_partition(decisions[order], group[order], prior.basis, noise)
        return HierarchicalHMCSampler(make_batches(groups), population_prior(prior, scale), prior)

    @property
    def n_groups(self) -> int:
        """How many groups there are, N."""
        return len(self.batches.groups.rival_start) - 1

    @property
    def width(self) -> int:
        """How many free coordinates a value has, D."""
        return len(self.prior.scale_group)

    @cached_property
    def start(self) -> tuple[PopulationStart, Floats, Floats]:
        """Where chains begin: Laplace's approximation, theta there, and a root of its covariance.

        The same for all chains, and found once.
        """
        sd = 1.0 if self.mean_prior.scale is None else self.mean_prior.scale
        prior = prior_at_sd(self.prior, sd)
        found = laplace_start(self.batches, prior)
        theta = pack_precision(found.mean, _root_of_precision(found.covariance))
        size = len(theta)
        target = self.make_target(prior, theta, np.eye(size), found.stand_ins)
        work = make_hierarchical_workspace(self.batches, self.width)
        # the curvature of the log density at z = 0, by differences of its gradient
        count, x = max(self.n_groups, 1), np.zeros(size + self.n_lanes * self.width)
        gradients = np.empty((2, len(x)))
        information = np.empty((size, size))
        joint_log_density(target, work, x, -np.inf, gradients[0])
        for k in range(size):
            raise_if_stopping()
            step = 1e-3 * (np.sqrt(found.covariance[k, k]) if k < self.width else 1.0)
            moved = x.copy()
            moved[k] = step
            joint_log_density(target, work, moved, -np.inf, gradients[1])
            information[k] = (gradients[0, :size] - gradients[1, :size]) / step
        least = np.full(size, HIERARCHICAL_HMC.least_information * count)
        least[: self.width] /= np.diag(found.covariance)
        metric = curvature_root(
            0.5 * (information + information.T), least, HIERARCHICAL_HMC.least_eigenvalue
        )
        return found, theta, metric

    @property
    def n_lanes(self) -> int:
        """How many groups kernels see: N, filled up to whole blocks."""
        return LANES * int(self.batches.block_start[-1])

    def init(self, rng: np.random.Generator, position: Floats | None) -> State:
        """The population and its groups drawn from Laplace's approximation."""
        found, theta, metric = self.start
        size = len(theta) + self.n_lanes * self.width
        return {
            "x": rng.standard_normal(size),
            "centre": theta,
            "metric": metric,
            "curvature": found.stand_ins.curvature,
            "linear": found.stand_ins.linear,
            "adaptation": init_dual_averaging(HIERARCHICAL_HMC.initial_step_size),
            "path_length": np.array([HIERARCHICAL_HMC.path_length]),
            "prior_sd": np.array([1.0 if self.mean_prior.scale is None else self.mean_prior.scale]),
            "done": np.zeros(1),  # iterations of the warm-up
        }

    def warmup(
        self, rng: np.random.Generator, state: State, remaining: int, chunk: int
    ) -> tuple[State, int]:
        """Adapt stand-ins, coordinates of the population and the step size."""
        return run_windows(self, WINDOWS, rng, state, remaining, chunk)

    def adapt(self, rng: np.random.Generator, state: State, count: int, window: int) -> State:
        """Iterate while the step size adapts; what the window needs is added to it."""
        new = dict(state)
        made, length = (int(number) for number in state[f"{WINDOW}position"])
        last, interval = made + count, HIERARCHICAL_HMC.interval
        chain = _Chain(self, state, HIERARCHICAL_HMC.target_acceptance)
        while made < last:
            # as far as the next values that curvatures are taken at, wherever a run is cut
            stretch = min(interval - made % interval, last - made)
            theta, _, _ = chain.run(rng, stretch, 1, make_path_statistics(stretch), False)
            made += stretch
            if window == len(WINDOWS.shares) - 1:
                continue
            new = add_to_window(new, theta)
            if made % interval == 0 and made >= HIERARCHICAL_HMC.discarded * length:
                self._add_curvatures(new, chain.values)
        return new | chain.changed_state()

    def _add_curvatures(self, state: State, values: Floats) -> None:
        """Add slopes and curvatures of all groups at values (N, D) to the window's sums."""
        sd = self.start[0].covariance.diagonal() ** 0.5
        now = (
            values,
            group_slopes(self.batches, values)[1],
            group_curvatures(self.batches, values, sd),
            np.ones(1),
        )
        for name, array in zip(SUMS, now, strict=True):
            state[name] = state[name] + array if name in state else array

    def end_window(self, rng: np.random.Generator, state: State, window: int) -> State:
        """Settle the step size, and but for the last window stand-ins and coordinates."""
        new = state | {"adaptation": settle_step_size(state["adaptation"])}
        if window == len(WINDOWS.shares) - 1:
            return new
        theta, values = _Chain(self, new, 0.0).position()
        draws = draws_of_window(state, HIERARCHICAL_HMC.discarded)
        if len(draws) > 1:
            old = np.linalg.solve(state["metric"], (draws - draws.mean(axis=0)).T).T
            new["metric"] = np.ascontiguousarray(
                state["metric"] @ covariance_roots(old, power=1.0)[0]
            )
            new["centre"] = draws.mean(axis=0)
        if SUMS[0] in state:
            value, slope, curvature = (state[name] / state[SUMS[3]] for name in SUMS[:3])
            stand_ins = make_stand_ins(curvature, slope, value)
            new |= stand_ins._asdict()
        new["x"] = self.coordinates(new, theta, values)
        return new

    def coordinates(self, state: State, theta: Floats, values: Floats) -> Floats:
        """x of a population theta with values (N, D) of its groups."""
        mean, root = np.empty(self.width), np.empty((self.width, self.width))
        unpack_precision(theta, mean, root)
        stand_ins = StandIns(state["curvature"], state["linear"])
        z = coordinates_of(values, mean, root @ root.T, stand_ins)
        moved = in_lanes(z)
        # those of groups that do not exist stay
        pad = in_lanes(np.ones_like(z)) == 0.0
        moved[pad] = state["x"][len(theta) :][pad]
        metric = self.metric_at(state, float(state["prior_sd"][0]))
        return np.concatenate([np.linalg.solve(metric, theta - state["centre"]), moved])

    def metric_at(self, state: State, prior_sd: float) -> Floats:
        """The coordinates of theta on paths with this sd of the mean's prior.

        Where that is inferred, it may be so small that the mean can hardly move, and paths fit for
        the average sd would all fail. So the mean's part is narrowed to what a normal law has whose
        precision is that of the draws plus that of the prior.
        """
        if self.mean_prior.scale is None:
            return state["metric"]
        width = self.width
        spread = state["metric"][:width] @ state["metric"][:width].T
        both = np.linalg.inv(spread) + self.prior.precision / prior_sd**2
        # from one root to the other: both are lower triangular
        narrow = np.linalg.inv(np.linalg.cholesky(spread))
        narrow = np.linalg.cholesky(np.linalg.inv(both)) @ narrow
        return np.ascontiguousarray(
            np.concatenate([narrow @ state["metric"][:width], state["metric"][width:]])
        )

    def sample(
        self, rng: np.random.Generator, state: State, draws: int, thin: int
    ) -> tuple[State, Draws, Stats]:
        """Make draws * thin iterations."""
        chain, statistics = _Chain(self, state, 0.0), make_path_statistics(draws)
        theta, q, prior_sd = chain.run(rng, draws, thin, statistics, True)
        mean, root = np.empty((draws, self.width)), np.empty((draws, self.width, self.width))
        for n in range(draws):
            unpack_precision(theta[n], mean[n], root[n])
        # stacks of matrices: each draw's product is its own, however many are made together
        inverse = np.linalg.inv(root)
        covariance = inverse.swapaxes(1, 2) @ inverse
        drawn = {
            "population_mean": multiply_draws(mean, self.basis),
            "population_covariance": self.basis @ covariance @ self.basis.T,
            "value": q @ self.basis.T,
        }
        if self.mean_prior.scale is not None:
            drawn["prior_sd"] = prior_sd
        return state | chain.changed_state(), drawn, statistics._asdict()

    def make_target(
        self, prior: PopulationPrior, centre: Floats, metric: Floats, stand_ins: StandIns
    ) -> HierarchicalTarget:
        """The joint density as kernels take it; theta = centre + metric x_theta."""
        return HierarchicalTarget(
            self.batches,
            prior,
            centre,
            metric,
            in_lanes(triangles(stand_ins.curvature)),
            in_lanes(stand_ins.linear),
        )


class _Chain:
    """A chain at work on copies of what it changes of a state."""

    def __init__(
        self, sampler: HierarchicalHMCSampler, state: State, target_acceptance: float
    ) -> None:
        self.sampler, self.start = sampler, state
        self.x, self.prior_sd = state["x"].copy(), float(state["prior_sd"][0])
        self.adaptation = state["adaptation"].copy()
        self.plan = PathPlan(float(state["path_length"][0]), target_acceptance, self.adaptation)
        stand_ins = StandIns(state["curvature"], state["linear"])
        self.target = sampler.make_target(
            prior_at_sd(sampler.prior, self.prior_sd),
            state["centre"],
            sampler.metric_at(state, self.prior_sd),
            stand_ins,
        )
        self.work: HierarchicalWorkspace = make_hierarchical_workspace(
            sampler.batches, sampler.width
        )
        self._values = np.empty((sampler.n_lanes, sampler.width))

    @property
    def values(self) -> Floats:
        """(N, D) of all groups, after `run`."""
        return self._values[: self.sampler.n_groups].copy()

    def changed_state(self) -> State:
        """What has changed."""
        return {
            "x": self.x,
            "adaptation": self.adaptation,
            "prior_sd": np.array([self.prior_sd]),
        }

    def position(self) -> tuple[Floats, Floats]:
        """Theta and the values of all groups where the chain is."""
        gradient = np.empty_like(self.x)
        joint_log_density(self.target, self.work, self.x, -np.inf, gradient)
        return self.work.theta.copy(), self.work.values[: self.sampler.n_groups].copy()

    def run(
        self,
        rng: np.random.Generator,
        draws: int,
        thin: int,
        statistics: PathStatistics,
        keep_values: bool,
    ) -> tuple[Floats, Floats, Floats]:
        """Draws of theta (n, P), of all values (n, N, D) if these are kept, and of the prior sd."""
        sampler = self.sampler
        theta = np.empty((draws, len(self.start["centre"])))
        kept = draws if keep_values else 0
        values = np.empty((kept, sampler.n_groups, sampler.width))
        prior_sd = np.full(draws, self.prior_sd)
        if sampler.mean_prior.scale is None:
            self._paths(rng, thin, theta, values, statistics)
            return theta, values, prior_sd
        # path by path, as the sd of the mean's prior is drawn after each
        for n in range(draws):
            for _ in range(thin):
                one = PathStatistics(*(field[n : n + 1] for field in statistics))
                self._paths(rng, 1, theta[n : n + 1], values[n : n + 1], one)
                self._draw_prior_sd(rng, theta[n])
            statistics.acceptance_rate[n] /= thin
            prior_sd[n] = self.prior_sd
        return theta, values, prior_sd

    def _paths(
        self,
        rng: np.random.Generator,
        thin: int,
        theta: Floats,
        values: Floats,
        statistics: PathStatistics,
    ) -> None:
        sample_joint_paths(
            rng,
            self.target,
            self.work,
            self.plan,
            thin,
            self.x,
            self._values,
            theta,
            values,
            statistics,
        )
        raise_if_stopping()

    def _draw_prior_sd(self, rng: np.random.Generator, theta: Floats) -> None:
        """Draw the sd of the mean's prior, and with it the mean, given the groups' values.

        theta is changed in place.
        """
        sampler = self.sampler
        mean, root = np.empty(sampler.width), np.empty((sampler.width, sampler.width))
        unpack_precision(theta, mean, root)
        inverse = np.linalg.inv(root)
        values = self.values
        mean, self.prior_sd = interweave_scale(
            rng, sampler.mean_prior, mean, values, inverse.T @ inverse
        )
        theta[: sampler.width] = mean
        now = self.start | {"x": self.x, "prior_sd": np.array([self.prior_sd])}
        self.x = sampler.coordinates(now, theta, values)
        self.target = self.target._replace(
            prior=prior_at_sd(sampler.prior, self.prior_sd),
            metric=sampler.metric_at(now, self.prior_sd),
        )


def _root_of_precision(covariance: Floats) -> Floats:
    """The lower Cholesky factor of the inverse of a covariance."""
    return np.ascontiguousarray(np.linalg.cholesky(np.linalg.inv(covariance)))
