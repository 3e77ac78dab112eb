"""Value and rows together, where nobody knows the transitions: choices inform both (paper, section 2).

Row r is p = g / sum(g) with g(y) ~ Gamma(shape(y), 1): that is Dirichlet(shape), shape being the prior's concentration plus
the transitions counted. With t = log g and u = p v (plus the action's reward) the log posterior is

    log prior(v) + sum over cells of {shape t - exp(t)} + sum over choices of log P(taken | u),

without utilities, each state's equal choices weighed once. Two moves leave it as it is:

path      a Hamiltonian move of v and t together: with sharp choices, a value and the rows it is weighed by move as one
refresh   of one row given the value: a share of each g is kept, the rest drawn anew. If g ~ Gamma(a), B ~ Beta(a s, a (1 - s))
          and h ~ Gamma(a (1 - s)), then B g + h ~ Gamma(a), and the step is reversible: what is left to accept or
          refuse is the choices made in the row's state. Share 0 draws the row from its Dirichlet posterior.
"""

import math
from typing import NamedTuple

import numpy as np

from understudy._arrays import Floats, Ints
from understudy.kernels._jit import jit
from understudy.kernels.collapsed import Offers, Room, log_likelihood, make_room
from understudy.kernels.design import dot
from understudy.kernels.hamiltonian import HOPELESS, JITTER, retune

SHARES = np.array([0.0, 0.5, 0.9])  # kept by a refresh: none, half, most; drawn each time


class Rows(NamedTuple):
    """All rows, state by state, and what transitions say of them.

    start: (N + 1,) where each state's rows begin. begin: (P + 1,) where each row's cells begin. where: (C,) the state a
    cell leads to. shape: (C,) concentration plus count. extra: (P,) the coefficient of the action's reward, or -1.
    """

    start: Ints
    begin: Ints
    where: Ints
    shape: Floats
    extra: Ints


class Choices(NamedTuple):
    """What was chosen, equal choices counted: U kinds of them, state by state.

    kinds: (N + 1,) where each state's begin. taken: (U,) the row chosen. rival: (R,) the rows it was chosen against, from
    offers.first on. offers: as `collapsed.py` wants them.
    """

    kinds: Ints
    taken: Ints
    rival: Ints
    offers: Offers


class Belief(NamedTuple):
    """The Gaussian prior of v: precision (K, K) and mean (K,)."""

    precision: Floats
    mean: Floats


class Pace(NamedTuple):
    """How far paths reach: turn (K, D) for the value, own (C,) for each cell, and the paths' length in these units."""

    turn: Floats
    own: Floats
    length: float


class Work(NamedTuple):
    """Working space: probabilities (C,), utilities and their slopes (P,), gaps and theirs (R,), gradients in v and t."""

    p: Floats
    u: Floats
    pushed: Floats
    gap: Floats
    slope: Floats
    in_v: Floats
    in_t: Floats
    room: Room


def make_work(rows: Rows, choices: Choices, width: int) -> Work:
    """Working space for one chain."""
    cells, count, rivals = rows.where.size, rows.extra.size, choices.rival.size
    return Work(
        np.empty(cells), np.empty(count), np.empty(count), np.empty(rivals), np.empty(rivals), np.empty(width),
        np.empty(cells), make_room(choices.offers),
    )  # fmt: skip


@jit
def find_row(rows: Rows, r: int, t: Floats, v: Floats, p: Floats) -> float:
    """Write the probabilities of row r into its cells of p; returns what the row is worth, its action's reward included."""
    low, high = rows.begin[r], rows.begin[r + 1]
    top = t[low:high].max()
    total, worth = 0.0, 0.0
    for c in range(low, high):
        p[c] = math.exp(t[c] - top)
        total += p[c]
    for c in range(low, high):
        p[c] /= total
        worth += p[c] * v[rows.where[c]]
    return worth + (v[rows.extra[r]] if rows.extra[r] >= 0 else 0.0)


@jit
def log_choices(choices: Choices, work: Work, first: int, last: int, slope: Floats) -> float:
    """Log P of the kinds first to last - 1, from the utilities in work; the derivative in their gaps goes into slope."""
    begin = choices.offers.first
    for k in range(first, last):
        for j in range(begin[k], begin[k + 1]):
            work.gap[j] = work.u[choices.rival[j]] - work.u[choices.taken[k]]
    offers = Offers(begin[first : last + 1], choices.offers.copies, choices.offers.weight[first:last])
    return log_likelihood(work.gap, offers, work.room, -np.inf, slope)


@jit
def log_posterior(rows: Rows, choices: Choices, belief: Belief, work: Work, v: Floats, t: Floats) -> float:
    """The log posterior at v (K,) and t (C,) up to a constant; its gradients go into work.in_v and work.in_t."""
    total = 0.0
    off = v - belief.mean
    for k in range(v.size):
        work.in_v[k] = -dot(belief.precision[k], off)
        total += 0.5 * off[k] * work.in_v[k]
    for r in range(rows.extra.size):
        work.u[r] = find_row(rows, r, t, v, work.p)
        work.pushed[r] = 0.0
    for c in range(t.size):
        g = math.exp(t[c])
        total += rows.shape[c] * t[c] - g
        work.in_t[c] = rows.shape[c] - g
    total += log_choices(choices, work, 0, choices.taken.size, work.slope)
    for k in range(choices.taken.size):
        for j in range(choices.offers.first[k], choices.offers.first[k + 1]):
            work.pushed[choices.rival[j]] += work.slope[j]
            work.pushed[choices.taken[k]] -= work.slope[j]
    for r in range(rows.extra.size):
        push, mean = work.pushed[r], work.u[r]
        if rows.extra[r] >= 0:
            mean -= v[rows.extra[r]]
            work.in_v[rows.extra[r]] += push
        for c in range(rows.begin[r], rows.begin[r + 1]):
            work.in_v[rows.where[c]] += push * work.p[c]
            work.in_t[c] += push * work.p[c] * (v[rows.where[c]] - mean)
    return total


@jit
def path(
    rng: np.random.Generator,
    rows: Rows,
    choices: Choices,
    belief: Belief,
    work: Work,
    pace: Pace,
    step: float,
    v: Floats,
    t: Floats,
) -> float:
    """One Hamiltonian move of v (K,) and t (C,), in place; returns the acceptance probability."""
    width = pace.turn.shape[1]
    new_v, new_t = v.copy(), t.copy()
    by_v, by_t = np.empty(width), np.empty(t.size)
    energy = 0.0
    for d in range(width):
        by_v[d] = rng.standard_normal()
        energy += 0.5 * by_v[d] * by_v[d]
    for c in range(t.size):
        by_t[c] = rng.standard_normal()
        energy += 0.5 * by_t[c] * by_t[c]
    epsilon = step * (1.0 + JITTER * (2.0 * rng.random() - 1.0))
    count = min(max(1, int((0.7 + 0.6 * rng.random()) * pace.length / step + 0.5)), 300)
    energy -= log_posterior(rows, choices, belief, work, new_v, new_t)
    now = energy
    for _ in range(count):
        for d in range(width):
            for k in range(v.size):
                by_v[d] += 0.5 * epsilon * pace.turn[k, d] * work.in_v[k]
        for k in range(v.size):
            new_v[k] += epsilon * dot(pace.turn[k], by_v)
        for c in range(t.size):
            by_t[c] += 0.5 * epsilon * pace.own[c] * work.in_t[c]
            new_t[c] += epsilon * pace.own[c] * by_t[c]
        now = -log_posterior(rows, choices, belief, work, new_v, new_t)
        for d in range(width):
            for k in range(v.size):
                by_v[d] += 0.5 * epsilon * pace.turn[k, d] * work.in_v[k]
            now += 0.5 * by_v[d] * by_v[d]
        for c in range(t.size):
            by_t[c] += 0.5 * epsilon * pace.own[c] * work.in_t[c]
            now += 0.5 * by_t[c] * by_t[c]
        if not now < energy + HOPELESS:
            return 0.0
    probability = math.exp(min(energy - now, 0.0))
    if rng.random() < probability:
        v[:] = new_v
        t[:] = new_t
    return probability


@jit
def _log_gamma(rng: np.random.Generator, shape: float) -> float:
    """The logarithm of a Gamma(shape, 1) draw, also where the draw itself would be zero: Gamma(a) = Gamma(a + 1) U^(1/a)."""
    if shape >= 1.0:
        return math.log(rng.standard_gamma(shape))
    return math.log(rng.standard_gamma(shape + 1.0)) - rng.standard_exponential() / shape


@jit
def _log_sum(a: float, b: float) -> float:
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))


@jit
def refresh(rng: np.random.Generator, rows: Rows, choices: Choices, work: Work, v: Floats, t: Floats) -> float:
    """Every row once given the value: t (C,) is changed in place; returns the share of rows that were."""
    accepted, none, old = 0, np.empty(0), np.empty(v.size)
    for r in range(rows.extra.size):
        work.u[r] = find_row(rows, r, t, v, work.p)
    for x in range(rows.start.size - 1):
        first, last = choices.kinds[x], choices.kinds[x + 1]
        before = log_choices(choices, work, first, last, none)
        for r in range(rows.start[x], rows.start[x + 1]):
            low, worth = rows.begin[r], work.u[r]
            share = SHARES[int(rng.random() * SHARES.size)]
            for c in range(low, rows.begin[r + 1]):
                old[c - low] = t[c]
                fresh = _log_gamma(rng, rows.shape[c] * (1.0 - share))
                if share > 0.0:
                    kept = _log_gamma(rng, rows.shape[c] * share)
                    kept -= _log_sum(kept, _log_gamma(rng, rows.shape[c] * (1.0 - share)))
                    fresh = _log_sum(fresh, kept + t[c])
                t[c] = fresh
            work.u[r] = find_row(rows, r, t, v, work.p)
            after = log_choices(choices, work, first, last, none)
            if -rng.standard_exponential() <= after - before:
                accepted += 1
                before = after
            else:
                t[low : rows.begin[r + 1]] = old[: rows.begin[r + 1] - low]
                work.u[r] = worth
    return accepted / rows.extra.size


@jit
def go_on(
    rng: np.random.Generator,
    rows: Rows,
    choices: Choices,
    belief: Belief,
    work: Work,
    pace: Pace,
    step: float,
    thin: int,
    v: Floats,
    t: Floats,
    out: Floats,
    accepted: Floats,
    refreshed: Floats,
) -> None:
    """A path and a refresh of every row, `thin` times for each draw: v and the rows' probabilities go into out (n, K + C)."""
    for n in range(out.shape[0]):
        for _ in range(thin):
            accepted[n] = path(rng, rows, choices, belief, work, pace, step, v, t)
            refreshed[n] = refresh(rng, rows, choices, work, v, t)
        out[n, : v.size] = v
        for r in range(rows.extra.size):
            find_row(rows, r, t, v, work.p)
        out[n, v.size :] = work.p


@jit
def learn_pace(
    rng: np.random.Generator,
    rows: Rows,
    choices: Choices,
    belief: Belief,
    work: Work,
    pace: Pace,
    tempo: Floats,
    goal: float,
    v: Floats,
    t: Floats,
    out: Floats,
) -> float:
    """The same while the step learns to be accepted with probability `goal`; tempo (5,) is what it has learnt with so far.

    Keeps v and t of each iteration in out (n, K + C). Returns the averaged step.
    """
    for n in range(out.shape[0]):
        probability = path(rng, rows, choices, belief, work, pace, tempo[0], v, t)
        refresh(rng, rows, choices, work, v, t)
        retune(tempo, goal, probability, 1e-4)
        out[n, : v.size] = v
        out[n, v.size :] = t
    return math.exp(tempo[4])
