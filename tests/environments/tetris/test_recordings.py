"""Recorded games: the format, the replay, what is refused, and a person's games where they are at hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from revealed.environments.tetris import PIECES, Games, Tetris, drop, read_games

HUMAN = Path(__file__).resolve().parents[4] / "shared" / "data" / "human_tetris.jsonl"

Records = list[dict[str, Any]]


@pytest.fixture
def records() -> Records:
    """Two games of a controller that builds holes, on 12 x 6."""
    world = Tetris(12, 6)
    path = world.simulate(np.random.default_rng(2), [0.0, 5.0, 0.0], 25)
    assert path.games[-1] >= 1
    turns = [t - int(np.argmax(path.games == game)) for t, game in enumerate(path.games)]
    placed = zip(path.boards, path.pieces, path.rotations, path.columns, strict=True)
    landings = [world.drop(*each) for each in placed]
    return [
        {
            "game": int(path.games[t]),
            "turn": turns[t],
            "board": ["".join(map(str, row)) for row in path.boards[t].tolist()],
            "piece": PIECES[path.pieces[t]],
            "rotation": int(path.rotations[t]),
            "column": int(path.columns[t]),
            "row": landings[t].row,
            "straight_drop": True,
            "cleared": landings[t].cleared,
            "seconds": 0.5 * t,
        }
        for t in range(len(path))
    ]


def write(folder: Path, records: Records) -> Path:
    path = folder / "games.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_games_come_back_as_they_were_played(tmp_path: Path, records: Records) -> None:
    games = read_games(write(tmp_path, records))
    assert (len(games), games.rows, games.columns) == (25, 12, 6)
    assert [p.seconds for p in games.placements] == [0.5 * t for t in range(25)]
    world = Tetris(12, 6)
    path = world.simulate(np.random.default_rng(2), [0.0, 5.0, 0.0], 25)
    expected, found = world.decisions(path), games.decisions()
    assert np.array_equal(found.rows, expected.rows)
    assert np.array_equal(found.start, expected.start)
    assert np.array_equal(found.chosen_row, expected.chosen_row)
    assert found.ids[0] == "game 0, turn 0"


def test_what_may_be_left_out_is_worked_out(tmp_path: Path, records: Records) -> None:
    for record in records:
        del record["straight_drop"], record["cleared"], record["seconds"]
        record["level"] = 3
    games = read_games(write(tmp_path, records))
    assert len(games.straight) == 25
    assert games.placements[0].seconds is None


OVERHANG = ["0000", "0000", "1110", "0000", "0000"]


def tuck(**other: Any) -> dict[str, Any]:
    """An O slid in below an overhang."""
    placed = {"piece": "O", "rotation": 0, "column": 0, "row": 3, "straight_drop": False}
    return {"game": 1, "turn": 0, "board": OVERHANG, **placed, **other}


def test_a_tuck_is_replayed_and_is_no_decision(tmp_path: Path) -> None:
    after = ["0000", "0000", "1110", "1100", "1100"]
    follow = {
        "game": 1,
        "turn": 1,
        "board": after,
        "piece": "I",
        "rotation": 1,
        "column": 3,
        "row": 1,
    }
    games = read_games(write(tmp_path, [tuck(), follow]))
    assert [p.straight for p in games.placements] == [False, True]
    assert len(games.decisions()) == 1
    assert read_games(write(tmp_path, [tuck()])).straight == ()
    with pytest.raises(ValueError, match="none of the placements is a straight drop"):
        read_games(write(tmp_path, [tuck()])).decisions()


def change(line: int, **fields: Any) -> Callable[[Records], None]:
    return lambda records: records[line - 1].update(fields)


def narrow(records: Records) -> None:
    records[6]["board"] = [row[:-1] for row in records[6]["board"]]


def ragged(records: Records) -> None:
    records[0]["board"][3] += "0"


def short(records: Records) -> None:
    records[6]["board"] = records[6]["board"][1:]


def missing(records: Records) -> None:
    del records[4]["piece"]


def other_board(records: Records) -> None:
    records[3]["board"][-1] = "101010"
    records[3]["board"][:-1] = ["000000"] * 11
    landing = drop(
        records[3]["board"], records[3]["piece"], records[3]["rotation"], records[3]["column"]
    )
    records[3].update(row=landing.row, cleared=landing.cleared)


def lost_line(records: Records) -> None:
    del records[3]


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (narrow, "line 7: row 0 of the board is 5 squares wide; it must be 6"),
        (ragged, "line 1: row 3 of the board is 7 squares wide; it must be 6"),
        (short, "line 7: the board has 11 rows; it must have 12"),
        (change(2, board=["00a000"] * 12), "line 2: the board must be a list of rows"),
        (change(2, board=[]), "line 2: the board must be a list of rows"),
        (change(5, piece="X"), "line 5: the piece 'X' is unknown; the pieces are I, O"),
        (change(5, piece=None), "line 5: the piece 'None' is unknown"),
        (missing, "line 5: the field piece is missing"),
        (
            change(3, rotation=4),
            "line 3: rotation 4 of the piece ., which has [124], counted from 0",
        ),
        (
            change(3, column=6),
            "line 3: the piece . with rotation . at column 6 cannot drop straight",
        ),
        (change(3, column=1.5), "line 3: column is 1.5; it must be a whole number"),
        (
            change(4, row=0),
            "line 4: the piece . with rotation . at column . drops to row [0-9]+, but the record says row 0",
        ),
        (
            change(1, cleared=2),
            "line 1: the piece . with rotation . at column . removes 0 full rows, but the record says 2",
        ),
        (
            change(2, straight_drop="yes"),
            "line 2: straight_drop is 'yes'; it must be true or false",
        ),
        (change(2, seconds=-1), "line 2: seconds is -1; it must be a number that is not negative"),
        (
            other_board,
            "line 4: game 0 does not replay: the board is not the one that the placement of turn 2 leaves",
        ),
        (lost_line, "line 4: game 0 does not replay: turn 4 follows turn 2"),
    ],
)
def test_a_spoilt_file_is_refused_with_the_line(
    tmp_path: Path, records: Records, spoil: Callable[[Records], None], sentence: str
) -> None:
    spoil(records)
    with pytest.raises(ValueError, match=f"^{sentence}"):
        read_games(write(tmp_path, records))


@pytest.mark.parametrize(
    ("record", "sentence"),
    [
        (
            tuck(row=2),
            "line 1: the piece O with rotation 0 at column 0 and row 2 overlaps occupied squares",
        ),
        (
            tuck(row=4),
            "line 1: the piece O with rotation 0 at column 0 and row 4 overlaps occupied squares or leaves",
        ),
        (
            tuck(column=-1),
            "line 1: the piece O with rotation 0 at column -1 and row 3 overlaps occupied squares or leaves",
        ),
        (
            tuck(board=[*OVERHANG, "0000"]),
            "line 1: the piece O with rotation 0 at column 0 and row 3 hangs in the air",
        ),
    ],
)
def test_a_tuck_must_be_possible_too(tmp_path: Path, record: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        read_games(write(tmp_path, [record]))


def test_a_game_does_not_go_on_after_its_end(tmp_path: Path) -> None:
    last = {
        "game": 1,
        "turn": 0,
        "board": ["0000"] * 4,
        "piece": "I",
        "rotation": 1,
        "column": 0,
        "row": 0,
    }
    more = {
        "game": 1,
        "turn": 1,
        "board": ["1000"] * 4,
        "piece": "I",
        "rotation": 1,
        "column": 1,
        "row": 0,
    }
    with pytest.raises(ValueError, match=r"line 2: .* cannot drop straight"):
        read_games(write(tmp_path, [last, {**more, "straight_drop": True}]))
    with pytest.raises(ValueError, match="line 2: game 1 does not replay: turn 0 ended it"):
        read_games(write(tmp_path, [last, more]))


@pytest.mark.parametrize("cut", [1, 40, 200])
def test_a_truncated_line_is_refused(tmp_path: Path, records: Records, cut: int) -> None:
    path = write(tmp_path, records)
    path.write_bytes(path.read_bytes()[: -1 - cut])
    with pytest.raises(
        ValueError,
        match=r"^line 25: this is not a whole JSON record; the line may have been cut short$",
    ):
        read_games(path)


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "games.jsonl"
    path.write_bytes(b"\n\n")
    with pytest.raises(ValueError, match="holds no placements"):
        read_games(path)
    path.write_bytes(b"[1, 2]\n")
    with pytest.raises(ValueError, match="line 1: a placement is a JSON record with named fields"):
        read_games(path)
    path.write_bytes(b"\xff\xfe\n")
    with pytest.raises(ValueError, match="line 1: this is not a whole JSON record"):
        read_games(path)


@pytest.fixture(scope="module")
def human() -> Games:
    if not HUMAN.exists():
        pytest.skip(
            "the person's games are not here: shared/data/human_tetris.jsonl is looked for beside the repository"
        )
    return read_games(HUMAN)


def test_a_persons_games_replay(human: Games) -> None:
    assert (len(human), human.rows, human.columns) == (1162, 20, 10)
    assert len(human.straight) == 1150
    assert len({p.game for p in human.placements}) == 4


def test_a_persons_decisions(human: Games) -> None:
    decisions = human.decisions()
    assert len(decisions) == 1150
    assert (decisions.sizes.min(), decisions.sizes.max()) == (9, 34)
    literal = human.decisions("literal")
    assert np.array_equal(literal.rows[literal.chosen_row], decisions.rows[decisions.chosen_row])
