"""Leaving one decision out: against the truth where it is known, and beside ArviZ."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest
from scipy.special import logsumexp

import revealed as rv
from revealed.results.loo import MAX_PARETO_K
from tests.support.cases import choose
from tests.support.statistical_asserts import assert_mean

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # ArviZ 0.23 announces 1.0 once a day
    import arviz as az

GRID = np.linspace(-6.0, 6.0, 4001)


@pytest.fixture(scope="module")
def post() -> rv.ChoicePosterior:
    """One coefficient, forty decisions."""
    rng = np.random.default_rng(5)
    offers = rv.Decisions(0.5 * rng.standard_normal((120, 1)), np.arange(41) * 3)
    d = offers.with_choices(choose(rng, offers, np.array([1.0]))[0])
    return rv.fit(d, rv.ChoiceModel(prior=rv.Normal(1.0)), draws=500)  # type: ignore[no-any-return]


def test_it_is_the_probability_of_a_choice_given_the_others(post: rv.ChoicePosterior) -> None:
    """With independent draws of the posterior, which on a line is known, as is the posterior without each decision."""
    likelihood = rv.log_likelihood(post.decisions, GRID[:, None])
    log_posterior = likelihood.sum(axis=1) - GRID**2 / 2.0
    without = log_posterior[:, None] - likelihood
    truth = logsumexp(without + likelihood, axis=0) - logsumexp(without, axis=0)
    rng, share = np.random.default_rng(1), np.exp(log_posterior - logsumexp(log_posterior))
    exact = [
        dataclasses.replace(post, draws={"value": rng.choice(GRID, (4, 500, 1), p=share)}).loo()
        for _ in range(100)
    ]
    points = np.array([found.pointwise for found in exact])
    shapes = np.array([found.pareto_k for found in exact])
    assert shapes.max() < MAX_PARETO_K
    for t in range(len(truth)):
        assert_mean(points[:, t], truth[t], false_alarm=1e-6)


def test_arviz_says_the_same(post: rv.ChoicePosterior) -> None:
    theirs = az.loo(post.to_arviz(), pointwise=True, reff=1.0)
    found = post.loo()
    points, shapes = found.pointwise, found.pareto_k
    others = np.asarray(theirs.loo_i if "loo_i" in theirs else theirs.elpd_i)
    assert (
        np.abs(points - others).max() < 0.01 * points.std()
    )  # the tail may be a draw longer or shorter
    assert np.abs(shapes - np.asarray(theirs.pareto_k)).max() < 0.02


def test_a_choice_that_decides_alone_is_shaky() -> None:
    """Nothing but one choice says where the value lies: what it would be without it is not among the draws."""
    rows = np.array([[40.0], [0.0], *[[0.1], [0.0]] * 9])
    d = rv.Decisions(rows, np.arange(11) * 2, [0, *[1] * 9])
    posts = {
        name: rv.fit(d, rv.ChoiceModel(prior=rv.Normal(variance**0.5)), draws=500)
        for name, variance in (("one", 2500.0), ("two", 1.0))
    }
    assert max(rv.compare(posts).n_high_pareto_k) >= 1
