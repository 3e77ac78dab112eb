"""Leaving one decision out: against the truth where it is known, and beside ArviZ."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest
import scipy.stats as st
from scipy.special import logsumexp, ndtr

import revealed as rv
from revealed._types import Floats
from revealed.results.comparison import _difference_error, log_evidence
from revealed.results.loo import LIMITS, all_observations, leave_one_out
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
    assert shapes.max() < LIMITS.pareto_k
    for t in range(len(truth)):
        assert_mean(points[:, t], truth[t], false_alarm=1e-6)


def autocorrelated(rng: np.random.Generator, share: Floats, correlation: float) -> Floats:
    """(4, 500, 1) draws of a law on the grid whose neighbours depend on one another."""
    z = rng.standard_normal((4, 500))
    for s in range(1, 500):
        z[:, s] = correlation * z[:, s - 1] + np.sqrt(1.0 - correlation**2) * z[:, s]
    below = np.minimum(np.searchsorted(np.cumsum(share), ndtr(z)), len(GRID) - 1)
    return np.asarray(GRID[below][:, :, None])


def test_monte_carlo_errors_are_those_of_repeated_runs(post: rv.ChoicePosterior) -> None:
    """Of elpd, and of its difference between two runs of one model, by draws that depend."""
    likelihood = rv.log_likelihood(post.decisions, GRID[:, None])
    log_posterior = likelihood.sum(axis=1) - GRID**2 / 2.0
    rng, share = np.random.default_rng(2), np.exp(log_posterior - logsumexp(log_posterior))
    found = [
        dataclasses.replace(post, draws={"value": autocorrelated(rng, share, 0.7)}).loo()
        for _ in range(60)
    ]
    elpd, errors = (np.array([getattr(one, name) for one in found]) for name in ("elpd", "mcse"))
    pairs = zip(found[::2], found[1::2], strict=True)
    differences = np.array([_difference_error(a.deviations, b.deviations) for a, b in pairs])
    spread = (errors**2).mean()
    for variance, stated, freedom in (
        (elpd.var(ddof=1), spread, 59),
        (((elpd[::2] - elpd[1::2]) ** 2).mean(), (differences**2).mean(), 30),
    ):
        low, high = st.f.ppf([1e-4, 1.0 - 1e-4], freedom, freedom * 39)
        assert low < variance / stated < 1.1 * high  # batches are not infinitely long
    assert _difference_error(found[0].deviations, found[0].deviations) == 0.0


def test_a_model_against_itself_prints_no_difference(post: rv.ChoicePosterior) -> None:
    """With other draws of the same law, and with the very same ones."""
    value = post.draws["value"]
    other = dataclasses.replace(post, draws={"value": value[::-1, ::-1]})
    for twin in (other, post):
        shown = repr(rv.compare({"one": post, "two": twin}))
        assert "no difference from" in shown
        assert "beyond Monte-Carlo error" in shown
    worse = dataclasses.replace(post, draws={"value": value - 2.0})
    found = rv.compare({"one": post, "worse": worse})
    assert found.distinguishable.tolist() == [False, True]
    assert "no difference" not in repr(found)
    assert found.elpd_diff[1] > 3.0 * found.elpd_diff_mcse[1] > 0.0


def test_equal_decisions_are_worked_out_once(post: rv.ChoicePosterior) -> None:
    """The same answer as from the log-likelihood of each decision, rare choices included."""
    d = post.decisions
    far = rv.Decisions([[0.0], [9.0]], [0, 2], [0], names=d.names)  # of a probability near 1e-7
    twice = d + d + far
    doubled = dataclasses.replace(post, data=twice)
    logs = rv.log_likelihood(twice, post.values)
    found, each = doubled.loo(), leave_one_out(all_observations(logs), *post.shape)
    assert logs[:, -1].min() < np.log(1e-6)
    np.testing.assert_allclose(found.pointwise, each.pointwise, atol=2e-5)
    np.testing.assert_allclose(found.mcse, each.mcse, rtol=1e-4)
    np.testing.assert_array_equal(found.pointwise[:40], found.pointwise[40:80])


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


def with_evidence(post: rv.ChoicePosterior, chains: Floats) -> rv.ChoicePosterior:
    """The posterior as if its chains of particles had found these logarithms of the evidence."""
    return dataclasses.replace(
        post,
        draws={"value": post.draws["value"][: len(chains)]},
        sample_stats={"log_evidence": np.repeat(chains[:, None], post.shape[1], axis=1)},
        settings={},
    )


@pytest.mark.parametrize("sd", [0.05, 0.8])
def test_error_of_the_evidence_of_particles_holds_and_its_bias_is_gone(
    sd: float, post: rv.ChoicePosterior
) -> None:
    """Estimates are log-normal around the truth: their logarithms are low by half their variance."""
    rng, repetitions = np.random.default_rng(1), 400
    found = np.array(
        [
            log_evidence(with_evidence(post, 7.0 - 0.5 * sd**2 + sd * rng.standard_normal(4)))
            for _ in range(repetitions)
        ]
    )
    error = found[:, 0] - 7.0
    # within four standard errors of no bias, which the plain mean of the logarithms is not
    standard_error = error.std() / np.sqrt(repetitions)
    assert abs(error.mean()) < 4 * standard_error
    if sd > 0.5:
        assert abs(error.mean() - 0.5 * sd**2) > 4 * standard_error
    # nineteen in twenty, less four standard deviations of a share of so many
    share = np.mean(np.abs(error) < 2.0 * found[:, 1])
    assert share > 0.95 - 4.0 * np.sqrt(0.95 * 0.05 / repetitions)
    assert np.isnan(log_evidence(with_evidence(post, np.array([7.0])))[1])


def test_evidence_of_laplace_is_known_to_its_error(post: rv.ChoicePosterior) -> None:
    """One coefficient: the truth by quadrature; of twenty seeds all but four within two errors."""
    prior, d = rv.Normal(2.0), post.decisions
    grid = np.linspace(-15.0, 15.0, 20_001)
    log_joint = rv.log_likelihood(d, grid[:, None]).sum(axis=1) - 0.5 * (grid / 2.0) ** 2
    constant = np.log(2.0 * np.sqrt(2.0 * np.pi))
    truth = logsumexp(log_joint) + np.log(grid[1] - grid[0]) - constant
    found = [
        log_evidence(
            rv.fit(d, rv.ChoiceModel(prior=prior), sampler="laplace", draws=250, seed=seed)
        )
        for seed in range(20)
    ]
    scores = np.array([(value - truth) / error for value, error in found])
    # fewer would come once in 400 such tests, were each within with probability 0.95
    assert (np.abs(scores) < 2.0).sum() >= 16
    groups = rv.Decisions(d.rows, d.start, d.chosen, groups=np.arange(len(d)) % 2, names=d.names)
    separate = rv.ChoiceModel(prior=prior, groups=rv.Separate())
    both = log_evidence(rv.fit(groups, separate, sampler="laplace", draws=250))
    assert 0.0 < both[1] < 0.1
