"""Hamiltonian moves on the log posterior (Duane, Kennedy, Pendleton and Roweth 1987; Neal 2011), in whitened coordinates.

A fresh standard normal momentum, a leapfrog path of random length with a random step, and acceptance by the energy.
"""

import math

import numpy as np

from understudy._arrays import Floats
from understudy.kernels._jit import inline, jit
from understudy.kernels.target import Target, Work, log_posterior

JITTER = 0.1  # steps vary by this share, so that no path comes round to where it began
HOPELESS = 200.0  # an energy this much above the start ends a path


@inline
def travel(
    rng: np.random.Generator,
    target: Target,
    work: Work,
    step: float,
    fewest: int,
    most: int,
    x: Floats,
    height: Floats,
    gradient: Floats,
    momentum: Floats,
    other: Floats,
    slope: Floats,
) -> float:
    """One move of x (D,), in place with its log posterior height (1,) and gradient (D,); returns the acceptance probability."""
    kinetic = 0.0
    for d in range(x.size):
        momentum[d] = rng.standard_normal()
        kinetic += 0.5 * momentum[d] * momentum[d]
        other[d] = x[d]
        slope[d] = gradient[d]
    energy = kinetic - height[0]
    epsilon = step * (1.0 + JITTER * (2.0 * rng.random() - 1.0))
    count = fewest + int(rng.random() * (most - fewest + 1))
    value, probability = height[0], 1.0
    for _ in range(count):
        for d in range(x.size):
            momentum[d] += 0.5 * epsilon * slope[d]
            other[d] += epsilon * momentum[d]
        value = log_posterior(target, work, other, -np.inf, slope)
        kinetic = 0.0
        for d in range(x.size):
            momentum[d] += 0.5 * epsilon * slope[d]
            kinetic += 0.5 * momentum[d] * momentum[d]
        if not kinetic - value < energy + HOPELESS:
            probability = 0.0
            break
    probability *= math.exp(min(energy - (kinetic - value), 0.0)) if probability > 0.0 else 0.0
    if rng.random() < probability:
        for d in range(x.size):
            x[d] = other[d]
            gradient[d] = slope[d]
        height[0] = value
    return probability


@jit
def begin_tempo(step: float) -> Floats:
    """What a step learns with: itself, the step it began with, the moves it saw, how far acceptance falls short, log of the mean step."""
    return np.array([step, step, 0.0, 0.0, math.log(step)])


@inline
def retune(tempo: Floats, goal: float, probability: float, least: float) -> None:
    """Dual averaging (Hoffman and Gelman 2014, section 3.2) after one more move, in place; the step stays above `least`.

    All it remembers is in tempo (5,), so that learning can be broken off and picked up again.
    """
    first, n, short = tempo[1], tempo[2], tempo[3]
    share = 1.0 / (n + 11.0)
    short = (1.0 - share) * short + share * (goal - probability)
    now = min(math.log(2.0 * first) - math.sqrt(n + 1.0) / 0.05 * short, math.log(1.9))
    weight = (n + 1.0) ** -0.75
    tempo[4] = weight * now + (1.0 - weight) * tempo[4]
    tempo[0], tempo[2], tempo[3] = max(math.exp(now), least), n + 1.0, short


@jit
def learn_step(
    rng: np.random.Generator,
    target: Target,
    work: Work,
    step: float,
    length: float,
    goal: float,
    x: Floats,
    out: Floats,
) -> float:
    """Move x for as many draws as out (n, D) has while the step learns to be accepted with probability `goal`.

    Paths of about `length`. Returns the averaged step.
    """
    gradient, momentum = np.empty(x.size), np.empty(x.size)
    other, slope, height = np.empty(x.size), np.empty(x.size), np.empty(1)
    height[0] = log_posterior(target, work, x, -np.inf, gradient)
    tempo = begin_tempo(step)
    for n in range(out.shape[0]):
        count = min(max(1, int(length / tempo[0] + 0.5)), 500)
        probability = travel(rng, target, work, tempo[0], count, count, x, height, gradient, momentum, other, slope)
        retune(tempo, goal, probability, 1e-2 * step)
        for d in range(x.size):
            out[n, d] = x[d]
    return math.exp(tempo[4])
