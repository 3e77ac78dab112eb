"""Many players at once: moves of each given the population, and the likelihood of all with its slopes.

Given the population's mean and covariance the players are independent, so any of them can be moved anywhere, with a
generator of their own. The arrays of all players are stacked one after the other.
"""

import math
from typing import NamedTuple

import numpy as np

from understudy._arrays import Floats, Ints
from understudy.kernels._jit import jit, part
from understudy.kernels.collapsed import ROOM, Offers, Room, log_likelihood
from understudy.kernels.design import Design, multiply, transpose_multiply
from understudy.kernels.hamiltonian import travel
from understudy.kernels.integral import MANY
from understudy.kernels.target import Target, Work, log_posterior

HEAVY = 8.0  # degrees of freedom of the Student-t law that players leap from


class Crowd(NamedTuple):
    """What N players chose against what, in D free coordinates; each player's rivals as in `Offers`.

    columns: the rivals' rows less the chosen one's, (D, rivals) for each player, laid out flat. rival, kind: (N + 1,) where
    each player's rivals and different decisions begin. first: their beginnings, counted from zero for each player.
    most: (3,) the most rivals of a player, the most different ones of a decision, and the most of a decision in all.
    """

    columns: Floats
    rival: Ints
    kind: Ints
    first: Ints
    copies: Floats
    weight: Floats
    most: Ints


@jit
def one(crowd: Crowd, width: int, i: int) -> tuple[Design, Offers]:
    """The design and the offers of one player."""
    low, high, begin, end = crowd.rival[i], crowd.rival[i + 1], crowd.kind[i], crowd.kind[i + 1]
    none = np.zeros(0, dtype=np.int64)
    columns = crowd.columns[width * low : width * high].reshape((width, high - low))
    offers = Offers(crowd.first[begin + i : end + i + 1], crowd.copies[low:high], crowd.weight[begin:end])
    return Design(columns, none, none, np.zeros(0)), offers


@jit
def room_for(crowd: Crowd) -> Room:
    """Room for the largest decision of any player."""
    most, widest = crowd.most[1], crowd.most[2]
    return Room(
        np.empty(most, np.int64), np.empty(most), np.empty(most), np.empty(ROOM, np.float32),
        np.empty(widest), np.empty(MANY + 1), np.empty(MANY + 1),
    )  # fmt: skip


@jit
def log_student(x: Floats) -> float:
    """The log density, up to a constant, of a standard Student-t law with HEAVY degrees of freedom."""
    square = 0.0
    for d in range(x.size):
        square += x[d] * x[d]
    return -0.5 * (HEAVY + x.size) * math.log(1.0 + square / HEAVY)


@jit
def move_players(
    rng: np.random.Generator,
    crowd: Crowd,
    mean: Floats,
    root: Floats,
    precision: Floats,
    centre: Floats,
    turn: Floats,
    step: Floats,
    length: float,
    leaps: int,
    q: Floats,
    accepted: Floats,
    sums: Floats,
) -> None:
    """Leaps and a Hamiltonian path of every player, under q ~ N(mean, precision^-1), root the covariance's lower root.

    A player's coordinates x are about standard normal: q = mean + root (centre + turn x), turn lower triangular. A leap proposes x from a
    Student-t law. q, centre (N, D), turn (N, D, D), step (N,). q moves; accepted (N,) gets the paths' acceptance probabilities. Added to sums are those of
    log P, its slopes (D,), q - mean (D,), and of the products of the slopes, and of q - mean, with q - mean (D, D).
    """
    width = q.shape[1]
    x, other, gradient, momentum = np.empty(width), np.empty(width), np.empty(width), np.empty(width)
    slope, apart, height = np.empty(width), np.empty(width), np.empty(1)
    ones, zeros, none, no_sizes = np.ones(width), np.zeros(width), np.zeros(0), np.zeros((0, 2))
    gaps, slopes, room = np.empty(crowd.most[0]), np.empty(crowd.most[0]), room_for(crowd)
    turned, value, heavy, pushed = np.empty(width), np.empty(width), np.empty(width), np.empty(width)
    middle, spread = np.empty(width), np.empty((width, width))
    for i in range(q.shape[0]):
        design, offers = one(crowd, width, i)
        for k in range(width):
            middle[k] = mean[k]
            for j in range(width):
                middle[k] += root[k, j] * centre[i, j]
                spread[k, j] = 0.0
                for l in range(j, k + 1):
                    spread[k, j] += root[k, l] * turn[i, l, j]
        for k in range(width):  # q = middle + spread x, solved for x from above
            x[k] = q[i, k] - middle[k]
            for j in range(k):
                x[k] -= spread[k, j] * x[j]
            x[k] /= spread[k, k]
        target = Target(design, offers, none, precision, mean, no_sizes, 0.0, middle, ones, zeros, spread)
        rivals = offers.copies.size
        work = Work(gaps[:rivals], slopes[:rivals], turned, value, heavy, pushed, room)
        if leaps > 0:
            here = log_posterior(target, work, x, -np.inf, none) - log_student(x)
            for _ in range(leaps):
                wide = math.sqrt(0.5 * HEAVY / rng.standard_gamma(0.5 * HEAVY))
                for d in range(width):
                    other[d] = wide * rng.standard_normal()
                there = log_posterior(target, work, other, -np.inf, none) - log_student(other)
                if rng.random() < math.exp(min(there - here, 0.0)):
                    x[:] = other
                    here = there
        height[0] = log_posterior(target, work, x, -np.inf, gradient)
        count = length / step[i]
        fewest, most = max(1, int(0.7 * count + 0.5)), max(1, int(1.3 * count + 0.5))
        accepted[i] = travel(rng, target, work, step[i], fewest, most, x, height, gradient, momentum, other, slope)
        for k in range(width):
            q[i, k] = middle[k]
            for j in range(k + 1):
                q[i, k] += spread[k, j] * x[j]
            apart[k] = q[i, k] - mean[k]
        # the gradient in x is that in q, turned, less the prior's: solved from below
        for k in range(width - 1, -1, -1):
            slope[k] = gradient[k]
            for j in range(k + 1, width):
                slope[k] -= spread[j, k] * slope[j]
            slope[k] /= spread[k, k]
        total, at = height[0], 1 + 2 * width
        for k in range(width):
            pulled = 0.0
            for j in range(width):
                pulled += precision[k, j] * apart[j]
            momentum[k] = slope[k] + pulled
            total += 0.5 * apart[k] * pulled
        sums[0] += total
        for k in range(width):
            sums[1 + k] += momentum[k]
            sums[1 + width + k] += apart[k]
            for j in range(width):
                sums[at] += momentum[k] * apart[j]
                sums[at + width * width] += apart[k] * apart[j]
                at += 1


@part
def move_along(
    q: Floats, mean: Floats, root: Floats, to_mean: Floats, to_root: Floats, z: Floats, there: Floats
) -> None:
    """Write the place z (D,) of one player within a population, q = mean + root z, and where that is in another."""
    for k in range(q.size):
        z[k] = q[k] - mean[k]
        for j in range(k):
            z[k] -= root[k, j] * z[j]
        z[k] /= root[k, k]
    for k in range(q.size):
        there[k] = to_mean[k]
        for j in range(k + 1):
            there[k] += to_root[k, j] * z[j]


@jit
def look_at_all(
    crowd: Crowd, q: Floats, mean: Floats, root: Floats, to_mean: Floats, to_root: Floats, sums: Floats
) -> None:
    """Where would all players' likelihood be in another population, everybody at the same place z within it?

    From q = mean + root z to to_mean + to_root z. Added to sums are log P and, where there is room, its slopes' sum (D,) and that
    of the slopes times z (D, D).
    """
    width, sloped = q.shape[1], sums.size > 1
    z, there, push = np.empty(width), np.empty(width), np.empty(width)
    gaps, slopes, room = np.empty(crowd.most[0]), np.empty(crowd.most[0]), room_for(crowd)
    for i in range(q.shape[0]):
        design, offers = one(crowd, width, i)
        move_along(q[i], mean, root, to_mean, to_root, z, there)
        rivals = offers.copies.size
        gap, slope = gaps[:rivals], slopes[: rivals if sloped else 0]
        multiply(design, there, gap)
        sums[0] += log_likelihood(gap, offers, room, -np.inf, slope)
        if sloped:
            transpose_multiply(design, slope, push)
            for k in range(width):
                sums[1 + k] += push[k]
                for j in range(width):
                    sums[1 + width + k * width + j] += push[k] * z[j]


@jit
def follow(q: Floats, mean: Floats, root: Floats, to_mean: Floats, to_root: Floats) -> Floats:
    """(N, D) q of players who keep their places while the population moves."""
    width, out = q.shape[1], np.empty_like(q)
    z = np.empty(width)
    for i in range(q.shape[0]):
        move_along(q[i], mean, root, to_mean, to_root, z, out[i])
    return out
