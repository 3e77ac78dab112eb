"""Proposals that are as skewed as the posterior: a triangular map with its third derivatives.

In coordinates x in which the posterior is about standard normal, its log density is

    -|x|^2 / 2 + C[x, x, x] / 6 + terms of fourth order.

A Student vector z goes through the map of `kernels/skewed.py`, which turns a standard normal law
into one that agrees with this to first order in C, but for the third powers x_k^3: there it does
so near the mode, as the curve of a coordinate is no parabola, which would turn back. With
x_i^2 x_k the scale of x_k also moves its mean, and a skewed curve its mode, which `shift` makes up
for:

    shift_i = sum over k > i of C_ikk / 2 + C_iii / 3.

The density of a proposal is known, with its constant. z is a little wider than the posterior and
has heavier tails, so that no weight is large: under a log-concave likelihood weights are bounded.

C is found from gradients at pairs of points x and -x, as from

    gradient(x) + gradient(-x) - 2 gradient(0) = C[x, x, .] + terms of fifth order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from revealed._types import Floats, Ints
from revealed.kernels.skewed import write_skewed
from revealed.samplers.laplace_settings import LAPLACE


@dataclass(frozen=True, eq=False)
class SkewedLaw:
    """The law of the proposals x (D,).

    third: (D, D, D) third derivatives of the log density, symmetric. df, spread: of the Student
    vectors.
    """

    third: Floats
    df: float
    spread: float

    @staticmethod
    def of(third: Floats) -> SkewedLaw:
        """The law with tuning of its width and tails by `LAPLACE`."""
        df = LAPLACE.skewed_df_per_coordinate * max(3, len(third))
        return SkewedLaw(third, df, LAPLACE.skewed_spread)

    def skew(self, z: Floats) -> tuple[Floats, Floats]:
        """Proposals (n, D) from symmetric vectors z (n, D), and log |dx / dz| (n,)."""
        # a curve of amount a has the third derivative 3 a at its mode; from one on it would turn
        # back
        amount = np.clip(np.einsum("kkk->k", self.third) / 3.0, -0.9, 0.9)
        # C_ikk: how the scale of coordinate k changes along coordinate i
        by_square = np.einsum("ikk->ik", self.third)
        shift = amount + 0.5 * np.triu(by_square, 1).sum(axis=1)
        columns = np.ascontiguousarray(z.T)
        x, log_jacobian = np.empty_like(columns), np.empty(len(z))
        write_skewed(self.third, amount, shift, columns, x, log_jacobian)
        return np.ascontiguousarray(x.T), log_jacobian


def cubic_sd(third: Floats) -> float:
    """The sd of C[x, x, x] / 6 where x is standard normal: how far from normal a posterior is.

    With c the contraction of C over two of its coordinates, the variance is
    (6 |C|^2 + 9 |c|^2) / 36.
    """
    contracted = np.einsum("ikk->i", third)
    return float(np.sqrt((third**2).sum() / 6.0 + (contracted**2).sum() / 4.0))


def difference_design(width: int) -> Floats:
    """(n, D) points from whose gradients, and those of their negatives, C follows.

    They are the unit vectors, and sums of two unit vectors for some pairs of coordinates: all pairs
    within each half of the coordinates. Of three coordinates two are in the same half, so that a
    measured pair is in every triple, and the gradient has the third.
    """
    unit, pairs = np.eye(width), _pairs(width)
    return np.concatenate([unit, unit[pairs[:, 0]] + unit[pairs[:, 1]]])


def third_derivatives(gradients: Floats, centre: Floats) -> Floats:
    """(D, D, D) third derivatives of a function, averaged where several gradients have the same.

    gradients: (2 n, D) at the points of `difference_design`, then at their negatives. centre: (D,)
    the gradient at zero.
    """
    width, pairs = len(centre), _pairs(len(centre))
    second = gradients.reshape(2, -1, width).sum(axis=0) - 2.0 * centre
    squares, sums = second[:width], second[width:]
    # C[e_i + e_j, e_i + e_j, .] has C[e_i, e_j, .] twice
    products = 0.5 * (sums - squares[pairs[:, 0]] - squares[pairs[:, 1]])
    total, times = np.zeros((width, width, width)), np.zeros((width, width, width))
    own = np.arange(width)
    total[own, own] += squares
    times[own, own] += 1.0
    for i, j in ((0, 1), (1, 0)):
        total[pairs[:, i], pairs[:, j]] += products
        times[pairs[:, i], pairs[:, j]] += 1.0
    # each entry is the mean over all orders of its coordinates in which it was measured
    orders = ((0, 1, 2), (1, 2, 0), (2, 0, 1))
    summed, count = (
        np.asarray(sum(given.transpose(order) for order in orders)) for given in (total, times)
    )
    return np.ascontiguousarray(summed / count)


def _pairs(width: int) -> Ints:
    """(P, 2) pairs i < j of coordinates within the first half, and within the second."""
    i, j = np.triu_indices(width, 1)
    # half of the pairs are enough, see `difference_design`
    same = (i < width // 2) == (j < width // 2)
    return np.column_stack([i[same], j[same]])
