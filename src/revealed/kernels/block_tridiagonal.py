"""Precisions of paths: symmetric matrices that couple each node with the one before it.

    A = blocks A_n (D, D) on the diagonal, diag(c_n) between nodes n - 1 and n,   A = L L'

L has lower triangular blocks L_n on its diagonal and B_n = diag(c_n) L_{n-1}^-T, which is upper
triangular, to their left. What is kept of it are the inverses of L_n, and B_n: with these, solving
takes one pass over the nodes, as does what is needed of A^-1. Several paths stand one after the
other; nothing couples the first node of one with the last of another. Work is linear in the number
of nodes (Rue and Held 2005, chapter 2).
"""

import math
from typing import NamedTuple

import numpy as np

from revealed._types import Bools, Floats
from revealed.kernels._compile import compiled


class ProductLimits(NamedTuple):
    """least: roots are multiplied while their product is between this and one over it."""

    least: float


# one more root, of whatever size, leaves such a product a number
PRODUCT_LIMITS = ProductLimits(least=1e-100)


class PathFactor(NamedTuple):
    """The factor of a precision: inverse (N, D, D) of the blocks L_n, and below (N, D, D), B_n."""

    inverse: Floats
    below: Floats


def make_path_factor(nodes: int, width: int) -> PathFactor:
    """Arrays for a factor; what lies above the diagonals, or below those of B, stays zero."""
    return PathFactor(np.zeros((nodes, width, width)), np.zeros((nodes, width, width)))


@compiled
def factorise_path(
    curvature: Floats,
    diagonal: Floats,
    coupling: Floats,
    start: Floats,
    first: Bools,
    factor: PathFactor,
) -> float:
    """Write the factor of A, whose blocks are curvature_n + diag(diagonal_n); returns log |A|.

    curvature: (N, D, D), of which the lower triangles are read. diagonal, coupling: (N, D). start:
    (D, D), added to the block of each path's first node. NaN where rounding leaves A without a
    factor.
    """
    count, width = diagonal.shape
    block, log_det, product = np.empty((width, width)), 0.0, 1.0
    inverse, below = factor.inverse, factor.below
    for n in range(count):
        for i in range(width):
            for j in range(i + 1):
                block[i, j] = curvature[n, i, j]
                if first[n]:
                    block[i, j] += start[i, j]
            block[i, i] += diagonal[n, i]
        if not first[n]:
            # B_n, and what it takes from the block
            for i in range(width):
                for j in range(i, width):
                    below[n, i, j] = coupling[n, i] * inverse[n - 1, j, i]
            for i in range(width):
                for j in range(i + 1):
                    total = 0.0
                    for k in range(i, width):
                        total += below[n, i, k] * below[n, j, k]
                    block[i, j] -= total
        # the Cholesky factor in place
        for j in range(width):
            for k in range(j):
                block[j, j] -= block[j, k] * block[j, k]
            if not block[j, j] > 0.0:
                return math.nan
            # divided once: the nodes wait for one another, and divisions take longest
            root = math.sqrt(block[j, j])
            share = 1.0 / root
            inverse[n, j, j] = share
            # a product of roots needs one logarithm, while it is a number like others
            product *= root
            if not PRODUCT_LIMITS.least < product < 1.0 / PRODUCT_LIMITS.least:
                log_det += math.log(product)
                product = 1.0
            for i in range(j + 1, width):
                for k in range(j):
                    block[i, j] -= block[i, k] * block[j, k]
                block[i, j] *= share
        # and its inverse, whose diagonal is there
        for j in range(width):
            for i in range(j + 1, width):
                total = 0.0
                for k in range(j, i):
                    total -= block[i, k] * inverse[n, k, j]
                inverse[n, i, j] = total * inverse[n, i, i]
    return 2.0 * (log_det + math.log(product))


@compiled
def solve_lower(factor: PathFactor, first: Bools, right: Floats, x: Floats) -> None:
    """Write x = L^-1 right, both (N, D); they may be one array."""
    inverse, below = factor.inverse, factor.below
    count, width = x.shape
    left = np.empty(width)
    for n in range(count):
        for i in range(width):
            total = right[n, i]
            if not first[n]:
                for j in range(i, width):
                    total -= below[n, i, j] * x[n - 1, j]
            left[i] = total
        for i in range(width):
            total = 0.0
            for j in range(i + 1):
                total += inverse[n, i, j] * left[j]
            x[n, i] = total


@compiled
def solve_upper(factor: PathFactor, first: Bools, right: Floats, x: Floats) -> None:
    """Write x = L^-T right, both (N, D); they may be one array."""
    inverse, below = factor.inverse, factor.below
    count, width = x.shape
    left = np.empty(width)
    # L' is upper triangular: the last node is known first
    for n in range(count - 1, -1, -1):
        for i in range(width):
            total = right[n, i]
            if n + 1 < count and not first[n + 1]:
                for j in range(i + 1):
                    total -= below[n + 1, j, i] * x[n + 1, j]
            left[i] = total
        for i in range(width):
            total = 0.0
            for j in range(i, width):
                total += inverse[n, j, i] * left[j]
            x[n, i] = total


@compiled
def multiply_upper(factor: PathFactor, first: Bools, x: Floats, out: Floats) -> None:
    """Write out = L'x, both (N, D) and not one array: what `solve_upper` undoes."""
    inverse, below = factor.inverse, factor.below
    count, width = x.shape
    for n in range(count):
        # L_n'x_n from the inverse of L_n, by substitution: L_n^-T y = x_n
        for i in range(width - 1, -1, -1):
            total = x[n, i]
            for j in range(i + 1, width):
                total -= inverse[n, j, i] * out[n, j]
            out[n, i] = total / inverse[n, i, i]
    for n in range(count - 1):
        if not first[n + 1]:
            for i in range(width):
                for j in range(i + 1):
                    out[n, i] += below[n + 1, j, i] * x[n + 1, j]


@compiled
def write_path_moments(
    factor: PathFactor, first: Bools, variance: Floats, lagged: Floats, at_first: Floats
) -> None:
    """Write what is needed of A^-1, the covariance of a normal law of paths.

    variance (N, D): of each number. lagged (N, D): its covariance with the same coordinate of the
    node before. at_first (D, D): the covariances of the first nodes, added up over paths.
    """
    inverse, below = factor.inverse, factor.below
    count, width = variance.shape
    shape = (width, width)
    covariance, gain, cross = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    at_first[:] = 0.0
    for n in range(count - 1, -1, -1):
        coupled = n + 1 < count and not first[n + 1]
        if coupled:
            # given the next node, this one moves by gain = -L_n^-T B_{n+1}' times it
            for i in range(width):
                for j in range(width):
                    total = 0.0
                    for k in range(max(i, j), width):
                        total -= inverse[n, k, i] * below[n + 1, j, k]
                    gain[i, j] = total
            for i in range(width):
                for j in range(width):
                    total = 0.0
                    for k in range(width):
                        # covariance still is that of the next node
                        total += gain[i, k] * covariance[k, j]
                    cross[i, j] = total
                lagged[n + 1, i] = cross[i, i]
        for i in range(width):
            for j in range(i + 1):
                total = 0.0
                for k in range(i, width):
                    total += inverse[n, k, i] * inverse[n, k, j]
                if coupled:
                    for k in range(width):
                        total += cross[i, k] * gain[j, k]
                covariance[i, j] = covariance[j, i] = total
            variance[n, i] = covariance[i, i]
        if first[n]:
            lagged[n] = 0.0
            # a start may have any precision, so that all of its covariances are needed
            at_first += covariance
