"""Games taken along: as an animated picture, and as the library's own file."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from stagehands import Inside, pick
from understudy.cli import app
from understudy.worlds.tetris import Tetris, by_one, read_games, write_games
from understudy.worlds.tetris.film import LONGEST, NEW, SQUARE, UNKNOWN, film, picture, pictures_of


def played(client: Inside, moves: int, **wanted: Any) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    state: dict[str, Any] = client.post("/api/games", json={"seed": 3, **wanted}).json()
    for _ in range(moves):
        state = client.post(f"/api/games/{state['game']}/moves", json=pick(rng, state)).json()["state"]
    return state


def frames(content: bytes) -> list[Any]:
    with Image.open(io.BytesIO(content)) as image:
        found = []
        for number in range(getattr(image, "n_frames", 1)):
            image.seek(number)
            found.append(np.asarray(image.convert("RGB")))
    return found


def test_a_game_is_a_moving_picture(shared: Inside) -> None:
    state = played(shared, 12)
    answer = shared.get(f"/api/games/{state['game']}/replay.gif")
    assert answer.headers["content-type"] == "image/gif"
    shown = frames(answer.content)
    assert len(shown) == 12
    assert shown[0].shape == (30 * SQUARE + 1, 10 * SQUARE + 1, 3)
    made = shared.get(f"/api/games/{state['game']}/moves").json()
    for frame, move in zip(shown, made, strict=True):
        middles = {tuple(frame[r * SQUARE + SQUARE // 2, c * SQUARE + SQUARE // 2]) for r, c in move["cells"]}
        assert len(middles) == 1, "the piece just placed has one colour"
        assert middles != {(255, 255, 255)}
    part = frames(shared.get(f"/api/games/{state['game']}/replay.gif?first=3&last=5").content)
    assert len(part) == 3
    np.testing.assert_array_equal(part[0], shown[3])


@pytest.mark.parametrize(
    ("query", "status"), [("first=9", 409), ("first=2&last=1", 409), ("first=-1", 422), ("speed=99", 422)]
)
def test_a_picture_of_nothing(shared: Inside, query: str, status: int) -> None:
    state = played(shared, 3)
    answer = shared.get(f"/api/games/{state['game']}/replay.gif?{query}")
    assert answer.status_code == status
    assert answer.json()["error"]


def test_a_picture_has_an_upper_bound(shared: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("understudy.studio.replays.LONGEST", 5)
    state = played(shared, 8)
    assert len(frames(shared.get(f"/api/games/{state['game']}/replay.gif").content)) == 5
    refused = shared.get(f"/api/games/{state['game']}/replay.gif?first=0")
    assert refused.status_code == 422
    assert "at most 5 placements" in refused.json()["error"]


def test_a_game_is_a_file_that_the_library_reads(client: Inside, tmp_path: Path) -> None:
    now = [0.0]
    client.state.games.clock = lambda: now[0]
    state = played(client, 4, tau=1.0)
    now[0] += 5.0
    state = client.post(f"/api/games/{state['game']}/moves", json={"turn": 4, "missed": True}).json()["state"]
    file = tmp_path / "game.jsonl"
    file.write_bytes(client.get(f"/api/games/{state['game']}/game.jsonl").content)
    games = read_games(file)
    assert (len(games), len(games.straight), len(games.decisions())) == (5, 4, 4)
    assert [p.missed for p in games.placements] == [False] * 4 + [True]
    assert games.placements[4].seconds == 5.0
    file.write_text(file.read_text().replace('"missed": true', '"missed": 1'))
    with pytest.raises(ValueError, match="line 5: missed is 1; it must be true or false"):
        read_games(file)


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    rng, world = np.random.default_rng(2), Tetris()
    games = [list(world.play(rng, by_one([[-0.6, -3.0, -0.2]]), many)) for many in (6, 4)]
    write_games(tmp_path / "games.jsonl", games)
    return tmp_path / "games.jsonl"


def test_the_command_draws_a_recorded_game(recorded: Path) -> None:
    out = recorded.with_suffix(".gif")
    run = CliRunner().invoke(app, ["replay", str(recorded), "--out", str(out), "--no-progress"])
    assert run.exit_code == 0, run.stderr
    assert run.stdout == f"6 placements of game 1: {out}\n"
    assert len(frames(out.read_bytes())) == 6
    CliRunner().invoke(app, ["replay", str(recorded), "--out", str(out), "--game", "2", "--first", "1", "--last", "2"])
    assert len(frames(out.read_bytes())) == 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--out", "game.mp4"], "must end in .gif"),
        (["--out", "game.gif", "--game", "7"], "there is no game 7"),
        (["--out", "game.gif", "--first", "99"], "nothing to show"),
        (["--out", "game.gif", "--speed", "0"], "0.1 to 50 placements a second"),
        (["--out", "nowhere/game.gif"], "there is no folder"),
    ],
)
def test_the_command_refuses(recorded: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], sentence: str) -> None:
    monkeypatch.chdir(recorded.parent)
    run = CliRunner().invoke(app, ["replay", str(recorded), *words, "--no-progress"])
    assert run.exit_code == 2
    assert sentence in run.stderr
    assert not Path("game.gif").exists()


def test_a_film_too_long_to_look_at() -> None:
    with pytest.raises(ValueError, match="too long to be looked at"):
        film([picture(np.zeros((2, 2), np.uint8))] * (LONGEST + 1))


def test_a_picture_of_a_step() -> None:
    step = next(iter(Tetris(5, 6).play(np.random.default_rng(0), lambda rng, rows: 0, 1)))
    (shown,) = pictures_of([step])
    middles = shown[SQUARE // 2 :: SQUARE, SQUARE // 2 :: SQUARE]
    assert np.count_nonzero(middles == step.piece + 1 + NEW) == 4
    assert np.count_nonzero(middles) == 4
    assert picture(np.array([[1]], np.uint8) * UNKNOWN)[SQUARE // 2, SQUARE // 2] == UNKNOWN
