"""Playing over HTTP: the library's rules, and one sentence for whatever a page does wrong."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from revealed.environments.tetris import PIECES, Tetris, drop
from revealed.studio.game.game import (
    LETTERS,
    Game,
    Move,
    draw_pieces,
    drop_piece,
    occupied,
    spawn_column,
)
from tests.support.studio_server import LocalStudio, ManualClock, choose_placement


@pytest.fixture
def clock(client: LocalStudio) -> ManualClock:
    hands = ManualClock()
    client.state.games.clock = hands
    return hands


def begin(client: LocalStudio, **wanted: Any) -> dict[str, Any]:
    answer = client.post("/api/games", json=wanted)
    assert answer.status_code == 201, answer.text
    state: dict[str, Any] = answer.json()
    return state


def move(client: LocalStudio, state: dict[str, Any], **more: Any) -> Any:
    return client.post(f"/api/games/{state['game']}/moves", json={"turn": state["turn"], **more})


def first(state: dict[str, Any]) -> dict[str, int]:
    return {name: state["placements"][0][name] for name in ("rotation", "column")}


def refusal(answer: Any, status: int) -> str:
    assert answer.status_code == status, answer.text
    sentence: str = answer.json()["error"]
    assert sentence
    assert "\n" not in sentence
    return sentence


def test_pieces_of_a_seed_do_not_depend_on_their_number() -> None:
    assert draw_pieces(5, 10) == draw_pieces(5, 300)[:10]
    game = Game(5)
    assert [game.piece_at(t) for t in (0, 200, 90, 5000)] == [
        draw_pieces(5, 5001)[t] for t in (0, 200, 90, 5000)
    ]


def test_drop_piece_obeys_the_environment() -> None:
    rng, world = np.random.default_rng(0), Tetris()
    letters = np.zeros((30, 10), np.uint8)
    for _ in range(300):
        piece = int(rng.integers(7))
        where = world.placements(occupied(letters), piece)
        if not len(where):
            letters = np.zeros((30, 10), np.uint8)
            continue
        rotation, column = where[rng.integers(len(where))].tolist()
        landed, known = (
            drop_piece(letters, piece, rotation, column),
            drop(occupied(letters), piece, rotation, column),
        )
        assert landed is not None
        np.testing.assert_array_equal(occupied(landed.letters), known.board)
        assert landed.cleared == known.cleared
        assert min(r for r, _ in landed.cells) == known.row
        letters = landed.letters


def test_whole_game_is_played_and_replayed(client: LocalStudio) -> None:
    rng = np.random.default_rng(1)
    state = begin(client, seed=7, pieces=60)
    assert (state["turn"], state["rows"], state["columns"], state["over"]) == (0, 30, 10, False)
    assert state["board"] == ["." * 10] * 30
    made = []
    while not state["over"]:
        assert state["piece"] == PIECES[draw_pieces(7, 60)[state["turn"]]]
        answer = move(
            client, state, **{k: v for k, v in choose_placement(rng, state).items() if k != "turn"}
        )
        assert answer.status_code == 200
        made.append(answer.json()["move"])
        state = answer.json()["state"]
    assert (state["turn"], state["why"], state["piece"], state["placements"]) == (
        60,
        "pieces",
        None,
        [],
    )
    assert client.get(f"/api/games/{state['game']}").json() == state
    assert client.get(f"/api/games/{state['game']}/moves").json() == made
    again = Game(7, 60, [Move(m["turn"], m["rotation"], m["column"], False, None) for m in made])
    assert ["".join(LETTERS[c] for c in row) for row in again.letters.tolist()] == state["board"]
    assert "the game is over" in refusal(move(client, state, rotation=0, column=0), 409)


def test_placements_list_the_squares_where_the_piece_comes_to_rest(
    shared_studio: LocalStudio,
) -> None:
    state = begin(shared_studio, seed=3)
    where = Tetris().placements(np.zeros((30, 10), np.uint8), state["piece"])
    assert [[p["rotation"], p["column"]] for p in state["placements"]] == where.tolist()
    for place in state["placements"]:
        answer = drop_piece(
            np.zeros((30, 10), np.uint8),
            PIECES.index(state["piece"]),
            place["rotation"],
            place["column"],
        )
        assert answer is not None
        assert answer.cells == place["cells"]


def test_game_ends_when_the_board_is_full(shared_studio: LocalStudio) -> None:
    state = begin(shared_studio, seed=1)
    while not state["over"]:
        place = min(
            state["placements"], key=lambda p: min(r for r, _ in p["cells"])
        )  # as high as can be
        state = move(
            shared_studio, state, rotation=place["rotation"], column=place["column"]
        ).json()["state"]
    assert state["why"] == "full"
    assert state["turn"] < 100


def test_forged_moves_are_refused_and_change_nothing(shared_studio: LocalStudio) -> None:
    state = begin(shared_studio, seed=PIECES.index("O"), pieces=5)
    legal = {(p["rotation"], p["column"]) for p in state["placements"]}
    forged = next((r, c) for r in range(4) for c in range(10) if (r, c) not in legal)
    assert "not a legal placement" in refusal(
        move(shared_studio, state, rotation=forged[0], column=forged[1]), 422
    )
    for wrong in (
        {"rotation": 4, "column": 0},
        {"rotation": -1, "column": 0},
        {"rotation": 0, "column": 10},
        {"rotation": 0.0, "column": 1},
        {"rotation": "0", "column": 0},
        {"rotation": True, "column": 0},
        {"rotation": 0},
        {"column": 0},
        {},
        {"missed": False},
        {"rotation": 0, "column": 0, "missed": True},
        {"rotation": 0, "column": 0, "piece": "I"},
        {"missed": "yes"},
    ):
        refusal(move(shared_studio, state, **wrong), 422)
    assert shared_studio.get(f"/api/games/{state['game']}").json() == state
    assert shared_studio.get(f"/api/games/{state['game']}/moves").json() == []


def test_move_for_another_turn_is_refused_with_the_state(shared_studio: LocalStudio) -> None:
    one = begin(shared_studio, seed=2)
    other = shared_studio.get(f"/api/games/{one['game']}").json()
    after = move(shared_studio, one, **first(one)).json()["state"]
    late = move(
        shared_studio,
        other,
        rotation=other["placements"][-1]["rotation"],
        column=other["placements"][-1]["column"],
    )
    assert "not the present one" in refusal(late, 409)
    assert late.json()["state"] == after
    ahead = shared_studio.post(
        f"/api/games/{one['game']}/moves", json={"turn": 5, "rotation": 0, "column": 0}
    )
    assert "not the present one" in refusal(ahead, 409)


def at_once(
    shared_studio: LocalStudio, state: dict[str, Any], places: list[dict[str, Any]]
) -> list[Any]:
    """All these placements for the same turn, from as many tabs at the same time."""
    with ThreadPoolExecutor(len(places)) as tabs:
        wanted = [{name: place[name] for name in ("rotation", "column")} for place in places]
        return list(tabs.map(lambda place: move(shared_studio, state, **place), wanted))


def test_moves_at_the_same_moment_are_recorded_once(shared_studio: LocalStudio) -> None:
    state = begin(shared_studio, seed=2)
    answers = at_once(shared_studio, state, state["placements"][:8])
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 7
    (made,) = (answer.json()["move"] for answer in answers if answer.status_code == 200)
    assert shared_studio.get(f"/api/games/{state['game']}/moves").json() == [made]
    state = shared_studio.get(f"/api/games/{state['game']}").json()
    answers = at_once(
        shared_studio, state, state["placements"][:1] * 8
    )  # the same one, again and again
    assert [answer.status_code for answer in answers] == [200] * 8
    assert len({answer.text for answer in answers}) == 1
    assert len(shared_studio.get(f"/api/games/{state['game']}/moves").json()) == 2


@pytest.mark.parametrize("forgotten", [False, True])
def test_repeated_move_is_answered_again(client: LocalStudio, forgotten: bool) -> None:
    state = begin(client, seed=2)
    answers = [move(client, state, **first(state)) for _ in range(2)]
    if forgotten:
        client.state.games._live.clear()
        answers.append(move(client, state, **first(state)))
    assert [a.status_code for a in answers] == [200] * len(answers)
    assert all(a.json() == answers[0].json() for a in answers)
    third = answers[0].json()["state"]
    third = move(client, third, **first(third)).json()["state"]
    again = move(client, state, **first(state))  # an old one, and still the very move on record
    assert again.json() == {"move": answers[0].json()["move"], "state": third}
    assert third["turn"] == 2


def test_deadline_is_kept_or_missed_by_the_servers_clock(
    client: LocalStudio, clock: ManualClock
) -> None:
    state = begin(client, seed=4, deadline_seconds=3.0, pieces=3)
    assert state["remaining"] == 3.0
    clock.now += 1.0
    assert client.get(f"/api/games/{state['game']}").json()["remaining"] == 2.0
    early = move(client, state, missed=True)
    assert "has not passed yet" in refusal(early, 409)
    assert early.json()["state"]["remaining"] == 2.0
    clock.now += 2.2  # too late, but it may have been on the way
    kept = move(client, state, **first(state)).json()
    assert (kept["move"]["missed"], kept["move"]["seconds"]) == (False, 3.2)
    assert kept["state"]["remaining"] == 3.0

    state = kept["state"]
    clock.now += 3.0
    lost = move(client, state, missed=True).json()
    piece = PIECES.index(state["piece"])
    assert (lost["move"]["rotation"], lost["move"]["column"], lost["move"]["missed"]) == (
        0,
        spawn_column(piece),
        True,
    )
    assert lost["state"]["misses"] == 1
    again = move(client, state, missed=True)
    assert again.json()["move"] == lost["move"]

    state = lost["state"]
    clock.now += 3.3
    late = move(client, state, **first(state)).json()
    assert late["move"]["missed"]
    assert (late["state"]["misses"], late["state"]["over"], late["state"]["why"]) == (
        2,
        True,
        "pieces",
    )
    assert (
        move(client, state, **first(state)).json()["move"] == late["move"]
    )  # the same request, sent again


def test_miss_without_a_deadline_is_refused(shared_studio: LocalStudio) -> None:
    state = begin(shared_studio)
    assert state["deadline_seconds"] is state["remaining"] is None
    assert "no deadline" in refusal(move(shared_studio, state, missed=True), 409)


def test_misses_fill_the_board_and_end_the_game(client: LocalStudio, clock: ManualClock) -> None:
    state = begin(client, seed=9, deadline_seconds=1.0)
    while not state["over"]:
        clock.now += 1.0
        state = move(client, state, missed=True).json()["state"]
    assert state["why"] == "full"
    assert state["misses"] == state["turn"]
    client.state.games._live.clear()
    assert client.get(f"/api/games/{state['game']}").json() == state


def test_pieces_to_come_are_not_shown(shared_studio: LocalStudio) -> None:
    state = begin(shared_studio, seed=11, pieces=30)
    assert "seed" not in state
    texts = (
        shared_studio.get(f"/api/games/{state['game']}").text
        + shared_studio.get(f"/api/games/{state['game']}/moves").text
    )
    assert "seed" not in texts


@pytest.mark.parametrize(
    "wanted",
    [
        {"deadline_seconds": 0.1},
        {"deadline_seconds": 61},
        {"deadline_seconds": "3"},
        {"pieces": 0},
        {"pieces": 2001},
        {"pieces": 1.5},
        {"seed": -1},
        {"seed": 2**53},
        {"learn": 1},
        {"rows": 20},
        [],
    ],
)
def test_invalid_new_game_is_refused(shared_studio: LocalStudio, wanted: Any) -> None:
    refusal(shared_studio.post("/api/games", json=wanted), 422)


def test_unknown_addresses_and_bodies_are_refused_in_a_sentence(shared_studio: LocalStudio) -> None:
    assert "no such game" in refusal(shared_studio.get("/api/games/" + "a" * 22), 404)
    assert "nothing at this address" in refusal(shared_studio.get("/api/games/short"), 404)
    assert "nothing at this address" in refusal(shared_studio.get("/api/nowhere"), 404)
    assert "does not answer" in refusal(shared_studio.http.delete("/api/games/" + "a" * 22), 405)
    for body in (
        b"",
        b"{",
        b"[" * 50_000,
        b"\xff\xfe",
        b'{"deadline_seconds": NaN}',
        b'{"deadline_seconds": 1e999}',
        b"null",
        b'"x"',
    ):
        assert shared_studio.post(
            "/api/games", content=body, headers={"content-type": "application/json"}
        ).status_code in (
            400,
            422,
        )
