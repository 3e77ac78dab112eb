"""The log posterior without utilities, in coordinates that suit it: v = centre + slope bent(turn x).

Each coefficient is bent by a curve of its own (`bend.py`), so that x is about normal. The rivals' gaps are design v, the
prior is Gaussian in v, and the density in x has the curves' stretch as a factor.
"""

import math
from typing import NamedTuple

import numpy as np

from understudy._arrays import Floats
from understudy.kernels._jit import fast, inline
from understudy.kernels.bend import stretch_one, swing_one
from understudy.kernels.collapsed import Offers, Room, make_room, sum_of_logs
from understudy.kernels.design import Design, dot, multiply, transpose_multiply
from understudy.kernels.size import marginal

TOGETHER = 16  # stretches, each between 0.1 and 1.9, that are multiplied before a logarithm is taken


class Target(NamedTuple):
    """A posterior: design (R, K), and v's coordinates: centre, slope and bend (K,), turn (K, D).

    middle: the prior mean of v. Its precision is the diagonal `own`, or `quad` (K, K) where that is not empty.
    sizes: the log prior where its size is learnt (`size.py`), else empty. It has a pole at the prior mean; its gradient is
    taken `soft` further out, which keeps paths together. Any force that depends on the place alone leaves them exact.
    """

    design: Design
    offers: Offers
    own: Floats
    quad: Floats
    middle: Floats
    sizes: Floats
    soft: float
    centre: Floats
    slope: Floats
    bend: Floats
    turn: Floats


class Work(NamedTuple):
    """Working space: gaps and their slopes (R,); turned x, v - middle, precision times that, and the gradient in v (K,)."""

    gap: Floats
    slope: Floats
    turned: Floats
    value: Floats
    heavy: Floats
    pushed: Floats
    room: Room


def make_work(target: Target) -> Work:
    """Working space for one chain."""
    rivals, width = target.offers.copies.size, target.turn.shape[0]
    return Work(
        np.empty(rivals), np.empty(rivals), np.empty(width), np.empty(width), np.empty(width), np.empty(width),
        make_room(target.offers),
    )  # fmt: skip


@inline
def find_gaps(target: Target, work: Work, x: Floats) -> float:
    """Write the turned x, v and the rivals' gaps at x; returns the logarithm of the curves' stretch, in units of the slopes."""
    total, factor = 0.0, 1.0
    for k in range(work.turned.size):
        w = dot(target.turn[k], x)
        root = math.sqrt(1.0 + w * w)
        work.turned[k] = w
        work.value[k] = target.centre[k] + target.slope[k] * (w + target.bend[k] * (root - 1.0))
        factor *= 1.0 + target.bend[k] * w / root
        if k % TOGETHER == TOGETHER - 1:
            total += math.log(factor)
            factor = 1.0
    multiply(target.design, work.value, work.gap)
    return total + math.log(factor)


@inline
def _log_prior(target: Target, work: Work) -> float:
    """The log prior of v up to a constant; its gradient goes, with the other sign, into work.heavy."""
    total = 0.0
    for k in range(work.value.size):
        work.value[k] -= target.middle[k]
    for k in range(work.value.size):
        work.heavy[k] = dot(target.quad[k], work.value) if target.quad.size > 0 else target.own[k] * work.value[k]
        total -= 0.5 * work.value[k] * work.heavy[k]
    if target.sizes.size > 0:
        precision = marginal(target.sizes, -2.0 * total + target.soft)[1]
        total = marginal(target.sizes, -2.0 * total)[0]
        for k in range(work.heavy.size):
            work.heavy[k] *= precision
    return total


@inline
def _gather(target: Target, work: Work, gradient: Floats) -> None:
    """The gradient in x from the slopes in the gaps."""
    transpose_multiply(target.design, work.slope, work.pushed)
    gradient[:] = 0.0
    for k in range(work.pushed.size):
        w, bend = work.turned[k], target.bend[k]
        stretched = stretch_one(w, bend)
        push = (work.pushed[k] - work.heavy[k]) * target.slope[k] * stretched + swing_one(w, bend) / stretched
        for d in range(gradient.size):
            gradient[d] += push * target.turn[k, d]


@fast
def log_posterior(target: Target, work: Work, x: Floats, floor: float, gradient: Floats) -> float:
    """The log posterior at x (D,) up to a constant, or minus infinity where it is sure to be below floor.

    Its gradient goes into gradient (D,), unless that is empty.
    """
    known = find_gaps(target, work, x) + _log_prior(target, work)
    slope = work.slope if gradient.size > 0 else work.slope[:0]
    value = known + sum_of_logs(work.gap, target.offers, work.room, floor - known, slope)
    if gradient.size > 0:
        _gather(target, work, gradient)
    return value
