"""The curvature of the exact log-likelihood: minus its Hessian in v, decision by decision.

With q the normalised integrand of `choice_exact.py`, r_j = phi/Phi at x_j = z - mu_j and
d_j = chosen row - row_j,

    minus Hessian = sum over j of E_q[r_j (x_j + r_j)] d_j d_j' - Cov_q[sum over j of r_j d_j].

Where v is the mode or the truth, it is the observed information.
"""

import numpy as np

from revealed._types import Floats, Ints
from revealed.kernels._compile import compiled, compiled_internal, inlined
from revealed.kernels.choice_exact import (
    ROOT_HALF,
    allocate_workspace,
    find_relevant_rivals,
    integrate_choice,
    log_cdf_curvature,
    write_ratios,
)
from revealed.kernels.normal import log_cdf_and_ratio


@compiled
def add_information_dense(
    mu: Floats, start: Ints, chosen_row: Ints, weight: Floats, rows: Floats, information: Floats
) -> None:
    """Add minus the Hessian in v of the weighted sum of log P to information (K, K).

    mu: (P,) rows @ v. start: (T + 1,) and chosen_row: (T,) as in `choice_exact.py`. weight: (T,).
    """
    rival_rows, gaps, weights = allocate_workspace(start)
    width = rows.shape[1]
    differences = np.empty((gaps.size, width))
    scores = np.empty((weights.size, width))
    ratios = np.empty(weights.size)
    lower = np.zeros((width, width))
    for t in range(chosen_row.size):
        count, bound = find_relevant_rivals(
            mu, start[t], start[t + 1], chosen_row[t], rival_rows, gaps
        )
        # Chosen row minus rival: what a change of v adds to the chosen action's lead.
        for k in range(count):
            for a in range(width):
                differences[k, a] = rows[chosen_row[t], a] - rows[rival_rows[k], a]
        add_decision_information(
            weight[t], gaps[:count], bound, differences, width, weights, ratios, scores, lower
        )
    # All sums were made on and below the diagonal; the rest follows by symmetry.
    for a in range(width):
        for b in range(a):
            information[a, b] += lower[a, b]
            information[b, a] += lower[a, b]
        information[a, a] += lower[a, a]


@compiled
def add_information_sparse(
    mu: Floats,
    start: Ints,
    chosen_row: Ints,
    weight: Floats,
    indptr: Ints,
    indices: Ints,
    data: Floats,
    information: Floats,
) -> None:
    """The same as `add_information_dense` for rows in compressed sparse form.

    Each decision works in the columns that its rows touch, numbered afresh, and is then added.
    """
    rival_rows, gaps, weights = allocate_workspace(start)
    # No decision touches more columns than it has non-zeros, or than there are.
    most = 0
    for t in range(chosen_row.size):
        most = max(most, indptr[start[t + 1]] - indptr[start[t]])
    most = min(most, information.shape[0])
    local_index = np.full(information.shape[0], -1)
    columns = np.empty(most, np.int64)
    differences = np.empty((gaps.size, most))
    scores = np.empty((weights.size, most))
    ratios = np.empty(weights.size)
    lower = np.zeros((most, most))
    for t in range(chosen_row.size):
        count, bound = find_relevant_rivals(
            mu, start[t], start[t + 1], chosen_row[t], rival_rows, gaps
        )
        if count == 0:
            continue
        # Number the columns of the chosen row, then those of the rivals that are new.
        width = _index_columns(chosen_row[t], indptr, indices, local_index, columns, 0)
        for k in range(count):
            width = _index_columns(rival_rows[k], indptr, indices, local_index, columns, width)
        # Chosen row minus rival, dense in those columns.
        for k in range(count):
            differences[k, :width] = 0.0
            for p in range(indptr[chosen_row[t]], indptr[chosen_row[t] + 1]):
                differences[k, local_index[indices[p]]] += data[p]
            for p in range(indptr[rival_rows[k]], indptr[rival_rows[k] + 1]):
                differences[k, local_index[indices[p]]] -= data[p]
        lower[:width, :width] = 0.0
        add_decision_information(
            weight[t], gaps[:count], bound, differences, width, weights, ratios, scores, lower
        )
        # Back to the columns of v, and forget their numbers for the next decision.
        for a in range(width):
            for b in range(a):
                information[columns[a], columns[b]] += lower[a, b]
                information[columns[b], columns[a]] += lower[a, b]
            information[columns[a], columns[a]] += lower[a, a]
            local_index[columns[a]] = -1


@inlined
def add_decision_information(
    weight: float,
    gaps: Floats,
    bound: float,
    differences: Floats,
    width: int,
    weights: Floats,
    ratios: Floats,
    scores: Floats,
    lower: Floats,
) -> None:
    """Add one decision's minus Hessian, times its weight, to lower, on and below the diagonal.

    In the coordinates of its differences (rivals, width), chosen row minus rival. weights, ratios
    (nodes,) and scores (nodes, width) are written to.
    """
    if gaps.size == 0:
        return
    # One rival: P = Phi(-gap / sqrt(2)), whose second derivative carries a factor 1/2.
    if gaps.size == 1:
        x = -ROOT_HALF * gaps[0]
        _add_outer_product(
            weight * 0.5 * log_cdf_curvature(x, log_cdf_and_ratio(x)[1]),
            differences[0],
            width,
            lower,
        )
        return
    _, left, step, nodes = integrate_choice(gaps, bound, weights)
    scores[:nodes, :width] = 0.0
    for k in range(gaps.size):
        write_ratios(left - gaps[k], step, nodes, ratios)
        # E_q[r] and E_q[r (x + r)] of one rival: the first term of the formula.
        mean, curvature = 0.0, 0.0
        for q in range(nodes):
            mean += weights[q] * ratios[q]
            curvature += weights[q] * log_cdf_curvature(left - gaps[k] + q * step, ratios[q])
        _add_outer_product(weight * curvature, differences[k], width, lower)
        # Its part of sum over j of (r_j - E_q[r_j]) d_j at every node.
        for q in range(nodes):
            for a in range(width):
                scores[q, a] += (ratios[q] - mean) * differences[k, a]
    # The covariance over q: the second term.
    for q in range(nodes):
        _add_outer_product(-weight * weights[q], scores[q], width, lower)


@compiled_internal
def _add_outer_product(scale: float, vector: Floats, width: int, lower: Floats) -> None:
    """Add scale * vector vector' to lower, on and below the diagonal."""
    for a in range(width):
        scaled = scale * vector[a]
        for b in range(a + 1):
            lower[a, b] += scaled * vector[b]


@compiled_internal
def _index_columns(
    row: int, indptr: Ints, indices: Ints, local_index: Ints, columns: Ints, width: int
) -> int:
    """How many columns are numbered, after those of one more sparse row.

    local_index: (K,) the number of a column, or -1. columns: the column of a number. width: how
    many were numbered before.
    """
    for p in range(indptr[row], indptr[row + 1]):
        if local_index[indices[p]] < 0:
            local_index[indices[p]] = width
            columns[width] = indices[p]
            width += 1
    return width
