"""The mode of skills that change: Newton's method, its systems solved by conjugate gradients.

The log posterior density of all nodes v is, up to a constant,

    log P(orders | v) - v'Q v / 2,    Q the precision of independent random walks,

and minus its second derivatives are Q + H. A game's H couples its players. Under logit noise, with
strengths e_m = exp(u_m), D_k the sum of those from place k on, and the first K places chosen,

    (H x)_m = e_m (x_m sum of 1 / D_k - sum of s_k / D_k^2),    s_k the sum of e_m x_m from k on,

both sums over places k up to m, below K. Of two entries under normal noise, with d their gap in
units of its sd and r = phi(d) / Phi(d), H is r (r + d) / sd^2 between both. Systems are solved by
conjugate gradients; Q and the diagonal of H, in which players do not meet, precondition them (Nash
and Sofer 1990 on truncated Newton methods).
"""

import math
from typing import NamedTuple

import numpy as np

from revealed._types import Floats, Ints
from revealed.kernels._compile import compiled
from revealed.kernels.bidiagonal import (
    multiply_precision,
    solve_factor,
    solve_factor_transposed,
)
from revealed.kernels.interrupt import stop_requested
from revealed.kernels.normal import log_cdf_and_ratio


class OrderedGames(NamedTuple):
    """Games in the order of their dates, the entry that is chosen first before the others.

    start (G + 1,): where entries begin. n_chosen (G,): places that are chosen. node: those of entry
    e from entry_start[e] on. scale: sd of the difference of two entries' noises, or 0 under logit
    noise. sign: -1 where places are chosen from the last one up, by the least utility.
    """

    start: Ints
    n_chosen: Ints
    node: Ints
    entry_start: Ints
    scale: Floats
    sign: float


class WalkPrecision(NamedTuple):
    """The precision Q of random walks: diagonal (N,), and coupling (N,) with the node before."""

    diagonal: Floats
    coupling: Floats


class GameCurvature(NamedTuple):
    """What products with H need: strength (E,), inverse (E,) of the D_k, and cumulated (E,) ones.

    Of two entries under normal noise inverse has the weight. diagonal (N,): of H.
    """

    strength: Floats
    inverse: Floats
    cumulated: Floats
    diagonal: Floats


def make_curvature(entries: int, nodes: int) -> GameCurvature:
    """Arrays for it."""
    line = (np.zeros(entries), np.zeros(entries), np.zeros(entries))
    return GameCurvature(*line, np.zeros(nodes))


@compiled
def game_slopes(
    games: OrderedGames, high: int, value: Floats, slope: Floats, curvature: GameCurvature
) -> float:
    """The log-likelihood of the first `high` games at nodes (N,), its slope and its curvature."""
    strength, inverse, cumulated, diagonal = curvature
    slope[:] = 0.0
    diagonal[:] = 0.0
    total = 0.0
    for g in range(high):
        a, b = games.start[g], games.start[g + 1]
        chosen = a + games.n_chosen[g]
        # utilities first, in the place of strengths
        for e in range(a, b):
            u = 0.0
            for i in range(games.entry_start[e], games.entry_start[e + 1]):
                u += value[games.node[i]]
            strength[e] = games.sign * u
        if games.scale[g] > 0.0:
            # two entries under normal noise
            scale = games.scale[g]
            gap = (strength[a] - strength[a + 1]) / scale
            log_probability, ratio = log_cdf_and_ratio(gap)
            total += log_probability
            weight = ratio * (ratio + gap) / (scale * scale)
            inverse[a] = weight
            for e in range(a, b):
                by = ratio / scale if e == a else -ratio / scale
                for i in range(games.entry_start[e], games.entry_start[e + 1]):
                    slope[games.node[i]] += games.sign * by
                    diagonal[games.node[i]] += weight
            continue
        # the largest utility is taken off, so that no exponential overflows
        top = strength[a]
        for e in range(a + 1, b):
            top = max(top, strength[e])
        # sums of strengths from the end, so that the smallest are not lost
        behind = 0.0
        for e in range(b - 1, a - 1, -1):
            u = strength[e]
            strength[e] = math.exp(u - top)
            behind += strength[e]
            inverse[e] = 0.0
            # only places that were seen are chosen; who came behind has no factor of his own
            if e < chosen:
                inverse[e] = 1.0 / max(behind, 1e-300)
                total += u - top - math.log(max(behind, 1e-300))
        once, twice = 0.0, 0.0
        for e in range(a, b):
            once += inverse[e]
            twice += inverse[e] * inverse[e]
            cumulated[e] = once
            by = (1.0 if e < chosen else 0.0) - strength[e] * once
            # the diagonal of H: sums of p (1 - p) over places
            weight = strength[e] * (once - strength[e] * twice)
            for i in range(games.entry_start[e], games.entry_start[e + 1]):
                slope[games.node[i]] += games.sign * by
                diagonal[games.node[i]] += weight
    return total


@compiled
def add_curvature_product(
    games: OrderedGames, high: int, curvature: GameCurvature, x: Floats, part: Floats, y: Floats
) -> None:
    """Add H x to y (N,); part (2, E) is written to."""
    strength, inverse, cumulated = curvature.strength, curvature.inverse, curvature.cumulated
    own, sums = part[0], part[1]
    for g in range(high):
        a, b = games.start[g], games.start[g + 1]
        for e in range(a, b):
            own[e] = 0.0
            for i in range(games.entry_start[e], games.entry_start[e + 1]):
                own[e] += x[games.node[i]]
        if games.scale[g] > 0.0:
            # one weight between two entries
            own[a] = inverse[a] * (own[a] - own[a + 1])
            own[a + 1] = -own[a]
        else:
            # s_k from the end, so that none is a small difference of large numbers
            behind = 0.0
            for e in range(b - 1, a - 1, -1):
                behind += strength[e] * own[e]
                sums[e] = behind
            before = 0.0
            for e in range(a, b):
                before += sums[e] * inverse[e] * inverse[e]
                own[e] = strength[e] * (own[e] * cumulated[e] - before)
        for e in range(a, b):
            for i in range(games.entry_start[e], games.entry_start[e + 1]):
                y[games.node[i]] += own[e]


@compiled
def add_curvature_noise(
    rng: np.random.Generator, games: OrderedGames, high: int, curvature: GameCurvature, y: Floats
) -> None:
    """Add a normal draw with covariance H to y (N,).

    At each place sqrt(p) z - p sum of sqrt(p) z has the covariance diag(p) - p p', z being standard
    normal.
    """
    strength, inverse = curvature.strength, curvature.inverse
    for g in range(high):
        a, b = games.start[g], games.start[g + 1]
        if games.scale[g] > 0.0:
            drawn = math.sqrt(max(inverse[a], 0.0)) * rng.standard_normal()
            for e in range(a, b):
                for i in range(games.entry_start[e], games.entry_start[e + 1]):
                    y[games.node[i]] += drawn if e == a else -drawn
            continue
        # place by place, since the curvatures of places add up
        z = np.empty(b - a)
        for k in range(a, a + games.n_chosen[g]):
            total = 0.0
            for e in range(k, b):
                root = math.sqrt(strength[e] * inverse[k])
                z[e - a] = root * rng.standard_normal()
                total += z[e - a]
            for e in range(k, b):
                drawn = z[e - a] - strength[e] * inverse[k] * total
                for i in range(games.entry_start[e], games.entry_start[e + 1]):
                    y[games.node[i]] += drawn


@compiled
def solve_newton(
    games: OrderedGames,
    high: int,
    precision: WalkPrecision,
    curvature: GameCurvature,
    inverse: Floats,
    lower: Floats,
    b: Floats,
    x: Floats,
    most: int,
    relative: float,
) -> int:
    """Write (Q + H)^-1 b to x by conjugate gradients; returns how many steps it took.

    inverse, lower: the factor of Q and the diagonal of H. Stops after `most` steps, or where the
    residual's norm under the preconditioner is `relative` times what it was.
    """
    size = b.size
    residual, product, solved = b.copy(), np.empty(size), np.empty(size)
    part = np.empty((2, curvature.strength.size))
    # from zero, so that the first residual is b
    x[:] = 0.0
    solve_factor(inverse, lower, residual, solved)
    solve_factor_transposed(inverse, lower, solved, solved)
    direction = solved.copy()
    norm = 0.0
    for n in range(size):
        norm += residual[n] * solved[n]
    least = relative * relative * norm
    for step in range(most):
        if not norm > least or stop_requested():
            return step
        multiply_precision(precision.diagonal, precision.coupling, direction, product)
        add_curvature_product(games, high, curvature, direction, part, product)
        # the step that minimises along the direction
        curved = 0.0
        for n in range(size):
            curved += direction[n] * product[n]
        length = norm / curved
        for n in range(size):
            x[n] += length * direction[n]
            residual[n] -= length * product[n]
        solve_factor(inverse, lower, residual, solved)
        solve_factor_transposed(inverse, lower, solved, solved)
        # the next direction is conjugate to all before it
        after = 0.0
        for n in range(size):
            after += residual[n] * solved[n]
        for n in range(size):
            direction[n] = solved[n] + after / norm * direction[n]
        norm = after
    return most
