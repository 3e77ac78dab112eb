"""Walking forward: nothing is foretold by what came later, and every event is scored once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed import forecasting, plots
from revealed.api import fit_quietly
from revealed.data.rankings import Rankings
from revealed.data.time_blocks import cut_into_blocks
from revealed.samplers.separate import seed_for

LOGIT = rv.RankingModel(noise=rv.LogitNoise())
FAST: dict[str, Any] = {"draws": 100, "warmup": 100, "chains": 2, "executor": 1}


def races(rng: np.random.Generator, count: int = 12) -> list[list[str]]:
    """Races of four drivers whose skills differ."""
    skill = np.array([1.5, 0.5, -0.5, -1.5])
    names = np.array(list("abcd"))
    return [names[np.argsort(-skill - rng.gumbel(size=4))].tolist() for _ in range(count)]


@pytest.fixture(scope="module")
def walk() -> rv.WalkForward:
    games = Rankings.from_lists(races(np.random.default_rng(1)), times=range(12))
    return rv.walk_forward(games, LOGIT, every=3, first=6, seed=1, **FAST)


def test_every_pair_and_winner_is_foretold_once(walk: rv.WalkForward) -> None:
    assert walk.forecasters == ("model", "elo", "chance")
    assert len(walk.events["pairs"]) == 6 * 6
    assert walk.events["winners"].times.tolist() == [6.0, 7.0, 8.0, 9.0, 10.0, 11.0]
    np.testing.assert_allclose(walk.events["winners"].log_loss[2], np.log(4.0))
    np.testing.assert_allclose(walk.events["pairs"].log_loss[2], np.log(2.0))
    assert walk.refits.times.tolist() == [6.0, 9.0]
    assert walk.refits.observations.tolist() == [6.0, 9.0]
    assert walk.to_dataframe().num_rows == 3 * (36 + 6)
    assert "36 pairs; intervals by resampling 6 games" in str(walk)
    # in a world with skills the model does better than chance
    assert walk.events["pairs"].log_loss[0] < np.log(2.0)


def test_forecasts_are_those_of_a_fit_to_what_came_before(walk: rv.WalkForward) -> None:
    games = Rankings.from_lists(races(np.random.default_rng(1)), times=range(12))
    seed = seed_for(1, 1)
    post = fit_quietly(games[:9], LOGIT, seed=seed, **FAST)
    line_up = games.game(9)[0]
    expected = np.log(post.win_probabilities(line_up)[0])
    found = walk.events["winners"].log_probability[0, 3]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    pair = np.log(post.win_probabilities([line_up[1], line_up[3]])[0])
    np.testing.assert_allclose(walk.events["pairs"].log_probability[0, 18 + 4], pair, rtol=1e-9)


def test_what_comes_later_changes_no_forecast(walk: rv.WalkForward) -> None:
    """A mutant that fits to the block it foretells is seen at once."""
    listed = races(np.random.default_rng(1))
    # the last block turned round: forecasts of the first one stay, scores of the last one change
    listed[9:] = [race[::-1] for race in listed[9:]]
    games = Rankings.from_lists(listed, times=range(12))
    other = rv.walk_forward(games, LOGIT, every=3, first=6, seed=1, **FAST)
    early = walk.events["pairs"].times < 9.0
    for f in range(3):
        one, two = (w.events["pairs"].log_probability[f] for w in (walk, other))
        np.testing.assert_array_equal(one[early], two[early])
    logs = other.events["pairs"].log_probability[:2, ~early]
    assert (np.abs(logs - walk.events["pairs"].log_probability[:2, ~early]) > 0.0).any()


def test_blocks_by_dates_and_by_time() -> None:
    times = np.array([3.0, 0.0, 0.0, 1.0, 7.0, 9.0, 9.5])
    found = cut_into_blocks(times, 2, "dates", 3.0)
    assert [block.next.tolist() for block in found] == [[0, 4], [5, 6]]
    assert [sorted(block.seen.tolist()) for block in found] == [[1, 2, 3], [0, 1, 2, 3, 4]]
    found = cut_into_blocks(times, 2.0, "time", 3.0)
    assert [block.next.tolist() for block in found] == [[0], [4], [5, 6]]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"every": 0}, "every must be a whole number, at least 1; it is 0"),
        ({"unit": "weeks"}, 'unit must be "dates" or "time"'),
        ({"first": 99}, "nothing from it on the first time that is to be foretold, 99"),
        ({"first": 0}, "nothing before the first time that is to be foretold, 0"),
        ({"baselines": ["trueskill"]}, "baselines has 'trueskill'; .* there are elo, chance"),
        ({"resample": "person"}, "resample must be one of date, game; it is 'person'"),
        ({"checkpoint": "a.nc"}, "keeps no checkpoint"),
    ],
)
def test_refused(given: dict[str, Any], message: str) -> None:
    games = Rankings.from_lists(races(np.random.default_rng(1)), times=range(12))
    with pytest.raises(ValueError, match=message):
        rv.walk_forward(games, LOGIT, **given)


def test_data_without_times_are_refused() -> None:
    with pytest.raises(ValueError, match="needs to know when"):
        rv.walk_forward(Rankings.from_lists([["a", "b"]] * 4), LOGIT)


def test_ctrl_c_keeps_what_was_foretold(monkeypatch: pytest.MonkeyPatch) -> None:
    games = Rankings.from_lists(races(np.random.default_rng(1)), times=range(12))
    calls = []

    def interrupted(*given: Any, **settings: Any) -> Any:
        calls.append(1)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return rv.fit(*given, **settings)

    monkeypatch.setattr(forecasting, "fit_quietly", interrupted)
    with pytest.warns(rv.NotConvergedWarning):
        found = rv.walk_forward(games, LOGIT, every=3, first=6, **FAST)
    assert not found.complete
    assert found.refits.times.tolist() == [6.0]
    assert "interrupted" in repr(found)
    with pytest.raises(KeyboardInterrupt):
        rv.walk_forward(games, LOGIT, every=3, first=6, **FAST)


def test_the_figure_shows_each_forecaster(walk: rv.WalkForward) -> None:
    figure = walk.plot("winners")
    labels = [line.get_label() for line in figure.axes[1].get_lines()]
    assert [str(label).split()[0] for label in labels] == ["model", "elo", "chance"]
    with pytest.raises(ValueError, match="no 'choices' in this walk; there are pairs, winners"):
        plots.walk_forward(walk, "choices")
