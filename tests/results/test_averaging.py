"""Predictions over as many draws as they need: against all draws, and against one another."""

import os
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats as st

import revealed as rv
from revealed._types import Floats
from revealed.data.decisions import Decisions
from revealed.models.likelihood import choice_probabilities, log_likelihood
from revealed.results.averaging import LIMITS
from revealed.results.predictive import METHODS, predict
from tests.support.cases import choose, ragged_offers
from tests.support.logistic_noise import LogisticNoise

KERNEL_ERROR = 3e-7  # of `kernels/mean_probabilities.py`
COVARIANCE = np.array([[1.0, 0.5], [0.5, 1.0]])


def chains(seed: int, mean: Any, sd: float, shape: tuple[int, int] = (4, 1000)) -> Floats:
    """(chain, draw, K) independent draws of a value."""
    return np.random.default_rng(seed).normal(mean, sd, (*shape, len(mean)))


def case(seed: int = 1, count: int = 60) -> tuple[Decisions, Floats]:
    """Decisions with choices, and draws of their value."""
    offers, v = ragged_offers(3, count, seed=seed), np.array([0.6, -0.3, 0.4])
    d = offers.with_choices(choose(np.random.default_rng(seed), offers, v)[0])
    return d, chains(seed, v, 0.2)


def test_all_draws_give_the_mean_of_exact_probabilities() -> None:
    d, draws = case()
    exact = choice_probabilities(d, draws.reshape(-1, 3)).mean(axis=0)
    found = predict(draws, d, draws="all")
    np.testing.assert_allclose(found.probabilities, exact, atol=KERNEL_ERROR)
    logs = np.log(np.exp(log_likelihood(d, draws.reshape(-1, 3))).mean(axis=0))
    assert found.log_probability_chosen is not None
    np.testing.assert_allclose(found.log_probability_chosen, logs, atol=2e-5)
    assert (found.draws == 4000).all()


def test_fewer_draws_are_used_where_they_are_enough() -> None:
    d, draws = case()
    draws = draws.mean(axis=(0, 1)) + 0.4 * (draws - draws.mean(axis=(0, 1)))
    found, every = predict(draws, d), predict(draws, d, draws="all")
    assert found.draws.min() == 320
    assert 320 < found.draws.max() < 4000
    p = found.probabilities
    limit = np.minimum(LIMITS.error, LIMITS.relative_error * np.maximum(p, LIMITS.small))
    unfinished = np.repeat(found.draws < 4000, d.sizes)
    assert (found.standard_error <= limit)[unfinished].all()
    z = (p - every.probabilities) / np.maximum(found.standard_error, KERNEL_ERROR)
    assert np.abs(z).max() < st.t.isf(1e-6 / len(z), 39)
    assert f"320 to {found.draws.max()} of 4000 draws, Monte-Carlo error at most 0.00" in repr(
        found
    )


@pytest.mark.parametrize("method", METHODS)
def test_errors_are_those_of_repeated_runs(method: str) -> None:
    """Of probabilities and of the log score, over runs of independent draws."""
    d, _ = case(count=6)
    runs = [
        predict(chains(s, [0.6, -0.3, 0.4], 0.3, (4, 100)), d, method, seed=s, draws="all")
        for s in range(100)
    ]
    free = np.repeat(d.sizes > 1, d.sizes)
    p = np.array([run.probabilities[free] for run in runs])
    stated = np.array([run.standard_error[free] for run in runs])
    scores = np.array([run.log_score for run in runs])
    stated_score = np.array([run.log_score_standard_error for run in runs])
    for numbers, errors in ((p, stated), (scores[:, None], stated_score[:, None])):
        ratio = numbers.var(axis=0, ddof=1) / (errors**2).mean(axis=0)
        low, high = st.f.ppf([1e-4 / ratio.size, 1 - 1e-4 / ratio.size], 99, 99 * 19)
        assert (ratio > low).all()
        assert (ratio < high).all()


@pytest.mark.parametrize("sparse", [False, True])
def test_equal_decisions_are_worked_out_once_and_scored_each(sparse: bool) -> None:
    """The same offers with different choices; in the order in which they were given."""
    d, draws = case(count=8)
    which = np.random.default_rng(3).integers(8, size=200)
    chosen = np.random.default_rng(4).integers(d.sizes[which])
    rows = sp.csr_array(d.rows) if sparse else d.rows
    many = Decisions(rows, d.start)[which].with_choices(chosen)
    found, few = predict(draws, many), predict(draws, Decisions(rows, d.start))
    for t, u in enumerate(which):
        own = slice(*many.start[t : t + 2])
        same = slice(*d.start[u : u + 2])
        # the same numbers but for the order of summation in a block of other decisions
        np.testing.assert_allclose(found.probabilities[own], few.probabilities[same], rtol=1e-12)
        assert found.draws[t] == few.draws[u]
    p = found.probabilities[many.chosen_row]
    usual = p >= 1e-3
    assert found.log_probability_chosen is not None
    np.testing.assert_allclose(found.log_probability_chosen[usual], np.log(p[usual]))


def test_labels_of_actions_tell_decisions_apart_under_correlated_noise() -> None:
    rows = np.zeros((6, 1))
    actions = ["car", "bus", "tram", "bus", "car", "tram"]
    noise = rv.NoiseCovariance("car", ("bus", "tram"), np.array([[1.0, 0.9], [0.9, 1.0]]))
    d = Decisions(rows, [0, 3, 6], actions=actions)
    p = predict(np.zeros((50, 1)), d, noise=noise).probabilities
    exact = choice_probabilities(d, [0.0], noise)
    np.testing.assert_allclose(p, exact, atol=0.01)  # eight points of the lattice a draw
    assert p[0] - p[3] > 0.1


@pytest.mark.parametrize("method", METHODS)
def test_one_covariance_serves_all_draws(method: str) -> None:
    d = Decisions(np.eye(3)[[0, 1, 2, 2, 0, 1]], [0, 3, 6], [0, 1], actions=["a", "b", "c"] * 2)
    draws = chains(5, [0.5, 0.0, -0.5], 0.3, (2, 100))
    one = rv.NoiseCovariance("a", ("b", "c"), COVARIANCE)
    each = rv.NoiseCovariance("a", ("b", "c"), np.tile(COVARIANCE, (200, 1, 1)))
    found, same = predict(draws, d, method, noise=one), predict(draws, d, method, noise=each)
    np.testing.assert_array_equal(found.probabilities, same.probabilities)
    assert np.isfinite(found.standard_error).all()


def test_another_noise_has_errors_too() -> None:
    d, draws = case(count=5)
    found = predict(draws[:, :50], d, noise=LogisticNoise(), draws="all")
    exact = choice_probabilities(d, draws[:, :50].reshape(-1, 3), LogisticNoise())
    np.testing.assert_allclose(found.probabilities, exact.mean(axis=0), rtol=1e-12)
    assert (found.standard_error[np.repeat(d.sizes > 1, d.sizes)] > 0.0).all()


def test_results_do_not_depend_on_threads_or_on_other_decisions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    d, draws = case(count=300)
    found = predict(draws, d)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    alone = predict(draws, d)
    np.testing.assert_array_equal(found.probabilities, alone.probabilities)
    assert found.log_score_standard_error == alone.log_score_standard_error
    some = predict(draws, d[100:110])
    rows = slice(d.start[100], d.start[110])
    np.testing.assert_allclose(some.probabilities, found.probabilities[rows], rtol=1e-12)


def test_a_value_that_is_given_is_exact_and_one_draw_says_nothing_of_its_error() -> None:
    d, _ = case(count=3)
    for method in ("average", "point"):
        found = predict([0.6, -0.3, 0.4], d, method)
        assert not found.standard_error.any()
        assert found.log_score_standard_error == 0.0
    one = predict(np.array([[[0.6, -0.3, 0.4]]]), d)
    assert np.isnan(one.standard_error).all()
    assert "Monte-Carlo error unknown" in repr(one)
