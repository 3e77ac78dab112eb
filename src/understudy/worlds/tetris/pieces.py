"""The seven pieces of Tetris and their rotations.

Rotation r is the spawn shape below turned r times by 90 degrees clockwise; `column` and `row` of a placement are those
of its leftmost and topmost square. Turning I, S and Z twice, or O once, gives the same shape again. `"distinct"` drops these
repetitions, so rotations number 2, 1, 4, 2, 2, 4, 4; `"literal"` keeps four for every piece, as the paper's text has it.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from understudy._arrays import Cells, Ints

SPAWN = {
    "I": ["XXXX"],
    "O": ["XX", "XX"],
    "T": ["XXX", ".X."],
    "S": [".XX", "XX."],
    "Z": ["XX.", ".XX"],
    "J": ["XXX", "..X"],
    "L": ["XXX", "X.."],
}
PIECES = "".join(SPAWN)
ACTIONS = ("distinct", "literal")


class Outlines(NamedTuple):
    """The pieces as the compiled loops read them; the first axis is the piece, the second the rotation."""

    rotations: Ints  # (7,) how many count
    width: Ints  # (7, 4)
    top: Ints  # (7, 4, 4) for each column of the piece, the row of its topmost square
    bottom: Ints  # (7, 4, 4) and of its lowest


def piece_number(piece: Any) -> int:
    """The position of a piece in I O T S Z J L, from its letter or from the position itself."""
    if isinstance(piece, str) and len(piece) == 1 and piece in PIECES:
        return PIECES.index(piece)
    if isinstance(piece, int | np.integer) and not isinstance(piece, bool) and 0 <= piece < len(PIECES):
        return int(piece)
    raise ValueError(f"the piece {piece!r} is unknown; the pieces are {', '.join(PIECES)}")


@cache
def rotations(piece: str, actions: str = "distinct") -> tuple[Cells, ...]:
    """The shapes of a piece, each an array of 0 and 1 without empty edges."""
    if actions not in ACTIONS:
        raise ValueError(f"actions is {actions!r}; it must be one of {', '.join(ACTIONS)}")
    spawn = np.array([[square == "X" for square in row] for row in SPAWN[PIECES[piece_number(piece)]]], np.uint8)
    turned = [np.ascontiguousarray(np.rot90(spawn, -r)) for r in range(4)]
    for shape in turned:
        shape.flags.writeable = False
    if actions == "literal":
        return tuple(turned)
    return tuple(shape for r, shape in enumerate(turned) if not any(np.array_equal(shape, s) for s in turned[:r]))


@cache
def outlines(actions: str = "distinct") -> Outlines:
    """All pieces in all rotations; what is repeated is left out of the count, not of the arrays."""
    counts = np.array([len(rotations(piece, actions)) for piece in PIECES])
    width = np.zeros((len(PIECES), 4), np.int64)
    top, bottom = np.zeros((len(PIECES), 4, 4), np.int64), np.zeros((len(PIECES), 4, 4), np.int64)
    for p, piece in enumerate(PIECES):
        for r, shape in enumerate(rotations(piece, "literal")):
            width[p, r] = shape.shape[1]
            for j, column in enumerate(shape.T):
                occupied = np.flatnonzero(column)
                top[p, r, j], bottom[p, r, j] = occupied[0], occupied[-1]
    return Outlines(counts, width, top, bottom)
