"""Rankings: who took part in each game, best first, who tied, and who only came behind.

A finishing order is not a decision: the noise of a game is shared by all its comparisons. So it is
a noun of its own beside `Decisions`. An entry of a game is a player or a team.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from revealed._types import Bools, Ints
from revealed.data.data_warning import warn_of_similar_labels
from revealed.data.positions import (
    group_by_game,
    is_missing,
    rank_of_position,
    rank_of_score,
    require_labels,
    warn_of_scores,
)

Team = tuple[str, ...]
"""The players of one entry."""

# Entries that may share a rank. The likelihood of a tie has a term for every subset of the tied:
# 256 for eight of them, and twice as many for each more.
MAX_TIED = 8


@dataclass(frozen=True, eq=False, repr=False)
class Rankings:
    """Finishing orders of G games with E entries in all; frozen, and checked when made.

    Usually made by `from_lists` or `from_columns`.

    Parameters
    ----------
    names
        The K players.
    players
        The members of all entries, as positions in `names`.
    member_start
        (E + 1,) where the members of each entry begin in `players`.
    start
        (G + 1,) where the entries of each game begin, best first.
    tied
        (E,) whether an entry tied with the one before it.
    n_ordered
        (G,) how many entries of a game are in order; those after them came behind, in an order
        that is not known.
    ids
        (G,) what the games are called.

    Examples
    --------
    A race, then a game of two teams:

    >>> rv.Rankings.from_lists([["ann", "bob", "cid"], [("ann", "bob"), ("cid", "dan")]])
    <Rankings: 2 games of 4 players>

    A tie, and cid behind:

    >>> names = ["ann", "bob", "cid"]
    >>> rv.Rankings.from_columns(game=[1, 1, 1], player=names, position=[1, 1, "DNF"])
    <Rankings: 1 games of 3 players>
    """

    names: tuple[str, ...]
    players: Ints
    member_start: Ints
    start: Ints
    tied: Bools
    n_ordered: Ints
    ids: tuple[Hashable, ...]

    def __post_init__(self) -> None:
        games = zip(self.start[:-1], self.start[1:], self.n_ordered, strict=True)
        for game, (low, high, n_ordered) in enumerate(games):
            where = f"game {self.ids[game]}"
            if high - low < 2:
                raise ValueError(f"{where}: there is one entry; a game needs at least two")
            if n_ordered < 1:
                raise ValueError(f"{where}: there is no winner; nobody has a position")
            # Entries in no known order cannot be known to be equal.
            if self.tied[low] or self.tied[low + n_ordered : high].any():
                raise ValueError(
                    f"{where}: only entries with a position can tie, "
                    "and the first has nobody before it"
                )
            if longest_tie(self.tied[low:high]) > MAX_TIED:
                raise ValueError(
                    f"{where}: more than {MAX_TIED} entries share a rank; "
                    "leave their positions out to say only that they are behind"
                )
            # The same player in two entries of a game would race against himself.
            members = self.players[self.member_start[low] : self.member_start[high]]
            if len(set(members.tolist())) < len(members):
                twice = next(p for p in members.tolist() if (members == p).sum() > 1)
                raise ValueError(f"{where}: {self.names[twice]} takes part twice")

    def __len__(self) -> int:
        return len(self.n_ordered)

    def __repr__(self) -> str:
        return f"<Rankings: {len(self)} games of {len(self.names)} players>"

    @property
    def sizes(self) -> Ints:
        """(E,) players in each entry."""
        return np.diff(self.member_start)

    @property
    def games(self) -> Ints:
        """(K,) games each player took part in.

        Zero for players who are only named, as in a part of the games that `take` has kept.
        """
        return np.bincount(self.players, minlength=len(self.names))

    @property
    def location_free(self) -> bool:
        """Whether all entries of each game have as many players.

        Then adding a constant to all skills changes no probability: the games say nothing of the
        location of the skills.
        """
        most, fewest = (
            pick.reduceat(self.sizes, self.start[:-1]) for pick in (np.maximum, np.minimum)
        )
        return bool((most == fewest).all())

    @property
    def has_ties(self) -> bool:
        """Whether any two entries tied."""
        return bool(self.tied.any())

    def game(self, g: int) -> tuple[list[Team], Bools, int]:
        """The entries of one game in order, which of them tie, and how many are in order.

        Parameters
        ----------
        g
            The position of the game.

        Returns
        -------
        teams, tied, n_ordered
            The names in each entry, best first; whether an entry ties with the one before it;
            and how many entries are in order.
        """
        low, high = self.start[g], self.start[g + 1]
        ends = zip(self.member_start[low:high], self.member_start[low + 1 : high + 1], strict=True)
        teams = [tuple(self.names[p] for p in self.players[i:j]) for i, j in ends]
        return teams, self.tied[low:high], int(self.n_ordered[g])

    def __getitem__(self, which: slice) -> Rankings:
        """Some of the games, with all players kept."""
        if not isinstance(which, slice):
            raise TypeError("rankings are cut with a slice, as in rankings[:100]")
        return self.take(range(*which.indices(len(self))))

    def take(self, games: Iterable[int]) -> Rankings:
        """The games at these positions, in this order, with all players kept.

        Parameters
        ----------
        games
            Positions, from 0.

        Returns
        -------
        Rankings
            New rankings; these are left as they are.
        """
        # All players are kept, so that skills of parts of the data can be compared.
        builder = _RankingsBuilder(self.names)
        for g in games:
            entries = range(self.start[g], self.start[g + 1])
            members = [
                self.players[self.member_start[e] : self.member_start[e + 1]].tolist()
                for e in entries
            ]
            tied = [bool(self.tied[e]) for e in entries]
            builder.add(self.ids[g], members, tied, int(self.n_ordered[g]))
        return builder.build()

    @staticmethod
    def from_lists(games: Iterable[Sequence[Any]], winner_only: bool = False) -> Rankings:
        """Rankings from lists of entries, best first.

        Parameters
        ----------
        games
            One list a game. An entry is a name, or a tuple of names for a team.
        winner_only
            Whether only the winner is known: the others came behind, in no known order.

        Returns
        -------
        Rankings
            With games called 0, 1, ...

        Examples
        --------
        >>> rv.Rankings.from_lists([["ann", "bob", "cid"], [("ann", "bob"), ("cid", "dan")]])
        <Rankings: 2 games of 4 players>
        """
        # Names first: positions of players are known only when all games have been read.
        listed = []
        for g, game in enumerate(games):
            if isinstance(game, str) or not isinstance(game, Iterable):
                raise ValueError(
                    f"game {g} is {game!r}; a game is a list of its entries, best first"
                )
            listed.append([as_team(entry, f"game {g}: ") for entry in game])
        names = tuple(dict.fromkeys(name for game in listed for team in game for name in team))
        warn_of_similar_labels("players", names)
        position = {name: k for k, name in enumerate(names)}
        builder = _RankingsBuilder(names)
        for g, game in enumerate(listed):
            n_ordered = min(1, len(game)) if winner_only else len(game)
            members = [[position[name] for name in team] for team in game]
            builder.add(g, members, [False] * len(game), n_ordered)
        return builder.build()

    @staticmethod
    def from_columns(
        game: Sequence[Any],
        player: Sequence[Any],
        position: Sequence[Any] | None = None,
        team: Sequence[Any] | None = None,
        winner_only: bool = False,
        score: Sequence[Any] | None = None,
    ) -> Rankings:
        """Rankings from the columns of a long table, a row for each player in each game.

        Parameters
        ----------
        game, player
            What the game and the player are called.
        position
            A number, equal for a tie, which may also be written "T2" or "=2". Nothing, and the
            codes DNF, RET, DSQ, DQ, NC, OTL, OCS, CUT, MC and MDF, are behind all who have a
            number, in an order that is not known. Who did not take part is left out: DNS, DNC,
            DNQ, DNPQ, DNP, WD and EX. Any other text is refused.
        team
            Players of one team in a game are one entry, with one position; optional.
        winner_only
            Whether to use only who won, and take the others for behind in no known order.
        score
            In place of positions: numbers of which the largest is the best, or the same codes.

        Returns
        -------
        Rankings
            Games in the order in which they first appear.

        Examples
        --------
        >>> rv.Rankings.from_columns(game=[1, 1], player=["ann", "bob"], position=[2, 1])
        <Rankings: 1 games of 2 players>
        >>> goals = rv.Rankings.from_columns([1, 1], ["ann", "bob"], score=[0, 3])
        >>> goals.game(0)[0]
        [('bob',), ('ann',)]
        """
        places = position if score is None else score
        if places is None or (position is not None and score is not None):
            raise ValueError("give position, where 1 is the best, or score, where the largest is")
        if not len(game) == len(player) == len(places) or (
            team is not None and len(team) != len(game)
        ):
            raise ValueError("game, player, position and team must be columns of the same length")
        for what, labels in (("game", game), ("player", player), ("team", team)):
            require_labels(what, [] if labels is None else labels)
        rank = rank_of_position if score is None else rank_of_score
        by_row = [rank(place, row) for row, place in enumerate(places)]
        by_game = group_by_game(game, player, by_row, team)
        if not by_game:
            raise ValueError("there are no games in the table")
        if score is None:
            games = by_game.items()
            warn_of_scores((g, [rank for rank, _ in unsorted.values()]) for g, unsorted in games)
        names = tuple(
            dict.fromkeys(
                name
                for entries in by_game.values()
                for _, team in entries.values()
                for name in team
            )
        )
        warn_of_similar_labels("players", names)
        index = {name: k for k, name in enumerate(names)}
        builder = _RankingsBuilder(names)
        for g, unsorted in by_game.items():
            # Those without a position have rank infinity, and so come last.
            entries = sorted(unsorted.values(), key=lambda entry: entry[0])
            ranks = [rank for rank, _ in entries]
            n_ordered = sum(map(math.isfinite, ranks))
            tied = [0 < k < n_ordered and ranks[k] == ranks[k - 1] for k in range(len(ranks))]
            # What is known of the order beyond the winner is thrown away.
            if winner_only:
                if len(ranks) > 1 and tied[1]:
                    raise ValueError(
                        f"game {g}: {n_ordered} entries share the first place, "
                        "so there is no one winner"
                    )
                tied, n_ordered = [False] * len(ranks), min(n_ordered, 1)
            members = [[index[name] for name in team] for _, team in entries]
            builder.add(g, members, tied, n_ordered)
        return builder.build()


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


class _RankingsBuilder:
    """Collects games one by one, and makes `Rankings` of them.

    Its fields are the arrays of `Rankings` as lists, which can grow.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.players: list[int] = []
        self.member_start, self.start = [0], [0]
        self.tied: list[bool] = []
        self.n_ordered: list[int] = []
        self.ids: list[Hashable] = []

    def add(
        self, name: Hashable, teams: Sequence[Sequence[int]], tied: Sequence[bool], n_ordered: int
    ) -> None:
        """Add a game; teams are positions of players, best first."""
        for members in teams:
            if not members:
                raise ValueError(f"game {name}: an entry has no players")
            self.players.extend(members)
            self.member_start.append(len(self.players))
        self.tied.extend(tied)
        self.start.append(len(self.member_start) - 1)
        self.n_ordered.append(n_ordered)
        self.ids.append(name)

    def build(self) -> Rankings:
        """All games that were added, checked."""
        if not self.n_ordered:
            raise ValueError("there are no games; at least one is needed")
        players, member_start, start = (
            np.array(part, np.int64) for part in (self.players, self.member_start, self.start)
        )
        tied, n_ordered = np.array(self.tied, np.bool_), np.array(self.n_ordered, np.int64)
        return Rankings(self.names, players, member_start, start, tied, n_ordered, tuple(self.ids))


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
