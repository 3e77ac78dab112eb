"""What a finishing order must be, asked of all games at once: there may be a million."""

from __future__ import annotations

from typing import Any

import numpy as np

from revealed._types import Bools, Ints
from revealed.data.entries import longest_tie

# Entries that may share a rank. The likelihood of a tie has a term for every subset of the tied:
# 256 for eight of them, and twice as many for each more.
MAX_TIED = 8


def check_games(orders: Any) -> None:
    """Refuse the first game that cannot be, and say why.

    orders: `Rankings`, whose arrays fit one another.
    """
    # A game is looked at by itself only where something may be wrong.
    for game in np.flatnonzero(suspects(orders)).tolist():
        low, high = int(orders.start[game]), int(orders.start[game + 1])
        n_ordered, where = int(orders.n_ordered[game]), f"game {orders.ids[game]}"
        if high - low < 2:
            raise ValueError(f"{where}: there is one entry; a game needs at least two")
        if n_ordered < 1:
            raise ValueError(f"{where}: there is no winner; nobody has a position")
        # Entries in no known order cannot be known to be equal.
        if orders.tied[low] or orders.tied[low + n_ordered : high].any():
            raise ValueError(
                f"{where}: only entries with a position can tie, and the first has nobody before it"
            )
        if longest_tie(orders.tied[low:high]) > MAX_TIED:
            raise ValueError(
                f"{where}: more than {MAX_TIED} entries share a rank; "
                "leave their positions out to say only that they are behind"
            )
        # The same player in two entries of a game would race against himself.
        members = orders.players[orders.member_start[low] : orders.member_start[high]]
        if len(set(members.tolist())) < len(members):
            twice = next(p for p in members.tolist() if (members == p).sum() > 1)
            raise ValueError(f"{where}: {orders.names[twice]} takes part twice")


def suspects(orders: Any) -> Bools:
    """(G,) games that may be refused.

    All that are, and few others.
    """
    entries = np.diff(orders.start)
    suspect: Bools = (entries < 2) | (orders.n_ordered < 1)
    game, place = np.repeat(np.arange(len(entries)), entries), np.arange(len(orders.tied))
    within = place - orders.start[game]
    wrong_tie = orders.tied & ((within == 0) | (within >= orders.n_ordered[game]))
    suspect[game[wrong_tie]] = True
    # How many entries share a rank up to each of them.
    shared = place - np.maximum.accumulate(np.where(orders.tied, 0, place))
    suspect[game[shared >= MAX_TIED]] = True
    # Somebody who is met twice stands beside himself once members of games are sorted.
    of_member = np.repeat(game, np.diff(orders.member_start))
    key = np.sort(of_member * len(orders.names) + orders.players)
    suspect[key[1:][key[1:] == key[:-1]] // len(orders.names)] = True
    return suspect


def runs(start: Ints, which: Ints) -> tuple[Ints, Ints]:
    """Positions of all that some runs hold, in their order, and where each run then begins.

    start: (n + 1,) where each of all runs begins.
    """
    lengths = start[which + 1] - start[which]
    begin = np.concatenate([[0], np.cumsum(lengths)])
    return np.arange(begin[-1]) + np.repeat(start[which] - begin[:-1], lengths), begin
