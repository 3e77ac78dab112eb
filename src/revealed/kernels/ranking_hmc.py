"""The log posterior of skills given finishing orders, and Hamiltonian paths on it.

Skills are spread * z with z standard normal; a spread that is inferred, and the margin of a tie,
are half-normal. The unknowns stand in one vector

    x = (z_1, ..., z_K, log spread, log margin)

with the last two only where they are unknown. Under a flat prior z are the skills themselves.
Densities of log spread and log margin have the Jacobian of the logarithm in them.
"""

import math
from typing import NamedTuple

import numpy as np

from revealed._types import Floats
from revealed.kernels._compile import compiled
from revealed.kernels.hmc import PATH
from revealed.kernels.ranking_likelihood import Games, log_ranking_likelihood

# A step of three gradients, made for many dimensions (Blanes, Casas and Sanz-Serna 2014): kick,
# drift, ..., drift, and the first kick again.
KICK = np.array([0.11888010966548, 0.5 - 0.11888010966548, 0.5 - 0.11888010966548])
DRIFT = np.array([0.29619504261126, 1.0 - 2.0 * 0.29619504261126, 0.29619504261126])


class RankingPrior(NamedTuple):
    """The prior of skills, spread and margin.

    z_precision: 1, or 0 under a flat prior. spread: that of the skills, or 0 where it is inferred,
    with a half-normal prior of sd spread_prior_sd. margin_prior_sd: that of the half-normal prior
    of the margin, or 0 where nobody ties.
    """

    z_precision: float
    spread: float
    spread_prior_sd: float
    margin_prior_sd: float


class RankingLikelihood(NamedTuple):
    """Log probability of all orders (1,); its derivatives in log margin (1,) and skills (K,)."""

    log_likelihood: Floats
    grad_log_margin: Floats
    grad_skills: Floats


@compiled
def log_posterior(
    prior: RankingPrior, x: Floats, likelihood: RankingLikelihood, gradient: Floats
) -> float:
    """The log posterior at x up to a constant; its gradient goes into gradient (x.size,).

    likelihood: what `evaluate_likelihood` wrote at x.
    """
    grad_skills = likelihood.grad_skills
    at = grad_skills.size
    spread = prior.spread
    value: float = likelihood.log_likelihood[0]
    # log spread: half-normal prior, Jacobian, and all skills = spread z
    if prior.spread == 0.0:
        spread = math.exp(x[at])
        value += x[at] - 0.5 * (spread / prior.spread_prior_sd) ** 2
        gradient[at] = 1.0 - (spread / prior.spread_prior_sd) ** 2
        for k in range(grad_skills.size):
            gradient[at] += spread * x[k] * grad_skills[k]
        at += 1
    # log margin: half-normal prior and Jacobian
    if prior.margin_prior_sd > 0.0:
        margin = math.exp(x[at])
        value += x[at] - 0.5 * (margin / prior.margin_prior_sd) ** 2
        gradient[at] = likelihood.grad_log_margin[0] + 1.0 - (margin / prior.margin_prior_sd) ** 2
    for k in range(grad_skills.size):
        # z: standard normal, or flat
        value -= 0.5 * prior.z_precision * x[k] * x[k]
        gradient[k] = spread * grad_skills[k] - prior.z_precision * x[k]
    return value


@compiled
def evaluate_likelihood(
    games: Games, prior: RankingPrior, x: Floats, out: RankingLikelihood
) -> None:
    """Write the log probability of all orders at x, and its derivatives, into out."""
    # x is unpacked: spread and margin are given where they are not in it
    n_players = out.grad_skills.size
    spread = math.exp(x[n_players]) if prior.spread == 0.0 else prior.spread
    margin = math.exp(x[-1]) if prior.margin_prior_sd > 0.0 else 0.0
    out.log_likelihood[0], out.grad_log_margin[0] = log_ranking_likelihood(
        games, spread * x[:n_players], margin, out.grad_skills
    )


@compiled
def hmc_step(
    rng: np.random.Generator,
    games: Games,
    prior: RankingPrior,
    scale: Floats,
    step_size: float,
    n_steps: int,
    x: Floats,
    likelihood: RankingLikelihood,
    initial_gradient: Floats,
) -> float:
    """One Hamiltonian path of x, in place, in units of scale; returns its acceptance probability.

    likelihood: what `evaluate_likelihood` wrote at x; follows x, in place. The gradient of the log
    posterior where the path began goes into initial_gradient.
    """
    size = x.size
    new_x, gradient, momentum = x.copy(), np.empty(size), np.empty(size)
    new_likelihood = RankingLikelihood(
        likelihood.log_likelihood.copy(),
        likelihood.grad_log_margin.copy(),
        likelihood.grad_skills.copy(),
    )
    # the likelihood at x is known from the move before: one evaluation saved
    initial_energy = -log_posterior(prior, x, likelihood, gradient)
    initial_gradient[:] = gradient
    for d in range(size):
        momentum[d] = rng.standard_normal()
        initial_energy += 0.5 * momentum[d] * momentum[d]
    energy = initial_energy
    for _ in range(n_steps):
        # three kicks and drifts, then the first kick again
        for stage in range(3):
            for d in range(size):
                momentum[d] += KICK[stage] * step_size * scale[d] * gradient[d]
                new_x[d] += DRIFT[stage] * step_size * scale[d] * momentum[d]
            evaluate_likelihood(games, prior, new_x, new_likelihood)
            energy = -log_posterior(prior, new_x, new_likelihood, gradient)
        for d in range(size):
            momentum[d] += KICK[0] * step_size * scale[d] * gradient[d]
            energy += 0.5 * momentum[d] * momentum[d]
        if not energy < initial_energy + PATH.divergence_energy:
            return 0.0
    # Metropolis: accept by the error of the energy
    probability = math.exp(min(initial_energy - energy, 0.0))
    if rng.random() < probability:
        x[:] = new_x
        likelihood.log_likelihood[:] = new_likelihood.log_likelihood
        likelihood.grad_log_margin[:] = new_likelihood.grad_log_margin
        likelihood.grad_skills[:] = new_likelihood.grad_skills
    return probability
