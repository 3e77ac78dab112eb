"""A noisy controller acting in a finite MDP (paper, section 2): choose, land in a state, repeat."""

import math

import numpy as np

from revealed._types import Floats, Ints
from revealed.kernels._compile import compiled


@compiled
def simulate_path(
    rng: np.random.Generator,
    state: int,
    mean_utility: Floats,
    logit: bool,
    df: float,
    lapse_rate: float,
    start: Ints,
    action_of_row: Ints,
    probability: Floats,
    next_state: Ints,
    indptr: Ints,
    states: Ints,
    actions: Ints,
) -> None:
    """Write the states visited from `state` on into states (n,), the actions into actions (n,).

    Rows start[x] to start[x + 1] belong to state x; row r is for action_of_row[r], is worth
    mean_utility[r] before noise, and leads to next_state[k] with probability[k] for k from
    indptr[r] to indptr[r + 1]: transition rows in compressed sparse form. logit: whether noise is
    Gumbel's, or else normal; df: of the scale of a decision's normal noise, 0 where that is one.
    lapse_rate: how often an action is taken blindly.
    """
    for t in range(states.size):
        # The controller takes the action of largest utility, mean plus noise.
        best, row, scale = -np.inf, start[state], 1.0
        if df > 0.0:
            scale = math.sqrt(0.5 * df / rng.standard_gamma(0.5 * df))
        for p in range(start[state], start[state + 1]):
            noise = -math.log(rng.standard_exponential()) if logit else rng.standard_normal()
            w = mean_utility[p] + scale * noise
            if w > best:
                best, row = w, p
        # now and then it does not look; nothing is drawn where it always does
        if lapse_rate > 0.0 and rng.random() < lapse_rate:
            row = start[state] + int(rng.random() * (start[state + 1] - start[state]))
        states[t], actions[t] = state, action_of_row[row]
        # The next state by inversion: walk through the row until the uniform number is used up.
        # Rounding may leave a little of it; the last state of the row is then the answer.
        remaining = rng.random()
        for k in range(indptr[row], indptr[row + 1]):
            state = next_state[k]
            remaining -= probability[k]
            if remaining < 0.0:
                break
