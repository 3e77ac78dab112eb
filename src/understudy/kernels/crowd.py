"""Many players at once: Hamiltonian moves of each given the population, and the likelihood of all with its slopes.

Given the population's mean and covariance the players are independent, so any of them can be moved anywhere, with a
generator of its own. The arrays of all players are stacked one after the other.
"""

from typing import NamedTuple

import numpy as np

from understudy._arrays import Floats, Ints
from understudy.kernels._jit import jit
from understudy.kernels.collapsed import Offers, log_likelihood, make_room
from understudy.kernels.design import Design, multiply, transpose_multiply
from understudy.kernels.hamiltonian import travel
from understudy.kernels.target import Target, log_posterior, make_work


class Crowd(NamedTuple):
    """What N players chose against what, in D free coordinates; each player's rivals as in `Offers`.

    columns: the rivals' rows less the chosen one's, (D, rivals) for each player, laid out flat. rival, kind: (N + 1,) where
    each player's rivals and different decisions begin. first: their beginnings, counted from zero for each player.
    """

    columns: Floats
    rival: Ints
    kind: Ints
    first: Ints
    copies: Floats
    weight: Floats


@jit
def one(crowd: Crowd, width: int, i: int) -> tuple[Design, Offers]:
    """The design and the offers of one player."""
    low, high, begin, end = crowd.rival[i], crowd.rival[i + 1], crowd.kind[i], crowd.kind[i + 1]
    none = np.zeros(0, dtype=np.int64)
    columns = crowd.columns[width * low : width * high].reshape((width, high - low))
    offers = Offers(crowd.first[begin + i : end + i + 1], crowd.copies[low:high], crowd.weight[begin:end])
    return Design(columns, none, none, np.zeros(0)), offers


@jit
def move_players(
    rng: np.random.Generator,
    crowd: Crowd,
    low: int,
    high: int,
    mean: Floats,
    precision: Floats,
    centre: Floats,
    turn: Floats,
    step: Floats,
    length: float,
    x: Floats,
    accepted: Floats,
) -> None:
    """One Hamiltonian move of each of the players low to high, q = centre + turn x, under q ~ N(mean, precision^-1).

    x, centre (N, D), turn (N, D, D), step (N,); accepted (N,) gets the acceptance probabilities.
    """
    width = x.shape[1]
    gradient, momentum, other, slope = np.empty(width), np.empty(width), np.empty(width), np.empty(width)
    height, ones, zeros = np.empty(1), np.ones(width), np.zeros(width)
    for i in range(low, high):
        design, offers = one(crowd, width, i)
        target = Target(
            design, offers, np.zeros(0), precision, mean, np.zeros((0, 2)), 0.0, centre[i], ones, zeros, turn[i]
        )
        work = make_work(target)
        height[0] = log_posterior(target, work, x[i], -np.inf, gradient)
        count = length / step[i]
        fewest, most = max(1, int(0.7 * count + 0.5)), max(1, int(1.3 * count + 0.5))
        accepted[i] = travel(rng, target, work, step[i], fewest, most, x[i], height, gradient, momentum, other, slope)


@jit
def likelihood_of_all(crowd: Crowd, low: int, high: int, q: Floats, slopes: Floats) -> float:
    """The log-likelihood of the players low to high at q (N, D); its gradient goes into slopes (N, D)."""
    width, total = q.shape[1], 0.0
    for i in range(low, high):
        design, offers = one(crowd, width, i)
        gap, slope = np.empty(offers.copies.size), np.empty(offers.copies.size)
        multiply(design, q[i], gap)
        total += log_likelihood(gap, offers, make_room(offers), -np.inf, slope)
        transpose_multiply(design, slope, slopes[i])
    return total
