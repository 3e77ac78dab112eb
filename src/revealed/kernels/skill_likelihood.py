"""How likely finishing orders are where skills change: utilities of entries from nodes of paths.

Node n is the skill of one label on one date (`models/skill_nodes.py`). The utility of entry e is

    u_e = sum of the values of its nodes + x_e'b,    b_p = sd_p beta_p,  beta standard normal

and orders given utilities have the likelihoods of `ranking_likelihood.py` and `plackett_luce.py`,
to which every entry is a player of its own. What is unknown beside the path has coordinates that
are standard normal before any game: b of the covariates, and the margin of a tie, whose half-normal
prior has the quantiles of a standard normal xi,

    1 - Phi(xi) = 2 (1 - Phi(margin / sd)).
"""

import math
from typing import NamedTuple

from revealed._types import Floats, Ints
from revealed.kernels._compile import compiled, compiled_internal
from revealed.kernels.normal import log_cdf, quantile_from_log_cdf
from revealed.kernels.plackett_luce import LuceGames
from revealed.kernels.ranking_hmc import log_order_likelihood
from revealed.kernels.ranking_likelihood import Games


class SkillData(NamedTuple):
    """Games of E entries, each of them a player of its own, and the nodes behind them.

    node: those of entry e from entry_start[e] on. covariates (E, P). coefficient_sd (P,): of the
    normal priors of coefficients. margin_sd: of the half-normal prior of the margin, or 0 where a
    win needs none; else its coordinate comes before those of coefficients.
    """

    games: Games | LuceGames
    node: Ints
    entry_start: Ints
    covariates: Floats
    coefficient_sd: Floats
    margin_sd: float

    @property
    def coordinates(self) -> int:
        """How many numbers are unknown beside the path.

        The margin, and a coefficient for every covariate.
        """
        return len(self.coefficient_sd) + (self.margin_sd > 0.0)

    @property
    def gaps(self) -> int:
        """How many utilities a likelihood is made of.

        One for each entry.
        """
        return len(self.entry_start) - 1

    @property
    def is_log_concave(self) -> bool:
        """Whether the likelihood is log-concave in the path.

        Under both noises it is.
        """
        return True

    def make_workspace(self) -> int:
        """Nothing: likelihoods of orders make their own arrays.

        A number, because a field of a compiled tuple must be something.
        """
        return 0


@compiled
def margin_of(xi: float, sd: float) -> tuple[float, float]:
    """The margin whose coordinate is xi, and the derivative of its logarithm in xi."""
    # minus the margin has half the probability of minus xi
    below = -quantile_from_log_cdf(log_cdf(-xi) - math.log(2.0))
    if not below > 0.0:
        return 0.0, 0.0
    # both densities without their common factor
    slope = 0.5 * math.exp(0.5 * (below * below - xi * xi))
    return sd * below, slope / below


@compiled_internal
def skill_log_likelihood(
    data: SkillData,
    utility: Floats,
    by_utility: Floats,
    value: Floats,
    noise: Floats,
    slope: Floats,
    own: Floats,
) -> float:
    """The log-likelihood of a path (N, 1) and of what else is unknown; its slopes in both.

    utility, by_utility: arrays of at least E numbers that are written to.
    """
    entries, width = data.entry_start.size - 1, data.coefficient_sd.size
    margin, by_xi, at = 0.0, 0.0, 0
    if data.margin_sd > 0.0:
        margin, by_xi = margin_of(noise[0], data.margin_sd)
        at = 1
    # utilities: what all nodes of an entry add up to, and its covariates
    for e in range(entries):
        total = 0.0
        for j in range(data.entry_start[e], data.entry_start[e + 1]):
            total += value[data.node[j], 0]
        for p in range(width):
            total += data.covariates[e, p] * data.coefficient_sd[p] * noise[at + p]
        utility[e] = total
    found, by_log_margin = log_order_likelihood(
        data.games, utility[:entries], margin, by_utility[:entries]
    )
    # back to nodes and coefficients by the chain rule
    for n in range(slope.shape[0]):
        slope[n, 0] = 0.0
    own[:] = 0.0
    # the margin has a coordinate of its own, others are of coefficients
    if data.margin_sd > 0.0:
        own[0] = by_log_margin * by_xi
    for e in range(entries):
        for j in range(data.entry_start[e], data.entry_start[e + 1]):
            slope[data.node[j], 0] += by_utility[e]
        for p in range(width):
            own[at + p] += by_utility[e] * data.covariates[e, p] * data.coefficient_sd[p]
    return found
