"""A cubic polynomial from values and gradients."""

from __future__ import annotations

import numpy as np
import pytest

from revealed._types import Floats
from revealed.samplers.cubic import CubicPolynomial, count_coefficients, even_residual_sd


def random_cubic(rng: np.random.Generator, width: int) -> CubicPolynomial:
    return CubicPolynomial(
        2.0,
        rng.standard_normal(width),
        rng.standard_normal((width, width)),
        rng.standard_normal((width, width, width)),
        np.inf,
    )


def gradient(p: CubicPolynomial, x: Floats) -> Floats:
    """By the product rule, written out."""
    first = p.linear + x @ (p.quadratic + p.quadratic.T)
    c = p.cubic + p.cubic.transpose(1, 0, 2) + p.cubic.transpose(2, 0, 1)
    return np.asarray(first + np.einsum("lij,ni,nj->nl", c, x, x))


@pytest.mark.parametrize("width", [1, 2, 5])
def test_cubic_is_found_exactly_from_values_and_gradients(width: int) -> None:
    rng = np.random.default_rng(width)
    truth = random_cubic(rng, width)
    count = int(np.ceil(3 * count_coefficients(width) / (width + 1)))
    x = rng.standard_normal((count, width))
    found = CubicPolynomial.fit(x, truth(x), gradient(truth, x), np.inf)
    elsewhere = 3.0 * rng.standard_normal((50, width))
    np.testing.assert_allclose(found(elsewhere), truth(elsewhere), rtol=1e-5)


def test_count_is_that_of_all_monomials() -> None:
    assert [count_coefficients(width) for width in (1, 2, 20)] == [4, 10, 1771]


def test_cubic_term_is_constant_along_rays_beyond_the_radius() -> None:
    p = CubicPolynomial(0.0, np.zeros(2), -0.5 * np.eye(2), np.ones((2, 2, 2)), radius=2.0)
    direction = np.array([[0.6, 0.8]])
    cubic = [float(p(t * direction)[0] + 0.5 * t**2) for t in (1.0, 2.0, 5.0, 50.0)]
    assert cubic[0] == pytest.approx(1.4**3)
    np.testing.assert_allclose(cubic[1:], (2.0 * 1.4) ** 3)


def test_even_residuals_are_what_no_cubic_polynomial_explains() -> None:
    half = np.random.default_rng(3).standard_normal((30, 4))
    x = np.concatenate([half, -half])
    square = (x**2).sum(axis=1)
    odd = x[:, 0] ** 3 - 2.0 * x[:, 1] * x[:, 2] * x[:, 3] + x[:, 0]
    assert even_residual_sd(x, odd - 0.5 * square) < 1e-12
    quartic = 0.1 * x[:, 0] ** 4
    rest = quartic - square * (square @ quartic) / (square @ square)
    assert even_residual_sd(x, odd - 0.5 * square + quartic) == pytest.approx(rest[:30].std())
