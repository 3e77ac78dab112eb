"""The curvature of the exact log-likelihood: minus its Hessian in v, decision by decision.

With q the integrand of `integral.py` made a density, r_j = phi/Phi at x_j = z - mu_j and lead_j = chosen row - row_j,

    minus Hessian = sum over j of E_q[r_j (x_j + r_j)] lead_j lead_j' - Cov_q[sum over j of r_j lead_j].
"""

import numpy as np

from understudy._arrays import Floats, Ints
from understudy.kernels._jit import jit, part
from understudy.kernels.integral import ROOT_HALF, bend_at, find_rivals, integrate, ratios_at, workspace
from understudy.kernels.normal import log_cdf_and_ratio


@jit
def add_information_dense(
    mu: Floats, start: Ints, taken: Ints, weight: Floats, rows: Floats, information: Floats
) -> None:
    """Add minus the Hessian in v of the weighted sum of log P, mu = rows @ v, to information (K, K)."""
    near, gaps, weights = workspace(start)
    width = rows.shape[1]
    leads = np.empty((gaps.size, width))
    slopes = np.empty((weights.size, width))
    ratios = np.empty(weights.size)
    lower = np.zeros((width, width))
    for t in range(taken.size):
        count, bound = find_rivals(mu, start[t], start[t + 1], taken[t], near, gaps)
        for k in range(count):
            for a in range(width):
                leads[k, a] = rows[taken[t], a] - rows[near[k], a]
        _add_curvature(weight[t], gaps[:count], bound, leads, width, weights, ratios, slopes, lower)
    for a in range(width):
        for b in range(a):
            information[a, b] += lower[a, b]
            information[b, a] += lower[a, b]
        information[a, a] += lower[a, a]


@jit
def add_information_sparse(
    mu: Floats, start: Ints, taken: Ints, weight: Floats, indptr: Ints, indices: Ints, data: Floats, information: Floats
) -> None:
    """The same for rows in compressed sparse form: each decision works in the columns it touches."""
    near, gaps, weights = workspace(start)
    most = 0
    for t in range(taken.size):
        most = max(most, indptr[start[t + 1]] - indptr[start[t]])
    most = min(most, information.shape[0])
    place = np.full(information.shape[0], -1)
    columns = np.empty(most, np.int64)
    leads = np.empty((gaps.size, most))
    slopes = np.empty((weights.size, most))
    ratios = np.empty(weights.size)
    lower = np.zeros((most, most))
    for t in range(taken.size):
        count, bound = find_rivals(mu, start[t], start[t + 1], taken[t], near, gaps)
        if count == 0:
            continue
        width = _touch(taken[t], indptr, indices, place, columns, 0)
        for k in range(count):
            width = _touch(near[k], indptr, indices, place, columns, width)
        for k in range(count):
            leads[k, :width] = 0.0
            for p in range(indptr[taken[t]], indptr[taken[t] + 1]):
                leads[k, place[indices[p]]] += data[p]
            for p in range(indptr[near[k]], indptr[near[k] + 1]):
                leads[k, place[indices[p]]] -= data[p]
        lower[:width, :width] = 0.0
        _add_curvature(weight[t], gaps[:count], bound, leads, width, weights, ratios, slopes, lower)
        for a in range(width):
            for b in range(a):
                information[columns[a], columns[b]] += lower[a, b]
                information[columns[b], columns[a]] += lower[a, b]
            information[columns[a], columns[a]] += lower[a, a]
            place[columns[a]] = -1


@part
def _add_curvature(
    times: float,
    gaps: Floats,
    bound: float,
    leads: Floats,
    width: int,
    weights: Floats,
    ratios: Floats,
    slopes: Floats,
    lower: Floats,
) -> None:
    """Add one decision's minus Hessian, so many times, in the coordinates of its leads (chosen row - rival), below the diagonal."""
    if gaps.size == 0:
        return
    if gaps.size == 1:
        x = -ROOT_HALF * gaps[0]
        _add_outer(times * 0.5 * bend_at(x, log_cdf_and_ratio(x)[1]), leads[0], width, lower)
        return
    _, left, step, nodes = integrate(gaps, bound, weights)
    slopes[:nodes, :width] = 0.0
    for k in range(gaps.size):
        ratios_at(left - gaps[k], step, nodes, ratios)
        mean, bend = 0.0, 0.0
        for q in range(nodes):
            mean += weights[q] * ratios[q]
            bend += weights[q] * bend_at(left - gaps[k] + q * step, ratios[q])
        _add_outer(times * bend, leads[k], width, lower)
        for q in range(nodes):
            for a in range(width):
                slopes[q, a] += (ratios[q] - mean) * leads[k, a]
    for q in range(nodes):
        _add_outer(-times * weights[q], slopes[q], width, lower)


@part
def _add_outer(scale: float, vector: Floats, width: int, lower: Floats) -> None:
    """Add scale * vector vector' on and below the diagonal."""
    for a in range(width):
        weight = scale * vector[a]
        for b in range(a + 1):
            lower[a, b] += weight * vector[b]


@part
def _touch(row: int, indptr: Ints, indices: Ints, place: Ints, columns: Ints, width: int) -> int:
    """Give each column of a sparse row its place among the columns met so far; how many there are now."""
    for p in range(indptr[row], indptr[row + 1]):
        if place[indices[p]] < 0:
            place[indices[p]] = width
            columns[width] = indices[p]
            width += 1
    return width
