"""The probability that the chosen action is best when noise is correlated, by sequential conditioning (GHK).

The differences between the rivals' utilities and the chosen one's are N(m, R R'), R lower triangular, and the choice
says that all of them are negative. Written as m + R t with t standard normal, the k-th is negative where

    t_k < a_k = -(m_k + sum over j < k of R_kj t_j) / R_kk,

so t_1, t_2, ... can be drawn one after the other, each below its bound: t_k = Phi^-1(Phi(z_k) Phi(a_k)) for a standard
normal z_k. The product of the Phi(a_k) is then an unbiased weight: its mean over z is the probability of the choice
(Geweke 1989; Hajivassiliou and McFadden 1998; Keane 1994). The mean of the weights at z and -z varies far less, and
taking first the rivals that are hardest to beat saves another factor of ten (Gibson, Glasbey and Elston 1994).

With r = phi / Phi, the slopes are d log Phi(a) / da = r(a), dt_k / da_k = r(a_k) / r(t_k).
"""

import math
from typing import NamedTuple

import numpy as np

from understudy._arrays import Bools, Floats, Ints
from understudy.kernels._jit import fast, jit
from understudy.kernels.normal import log_cdf, log_cdf_and_ratio, quantile_of_log


class Fields(NamedTuple):
    """T decisions as rivals, hardest first, of what was chosen.

    first (T + 1,): where the rivals of each decision begin. Decisions with the same actions in the same order are of
    one `kind` (T,); members (C, D + 1) are the labels of each kind, the chosen one first, and rivals (C,) how many it has.
    """

    first: Ints
    kind: Ints
    members: Ints
    rivals: Ints


@jit
def roots_of_kinds(covariance: Floats, fields: Fields, roots: Floats) -> bool:
    """The Cholesky factor R of the differences against the chosen action, for each kind: roots (C, D, D).

    covariance (M, M) of the noise of all labels. False where it is not positive definite.
    """
    for c in range(fields.rivals.size):
        label, root = fields.members[c], roots[c]
        own = label[0]
        for i in range(fields.rivals[c]):
            for j in range(i + 1):
                left = (
                    covariance[label[i + 1], label[j + 1]] - covariance[label[i + 1], own]
                    - covariance[own, label[j + 1]] + covariance[own, own]
                )  # fmt: skip
                for k in range(j):
                    left -= root[i, k] * root[j, k]
                if i > j:
                    root[i, j] = left / root[j, j]
                elif left > 0.0:
                    root[i, i] = math.sqrt(left)
                else:
                    return False
    return True


@jit
def slopes_of_kinds(fields: Fields, roots: Floats, slopes: Floats, out: Floats) -> None:
    """What slopes in the roots are as slopes in the covariance: added to out (M, M). Uses up `slopes` (C, D, D)."""
    for c in range(fields.rivals.size):
        label, root, slope = fields.members[c], roots[c], slopes[c]
        own = label[0]
        for i in range(fields.rivals[c] - 1, -1, -1):
            for j in range(i, -1, -1):
                if i == j:
                    push = 0.5 * slope[i, i] / root[i, i]
                    for k in range(i):
                        slope[i, k] -= 2.0 * push * root[i, k]
                else:
                    push = slope[i, j] / root[j, j]
                    slope[j, j] -= push * root[i, j]
                    for k in range(j):
                        slope[i, k] -= push * root[j, k]
                        slope[j, k] -= push * root[i, k]
                out[label[i + 1], label[j + 1]] += push
                out[label[i + 1], own] -= push
                out[own, label[j + 1]] -= push
                out[own, own] += push


class Pass(NamedTuple):
    """Working space, all (R, 2) for z and -z: bounds, t, phi/Phi at both, slopes in t; and log weights (T, 2)."""

    bound: Floats
    t: Floats
    at_bound: Floats
    at_t: Floats
    slope: Floats
    weight: Floats


@jit
def make_pass(fields: Fields) -> Pass:
    """Working space for these decisions."""
    rivals = fields.first[-1]
    return Pass(
        np.empty((rivals, 2)), np.empty((rivals, 2)), np.empty((rivals, 2)), np.empty((rivals, 2)),
        np.empty((rivals, 2)), np.empty((fields.kind.size, 2)),
    )  # fmt: skip


@jit
def below(z: Floats, out: Floats) -> None:
    """Log Phi(z) and log Phi(-z), into out (n, 2)."""
    for i in range(z.size):
        out[i, 0] = log_cdf(z[i])
        out[i, 1] = log_cdf(-z[i])


@fast
def weigh(fields: Fields, m: Floats, roots: Floats, logs: Floats, work: Pass, each: Floats) -> float:
    """The log of the mean weight at z and -z of every decision, into each (T,); returns their sum.

    m (R,) are the differences' means, logs (R - T, 2) as `below` makes them of z. All decisions take their k-th step
    together: steps of one decision wait for one another, those of different decisions do not.
    """
    first, kind, decisions = fields.first, fields.kind, fields.kind.size
    work.weight[:] = 0.0
    for k in range(roots.shape[1]):
        for i in range(decisions):
            at, left = np.uint64(first[i] + k), first[i + 1] - first[i] - k
            if left < 1:
                continue
            root = roots[kind[i], k]
            forth, back = m[at], m[at]
            for j in range(k):
                before = np.uint64(first[i] + j)
                forth += root[j] * work.t[before, 0]
                back += root[j] * work.t[before, 1]
            scale = -1.0 / root[k]
            forth, back = scale * forth, scale * back
            work.bound[at, 0], work.bound[at, 1] = forth, back
            log_forth, work.at_bound[at, 0] = log_cdf_and_ratio(forth)
            log_back, work.at_bound[at, 1] = log_cdf_and_ratio(back)
            work.weight[i, 0] += log_forth
            work.weight[i, 1] += log_back
            if left > 1:
                drawn = np.uint64(first[i] - i + k)
                forth = quantile_of_log(logs[drawn, 0] + log_forth)
                back = quantile_of_log(logs[drawn, 1] + log_back)
                work.t[at, 0], work.t[at, 1] = forth, back
                work.at_t[at, 0] = log_cdf_and_ratio(forth)[1]
                work.at_t[at, 1] = log_cdf_and_ratio(back)[1]
    total = 0.0
    for i in range(decisions):
        top = max(work.weight[i, 0], work.weight[i, 1])
        forth, back = math.exp(work.weight[i, 0] - top), math.exp(work.weight[i, 1] - top)
        each[i] = top + math.log(0.5 * (forth + back))
        total += each[i]
        work.weight[i, 0], work.weight[i, 1] = forth / (forth + back), back / (forth + back)
    return total


@fast
def weigh_back(fields: Fields, roots: Floats, work: Pass, up: Floats, slopes: Floats) -> None:
    """After `weigh`: the slopes of its sum in m into up (R,), and in the roots into slopes (C, D, D)."""
    first, kind = fields.first, fields.kind
    work.slope[:] = 0.0
    slopes[:] = 0.0
    for k in range(roots.shape[1] - 1, -1, -1):
        for i in range(kind.size):
            at, left = np.uint64(first[i] + k), first[i + 1] - first[i] - k
            if left < 1:
                continue
            root, slope = roots[kind[i], k], slopes[kind[i], k]
            forth, back = work.weight[i, 0], work.weight[i, 1]
            if left > 1:
                forth += work.slope[at, 0] / work.at_t[at, 0]
                back += work.slope[at, 1] / work.at_t[at, 1]
            scale = -1.0 / root[k]
            forth *= work.at_bound[at, 0] * scale
            back *= work.at_bound[at, 1] * scale
            up[at] = forth + back
            slope[k] += forth * work.bound[at, 0] + back * work.bound[at, 1]
            for j in range(k):
                before = np.uint64(first[i] + j)
                slope[j] += forth * work.t[before, 0] + back * work.t[before, 1]
                work.slope[before, 0] += forth * root[j]
                work.slope[before, 1] += back * root[j]


@jit
def hardest_first(m: Floats, covariance: Floats, order: Ints) -> None:
    """The order in which to condition on differences N(m, covariance) being negative: always the least likely next.

    Each is judged with those before it at their means below their bounds.
    """
    size = m.size
    root, mean = np.zeros((size, size)), np.empty(size)
    for i in range(size):
        order[i] = i
    for k in range(size):
        least, best, sd = np.inf, k, 1.0
        for i in range(k, size):
            own, total = covariance[order[i], order[i]], m[order[i]]
            for j in range(k):
                own -= root[order[i], j] ** 2
                total += root[order[i], j] * mean[j]
            width = math.sqrt(max(own, 1e-300))
            if -total / width < least:
                least, best, sd = -total / width, i, width
        order[k], order[best] = order[best], order[k]
        mean[k] = -log_cdf_and_ratio(least)[1]
        root[order[k], k] = sd
        for i in range(k + 1, size):
            total = covariance[order[i], order[k]]
            for j in range(k):
                total -= root[order[i], j] * root[order[k], j]
            root[order[i], k] = total / sd


@jit
def log_probability(m: Floats, covariance: Floats, lattice: Floats) -> float:
    """Log probability that differences N(m, covariance) are all negative: the mean weight over a lattice.

    lattice (N, n - 1 or more, 2): logarithms of points in the unit cube and of their mirror images.
    """
    size, points = m.size, lattice.shape[0] if m.size > 1 else 1
    order = np.empty(size, np.int64)
    hardest_first(m, covariance, order)
    root = np.empty((1, size, size))
    root[0] = np.linalg.cholesky(covariance[order][:, order])
    fields = Fields(
        size * np.arange(points + 1), np.zeros(points, np.int64), np.zeros((1, size + 1), np.int64), order[:1]
    )
    means, logs, each = np.empty(points * size), np.empty((points * (size - 1), 2)), np.empty(points)
    for i in range(points):
        for k in range(size):
            means[i * size + k] = m[order[k]]
        for k in range(size - 1):
            logs[i * (size - 1) + k] = lattice[i, k]
    weigh(fields, means, root, logs, make_pass(fields), each)
    top: float = each.max()
    return top + math.log(np.mean(np.exp(each - top)))


@jit
def log_probabilities(
    mu: Floats, start: Ints, label: Ints, covariance: Floats, asked: Bools, lattice: Floats, out: Floats
) -> None:
    """Log probability of each row that is asked for, into out (P,), when the noise of labels has this covariance."""
    for t in range(start.size - 1):
        low, high = start[t], start[t + 1]
        for own in range(low, high):
            if not asked[own]:
                continue
            m, between = np.empty(high - low - 1), np.empty((high - low - 1, high - low - 1))
            for i in range(high - low - 1):
                a = low + i + (low + i >= own)
                m[i] = mu[a] - mu[own]
                for j in range(high - low - 1):
                    b = low + j + (low + j >= own)
                    between[i, j] = (
                        covariance[label[a], label[b]] - covariance[label[a], label[own]]
                        - covariance[label[own], label[b]] + covariance[label[own], label[own]]
                    )  # fmt: skip
            out[own] = log_probability(m, between, lattice) if m.size > 0 else 0.0
