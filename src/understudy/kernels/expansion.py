"""Parameter expansion: rescale and shift the utilities, and draw the coefficients with the scale (paper, algorithm 2).

The expanded utilities are y = sqrt(z1) (w + X C z2), with C the unit indicator columns of the centred blocks. Given y,

    Z1 ~ IG(shape, rate)   and   u | Z1 ~ N(F h, Z1 F F'),   h = F' X'y,   F F' = (X'X + prior precision)^-1,

and v = (I - C C') u / sqrt(Z1) are coefficients on the model's own scale. Which columns F spans, and how many half
units of shape are lost, is what tells the moves apart; `engines/augmented.py` sets them.
"""

import math
from typing import NamedTuple

import numpy as np

from understudy._arrays import Floats
from understudy.kernels._jit import part
from understudy.kernels.design import Design, dot, transpose_multiply


class Move(NamedTuple):
    """One of the paper's moves on one problem.

    factor: (K, D) F above. pull: (K,) prior precision times prior mean. constants: (L, K) C', empty unless the move
    translates. offsets: (L, P) (X C)'. spread: sd of each z2, zero when it is not drawn. scale: whether z1 moves.
    shape, rate: of its IG(a, b) prior, zero for the improper one. lost: degrees of freedom taken by a flat translation.
    """

    factor: Floats
    pull: Floats
    constants: Floats
    offsets: Floats
    spread: float
    scale: bool
    shape: float
    rate: float
    lost: float


class Scratch(NamedTuple):
    """Working space, so that nothing is allocated inside the loop: rows (P,), coefficients (K,), directions (D,)."""

    gathered: Floats
    fitted: Floats
    u: Floats


@part
def draw_scale(rng: np.random.Generator, move: Move, rows: int, quad: float, z1: float) -> float:
    """Z1 given the expanded utilities; the improper working prior costs a flat translation half a unit of shape."""
    proper = move.rate > 0.0
    shape = move.shape + 0.5 * (rows if proper else rows - move.lost)
    if proper and move.lost > 0.0:
        quad += 2.0 * z1 * rng.standard_gamma(0.5 * move.lost)
    return (move.rate + 0.5 * quad) / rng.standard_gamma(shape)


@part
def expand(rng: np.random.Generator, move: Move, design: Design, scratch: Scratch, v: Floats, w: Floats) -> float:
    """Draw v (K,) given the utilities w (P,); both are updated in place. Returns Z1."""
    gathered, fitted, u = scratch
    translations = move.constants.shape[0]
    z1 = 1.0
    if move.scale and move.rate > 0.0:
        z1 = move.rate / rng.standard_gamma(move.shape)
    if move.spread > 0.0:
        for l in range(translations):
            z2 = move.spread * rng.standard_normal()
            for p in range(w.size):
                w[p] += move.offsets[l, p] * z2
    if z1 != 1.0:
        root = math.sqrt(z1)
        for p in range(w.size):
            w[p] *= root

    transpose_multiply(design, w, gathered)
    fitted[:] = 0.0
    for k in range(v.size):
        pulled = gathered[k] + move.pull[k]
        for d in range(fitted.size):
            fitted[d] += move.factor[k, d] * pulled
    new_z1 = 1.0
    if move.scale:
        new_z1 = draw_scale(rng, move, w.size, max(dot(w, w) - dot(fitted, fitted), 0.0), z1)

    root = math.sqrt(new_z1)
    for d in range(fitted.size):
        fitted[d] += root * rng.standard_normal()
    for k in range(v.size):
        u[k] = dot(move.factor[k], fitted)
        v[k] = u[k] / root
    for p in range(w.size):
        w[p] /= root
    for l in range(translations):
        z2 = dot(move.constants[l], u) / root
        for k in range(v.size):
            v[k] -= z2 * move.constants[l, k]
        for p in range(w.size):
            w[p] -= z2 * move.offsets[l, p]
    return new_z1
