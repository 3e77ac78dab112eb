"""An understudy at the board: plays Tetris as the posterior says that the one who was watched would.

The paper's prediction of an action is a vote: each draw of the value takes its best placement, fresh noise added, and the
placement with most votes is played. A whole game needs thousands of votes, so every draw votes with one noise a placement.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from understudy._arrays import Floats
from understudy.worlds.tetris.features import set_with
from understudy.worlds.tetris.world import Chooser, Tetris

VOTERS = 500


def by_vote(draws: Any, voters: int = VOTERS) -> Chooser:
    """Play the placement that most of the draws (S, K) vote for, their noise included: the paper's predicted action."""
    value = _thinned(draws, voters)

    def choose(rng: np.random.Generator, rows: Floats) -> int:
        best = np.argmax(rows @ value.T + rng.standard_normal((len(rows), len(value))), axis=0)
        return int(np.argmax(np.bincount(best, minlength=len(rows))))

    return choose


def by_one(draws: Any) -> Chooser:
    """Play as one that might be the controller itself: a draw of the value, with noise of its own at every placement."""
    value = np.atleast_2d(np.asarray(draws, dtype=np.float64))

    def choose(rng: np.random.Generator, rows: Floats) -> int:
        return int(np.argmax(rows @ value[rng.integers(len(value))] + rng.standard_normal(len(rows))))

    return choose


def world_for(names: Any, rows: int = 30, columns: int = 10) -> Tetris:
    """The world in which a posterior with these coefficients can play."""
    return Tetris(rows, columns, features=set_with(list(names), columns))


def _thinned(draws: Any, count: int) -> Floats:
    value = np.atleast_2d(np.asarray(draws, dtype=np.float64))
    return np.ascontiguousarray(value[np.linspace(0, len(value) - 1, min(count, len(value))).astype(int)])
