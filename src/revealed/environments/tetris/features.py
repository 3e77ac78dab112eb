"""Features of a Tetris board, after a placement and after full rows were removed.

They come in named sets, or from a function of your own:

paper        height, holes and bumps (section 5.2)
             height  the height of the topmost occupied square, across all columns; 0 when empty
             holes   unoccupied squares with at least one occupied square above them
             bumps   the sum of the squared height differences of adjacent columns
bertsekas    every column's height, every absolute difference between neighbours, the largest
             height, and holes: 21 on ten columns (Bertsekas and Tsitsiklis 1996; their constant
             is left out, because it does not distinguish placements)
dellacherie  landing height, eroded squares, row and column transitions, holes and wells
             (Dellacherie's; Fahey 2003)
rich         Dellacherie's, height and bumps, the heights of the left and right edge, rows
             removed, and whether they were four at once: what a player who saves up for four
             keeps an eye on
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from revealed._types import Cells, Floats, Ints
from revealed.environments.tetris.board import as_board
from revealed.kernels.tetris import count_column_squares, find_column_tops
from revealed.kernels.tetris_features import FEATURE_SETS as CODES
from revealed.kernels.tetris_features import write_paper_features

PAPER_FEATURES = ("height", "holes", "bumps")


@dataclass(frozen=True)
class FeatureSet:
    """A named set: its code in the compiled loops, and its names on boards of some width."""

    code: int
    names: Callable[[int], tuple[str, ...]]


def _bertsekas_names(columns: int) -> tuple[str, ...]:
    heights = [f"height {j}" for j in range(columns)]
    return (*heights, *(f"step {j}" for j in range(columns - 1)), "height", "holes")


def _dellacherie_names(columns: int) -> tuple[str, ...]:
    return ("landing height", "eroded", "row transitions", "column transitions", "holes", "wells")


def _rich_names(columns: int) -> tuple[str, ...]:
    added = ("height", "bumps", "left edge", "right edge", "lines", "four lines")
    return _dellacherie_names(columns) + added


# Codes are those of the compiled loops; names depend on how wide the board is.
FEATURE_SETS = MappingProxyType(
    {
        "paper": FeatureSet(CODES.paper, lambda columns: PAPER_FEATURES),
        "bertsekas": FeatureSet(CODES.bertsekas, _bertsekas_names),
        "dellacherie": FeatureSet(CODES.dellacherie, _dellacherie_names),
        "rich": FeatureSet(CODES.rich, _rich_names),
    }
)


@dataclass(frozen=True, eq=False)
class Move:
    """What a feature function is given: a placement, the board before it and the board after it.

    `row` is that of the piece's topmost square at rest, before full rows were removed; `board`
    is the board after, and `cleared` the number of rows removed.
    """

    before: Cells
    piece: str
    rotation: int
    column: int
    row: int
    board: Cells
    cleared: int


FeatureFunction = Callable[[Move], Sequence[float]]
"""A function of the user's from a `Move` to numbers, equally many for every move."""


def features(board: Any) -> Floats:
    """(3,) height, holes and bumps of a board.

    >>> features(["0000", "0100", "0001"]).tolist()
    [2.0, 1.0, 9.0]
    """
    cells = as_board(board)
    # The compiled functions write into arrays that the caller brings.
    column_top: Ints = np.empty(cells.shape[1], np.int64)
    column_count: Ints = np.empty(cells.shape[1], np.int64)
    out = np.empty(len(PAPER_FEATURES))
    find_column_tops(cells, column_top)
    count_column_squares(cells, column_count)
    write_paper_features(column_top, column_count, cells.shape[0], out)
    return out


def feature_set_named(names: Sequence[str], columns: int) -> str:
    """The name of the set that has these feature names, on boards of so many columns."""
    # The order of the names counts: it is the order of the coefficients.
    for name, known in FEATURE_SETS.items():
        if tuple(names) == known.names(columns):
            return name
    raise ValueError(
        f"{', '.join(names)}: these are not the features of a named set of Tetris on "
        f"{columns} columns; the sets are {', '.join(FEATURE_SETS)}"
    )
