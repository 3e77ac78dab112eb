"""The paper's three features of a board, taken after full rows were removed (section 5.2).

height  the height of the topmost occupied square, across all columns; 0 for an empty board
holes   unoccupied squares with at least one occupied square above them in their column
bumps   the sum of the squared differences between the heights of adjacent columns
"""

from __future__ import annotations

from typing import Any

import numpy as np

from understudy._arrays import Floats, Ints
from understudy.kernels.tetris import count_filled, measure, skyline
from understudy.worlds.tetris.board import as_board

FEATURES = ("height", "holes", "bumps")


def features(board: Any) -> Floats:
    """(3,) height, holes and bumps of a board.

    >>> features(["0000", "0100", "0001"]).tolist()
    [2.0, 1.0, 9.0]
    """
    cells = as_board(board)
    first: Ints = np.empty(cells.shape[1], np.int64)
    filled: Ints = np.empty(cells.shape[1], np.int64)
    found = np.empty(len(FEATURES))
    skyline(cells, first)
    count_filled(cells, filled)
    measure(first, filled, cells.shape[0], found)
    return found
