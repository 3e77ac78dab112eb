"""The seven pieces of Tetris and their rotations.

Rotation r is the spawn shape below turned r times by 90 degrees clockwise; `column` and `row` of
a placement are those of its leftmost and topmost square. Turning I, S and Z twice, or O once,
gives the same shape again. `"distinct"` drops these repetitions, so that the pieces I O T S Z J L
have 2, 1, 4, 2, 2, 4 and 4 rotations; `"literal"` keeps four for every piece, as the paper's text
has it.
"""

from __future__ import annotations

from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np

from revealed._types import Cells
from revealed.kernels.tetris import Outlines

SPAWN_SHAPES = MappingProxyType(
    {
        "I": ["XXXX"],
        "O": ["XX", "XX"],
        "T": ["XXX", ".X."],
        "S": [".XX", "XX."],
        "Z": ["XX.", ".XX"],
        "J": ["XXX", "..X"],
        "L": ["XXX", "X.."],
    }
)
PIECES = "".join(SPAWN_SHAPES)


def piece_number(piece: Any) -> int:
    """The position of a piece in I O T S Z J L, from its letter or from the position itself."""
    # a letter, or a position; True is an integer, but no piece
    if isinstance(piece, str) and len(piece) == 1 and piece in PIECES:
        return PIECES.index(piece)
    if (
        isinstance(piece, int | np.integer)
        and not isinstance(piece, bool)
        and 0 <= piece < len(PIECES)
    ):
        return int(piece)
    raise ValueError(f"the piece {piece!r} is unknown; the pieces are {', '.join(PIECES)}")


@cache
def rotations(piece: str, actions: str = "distinct") -> tuple[Cells, ...]:
    """The shapes of a piece, one for each rotation, as arrays of 0 and 1 without empty edges.

    `actions` is "distinct" (each shape once) or "literal" (always four). The arrays are shared
    between callers, so they cannot be written to.
    """
    kinds = ("distinct", "literal")
    if actions not in kinds:
        raise ValueError(f"actions is {actions!r}; it must be one of {', '.join(kinds)}")
    letter = PIECES[piece_number(piece)]
    spawn = np.array([[square == "X" for square in row] for row in SPAWN_SHAPES[letter]], np.uint8)
    turned = [np.ascontiguousarray(np.rot90(spawn, -r)) for r in range(4)]
    # shared by all callers through the cache
    for shape in turned:
        shape.flags.writeable = False
    if actions == "literal":
        return tuple(turned)
    # Keep a shape unless an earlier rotation has it already.
    return tuple(
        shape
        for r, shape in enumerate(turned)
        if not any(np.array_equal(shape, earlier) for earlier in turned[:r])
    )


@cache
def outlines(actions: str = "distinct") -> Outlines:
    """All pieces in all rotations, as the compiled loops read them.

    Repeated rotations are left out of the count `rotations`, not of the arrays, so that a
    literal rotation can be looked up in either table.
    """
    counts = np.array([len(rotations(piece, actions)) for piece in PIECES])
    width = np.zeros((len(PIECES), 4), np.int64)
    top, bottom = np.zeros((len(PIECES), 4, 4), np.int64), np.zeros((len(PIECES), 4, 4), np.int64)
    for p, piece in enumerate(PIECES):
        for r, shape in enumerate(rotations(piece, "literal")):
            width[p, r] = shape.shape[1]
            # Each column of a piece is one unbroken run: its ends describe it.
            for j, column in enumerate(shape.T):
                occupied = np.flatnonzero(column)
                top[p, r, j], bottom[p, r, j] = occupied[0], occupied[-1]
    return Outlines(counts, width, top, bottom)
