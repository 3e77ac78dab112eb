"""Being learnt as one plays: the same as the library's own stream, never in the way of a move, and bounded."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

import understudy as us
from stagehands import Inside, Opened, features_of, pick
from understudy.studio.densities import density
from understudy.studio.games import Game, Move
from understudy.studio.pupil import Pupil, rehearse
from understudy.worlds.tetris import FEATURES

PARTICLES = 200


@pytest.fixture(scope="module", autouse=True)
def _rehearsed() -> None:
    rehearse()


def played(client: Inside, moves: int, seed: int = 5, **wanted: Any) -> tuple[dict[str, Any], list[Any]]:
    """A game with so many moves: its state, and the decisions in it."""
    rng, decisions = np.random.default_rng(1), []
    state = client.post("/api/games", json={"learn": True, "seed": seed, **wanted}).json()
    for _ in range(moves):
        move = pick(rng, state)
        at = [[p["rotation"], p["column"]] for p in state["placements"]].index([move["rotation"], move["column"]])
        decisions.append((features_of(state), at))
        state = client.post(f"/api/games/{state['game']}/moves", json=move).json()["state"]
    return state, decisions


def learning(client: Inside, state: dict[str, Any]) -> dict[str, Any]:
    """What has been learnt from all moves; asked for again as a page would, on a machine that is busy."""
    for _ in range(20):
        answer = client.get(f"/api/games/{state['game']}/learning?turn={state['turn']}")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        if found["turn"] == state["turn"]:
            return found
    raise AssertionError(f"only {found['turn']} of {state['turn']} moves were learnt")


def test_what_is_learnt_is_what_the_stream_learns(opened: Opened) -> None:
    client = opened(particles=PARTICLES)
    state, decisions = played(client, 12)
    found = learning(client, state)
    stream, alike = us.Stream(FEATURES, us.Gaussian(2500.0), PARTICLES, seed=5), 0
    for past, (rows, chosen) in zip(found["history"], decisions, strict=True):
        before, plain = stream.log_evidence, stream.probabilities(rows)[chosen]
        stream.update(rows, chosen)
        assert past["probability"] == pytest.approx(np.exp(stream.log_evidence - before), rel=1e-5)
        alike += past["probability"] == pytest.approx(
            plain, rel=1e-4
        )  # the very same, unless the particles had to move
    assert alike >= 3
    np.testing.assert_allclose(found["mean"], stream.mean, rtol=1e-5)
    np.testing.assert_allclose(found["sd"], stream.sd, rtol=1e-5)
    assert found["log_evidence"] == pytest.approx(stream.log_evidence, rel=1e-5)
    assert found["effective"] == pytest.approx(stream.effective, rel=1e-5)
    assert (found["decisions"], found["names"]) == (12, list(FEATURES))
    assert found["error"] == pytest.approx(np.mean([not past["hit"] for past in found["history"]]))
    for curve, mean in zip(found["densities"], found["mean"], strict=True):
        x, y = np.array(curve["x"]), np.array(curve["y"])
        assert np.trapezoid(y, x) == pytest.approx(1.0, abs=0.02)
        assert np.trapezoid(x * y, x) == pytest.approx(mean, abs=0.05 * (x[-1] - x[0]))


def test_a_game_is_learnt_again_after_a_restart_to_the_same_posterior(opened: Opened) -> None:
    client = opened(particles=PARTICLES)
    state, _ = played(client, 6)
    before, board = learning(client, state), client.get(f"/api/games/{state['game']}/understudy").json()
    client.close()
    again = opened(particles=PARTICLES)
    assert learning(again, state) == before
    assert again.get(f"/api/games/{state['game']}/understudy").json() == board


def test_pupils_beyond_the_bound_are_forgotten_and_come_back(opened: Opened) -> None:
    client = opened(particles=100, learners=2)
    states = [played(client, 3, seed)[0] for seed in (1, 2, 3, 4)]
    first = [learning(client, state) for state in states]
    assert len(client.state.learner._desks) == 2
    assert [learning(client, state) for state in states] == first


def test_moves_do_not_wait_for_learning(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    client = opened(particles=100)
    learn, go_on = Pupil.learn, threading.Event()

    def when_told(pupil: Pupil, move: Move) -> None:
        assert go_on.wait(30)
        learn(pupil, move)

    monkeypatch.setattr(Pupil, "learn", when_told)
    state = client.post("/api/games", json={"learn": True}).json()
    client.get(f"/api/games/{state['game']}/learning")
    for _ in range(4):  # the learner stands still all the while
        move = pick(np.random.default_rng(0), state)
        state = client.post(f"/api/games/{state['game']}/moves", json=move).json()["state"]
    assert state["turn"] == 4
    go_on.set()
    assert learning(client, state)["decisions"] == 4


def test_misses_are_not_learnt(opened: Opened) -> None:
    client = opened(particles=100)
    state = client.post("/api/games", json={"learn": True, "tau": 0.2}).json()
    time.sleep(0.25)
    answer = client.post(f"/api/games/{state['game']}/moves", json={"turn": 0, "missed": True}).json()
    found = learning(client, answer["state"])
    assert (found["turn"], found["decisions"], found["history"], found["error"]) == (1, 0, [], None)
    assert client.get(f"/api/games/{state['game']}/understudy").json()["turn"] == 0


def test_the_understudy_plays_beside_on_the_same_pieces(opened: Opened) -> None:
    client = opened(particles=PARTICLES)
    start = client.post("/api/games", json={"learn": True, "seed": 8}).json()
    assert client.get(f"/api/games/{start['game']}/understudy").json()["turn"] is None
    state, _ = played(client, 8, seed=8)
    learning(client, state)
    boards = [client.get(f"/api/games/{state['game']}/understudy?turn={turn}").json() for turn in range(8)]
    made = client.get(f"/api/games/{state['game']}/moves").json()
    assert [b["last"]["piece"] for b in boards] == [m["piece"] for m in made]
    game = Game(8)
    for turn, b in enumerate(boards):
        assert b["turn"] == turn
        landed = game.make(Move(turn, b["last"]["rotation"], b["last"]["column"], False, None))
        assert landed.cells == b["last"]["cells"]
        assert game.shown()["board"] == b["board"]
        assert game.lines == b["lines"]
    ahead = client.get(f"/api/games/{state['game']}/understudy?turn=50").json()
    assert ahead == boards[-1], "it does not play pieces that the player has not seen"


def test_the_understudy_takes_the_stage(opened: Opened) -> None:
    client = opened(particles=PARTICLES)
    state, _ = played(client, 10)
    learning(client, state)
    story = client.post(f"/api/games/{state['game']}/stage", json={"moves": 15, "seed": 3}).json()
    assert story == client.post(f"/api/games/{state['game']}/stage", json={"moves": 15, "seed": 3}).json()
    assert story != client.post(f"/api/games/{state['game']}/stage", json={"moves": 15, "seed": 4}).json()
    assert 1 <= len(story) <= 15
    before = sum(square != "." for row in state["board"] for square in row)
    after = sum(square != "." for row in story[0]["board"] for square in row)
    assert after == before + 4 - 10 * (story[0]["lines"] - state["lines"])
    assert client.get(f"/api/games/{state['game']}").json()["turn"] == 10, "the player's own game is as it was"


def test_who_moved(opened: Opened) -> None:
    client = opened(particles=100)
    state, _ = played(client, 0)
    nothing = client.post(f"/api/games/{state['game']}/quiz")
    assert nothing.status_code == 409
    assert "no question" in nothing.json()["error"]
    state, _ = played(client, 12)
    learning(client, state)
    made, right, movers = client.get(f"/api/games/{state['game']}/moves").json(), 0, []
    for asked in range(100):
        answer = client.post(f"/api/games/{state['game']}/quiz")
        if answer.status_code == 409:
            break
        question = answer.json()
        assert (question["asked"], question["right"]) == (asked, right)
        address = f"/api/games/{state['game']}/quiz/{question['question']}"
        told = client.post(address, json={"guess": "player"}).json()
        own = [m for m in made if m["piece"] == question["piece"] and m["cells"] == question["cells"]]
        assert told["mover"] == "understudy" or own, "a placement said to be the player's is one that the player made"
        right += told["right"]
        assert told["right"] == (told["mover"] == "player")
        assert (told["asked"], told["right_so_far"]) == (asked + 1, right)
        second = client.post(address, json={"guess": "understudy"})
        assert second.status_code == 409
        assert "answered before" in second.json()["error"]
        movers.append(told["mover"])
    assert 1 <= len(movers) <= 12
    other, _ = played(client, 0)
    assert (
        client.post(f"/api/games/{other['game']}/quiz/{question['question']}", json={"guess": "player"}).status_code
        == 404
    )


def test_a_game_that_is_not_to_be_learnt(client: Inside) -> None:
    state = client.post("/api/games", json={}).json()
    for method, what in (("GET", "learning"), ("GET", "understudy"), ("POST", "stage"), ("POST", "quiz")):
        body = {"moves": 3} if what == "stage" else None
        answer = client.request(method, f"/api/games/{state['game']}/{what}", json=body)
        assert answer.status_code == 409
        assert "not learnt from" in answer.json()["error"]


def test_a_pupil_that_fails_is_replaced(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    client = opened(particles=100)
    state, _ = played(client, 2)
    monkeypatch.setattr("understudy.studio.learning.log.exception", lambda *_: None)
    with monkeypatch.context() as broken:
        broken.setattr(Pupil, "learn", lambda *_: 1 / 0)
        answer = client.get(f"/api/games/{state['game']}/learning")
        assert answer.status_code == 503
        assert "could not be learnt" in answer.json()["error"]
    assert learning(client, state)["decisions"] == 2


def test_a_density_without_spread_is_no_curve() -> None:
    assert density(np.full(5, 2.0)) == {"x": [2.0], "y": [0.0]}
