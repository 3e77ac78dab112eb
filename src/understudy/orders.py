"""Orders: who took part in each game, best first, who tied, and of whom is only known that they came behind.

A finishing order is not a decision: the noise of a game is shared by all its comparisons. It is a noun of its own beside
`Decisions`. An entry is a player or a team.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy._arrays import Bools, Ints

Team = tuple[str, ...]
"""The players of one entry."""

MOST_TIED = 8
"""Entries that may share a place: their likelihood has a term for every subset of them."""

ABSENT = ("DNS", "DNQ", "DNPQ", "DNP", "WD", "EX")
"""Positions of those who did not take part."""


@dataclass(frozen=True, eq=False, repr=False)
class Orders:
    """Finishing orders; frozen, and checked when made.

    names: (K,) the players. players: who is in entry e, from first[e] on. start: (G + 1,) where the entries of each game
    begin, best first. tied: (E,) with the entry before it. known: (G,) how many entries of a game are in order; those
    after them came behind, in an order that is not known. ids: (G,) what the games are called.

    >>> us.Orders.of([["ann", "bob", "cid"], [("ann", "bob"), ("cid", "dan")]])  # a race, then two teams
    <Orders: 2 games of 4 players>
    >>> us.Orders.from_columns(game=[1, 1, 1], player=["ann", "bob", "cid"], position=[1, 1, "DNF"])  # a tie; cid behind
    <Orders: 1 games of 3 players>
    """

    names: tuple[str, ...]
    players: Ints
    first: Ints
    start: Ints
    tied: Bools
    known: Ints
    ids: tuple[Hashable, ...]

    def __post_init__(self) -> None:
        for game, (low, high, known) in enumerate(zip(self.start[:-1], self.start[1:], self.known, strict=True)):
            here = f"game {self.ids[game]}"
            if high - low < 2:
                raise ValueError(f"{here}: there is one entry; a game needs at least two")
            if known < 1:
                raise ValueError(f"{here}: there is no winner; nobody has a position")
            if self.tied[low] or self.tied[low + known : high].any():
                raise ValueError(f"{here}: only entries with a position can tie, and the first has nobody before it")
            if longest_run(self.tied[low:high]) > MOST_TIED:
                raise ValueError(
                    f"{here}: more than {MOST_TIED} entries share a place; leave their positions out to say only that they are behind"
                )
            inside = self.players[self.first[low] : self.first[high]]
            if len(set(inside.tolist())) < len(inside):
                twice = next(p for p in inside.tolist() if (inside == p).sum() > 1)
                raise ValueError(f"{here}: {self.names[twice]} takes part twice")

    def __len__(self) -> int:
        return len(self.known)

    def __repr__(self) -> str:
        return f"<Orders: {len(self)} games of {len(self.names)} players>"

    @property
    def sizes(self) -> Ints:
        """(E,) players in each entry."""
        return np.diff(self.first)

    @property
    def games(self) -> Ints:
        """(K,) games each player took part in."""
        return np.bincount(self.players, minlength=len(self.names))

    @property
    def level(self) -> bool:
        """Whether all entries of each game have as many players: then games say nothing of the level of all skills."""
        most, fewest = (pick.reduceat(self.sizes, self.start[:-1]) for pick in (np.maximum, np.minimum))
        return bool((most == fewest).all())

    @property
    def has_ties(self) -> bool:
        """Whether any two entries tied."""
        return bool(self.tied.any())

    def game(self, g: int) -> tuple[list[Team], Bools, int]:
        """The teams of one game in order, who of them ties with the one before, and how many are in order."""
        low, high = self.start[g], self.start[g + 1]
        ends = zip(self.first[low:high], self.first[low + 1 : high + 1], strict=True)
        teams = [tuple(self.names[p] for p in self.players[i:j]) for i, j in ends]
        return teams, self.tied[low:high], int(self.known[g])

    def __getitem__(self, which: slice) -> Orders:
        """Some of the games, with all players kept."""
        if not isinstance(which, slice):
            raise TypeError("orders are cut with a slice, as in orders[:100]")
        return self.take(range(*which.indices(len(self))))

    def take(self, games: Iterable[int]) -> Orders:
        """These games, with all players kept."""
        made = _Maker(self.names)
        for g in games:
            entries = range(self.start[g], self.start[g + 1])
            teams = [self.players[self.first[e] : self.first[e + 1]].tolist() for e in entries]
            made.add(self.ids[g], teams, [bool(self.tied[e]) for e in entries], int(self.known[g]))
        return made.orders()

    @staticmethod
    def of(games: Iterable[Sequence[Any]], winner_only: bool = False) -> Orders:
        """From lists of entries, best first: an entry is a name, or a tuple of names for a team.

        >>> us.Orders.of([["ann", "bob", "cid"], [("ann", "bob"), ("cid", "dan")]])
        <Orders: 2 games of 4 players>
        """
        listed = []
        for g, game in enumerate(games):
            if isinstance(game, str) or not isinstance(game, Iterable):
                raise ValueError(f"game {g} is {game!r}; a game is a list of its entries, best first")
            listed.append([as_team(entry) for entry in game])
        names = tuple(dict.fromkeys(name for game in listed for team in game for name in team))
        place = {name: k for k, name in enumerate(names)}
        made = _Maker(names)
        for g, game in enumerate(listed):
            known = min(1, len(game)) if winner_only else len(game)
            made.add(g, [[place[name] for name in team] for team in game], [False] * len(game), known)
        return made.orders()

    @staticmethod
    def from_columns(
        game: Sequence[Any],
        player: Sequence[Any],
        position: Sequence[Any],
        team: Sequence[Any] | None = None,
        winner_only: bool = False,
    ) -> Orders:
        """From the columns of a long table, a row for each player in each game.

        position: a number, equal for a tie; anything else ("DNF", or nothing) is behind all who have one. Who did not take
        part (see ABSENT) is left out. team: players of one team in a game are one entry, with one position.
        """
        if not len(game) == len(player) == len(position) or (team is not None and len(team) != len(game)):
            raise ValueError("game, player, position and team must be columns of the same length")
        rows: dict[Any, dict[Any, tuple[float, list[str]]]] = {}
        for i, (g, who, at) in enumerate(zip(game, player, position, strict=True)):
            if isinstance(at, str) and at.strip().upper() in ABSENT:
                continue
            here = rows.setdefault(g, {})
            entry = ("player", str(who)) if team is None else ("team", team[i])
            rank = _rank(at)
            if entry in here:
                if team is None:
                    raise ValueError(f"game {g}: {who} takes part twice")
                if here[entry][0] != rank and not (math.isinf(rank) and math.isinf(here[entry][0])):
                    raise ValueError(f"game {g}: the players of team {team[i]} have different positions")
                here[entry][1].append(str(who))
            else:
                here[entry] = rank, [str(who)]
        if not rows:
            raise ValueError("there are no games in the table")
        names = tuple(dict.fromkeys(n for here in rows.values() for _, members in here.values() for n in members))
        place = {name: k for k, name in enumerate(names)}
        made = _Maker(names)
        for g, here in rows.items():
            entries = sorted(here.values(), key=lambda entry: entry[0])
            ranks = [rank for rank, _ in entries]
            known = sum(map(math.isfinite, ranks))
            tied = [k > 0 and k < known and ranks[k] == ranks[k - 1] for k in range(len(ranks))]
            if winner_only:
                if len(ranks) > 1 and tied[1]:
                    raise ValueError(f"game {g}: {known} entries share the first place, so there is no one winner")
                tied, known = [False] * len(ranks), min(known, 1)
            made.add(g, [[place[n] for n in members] for _, members in entries], tied, known)
        return made.orders()


def longest_run(tied: Bools) -> int:
    """How many entries share a place at most."""
    longest = run = 1
    for flag in tied.tolist():
        run = run + 1 if flag else 1
        longest = max(longest, run)
    return longest


class _Maker:
    """Collects games one by one."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.players: list[int] = []
        self.first, self.start = [0], [0]
        self.tied: list[bool] = []
        self.known: list[int] = []
        self.ids: list[Hashable] = []

    def add(self, name: Hashable, teams: Sequence[Sequence[int]], tied: Sequence[bool], known: int) -> None:
        for members in teams:
            if not members:
                raise ValueError(f"game {name}: an entry has no players")
            self.players.extend(members)
            self.first.append(len(self.players))
        self.tied.extend(tied)
        self.start.append(len(self.first) - 1)
        self.known.append(known)
        self.ids.append(name)

    def orders(self) -> Orders:
        if not self.known:
            raise ValueError("there are no games; at least one is needed")
        players, first, start = (np.array(part, np.int64) for part in (self.players, self.first, self.start))
        tied, known = np.array(self.tied, np.bool_), np.array(self.known, np.int64)
        return Orders(self.names, players, first, start, tied, known, tuple(self.ids))


def as_team(entry: Any) -> Team:
    """An entry as the names in it."""
    if isinstance(entry, str) or not isinstance(entry, Iterable):
        return (str(entry),)
    if isinstance(entry, Mapping):
        raise ValueError("an entry is a name or a tuple of names, not a mapping")
    return tuple(str(name) for name in entry)


def _rank(position: Any) -> float:
    """The position as a number; infinity where it is none."""
    try:
        rank = float(position)
    except (TypeError, ValueError):
        return math.inf
    return rank if math.isfinite(rank) else math.inf
