"""Utilities given everything else, where noise has a full covariance: each in turn, normal and cut off (paper, section 4.1.4)."""

import math

import numpy as np

from understudy._arrays import Bools, Floats, Ints
from understudy.kernels._jit import jit
from understudy.kernels.normal import draw_below


@jit
def draw_utilities(
    rng: np.random.Generator,
    offered: Bools,
    base_offered: Bools,
    chosen: Ints,
    mu: Floats,
    inverse: Floats,
    w: Floats,
) -> None:
    """Each utility of w (T, D) given all others, with means mu (T, D) and the covariance's inverse.

    Utilities are less the base's, which counts as zero where it is offered. chosen (T,): the label taken, or -1 for the base.
    """
    size = w.shape[1]
    for t in range(w.shape[0]):
        taken = chosen[t]
        for d in range(size):
            mean, sd = 0.0, 1.0 / math.sqrt(inverse[d, d])
            for k in range(size):
                if k != d:
                    mean -= inverse[d, k] * (w[t, k] - mu[t, k])
            mean = mu[t, d] + mean / inverse[d, d]
            if not offered[t, d]:
                w[t, d] = mean + sd * rng.standard_normal()
            elif d == taken:
                best = 0.0 if base_offered[t] else -np.inf
                for k in range(size):
                    if k != d and offered[t, k]:
                        best = max(best, w[t, k])
                w[t, d] = mean - sd * draw_below(rng, (mean - best) / sd)
            else:
                best = 0.0 if taken < 0 else w[t, taken]
                w[t, d] = mean + sd * draw_below(rng, (best - mean) / sd)
