"""How much the choices say of the value: minus the second derivatives of their log-likelihood."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from revealed._types import Floats, Ints
from revealed.data.decisions import Decisions
from revealed.kernels import choice_logit
from revealed.kernels.choice_formula import write_information
from revealed.kernels.choice_information import add_information_dense, add_information_sparse
from revealed.kernels.noise import NoiseArguments


def information_matrix(
    d: Decisions, chosen_row: Ints, mu: Floats, weight: Floats, noise: NoiseArguments
) -> Floats:
    """(K, K) minus the Hessian of the weighted log-likelihood.

    mu: (P,) rows @ v. chosen_row: (T,). weight: (T,) how often each decision counts.
    """
    if noise.is_logit:
        return _logit_information(d, mu, weight)
    if not noise.is_normal:
        return _information_by_formula(d, chosen_row, mu, weight, noise)
    information = np.zeros((d.rows.shape[1], d.rows.shape[1]))
    if sp.issparse(d.rows):
        indptr, indices = d.rows.indptr.astype(np.int64), d.rows.indices.astype(np.int64)
        add_information_sparse(
            mu, d.start, chosen_row, weight, indptr, indices, d.rows.data, information
        )
    else:
        add_information_dense(mu, d.start, chosen_row, weight, d.rows, information)
    return information


def _logit_information(d: Decisions, mu: Floats, weight: Floats) -> Floats:
    """(K, K) minus the Hessian of the weighted log-likelihood under logit noise.

    The covariance of the rows under the choice probabilities, E[x x'] - E[x] E[x]', summed.
    """
    p = np.empty(len(mu))
    choice_logit.all_probabilities(mu, d.start, p)
    shape = (len(d), len(mu))
    by_decision = sp.csr_array((p, np.arange(len(mu)), d.start), shape=shape)
    mean = by_decision @ d.rows
    scaled = sp.diags_array(np.repeat(weight, d.sizes) * p) @ d.rows
    information = d.rows.T @ scaled - mean.T @ (sp.diags_array(weight) @ mean)
    return np.asarray(information.toarray() if sp.issparse(information) else information)


def _information_by_formula(
    d: Decisions, chosen_row: Ints, mu: Floats, weight: Floats, noise: NoiseArguments
) -> Floats:
    """(K, K) minus the Hessian of the weighted log-likelihood, by the formula of a noise.

    rows' W rows, W having a square for each decision, its second derivatives in mu (P,).
    """
    squares = np.empty(int((d.sizes**2).sum()))
    write_information(noise, mu, d.start, chosen_row, weight, squares)
    # W in compressed sparse form: each row has as many entries as its decision has rows.
    lengths = np.repeat(d.sizes, d.sizes)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    first = np.repeat(d.start[:-1], d.sizes)
    indices = np.arange(len(squares)) + np.repeat(first - indptr[:-1], lengths)
    curvature = sp.csr_array((squares, indices, indptr), shape=(len(mu), len(mu)))
    information = d.rows.T @ (curvature @ d.rows)
    return np.asarray(information.toarray() if sp.issparse(information) else information)
