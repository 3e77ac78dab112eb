"""DataWarning: data that can be read and are more likely a mistake than meant."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from typing import Any


class DataWarning(UserWarning):
    """Data were read that look like a mistake; the message says where, and the way out.

    A column taken for a feature that looks like an id, labels that differ in case or blanks only,
    an action that is offered twice, scores where positions are expected. Turn it into an error
    with ``warnings.simplefilter("error", rv.DataWarning)``.

    Examples
    --------
    >>> import pyarrow as pa, warnings
    >>> trips = {"decision": [1, 1, 2, 2], "chosen": [1, 0, 0, 1], "price": [3, 2, 4, 5]}
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     d = rv.from_dataframe(pa.table({**trips, "person": [7, 7, 8, 8]}))
    >>> str(said[0].message)
    "every column was taken for a feature ('price', 'person'), but 'person' is the same for all ..."
    """


def warn_of_data(sentence: str) -> None:
    """Warn, and point at the line of the caller's that is outside of this package."""
    package, depth = __name__.partition(".")[0], 1
    frame = sys._getframe(0)
    while frame.f_back is not None and _package_of(frame.f_globals) == package:
        frame, depth = frame.f_back, depth + 1
    warnings.warn(sentence, DataWarning, stacklevel=depth)


def warn_of_similar_labels(what: str, labels: Iterable[Any]) -> None:
    """Warn where labels differ only in case or in blanks around them.

    what: what the sentence calls the labels.
    """
    seen: dict[str, str] = {}
    pairs: list[str] = []
    for label in labels:
        # Numbers and the like cannot be mistyped in this way.
        if isinstance(label, str):
            first = seen.setdefault(label.strip().casefold(), label)
            if first != label:
                pairs.append(f"{str(first)!r} and {str(label)!r}")
    if pairs:
        others = f" (and {len(pairs) - 1} more like them)" if len(pairs) > 1 else ""
        warn_of_data(
            f"{what}: {pairs[0]} differ only in case or blanks{others}, and are taken for two; "
            "write them alike if they are one"
        )


def _package_of(names: dict[str, Any]) -> str:
    """The package that a frame's global names belong to."""
    return str(names.get("__name__", "")).partition(".")[0]
