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
from revealed.kernels.group_batches import make_batches
from revealed.kernels.hierarchical_hmc import joint_log_density, make_hierarchical_workspace
from revealed.kernels.hmc import init_dual_averaging, make_path_statistics
from revealed.kernels.interrupt import raise_if_stopping
from revealed.kernels.noise import NORMAL, AnyNoise, count_coordinates
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
from revealed.samplers.hierarchical_chain import HierarchicalChain, JointPosterior
from revealed.samplers.partitions import prepare_partition
from revealed.samplers.per_draw import multiply_draws
from revealed.samplers.population_prior import population_prior
from revealed.samplers.stand_ins import (
    PopulationStart,
    add_to_sums,
    averaged_stand_ins,
    laplace_start,
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


@dataclass(frozen=True, eq=False)
class HierarchicalHMCSampler(JointPosterior):
    """The sampler, ready for one set of groups."""

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
        noise: AnyNoise = NORMAL,
        own: int = 0,
        own_scale: float = 1.0,
    ) -> HierarchicalHMCSampler:
        """The sampler for all decisions.

        group (T,) says whose each is, counted from zero. prior: of the mean. scale: that of the
        prior of the sds. own: of the coordinates of the noise, how many each group has for itself;
        they are the last coefficients. own_scale: that of the prior of their sds.
        """
        order = np.argsort(group, kind="stable")
        groups = prepare_partition(decisions[order], group[order], prior.basis, noise)
        return HierarchicalHMCSampler(
            make_batches(groups),
            population_prior(prior, scale, own, own_scale),
            prior,
            count_coordinates(noise) - own,
        )

    @cached_property
    def start(self) -> tuple[PopulationStart, Floats, Floats]:
        """Where chains begin: Laplace's approximation, theta there, and a root of its covariance.

        The same for all chains, and found once.
        """
        sd = 1.0 if self.mean_prior.scale is None else self.mean_prior.scale
        prior = self.prior_at(sd)
        # what groups share of the noise begins at the median of its prior
        shared = np.zeros(self.shared)
        found = laplace_start(self.batches, prior, shared)
        theta = pack_precision(found.mean, _root_of_precision(found.covariance))
        theta = np.concatenate([theta, shared])
        size = len(theta)
        target = self.make_target(prior, theta, np.eye(size), found.stand_ins)
        work = make_hierarchical_workspace(self.batches, self.width, self.shared)
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

    def init(self, rng: np.random.Generator, position: Floats | None) -> State:
        """The population and its groups drawn from Laplace's approximation.

        What groups share of the noise is drawn from its prior: there may be several modes.
        """
        found, theta, metric = self.start
        x = rng.standard_normal(len(theta) + self.n_lanes * self.width)
        if self.shared > 0:
            drawn = theta + metric @ x[: len(theta)]
            self.shared_of(drawn)[:] = rng.standard_normal(self.shared)
            x[: len(theta)] = np.linalg.solve(metric, drawn - theta)
        return {
            "x": x,
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
        chain = HierarchicalChain(self, state, HIERARCHICAL_HMC.target_acceptance)
        while made < last:
            # as far as the next values that curvatures are taken at, wherever a run is cut
            stretch = min(interval - made % interval, last - made)
            theta, _, _ = chain.run(rng, stretch, 1, make_path_statistics(stretch), False)
            made += stretch
            if window == len(WINDOWS.shares) - 1:
                continue
            new = add_to_window(new, theta)
            if made % interval == 0 and made >= HIERARCHICAL_HMC.discarded * length:
                sd = self.start[0].covariance.diagonal() ** 0.5
                add_to_sums(new, self.batches, chain.values, self.shared_of(theta[-1]), sd)
        return new | chain.changed_state()

    def end_window(self, rng: np.random.Generator, state: State, window: int) -> State:
        """Settle the step size, and but for the last window stand-ins and coordinates."""
        new = state | {"adaptation": settle_step_size(state["adaptation"])}
        if window == len(WINDOWS.shares) - 1:
            return new
        theta, values = HierarchicalChain(self, new, 0.0).position()
        draws = draws_of_window(state, HIERARCHICAL_HMC.discarded)
        if len(draws) > 1:
            old = np.linalg.solve(state["metric"], (draws - draws.mean(axis=0)).T).T
            new["metric"] = np.ascontiguousarray(
                state["metric"] @ covariance_roots(old, power=1.0)[0]
            )
            new["centre"] = draws.mean(axis=0)
        new |= averaged_stand_ins(state)
        new["x"] = self.coordinates(new, theta, values)
        return new

    def sample(
        self, rng: np.random.Generator, state: State, draws: int, thin: int
    ) -> tuple[State, Draws, Stats]:
        """Make draws * thin iterations."""
        chain, statistics = HierarchicalChain(self, state, 0.0), make_path_statistics(draws)
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
        if self.shared > 0:
            drawn["noise"] = self.shared_of(theta)
        if self.mean_prior.scale is not None:
            drawn["prior_sd"] = prior_sd
        return state | chain.changed_state(), drawn, statistics._asdict()


def _root_of_precision(covariance: Floats) -> Floats:
    """The lower Cholesky factor of the inverse of a covariance."""
    return np.ascontiguousarray(np.linalg.cholesky(np.linalg.inv(covariance)))
