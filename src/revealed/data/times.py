"""When something happened, as numbers: trials as they are, dates as days since 1970-01-01.

A date is a whole number of days, an hour is 1/24 of one. A moment with a time zone is that moment
in UTC, one without is taken as it is written.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from numbers import Real
from typing import Any

import numpy as np

from revealed._types import Floats, Labels
from revealed.data.checks import check_flat, check_labels
from revealed.data.labels import missing_label

EPOCH = datetime(1970, 1, 1)


def check_times(times: Any, ids: Sequence[Any] | Labels, item: str = "decision") -> Floats:
    """(n,) finite numbers from numbers or dates, one for each of ids.

    item: what each of them belongs to, a decision or a game.
    """
    given = check_flat("times", times)
    if given.shape != (len(ids),):
        raise ValueError(
            f"times has shape {given.shape}, but there are {len(ids)} {item}s; "
            f"give one time for each {item}"
        )
    numbers = _to_numbers(given)
    # A random walk needs to know how long every step is: no time may be missing.
    wrong = np.flatnonzero(~np.isfinite(numbers))
    if wrong.size:
        t = int(wrong[0])
        held = "NaN" if np.isnan(numbers[t]) else "infinite"
        raise ValueError(
            f"{item} {ids[t]}: its time is {held}; every time must be a finite number or a date"
        )
    return numbers


def check_sessions(sessions: Any, ids: Labels) -> Labels:
    """(T,) the label of each decision's session, none of them missing."""
    labels = check_labels("sessions", sessions, len(ids), "decision")
    # Numbers that are whole and text are always there.
    wrong = None if labels.dtype.kind in "biuSU" else missing_label(labels)
    if wrong is not None:
        raise ValueError(
            f"decision {ids[wrong]}: its session is missing; every decision needs a label of one"
        )
    return labels


def dates_to_days(dates: Labels) -> Floats:
    """Days since 1970-01-01 of numpy's dates; NaN where there is none."""
    # Years and months have no fixed number of days, and NaT alone has no unit at all.
    if np.datetime_data(dates.dtype)[0] in ("generic", "Y", "M", "W"):
        dates = dates.astype("datetime64[D]")
    # Numpy divides in the finer unit of the two, and what is missing becomes NaN.
    return np.asarray((dates - np.datetime64(0, "D")) / np.timedelta64(1, "D"), dtype=np.float64)


def texts_to_times(where: str, texts: Iterable[str | None]) -> Floats:
    """Times that are written as text: numbers, or ISO dates such as 2024-03-01 or 2024-03-01T15:30.

    where: how a message begins. All are numbers, or all are dates; what is missing is NaN.
    """
    written = [None if text is None else text.strip() for text in texts]
    known = [text for text in written if text]
    # A year alone is a number; 20240301, which Python takes for a date, is one too.
    numbers = [_number(text) for text in known]
    if any(number is not None for number in numbers):
        read: Any = float
        wrong = [text for text, number in zip(known, numbers, strict=True) if number is None]
    else:
        read = _date_to_days
        wrong = [text for text in known if _date(text) is None]
    # The first that does not go with the others is named.
    if wrong:
        raise ValueError(
            f"{where} holds {wrong[0]!r}; times must be all numbers, "
            "or all dates written as 2024-03-01 or 2024-03-01T15:30"
        )
    return np.array([read(text) if text else np.nan for text in written], dtype=np.float64)


def times_of_games(
    game: Sequence[Any], times: Sequence[Any], games: Iterable[Hashable]
) -> list[float]:
    """When each of games was played, from the columns of a table with a row for each player.

    Refuses a game of which two rows have different times.
    """
    items = list(times)
    known = [item for item in items if not _is_missing(item)]
    if known and all(isinstance(item, str) for item in known):
        texts = (None if _is_missing(item) else item for item in items)
        numbers = texts_to_times("the column of times", texts)
    else:
        # Every item as it is: numpy would make text of numbers beside text.
        column = np.empty(len(items), dtype=object)
        column[:] = items
        numbers = _to_numbers(column)
    # The first row of a game says when it was; all others must agree, also where nothing is said.
    found: dict[Hashable, float] = {}
    for g, number, item in zip(game, numbers.tolist(), items, strict=True):
        first = found.setdefault(g, number)
        if first != number and not (math.isnan(first) and math.isnan(number)):
            raise ValueError(
                f"game {g}: one row has the time {item}, and another has another; "
                "a game is played at one time"
            )
    return [found[g] for g in games]


def are_dates(items: Iterable[Any]) -> bool:
    """Whether a column of times has dates, which become days, rather than numbers."""
    known = [item for item in items if not _is_missing(item) and str(item).strip()]
    return bool(known) and all(
        _number(item) is None if isinstance(item, str) else isinstance(item, date | np.datetime64)
        for item in known
    )


def _to_numbers(given: Labels) -> Floats:
    """Numbers or dates of any kind as floats.

    Dates become days; what is missing becomes NaN, for others to refuse.
    """
    if given.dtype.kind in "iuf":
        return given.astype(np.float64)
    if given.dtype.kind == "M":
        return dates_to_days(given)
    items = given.tolist()
    # What is missing is NaN, as in a column of numbers: None, NaT, and what differs from itself.
    known = [item for item in items if not _is_missing(item)]
    if given.dtype.kind == "O":
        # A moment is a date to Python too, and so is a timestamp of pandas.
        if all(isinstance(item, date | np.datetime64) for item in known):
            found = [np.nan if _is_missing(item) else _date_to_days(item) for item in items]
            return np.array(found, dtype=np.float64)
        # True is a number to Python, and no time.
        if all(isinstance(item, Real) and not isinstance(item, bool) for item in known):
            found = [np.nan if _is_missing(item) else float(item) for item in items]
            return np.array(found, dtype=np.float64)
    raise ValueError(f"times must be all numbers or all dates; one is {known[0]!r}")


def _is_missing(item: Any) -> bool:
    """Whether an item is None, NaN, NaT, or what pandas has for that.

    NaN and NaT differ from themselves; pandas' own is known by its name alone.
    """
    return item is None or str(item) in ("<NA>", "NaT") or bool(item != item)


def _date_to_days(item: Any) -> float:
    """Days since 1970-01-01 of a date, a moment, or either as ISO text."""
    if isinstance(item, str):
        item = _date(item)
    if isinstance(item, np.datetime64):
        return float(dates_to_days(np.array(item)))
    if not isinstance(item, datetime):
        return float((item - EPOCH.date()).days)
    # Clocks of several places are compared in UTC.
    if item.tzinfo is not None:
        item = item.astimezone(UTC).replace(tzinfo=None)
    return float((item - EPOCH) / timedelta(days=1))


def _number(text: str) -> float | None:
    """The number that a text is, or None."""
    try:
        return float(text)
    except ValueError:
        return None


def _date(text: str) -> datetime | None:
    """The moment that a text in ISO form is, or None."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
