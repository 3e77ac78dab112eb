"""Posteriors of values that change: values between and after what was seen, predictions, real data."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import revealed as rv
from revealed.results.path_values import Steps, draw_between

SHARED_DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


@cache
def drifting() -> rv.PathPosterior:
    """Likes that go from -2 to 2 over 200 decisions, with a gap in the middle."""
    rng = np.random.default_rng(1)
    times = np.concatenate([np.arange(100.0), np.arange(150.0, 250.0)])
    taken = (rng.logistic(size=200) < np.linspace(-2.0, 2.0, 200)).astype(int)
    d = rv.Decisions([[0.0], [1.0]] * 200, range(0, 401, 2), taken, times=times)
    model = rv.ChoiceModel(
        prior=rv.Normal(2.0), noise=rv.LogitNoise(), over_time=rv.RandomWalk(0.2)
    )
    post = rv.fit(d, model, draws=1000, progress=False)
    assert isinstance(post, rv.PathPosterior)
    return post


@pytest.mark.parametrize("rate", [None, 0.7])
def test_values_between_are_those_of_the_joint_normal(rate: float | None) -> None:
    """Mean and covariance at two times between two nodes, and one after, by conditioning."""
    draws, centre, sd = 40_000, 0.3, 0.8
    times, wanted = np.array([1.0, 4.0]), np.array([2.0, 3.5, 6.0])
    every = np.concatenate([times, wanted])
    if rate is None:
        covariance = sd**2 * np.minimum.outer(every - 1.0, every - 1.0)
    else:
        covariance = sd**2 * np.exp(-rate * np.abs(np.subtract.outer(every, every)))
    path = np.array([0.5, -0.4])
    seen = [0, 1] if rate is not None else [1]
    mean = np.full(5, centre if rate is not None else path[0])
    gain = covariance[2:][:, seen] @ np.linalg.inv(covariance[np.ix_(seen, seen)])
    expected = mean[2:] + gain @ (path[seen] - mean[seen])
    left = covariance[2:, 2:] - gain @ covariance[np.ix_(seen, range(2, 5))]
    one = np.ones((draws, 1))
    steps = Steps(sd * one, None if rate is None else rate * one, None, centre * one)
    paths = np.tile(path[None, :, None], (draws, 1, 1))
    rng = np.random.default_rng(8)
    found = draw_between(rng, steps, times, None, paths, wanted, None)[:, :, 0]
    error = np.sqrt(np.diag(left) / draws)
    assert (np.abs(found.mean(axis=0) - expected) < 5.0 * error).all()
    # the sd of a sample covariance of normals
    sds = np.sqrt(np.diag(left))
    spread = np.sqrt((left**2 + np.outer(sds, sds) ** 2) / draws)
    assert (np.abs(np.cov(found.T) - left) < 5.0 * spread).all()


def test_uncertainty_is_larger_where_nothing_was_seen_and_grows_ahead() -> None:
    sd = drifting().at([50.0, 125.0, 249.0, 260.0, 400.0]).std(axis=0)[:, 0]
    assert sd[1] > sd[0]
    assert (np.diff(sd[2:]) > 0.0).all()
    # far ahead, the variance of the walk is added
    ahead = np.sqrt(sd[2] ** 2 + 0.2**2 * (400.0 - 249.0))
    assert sd[4] == pytest.approx(ahead, rel=0.1)


def test_at_the_times_that_were_seen_values_are_the_draws() -> None:
    post = drifting()
    np.testing.assert_allclose(post.at(post.times[[3, 180]]), post.stacked()[:, [3, 180]])
    again = post.at([120.0, 300.0], seed=4)
    np.testing.assert_array_equal(again, post.at([120.0, 300.0], seed=4))
    np.testing.assert_array_equal(post.at([300.0, 120.0], seed=4), again[:, ::-1])
    with pytest.raises(ValueError, match="the first decision was made at 0"):
        post.at([-1.0])


def test_predictions_are_means_of_probabilities_at_their_times() -> None:
    post = drifting()
    offers = rv.Decisions([[0.0], [1.0]] * 2, [0, 2, 4], times=[20.0, 230.0])
    found = post.predict(offers, draws="all").probabilities.reshape(2, 2)[:, 1]
    values = post.at([20.0, 230.0])[:, :, 0]
    np.testing.assert_allclose(found, (1.0 / (1.0 + np.exp(-values))).mean(axis=0), rtol=1e-9)
    best = post.policy(offers)
    assert best.best.tolist() == [0, 1]
    with pytest.raises(ValueError, match="a prediction needs to know when"):
        post.predict(rv.Decisions([[0.0], [1.0]], [0, 2]))


def test_log_likelihoods_are_those_of_each_time() -> None:
    post = drifting()
    d, values = post.decisions, post.draws["value"][1, 7, :, 0]
    sign = np.where(d.chosen == 1, 1.0, -1.0)
    expected = -np.logaddexp(0.0, -sign * values)
    np.testing.assert_allclose(post.log_likelihood()[1, 7], expected, atol=1e-12)


def rat(trials: int) -> rv.Decisions:
    """The first trials of a rat that learns to compare two sounds; skips without the data."""
    file = SHARED_DATA / "rat_w053.parquet"
    if not file.exists():
        pytest.skip(f"{file.name} is not beside the project")
    import pyarrow.parquet as pq

    table = pq.read_table(file).slice(0, trials).to_pydict()
    rows = np.zeros((2 * trials, 3))
    rows[1::2] = np.stack([np.ones(trials), table["s1"], table["s2"]], axis=1)
    right = (np.asarray(table["choice"]) == 2).astype(int)
    names = ["bias", "s1", "s2"]
    return rv.Decisions(
        rows, np.arange(0, 2 * trials + 1, 2), right, names=names, times=np.arange(trials)
    )
