"""Learning while one plays: equal to `OnlineLearner`, never in the way of a move, and bounded."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed.environments.tetris import PAPER_FEATURES
from revealed.studio.game.game import Game, Move
from revealed.studio.learning.density import density_curve
from revealed.studio.learning.game_learner import GameLearner, Player
from revealed.studio.learning.game_learner import choose_placement as choose_of_player
from revealed.studio.learning.lapses import rate_curve
from tests.support.statistical_asserts import assert_scores
from tests.support.studio_server import (
    PATIENCE,
    LocalStudio,
    ManualClock,
    OpenStudio,
    choose_placement,
    choose_worst,
    features_of,
)

PARTICLES = 200


def played(
    client: LocalStudio, moves: int, seed: int = 5, blunders: tuple[int, ...] = (), **wanted: Any
) -> tuple[dict[str, Any], list[Any]]:
    """A game with so many moves: its state, and the decisions in it.

    In the turns of blunders the worst placement is taken.
    """
    rng, decisions = np.random.default_rng(1), []
    state = client.post("/api/games", json={"learn": True, "seed": seed, **wanted}).json()
    for _ in range(moves):
        move = choose_placement(rng, state)
        if state["turn"] in blunders:
            move = choose_worst(state)
        at = [[p["rotation"], p["column"]] for p in state["placements"]].index(
            [move["rotation"], move["column"]]
        )
        decisions.append((features_of(state), at))
        state = client.post(f"/api/games/{state['game']}/moves", json=move).json()["state"]
    return state, decisions


def learning(client: LocalStudio, state: dict[str, Any]) -> dict[str, Any]:
    """What has been learnt from all moves; asked for again, as a page would, until it is there.

    Each request waits in the server for up to five seconds, so this does not poll in a hurry.
    """
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        answer = client.get(f"/api/games/{state['game']}/learning?turn={state['turn']}")
        assert answer.status_code in (200, 503), answer.text
        found: dict[str, Any] = answer.json()
        if found.get("turn") == state["turn"]:
            return found
    raise AssertionError(f"not all of {state['turn']} moves were learnt: {found}")


def test_learning_equals_online_learner(open_studio: OpenStudio) -> None:
    client = open_studio(particles=PARTICLES)
    state, decisions = played(client, 12)
    found = learning(client, state)
    model = rv.ChoiceModel(prior=rv.Normal(50.0))
    stream, alike = rv.OnlineLearner(model, PAPER_FEATURES, PARTICLES, seed=5), 0
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
    assert found["effective"] == pytest.approx(stream.effective_sample_size, rel=1e-5)
    assert (found["decisions"], found["names"]) == (12, list(PAPER_FEATURES))
    assert found["error"] == pytest.approx(np.mean([not past["hit"] for past in found["history"]]))
    for curve, mean in zip(found["densities"], found["mean"], strict=True):
        x, y = np.array(curve["x"]), np.array(curve["y"])
        assert np.trapezoid(y, x) == pytest.approx(1.0, abs=0.02)
        assert np.trapezoid(x * y, x) == pytest.approx(mean, abs=0.05 * (x[-1] - x[0]))


def test_lapses_are_learnt_beside_the_values(open_studio: OpenStudio) -> None:
    """A studio with lapses shows their rate, and which of the moves were blunders."""
    noise = rv.LogitNoise(lapse=rv.Lapse())
    client = open_studio(particles=PARTICLES, noise=noise)
    state, decisions = played(client, 24, blunders=(15, 20))
    found = learning(client, state)
    stream = rv.OnlineLearner(
        rv.ChoiceModel(prior=rv.Normal(50.0), noise=noise), PAPER_FEATURES, PARTICLES, seed=5
    )
    for rows, chosen in decisions:
        stream.update(rows, chosen)
    np.testing.assert_allclose(found["mean"], stream.mean, rtol=1e-5)
    rates, lapse = stream.known_noise().rate, found["lapse"]  # type: ignore[union-attr]
    assert lapse["mean"] == pytest.approx(stream.weights @ rates, rel=1e-5)
    curve = np.array([lapse["density"]["x"], lapse["density"]["y"]])
    assert curve[0].min() == 0.0
    assert np.trapezoid(curve[1], curve[0]) == pytest.approx(1.0, abs=0.02)
    probability = np.array(lapse["decisions"])
    assert len(probability) == 24
    assert set(np.argsort(-probability)[:2]) == {15, 20}
    assert probability[[15, 20]].min() > 0.5
    # who is learnt so also lapses: of very many moves some are the worst there are
    assert client.post(
        f"/api/games/{state['game']}/continuation", json={"moves": 5, "seed": 3}
    ).json()


def test_without_lapses_nothing_is_said_of_them(open_studio: OpenStudio) -> None:
    client = open_studio(particles=100, noise=rv.LogitNoise())
    state, decisions = played(client, 6)
    found = learning(client, state)
    assert found["lapse"] is None
    model = rv.ChoiceModel(prior=rv.Normal(50.0), noise=rv.LogitNoise())
    stream = rv.OnlineLearner(model, PAPER_FEATURES, 100, seed=5)
    for rows, chosen in decisions:
        stream.update(rows, chosen)
    np.testing.assert_allclose(found["mean"], stream.mean, rtol=1e-5)


def test_a_player_lapses_at_its_rate() -> None:
    rng, count, rate = np.random.default_rng(1), 4000, 0.3
    player = Player(np.ones(1), rv.LogitNoise(), rate)
    rows = np.array([[-100.0], [0.0]])
    worst = sum(choose_of_player(rng, rows, player) == 0 for _ in range(count)) / count
    p = rate / 2.0
    assert_scores((worst - p) / np.sqrt(p * (1.0 - p) / count), false_alarm=1e-6)


def test_a_rate_next_to_zero_has_a_density_of_area_one() -> None:
    rates = np.random.default_rng(2).beta(1.0, 60.0, 400)
    curve = rate_curve(rates, np.full(400, 1.0 / 400.0))
    assert np.trapezoid(curve["y"], curve["x"]) == pytest.approx(1.0, abs=0.02)
    assert rate_curve(np.full(4, 0.25), np.full(4, 0.25)) == {"x": [0.25], "y": [0.0]}


def test_restart_learns_a_game_to_the_same_posterior(
    open_studio: OpenStudio,
) -> None:
    client = open_studio(particles=PARTICLES)
    state, _ = played(client, 6)
    before, board = (
        learning(client, state),
        client.get(f"/api/games/{state['game']}/understudy").json(),
    )
    client.close()
    again = open_studio(particles=PARTICLES)
    assert learning(again, state) == before
    assert again.get(f"/api/games/{state['game']}/understudy").json() == board


def test_learners_beyond_the_bound_are_forgotten_and_learnt_again(open_studio: OpenStudio) -> None:
    client = open_studio(particles=100, learners=2)
    states = [played(client, 3, seed)[0] for seed in (1, 2, 3, 4)]
    first = [learning(client, state) for state in states]
    assert len(client.state.learner._jobs) == 2
    assert [learning(client, state) for state in states] == first


def test_moves_do_not_wait_for_learning(
    open_studio: OpenStudio, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = open_studio(particles=100)
    learn, go_on = GameLearner.learn, threading.Event()

    def when_told(pupil: GameLearner, move: Move) -> None:
        assert go_on.wait(PATIENCE)
        learn(pupil, move)

    monkeypatch.setattr(GameLearner, "learn", when_told)
    state = client.post("/api/games", json={"learn": True}).json()
    client.get(f"/api/games/{state['game']}/learning")
    for _ in range(4):  # the learner stands still all the while
        move = choose_placement(np.random.default_rng(0), state)
        state = client.post(f"/api/games/{state['game']}/moves", json=move).json()["state"]
    assert state["turn"] == 4
    go_on.set()
    assert learning(client, state)["decisions"] == 4


def test_misses_are_not_learnt(open_studio: OpenStudio) -> None:
    client = open_studio(particles=100)
    client.state.games.clock = clock = ManualClock()
    state = client.post("/api/games", json={"learn": True, "deadline_seconds": 0.2}).json()
    clock.now += 0.25
    answer = client.post(
        f"/api/games/{state['game']}/moves", json={"turn": 0, "missed": True}
    ).json()
    found = learning(client, answer["state"])
    assert (found["turn"], found["decisions"], found["history"], found["error"]) == (1, 0, [], None)
    assert client.get(f"/api/games/{state['game']}/understudy").json()["turn"] == 0


def test_understudy_board_has_the_same_pieces(open_studio: OpenStudio) -> None:
    client = open_studio(particles=PARTICLES)
    start = client.post("/api/games", json={"learn": True, "seed": 8}).json()
    assert client.get(f"/api/games/{start['game']}/understudy").json()["turn"] is None
    state, _ = played(client, 8, seed=8)
    learning(client, state)
    boards = [
        client.get(f"/api/games/{state['game']}/understudy?turn={turn}").json() for turn in range(8)
    ]
    made = client.get(f"/api/games/{state['game']}/moves").json()
    assert [b["last"]["piece"] for b in boards] == [m["piece"] for m in made]
    game = Game(8)
    for turn, b in enumerate(boards):
        assert b["turn"] == turn
        landed = game.apply(Move(turn, b["last"]["rotation"], b["last"]["column"], False, None))
        assert landed.cells == b["last"]["cells"]
        assert game.state_payload()["board"] == b["board"]
        assert game.lines == b["lines"]
    ahead = client.get(f"/api/games/{state['game']}/understudy?turn=50").json()
    assert ahead == boards[-1], "it does not play pieces that the player has not seen"


def test_continuation_plays_on_from_the_present_board(open_studio: OpenStudio) -> None:
    client = open_studio(particles=PARTICLES)
    state, _ = played(client, 10)
    learning(client, state)
    story = client.post(
        f"/api/games/{state['game']}/continuation", json={"moves": 15, "seed": 3}
    ).json()
    assert (
        story
        == client.post(
            f"/api/games/{state['game']}/continuation", json={"moves": 15, "seed": 3}
        ).json()
    )
    assert (
        story
        != client.post(
            f"/api/games/{state['game']}/continuation", json={"moves": 15, "seed": 4}
        ).json()
    )
    assert 1 <= len(story) <= 15
    before = sum(square != "." for row in state["board"] for square in row)
    after = sum(square != "." for row in story[0]["board"] for square in row)
    assert after == before + 4 - 10 * (story[0]["lines"] - state["lines"])
    assert client.get(f"/api/games/{state['game']}").json()["turn"] == 10, (
        "the player's own game is as it was"
    )


def test_quiz_asks_each_turn_once_and_keeps_the_score(open_studio: OpenStudio) -> None:
    client = open_studio(particles=100)
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
        own = [
            m for m in made if m["piece"] == question["piece"] and m["cells"] == question["cells"]
        ]
        assert told["mover"] == "understudy" or own, (
            "a placement said to be the player's is one that the player made"
        )
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
        client.post(
            f"/api/games/{other['game']}/quiz/{question['question']}", json={"guess": "player"}
        ).status_code
        == 404
    )


def test_learning_of_a_game_without_learn_is_refused(client: LocalStudio) -> None:
    state = client.post("/api/games", json={}).json()
    for method, what in (
        ("GET", "learning"),
        ("GET", "understudy"),
        ("POST", "continuation"),
        ("POST", "quiz"),
    ):
        body = {"moves": 3} if what == "continuation" else None
        answer = client.request(method, f"/api/games/{state['game']}/{what}", json=body)
        assert answer.status_code == 409
        assert "not learnt from" in answer.json()["error"]


def test_failed_learning_starts_again_at_the_next_request(
    open_studio: OpenStudio, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = open_studio(particles=100)
    state, _ = played(client, 2)
    monkeypatch.setattr("revealed.studio.learning.learner.log.exception", lambda *_: None)
    with monkeypatch.context() as broken:
        broken.setattr(GameLearner, "learn", lambda *_: 1 / 0)
        # Until the learner has come to it, the answer is what there is.
        answer = client.get(f"/api/games/{state['game']}/learning")
        while "could not be learnt" not in answer.json().get("error", ""):
            answer = client.get(f"/api/games/{state['game']}/learning")
        assert answer.status_code == 503
    assert learning(client, state)["decisions"] == 2


def test_density_of_equal_values_is_one_point() -> None:
    assert density_curve(np.full(5, 2.0)) == {"x": [2.0], "y": [0.0]}
