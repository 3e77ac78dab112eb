"""Priors in the coordinates of the decisions: v = basis @ q, with centred blocks summing to zero."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from understudy._arrays import Floats
from understudy.decisions import Block, Decisions
from understudy.priors import Flat, Gaussian, block_of_coefficient, coordinates, helmert, place

FALSE_ALARM = 1e-6
law = settings(deadline=None, derandomize=True)
BLOCKS = [Block("state", 3, True), Block("reward", 2, True), Block("bonus", 2)]


def decisions(blocks: list[Block]) -> Decisions:
    width = sum(b.size for b in blocks)
    return Decisions(np.eye(width), [0, width], blocks=blocks)


def covariance(width: int, seed: int = 0) -> Floats:
    root = np.random.default_rng(seed).standard_normal((width, width + 2))
    return np.asarray(root @ root.T)


def restricted(sigma: Floats, mean: Floats, constants: Floats) -> tuple[Floats, Floats]:
    """Mean and covariance of N(mean, sigma) given constants' v = 0, by the textbook formula for conditioning."""
    gain = sigma @ constants @ np.linalg.inv(constants.T @ sigma @ constants)
    return mean - gain @ constants.T @ mean, sigma - gain @ constants.T @ sigma


# ---- coordinates


@law
@given(st.lists(st.tuples(st.integers(1, 6), st.booleans()), min_size=1, max_size=4), st.sampled_from([None, False]))
def test_basis_and_constants_are_one_orthonormal_matrix(shape: list[tuple[int, bool]], centred: bool | None) -> None:
    d = decisions([Block(f"b{i}", size, flag) for i, (size, flag) in enumerate([*shape, (2, True)])])
    basis, constants = coordinates(d, centred)
    square = np.hstack([basis, constants])
    assert square.shape == (len(d.names), len(d.names))
    np.testing.assert_allclose(square.T @ square, np.eye(len(d.names)), atol=1e-12)
    assert constants.shape[1] == (sum(b.centred for b in d.blocks) if centred is None else 0)


def test_constants_mark_the_centred_blocks() -> None:
    basis, constants = coordinates(decisions(BLOCKS))
    assert basis.shape == (7, 5)
    expected = np.zeros((7, 2))
    expected[:3, 0] = 1 / np.sqrt(3)
    expected[3:5, 1] = 1 / np.sqrt(2)
    np.testing.assert_allclose(constants, expected)
    np.testing.assert_allclose(basis[:3].sum(axis=0), 0.0, atol=1e-12)
    np.testing.assert_array_equal(basis[5:, 3:], np.eye(2))


def test_the_prior_may_overrule_the_blocks() -> None:
    d = decisions(BLOCKS)
    assert place(Flat(centred=False), d).basis.shape == (7, 7)
    assert place(Flat(centred=True), d).basis.shape == (7, 4)
    assert place(Gaussian(centred=True), d).constants.shape == (7, 3)
    np.testing.assert_array_equal(place(Gaussian(centred=False), d).basis, np.eye(7))


def test_helmert_columns_sum_to_zero() -> None:
    assert helmert(1).shape == (1, 0)
    for size in (2, 3, 40):
        basis = helmert(size)
        np.testing.assert_allclose(basis.T @ basis, np.eye(size - 1), atol=1e-12)
        np.testing.assert_allclose(basis.sum(axis=0), 0.0, atol=1e-12)


def test_block_of_coefficient() -> None:
    np.testing.assert_array_equal(block_of_coefficient(decisions(BLOCKS)), [0, 0, 0, 1, 1, 2, 2])


# ---- precision and mean


def test_a_number_is_the_variance_in_every_direction() -> None:
    placed = place(Gaussian(4.0), decisions(BLOCKS))
    np.testing.assert_allclose(placed.precision, np.eye(5) / 4.0, atol=1e-15)
    assert not placed.flat
    assert not placed.has_mean


def test_the_default_is_the_wide_prior_of_the_paper() -> None:
    np.testing.assert_allclose(place(Gaussian(), decisions(BLOCKS)).precision, np.eye(5) / 2500.0, atol=1e-15)


VARIANCES: dict[str, tuple[Any, Floats]] = {
    "vector": (np.arange(1.0, 8.0), np.diag(np.arange(1.0, 8.0))),
    "list": ([1, 2, 3, 4, 5, 6, 7], np.diag(np.arange(1.0, 8.0))),
    "matrix": (covariance(7), covariance(7)),
    "mapping": ({"bonus": 3.0, "state": 1.0, "reward": 2.0}, np.diag([1.0, 1, 1, 2, 2, 3, 3])),
}


@pytest.mark.parametrize("case", VARIANCES)
def test_variance_is_restricted_to_what_sums_to_zero(case: str) -> None:
    variance, sigma = VARIANCES[case]
    mean = np.array([1.0, -2.0, 0.5, 3.0, 1.0, 7.0, -4.0])
    placed = place(Gaussian(variance, mean), decisions(BLOCKS))
    np.testing.assert_allclose(placed.precision, placed.basis.T @ np.linalg.inv(sigma) @ placed.basis)
    expected_mean, expected_covariance = restricted(sigma, mean, placed.constants)
    np.testing.assert_allclose(placed.basis @ np.linalg.inv(placed.precision) @ placed.basis.T, expected_covariance)
    np.testing.assert_allclose(placed.mean, expected_mean)
    assert placed.has_mean


@pytest.mark.parametrize("case", VARIANCES)
def test_nothing_is_restricted_when_nothing_is_centred(case: str) -> None:
    variance, sigma = VARIANCES[case]
    placed = place(Gaussian(variance, mean=2.0, centred=False), decisions(BLOCKS))
    np.testing.assert_allclose(placed.precision @ sigma, np.eye(7), atol=1e-9)
    np.testing.assert_allclose(placed.mean, np.full(7, 2.0))


def test_the_mean_is_projected_onto_what_sums_to_zero() -> None:
    d = decisions([Block("value", 3, True)])
    np.testing.assert_allclose(place(Gaussian(2.0, np.array([1.0, 2.0, 6.0])), d).mean, [-2.0, -1.0, 3.0])
    np.testing.assert_allclose(place(Gaussian(2.0, 5.0), d).mean, 0.0, atol=1e-12)


def test_flat() -> None:
    placed = place(Flat(), decisions(BLOCKS))
    assert placed.flat
    np.testing.assert_array_equal(placed.precision, np.zeros((5, 5)))
    np.testing.assert_array_equal(placed.log_density(np.ones((3, 7))), np.zeros(3))
    with pytest.raises(ValueError, match=r"a flat prior cannot be drawn from; give Gaussian\(variance\)"):
        placed.draw(np.random.default_rng(0), 1)


# ---- draws and density


@pytest.mark.parametrize("case", VARIANCES)
def test_draws_have_the_mean_and_covariance_of_the_prior(case: str) -> None:
    variance, sigma = VARIANCES[case]
    mean = np.array([1.0, -2.0, 0.5, 3.0, 1.0, 7.0, -4.0])
    size = 20_000
    placed = place(Gaussian(variance, mean), decisions(BLOCKS))
    draws = placed.draw(np.random.default_rng(11), size)
    assert draws.shape == (size, 7)
    np.testing.assert_allclose(draws @ placed.constants, 0.0, atol=1e-9)

    expected_mean, expected = restricted(sigma, mean, placed.constants)
    tests = 7 + 49
    reach = stats.norm.isf(FALSE_ALARM / (2 * tests))  # two sides, all entries together
    spread = np.diag(expected)
    assert (np.abs(draws.mean(axis=0) - expected_mean) <= reach * np.sqrt(spread / size)).all()
    error = np.sqrt((np.outer(spread, spread) + expected**2) / size)  # of a Gaussian sample covariance
    assert (np.abs((draws - expected_mean).T @ (draws - expected_mean) / size - expected) <= reach * error).all()


def test_draws_depend_on_the_generator_alone() -> None:
    placed = place(Gaussian(3.0), decisions(BLOCKS))
    one, two = (placed.draw(np.random.default_rng(5), 4) for _ in range(2))
    np.testing.assert_array_equal(one, two)


def test_log_density_is_gaussian_up_to_a_constant() -> None:
    placed = place(Gaussian(covariance(7), 1.0), decisions(BLOCKS))
    v = placed.draw(np.random.default_rng(2), 6)
    density = stats.multivariate_normal(np.zeros(5), np.linalg.inv(placed.precision))
    expected = density.logpdf((v - placed.mean) @ placed.basis)
    got = placed.log_density(v)
    np.testing.assert_allclose(got - got[0], expected - expected[0])
    np.testing.assert_allclose(placed.log_density(v[3]), got[3])
    np.testing.assert_allclose(placed.log_density(placed.mean), 0.0, atol=1e-12)


# ---- what it refuses, in a sentence

NUMBERS = "must be a number or numbers, not"
REFUSED: list[tuple[Any, str]] = [
    ("flat", "prior must be us.Gaussian(variance) or us.Flat(), not 'flat'"),
    (2500.0, "prior must be us.Gaussian(variance) or us.Flat(), not 2500.0"),
    (Gaussian(0.0), "the prior variance must be positive; it is 0 (use us.Flat() for no prior)"),
    (Gaussian(-1.0), "the prior variance must be positive; it is -1"),
    (Gaussian([1, 2, 3, 4, 5, 6, -7]), "the prior variance must be positive; it is -7"),
    (Gaussian(np.nan), "the prior variance must be finite"),
    (Gaussian(np.inf), "the prior variance must be finite"),
    (Gaussian(np.ones(3)), "the prior variance must be a number or 7 numbers; it has shape (3,)"),
    (Gaussian(np.ones((7, 7, 7))), "the prior variance must be a number or 7 numbers; it has shape (7, 7, 7)"),
    (Gaussian("wide"), "the prior variance must be a number, numbers or \"learn\", not 'wide'"),
    (Gaussian(np.eye(3)), "a prior covariance must be symmetric, 7 by 7; it has shape (3, 3)"),
    (Gaussian(np.triu(np.ones((7, 7)))), "a prior covariance must be symmetric, 7 by 7; it has shape (7, 7)"),
    (Gaussian(np.full((7, 7), np.nan)), "a prior covariance must be symmetric"),
    (Gaussian(np.ones((7, 7))), "the prior covariance is not positive definite"),
    (Gaussian(-np.eye(7)), "the prior covariance is not positive definite"),
    (
        Gaussian({"state": 1.0, "rewards": 2.0}),
        "the prior variance names blocks ['state', 'rewards'], but the decisions have ['state', 'reward', 'bonus']",
    ),
    (Gaussian({"state": 1.0, "reward": 0.0, "bonus": 1.0}), "the prior variance must be positive; it is 0"),
    (Gaussian({"state": 1.0, "reward": "x", "bonus": 1.0}), f"the prior variance {NUMBERS}"),  # type: ignore[dict-item]
    (Gaussian(1.0, np.ones(2)), "the prior mean must be a number or 7 numbers; it has shape (2,)"),
    (Gaussian(1.0, np.nan), "the prior mean must be finite"),
    (Gaussian(1.0, "x"), f"the prior mean {NUMBERS} 'x'"),
]


@pytest.mark.parametrize(("prior", "sentence"), REFUSED)
def test_bad_priors_are_refused_with_a_sentence(prior: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        place(prior, decisions(BLOCKS))


def test_a_single_centred_coefficient_leaves_nothing() -> None:
    with pytest.raises(ValueError, match="nothing is left to learn"):
        place(Gaussian(), decisions([Block("a", 1, True), Block("b", 1, True)]))
    assert place(Gaussian(), decisions([Block("a", 1, True), Block("b", 1)])).basis.shape == (2, 1)
