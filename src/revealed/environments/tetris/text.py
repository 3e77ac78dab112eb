"""Boards as text, and in colour for a terminal, with the piece just placed."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed._types import Cells
from revealed.environments.tetris.board import as_board
from revealed.environments.tetris.pieces import PIECES, rotations

if TYPE_CHECKING:
    from rich.text import Text

    from revealed.environments.tetris.rollout import Step


@dataclass(frozen=True)
class TextStyle:
    """How a square looks, two letters wide so that it is about square on a screen."""

    occupied: str = "██"
    free: str = " ·"


STYLE = TextStyle()
COLOURS = MappingProxyType(
    {
        "I": "cyan",
        "O": "yellow",
        "T": "magenta",
        "S": "green",
        "Z": "red",
        "J": "blue",
        "L": "bright_red",
    }
)


def as_text(board: Any) -> str:
    """The board in a frame, two letters a square.

    >>> print(as_text(["000", "010"]))
    │ · · ·│
    │ ·██ ·│
    └──────┘
    """
    cells = as_board(board)
    # walls left and right, a floor below, nothing above
    lines = [
        "│" + "".join(STYLE.occupied if cell else STYLE.free for cell in row) + "│"
        for row in cells.tolist()
    ]
    return "\n".join([*lines, "└" + "─" * (2 * cells.shape[1]) + "┘"])


def board_with_piece(step: Step) -> Cells:
    """The board that was seen, with 2 where the piece came to rest; full rows are still there."""
    shape = rotations(PIECES[step.piece], "literal")[step.rotation]
    board = step.board.copy()
    # the rectangle of the board that the piece covers
    part = board[
        step.landing.row : step.landing.row + shape.shape[0],
        step.column : step.column + shape.shape[1],
    ]
    part[shape == 1] = 2
    return board


def as_rich(step: Step, top: int = 0) -> Text:
    """The board of a step in colour, for a terminal, from row `top` down.

    The rows above are left out, so that a tall board fits on the screen.
    """
    from rich.text import Text

    picture = Text()
    colour = COLOURS[PIECES[step.piece]]
    # Row by row between two walls, then the floor.
    for row in board_with_piece(step)[top:].tolist():
        picture.append("│", "dim")
        for cell in row:
            # 0 is free, 1 occupied, 2 the piece just placed
            picture.append(STYLE.occupied if cell else STYLE.free, ("dim", "white", colour)[cell])
        picture.append("│\n", "dim")
    picture.append("└" + "─" * (2 * step.board.shape[1]) + "┘", "dim")
    return picture


def count_empty_rows(board: Any) -> int:
    """How many rows at the top are empty."""
    return int(np.argmax(np.append(as_board(board).any(axis=1), True)))
