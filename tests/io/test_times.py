"""Times and sessions through tables and files: read from any column of dates, and written back."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import revealed as rv
from revealed.data.decisions import Decisions

DAYS = [date(2024, 3, 1), date(1970, 1, 2)]
MOMENTS = [datetime(2024, 3, 1, 12), datetime(1970, 1, 2)]
AWARE = [moment.replace(tzinfo=UTC) for moment in MOMENTS]


def columns(**more: Any) -> dict[str, Any]:
    """Decisions 12 and 7 of three and two actions, their rows interleaved.

    more: columns with one value for each of the two decisions.
    """
    table = {
        "decision": [12, 7, 12, 7, 12],
        "chosen": [False, True, False, False, True],
        "height": [3.0, 4.0, 2.5, -1.0, 0.1],
    }
    return table | {name: [values[i] for i in (0, 1, 0, 1, 0)] for name, values in more.items()}


def times(d: Decisions) -> list[float]:
    assert d.times is not None
    found: list[float] = d.times.tolist()
    return found


@pytest.mark.parametrize("make", [pa.table, pd.DataFrame, pl.DataFrame, pl.LazyFrame])
def test_times_and_sessions_of_any_dataframe(make: Any) -> None:
    table = make(columns(trial=[5, 2], visit=["b", "a"]))
    d = rv.from_dataframe(table, time="trial", session="visit")
    assert d.names == ("height",)
    assert times(d) == [5.0, 2.0]
    assert d.sessions is not None
    assert d.sessions.tolist() == ["b", "a"]


@pytest.mark.parametrize("make", [pa.table, pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (DAYS, [19783.0, 1.0]),
        (MOMENTS, [19783.5, 1.0]),
        (AWARE, [19783.5, 1.0]),
        (["2024-03-01", "1970-01-02"], [19783.0, 1.0]),
        (["2024-03-01T12:00:00", "1970-01-02"], [19783.5, 1.0]),
        (["2024-03-01T14:00+02:00", "1970-01-02T00:00Z"], [19783.5, 1.0]),
        (["7", "-2.5"], [7.0, -2.5]),
        ([1.5, -3], [1.5, -3.0]),
    ],
)
def test_dates_are_days_since_1970(make: Any, given: list[Any], expected: list[float]) -> None:
    assert times(rv.from_dataframe(make(columns(day=given)), time="day")) == expected


def test_timestamps_of_pandas_with_nanoseconds_and_a_zone() -> None:
    table = pd.DataFrame(columns(day=MOMENTS))
    table["day"] = table["day"].dt.as_unit("ns").dt.tz_localize("Europe/Paris")
    # noon in Paris is eleven in UTC, in winter
    expected = [19783.0 + 11 / 24, 1.0 - 1 / 24]
    np.testing.assert_allclose(times(rv.from_dataframe(table, time="day")), expected, rtol=1e-15)


def test_a_column_called_time_is_a_feature_unless_it_is_asked_for() -> None:
    table = pa.table(columns()).append_column("time", pa.array([1.0, 2.0, 3.0, 4.0, 6.0]))
    d = rv.from_dataframe(table)
    assert d.names == ("height", "time")
    assert d.times is None
    assert d.sessions is None


def test_rows_that_were_not_on_offer_have_no_say() -> None:
    table = columns()
    table |= {"on": [1, 1, 0, 1, 1], "trial": [5, 2, 99, 2, 5]}
    assert times(rv.from_dataframe(pa.table(table), available="on", time="trial")) == [5.0, 2.0]


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        (
            [1, 2, 1, 3, 1],
            "decision 7: column 'when' holds both 2 and 3; one decision is made at one time",
        ),
        ([1.0, 2.0, None, 2.0, 1.0], "decision 12: column 'when' holds both 1.0 and None"),
        ([1.0, None, 1.0, None, 1.0], "decision 7: its time is NaN; every time must be a finite"),
        (["2024-01-01", "soon"] * 2 + ["2024-01-01"], "column 'when' holds 'soon'; times must be"),
        (["1", "2024-01-01"] * 2 + ["1"], "column 'when' holds '2024-01-01'; times must be all"),
        ([True, False] * 2 + [True], "column 'when' holds bool; times must be numbers or dates"),
    ],
)
def test_wrong_times_are_refused_in_a_sentence(column: list[Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        rv.from_dataframe(pa.table({**columns(), "when": column}), time="when")


def test_wrong_sessions_are_refused_in_a_sentence() -> None:
    table = pa.table({**columns(), "visit": ["a", "b", "a", "c", "a"]})
    with pytest.raises(ValueError, match="'visit' holds both b and c; one decision is made in one"):
        rv.from_dataframe(table, session="visit")
    with pytest.raises(ValueError, match=r"the table has no column 'Visit'.*differs only in case"):
        rv.from_dataframe(table, session="Visit")


@pytest.mark.parametrize("day", ["2024-03-01", "19783"])
def test_times_of_games_are_read_from_dataframes_and_files(day: str, tmp_path: Path) -> None:
    table = {"game": [1, 1], "player": ["ann", "bob"], "position": [1, 2], "day": [day, day]}
    path = tmp_path / "games.csv"
    pd.DataFrame(table).to_csv(path, index=False)
    dated = {**table, "day": [date(2024, 3, 1)] * 2}
    for given in (pa.table(table), path, pa.table(dated), pl.DataFrame(dated), pd.DataFrame(dated)):
        r = rv.read_rankings(given, time="day")
        assert r.times is not None
        assert r.times.tolist() == [19783.0]
    assert rv.read_rankings(path).times is None
    with pytest.raises(ValueError, match="the table has no column 'date'"):
        rv.read_rankings(path, time="date")


# ---- written and read


def timed(**changes: Any) -> Decisions:
    given: dict[str, Any] = {
        "rows": np.arange(8.0).reshape(4, 2),
        "start": [0, 2, 4],
        "chosen": [1, 0],
        "names": ["height", "holes"],
        "times": [19783.0 + 1 / 3, -1e-7],
        "sessions": ["morning", "evening"],
    }
    return Decisions(**{**given, **changes})


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".csv.gz"])
@pytest.mark.parametrize("sessions", [["morning", "evening"], [2, 1]])
def test_files_keep_times_and_sessions(suffix: str, sessions: list[Any], tmp_path: Path) -> None:
    d, path = timed(sessions=sessions), tmp_path / f"decisions{suffix}"
    rv.write_file(d, path)
    back = rv.read_file(path, time="time", session="session")
    np.testing.assert_array_equal(back.rows, d.rows)
    assert back.names == d.names
    assert times(back) == times(d)
    assert back.sessions is not None
    assert back.sessions.tolist() == sessions


def test_columns_of_a_table_with_times() -> None:
    table = rv.to_dataframe(timed())
    expected = ["decision", "action", "time", "session", "chosen", "height", "holes"]
    assert table.column_names == expected
    assert "time" not in rv.to_dataframe(timed(times=None)).column_names


@pytest.mark.parametrize("name", ["time", "session"])
def test_a_feature_of_that_name_is_refused_only_beside_times(name: str) -> None:
    with pytest.raises(ValueError, match=f"a feature is called '{name}', a column name with a"):
        rv.to_dataframe(timed(names=["height", name]))
    plain = rv.to_dataframe(timed(names=["height", name], times=None, sessions=None))
    assert plain.column_names[-1] == name


def test_dates_in_csv_files_are_read_as_they_are_written(tmp_path: Path) -> None:
    path = tmp_path / "dated.csv"
    head = "decision,chosen,x,day,visit\n"
    path.write_text(f"{head}1,1,0.5,2024-03-01,007\n1,0,1.5,2024-03-01,007\n")
    d = rv.read_csv(path, time="day", session="visit")
    assert times(d) == [19783.0]
    assert d.sessions is not None
    assert d.sessions.tolist() == ["007"]


def test_session_labels_that_csv_would_change_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="labels in column 'session', such as 7, would come back"):
        rv.write_file(timed(sessions=["7", "8"]), tmp_path / "decisions.csv")


@pytest.mark.parametrize("role", ["time", "session"])
def test_a_folder_is_read_without_times(role: str, tmp_path: Path) -> None:
    rv.write_file(timed(), tmp_path / "0.parquet")
    with pytest.raises(ValueError, match=f"chunk by chunk, without times; leave out {role}, or"):
        rv.scan_parquet(tmp_path, **{role: role})
    found, _ = rv.scan_parquet(tmp_path, features=["height", "holes"], time=None).load(0)
    assert found.times is None
