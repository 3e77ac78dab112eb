"""One game: a seed and moves, from which everything else follows.

Piece t is the t-th draw of the generator that the seed begins. A move is a placement, or a miss:
the deadline passed, so the piece fell as it came, not rotated, in the middle, and no decision was
made (paper, section 5.2, Experiment 3). A game is over when the board is full, or when the agreed
number of pieces has been placed. Nothing in this module depends on clocks, requests or databases.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from revealed._types import Cells, Floats, Ints
from revealed.environments.tetris import PIECES, Tetris
from revealed.environments.tetris.board import resting_row
from revealed.environments.tetris.pieces import outlines, rotations

# Pieces of a game without an agreed number. Nobody plays as many; without a bound a program could
# make a game that takes minutes to replay.
MAX_PIECES = 10_000
TETRIS = Tetris(30, 10)  # the paper's board
# A square of a board of letters is 0 where it is free, else 1 + the piece's position in PIECES.
LETTERS = "." + PIECES
_CODES_TO_LETTERS = bytes.maketrans(bytes(range(len(LETTERS))), LETTERS.encode())
Squares = list[list[int]]


@dataclass(frozen=True)
class Move:
    """What happened in one turn.

    `seconds` is how long the decision took; None where the server had not shown the turn before.
    """

    turn: int
    rotation: int
    column: int
    missed: bool
    seconds: float | None


class Drop(NamedTuple):
    """A piece at rest.

    `cells` are the [row, column] squares it covers, `letters` the board after full rows are
    removed, `cleared` how many rows those were.
    """

    cells: Squares
    letters: Cells
    cleared: int


def draw_pieces(seed: int, count: int) -> list[int]:
    """The first `count` pieces of a seed, as positions in PIECES; more of them begin with these."""
    drawn: list[int] = np.random.default_rng(seed).integers(len(PIECES), size=count).tolist()
    return drawn


def spawn_column(piece: int) -> int:
    """The leftmost column of a piece as it appears: in the middle, not rotated.

    Where the middle falls between two columns, it is the left one. A missed piece drops from
    there.
    """
    return int((TETRIS.columns - outlines().width[piece, 0]) // 2)


@cache
def _piece_squares(piece: int, rotation: int) -> list[tuple[int, int]]:
    """(row, column) of the four squares of a piece, from its own top left corner."""
    return [(int(r), int(c)) for r, c in np.argwhere(rotations(PIECES[piece], "literal")[rotation])]


def covered_squares(piece: int, rotation: int, column: int, row: int) -> Squares:
    """The four squares of a piece whose leftmost column and topmost row these are."""
    return [[row + r, column + c] for r, c in _piece_squares(piece, rotation)]


def occupied(letters: Cells) -> Cells:
    """The board of 0 and 1 that the rules of Tetris take, from a board of letters."""
    return (letters > 0).astype(np.uint8)


def board_text(letters: Cells) -> list[str]:
    """The board for a page, one string a row, top row first.

    A dot where a square is free, else the letter of the piece that lies there.
    """
    # One pass over the bytes of the whole board, then cut into rows.
    text = letters.tobytes().translate(_CODES_TO_LETTERS).decode()
    return [text[k : k + TETRIS.columns] for k in range(0, len(text), TETRIS.columns)]


def drop_piece(letters: Cells, piece: int, rotation: int, column: int) -> Drop | None:
    """A piece dropped onto a board of letters; None where that is not legal.

    The same rules as `revealed.environments.tetris`, which knows only whether a square is
    occupied; pages also show by which piece.
    """
    if not 0 <= rotation < len(rotations(PIECES[piece])):
        return None
    # The row in which the piece comes to rest, None where the column has no space.
    row = resting_row(occupied(letters), piece, rotation, column)
    if row is None:
        return None
    covered, after = covered_squares(piece, rotation, column, row), letters.copy()
    for r, c in covered:
        after[r, c] = piece + 1
    # Full rows go; what was above them moves down, and as many empty rows appear at the top.
    full = (after > 0).all(axis=1)
    cleared = int(full.sum())
    if cleared:
        after = np.concatenate([np.zeros((cleared, TETRIS.columns), np.uint8), after[~full]])
    return Drop(covered, after, cleared)


class Game:
    """A game as its seed and its moves so far leave it.

    `max_pieces` is the agreed number of pieces, None for until the board is full. `end_reason` is
    None while the game goes on, "full" or "pieces" when it is over.
    """

    def __init__(
        self, seed: int, max_pieces: int | None = None, moves: Iterable[Move] = ()
    ) -> None:
        self.seed, self.max_pieces = seed, max_pieces
        self.letters: Cells = np.zeros((TETRIS.rows, TETRIS.columns), np.uint8)
        # The counts of a page: pieces placed, rows removed, deadlines missed.
        self.turn = self.lines = self.misses = 0
        # Pieces are drawn in bulk; a longer game draws them again, twice as many.
        self._pieces = draw_pieces(seed, 128)
        self._placements: Ints | None = None
        self.end_reason: str | None = None
        for move in moves:
            self.apply(move)

    @property
    def over(self) -> bool:
        """Whether no further piece comes."""
        return self.end_reason is not None

    @property
    def piece(self) -> int | None:
        """The piece to be placed, as a position in I O T S Z J L; None when the game is over."""
        return None if self.over else self.piece_at(self.turn)

    def piece_at(self, turn: int) -> int:
        """The piece of a turn; callers must not show those to come."""
        if turn >= len(self._pieces):
            self._pieces = draw_pieces(self.seed, 2 * turn)
        return self._pieces[turn]

    @property
    def placements(self) -> Ints:
        """(M, 3) rotation, column and resting row of each legal placement; empty at the end.

        Kept until the next move, because every request for the state needs them.
        """
        if self._placements is None:
            piece = self.piece
            self._placements = (
                np.empty((0, 3), np.int64)
                if piece is None
                else TETRIS.placements_with_rows(occupied(self.letters), piece)
            )
        return self._placements

    def offered_features(self) -> tuple[Ints, Floats]:
        """The decision of this turn: legal placements (M, 2) and the features (M, K) of each."""
        return TETRIS.placements_with_features(occupied(self.letters), self.piece_at(self.turn))

    def allows(self, rotation: int, column: int) -> bool:
        """Whether a placement is legal now.

        `rotation` counts quarter turns as the piece's own list does; `column` is that of its
        leftmost square.
        """
        return any(r == rotation and c == column for r, c, _ in self.placements.tolist())

    def apply(self, move: Move) -> Drop:
        """The piece of this turn at rest, after making a move; ends the game where it must.

        ValueError where the move is not one of this turn: replaying a record is thereby a check
        of it.
        """
        piece = self.piece
        if piece is None or move.turn != self.turn:
            raise ValueError(
                f"move {move.turn} cannot be made in turn {self.turn} "
                f"of a game that is over: {self.over}"
            )
        dropped = drop_piece(self.letters, piece, move.rotation, move.column)
        if dropped is None and not move.missed:
            raise ValueError(
                f"turn {move.turn}: rotation {move.rotation} at column {move.column} is not legal"
            )
        # From here on the move is made; what is kept of the last turn no longer holds.
        self.turn += 1
        self.misses += move.missed
        self._placements = None
        if dropped is None:
            # A missed piece found no space in the middle.
            self.end_reason = "full"
            return Drop([], self.letters, 0)
        # The new board, and what follows from it: the score, and whether the game goes on.
        self.letters = dropped.letters
        self.lines += dropped.cleared
        # The order matters: a full board is over even with the last agreed piece.
        if self.letters[0].any():
            self.end_reason = "full"
        elif self.turn == (MAX_PIECES if self.max_pieces is None else self.max_pieces):
            self.end_reason = "pieces"
        elif not len(self.placements):
            self.end_reason, self._placements = "full", None
        return dropped

    def missed_move(self, seconds: float | None) -> Move:
        """The move of a turn whose deadline has passed: the piece falls where it appeared."""
        return Move(self.turn, 0, spawn_column(self.piece_at(self.turn)), True, seconds)

    def state_payload(self) -> dict[str, Any]:
        """The board and the choice, as JSON for a page.

        Each placement comes with the squares it would cover, so that the page needs no rules.
        """
        piece = self.piece
        # All legal placements are sent: a page can ask for nothing else.
        offered = [] if piece is None else self.placements.tolist()
        return {
            "turn": self.turn,
            "rows": TETRIS.rows,
            "columns": TETRIS.columns,
            "board": board_text(self.letters),
            "piece": None if piece is None else PIECES[piece],
            "placements": [
                {"rotation": r, "column": c, "cells": covered_squares(piece or 0, r, c, row)}
                for r, c, row in offered
            ],
            "lines": self.lines,
            "over": self.over,
            "why": self.end_reason,
            "pieces": self.max_pieces,
            "misses": self.misses,
        }


def move_payload(move: Move, piece: int, dropped: Drop) -> dict[str, Any]:
    """A move and what it did, as JSON for a page.

    `cells` are the squares covered before full rows were removed; `seconds` is rounded to
    milliseconds.
    """
    return {
        "turn": move.turn,
        "piece": PIECES[piece],
        "rotation": move.rotation,
        "column": move.column,
        "missed": move.missed,
        "seconds": None if move.seconds is None else round(move.seconds, 3),
        "cells": dropped.cells,
        "cleared": dropped.cleared,
    }


def replay_moves(seed: int, max_pieces: int | None, moves: Iterable[Move]) -> list[dict[str, Any]]:
    """All moves of a game in order, as JSON for a page."""
    # Replaying checks every move again, as it was checked when it was made.
    game = Game(seed, max_pieces)
    return [move_payload(move, game.piece_at(move.turn), game.apply(move)) for move in moves]
