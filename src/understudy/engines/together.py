"""Moves of the population on which all its players follow: each keeps its place z, q = mean + root z.

Both ask somebody else for the likelihood of all players, `look(mean, root, sloped)`, which may be far away, and do little besides: the mean and
the root of the covariance are a few dozen numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from understudy._arrays import Floats
from understudy.kernels.hamiltonian import HOPELESS
from understudy.kernels.population import Beliefs, density, fold, stretched, unfold

FAR = 30.0  # a log sd at which a path is given up
LENGTH, LONGEST = 1.3, 5  # of the common path, in units of its coordinates and in steps
WINDOW = 2.0  # what a log stretch is stepped out by at most
OFTEN, OUT = 5.0, 6.0  # how often, and how far, an sd is stretched: times the spread of its logarithm


class Seen(NamedTuple):
    """The likelihood of all players: log P, and the sums of its slopes (D,) and of the slopes times z (D, D)."""

    log_p: float
    push: Floats
    by_place: Floats


Look = Callable[[Floats, Floats, bool], Seen]


class Moved(NamedTuple):
    """Where the population went, what is seen there, how willingly, and how the density rose where it came from."""

    mean: Floats
    root: Floats
    log_p: float
    probability: float
    gradient: Floats


def move_together(
    rng: np.random.Generator,
    beliefs: Beliefs,
    metric: Floats,
    step: float,
    mean: Floats,
    root: Floats,
    seen: Seen,
    look: Look,
) -> Moved:
    """Mean and covariance given each player's place within the population, by a Hamiltonian path on which all follow.

    metric: a root of theta's covariance given the places. seen: at the start.
    """
    width, theta = mean.size, fold(mean, root)
    first, gradient = np.empty(theta.size), np.empty(theta.size)
    height = density(beliefs, theta, *seen, first)
    momentum = rng.standard_normal(theta.size)
    epsilon = step * rng.uniform(0.9, 1.1)
    count = min(max(1, int(LENGTH / step * rng.uniform(0.7, 1.3) + 0.5)), LONGEST)
    energy = 0.5 * (momentum @ momentum) - height
    stays = Moved(mean, root, seen.log_p, 0.0, first)
    gradient[:] = first
    for _ in range(count):
        momentum += 0.5 * epsilon * (metric.T @ gradient)
        theta += epsilon * (metric @ momentum)
        if np.abs(theta[width : 2 * width]).max() > FAR:
            return stays
        to_mean, to_root = np.empty_like(mean), np.empty_like(root)
        unfold(theta, to_mean, to_root)
        found = look(to_mean, to_root, True)
        height = density(beliefs, theta, *found, gradient)
        momentum += 0.5 * epsilon * (metric.T @ gradient)
        if not 0.5 * (momentum @ momentum) - height < energy + HOPELESS:
            return stays
    probability = math.exp(min(float(energy - 0.5 * (momentum @ momentum) + height), 0.0))
    if rng.random() < probability:
        return Moved(to_mean, to_root, found.log_p, probability, first)
    return stays._replace(probability=probability)


def stretch_one(
    rng: np.random.Generator, beliefs: Beliefs, wide: Floats, mean: Floats, root: Floats, log_p: float, look: Look
) -> Floats:
    """The root of the covariance once the sd of one coordinate, any of them, was drawn given each player's place along it.

    Where players are all but equal, sds may lie anywhere below what could be noticed, and the way back is long for paths.
    Slice sampling (Neal 2003) in the log stretch l steps out as far as it takes. Its density is exp(-(2 + D - 1) l), the law of
    the covariance with a integrated out, and the likelihood. wide (D,): how far the logarithms of the sds are known to vary; the better an
    sd is known, the rarer it is stretched.
    """
    k = int(rng.random() * mean.size)
    if rng.random() >= OFTEN * wide[k]:
        return root
    inverse = np.linalg.inv(root)
    precision = inverse.T @ inverse
    window = min(WINDOW, OUT * wide[k])

    def by(l: float) -> Floats:
        other = root.copy()
        other[k] *= math.exp(l)
        return other

    def height(l: float) -> float:
        return look(mean, by(l), False).log_p + stretched(beliefs, k, precision, l)

    level = log_p + stretched(beliefs, k, precision, 0.0) - rng.standard_exponential()
    low = -window * rng.random()
    high = low + window
    while low > -FAR and height(low) >= level:
        low -= window
    while high < FAR and height(high) >= level:
        high += window
    while True:
        l = low + (high - low) * rng.random()
        if height(l) >= level:
            return by(l)
        low, high = (l, high) if l < 0.0 else (low, l)
