"""Recorded games: JSON lines, one placement a line, read and replayed.

    {"game": 1, "turn": 0, "board": ["0000000000", ...], "piece": "Z", "rotation": 1,
     "column": 0, "row": 17, "straight_drop": true, "cleared": 0, "seconds": 3.93}

The board, top row first, is the one the player saw. `rotation` counts the distinct ones, `column`
and `row` are those of the leftmost and topmost square at rest. `straight_drop`, `cleared`,
`seconds` and `missed` may be left out, and other fields are ignored. `missed` is true where a
deadline passed and the piece fell as it came: a placement, but no decision.

A file is accepted only if it replays: every piece comes to rest where the record says, and leaves
the board of the next turn.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from revealed._types import Cells, Floats
from revealed.data.decisions import Decisions
from revealed.environments.tetris.board import piece_fits, place_piece, resting_row
from revealed.environments.tetris.environment import Tetris
from revealed.environments.tetris.features import FeatureFunction
from revealed.environments.tetris.pieces import PIECES, piece_number, rotations
from revealed.environments.tetris.rollout import Rollout, Step
from revealed.io.atomic import atomic_write


@dataclass(frozen=True, eq=False)
class Placement:
    """One line of a file: what the player saw, where the piece was put, and how long it took.

    `straight` is False when the piece was slid in below an overhang, and `missed` is True when a
    deadline passed and nobody decided. `seconds` is None where it was not measured.
    """

    game: int
    turn: int
    board: Cells
    piece: int
    rotation: int
    column: int
    row: int
    straight: bool
    seconds: float | None
    missed: bool = False


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
        """The placements that somebody decided on, by a straight drop.

        Only these are among the actions of Tetris as the paper defines it.
        """
        return tuple(p for p in self.placements if p.straight and not p.missed)

    @property
    def seconds(self) -> Floats:
        """(T,) how many seconds each placement took; refused where that was not recorded."""
        if any(p.seconds is None for p in self.placements):
            raise ValueError("these games do not say how many seconds each placement took")
        return np.array([p.seconds for p in self.placements], np.float64)

    def within(self, seconds: float) -> Games:
        """The games with only those placements that took at most `seconds`."""
        quick = tuple(
            p for p, took in zip(self.placements, self.seconds, strict=True) if took <= seconds
        )
        return Games(quick, self.rows, self.columns)

    def decisions(
        self, actions: str = "distinct", features: str | FeatureFunction = "paper"
    ) -> Decisions:
        """The straight drops as decisions among all straight drops of the same board and piece.

        `actions` and `features` are those of `Tetris`. Decisions are labelled by game and turn.
        """
        decided = self.straight
        if not decided:
            raise ValueError("there are no decisions: none of the placements is a straight drop")

        def values_of(field: str) -> Any:
            return np.array([getattr(p, field) for p in decided], np.int64)

        rollout = Rollout(
            np.stack([p.board for p in decided]),
            values_of("piece"),
            values_of("rotation"),
            values_of("column"),
            values_of("game"),
        )
        ids = [f"game {p.game}, turn {p.turn}" for p in decided]
        return Tetris(self.rows, self.columns, actions, features).decisions(rollout, ids=ids)


def read_games(path: str | os.PathLike[str]) -> Games:
    """Games read from JSON lines, and replayed.

    The first record that does not replay is refused, with the number of its line.
    """
    placements: list[Placement] = []
    # The latest turn of each game, and the board that it left.
    latest: dict[int, tuple[int, Cells]] = {}
    with open(path, "rb") as lines:
        for number, line in enumerate(lines, 1):
            # an empty line at the end is not a record
            if not line.strip():
                continue
            try:
                # A record is checked in itself, then against the one before it in its game.
                record = _parse_line(line)
                placed, after = _parse_placement(
                    record, placements[0].board.shape if placements else None
                )
                _check_continues(placed, latest.get(placed.game))
            except ValueError as reason:
                raise ValueError(f"line {number}: {reason}") from None
            latest[placed.game] = placed.turn, after
            placements.append(placed)
    # an empty file is no games
    if not placements:
        raise ValueError(
            f"{os.fspath(path)} holds no placements; every line must be a JSON record of one"
        )
    return Games(tuple(placements), *placements[0].board.shape)


def write_games(
    path: str | os.PathLike[str], games: Iterable[Iterable[Step]], seconds: Any = None
) -> None:
    """Write games as JSON lines that `read_games` reads and replays; whole or not at all.

    `games` are the steps of each game. `seconds` says how long each placement took, in the order
    of the placements; default: not recorded.
    """
    # Seconds are taken one by one, in the order of the placements.
    times = None if seconds is None else iter(seconds)
    lines = []
    for game, steps in enumerate(games, 1):
        for turn, step in enumerate(steps):
            more = {} if times is None else {"seconds": float(next(times))}
            lines.append(placement_to_json(step, game, turn, **more))
    atomic_write(path, "".join(lines).encode())


def placement_to_json(step: Step, game: int, turn: int, **more: Any) -> str:
    """One placement as a line of a file; `more` are further fields of the record."""
    record = {
        "game": game,
        "turn": turn,
        "board": ["".join(map(str, row)) for row in step.board.tolist()],
        "piece": PIECES[step.piece],
        "rotation": step.rotation % len(rotations(PIECES[step.piece])),
        "column": step.column,
        "row": step.landing.row,
        "straight_drop": True,
        "cleared": step.landing.cleared,
        **more,
    }
    return json.dumps(record) + "\n"


def _parse_line(line: bytes) -> dict[str, Any]:
    """The JSON record in a line."""
    try:
        record = json.loads(line)
    except ValueError:
        raise ValueError(
            "this is not a whole JSON record; the line may have been cut short"
        ) from None
    if not isinstance(record, dict):
        raise ValueError(
            "a placement is a JSON record with named fields, such as game, turn, board and piece"
        )
    return record


def _parse_placement(record: dict[str, Any], size: Sequence[int] | None) -> tuple[Placement, Cells]:
    """The placement in a record, checked, and the board it leaves.

    `size` is (rows, columns) of the boards before it in the file, or None for the first.
    """
    game, turn, rotation, column, row = (
        _get_integer(record, f) for f in ("game", "turn", "rotation", "column", "row")
    )
    board = _parse_board(_get_field(record, "board"), size)
    piece = piece_number(str(_get_field(record, "piece")))
    letter, n_rotations = PIECES[piece], len(rotations(PIECES[piece]))
    # files count the distinct rotations
    if not 0 <= rotation < n_rotations:
        raise ValueError(
            f"rotation {rotation} of the piece {letter}, which has {n_rotations}, counted from 0"
        )
    # A straight drop lands in one row only; a piece that was slid in may rest in others.
    drop_row = resting_row(board, piece, rotation, column)
    where = f"the piece {letter} with rotation {rotation} at column {column}"
    # where the field is missing, the row says whether it was straight
    straight = record.get("straight_drop", drop_row == row)
    if not isinstance(straight, bool):
        raise ValueError(f"straight_drop is {straight!r}; it must be true or false")
    if straight and drop_row is None:
        raise ValueError(
            f"{where} cannot drop straight and stay inside the board; the placement is not legal"
        )
    if straight and drop_row != row:
        raise ValueError(f"{where} drops to row {drop_row}, but the record says row {row}")
    # At rest the piece fits where it is, and does not fit one row further down.
    if not piece_fits(board, piece, rotation, column, row):
        raise ValueError(
            f"{where} and row {row} overlaps occupied squares or leaves the board; it is not legal"
        )
    if piece_fits(board, piece, rotation, column, row + 1):
        raise ValueError(
            f"{where} and row {row} hangs in the air; a piece comes to rest on something"
        )
    # What the record says of the result must be true.
    landing = place_piece(board, piece, rotation, column, row)
    if "cleared" in record and record["cleared"] != landing.cleared:
        raise ValueError(
            f"{where} removes {landing.cleared} full rows, but the record says {record['cleared']}"
        )
    # Optional fields: seconds must be finite, missed a truth value.
    seconds = record.get("seconds")
    if seconds is not None:
        number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
        if not number or not 0.0 <= seconds < np.inf:
            raise ValueError(f"seconds is {seconds!r}; it must be a number that is not negative")
        seconds = float(seconds)
    missed = record.get("missed", False)
    if not isinstance(missed, bool):
        raise ValueError(f"missed is {missed!r}; it must be true or false")
    return Placement(
        game, turn, board, piece, rotation, column, row, straight, seconds, missed
    ), landing.board


def _check_continues(placed: Placement, before: tuple[int, Cells] | None) -> None:
    """Refuse a placement that does not follow from the one before it in its game.

    `before` is the turn of that one and the board it left; None for the first of a game.
    """
    if before is None:
        return
    # The turn, the end of the game and the board must fit together.
    turn, board = before
    if placed.turn != turn + 1:
        raise ValueError(
            f"game {placed.game} does not replay: turn {placed.turn} follows turn {turn}"
        )
    if board[0].any():
        raise ValueError(
            f"game {placed.game} does not replay: turn {turn} ended it by reaching the top row"
        )
    if not np.array_equal(board, placed.board):
        raise ValueError(
            f"game {placed.game} does not replay: the board is not the one that the placement of "
            f"turn {turn} leaves"
        )


def _get_field(record: dict[str, Any], name: str) -> Any:
    """The value of a field that must be there."""
    if name not in record:
        raise ValueError(f"the field {name} is missing")
    return record[name]


def _get_integer(record: dict[str, Any], name: str) -> int:
    """The value of a field that must be there and be a whole number, small enough for an array."""
    given = _get_field(record, name)
    if not isinstance(given, int) or isinstance(given, bool) or abs(given) >= 2**62:
        raise ValueError(f"{name} is {given!r}; it must be a whole number")
    return given


def _parse_board(given: Any, size: Sequence[int] | None) -> Cells:
    """The board in a record, (rows, columns) of 0 and 1.

    `size` is that of the boards before it, which it must have; None for the first.
    """
    # Rows as texts of 0 and 1, nothing else.
    texts = isinstance(given, list) and all(
        isinstance(row, str) and row and set(row) <= {"0", "1"} for row in given
    )
    if not texts or not given:
        raise ValueError(
            'the board must be a list of rows such as "0010", the top row first, of 0 and 1 only'
        )
    # The first board of a file sets the size of all.
    rows, columns = (len(given), len(given[0])) if size is None else size
    for i, row in enumerate(given):
        if len(row) != columns:
            raise ValueError(
                f"row {i} of the board is {len(row)} squares wide; it must be {columns}, "
                "as the others are"
            )
    if len(given) != rows:
        raise ValueError(
            f"the board has {len(given)} rows; it must have {rows}, as the others have"
        )
    board: Cells = np.array([list(row) for row in given]) == "1"
    return board.astype(np.uint8)
