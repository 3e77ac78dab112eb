"""Groups of one population with a common noise covariance: each conditional given the utilities.

    w_t = X_t q_i + noise,  noise ~ N(0, S)       decision t, made by group i
    q_i ~ N(mean, covariance)                     priors as in `population.py`

Given utilities w and the noise covariance S every group is a normal regression, which is known by
its Gram matrix G_i, the sum of X' S^-1 X, and by b_i, the sum of X' S^-1 w:

    mean              normal, with all values integrated out
    q_i given mean    normal
    root given z      q_i = mean + root z_i: entry by entry, by slices
    S                 as in `covariance_gibbs.py`; values, mean and root are all rescaled with it

The law of the population given values (`population.draw_population`) and its root given the
standardised values z take turns: interweaving (Yu and Meng 2011).
"""

import math
from typing import Any, NamedTuple

import numpy as np

from revealed._types import Floats, Ints
from revealed.kernels._compile import compiled
from revealed.kernels.covariance_gibbs import (
    DifferencedDecisions,
    NoisePrior,
    draw_utilities,
    propose_covariance,
)
from revealed.kernels.population import (
    SD_PRIOR_DF,
    PopulationPrior,
    draw_population,
    inverse_gamma_conditionals,
)
from revealed.kernels.root_slices import draw_root_given_standardised
from revealed.kernels.vectors import dot


class HierarchicalUtilities(NamedTuple):
    """The decisions of all groups, and the noise's prior.

    decisions: their design (T, D, F) in the F free coordinates. group (T,): whose each is.
    """

    decisions: DifferencedDecisions
    group: Ints
    noise_prior: NoisePrior


class HierarchicalState(NamedTuple):
    """Where a chain is; all arrays change in place.

    q (N, F): the groups' values. mean (F,), covariance (F, F): the population's. w (T, D):
    utilities. noise_covariance (D, D), on the reported scale.
    """

    q: Floats
    mean: Floats
    covariance: Floats
    w: Floats
    noise_covariance: Floats


class GroupRegressions(NamedTuple):
    """What the utilities say of each group's value: gram (N, F, F) and moment (N, F)."""

    gram: Floats
    moment: Floats


@compiled
def write_residuals(
    utilities: HierarchicalUtilities, state: HierarchicalState, out: Floats
) -> None:
    """Write each utility less its mean, w - X q, into out (T, D)."""
    design = utilities.decisions.design
    for t in range(out.shape[0]):
        value = state.q[utilities.group[t]]
        for d in range(out.shape[1]):
            out[t, d] = state.w[t, d] - dot(design[t, d], value)


@compiled
def sum_regressions(
    utilities: HierarchicalUtilities, inverse: Floats, w: Floats, groups: int
) -> GroupRegressions:
    """The regressions of all groups given the inverse (D, D) of the noise covariance."""
    design = utilities.decisions.design
    count, size, width = design.shape
    gram, moment = np.zeros((groups, width, width)), np.zeros((groups, width))
    weighted = np.empty((size, width))
    for t in range(count):
        i = utilities.group[t]
        # S^-1 X, then X' S^-1 X and X' S^-1 w
        for d in range(size):
            for k in range(width):
                total = 0.0
                for e in range(size):
                    total += inverse[d, e] * design[t, e, k]
                weighted[d, k] = total
        for k in range(width):
            for d in range(size):
                moment[i, k] += weighted[d, k] * w[t, d]
                for j in range(width):
                    gram[i, k, j] += design[t, d, k] * weighted[d, j]
    return GroupRegressions(gram, moment)


@compiled
def draw_mean_and_values(
    rng: np.random.Generator,
    prior: PopulationPrior,
    covariance: Floats,
    regressions: GroupRegressions,
    mean: Floats,
    q: Floats,
) -> None:
    """Draw the mean with all values integrated out, then each value given it, in place.

    With the population's precision P: a group adds P (P + G)^-1 G to the precision of the mean,
    and P (P + G)^-1 b to its first moment.
    """
    groups, width = q.shape
    precision = np.linalg.inv(covariance)
    inverses = np.empty_like(regressions.gram)
    total, moment = prior.precision.copy(), prior.precision @ prior.mean
    for i in range(groups):
        inverses[i] = np.linalg.inv(precision + regressions.gram[i])
        shrunk = precision @ inverses[i]
        total += shrunk @ regressions.gram[i]
        moment += shrunk @ regressions.moment[i]
    # symmetric but for rounding
    root = np.linalg.cholesky(0.5 * (total + total.T))
    half = np.linalg.solve(root, moment)
    for k in range(width):
        half[k] += rng.standard_normal()
    mean[:] = np.linalg.solve(root.T, half)
    # each value about its regression's answer
    pull, noise = precision @ mean, np.empty(width)
    for i in range(groups):
        for k in range(width):
            noise[k] = rng.standard_normal()
        q[i] = (
            inverses[i] @ (pull + regressions.moment[i]) + np.linalg.cholesky(inverses[i]) @ noise
        )


@compiled
def draw_population_given_values(
    rng: np.random.Generator, prior: PopulationPrior, state: HierarchicalState
) -> None:
    """Draw the population's covariance, and its mean again, given the values; in place."""
    deviation = state.q - state.mean
    mean, covariance = draw_population(
        rng,
        prior,
        state.q.shape[0],
        state.mean,
        deviation.sum(axis=0),
        deviation.T @ deviation,
        state.covariance,
    )
    state.mean[:] = mean
    state.covariance[:] = covariance


@compiled
def log_ratio_of_rescaled_population(
    prior: PopulationPrior, mean: Floats, covariance: Floats, log_factor: float
) -> float:
    """Log ratio of the densities of mean and root times a factor, and of mean and root.

    With the Jacobian of the factor.
    """
    width, factor = mean.size, math.exp(log_factor)
    before, after = mean - prior.mean, factor * mean - prior.mean
    total: float = width * log_factor - 0.5 * (
        dot(after, prior.precision @ after) - dot(before, prior.precision @ before)
    )
    # every row of the root grows by the factor: so many powers as in `population.py` for each
    powers = width * (SD_PRIOR_DF + width - 1.0)
    total -= powers * log_factor
    precision: Any = np.linalg.inv(covariance)
    shape, rate = inverse_gamma_conditionals(precision, prior.sd_scale, prior.scale_group)
    _, new_rate = inverse_gamma_conditionals(
        precision / factor**2, prior.sd_scale, prior.scale_group
    )
    for g in range(shape.size):
        total -= shape[g] * math.log(new_rate[g] / rate[g])
    return total


@compiled
def draw_noise_covariance(
    rng: np.random.Generator,
    utilities: HierarchicalUtilities,
    prior: PopulationPrior,
    state: HierarchicalState,
    residuals: Floats,
) -> bool:
    """Propose the noise covariance given all else; returns whether it was accepted.

    If so, utilities, values and population are all rescaled with it, in place. The law of the
    values given the population is the same on every scale; that of the population is not.
    """
    write_residuals(utilities, state, residuals)
    proposed, ratio = propose_covariance(
        rng, utilities.noise_prior, residuals, state.noise_covariance
    )
    log_ratio = log_ratio_of_rescaled_population(
        prior, state.mean, state.covariance, math.log(ratio)
    )
    if log_ratio < -rng.standard_exponential():
        return False
    for array in (state.w, state.q):
        array *= ratio
    state.mean[:] *= ratio
    state.covariance[:] *= ratio**2
    state.noise_covariance[:] = proposed
    return True


@compiled
def iterate(
    rng: np.random.Generator,
    utilities: HierarchicalUtilities,
    prior: PopulationPrior,
    state: HierarchicalState,
) -> bool:
    """One iteration, in place; returns whether the noise covariance was accepted."""
    inverse: Any = np.ascontiguousarray(np.linalg.inv(state.noise_covariance))
    means = np.empty_like(state.w)
    # utilities given values, by their means
    write_residuals(utilities, state, means)
    means[:] = state.w - means
    draw_utilities(rng, utilities.decisions, means, inverse, state.w)
    # values and population given utilities
    regressions = sum_regressions(utilities, inverse, state.w, state.q.shape[0])
    draw_mean_and_values(rng, prior, state.covariance, regressions, state.mean, state.q)
    draw_population_given_values(rng, prior, state)
    draw_root_given_standardised(
        rng, prior, regressions.gram, regressions.moment, state.mean, state.covariance, state.q
    )
    # means are of no further use: their array is written to
    return draw_noise_covariance(rng, utilities, prior, state, means)
