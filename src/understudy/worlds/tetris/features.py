"""Features of a board of Tetris, taken after a placement and after full rows were removed: named sets, or your own.

paper        height, holes and bumps (section 5.2)
             height  the height of the topmost occupied square, across all columns; 0 for an empty board
             holes   unoccupied squares with at least one occupied square above them in their column
             bumps   the sum of the squared differences between the heights of adjacent columns
bertsekas    every column's height, every absolute difference between neighbours, the largest height, and holes: 21 on ten
             columns (Bertsekas and Tsitsiklis 1996; their constant tells no two placements apart)
dellacherie  landing height, eroded squares, row and column transitions, holes, wells (Dellacherie's; Fahey 2003)
rich         Dellacherie's, height and bumps, the heights of the left and right edge, rows removed, and whether they were
             four at once: what a player who saves up for four keeps an eye on
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy._arrays import Cells, Floats, Ints
from understudy.kernels.tetris import count_filled, skyline
from understudy.kernels.tetris_features import BERTSEKAS, DELLACHERIE, PAPER, RICH, measure
from understudy.worlds.tetris.board import as_board

FEATURES = ("height", "holes", "bumps")
MOVE = ("landing height", "eroded", "row transitions", "column transitions", "holes", "wells")
MORE = ("height", "bumps", "left edge", "right edge", "lines", "four lines")


def _by_column(columns: int) -> tuple[str, ...]:
    heights = [f"height {j}" for j in range(columns)]
    return (*heights, *(f"step {j}" for j in range(columns - 1)), "height", "holes")


NAMES: dict[str, Callable[[int], tuple[str, ...]]] = {
    "paper": lambda columns: FEATURES,
    "bertsekas": _by_column,
    "dellacherie": lambda columns: MOVE,
    "rich": lambda columns: MOVE + MORE,
}
KINDS = {"paper": PAPER, "bertsekas": BERTSEKAS, "dellacherie": DELLACHERIE, "rich": RICH}


@dataclass(frozen=True, eq=False)
class Move:
    """What a feature function of one's own is given: the board before, the placement, and the board after."""

    before: Cells
    piece: str
    rotation: int
    column: int
    row: int  # of the piece's topmost square at rest, before full rows were removed
    board: Cells
    cleared: int


Own = Callable[[Move], Sequence[float]]


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


def set_with(names: Sequence[str], columns: int) -> str:
    """The named set whose features these are, on boards of so many columns."""
    for name, known in NAMES.items():
        if tuple(names) == known(columns):
            return name
    raise ValueError(
        f"{', '.join(names)}: these are not the features of a named set of Tetris on {columns} columns; "
        f"the sets are {', '.join(NAMES)}"
    )
