"""The board of Tetris: (rows, columns) of 0 and 1, the top row first.

A piece is turned and moved above the board, and falls straight down until it meets an occupied
square or the bottom row. Then full rows are removed, and what was above them moves down. The game
has ended when the top row is occupied *after* that.

The paper asks that a block stay inside the board and overlap no occupied square. In detail:

- a placement (rotation, column) is legal when the fallen piece lies inside the board whole, to
  the left, to the right and at the top. A piece that would stick out above the board cannot be
  placed there, even if it would complete a row;
- a piece falls from above the columns it covers, so it is never slid in below an overhang, not
  even in the rows at the top;
- a board whose top row is occupied offers nothing, and one in which the piece does not fit
  offers nothing either. Both end the game.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from revealed._types import Cells, Ints
from revealed.environments.tetris.pieces import PIECES, outlines, piece_number, rotations
from revealed.kernels.tetris import find_column_tops, landing_row, place_and_clear


def as_board(given: Any) -> Cells:
    """A board from an array of 0 and 1 (or False and True), or from texts such as "0110".

    The top row comes first. Anything else is refused.
    """
    # Boards of our own are arrays of bytes already: check them without a copy.
    if isinstance(given, np.ndarray) and given.dtype == np.uint8:
        cells: Cells = np.ascontiguousarray(given)
        valid = cells.ndim == 2 and cells.size > 0 and cells.max() <= 1
    else:
        # Anything else goes through floats, so that 0.5 or "x" is found out.
        try:
            numbers = np.array([list(row) for row in given]).astype(np.float64)
        except (TypeError, ValueError):
            numbers = np.empty(0)
        valid = (
            numbers.ndim == 2
            and numbers.size > 0
            and bool(((numbers == 0.0) | (numbers == 1.0)).all())
        )
        cells = (numbers == 1.0).astype(np.uint8)
    if not valid:
        raise ValueError(
            "a board is a table of 0 and 1, the top row first, with rows of the same length"
        )
    return cells


def has_ended(board: Any) -> bool:
    """Whether the game on this board has ended, because its top row is occupied."""
    return bool(as_board(board)[0].any())


@dataclass(frozen=True, eq=False)
class Landing:
    """What became of a piece that was placed.

    `row` is the row of its topmost square at rest, `board` the board after full rows were
    removed, and `cleared` how many those were.
    """

    row: int
    board: Cells
    cleared: int


def resting_row(board: Cells, piece: int, rotation: int, column: int) -> int | None:
    """The row at which a piece comes to rest when it falls straight down.

    None where that placement is not legal.
    """
    shapes = outlines("literal")
    if (
        not 0 <= rotation < 4
        or not 0 <= column <= board.shape[1] - shapes.width[piece, rotation]
        or board[0].any()
    ):
        return None
    # It falls until one of its columns meets the surface.
    column_top: Ints = np.empty(board.shape[1], np.int64)
    find_column_tops(board, column_top)
    width, bottom = shapes.width[piece, rotation], shapes.bottom[piece, rotation]
    row = landing_row(column_top, width, bottom, column)
    return None if row < 0 else int(row)


def drop(board: Any, piece: Any, rotation: int, column: int) -> Landing:
    """Where a piece lands that falls straight down: psi of the paper, for a game under way.

    A placement that is not legal is refused.
    """
    cells, p = as_board(board), piece_number(piece)
    # The same rules as the compiled loops: one function decides what is legal.
    row = resting_row(cells, p, rotation, column)
    if row is None:
        raise ValueError(
            f"the piece {PIECES[p]} cannot be placed with rotation {rotation} at column {column}; "
            "a legal placement keeps it inside the board and above all occupied squares while it "
            "falls, and the top row must be free"
        )
    return place_piece(cells, p, rotation, column, row)


def place_piece(board: Cells, piece: int, rotation: int, column: int, row: int) -> Landing:
    """The landing of a piece at a given position, where it must fit, with full rows removed."""
    shapes, after = outlines("literal"), np.empty_like(board)
    outline = (
        shapes.width[piece, rotation],
        shapes.top[piece, rotation],
        shapes.bottom[piece, rotation],
    )
    return Landing(row, after, int(place_and_clear(board, row, column, *outline, after)))


def piece_fits(board: Cells, piece: int, rotation: int, column: int, row: int) -> bool:
    """Whether a piece at a given position lies inside the board and overlaps nothing."""
    # inside the board first, or the slices below would be cut short
    shape = rotations(PIECES[piece], "literal")[rotation]
    if (
        row < 0
        or column < 0
        or row + shape.shape[0] > board.shape[0]
        or column + shape.shape[1] > board.shape[1]
    ):
        return False
    return not (board[row : row + shape.shape[0], column : column + shape.shape[1]] & shape).any()
