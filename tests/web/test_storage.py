"""The same tests on SQLite and on a real PostgreSQL server: what was acknowledged is there, and what failed is said to have failed."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import wait
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import event, select, text, update

from stagehands import TOKEN, Inside, Opened, Postgres, pick
from understudy.studio import tables
from understudy.studio.faults import Conflict, Unavailable
from understudy.studio.games import Game, Move
from understudy.studio.storage import Facts, Storage, add_game, add_move, seen_at

ADMIN = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def storage(database: str) -> Iterator[Storage]:
    opened = Storage(database)
    yield opened
    opened.close()


def facts(number: int = 0, **more: Any) -> Facts:
    return Facts(f"{number:022d}", 7, None, None, False, **more)


def test_what_was_written_is_read(storage: Storage) -> None:
    game = Facts("g" * 22, 2**53 - 1, 2.5, 40, True)
    moves = [Move(0, 1, 3, False, 1.25), Move(1, 0, 4, True, None)]
    for job in (add_game(game), *(add_move(game.id, move, None) for move in moves)):
        storage.write(job).result(10)
    assert storage.game(game.id) == (game, moves)
    assert storage.game("h" * 22) is None


def test_it_is_all_there_when_opened_again(database: str) -> None:
    for turn in range(3):
        storage = Storage(database)
        if turn == 0:
            storage.write(add_game(facts())).result(10)
        storage.write(add_move(facts().id, Move(turn, 0, 0, False, None), None)).result(10)
        storage.close()
    storage = Storage(database)
    found = storage.game(facts().id)
    storage.close()
    assert found is not None
    assert [move.turn for move in found[1]] == [0, 1, 2]


def test_a_turn_has_one_move_and_a_clash_hurts_nobody_else(storage: Storage) -> None:
    for number in (1, 2):
        storage.write(add_game(facts(number))).result(10)
    storage.write(add_move(facts(1).id, Move(0, 0, 0, False, None), None)).result(10)
    held = storage.write(lambda connection: connection.execute(text("SELECT 1")) and None)
    together = [
        storage.write(add_move(facts(2).id, Move(0, 0, 0, False, None), None)),
        storage.write(add_move(facts(1).id, Move(0, 1, 1, False, None), None)),
        storage.write(add_move(facts(3).id, Move(0, 1, 1, False, None), None)),  # there is no such game
        storage.write(add_move(facts(2).id, Move(1, 0, 0, False, None), None)),
    ]
    wait([held, *together], 10)
    assert [type(each.exception()) for each in together] == [type(None), Conflict, Conflict, type(None)]
    first, second = storage.game(facts(1).id), storage.game(facts(2).id)
    assert first is not None
    assert second is not None
    assert [(m.turn, m.rotation) for m in first[1]] == [(0, 0)]
    assert [m.turn for m in second[1]] == [0, 1]


def test_those_who_wait_share_a_commit(storage: Storage) -> None:
    storage.write(add_game(facts())).result(10)
    commits = []
    event.listen(storage.engine, "commit", lambda connection: commits.append(1))
    moves = [storage.write(add_move(facts().id, Move(turn, 0, 0, False, None), None)) for turn in range(300)]
    for move in moves:
        move.result(30)
    assert len(commits) < 100, "three hundred moves that come at once need few commits"
    found = storage.game(facts().id)
    assert found is not None
    assert len(found[1]) == 300


def test_why_a_game_is_over_is_written_with_its_last_move(storage: Storage) -> None:
    storage.write(add_game(facts())).result(10)
    storage.write(add_move(facts().id, Move(0, 0, 0, False, None), "pieces")).result(10)
    with storage.reading() as connection:
        assert connection.execute(select(tables.games.c.done)).scalar_one() == "pieces"


def test_a_database_of_another_version_is_refused(database: str) -> None:
    storage = Storage(database)
    storage.write(lambda connection: connection.execute(update(tables.version).values(version=99))).result(10)
    storage.close()
    with pytest.raises(ValueError, match="made by another version of the studio"):
        Storage(database)


def test_games_and_studies_live_through_a_restart(database: str, opened: Opened) -> None:
    rng, client = np.random.default_rng(3), opened(database=database)
    wanted = {"name": "haste", "conditions": [{"name": "slow", "pieces": 3}], "participants": 2, "seed": 5}
    study = client.post("/api/studies", json=wanted, headers=ADMIN).json()
    link = study["participants"][0]["link"].removeprefix("/p/")
    state = client.post(f"/api/participants/{link}/next").json()
    free = client.post("/api/games", json={"seed": 5}).json()
    for _ in range(2):
        state = client.post(f"/api/games/{state['game']}/moves", json=pick(rng, state)).json()["state"]
        free = client.post(f"/api/games/{free['game']}/moves", json=pick(rng, free)).json()["state"]
    client.close()
    again = opened(database=database)
    for game in (state, free):
        assert again.get(f"/api/games/{game['game']}").json() == game
    assert again.post(f"/api/participants/{link}/next").json() == state
    done = again.post(f"/api/games/{state['game']}/moves", json=pick(rng, state)).json()["state"]
    assert done["over"]
    told = again.get(f"/api/studies/{study['study']}", headers=ADMIN).json()
    assert [(p["done"], p["moves"], p["misses"]) for p in told["participants"]] == [(1, 3, 0), (0, 0, 0)]


def played_until_refused(client: Inside, state: dict[str, Any], most: int = 3000) -> tuple[dict[str, Any], Any]:
    """Play until a move is not accepted: the last state, and the answer that refused."""
    rng = np.random.default_rng(1)
    for _ in range(most):
        answer = client.post(f"/api/games/{state['game']}/moves", json=pick(rng, state, 0.1))
        if answer.status_code != 200:
            return state, answer
        state = answer.json()["state"]
        if state["over"]:
            state = client.post("/api/games", json={}).json()
    raise AssertionError("the disk did not get full")


def test_a_full_disk_is_told_and_play_goes_on_when_there_is_room(client: Inside) -> None:
    storage: Storage = client.state.games.storage
    room = {"pages": 18}
    event.listen(storage.engine, "connect", lambda raw, _: raw.execute(f"PRAGMA max_page_count={room['pages']}"))
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
    move = pick(np.random.default_rng(2), state)
    after = client.post(f"/api/games/{state['game']}/moves", json=move).json()["state"]
    assert after["turn"] == state["turn"] + 1
    assert len(client.get(f"/api/games/{state['game']}/moves").json()) == after["turn"]


def test_a_file_that_was_taken_away_takes_no_moves(client: Inside, tmp_path: Path) -> None:
    state = client.post("/api/games", json={}).json()
    (tmp_path / "studio.db").rename(tmp_path / "elsewhere.db")
    move = pick(np.random.default_rng(0), state)
    refused = client.post(f"/api/games/{state['game']}/moves", json=move)
    assert refused.status_code == 503
    assert "not accepted" in refused.json()["error"]
    (tmp_path / "elsewhere.db").rename(tmp_path / "studio.db")
    assert client.post(f"/api/games/{state['game']}/moves", json=move).status_code == 200


def test_a_server_that_goes_away_and_comes_back(postgres: Postgres, opened: Opened) -> None:
    client, rng = opened(database=postgres.database()), np.random.default_rng(0)
    state = client.post("/api/games", json={}).json()
    state = client.post(f"/api/games/{state['game']}/moves", json=pick(rng, state)).json()["state"]
    move = pick(rng, state)
    postgres.stop()
    try:
        refused = client.post(f"/api/games/{state['game']}/moves", json=move)
        assert refused.status_code == 503
        assert "not accepted" in refused.json()["error"]
        unread = client.get(f"/api/games/{state['game']}")
        assert unread.status_code == 503
        assert "cannot be read" in unread.json()["error"]
        assert client.post("/api/games", json={}).status_code == 503
        assert client.get("/api/studies", headers=ADMIN).status_code == 503
    finally:
        postgres.start()
    assert client.get(f"/api/games/{state['game']}").json() == state
    after = client.post(f"/api/games/{state['game']}/moves", json=move).json()["state"]
    assert after["turn"] == 2


def test_another_server_on_the_same_database(database: str, opened: Opened) -> None:
    one, other, rng = opened(database=database), opened(database=database), np.random.default_rng(0)
    state = one.post("/api/games", json={}).json()
    assert other.get(f"/api/games/{state['game']}").json()["turn"] == 0
    after = one.post(f"/api/games/{state['game']}/moves", json=pick(rng, state)).json()["state"]
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
def test_a_database_that_is_not_there(tmp_path: Path, database: str, sentence: str) -> None:
    (tmp_path / "text.db").write_text("not a database, but long enough that nobody could think otherwise\n" * 20)
    with pytest.raises(ValueError, match=sentence) as caught:
        Storage(database.format(folder=tmp_path))
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match=rf"{sentence.partition(':')[0]}|there is no folder"):
        seen_at(database.format(folder=tmp_path))


def test_looking_at_a_database_changes_nothing(database: str, tmp_path: Path) -> None:
    assert seen_at(database).endswith(("is not there yet, and can be made", "can be reached, and is empty"))
    assert list(tmp_path.iterdir()) == []
    storage = Storage(database)
    assert seen_at(database).endswith("games in it: 0")
    storage.write(add_game(facts())).result(10)
    assert seen_at(database) == f"{storage.name} can be reached; games in it: 1"
    storage.write(lambda connection: connection.execute(update(tables.version).values(version=99))).result(10)
    with pytest.raises(ValueError, match="made by another version of the studio"):
        seen_at(database)
    storage.close()


def test_a_password_is_not_told() -> None:
    with pytest.raises(ValueError, match=r"studio:\*\*\*@") as caught:
        Storage("postgresql://studio:hush-hush@127.0.0.1:1/none")
    assert "hush" not in str(caught.value)


def test_the_file_is_its_owners_alone(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path / "studio.db"))
    storage.write(add_game(facts())).result(10)
    assert {file.stat().st_mode & 0o077 for file in tmp_path.iterdir()} == {0}
    storage.close()


def test_a_missing_record_is_noticed() -> None:
    """Replaying is a check: a move that does not follow from those before it is not played over."""
    with pytest.raises(ValueError, match="move 1 cannot be made in turn 0"):
        Game(1, None, [Move(1, 0, 0, False, None)])


def test_writing_after_closing_is_refused(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path / "studio.db"))
    storage.close()
    with pytest.raises(Unavailable, match="closing"):
        storage.write(add_game(facts())).result(1)
