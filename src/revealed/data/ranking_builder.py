"""Games one by one, as they are read, and the arrays that they become."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from revealed._types import Bools, Ints


class RankingsBuilder:
    """Collects games one by one, and makes the arrays of `Rankings` of them.

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

    def rows(self) -> list[tuple[Hashable, str]]:
        """Game and name of each member of an entry.

        In the order in which they were added.
        """
        sizes = np.diff(np.asarray(self.member_start)[self.start])
        games = np.repeat(np.arange(len(self.ids)), sizes)
        return [(self.ids[g], self.names[p]) for g, p in zip(games, self.players, strict=True)]

    def parts(
        self,
    ) -> tuple[tuple[str, ...], Ints, Ints, Ints, Bools, Ints, tuple[Hashable, ...]]:
        """The first seven fields of `Rankings`, of all games that were added.

        Refuses none at all.
        """
        if not self.n_ordered:
            raise ValueError("there are no games; at least one is needed")
        players, member_start, start = (
            np.array(part, np.int64) for part in (self.players, self.member_start, self.start)
        )
        tied, n_ordered = np.array(self.tied, np.bool_), np.array(self.n_ordered, np.int64)
        return self.names, players, member_start, start, tied, n_ordered, tuple(self.ids)
