"""The joint posterior of a population and its groups, and a chain of paths on it.

What `hierarchical_hmc.py` adapts is in a state; here is what follows from one: coordinates of a
population with its groups, and draws.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from revealed._types import Floats
from revealed.kernels.group_batches import GroupBatches
from revealed.kernels.group_blocks import BLOCKS
from revealed.kernels.hierarchical_hmc import (
    HierarchicalTarget,
    HierarchicalWorkspace,
    joint_log_density,
    make_hierarchical_workspace,
    sample_joint_paths,
)
from revealed.kernels.hmc import PathPlan, PathStatistics
from revealed.kernels.interrupt import raise_if_stopping
from revealed.kernels.population import PopulationPrior
from revealed.kernels.precision_root import unpack_precision
from revealed.models.priors import ResolvedPrior
from revealed.samplers.base import State
from revealed.samplers.inferred_scale import interweave_scale
from revealed.samplers.population_prior import prior_at_sd
from revealed.samplers.stand_ins import StandIns, coordinates_of, in_lanes, triangles


@dataclass(frozen=True, eq=False)
class JointPosterior:
    """What groups chose, and the priors of their population.

    prior: of the population, at an sd of one where that of its mean is inferred. mean_prior: of the
    mean alone. shared: how many coordinates of the noise all groups share, the last of theta.
    """

    batches: GroupBatches
    prior: PopulationPrior
    mean_prior: ResolvedPrior
    shared: int = 0

    @property
    def basis(self) -> Floats:
        """(K, D) from free coordinates to coefficients."""
        return self.mean_prior.basis

    @property
    def n_groups(self) -> int:
        """How many groups there are, N."""
        return len(self.batches.groups.rival_start) - 1

    @property
    def width(self) -> int:
        """How many free coordinates a value has, D."""
        return len(self.prior.scale_group)

    @property
    def n_lanes(self) -> int:
        """How many groups kernels see: N, filled up to whole blocks."""
        return BLOCKS.lanes * int(self.batches.block_start[-1])

    def prior_at(self, sd: float) -> PopulationPrior:
        """The prior of the population at an sd of its mean's prior."""
        return prior_at_sd(self.prior, sd, self.mean_prior.unscaled)

    def shared_of(self, theta: Floats) -> Floats:
        """Coordinates of the noise that all groups share, the last of theta (..., P)."""
        return theta[..., theta.shape[-1] - self.shared :]

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
        both = np.linalg.inv(spread) + self.prior_at(prior_sd).precision
        # from one root to the other: both are lower triangular
        narrow = np.linalg.inv(np.linalg.cholesky(spread))
        narrow = np.linalg.cholesky(np.linalg.inv(both)) @ narrow
        return np.ascontiguousarray(
            np.concatenate([narrow @ state["metric"][:width], state["metric"][width:]])
        )

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


class HierarchicalChain:
    """A chain at work on copies of what it changes of a state."""

    def __init__(self, posterior: JointPosterior, state: State, target_acceptance: float) -> None:
        self.posterior, self.start = posterior, state
        self.x, self.prior_sd = state["x"].copy(), float(state["prior_sd"][0])
        self.adaptation = state["adaptation"].copy()
        self.plan = PathPlan(float(state["path_length"][0]), target_acceptance, self.adaptation)
        stand_ins = StandIns(state["curvature"], state["linear"])
        self.target = posterior.make_target(
            posterior.prior_at(self.prior_sd),
            state["centre"],
            posterior.metric_at(state, self.prior_sd),
            stand_ins,
        )
        self.work: HierarchicalWorkspace = make_hierarchical_workspace(
            posterior.batches, posterior.width, posterior.shared
        )
        self._values = np.empty((posterior.n_lanes, posterior.width))

    @property
    def values(self) -> Floats:
        """(N, D) of all groups, after `run`."""
        return self._values[: self.posterior.n_groups].copy()

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
        return self.work.theta.copy(), self.work.values[: self.posterior.n_groups].copy()

    def run(
        self,
        rng: np.random.Generator,
        draws: int,
        thin: int,
        statistics: PathStatistics,
        keep_values: bool,
    ) -> tuple[Floats, Floats, Floats]:
        """Draws of theta (n, P), of all values (n, N, D) if these are kept, and of the prior sd."""
        posterior = self.posterior
        theta = np.empty((draws, len(self.start["centre"])))
        kept = draws if keep_values else 0
        values = np.empty((kept, posterior.n_groups, posterior.width))
        prior_sd = np.full(draws, self.prior_sd)
        if posterior.mean_prior.scale is None:
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
        posterior = self.posterior
        mean, root = np.empty(posterior.width), np.empty((posterior.width, posterior.width))
        unpack_precision(theta, mean, root)
        inverse = np.linalg.inv(root)
        values = self.values
        mean, self.prior_sd = interweave_scale(
            rng, posterior.mean_prior, mean, values, inverse.T @ inverse
        )
        theta[: posterior.width] = mean
        now = self.start | {"x": self.x, "prior_sd": np.array([self.prior_sd])}
        self.x = posterior.coordinates(now, theta, values)
        self.target = self.target._replace(
            prior=posterior.prior_at(self.prior_sd),
            metric=posterior.metric_at(now, self.prior_sd),
        )
