"""The probability of a choice, exactly, as one integral (paper, section 2, its "intractable" one).

The controller takes the largest of mu + e, e ~ N(0, I). It takes action c with probability

    P(c) = integral of  phi(z - mu_c) * prod over j != c of Phi(z - mu_j)  dz

All is measured from mu_c, so that a rival is known by its utility gap, mu_j - mu_c. The log of the
integrand is concave, its second derivative is at most -1 and increases with z (phi/Phi is convex).
Everything follows:

- Newton's method for the mode, started to its left, climbs to it and never passes it.
- Newton's method for the point where the log-integrand has fallen by `log_drop`, started outside,
  stays outside.
- Between those two points the trapezoid rule converges faster than any power of the step. Its worst
  case is a lead of 2 to 5 over tied rivals, a sharp left edge: log P is then off by 5e-11 with 100
  rivals, 1e-12 with 500 (which get twice the nodes), 2e-10 with a million.

Rivals that cannot matter are left out. Given that c beats some others, its utility is
stochastically at least N(0, 1), and at least N(gap / 2, 1/2) where it beats a rival with a positive
gap. A rival more than `irrelevance_margin` below that mean therefore changes P(c) by less than a
part in 1e16. "Far below the best action" would be wrong: where c itself is the bad one, z lives
half way between c and the best.
"""

import math
from typing import NamedTuple

import numpy as np

from revealed._types import Floats, Ints
from revealed.kernels._compile import compiled, compiled_internal, inlined
from revealed.kernels.normal import (
    GRID,
    LOG_CDF_TABLE,
    LOG_ROOT_TWO_PI,
    log_cdf,
    log_cdf_and_ratio,
)

ROOT_HALF = math.sqrt(0.5)  # the difference of two utilities has variance two


class TrapezoidRule(NamedTuple):
    """The tuning constants of the integral; errors are those of the module docstring."""

    irrelevance_margin: float
    log_drop: float
    log_drop_slack: float
    many_rivals: int
    few_rivals_intervals: int
    many_rivals_intervals: int
    shared_intervals: int
    underflow_gap: float


# irrelevance_margin: Phi(-12 / sqrt(2)) = 1e-17, in units of utility. Smaller drops factors that
# count, larger only costs time.
# log_drop, log_drop_slack: the ends lie where the log-integrand is 26 to 28 below its maximum, so
# that less than 1e-12 of the integral is cut off.
# many_rivals, *_intervals: up to 100 rivals 40 intervals between nodes are enough, beyond it 80, by
# measured error. shared_intervals: the most on the grid that all actions of a decision share.
# underflow_gap: an action this far below the best has a probability that doubles cannot hold.
EXACT_RULE = TrapezoidRule(
    irrelevance_margin=12.0,
    log_drop=26.0,
    log_drop_slack=2.0,
    many_rivals=100,
    few_rivals_intervals=40,
    many_rivals_intervals=80,
    shared_intervals=4096,
    underflow_gap=-55.0,
)


@compiled
def log_probability(mu: Floats, chosen: int) -> float:
    """Log P(chosen) in one decision with utilities mu + e, mu (M,)."""
    out = np.empty(1)
    log_probabilities(mu, np.array([0, mu.size]), np.array([chosen]), out)
    return float(out[0])


@compiled
def log_probabilities(mu: Floats, start: Ints, chosen_row: Ints, out: Floats) -> None:
    """Write log P of the chosen row of each decision into out (T,).

    mu: (P,) rows @ v. start: (T + 1,) where each decision's rows begin. chosen_row: (T,).
    """
    rival_rows, gaps, weights = allocate_workspace(start)
    for t in range(chosen_row.size):
        count, bound = find_relevant_rivals(
            mu, start[t], start[t + 1], chosen_row[t], rival_rows, gaps
        )
        # No rival: certain. One: P = Phi(-gap / sqrt(2)). More: the integral.
        if count == 0:
            out[t] = 0.0
        elif count == 1:
            out[t] = log_cdf(-ROOT_HALF * gaps[0])
        else:
            out[t] = integrate_choice(gaps[:count], bound, weights)[0]


@compiled
def log_likelihood_and_gradient(
    mu: Floats, start: Ints, chosen_row: Ints, gradient: Floats
) -> float:
    """The sum of log P over all decisions; its derivative in mu goes into gradient (P,).

    With q the normalised integrand and r_j = phi/Phi at z - mu_j: d log P / d mu_j = -E_q[r_j], and
    the chosen row has what makes the sum zero.
    """
    rival_rows, gaps, weights = allocate_workspace(start)
    ratios = np.empty(weights.size)
    gradient[:] = 0.0
    total = 0.0
    for t in range(chosen_row.size):
        count, bound = find_relevant_rivals(
            mu, start[t], start[t + 1], chosen_row[t], rival_rows, gaps
        )
        if count == 1:
            # P = Phi(-gap / sqrt(2)), differentiated.
            value, ratio = log_cdf_and_ratio(-ROOT_HALF * gaps[0])
            total += value
            gradient[rival_rows[0]] = -ROOT_HALF * ratio
            gradient[chosen_row[t]] = ROOT_HALF * ratio
        elif count > 1:
            value, left, step, nodes = integrate_choice(gaps[:count], bound, weights)
            total += value
            # E_q[r_j] on the nodes of the integral, rival by rival.
            for k in range(count):
                write_ratios(left - gaps[k], step, nodes, ratios)
                mean = 0.0
                for q in range(nodes):
                    mean += weights[q] * ratios[q]
                gradient[rival_rows[k]] = -mean
                gradient[chosen_row[t]] += mean
    return total


@compiled
def all_probabilities(mu: Floats, start: Ints, out: Floats) -> None:
    """Write the probability of every action of every decision into out (P,).

    With r = phi/Phi,  P(c) = integral of r(z - mu_c) * prod over all j of Phi(z - mu_j)  dz: the
    product is shared, and one pass over the rows serves all actions. Each is summed on its own, so
    that they add to one is a check.
    """
    rival_rows, gaps, _ = allocate_workspace(start)
    log_product = np.empty(EXACT_RULE.shared_intervals + 1)
    weights = np.empty(EXACT_RULE.shared_intervals + 1)
    for t in range(start.size - 1):
        low, high = start[t], start[t + 1]
        # The best action, and the worst of those whose probability doubles can hold.
        best = low
        for j in range(low, high):
            if mu[j] > mu[best]:
                best = j
        worst = best
        for j in range(low, high):
            if mu[j] < mu[worst] and mu[j] - mu[best] > EXACT_RULE.underflow_gap:
                worst = j
        # The lower an action, the further left and the sharper its integrand: the grid spans and
        # resolves that of the worst action that matters and of the best one, and so all between.
        count, bound = find_relevant_rivals(mu, low, high, worst, rival_rows, gaps)
        middle, left, right = _integration_interval(gaps[:count], bound)
        first = middle + left + (mu[worst] - mu[best])
        step = (right - left) / _interval_count(count)
        count, bound = find_relevant_rivals(mu, low, high, best, rival_rows, gaps)
        middle, left, right = _integration_interval(gaps[:count], bound)
        first = min(first, middle + left)
        step = min(step, (right - left) / _interval_count(count))
        nodes = 1 + min(math.ceil((middle + right - first) / step), EXACT_RULE.shared_intervals)
        step = (middle + right - first) / (nodes - 1)
        # The shared product, in logs, measured from the best action.
        log_product[:nodes] = 0.0
        for j in range(low, high):
            _add_log_cdf(first - (mu[j] - mu[best]), step, nodes, 1.0, log_product)
        # For each action its own factor Phi is taken out and phi put in.
        for j in range(low, high):
            gap = mu[j] - mu[best]
            out[j] = 0.0
            if gap > EXACT_RULE.underflow_gap:
                for q in range(nodes):
                    x = first - gap + q * step
                    weights[q] = log_product[q] - 0.5 * x * x
                _add_log_cdf(first - gap, step, nodes, -1.0, weights)
                top, total = _exponentiate_and_sum(weights, nodes)
                out[j] = min(math.exp(top - LOG_ROOT_TWO_PI) * total * step, 1.0)


@compiled_internal
def allocate_workspace(start: Ints) -> tuple[Ints, Floats, Floats]:
    """Arrays for the rivals of the largest decision (rows, gaps), and for weights of the nodes."""
    most = 0
    for t in range(start.size - 1):
        most = max(most, start[t + 1] - start[t])
    return np.empty(most, np.int64), np.empty(most), np.empty(EXACT_RULE.many_rivals_intervals + 1)


@compiled_internal
def find_relevant_rivals(
    mu: Floats, low: int, high: int, chosen: int, rival_rows: Ints, gaps: Floats
) -> tuple[int, float]:
    """How many rivals matter among rows low to high, and a lower bound of the integrand's mode.

    Their rows go into rival_rows, their utility gaps into gaps. The bound is half the largest
    positive gap, measured from mu of the chosen row, or zero.
    """
    largest_gap = 0.0
    for j in range(low, high):
        largest_gap = max(largest_gap, mu[j] - mu[chosen])
    bound = 0.5 * largest_gap
    # "Relevant" is relative to the bound, not to the best action (module docstring).
    count = 0
    for j in range(low, high):
        if j != chosen and mu[j] - mu[chosen] > bound - EXACT_RULE.irrelevance_margin:
            rival_rows[count] = j
            gaps[count] = mu[j] - mu[chosen]
            count += 1
    return count, bound


@inlined
def log_cdf_curvature(x: float, ratio: float) -> float:
    """Minus the second derivative of log Phi at x, r (x + r) with r = phi/Phi.

    It falls from 1 to 0 as x grows, whatever rounding says far out.
    """
    return 1.0 if x < -1e6 else min(1.0, max(0.0, ratio * (x + ratio)))


@compiled_internal
def _log_integrand(gaps: Floats, z: float) -> tuple[float, float, float]:
    """The log-integrand at z, its slope, and minus its second derivative.

    -z^2/2 + sum over rivals of log Phi(z - gap), up to a constant.
    """
    value, slope, curvature = -0.5 * z * z, -z, 1.0
    for k in range(gaps.size):
        x = z - gaps[k]
        log_phi, ratio = log_cdf_and_ratio(x)
        value += log_phi
        slope += ratio
        curvature += log_cdf_curvature(x, ratio)
    return value, slope, curvature


@compiled_internal
def _integration_interval(gaps: Floats, bound: float) -> tuple[float, float, float]:
    """A point near the mode, and how far from it the log-integrand is `log_drop` lower.

    The second number is below zero (left), the third above (right). Fifty steps of Newton's method
    are never needed; they bound the time where something is not finite.
    """
    # The mode, from the left: within 0.05 of the maximum is near enough.
    middle = bound
    top, slope, curvature = _log_integrand(gaps, middle)
    for _ in range(50):
        if slope * slope <= 0.1 * curvature:
            break
        middle += slope / curvature
        top, slope, curvature = _log_integrand(gaps, middle)
    # Starting points outside: the curvature grows to the left, and is at least one to the right.
    left = -math.sqrt(2.0 * EXACT_RULE.log_drop / curvature)
    right = abs(slope) + math.sqrt(slope * slope + 2.0 * EXACT_RULE.log_drop)
    for _ in range(50):
        value, slope, _ = _log_integrand(gaps, middle + left)
        beyond = top - EXACT_RULE.log_drop - value
        if beyond <= EXACT_RULE.log_drop_slack or not slope > 0.0:
            break
        left = min(left + beyond / slope, 0.5 * left)
    for _ in range(50):
        value, slope, _ = _log_integrand(gaps, middle + right)
        beyond = top - EXACT_RULE.log_drop - value
        if beyond <= EXACT_RULE.log_drop_slack or not slope < 0.0:
            break
        right = max(right + beyond / slope, 0.5 * right)
    return middle, left, right


@inlined
def _interval_count(rivals: int) -> int:
    """How many intervals the trapezoid rule needs."""
    return (
        EXACT_RULE.few_rivals_intervals
        if rivals <= EXACT_RULE.many_rivals
        else EXACT_RULE.many_rivals_intervals
    )


@compiled_internal
def integrate_choice(
    gaps: Floats, bound: float, weights: Floats
) -> tuple[float, float, float, int]:
    """Log P of a choice against rivals with these gaps, and the nodes of its integral.

    The nodes are left + q * step, q < nodes: the last three of what is returned. The share of the
    integral that each holds, the normalised integrand, goes into weights.
    """
    middle, left, right = _integration_interval(gaps, bound)
    nodes = 1 + _interval_count(gaps.size)
    step = (right - left) / (nodes - 1)
    # The log-integrand at all nodes, then the trapezoid sum after taking out its maximum. The ends
    # hold next to nothing, so that they need no factor one half.
    for q in range(nodes):
        z = middle + (left + q * step)
        weights[q] = -0.5 * z * z
    for k in range(gaps.size):
        _add_log_cdf(middle - gaps[k] + left, step, nodes, 1.0, weights)
    top, total = _exponentiate_and_sum(weights, nodes)
    for q in range(nodes):
        weights[q] /= total
    return top + math.log(total * step) - LOG_ROOT_TWO_PI, middle + left, step, nodes


@compiled_internal
def _exponentiate_and_sum(values: Floats, nodes: int) -> tuple[float, float]:
    """The largest of values, and the sum of exp(values - largest), which replaces values."""
    top = values[0]
    for q in range(1, nodes):
        top = max(top, values[q])
    total = 0.0
    for q in range(nodes):
        below = values[q] - top
        # Less than exp(-45) adds nothing; most nodes of a shared grid: saves their exponentials.
        values[q] = math.exp(below) if below > -45.0 else 0.0
        total += values[q]
    return top, total


@compiled_internal
def _count_nodes_below(x: float, first: float, step: float, nodes: int) -> int:
    """How many of the nodes first + q * step, q < nodes, lie below x."""
    return int(min(max(np.ceil((x - first) / step), 0.0), nodes))


@compiled_internal
def _add_log_cdf(first: float, step: float, nodes: int, sign: float, out: Floats) -> None:
    """Add sign * log Phi(first + q * step) to out[q], q < nodes.

    Nodes left of the table of log Phi one by one, then the table without a branch, and nothing
    right of it, where log Phi is zero.
    """
    # A hair inside the table, so that rounding cannot step over its end; log Phi is 1e-17 there.
    tail = _count_nodes_below(GRID.low, first, step, nodes)
    end = _count_nodes_below(GRID.high - 1e-6, first, step, nodes)
    for q in range(tail):
        out[q] += sign * log_cdf(min(first + q * step, GRID.low))
    base, stride = (first - GRID.low) * GRID.cells_per_unit, step * GRID.cells_per_unit
    for q in range(tail, end):
        y = base + q * stride
        i = np.uint32(y)
        u = y - i - 0.5
        w = u * u  # the polynomial in pairs, which the processor works out side by side
        out[q] += sign * (
            LOG_CDF_TABLE[i, 0]
            + u * LOG_CDF_TABLE[i, 1]
            + w
            * (
                LOG_CDF_TABLE[i, 2]
                + u * LOG_CDF_TABLE[i, 3]
                + w * (LOG_CDF_TABLE[i, 4] + u * LOG_CDF_TABLE[i, 5])
            )
        )


@compiled_internal
def write_ratios(first: float, step: float, nodes: int, out: Floats) -> None:
    """Write phi/Phi at first + q * step into out[q], q < nodes.

    The derivative of the table's polynomial, in the same three ranges as `_add_log_cdf`.
    """
    tail = _count_nodes_below(GRID.low, first, step, nodes)
    end = _count_nodes_below(GRID.high - 1e-6, first, step, nodes)
    for q in range(tail):
        out[q] = log_cdf_and_ratio(min(first + q * step, GRID.low))[1]
    base, stride = (first - GRID.low) * GRID.cells_per_unit, step * GRID.cells_per_unit
    for q in range(tail, end):
        y = base + q * stride
        i = np.uint32(y)
        u = y - i - 0.5
        out[q] = GRID.cells_per_unit * (
            LOG_CDF_TABLE[i, 1]
            + u
            * (
                2.0 * LOG_CDF_TABLE[i, 2]
                + u
                * (
                    3.0 * LOG_CDF_TABLE[i, 3]
                    + u * (4.0 * LOG_CDF_TABLE[i, 4] + u * 5.0 * LOG_CDF_TABLE[i, 5])
                )
            )
        )
    out[end:nodes] = 0.0
