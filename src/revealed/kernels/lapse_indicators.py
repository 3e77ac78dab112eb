"""Which choices were lapses, drawn with data augmentation under normal noise.

    lapse_t | v, rate    with probability (rate / M_t) / P'_t,  P'_t = (1 - rate) P_t + rate / M_t
    rate | lapses        Beta(a + lapses, b + others)

P_t is the exact probability of the choice, its utilities integrated out. The utilities of a lapse
are normals that nothing binds: the choice says nothing of them, and so nothing of the value.
"""

import math
from typing import NamedTuple

import numpy as np

from revealed._types import Bools, Floats, Ints
from revealed.kernels._compile import compiled_internal
from revealed.kernels.choice_exact import log_probabilities


class LapseIndicators(NamedTuple):
    """Lapses of a chain, written in place.

    a, b: of the beta prior of the rate. rate: (1,). lapsed: (T,) whether each choice was a lapse.
    log_p: (T,) a workspace.
    """

    a: float
    b: float
    rate: Floats
    lapsed: Bools
    log_p: Floats


@compiled_internal
def draw_lapses(
    rng: np.random.Generator, lapses: LapseIndicators, mu: Floats, start: Ints, chosen_row: Ints
) -> None:
    """Draw which choices were lapses given the means of utilities mu (P,), and then the rate."""
    rate, count = lapses.rate[0], 0
    # not given the utilities: with them a choice that they contradict would stay a lapse for long
    log_probabilities(mu, start, chosen_row, lapses.log_p)
    for t in range(chosen_row.size):
        # of what makes the choice probable, the part that lapses have in it
        blind = rate / (start[t + 1] - start[t])
        attended = (1.0 - rate) * math.exp(lapses.log_p[t])
        lapses.lapsed[t] = rng.random() * (blind + attended) < blind
        count += lapses.lapsed[t]
    # the beta prior is conjugate to how many of the choices were lapses
    lapses.rate[0] = rng.beta(lapses.a + count, lapses.b + chosen_row.size - count)


@compiled_internal
def free_utilities(
    rng: np.random.Generator, lapses: LapseIndicators, mu: Floats, start: Ints, w: Floats
) -> None:
    """Draw the utilities (P,) of lapses afresh, whatever was chosen."""
    # they stay in the regression, as normals about their means: its matrices never change
    for t in range(lapses.lapsed.size):
        if lapses.lapsed[t]:
            for p in range(start[t], start[t + 1]):
                w[p] = mu[p] + rng.standard_normal()
