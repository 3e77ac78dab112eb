"""Rankings: who took part in each game, best first, who tied, and who only came behind.

A finishing order is not a decision: the noise of a game is shared by all its comparisons. So it is
a noun of its own beside `Decisions`. An entry of a game is a player or a team.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from revealed._types import Bools, Floats, Ints, Labels
from revealed.data.data_warning import warn_of_similar_labels
from revealed.data.entries import Team, as_team
from revealed.data.game_checks import check_games, runs
from revealed.data.member_columns import check_member_columns, pick_rows
from revealed.data.positions import (
    group_by_game,
    rank_of_position,
    rank_of_score,
    require_labels,
    warn_of_scores,
)
from revealed.data.ranking_builder import RankingsBuilder
from revealed.data.times import check_times, times_of_games


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
    times
        (G,) finite numbers, when each game was played; dates become days since 1970-01-01, as in
        ``Decisions``. Optional.
    columns
        What else is known of each of `players`, by name, each as long as they are: labels such as
        a car or a surface, or numbers such as a place on the grid. Only skills that change look at
        them.

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
    times: Floats | None = None
    columns: Mapping[str, Labels] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Read-only, as the times of decisions are.
        if self.times is not None:
            times = check_times(self.times, self.ids, "game")
            times.flags.writeable = False
            object.__setattr__(self, "times", times)
        check_games(self)
        object.__setattr__(self, "columns", check_member_columns(self.columns, len(self.players)))

    def __reduce__(self) -> tuple[Any, ...]:
        # columns are a view that cannot be changed, which pickle does not know
        every = [getattr(self, part.name) for part in fields(self)[:-1]]
        return Rankings, (*every, dict(self.columns))

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
        picked = np.fromiter(games, np.int64)
        if not picked.size:
            raise ValueError("there are no games; at least one is needed")
        entries, start = runs(self.start, picked)
        members, member_start = runs(self.member_start, entries)
        return Rankings(
            self.names,
            self.players[members],
            member_start,
            start,
            self.tied[entries],
            self.n_ordered[picked],
            tuple(self.ids[g] for g in picked.tolist()),
            None if self.times is None else self.times[picked],
            {name: column[members] for name, column in self.columns.items()},
        )

    def __add__(self, other: Rankings) -> Rankings:
        """These games followed by `other`'s, with the players of both.

        Players of both sides are the same where their names are. The new games are called 0, 1,
        ..., because ids of both sides may be equal.
        """
        if not isinstance(other, Rankings):
            return NotImplemented
        if (self.times is None) != (other.times is None):
            raise ValueError(
                "one side has times and the other has none; give times to both, or to neither"
            )
        if set(self.columns) != set(other.columns):
            raise ValueError(
                "both sides must have the same columns; one has "
                f"{', '.join(sorted(self.columns)) or 'none'}, the other "
                f"{', '.join(sorted(other.columns)) or 'none'}"
            )
        names = tuple(dict.fromkeys(self.names + other.names))
        # Where the players of the other side stand among those of both.
        index = {name: k for k, name in enumerate(names)}
        moved = np.array([index[name] for name in other.names], np.int64)
        # Both or none of the two, as was checked.
        times = [part.times for part in (self, other) if part.times is not None]
        return Rankings(
            names,
            np.concatenate([self.players, moved[other.players]]),
            np.concatenate([self.member_start, self.member_start[-1] + other.member_start[1:]]),
            np.concatenate([self.start, self.start[-1] + other.start[1:]]),
            np.concatenate([self.tied, other.tied]),
            np.concatenate([self.n_ordered, other.n_ordered]),
            tuple(range(len(self) + len(other))),
            np.concatenate(times) if times else None,
            {
                name: np.concatenate([own, other.columns[name]])
                for name, own in self.columns.items()
            },
        )

    @staticmethod
    def from_lists(
        games: Iterable[Sequence[Any]], winner_only: bool = False, times: Any = None
    ) -> Rankings:
        """Rankings from lists of entries, best first.

        Parameters
        ----------
        games
            One list a game. An entry is a name, or a tuple of names for a team.
        winner_only
            Whether only the winner is known: the others came behind, in no known order.
        times
            When each game was played, numbers or dates; optional.

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
        builder = RankingsBuilder(names)
        for g, game in enumerate(listed):
            n_ordered = min(1, len(game)) if winner_only else len(game)
            members = [[position[name] for name in team] for team in game]
            builder.add(g, members, [False] * len(game), n_ordered)
        return Rankings(*builder.parts(), times=times)

    @staticmethod
    def from_columns(
        game: Sequence[Any],
        player: Sequence[Any],
        position: Sequence[Any] | None = None,
        team: Sequence[Any] | None = None,
        winner_only: bool = False,
        score: Sequence[Any] | None = None,
        time: Sequence[Any] | None = None,
        columns: Mapping[str, Sequence[Any]] | None = None,
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
        time
            When the game was played, the same in all its rows: a number or a date, also as text
            such as 2024-03-01; optional.
        columns
            What else is known of a player in a game, by name: labels or numbers; optional.

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
        more = dict(columns or {})
        given = [column for column in (player, places, team, time) if column is not None]
        given += more.values()
        if any(len(column) != len(game) for column in given):
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
        builder = RankingsBuilder(names)
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
        times: Any = None if time is None else times_of_games(game, time, by_game)
        return Rankings(
            *builder.parts(),
            times=times,
            columns=pick_rows(more, game, player, builder) if more else {},
        )
