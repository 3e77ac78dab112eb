"""Lapses: with some probability the choice is made blindly, whatever the utilities are.

    P' = (1 - rate) P + rate q,

q being one over the number of actions offered, or what habits make of it (`habit.py`). The rate has
a coordinate z of its own, which comes after the coefficients of the value and those of the noise
without lapses, and has a standard normal prior:

    log odds of the rate = m(z),   m increasing,

so that the rate has the prior of which m is the quantile function (in log odds, of normal
quantiles). With w = (1 - rate) P / P', the probability that the choice was no lapse,

    d log P' / d utility = w d log P / d utility,    d log P' / d log odds = 1 - w - rate,
    d log P' / d log q = 1 - w.

After z come the coordinates of habits, one for each label of an action.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from revealed._types import Floats, Ints
from revealed.kernels._compile import compiled_internal
from revealed.kernels.choice_fast import ChoiceWorkspace, RivalIndex
from revealed.kernels.choice_fast import log_likelihood as normal_log_likelihood
from revealed.kernels.choice_independent import log_likelihood as log_likelihood_without_lapses
from revealed.kernels.choice_logit import last_together, write_exponentials
from revealed.kernels.coordinate_table import read_table
from revealed.kernels.habit import weight_at, write_habit_slopes, write_shares
from revealed.kernels.noise import (
    LapseArguments,
    NoiseArguments,
    count_coordinates,
    formula_of,
)


class LapseLimits(NamedTuple):
    """Of probabilities in logarithms.

    least: no probability is smaller. least_factor: probabilities above it are multiplied while
    their product is.
    """

    least: float = 1e-300
    least_factor: float = 1e-100


LAPSE_LIMITS = LapseLimits()


class BlindShares(NamedTuple):
    """q of every kind of decision, in loops; all empty where lapses are uniform.

    of_decision: (U,) the kind of each decision. shares: (H,) q. slopes: (H,) where the slopes in
    log q are added up.
    """

    of_decision: Ints
    shares: Floats
    slopes: Floats


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

    Where utility_gap has more numbers than there are rivals, these are the coordinates: first those
    of the noise without lapses, then that of the rate, then those of habits.
    """
    rivals = rival_index.multiplicity.size
    # where the coordinate of the rate stands; where there is none, the rate is known
    at = rivals + count_coordinates(lapse.noise)
    log_odds, slope_of_odds = lapse.log_odds, 0.0
    if utility_gap.size > at:
        log_odds, slope_of_odds, _ = read_table(lapse.table, utility_gap[at])
    # each from its own exponential, as one minus a rate next to one has no digits left
    rate, attends = 1.0 / (1.0 + math.exp(-log_odds)), 1.0 / (1.0 + math.exp(log_odds))
    # weights of the labels, and from them q of every kind of decision
    habit, labels = lapse.habit, lapse.habit.weights.size
    weights, slopes_of_log = habit.weights, np.zeros(labels)
    if labels > 0 and utility_gap.size > at:
        weights = np.empty(labels)
        for i in range(labels):
            weights[i], slopes_of_log[i], _ = weight_at(utility_gap[at + 1 + i])
    shares, by_share = np.empty(habit.chosen.size), np.zeros(habit.chosen.size)
    write_shares(habit, weights, shares)
    result, by_log_odds = add_decisions(
        lapse.noise,
        rate,
        attends,
        BlindShares(habit.of_decision, shares, by_share),
        utility_gap,
        rival_index,
        workspace,
        floor,
        slope,
    )
    # by the chain rule from the log odds to the coordinate, and from log q to those of habits
    if slope.size > at:
        slope[at] = slope_of_odds * by_log_odds
        if labels > 0:
            own = slope[at + 1 : at + 1 + labels]
            write_habit_slopes(habit, weights, slopes_of_log, by_share, own)
    return result


def add_decisions(
    noise: NoiseArguments,
    rate: float,
    attends: float,
    blind: BlindShares,
    utility_gap: Floats,
    rival_index: RivalIndex,
    workspace: ChoiceWorkspace,
    floor: float,
    slope: Floats,
) -> tuple[float, float]:
    """The sum of log P' over all decisions, and its slope in the log odds of the rate, for loops.

    attends: one minus the rate. Slopes in the gaps go into slope, unless that is empty, and those
    in log q are added to blind.slopes.
    """
    raise NotImplementedError("only loops call this")


@overload(add_decisions, strict=False)  # type: ignore[untyped-decorator]
def _choose_loop(
    noise: Any,
    rate: Any,
    attends: Any,
    blind: Any,
    utility_gap: Any,
    rival_index: Any,
    workspace: Any,
    floor: Any,
    slope: Any,
) -> Any:
    kind = formula_of(noise)
    if kind is None:
        return add_normal_decisions
    return add_logit_decisions if kind.is_logit else add_one_by_one


def add_logit_decisions(
    noise: NoiseArguments,
    rate: float,
    attends: float,
    blind: BlindShares,
    utility_gap: Floats,
    rival_index: RivalIndex,
    workspace: ChoiceWorkspace,
    floor: float,
    slope: Floats,
) -> tuple[float, float]:
    """Under logit noise: exponentials of many decisions together (`choice_logit.py`)."""
    start, multiplicity, weight = rival_index
    exponentials, with_slopes = workspace.exponentials, slope.size > 0
    with_habits = blind.shares.size > 0
    result, product, by_log_odds, t = 0.0, 1.0, 0.0, 0
    while t < weight.size:
        # exponentials of the gaps of as many decisions as fit
        end = last_together(start, t, weight.size, exponentials.size)
        first = start[t]
        write_exponentials(utility_gap[first : start[end]], exponentials)
        for s in range(t, end):
            low, high = start[s], start[s + 1]
            if low == high:
                continue
            total, actions = 1.0, 1.0
            for j in range(low, high):
                total += multiplicity[j] * exponentials[j - first]
                actions += multiplicity[j]
            # P is one over the total: a lapse adds its share of one action
            attended = attends / total
            share = blind.shares[blind.of_decision[s]] if with_habits else 1.0 / actions
            p = max(attended + rate * share, LAPSE_LIMITS.least)
            # one logarithm for many factors
            if weight[s] == 1.0:
                product *= p
                if product < LAPSE_LIMITS.least_factor:
                    result += math.log(product)
                    product = 1.0
            else:
                result += weight[s] * math.log(p)
            if with_slopes:
                # how probable it is that the choice was no lapse scales what it says of the value
                no_lapse = attended / p
                by_log_odds += weight[s] * (1.0 - no_lapse - rate)
                if with_habits:
                    blind.slopes[blind.of_decision[s]] += weight[s] * (1.0 - no_lapse)
                scale = -weight[s] * no_lapse / total
                for j in range(low, high):
                    slope[j] = scale * multiplicity[j] * exponentials[j - first]
        result += math.log(product)
        product = 1.0
        # the terms that follow are not positive
        if result < floor:
            return -np.inf, 0.0
        t = end
    return result, by_log_odds


def add_normal_decisions(
    noise: NoiseArguments,
    rate: float,
    attends: float,
    blind: BlindShares,
    utility_gap: Floats,
    rival_index: RivalIndex,
    workspace: ChoiceWorkspace,
    floor: float,
    slope: Floats,
) -> tuple[float, float]:
    """Under normal noise: P of all decisions first, then what lapses make of each."""
    start, multiplicity, weight = rival_index
    with_slopes, with_habits = slope.size > 0, blind.shares.size > 0
    rivals, logs = multiplicity.size, np.empty(weight.size)
    normal_log_likelihood(
        utility_gap[:rivals],
        rival_index,
        ChoiceWorkspace(
            workspace.rivals,
            workspace.gaps,
            workspace.multiplicity,
            workspace.nodes,
            workspace.repeated_gaps,
            workspace.node_weights,
            workspace.node_ratios,
            workspace.exponentials,
            logs,
        ),
        -np.inf,
        slope[: rivals if with_slopes else 0],
    )
    result, by_log_odds = 0.0, 0.0
    for t in range(weight.size):
        low, high = start[t], start[t + 1]
        if low == high:
            continue
        actions = 1.0
        for j in range(low, high):
            actions += multiplicity[j]
        # far below, P is nothing beside what lapses leave of it
        attended = attends * math.exp(logs[t])
        share = blind.shares[blind.of_decision[t]] if with_habits else 1.0 / actions
        p = max(attended + rate * share, LAPSE_LIMITS.least)
        result += weight[t] * math.log(p)
        # the terms that follow are not positive
        if result < floor:
            return -np.inf, 0.0
        if with_slopes:
            # what is there is the slope of a choice that is no lapse, as often as it was met
            no_lapse = attended / p
            for j in range(low, high):
                slope[j] *= no_lapse
            by_log_odds += weight[t] * (1.0 - no_lapse - rate)
            if with_habits:
                blind.slopes[blind.of_decision[t]] += weight[t] * (1.0 - no_lapse)
    return result, by_log_odds


def add_one_by_one(
    noise: NoiseArguments,
    rate: float,
    attends: float,
    blind: BlindShares,
    utility_gap: Floats,
    rival_index: RivalIndex,
    workspace: ChoiceWorkspace,
    floor: float,
    slope: Floats,
) -> tuple[float, float]:
    """Under any other noise: each decision by itself, as if there were no others."""
    start, multiplicity, weight = rival_index
    with_slopes, with_habits = slope.size > 0, blind.shares.size > 0
    begin, once = np.zeros(2, np.int64), np.ones(1)
    # one decision's gaps, and behind them the coordinates of the noise without lapses
    rivals, coordinates = multiplicity.size, count_coordinates(noise)
    own_gap = np.empty(workspace.gaps.size + coordinates)
    own_slope = np.empty(own_gap.size if with_slopes else 0)
    if with_slopes:
        slope[rivals : rivals + coordinates] = 0.0
    result, by_log_odds = 0.0, 0.0
    for t in range(weight.size):
        low, high = start[t], start[t + 1]
        if low == high:
            continue
        count = high - low
        begin[1] = count
        own_gap[:count] = utility_gap[low:high]
        own_gap[count : count + coordinates] = utility_gap[rivals : rivals + coordinates]
        log_p = log_likelihood_without_lapses(
            noise,
            own_gap[: count + coordinates],
            RivalIndex(begin, multiplicity[low:high], once),
            workspace,
            -np.inf,
            own_slope[: count + coordinates],
        )
        actions = 1.0
        for j in range(low, high):
            actions += multiplicity[j]
        # far below, P is nothing beside what lapses leave of it
        attended = attends * math.exp(log_p)
        share = blind.shares[blind.of_decision[t]] if with_habits else 1.0 / actions
        p = max(attended + rate * share, LAPSE_LIMITS.least)
        result += weight[t] * math.log(p)
        # the terms that follow are not positive
        if result < floor:
            return -np.inf, 0.0
        if with_slopes:
            no_lapse = attended / p
            scale = weight[t] * no_lapse
            for j in range(count):
                slope[low + j] = scale * own_slope[j]
            for i in range(coordinates):
                slope[rivals + i] += scale * own_slope[count + i]
            by_log_odds += weight[t] * (1.0 - no_lapse - rate)
            if with_habits:
                blind.slopes[blind.of_decision[t]] += weight[t] * (1.0 - no_lapse)
    return result, by_log_odds
