"""Every page in a real browser: readable, with a name for everything, no wider than a phone, and photographed."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

pytest.importorskip("playwright", reason="Playwright is not installed")

from PIL import Image

from stagehands import TOKEN
from theatre import NEEDS_BROWSER, Visit, begin, photograph, play, text_matches

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
    ("accent-ink", "accent"), ("accent", "wash"), ("ink", "wash"), ("good", "good-wash"), ("wrong", "wrong-wash"),
    ("ink", "note-wash"), ("good", "card"), ("wrong", "paper"),
]  # fmt: skip
SHAPES = [(f"piece-{letter}", "board") for letter in "IOTSZJLX"] + [(f"hue-{n}", "card") for n in range(1, 7)] + [
    ("focus", "paper"), ("focus", "card"), ("good", "line"),
]  # fmt: skip
NAMELESS = """() => [...document.querySelectorAll('a, button, input, select, canvas[role=img], [role=application]')]
  .filter(e => e.checkVisibility())
  .filter(e => !(e.getAttribute('aria-label') || e.textContent.trim() || [...(e.labels ?? [])].some(l => l.textContent.trim())))
  .map(e => e.outerHTML)"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everything_can_be_read_and_has_a_name(visit: Visit, ask: httpx.Client, scheme: str) -> None:
    page = visit(scheme=scheme).page
    page.goto("/")
    page.wait_for_selector("#start:not([hidden])")
    for pairs, least in ((TEXTS, 4.5), (SHAPES, 3.0)):
        for pair, ratio in zip(pairs, page.evaluate(LUMINANCE, pairs), strict=True):
            assert ratio >= least, (pair, ratio)
    state = play(ask, begin(ask, learn=True), 3)
    for view in (
        "",
        f"#play/{state['game']}",
        f"#mimic/{state['game']}",
        f"#replay/{state['game']}",
        "#replay",
        "#study",
    ):
        page.goto(f"/{view}")
        page.wait_for_timeout(150)
        assert page.evaluate(NAMELESS) == []
        assert page.evaluate("[...document.querySelectorAll('h1')].filter(h => h.checkVisibility()).length") == 1


def test_each_page_is_photographed(visit: Visit, ask: httpx.Client, tmp_path: Path) -> None:
    state = play(ask, begin(ask, learn=True, seed=11, tau=60.0), 40)
    head = {"Authorization": f"Bearer {TOKEN}"}
    conditions = [{"name": f"{tau} s", "tau": tau, "pieces": 20} for tau in (10.0, 3.0)]
    study = ask.post(
        "/api/studies", json={"name": "Haste", "conditions": conditions, "participants": 2}, headers=head
    ).json()
    pages = {
        "start": ("/", "#start:not([hidden])"),
        "play": (f"/#play/{state['game']}", "#history .main-svg"),
        "mimic": (f"/#mimic/{state['game']}", "#beside:not([hidden])"),
        "replay": (f"/replay/{state['game']}", "#replay-game:not([hidden])"),
        "study": (f"/#study/{study['study']}", "#one-study:not([hidden])"),
        "participant": (study["participants"][0]["link"], "#guest-go:visible"),
    }
    for phone, scheme in ((False, "light"), (True, "dark")):
        visitor = visit(phone=phone, scheme=scheme, motion="reduce")
        visitor.context.add_init_script(f"sessionStorage.setItem('understudy.token', {TOKEN!r})")
        for name, (address, sign) in pages.items():
            visitor.page.goto(address)
            visitor.page.wait_for_selector(sign)
            if name == "replay":
                visitor.page.click("#replay-last")
            if name == "mimic":
                text_matches(visitor.page, "#beside-text", "has placed 40|board is full")
            assert visitor.page.evaluate("document.documentElement.scrollWidth") == (390 if phone else 1280), name
            path = photograph(visitor.page, tmp_path, f"{'phone' if phone else 'desk'}-{name}", whole=phone)
            with Image.open(path) as picture:
                assert len(picture.convert("RGB").getcolors(1 << 24) or ()) > 8  # more than an empty page
