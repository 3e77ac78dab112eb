"""Moves of the population given standardised values: each group keeps its z, q = mean + root z.

The non-centred parameterisation (Papaspiliopoulos, Roberts and Skoeld 2007). Both moves call
a function for the likelihood of all groups, which may run on other machines, and do little besides:
the mean and the root of the covariance are a few dozen numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from revealed._types import Floats
from revealed.kernels.hmc import PATH
from revealed.kernels.population import (
    PopulationPrior,
    log_density_noncentred,
    log_density_of_rescaled_sd,
    pack,
    unpack,
)


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


class PopulationMove(NamedTuple):
    """Mean and root after a move, the log-likelihood there, and how the move went.

    probability: that of acceptance. gradient: of the log density in theta where the path began.
    """

    mean: Floats
    root: Floats
    log_likelihood: float
    probability: float
    gradient: Floats


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
    width, theta = mean.size, pack(mean, root)
    initial_gradient, gradient = np.empty(theta.size), np.empty(theta.size)
    log_density = log_density_noncentred(prior, theta, *current, initial_gradient)
    # a fresh momentum in the coordinates of the metric
    momentum = rng.standard_normal(theta.size)
    # step size and length vary, so that no path comes round to where it began
    epsilon = step_size * rng.uniform(0.9, 1.1)
    length = NONCENTRED.path_length / step_size * rng.uniform(0.7, 1.3)
    n_steps = min(max(1, int(length + 0.5)), NONCENTRED.max_steps)
    energy = 0.5 * (momentum @ momentum) - log_density
    refused = PopulationMove(mean, root, current.log_likelihood, 0.0, initial_gradient)
    gradient[:] = initial_gradient
    for _ in range(n_steps):
        # leapfrog: half a step of the momentum, one of theta, half of the momentum
        momentum += 0.5 * epsilon * (metric.T @ gradient)
        theta += epsilon * (metric @ momentum)
        if np.abs(theta[width : 2 * width]).max() > NONCENTRED.max_log_sd:
            return refused
        # one pass over all decisions for every step
        new_mean, new_root = np.empty_like(mean), np.empty_like(root)
        unpack(theta, new_mean, new_root)
        found = likelihood(new_mean, new_root, True)
        log_density = log_density_noncentred(prior, theta, *found, gradient)
        momentum += 0.5 * epsilon * (metric.T @ gradient)
        if not 0.5 * (momentum @ momentum) - log_density < energy + PATH.divergence_energy:
            return refused
    # Metropolis: accept by the error of the energy
    probability = math.exp(min(float(energy - 0.5 * (momentum @ momentum) + log_density), 0.0))
    if rng.random() < probability:
        return PopulationMove(
            new_mean, new_root, found.log_likelihood, probability, initial_gradient
        )
    return refused._replace(probability=probability)


def slice_sample_sd(
    rng: np.random.Generator,
    prior: PopulationPrior,
    log_sd_spread: Floats,
    mean: Floats,
    root: Floats,
    log_likelihood: float,
    likelihood: LikelihoodFunction,
) -> Floats:
    """The root of the covariance after the sd of one coordinate was drawn given each group's z.

    Where groups are all but equal, sds may lie anywhere below what could be noticed, and the way
    back is long for paths. Slice sampling (Neal 2003) in the logarithm f of the factor steps out as
    far as it takes. Its density is exp(-(2 + D - 1) f), the law of the covariance with a integrated
    out, and the likelihood. log_sd_spread (D,): posterior sds of the log sds; the better an sd is
    known, the rarer it is drawn.
    """
    # any coordinate, and only sometimes: a well-known sd gains nothing
    k = int(rng.random() * mean.size)
    if rng.random() >= NONCENTRED.attempts_per_sd * log_sd_spread[k]:
        return root
    # the precision that the prior needs, and how far to step out
    inverse = np.linalg.inv(root)
    precision = inverse.T @ inverse
    window = min(NONCENTRED.max_window, NONCENTRED.window_per_sd * log_sd_spread[k])

    def rescaled(log_factor: float) -> Floats:
        other = root.copy()
        other[k] *= math.exp(log_factor)
        return other

    def log_density(log_factor: float) -> float:
        found = likelihood(mean, rescaled(log_factor), False)
        return found.log_likelihood + log_density_of_rescaled_sd(prior, k, precision, log_factor)

    # the height of the slice, then stepping out, then shrinking
    at_present = log_likelihood + log_density_of_rescaled_sd(prior, k, precision, 0.0)
    level = at_present - rng.standard_exponential()
    low = -window * rng.random()
    high = low + window
    while low > -NONCENTRED.max_log_sd and log_density(low) >= level:
        low -= window
    while high < NONCENTRED.max_log_sd and log_density(high) >= level:
        high += window
    while True:
        log_factor = low + (high - low) * rng.random()
        if log_density(log_factor) >= level:
            return rescaled(log_factor)
        # the present point, 0, stays inside
        low, high = (log_factor, high) if log_factor < 0.0 else (low, log_factor)
