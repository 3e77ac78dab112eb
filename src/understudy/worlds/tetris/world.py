"""Tetris as a world: what a board and a piece offer, and a noisy controller that plays (paper, section 5.2).

The state is the board and the piece, drawn evenly from seven. An action is a placement (rotation, column), and its row holds
the features of the board it leads to, so the controller takes the largest

    e(a) + features(board after a) @ value,    e(a) ~ N(0, 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy._arrays import Floats, Ints
from understudy.decisions import Decisions
from understudy.kernels.tetris import Cells, offer, offers, play
from understudy.worlds.tetris.board import Landing, as_board, drop
from understudy.worlds.tetris.features import FEATURES
from understudy.worlds.tetris.pieces import PIECES, outlines, piece_number


@dataclass(frozen=True, eq=False)
class Path:
    """What was seen of a player, time by time: the board and the piece, the placement, and the game it belongs to."""

    boards: Cells  # (T, rows, columns)
    pieces: Ints  # (T,) positions in I O T S Z J L
    rotations: Ints  # (T,)
    columns: Ints  # (T,)
    games: Ints  # (T,) counted from zero

    def __len__(self) -> int:
        return len(self.pieces)


@dataclass(frozen=True)
class Tetris:
    """The game on a board of any size.

    Args:
        rows, columns: the size of the board; the paper's is 30 x 10.
        actions: "distinct" offers each resulting position once; "literal" offers four rotations of every piece, so some
            placements are offered twice or four times, as the paper's text has it.

    >>> world = Tetris(rows=20)
    >>> path = world.simulate(np.random.default_rng(1), [-3, -15, -1], 50)
    >>> world.decisions(path)
    <Decisions: 50 decisions of 9 to 34 actions, 3 coefficients, dense>
    """

    rows: int = 30
    columns: int = 10
    actions: str = "distinct"

    def __post_init__(self) -> None:
        for name in ("rows", "columns"):
            size = getattr(self, name)
            if not isinstance(size, int | np.integer) or size < 1:
                raise ValueError(f"{name} must be a whole number, at least 1; it is {size!r}")
        outlines(self.actions)
        for piece in PIECES:
            if not len(self.placements(self.empty(), piece)):
                raise ValueError(f"a board of {self.rows} x {self.columns} has no room for the piece {piece}")

    def empty(self) -> Cells:
        """The board a game begins with."""
        return np.zeros((self.rows, self.columns), np.uint8)

    def placements(self, board: Any, piece: Any) -> Ints:
        """(M, 2) the legal placements (rotation, column), by rotation and then from left to right; M is 0 at the end."""
        return self.offer(board, piece)[0]

    def offer(self, board: Any, piece: Any) -> tuple[Ints, Floats]:
        """The legal placements (M, 2), and the features (M, 3) of the board each of them leads to."""
        cells, p, shapes = self._board(board), piece_number(piece), outlines(self.actions)
        where: Ints = np.empty((4 * self.columns, 3), np.int64)
        rows = np.empty((4 * self.columns, len(FEATURES)))
        count = offer(cells, shapes.rotations[p], shapes.width[p], shapes.top[p], shapes.bottom[p], where, rows)
        return where[:count, :2], rows[:count]

    def drop(self, board: Any, piece: Any, rotation: int, column: int) -> Landing:
        """Let the piece fall: where it comes to rest, the board after full rows are removed, and how many those were."""
        return drop(self._board(board), piece, rotation, column)

    def simulate(self, rng: np.random.Generator, value: Any, count: int, board: Any = None) -> Path:
        """Watch a noisy controller for `count` placements, from `board` or an empty one.

        `value` weighs height, holes and bumps. When the game has ended, it is restarted at once with an empty board, as in the
        paper's first experiment, and the next decision is the first of a new game.
        """
        if not isinstance(rng, np.random.Generator):
            raise ValueError(f"rng must be a numpy Generator, such as numpy.random.default_rng(0), not {rng!r}")
        if not isinstance(count, int | np.integer) or count < 1:
            raise ValueError(f"count must be a whole number of decisions, at least one; it is {count}")
        weights = np.asarray(value, dtype=np.float64)
        if weights.shape != (len(FEATURES),) or not np.isfinite(weights).all():
            raise ValueError(f"value must be {len(FEATURES)} finite numbers, for {', '.join(FEATURES)}; it is {value}")
        begin = self.empty() if board is None else self._board(board)
        boards = np.empty((count, self.rows, self.columns), np.uint8)
        pieces, games = np.empty(count, np.int64), np.empty(count, np.int64)
        taken: Ints = np.empty((count, 3), np.int64)
        play(rng, begin, weights, *outlines(self.actions), boards, pieces, taken, games)
        return Path(boards, pieces, taken[:, 0], taken[:, 1], games)

    def decisions(self, path: Path, *, ids: Any = None) -> Decisions:
        """The decisions of a path: for every legal placement a row with the features of the board it leads to."""
        if not len(path):
            raise ValueError("there are no decisions: the path is empty; at least one is needed")
        if path.boards.shape != (len(path), self.rows, self.columns):
            raise ValueError(
                f"the boards have shape {path.boards.shape}, but {len(path)} boards of "
                f"{self.rows} x {self.columns} are needed"
            )
        names = np.arange(len(path)) if ids is None else ids
        start: Ints = np.empty(len(path) + 1, np.int64)
        where: Ints = np.empty((len(path) * 4 * self.columns, 3), np.int64)
        rows = np.empty((len(path) * 4 * self.columns, len(FEATURES)))
        offers(path.boards, path.pieces, *outlines(self.actions), start, where, rows)
        where, rows = where[: start[-1]], rows[: start[-1]]
        owner = np.repeat(np.arange(len(path)), np.diff(start))
        taken = (where[:, 0] == path.rotations[owner]) & (where[:, 1] == path.columns[owner])
        chosen = np.full(len(path), -1, np.int64)
        chosen[owner[taken]] = (np.arange(start[-1]) - start[owner])[taken]
        wrong = np.flatnonzero(chosen < 0)
        if wrong.size:
            t = int(wrong[0])
            raise ValueError(
                f"decision {names[t]}: the placement of piece {PIECES[path.pieces[t]]} with rotation {path.rotations[t]} at "
                f"column {path.columns[t]} is not legal"
            )
        words = np.array([[f"rotation {r}, column {c}" for c in range(self.columns)] for r in range(4)])
        return Decisions(rows, start, chosen, names=FEATURES, actions=words[where[:, 0], where[:, 1]], ids=ids)

    def _board(self, given: Any) -> Cells:
        board = as_board(given)
        if board.shape != (self.rows, self.columns):
            raise ValueError(
                f"the board has {board.shape[0]} rows and {board.shape[1]} columns; "
                f"this world has {self.rows} and {self.columns}"
            )
        return board
