"""Recorded games: JSON lines, one placement a line, read and played again.

    {"game": 1, "turn": 0, "board": ["0000000000", ...], "piece": "Z", "rotation": 1, "column": 0, "row": 17,
     "straight_drop": true, "cleared": 0, "seconds": 3.93}

The board, top row first, is the one the player saw. `rotation` counts the distinct ones, `column` and `row` are those of the
leftmost and topmost square at rest. `straight_drop`, `cleared`, `seconds` and `missed` may be left out, and other fields are ignored.
`missed` is true where a deadline passed and the piece fell as it came: a placement, but no decision. A file is believed only if it replays: every piece comes to rest where the record says, and leaves the board of the next turn.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from understudy._arrays import Cells, Floats
from understudy._files import write_whole
from understudy.decisions import Decisions
from understudy.worlds.tetris.board import fits, put, resting_row
from understudy.worlds.tetris.features import Own
from understudy.worlds.tetris.pieces import PIECES, piece_number, rotations
from understudy.worlds.tetris.world import Path, Step, Tetris


@dataclass(frozen=True, eq=False)
class Placement:
    """One line of a file: what the player saw, where the piece was put, and how long that took."""

    game: int
    turn: int
    board: Cells
    piece: int
    rotation: int
    column: int
    row: int
    straight: bool  # False when the piece was slid in below an overhang
    seconds: float | None
    missed: bool = False  # True when a deadline passed and nobody decided


@dataclass(frozen=True, eq=False)
class Games:
    """The placements of a file, in its order, all on boards of one size."""

    placements: tuple[Placement, ...]
    rows: int
    columns: int

    def __len__(self) -> int:
        return len(self.placements)

    @cached_property
    def straight(self) -> tuple[Placement, ...]:
        """The placements that somebody decided on, by a straight drop: those that Tetris as the paper has it can offer."""
        return tuple(p for p in self.placements if p.straight and not p.missed)

    @property
    def seconds(self) -> Floats:
        """How many seconds each placement took."""
        if any(p.seconds is None for p in self.placements):
            raise ValueError("these games do not say how many seconds each placement took")
        return np.array([p.seconds for p in self.placements], np.float64)

    def within(self, seconds: float) -> Games:
        """Those placements that took at most so many seconds."""
        quick = tuple(p for p, took in zip(self.placements, self.seconds, strict=True) if took <= seconds)
        return Games(quick, self.rows, self.columns)

    def decisions(self, actions: str = "distinct", features: str | Own = "paper") -> Decisions:
        """The straight drops as decisions among all straight drops of the same board and piece."""
        seen = self.straight
        if not seen:
            raise ValueError("there are no decisions: none of the placements is a straight drop")

        def column(field: str) -> Any:
            return np.array([getattr(p, field) for p in seen], np.int64)

        path = Path(
            np.stack([p.board for p in seen]), column("piece"), column("rotation"), column("column"), column("game")
        )
        ids = [f"game {p.game}, turn {p.turn}" for p in seen]
        return Tetris(self.rows, self.columns, actions, features).decisions(path, ids=ids)


def read_games(path: str | os.PathLike[str]) -> Games:
    """Read games from JSON lines and play them again; the first thing that does not fit is refused with its line number."""
    placements: list[Placement] = []
    results: dict[int, tuple[int, Cells]] = {}
    with open(path, "rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                record = _record(line)
                placed, after = _placement(record, placements[0].board.shape if placements else None)
                _refuse_gap(placed, results.get(placed.game))
            except ValueError as fault:
                raise ValueError(f"line {number}: {fault}") from None
            results[placed.game] = placed.turn, after
            placements.append(placed)
    if not placements:
        raise ValueError(f"{os.fspath(path)} holds no placements; every line must be a JSON record of one")
    return Games(tuple(placements), *placements[0].board.shape)


def write_games(path: str | os.PathLike[str], games: Iterable[Iterable[Step]], seconds: Any = None) -> None:
    """Write games as JSON lines that `read_games` reads and replays; whole or not at all.

    seconds: how long each placement took, in the order of the placements, if that was measured.
    """
    times = None if seconds is None else iter(seconds)
    lines = []
    for game, steps in enumerate(games, 1):
        for turn, step in enumerate(steps):
            more = {} if times is None else {"seconds": float(next(times))}
            lines.append(as_line(step, game, turn, **more))
    write_whole(path, "".join(lines).encode())


def as_line(step: Step, game: int, turn: int, **more: Any) -> str:
    """One placement as a line of a file."""
    record = {
        "game": game, "turn": turn, "board": ["".join(map(str, row)) for row in step.board.tolist()],
        "piece": PIECES[step.piece], "rotation": step.rotation % len(rotations(PIECES[step.piece])),
        "column": step.column, "row": step.landing.row, "straight_drop": True, "cleared": step.landing.cleared, **more,
    }  # fmt: skip
    return json.dumps(record) + "\n"


def _record(line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError:
        raise ValueError("this is not a whole JSON record; the line may have been cut short") from None
    if not isinstance(record, dict):
        raise ValueError("a placement is a JSON record with named fields, such as game, turn, board and piece")
    return record


def _placement(record: dict[str, Any], size: Sequence[int] | None) -> tuple[Placement, Cells]:
    """The placement in a record, checked, and the board it leaves."""
    game, turn, rotation, column, row = (_whole(record, f) for f in ("game", "turn", "rotation", "column", "row"))
    board = _board(_field(record, "board"), size)
    piece = piece_number(str(_field(record, "piece")))
    letter, many = PIECES[piece], len(rotations(PIECES[piece]))
    if not 0 <= rotation < many:
        raise ValueError(f"rotation {rotation} of the piece {letter}, which has {many}, counted from 0")
    lands = resting_row(board, piece, rotation, column)
    where = f"the piece {letter} with rotation {rotation} at column {column}"
    straight = record.get("straight_drop", lands == row)
    if not isinstance(straight, bool):
        raise ValueError(f"straight_drop is {straight!r}; it must be true or false")
    if straight and lands is None:
        raise ValueError(f"{where} cannot drop straight and stay inside the board; the placement is not legal")
    if straight and lands != row:
        raise ValueError(f"{where} drops to row {lands}, but the record says row {row}")
    if not fits(board, piece, rotation, column, row):
        raise ValueError(f"{where} and row {row} overlaps occupied squares or leaves the board; it is not legal")
    if fits(board, piece, rotation, column, row + 1):
        raise ValueError(f"{where} and row {row} hangs in the air; a piece comes to rest on something")
    landing = put(board, piece, rotation, column, row)
    if "cleared" in record and record["cleared"] != landing.cleared:
        raise ValueError(f"{where} removes {landing.cleared} full rows, but the record says {record['cleared']}")
    seconds = record.get("seconds")
    if seconds is not None:
        number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
        if not number or not 0.0 <= seconds < np.inf:
            raise ValueError(f"seconds is {seconds!r}; it must be a number that is not negative")
        seconds = float(seconds)
    missed = record.get("missed", False)
    if not isinstance(missed, bool):
        raise ValueError(f"missed is {missed!r}; it must be true or false")
    return Placement(game, turn, board, piece, rotation, column, row, straight, seconds, missed), landing.board


def _refuse_gap(placed: Placement, before: tuple[int, Cells] | None) -> None:
    """Refuse a placement that does not follow from the one before it in its game."""
    if before is None:
        return
    turn, board = before
    if placed.turn != turn + 1:
        raise ValueError(f"game {placed.game} does not replay: turn {placed.turn} follows turn {turn}")
    if board[0].any():
        raise ValueError(f"game {placed.game} does not replay: turn {turn} ended it by reaching the top row")
    if not np.array_equal(board, placed.board):
        raise ValueError(
            f"game {placed.game} does not replay: the board is not the one that the placement of turn {turn} leaves"
        )


def _field(record: dict[str, Any], name: str) -> Any:
    if name not in record:
        raise ValueError(f"the field {name} is missing")
    return record[name]


def _whole(record: dict[str, Any], name: str) -> int:
    given = _field(record, name)
    if not isinstance(given, int) or isinstance(given, bool) or abs(given) >= 2**62:
        raise ValueError(f"{name} is {given!r}; it must be a whole number")
    return given


def _board(given: Any, size: Sequence[int] | None) -> Cells:
    texts = isinstance(given, list) and all(isinstance(row, str) and row and set(row) <= {"0", "1"} for row in given)
    if not texts or not given:
        raise ValueError('the board must be a list of rows such as "0010", the top row first, of 0 and 1 only')
    rows, columns = (len(given), len(given[0])) if size is None else size
    for i, row in enumerate(given):
        if len(row) != columns:
            raise ValueError(
                f"row {i} of the board is {len(row)} squares wide; it must be {columns}, as the others are"
            )
    if len(given) != rows:
        raise ValueError(f"the board has {len(given)} rows; it must have {rows}, as the others have")
    board: Cells = np.array([list(row) for row in given]) == "1"
    return board.astype(np.uint8)
