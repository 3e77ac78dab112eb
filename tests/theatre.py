"""For tests of the page: a real browser, visitors whose every complaint is heard, and an album for what they saw."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from stagehands import pick

CHROMIUM = Path("/usr/bin/chromium")
NEEDS_BROWSER = pytest.mark.skipif(
    not CHROMIUM.exists(), reason=f"there is no browser at {CHROMIUM} (Debian's package chromium)"
)
ALBUM = "UNDERSTUDY_SCREENSHOTS"  # the folder where pictures of the pages are kept
OPTIONS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
DESK = {"viewport": {"width": 1280, "height": 800}}
PHONE = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "is_mobile": True, "has_touch": True}


@contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's browser, without a window."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=OPTIONS)
        yield browser
        browser.close()


class Visitor:
    """Somebody at a browser of their own. `heard` is every error the page let out: exceptions, and the console's."""

    def __init__(
        self, browser: Browser, address: str, phone: bool = False, scheme: Any = "light", motion: Any = None
    ) -> None:
        self.address, self.heard = address, list[str]()
        self.context = browser.new_context(
            **(PHONE if phone else DESK), color_scheme=scheme, reduced_motion=motion, base_url=address
        )
        self.context.set_default_timeout(20_000)
        self.page = self.another_tab()

    def another_tab(self) -> Page:
        """A page of the same visitor."""
        page = self.context.new_page()
        page.on("pageerror", lambda error: self.heard.append(f"exception: {error}"))
        page.on(
            "console", lambda m: self.heard.append(f"{m.type}: {m.text}") if m.type in ("error", "warning") else None
        )
        return page

    def forgive(self, pattern: str) -> None:
        """The browser itself reports every answer that is not a success: take those that were asked for off the list."""
        self.heard = [each for each in self.heard if not re.search(pattern, each)]

    def leave(self) -> None:
        """Close the browser's window; complains of anything that was heard."""
        self.context.close()
        assert not self.heard, self.heard


Visit = Callable[..., Visitor]


def photograph(page: Page, folder: Path, name: str, whole: bool = False) -> Path:
    """Keep a picture of what the page shows, in the album if there is one, else in a folder of the test's."""
    album = Path(os.environ.get(ALBUM) or folder)
    album.mkdir(parents=True, exist_ok=True)
    path = album / f"{name}.png"
    page.screenshot(path=path, full_page=whole, scale="css")
    return path


def pieces(page: Page) -> int:
    """How many pieces the score line says were placed."""
    return int((page.text_content("#score-pieces") or "").split("/")[0])


def wait_for_pieces(page: Page, count: int) -> None:
    """Until so many pieces were placed."""
    page.wait_for_function("n => parseInt(document.querySelector('#score-pieces').textContent) >= n", arg=count)


def place(page: Page, *keys: str) -> None:
    """Place one piece with these keys, the space bar last."""
    count = pieces(page)
    for key in (*keys, "Space"):
        page.keyboard.press(key)
    wait_for_pieces(page, count + 1)


def tab_to(page: Page, selector: str) -> None:
    """Press the tabulator until the focus is there."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("s => document.activeElement.matches(s)", selector):
            return
    raise AssertionError(f"the tabulator does not lead to {selector}")


def text_matches(page: Page, selector: str, pattern: str) -> str:
    """Wait until an element's text matches; gives the text."""
    page.wait_for_function(
        "([s, p]) => new RegExp(p).test(document.querySelector(s)?.textContent ?? '')", arg=[selector, pattern]
    )
    return page.text_content(selector) or ""


def begin(ask: httpx.Client, **wanted: Any) -> dict[str, Any]:
    """A new game, begun without a page: its first state."""
    answer = ask.post("/api/games", json=wanted)
    assert answer.status_code == 201, answer.text
    state: dict[str, Any] = answer.json()
    return state


def play(ask: httpx.Client, state: dict[str, Any], moves: int, seed: int = 1) -> dict[str, Any]:
    """Play on sensibly, without a page."""
    rng = np.random.default_rng(seed)
    for _ in range(moves):
        if state["over"]:
            break
        answer = ask.post(f"/api/games/{state['game']}/moves", json=pick(rng, state))
        assert answer.status_code == 200, answer.text
        state = answer.json()["state"]
    return state


def open_game(page: Page, state: dict[str, Any], view: str = "play") -> None:
    """Go to a game that exists."""
    page.goto(f"/#{view}/{state['game']}")
    page.wait_for_selector("#game:not([hidden])")


def moves_of(ask: httpx.Client, game: str) -> list[dict[str, Any]]:
    """What the server has on record."""
    moves: list[dict[str, Any]] = ask.get(f"/api/games/{game}/moves").json()
    return moves
