"""Hidden Markov chains along sequences of choices: states summed out, and what is expected of them.

With l_t(s) = log P(c_t | state s), p(first = s) = initial_s and p(next = j | now = i) = switch_ij,
the forward recursion (Rabiner 1989) is

    a_t(j) = sum_i a_{t-1}(i) switch_ij exp(l_t(j)),    log p(choices) = log sum_j a_T(j)

Each a_t is divided by its sum, whose logarithms are added up: the recursion in logs at a tenth of
its cost. Of what the next state may be nothing is smaller than the least switch probability, which
callers hold above 1e-100, so that no sum underflows, however far apart likelihoods are. The
backward recursion then gives gamma_t(s) = p(state t = s | all choices), and expected transitions.

Equal decisions have equal l: it is worked out once for each kind, and gathered along sequences.
"""

import math
from typing import NamedTuple

import numpy as np

from revealed._types import Floats, Ints
from revealed.kernels._compile import compiled


class Chain(NamedTuple):
    """A Markov chain of S states: switch (S, S), initial (S,)."""

    switch: Floats
    initial: Floats


class Smoothed(NamedTuple):
    """What forward and backward recursions leave.

    filtered (T, S): p(state | choices so far). counts (S, S): expected transitions. begun (S,):
    expected first states. weight (U, S): how often each kind of decision was made in each state, as
    expected. next, backward (S,): what recursions write to.
    """

    filtered: Floats
    counts: Floats
    begun: Floats
    weight: Floats
    next: Floats
    backward: Floats


def make_smoothed(decisions: int, kinds: int, states: int) -> Smoothed:
    """Arrays for the recursions.

    What is expected is added up in some of them.
    """
    return Smoothed(
        np.zeros((decisions, states)),
        np.zeros((states, states)),
        np.zeros(states),
        np.zeros((kinds, states)),
        np.zeros(states),
        np.zeros(states),
    )


@compiled
def write_relative(logs: Floats, relative: Floats, largest: Floats) -> None:
    """Write likelihoods (U, S) relative to the largest (U,) of each decision.

    Relative ones do not underflow where they matter.
    """
    for u in range(logs.shape[0]):
        largest[u] = -np.inf
        for s in range(logs.shape[1]):
            largest[u] = max(largest[u], logs[u, s])
        for s in range(logs.shape[1]):
            relative[u, s] = math.exp(logs[u, s] - largest[u])


@compiled
def filter_sequence(
    chain: Chain, relative: Floats, largest: Floats, kind: Ints, filtered: Floats
) -> float:
    """The log-likelihood of one sequence of kinds (n,), by the forward recursion.

    filtered (n, S) gets p(state | choices so far).
    """
    states = chain.initial.size
    result, product = 0.0, 1.0
    for t in range(kind.size):
        total = 0.0
        for j in range(states):
            # what may follow, before the choice is seen
            predicted = chain.initial[j]
            if t > 0:
                predicted = 0.0
                for i in range(states):
                    predicted += filtered[t - 1, i] * chain.switch[i, j]
            filtered[t, j] = predicted * relative[kind[t], j]
            total += filtered[t, j]
        # p(state t | choices up to t)
        for j in range(states):
            filtered[t, j] /= total
        # one logarithm for many factors, none of which is below the least probability
        product *= total
        if product < 1e-150:
            result += math.log(product)
            product = 1.0
        result += largest[kind[t]]
    return result + math.log(product)


@compiled
def smooth_sequence(
    chain: Chain, relative: Floats, kind: Ints, filtered: Floats, out: Smoothed, smooth: Floats
) -> None:
    """Add what is expected of one sequence, by the backward recursion.

    filtered (n, S): of `filter_sequence`. smooth (n, S) gets p(state | all choices), unless it is
    (0, 0). Transitions are counted without their own probability, which all of a pair share.
    """
    # behind the last choice nothing follows
    states, size = chain.initial.size, kind.size
    for i in range(states):
        out.backward[i] = 1.0
    # from the last choice to the first
    for t in range(size - 1, -1, -1):
        for i in range(states):
            gamma = filtered[t, i] * out.backward[i]
            out.weight[kind[t], i] += gamma
            if smooth.size > 0:
                smooth[t, i] = gamma
            if t == 0:
                out.begun[i] += gamma
        if t == 0:
            return
        # p(choice t, and what follows | state t), in units of p(choice t | earlier ones)
        total = 0.0
        for j in range(states):
            predicted = 0.0
            for i in range(states):
                predicted += filtered[t - 1, i] * chain.switch[i, j]
            out.next[j] = relative[kind[t], j] * out.backward[j]
            total += predicted * relative[kind[t], j]
        for i in range(states):
            behind = 0.0
            for j in range(states):
                behind += chain.switch[i, j] * out.next[j]
                out.counts[i, j] += filtered[t - 1, i] * out.next[j] / total
            out.backward[i] = behind / total


@compiled
def filter_and_smooth(
    kinds: Ints, start: Ints, chain: Chain, relative: Floats, largest: Floats, out: Smoothed
) -> float:
    """The log-likelihood of all sequences, and what is expected of their states.

    kinds (T,): of all decisions in order; start (N + 1,): where each sequence begins.
    """
    out.counts[:] = 0.0
    out.begun[:] = 0.0
    out.weight[:] = 0.0
    # sequence by sequence: each begins anew
    total, none = 0.0, np.empty((0, 0))
    for n in range(start.size - 1):
        low, high = start[n], start[n + 1]
        kind, filtered = kinds[low:high], out.filtered[low:high]
        total += filter_sequence(chain, relative, largest, kind, filtered)
        smooth_sequence(chain, relative, kind, filtered, out, none)
    # each pair's own probability, left out so far
    for i in range(chain.initial.size):
        for j in range(chain.initial.size):
            out.counts[i, j] *= chain.switch[i, j]
    return total


@compiled
def smooth_all(
    kind: Ints,
    start: Ints,
    chain: Chain,
    logs: Floats,
    smooth: Floats,
    predicted: Floats,
    log_likelihood: Floats,
) -> None:
    """Write what one draw of chain and likelihoods (U, S) says of all sequences.

    kind (T,): of all decisions in order; start (N + 1,): where each sequence begins. smooth (T, S)
    gets p(state | all choices), predicted (T, S) p(state | earlier choices), log_likelihood (N,)
    that of each sequence.
    """
    kinds, states = logs.shape
    relative, largest = np.empty((kinds, states)), np.empty(kinds)
    filtered = np.empty((kind.size, states))
    out = Smoothed(
        filtered,
        np.zeros((states, states)),
        np.zeros(states),
        np.zeros((kinds, states)),
        np.zeros(states),
        np.zeros(states),
    )
    write_relative(logs, relative, largest)
    for n in range(start.size - 1):
        low, high = start[n], start[n + 1]
        own = filtered[low:high]
        log_likelihood[n] = filter_sequence(chain, relative, largest, kind[low:high], own)
        smooth_sequence(chain, relative, kind[low:high], own, out, smooth[low:high])
        # one step on from what was known before each choice
        for t in range(low, high):
            for j in range(states):
                predicted[t, j] = chain.initial[j]
                if t > low:
                    predicted[t, j] = 0.0
                    for i in range(states):
                        predicted[t, j] += filtered[t - 1, i] * chain.switch[i, j]


@compiled
def most_probable_states(kind: Ints, start: Ints, chain: Chain, logs: Floats, path: Ints) -> None:
    """Write the most probable states (T,) of all sequences together (Viterbi 1967).

    As `smooth_all`; a state of each decision such that no other sequence of states is likelier.
    """
    states = logs.shape[1]
    came_from = np.empty((kind.size, states), np.int64)
    best, before = np.empty(states), np.empty(states)
    for n in range(start.size - 1):
        low, high = start[n], start[n + 1]
        for t in range(low, high):
            for j in range(states):
                before[j] = best[j]
            for j in range(states):
                # the likeliest way into each state
                best[j] = math.log(chain.initial[j]) if t == low else -np.inf
                if t > low:
                    for i in range(states):
                        through = before[i] + math.log(chain.switch[i, j])
                        if through > best[j]:
                            best[j], came_from[t, j] = through, i
                best[j] += logs[kind[t], j]
        # back from the best end
        state = 0
        for j in range(states):
            if best[j] > best[state]:
                state = j
        for t in range(high - 1, low - 1, -1):
            path[t] = state
            if t > low:
                state = came_from[t, state]
