"""How likely finishing orders are, and how that changes with the skills behind them.

A game's entries, best first, have utilities w_k, normal with mean m_k and sd s_k, and
w_0 > w_1 > ... was seen; m_k is the sum of the skills of the entry's players. The noise is shared
by all comparisons of a game, so an order does not split into choices. Two entries have a closed
form, Phi; more are a chain of integrals along a grid (`ranking_chain.py`).
"""

import math
from typing import NamedTuple

import numpy as np

from revealed._types import Bools, Floats, Ints
from revealed.kernels._compile import compiled
from revealed.kernels.normal import log_cdf_and_ratio
from revealed.kernels.ranking_chain import (
    GRID,
    Order,
    chain_log_probability,
    chain_workspace_size,
)


class Games(NamedTuple):
    """Entries of G games in finishing order.

    players: (N,), those of entry e from member_start[e] on. start: (G + 1,) where each game's
    entries begin. sd: (E,) of an entry's noise. tied: (E,) with the entry before it. n_ordered:
    (G,) how many entries of a game are in order; the others came behind them.
    """

    players: Ints
    member_start: Ints
    start: Ints
    sd: Floats
    tied: Bools
    n_ordered: Ints


@compiled
def log_ranking_likelihood(
    games: Games, skill: Floats, margin: float, gradient: Floats
) -> tuple[float, float]:
    """Log probability of all orders, and its derivative in log margin.

    The derivatives in the skills go into gradient (K,), unless that is empty.
    """
    # arrays for the largest game serve all
    total, grad_log_margin = 0.0, 0.0
    gradient[:] = 0.0
    most = 0
    for g in range(games.n_ordered.size):
        most = max(most, games.start[g + 1] - games.start[g])
    mean, grad_mean = np.empty(most), np.empty(most if gradient.size > 0 else 0)
    workspace = np.empty(0)
    for g in range(games.n_ordered.size):
        # an entry's mean is the sum of its players' skills
        low, high = games.start[g], games.start[g + 1]
        for e in range(low, high):
            total_skill = 0.0
            for j in range(games.member_start[e], games.member_start[e + 1]):
                total_skill += skill[games.players[j]]
            mean[e - low] = total_skill
        count = high - low
        # two entries have a closed form
        if count == 2:
            value, by_margin = _pair_log_probability(
                mean, games.sd[low:high], games.tied[low + 1], margin, grad_mean
            )
        else:
            # the workspace grows when a game needs more, and is kept
            order = Order(
                mean[:count],
                games.sd[low:high],
                games.tied[low:high],
                games.n_ordered[g],
                margin,
            )
            needed = chain_workspace_size(order, gradient.size > 0, 1.0)
            if needed < 0:
                return -np.inf, 0.0
            if needed > workspace.size:
                workspace = np.empty(needed + needed // 4)
            value, by_margin = chain_log_probability(order, grad_mean, 1.0, workspace)
        total += value
        grad_log_margin += by_margin
        if gradient.size > 0:
            # the derivative in an entry's mean is that in the skill of each of its players
            for e in range(low, high):
                for j in range(games.member_start[e], games.member_start[e + 1]):
                    gradient[games.players[j]] += grad_mean[e - low]
    return total, grad_log_margin


@compiled
def log_ranking_probability(
    mean: Floats,
    sd: Floats,
    tied: Bools,
    n_ordered: int,
    margin: float,
    gradient: Floats,
    refinement: float,
) -> tuple[float, float]:
    """Log probability of one order, and its derivative in log margin.

    The derivatives in the means go into gradient (n,), unless that is empty. Steps of the grid are
    multiplied by refinement.
    """
    if mean.size == 2:
        return _pair_log_probability(mean, sd, tied[1], margin, gradient)
    order = Order(mean, sd, tied, n_ordered, margin)
    # more entries need a grid, unless their means are too far apart for one
    needed = chain_workspace_size(order, gradient.size > 0, refinement)
    if needed < 0:
        return -np.inf, 0.0
    return chain_log_probability(order, gradient, refinement, np.empty(needed))


@compiled
def log_ranking_probabilities(
    means: Floats, sd: Floats, tied: Bools, n_ordered: int, margin: Floats
) -> Floats:
    """(S,) log probabilities of one order under S sets of means (S, n) and margins (S,)."""
    out = np.empty(margin.size)
    none = np.empty(0)
    for s in range(margin.size):
        out[s] = log_ranking_probability(
            means[s], sd, tied, n_ordered, margin[s], none, GRID.prediction_refinement
        )[0]
    return out


@compiled
def _pair_log_probability(
    mean: Floats, sd: Floats, tie: bool, margin: float, gradient: Floats
) -> tuple[float, float]:
    """Two entries: log P(w_0 - w_1 > margin), or log P(|w_0 - w_1| <= margin) for a tie.

    Returns also the derivative in log margin; those in the means go into gradient.
    """
    # the difference of the two utilities is normal with this sd
    scale = math.sqrt(sd[0] * sd[0] + sd[1] * sd[1])
    difference, bound = (mean[0] - mean[1]) / scale, margin / scale
    if not tie:
        value, grad = log_cdf_and_ratio(difference - bound)
        by_margin = -grad * bound
    else:
        # Phi(upper) - Phi(lower), from the side where both bounds lie in the lower tail
        side = 1.0 if difference < 0.0 else -1.0
        upper, by_upper = log_cdf_and_ratio(bound + side * difference)
        lower, by_lower = log_cdf_and_ratio(-bound + side * difference)
        share = math.exp(lower - upper)
        value = upper + math.log1p(-share)
        grad = side * (by_upper - by_lower * share) / (1.0 - share)
        by_margin = (by_upper + by_lower * share) / (1.0 - share) * bound
    if gradient.size > 0:
        gradient[0], gradient[1] = grad / scale, -grad / scale
    return value, by_margin
