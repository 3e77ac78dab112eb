"""How values change: what a model takes and refuses, and the nodes and steps it makes of times."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed.models.over_time import SCALES


def dated(times: Any, sessions: Any = None, width: int = 2) -> rv.Decisions:
    """Decisions between two actions at these times."""
    rng, count = np.random.default_rng(3), len(times)
    rows = rng.standard_normal((2 * count, width))
    chosen = rng.integers(2, size=count)
    return rv.Decisions(rows, range(0, 2 * count + 1, 2), chosen, times=times, sessions=sessions)


def resolve(d: rv.Decisions, over_time: Any, **parts: Any) -> Any:
    return rv.ChoiceModel(prior=rv.Normal(2.0), over_time=over_time, **parts).resolve(d).over_time


def test_decisions_at_one_time_share_a_value_whatever_their_order() -> None:
    found = resolve(dated([5.0, 1.0, 5.0, 2.5]), rv.RandomWalk())
    np.testing.assert_array_equal(found.times, [1.0, 2.5, 5.0])
    np.testing.assert_array_equal(found.node, [2, 0, 2, 1])
    np.testing.assert_array_equal(found.process.gap[1:], [1.5, 2.5])


def test_a_new_session_is_a_step_of_its_own() -> None:
    d = dated([1.0, 2.0, 3.0, 4.0], ["mon", "mon", "tue", "tue"])
    found = resolve(d, rv.RandomWalk(between_sessions=rv.HalfStudentT()))
    np.testing.assert_array_equal(found.process.crosses, [False, False, True, False])
    assert not resolve(d, rv.RandomWalk()).process.crosses.any()


def test_the_default_scale_is_of_the_change_from_first_to_last() -> None:
    """In other units of time the same path is as probable."""
    for unit in (1.0, 365.25):
        d = dated(unit * np.arange(10.0))
        scale = resolve(d, rv.RandomWalk()).process.scales[0]
        assert scale * np.sqrt(9.0 * unit) == pytest.approx(SCALES.change)
        rate = resolve(d, rv.MeanReverting()).process.scales
        assert rate[-1] * 9.0 * unit == pytest.approx(SCALES.reversions)


def test_sizes_are_for_each_coefficient_or_shared() -> None:
    d = dated(range(6))
    names = [p.shape for p in rv.ChoiceModel(over_time=rv.RandomWalk()).resolve(d).parameters]
    assert (2,) in names
    shared = rv.ChoiceModel(over_time=rv.RandomWalk(shared=True)).resolve(d).parameters
    assert {p.name: p.shape for p in shared}["drift_sd"] == (1,)
    given = rv.ChoiceModel(over_time=rv.RandomWalk([0.1, 0.2])).resolve(d).parameters
    assert "drift_sd" not in {p.name for p in given}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: rv.RandomWalk(sd=-1.0), "sd"),
        (lambda: rv.RandomWalk(sd=float("nan")), "sd"),
        (lambda: rv.RandomWalk(between_sessions=0.0), "between_sessions"),
        (lambda: rv.MeanReverting(rate="fast"), "rate"),  # type: ignore[arg-type]
        (lambda: rv.RandomWalk(shared="yes"), "shared"),  # type: ignore[arg-type]
        (lambda: resolve(dated(range(5)), rv.RandomWalk([0.1, 0.2, 0.3])), "3"),
        (lambda: rv.ChoiceModel(prior=rv.Flat(), over_time=rv.RandomWalk()), "a proper prior"),
        (
            lambda: resolve(dated(range(5)), rv.RandomWalk(between_sessions=1.0)),
            "session",
        ),
    ],
)
def test_what_is_refused_says_what_is_wrong(make: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()


def test_decisions_without_times_are_refused() -> None:
    d = rv.Decisions(np.eye(2), [0, 2], [0])
    with pytest.raises(ValueError, match="time"):
        rv.fit(d, rv.ChoiceModel(over_time=rv.RandomWalk()), draws=10, progress=False)
