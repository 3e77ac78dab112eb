"""`kill -9` at random moments under load: no acknowledged move is lost, and every game resumes."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from revealed.studio.game.game import Game
from revealed.studio.storage.database import Storage
from tests.support.studio_server import (
    PATIENCE,
    Postgres,
    StudioProcess,
    choose_placement,
    run_studio,
)

PLAYERS = 6
Acknowledged = dict[tuple[str, int], tuple[int, int]]


class Player(threading.Thread):
    """Plays game after game until the server is gone, and remembers what was acknowledged.

    `counter` is released with each acknowledged move.
    """

    def __init__(
        self,
        address: str,
        seed: int,
        resume: dict[str, Any] | None,
        counter: threading.Semaphore,
    ) -> None:
        super().__init__(daemon=True)
        self.address, self.rng, self.state = address, np.random.default_rng(seed), resume
        self.acknowledged: Acknowledged = {}
        self.counter = counter
        self.complaints: list[str] = []

    def run(self) -> None:
        try:
            with httpx.Client(base_url=self.address, timeout=PATIENCE) as client:
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
        move = choose_placement(self.rng, self.state)
        answer = client.post(f"/api/games/{self.state['game']}/moves", json=move)
        assert answer.status_code == 200, answer.text
        self.acknowledged[self.state["game"], move["turn"]] = move["rotation"], move["column"]
        self.state = answer.json()["state"]
        self.counter.release()


def one_round(
    database: str,
    rng: np.random.Generator,
    known: Acknowledged,
    resume: list[Any],
    before: str = "",
) -> list[Any]:
    """Start a server, go on with the games of the last round, and kill it under load.

    Returns the states to go on from next time.
    """
    server = StudioProcess(database, "--rate", "100000", "--games", "100000", before=before)
    with httpx.Client(base_url=server.address, timeout=PATIENCE) as client:
        now: list[Any] = [
            None if state is None else client.get(f"/api/games/{state['game']}").json()
            for state in resume
        ]
    for was, after in zip(resume, now, strict=True):
        if was is not None:  # the move in flight may have been saved without being acknowledged
            assert was["turn"] <= after["turn"] <= was["turn"] + 1, (was, after)
            assert after["turn"] != was["turn"] or after == was
    counter = threading.Semaphore(0)
    players = [Player(server.address, int(rng.integers(2**32)), state, counter) for state in now]
    for player in players:
        player.start()
    # After so many acknowledged moves of all players together, whatever the server does then.
    for _ in range(rng.integers(5, 80)):
        assert counter.acquire(timeout=PATIENCE)
    server.kill()
    for player in players:
        player.join(PATIENCE)
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
def test_killed_server_on_sqlite_loses_no_acknowledged_move(tmp_path: Path, rounds: int) -> None:
    moves = killed_often(str(tmp_path / "studio.db"), rounds)
    assert moves > 5 * rounds, "hardly anything was played, so hardly anything was shown"


@pytest.mark.parametrize("rounds", [1, pytest.param(10, marks=pytest.mark.slow)])
def test_killed_server_on_postgresql_loses_no_acknowledged_move(
    postgres: Postgres, rounds: int
) -> None:
    moves = killed_often(postgres.database(), rounds)
    assert moves > 5 * rounds


HASTY = """
import threading
from concurrent.futures import Future
from revealed.studio.storage import writer

class Hasty(writer.Writer):
    def submit(self, job):
        threading.Timer(60.0, super().submit, (job,)).start()
        told = Future()
        told.set_result(None)
        return told

import revealed.studio.storage.database
revealed.studio.storage.database.Writer = Hasty
"""


def test_studio_that_answers_before_saving_is_caught(tmp_path: Path) -> None:
    known, database = Acknowledged(), str(tmp_path / "studio.db")
    one_round(database, np.random.default_rng(1), known, [None] * PLAYERS, before=HASTY)
    with pytest.raises(AssertionError, match="was acknowledged, and is lost"):
        everything_is_there(database, known)


def test_full_disk_refuses_moves_and_loses_none(tmp_path: Path) -> None:
    """A real error of the operating system, in a process that may only write small files."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, before[1]))
    try:
        server = StudioProcess(str(tmp_path / "studio.db"), "--rate", "100000", "--games", "100000")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    rng, known = np.random.default_rng(1), Acknowledged()
    with httpx.Client(base_url=server.address, timeout=PATIENCE) as client:
        answer, state = client.post("/api/games", json={}), {}
        while answer.status_code in (200, 201):
            state = answer.json().get("state", answer.json())
            if state["over"]:
                answer = client.post("/api/games", json={})
                continue
            move = choose_placement(rng, state)
            answer = client.post(f"/api/games/{state['game']}/moves", json=move)
            if answer.status_code == 200:
                known[state["game"], move["turn"]] = move["rotation"], move["column"]
        assert answer.status_code == 503
        assert "could not be saved" in answer.json()["error"]
        assert client.get("/api/health").json()["ok"]
    assert known
    assert server.stop() == 0
    everything_is_there(str(tmp_path / "studio.db"), known)
    with (
        run_studio(str(tmp_path / "studio.db")) as again,
        httpx.Client(base_url=again.address, timeout=PATIENCE) as client,
    ):
        for game in {game for game, _ in known}:
            last = max(turn for each, turn in known if each == game)
            assert client.get(f"/api/games/{game}").json()["turn"] == last + 1
