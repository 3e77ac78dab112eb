"""One game: a seed and moves, from which everything else follows.

Piece t is the t-th draw of the generator that the seed begins. A move is a placement, or a miss: the deadline passed, so the piece
fell as it came, unturned, in the middle, and no decision was made (paper, section 5.2, Experiment 3). A game is over when the
board is full, or when the agreed number of pieces has been placed. Nothing here knows of clocks, requests or databases.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from understudy._arrays import Cells, Floats, Ints
from understudy.worlds.tetris import PIECES, Tetris
from understudy.worlds.tetris.board import resting_row
from understudy.worlds.tetris.pieces import outlines, rotations

ROWS, COLUMNS = 30, 10
LONGEST = 10_000  # pieces of a game without an agreed number
WORLD = Tetris(ROWS, COLUMNS)
LETTERS = "." + PIECES
_AS_LETTERS = bytes.maketrans(bytes(range(len(LETTERS))), LETTERS.encode())
Squares = list[list[int]]


@dataclass(frozen=True)
class Move:
    """What happened in one turn. `seconds` is how long it took, where the server had shown the turn before."""

    turn: int
    rotation: int
    column: int
    missed: bool
    seconds: float | None


class Fall(NamedTuple):
    """A piece at rest: the squares it covers, the board of letters after full rows are removed, and how many those were."""

    cells: Squares
    letters: Cells
    cleared: int


def pieces(seed: int, count: int) -> list[int]:
    """The first pieces of a seed; more of them begin with the same."""
    drawn: list[int] = np.random.default_rng(seed).integers(len(PIECES), size=count).tolist()
    return drawn


def middle(piece: int) -> int:
    """The column at which a piece appears."""
    return int((COLUMNS - outlines().width[piece, 0]) // 2)


@cache
def _squares(piece: int, rotation: int) -> list[tuple[int, int]]:
    return [(int(r), int(c)) for r, c in np.argwhere(rotations(PIECES[piece], "literal")[rotation])]


def cells(piece: int, rotation: int, column: int, row: int) -> Squares:
    """The four squares of a piece whose leftmost column and topmost row these are."""
    return [[row + r, column + c] for r, c in _squares(piece, rotation)]


def occupied(letters: Cells) -> Cells:
    """The board as the rules know it: 0 and 1."""
    return (letters > 0).astype(np.uint8)


def as_texts(letters: Cells) -> list[str]:
    """The board for a page, top row first: a dot where it is free, else the letter of the piece that lies there."""
    text = letters.tobytes().translate(_AS_LETTERS).decode()
    return [text[k : k + COLUMNS] for k in range(0, len(text), COLUMNS)]


def fall(letters: Cells, piece: int, rotation: int, column: int) -> Fall | None:
    """Let a piece fall onto a board of letters; None where that is not legal."""
    if not 0 <= rotation < len(rotations(PIECES[piece])):
        return None
    row = resting_row(occupied(letters), piece, rotation, column)
    if row is None:
        return None
    covered, after = cells(piece, rotation, column, row), letters.copy()
    for r, c in covered:
        after[r, c] = piece + 1
    full = (after > 0).all(axis=1)
    cleared = int(full.sum())
    if cleared:
        after = np.concatenate([np.zeros((cleared, COLUMNS), np.uint8), after[~full]])
    return Fall(covered, after, cleared)


class Game:
    """A game as its seed and its moves so far leave it."""

    def __init__(self, seed: int, most: int | None = None, moves: Iterable[Move] = ()) -> None:
        self.seed, self.most = seed, most
        self.letters: Cells = np.zeros((ROWS, COLUMNS), np.uint8)
        self.turn = self.lines = self.misses = 0
        self._pieces = pieces(seed, 128)
        self._offered: Ints | None = None
        self.why: str | None = None
        for move in moves:
            self.make(move)

    @property
    def over(self) -> bool:
        """Whether no piece comes any more."""
        return self.why is not None

    @property
    def piece(self) -> int | None:
        """The piece to be placed, as a position in I O T S Z J L; None when the game is over."""
        return None if self.over else self.piece_of(self.turn)

    def piece_of(self, turn: int) -> int:
        """The piece of a turn. The pieces to come are nobody's business; the caller sees to that."""
        if turn >= len(self._pieces):
            self._pieces = pieces(self.seed, 2 * turn)
        return self._pieces[turn]

    @property
    def placements(self) -> Ints:
        """(M, 3) rotation, column and row at rest of what is legal now."""
        if self._offered is None:
            piece = self.piece
            self._offered = (
                np.empty((0, 3), np.int64) if piece is None else WORLD.at_rest(occupied(self.letters), piece)
            )
        return self._offered

    def offer(self) -> tuple[Ints, Floats]:
        """The legal placements (M, 2) and the features (M, K) of each: the decision that this turn asks for."""
        return WORLD.offer(occupied(self.letters), self.piece_of(self.turn))

    def allows(self, rotation: int, column: int) -> bool:
        """Whether a placement is legal now."""
        return any(r == rotation and c == column for r, c, _ in self.placements.tolist())

    def make(self, move: Move) -> Fall:
        """Make the move of this turn, and see whether the game goes on."""
        piece = self.piece
        if piece is None or move.turn != self.turn:
            raise ValueError(f"move {move.turn} cannot be made in turn {self.turn} of a game that is over: {self.over}")
        landed = fall(self.letters, piece, move.rotation, move.column)
        if landed is None and not move.missed:
            raise ValueError(f"turn {move.turn}: rotation {move.rotation} at column {move.column} is not legal")
        self.turn += 1
        self.misses += move.missed
        self._offered = None
        if landed is None:  # there was no room in the middle
            self.why = "full"
            return Fall([], self.letters, 0)
        self.letters = landed.letters
        self.lines += landed.cleared
        if self.letters[0].any():
            self.why = "full"
        elif self.turn == (LONGEST if self.most is None else self.most):
            self.why = "pieces"
        elif not len(self.placements):
            self.why, self._offered = "full", None
        return landed

    def missed(self, seconds: float | None) -> Move:
        """The move of a turn whose deadline has passed."""
        return Move(self.turn, 0, middle(self.piece_of(self.turn)), True, seconds)

    def shown(self) -> dict[str, Any]:
        """The board and the choice, as a page shows them."""
        piece = self.piece
        offered = [] if piece is None else self.placements.tolist()
        return {
            "turn": self.turn, "rows": ROWS, "columns": COLUMNS, "board": as_texts(self.letters),
            "piece": None if piece is None else PIECES[piece],
            "placements": [{"rotation": r, "column": c, "cells": cells(piece or 0, r, c, row)} for r, c, row in offered],
            "lines": self.lines, "over": self.over, "why": self.why, "pieces": self.most, "misses": self.misses,
        }  # fmt: skip


def told(move: Move, piece: int, landed: Fall) -> dict[str, Any]:
    """A move, as a page is told of it."""
    return {
        "turn": move.turn, "piece": PIECES[piece], "rotation": move.rotation, "column": move.column, "missed": move.missed,
        "seconds": None if move.seconds is None else round(move.seconds, 3), "cells": landed.cells, "cleared": landed.cleared,
    }  # fmt: skip


def replay(seed: int, most: int | None, moves: Iterable[Move]) -> list[dict[str, Any]]:
    """All moves of a game, as a page is told of them."""
    game = Game(seed, most)
    return [told(move, game.piece_of(move.turn), game.make(move)) for move in moves]
