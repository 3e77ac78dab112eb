"""Paths go on from earlier draws: the posterior is that of a fit to all decisions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats as st

import revealed as rv
from revealed.models.noise_draws import name_noise
from revealed.results.paths import PathPosterior
from revealed.samplers.path_update import noise_of_draws, theta_of_draws
from tests.support.statistical_asserts import must_fail, record_check

COUNT, SEEN = 80, 60
WALK = rv.ChoiceModel(noise=rv.LogitNoise(), over_time=rv.RandomWalk())


def some_decisions() -> rv.Decisions:
    rng = np.random.default_rng(1)
    likes = np.cumsum(rng.normal(0.0, 0.3, COUNT))
    taken = (rng.logistic(size=COUNT) < likes).astype(int)
    rows, start = [[0.0], [1.0]] * COUNT, range(0, 2 * COUNT + 1, 2)
    return rv.Decisions(rows, start, taken, times=range(COUNT))


@pytest.fixture(scope="module")
def earlier() -> PathPosterior:
    found: PathPosterior = rv.fit(some_decisions()[:SEEN], WALK, draws=500, seed=1)
    return found


def check_agreement(one: PathPosterior, other: PathPosterior, false_alarm: float = 1e-6) -> None:
    """Means of log drift and of the path agree within the Monte-Carlo error of both."""
    quantities = [
        (np.log(one.draws["drift_sd"][:, :, 0]), np.log(other.draws["drift_sd"][:, :, 0]))
    ]
    for n in (0, SEEN - 1, SEEN + 10, COUNT - 1):
        quantities.append((one.draws["value"][:, :, n, 0], other.draws["value"][:, :, n, 0]))
    for a, b in quantities:
        # 10 batches a chain of both: about normal, with few degrees of freedom
        means = [x.reshape(40, -1).mean(axis=1) for x in (a, b)]
        z, p = st.ttest_ind(*means, equal_var=False)
        record_check(p > false_alarm / len(quantities), f"z is {z:.2f}", z=float(z))


def test_update_agrees_with_a_fit_to_all_decisions(earlier: PathPosterior) -> None:
    d = some_decisions()
    fresh = rv.fit(d, WALK, draws=1000, seed=2)
    updated = earlier.update(d[SEEN:], draws=1000, seed=3)
    assert updated.shape == (4, 1000)
    assert updated.draws["value"].shape == fresh.draws["value"].shape
    check_agreement(updated, fresh)
    with must_fail("the new decisions are forgotten"):
        times = np.arange(float(COUNT))
        stale = earlier.at(times).reshape(*earlier.shape, COUNT, 1)
        drift = earlier.draws["drift_sd"]
        draws = {"value": stale, "drift_sd": drift}
        check_agreement(PathPosterior(draws, d, WALK, "state-space"), fresh)


def test_the_result_is_a_posterior_like_any_other(earlier: PathPosterior, tmp_path: object) -> None:
    d = some_decisions()
    found = earlier.update(d[SEEN : SEEN + 5])
    again = earlier.update(d[SEEN : SEEN + 5])
    np.testing.assert_array_equal(found.draws["value"], again.draws["value"])
    assert found.settings["updated"] == 5
    # and can be updated itself, stored and loaded
    more = found.update(d[SEEN + 5 : SEEN + 6])
    more.save(f"{tmp_path}/more.nc")
    loaded = rv.load(f"{tmp_path}/more.nc")
    np.testing.assert_array_equal(loaded.draws["value"], more.draws["value"])
    assert len(loaded.times) == SEEN + 6
    assert loaded.update(d[SEEN + 6 :]).shape == (4, 80)


def test_coordinates_are_those_that_draws_came_from() -> None:
    """The map from coordinates to names, turned round, of lapses and degrees of freedom."""
    noise = rv.StudentNoise(rv.Gamma(2.0, 0.1), lapse=rv.Lapse())
    model = rv.ChoiceModel(noise=noise, over_time=rv.MeanReverting())
    resolved = model.resolve(some_decisions())
    rng = np.random.default_rng(4)
    z = rng.standard_normal((2, 50, 2))
    draws = name_noise(resolved.kernel, z) | {
        "value": np.zeros((2, 50, COUNT, 1)),
        "stationary_sd": np.exp(rng.standard_normal((2, 50, 1))),
        "reversion_rate": np.exp(rng.standard_normal((2, 50, 1))),
        "long_run_mean": rng.standard_normal((2, 50, 1)),
    }
    np.testing.assert_allclose(noise_of_draws(resolved, draws), z, atol=1e-3)
    theta = theta_of_draws(resolved, draws)
    named = [np.log(draws["stationary_sd"]), np.log(draws["reversion_rate"])]
    expected = np.concatenate([*named, draws["long_run_mean"]], axis=2)
    np.testing.assert_allclose(theta, expected)


def test_refused(earlier: PathPosterior) -> None:
    d = some_decisions()
    no_times = rv.Decisions(d.rows, d.start, d.chosen)
    with pytest.raises(ValueError, match="update takes Decisions with times"):
        earlier.update(no_times)
    with pytest.raises(ValueError, match="carry no choices"):
        earlier.update(d.with_choices(None)[SEEN:])
