"""Games taken along: as an animated picture, and as the library's own file."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from revealed.cli import app
from revealed.environments.tetris import Tetris, read_games, sampling_policy, write_games
from revealed.environments.tetris.gif import (
    LIMITS,
    PALETTE,
    draw_frame,
    draw_frames,
    encode_gif,
)
from tests.support.studio_server import LocalStudio, choose_placement


def played(client: LocalStudio, moves: int, **wanted: Any) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    state: dict[str, Any] = client.post("/api/games", json={"seed": 3, **wanted}).json()
    for _ in range(moves):
        state = client.post(
            f"/api/games/{state['game']}/moves", json=choose_placement(rng, state)
        ).json()["state"]
    return state


def frames(content: bytes) -> list[Any]:
    with Image.open(io.BytesIO(content)) as image:
        found = []
        for number in range(getattr(image, "n_frames", 1)):
            image.seek(number)
            found.append(np.asarray(image.convert("RGB")))
    return found


def test_gif_has_a_frame_for_each_placement(shared_studio: LocalStudio) -> None:
    state = played(shared_studio, 12)
    answer = shared_studio.get(f"/api/games/{state['game']}/replay.gif")
    assert answer.headers["content-type"] == "image/gif"
    shown = frames(answer.content)
    assert len(shown) == 12
    assert shown[0].shape == (30 * LIMITS.square_pixels + 1, 10 * LIMITS.square_pixels + 1, 3)
    made = shared_studio.get(f"/api/games/{state['game']}/moves").json()
    for frame, move in zip(shown, made, strict=True):
        middles = {
            tuple(
                frame[
                    r * LIMITS.square_pixels + LIMITS.square_pixels // 2,
                    c * LIMITS.square_pixels + LIMITS.square_pixels // 2,
                ]
            )
            for r, c in move["cells"]
        }
        assert len(middles) == 1, "the piece just placed has one colour"
        assert middles != {(255, 255, 255)}
    part = frames(
        shared_studio.get(f"/api/games/{state['game']}/replay.gif?first=3&last=5").content
    )
    assert len(part) == 3
    np.testing.assert_array_equal(part[0], shown[3])


@pytest.mark.parametrize(
    ("query", "status"),
    [("first=9", 409), ("first=2&last=1", 409), ("first=-1", 422), ("speed=99", 422)],
)
def test_gif_of_no_placement_is_refused(
    shared_studio: LocalStudio, query: str, status: int
) -> None:
    state = played(shared_studio, 3)
    answer = shared_studio.get(f"/api/games/{state['game']}/replay.gif?{query}")
    assert answer.status_code == status
    assert answer.json()["error"]


def test_gif_of_too_many_placements_is_refused(
    shared_studio: LocalStudio, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("revealed.studio.server.routes_export.MAX_PICTURE_PLACEMENTS", 5)
    state = played(shared_studio, 8)
    assert len(frames(shared_studio.get(f"/api/games/{state['game']}/replay.gif").content)) == 5
    refused = shared_studio.get(f"/api/games/{state['game']}/replay.gif?first=0")
    assert refused.status_code == 422
    assert "at most 5 placements" in refused.json()["error"]


def test_jsonl_download_is_read_by_read_games(client: LocalStudio, tmp_path: Path) -> None:
    now = [0.0]
    client.state.games.clock = lambda: now[0]
    state = played(client, 4, deadline_seconds=1.0)
    now[0] += 5.0
    state = client.post(
        f"/api/games/{state['game']}/moves", json={"turn": 4, "missed": True}
    ).json()["state"]
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
    games = [list(world.play(rng, sampling_policy([[-0.6, -3.0, -0.2]]), many)) for many in (6, 4)]
    write_games(tmp_path / "games.jsonl", games)
    return tmp_path / "games.jsonl"


def test_replay_command_draws_a_recorded_game(recorded: Path) -> None:
    out = recorded.with_suffix(".gif")
    run = CliRunner().invoke(app, ["replay", str(recorded), "--out", str(out), "--no-progress"])
    assert run.exit_code == 0, run.stderr
    assert run.stdout == f"6 placements of game 1: {out}\n"
    assert len(frames(out.read_bytes())) == 6
    CliRunner().invoke(
        app,
        ["replay", str(recorded), "--out", str(out), "--game", "2", "--first", "1", "--last", "2"],
    )
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
def test_replay_command_refuses_bad_options(
    recorded: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], sentence: str
) -> None:
    monkeypatch.chdir(recorded.parent)
    run = CliRunner().invoke(app, ["replay", str(recorded), *words, "--no-progress"])
    assert run.exit_code == 2
    assert sentence in run.stderr
    assert not Path("game.gif").exists()


def test_encode_gif_refuses_too_many_frames() -> None:
    with pytest.raises(ValueError, match="too long to be looked at"):
        encode_gif([draw_frame(np.zeros((2, 2), np.uint8))] * (LIMITS.max_frames + 1))


def test_frame_of_a_step_shows_the_piece() -> None:
    step = next(iter(Tetris(5, 6).play(np.random.default_rng(0), lambda rng, rows: 0, 1)))
    (shown,) = draw_frames([step])
    middles = shown[
        LIMITS.square_pixels // 2 :: LIMITS.square_pixels,
        LIMITS.square_pixels // 2 :: LIMITS.square_pixels,
    ]
    assert np.count_nonzero(middles == step.piece + 1 + PALETTE.placed_offset) == 4
    assert np.count_nonzero(middles) == 4
    assert (
        draw_frame(np.array([[1]], np.uint8) * PALETTE.unknown)[
            LIMITS.square_pixels // 2, LIMITS.square_pixels // 2
        ]
        == PALETTE.unknown
    )
