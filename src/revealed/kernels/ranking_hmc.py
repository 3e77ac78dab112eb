"""The log posterior of skills given finishing orders, and Hamiltonian paths on it.

Skills are spread * z with z standard normal; a spread that is inferred, and the margin of a tie,
are half-normal. The unknowns stand in one vector

    x = (z_1, ..., z_K, log spread, log margin)

with the last two only where they are unknown. Under a flat prior z are the skills themselves.
Densities of log spread and log margin have the Jacobian of the logarithm in them.

Under logit noise there is no margin, and orders have a closed form (`plackett_luce.py`). Loops
choose between the two likelihoods when they are compiled, by the class of their games.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from revealed._types import Floats
from revealed.kernels import plackett_luce
from revealed.kernels._compile import compiled
from revealed.kernels.hmc import (
    THREE_STAGES,
    HmcState,
    PathPlan,
    PathStatistics,
    hmc_move,
)
from revealed.kernels.log_density import log_density_of
from revealed.kernels.plackett_luce import LuceGames
from revealed.kernels.ranking_likelihood import Games, log_ranking_likelihood

luce_log_likelihood = plackett_luce.log_likelihood


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


def log_order_likelihood(
    games: Games | LuceGames, skill: Floats, margin: float, gradient: Floats
) -> tuple[float, float]:
    """Log probability of all orders, and its derivative in log margin, for loops.

    The derivatives in the skills go into gradient (K,).
    """
    raise NotImplementedError("only loops call this")


@overload(log_order_likelihood, strict=False, inline="always")  # type: ignore[untyped-decorator]
def _choose_likelihood(games: Any, skill: Any, margin: Any, gradient: Any) -> Any:
    def under_normal_noise(
        games: Games, skill: Floats, margin: float, gradient: Floats
    ) -> tuple[float, float]:
        return log_ranking_likelihood(games, skill, margin, gradient)

    def under_logit_noise(
        games: LuceGames, skill: Floats, margin: float, gradient: Floats
    ) -> tuple[float, float]:
        return luce_log_likelihood(games, skill, gradient), 0.0

    return under_logit_noise if games.instance_class is LuceGames else under_normal_noise


@compiled
def evaluate_likelihood(
    games: Games | LuceGames, prior: RankingPrior, x: Floats, out: RankingLikelihood
) -> None:
    """Write the log probability of all orders at x, and its derivatives, into out."""
    # x is unpacked: spread and margin are given where they are not in it
    n_players = out.grad_skills.size
    spread = math.exp(x[n_players]) if prior.spread == 0.0 else prior.spread
    margin = math.exp(x[-1]) if prior.margin_prior_sd > 0.0 else 0.0
    out.log_likelihood[0], out.grad_log_margin[0] = log_order_likelihood(
        games, spread * x[:n_players], margin, out.grad_skills
    )


class ScaledRanking(NamedTuple):
    """The log posterior of x / scale; scale (x.size,): widths of the posterior."""

    games: Games | LuceGames
    prior: RankingPrior
    scale: Floats


class RankingWorkspace(NamedTuple):
    """Where a path was evaluated last: the unknowns x, and the likelihood there."""

    x: Floats
    likelihood: RankingLikelihood


@log_density_of(ScaledRanking)
@compiled
def scaled_log_posterior(
    target: ScaledRanking, work: RankingWorkspace, scaled: Floats, floor: float, gradient: Floats
) -> float:
    """The log posterior at x = scale * scaled, with its gradient in scaled."""
    for d in range(scaled.size):
        work.x[d] = target.scale[d] * scaled[d]
    evaluate_likelihood(target.games, target.prior, work.x, work.likelihood)
    value: float = log_posterior(target.prior, work.x, work.likelihood, gradient)
    for d in range(scaled.size):
        gradient[d] *= target.scale[d]
    return value


@compiled
def move_unknowns(
    rng: np.random.Generator,
    target: ScaledRanking,
    plan: PathPlan,
    x: Floats,
    likelihood: RankingLikelihood,
    initial_gradient: Floats,
    statistics: PathStatistics,
    n: int,
    thin: int,
) -> None:
    """Move x along a Hamiltonian path, in place, as `hmc.hmc_move` does.

    likelihood: what `evaluate_likelihood` wrote at x; follows x, in place. The gradient of the log
    posterior where the path began goes into initial_gradient.
    """
    size, scale = x.size, target.scale
    work = RankingWorkspace(
        np.empty(size),
        RankingLikelihood(np.empty(1), np.empty(1), np.empty(likelihood.grad_skills.size)),
    )
    # the likelihood at x is known from the move before: one evaluation saved
    value = log_posterior(target.prior, x, likelihood, initial_gradient)
    state = HmcState(x / scale, np.full(1, value), initial_gradient * scale)
    # steps of three gradients: there may be hundreds of players
    if hmc_move(rng, target, work, THREE_STAGES, plan, state, statistics, n, thin):
        x[:] = work.x
        likelihood.log_likelihood[:] = work.likelihood.log_likelihood
        likelihood.grad_log_margin[:] = work.likelihood.grad_log_margin
        likelihood.grad_skills[:] = work.likelihood.grad_skills
