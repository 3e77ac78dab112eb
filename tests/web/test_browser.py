"""The page in a real browser, with a real server: played, missed, lost, resumed, mimicked, replayed. Never an error."""

from __future__ import annotations

import random
import socket
from itertools import pairwise
from pathlib import Path

import httpx
import pytest

pytest.importorskip("playwright", reason="Playwright is not installed")

from PIL import Image
from playwright.sync_api import Browser

from stagehands import Studio, studio
from theatre import (
    NEEDS_BROWSER,
    Visit,
    Visitor,
    begin,
    moves_of,
    open_game,
    photograph,
    pieces,
    place,
    play,
    tab_to,
    text_matches,
    wait_for_pieces,
)
from understudy.worlds.tetris import read_games

pytestmark = NEEDS_BROWSER


def test_a_whole_game_is_played_by_keyboard_alone(visit: Visit, ask: httpx.Client, tmp_path: Path) -> None:
    visitor, rng = visit(), random.Random(1)
    page = visitor.page
    page.goto("/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    tab_to(page, "[name=pieces]")
    page.keyboard.press("ArrowRight")  # 25 pieces
    tab_to(page, "#start-form button")
    page.keyboard.press("Enter")
    page.wait_for_selector("#game:not([hidden])")
    assert page.evaluate("document.activeElement.id") == "board"
    page.keyboard.press("ArrowLeft")
    text_matches(page, "#spoken", "^Columns? .* not turned")
    for turn in range(25):
        place(page, *["ArrowUp"] * rng.randrange(3), "Home", *["ArrowRight"] * (2 * turn % 9))
    assert page.inner_text("#result-title") == "That was the last piece"
    assert page.evaluate("document.activeElement.id") == "result-title"
    text_matches(page, "#error-text", "of your 25 decisions were not")
    page.wait_for_selector("#densities figure:nth-child(3) .main-svg")
    page.wait_for_selector("#history .main-svg")
    assert len(page.query_selector_all("#densities figure")) == 3
    photograph(page, tmp_path, "game-over")
    game = page.url.rpartition("/")[2]
    made = moves_of(ask, game)
    assert len(made) == 25
    assert not any(move["missed"] for move in made)
    tab_to(page, "#to-replay")
    page.keyboard.press("Enter")
    text_matches(page, "#replay-where", "^0 of 25$")
    page.keyboard.press("ArrowRight")
    text_matches(page, "#replay-where", "^1 of 25$")


def test_a_board_can_be_filled(visit: Visit, ask: httpx.Client) -> None:
    page = visit().page
    open_game(page, begin(ask))
    for _ in range(60):
        place(page)
        if page.is_visible("#result"):
            break
    assert page.inner_text("#result-title") == "The board is full"
    page.keyboard.press("Space")  # nothing more falls
    assert pieces(page) == len(moves_of(ask, page.url.rpartition("/")[2]))
    assert ask.get(f"/api/games/{page.url.rpartition('/')[2]}").json()["why"] == "full"


def test_a_missed_deadline_drops_the_piece(visit: Visit, ask: httpx.Client) -> None:
    page = visit().page
    state = begin(ask, tau=2.0, pieces=4)
    open_game(page, state)
    assert page.is_visible("#clock")
    first = float(page.inner_text("#clock-number").split()[0])
    assert 0.0 <= first <= 2.0
    page.wait_for_function(
        "was => parseFloat(document.querySelector('#clock-number').textContent) < was", arg=max(first, 0.5)
    )
    page.wait_for_function("() => document.querySelector('#score-missed').textContent === '1'")
    assert page.inner_text("#message-text") == "Time was up: the piece fell straight down."
    place(page, "ArrowLeft", "ArrowLeft")
    wait_for_pieces(page, 4)
    made = moves_of(ask, state["game"])
    misses = sum(move["missed"] for move in made)
    assert made[0]["missed"]
    assert 1 <= misses < 4
    assert all(move["rotation"] == 0 and move["column"] in (3, 4) for move in made if move["missed"])
    text_matches(page, "#result-text", f"You missed {misses} deadline")


def test_a_reload_resumes_where_the_last_move_left_it(visit: Visit, ask: httpx.Client) -> None:
    page = visit().page
    state = begin(ask, tau=60.0, learn=True)
    open_game(page, state)
    for _ in range(5):
        place(page, "ArrowLeft")
    before = page.text_content("#board-text")
    page.reload()
    wait_for_pieces(page, 5)
    assert page.text_content("#board-text") == before
    place(page, "ArrowRight")
    assert len(moves_of(ask, state["game"])) == 6
    text_matches(page, "#error-text", "of your 6 decisions")


def test_two_tabs_agree_in_the_end(visit: Visit, ask: httpx.Client) -> None:
    visitor = visit()
    one, other = visitor.page, visitor.another_tab()
    state = begin(ask)
    for page in (one, other):
        open_game(page, state)
    place(one, "ArrowLeft")
    other.keyboard.press("ArrowRight")
    other.keyboard.press("Space")
    assert "went on in another tab" in text_matches(other, "#message-text", ".")
    wait_for_pieces(other, 1)
    assert other.text_content("#board-text") == one.text_content("#board-text")
    place(other)
    assert len(moves_of(ask, state["game"])) == 2
    visitor.forgive("status of 409")


def test_a_lost_connection_keeps_the_move(visit: Visit, ask: httpx.Client) -> None:
    visitor = visit()
    page, state = visitor.page, begin(ask)
    open_game(page, state)
    place(page)
    visitor.context.set_offline(True)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Space")
    assert "Your move is kept and sent again" in text_matches(page, "#message-text", "connection is lost")
    page.keyboard.press("Space")  # nothing else can be sent meanwhile
    visitor.context.set_offline(False)
    text_matches(page, "#message-text", "connection is back, and your move is saved")
    wait_for_pieces(page, 2)
    assert len(moves_of(ask, state["game"])) == 2
    visitor.forgive("ERR_INTERNET_DISCONNECTED")


def test_a_killed_server_comes_back_and_the_game_goes_on(browser: Browser, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    first = Studio(str(tmp_path / "studio.db"), "--port", port)
    visitor = Visitor(browser, first.address)
    page = visitor.page
    page.goto("/")
    page.uncheck("[name=learn]")
    page.click("#start-form button")
    page.wait_for_selector("#game:not([hidden])")
    for _ in range(3):
        place(page, "ArrowLeft")
    first.kill()
    page.keyboard.press("Space")
    text_matches(page, "#message-text", "connection is lost")
    with studio(str(tmp_path / "studio.db"), "--port", port) as second:
        text_matches(page, "#message-text", "connection is back, and your move is saved")
        wait_for_pieces(page, 4)
        place(page)
        with httpx.Client(base_url=second.address) as client:
            assert len(moves_of(client, page.url.rpartition("/")[2])) == 5
        visitor.forgive("ERR_CONNECTION")
        visitor.leave()


def test_the_board_is_painted_only_while_something_moves(visit: Visit, ask: httpx.Client) -> None:
    page = visit().page
    open_game(page, begin(ask))
    place(page)
    page.wait_for_timeout(500)
    frames = "document.querySelector('#board-canvas').frames"
    before = page.evaluate(frames)
    page.wait_for_timeout(400)
    assert page.evaluate(frames) == before
    page.keyboard.press("ArrowLeft")
    page.wait_for_function(f"() => {frames} > {before + 2}")  # it glides


def test_less_motion_where_that_is_wished(visit: Visit, ask: httpx.Client) -> None:
    page = visit(motion="reduce").page
    open_game(page, begin(ask))
    place(page)
    page.wait_for_timeout(200)
    frames = "document.querySelector('#board-canvas').frames"
    before = page.evaluate(frames)
    page.keyboard.press("ArrowLeft")
    page.wait_for_timeout(200)
    assert page.evaluate(frames) == before + 1  # it is there at once


def test_a_phone_plays_by_touch(visit: Visit, ask: httpx.Client) -> None:
    visitor = visit(phone=True)
    page, state = visitor.page, begin(ask, learn=True)
    open_game(page, state)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    for selector in ("#board", "#buttons"):
        box = page.locator(selector).bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
        assert box["y"] + box["height"] <= 844
    board = page.locator("#board").bounding_box()
    assert board is not None
    x, y = board["x"] + board["width"] / 2, board["y"] + board["height"] / 2
    page.touchscreen.tap(x, y)
    text_matches(page, "#spoken", "turned once|No room")  # O has nothing to turn
    finger = visitor.context.new_cdp_session(page)

    def swipe(*path: tuple[float, float]) -> None:
        finger.send(
            "Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": path[0][0], "y": path[0][1]}]}
        )
        for start, end in pairwise(path):
            for step in range(1, 6):
                at = {"x": start[0] + (end[0] - start[0]) * step / 5, "y": start[1] + (end[1] - start[1]) * step / 5}
                finger.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [at]})
        finger.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})

    swipe((x, y), (x - board["width"] / 2, y))
    text_matches(page, "#spoken", "^Columns? 1|No room")
    swipe((x, y), (x, y + 150))
    wait_for_pieces(page, 1)
    assert moves_of(ask, state["game"])[0]["column"] == 0
    for name in ("Left", "Turn", "Right", "Drop"):
        page.get_by_role("button", name=name, exact=True).tap()
    wait_for_pieces(page, 2)


def test_the_understudy_plays_beside_and_on(visit: Visit, ask: httpx.Client, tmp_path: Path) -> None:
    page = visit().page
    state = play(ask, begin(ask, learn=True, seed=7), 14)
    open_game(page, state, "mimic")
    text_matches(page, "#beside-text", "it has placed 14:|board is full")
    place(page, "ArrowLeft")
    text_matches(page, "#beside-text", "it has placed 15:|board is full")
    photograph(page, tmp_path, "beside")
    page.click("#stage")
    text_matches(page, "#beside-text", r"On stage, from your board: ([3-9]|\d\d) pieces placed")
    page.focus("#board")
    place(page, "ArrowRight")  # one's own game goes on meanwhile
    page.click("#stage-stop")
    text_matches(page, "#beside-text", "it has placed 16:|board is full")


def test_who_moved_is_asked_and_scored(visit: Visit, ask: httpx.Client, tmp_path: Path) -> None:
    page = visit().page
    state = play(ask, begin(ask, learn=True, seed=3), 20)
    open_game(page, state, "mimic")
    for asked in (1, 2, 3):
        page.click("#quiz-ask")
        page.wait_for_selector("[data-guess=player]:visible")
        if asked == 2:
            photograph(page, tmp_path, "quiz")
        page.click(f"[data-guess={'player' if asked % 2 else 'understudy'}]")
        assert text_matches(page, "#quiz-answer", ".") in {
            f"{verdict}: it was the {who}." for verdict in ("Right", "No") for who in ("player", "understudy")
        }
        text_matches(page, "#quiz-score", f"^[0-{asked}] of {asked} right so far")


def test_a_recorded_game_is_replayed_and_taken_along(visit: Visit, ask: httpx.Client, tmp_path: Path) -> None:
    page = visit().page
    state = play(ask, begin(ask, seed=5), 12)
    page.goto(f"/replay/{state['game']}")
    text_matches(page, "#replay-where", "^0 of 12$")
    page.select_option("#replay-speed", "30")
    page.click("#replay-play")
    text_matches(page, "#replay-where", "^12 of 12$")
    page.wait_for_function("() => document.querySelector('#replay-play').textContent === 'Play'")
    page.click("#replay-back")
    text_matches(page, "#replay-where", "^11 of 12$")
    page.fill("#replay-scrub", "12")
    text_matches(page, "#replay-where", "^12 of 12$")
    words = ask.get(f"/api/games/{state['game']}").json()["board"]
    heights = [next((30 - row for row in range(30) if words[row][column] != "."), 0) for column in range(10)]
    assert ", ".join(map(str, heights)) in (page.get_attribute("#replay-canvas", "aria-label") or "")
    with page.expect_download() as film:
        page.click("#gif")
    film.value.save_as(tmp_path / "game.gif")
    with Image.open(tmp_path / "game.gif") as picture:
        assert picture.format == "GIF"
        assert getattr(picture, "n_frames", 1) >= 12
    with page.expect_download() as lines:
        page.click("#jsonl")
    lines.value.save_as(tmp_path / "game.jsonl")
    assert len(read_games(tmp_path / "game.jsonl").decisions()) == 12
