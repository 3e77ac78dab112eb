"""The likelihood of all decisions under logit noise, exponentials eight at a time.

    log P = -log(1 + sum over rivals of copies exp(gap))

Exponentials are taken of the gaps of some hundred decisions together, whatever their sizes. A
product of totals needs one logarithm where each total would need its own.
"""

import math

import numpy as np

from revealed._types import Floats, Ints
from revealed.kernels._compile import compiled, compiled_internal
from revealed.kernels.choice_fast import ChoiceWorkspace, RivalIndex
from revealed.kernels.logit import LOGIT_RULE
from revealed.kernels.noise import NoiseArguments
from revealed.kernels.vectors import EIGHT, exp_block, load, store


@compiled_internal
def log_likelihood(
    noise: NoiseArguments,
    utility_gap: Floats,
    rival_index: RivalIndex,
    workspace: ChoiceWorkspace,
    floor: float,
    slope: Floats,
) -> float:
    """As `choice_fast.log_likelihood`, under logit noise."""
    # some decisions at a time: their exponentials stay in the fastest memory
    start, multiplicity, weight = rival_index
    exponentials, with_slopes = workspace.exponentials, slope.size > 0
    result, product, t = 0.0, 1.0, 0
    while t < weight.size:
        end = last_together(start, t, weight.size, exponentials.size)
        first = start[t]
        write_exponentials(utility_gap[first : start[end]], exponentials)
        for s in range(t, end):
            low, high = start[s], start[s + 1]
            # the chosen action itself counts one
            total = 1.0
            for j in range(low, high):
                total += multiplicity[j] * exponentials[j - first]
            if total > LOGIT_RULE.max_total:
                result += weight[s] * _add_large_gaps(
                    utility_gap[low:high], multiplicity[low:high], exponentials[low - first :]
                )
                total = 1.0
            elif weight[s] == 1.0 and total < LOGIT_RULE.max_factor:
                product *= total
                if product > LOGIT_RULE.max_product:
                    result -= math.log(product)
                    product = 1.0
            else:
                result -= weight[s] * math.log(total)
            if with_slopes:
                # minus the probability of each rival
                scale = -weight[s] / total
                for j in range(low, high):
                    slope[j] = scale * multiplicity[j] * exponentials[j - first]
        result -= math.log(product)
        product = 1.0
        # the terms that follow are not positive
        if result < floor:
            return -np.inf
        t = end
    return result


@compiled_internal
def last_together(start: Ints, first: int, count: int, size: int) -> int:
    """Where decisions end whose exponentials are taken together with those of the first.

    As many as an array of this size holds, and at least one.
    """
    end = first + 1
    while end < count and start[end + 1] - start[first] <= size - 8:
        end += 1
    return end


@compiled_internal
def write_exponentials(x: Floats, out: Floats) -> None:
    """Write exp of x (n,) into out, which has room for seven more."""
    count = np.uint64(x.size)
    whole = count // EIGHT * EIGHT
    for p in range(np.uint64(0), whole, EIGHT):
        store(out, p, exp_block(load(x, p)))
    # the last few are filled up with zeros
    if whole < count:
        for p in range(whole, whole + EIGHT):
            out[p] = x[p] if p < count else 0.0
        store(out, whole, exp_block(load(out, whole)))


@compiled_internal
def _add_large_gaps(gaps: Floats, multiplicity: Floats, shares: Floats) -> float:
    """Log P of a decision with very large gaps; what rivals take of it goes into shares."""
    largest, total = gaps.max(), 0.0
    for j in range(gaps.size):
        shares[j] = math.exp(gaps[j] - largest)
        total += multiplicity[j] * shares[j]
    for j in range(gaps.size):
        shares[j] /= total
    # one, the chosen action's own, is nothing beside such a total
    return -float(largest) - math.log(total)


@compiled
def all_probabilities(mu: Floats, start: Ints, out: Floats) -> None:
    """Write the probability of every action of every decision into out (P,).

    mu: (P,) rows @ v. start: (T + 1,) where each decision's rows begin.
    """
    relative, exponentials = np.empty(mu.size), np.empty(mu.size + 8)
    # relative to the best action of each decision, so that nothing overflows
    for t in range(start.size - 1):
        largest = mu[start[t] : start[t + 1]].max()
        for j in range(start[t], start[t + 1]):
            relative[j] = mu[j] - largest
    write_exponentials(relative, exponentials)
    for t in range(start.size - 1):
        total = 0.0
        for j in range(start[t], start[t + 1]):
            # exponentials that are as small were cut
            exponentials[j] = exponentials[j] if relative[j] > -LOGIT_RULE.max_exponent else 0.0
            total += exponentials[j]
        for j in range(start[t], start[t + 1]):
            out[j] = exponentials[j] / total
