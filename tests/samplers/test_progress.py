"""What is said while something works, on a terminal and off it."""

from __future__ import annotations

import logging

import numpy as np
import pytest

import revealed as rv
from revealed.samplers.progress import (
    LOGGER,
    ProgressLog,
    announce_memory,
    format_seconds,
    progress_bar,
)


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def without_handlers(patch: pytest.MonkeyPatch) -> None:
    """As in a program that has set up no logging: pytest's own handlers stand aside."""
    patch.setattr(logging.getLogger(), "handlers", [])


def log_of(clock: Clock, total: float | None = 200.0, completed: float = 0.0) -> ProgressLog:
    log = ProgressLog("composite: 4 chains", total, completed, clock)
    log(completed)  # the first step, which starts the clock
    return log


def test_lines_come_at_growing_intervals_with_the_time_that_is_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without_handlers(monkeypatch)
    clock = Clock()
    log = log_of(clock)
    said = {}
    for second in range(1, 101):
        clock.now = 100.0 + second
        log(second)
        if line := capsys.readouterr().err:
            said[second] = line
    assert said == {
        1: "revealed: composite: 4 chains: this will take about 3 min\n",
        10: "revealed: composite: 4 chains: 5 % after 10 s, about 3 min more\n",
        30: "revealed: composite: 4 chains: 15 % after 30 s, about 3 min more\n",
        70: "revealed: composite: 4 chains: 35 % after 70 s, about 2 min more\n",
    }


def test_what_an_earlier_run_has_done_does_not_count_for_the_pace(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without_handlers(monkeypatch)
    clock = Clock()
    log = log_of(clock, completed=100.0)
    clock.now += 20.0
    log(110.0)
    assert "55 % after 20 s, about 3 min more" in capsys.readouterr().err
    log = log_of(clock, completed=100.0)
    clock.now += 20.0
    log(100.0)  # nothing done yet: nobody knows how long it will take
    assert capsys.readouterr().err == "revealed: composite: 4 chains: 50 % after 20 s\n"


def test_work_of_unknown_size_says_how_long_it_has_taken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without_handlers(monkeypatch)
    clock = Clock()
    log = log_of(clock, total=None)
    clock.now += 200.0
    log(0.0)
    assert capsys.readouterr().err == "revealed: composite: 4 chains: 3 min so far\n"


@pytest.mark.parametrize(
    ("pace", "foretold"), [(4.0, "about 2 min"), (15.0, "about 26 s"), (50.0, None)]
)
def test_long_work_is_foretold_once_its_pace_is_known_and_short_work_is_not(
    pace: float,
    foretold: str | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    without_handlers(monkeypatch)
    clock = Clock()
    log = log_of(clock, total=400.0)
    for tenth in range(1, 50):
        clock.now = 100.0 + tenth / 10.0
        log(pace * tenth / 10.0)
    said = capsys.readouterr().err
    wanted = f"revealed: composite: 4 chains: this will take {foretold}\n" if foretold else ""
    assert said == wanted


def test_of_work_within_other_work_only_the_outer_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without_handlers(monkeypatch)
    clock = Clock()
    monkeypatch.setattr("revealed.samplers.progress.time.monotonic", clock)
    with progress_bar("outer", total=2.0) as outer:
        outer(0.0)
        with progress_bar("inner", total=2.0) as inner:
            inner(0.0)
            clock.now += 30.0
            inner(1.0)
        outer(1.0)
    assert capsys.readouterr().err == "revealed: outer: 50 % after 30 s, about 30 s more\n"
    with progress_bar("next", total=2.0) as later:
        later(0.0)
        clock.now += 30.0
        later(1.0)
    assert "next" in capsys.readouterr().err


class SlowClock(Clock):
    """Each look at it takes four seconds."""

    def __call__(self) -> float:
        self.now += 4.0
        return self.now


@pytest.mark.parametrize("work", ["prediction", "prediction by groups", "leaving one out"])
def test_long_work_on_a_posterior_says_how_far_it_is(
    work: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((2000, 2))
    chosen = rng.integers(0, 2, 1000)
    groups = np.arange(1000) % 20 if work == "prediction by groups" else None
    decisions = rv.Decisions(rows, np.arange(0, 2001, 2), chosen, groups=groups)
    model = rv.ChoiceModel(groups=rv.Separate()) if groups is not None else None
    post = rv.fit(decisions, model, draws=200, progress=False)
    without_handlers(monkeypatch)
    monkeypatch.setattr("revealed.samplers.progress.time.monotonic", SlowClock())
    if work == "leaving one out":
        post.loo()
    else:
        post.predict(decisions)
    said = capsys.readouterr().err
    assert f"{work.split(' by')[0]}: this will take about" in said
    assert "% after" in said


def test_much_memory_is_said_before_a_fit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without_handlers(monkeypatch)
    announce_memory(2.34e9, None)
    assert capsys.readouterr().err == "revealed: this fit will take up to 2.3 GB of memory\n"
    announce_memory(2.34e9, False)
    announce_memory(0.5e9, None)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("how", ["progress=False", "level"])
def test_one_setting_switches_it_off(
    how: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    without_handlers(monkeypatch)
    clock = Clock()
    monkeypatch.setattr("revealed.samplers.progress.time.monotonic", clock)

    def work(show: bool | None) -> str:
        with progress_bar("work", total=10.0, show=show) as completed:
            completed(0.0)
            clock.now += 100.0
            completed(5.0)
        return capsys.readouterr().err

    assert "50 %" in work(show=None)
    level = LOGGER.level
    if how == "level":
        LOGGER.setLevel("WARNING")
    try:
        assert work(show=False if how == "progress=False" else None) == ""
    finally:
        LOGGER.setLevel(level)


def test_a_program_with_handlers_of_its_own_gets_each_line_once(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Clock()
    log = log_of(clock)
    clock.now += 10.0
    with caplog.at_level(logging.INFO, logger="revealed"):
        log(100.0)
    assert [record.getMessage() for record in caplog.records] == [
        "composite: 4 chains: 50 % after 10 s, about 10 s more"
    ]
    assert capsys.readouterr().err == ""


def test_durations_are_written_for_people() -> None:
    assert [format_seconds(s) for s in (0.4, 89.0, 100.0, 5000.0, 7200.0)] == [
        "0 s",
        "89 s",
        "2 min",
        "83 min",
        "2.0 h",
    ]
