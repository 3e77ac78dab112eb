"""Moves of the population given standardised values: each group keeps its z, q = mean + root z.

The non-centred parameterisation (Papaspiliopoulos, Roberts and Skoeld 2007). Both moves call
a function for the likelihood of all groups, which may run on other machines, and do little besides:
the mean and the root of the covariance are a few dozen numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from revealed._types import Floats
from revealed.kernels.group_values import (
    GroupedDecisions,
    GroupSums,
    LikelihoodSums,
    add_log_likelihood,
)
from revealed.kernels.hmc import (
    LEAPFROG,
    HmcState,
    PathOutcome,
    PathWorkspace,
    follow_path,
    steps_of_length,
)
from revealed.kernels.interrupt import raise_if_stopping
from revealed.kernels.population import (
    PopulationPrior,
    log_density_noncentred,
    log_density_of_rescaled_sd,
    pack,
    unpack,
)
from revealed.kernels.root_slices import SLICES
from revealed.samplers.partitions import PartitionExecutor

Sums = TypeVar("Sums", GroupSums, LikelihoodSums)


@dataclass(frozen=True)
class NoncentredSettings:
    """Settings of the two moves, found by experiment; wrong ones cost time, never correctness.

    path_length: of a Hamiltonian path, in units of its coordinates; max_steps: of a path, as each
    is a pass over all decisions. max_log_sd: a log sd at which a path is given up and a slice is
    stepped out no further; exp(30) is far beyond any data. max_window: the most that a slice is
    stepped out by at a time, in logarithms. attempts_per_sd, window_per_sd: how often, and by what
    window, an sd is drawn, times the posterior sd of its logarithm: an sd that is well known gains
    nothing from a second move.
    """

    path_length: float = 1.3
    max_steps: int = 5
    max_log_sd: float = 30.0
    max_window: float = 2.0
    attempts_per_sd: float = 5.0
    window_per_sd: float = 6.0


NONCENTRED = NoncentredSettings()


class LikelihoodAt(NamedTuple):
    """The log-likelihood l of all groups, and the sums of dl/dq (D,) and of dl/dq z' (D, D)."""

    log_likelihood: float
    grad: Floats
    grad_outer_z: Floats


LikelihoodFunction = Callable[[Floats, Floats, bool], LikelihoodAt]
"""(mean, root, with_gradient) -> the likelihood of all groups there, at their present z."""


@dataclass(frozen=True, eq=False)
class PopulationLikelihood:
    """The likelihood of all groups in another population, at their standardised values in this one.

    q, a list of (., D) for each partition, mean (D,) and root (D, D): the values and the population
    that define those.
    """

    executor: PartitionExecutor
    q: list[Floats]
    mean: Floats
    root: Floats

    def __call__(self, mean: Floats, root: Floats, with_gradient: bool) -> LikelihoodAt:
        """The log-likelihood, and if asked for its derivatives."""
        raise_if_stopping()
        # every partition gets its own values, and both populations
        populations = (self.mean, self.root, mean, root, with_gradient)
        given = [[thing] * len(self.q) for thing in populations]
        sums = ordered_sum(self.executor.map(log_likelihood_in_population, self.q, *given))
        return LikelihoodAt(float(sums.log_likelihood[0]), sums.grad, sums.grad_outer_z)


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


class PopulationMove(NamedTuple):
    """Mean and root after a move, the log-likelihood there, and how the move went.

    gradient: of the log density in theta where the path began.
    """

    mean: Floats
    root: Floats
    log_likelihood: float
    outcome: PathOutcome
    gradient: Floats


class NoncentredTarget:
    """The log density of theta = start + metric x given each group's z, for `hmc.follow_path`.

    It remembers where it was evaluated last. A target of Python, the only one: its likelihood is a
    sum over partitions that an executor makes, perhaps on other machines, which compiled loops
    cannot wait for. Beside a pass over all decisions the path's own arithmetic costs nothing.
    """

    def __init__(
        self,
        prior: PopulationPrior,
        metric: Floats,
        mean: Floats,
        root: Floats,
        likelihood: LikelihoodFunction,
    ) -> None:
        self.prior, self.metric, self.likelihood = prior, metric, likelihood
        self.start = pack(mean, root)
        self.mean, self.root = np.empty_like(mean), np.empty_like(root)
        self.found: LikelihoodAt

    def log_density(self, x: Floats, gradient: Floats) -> float:
        """The log density at x, with its gradient in x: one pass over all decisions."""
        theta, width = self.start + self.metric @ x, self.mean.size
        if np.abs(theta[width : 2 * width]).max() > NONCENTRED.max_log_sd:
            return -np.inf
        unpack(theta, self.mean, self.root)
        self.found = self.likelihood(self.mean, self.root, True)
        grad_theta = np.empty_like(theta)
        value = log_density_noncentred(self.prior, theta, *self.found, grad_theta)
        gradient[:] = self.metric.T @ grad_theta
        return value


def hmc_noncentred(
    rng: np.random.Generator,
    prior: PopulationPrior,
    metric: Floats,
    step_size: float,
    mean: Floats,
    root: Floats,
    current: LikelihoodAt,
    likelihood: LikelihoodFunction,
) -> PopulationMove:
    """Move mean and root given each group's z, by a Hamiltonian path; all values follow.

    metric: a root of theta's covariance given z, theta as in `population.pack`. current: the
    likelihood at the start.
    """
    target = NoncentredTarget(prior, metric, mean, root, likelihood)
    gradient = np.empty(target.start.size)
    value = log_density_noncentred(prior, target.start, *current, gradient)
    state = HmcState(np.zeros(gradient.size), np.array([value]), metric.T @ gradient)
    path = PathWorkspace(*np.empty((3, gradient.size)))
    least, most = (
        min(steps, NONCENTRED.max_steps)
        for steps in steps_of_length(NONCENTRED.path_length, step_size)
    )
    outcome = follow_path(rng, target, None, LEAPFROG, step_size, least, most, state, path)
    if not outcome.accepted:
        return PopulationMove(mean, root, current.log_likelihood, outcome, gradient)
    return PopulationMove(target.mean, target.root, target.found.log_likelihood, outcome, gradient)


def slice_sample_sd(
    rng: np.random.Generator,
    prior: PopulationPrior,
    log_sd_spread: Floats,
    mean: Floats,
    root: Floats,
    log_likelihood: float,
    likelihood: LikelihoodFunction,
) -> tuple[Floats, float]:
    """The root of the covariance after the sd of one coordinate was drawn given each group's z.

    And the log-likelihood with it.

    Where groups are all but equal, sds may lie anywhere below what could be noticed, and the way
    back is long for paths. Slice sampling (Neal 2003) in the logarithm f of the factor steps out as
    far as it takes. Its density is exp(-(2 + D - 1) f), the law of the covariance with a integrated
    out, and the likelihood. log_sd_spread (D,): posterior sds of the log sds; the better an sd is
    known, the rarer it is drawn.
    """
    # any coordinate, and only sometimes: a well-known sd gains nothing
    k = int(rng.random() * mean.size)
    if rng.random() >= NONCENTRED.attempts_per_sd * log_sd_spread[k]:
        return root, log_likelihood
    # the precision that the prior needs, and how far to step out
    inverse = np.linalg.inv(root)
    precision = inverse.T @ inverse
    window = min(NONCENTRED.max_window, NONCENTRED.window_per_sd * log_sd_spread[k])

    def rescaled(log_factor: float) -> Floats:
        other = root.copy()
        other[k] *= math.exp(log_factor)
        return other

    def log_prior(log_factor: float) -> float:
        return log_density_of_rescaled_sd(prior, k, precision, log_factor)

    def log_density(log_factor: float) -> float:
        found = likelihood(mean, rescaled(log_factor), False)
        return found.log_likelihood + log_prior(log_factor)

    # the height of the slice, then stepping out, then shrinking
    level = log_likelihood + log_prior(0.0) - rng.standard_exponential()
    low = -window * rng.random()
    high = low + window
    while low > -NONCENTRED.max_log_sd and log_density(low) >= level:
        low -= window
    while high < NONCENTRED.max_log_sd and log_density(high) >= level:
        high += window
    for _ in range(SLICES.max_shrinks):
        log_factor = low + (high - low) * rng.random()
        if (height := log_density(log_factor)) >= level:
            return rescaled(log_factor), height - log_prior(log_factor)
        # the present point, 0, stays inside
        low, high = (log_factor, high) if log_factor < 0.0 else (low, log_factor)
    return root, log_likelihood
