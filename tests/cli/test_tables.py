"""Tables of decisions and recorded games that commands read, and bad ones that they refuse."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from revealed.environments.tetris import Tetris, sampling_policy, write_games
from tests.support.command_line import GOOD, HEAD, SMALL, answers, refuses, write


def a_game() -> list[dict[str, Any]]:
    """Sixty placements of a careful player on twelve rows, as records."""
    player = sampling_policy([-3.0, -15.0, -1.0])
    write_games("good.jsonl", [list(Tetris(12, 6).play(np.random.default_rng(2), player, 60))])
    return [json.loads(line) for line in Path("good.jsonl").read_text().splitlines()]


def test_recorded_games_are_learnt_from_predicted_and_played(here: Path) -> None:
    count = len(a_game())
    learnt = answers(
        "fit", "good.jsonl", "--features", "dellacherie", "--prior-sd", "5", "--out", "p.nc", *SMALL
    )
    assert learnt["decisions"] == count
    assert [c["name"] for c in learnt["coefficients"]][:2] == ["landing height", "eroded"]
    assert answers("predict", "p.nc", "good.jsonl", "--out", "q.csv")["error"] < 0.5
    assert answers("play", "p.nc", "--steps", "5")["placements"] == 5


BAD_GAMES: dict[str, tuple[Callable[[list[dict[str, Any]]], None], str]] = {
    "a board of the wrong width": (
        lambda g: g[6].update(board=["00000"] * 12),
        "line 7: row 0 of the board is 5 squares wide; it must be 6",
    ),
    "an unknown piece": (lambda g: g[4].update(piece="X"), "line 5: the piece 'X' is unknown"),
    "an illegal placement": (lambda g: g[2].update(column=6), "line 3: the piece"),
    "a game that does not replay": (
        lambda g: g.__delitem__(3),
        "line 4: game 1 does not replay: turn 4 follows turn 2",
    ),
}


@pytest.mark.parametrize("what", BAD_GAMES)
def test_bad_games_are_refused_with_their_line(here: Path, what: str) -> None:
    spoil, expected = BAD_GAMES[what]
    game = a_game()
    spoil(game)
    write(here / "bad.jsonl", "".join(json.dumps(record) + "\n" for record in game))
    assert expected in refuses("reproduce", "human", "--games", "bad.jsonl", "--out", "o")
    assert expected in refuses("fit", "bad.jsonl", "--out", "p.nc")
    assert not Path("p.nc").exists()


def test_a_line_cut_short_is_refused_with_its_number(here: Path) -> None:
    a_game()
    write(here / "cut.jsonl", Path("good.jsonl").read_text()[:-40])
    assert "this is not a whole JSON record; the line may have been cut short" in refuses(
        "fit", "cut.jsonl", "--out", "p.nc"
    )


BAD_TABLES = {
    "a NaN feature": (GOOD.replace("0.3", "nan"), "decision 8"),
    "an infinite feature": (GOOD.replace("0.3", "inf"), "decision 8"),
    "an empty feature": (GOOD.replace("0.3", ""), "decision 8"),
    "no chosen row": (GOOD.replace("8,b,1", "8,b,0"), "decision 8: no action is marked chosen"),
    "two chosen rows": (GOOD.replace("8,a,0", "8,a,1"), "decision 8: 2 actions are marked chosen"),
    "words for features": (GOOD.replace("0.3", "tall"), "column 'x' holds text"),
    "no rows": (HEAD, "no rows"),
    "nothing at all": ("", "CSV"),
    "no feature column": ("decision,chosen\n7,1\n", "no feature column"),
}


@pytest.mark.parametrize("what", BAD_TABLES)
def test_bad_tables_are_refused_by_fit(here: Path, what: str) -> None:
    lines, expected = BAD_TABLES[what]
    write(here / "bad.csv", lines)
    assert expected in refuses("fit", "bad.csv", "--out", "p.nc")
    assert not Path("p.nc").exists()
