"""Lapses: with some probability the choice is made blindly, whatever the utilities are.

    P' = (1 - rate) P + rate / M,

M being the number of actions offered. The rate has a coordinate z of its own, which comes after the
coefficients of the value and has a standard normal prior:

    log odds of the rate = m(z),   m increasing,

so that the rate has the prior of which m is the quantile function (in log odds, of normal
quantiles). With w = (1 - rate) P / P', the probability that the choice was no lapse,

    d log P' / d utility = w d log P / d utility,    d log P' / d log odds = 1 - w - rate.
"""

import math
from typing import NamedTuple

import numpy as np

from revealed._types import Floats
from revealed.kernels._compile import compiled, compiled_internal, compiled_within
from revealed.kernels.choice_fast import ChoiceWorkspace, RivalIndex
from revealed.kernels.choice_independent import log_likelihood as log_likelihood_without_lapses
from revealed.kernels.noise import LapseArguments


class LapseTable(NamedTuple):
    """Where m(z) and its slope are written down: from -reach to reach, so many for each one of z.

    Between two of them m is a cubic polynomial, beyond the last it is a straight line. With 16 for
    each unit the density of the rate is right to a millionth.
    """

    reach: int = 9
    density: int = 16

    @property
    def nodes(self) -> Floats:
        """The places z."""
        return np.linspace(-self.reach, self.reach, 2 * self.reach * self.density + 1)


LAPSE_TABLE = LapseTable()


@compiled_within
def log_odds_at(table: Floats, z: float) -> tuple[float, float, float]:
    """m(z), and its first and second derivative; table (2, n) has m and its slope at the nodes."""
    last = table.shape[1] - 2
    place = (z + LAPSE_TABLE.reach) * LAPSE_TABLE.density
    if place <= 0.0 or place >= last + 1.0:
        end = 0 if place <= 0.0 else last + 1
        distance = (place - end) / LAPSE_TABLE.density
        return table[0, end] + table[1, end] * distance, table[1, end], 0.0
    i = min(int(place), last)
    u, width = place - i, 1.0 / LAPSE_TABLE.density
    # Hermite's polynomial: both values, both slopes
    low, high = table[0, i], table[0, i + 1]
    slope_low, slope_high = width * table[1, i], width * table[1, i + 1]
    a = 2.0 * (low - high) + slope_low + slope_high
    b = 3.0 * (high - low) - 2.0 * slope_low - slope_high
    value = low + u * (slope_low + u * (b + u * a))
    first = (slope_low + u * (2.0 * b + 3.0 * u * a)) / width
    return value, first, (2.0 * b + 6.0 * u * a) / width**2


@compiled_internal
def log_likelihood(
    lapse: LapseArguments,
    utility_gap: Floats,
    rival_index: RivalIndex,
    workspace: ChoiceWorkspace,
    floor: float,
    slope: Floats,
) -> float:
    """As `choice_fast.log_likelihood`, with lapses.

    Where utility_gap has one number more than there are rivals, that is the coordinate z.
    """
    start, multiplicity, weight = rival_index
    rivals, with_slopes = multiplicity.size, slope.size > 0
    log_odds, slope_of_odds = lapse.log_odds, 0.0
    if utility_gap.size > rivals:
        log_odds, slope_of_odds, _ = log_odds_at(lapse.table, utility_gap[rivals])
    # log(1 + exp(x)) without overflow
    log_one_plus = max(log_odds, 0.0) + math.log1p(math.exp(-abs(log_odds)))
    log_attends, log_rate = -log_one_plus, log_odds - log_one_plus
    rate = math.exp(log_rate)
    begin, once, none = np.zeros(2, np.int64), np.ones(1), np.empty(0)
    result, total_slope = 0.0, 0.0
    for t in range(weight.size):
        low, high = start[t], start[t + 1]
        if low == high:
            continue
        # log P of this decision alone, and its slopes
        begin[1] = high - low
        own = slope[low:high] if with_slopes else none
        log_p = log_likelihood_without_lapses(
            lapse.noise,
            utility_gap[low:high],
            RivalIndex(begin, multiplicity[low:high], once),
            workspace,
            -np.inf,
            own,
        )
        actions = 1.0
        for j in range(low, high):
            actions += multiplicity[j]
        attended, blind = log_attends + log_p, log_rate - math.log(actions)
        largest = max(attended, blind)
        log_total = largest + math.log1p(math.exp(-abs(attended - blind)))
        result += weight[t] * log_total
        # the terms that follow are not positive
        if result < floor:
            return -np.inf
        if with_slopes:
            no_lapse = math.exp(attended - log_total)
            for j in range(own.size):
                own[j] *= weight[t] * no_lapse
            total_slope += weight[t] * (1.0 - no_lapse - rate)
    if with_slopes and utility_gap.size > rivals:
        slope[rivals] = slope_of_odds * total_slope
    return result


@compiled
def rates_at(table: Floats, z: Floats, out: Floats) -> None:
    """Write the rate of lapses at each of the coordinates z (n,) into out (n,)."""
    for i in range(z.size):
        log_odds, _, _ = log_odds_at(table, z[i])
        out[i] = 1.0 / (1.0 + math.exp(-log_odds))


@compiled
def write_log_odds(table: Floats, z: float, out: Floats) -> None:
    """Write m(z) and its first and second derivative into out (3,)."""
    out[0], out[1], out[2] = log_odds_at(table, z)
