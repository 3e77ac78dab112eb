"""Storage on SQLite and on a real PostgreSQL server: what was acknowledged is there.

What could not be written is said to have failed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import event, select, update

from revealed.studio.game.game import Game, Move
from revealed.studio.server.errors import Conflict, Unavailable
from revealed.studio.storage import tables
from revealed.studio.storage.database import (
    GameRecord,
    Storage,
    add_game,
    add_move,
    describe_database,
)
from tests.support.studio_server import (
    PATIENCE,
    TOKEN,
    LocalStudio,
    OpenStudio,
    Postgres,
    choose_placement,
)

ADMIN = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def storage(database: str) -> Iterator[Storage]:
    found = Storage(database)
    yield found
    found.close()


@contextmanager
def writer_held(storage: Storage) -> Iterator[None]:
    """Keeps the writer busy, so that all jobs submitted meanwhile wait together."""
    started, go_on = threading.Event(), threading.Event()

    def job(connection: Any) -> None:
        started.set()
        assert go_on.wait(PATIENCE)

    held = storage.write(job)
    assert started.wait(PATIENCE)
    yield
    go_on.set()
    held.result(PATIENCE)


def game_record(number: int = 0, **more: Any) -> GameRecord:
    return GameRecord(f"{number:022d}", 7, None, None, False, **more)


def test_written_game_is_read_back(storage: Storage) -> None:
    game = GameRecord("g" * 22, 2**53 - 1, 2.5, 40, True)
    moves = [Move(0, 1, 3, False, 1.25), Move(1, 0, 4, True, None)]
    for job in (add_game(game), *(add_move(game.id, move, None) for move in moves)):
        storage.write(job).result(PATIENCE)
    assert storage.game(game.id) == (game, moves)
    assert storage.game("h" * 22) is None


def test_reopened_database_has_all_moves(database: str) -> None:
    for turn in range(3):
        storage = Storage(database)
        if turn == 0:
            storage.write(add_game(game_record())).result(PATIENCE)
        storage.write(add_move(game_record().id, Move(turn, 0, 0, False, None), None)).result(
            PATIENCE
        )
        storage.close()
    storage = Storage(database)
    found = storage.game(game_record().id)
    storage.close()
    assert found is not None
    assert [move.turn for move in found[1]] == [0, 1, 2]


def test_conflicting_move_is_refused_and_others_are_written(storage: Storage) -> None:
    for number in (1, 2):
        storage.write(add_game(game_record(number))).result(PATIENCE)
    storage.write(add_move(game_record(1).id, Move(0, 0, 0, False, None), None)).result(PATIENCE)
    with writer_held(storage):
        together = [
            storage.write(add_move(game_record(2).id, Move(0, 0, 0, False, None), None)),
            storage.write(add_move(game_record(1).id, Move(0, 1, 1, False, None), None)),
            storage.write(
                add_move(game_record(3).id, Move(0, 1, 1, False, None), None)
            ),  # there is no such game
            storage.write(add_move(game_record(2).id, Move(1, 0, 0, False, None), None)),
        ]
    wait(together, PATIENCE)
    assert [type(each.exception()) for each in together] == [
        type(None),
        Conflict,
        Conflict,
        type(None),
    ]
    first, second = storage.game(game_record(1).id), storage.game(game_record(2).id)
    assert first is not None
    assert second is not None
    assert [(m.turn, m.rotation) for m in first[1]] == [(0, 0)]
    assert [m.turn for m in second[1]] == [0, 1]


def test_waiting_moves_share_a_commit(storage: Storage) -> None:
    storage.write(add_game(game_record())).result(PATIENCE)
    commits = []
    event.listen(storage.engine, "commit", lambda connection: commits.append(1))
    with writer_held(storage):
        moves = [
            storage.write(add_move(game_record().id, Move(turn, 0, 0, False, None), None))
            for turn in range(300)
        ]
    for move in moves:
        move.result(PATIENCE)
    assert len(commits) == 2, "three hundred moves that wait together need one commit"
    found = storage.game(game_record().id)
    assert found is not None
    assert len(found[1]) == 300


def test_last_move_writes_why_the_game_is_over(storage: Storage) -> None:
    storage.write(add_game(game_record())).result(PATIENCE)
    storage.write(add_move(game_record().id, Move(0, 0, 0, False, None), "pieces")).result(PATIENCE)
    with storage.reading() as connection:
        assert connection.execute(select(tables.games.c.done)).scalar_one() == "pieces"


def test_database_of_another_version_is_refused(database: str) -> None:
    storage = Storage(database)
    storage.write(
        lambda connection: connection.execute(update(tables.version).values(version=99))
    ).result(PATIENCE)
    storage.close()
    with pytest.raises(ValueError, match="made by another version of the studio"):
        Storage(database)


def test_restart_keeps_games_and_studies(database: str, open_studio: OpenStudio) -> None:
    rng, client = np.random.default_rng(3), open_studio(database=database)
    wanted = {
        "name": "haste",
        "conditions": [{"name": "slow", "pieces": 3}],
        "participants": 2,
        "seed": 5,
    }
    study = client.post("/api/studies", json=wanted, headers=ADMIN).json()
    link = study["participants"][0]["link"].removeprefix("/p/")
    state = client.post(f"/api/participants/{link}/next").json()
    free = client.post("/api/games", json={"seed": 5}).json()
    for _ in range(2):
        state = client.post(
            f"/api/games/{state['game']}/moves", json=choose_placement(rng, state)
        ).json()["state"]
        free = client.post(
            f"/api/games/{free['game']}/moves", json=choose_placement(rng, free)
        ).json()["state"]
    client.close()
    again = open_studio(database=database)
    for game in (state, free):
        assert again.get(f"/api/games/{game['game']}").json() == game
    assert again.post(f"/api/participants/{link}/next").json() == state
    done = again.post(
        f"/api/games/{state['game']}/moves", json=choose_placement(rng, state)
    ).json()["state"]
    assert done["over"]
    told = again.get(f"/api/studies/{study['study']}", headers=ADMIN).json()
    assert [(p["done"], p["moves"], p["misses"]) for p in told["participants"]] == [
        (1, 3, 0),
        (0, 0, 0),
    ]


def played_until_refused(
    client: LocalStudio, state: dict[str, Any], most: int = 3000
) -> tuple[dict[str, Any], Any]:
    """Play until a move is not accepted: the last state, and the answer that refused."""
    rng = np.random.default_rng(1)
    for _ in range(most):
        answer = client.post(
            f"/api/games/{state['game']}/moves", json=choose_placement(rng, state, 0.1)
        )
        if answer.status_code != 200:
            return state, answer
        state = answer.json()["state"]
        if state["over"]:
            state = client.post("/api/games", json={}).json()
    raise AssertionError("the disk did not get full")


def test_full_database_refuses_moves_until_there_is_space(client: LocalStudio) -> None:
    storage: Storage = client.state.games.storage
    room = {"pages": 18}
    event.listen(
        storage.engine,
        "connect",
        lambda raw, _: raw.execute(f"PRAGMA max_page_count={room['pages']}"),
    )
    state = client.post("/api/games", json={}).json()
    storage.engine.dispose()
    state, refused = played_until_refused(client, state)
    assert refused.status_code == 503, refused.text
    assert "could not be saved, so it was not accepted" in refused.json()["error"]
    assert client.get(f"/api/games/{state['game']}").json() == state
    begun = client.post("/api/games", json={})
    assert begun.status_code in (201, 503)
    room["pages"] = 1_000_000
    storage.engine.dispose()
    move = choose_placement(np.random.default_rng(2), state)
    after = client.post(f"/api/games/{state['game']}/moves", json=move).json()["state"]
    assert after["turn"] == state["turn"] + 1
    assert len(client.get(f"/api/games/{state['game']}/moves").json()) == after["turn"]


def test_moved_database_file_takes_no_moves(client: LocalStudio, tmp_path: Path) -> None:
    state = client.post("/api/games", json={}).json()
    (tmp_path / "studio.db").rename(tmp_path / "elsewhere.db")
    move = choose_placement(np.random.default_rng(0), state)
    refused = client.post(f"/api/games/{state['game']}/moves", json=move)
    assert refused.status_code == 503
    assert "not accepted" in refused.json()["error"]
    (tmp_path / "elsewhere.db").rename(tmp_path / "studio.db")
    assert client.post(f"/api/games/{state['game']}/moves", json=move).status_code == 200


def test_postgresql_restart_is_survived(postgres: Postgres, open_studio: OpenStudio) -> None:
    client, rng = open_studio(database=postgres.database()), np.random.default_rng(0)
    state = client.post("/api/games", json={}).json()
    state = client.post(
        f"/api/games/{state['game']}/moves", json=choose_placement(rng, state)
    ).json()["state"]
    move = choose_placement(rng, state)
    game = f"/api/games/{state['game']}"
    postgres.stop()
    try:
        refused = client.post(f"{game}/moves", json=move)
        assert refused.status_code == 503
        assert "not accepted" in refused.json()["error"]
        # the others at once: each waits as long as the studio waits for a connection
        with ThreadPoolExecutor(3) as pool:
            unread = pool.submit(client.get, game)
            unmade = pool.submit(client.post, "/api/games", json={})
            unlisted = pool.submit(client.get, "/api/studies", headers=ADMIN)
        assert unread.result().status_code == 503
        assert "cannot be read" in unread.result().json()["error"]
        assert unmade.result().status_code == 503
        assert unlisted.result().status_code == 503
    finally:
        postgres.start()
    assert client.get(f"/api/games/{state['game']}").json() == state
    after = client.post(f"/api/games/{state['game']}/moves", json=move).json()["state"]
    assert after["turn"] == 2


def test_two_servers_on_one_database_agree(database: str, open_studio: OpenStudio) -> None:
    one, other, rng = (
        open_studio(database=database),
        open_studio(database=database),
        np.random.default_rng(0),
    )
    state = one.post("/api/games", json={}).json()
    assert other.get(f"/api/games/{state['game']}").json()["turn"] == 0
    after = one.post(f"/api/games/{state['game']}/moves", json=choose_placement(rng, state)).json()[
        "state"
    ]
    place = state["placements"][-1]
    late = {"turn": 0, "rotation": place["rotation"], "column": place["column"]}
    assert other.post(f"/api/games/{state['game']}/moves", json=late).status_code == 409
    assert other.get(f"/api/games/{state['game']}").json() == after


@pytest.mark.parametrize(
    ("database", "sentence"),
    [
        ("{folder}/nowhere/studio.db", "cannot be opened: unable to open database file"),
        ("{folder}/text.db", "cannot be opened: file is not a database"),
        ("{folder}", "cannot be opened: unable to open database file"),
        ("sqlite://", "must be a file"),
        ("mysql://localhost/x", "mysql is not supported"),
        ("postgresql://studio@127.0.0.1:1/none", "cannot be opened: connection failed"),
        ("://", "address cannot be read"),
    ],
)
def test_unusable_database_is_refused_in_a_sentence(
    tmp_path: Path, database: str, sentence: str
) -> None:
    (tmp_path / "text.db").write_text(
        "not a database, but long enough that nobody could think otherwise\n" * 20
    )
    with pytest.raises(ValueError, match=sentence) as caught:
        Storage(database.format(folder=tmp_path))
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match=rf"{sentence.partition(':')[0]}|there is no folder"):
        describe_database(database.format(folder=tmp_path))


def test_describe_database_changes_nothing(database: str, tmp_path: Path) -> None:
    assert describe_database(database).endswith(
        ("is not there yet, and can be made", "can be reached, and is empty")
    )
    assert list(tmp_path.iterdir()) == []
    storage = Storage(database)
    assert describe_database(database).endswith("games in it: 0")
    storage.write(add_game(game_record())).result(PATIENCE)
    assert describe_database(database) == f"{storage.name} can be reached; games in it: 1"
    storage.write(
        lambda connection: connection.execute(update(tables.version).values(version=99))
    ).result(PATIENCE)
    with pytest.raises(ValueError, match="made by another version of the studio"):
        describe_database(database)
    storage.close()


def test_password_is_not_shown() -> None:
    with pytest.raises(ValueError, match=r"studio:\*\*\*@") as caught:
        Storage("postgresql://studio:hush-hush@127.0.0.1:1/none")
    assert "hush" not in str(caught.value)


def test_database_file_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path / "studio.db"))
    storage.write(add_game(game_record())).result(PATIENCE)
    assert {file.stat().st_mode & 0o077 for file in tmp_path.iterdir()} == {0}
    storage.close()


def test_replay_with_a_missing_move_is_refused() -> None:
    """Replaying is a check: a move that does not follow from those before it is not played over."""
    with pytest.raises(ValueError, match="move 1 cannot be made in turn 0"):
        Game(1, None, [Move(1, 0, 0, False, None)])


def test_write_after_close_is_refused(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path / "studio.db"))
    storage.close()
    with pytest.raises(Unavailable, match="closing"):
        storage.write(add_game(game_record())).result(PATIENCE)
