"""A move along the ray from the prior mean through the value, where the size of the prior is learnt.

Size and distance go together: a prior that is wide lets the value go far, and a value that is far wants a wide prior. With
the size integrated out and c the factor by which v - middle is stretched, log c has the density

    prior at c^2 Q, c^D, likelihood at middle + c (v - middle),

along which the rivals' gaps are straight lines. Drawn by slice sampling (Neal 2003): step out, then shrink.
"""

import math

import numpy as np

from understudy._arrays import Floats
from understudy.kernels._jit import part
from understudy.kernels.collapsed import sum_of_logs
from understudy.kernels.design import dot, multiply
from understudy.kernels.size import marginal
from understudy.kernels.target import Target, Work

WINDOW = 1.5  # what is stepped out by, in log c


@part
def _height(target: Target, work: Work, quad: float, base: Floats, along: Floats, y: float, floor: float) -> float:
    """Log density of y = log c, or minus infinity where that is sure to be below floor."""
    c = math.exp(y)
    for j in range(base.size):
        work.gap[j] = base[j] + c * along[j]
    known: float = marginal(target.sizes, c * c * quad)[0] + target.turn.shape[1] * y
    likelihood: float = sum_of_logs(work.gap, target.offers, work.room, floor - known, work.slope[:0])
    return known + likelihood


@part
def stretch(rng: np.random.Generator, target: Target, work: Work, v: Floats) -> None:
    """Move v (K,), its constants included, along the ray."""
    base, along, off = np.empty(work.gap.size), np.empty(work.gap.size), np.empty(v.size)
    for k in range(v.size):
        off[k] = v[k] - target.middle[k]
    multiply(target.design, target.middle, base)
    multiply(target.design, off, along)
    quad = 0.0
    for k in range(off.size):
        quad += off[k] * (dot(target.quad[k], off) if target.quad.size > 0 else target.own[k] * off[k])
    level = _height(target, work, quad, base, along, 0.0, -np.inf) - rng.standard_exponential()
    low = -WINDOW * rng.random()
    high = low + WINDOW
    while _height(target, work, quad, base, along, low, level) >= level:
        low -= WINDOW
    while _height(target, work, quad, base, along, high, level) >= level:
        high += WINDOW
    while True:
        y = low + (high - low) * rng.random()
        if _height(target, work, quad, base, along, y, level) >= level:
            break
        if y < 0.0:
            low = y
        else:
            high = y
    c = math.exp(y)
    for k in range(v.size):
        v[k] = target.middle[k] + c * off[k]
