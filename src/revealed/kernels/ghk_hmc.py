"""Moves of coefficients, noise covariance and the normals of the GHK simulator.

A chain moves (theta, z) under prior(theta) N(z; 0, I) prod weight(theta, z), see
`ghk_posterior.py`, in turn:

    z given theta     proposed from N(0, I), each decision's accepted by the ratio of its weights
    theta given z     a Hamiltonian path in whitened coordinates, theta = centre + root x
"""

import math
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
from revealed.kernels.hmc import ADAPTATION, PATH, update_step_size
from revealed.kernels.vectors import dot


class Whitening(NamedTuple):
    """Coordinates x in which the posterior is about standard normal: theta = centre + root x."""

    centre: Floats
    root: Floats


class ChainOutput(NamedTuple):
    """Where `sample_chain` writes draws of theta (n, .) and acceptance rates (n,) of its moves."""

    theta: Floats
    acceptance_rate: Floats
    ghk_acceptance_rate: Floats


@compiled
def unwhiten(whitening: Whitening, x: Floats) -> Floats:
    """Theta at the whitened coordinates x."""
    theta = np.empty(whitening.centre.size)
    multiply_matrix(whitening.root, x, theta)
    for i in range(theta.size):
        theta[i] += whitening.centre[i]
    return theta


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
def hmc_step(
    rng: np.random.Generator,
    target: GHKLogPosterior,
    work: GHKPosteriorWorkspace,
    log_cdf_z: Floats,
    whitening: Whitening,
    step_size: float,
    n_steps: int,
    x: Floats,
) -> float:
    """One Hamiltonian move of the whitened x given z, in place; returns the acceptance probability.

    A leapfrog path of n_steps. work.current_log_weights follow x.
    """
    root = whitening.root
    grad_theta, grad_x = np.empty(x.size), np.empty(x.size)
    proposed, momentum = x.copy(), np.empty(x.size)
    for d in range(x.size):
        momentum[d] = rng.standard_normal()
    # the energy to start with; weights at x are kept for the next update of z
    value = log_posterior(target, work, unwhiten(whitening, x), log_cdf_z, grad_theta)
    work.current_log_weights[:] = work.log_weights
    initial_energy = 0.5 * dot(momentum, momentum) - value
    # a random step size, so that no path comes round to where it began
    epsilon = step_size * (1.0 + PATH.step_jitter * (2.0 * rng.random() - 1.0))
    energy = initial_energy
    for _ in range(n_steps):
        # leapfrog: half a step of the momentum, one of the position, half of the momentum
        multiply_transpose(root, grad_theta, grad_x)
        for d in range(x.size):
            momentum[d] += 0.5 * epsilon * grad_x[d]
            proposed[d] += epsilon * momentum[d]
        value = log_posterior(target, work, unwhiten(whitening, proposed), log_cdf_z, grad_theta)
        multiply_transpose(root, grad_theta, grad_x)
        for d in range(x.size):
            momentum[d] += 0.5 * epsilon * grad_x[d]
        energy = 0.5 * dot(momentum, momentum) - value
        # a divergent path is refused; the comparison is false for NaN, which ends it as well
        if not energy < initial_energy + PATH.divergence_energy:
            return 0.0
    # Metropolis: accept by the error of the energy
    probability = math.exp(min(initial_energy - energy, 0.0))
    if rng.random() < probability:
        x[:] = proposed
        work.current_log_weights[:] = work.log_weights
    return probability


@compiled
def sample_chain(
    rng: np.random.Generator,
    target: GHKLogPosterior,
    work: GHKPosteriorWorkspace,
    whitening: Whitening,
    adaptation: Floats,
    path_length: float,
    target_acceptance: float,
    thin: int,
    x: Floats,
    z: Floats,
    out: ChainOutput,
) -> float:
    """Fill `out` with draws, moving z and x in turn; paths of about path_length.

    adaptation is the step size and what it was adapted from so far
    (`hmc.init_dual_averaging`). Where target_acceptance > 0, it is adapted further, in place, to
    be accepted with that probability. Returns the averaged step size.
    """
    # paths vary by 30 % in length, so that none has the period of the posterior; a step size that
    # collapses is kept from making endless ones, and above a hundredth of where it began
    shortest, variation, smallest_share = 0.7, 0.6, 1e-2
    # weights where the chain is, for the first update of z
    log_cdf_z = np.empty((z.size, 2))
    log_cdf_pairs(z, log_cdf_z)
    set_parameters(target, work, unwhiten(whitening, x))
    log_mean_weights(
        target.rivals, work.m, work.factors, log_cdf_z, work.ghk, work.current_log_weights
    )
    for n in range(out.theta.shape[0]):
        out.acceptance_rate[n], out.ghk_acceptance_rate[n] = 0.0, 0.0
        for _ in range(thin):
            # z given theta, then theta given z
            theta = unwhiten(whitening, x)
            out.ghk_acceptance_rate[n] += (
                update_normals(rng, target, work, theta, z, log_cdf_z) / thin
            )
            step_size = adaptation[ADAPTATION.step_size]
            length = (shortest + variation * rng.random()) * path_length
            n_steps = min(max(1, int(length / step_size + 0.5)), PATH.max_steps)
            probability = hmc_step(rng, target, work, log_cdf_z, whitening, step_size, n_steps, x)
            out.acceptance_rate[n] += probability / thin
        if target_acceptance > 0.0:
            initial_step_size = adaptation[ADAPTATION.initial_step_size]
            update_step_size(
                adaptation, target_acceptance, probability, smallest_share * initial_step_size
            )
        out.theta[n] = unwhiten(whitening, x)
    return math.exp(adaptation[ADAPTATION.log_mean_step_size])


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
