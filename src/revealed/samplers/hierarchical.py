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

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from revealed._types import Floats, Ints
from revealed.data.decisions import Decisions
from revealed.kernels.group_values import (
    GroupedDecisions,
    GroupMetric,
    GroupSums,
    LikelihoodSums,
    Population,
    add_log_likelihood,
    draw_group_values,
    transfer_values,
)
from revealed.kernels.noise import NORMAL, NoiseArguments
from revealed.kernels.population import PopulationPrior, draw_population
from revealed.models.priors import ResolvedPrior
from revealed.samplers.base import State, Stats
from revealed.samplers.hierarchical_adaptation import MOMENTS, accumulate_moments, adapt_metric
from revealed.samplers.noncentred import (
    LikelihoodAt,
    PopulationMove,
    hmc_noncentred,
    slice_sample_sd,
)
from revealed.samplers.partitions import (
    DaskPartitionExecutor,
    PartitionExecutor,
    ThreadPartitionExecutor,
    make_partitions,
)

Sums = TypeVar("Sums", GroupSums, LikelihoodSums)


@dataclass(frozen=True)
class HierarchicalSettings:
    """Settings of warm-up and moves; wrong ones cost time, never correctness.

    path_length: of a group's Hamiltonian path in whitened coordinates; a normal law is crossed in
    pi / 2, and a little more is better with heavy tails.
    target_acceptance: of paths; Stan's default.
    initial_step_size: a cautious one, before any is adapted. min_step_size, max_step_size: bounds
    while it adapts; leapfrog is unstable from 2 on. independence_moves: of a group, before its
    path. window_ends: shares of the warm-up; where a window ends, metrics are adapted from the
    draws of its last two thirds. rate, rate_offset, rate_power: step sizes change by
    rate / (n + offset)^power times the error (Robbins and Monro 1951).
    """

    path_length: float = 1.9
    target_acceptance: float = 0.8
    initial_step_size: float = 0.1
    min_step_size: float = 1e-3
    max_step_size: float = 1.5
    independence_moves: int = 2
    window_ends: tuple[float, ...] = (0.2, 0.7)
    rate: float = 2.0
    rate_offset: float = 8.0
    rate_power: float = 0.7


HIERARCHICAL = HierarchicalSettings()


@dataclass(frozen=True, eq=False)
class HierarchicalSampler:
    """The sampler, ready for one set of groups.

    partition_start: where each partition's groups begin, then N.
    """

    executor: PartitionExecutor
    partition_start: Ints
    prior: PopulationPrior

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
        population_prior = PopulationPrior(
            prior.mean @ prior.basis, prior.precision, scale, scale_groups(prior)
        )
        return HierarchicalSampler(executor, start, population_prior)

    @property
    def n_groups(self) -> int:
        """How many groups there are, N."""
        return int(self.partition_start[-1])

    @property
    def width(self) -> int:
        """How many free coordinates a value has, D."""
        return len(self.prior.scale_group)

    @property
    def draw_offsets(self) -> tuple[int, int]:
        """Where the covariance and the values begin in a draw.

        A draw is the mean (D), the covariance (D * D), and the values (N * D).
        """
        return self.width, self.width + self.width**2

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
            "group_step_size": np.full(count, step_size),
            # those of the population's path, and how far log sds vary
            "metric": np.eye(2 * width + width * (width - 1) // 2) / np.sqrt(count),
            "step_size": np.array([step_size]),
            "log_sd_spread": np.full(width, min(1.0, 3.0 / np.sqrt(count))),
            # iterations of the whole warm-up, and of the present window
            "done": np.zeros(1),
            "done_in_window": np.zeros(1),
        }

    def warmup(
        self, rng: np.random.Generator, state: State, remaining: int, chunk: int
    ) -> tuple[State, int]:
        """Adapt coordinates and step size of each group, and those of the population's path."""
        settings = HIERARCHICAL
        new = dict(state)
        total = int(new["done"][0]) + remaining
        # the state counts iterations, so that chunks do not change where windows end
        ends = [round(share * total) for share in settings.window_ends]
        count = min(chunk, remaining)
        for _ in range(count):
            acceptance, move = self._iterate(rng, new)
            done, n = new["done"][0], new["done_in_window"][0]
            # stochastic approximation of log step sizes
            rate = settings.rate / (n + settings.rate_offset) ** settings.rate_power
            for name, rates in (("group_step_size", acceptance), ("step_size", move.probability)):
                new[name] = np.clip(
                    new[name] * np.exp(rate * (rates - settings.target_acceptance)),
                    settings.min_step_size,
                    settings.max_step_size,
                )
            new["done"] = new["done"] + 1.0
            new["done_in_window"] = new["done_in_window"] + 1.0
            # moments are of the last two thirds of a window, if it is long enough to say something
            end = next((e for e in ends if done < e), 0)
            window = end - (done - n)
            if end and window > 3 * self.width and n >= window // 3:
                accumulate_moments(new, move.gradient)
            if done + 1 in ends:
                if MOMENTS[0] in new:
                    adapt_metric(new)
                new["done_in_window"] = np.zeros(1)
        return new, count

    def sample(
        self, rng: np.random.Generator, state: State, draws: int, thin: int
    ) -> tuple[State, Floats, Stats]:
        """Make draws * thin iterations; a draw is laid out as `draw_offsets` says."""
        new = dict(state)
        covariance_at, values_at = self.draw_offsets
        out = np.empty((draws, values_at + new["q"].size))
        group_rate, population_rate = np.empty(draws), np.empty(draws)
        for n in range(draws):
            for _ in range(thin):
                acceptance, move = self._iterate(rng, new)
            group_rate[n], population_rate[n] = acceptance.mean(), move.probability
            # laid out as draw_offsets says
            out[n, :covariance_at] = new["mean"]
            out[n, covariance_at:values_at] = new["covariance"].ravel()
            out[n, values_at:] = new["q"].ravel()
        stats = {"acceptance_rate": group_rate, "population_acceptance_rate": population_rate}
        return new, out, stats

    def _iterate(self, rng: np.random.Generator, state: State) -> tuple[Floats, PopulationMove]:
        """One iteration; arrays of the state are replaced.

        Returns the acceptance probability of each group's path (N,), and the population's move.
        """
        # values given the population, then the population given values
        q, acceptance, sums = self._move_values(rng, state)
        old_mean = state["mean"]
        mean, covariance = draw_population(
            rng,
            self.prior,
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
        likelihood = PopulationLikelihood(self, q, mean, root)
        step_size = float(state["step_size"][0])
        move = hmc_noncentred(
            rng, self.prior, state["metric"], step_size, mean, root, current, likelihood
        )
        new_root = slice_sample_sd(
            rng,
            self.prior,
            state["log_sd_spread"],
            move.mean,
            move.root,
            move.log_likelihood,
            likelihood,
        )
        state["q"] = transfer_values(q, mean, root, move.mean, new_root)
        state["mean"], state["covariance"] = move.mean, new_root @ new_root.T
        return acceptance, move

    def _move_values(
        self, rng: np.random.Generator, state: State
    ) -> tuple[Floats, Floats, GroupSums]:
        """Move each value given the population: values, acceptance probabilities, and sums."""
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
            split(state["group_step_size"]),
            [state["mean"]] * count,
            [root] * count,
            [(key, i) for i in range(count)],
        )
        q, acceptance = (np.concatenate([part[k] for part in found]) for k in (0, 1))
        return q, acceptance, ordered_sum([sums for _, _, sums in found])

    def split(self, array: Floats) -> list[Floats]:
        """An array with one entry a group, in partitions."""
        return [array[low:high] for low, high in pairwise(self.partition_start)]


@dataclass(frozen=True, eq=False)
class PopulationLikelihood:
    """The likelihood of all groups in another population, at their standardised values in this one.

    q (N, D), mean (D,) and root (D, D): the values and the population that define those.
    """

    sampler: HierarchicalSampler
    q: Floats
    mean: Floats
    root: Floats

    def __call__(self, mean: Floats, root: Floats, with_gradient: bool) -> LikelihoodAt:
        """The log-likelihood, and if asked for its derivatives."""
        sampler = self.sampler
        count = len(sampler.partition_start) - 1
        # every partition gets its own values, and both populations
        given = [[thing] * count for thing in (self.mean, self.root, mean, root, with_gradient)]
        sums = ordered_sum(
            sampler.executor.map(log_likelihood_in_population, sampler.split(self.q), *given)
        )
        return LikelihoodAt(float(sums.log_likelihood[0]), sums.grad, sums.grad_outer_z)


def update_group_values(
    groups: GroupedDecisions,
    q: Floats,
    centre: Floats,
    scale: Floats,
    step_size: Floats,
    mean: Floats,
    root: Floats,
    key: tuple[int, int],
) -> tuple[Floats, Floats, GroupSums]:
    """Values of a partition's groups after their move, acceptance probabilities, and sums.

    key: of the counter-based generator (Philox), so that a task can be repeated elsewhere.
    """
    count, width = q.shape
    q, acceptance = q.copy(), np.empty(count)
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
        sums,
    )
    return q, acceptance, sums


def log_likelihood_in_population(
    groups: GroupedDecisions,
    q: Floats,
    mean: Floats,
    root: Floats,
    new_mean: Floats,
    new_root: Floats,
    with_gradient: bool,
) -> LikelihoodSums:
    """Log-likelihood of a partition's groups in another population, at their standardised values.

    Its derivatives are empty arrays unless with_gradient.
    """
    width = q.shape[1] if with_gradient else 0
    sums = LikelihoodSums(np.zeros(1), np.zeros(width), np.zeros((width, q.shape[1])))
    add_log_likelihood(groups, q, mean, root, new_mean, new_root, sums)
    return sums


def ordered_sum(parts: Sequence[Sums]) -> Sums:
    """The sum of what partitions returned, field by field, the first one first."""
    # in this order always, so that sums are the same to the last bit
    total = type(parts[0])(*(field.copy() for field in parts[0]))
    for part in parts[1:]:
        for into, field in zip(total, part, strict=True):
            into += field
    return total


def scale_groups(resolved_prior: ResolvedPrior) -> Ints:
    """(D,) equal numbers for the coordinates of one sum-to-zero block, others for all others."""
    # (D, K) which coefficients a coordinate touches, (K, L) which of them are in which block
    touches = (resolved_prior.basis.T != 0.0).astype(np.int64)
    inside = (resolved_prior.constant_directions != 0.0).astype(np.int64)
    block = touches @ inside
    # a negative number for each block, a positive one for each other coordinate
    key = np.where(
        block.any(axis=1), -1 - block.argmax(axis=1) if inside.size else 0, np.arange(len(block))
    )
    return np.unique(key, return_inverse=True)[1].astype(np.int64)
