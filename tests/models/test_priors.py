"""Priors in the coordinates of the decisions: v = basis @ q, with blocks that sum to zero."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from revealed._types import Floats
from revealed.data.blocks import Block
from revealed.data.decisions import Decisions
from revealed.models.coordinates import block_of_coefficient, coordinates, helmert
from revealed.models.priors import Flat, HalfStudentT, Normal, resolve_prior

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
    """Mean and covariance of N(mean, sigma) given constants' v = 0, by the textbook formula."""
    gain = sigma @ constants @ np.linalg.inv(constants.T @ sigma @ constants)
    return mean - gain @ constants.T @ mean, sigma - gain @ constants.T @ sigma


# ---- coordinates


@law
@given(
    st.lists(st.tuples(st.integers(1, 6), st.booleans()), min_size=1, max_size=4),
    st.sampled_from([None, False]),
)
def test_basis_and_constants_are_one_orthonormal_matrix(
    shape: list[tuple[int, bool]], sum_to_zero: bool | None
) -> None:
    d = decisions(
        [Block(f"b{i}", size, flag) for i, (size, flag) in enumerate([*shape, (2, True)])]
    )
    basis, constants = coordinates(d, sum_to_zero)
    square = np.hstack([basis, constants])
    assert square.shape == (len(d.names), len(d.names))
    np.testing.assert_allclose(square.T @ square, np.eye(len(d.names)), atol=1e-12)
    blocks = sum(block.sum_to_zero for block in d.blocks)
    assert constants.shape[1] == (blocks if sum_to_zero is None else 0)


def test_constants_mark_the_blocks_that_sum_to_zero() -> None:
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
    assert resolve_prior(Flat(sum_to_zero=False), d).basis.shape == (7, 7)
    assert resolve_prior(Flat(sum_to_zero=True), d).basis.shape == (7, 4)
    assert resolve_prior(Normal(sum_to_zero=True), d).constant_directions.shape == (7, 3)
    np.testing.assert_array_equal(resolve_prior(Normal(sum_to_zero=False), d).basis, np.eye(7))


def test_helmert_columns_sum_to_zero() -> None:
    assert helmert(1).shape == (1, 0)
    for size in (2, 3, 40):
        basis = helmert(size)
        np.testing.assert_allclose(basis.T @ basis, np.eye(size - 1), atol=1e-12)
        np.testing.assert_allclose(basis.sum(axis=0), 0.0, atol=1e-12)


def test_block_of_coefficient() -> None:
    np.testing.assert_array_equal(block_of_coefficient(decisions(BLOCKS)), [0, 0, 0, 1, 1, 2, 2])


# ---- precision and mean


def test_a_number_is_the_sd_in_every_direction() -> None:
    resolved = resolve_prior(Normal(2.0), decisions(BLOCKS))
    np.testing.assert_allclose(resolved.precision, np.eye(5) / 4.0, atol=1e-15)
    assert not resolved.flat
    assert not resolved.has_mean
    assert resolved.scale is None


def test_the_default_is_the_wide_prior_of_the_paper() -> None:
    np.testing.assert_allclose(
        resolve_prior(Normal(), decisions(BLOCKS)).precision, np.eye(5) / 2500.0, atol=1e-15
    )


SDS = np.arange(1.0, 8.0)
BY_BLOCK = {"bonus": 3.0, "state": 1.0, "reward": 2.0}
SD_BY_BLOCK = np.array([1.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0])

# Every form of sd and covariance, and the covariance matrix of v that it stands for.
FORMS: dict[str, tuple[Normal, Floats]] = {
    "sd, a number": (Normal(sd=3.0), 9.0 * np.eye(7)),
    "sd, an array": (Normal(sd=SDS), np.diag(SDS**2)),
    "sd, a list": (Normal(sd=[1, 2, 3, 4, 5, 6, 7]), np.diag(SDS**2)),
    "sd, by block": (Normal(sd=BY_BLOCK), np.diag(SD_BY_BLOCK**2)),
    "covariance, a matrix": (Normal(covariance=covariance(7)), covariance(7)),
    "covariance, its diagonal": (Normal(covariance=SDS), np.diag(SDS)),
    "covariance, by block": (Normal(covariance=BY_BLOCK), np.diag(SD_BY_BLOCK)),
    "sd and matrix": (Normal(sd=2.0, covariance=covariance(7)), 4.0 * covariance(7)),
    "sd and diagonal": (Normal(sd=2.0, covariance=SDS), 4.0 * np.diag(SDS)),
    "sd and blocks": (Normal(sd=2.0, covariance=BY_BLOCK), 4.0 * np.diag(SD_BY_BLOCK)),
    "sd inferred": (Normal(sd=HalfStudentT()), np.eye(7)),
    "sd inferred, and matrix": (
        Normal(sd=HalfStudentT(scale=3.0), covariance=covariance(7)),
        covariance(7),
    ),
}
GIVEN = [form for form, (prior, _) in FORMS.items() if not prior.infers_sd]


@pytest.mark.parametrize("form", FORMS)
def test_the_prior_is_conditioned_on_blocks_that_sum_to_zero(form: str) -> None:
    prior, sigma = FORMS[form]
    mean = np.array([1.0, -2.0, 0.5, 3.0, 1.0, 7.0, -4.0])
    resolved = resolve_prior(replace(prior, mean=mean), decisions(BLOCKS))
    basis = resolved.basis
    np.testing.assert_allclose(
        resolved.precision, basis.T @ np.linalg.inv(sigma) @ basis, atol=1e-12
    )
    expected_mean, expected = restricted(sigma, mean, resolved.constant_directions)
    np.testing.assert_allclose(
        basis @ np.linalg.inv(resolved.precision) @ basis.T, expected, atol=1e-12
    )
    np.testing.assert_allclose(resolved.mean, expected_mean)
    assert resolved.has_mean


@pytest.mark.parametrize("form", FORMS)
def test_nothing_is_conditioned_when_no_block_sums_to_zero(form: str) -> None:
    prior, sigma = FORMS[form]
    resolved = resolve_prior(replace(prior, mean=2.0, sum_to_zero=False), decisions(BLOCKS))
    np.testing.assert_allclose(resolved.precision @ sigma, np.eye(7), atol=1e-9)
    np.testing.assert_allclose(resolved.mean, np.full(7, 2.0))


def test_an_inferred_sd_carries_the_scale_of_its_own_prior() -> None:
    inferred = Normal(sd=HalfStudentT(scale=3.0))
    assert inferred.infers_sd
    resolved = resolve_prior(inferred, decisions(BLOCKS))
    assert resolved.scale == 3.0
    given = resolved.at_scale(2.0)
    assert given.scale is None
    np.testing.assert_allclose(
        given.precision, resolve_prior(Normal(2.0), decisions(BLOCKS)).precision
    )
    assert HalfStudentT() == HalfStudentT(df=4, scale=10.0)
    assert not Normal(2.0).infers_sd


def test_the_mean_is_projected_onto_what_sums_to_zero() -> None:
    d = decisions([Block("value", 3, True)])
    found = resolve_prior(Normal(1.5, mean=np.array([1.0, 2.0, 6.0])), d).mean
    np.testing.assert_allclose(found, [-2.0, -1.0, 3.0])
    np.testing.assert_allclose(resolve_prior(Normal(1.5, mean=5.0), d).mean, 0.0, atol=1e-12)


def test_flat() -> None:
    resolved_prior = resolve_prior(Flat(), decisions(BLOCKS))
    assert resolved_prior.flat
    np.testing.assert_array_equal(resolved_prior.precision, np.zeros((5, 5)))
    np.testing.assert_array_equal(resolved_prior.log_density(np.ones((3, 7))), np.zeros(3))
    with pytest.raises(ValueError, match=r"a flat prior cannot be drawn from; give Normal\(sd\)"):
        resolved_prior.draw(np.random.default_rng(0), 1)


# ---- draws and density


@pytest.mark.parametrize("form", GIVEN)
def test_draws_have_the_mean_and_covariance_of_the_prior(form: str) -> None:
    prior, sigma = FORMS[form]
    mean = np.array([1.0, -2.0, 0.5, 3.0, 1.0, 7.0, -4.0])
    size = 20_000
    resolved_prior = resolve_prior(replace(prior, mean=mean), decisions(BLOCKS))
    draws = resolved_prior.draw(np.random.default_rng(11), size)
    assert draws.shape == (size, 7)
    np.testing.assert_allclose(draws @ resolved_prior.constant_directions, 0.0, atol=1e-9)

    expected_mean, expected = restricted(sigma, mean, resolved_prior.constant_directions)
    tests = 7 + 49
    reach = stats.norm.isf(FALSE_ALARM / (2 * tests))  # two sides, all entries together
    spread = np.diag(expected)
    assert (np.abs(draws.mean(axis=0) - expected_mean) <= reach * np.sqrt(spread / size)).all()
    # The standard error of a covariance between normal samples.
    error = np.sqrt((np.outer(spread, spread) + expected**2) / size)
    assert (
        np.abs((draws - expected_mean).T @ (draws - expected_mean) / size - expected)
        <= reach * error
    ).all()


def test_draws_depend_on_the_generator_alone() -> None:
    resolved_prior = resolve_prior(Normal(2.0), decisions(BLOCKS))
    one, two = (resolved_prior.draw(np.random.default_rng(5), 4) for _ in range(2))
    np.testing.assert_array_equal(one, two)


def test_log_density_is_normal_up_to_a_constant() -> None:
    resolved_prior = resolve_prior(Normal(mean=1.0, covariance=covariance(7)), decisions(BLOCKS))
    v = resolved_prior.draw(np.random.default_rng(2), 6)
    density = stats.multivariate_normal(np.zeros(5), np.linalg.inv(resolved_prior.precision))
    expected = density.logpdf((v - resolved_prior.mean) @ resolved_prior.basis)
    got = resolved_prior.log_density(v)
    np.testing.assert_allclose(got - got[0], expected - expected[0])
    np.testing.assert_allclose(resolved_prior.log_density(v[3]), got[3])
    np.testing.assert_allclose(resolved_prior.log_density(resolved_prior.mean), 0.0, atol=1e-12)


# ---- what it refuses, in a sentence

NUMBERS = "must be a number or numbers, not"
REFUSED: list[tuple[Any, str]] = [
    ("flat", "prior must be rv.Normal(sd) or rv.Flat(), not 'flat'"),
    (2500.0, "prior must be rv.Normal(sd) or rv.Flat(), not 2500.0"),
    (Normal(0.0), "the prior sd must be positive; it is 0 (use rv.Flat() for no prior)"),
    (Normal(-1.0), "the prior sd must be positive; it is -1"),
    (Normal([1, 2, 3, 4, 5, 6, -7]), "the prior sd must be positive; it is -7"),
    (Normal(np.nan), "the prior sd must be finite"),
    (Normal(np.inf), "the prior sd must be finite"),
    (Normal(np.ones(3)), "the prior sd must be a number or 7 numbers; it has shape (3,)"),
    (Normal(np.eye(7)), "the prior sd must be a number or 7 numbers; it has shape (7, 7)"),
    (Normal("wide"), f"the prior sd {NUMBERS} 'wide'"),
    (
        Normal({"state": 1.0, "rewards": 2.0}),
        "the prior sd names blocks ['state', 'rewards'], "
        "but the decisions have ['state', 'reward', 'bonus']",
    ),
    (
        Normal({"state": 1.0, "reward": 0.0, "bonus": 1.0}),
        "the prior sd must be positive; it is 0",
    ),
    (
        Normal({"state": 1.0, "reward": "x", "bonus": 1.0}),  # type: ignore[dict-item]
        f"the prior sd {NUMBERS}",
    ),
    (Normal(covariance=SDS - 4.0), "the prior covariance must be positive; it is -3"),
    (Normal(covariance="wide"), f"the prior covariance {NUMBERS} 'wide'"),
    (Normal(covariance=np.ones(3)), "the prior covariance must be a number or 7 numbers"),
    (Normal(covariance={"state": 1.0}), "the prior covariance names blocks ['state']"),
    (
        Normal(covariance=np.eye(3)),
        "a prior covariance must be symmetric, 7 by 7; it has shape (3, 3)",
    ),
    (
        Normal(covariance=np.triu(np.ones((7, 7)))),
        "a prior covariance must be symmetric, 7 by 7; it has shape (7, 7)",
    ),
    (Normal(covariance=np.full((7, 7), np.nan)), "a prior covariance must be symmetric"),
    (Normal(covariance=np.ones((7, 7))), "the prior covariance is not positive definite"),
    (Normal(covariance=-np.eye(7)), "the prior covariance is not positive definite"),
    (
        Normal(SDS, covariance=np.eye(7)),
        "beside a prior covariance the prior sd must be one number, or a prior of one",
    ),
    (
        Normal(BY_BLOCK, covariance=np.eye(7)),
        "beside a prior covariance the prior sd must be one number, or a prior of one",
    ),
    (Normal(-2.0, covariance=np.eye(7)), "the prior sd must be positive; it is -2"),
    (
        Normal(1.0, mean=np.ones(2)),
        "the prior mean must be a number or 7 numbers; it has shape (2,)",
    ),
    (Normal(1.0, mean=np.nan), "the prior mean must be finite"),
    (Normal(1.0, mean="x"), f"the prior mean {NUMBERS} 'x'"),
]


@pytest.mark.parametrize(("prior", "sentence"), REFUSED)
def test_bad_priors_are_refused_with_a_sentence(prior: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        resolve_prior(prior, decisions(BLOCKS))


def test_a_single_coefficient_that_sums_to_zero_leaves_nothing() -> None:
    with pytest.raises(ValueError, match="nothing is left to learn"):
        resolve_prior(Normal(), decisions([Block("a", 1, True), Block("b", 1, True)]))
    assert resolve_prior(Normal(), decisions([Block("a", 1, True), Block("b", 1)])).basis.shape == (
        2,
        1,
    )
