"""The log-likelihood of the same decisions at many values."""

import numpy as np

from understudy._arrays import Floats
from understudy.kernels._jit import jit
from understudy.kernels.collapsed import Offers, log_likelihood, make_room
from understudy.kernels.design import Design, multiply


@jit
def add_log_likelihoods(design: Design, offers: Offers, values: Floats, out: Floats) -> None:
    """Add log P of all choices at each of values (S, K) to out (S,); design holds the rivals' leads."""
    room, none = make_room(offers), np.empty(0)
    gap = np.empty(offers.copies.size)
    for s in range(len(values)):
        multiply(design, values[s], gap)
        out[s] += log_likelihood(gap, offers, room, -np.inf, none)
