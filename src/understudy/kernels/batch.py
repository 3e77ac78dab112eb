"""The log-likelihood of the same decisions at many values."""

import numpy as np

from understudy._arrays import Floats
from understudy.kernels._jit import jit
from understudy.kernels.collapsed import Offers, Room, log_likelihood
from understudy.kernels.design import Design, multiply


@jit
def add_log_likelihoods(design: Design, offers: Offers, room: Room, values: Floats, out: Floats) -> None:
    """Add log P of all choices at each of values (S, K) to out (S,); design holds the rivals' leads."""
    gap, none = np.empty(offers.copies.size), np.empty(0)
    for s in range(len(values)):
        multiply(design, values[s], gap)
        out[s] += log_likelihood(gap, offers, room, -np.inf, none)
