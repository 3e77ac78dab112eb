"""For tests of the page: a real browser, visitors whose errors are recorded, and screenshots.

Every wait ends with what is waited for: an element, a text, a state of the page. The limit of a
wait is minutes, so that it does not matter how busy the machine is.
"""

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

from tests.support.studio_server import PATIENCE, choose_placement

CHROMIUM = Path("/usr/bin/chromium")
NEEDS_BROWSER = pytest.mark.skipif(
    not CHROMIUM.exists(), reason=f"there is no browser at {CHROMIUM} (Debian's package chromium)"
)
SCREENSHOT_FOLDER = "REVEALED_SCREENSHOTS"  # the environment variable that names it
CHROMIUM_OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESKTOP = {"viewport": {"width": 1280, "height": 800}}
PHONE = {
    "viewport": {"width": 390, "height": 844},
    "device_scale_factor": 2,
    "is_mobile": True,
    "has_touch": True,
}
PATIENCE_MILLISECONDS = 1000.0 * PATIENCE


@contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's browser, without a window."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=str(CHROMIUM), args=CHROMIUM_OPTIONS, timeout=PATIENCE_MILLISECONDS
        )
        yield browser
        browser.close()


# A studio that is busy answers 503 with Retry-After: api.js calls such an answer temporary, and the
# page asks again, or tells its reader to. The browser reports every one of them on its console,
# which says nothing of the page; whether there is one depends on how busy the machine is.
BUSY = "Failed to load resource: the server responded with a status of 503"


class Visitor:
    """A visitor with a browser context of its own.

    `errors` are the page's exceptions, and errors and warnings of its console, but for answers of a
    studio that is busy.
    """

    def __init__(
        self,
        browser: Browser,
        address: str,
        phone: bool = False,
        scheme: Any = "light",
        motion: Any = None,
    ) -> None:
        self.address, self.errors = address, list[str]()
        self.context = browser.new_context(
            **(PHONE if phone else DESKTOP),
            color_scheme=scheme,
            reduced_motion=motion,
            base_url=address,
        )
        self.context.set_default_timeout(PATIENCE_MILLISECONDS)
        self.page = self.another_tab()

    def another_tab(self) -> Page:
        """A new page of the same visitor."""
        page = self.context.new_page()
        page.on("pageerror", lambda error: self.errors.append(f"exception: {error}"))
        page.on(
            "console",
            lambda m: (
                self.errors.append(f"{m.type}: {m.text}")
                if m.type in ("error", "warning") and BUSY not in m.text
                else None
            ),
        )
        return page

    def ignore_errors(self, pattern: str) -> None:
        """Take errors that match off the list.

        The browser itself reports every answer that is not a success, also those a test asks for.
        """
        self.errors = [each for each in self.errors if not re.search(pattern, each)]

    def leave(self) -> None:
        """Close the browser's context; fails where the page had an error."""
        self.context.close()
        assert not self.errors, self.errors


Visit = Callable[..., Visitor]


def take_screenshot(page: Page, folder: Path, name: str, whole: bool = False) -> Path:
    """A screenshot of the page: in the folder of the environment variable, or in the test's own."""
    chosen = Path(os.environ.get(SCREENSHOT_FOLDER) or folder)
    chosen.mkdir(parents=True, exist_ok=True)
    path = chosen / f"{name}.png"
    page.screenshot(path=path, full_page=whole, scale="css")
    return path


def pieces_placed(page: Page) -> int:
    """How many pieces the score line says were placed."""
    return int((page.text_content("#score-pieces") or "").split("/")[0])


def wait_for_pieces(page: Page, count: int) -> None:
    """Wait until so many pieces were placed."""
    page.wait_for_function(
        "n => parseInt(document.querySelector('#score-pieces').textContent) >= n", arg=count
    )


def place_piece(page: Page, *keys: str) -> None:
    """Place one piece with these keys, the space bar last."""
    count = pieces_placed(page)
    for key in (*keys, "Space"):
        page.keyboard.press(key)
    wait_for_pieces(page, count + 1)


def frames_painted(page: Page, canvas: str) -> int:
    """How many frames a board has painted, once nothing on it moves any more."""
    page.wait_for_function("s => !document.querySelector(s).isMoving", arg=canvas)
    return int(page.evaluate("s => document.querySelector(s).frames", canvas))


def let_browser_paint(page: Page, frames: int = 10) -> None:
    """Wait until the browser has had so many chances to paint."""
    page.evaluate(
        """count => new Promise((done) => {
          const next = () => (count-- > 0 ? requestAnimationFrame(next) : done());
          next();
        })""",
        frames,
    )


def tab_to(page: Page, selector: str) -> None:
    """Press the tabulator until the focus is on an element."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("s => document.activeElement.matches(s)", selector):
            return
    raise AssertionError(f"the tabulator does not lead to {selector}")


def text_matches(page: Page, selector: str, pattern: str) -> str:
    """Wait until an element's text matches; returns the text."""
    page.wait_for_function(
        "([s, p]) => new RegExp(p).test(document.querySelector(s)?.textContent ?? '')",
        arg=[selector, pattern],
    )
    return page.text_content(selector) or ""


def start_game(api: httpx.Client, **wanted: Any) -> dict[str, Any]:
    """A new game, begun without a page: its first state."""
    answer = api.post("/api/games", json=wanted)
    assert answer.status_code == 201, answer.text
    state: dict[str, Any] = answer.json()
    return state


def play_moves(
    api: httpx.Client, state: dict[str, Any], moves: int, seed: int = 1
) -> dict[str, Any]:
    """The state after some sensible moves, made without a page."""
    rng = np.random.default_rng(seed)
    for _ in range(moves):
        if state["over"]:
            break
        answer = api.post(f"/api/games/{state['game']}/moves", json=choose_placement(rng, state))
        assert answer.status_code == 200, answer.text
        state = answer.json()["state"]
    return state


def open_game(page: Page, state: dict[str, Any], view: str = "play") -> None:
    """Go to a game that exists."""
    page.goto(f"/#{view}/{state['game']}")
    page.wait_for_selector("#game:not([hidden])")


def moves_of(api: httpx.Client, game: str) -> list[dict[str, Any]]:
    """The moves that the server has on record."""
    moves: list[dict[str, Any]] = api.get(f"/api/games/{game}/moves").json()
    return moves
