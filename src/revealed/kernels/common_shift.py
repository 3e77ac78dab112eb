"""A shift of everybody on one date, drawn exactly, where games do not see it.

Where all entries of each game have as many players, adding one number to all skills of a component
on one date changes no probability. With weights B (N, K) of shifts delta about dates (hats between
K knots, or one knot a date where there are few), path u and prior precision Q, the posterior gives

    u + B delta,    delta ~ N(-P^-1 B'Q u, P^-1),    P = B'QB

an exact draw given all else (MATHS of a Gibbs step). Paths of Hamiltonian moves are slow there, for
their coordinates know nothing of opponents.
"""

import math
from typing import NamedTuple

import numpy as np

from revealed._types import Bools, Floats, Ints
from revealed.kernels._compile import compiled
from revealed.kernels.path_process import PathLaw


class CommonShift(NamedTuple):
    """Who is shifted by what.

    knots: K, or 0 where no shift is free. knot (N,): the knot at or before a node's date. share
    (N,): how far the date is on the way to the next knot. component (N,), components: of each node,
    and how many have dates of their own to shift.
    """

    knots: int
    knot: Ints
    share: Floats
    component: Ints
    components: int


NO_SHIFT = CommonShift(0, np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64), 0)
"""Where none is free."""


def make_common_shift(
    date: Ints, dates: int, component: Ints, components: int, most: int = 64
) -> CommonShift:
    """Shifts of all dates, or of hats about `most` of them, evenly spaced.

    More of them make moves better, and take K^2 numbers and K^3 sums.
    """
    # one knot a date where they are few: then every date shifts by itself
    knots = min(dates, most)
    position = date * ((knots - 1) / max(1, dates - 1))
    knot = np.minimum(np.floor(position).astype(np.int64), max(0, knots - 2))
    return CommonShift(knots, knot, position - knot, component, components)


@compiled
def _add_outer(
    shift: CommonShift, n: int, decay: float, weight: float, first: bool, right: float, p: Floats
) -> None:
    """Add weight a a' to p (K, K + 1), and right a to its last column, a of one step.

    a = b_n - decay b_(n-1), of which at most four numbers are not zero.
    """
    # hats of the two knots about each end of the step
    at, own = np.empty(4, np.int64), np.empty(4)
    at[0], own[0] = shift.knot[n], 1.0 - shift.share[n]
    at[1], own[1] = min(shift.knot[n] + 1, shift.knots - 1), shift.share[n]
    count = 2
    if not first:
        at[2], own[2] = shift.knot[n - 1], -decay * (1.0 - shift.share[n - 1])
        at[3] = min(shift.knot[n - 1] + 1, shift.knots - 1)
        own[3] = -decay * shift.share[n - 1]
        count = 4
    for i in range(count):
        for j in range(count):
            p[at[i], at[j]] += weight * own[i] * own[j]
        p[at[i], shift.knots] += right * own[i]


@compiled
def draw_common_shift(
    rng: np.random.Generator,
    shift: CommonShift,
    first: Bools,
    law: PathLaw,
    component: int,
    value: Floats,
    delta: Floats,
) -> bool:
    """Draw the shifts delta (K,) of one component, given paths (N, 1).

    Returns whether there is such a law; rounding may leave none.
    """
    count = shift.knots
    # P, and beside it B'Q u, which is added up in the same pass over the nodes
    p = np.zeros((count, count + 1))
    for n in range(value.shape[0]):
        if shift.component[n] != component:
            continue
        # (u_n - decay u_(n-1))^2 / variance, of a path that shifts at both of its ends
        decay = 0.0 if first[n] else law.decay[n, 0]
        step = value[n, 0] - law.centre[0]
        if not first[n]:
            step -= decay * (value[n - 1, 0] - law.centre[0])
        weight = 1.0 / law.variance[n, 0]
        _add_outer(shift, n, decay, weight, first[n], weight * step, p)
    # Cholesky in place, and L x = -B'Q u in the last column
    for i in range(count):
        for j in range(i + 1):
            for k in range(j):
                p[i, j] -= p[i, k] * p[j, k]
            if i == j:
                if not p[i, i] > 0.0:
                    return False
                p[i, i] = math.sqrt(p[i, i])
            else:
                p[i, j] /= p[j, j]
        total = -p[i, count]
        for k in range(i):
            total -= p[i, k] * delta[k]
        delta[i] = total / p[i, i]
    # standard normal noise here has the covariance P^-1 once L' is solved
    # L' delta = x + noise
    for i in range(count):
        delta[i] += rng.standard_normal()
    for i in range(count - 1, -1, -1):
        for k in range(i + 1, count):
            delta[i] -= p[k, i] * delta[k]
        delta[i] /= p[i, i]
    return True
