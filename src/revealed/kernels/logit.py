"""Logit noise: the log probability of a choice among actions with Gumbel noise, in closed form.

    P = 1 / (1 + sum over rivals of exp(gap)),

gap being a rival's utility minus that of the chosen action (McFadden 1974).
"""

import math
from typing import NamedTuple

import numpy as np

from revealed._types import Floats
from revealed.kernels._compile import inlined_formula


class LogitRule(NamedTuple):
    """How the likelihood of many decisions is added up (`choice_logit.py`).

    exponentials_at_a_time: rivals that fit into the fastest memory of a core. max_factor,
    max_product: totals up to the one are multiplied while their product is below the other.
    max_total: above, a gap was so large that its exponential may have been cut, at max_exponent.
    """

    exponentials_at_a_time: int = 2048
    max_factor: float = 1e100
    max_product: float = 1e200
    max_total: float = 1e290
    max_exponent: float = 700.0


LOGIT_RULE = LogitRule()


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
    # what is left of one is the chosen action's
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
    # the same without slopes, which cost a second loop
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
