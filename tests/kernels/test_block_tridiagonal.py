"""Factors of precisions of paths against dense linear algebra."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from revealed._types import Bools, Floats
from revealed.kernels.block_tridiagonal import (
    PathFactor,
    factorise_path,
    make_path_factor,
    multiply_upper,
    solve_lower,
    solve_upper,
    write_path_moments,
)

NODES, WIDTH = 7, 3


def problem(first: list[int]) -> tuple[Floats, Floats, Floats, Floats, Bools, Floats]:
    """Blocks of a precision, and the whole of it."""
    rng = np.random.default_rng(1)
    root = rng.standard_normal((NODES, WIDTH, WIDTH))
    curvature = root @ root.transpose(0, 2, 1)
    diagonal, coupling = rng.uniform(3.0, 4.0, (2, NODES, WIDTH))
    coupling -= 2.5
    start = np.eye(WIDTH) + 0.3
    begins = np.isin(np.arange(NODES), first)
    whole = np.zeros((NODES, WIDTH, NODES, WIDTH))
    for n in range(NODES):
        whole[n, :, n] = curvature[n] + np.diag(diagonal[n]) + (start if begins[n] else 0.0)
        if not begins[n]:
            whole[n, :, n - 1] = whole[n - 1, :, n] = np.diag(coupling[n])
    size = NODES * WIDTH
    return curvature, diagonal, coupling, start, begins, whole.reshape(size, size)


def factor_of(blocks: Any) -> tuple[PathFactor, float]:
    factor = make_path_factor(NODES, WIDTH)
    curvature, diagonal, coupling, start, first, _ = blocks
    return factor, factorise_path(curvature, diagonal, coupling, start, first, factor)


@pytest.mark.parametrize("first", [[0], [0, 3], [0, 1, 6]])
def test_factor_solves_and_has_the_determinant(first: list[int]) -> None:
    blocks = problem(first)
    (factor, log_det), begins, whole = factor_of(blocks), blocks[4], blocks[5]
    assert log_det == pytest.approx(np.linalg.slogdet(whole)[1], rel=1e-12)
    root = np.linalg.cholesky(whole)
    right = np.random.default_rng(2).standard_normal((NODES, WIDTH))
    x, y = np.empty_like(right), np.empty_like(right)
    solve_lower(factor, begins, right, x)
    np.testing.assert_allclose(x.ravel(), np.linalg.solve(root, right.ravel()), rtol=1e-9)
    solve_upper(factor, begins, right, y)
    np.testing.assert_allclose(y.ravel(), np.linalg.solve(root.T, right.ravel()), rtol=1e-9)
    multiply_upper(factor, begins, y, x)
    np.testing.assert_allclose(x, right, rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1e30, 1e200])
def test_determinants_may_be_beyond_all_numbers(scale: float) -> None:
    *arrays, first, whole = problem([0, 3])
    log_det = factor_of((*(scale * array for array in arrays), first, whole))[1]
    expected = np.linalg.slogdet(whole)[1] + len(whole) * np.log(scale)
    assert log_det == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("first", [[0], [0, 3], [0, 1, 6]])
def test_moments_are_those_of_the_inverse(first: list[int]) -> None:
    blocks = problem(first)
    factor, begins = factor_of(blocks)[0], blocks[4]
    inverse = np.linalg.inv(blocks[5]).reshape(NODES, WIDTH, NODES, WIDTH)
    variance, lagged = np.empty((2, NODES, WIDTH))
    at_first = np.empty((WIDTH, WIDTH))
    write_path_moments(factor, begins, variance, lagged, at_first)
    for n in range(NODES):
        np.testing.assert_allclose(variance[n], np.diag(inverse[n, :, n]), rtol=1e-9)
        expected = np.zeros(WIDTH) if begins[n] else np.diag(inverse[n, :, n - 1])
        np.testing.assert_allclose(lagged[n], expected, rtol=1e-9, atol=1e-12)
    total = sum(inverse[n, :, n] for n in first)
    np.testing.assert_allclose(at_first, total, rtol=1e-9)


def test_a_matrix_without_a_factor_is_told() -> None:
    blocks = problem([0])
    negative = -10.0 * np.ones((NODES, WIDTH))
    factor = make_path_factor(NODES, WIDTH)
    assert np.isnan(factorise_path(blocks[0], negative, blocks[2], blocks[3], blocks[4], factor))
