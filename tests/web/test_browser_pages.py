"""Every page in a real browser: readable, with a name for every control, no wider than a phone."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

pytest.importorskip("playwright", reason="Playwright is not installed")

from PIL import Image

from tests.support.browser import (
    NEEDS_BROWSER,
    Visit,
    play_moves,
    start_game,
    take_screenshot,
    text_matches,
)
from tests.support.studio_server import TOKEN

pytestmark = NEEDS_BROWSER


LUMINANCE = """names => {
  const light = name => {
    const hex = getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
    const [r, g, b] = [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16) / 255)
      .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  return names.map(([one, other]) => {
    const [a, b] = [light(one), light(other)].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  });
}"""
TEXTS = [(text, ground) for text in ("ink", "soft", "accent") for ground in ("paper", "card")] + [
    ("accent-ink", "accent"),
    ("accent", "wash"),
    ("ink", "wash"),
    ("good", "good-wash"),
    ("wrong", "wrong-wash"),
    ("ink", "note-wash"),
    ("good", "card"),
    ("wrong", "paper"),
]
SHAPES = (
    [(f"piece-{letter}", "board") for letter in "IOTSZJLX"]
    + [(f"hue-{n}", "card") for n in range(1, 7)]
    + [
        ("focus", "paper"),
        ("focus", "card"),
        ("good", "line"),
    ]
)
NAMELESS = """() => [...document.querySelectorAll(
    'a, button, input, select, canvas[role=img], [role=application]')]
  .filter(e => e.checkVisibility())
  .filter(e => !(e.getAttribute('aria-label') || e.textContent.trim()
    || [...(e.labels ?? [])].some(l => l.textContent.trim())))
  .map(e => e.outerHTML)"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_have_contrast_and_controls_have_names(
    visit: Visit, api: httpx.Client, scheme: str
) -> None:
    page = visit(scheme=scheme).page
    page.goto("/")
    page.wait_for_selector("#start:not([hidden])")
    for pairs, least in ((TEXTS, 4.5), (SHAPES, 3.0)):
        for pair, ratio in zip(pairs, page.evaluate(LUMINANCE, pairs), strict=True):
            assert ratio >= least, (pair, ratio)
    state = play_moves(api, start_game(api, learn=True), 3)
    views = {
        "": "#start",
        f"#play/{state['game']}": "#learn",
        f"#mimic/{state['game']}": "#understudy",
        f"#replay/{state['game']}": "#replay-game",
        "#replay": "#replay-none",
        "#study": "#token-entry",
    }
    for view, shown in views.items():
        page.goto(f"/{view}")
        page.wait_for_selector(f"{shown}:visible")
        assert page.evaluate(NAMELESS) == []
        assert (
            page.evaluate(
                "[...document.querySelectorAll('h1')].filter(h => h.checkVisibility()).length"
            )
            == 1
        )


def test_each_page_fits_desktop_and_phone(visit: Visit, api: httpx.Client, tmp_path: Path) -> None:
    state = play_moves(api, start_game(api, learn=True, seed=11, deadline_seconds=60.0), 40)
    head = {"Authorization": f"Bearer {TOKEN}"}
    conditions = [
        {"name": f"{seconds} s", "deadline_seconds": seconds, "pieces": 20}
        for seconds in (10.0, 3.0)
    ]
    study = api.post(
        "/api/studies",
        json={"name": "Haste", "conditions": conditions, "participants": 2},
        headers=head,
    ).json()
    pages = {
        "start": ("/", "#start:not([hidden])"),
        "play": (f"/#play/{state['game']}", "#history .main-svg"),
        "mimic": (f"/#mimic/{state['game']}", "#understudy:not([hidden])"),
        "replay": (f"/replay/{state['game']}", "#replay-game:not([hidden])"),
        "study": (f"/#study/{study['study']}", "#one-study:not([hidden])"),
        "participant": (study["participants"][0]["link"], "#participant-go:visible"),
    }
    for phone, scheme in ((False, "light"), (True, "dark")):
        visitor = visit(phone=phone, scheme=scheme, motion="reduce")
        visitor.context.add_init_script(f"sessionStorage.setItem('revealed.token', {TOKEN!r})")
        for name, (address, sign) in pages.items():
            visitor.page.goto(address)
            visitor.page.wait_for_selector(sign)
            if name == "replay":
                visitor.page.click("#replay-last")
            if name == "mimic":
                # Forty, or more where a slow machine lets deadlines pass while pages are shown.
                text_matches(visitor.page, "#understudy-text", r"has placed \d\d|board is full")
            assert visitor.page.evaluate("document.documentElement.scrollWidth") == (
                390 if phone else 1280
            ), name
            path = take_screenshot(
                visitor.page, tmp_path, f"{'phone' if phone else 'desktop'}-{name}", whole=phone
            )
            with Image.open(path) as picture:
                assert (
                    len(picture.convert("RGB").getcolors(1 << 24) or ()) > 8
                )  # more than an empty page
