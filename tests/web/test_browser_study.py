"""A study in a real browser: made, played by participants, watched, downloaded, drawn and ended."""

from __future__ import annotations

from pathlib import Path

import httpx
import numpy as np
import pytest

pytest.importorskip("playwright", reason="Playwright is not installed")

from playwright.sync_api import Page

import revealed as rv
from tests.support.browser import (
    NEEDS_BROWSER,
    Visit,
    pieces_placed,
    place_piece,
    tab_to,
    take_screenshot,
    text_matches,
    wait_for_pieces,
)
from tests.support.studio_server import TOKEN, choose_placement

pytestmark = NEEDS_BROWSER


def played_by_hand(page: Page, link: str, late: bool) -> None:
    """A participant plays the next part with the keyboard.

    Who is late waits until the server says that the first piece has fallen by itself. Deadlines
    missed after that, on a busy machine, do not matter: pieces fall until all are placed.
    """
    page.goto(link)
    page.wait_for_selector("#participant-go:visible")
    tab_to(page, "#participant-go")
    page.keyboard.press("Enter")
    page.wait_for_selector("#game:not([hidden])")
    if late:
        wait_for_pieces(page, 1)
    while (count := pieces_placed(page)) < 6:
        for key in (*["ArrowLeft"] * (count * 2 % 5), "Space"):
            page.keyboard.press(key)
        wait_for_pieces(page, count + 1)
    page.wait_for_selector("#participant:not([hidden])")


@pytest.mark.usefixtures("compiled_results")
def test_study_is_made_played_watched_and_downloaded(
    visit: Visit, api: httpx.Client, tmp_path: Path
) -> None:
    researcher, participant = visit().page, visit().page
    researcher.goto("/#study")
    researcher.fill("[name=token]", TOKEN)
    researcher.keyboard.press("Enter")
    researcher.wait_for_selector("#study-home:not([hidden])")
    researcher.fill("#study-form [name=name]", "Four deadlines")
    researcher.fill("#study-form [name=participants]", "3")
    for box in researcher.query_selector_all("[data-field=pieces]"):
        box.fill("6")
    take_screenshot(researcher, tmp_path, "study-new", whole=True)
    researcher.click("#study-form [type=submit]")
    researcher.wait_for_selector("#one-study:not([hidden])")
    assert researcher.inner_text("#one-text") == "4 conditions, 3 participants, open"
    links = [
        link.get_attribute("href") or "" for link in researcher.query_selector_all("#progress a")
    ]
    assert len(set(links)) == 3
    participant.goto(links[0])
    assert text_matches(participant, "#participant-title", ".") == "Welcome"
    assert not participant.is_visible("#nav")
    take_screenshot(participant, tmp_path, "participant-welcome", whole=True)
    for part in range(4):
        played_by_hand(participant, links[0], late=part == 3)
    assert text_matches(participant, "#participant-title", "Thank") == "Thank you"
    take_screenshot(participant, tmp_path, "participant-thanks")
    rng = np.random.default_rng(2)
    for link in links[1:]:
        token = link.rpartition("/")[2]
        for _ in range(4):
            state = api.post(f"/api/participants/{token}/next").json()
            while not state["over"]:
                state = api.post(
                    f"/api/games/{state['game']}/moves", json=choose_placement(rng, state)
                ).json()["state"]
    researcher.wait_for_function(
        "() => document.querySelectorAll('#progress td[data-state=done]').length === 12"
    )
    study = api.get(
        f"/api/studies/{researcher.url.rpartition('/')[2]}",
        headers={"Authorization": f"Bearer {TOKEN}"},
    ).json()
    misses = sum(one["misses"] for one in study["participants"])
    assert misses >= 1
    text_matches(
        researcher,
        "#progress",
        f"done: 6 pieces, {study['participants'][0]['conditions'][3]['misses']} missed",
    )
    for ending, read in (("csv", rv.read_csv), ("parquet", rv.read_parquet)):
        with researcher.expect_download() as taken:
            researcher.click(f"[data-file='decisions.{ending}']")
        path = tmp_path / taken.value.suggested_filename
        taken.value.save_as(path)
        decisions = read(path, features=["height", "holes", "bumps"], group="participant")
        assert len(decisions) == 3 * 4 * 6 - misses
        assert decisions.groups is not None
        assert len(set(decisions.groups.tolist())) == 3
    researcher.click("#draw-results")
    researcher.wait_for_selector("#results:not([hidden])")
    researcher.wait_for_function("() => document.querySelectorAll('#results .plot').length === 8")
    researcher.wait_for_function(
        "() => [...document.querySelectorAll('#results .plot')]"
        ".every(p => p.querySelector('.main-svg'))"
    )
    take_screenshot(researcher, tmp_path, "study-results", whole=True)
    researcher.click("#end-study")
    researcher.click("#confirm-end [value=yes]")
    text_matches(researcher, "#one-text", "ended$")


def test_ended_study_tells_a_participant_who_still_plays(visit: Visit, api: httpx.Client) -> None:
    head = {"Authorization": f"Bearer {TOKEN}"}
    wanted = {
        "name": "Short",
        "conditions": [{"name": "slow", "deadline_seconds": None, "pieces": 20}],
        "participants": 1,
    }
    study = api.post("/api/studies", json=wanted, headers=head).json()
    visitor = visit(phone=True)
    visitor.page.goto(study["participants"][0]["link"])
    visitor.page.tap("#participant-go")
    visitor.page.wait_for_selector("#game:not([hidden])")
    place_piece(visitor.page)
    assert api.post(f"/api/studies/{study['study']}/end", headers=head).json()["ended"]
    visitor.page.keyboard.press("Space")
    text_matches(visitor.page, "#participant-title", "^This study has ended$")
    visitor.ignore_errors("status of 409")


def test_wrong_token_and_unknown_links_show_a_message(visit: Visit) -> None:
    visitor = visit()
    visitor.page.goto("/#study")
    visitor.page.fill("[name=token]", "not-the-token-at-all")
    visitor.page.keyboard.press("Enter")
    assert "token" in text_matches(visitor.page, "#message-text", ".")
    assert visitor.page.is_visible("#token-entry")
    assert not visitor.page.is_visible("#study-home")
    visitor.page.goto("/p/AAAAAAAAAAAAAAAAAAAAAA")
    text_matches(visitor.page, "#message-text", "^This link is not known")
    visitor.page.goto("/#play/AAAAAAAAAAAAAAAAAAAAAA")
    text_matches(visitor.page, "#message-text", "^There is no such game")
    visitor.page.goto("/#play/%E0%A4%A")
    text_matches(visitor.page, "#message-text", "^There is nothing at this address")
    visitor.ignore_errors("status of 40[14]")
