"""A cubic polynomial fitted to values and gradients of a smooth function.

The log-likelihood of many decisions is smooth on the scale of the posterior: in coordinates x in
which the posterior is about standard normal,

    f(x) = c + a' x + x' B x + C[x, x, x] + rest,

where C falls as one over the root of the number of decisions, and the rest as one over the number.
One evaluation with its gradient gives D + 1 equations, so that a few dozen determine all
coefficients, by least squares.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg as sla

from revealed._types import Floats, Ints


def count_coefficients(width: int) -> int:
    """How many coefficients a cubic polynomial in so many variables has."""
    return (width + 1) * (width + 2) * (width + 3) // 6


def even_residual_sd(x: Floats, values: Floats) -> float:
    """The sd of what terms of fourth and higher even order add to a log density at some points.

    x: (2 n, D) points y, then all -y, in coordinates in which its mode is at zero and its curvature
    the identity. values: (2 n,) relative to the mode's. A pair's mean has no odd terms; what is no
    multiple of |y|^2 in it is neither quadratic.
    """
    even = values.reshape(2, -1).mean(axis=0)
    square = (x[: len(even)] ** 2).sum(axis=1)
    return float((even - square * (square @ even) / (square @ square)).std())


@dataclass(frozen=True, eq=False)
class CubicPolynomial:
    """c + a' x + x' B x + C[x, x, x] in D variables.

    The cubic term is constant along rays beyond `radius`: far from where it was fitted it would
    outgrow every normal density.
    """

    constant: float
    linear: Floats
    quadratic: Floats
    cubic: Floats
    radius: float

    @staticmethod
    def fit(x: Floats, values: Floats, gradients: Floats, radius: float) -> CubicPolynomial:
        """The polynomial that is nearest, in least squares, to values (n,) and gradients (n, D).

        x: (n, D), where they were taken; n (D + 1) should be twice the number of coefficients.
        """
        width = x.shape[1]
        pairs, triples = _index_sets(width)
        design = np.vstack([_monomials(x, pairs, triples), _derivatives(x, pairs, triples)])
        target = np.concatenate([values, gradients.T.ravel()])
        # columns brought to one length, so that the normal equations are well conditioned
        length = np.sqrt((design**2).sum(axis=0))
        design /= length
        gram = design.T @ design
        # far below any noise: keeps the factor from failing where equations are just enough
        gram[np.diag_indices_from(gram)] += 1e-11
        solution = sla.cho_solve(sla.cho_factor(gram), design.T @ target) / length
        return CubicPolynomial._from_coefficients(solution, width, radius)

    @staticmethod
    def _from_coefficients(coefficients: Floats, width: int, radius: float) -> CubicPolynomial:
        pairs, triples = _index_sets(width)
        ends = np.cumsum([1, width, len(pairs), len(triples)])
        quadratic, cubic = np.zeros((width, width)), np.zeros((width, width, width))
        # a product of different variables stands once; whoever evaluates sums over all orders
        quadratic[tuple(pairs.T)] = coefficients[ends[1] : ends[2]]
        cubic[tuple(triples.T)] = coefficients[ends[2] : ends[3]]
        return CubicPolynomial(
            float(coefficients[0]), coefficients[1 : ends[1]], quadratic, cubic, radius
        )

    def third_derivatives(self) -> Floats:
        """(D, D, D) at zero."""
        orders = ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))
        return np.ascontiguousarray(sum(self.cubic.transpose(order) for order in orders))

    def __call__(self, x: Floats) -> Floats:
        """(N,) the polynomial at each of x (N, D)."""
        out, width = np.empty(len(x)), x.shape[1]
        flat = self.cubic.reshape(width, width * width)
        # some at a time: C[x] is a D x D matrix for each of them
        at_a_time = max(1, 2_000_000 // (width * width))
        for low in range(0, len(x), at_a_time):
            part = x[low : low + at_a_time]
            norm = np.sqrt((part**2).sum(axis=1))
            near = part * np.minimum(1.0, self.radius / np.maximum(norm, 1e-300))[:, None]
            matrices = (near @ flat).reshape(len(part), width, width)
            cubic = np.einsum("nj,njk,nk->n", near, matrices, near, optimize=True)
            quadratic = ((part @ self.quadratic) * part).sum(axis=1)
            out[low : low + at_a_time] = self.constant + part @ self.linear + quadratic + cubic
        return out


def _index_sets(width: int) -> tuple[Ints, Ints]:
    """(P, 2) pairs i <= j and (Q, 3) triples i <= j <= k of variables."""
    pairs = np.argwhere(np.triu(np.ones((width, width), dtype=np.bool_)))
    i, j, k = np.ogrid[:width, :width, :width]
    triples = np.argwhere((i <= j) & (j <= k))
    return pairs, triples


def _monomials(x: Floats, pairs: Ints, triples: Ints) -> Floats:
    """(n, coefficients) one, the variables, and their products of two and three."""
    return np.hstack(
        [
            np.ones((len(x), 1)),
            x,
            x[:, pairs[:, 0]] * x[:, pairs[:, 1]],
            x[:, triples[:, 0]] * x[:, triples[:, 1]] * x[:, triples[:, 2]],
        ]
    )


def _derivatives(x: Floats, pairs: Ints, triples: Ints) -> Floats:
    """(D n, coefficients) the derivatives of all monomials, by one variable after the other."""
    count, width = x.shape
    out = np.zeros((width, count, 1 + width + len(pairs) + len(triples)))
    second, third = 1 + width, 1 + width + len(pairs)
    for d in range(width):
        out[d, :, 1 + d] = 1.0
    # the product rule: each factor in turn is left out, where it is the variable
    for p, (i, j) in enumerate(pairs):
        out[i, :, second + p] += x[:, j]
        out[j, :, second + p] += x[:, i]
    for t, (i, j, k) in enumerate(triples):
        out[i, :, third + t] += x[:, j] * x[:, k]
        out[j, :, third + t] += x[:, i] * x[:, k]
        out[k, :, third + t] += x[:, i] * x[:, j]
    return out.reshape(width * count, -1)
