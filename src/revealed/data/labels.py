"""Labels of states and actions: checked, and looked up as positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from revealed._types import Ints, Labels


def check_labels(what: str, labels: Sequence[Any] | None, count: int) -> tuple[Any, ...]:
    """One label for each of `count` states or actions; positions where none are given.

    A number among labels would be ambiguous, because a number means a position everywhere.
    """
    try:
        given = tuple(range(count)) if labels is None else tuple(labels)
        # Labels are looked up in mappings, so they must be hashable.
        hash(given)
    except TypeError:
        raise ValueError(
            f"{what} must be a list of labels, each a word or a tuple; it is {labels!r}"
        ) from None
    if len(given) != count:
        raise ValueError(f"{len(given)} labels for {count} {what}; give one label for each")
    for i, label in enumerate(given):
        if isinstance(label, int | float | np.number) and label != i:
            raise ValueError(
                f"{what}: the label {label} at position {i} is a number, and numbers mean "
                f"positions; label with words, such as '{label}'"
            )
    # Labels are compared as text, since coefficient names are made of them.
    texts: set[str] = set()
    for label in given:
        if str(label) in texts:
            raise ValueError(f"{what}: the label {label} is used twice; labels must differ")
        texts.add(str(label))
    return given


def to_positions(where: str, what: str, given: Any, labels: tuple[Any, ...]) -> Ints:
    """Labels or positions of states or actions, as positions.

    where: what a message says the mistake is at; "time" is followed by a number.
    """
    count = len(labels)
    if isinstance(given, np.ndarray) and given.ndim == 1 and given.dtype.kind in "iu":
        positions = given.astype(np.int64)
        found = np.where((positions >= 0) & (positions < count), positions, -1)
    else:
        try:
            # Both labels and positions are understood; a whole number is always a position.
            known = {label: i for i, label in enumerate(labels)} | {i: i for i in range(count)}
            found = np.array([known.get(item, -1) for item in given], dtype=np.int64)
        except TypeError:
            raise ValueError(
                f"{what}s must be a list of labels or positions, one for each time"
            ) from None
    # The first mistake is named, with what would be right.
    wrong = np.flatnonzero(found < 0)
    if wrong.size:
        t = int(wrong[0])
        span = f"0 to {count - 1}" + (
            "" if labels == tuple(range(count)) else f", or a label such as {labels[0]}"
        )
        at = f"{where} {t}" if where == "time" else where
        raise ValueError(f"{at}: {what} {list(given)[t]} is unknown; the {what}s are {span}")
    return found


def missing_label(labels: Labels) -> int | None:
    """The position of the first label that is missing, None where each is there."""
    # NaN is the only value that differs from itself: a table's way to say that a label is missing.
    wrong = (i for i, label in enumerate(labels.tolist()) if label is None or label != label)
    return next(wrong, None)
