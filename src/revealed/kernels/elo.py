"""Elo ratings: what a rating system without a model of time foretells, game by game.

On the logistic scale, an entry whose players have mean rating r_i comes in front of another with
probability

    E_ij = 1 / (1 + exp(r_j - r_i)),

and after a game of n entries every player of entry i moves by

    step / (n - 1)  sum over j of (S_ij - E_ij),

where S_ij is 1, 1/2 or 0 for a better, an equal or a worse place; pairs whose order was not seen
are left out. In chess, ratings are in units of 400 / ln 10 and the step is called K (Elo 1978).
Games of one date all begin from the ratings before it.
"""

import math
from typing import NamedTuple

import numpy as np

from revealed._types import Bools, Floats, Ints
from revealed.kernels._compile import compiled


class GameEntries(NamedTuple):
    """G games in the order of their dates, as `Rankings` have them.

    players: members of entries. member_start (E + 1,), start (G + 1,), tied (E,), n_ordered (G,).
    date (G,): equal for games of one date, and never less than before.
    """

    players: Ints
    member_start: Ints
    start: Ints
    tied: Bools
    n_ordered: Ints
    date: Ints


@compiled
def walk_elo(
    games: GameEntries, low: int, high: int, step: float, ratings: Floats, change: Floats
) -> tuple[float, int]:
    """Update ratings (K,) in place by games from low to before high.

    change (K,): written to; must be zero, and is zero afterwards. Returns the log probability of
    all pairs whose order was seen, each before its date, and how many there were.
    """
    total, pairs = 0.0, 0
    first = low
    while first < high:
        last = first
        while last < high and games.date[last] == games.date[first]:
            last += 1
        # what the games of the date change is collected, and applied at its end
        for g in range(first, last):
            a, b = games.start[g], games.start[g + 1]
            mean = np.zeros(b - a)
            moved = np.zeros(b - a)
            place = np.empty(b - a, np.int64)
            for e in range(a, b):
                i = e - a
                members = games.member_start[e + 1] - games.member_start[e]
                # a team is as good as its players are on average
                for m in range(games.member_start[e], games.member_start[e + 1]):
                    mean[i] += ratings[games.players[m]] / members
                # entries in no known order share the last place, but have no order to be scored
                place[i] = place[i - 1] if games.tied[e] else i
            # every pair of the game is a match of its own
            for i in range(b - a):
                for j in range(i + 1, b - a):
                    if i >= games.n_ordered[g]:
                        continue
                    gap = mean[i] - mean[j]
                    expected = 1.0 / (1.0 + math.exp(-gap))
                    seen = 0.5 if place[i] == place[j] else 1.0
                    if seen == 1.0:
                        total -= math.log1p(math.exp(-abs(gap))) + max(0.0, -gap)
                        pairs += 1
                    moved[i] += seen - expected
                    moved[j] -= seen - expected
            # the more opponents, the less each of them counts
            share = step / (b - a - 1)
            for e in range(a, b):
                for m in range(games.member_start[e], games.member_start[e + 1]):
                    change[games.players[m]] += share * moved[e - a]
        for m in range(games.member_start[games.start[first]], _end_of(games, last)):
            k = games.players[m]
            # a player of several games is met again when nothing is left to add
            ratings[k] += change[k]
            change[k] = 0.0
        first = last
    return total, pairs


@compiled
def _end_of(games: GameEntries, game: int) -> int:
    """Where the members of the games before this one end.

    Games, entries and members follow one another.
    """
    return int(games.member_start[games.start[game]])
