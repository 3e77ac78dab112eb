"""Line-ups: who would play whom, checked against the players of a ranking."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

from revealed.data.entries import Team, as_team


def check_line_up(
    line_up: Sequence[Any], names: Sequence[str], allow_new_players: bool
) -> list[Team]:
    """The entries of a line-up as teams of names.

    Refuses fewer than two, players who are in it twice, and new players unless they are allowed.
    """
    teams = [as_team(entry) for entry in line_up]
    if len(teams) < 2:
        raise ValueError(f"a line-up needs at least two entries; there are {len(teams)}")
    if not all(teams):
        raise ValueError("an entry of the line-up has no players")
    # nobody plays against himself
    members = [name for team in teams for name in team]
    if len(set(members)) < len(members):
        twice = next(name for name in members if members.count(name) > 1)
        raise ValueError(f"{twice} stands twice in the line-up")
    known = set(names)
    new = next((name for name in members if name not in known), None)
    if new is not None and not allow_new_players:
        # a typing error is more likely than a new player
        near = difflib.get_close_matches(new, names, 1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise ValueError(
            f"{new!r} was in no game{hint}; pass allow_new_players=True to treat such a player as "
            "drawn from the population"
        )
    return teams
