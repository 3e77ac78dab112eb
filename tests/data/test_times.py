"""Times and sessions of decisions: checked, dates as days, and kept wherever decisions are made of others."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import revealed as rv
from revealed.data.chunks import InMemoryChunks
from revealed.data.offsets import without_far_offsets
from revealed.data.times import are_dates, texts_to_times
from revealed.data.unique import deduplicate, deduplicate_if_worthwhile
from revealed.io.checkpoints import fingerprint
from revealed.models.noise_coordinates import with_noise_coordinates


def timed(**changes: Any) -> rv.Decisions:
    """Three decisions of 2, 1 and 3 actions, with times out of order."""
    given: dict[str, Any] = {
        "rows": np.arange(12.0).reshape(6, 2),
        "start": [0, 2, 3, 6],
        "chosen": [1, 0, 2],
        "ids": [10, 14, 12],
        "times": [3, 1, 2.5],
        "sessions": ["b", "a", "b"],
    }
    return rv.Decisions(**{**given, **changes})


def holds(d: rv.Decisions, times: list[float], sessions: list[Any]) -> None:
    assert d.times is not None
    assert d.times.dtype == np.float64
    np.testing.assert_array_equal(d.times, times)
    assert d.sessions is not None
    assert d.sessions.tolist() == sessions


# ---- what it holds


def test_times_are_floats_and_neither_they_nor_sessions_can_be_changed() -> None:
    d = timed()
    holds(d, [3.0, 1.0, 2.5], ["b", "a", "b"])
    for field in (d.times, d.sessions):
        assert field is not None
        with pytest.raises(ValueError, match="read-only"):
            field[0] = field[1]


def test_without_times_there_are_none() -> None:
    d = timed(times=None, sessions=None)
    assert d.times is None
    assert d.sessions is None


DAYS = [0.0, 1.5, -365.0]
MOMENTS = [datetime(1970, 1, 1), datetime(1970, 1, 2, 12), datetime(1969, 1, 1)]


@pytest.mark.parametrize(
    "times",
    [
        MOMENTS,
        [moment.replace(tzinfo=UTC) for moment in MOMENTS],
        # the same moments where clocks show two hours more
        [
            moment.replace(tzinfo=timezone(timedelta(hours=2))) + timedelta(hours=2)
            for moment in MOMENTS
        ],
        np.array(MOMENTS, dtype="datetime64[s]"),
        np.array(MOMENTS, dtype="datetime64[ns]"),
        pd.to_datetime(pd.Series(MOMENTS)),
        pd.to_datetime(pd.Series(MOMENTS)).dt.tz_localize("UTC"),
        [pd.Timestamp(moment) for moment in MOMENTS],
        [pd.Timestamp(moment).tz_localize("UTC") for moment in MOMENTS],
    ],
    ids=lambda given: type(given).__name__,
)
def test_moments_are_days_since_1970(times: Any) -> None:
    found = timed(times=times).times
    assert found is not None
    np.testing.assert_array_equal(found, DAYS)


@pytest.mark.parametrize(
    "times",
    [
        [date(2024, 1, 1), date(2024, 2, 1), date(2024, 3, 1)],
        np.array(["2024-01", "2024-02", "2024-03"], dtype="datetime64[M]"),
        np.array(["2024-01-01", "2024-02-01", "2024-03-01"], dtype="datetime64[D]"),
    ],
)
def test_dates_are_whole_days(times: Any) -> None:
    found = timed(times=times).times
    assert found is not None
    np.testing.assert_array_equal(found, [19723.0, 19754.0, 19783.0])


@pytest.mark.parametrize(
    ("times", "sentence"),
    [
        ([1.0, np.nan, 2.0], "decision 14: its time is NaN; every time must be a finite number"),
        ([1, None, 2], "decision 14: its time is NaN"),
        ([1.0, 2.0, -np.inf], "decision 12: its time is infinite"),
        (np.array(["2024-01-01", "NaT", "2024-01-01"], dtype="datetime64[D]"), "decision 14: its"),
        ([pd.Timestamp("2024-01-01"), pd.NaT, pd.NaT], "decision 14: its time is NaN"),
        ([None, None, None], "decision 10: its time is NaN"),
        ([1.0, 2.0], r"times has shape \(2,\), but there are 3 decisions; give one time for each"),
        ([[1.0], [2.0], [3.0]], r"times has shape \(3, 1\)"),
        (["1", "2", "3"], "times must be all numbers or all dates; one is '1'"),
        ([True, False, True], "times must be all numbers or all dates"),
        ([1, date(2024, 1, 1), 2], "times must be all numbers or all dates"),
        ([1 + 2j, 0, 0], "times must be all numbers or all dates"),
    ],
)
def test_wrong_times_are_refused_in_a_sentence(times: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        timed(times=times)


@pytest.mark.parametrize(
    ("sessions", "sentence"),
    [
        (["a", None, "b"], "decision 14: its session is missing; every decision needs a label"),
        ([1.0, np.nan, 2.0], "decision 14: its session is missing"),
        (["a"], r"sessions has shape \(1,\), but there are 3 decisions"),
    ],
)
def test_wrong_sessions_are_refused_in_a_sentence(sessions: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        timed(sessions=sessions)


# ---- decisions made of others


def test_picked_decisions_keep_their_times() -> None:
    holds(timed()[[2, 0]], [2.5, 3.0], ["b", "b"])
    holds(timed().first(1), [3.0], ["b"])
    assert timed(times=None, sessions=None)[1:].times is None


def test_joined_decisions_keep_their_times() -> None:
    joined = timed() + timed(times=[7, 8, 9], sessions=["c", "c", "c"])
    holds(joined, [3.0, 1.0, 2.5, 7.0, 8.0, 9.0], ["b", "a", "b", "c", "c", "c"])


@pytest.mark.parametrize("field", ["times", "sessions"])
def test_decisions_of_which_only_some_have_times_are_not_joined(field: str) -> None:
    with pytest.raises(ValueError, match=f"one side has {field} and the other has none"):
        timed() + timed(**{field: None})


def test_other_choices_are_made_at_the_same_times() -> None:
    holds(timed().with_choices([0, 0, 0]), [3.0, 1.0, 2.5], ["b", "a", "b"])


def test_decisions_without_far_offsets_keep_their_times() -> None:
    rows = np.arange(12.0).reshape(6, 2)
    d = timed(rows=rows + np.array([1e8, 0.0]))
    found = without_far_offsets(d)
    assert found is not d
    holds(found, [3.0, 1.0, 2.5], ["b", "a", "b"])


@pytest.mark.parametrize("sparse", [False, True])
def test_coordinates_of_the_noise_leave_times(sparse: bool) -> None:
    rows = np.arange(12.0).reshape(6, 2)
    d = timed(rows=sp.csr_array(rows) if sparse else rows)
    holds(with_noise_coordinates(d, 2), [3.0, 1.0, 2.5], ["b", "a", "b"])


def test_different_decisions_keep_the_times_of_the_first_of_each() -> None:
    d = rv.Decisions(
        [[1.0], [0.0]] * 3,
        [0, 2, 4, 6],
        [0, 1, 0],
        times=[5, 6, 7],
        sessions=["a", "b", "c"],
    )
    holds(deduplicate(d).unique, [5.0, 6.0], ["a", "b"])
    found, weights = deduplicate_if_worthwhile(d[[0, 2]])
    holds(found, [5.0], ["a"])
    assert weights.tolist() == [2.0]


def test_chunks_keep_times() -> None:
    found, _ = InMemoryChunks(timed(), np.ones(3)).load(0)
    holds(found, [3.0, 1.0, 2.5], ["b", "a", "b"])


def test_decisions_of_a_path_have_the_times_that_are_given() -> None:
    mdp = rv.MDP([[[0.5, 0.5], [0.2, 0.8]], [[1.0, 0.0], [0.6, 0.4]]])
    d = mdp.decisions([0, 1, 0], [1, 0, 1], times=[1, 2, 4], sessions=["a", "a", "b"])
    holds(d, [1.0, 2.0, 4.0], ["a", "a", "b"])
    assert mdp.decisions([0, 1], [1, 0]).times is None
    with pytest.raises(ValueError, match="decision 1: its time is NaN"):
        mdp.decisions([0, 1], [1, 0], times=[0, np.nan])


@pytest.mark.filterwarnings("ignore::revealed.NotConvergedWarning")
def test_a_model_that_does_not_use_time_ignores_it() -> None:
    rng = np.random.default_rng(1)
    rows, chosen = rng.standard_normal((40, 2)), rng.integers(0, 2, 20)
    model, start = rv.ChoiceModel(prior=rv.Normal(1.0)), np.arange(0, 41, 2)
    plain = rv.Decisions(rows, start, chosen)
    given = rv.Decisions(rows, start, chosen, times=np.arange(20), sessions=np.arange(20) % 3)
    with_times, without = (fingerprint(*model.resolve(d).fingerprint_parts) for d in (given, plain))
    assert with_times == without
    found, expected = (
        rv.fit(d, model, draws=20, warmup=20, chains=1, seed=3, progress=False)
        for d in (given, plain)
    )
    np.testing.assert_array_equal(found.draws["value"], expected.draws["value"])
    holds(found.data, [float(t) for t in range(20)], [t % 3 for t in range(20)])


# ---- games


def games(**more: Any) -> rv.Rankings:
    return rv.Rankings.from_lists([["ann", "bob"], ["bob", "cid", "ann"], ["cid", "ann"]], **more)


def game_times(r: rv.Rankings) -> list[float]:
    assert r.times is not None
    assert r.times.dtype == np.float64
    found: list[float] = r.times.tolist()
    return found


def test_games_have_times_and_parts_of_them_keep_these() -> None:
    r = games(times=[date(1970, 1, 5), date(1970, 1, 2), date(1970, 1, 3)])
    assert game_times(r) == [4.0, 1.0, 2.0]
    assert game_times(r.take([2, 0])) == [2.0, 4.0]
    assert game_times(r.take(iter([1]))) == [1.0]
    assert game_times(r[1:]) == [1.0, 2.0]
    assert games().times is None
    assert games()[:2].times is None
    assert r.times is not None
    with pytest.raises(ValueError, match="read-only"):
        r.times[0] = 1.0


def test_wrong_times_of_games_are_refused() -> None:
    with pytest.raises(ValueError, match="game 1: its time is NaN; every time must be a finite"):
        games(times=[1, np.nan, 2])
    with pytest.raises(ValueError, match=r"times has shape \(2,\), but there are 3 games"):
        games(times=[1, 2])


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        ([7, 3, 7, 3], [7.0, 3.0]),
        (["7", "3.5", "7", "3.5"], [7.0, 3.5]),
        (["1970-01-08", "1970-01-02", "1970-01-08", "1970-01-02"], [7.0, 1.0]),
        ([datetime(1970, 1, 8), datetime(1970, 1, 2, 12)] * 2, [7.0, 1.5]),
        (pd.Series(pd.to_datetime(["1970-01-08", "1970-01-02"] * 2)), [7.0, 1.0]),
        (np.array(["1970-01-08", "1970-01-02"] * 2, dtype="datetime64[D]"), [7.0, 1.0]),
    ],
)
def test_times_of_games_from_columns(time: Any, expected: list[float]) -> None:
    columns: dict[str, Any] = {"game": ["x", "y"] * 2, "player": ["ann", "ann", "bob", "bob"]}
    r = rv.Rankings.from_columns(**columns, position=[1, 2, 2, 1], time=time)
    assert game_times(r) == expected


def test_times_of_games_that_nobody_played_are_left_out() -> None:
    r = rv.Rankings.from_columns(
        ["x", "x", "y", "y"], list("abab"), ["DNS", "DNS", 1, 2], time=[1, 1, 2, 2]
    )
    assert game_times(r) == [2.0]


@pytest.mark.parametrize(
    ("time", "sentence"),
    [
        ([1, 2], "game x: one row has the time 2, and another has another; a game is played at"),
        ([1, None], "game x: one row has the time None"),
        ([None, None], "game x: its time is NaN"),
        (["soon", "soon"], "the column of times holds 'soon'; times must be all numbers"),
        ([1, "2"], "times must be all numbers or all dates"),
        ([1], "must be columns of the same length"),
    ],
)
def test_wrong_columns_of_times_are_refused(time: list[Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        rv.Rankings.from_columns(["x", "x"], ["ann", "bob"], [1, 2], time=time)


def test_games_are_joined_with_the_players_of_both() -> None:
    teams = rv.Rankings.from_columns(
        [1] * 5,
        ["dan", "bob", "eve", "ann", "fay"],
        [1, 1, 2, 2, "DNF"],
        team=["r", "r", "s", "s", "t"],
        time=[9] * 5,
    )
    ties = rv.Rankings.from_columns([5] * 3, ["cid", "bob", "dan"], [1, 2, 2], time=[8] * 3)
    first = games(times=[4, 1, 2])
    joined = first + teams + ties
    assert joined.names == ("ann", "bob", "cid", "dan", "eve", "fay")
    assert joined.ids == (0, 1, 2, 3, 4)
    assert game_times(joined) == [4.0, 1.0, 2.0, 9.0, 8.0]
    # every game is as it was
    for g, (of, i) in enumerate([(first, 0), (first, 1), (first, 2), (teams, 0), (ties, 0)]):
        (entries, tied, n_ordered), expected = joined.game(g), of.game(i)
        assert entries == expected[0]
        assert tied.tolist() == expected[1].tolist()
        assert n_ordered == expected[2]


def test_games_of_which_only_some_have_times_are_not_joined() -> None:
    with pytest.raises(ValueError, match="one side has times and the other has none"):
        games(times=[1, 2, 3]) + games()
    assert (games() + games()).times is None
    with pytest.raises(TypeError):
        games() + "ann"  # type: ignore[operator]


# ---- text


def test_numbers_and_iso_dates_are_read_from_text() -> None:
    np.testing.assert_array_equal(texts_to_times("x", ["3", " 4.5 ", "-1e2"]), [3.0, 4.5, -100.0])
    written = ["1970-01-02", "1970-01-02T12:00", "1970-01-02 12:00:00+02:00", None, ""]
    expected = [1.0, 1.5, 1.5 - 2 / 24, np.nan, np.nan]
    np.testing.assert_allclose(texts_to_times("x", written), expected, rtol=1e-15)
    # what could be a date without its dashes is a number
    np.testing.assert_array_equal(texts_to_times("x", ["20240301"]), [20240301.0])


@pytest.mark.parametrize(
    "texts", [["2024-01-01", "yesterday"], ["1", "2024-01-01"], ["01/02/2024"]]
)
def test_other_text_is_refused(texts: list[str]) -> None:
    with pytest.raises(ValueError, match=f"column 'day' holds '{texts[-1]}'; times must be all"):
        texts_to_times("column 'day'", texts)


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        (["2024-03-01", None, ""], True),
        ([date(2024, 3, 1), datetime(2024, 3, 1, 12)], True),
        ([np.datetime64("2024-03-01")], True),
        (["20240301", "3"], False),
        ([2024, 3.5, float("nan")], False),
        ([None, ""], False),
    ],
)
def test_dates_are_told_from_numbers(items: list[Any], expected: bool) -> None:
    assert are_dates(items) is expected
