"""Absorbing states, which a discount of one needs: every policy must end in one of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from revealed._types import Bools, Ints
from revealed.data.decisions import Rows


def absorbing_states(
    rows: Rows, start: Ints, unpaid: Bools, noise: bool, states: tuple[Any, ...]
) -> Bools:
    """(N,) the absorbing states among `unpaid` (N,), those that pay nothing.

    A state is absorbing when all its actions stay in it. Refuses when some policy can avoid these
    states for ever: then the sum of rewards with discount one need not exist. noise: whether the
    noise is part of the reward; then an end must have a single action, because the best of
    several noises pays for ever.
    """
    if noise:
        unpaid = unpaid & (np.diff(start) == 1)
    state_of_row = np.repeat(np.arange(len(states)), np.diff(start))
    # Which states a row can lead to, whatever the probabilities are.
    reachable = sp.csr_array(rows) > 0.0
    stays = (np.diff(reachable.indptr) == 1) & (
        reachable.indices[reachable.indptr[:-1]] == state_of_row
    )
    # Absorbing: not one of its actions leaves the state.
    ends = unpaid & np.logical_and.reduceat(stays, start[:-1])

    # The largest set of states in which each has an action that never leaves the set: take away
    # states without such an action until nothing changes.
    avoiding, smaller = np.ones_like(ends), ~ends
    while smaller.sum() < avoiding.sum():
        avoiding = smaller
        inside = reachable @ (~avoiding).astype(np.int64) == 0
        smaller = avoiding & np.logical_or.reduceat(inside, start[:-1])
    if avoiding.any():
        # A state that can simply stay where it is makes the clearest example.
        can_stay = np.logical_or.reduceat(stays, start[:-1])
        example = states[int(np.argmax(avoiding * (1 + can_stay)))]
        alone = " and a single action" if noise else ""
        raise ValueError(
            f"discount 1 needs absorbing states with zero reward{alone} that every policy reaches, "
            f"but from state {example} they can be avoided for ever; give a discount below 1"
        )
    return np.asarray(ends)
