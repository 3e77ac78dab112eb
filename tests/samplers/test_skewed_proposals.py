"""Proposals as skewed as the posterior: their density, and the third derivatives they come from."""

from __future__ import annotations

import numpy as np
import pytest

from revealed._types import Floats
from revealed.samplers.skewed_proposals import (
    SkewedLaw,
    cubic_sd,
    difference_design,
    third_derivatives,
)
from tests.support.statistical_asserts import assert_error, must_fail


def random_third(rng: np.random.Generator, width: int) -> Floats:
    made = rng.standard_normal((width, width, width))
    orders = ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))
    return np.ascontiguousarray(sum(made.transpose(order) for order in orders) / 6.0)


@pytest.mark.parametrize("width", [1, 2, 3, 5, 8])
def test_third_derivatives_of_a_cubic_are_found_from_its_gradients(width: int) -> None:
    rng = np.random.default_rng(width)
    third, linear = random_third(rng, width), rng.standard_normal(width)
    half = difference_design(width)
    x = np.concatenate([half, -half])
    by_square = 0.5 * np.einsum("ijk,ni,nj->nk", third, x, x)
    gradients = linear + x @ rng.standard_normal((width, width)) + by_square
    np.testing.assert_allclose(third_derivatives(gradients, linear), third, atol=1e-12)


@pytest.mark.parametrize("width", [1, 2, 5])
def test_jacobian_is_that_of_differences(width: int) -> None:
    rng = np.random.default_rng(width)
    law = SkewedLaw(0.1 * random_third(rng, width), 30.0, 1.0)
    z, h = rng.standard_normal((1, width)), 1e-5
    columns = [
        (law.skew(z + h * e)[0] - law.skew(z - h * e)[0])[0] / (2 * h) for e in np.eye(width)
    ]
    log_jacobian = float(law.skew(z)[1][0])
    expected = np.linalg.slogdet(np.array(columns))[1]
    assert_error(log_jacobian - expected, 1e-7)
    if width > 1:
        with must_fail("a Jacobian that is left out"):
            assert_error(0.0 - expected, 1e-7)


def test_density_agrees_with_a_skewed_one_to_first_order() -> None:
    """Of a cubic term eight times as small, what is left of it is about 64 times as small.

    But for third powers of a coordinate, which are left out here.
    """
    rng = np.random.default_rng(1)
    third, z = random_third(rng, 4), rng.standard_normal((2000, 4))
    third[np.arange(4), np.arange(4), np.arange(4)] = 0.0
    left = []
    for size in (0.04, 0.005):
        x, log_jacobian = SkewedLaw(size * third, 30.0, 1.0).skew(z)
        cubic = size * np.einsum("ijk,ni,nj,nk->n", third, x, x, x) / 6.0
        log_weights = -0.5 * (x**2).sum(axis=1) + cubic + 0.5 * (z**2).sum(axis=1) + log_jacobian
        left.append(float(log_weights.std()))
    assert left[1] < left[0] / 40.0


def test_sd_of_the_cubic_term_is_that_of_its_monomials() -> None:
    """x^3 has variance 15 under a standard normal law, x^2 y has 3, and x y z has 1."""
    third = np.zeros((3, 3, 3))
    third[0, 0, 0] = 6.0
    assert cubic_sd(third) == pytest.approx(np.sqrt(15.0))
    third[0, 0, 0] = 0.0
    third[0, 0, 1] = third[0, 1, 0] = third[1, 0, 0] = 2.0
    assert cubic_sd(third) == pytest.approx(np.sqrt(3.0))
