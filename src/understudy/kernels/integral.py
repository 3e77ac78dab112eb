"""The probability of a choice, exactly, as one integral (paper, section 2, the likelihood it calls intractable).

The controller takes the largest of mu + e, e ~ N(0, I). It takes action c with probability

    P(c) = integral of  phi(z - mu_c) * prod over j != c of Phi(z - mu_j)  dz

All is measured from mu_c, so that a rival is known by its gap, mu_j - mu_c. The log of the integrand is
concave, its second derivative is at most -1 and increases with z (phi/Phi is convex). Everything follows:

- Newton's method for the mode, started to its left, climbs to it and never passes it.
- Newton's method for the point where the log-integrand has fallen by DROP, started outside, stays outside.
- Between those two points the trapezoid rule converges faster than any power of the step. Its worst case is a lead
  of 2 to 5 over tied rivals, a sharp left edge: log P is then off by 5e-11 with 100 rivals, 1e-12 with 500 (which
  get twice the nodes), 2e-10 with a million.

Rivals that cannot matter are left out. Given that c beats some others, its utility is stochastically at least
N(0, 1), and at least N(gap / 2, 1/2) where it beats a rival with a positive gap. A rival more than SKIP below
that mean therefore changes P(c) by less than a part in 1e16. "Far below the best action" would be wrong: where c
itself is the bad one, z lives half way between c and the best.
"""

import math

import numpy as np

from understudy._arrays import Floats, Ints
from understudy.kernels._jit import inline, jit, part
from understudy.kernels.normal import (
    CELLS,
    HIGH,
    LOG_ROOT_TWO_PI,
    LOW,
    TABLE,
    log_cdf,
    log_cdf_and_ratio,
)

SKIP = 12.0
DROP, SLACK = 26.0, 2.0  # the ends lie where the log-integrand is 26 to 28 below its top: less than 1e-12 is cut off
CROWD = 100  # up to this many rivals FEW intervals between nodes are enough, beyond it MANY
FEW, MANY, MOST = 40, 80, 4096  # MOST: of the grid that all actions of a decision share
FORLORN = -55.0  # an action this far below the best has a probability that doubles cannot hold
ROOT_HALF = math.sqrt(0.5)


@jit
def log_probability(mu: Floats, chosen: int) -> float:
    """Log P(chosen) in one decision with utilities mu + e."""
    out = np.empty(1)
    log_probabilities(mu, np.array([0, mu.size]), np.array([chosen]), out)
    return float(out[0])


@jit
def log_probabilities(mu: Floats, start: Ints, taken: Ints, out: Floats) -> None:
    """Write log P of the row taken in each decision into out (T,)."""
    near, gaps, weights = workspace(start)
    for t in range(taken.size):
        count, bound = find_rivals(mu, start[t], start[t + 1], taken[t], near, gaps)
        if count == 0:
            out[t] = 0.0
        elif count == 1:
            out[t] = log_cdf(-ROOT_HALF * gaps[0])
        else:
            out[t] = integrate(gaps[:count], bound, weights)[0]


@jit
def value_and_gradient(mu: Floats, start: Ints, taken: Ints, gradient: Floats) -> float:
    """The sum of log P over all decisions; its derivative in mu goes into gradient (P,).

    With q the integrand made a density and r_j = phi/Phi at z - mu_j: d log P / d mu_j = -E_q[r_j], and the
    chosen row has what makes the sum zero.
    """
    near, gaps, weights = workspace(start)
    ratios = np.empty(weights.size)
    gradient[:] = 0.0
    total = 0.0
    for t in range(taken.size):
        count, bound = find_rivals(mu, start[t], start[t + 1], taken[t], near, gaps)
        if count == 1:
            value, ratio = log_cdf_and_ratio(-ROOT_HALF * gaps[0])
            total += value
            gradient[near[0]] = -ROOT_HALF * ratio
            gradient[taken[t]] = ROOT_HALF * ratio
        elif count > 1:
            value, left, step, nodes = integrate(gaps[:count], bound, weights)
            total += value
            for k in range(count):
                ratios_at(left - gaps[k], step, nodes, ratios)
                mean = 0.0
                for q in range(nodes):
                    mean += weights[q] * ratios[q]
                gradient[near[k]] = -mean
                gradient[taken[t]] += mean
    return total


@jit
def all_probabilities(mu: Floats, start: Ints, out: Floats) -> None:
    """Write the probability of every action of every decision into out (P,).

    With r = phi/Phi,  P(c) = integral of r(z - mu_c) * prod over all j of Phi(z - mu_j)  dz: the product is shared,
    and one pass over the rows serves all actions. Each is summed on its own, so that they add to one is a check.
    """
    near, gaps, _ = workspace(start)
    shared, weights = np.empty(MOST + 1), np.empty(MOST + 1)
    for t in range(start.size - 1):
        low, high = start[t], start[t + 1]
        best = low
        for j in range(low, high):
            if mu[j] > mu[best]:
                best = j
        worst = best
        for j in range(low, high):
            if mu[j] < mu[worst] and mu[j] - mu[best] > FORLORN:
                worst = j
        # The lower an action, the further left and the sharper its integrand: the grid spans and resolves the worst
        # hopeful action's and the best one's, and so all between.
        count, bound = find_rivals(mu, low, high, worst, near, gaps)
        middle, left, right = _interval(gaps[:count], bound)
        first, step = middle + left + (mu[worst] - mu[best]), (right - left) / _intervals(count)
        count, bound = find_rivals(mu, low, high, best, near, gaps)
        middle, left, right = _interval(gaps[:count], bound)
        first, step = min(first, middle + left), min(step, (right - left) / _intervals(count))
        nodes = 1 + min(math.ceil((middle + right - first) / step), MOST)
        step = (middle + right - first) / (nodes - 1)
        shared[:nodes] = 0.0
        for j in range(low, high):
            _add_log_cdf(first - (mu[j] - mu[best]), step, nodes, 1.0, shared)
        for j in range(low, high):
            gap = mu[j] - mu[best]
            out[j] = 0.0
            if gap > FORLORN:
                for q in range(nodes):
                    x = first - gap + q * step
                    weights[q] = shared[q] - 0.5 * x * x
                _add_log_cdf(first - gap, step, nodes, -1.0, weights)
                top, total = _sum_exp(weights, nodes)
                out[j] = min(math.exp(top - LOG_ROOT_TWO_PI) * total * step, 1.0)


@part
def workspace(start: Ints) -> tuple[Ints, Floats, Floats]:
    """Room for the rivals of the largest decision, and for the nodes."""
    most = 0
    for t in range(start.size - 1):
        most = max(most, start[t + 1] - start[t])
    return np.empty(most, np.int64), np.empty(most), np.empty(MANY + 1)


@part
def find_rivals(mu: Floats, low: int, high: int, chosen: int, near: Ints, gaps: Floats) -> tuple[int, float]:
    """The rows of the rivals that matter into near, their gaps into gaps; how many, and a lower bound of the mode."""
    ahead = 0.0
    for j in range(low, high):
        ahead = max(ahead, mu[j] - mu[chosen])
    bound = 0.5 * ahead
    count = 0
    for j in range(low, high):
        if j != chosen and mu[j] - mu[chosen] > bound - SKIP:
            near[count] = j
            gaps[count] = mu[j] - mu[chosen]
            count += 1
    return count, bound


@inline
def bend_at(x: float, ratio: float) -> float:
    """Minus the second derivative of log Phi at x: it falls from 1 to 0, whatever rounding says far out."""
    return 1.0 if x < -1e6 else min(1.0, max(0.0, ratio * (x + ratio)))


@part
def _shape(gaps: Floats, z: float) -> tuple[float, float, float]:
    """The log-integrand at z, its slope, and minus its second derivative."""
    value, slope, bend = -0.5 * z * z, -z, 1.0
    for k in range(gaps.size):
        x = z - gaps[k]
        log_phi, ratio = log_cdf_and_ratio(x)
        value += log_phi
        slope += ratio
        bend += bend_at(x, ratio)
    return value, slope, bend


@part
def _interval(gaps: Floats, bound: float) -> tuple[float, float, float]:
    """A point near the mode, and how far from it (left below zero, right above) the log-integrand is DROP lower."""
    middle = bound
    top, slope, bend = _shape(gaps, middle)
    for _ in range(50):
        if slope * slope <= 0.1 * bend:  # within 0.05 of the top
            break
        middle += slope / bend
        top, slope, bend = _shape(gaps, middle)
    left = -math.sqrt(2.0 * DROP / bend)
    right = abs(slope) + math.sqrt(slope * slope + 2.0 * DROP)
    for _ in range(50):
        value, slope, _ = _shape(gaps, middle + left)
        beyond = top - DROP - value
        if beyond <= SLACK or not slope > 0.0:
            break
        left = min(left + beyond / slope, 0.5 * left)
    for _ in range(50):
        value, slope, _ = _shape(gaps, middle + right)
        beyond = top - DROP - value
        if beyond <= SLACK or not slope < 0.0:
            break
        right = max(right + beyond / slope, 0.5 * right)
    return middle, left, right


@inline
def _intervals(rivals: int) -> int:
    """How many intervals the trapezoid rule needs."""
    return FEW if rivals <= CROWD else MANY


@part
def integrate(gaps: Floats, bound: float, weights: Floats) -> tuple[float, float, float, int]:
    """Log P, and the nodes left + q * step with the share of the integral each one holds in weights."""
    middle, left, right = _interval(gaps, bound)
    nodes = 1 + _intervals(gaps.size)
    step = (right - left) / (nodes - 1)
    for q in range(nodes):
        z = middle + (left + q * step)
        weights[q] = -0.5 * z * z
    for k in range(gaps.size):
        _add_log_cdf(middle - gaps[k] + left, step, nodes, 1.0, weights)
    top, total = _sum_exp(weights, nodes)
    for q in range(nodes):
        weights[q] /= total
    return top + math.log(total * step) - LOG_ROOT_TWO_PI, middle + left, step, nodes


@part
def _sum_exp(values: Floats, nodes: int) -> tuple[float, float]:
    """Turn values into exp(values - top), top being the largest; top, and their sum."""
    top = values[0]
    for q in range(1, nodes):
        top = max(top, values[q])
    total = 0.0
    for q in range(nodes):
        below = values[q] - top
        values[q] = math.exp(below) if below > -45.0 else 0.0  # most nodes of a shared grid: saves their exp
        total += values[q]
    return top, total


@part
def _nodes_below(x: float, first: float, step: float, nodes: int) -> int:
    """How many of the nodes first + q * step, q < nodes, lie below x."""
    return int(min(max(np.ceil((x - first) / step), 0.0), nodes))


@part
def _add_log_cdf(first: float, step: float, nodes: int, sign: float, out: Floats) -> None:
    """Add sign * log Phi(first + q * step) to out[q]: the tail, then the table without a branch, then nothing."""
    # A hair inside the table, so that rounding cannot step over its end; log Phi is 1e-17 there.
    tail = _nodes_below(LOW, first, step, nodes)
    end = _nodes_below(HIGH - 1e-6, first, step, nodes)
    for q in range(tail):
        out[q] += sign * log_cdf(min(first + q * step, LOW))
    base, stride = (first - LOW) * CELLS, step * CELLS
    for q in range(tail, end):
        y = base + q * stride
        i = np.uint32(y)
        u = y - i - 0.5
        w = u * u  # the polynomial in pairs, which the processor works out side by side
        out[q] += sign * (
            TABLE[i, 0] + u * TABLE[i, 1] + w * (TABLE[i, 2] + u * TABLE[i, 3] + w * (TABLE[i, 4] + u * TABLE[i, 5]))
        )


@part
def ratios_at(first: float, step: float, nodes: int, out: Floats) -> None:
    """Write phi/Phi at first + q * step into out[q]."""
    tail = _nodes_below(LOW, first, step, nodes)
    end = _nodes_below(HIGH - 1e-6, first, step, nodes)
    for q in range(tail):
        out[q] = log_cdf_and_ratio(min(first + q * step, LOW))[1]
    base, stride = (first - LOW) * CELLS, step * CELLS
    for q in range(tail, end):
        y = base + q * stride
        i = np.uint32(y)
        u = y - i - 0.5
        out[q] = CELLS * (
            TABLE[i, 1]
            + u * (2.0 * TABLE[i, 2] + u * (3.0 * TABLE[i, 3] + u * (4.0 * TABLE[i, 4] + u * 5.0 * TABLE[i, 5])))
        )
    out[end:nodes] = 0.0
