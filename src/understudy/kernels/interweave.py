"""The value given the noise: the other half of interweaving (Yu and Meng 2011, ancillarity and sufficiency).

Data augmentation draws v given the utilities w, and then moves by no more than the noise. Given the noise e = w - X v
instead, the choices only say that v lies in a polyhedron,

    gap_j = w_chosen - w_j >= 0   with   w = X v + e,

and v may travel across it in one step. Along a direction d, v + s d keeps gap_j + s margin_j >= 0, where margin_j is
(row_chosen - row_j) d: one pass over the rows finds the interval for s, and s is the prior along d cut to it.
"""

from typing import NamedTuple

import numpy as np

from understudy._arrays import Floats, Ints
from understudy.kernels._jit import part, reduction
from understudy.kernels.design import dot
from understudy.kernels.normal import draw_between

FAR = 1e300


class Weave(NamedTuple):
    """Directions to travel in: the columns of F, and random mixtures of them.

    factor: (D, K) F'. pull: (D, K) (prior precision F)', zero when flat. centre: (K,) prior mean.
    margins: (D, P) row r holds (row_chosen - row_j) F[:, r]. mixtures: random directions an iteration.
    """

    factor: Floats
    pull: Floats
    centre: Floats
    margins: Floats
    mixtures: int


@reduction
def _interval(margin: Floats, gap: Floats) -> tuple[float, float]:
    """The s for which gap + s margin stays non-negative."""
    low, high = -FAR, FAR
    for p in range(gap.size):
        h = margin[p]
        edge = -gap[p] / h if h != 0.0 else 0.0
        low = max(low, edge if h > 0.0 else -FAR)
        high = min(high, edge if h < 0.0 else FAR)
    return low, high


@reduction
def _mix(weights: Floats, parts: Floats, out: Floats) -> None:
    """Write the weighted sum of the rows of parts into out."""
    for p in range(out.size):
        out[p] = weights[0] * parts[0, p]
    for r in range(1, weights.size):
        weight = weights[r]
        for p in range(out.size):
            out[p] += weight * parts[r, p]


@part
def _travel(
    rng: np.random.Generator,
    direction: Floats,
    pull: Floats,
    times: float,
    margin: Floats,
    centre: Floats,
    v: Floats,
    gap: Floats,
) -> None:
    """Draw s along one direction, and move v and the gaps with it."""
    low, high = _interval(margin, gap)
    precision = dot(direction, pull)
    if precision > 0.0:
        mean = -(dot(pull, v) - dot(pull, centre)) / precision
        sd = 1.0 / np.sqrt(times * precision)
        s = mean + sd * draw_between(rng, (low - mean) / sd, (high - mean) / sd)
    else:
        s = low + (high - low) * rng.random()
    s = min(max(s, low), high)
    for k in range(v.size):
        v[k] += s * direction[k]
    for p in range(gap.size):
        gap[p] = max(gap[p] + s * margin[p], 0.0)


@part
def interweave(
    rng: np.random.Generator,
    weave: Weave,
    start: Ints,
    taken: Ints,
    weights: Floats,
    direction: Floats,
    pull: Floats,
    margin: Floats,
    times: float,
    v: Floats,
    w: Floats,
) -> None:
    """Move v (K,) given the noise behind the utilities w (P,), which become the gaps: draw them afresh afterwards.

    times: what the prior precision behind `pull` is multiplied with, one where the prior's size is given.
    """
    for t in range(taken.size):
        best = w[taken[t]]
        for j in range(start[t], start[t + 1]):
            w[j] = best - w[j]
    for r in range(weave.factor.shape[0]):
        _travel(rng, weave.factor[r], weave.pull[r], times, weave.margins[r], weave.centre, v, w)
    for _ in range(weave.mixtures):
        for r in range(weights.size):
            weights[r] = rng.standard_normal()
        _mix(weights, weave.factor, direction)
        _mix(weights, weave.pull, pull)
        _mix(weights, weave.margins, margin)
        _travel(rng, direction, pull, times, margin, weave.centre, v, w)
