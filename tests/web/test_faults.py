"""`kill -9` at random moments under load: every acknowledged move is in the database, and every game resumes where it was."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from stagehands import Postgres, Studio, pick, studio
from understudy.studio.games import Game
from understudy.studio.storage import Storage

PLAYERS = 6
Acknowledged = dict[tuple[str, int], tuple[int, int]]


class Player(threading.Thread):
    """Plays game after game as fast as it can, and remembers what was acknowledged, until the server is gone."""

    def __init__(self, address: str, seed: int, resume: dict[str, Any] | None) -> None:
        super().__init__(daemon=True)
        self.address, self.rng, self.state = address, np.random.default_rng(seed), resume
        self.acknowledged: Acknowledged = {}
        self.complaints: list[str] = []

    def run(self) -> None:
        try:
            with httpx.Client(base_url=self.address, timeout=30) as client:
                while True:
                    self.turn(client)
        except httpx.TransportError:
            return  # killed
        except Exception as fault:
            self.complaints.append(repr(fault))

    def turn(self, client: Any) -> None:
        if self.state is None or self.state["over"]:
            answer = client.post("/api/games", json={"pieces": 25})
            assert answer.status_code == 201, answer.text
            self.state = answer.json()
        assert self.state is not None
        move = pick(self.rng, self.state)
        answer = client.post(f"/api/games/{self.state['game']}/moves", json=move)
        assert answer.status_code == 200, answer.text
        self.acknowledged[self.state["game"], move["turn"]] = move["rotation"], move["column"]
        self.state = answer.json()["state"]


def one_round(
    database: str, rng: np.random.Generator, known: Acknowledged, resume: list[Any], before: str = ""
) -> list[Any]:
    """Start a server, go on with the games of the last round, kill it under load; the states to go on from next time."""
    server = Studio(database, "--rate", "100000", "--games", "100000", before=before)
    with httpx.Client(base_url=server.address, timeout=30) as client:
        now: list[Any] = [
            None if state is None else client.get(f"/api/games/{state['game']}").json() for state in resume
        ]
    for was, after in zip(resume, now, strict=True):
        if was is not None:  # the move in flight may have been saved without being acknowledged
            assert was["turn"] <= after["turn"] <= was["turn"] + 1, (was, after)
            assert after["turn"] != was["turn"] or after == was
    players = [Player(server.address, int(rng.integers(2**32)), state) for state in now]
    for player in players:
        player.start()
    enough, end = rng.integers(5, 80), time.monotonic() + 30
    while sum(len(player.acknowledged) for player in players) < enough and time.monotonic() < end:
        time.sleep(0.002)
    time.sleep(rng.uniform(0.0, 0.02))
    server.kill()
    for player in players:
        player.join(30)
        assert not player.is_alive()
        assert player.complaints == []
        known |= player.acknowledged
    return [player.state for player in players]


def everything_is_there(database: str, known: Acknowledged) -> None:
    storage = Storage(database)
    found: dict[str, list[Any]] = {}
    for (game, turn), placement in known.items():
        if game not in found:
            record = storage.game(game)
            assert record is not None, f"game {game} was acknowledged, and is lost"
            found[game] = record[1]
            Game(record[0].seed, record[0].pieces, record[1])  # it replays
        assert len(found[game]) > turn, f"turn {turn} of game {game} was acknowledged, and is lost"
        assert (found[game][turn].rotation, found[game][turn].column) == placement
    storage.close()


def killed_often(database: str, rounds: int) -> int:
    rng, known = np.random.default_rng(11), Acknowledged()
    states: list[Any] = [None] * PLAYERS
    for _ in range(rounds):
        states = one_round(database, rng, known, states)
        everything_is_there(database, known)
    return len(known)


@pytest.mark.parametrize("rounds", [2, pytest.param(50, marks=pytest.mark.slow)])
def test_a_killed_server_loses_nothing(tmp_path: Path, rounds: int) -> None:
    moves = killed_often(str(tmp_path / "studio.db"), rounds)
    assert moves > 5 * rounds, "hardly anything was played, so hardly anything was shown"


@pytest.mark.parametrize("rounds", [1, pytest.param(10, marks=pytest.mark.slow)])
def test_nor_does_one_on_postgresql(postgres: Postgres, rounds: int) -> None:
    moves = killed_often(postgres.database(), rounds)
    assert moves > 5 * rounds


HASTY = """
import threading
from concurrent.futures import Future
from understudy.studio import writer

class Hasty(writer.Writer):
    def submit(self, job):
        threading.Timer(0.2, super().submit, (job,)).start()
        told = Future()
        told.set_result(None)
        return told

import understudy.studio.storage
understudy.studio.storage.Writer = Hasty
"""


def test_a_studio_that_answers_before_it_has_saved_is_caught(tmp_path: Path) -> None:
    known, database = Acknowledged(), str(tmp_path / "studio.db")
    one_round(database, np.random.default_rng(1), known, [None] * PLAYERS, before=HASTY)
    with pytest.raises(AssertionError, match="was acknowledged, and is lost"):
        everything_is_there(database, known)


def test_a_disk_that_takes_no_more(tmp_path: Path) -> None:
    """A real error of the operating system, in a process that may only write small files: told, survived, and nothing lost."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, before[1]))
    try:
        server = Studio(str(tmp_path / "studio.db"), "--rate", "100000", "--games", "100000")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    rng, known = np.random.default_rng(1), Acknowledged()
    with httpx.Client(base_url=server.address, timeout=30) as client:
        answer, state = client.post("/api/games", json={}), {}
        while answer.status_code in (200, 201):
            state = answer.json().get("state", answer.json())
            if state["over"]:
                answer = client.post("/api/games", json={})
                continue
            move = pick(rng, state)
            answer = client.post(f"/api/games/{state['game']}/moves", json=move)
            if answer.status_code == 200:
                known[state["game"], move["turn"]] = move["rotation"], move["column"]
        assert answer.status_code == 503
        assert "could not be saved" in answer.json()["error"]
        assert client.get("/api/health").json() == {"ok": True}
    assert known
    assert server.stop() == 0
    everything_is_there(str(tmp_path / "studio.db"), known)
    with studio(str(tmp_path / "studio.db")) as again, httpx.Client(base_url=again.address) as client:
        for game in {game for game, _ in known}:
            last = max(turn for each, turn in known if each == game)
            assert client.get(f"/api/games/{game}").json()["turn"] == last + 1
