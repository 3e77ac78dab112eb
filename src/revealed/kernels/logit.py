"""Logit noise: the log probability of a choice among actions with Gumbel noise, in closed form.

    P = 1 / (1 + sum over rivals of exp(gap)),

gap being a rival's utility minus that of the chosen action (McFadden 1974).
"""

import math

import numpy as np

from revealed._types import Floats
from revealed.kernels._compile import inlined_formula


@inlined_formula
def write_shares(gaps: Floats, shares: Floats) -> float:
    """The log probability of a choice; those of its rivals go into shares (n,)."""
    # relative to the largest utility, so that nothing overflows
    largest = 0.0
    for j in range(gaps.size):
        largest = max(largest, gaps[j])
    total = math.exp(-largest)
    for j in range(gaps.size):
        shares[j] = math.exp(gaps[j] - largest)
        total += shares[j]
    for j in range(gaps.size):
        shares[j] /= total
    return -largest - math.log(total)


def log_probability(gaps: Floats, parameters: Floats, slopes: Floats) -> float:
    """As a noise's formula (`noise.py`): the slope in a gap is minus that rival's probability."""
    if slopes.size > 0:
        log_p: float = write_shares(gaps, slopes)
        for j in range(gaps.size):
            slopes[j] = -slopes[j]
        return log_p
    largest = 0.0
    for j in range(gaps.size):
        largest = max(largest, gaps[j])
    total = math.exp(-largest)
    for j in range(gaps.size):
        total += math.exp(gaps[j] - largest)
    return -largest - math.log(total)


def curvature(gaps: Floats, parameters: Floats, hessian: Floats) -> None:
    """-(diag(p) - p p'), p being the probabilities of the rivals."""
    p = np.empty(gaps.size)
    write_shares(gaps, p)
    for j in range(gaps.size):
        for k in range(gaps.size):
            hessian[j, k] = p[j] * p[k]
        hessian[j, j] -= p[j]
