"""The likelihood that samplers climb: log P of all choices and its slope, fast, to five digits.

The same integral as `choice_exact.py`,

    P = integral of phi(z) prod over rivals of Phi(z - gap_j) dz,   gap_j = mu_j - mu_c,

by the trapezoid rule, arranged for the vector instructions (`choice_lattice.py`). With q the
normalised integrand and r_j = phi/Phi at z - gap_j, the slope is d log P / d gap_j = -E_q[r_j].

Log P is off by less than 1e-5 with up to 34 rivals, unless they are tied to a digit and the chosen
one leads by 3 or 4: then by 1e-4. A rival more than 8 below the bound of the mode
changes P by less than a part in 1e8 and is left out. Where the chosen action is so much worse than
the best that single precision cannot hold the product, `choice_exact.py` takes over.
"""

import math
from typing import NamedTuple

import numpy as np

from revealed._types import Floats, Ints, Singles
from revealed.kernels._compile import compiled_internal, compiled_no_nan, inlined_formula
from revealed.kernels.choice_exact import EXACT_RULE, ROOT_HALF, integrate_choice, write_ratios
from revealed.kernels.choice_lattice import (
    FAST_RULE,
    THREE_RIVALS,
    integrate_on_lattice,
    integrate_three_rivals,
    sum_ratio,
)
from revealed.kernels.choice_tables import LATTICE, STRIDES
from revealed.kernels.logit import LOGIT_RULE
from revealed.kernels.normal import LOG_ROOT_TWO_PI, log_cdf_and_ratio


class RivalIndex(NamedTuple):
    """Which rivals each decision has, equal rivals and equal decisions counted once.

    start: (U + 1,) where each decision's rivals begin. multiplicity: (R,) how often a rival's row
    stands in its decision. weight: (U,) how often the decision was met.
    """

    start: Ints
    multiplicity: Floats
    weight: Floats


class ChoiceWorkspace(NamedTuple):
    """Arrays that the likelihood of one decision writes to.

    rivals, gaps, multiplicity: the rivals that matter, their positions among all, utility gaps and
    copies. nodes: the integrand. repeated_gaps, node_weights, node_ratios: for the exact rule.
    exponentials: of the gaps of some decisions, under logit noise. logs: where log P of every
    decision is kept, (U,), or nothing.
    """

    rivals: Ints
    gaps: Floats
    multiplicity: Floats
    nodes: Singles
    repeated_gaps: Floats
    node_weights: Floats
    node_ratios: Floats
    exponentials: Floats
    logs: Floats


def make_choice_workspace(rival_index: RivalIndex) -> ChoiceWorkspace:
    """A workspace for the largest decision; the exact rule needs every copy of a rival."""
    copies_before = np.concatenate([[0.0], np.cumsum(rival_index.multiplicity)])
    most_rivals = np.diff(rival_index.start).max(initial=1)
    most_copies = np.diff(copies_before[rival_index.start]).max(initial=1.0)
    return ChoiceWorkspace(
        np.empty(most_rivals, np.int64),
        np.empty(most_rivals),
        np.empty(most_rivals),
        np.empty(FAST_RULE.max_nodes, np.float32),
        np.empty(round(most_copies)),
        np.empty(EXACT_RULE.many_rivals_intervals + 1),
        np.empty(EXACT_RULE.many_rivals_intervals + 1),
        np.empty(max(most_rivals, LOGIT_RULE.exponentials_at_a_time) + 8),
        np.empty(0),
    )


@inlined_formula
def _relevant_rivals(
    utility_gap: Floats,
    start: Ints,
    all_multiplicity: Floats,
    t: int,
    rivals: Ints,
    gaps: Floats,
    multiplicity: Floats,
) -> tuple[np.uint64, float, float, float]:
    """How many different rivals of decision t matter, after copying them into the last three.

    Then a lower bound of the integrand's mode, how many rivals they are with copies, and the
    largest gap.
    """
    # Given that it was chosen, the action's utility is at least about half the largest gap.
    low, high = np.uint64(start[t]), np.uint64(start[t + 1])
    largest_gap = -np.inf
    for j in range(low, high):
        largest_gap = max(largest_gap, utility_gap[j])
    bound = 0.5 * max(largest_gap, 0.0)
    count, copies = np.uint64(0), 0.0
    # The chosen action leads by far: nothing to copy, P is one.
    if largest_gap <= bound - FAST_RULE.irrelevance_margin:
        return count, bound, copies, largest_gap
    for j in range(low, high):
        if utility_gap[j] > bound - FAST_RULE.irrelevance_margin:
            rivals[count] = j
            gaps[count] = utility_gap[j]
            multiplicity[count] = all_multiplicity[j]
            copies += all_multiplicity[j]
            count += np.uint64(1)
    return count, bound, copies, largest_gap


@compiled_internal
def _integrate_exactly(
    gaps: Floats,
    multiplicity: Floats,
    count: np.uint64,
    bound: float,
    repeated_gaps: Floats,
    node_weights: Floats,
) -> tuple[float, float, float, int]:
    """One decision by the exact rule: log P, and its nodes as `integrate_choice` returns them."""
    # The exact rule knows no multiplicities: write equal rivals out.
    copies = 0
    for j in range(count):
        for _ in range(int(multiplicity[j])):
            repeated_gaps[copies] = gaps[j]
            copies += 1
    return integrate_choice(repeated_gaps[:copies], bound, node_weights)


@compiled_no_nan
def log_likelihood(
    utility_gap: Floats,
    rival_index: RivalIndex,
    workspace: ChoiceWorkspace,
    floor: float,
    slope: Floats,
) -> float:
    """The sum of log P over all decisions, from the rivals' utility gaps (R,).

    Minus infinity once it is sure to be below `floor`. Its derivative in every gap goes into slope
    (R,), unless that is empty, and log P of each decision, met once, into workspace.logs (U,),
    unless that is.
    """
    start, all_multiplicity, weight = rival_index
    rivals, gaps, multiplicity, nodes, repeated_gaps, node_weights, node_ratios, _, logs = workspace
    with_slopes, with_logs = slope.size > 0, logs.size > 0
    slope[:] = 0.0
    # where nothing is written below, P is one
    logs[:] = 0.0
    result = 0.0
    for t in range(weight.size):
        count, bound, copies, largest_gap = _relevant_rivals(
            utility_gap, start, all_multiplicity, t, rivals, gaps, multiplicity
        )
        if count == 0:
            continue
        # P is at most Phi(-gap / sqrt(2)) of the best rival, whose log is at most -(gap / 2)^2; the
        # terms that follow are not positive.
        if result - weight[t] * bound * bound < floor:
            return -np.inf
        # One rival: P = Phi(-gap / sqrt(2)).
        if copies == 1.0:
            value, ratio = log_cdf_and_ratio(-ROOT_HALF * gaps[0])
            result += weight[t] * value
            if with_logs:
                logs[t] = value
            if with_slopes:
                slope[rivals[0]] = -weight[t] * ROOT_HALF * ratio
            continue
        # Two or three: one loop without memory. A third that is missing lies so far below that its
        # Phi is one; copies of a rival are written out.
        if copies <= 3.0 and bound < FAST_RULE.max_mode_bound:
            gap_1, gap_2, gap_3 = gaps[0], gaps[0], -LATTICE.cells
            if count == 3:
                gap_2, gap_3 = gaps[1], gaps[2]
            elif count == 2:
                gap_2 = gaps[1]
                gap_3 = (
                    -LATTICE.cells
                    if copies == 2.0
                    else gaps[0]
                    if multiplicity[0] == 2.0
                    else gaps[1]
                )
            elif copies == 3.0:
                gap_3 = gaps[0]
            integral, sum_1, sum_2, sum_3, enough = integrate_three_rivals(
                gap_1, gap_2, gap_3, bound, with_slopes
            )
            if enough and integral > FAST_RULE.min_integral:
                value = math.log(integral) + THREE_RIVALS.log_step
                result += weight[t] * value
                if with_logs:
                    logs[t] = value
                if with_slopes:
                    scale = -weight[t] / integral
                    slope[rivals[0]] = scale * sum_1 * multiplicity[0]
                    if count > 1:
                        slope[rivals[1]] = scale * sum_2 * multiplicity[1]
                    if count > 2:
                        slope[rivals[2]] = scale * sum_3
                continue
        # Any number: as many nodes on the lattice as the integrand needs.
        if bound < FAST_RULE.max_mode_bound:
            integral, low, high, step, k = integrate_on_lattice(
                gaps, multiplicity, nodes, count, bound, largest_gap
            )
            if integral > FAST_RULE.min_integral:
                value = (
                    math.log(integral * STRIDES[step] / LATTICE.cells_per_unit) - LOG_ROOT_TWO_PI
                )
                result += weight[t] * value
                if with_logs:
                    logs[t] = value
                if with_slopes:
                    scale = -weight[t] / integral
                    for j in range(count):
                        slope[rivals[j]] = (
                            scale * multiplicity[j] * sum_ratio(gaps[j], nodes, low, high, step, k)
                        )
                continue
        # Too small for single precision: the exact rule, and -E_q[r_j] on its nodes.
        value, left, width, many = _integrate_exactly(
            gaps, multiplicity, count, bound, repeated_gaps, node_weights
        )
        result += weight[t] * value
        if with_logs:
            logs[t] = value
        if with_slopes:
            for j in range(count):
                write_ratios(left - gaps[j], width, many, node_ratios)
                mean = 0.0
                for q in range(many):
                    mean += node_weights[q] * node_ratios[q]
                slope[rivals[j]] = -weight[t] * multiplicity[j] * mean
    return result
