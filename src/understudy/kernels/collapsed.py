"""The likelihood that engines climb: log P of all choices and its slope, to five digits or better, as fast as can be.

The same integral as `integral.py`, P = integral of phi(z) prod over rivals of Phi(z - gap_j) dz with gap_j = mu_j - mu_c,
by the trapezoid rule, arranged for the vector instructions:

- Nodes lie on a lattice z = k h, and every step h is a whole number of table cells. All nodes of one rival then have
  the same place u within their cells, so that Phi at sixteen nodes is one polynomial in u with coefficients that lie
  side by side in memory: nothing is looked up twice, and no logarithm or exponential is taken before the end. Single
  precision is enough for factors of one integrand, and does twice as many at a time.
- The step is at most FINE of the integrand's width, taken where it is sharpest; sixteen nodes reach five widths to the
  left and more to the right, and further ones are added while the ends matter.
- Where to put them is found by Halley's method on tables read without interpolation, from a lower bound of the mode.
  With two or three rivals there is nothing to find: the integrand is at least half as wide as phi, its mode within
  a quarter of the largest gap, and 0.9, of the bound; and all of it is one loop without memory.

Log P is off by less than 1e-5 with up to 34 rivals, unless they are tied to a digit and the chosen one leads by 3 or 4:
then by 1e-4. A rival more than SKIP below the bound of the mode changes P by less than a part in 1e8
and is left out. Where the chosen action is so much worse than the best that single precision cannot hold the
product, `integral.py` takes over.
"""

import math
from typing import NamedTuple

import numpy as np

from understudy._arrays import Floats, Ints, Singles
from understudy.kernels._jit import fast, inline, part, reduction
from understudy.kernels.cells import (
    BELL,
    CELLS,
    FIRST,
    LOW,
    NODES,
    PER_STRIDE,
    PHI,
    RATIO,
    ROUGH,
    SPAN,
    STEP_FOR,
    STRIDES,
    WIDTHS,
    ZERO,
)
from understudy.kernels.integral import MANY, integrate, ratios_at
from understudy.kernels.normal import LOG_ROOT_TWO_PI, log_cdf_and_ratio

ROOM = 16 * NODES  # nodes that a decision may need at most; beyond, the exact integral
SKIP = 8.0
FINE, FINER, CROWD = 0.95, 0.6, 50  # steps in widths, below and above so many rivals
SMALL = 1e-5  # the share of the integral's largest term below which the ends are left
TINY = 1e-30  # an integral below this is left to the exact rule: single precision ends at 1e-38
DEEP = 9.0  # a bound of the mode beyond which products of Phi grow too small
LEFT = 4.8  # how many widths left of the mode the nodes begin
ROOMY, BEFORE = 3, 4.25  # with three rivals, nodes of this step from so far before the bound nearly always do
AHEAD = 0.3 * np.log(
    np.arange(1.0, 65.0)
)  # how far beyond the bound to look for the mode first, by the number of rivals
CLOSE = -1.0  # unless the chosen one leads by more
ROOT_HALF = math.sqrt(0.5)
TWO, THREE, FOUR = np.uint64(2), np.uint64(3), np.uint64(4)  # unsigned places need no test for negative ones


class Offers(NamedTuple):
    """What was chosen against what, equal rivals and equal decisions counted once.

    first: (U + 1,) where each decision's rivals begin. copies: (R,) how often a rival's row stands in its decision.
    weight: (U,) how often the decision was met.
    """

    first: Ints
    copies: Floats
    weight: Floats


class Room(NamedTuple):
    """Working space: the rivals that matter (their places, gaps, copies), node values, and what the exact rule needs."""

    near: Ints
    gaps: Floats
    copies: Floats
    nodes: Singles
    repeated: Floats
    weights: Floats
    ratios: Floats


def make_room(offers: Offers) -> Room:
    """Room for the largest decision."""
    total = np.concatenate([[0.0], np.cumsum(offers.copies)])
    most, widest = np.diff(offers.first).max(initial=1), np.diff(total[offers.first]).max(initial=1.0)
    return Room(
        np.empty(most, np.int64), np.empty(most), np.empty(most), np.empty(ROOM, np.float32),
        np.empty(round(widest)), np.empty(MANY + 1), np.empty(MANY + 1),
    )  # fmt: skip


@inline
def _find_near(
    gap: Floats, first: Ints, often: Floats, t: int, near: Ints, gaps: Floats, copies: Floats
) -> tuple[np.uint64, float, float, float]:
    """Copy the rivals that matter; returns their number, a lower bound of the mode, their copies, and the largest gap."""
    low, high = np.uint64(first[t]), np.uint64(first[t + 1])
    best = -np.inf
    for j in range(low, high):
        best = max(best, gap[j])
    bound = 0.5 * max(best, 0.0)
    count, total = np.uint64(0), 0.0
    if best <= bound - SKIP:
        return count, bound, total, best
    for j in range(low, high):
        if gap[j] > bound - SKIP:
            near[count] = j
            gaps[count] = gap[j]
            copies[count] = often[j]
            total += often[j]
            count += np.uint64(1)
    return count, bound, total, best


@inline
def _place(gaps: Floats, copies: Floats, count: np.uint64, bound: float, best: float) -> tuple[int, int]:
    """The step for this integrand, by its place in STRIDES, and the first node k.

    Halley's method for the mode of the log-integrand on tables read without interpolation.
    """
    mode = bound
    if best > CLOSE:
        mode += AHEAD[min(count, np.uint64(AHEAD.size - 1))]
    bend = 1.0
    for _ in range(6):
        slope, bend, twist = -mode, 1.0, 0.0
        offset = (mode - LOW) * CELLS
        for j in range(count):
            i = np.uint32(min(max(offset - gaps[j] * CELLS, 0.0), SPAN - 1.0))
            slope += copies[j] * ROUGH[i, 0]
            bend += copies[j] * ROUGH[i, 1]
            twist += copies[j] * ROUGH[i, 2]
        move = slope / bend
        mode += move / max(0.5, 1.0 - 0.5 * move * twist / bend)
        if move * slope < 1.5:
            bend = max(1.0, bend - twist * move)
            break
    bend += twist / math.sqrt(bend)  # one width to the left, where the integrand is sharpest
    width = CELLS / math.sqrt(bend)
    step = STEP_FOR[int((FINE if count < CROWD else FINER) * width)]
    return step, math.floor((mode * CELLS - LEFT * width) * PER_STRIDE[step])


@inline
def _polynomial(table: Singles, i: np.uint64, apart: np.uint64, u: np.float32) -> np.float32:
    """The table's polynomial at u, with coefficients `apart` from one another."""
    value: np.float32 = table[i] + u * (
        table[i + apart] + u * (table[i + TWO * apart] + u * (table[i + THREE * apart] + u * table[i + FOUR * apart]))
    )
    return value


@inline
def _look_up(y: float, step: int) -> tuple[np.uint64, np.float32]:
    """Where the coefficients for a first node y cells into the table stand, and its place u within its cell."""
    inside = max(y, 0.0)
    cell = np.uint32(inside)
    return np.uint64(FIRST[step, cell]), np.float32(inside - cell)


@inline
def _fill(gaps: Floats, copies: Floats, count: np.uint64, step: int, k: int, at: int, nodes: Singles) -> float:
    """The integrand at the NODES nodes from k on, into nodes from `at` on; returns their sum."""
    apart, here, bell = np.uint64(WIDTHS[step]), np.uint64(at), np.uint64(ZERO[step] + k)
    for q in range(NODES):
        nodes[here + np.uint64(q)] = BELL[bell + np.uint64(q)]
    left = float(k * STRIDES[step]) - LOW * CELLS
    for j in range(count):
        y = left - gaps[j] * CELLS
        if y < SPAN:
            a, u = _look_up(y, step)
            for _ in range(int(copies[j])):
                for q in range(NODES):
                    nodes[here + np.uint64(q)] *= _polynomial(PHI, a + np.uint64(q), apart, u)
    total = np.float32(0.0)
    for q in range(NODES):
        total += nodes[here + np.uint64(q)]
    return float(total)


@inline
def _nodes(
    gaps: Floats, copies: Floats, nodes: Singles, count: np.uint64, bound: float, best: float
) -> tuple[float, int, int, int, int]:
    """Fill the nodes of one decision: their sum, where they begin and end, the step, and the first node's k."""
    step, k = _place(gaps, copies, count, bound, best)
    low = (ROOM - NODES) // 2
    high = low + NODES
    at, total = low, 0.0
    while True:
        total += _fill(gaps, copies, count, step, k + at - low, at, nodes)
        if nodes[low] > SMALL * total and low >= NODES:
            low -= NODES
            k -= NODES
            at = low
        elif nodes[high - 1] > SMALL * total and high <= ROOM - NODES:
            at = high
            high += NODES
        else:
            return total, low, high, step, k


ROOMY_STRIDE, ROOMY_APART, ROOMY_ZERO = int(STRIDES[ROOMY]), np.uint64(WIDTHS[ROOMY]), int(ZERO[ROOMY])
LOG_ROOMY = math.log(ROOMY_STRIDE / CELLS) - LOG_ROOT_TWO_PI
ROOMY_FIRST = np.ascontiguousarray(FIRST[ROOMY])


@inline
def _look_up_roomy(y: float) -> tuple[np.uint64, np.float32]:
    """The same as _look_up for the one step."""
    inside = min(max(y, 0.0), SPAN - 1.0)
    cell = np.uint32(inside)
    return np.uint64(ROOMY_FIRST[cell]), np.float32(inside - cell)


@reduction
def _three(one: float, two: float, three: float, bound: float, sloped: bool) -> tuple[float, float, float, float, bool]:
    """The integral against three rivals, the integrals of phi/Phi of each if asked for, and whether the nodes were enough."""
    k = math.floor((bound - BEFORE) * CELLS / ROOMY_STRIDE)
    left = float(k * ROOMY_STRIDE) - LOW * CELLS
    a, u = _look_up_roomy(left - one * CELLS)
    b, v = _look_up_roomy(left - two * CELLS)
    c, w = _look_up_roomy(left - three * CELLS)
    bell = np.uint64(ROOMY_ZERO + k)
    total, first, second, third = np.float32(0.0), np.float32(0.0), np.float32(0.0), np.float32(0.0)
    if sloped:
        for q in range(NODES):
            n = np.uint64(q)
            height = (
                BELL[bell + n]
                * _polynomial(PHI, a + n, ROOMY_APART, u)
                * (_polynomial(PHI, b + n, ROOMY_APART, v) * _polynomial(PHI, c + n, ROOMY_APART, w))
            )
            total += height
            first += height * _polynomial(RATIO, a + n, ROOMY_APART, u)
            second += height * _polynomial(RATIO, b + n, ROOMY_APART, v)
            third += height * _polynomial(RATIO, c + n, ROOMY_APART, w)
    else:
        for q in range(NODES):
            n = np.uint64(q)
            total += (
                BELL[bell + n]
                * _polynomial(PHI, a + n, ROOMY_APART, u)
                * (_polynomial(PHI, b + n, ROOMY_APART, v) * _polynomial(PHI, c + n, ROOMY_APART, w))
            )
    last = bell + np.uint64(NODES - 1)
    a, b, c = a + np.uint64(NODES - 1), b + np.uint64(NODES - 1), c + np.uint64(NODES - 1)
    end = (
        BELL[last]
        * _polynomial(PHI, a, ROOMY_APART, u)
        * (_polynomial(PHI, b, ROOMY_APART, v) * _polynomial(PHI, c, ROOMY_APART, w))
    )
    return float(total), float(first), float(second), float(third), end <= SMALL * total


@part
def _exact(room: Room, count: np.uint64, bound: float) -> tuple[float, float, float, int]:
    """One decision by the exact rule: log P, and its nodes."""
    many = 0
    for j in range(count):
        for _ in range(int(room.copies[j])):
            room.repeated[many] = room.gaps[j]
            many += 1
    return integrate(room.repeated[:many], bound, room.weights)


@inline
def _mean_ratio(gap: float, nodes: Singles, low: int, high: int, step: int, k: int) -> float:
    """The sum over nodes of the integrand times phi/Phi of one rival."""
    apart = np.uint64(WIDTHS[step])
    total = np.float32(0.0)
    for block in range(low, high, NODES):
        y = float((k + block - low) * STRIDES[step]) - (LOW + gap) * CELLS
        if y < SPAN:
            a, u = _look_up(y, step)
            here = np.uint64(block)
            for q in range(NODES):
                total += nodes[here + np.uint64(q)] * _polynomial(RATIO, a + np.uint64(q), apart, u)
    return float(total)


@inline
def sum_of_logs(gap: Floats, offers: Offers, room: Room, floor: float, slope: Floats) -> float:
    """The sum of log P over all decisions, from the rivals' gaps (R,); minus infinity once it is sure to be below floor.

    Its derivative in every gap goes into slope (R,), unless that is empty.
    """
    first, often, weight = offers
    near, gaps, copies, nodes, _, weights, ratios = room
    sloped = slope.size > 0
    slope[:] = 0.0
    result = 0.0
    for t in range(weight.size):
        count, bound, total, best = _find_near(gap, first, often, t, near, gaps, copies)
        if count == 0:
            continue
        if result - weight[t] * bound * bound < floor:  # P is at most Phi(-gap / sqrt(2)) of the best rival
            return -np.inf
        if total == 1.0:
            value, ratio = log_cdf_and_ratio(-ROOT_HALF * gaps[0])
            result += weight[t] * value
            if sloped:
                slope[near[0]] = -weight[t] * ROOT_HALF * ratio
            continue
        if total <= 3.0 and bound < DEEP:
            one, two, three = gaps[0], gaps[0], -SPAN
            if count == 3:
                two, three = gaps[1], gaps[2]
            elif count == 2:
                two = gaps[1]
                three = -SPAN if total == 2.0 else gaps[0] if copies[0] == 2.0 else gaps[1]
            elif total == 3.0:
                three = gaps[0]
            integral, by_one, by_two, by_three, enough = _three(one, two, three, bound, sloped)
            if enough and integral > TINY:
                result += weight[t] * (math.log(integral) + LOG_ROOMY)
                if sloped:
                    scale = -weight[t] / integral
                    slope[near[0]] = scale * by_one * copies[0]
                    if count > 1:
                        slope[near[1]] = scale * by_two * copies[1]
                    if count > 2:
                        slope[near[2]] = scale * by_three
                continue
        if bound < DEEP:
            integral, low, high, step, k = _nodes(gaps, copies, nodes, count, bound, best)
            if integral > TINY:
                result += weight[t] * (math.log(integral * STRIDES[step] / CELLS) - LOG_ROOT_TWO_PI)
                if sloped:
                    scale = -weight[t] / integral
                    for j in range(count):
                        slope[near[j]] = scale * copies[j] * _mean_ratio(gaps[j], nodes, low, high, step, k)
                continue
        value, left, width, many = _exact(room, count, bound)
        result += weight[t] * value
        if sloped:
            for j in range(count):
                ratios_at(left - gaps[j], width, many, ratios)
                mean = 0.0
                for q in range(many):
                    mean += weights[q] * ratios[q]
                slope[near[j]] = -weight[t] * copies[j] * mean
    return result


@fast
def log_likelihood(gap: Floats, offers: Offers, room: Room, floor: float, slope: Floats) -> float:
    """The same, to be called: `target.py` has it written into its own loop."""
    return sum_of_logs(gap, offers, room, floor, slope)
