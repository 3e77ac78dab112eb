"""The prior's size, learnt: v ~ N(middle, sd^2 S) with sd ~ scale |t|, t Student with four degrees of freedom.

The size lives only where it is needed, and is drawn exactly from its law given the value. With D coordinates and
Q = (v - middle)' S^-1 (v - middle), that law has a log-concave density in u = log(4 scale^2 / sd^2),

    (D + 4) / 2 u - 5/2 log(1 + exp u) - Q / (8 scale^2) exp u,

and the prior of v with its size integrated out is a function of Q alone, kept as a table of its logarithm in log Q.
Given the noise and (v - middle) / sd instead, the choices only say that the size lies in an interval, and its law is the
hyperprior cut to it.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from understudy._arrays import Floats, Ints
from understudy.kernels._jit import formula, inline, jit, part
from understudy.kernels.design import Design, dot, multiply
from understudy.kernels.expansion import Move

DEGREES = 4.0
LOW, HIGH, KNOTS = -60.0, 60.0, 8  # log Q at the ends of the table, and knots a unit
LEAST = math.exp(LOW)  # Q is not taken to be smaller


class Size(NamedTuple):
    """What is needed to learn the size of a prior.

    width: D, the coordinates whose size it is. middle: (K,) the prior mean. own or quad: S^-1 as in `Target`, the
    constants of centred blocks let loose with precision `slack`. Then the move at any size: F F' = (X'X + S^-1 / sd^2)^-1 has
    F = factor / sqrt(gram + 1 / sd^2), with pull and spread those of sd = 1.
    """

    scale: float
    width: int
    middle: Floats
    own: Floats
    quad: Floats
    slack: float
    factor: Floats
    gram: Floats
    pull: Floats
    spread: float


def log_marginal(quad: Floats, width: int, scale: float) -> tuple[Floats, Floats]:
    """The log prior at Q (n,) with the size integrated out, up to a constant, and its slope in log Q; by the trapezoid rule."""
    a, c, z = 0.5 * (width + DEGREES), 0.5 * (DEGREES + 1.0), quad[:, None] / (2.0 * DEGREES * scale**2)
    z = np.maximum(z, 1e-200)  # with D = 1 the density has a pole at zero, though a mild one
    half = 0.5 * (a - c - z)
    root = np.sqrt(half**2 + z * a)
    peak = np.log(np.where(half > 0.0, (half + root) / z, a / np.maximum(root - half, 1e-300)))
    # to the left the density falls like exp((D - 1) / 2 u); with D = 1 there is a plateau as wide as log z
    left = min(100.0, 100.0 / (width - 1) + 20.0 / np.sqrt(width - 1)) if width > 1 else 100.0
    right = min(12.0, left) if width > 1 else 100.0
    u = peak + np.linspace(-left, right, round((left + right) / min(0.1, 0.7 / np.sqrt(width))) + 1)
    logs = a * u - c * np.logaddexp(0.0, u) - z * np.exp(u)
    top = logs.max(axis=1, keepdims=True)
    weight = np.exp(logs - top)
    total = weight.sum(axis=1)
    return top[:, 0] + np.log(total), -(weight * z * np.exp(u)).sum(axis=1) / total


@lru_cache(maxsize=8)
def marginal_table(width: int, scale: float) -> Floats:
    """(n, 2) the log prior and its slope at the knots."""
    knots = np.linspace(LOW, HIGH, round((HIGH - LOW) * KNOTS) + 1)
    return np.ascontiguousarray(np.stack(log_marginal(np.exp(knots), width, scale), axis=1))


@formula
def marginal(table: Floats, quad: float) -> tuple[float, float]:
    """The log prior at Q, and minus twice its slope in Q, the mean of 1 / sd^2; cubic between the knots, straight beyond."""
    q = max(quad, 1e-300)
    place = (math.log(q) - LOW) * KNOTS
    i = min(max(int(place), 0), table.shape[0] - 2)
    t = place - i
    a, b = table[i, 0], table[i + 1, 0]
    p, r = table[i, 1] / KNOTS, table[i + 1, 1] / KNOTS
    if t < 0.0:
        return a + p * t, -2.0 * p * KNOTS / q
    if t > 1.0:
        return b + r * (t - 1.0), -2.0 * r * KNOTS / q
    c, d = 3.0 * (b - a) - 2.0 * p - r, 2.0 * (a - b) + p + r
    return a + t * (p + t * (c + t * d)), -2.0 * (p + t * (2.0 * c + 3.0 * t * d)) * KNOTS / q


@formula
def _log_density(u: float, a: float, c: float, z: float) -> tuple[float, float]:
    """Log density of u, and its slope."""
    t = math.exp(u)
    return a * u - c * math.log1p(t) - z * t, a - c * t / (1.0 + t) - z * t


@jit
def draw_sd(rng: np.random.Generator, size: Size, quad: float) -> float:
    """The size given Q, exactly: rejection from a flat top with exponential sides, tangents where the density is 1/e."""
    a, c = 0.5 * (size.width + DEGREES), 0.5 * (DEGREES + 1.0)
    z = max(quad, LEAST) / (2.0 * DEGREES * size.scale * size.scale)
    half = 0.5 * (a - c - z)
    root = math.sqrt(half * half + z * a)
    peak = math.log((half + root) / z if half > 0.0 else a / (root - half))
    top = _log_density(peak, a, c, z)[0]
    left, right = _shoulder(peak, -1.0, top, a, c, z), _shoulder(peak, 1.0, top, a, c, z)
    height, rise = _log_density(left, a, c, z)
    begin = left + (top - height) / rise
    height, fall = _log_density(right, a, c, z)
    end = right + (top - height) / fall
    areas = 1.0 / rise + (end - begin) - 1.0 / fall
    while True:
        place = areas * rng.random()
        e = rng.standard_exponential()
        if place < 1.0 / rise:
            u, bound = begin - e / rise, top - e
        elif place < 1.0 / rise - 1.0 / fall:
            u, bound = end - e / fall, top - e
        else:
            u, bound = begin + (end - begin) * rng.random(), top
        if bound - rng.standard_exponential() <= _log_density(u, a, c, z)[0]:
            return 2.0 * size.scale * math.exp(-0.5 * u)


@inline
def _shoulder(peak: float, side: float, top: float, a: float, c: float, z: float) -> float:
    """Where the density has fallen to about 1/e of its peak, on one side of it."""
    t = math.exp(peak)
    reach = 1.0 / math.sqrt(c * t / (1.0 + t) ** 2 + z * t)
    u = peak + side * reach
    while _log_density(u, a, c, z)[0] > top - 0.5:
        reach *= 2.0
        u = peak + side * reach
    while _log_density(u, a, c, z)[0] < top - 3.0:
        reach *= 0.7
        u = peak + side * reach
    return u


@jit
def beyond(t: float) -> float:
    """P(|T| > t) of a Student T with four degrees of freedom: d^2 (3 - d) / 2 with d = 1 - t / sqrt(4 + t^2)."""
    far = math.sqrt(DEGREES + t * t)
    d = DEGREES / (far * (far + t))
    return d * d * (3.0 - d) / 2.0


@jit
def beyond_inverse(share: float) -> float:
    """The t with P(|T| > t) = share: the cubic above, solved by an angle."""
    angle = 2.0 / 3.0 * math.asin(math.sqrt(0.5 * share))
    d = 2.0 * math.sin(0.5 * angle) ** 2 + math.sqrt(3.0) * math.sin(angle)
    return max(2.0 * (1.0 - d) / math.sqrt(d * (2.0 - d)), 0.0)


@jit
def distance(size: Size, v: Floats, off: Floats) -> float:
    """Q of v; off (K,) becomes v - middle."""
    total = 0.0
    for k in range(v.size):
        off[k] = v[k] - size.middle[k]
    for k in range(v.size):
        total += off[k] * (dot(size.quad[k], off) if size.quad.size > 0 else size.own[k] * off[k])
    return total


@part
def at_size(size: Size, move: Move, sd: float) -> Move:
    """The move under a prior of this size; its factor and pull are written over."""
    precision = 1.0 / (sd * sd)
    for k in range(size.factor.shape[0]):
        for d in range(size.gram.size):
            move.factor[k, d] = size.factor[k, d] / math.sqrt(size.gram[d] + precision)
        move.pull[k] = size.pull[k] * precision
    return Move(
        move.factor, move.pull, move.constants, move.offsets, size.spread * sd,
        move.scale, move.shape, move.rate, move.lost,
    )  # fmt: skip


@part
def stretch_given_noise(
    rng: np.random.Generator,
    size: Size,
    design: Design,
    start: Ints,
    taken: Ints,
    sd: float,
    v: Floats,
    w: Floats,
    off: Floats,
    along: Floats,
) -> float:
    """Draw the size given the noise and (v - middle) / sd; v (K,) and the utilities w (P,) follow it. Returns the new size."""
    for k in range(v.size):
        off[k] = v[k] - size.middle[k]
    multiply(design, off, along)
    low, high = -1.0, np.inf
    for t in range(taken.size):
        c = taken[t]
        for j in range(start[t], start[t + 1]):
            margin, gap = along[c] - along[j], w[c] - w[j]
            if margin > 0.0:
                low = max(low, -gap / margin)
            elif margin < 0.0:
                high = min(high, -gap / margin)
    most = beyond(sd * max(1.0 + low, 0.0) / size.scale)
    least = beyond(sd * (1.0 + high) / size.scale) if high < np.inf else 0.0
    new = size.scale * beyond_inverse(least + (most - least) * rng.random())
    more = new / sd - 1.0
    if not low <= more <= high:  # rounding, at the edge of a far interval
        return sd
    for k in range(v.size):
        v[k] += more * off[k]
    for p in range(w.size):
        w[p] += more * along[p]
    return new
