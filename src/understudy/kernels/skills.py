"""The log posterior of skills given finishing orders, and Hamiltonian paths on it.

Skills are spread * z with z standard normal; a spread that is learnt, and the margin of a tie, are half-normal. The unknowns stand in one vector

    x = (z_1, ..., z_K, log spread, log margin)

with the last two only where they are unknown. Under a flat prior z are the skills themselves. Densities of log spread and log margin have the
Jacobian of the logarithm in them.
"""

import math
from typing import NamedTuple

import numpy as np

from understudy._arrays import Floats
from understudy.kernels._jit import jit
from understudy.kernels.orders import Games, log_orders

# A step of three gradients, made for many dimensions (Blanes, Casas and Sanz-Serna 2014): kick, drift, ..., drift, and the first kick again.
KICK = np.array([0.11888010966548, 0.5 - 0.11888010966548, 0.5 - 0.11888010966548])
DRIFT = np.array([0.29619504261126, 1.0 - 2.0 * 0.29619504261126, 0.29619504261126])
HOPELESS = 200.0  # an energy this much above the start ends a path


class Beliefs(NamedTuple):
    """The prior: pull is 1, or 0 under a flat one; spread is that of the skills, or 0 where it is learnt, from a half-normal
    of sd wide; apart is the sd of the half-normal of the margin, or 0 where nobody ties.
    """

    pull: float
    spread: float
    wide: float
    apart: float


@jit
def log_posterior(beliefs: Beliefs, x: Floats, seen: Floats, push: Floats, slope: Floats) -> float:
    """Of x, up to a constant; its gradient goes into slope.

    seen, push: log P of the orders and its slope in log margin; its slopes in the skills (K,).
    """
    at = push.size
    spread = beliefs.spread
    value: float = seen[0]
    if beliefs.spread == 0.0:
        spread = math.exp(x[at])
        value += x[at] - 0.5 * (spread / beliefs.wide) ** 2
        slope[at] = 1.0 - (spread / beliefs.wide) ** 2
        for k in range(push.size):
            slope[at] += spread * x[k] * push[k]
        at += 1
    if beliefs.apart > 0.0:
        margin = math.exp(x[at])
        value += x[at] - 0.5 * (margin / beliefs.apart) ** 2
        slope[at] = seen[1] + 1.0 - (margin / beliefs.apart) ** 2
    for k in range(push.size):
        value -= 0.5 * beliefs.pull * x[k] * x[k]
        slope[k] = spread * push[k] - beliefs.pull * x[k]
    return value


@jit
def look(games: Games, beliefs: Beliefs, x: Floats, seen: Floats, push: Floats) -> None:
    """Log P of the orders at x, and its slope in log margin, into seen (2,); its slopes in the skills into push (K,)."""
    spread = math.exp(x[push.size]) if beliefs.spread == 0.0 else beliefs.spread
    margin = math.exp(x[-1]) if beliefs.apart > 0.0 else 0.0
    seen[0], seen[1] = log_orders(games, spread * x[: push.size], margin, push)


@jit
def travel(
    rng: np.random.Generator,
    games: Games,
    beliefs: Beliefs,
    scale: Floats,
    step: float,
    count: int,
    x: Floats,
    seen: Floats,
    push: Floats,
    force: Floats,
) -> float:
    """One Hamiltonian path of x, in place, in units of scale; returns its acceptance probability.

    seen, push: what `look` says of x; in place. The gradient of the log posterior where the path began goes into force.
    """
    size = x.size
    y, seen_there, push_there, slope, momentum = x.copy(), seen.copy(), push.copy(), np.empty(size), np.empty(size)
    energy = -log_posterior(beliefs, x, seen, push, slope)
    force[:] = slope
    for d in range(size):
        momentum[d] = rng.standard_normal()
        energy += 0.5 * momentum[d] * momentum[d]
    now = energy
    for _ in range(count):
        for part in range(3):
            for d in range(size):
                momentum[d] += KICK[part] * step * scale[d] * slope[d]
                y[d] += DRIFT[part] * step * scale[d] * momentum[d]
            look(games, beliefs, y, seen_there, push_there)
            now = -log_posterior(beliefs, y, seen_there, push_there, slope)
        for d in range(size):
            momentum[d] += KICK[0] * step * scale[d] * slope[d]
            now += 0.5 * momentum[d] * momentum[d]
        if not now < energy + HOPELESS:
            return 0.0
    probability = math.exp(min(energy - now, 0.0))
    if rng.random() < probability:
        x[:], seen[:], push[:] = y, seen_there, push_there
    return probability
