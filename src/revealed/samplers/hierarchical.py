"""The hierarchical sampler: groups with a value each, drawn from one normal law that is inferred.

    q_i ~ N(mean, covariance),  v_i = basis q_i        each group, in the free coordinates

with the priors of `kernels/population.py`. The coefficients of a sum-to-zero block share one a, so
that none of its states is special.

An iteration moves every group's value given the population by independence moves and a Hamiltonian
path (exactly parallel: each partition of groups has a random generator of its own), then draws
mean, covariance and a from their conditionals, and then, given each group's *standardised* value,
moves mean and covariance by a Hamiltonian path on which all values follow: interweaving (Yu and
Meng 2011). At last one sd is drawn by a slice, now and then. What the population needs to know of
its groups are sums over them, made partition by partition (`partitions.py`): an iteration is one
pass that moves values, and one that evaluates the likelihood for every step of the common path.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from revealed._types import Floats, Ints
from revealed.data.decisions import Decisions
from revealed.kernels.group_values import (
    GroupedDecisions,
    GroupMetric,
    GroupSums,
    Population,
    draw_group_values,
    transfer_values,
)
from revealed.kernels.hmc import (
    ADAPTATION,
    init_dual_averaging,
    make_path_statistics,
    update_step_sizes,
)
from revealed.kernels.interrupt import raise_if_stopping
from revealed.kernels.noise import NORMAL, NoiseArguments
from revealed.kernels.population import (
    PopulationPrior,
    draw_population,
    log_density_noncentred,
    pack,
)
from revealed.models.priors import ResolvedPrior
from revealed.samplers.adaptation import WINDOW, WindowPlan, run_windows, settle_step_size
from revealed.samplers.base import Draws, State, Stats
from revealed.samplers.hierarchical_adaptation import accumulate_moments, adapted_metric
from revealed.samplers.inferred_scale import interweave_scale
from revealed.samplers.noncentred import (
    LikelihoodAt,
    PopulationLikelihood,
    PopulationMove,
    hmc_noncentred,
    ordered_sum,
    slice_sample_sd,
)
from revealed.samplers.partitions import (
    DaskPartitionExecutor,
    PartitionExecutor,
    ThreadPartitionExecutor,
    make_partitions,
)
from revealed.samplers.per_draw import multiply_draws
from revealed.samplers.population_prior import population_prior, prior_at_sd


@dataclass(frozen=True)
class HierarchicalSettings:
    """Settings of warm-up and moves; wrong ones cost time, never correctness.

    path_length: of a group's Hamiltonian path in whitened coordinates; a normal law is crossed in
    pi / 2, and a little more is better with heavy tails.
    target_acceptance: that dual averaging aims at. Its averaged step sizes are accepted somewhat
    more often, at about 0.8, which is Stan's default.
    initial_step_size: a cautious one, before any is adapted. independence_moves: of a group, before
    its path. discarded: the share of a window that is on its way to the posterior.
    """

    path_length: float = 1.9
    target_acceptance: float = 0.7
    initial_step_size: float = 0.1
    independence_moves: int = 2
    discarded: float = 1.0 / 3.0


HIERARCHICAL = HierarchicalSettings()
# All windows adapt step sizes, and all but the last one the coordinates of paths.
WINDOWS = WindowPlan((0.2, 0.5, 0.3))


class Iteration(NamedTuple):
    """How an iteration went.

    acceptance (N,): probability of each group's path. steps (2,): how many steps these made, and
    how many of them diverged. move: of the population. log_density: of all, where it ended.
    """

    acceptance: Floats
    steps: Floats
    move: PopulationMove
    log_density: float


@dataclass(frozen=True, eq=False)
class HierarchicalSampler:
    """The sampler, ready for one set of groups.

    partition_start: where each partition's groups begin, then N. prior: of the population, at an sd
    of one where that of its mean is inferred. mean_prior: of the mean alone.
    """

    executor: PartitionExecutor
    partition_start: Ints
    prior: PopulationPrior
    mean_prior: ResolvedPrior

    @property
    def basis(self) -> Floats:
        """(K, D) from free coordinates to coefficients."""
        return self.mean_prior.basis

    @property
    def name(self) -> str:
        """What users see."""
        return "hierarchical"

    @staticmethod
    def build(
        decisions: Decisions,
        group: Ints,
        prior: ResolvedPrior,
        scale: float,
        threads: int | None = None,
        cluster: Any = None,
        noise: NoiseArguments = NORMAL,
    ) -> HierarchicalSampler:
        """The sampler for all decisions.

        group (T,) says whose each is, counted from zero. prior: of the mean. scale: that of the
        prior of the sds. cluster: a Dask client, or None for threads of this process.
        """
        partitions, start = make_partitions(decisions, group, prior.basis, noise)
        executor: PartitionExecutor = (
            ThreadPartitionExecutor(partitions, threads)
            if cluster is None
            else DaskPartitionExecutor(partitions, cluster)
        )
        return HierarchicalSampler(executor, start, population_prior(prior, scale), prior)

    @property
    def n_groups(self) -> int:
        """How many groups there are, N."""
        return int(self.partition_start[-1])

    @property
    def width(self) -> int:
        """How many free coordinates a value has, D."""
        return len(self.prior.scale_group)

    def init(self, rng: np.random.Generator, position: Floats | None) -> State:
        """All values near the prior mean, in a population about as wide as the noise."""
        count, width = self.n_groups, self.width
        # not at one point: chains should begin apart
        q = 0.3 * rng.standard_normal((count, width)) + self.prior.mean
        step_size = HIERARCHICAL.initial_step_size
        return {
            "q": q,
            "mean": q.mean(axis=0),
            "covariance": np.eye(width),
            # coordinates and step size of each group's path
            "group_centre": np.zeros((count, width)),
            "group_scale": np.tile(np.eye(width), (count, 1, 1)),
            "group_adaptation": init_dual_averaging(np.full(count, step_size)),
            # those of the population's path, and how far log sds vary
            "metric": np.eye(2 * width + width * (width - 1) // 2) / np.sqrt(count),
            "adaptation": init_dual_averaging(step_size),
            "log_sd_spread": np.full(width, min(1.0, 3.0 / np.sqrt(count))),
            "prior_sd": np.array([1.0 if self.mean_prior.scale is None else self.mean_prior.scale]),
            "done": np.zeros(1),  # iterations of the warm-up
        }

    def warmup(
        self, rng: np.random.Generator, state: State, remaining: int, chunk: int
    ) -> tuple[State, int]:
        """Adapt coordinates and step size of each group, and those of the population's path."""
        return run_windows(self, WINDOWS, rng, state, remaining, chunk)

    def adapt(self, rng: np.random.Generator, state: State, count: int, window: int) -> State:
        """Iterate while step sizes adapt; moments are added to the window's."""
        new = state | {name: state[name].copy() for name in ("group_adaptation", "adaptation")}
        made, length = state[f"{WINDOW}position"]
        for n in range(count):
            found = self._iterate(rng, new)
            for name, probability in (
                ("group_adaptation", found.acceptance),
                ("adaptation", np.array([found.move.outcome.probability])),
            ):
                update_step_sizes(
                    np.atleast_2d(new[name]), HIERARCHICAL.target_acceptance, probability
                )
            if made + n >= HIERARCHICAL.discarded * length:
                accumulate_moments(new, found.move.gradient)
        return new

    def end_window(self, rng: np.random.Generator, state: State, window: int) -> State:
        """Settle step sizes, and but for the last window the coordinates of all paths."""
        new = state | {
            name: settle_step_size(state[name]) for name in ("group_adaptation", "adaptation")
        }
        return new | adapted_metric(new) if window < len(WINDOWS.shares) - 1 else new

    def sample(
        self, rng: np.random.Generator, state: State, draws: int, thin: int
    ) -> tuple[State, Draws, Stats]:
        """Make draws * thin iterations."""
        new = dict(state)
        mean, covariance = np.empty((draws, self.width)), np.empty((draws, self.width, self.width))
        values = np.empty((draws, self.n_groups, len(self.basis)))
        prior_sd = np.empty(draws)
        statistics, population_rate = make_path_statistics(draws), np.zeros(draws)
        # one step size for all groups: their mean
        statistics.step_size[:] = new["group_adaptation"][:, ADAPTATION.step_size].mean()
        for n in range(draws):
            for _ in range(thin):
                found = self._iterate(rng, new)
                outcome = found.move.outcome
                statistics.acceptance_rate[n] += found.acceptance.mean() / thin
                population_rate[n] += outcome.probability / thin
                statistics.n_steps[n] += found.steps[0] + outcome.n_steps
                statistics.diverging[n] = (
                    statistics.diverging[n] or outcome.diverging or found.steps[1] > 0.0
                )
            statistics.lp[n] = found.log_density
            mean[n], covariance[n] = new["mean"], new["covariance"]
            prior_sd[n] = new["prior_sd"][0]
            # a product for each draw: its last bit must not depend on how many are made together
            values[n] = new["q"] @ self.basis.T
        drawn = {
            "population_mean": multiply_draws(mean, self.basis),
            # stacks of matrices: each draw's product is its own already
            "population_covariance": self.basis @ covariance @ self.basis.T,
            "value": values,
        }
        if self.mean_prior.scale is not None:
            drawn["prior_sd"] = prior_sd
        return new, drawn, statistics._asdict() | {"population_acceptance_rate": population_rate}

    def _iterate(self, rng: np.random.Generator, state: State) -> Iteration:
        """One iteration; arrays of the state are replaced."""
        raise_if_stopping()
        # values given the population, then the population given values
        q, acceptance, steps, sums = self._move_values(rng, state)
        old_mean = state["mean"]
        prior = prior_at_sd(self.prior, float(state["prior_sd"][0]))
        mean, covariance = draw_population(
            rng,
            prior,
            self.n_groups,
            old_mean,
            sums.deviation,
            sums.deviation_outer,
            state["covariance"],
        )
        root = np.asarray(np.linalg.cholesky(covariance), np.float64)

        # the values have not moved since their likelihood was computed, but the standardised ones,
        # z = root^-1 (q - mean), have: dl/dq z' from dl/dq (q - old mean)'
        about_new_mean = sums.grad_outer_deviation - np.outer(sums.grad, mean - old_mean)
        grad_outer_z = np.ascontiguousarray(np.linalg.solve(root, about_new_mean.T).T)
        current = LikelihoodAt(sums.log_likelihood[0], sums.grad, grad_outer_z)

        # the population given standardised values, which the values then follow
        likelihood = PopulationLikelihood(self.executor, self.split(q), mean, root)
        step_size = float(state["adaptation"][ADAPTATION.step_size])
        move = hmc_noncentred(
            rng, prior, state["metric"], step_size, mean, root, current, likelihood
        )
        new_root, log_likelihood = slice_sample_sd(
            rng,
            prior,
            state["log_sd_spread"],
            move.mean,
            move.root,
            move.log_likelihood,
            likelihood,
        )
        state["q"] = transfer_values(q, mean, root, move.mean, new_root)
        state["mean"], state["covariance"] = move.mean, new_root @ new_root.T
        # the log density of everything: of the population given z, and of z
        none = np.zeros_like(root)
        theta = pack(move.mean, new_root)
        log_density = log_density_noncentred(
            prior, theta, log_likelihood, none[0], none, np.empty_like(theta)
        )
        z = transfer_values(q, mean, root, none[0], np.eye(self.width))
        if self.mean_prior.scale is not None:
            state["mean"], sd = interweave_scale(
                rng, self.mean_prior, state["mean"], state["q"], state["covariance"]
            )
            state["prior_sd"] = np.array([sd])
        return Iteration(acceptance, steps, move, log_density - 0.5 * float((z * z).sum()))

    def _move_values(
        self, rng: np.random.Generator, state: State
    ) -> tuple[Floats, Floats, Floats, GroupSums]:
        """Move each value given the population: what `update_group_values` returns, of all."""
        split, count = self.split, len(self.partition_start) - 1
        centre, scale = (
            self.executor.cache(state[name], split(state[name]))
            for name in ("group_centre", "group_scale")
        )
        # one key for all partitions and the number of each: a generator for each of them
        key = int(rng.integers(2**63))
        root = np.asarray(np.linalg.cholesky(state["covariance"]), np.float64)
        # every partition gets its own slice, and the population
        found = self.executor.map(
            update_group_values,
            split(state["q"]),
            centre,
            scale,
            split(state["group_adaptation"][:, ADAPTATION.step_size].copy()),
            [state["mean"]] * count,
            [root] * count,
            [(key, i) for i in range(count)],
        )
        q, acceptance = (np.concatenate([part[k] for part in found]) for k in (0, 1))
        steps = np.sum([part[2] for part in found], axis=0)
        return q, acceptance, steps, ordered_sum([part[3] for part in found])

    def split(self, array: Floats) -> list[Floats]:
        """An array with one entry a group, in partitions."""
        return [array[low:high] for low, high in pairwise(self.partition_start)]


def update_group_values(
    groups: GroupedDecisions,
    q: Floats,
    centre: Floats,
    scale: Floats,
    step_size: Floats,
    mean: Floats,
    root: Floats,
    key: tuple[int, int],
) -> tuple[Floats, Floats, Floats, GroupSums]:
    """Values of a partition's groups after their move, acceptance probabilities, steps, and sums.

    key: of the counter-based generator (Philox), so that a task can be repeated elsewhere.
    """
    count, width = q.shape
    q, acceptance, steps = q.copy(), np.empty(count), np.zeros(2)
    square = (width, width)
    sums = GroupSums(
        np.zeros(1), np.zeros(width), np.zeros(width), np.zeros(square), np.zeros(square)
    )
    # the same key gives the same moves wherever the task runs
    rng = np.random.Generator(np.random.Philox(key=np.array(key, dtype=np.uint64)))
    inverse = np.linalg.inv(root)
    precision = np.ascontiguousarray(inverse.T) @ inverse
    draw_group_values(
        rng,
        groups,
        Population(mean, root, precision),
        GroupMetric(centre, scale, step_size),
        HIERARCHICAL.path_length,
        HIERARCHICAL.independence_moves,
        q,
        acceptance,
        steps,
        sums,
    )
    return q, acceptance, steps, sums
