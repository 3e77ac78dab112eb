"""A study in a real browser: made, played by scripted participants, watched, downloaded, read back, drawn and ended."""

from __future__ import annotations

from pathlib import Path

import httpx
import numpy as np
import pytest

pytest.importorskip("playwright", reason="Playwright is not installed")

from playwright.sync_api import Page

import understudy as us
from stagehands import TOKEN, pick
from theatre import NEEDS_BROWSER, Visit, photograph, pieces, place, tab_to, text_matches, wait_for_pieces

pytestmark = NEEDS_BROWSER


def played_by_hand(page: Page, link: str, late: bool) -> None:
    """A participant plays the part that comes next with the keyboard; who is late waits until the first piece falls by itself."""
    page.goto(link)
    page.wait_for_selector("#guest-go:visible")
    tab_to(page, "#guest-go")
    page.keyboard.press("Enter")
    page.wait_for_selector("#game:not([hidden])")
    if late:
        wait_for_pieces(page, 1)
    while (count := pieces(page)) < 6:
        for key in (*["ArrowLeft"] * (count * 2 % 5), "Space"):
            page.keyboard.press(key)
        wait_for_pieces(page, count + 1)
    page.wait_for_selector("#guest:not([hidden])")


def test_a_study_is_made_played_watched_and_taken_home(visit: Visit, ask: httpx.Client, tmp_path: Path) -> None:
    desk, guest = visit().page, visit().page
    desk.goto("/#study")
    desk.fill("[name=token]", TOKEN)
    desk.keyboard.press("Enter")
    desk.wait_for_selector("#desk:not([hidden])")
    desk.fill("#study-form [name=name]", "Four deadlines")
    desk.fill("#study-form [name=participants]", "3")
    for box in desk.query_selector_all("[data-field=pieces]"):
        box.fill("6")
    photograph(desk, tmp_path, "study-new", whole=True)
    desk.click("#study-form [type=submit]")
    desk.wait_for_selector("#one-study:not([hidden])")
    assert desk.inner_text("#one-text") == "4 conditions, 3 participants, open"
    links = [link.get_attribute("href") or "" for link in desk.query_selector_all("#progress a")]
    assert len(set(links)) == 3
    guest.goto(links[0])
    assert text_matches(guest, "#guest-title", ".") == "Welcome"
    assert not guest.is_visible("#nav")
    photograph(guest, tmp_path, "participant-welcome", whole=True)
    for part in range(4):
        played_by_hand(guest, links[0], late=part == 3)
    assert text_matches(guest, "#guest-title", "Thank") == "Thank you"
    photograph(guest, tmp_path, "participant-thanks")
    rng = np.random.default_rng(2)
    for link in links[1:]:
        token = link.rpartition("/")[2]
        for _ in range(4):
            state = ask.post(f"/api/participants/{token}/next").json()
            while not state["over"]:
                state = ask.post(f"/api/games/{state['game']}/moves", json=pick(rng, state)).json()["state"]
    desk.wait_for_function("() => document.querySelectorAll('#progress td[data-state=done]').length === 12")
    study = ask.get(f"/api/studies/{desk.url.rpartition('/')[2]}", headers={"Authorization": f"Bearer {TOKEN}"}).json()
    misses = sum(one["misses"] for one in study["participants"])
    assert misses >= 1
    text_matches(desk, "#progress", f"done: 6 pieces, {study['participants'][0]['conditions'][3]['misses']} missed")
    for ending, read in (("csv", us.from_csv), ("parquet", us.from_parquet)):
        with desk.expect_download() as taken:
            desk.click(f"[data-file='decisions.{ending}']")
        path = tmp_path / taken.value.suggested_filename
        taken.value.save_as(path)
        decisions = read(path, features=["height", "holes", "bumps"], group="participant")
        assert len(decisions) == 3 * 4 * 6 - misses
        assert decisions.groups is not None
        assert len(set(decisions.groups.tolist())) == 3
    desk.click("#find-out")
    desk.wait_for_selector("#found:not([hidden])", timeout=200_000)  # where the engine must be compiled first
    desk.wait_for_function("() => document.querySelectorAll('#found .plot').length === 8")
    desk.wait_for_function(
        "() => [...document.querySelectorAll('#found .plot')].every(p => p.querySelector('.main-svg'))"
    )
    photograph(desk, tmp_path, "study-found", whole=True)
    desk.click("#end-study")
    desk.click("#sure [value=yes]")
    text_matches(desk, "#one-text", "ended$")


def test_a_study_that_ends_says_so_to_who_still_plays(visit: Visit, ask: httpx.Client) -> None:
    head = {"Authorization": f"Bearer {TOKEN}"}
    wanted = {"name": "Short", "conditions": [{"name": "slow", "tau": None, "pieces": 20}], "participants": 1}
    study = ask.post("/api/studies", json=wanted, headers=head).json()
    visitor = visit(phone=True)
    visitor.page.goto(study["participants"][0]["link"])
    visitor.page.tap("#guest-go")
    visitor.page.wait_for_selector("#game:not([hidden])")
    place(visitor.page)
    assert ask.post(f"/api/studies/{study['study']}/end", headers=head).json()["ended"]
    visitor.page.keyboard.press("Space")
    text_matches(visitor.page, "#guest-title", "^This study has ended$")
    visitor.forgive("status of 409")


def test_a_stranger_sees_no_studies(visit: Visit) -> None:
    visitor = visit()
    visitor.page.goto("/#study")
    visitor.page.fill("[name=token]", "not-the-token-at-all")
    visitor.page.keyboard.press("Enter")
    assert "token" in text_matches(visitor.page, "#message-text", ".")
    assert visitor.page.is_visible("#gate")
    assert not visitor.page.is_visible("#desk")
    visitor.page.goto("/p/AAAAAAAAAAAAAAAAAAAAAA")
    text_matches(visitor.page, "#message-text", "^This link is not known")
    visitor.page.goto("/#play/AAAAAAAAAAAAAAAAAAAAAA")
    text_matches(visitor.page, "#message-text", "^There is no such game")
    visitor.page.goto("/#play/%E0%A4%A")
    text_matches(visitor.page, "#message-text", "^There is nothing at this address")
    visitor.forgive("status of 40[14]")
