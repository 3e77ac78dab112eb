"""What else is known of the members of a game's entries: labels or numbers, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from revealed._types import Labels
from revealed.data.labels import missing_label


def check_member_columns(columns: Mapping[str, Any], count: int) -> Mapping[str, Labels]:
    """Columns (M,) of labels, as text, or of finite numbers; frozen.

    Refuses what is missing, and columns of another length.
    """
    found = {}
    for name, given in columns.items():
        if not isinstance(name, str) or not name or "*" in name or name == "player":
            raise ValueError(
                f"a column of games cannot be called {name!r}; give another name, without an *"
            )
        column = np.asarray(given)
        if column.shape != (count,):
            raise ValueError(
                f"the column {name} has shape {column.shape}, and games have {count} players in "
                "all; give one value for each"
            )
        # numbers are numbers, and everything else is what it is called
        numbers = column.dtype.kind in "iuf"
        wrong = np.flatnonzero(~np.isfinite(column)) if numbers else missing_label(column)
        if wrong is not None and np.size(wrong):
            at = int(np.ravel(wrong)[0])
            raise ValueError(f"the column {name} has nothing for player {at} of all games")
        # a copy, so that nobody else can change it
        column = column.astype(np.float64) if numbers else column.astype(str)
        column.flags.writeable = False
        found[name] = column
    return MappingProxyType(found)


def pick_rows(
    columns: Mapping[str, Sequence[Any]], game: Sequence[Any], player: Sequence[Any], builder: Any
) -> dict[str, Labels]:
    """Columns of a long table in the order of the members that a builder has.

    A player has one row in a game.
    """
    row = {(g, str(name)): i for i, (g, name) in enumerate(zip(game, player, strict=True))}
    order = [row[key] for key in builder.rows()]
    return {name: _as_array(column)[order] for name, column in columns.items()}


def _as_array(column: Sequence[Any]) -> Labels:
    """A column as an array, of numbers where all of it can be read as such.

    Tables that were written as text have numbers as text.
    """
    array = np.asarray(column)
    if array.dtype.kind in "iuf":
        return array
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        return array
