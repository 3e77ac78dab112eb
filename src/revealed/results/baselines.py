"""What forecasts are compared with: forecasters that need no model of how anything changes.

chance        all outcomes of an event are equally likely
frequencies   an action is chosen as often as it was so far, among those that are offered,
              p_a = (n_a + 1) / sum over offered b of (n_b + 1)
Elo           ratings with a step that does best on what came before the first forecast
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from revealed._types import Floats, Ints
from revealed.data.decisions import Decisions
from revealed.data.rankings import Rankings
from revealed.kernels.elo import GameEntries, walk_elo
from revealed.kernels.interrupt import raise_if_stopping


@dataclass(frozen=True)
class EloSettings:
    """How a step is found.

    least, most: the range of steps on the logistic scale; K of chess is 174 times as large.
    digits: how exactly log step is found; loss hardly depends on more.
    """

    least: float = 0.002
    most: float = 5.0
    digits: float = 0.01


ELO = EloSettings()


class EloRatings:
    """Elo ratings of players, which learn from games in the order of their times.

    Parameters
    ----------
    games
        All games, with times.
    step
        How far a rating moves at most; see `fit_elo_step`.
    """

    def __init__(self, games: Rankings, step: float) -> None:
        self._order, self._entries = _in_order(games)
        # by date, so that all games of a date are learnt from at once
        assert games.times is not None
        self._times = games.times[self._order]
        self.step = step
        self.ratings = np.zeros(len(games.names))
        self._change = np.zeros(len(games.names))
        self._seen = 0

    def learn_before(self, time: float) -> None:
        """Learn from all games before a time.

        Those that were not learnt from yet.
        """
        end = int(np.searchsorted(self._times, time))
        walk_elo(self._entries, self._seen, end, self.step, self.ratings, self._change)
        self._seen = max(end, self._seen)


def fit_elo_step(games: Rankings) -> float:
    """The step that foretells pairs of these games best, each date from those before it."""
    _, entries = _in_order(games)
    players, change = len(games.names), np.zeros(len(games.names))

    def loss(log_step: float) -> float:
        raise_if_stopping()
        found, _ = walk_elo(
            entries, 0, len(games), float(np.exp(log_step)), np.zeros(players), change
        )
        return -found

    # on the log scale: a step twice as large differs as much as one half as large
    bounds = (np.log(ELO.least), np.log(ELO.most))
    found = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": ELO.digits})
    return float(np.exp(found.x))


def _in_order(games: Rankings) -> tuple[Ints, GameEntries]:
    """Positions of games in the order of their times.

    And the games in that order, as kernels take them.
    """
    assert games.times is not None
    order = np.argsort(games.times, kind="stable")
    if (order != np.arange(len(order))).any():
        games = games.take(order)
    assert games.times is not None
    _, date = np.unique(games.times, return_inverse=True)
    return order, GameEntries(
        games.players, games.member_start, games.start, games.tied, games.n_ordered, date
    )


def chance(decisions: Decisions) -> Floats:
    """(P,) the probability of every action.

    All of a decision are equally likely.
    """
    return np.repeat(1.0 / decisions.sizes, decisions.sizes)


def has_frequencies(decisions: Decisions) -> bool:
    """Whether actions are the same from decision to decision.

    By their labels, or by their places.
    """
    # labels that are never used twice say nothing of later decisions
    if decisions.actions is not None:
        return bool(len(np.unique(decisions.actions)) < decisions.rows.shape[0])
    return bool((decisions.sizes == decisions.sizes[0]).all())


def frequencies(seen: Decisions, decisions: Decisions) -> Floats:
    """(P,) the probability of every action by how often it was chosen before.

    Actions are told apart by their labels, or by their places where they have none. One more choice
    of each is added, so that what was never chosen is not impossible.
    """
    (before, offered), count = _kinds_of_rows(seen, decisions)
    # one more of each: nothing is impossible because it was not seen
    times = 1.0 + np.bincount(before[seen.chosen_row], minlength=count)
    weight = times[offered]
    return np.asarray(
        weight / np.repeat(np.add.reduceat(weight, decisions.start[:-1]), decisions.sizes)
    )


def _kinds_of_rows(*parts: Decisions) -> tuple[list[Ints], int]:
    """Which action each row of several decisions is.

    And how many actions there are.
    """
    # without labels, an action is its place among those that are offered
    if parts[0].actions is None:
        places = [np.arange(len(d.decision_of_row)) - d.start[d.decision_of_row] for d in parts]
        return places, 1 + max(int(place.max()) for place in places)
    # labels of all parts together, so that one label is one action
    labels = [np.asarray(d.actions) for d in parts]
    kinds, kind = np.unique(np.concatenate(labels), return_inverse=True)
    return np.split(kind, np.cumsum([len(own) for own in labels])[:-1]), len(kinds)
