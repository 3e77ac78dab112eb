"""Tetris as a world: what a board and a piece offer, and a noisy controller that plays (paper, section 5.2).

The state is the board and the piece, drawn evenly from seven. An action is a placement (rotation, column), and its row holds
the features of the board it leads to, so the controller takes the largest

    e(a) + features(board after a) @ value,    e(a) ~ N(0, 1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from understudy._arrays import Cells, Floats, Ints
from understudy.decisions import Decisions
from understudy.kernels.tetris import offer, offers, play
from understudy.kernels.tetris_features import PAPER
from understudy.worlds.tetris.board import Landing, as_board, drop, has_ended
from understudy.worlds.tetris.features import KINDS, NAMES, Move, Own
from understudy.worlds.tetris.pieces import PIECES, outlines, piece_number

Chooser = Callable[[np.random.Generator, Floats], int]
"""Picks a placement by its position, given the features (M, K) of all that are offered."""


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


class Step(NamedTuple):
    """One placement of a game: the board and the piece that were seen, where it was put, and what came of it."""

    board: Cells
    piece: int
    rotation: int
    column: int
    landing: Landing
    game: int


@dataclass(frozen=True)
class Tetris:
    """The game on a board of any size.

    Args:
        rows, columns: the size of the board; the paper's is 30 x 10.
        actions: "distinct" offers each resulting position once; "literal" offers four rotations of every piece, so some
            placements are offered twice or four times, as the paper's text has it.
        features: what a row holds: "paper", "bertsekas", "dellacherie", "rich" (see `features.py`), or a function of one's own,
            from a `Move` to numbers, as many for every move.
        names: of the features, where they are one's own.

    >>> world = us.worlds.Tetris(rows=20)
    >>> path = world.simulate(np.random.default_rng(1), [-3, -15, -1], 50)
    >>> world.decisions(path)
    <Decisions: 50 decisions of 9 to 34 actions, 3 coefficients, dense>
    """

    rows: int = 30
    columns: int = 10
    actions: str = "distinct"
    features: str | Own = "paper"
    names: Sequence[str] | None = None

    def __post_init__(self) -> None:
        for name in ("rows", "columns"):
            size = getattr(self, name)
            if not isinstance(size, int | np.integer) or size < 1:
                raise ValueError(f"{name} must be a whole number, at least 1; it is {size!r}")
        outlines(self.actions)
        if isinstance(self.features, str) and self.features not in NAMES:
            raise ValueError(f"features is {self.features!r}; it must be one of {', '.join(NAMES)}, or a function")
        if self.names is not None and isinstance(self.features, str):
            raise ValueError(f"the features {self.features!r} have names of their own; leave names out")
        for piece in PIECES:
            if not len(self._where(self.empty(), PIECES.index(piece))):
                raise ValueError(f"a board of {self.rows} x {self.columns} has no room for the piece {piece}")

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the features."""
        if isinstance(self.features, str):
            return NAMES[self.features](self.columns)
        width = self._own(self.empty(), 0, self._where(self.empty(), 0)).shape[1]
        names = tuple(self.names) if self.names is not None else tuple(f"feature {k}" for k in range(width))
        if len(names) != width:
            raise ValueError(f"{len(names)} names were given, but the feature function returns {width} numbers")
        return names

    def empty(self) -> Cells:
        """The board a game begins with."""
        return np.zeros((self.rows, self.columns), np.uint8)

    def placements(self, board: Any, piece: Any) -> Ints:
        """(M, 2) the legal placements (rotation, column), by rotation and then from left to right; M is 0 at the end."""
        return self._where(self.checked(board), piece_number(piece))[:, :2]

    def at_rest(self, board: Any, piece: Any) -> Ints:
        """(M, 3) the same, each with the row of the piece's topmost square when it has come to rest."""
        return self._where(self.checked(board), piece_number(piece))

    def offer(self, board: Any, piece: Any) -> tuple[Ints, Floats]:
        """The legal placements (M, 2), and the features (M, K) of each."""
        cells, p = self.checked(board), piece_number(piece)
        if not isinstance(self.features, str):
            where = self._where(cells, p)
            return where[:, :2], self._own(cells, p, where)
        where, rows = self._room(1)
        count = self._fill(KINDS[self.features], cells, p, where, rows)
        return where[:count, :2], rows[:count]

    def _room(self, states: int) -> tuple[Ints, Floats]:
        most = 4 * self.columns * states
        return np.empty((most, 3), np.int64), np.empty((most, len(self.feature_names)))

    def _fill(self, kind: int, board: Cells, piece: int, where: Ints, rows: Floats) -> int:
        s = outlines(self.actions)
        return int(offer(kind, board, s.rotations[piece], s.width[piece], s.top[piece], s.bottom[piece], where, rows))

    def _where(self, board: Cells, piece: int) -> Ints:
        """(M, 3) rotation, column and row at rest of the legal placements."""
        where: Ints = np.empty((4 * self.columns, 3), np.int64)
        return where[: self._fill(PAPER, board, piece, where, np.empty((4 * self.columns, 3)))]

    def _own(self, board: Cells, piece: int, where: Ints) -> Floats:
        """(M, K) what the user's own function says of each placement."""
        assert not isinstance(self.features, str)
        rows = []
        for rotation, column, row in where.tolist():
            landing = drop(board, piece, rotation, column)
            move = Move(board, PIECES[piece], rotation, column, row, landing.board, landing.cleared)
            rows.append(np.atleast_1d(np.asarray(self.features(move), dtype=np.float64)))
        width = rows[0].shape if rows else (0,)
        for row_, (rotation, column, _) in zip(rows, where.tolist(), strict=True):
            if row_.ndim != 1 or row_.shape != width or not np.isfinite(row_).all():
                raise ValueError(
                    f"the feature function must return as many finite numbers for every move; for the piece {PIECES[piece]} "
                    f"with rotation {rotation} at column {column} it returned {row_.tolist()}"
                )
        return np.array(rows).reshape(len(rows), *width)

    def drop(self, board: Any, piece: Any, rotation: int, column: int) -> Landing:
        """Let the piece fall: where it comes to rest, the board after full rows are removed, and how many those were."""
        return drop(self.checked(board), piece, rotation, column)

    def simulate(self, rng: np.random.Generator, value: Any, count: int, board: Any = None) -> Path:
        """Watch a noisy controller for `count` placements, from `board` or an empty one.

        `value` weighs the features. When the game has ended, it is restarted at once with an empty board, as in the
        paper's first experiment, and the next decision is the first of a new game.
        """
        if not isinstance(rng, np.random.Generator):
            raise ValueError(f"rng must be a numpy Generator, such as numpy.random.default_rng(0), not {rng!r}")
        if not isinstance(count, int | np.integer) or count < 1:
            raise ValueError(f"count must be a whole number of decisions, at least one; it is {count}")
        names, weights = self.feature_names, np.asarray(value, dtype=np.float64)
        if weights.shape != (len(names),) or not np.isfinite(weights).all():
            raise ValueError(f"value must be {len(names)} finite numbers, for {', '.join(names)}; it is {value}")
        begin = self.empty() if board is None else self.checked(board)
        if not isinstance(self.features, str):
            return self._watch(rng, weights, count, begin)
        boards = np.empty((count, self.rows, self.columns), np.uint8)
        pieces, games = np.empty(count, np.int64), np.empty(count, np.int64)
        taken: Ints = np.empty((count, 3), np.int64)
        play(KINDS[self.features], rng, begin, weights, *outlines(self.actions), boards, pieces, taken, games)
        return Path(boards, pieces, taken[:, 0], taken[:, 1], games)

    def _watch(self, rng: np.random.Generator, weights: Floats, count: int, board: Cells) -> Path:
        """The same with features of one's own."""

        def noisy(rng: np.random.Generator, rows: Floats) -> int:
            return int(np.argmax(rows @ weights + rng.standard_normal(len(rows))))

        steps: list[Step] = []
        game = 0
        while len(steps) < count:
            steps += [step._replace(game=game) for step in self.play(rng, noisy, count - len(steps), board)]
            game, board = game + 1, self.empty()
        return Path(
            np.stack([step.board for step in steps]),
            *(np.array([getattr(s, name) for s in steps]) for name in ("piece", "rotation", "column", "game")),
        )

    def play(
        self, rng: np.random.Generator, choose: Chooser, most: int, board: Any = None, pieces: Any = None
    ) -> Iterator[Step]:
        """One game, placement by placement, until it ends or `most` are made.

        `choose` picks among the features of what is offered. Pieces are drawn evenly, or taken from `pieces`.
        """
        now = self.empty() if board is None else self.checked(board)
        given = None if pieces is None else [piece_number(p) for p in pieces]
        for t in range(most if given is None else min(most, len(given))):
            piece = int(rng.integers(len(PIECES))) if given is None else given[t]
            where, rows = self.offer(now, piece)
            if not len(where):
                return
            rotation, column = where[choose(rng, rows)].tolist()
            landing = drop(now, piece, rotation, column)
            yield Step(now, piece, rotation, column, landing, 0)
            now = landing.board
            if has_ended(now):
                return

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
        start, where, rows = self._offers(path)
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
        return Decisions(
            rows, start, chosen, names=self.feature_names, actions=words[where[:, 0], where[:, 1]], ids=ids
        )

    def _offers(self, path: Path) -> tuple[Ints, Ints, Floats]:
        """Where each state's placements begin (T + 1,), the placements (P, 3), and their features (P, K)."""
        start: Ints = np.zeros(len(path) + 1, np.int64)
        if isinstance(self.features, str):
            where, rows = self._room(len(path))
            shapes = outlines(self.actions)
            offers(KINDS[self.features], path.boards, path.pieces, *shapes, start, where, rows)
            return start, where[: start[-1]], rows[: start[-1]]
        places = [self._where(board, piece) for board, piece in zip(path.boards, path.pieces.tolist(), strict=True)]
        states = zip(path.boards, path.pieces.tolist(), places, strict=True)
        start[1:] = np.cumsum([len(place) for place in places])
        return start, np.concatenate(places), np.concatenate([self._own(*state) for state in states])

    def checked(self, given: Any) -> Cells:
        """A board of this world's size, from an array or texts."""
        board = as_board(given)
        if board.shape != (self.rows, self.columns):
            raise ValueError(
                f"the board has {board.shape[0]} rows and {board.shape[1]} columns; "
                f"this world has {self.rows} and {self.columns}"
            )
        return board
