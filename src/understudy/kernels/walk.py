"""A noisy controller walking through a finite MDP (paper, section 2): act, land, act again."""

import numpy as np

from understudy._arrays import Floats, Ints
from understudy.kernels._jit import jit


@jit
def walk(
    rng: np.random.Generator,
    state: int,
    utilities: Floats,
    start: Ints,
    offered: Ints,
    probability: Floats,
    where: Ints,
    begin: Ints,
    states: Ints,
    actions: Ints,
) -> None:
    """Write the states visited from `state` on, and the actions taken there; rows come as compressed sparse rows."""
    for t in range(states.size):
        best, row = -np.inf, start[state]
        for p in range(start[state], start[state + 1]):
            w = utilities[p] + rng.standard_normal()
            if w > best:
                best, row = w, p
        states[t], actions[t] = state, offered[row]
        left = rng.random()
        for k in range(begin[row], begin[row + 1]):
            state = where[k]
            left -= probability[k]
            if left < 0.0:
                break
