"""Entries of a game: players and teams, and those that share a rank."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from revealed._types import Bools
from revealed.data.positions import is_missing

Team = tuple[str, ...]
"""The players of one entry."""


def as_team(entry: Any, where: str = "") -> Team:
    """An entry as the names in it: one for a player, several for a team.

    where: how a message begins.
    """
    if isinstance(entry, Mapping):
        raise ValueError(f"{where}an entry is a name or a tuple of names, not a mapping")
    # A text is iterable too, letter by letter.
    alone = isinstance(entry, str) or not isinstance(entry, Iterable)
    names = (entry,) if alone else tuple(entry)
    if any(map(is_missing, names)):
        raise ValueError(f"{where}a name is missing; every entry needs one")
    return tuple(map(str, names))


def longest_tie(tied: Bools) -> int:
    """How many entries share a rank at most.

    tied: (n,) whether an entry of one game ties with the one before it.
    """
    longest = run = 1
    # A run of flags of length n is a tie of n + 1 entries.
    for flag in tied.tolist():
        run = run + 1 if flag else 1
        longest = max(longest, run)
    return longest
