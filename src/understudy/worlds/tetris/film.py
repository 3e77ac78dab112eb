"""Games as moving pictures, for a talk: one picture for each placement, the piece just placed in full colour.

The colours are Okabe and Ito's, which most eyes can tell apart. A board is told by the letters of what lies on it: 0 where a square
is free, 1 to 7 for the pieces I O T S Z J L, and 8 where nobody knows any more which piece it was.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence

import numpy as np

from understudy._arrays import Cells
from understudy.worlds.tetris.pieces import PIECES, rotations
from understudy.worlds.tetris.world import Step

SQUARE = 14  # pixels, the line around it included
LONGEST = 1000  # pictures in a film
HELD = 2.0  # seconds for which the last picture stays
UNKNOWN = 8
INK = {"I": 0x56B4E9, "O": 0xF0E442, "T": 0xCC79A7, "S": 0x009E73, "Z": 0xD55E00, "J": 0x0072B2, "L": 0xE69F00}
PAPER, LINE, STONE = 0xFFFFFF, 0xE4E6EA, 0x8A919C
NEW = 8  # added to a piece's number where it was just placed
EDGE = 16  # the colour of lines


def _rgb(ink: int, strength: float = 1.0) -> list[int]:
    return [round(255 + strength * ((ink >> shift & 255) - 255)) for shift in (16, 8, 0)]


def _palette() -> list[int]:
    lying = [_rgb(INK[piece], 0.55) for piece in PIECES]
    placed = [_rgb(INK[piece]) for piece in PIECES]
    return [part for rgb in (_rgb(PAPER), *lying, _rgb(STONE), *placed, _rgb(LINE)) for part in rgb]


def picture(letters: Cells, placed: Sequence[Sequence[int]] = (), piece: int = 0) -> Cells:
    """One picture, as positions in the palette: what lies there, and the squares [row, column] of the piece just placed."""
    board = letters.astype(np.uint8)
    for row, column in placed:
        board[row, column] = piece + 1 + NEW
    pixels = np.kron(board, np.ones((SQUARE, SQUARE), np.uint8))
    pixels[::SQUARE], pixels[:, ::SQUARE] = EDGE, EDGE
    return np.pad(pixels, ((0, 1), (0, 1)), constant_values=EDGE)


def film(pictures: Sequence[Cells], speed: float = 4.0) -> bytes:
    """An animated GIF of these pictures, so many a second, over and over."""
    from PIL import Image

    if not pictures:
        raise ValueError("there is nothing to show: a film needs at least one placement")
    if len(pictures) > LONGEST:
        raise ValueError(
            f"a film of {len(pictures):,} placements is too long to be looked at; choose at most {LONGEST:,}"
        )
    if not 0.1 <= speed <= 50.0:
        raise ValueError(f"a film shows 0.1 to 50 placements a second, not {speed:g}")
    frames = []
    for pixels in pictures:
        frame = Image.fromarray(pixels)
        frame.putpalette(_palette())
        frames.append(frame)
    times = [round(1000 / speed)] * (len(frames) - 1) + [round(1000 * HELD)]
    stream = io.BytesIO()
    frames[0].save(stream, "GIF", save_all=True, append_images=frames[1:], duration=times, loop=0, optimize=False)
    return stream.getvalue()


def pictures_of(steps: Iterable[Step]) -> list[Cells]:
    """One picture for each step of a game."""
    shown = []
    for step in steps:
        squares = np.argwhere(rotations(PIECES[step.piece], "literal")[step.rotation])
        squares += np.array([step.landing.row, step.column])
        shown.append(picture(step.board * UNKNOWN, squares.tolist(), step.piece))
    return shown
