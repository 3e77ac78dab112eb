"""What is recorded of play: one step, a rollout of many steps, and the policy that made them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from revealed._types import Cells, Floats, Ints
from revealed.environments.tetris.board import Landing

Policy = Callable[[np.random.Generator, Floats], int]
"""Picks a placement by its position, given a generator and the features (M, K) of all offered."""


@dataclass(frozen=True, eq=False)
class Rollout:
    """What was observed of a player, step by step; it may run through several games.

    boards: (T, rows, columns) the boards that were seen.
    pieces: (T,) the pieces, as positions in I O T S Z J L.
    rotations, columns: (T,) the placements.
    games: (T,) the number of the game, counted from zero.
    """

    boards: Cells
    pieces: Ints
    rotations: Ints
    columns: Ints
    games: Ints

    def __len__(self) -> int:
        return len(self.pieces)


class Step(NamedTuple):
    """One placement of a game: the board and the piece seen, the placement, and its result."""

    board: Cells
    piece: int
    rotation: int
    column: int
    landing: Landing
    game: int
