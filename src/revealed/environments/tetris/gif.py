"""Games as animated GIFs: one frame for each placement, the piece just placed in full colour.

The colours are those of Okabe and Ito, which most eyes can tell apart. A board is given by what
lies on its squares: 0 for a free one, 1 to 7 for the pieces I O T S Z J L, and `PALETTE.unknown`
where the piece is not known any more.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from revealed._types import Cells
from revealed.environments.tetris.pieces import PIECES, rotations
from revealed.environments.tetris.rollout import Step


@dataclass(frozen=True)
class GifLimits:
    """The size of a GIF. All values are ours, chosen by eye.

    square_pixels: width of a square, the line around it included; more makes larger files.
    max_frames: a longer film is refused; at 4 frames a second, 1,000 take four minutes.
    last_frame_seconds: how long the last frame stays before the film starts again.
    """

    square_pixels: int = 14
    max_frames: int = 1000
    last_frame_seconds: float = 2.0


@dataclass(frozen=True)
class Palette:
    """Positions in the palette of a frame: free, seven pieces, unknown, the same seven, line.

    unknown: a square whose piece is not known.
    placed_offset: added to a piece's number where it was just placed.
    line: the colour of lines.
    """

    unknown: int = 8
    placed_offset: int = 8
    line: int = 16


LIMITS = GifLimits()
PALETTE = Palette()
PIECE_COLOURS = MappingProxyType(
    {
        "I": 0x56B4E9,
        "O": 0xF0E442,
        "T": 0xCC79A7,
        "S": 0x009E73,
        "Z": 0xD55E00,
        "J": 0x0072B2,
        "L": 0xE69F00,
    }
)


def _rgb(colour: int, strength: float = 1.0) -> list[int]:
    """Red, green and blue of a colour, mixed with white where `strength` is below 1."""
    return [round(255 + strength * ((colour >> shift & 255) - 255)) for shift in (16, 8, 0)]


def _palette_bytes() -> list[int]:
    """The palette of every frame, in the order that `Palette` describes."""
    # Pieces that lie there are paler than the one just placed.
    free, line, unknown = 0xFFFFFF, 0xE4E6EA, 0x8A919C
    lying = [_rgb(PIECE_COLOURS[piece], 0.55) for piece in PIECES]
    placed = [_rgb(PIECE_COLOURS[piece]) for piece in PIECES]
    colours = (_rgb(free), *lying, _rgb(unknown), *placed, _rgb(line))
    return [part for rgb in colours for part in rgb]


def draw_frame(letters: Cells, placed: Sequence[Sequence[int]] = (), piece: int = 0) -> Cells:
    """One frame, as positions in the palette.

    `letters` (rows, columns) is what lies on the board, `placed` the squares [row, column] of
    the piece just placed, and `piece` its position in I O T S Z J L.
    """
    # a copy, which the piece just placed is drawn on
    board = letters.astype(np.uint8)
    for row, column in placed:
        board[row, column] = piece + 1 + PALETTE.placed_offset
    size = LIMITS.square_pixels
    pixels = np.kron(board, np.ones((size, size), np.uint8))
    # Lines go over the first row and column of pixels of each square, and around the board.
    pixels[::size], pixels[:, ::size] = PALETTE.line, PALETTE.line
    return np.pad(pixels, ((0, 1), (0, 1)), constant_values=PALETTE.line)


def encode_gif(frames: Sequence[Cells], speed: float = 4.0) -> bytes:
    """The bytes of an animated GIF of these frames, `speed` a second, over and over."""
    from PIL import Image

    # Refuse what nobody would look at, before any work is done.
    if not frames:
        raise ValueError("there is nothing to show: a film needs at least one placement")
    if len(frames) > LIMITS.max_frames:
        raise ValueError(
            f"a film of {len(frames):,} placements is too long to be looked at; "
            f"choose at most {LIMITS.max_frames:,}"
        )
    if not 0.1 <= speed <= 50.0:
        raise ValueError(f"a film shows 0.1 to 50 placements a second, not {speed:g}")
    # Frames hold positions in one palette, which every image carries.
    images = []
    for pixels in frames:
        image = Image.fromarray(pixels)
        image.putpalette(_palette_bytes())
        images.append(image)
    # The last frame stays longer, so that the end is seen before it starts again.
    milliseconds = [round(1000 / speed)] * (len(images) - 1)
    milliseconds.append(round(1000 * LIMITS.last_frame_seconds))
    stream = io.BytesIO()
    images[0].save(
        stream,
        "GIF",
        save_all=True,
        append_images=images[1:],
        duration=milliseconds,
        loop=0,
        optimize=False,
    )
    return stream.getvalue()


def draw_frames(steps: Iterable[Step]) -> list[Cells]:
    """One frame for each step of a game; all earlier pieces have the colour of `unknown`."""
    frames = []
    for step in steps:
        squares = np.argwhere(rotations(PIECES[step.piece], "literal")[step.rotation])
        # from the squares of the shape to those of the board
        squares += np.array([step.landing.row, step.column])
        frames.append(draw_frame(step.board * PALETTE.unknown, squares.tolist(), step.piece))
    return frames
