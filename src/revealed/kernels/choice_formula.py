"""The probability of choices by the formula of a noise, decision by decision (`noise.py`).

For every noise but the normal one. A formula sees the utility gaps of all rivals of a decision,
equal ones as often as they stand there.
"""

import math

import numpy as np

from revealed._types import Floats, Ints
from revealed.kernels._compile import compiled, compiled_internal
from revealed.kernels.choice_fast import ChoiceWorkspace, RivalIndex
from revealed.kernels.noise import NoiseArguments, log_probability, write_hessian


@compiled_internal
def log_likelihood(
    noise: NoiseArguments,
    utility_gap: Floats,
    rival_index: RivalIndex,
    workspace: ChoiceWorkspace,
    floor: float,
    slope: Floats,
) -> float:
    """As `choice_fast.log_likelihood`, under any noise."""
    start, multiplicity, weight = rival_index
    gaps, with_slopes = workspace.repeated_gaps, slope.size > 0
    slopes = np.empty(gaps.size if with_slopes else 0)
    slope[:] = 0.0
    result = 0.0
    for t in range(weight.size):
        # Equal rivals are written out.
        count = 0
        for j in range(start[t], start[t + 1]):
            for _ in range(int(multiplicity[j])):
                gaps[count] = utility_gap[j]
                count += 1
        if count == 0:
            continue
        result += weight[t] * log_probability(noise, gaps[:count], slopes[:count])
        # The terms that follow are not positive.
        if result < floor:
            return -np.inf
        if with_slopes:
            # Equal rivals move together: their slopes are added up.
            count = 0
            for j in range(start[t], start[t + 1]):
                for _ in range(int(multiplicity[j])):
                    slope[j] += weight[t] * slopes[count]
                    count += 1
    return result


@compiled_internal
def _write_gaps(mu: Floats, low: int, high: int, chosen: int, gaps: Floats) -> int:
    """How many rivals the chosen row has among rows low to high; their gaps go into gaps."""
    count = 0
    for j in range(low, high):
        if j != chosen:
            gaps[count] = mu[j] - mu[chosen]
            count += 1
    return count


@compiled_internal
def _allocate_gaps(start: Ints) -> Floats:
    """An array for the rows of the largest decision."""
    most = 0
    for t in range(start.size - 1):
        most = max(most, start[t + 1] - start[t])
    return np.empty(most)


@compiled
def log_probabilities(
    noise: NoiseArguments, mu: Floats, start: Ints, chosen_row: Ints, out: Floats
) -> None:
    """As `choice_exact.log_probabilities`, under any noise."""
    gaps, none = _allocate_gaps(start), np.empty(0)
    for t in range(chosen_row.size):
        count = _write_gaps(mu, start[t], start[t + 1], chosen_row[t], gaps)
        out[t] = log_probability(noise, gaps[:count], none) if count > 0 else 0.0


@compiled
def log_likelihood_and_gradient(
    noise: NoiseArguments, mu: Floats, start: Ints, chosen_row: Ints, gradient: Floats
) -> float:
    """As `choice_exact.log_likelihood_and_gradient`, under any noise."""
    gaps, slopes = _allocate_gaps(start), _allocate_gaps(start)
    gradient[:] = 0.0
    total = 0.0
    for t in range(chosen_row.size):
        count = _write_gaps(mu, start[t], start[t + 1], chosen_row[t], gaps)
        if count == 0:
            continue
        total += log_probability(noise, gaps[:count], slopes[:count])
        # A gap is rival minus chosen: the chosen row has what makes the sum zero.
        k = 0
        for j in range(start[t], start[t + 1]):
            if j != chosen_row[t]:
                gradient[j] = slopes[k]
                gradient[chosen_row[t]] -= slopes[k]
                k += 1
    return total


@compiled
def all_probabilities(noise: NoiseArguments, mu: Floats, start: Ints, out: Floats) -> None:
    """Write the probability of every action of every decision into out (P,).

    The formula once for each action; then they are made to add to one.
    """
    gaps, none = _allocate_gaps(start), np.empty(0)
    for t in range(start.size - 1):
        total = 0.0
        for c in range(start[t], start[t + 1]):
            count = _write_gaps(mu, start[t], start[t + 1], c, gaps)
            log_p = log_probability(noise, gaps[:count], none) if count > 0 else 0.0
            out[c] = math.exp(log_p)
            total += out[c]
        for c in range(start[t], start[t + 1]):
            out[c] /= total


@compiled
def write_information(
    noise: NoiseArguments, mu: Floats, start: Ints, chosen_row: Ints, weight: Floats, out: Floats
) -> None:
    """Write minus the second derivatives in mu of each decision's log P, times its weight.

    One square after the other, that of a decision with n rows n by n.
    """
    gaps, first = _allocate_gaps(start), 0
    for t in range(chosen_row.size):
        size, chosen = start[t + 1] - start[t], chosen_row[t] - start[t]
        count = _write_gaps(mu, start[t], start[t + 1], chosen_row[t], gaps)
        square = out[first : first + size * size].reshape((size, size))
        first += size * size
        square[:] = 0.0
        if count == 0:
            continue
        hessian = np.empty((count, count))
        write_hessian(noise, gaps[:count], hessian)
        for j in range(count):
            # rivals' positions among the rows; the chosen row has what makes sums zero
            row = j + 1 if j >= chosen else j
            for k in range(count):
                column = k + 1 if k >= chosen else k
                term = -weight[t] * hessian[j, k]
                square[row, column] += term
                square[row, chosen] -= term
                square[chosen, column] -= term
                square[chosen, chosen] += term
