"""Moves of coefficients, noise covariance and the normals of the GHK simulator.

A chain moves (theta, z) under prior(theta) N(z; 0, I) prod weight(theta, z), see
`ghk_posterior.py`, in turn:

    z given theta     proposed from N(0, I), each decision's accepted by the ratio of its weights
    theta given z     a Hamiltonian path in whitened coordinates, theta = centre + root x
"""

from typing import NamedTuple

import numpy as np

from revealed._types import Floats
from revealed.kernels._compile import compiled
from revealed.kernels.ghk import log_cdf_pairs, log_mean_weights
from revealed.kernels.ghk_posterior import (
    GHKLogPosterior,
    GHKPosteriorWorkspace,
    log_posterior,
    multiply_matrix,
    multiply_transpose,
    set_parameters,
)
from revealed.kernels.hmc import (
    LEAPFROG,
    HmcState,
    PathPlan,
    PathStatistics,
    hmc_move,
)
from revealed.kernels.interrupt import stop_requested
from revealed.kernels.log_density import log_density_of


class WhitenedGHK(NamedTuple):
    """The log posterior given z, in coordinates x where it is about standard normal.

    theta = centre + root x. log_cdf_z: what `ghk.log_cdf_pairs` makes of z.
    """

    posterior: GHKLogPosterior
    log_cdf_z: Floats
    centre: Floats
    root: Floats


@compiled
def unwhiten(target: WhitenedGHK, x: Floats, theta: Floats) -> None:
    """Write theta at the whitened coordinates x."""
    multiply_matrix(target.root, x, theta)
    for i in range(theta.size):
        theta[i] += target.centre[i]


@log_density_of(WhitenedGHK)
@compiled
def whitened_log_posterior(
    target: WhitenedGHK, work: GHKPosteriorWorkspace, x: Floats, floor: float, gradient: Floats
) -> float:
    """The log of prior times weights at x, with its gradient in x."""
    unwhiten(target, x, work.theta)
    value: float = log_posterior(
        target.posterior, work, work.theta, target.log_cdf_z, work.grad_theta
    )
    multiply_transpose(target.root, work.grad_theta, gradient)
    return value


@compiled
def update_normals(
    rng: np.random.Generator,
    target: GHKLogPosterior,
    work: GHKPosteriorWorkspace,
    theta: Floats,
    z: Floats,
    log_cdf_z: Floats,
) -> float:
    """Draw z given theta, in place; returns the share of decisions that accepted.

    Proposed from N(0, I), each decision's accepted by the ratio of its weights: independence
    Metropolis-Hastings.
    """
    start, decisions = target.rivals.start, target.rivals.choice_set.size
    proposed, proposed_log_cdf = np.empty(z.size), np.empty((z.size, 2))
    for i in range(z.size):
        proposed[i] = rng.standard_normal()
    log_cdf_pairs(proposed, proposed_log_cdf)
    # the weights of all decisions at the proposed normals, then each decision for itself
    set_parameters(target, work, theta)
    log_mean_weights(
        target.rivals, work.m, work.factors, proposed_log_cdf, work.ghk, work.log_weights
    )
    accepted = 0
    for i in range(decisions):
        if work.log_weights[i] - work.current_log_weights[i] > -rng.standard_exponential():
            accepted += 1
            # a decision with n rivals has n - 1 normals: the last rival needs none
            for k in range(start[i] - i, start[i + 1] - i - 1):
                z[k] = proposed[k]
                log_cdf_z[k] = proposed_log_cdf[k]
    return accepted / decisions


@compiled
def sample_chain(
    rng: np.random.Generator,
    target: WhitenedGHK,
    work: GHKPosteriorWorkspace,
    plan: PathPlan,
    thin: int,
    x: Floats,
    z: Floats,
    theta: Floats,
    statistics: PathStatistics,
    ghk_acceptance_rate: Floats,
) -> None:
    """Write draws of theta (n, .), moving z and x in turn.

    ghk_acceptance_rate (n,): the share of decisions whose normals were accepted.
    """
    posterior, log_cdf_z = target.posterior, target.log_cdf_z
    state = HmcState(x, np.empty(1), np.empty(x.size))
    # weights where the chain is, for the first update of z
    log_cdf_pairs(z, log_cdf_z)
    unwhiten(target, x, work.theta)
    set_parameters(posterior, work, work.theta)
    log_mean_weights(
        posterior.rivals, work.m, work.factors, log_cdf_z, work.ghk, work.current_log_weights
    )
    for n in range(theta.shape[0]):
        ghk_acceptance_rate[n] = 0.0
        for _ in range(thin):
            if stop_requested():
                return
            # z given theta, then theta given z; the weights follow both
            unwhiten(target, x, work.theta)
            ghk_acceptance_rate[n] += (
                update_normals(rng, posterior, work, work.theta, z, log_cdf_z) / thin
            )
            state.log_density[0] = whitened_log_posterior(target, work, x, -np.inf, state.gradient)
            work.current_log_weights[:] = work.log_weights
            if hmc_move(rng, target, work, LEAPFROG, plan, state, statistics, n, thin):
                work.current_log_weights[:] = work.log_weights
        unwhiten(target, x, theta[n])


@compiled
def move_particles(
    rng: np.random.Generator,
    target: WhitenedGHK,
    work: GHKPosteriorWorkspace,
    plan: PathPlan,
    x: Floats,
    z: Floats,
    acceptance: Floats,
) -> None:
    """One iteration for each of many chains, in place: x (N, .) and z (N, R - T).

    acceptance (N,) gets the acceptance probabilities of the paths.
    """
    theta, rate = np.empty((1, x.shape[1])), np.empty(1)
    statistics = PathStatistics(np.zeros(1), np.zeros(1), np.zeros(1), np.zeros(1), np.zeros(1))
    for n in range(x.shape[0]):
        statistics.acceptance_rate[0] = 0.0
        # a literal one would have the loop compiled again
        sample_chain(rng, target, work, plan, rate.size, x[n], z[n], theta, statistics, rate)
        acceptance[n] = statistics.acceptance_rate[0]


@compiled
def log_weights_of_particles(
    target: GHKLogPosterior,
    work: GHKPosteriorWorkspace,
    theta: Floats,
    z: Floats,
    log_weights: Floats,
) -> None:
    """Write the sum of the log weights of all decisions at each of theta (N, .) and z (N, R - T).

    Minus infinity where a covariance cannot be factorised.
    """
    log_cdf_z = np.empty((z.shape[1], 2))
    for n in range(theta.shape[0]):
        log_weights[n] = -np.inf
        if set_parameters(target, work, theta[n]):
            log_cdf_pairs(z[n], log_cdf_z)
            log_weights[n] = log_mean_weights(
                target.rivals, work.m, work.factors, log_cdf_z, work.ghk, work.log_weights
            )


@compiled
def add_curvature(
    target: GHKLogPosterior,
    work: GHKPosteriorWorkspace,
    theta: Floats,
    log_cdf_z: Floats,
    width: Floats,
    out: Floats,
) -> None:
    """Add minus the Hessian of the log posterior given z to out.

    By central differences of the gradient over `width` in each coordinate, made symmetric.
    """
    grad_high, grad_low, shifted = np.empty(theta.size), np.empty(theta.size), theta.copy()
    for i in range(theta.size):
        if stop_requested():
            return
        # one column of the Hessian; half of it goes to its row, which makes the sum symmetric
        shifted[i] = theta[i] + width[i]
        log_posterior(target, work, shifted, log_cdf_z, grad_high)
        shifted[i] = theta[i] - width[i]
        log_posterior(target, work, shifted, log_cdf_z, grad_low)
        shifted[i] = theta[i]
        for j in range(theta.size):
            half = 0.25 * (grad_low[j] - grad_high[j]) / width[i]
            out[i, j] += half
            out[j, i] += half
