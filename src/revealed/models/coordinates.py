"""Free coordinates of coefficients, some blocks of which sum to zero."""

from __future__ import annotations

import numpy as np

from revealed._types import Floats, Ints
from revealed.data.blocks import Coefficients


def coordinates(decisions: Coefficients, sum_to_zero: bool | None = None) -> tuple[Floats, Floats]:
    """(K, D) orthonormal basis of the free coefficients, and (K, L) unit constants of blocks.

    sum_to_zero: True or False for all blocks or none; None follows the blocks. The L columns are
    constant within one sum-to-zero block each, and zero elsewhere.
    """
    parts, columns, at = [], [], 0
    width = len(decisions.names)
    for block in decisions.blocks:
        rows = slice(at, at + block.size)
        sums_to_zero = block.sum_to_zero if sum_to_zero is None else sum_to_zero
        # A sum-to-zero block has one free direction less than coefficients.
        part = np.zeros((width, block.size - sums_to_zero))
        part[rows] = helmert(block.size) if sums_to_zero else np.eye(block.size)
        parts.append(part)
        if sums_to_zero:
            column = np.zeros(width)
            column[rows] = 1.0 / np.sqrt(block.size)
            columns.append(column)
        at += block.size
    basis = np.ascontiguousarray(np.hstack(parts))
    if basis.shape[1] == 0:
        raise ValueError(
            "nothing is left to learn: every block has one coefficient and sums to zero, "
            "so it is zero"
        )
    return basis, np.ascontiguousarray(np.array(columns).T) if columns else np.zeros((width, 0))


def helmert(size: int) -> Floats:
    """(size, size - 1) orthonormal columns that sum to zero: Helmert contrasts."""
    basis = np.zeros((size, size - 1))
    for i in range(size - 1):
        # Column i: the mean of the first i + 1 entries against entry i + 1.
        basis[: i + 1, i] = 1.0
        basis[i + 1, i] = -(i + 1.0)
        basis[:, i] /= np.sqrt((i + 1.0) * (i + 2.0))
    return basis


def block_of_coefficient(decisions: Coefficients) -> Ints:
    """(K,) the position of the block each coefficient belongs to."""
    sizes = [block.size for block in decisions.blocks]
    return np.repeat(np.arange(len(decisions.blocks)), sizes).astype(np.int64)
