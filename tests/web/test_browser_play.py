"""The page in a real browser with a real server: played, missed, lost, resumed, learnt, replayed.

No page may have an error in its console.
"""

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

from revealed.environments.tetris import read_games
from tests.support.browser import (
    NEEDS_BROWSER,
    Visit,
    Visitor,
    frames_painted,
    let_browser_paint,
    moves_of,
    open_game,
    pieces_placed,
    place_piece,
    play_moves,
    start_game,
    tab_to,
    take_screenshot,
    text_matches,
    wait_for_pieces,
)
from tests.support.studio_server import PATIENCE, StudioProcess, choose_worst, run_studio

pytestmark = NEEDS_BROWSER


def test_whole_game_is_played_by_keyboard_alone(
    visit: Visit, api: httpx.Client, tmp_path: Path
) -> None:
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
        place_piece(page, *["ArrowUp"] * rng.randrange(3), "Home", *["ArrowRight"] * (2 * turn % 9))
    assert page.inner_text("#result-title") == "That was the last piece"
    assert page.evaluate("document.activeElement.id") == "result-title"
    text_matches(page, "#error-text", "of your 25 decisions were not")
    page.wait_for_selector("#densities figure:nth-child(3) .main-svg")
    page.wait_for_selector("#history .main-svg")
    assert len(page.query_selector_all("#densities figure")) == 3
    take_screenshot(page, tmp_path, "game-over")
    game = page.url.rpartition("/")[2]
    made = moves_of(api, game)
    assert len(made) == 25
    assert not any(move["missed"] for move in made)
    tab_to(page, "#to-replay")
    page.keyboard.press("Enter")
    text_matches(page, "#replay-where", "^0 of 25$")
    page.keyboard.press("ArrowRight")
    text_matches(page, "#replay-where", "^1 of 25$")


def test_full_board_ends_the_game(visit: Visit, api: httpx.Client) -> None:
    page = visit().page
    open_game(page, start_game(api))
    for _ in range(60):
        place_piece(page)
        if page.is_visible("#result"):
            break
    assert page.inner_text("#result-title") == "The board is full"
    page.keyboard.press("Space")  # nothing more falls
    assert pieces_placed(page) == len(moves_of(api, page.url.rpartition("/")[2]))
    assert api.get(f"/api/games/{page.url.rpartition('/')[2]}").json()["why"] == "full"


def test_deadline_missed_drops_the_piece_where_it_appeared(visit: Visit, api: httpx.Client) -> None:
    page = visit().page
    state = start_game(api, deadline_seconds=1.0, pieces=3)
    open_game(page, state)
    # Nobody touches a key: the server says when each deadline has passed, however long that takes.
    text_matches(page, "#result-text", "You missed 3 deadlines")
    assert page.text_content("#score-missed") == "3"
    assert page.text_content("#message-text") == "Time was up: the piece fell straight down."
    made = moves_of(api, state["game"])
    assert [move["missed"] for move in made] == [True] * 3
    assert all(move["rotation"] == 0 and move["column"] in (3, 4) for move in made)


def test_deadline_kept_counts_down_and_takes_the_move(visit: Visit, api: httpx.Client) -> None:
    page = visit().page
    # A minute, the longest there is: longer than a busy machine stalls.
    state = start_game(api, deadline_seconds=60.0, pieces=4)
    open_game(page, state)
    assert page.is_visible("#clock")
    first = float(page.inner_text("#clock-number").split()[0])
    assert 0.0 <= first <= 60.0
    page.wait_for_function(
        "was => parseFloat(document.querySelector('#clock-number').textContent) < was", arg=first
    )
    place_piece(page, "ArrowLeft", "ArrowLeft")
    assert [move["missed"] for move in moves_of(api, state["game"])] == [False]
    assert page.text_content("#score-missed") == "0"


def test_reload_resumes_after_the_last_move(visit: Visit, api: httpx.Client) -> None:
    page = visit().page
    state = start_game(api, learn=True)
    open_game(page, state)
    for _ in range(5):
        place_piece(page, "ArrowLeft")
    before = page.text_content("#board-text")
    page.reload()
    wait_for_pieces(page, 5)
    assert page.text_content("#board-text") == before
    place_piece(page, "ArrowRight")
    assert len(moves_of(api, state["game"])) == 6
    text_matches(page, "#error-text", "of your 6 decisions")


def test_two_tabs_show_the_same_game_after_a_conflict(visit: Visit, api: httpx.Client) -> None:
    visitor = visit()
    one, other = visitor.page, visitor.another_tab()
    state = start_game(api)
    for page in (one, other):
        open_game(page, state)
    place_piece(one, "ArrowLeft")
    other.keyboard.press("ArrowRight")
    other.keyboard.press("Space")
    assert "went on in another tab" in text_matches(other, "#message-text", ".")
    wait_for_pieces(other, 1)
    assert other.text_content("#board-text") == one.text_content("#board-text")
    place_piece(other)
    assert len(moves_of(api, state["game"])) == 2
    visitor.ignore_errors("status of 409")


def test_lost_connection_keeps_the_move_and_sends_it_again(visit: Visit, api: httpx.Client) -> None:
    visitor = visit()
    page, state = visitor.page, start_game(api)
    open_game(page, state)
    place_piece(page)
    visitor.context.set_offline(True)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Space")
    assert "Your move is kept and sent again" in text_matches(
        page, "#message-text", "connection is lost"
    )
    page.keyboard.press("Space")  # nothing else can be sent meanwhile
    visitor.context.set_offline(False)
    text_matches(page, "#message-text", "connection is back, and your move is saved")
    wait_for_pieces(page, 2)
    assert len(moves_of(api, state["game"])) == 2
    visitor.ignore_errors("ERR_INTERNET_DISCONNECTED")


def test_game_goes_on_after_the_server_was_killed(browser: Browser, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    first = StudioProcess(str(tmp_path / "studio.db"), "--port", port)
    visitor = Visitor(browser, first.address)
    page = visitor.page
    page.goto("/")
    page.uncheck("[name=learn]")
    page.click("#start-form button")
    page.wait_for_selector("#game:not([hidden])")
    for _ in range(3):
        place_piece(page, "ArrowLeft")
    first.kill()
    page.keyboard.press("Space")
    text_matches(page, "#message-text", "connection is lost")
    with run_studio(str(tmp_path / "studio.db"), "--port", port) as second:
        text_matches(page, "#message-text", "connection is back, and your move is saved")
        wait_for_pieces(page, 4)
        place_piece(page)
        with httpx.Client(base_url=second.address, timeout=PATIENCE) as client:
            assert len(moves_of(client, page.url.rpartition("/")[2])) == 5
        visitor.ignore_errors("ERR_CONNECTION")
        visitor.leave()


def test_lapses_stand_beside_the_values(browser: Browser, tmp_path: Path) -> None:
    with run_studio(str(tmp_path / "studio.db"), "--lapse", "--particles", "200") as studio:
        studio.wait_until_learning()
        visitor = Visitor(browser, studio.address)
        page = visitor.page
        with httpx.Client(base_url=studio.address, timeout=PATIENCE) as client:
            state = play_moves(client, start_game(client, seed=5, learn=True), 15)
            move = choose_worst(state)
            client.post(f"/api/games/{state['game']}/moves", json=move).raise_for_status()
        open_game(page, state)
        page.wait_for_selector("#densities figure:nth-child(4) .main-svg")
        text_matches(page, "#densities figure:nth-child(4) figcaption", "^lapses.*% ± .*%")
        text_matches(page, "#lapses", "Probably lapses, .*: decision.* 16\\s\\(")
        text_matches(page, "#history", "probably a lapse")
        take_screenshot(page, tmp_path, "lapses", whole=True)
        visitor.leave()


def test_board_is_painted_only_while_something_moves(visit: Visit, api: httpx.Client) -> None:
    page = visit().page
    open_game(page, start_game(api))
    place_piece(page)
    before = frames_painted(page, "#board-canvas")
    let_browser_paint(page)
    assert frames_painted(page, "#board-canvas") == before
    page.keyboard.press("ArrowLeft")
    text_matches(page, "#spoken", "^Column|^No room")
    assert frames_painted(page, "#board-canvas") > before + 2  # it glides


def test_reduced_motion_moves_the_piece_in_one_frame(visit: Visit, api: httpx.Client) -> None:
    page = visit(motion="reduce").page
    open_game(page, start_game(api))
    place_piece(page)
    before = frames_painted(page, "#board-canvas")
    page.keyboard.press("ArrowLeft")
    text_matches(page, "#spoken", "^Column|^No room")
    let_browser_paint(page)
    assert frames_painted(page, "#board-canvas") == before + 1  # it is there at once


def test_phone_plays_by_touch(visit: Visit, api: httpx.Client) -> None:
    visitor = visit(phone=True)
    page, state = visitor.page, start_game(api, learn=True)
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
            "Input.dispatchTouchEvent",
            {"type": "touchStart", "touchPoints": [{"x": path[0][0], "y": path[0][1]}]},
        )
        for start, end in pairwise(path):
            for step in range(1, 6):
                at = {
                    "x": start[0] + (end[0] - start[0]) * step / 5,
                    "y": start[1] + (end[1] - start[1]) * step / 5,
                }
                finger.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [at]})
        finger.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})

    swipe((x, y), (x - board["width"] / 2, y))
    text_matches(page, "#spoken", "^Columns? 1|No room")
    swipe((x, y), (x, y + 150))
    wait_for_pieces(page, 1)
    assert moves_of(api, state["game"])[0]["column"] == 0
    for name in ("Left", "Turn", "Right", "Drop"):
        page.get_by_role("button", name=name, exact=True).tap()
    wait_for_pieces(page, 2)


def test_understudy_plays_the_same_pieces_and_plays_on_alone(
    visit: Visit, api: httpx.Client, tmp_path: Path
) -> None:
    page = visit().page
    state = play_moves(api, start_game(api, learn=True, seed=7), 14)
    open_game(page, state, "mimic")
    text_matches(page, "#understudy-text", "it has placed 14:|board is full")
    place_piece(page, "ArrowLeft")
    text_matches(page, "#understudy-text", "it has placed 15:|board is full")
    take_screenshot(page, tmp_path, "understudy")
    page.click("#continuation-start")
    text_matches(
        page,
        "#understudy-text",
        r"Playing on from your board: ([3-9]|\d\d) pieces placed|played on from your board",
    )
    page.focus("#board")
    place_piece(page, "ArrowRight")  # one's own game goes on meanwhile
    page.click("#continuation-stop")
    text_matches(page, "#understudy-text", "it has placed 16:|board is full")


def test_quiz_asks_and_keeps_the_score(visit: Visit, api: httpx.Client, tmp_path: Path) -> None:
    page = visit().page
    state = play_moves(api, start_game(api, learn=True, seed=3), 20)
    open_game(page, state, "mimic")
    for asked in (1, 2, 3):
        page.click("#quiz-ask")
        page.wait_for_selector("[data-guess=player]:visible")
        if asked == 2:
            take_screenshot(page, tmp_path, "quiz")
        page.click(f"[data-guess={'player' if asked % 2 else 'understudy'}]")
        assert text_matches(page, "#quiz-answer", ".") in {
            f"{verdict}: it was the {who}."
            for verdict in ("Right", "No")
            for who in ("player", "understudy")
        }
        text_matches(page, "#quiz-score", f"^[0-{asked}] of {asked} right so far")


def test_recorded_game_is_replayed_and_downloaded(
    visit: Visit, api: httpx.Client, tmp_path: Path
) -> None:
    page = visit().page
    state = play_moves(api, start_game(api, seed=5), 12)
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
    words = api.get(f"/api/games/{state['game']}").json()["board"]
    heights = [
        next((30 - row for row in range(30) if words[row][column] != "."), 0)
        for column in range(10)
    ]
    assert ", ".join(map(str, heights)) in (
        page.get_attribute("#replay-canvas", "aria-label") or ""
    )
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
