"""The log posterior without utilities, in coordinates that suit it: v = centre + turn x.

The rivals' gaps are base + design (turn x), and the prior is Gaussian in x: log p = pull'x - x' quad x / 2. Dense designs
have `turn` multiplied in; sparse ones keep it apart, for it is dense.
"""

from typing import NamedTuple

import numpy as np

from understudy._arrays import Floats
from understudy.kernels._jit import fast, inline, jit
from understudy.kernels.collapsed import SKIP, Offers, Room, log_likelihood, make_room
from understudy.kernels.design import Design, dot, multiply, transpose_multiply


class Target(NamedTuple):
    """A posterior: design (R, D) or, where turn is not empty, (R, K) with turn (K, D); base (R,); quad (D, D); pull (D,)."""

    design: Design
    turn: Floats
    base: Floats
    offers: Offers
    quad: Floats
    pull: Floats


class Work(NamedTuple):
    """Working space: gaps and their slopes (R,), the turned x and its gradient (K,), prior precision times x (D,)."""

    gap: Floats
    slope: Floats
    turned: Floats
    pushed: Floats
    heavy: Floats
    room: Room


@jit
def make_work(target: Target) -> Work:
    """Working space for one chain."""
    rivals, width = target.base.size, target.turn.shape[0]
    return Work(
        np.empty(rivals), np.empty(rivals), np.empty(width), np.empty(width), np.empty(target.pull.size),
        make_room(target.offers),
    )  # fmt: skip


@inline
def find_gaps(target: Target, work: Work, x: Floats) -> None:
    """Write the rivals' gaps at x into work.gap."""
    if target.turn.size > 0:
        for k in range(work.turned.size):
            work.turned[k] = dot(target.turn[k], x)
        multiply(target.design, work.turned, work.gap)
    else:
        multiply(target.design, x, work.gap)
    for r in range(work.gap.size):
        work.gap[r] += target.base[r]


@inline
def _gather(target: Target, work: Work, gradient: Floats) -> None:
    """The gradient in x from the slopes in the gaps."""
    if target.turn.size > 0:
        transpose_multiply(target.design, work.slope, work.pushed)
        gradient[:] = 0.0
        for k in range(work.pushed.size):
            for d in range(gradient.size):
                gradient[d] += work.pushed[k] * target.turn[k, d]
    else:
        transpose_multiply(target.design, work.slope, gradient)


@fast
def log_posterior(target: Target, work: Work, x: Floats, floor: float, gradient: Floats) -> float:
    """The log posterior at x (D,) up to a constant, or minus infinity where it is sure to be below floor.

    Its gradient goes into gradient (D,), unless that is empty.
    """
    find_gaps(target, work, x)
    prior = 0.0
    for d in range(x.size):
        work.heavy[d] = dot(target.quad[d], x)
        prior += x[d] * (target.pull[d] - 0.5 * work.heavy[d])
    slope = work.slope if gradient.size > 0 else work.slope[:0]
    value = prior + log_likelihood(work.gap, target.offers, work.room, floor - prior, slope)
    if gradient.size > 0:
        _gather(target, work, gradient)
        for d in range(gradient.size):
            gradient[d] += target.pull[d] - work.heavy[d]
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
