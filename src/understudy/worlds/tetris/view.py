"""Boards for the eye: as text, and for a terminal with the piece just placed in its colour."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from understudy._arrays import Cells
from understudy.worlds.tetris.board import as_board
from understudy.worlds.tetris.pieces import PIECES, rotations

if TYPE_CHECKING:
    from rich.text import Text

    from understudy.worlds.tetris.world import Step

FULL, FREE = "██", " ·"
COLOURS = {"I": "cyan", "O": "yellow", "T": "magenta", "S": "green", "Z": "red", "J": "blue", "L": "bright_red"}


def as_text(board: Any) -> str:
    """The board in a frame, two letters a square.

    >>> print(as_text(["000", "010"]))
    │ · · ·│
    │ ·██ ·│
    └──────┘
    """
    cells = as_board(board)
    lines = ["│" + "".join(FULL if cell else FREE for cell in row) + "│" for row in cells.tolist()]
    return "\n".join([*lines, "└" + "─" * (2 * cells.shape[1]) + "┘"])


def with_piece(step: Step) -> Cells:
    """The board that was seen, with 2 where the piece came to rest and full rows not yet removed."""
    shape = rotations(PIECES[step.piece], "literal")[step.rotation]
    board = step.board.copy()
    part = board[step.landing.row : step.landing.row + shape.shape[0], step.column : step.column + shape.shape[1]]
    part[shape == 1] = 2
    return board


def as_rich(step: Step, top: int = 0) -> Text:
    """The same for a terminal, from row `top` down; what stands above is left out."""
    from rich.text import Text

    picture = Text()
    colour = COLOURS[PIECES[step.piece]]
    for row in with_piece(step)[top:].tolist():
        picture.append("│", "dim")
        for cell in row:
            picture.append(FULL if cell else FREE, ("dim", "white", colour)[cell])
        picture.append("│\n", "dim")
    picture.append("└" + "─" * (2 * step.board.shape[1]) + "┘", "dim")
    return picture


def free_rows(board: Any) -> int:
    """How many rows at the top are empty."""
    return int(np.argmax(np.append(as_board(board).any(axis=1), True)))
