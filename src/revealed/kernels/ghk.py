"""The probability that the chosen action is best when noise is correlated: the GHK simulator.

The differences between the rivals' utilities and the chosen one's are N(m, R R'), R lower
triangular, and the choice says that all of them are negative. Written as m + R t with t
standard normal, the k-th is negative where

    t_k < a_k = -(m_k + sum over j < k of R_kj t_j) / R_kk,

so t_1, t_2, ... can be drawn one after the other, each below its bound:
t_k = Phi^-1(Phi(z_k) Phi(a_k)) for a standard normal z_k. The product of the Phi(a_k) is then an
unbiased weight: its mean over z is the probability of the choice (Geweke 1989; Hajivassiliou and
McFadden 1998; Keane 1994). The mean of the weights at z and -z varies far less, and taking first
the rivals that are hardest to beat saves another factor of ten (Gibson, Glasbey and Elston 1994).

With r = phi / Phi, the derivatives are d log Phi(a) / da = r(a), dt_k / da_k = r(a_k) / r(t_k).
"""

import math
from typing import NamedTuple

import numpy as np

from revealed._types import Bools, Floats, Ints
from revealed.kernels._compile import compiled, compiled_no_nan
from revealed.kernels.normal import log_cdf, log_cdf_and_ratio, quantile_from_log_cdf
from revealed.kernels.vectors import multiply_add


class OrderedRivals(NamedTuple):
    """The rivals of T decisions, R in all, in the order in which they are conditioned on.

    start (T + 1,): where the rivals of each decision begin. Decisions with the same actions in the
    same order share one choice set: choice_set (T,) is its number. labels (C, D + 1) are the
    action labels of each choice set, the chosen one first, and n_rivals (C,) how many it has.
    exponent (T,): the power to which each decision's weight counts, one where it counts in full.
    """

    start: Ints
    choice_set: Ints
    labels: Ints
    n_rivals: Ints
    exponent: Floats


@compiled
def factorise_differences(covariance: Floats, rivals: OrderedRivals, factors: Floats) -> bool:
    """Write the Cholesky factor R of the utility differences for each choice set.

    covariance (M, M) is that of the noise of all labels; differences are against the chosen
    action. factors (C, D, D) are written, lower triangles only. Returns False where a
    covariance of differences is not positive definite.
    """
    for c in range(rivals.n_rivals.size):
        label, factor = rivals.labels[c], factors[c]
        chosen = label[0]
        for i in range(rivals.n_rivals[c]):
            for j in range(i + 1):
                # cov(w_i - w_chosen, w_j - w_chosen), less what earlier columns explain
                rest = (
                    covariance[label[i + 1], label[j + 1]]
                    - covariance[label[i + 1], chosen]
                    - covariance[chosen, label[j + 1]]
                    + covariance[chosen, chosen]
                )
                for k in range(j):
                    rest -= factor[i, k] * factor[j, k]
                # a pivot that is not positive says that the matrix is not positive definite
                if i > j:
                    factor[i, j] = rest / factor[j, j]
                elif rest > 0.0:
                    factor[i, i] = math.sqrt(rest)
                else:
                    return False
    return True


@compiled
def factorise_differences_backward(
    rivals: OrderedRivals, factors: Floats, grad_factors: Floats, grad_covariance: Floats
) -> None:
    """Turn derivatives in the factors into derivatives in the covariance: reverse mode.

    Added to grad_covariance (M, M). Overwrites grad_factors (C, D, D) on the way: each entry
    passes what it owes to the entries it was computed from, in reverse order of
    `factorise_differences`.
    """
    for c in range(rivals.n_rivals.size):
        label, factor, grad = rivals.labels[c], factors[c], grad_factors[c]
        chosen = label[0]
        for i in range(rivals.n_rivals[c] - 1, -1, -1):
            for j in range(i, -1, -1):
                if i == j:
                    # factor_ii = sqrt(rest), rest = covariance - sum of factor_ik^2
                    grad_rest = 0.5 * grad[i, i] / factor[i, i]
                    for k in range(i):
                        grad[i, k] -= 2.0 * grad_rest * factor[i, k]
                else:
                    # factor_ij = rest / factor_jj, rest = covariance - sum of products
                    grad_rest = grad[i, j] / factor[j, j]
                    grad[j, j] -= grad_rest * factor[i, j]
                    for k in range(j):
                        grad[i, k] -= grad_rest * factor[j, k]
                        grad[j, k] -= grad_rest * factor[i, k]
                # the four covariances that the difference was made of
                grad_covariance[label[i + 1], label[j + 1]] += grad_rest
                grad_covariance[label[i + 1], chosen] -= grad_rest
                grad_covariance[chosen, label[j + 1]] -= grad_rest
                grad_covariance[chosen, chosen] += grad_rest


class GHKWorkspace(NamedTuple):
    """Arrays that `log_mean_weights` fills and its backward pass reads.

    All are (R, 2), for z and -z: the bounds a, the draws t, r = phi / Phi at both, and the
    derivatives in t. weight (T, 2) holds log weights, at last each one's share of their sum.
    """

    bound: Floats
    t: Floats
    ratio_at_bound: Floats
    ratio_at_t: Floats
    grad_t: Floats
    weight: Floats


@compiled
def make_ghk_workspace(rivals: OrderedRivals) -> GHKWorkspace:
    """A workspace for these decisions."""
    n_rivals = rivals.start[-1]
    return GHKWorkspace(
        np.empty((n_rivals, 2)),
        np.empty((n_rivals, 2)),
        np.empty((n_rivals, 2)),
        np.empty((n_rivals, 2)),
        np.empty((n_rivals, 2)),
        np.empty((rivals.choice_set.size, 2)),
    )


@compiled
def log_cdf_pairs(z: Floats, out: Floats) -> None:
    """Write log Phi(z) and log Phi(-z) into out (n, 2)."""
    for i in range(z.size):
        out[i, 0] = log_cdf(z[i])
        out[i, 1] = log_cdf(-z[i])


@compiled_no_nan
def log_mean_weights(
    rivals: OrderedRivals,
    m: Floats,
    factors: Floats,
    log_cdf_z: Floats,
    work: GHKWorkspace,
    log_weights: Floats,
) -> float:
    """Write the log of the mean weight at z and -z of every decision; returns their sum.

    Each times the decision's exponent.

    m (R,) are the means of the differences, log_cdf_z (R - T, 2) is what `log_cdf_pairs` makes of
    z, log_weights (T,) is written. All decisions take their k-th step together: steps of one
    decision wait for one another, those of different decisions do not.
    """
    # step k in the outer loop: the inner one then has no dependence to wait for
    start, choice_set, decisions = rivals.start, rivals.choice_set, rivals.choice_set.size
    work.weight[:] = 0.0
    for k in range(factors.shape[1]):
        for i in range(decisions):
            at, remaining = np.uint64(start[i] + k), start[i + 1] - start[i] - k
            if remaining < 1:
                continue
            # the bound a_k given the earlier draws, for z and for -z
            factor = factors[choice_set[i], k]
            plus, minus = m[at], m[at]
            for j in range(k):
                earlier = np.uint64(start[i] + j)
                plus = multiply_add(factor[j], work.t[earlier, 0], plus)
                minus = multiply_add(factor[j], work.t[earlier, 1], minus)
            scale = -1.0 / factor[k]
            plus, minus = scale * plus, scale * minus
            work.bound[at, 0], work.bound[at, 1] = plus, minus
            log_plus, work.ratio_at_bound[at, 0] = log_cdf_and_ratio(plus)
            log_minus, work.ratio_at_bound[at, 1] = log_cdf_and_ratio(minus)
            # the weight is the product of the Phi(a_k)
            work.weight[i, 0] += log_plus
            work.weight[i, 1] += log_minus
            # t_k below its bound; nothing depends on the last one, which is not drawn
            if remaining > 1:
                normal = np.uint64(start[i] - i + k)
                plus = quantile_from_log_cdf(log_cdf_z[normal, 0] + log_plus)
                minus = quantile_from_log_cdf(log_cdf_z[normal, 1] + log_minus)
                work.t[at, 0], work.t[at, 1] = plus, minus
                work.ratio_at_t[at, 0] = log_cdf_and_ratio(plus)[1]
                work.ratio_at_t[at, 1] = log_cdf_and_ratio(minus)[1]
    # mean over the antithetic pair; the shares of both are kept for the backward pass
    total = 0.0
    for i in range(decisions):
        largest = max(work.weight[i, 0], work.weight[i, 1])
        plus, minus = math.exp(work.weight[i, 0] - largest), math.exp(work.weight[i, 1] - largest)
        log_weights[i] = rivals.exponent[i] * (largest + math.log(0.5 * (plus + minus)))
        total += log_weights[i]
        work.weight[i, 0] = rivals.exponent[i] * (plus / (plus + minus))
        work.weight[i, 1] = rivals.exponent[i] * (minus / (plus + minus))
    return total


@compiled_no_nan
def log_mean_weights_backward(
    rivals: OrderedRivals,
    factors: Floats,
    work: GHKWorkspace,
    grad_m: Floats,
    grad_factors: Floats,
) -> None:
    """Write the derivatives of the sum that `log_mean_weights` returned just before.

    Those in the means go into grad_m (R,), those in the factors into grad_factors (C, D, D).
    """
    start, choice_set = rivals.start, rivals.choice_set
    # reverse mode: steps in reverse order, each passing on to what it was computed from
    work.grad_t[:] = 0.0
    grad_factors[:] = 0.0
    for k in range(factors.shape[1] - 1, -1, -1):
        for i in range(choice_set.size):
            at, remaining = np.uint64(start[i] + k), start[i + 1] - start[i] - k
            if remaining < 1:
                continue
            factor, grad = factors[choice_set[i], k], grad_factors[choice_set[i], k]
            # d / d a_k: by log Phi(a_k), and by t_k where later bounds depend on it
            plus, minus = work.weight[i, 0], work.weight[i, 1]
            if remaining > 1:
                plus += work.grad_t[at, 0] / work.ratio_at_t[at, 0]
                minus += work.grad_t[at, 1] / work.ratio_at_t[at, 1]
            scale = -1.0 / factor[k]
            plus *= work.ratio_at_bound[at, 0] * scale
            minus *= work.ratio_at_bound[at, 1] * scale
            # and from a_k to what it was computed from
            grad_m[at] = plus + minus
            grad[k] += plus * work.bound[at, 0] + minus * work.bound[at, 1]
            for j in range(k):
                earlier = np.uint64(start[i] + j)
                by_pair = multiply_add(plus, work.t[earlier, 0], minus * work.t[earlier, 1])
                grad[j] += by_pair
                work.grad_t[earlier, 0] = multiply_add(plus, factor[j], work.grad_t[earlier, 0])
                work.grad_t[earlier, 1] = multiply_add(minus, factor[j], work.grad_t[earlier, 1])


@compiled
def conditioning_order(m: Floats, covariance: Floats, order: Ints) -> None:
    """Write the order in which to condition on differences N(m, covariance) being negative.

    Always the least likely next (Gibson, Glasbey and Elston 1994). Each probability is computed
    with the earlier differences at their means below their bounds. order (n,) is written.
    """
    tiny_variance = 1e-300  # keeps the square root real where rounding has used a variance up
    size = m.size
    factor, mean = np.zeros((size, size)), np.empty(size)
    for i in range(size):
        order[i] = i
    for k in range(size):
        # the remaining difference with the lowest bound, and so the least probability
        lowest, best, best_sd = np.inf, k, 1.0
        for i in range(k, size):
            variance, total = covariance[order[i], order[i]], m[order[i]]
            for j in range(k):
                variance -= factor[order[i], j] ** 2
                total += factor[order[i], j] * mean[j]
            sd = math.sqrt(max(variance, tiny_variance))
            if -total / sd < lowest:
                lowest, best, best_sd = -total / sd, i, sd
        # it comes next
        order[k], order[best] = order[best], order[k]
        # its column of the Cholesky factor, and E(t | t < bound) = -phi / Phi
        mean[k] = -log_cdf_and_ratio(lowest)[1]
        factor[order[k], k] = best_sd
        for i in range(k + 1, size):
            total = covariance[order[i], order[k]]
            for j in range(k):
                total -= factor[order[i], j] * factor[order[k], j]
            factor[order[i], k] = total / best_sd


@compiled
def order_rivals(
    mu: Floats, covariance: Floats, row_label: Ints, chosen_row: Ints, start: Ints, rows: Ints
) -> None:
    """Bring the rivals' rows of each decision into the order in which to condition on them.

    mu: (P,) rows @ v. covariance: (L, L) of the noise of all labels. row_label: (P,). start:
    (T + 1,) where the rivals of each decision begin in rows (R,), which is written.
    """
    for t in range(chosen_row.size):
        chosen, rivals = chosen_row[t], rows[start[t] : start[t + 1]].copy()
        own = row_label[chosen]
        m, order = np.empty(rivals.size), np.empty(rivals.size, np.int64)
        # covariance of the differences against the chosen action
        between = np.empty((rivals.size, rivals.size))
        for i in range(rivals.size):
            label = row_label[rivals[i]]
            m[i] = mu[rivals[i]] - mu[chosen]
            for j in range(rivals.size):
                other = row_label[rivals[j]]
                between[i, j] = (
                    covariance[label, other]
                    - covariance[label, own]
                    - covariance[own, other]
                    + covariance[own, own]
                )
        conditioning_order(m, between, order)
        for i in range(rivals.size):
            rows[start[t] + i] = rivals[order[i]]


@compiled
def log_probability(m: Floats, covariance: Floats, lattice: Floats) -> float:
    """Log probability that differences N(m, covariance) are all negative.

    The mean weight over a lattice (N, n - 1 or more, 2): logarithms of points in the unit cube and
    of their mirror images. A single difference needs no points.
    """
    size, points = m.size, lattice.shape[0] if m.size > 1 else 1
    order = np.empty(size, np.int64)
    conditioning_order(m, covariance, order)
    factor = np.empty((1, size, size))
    factor[0] = np.linalg.cholesky(covariance[order][:, order])
    # every lattice point is treated as a decision of its own, all in one choice set
    rivals = OrderedRivals(
        size * np.arange(points + 1),
        np.zeros(points, np.int64),
        np.zeros((1, size + 1), np.int64),
        order[:1],
        np.ones(points),
    )
    means, log_cdf_z, log_weights = (
        np.empty(points * size),
        np.empty((points * (size - 1), 2)),
        np.empty(points),
    )
    for i in range(points):
        for k in range(size):
            means[i * size + k] = m[order[k]]
        for k in range(size - 1):
            log_cdf_z[i * (size - 1) + k] = lattice[i, k]
    log_mean_weights(rivals, means, factor, log_cdf_z, make_ghk_workspace(rivals), log_weights)
    # log of the mean, without underflow
    largest: float = log_weights.max()
    return largest + math.log(np.mean(np.exp(log_weights - largest)))


@compiled
def log_probabilities(
    mu: Floats,
    start: Ints,
    label: Ints,
    covariance: Floats,
    needed: Bools,
    lattice: Floats,
    out: Floats,
) -> None:
    """Write the log probability of each needed row into out (P,).

    mu (P,) are the mean utilities of all rows, start (T + 1,) where each decision's rows begin,
    label (P,) the rows' labels, covariance (M, M) that of the labels' noise.
    """
    for t in range(start.size - 1):
        low, high = start[t], start[t + 1]
        for own in range(low, high):
            if not needed[own]:
                continue
            # means and covariance of all differences against this row
            m, between = np.empty(high - low - 1), np.empty((high - low - 1, high - low - 1))
            for i in range(high - low - 1):
                # the i-th rival, skipping the row itself
                a = low + i + (low + i >= own)
                m[i] = mu[a] - mu[own]
                for j in range(high - low - 1):
                    b = low + j + (low + j >= own)
                    between[i, j] = (
                        covariance[label[a], label[b]]
                        - covariance[label[a], label[own]]
                        - covariance[label[own], label[b]]
                        + covariance[label[own], label[own]]
                    )
            out[own] = log_probability(m, between, lattice) if m.size > 0 else 0.0
