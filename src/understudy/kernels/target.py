"""The log posterior without utilities, in coordinates that suit it.

With few coefficients v = centre + turn x, and `turn` is multiplied into the rows: the rivals' gaps are base + design x, and
the prior is Gaussian in x. With many, v = centre + slope bent(turn x), each coefficient bent by a curve of its own
(`bend.py`): the gaps are design v, the prior is Gaussian in v, and the density in x has the curves' stretch as a factor.
"""

import math
from typing import NamedTuple

import numpy as np

from understudy._arrays import Floats
from understudy.kernels._jit import fast, inline, jit
from understudy.kernels.bend import bent_one, stretch_one, swing_one
from understudy.kernels.collapsed import SKIP, Offers, Room, log_likelihood, make_room
from understudy.kernels.design import Design, dot, multiply, transpose_multiply

TOGETHER = 16  # stretches, each between 0.1 and 1.9, that are multiplied before a logarithm is taken


class Target(NamedTuple):
    """A posterior of y, which is x itself, or v where turn (K, D) is not empty; centre, slope and bend (K,) go with it.

    design: gaps are base + design y. middle: the prior's mean of y; its precision is the diagonal `own`, or `quad`
    where that is not empty.
    """

    design: Design
    base: Floats
    offers: Offers
    own: Floats
    quad: Floats
    middle: Floats
    turn: Floats
    centre: Floats
    slope: Floats
    bend: Floats


class Work(NamedTuple):
    """Working space: gaps and their slopes (R,); turned x, v and the gradient in v (K,); y - middle, and precision times it."""

    gap: Floats
    slope: Floats
    turned: Floats
    value: Floats
    pushed: Floats
    off: Floats
    heavy: Floats
    room: Room


@jit
def make_work(target: Target) -> Work:
    """Working space for one chain."""
    rivals, width, free = target.base.size, target.turn.shape[0], target.middle.size
    return Work(
        np.empty(rivals), np.empty(rivals), np.empty(width), np.empty(width), np.empty(width),
        np.empty(free), np.empty(free), make_room(target.offers),
    )  # fmt: skip


@inline
def find_gaps(target: Target, work: Work, x: Floats) -> None:
    """Write the rivals' gaps at x into work.gap."""
    if target.turn.size > 0:
        for k in range(work.turned.size):
            work.turned[k] = dot(target.turn[k], x)
            work.value[k] = target.centre[k] + target.slope[k] * bent_one(work.turned[k], target.bend[k])
        multiply(target.design, work.value, work.gap)
    else:
        multiply(target.design, x, work.gap)
    for r in range(work.gap.size):
        work.gap[r] += target.base[r]


@inline
def _log_prior(target: Target, work: Work, y: Floats) -> float:
    """The log prior of y up to a constant; its gradient goes, with the other sign, into work.heavy."""
    total = 0.0
    for d in range(y.size):
        work.off[d] = y[d] - target.middle[d]
    for d in range(y.size):
        work.heavy[d] = dot(target.quad[d], work.off) if target.quad.size > 0 else target.own[d] * work.off[d]
        total -= 0.5 * work.off[d] * work.heavy[d]
    return total


@inline
def _log_stretch(target: Target, work: Work) -> float:
    """The logarithm of how much the curves stretch, in units of the slopes."""
    total, factor = 0.0, 1.0
    for k in range(work.turned.size):
        factor *= stretch_one(work.turned[k], target.bend[k])
        if k % TOGETHER == TOGETHER - 1:
            total += math.log(factor)
            factor = 1.0
    return total + math.log(factor)


@inline
def _gather(target: Target, work: Work, gradient: Floats) -> None:
    """The gradient in x from the slopes in the gaps."""
    if target.turn.size > 0:
        transpose_multiply(target.design, work.slope, work.pushed)
        gradient[:] = 0.0
        for k in range(work.pushed.size):
            w, bend = work.turned[k], target.bend[k]
            stretched = stretch_one(w, bend)
            push = (work.pushed[k] - work.heavy[k]) * target.slope[k] * stretched + swing_one(w, bend) / stretched
            for d in range(gradient.size):
                gradient[d] += push * target.turn[k, d]
    else:
        transpose_multiply(target.design, work.slope, gradient)
        for d in range(gradient.size):
            gradient[d] -= work.heavy[d]


@fast
def log_posterior(target: Target, work: Work, x: Floats, floor: float, gradient: Floats) -> float:
    """The log posterior at x (D,) up to a constant, or minus infinity where it is sure to be below floor.

    Its gradient goes into gradient (D,), unless that is empty.
    """
    find_gaps(target, work, x)
    if target.turn.size > 0:
        known = _log_prior(target, work, work.value) + _log_stretch(target, work)
    else:
        known = _log_prior(target, work, x)
    slope = work.slope if gradient.size > 0 else work.slope[:0]
    value = known + log_likelihood(work.gap, target.offers, work.room, floor - known, slope)
    if gradient.size > 0:
        _gather(target, work, gradient)
    return value


@jit
def count_near(target: Target, work: Work, x: Floats) -> int:
    """How many rivals matter at x: what an evaluation there costs."""
    find_gaps(target, work, x)
    first, total = target.offers.first, 0
    for t in range(target.offers.weight.size):
        ahead = 0.0
        for j in range(first[t], first[t + 1]):
            ahead = max(ahead, work.gap[j])
        for j in range(first[t], first[t + 1]):
            if work.gap[j] > 0.5 * ahead - SKIP:
                total += 1
    return total
