"""How likely finishing orders are, and how that changes with the skills behind them.

A game's entries, best first, have utilities w_k, normal with mean m_k and sd s_k, and w_0 > w_1 > ... was seen. The noise
is shared by all comparisons of a game, so an order does not split into choices; but it is a chain. Seen from below,

    H_k(x) = P(everyone below k in place, given w_k = x) = integral over y < x - margin of f_k+1(y) H_k+1(y) dy

with f_k the density of w_k: one integral after another along a lattice, and P = integral of f_0 H_0. Seen from above the same
gives A_k, and A_k f_k H_k is the density of w_k given the order, whose mean minus m_k is s_k^2 times the slope in m_k.

The margin is zero unless games can be tied. Then neighbours are apart by more than it, or tied and apart by less. Who tied may stand in any
order among themselves; summed over all of them, from below, with E_S(x) for those of a tie who stand in S right below x:

    E_S(x) = integral over x - margin < y < x of sum over j in S of f_j(y) E_S-j(y) dy

Nothing changes when all means, sds and the margin are multiplied by one number. So the slope in log margin is

    - sum of m_k d log P / d m_k + s_k d log P / d s_k,        s_k d log P / d s_k = E (w_k - m_k)^2 / s_k^2 - 1.

Those of whom only is known that they came behind (retired, or all but the winner) are the product of their Phi at the end of the
chain. Two entries need no lattice. Others have steps of STEP of the smallest sd, and finer ones where entries crowd. Log P is then off by
less than 1e-4 up to twenty entries and 1e-3 at forty, nearly by the same for all skills. Steps half as long, which predictions use, leave
1e-6 and 1e-5.
"""

import math
from typing import NamedTuple

import numpy as np

from understudy._arrays import Bools, Floats, Ints
from understudy.kernels._jit import fast, jit
from understudy.kernels.lattice import bell, cells, falling, rising, shift
from understudy.kernels.normal import log_cdf_and_ratio

STEP = 0.4  # in units of the smallest sd
CROWDED = 2.0  # H grows like Phi to the power of those below: with so many entries, steps are this divided by them
REACH = 5.5  # sds that the lattice goes beyond the means
FINE = 0.5  # of these steps, for predictions
EDGE = 4  # empty nodes at both ends
WIDEST = 3000.0  # means further apart than so many of the smallest sds are refused: P = 0


class Games(NamedTuple):
    """Entries in finishing order: players (N,) of entry e from first[e] on; entries of game g from start[g] on.

    sd: (E,) of an entry's noise. tied: (E,) with the entry before it. known: (G,) how many entries of a game are in order.
    """

    players: Ints
    first: Ints
    start: Ints
    sd: Floats
    tied: Bools
    known: Ints


@jit
def log_orders(games: Games, skill: Floats, margin: float, slope: Floats) -> tuple[float, float]:
    """Log P of all orders, and its slope in log margin; that in the skills goes into slope (K,), unless that is empty."""
    total, by_margin = 0.0, 0.0
    slope[:] = 0.0
    most = 0
    for g in range(games.known.size):
        most = max(most, games.start[g + 1] - games.start[g])
    mean, push = np.empty(most), np.empty(most if slope.size > 0 else 0)
    room = np.empty(0)
    for g in range(games.known.size):
        low, high = games.start[g], games.start[g + 1]
        for e in range(low, high):
            worth = 0.0
            for j in range(games.first[e], games.first[e + 1]):
                worth += skill[games.players[j]]
            mean[e - low] = worth
        count = high - low
        if count == 2:
            value, turn = _pair(mean, games.sd[low:high], games.tied[low + 1], margin, push)
        else:
            tied = games.tied[low:high]
            need = _needed(mean[:count], games.sd[low:high], tied, games.known[g], margin, slope.size > 0, 1.0)
            if need < 0:
                return -np.inf, 0.0
            if need > room.size:
                room = np.empty(need + need // 4)
            value, turn = _chain(mean[:count], games.sd[low:high], tied, games.known[g], margin, push, 1.0, room)
        total += value
        by_margin += turn
        if slope.size > 0:
            for e in range(low, high):
                for j in range(games.first[e], games.first[e + 1]):
                    slope[games.players[j]] += push[e - low]
    return total, by_margin


@jit
def log_order(
    mean: Floats, sd: Floats, tied: Bools, known: int, margin: float, slope: Floats, fine: float
) -> tuple[float, float]:
    """Log P of one order, and its slope in log margin; that in the means goes into slope (n,), unless that is empty.

    Steps of the lattice are multiplied by fine.
    """
    if mean.size == 2:
        return _pair(mean, sd, tied[1], margin, slope)
    need = _needed(mean, sd, tied, known, margin, slope.size > 0, fine)
    if need < 0:
        return -np.inf, 0.0
    return _chain(mean, sd, tied, known, margin, slope, fine, np.empty(need))


@jit
def log_order_each(means: Floats, sd: Floats, tied: Bools, known: int, margin: Floats) -> Floats:
    """(S,) log P of one order under S sets of means (S, n) and margins (S,)."""
    out = np.empty(margin.size)
    none = np.empty(0)
    for s in range(margin.size):
        out[s] = log_order(means[s], sd, tied, known, margin[s], none, FINE)[0]
    return out


@jit
def _pair(mean: Floats, sd: Floats, tie: bool, margin: float, slope: Floats) -> tuple[float, float]:
    """Two entries: P(w_0 - w_1 > margin), or P(|w_0 - w_1| <= margin)."""
    scale = math.sqrt(sd[0] * sd[0] + sd[1] * sd[1])
    lead, gap = (mean[0] - mean[1]) / scale, margin / scale
    if not tie:
        value, push = log_cdf_and_ratio(lead - gap)
        turn = -push * gap
    else:
        side = 1.0 if lead < 0.0 else -1.0  # from the side where both bounds lie in the lower tail
        upper, by_upper = log_cdf_and_ratio(gap + side * lead)
        lower, by_lower = log_cdf_and_ratio(-gap + side * lead)
        share = math.exp(lower - upper)
        value = upper + math.log1p(-share)
        push = side * (by_upper - by_lower * share) / (1.0 - share)
        turn = (by_upper + by_lower * share) / (1.0 - share) * gap
    if slope.size > 0:
        slope[0], slope[1] = push / scale, -push / scale
    return value, turn


@jit
def _lattice(mean: Floats, sd: Floats, margin: float, fine: float) -> tuple[float, float, int]:
    """The first node, the step, and how many nodes there are; none where means are too far apart."""
    finest, widest, lowest, highest = sd[0], sd[0], mean[0], mean[0]
    for k in range(1, mean.size):
        finest, widest = min(finest, sd[k]), max(widest, sd[k])
        lowest, highest = min(lowest, mean[k]), max(highest, mean[k])
    step = fine * min(STEP, CROWDED / mean.size) * finest
    left = lowest - REACH * widest - margin - EDGE * step
    far = highest + REACH * widest + margin - left
    if not far < WIDEST * finest:
        return left, step, 0
    return left, step, int(far / step) + EDGE + 2


@jit
def _needed(mean: Floats, sd: Floats, tied: Bools, known: int, margin: float, sloped: bool, fine: float) -> int:
    """How many numbers `_chain` wants room for; less than none where means are too far apart."""
    nodes = _lattice(mean, sd, margin, fine)[2]
    rows, run = 0, 0
    for k in range(1, known + 1):  # a group of n who tied has 2^n - 1 subsets without the whole
        run += 1
        if k == known or not tied[k]:
            rows += (1 << run) - 1
            run = 0
    return (mean.size + rows * (2 if sloped else 1) + 4) * nodes if nodes > 0 else -1


@jit
def _chain(
    mean: Floats, sd: Floats, tied: Bools, known: int, margin: float, slope: Floats, fine: float, room: Floats
) -> tuple[float, float]:
    """Any number of entries, along a lattice."""
    count = mean.size
    left, step, nodes = _lattice(mean, sd, margin, fine)
    offset = margin / step
    places, inner = _groups(tied, known)
    rows = inner[-1]
    density = room[: count * nodes].reshape((count, nodes))
    below = room[count * nodes : (count + rows) * nodes].reshape((rows, nodes))  # E_S, S from none to all but one
    spare = room[(count + rows) * nodes : (count + rows + 4) * nodes].reshape((4, nodes))
    g, cell, running, moved = spare[0], spare[1], spare[2], spare[3]
    for k in range(count):
        bell(left, step, mean[k], sd[k], density[k])
    last = below[inner[-2]]
    last[:] = 1.0
    for j in range(known, count):
        cells(density[j], step, cell)
        rising(cell, running)
        shift(running, offset, moved)
        _times(last, moved)
    value = 0.0
    for group in range(places.size - 2, -1, -1):
        first, size = places[group], places[group + 1] - places[group]
        whole = (1 << size) - 1
        for subset in range(1, whole + 1):
            _gather(density, below, first, size, inner[group], subset, g)
            cells(g, step, cell)
            rising(cell, running)
            if offset > 0.0 and (subset < whole or group > 0):
                shift(running, offset, moved)
            if subset < whole:
                _window(running, moved, below[inner[group] + subset])
        top = running[nodes - 1]
        if not top > 0.0:
            return -np.inf, 0.0
        value += math.log(top)
        if group > 0:
            _scaled(moved if offset > 0.0 else running, 1.0 / top, below[inner[group - 1]])
    if slope.size == 0:
        return value, 0.0
    above = room[(count + rows + 4) * nodes : (count + 2 * rows + 4) * nodes].reshape((rows, nodes))
    return value, _slopes(mean, sd, known, offset, left, step, density, below, above, spare, places, inner, slope)


@jit
def _groups(tied: Bools, known: int) -> tuple[Ints, Ints]:
    """Where each group of tied entries begins, and where its subsets do, all but the whole; and both ends."""
    places, inner = np.zeros(known + 1, np.int64), np.zeros(known + 1, np.int64)
    count = 0
    for k in range(1, known + 1):
        if k == known or not tied[k]:
            count += 1
            places[count] = k
            inner[count] = inner[count - 1] + (1 << (k - places[count - 1])) - 1
    return places[: count + 1], inner[: count + 1]


@jit
def _slopes(
    mean: Floats,
    sd: Floats,
    known: int,
    offset: float,
    left: float,
    step: float,
    density: Floats,
    below: Floats,
    above: Floats,
    spare: Floats,
    places: Ints,
    inner: Ints,
    slope: Floats,
) -> float:
    """The slopes in the means, from above; returns that in log margin."""
    count, nodes = density.shape
    g, cell, running, moved = spare[0], spare[1], spare[2], spare[3]
    turn = 0.0
    above[0, :] = 1.0  # the same as below, from above: for those of a tie who stand in S right above x
    for group in range(places.size - 1):
        first, size, at = places[group], places[group + 1] - places[group], inner[group]
        whole = (1 << size) - 1
        for subset in range(1, whole + 1):
            _gather(density, above, first, size, at, subset, g)
            if subset < whole:
                cells(g, step, cell)
                falling(cell, running)
                shift(running, -offset, moved)
                _window(running, moved, above[at + subset])
        for j in range(first, first + size):
            total, lead, square = 0.0, 0.0, 0.0
            for subset in range(whole):
                if not subset >> (j - first) & 1:
                    rest = at + (whole ^ subset ^ (1 << (j - first)))
                    mass, one, two = _moments(above[at + subset], density[j], below[rest], left - mean[j], step)
                    total += mass
                    lead += one
                    square += two
            variance = sd[j] * sd[j]
            slope[j] = lead / total / variance
            turn -= (mean[j] - mean[0]) * slope[j] + square / total / variance - 1.0
        if group + 2 < places.size:
            cells(g, step, cell)
            falling(cell, running)
            if offset > 0.0:
                shift(running, -offset, moved)
            _scaled(moved if offset > 0.0 else running, 1.0 / running[0], above[inner[group + 1]])
    _times(g, below[inner[places.size - 2]])  # the density of the last one's w
    total = g.sum()
    for j in range(known, count):  # d log Phi(x - margin - m_j), averaged over it
        cells(density[j], step, cell)
        rising(cell, running)
        shift(running, offset, moved)
        shift(density[j], offset, running)
        ratio, lead = 0.0, 0.0
        for i in range(nodes):
            if moved[i] > 0.0:
                here = g[i] * running[i] / moved[i]
                ratio += here
                lead += here * (left + step * (i - offset) - mean[j])
        slope[j] = -ratio / total
        turn -= (mean[j] - mean[0]) * slope[j] - lead / total
    return turn


@fast
def _gather(density: Floats, values: Floats, first: int, size: int, at: int, subset: int, out: Floats) -> None:
    """The sum over j in a subset of a group of f_j times the value of the subset without j."""
    nodes = np.uint64(out.size)
    if size == 1:
        f, v = density[first], values[at]
        for i in range(nodes):
            out[i] = f[i] * v[i]
        return
    out[:] = 0.0
    for j in range(size):
        if subset >> j & 1:
            f, v = density[first + j], values[at + (subset ^ (1 << j))]
            for i in range(nodes):
                out[i] += f[i] * v[i]


@fast
def _moments(a: Floats, f: Floats, h: Floats, begin: float, step: float) -> tuple[float, float, float]:
    """Sums of a f h times 1, x and x^2, with x from begin on."""
    total, lead, square = 0.0, 0.0, 0.0
    for i in range(np.uint64(a.size)):
        here, x = a[i] * f[i] * h[i], begin + step * np.int64(i)
        total += here
        lead += here * x
        square += here * x * x
    return total, lead, square


@fast
def _times(out: Floats, factor: Floats) -> None:
    for i in range(np.uint64(out.size)):
        out[i] *= factor[i]


@fast
def _scaled(values: Floats, factor: float, out: Floats) -> None:
    for i in range(np.uint64(out.size)):
        out[i] = factor * values[i]


@fast
def _window(near: Floats, far: Floats, out: Floats) -> None:
    """What lies within the margin: one running integral less the same shifted."""
    for i in range(np.uint64(out.size)):
        out[i] = max(near[i] - far[i], 0.0)
