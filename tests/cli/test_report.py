"""`revealed report`: one page that stands alone."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from revealed.results.load import load
from tests.support.command_line import SMALL, answers, refuses, works, write


class Page(HTMLParser):
    """Collects what a reader and a browser would meet."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.images, self.loads, self.ids, self.links = "", [], [], set(), set()  # type: ignore[var-annotated]

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        given = dict(attrs)
        if tag == "img":
            self.images.append(given)
        if tag in ("link", "script", "iframe", "object"):
            self.loads.append(tag)
        self.loads += [
            v for k, v in given.items() if k in ("src", "srcset") and not v.startswith("data:")
        ]
        self.ids.add(given.get("id"))
        if tag == "a":
            self.links.add(given["href"])

    def handle_data(self, data: str) -> None:
        self.words += data


def test_the_report_is_one_page_that_stands_alone(here: Path) -> None:
    lines = Path("decisions.csv").read_text()
    write(here / "odd.csv", lines.replace("V(0)", "<script>x&y</script>"))
    works("fit", "odd.csv", "--sum-to-zero", "--out", "odd.nc", *SMALL)
    facts = answers("report", "odd.nc", "--out", "r.html")
    assert facts["message"] == load("odd.nc").summary().message
    text = Path("r.html").read_text()
    page = Page()
    page.feed(text)
    assert page.loads == []
    assert "url(" not in text
    assert "@import" not in text
    assert len(page.images) == 5
    assert all(
        image["src"].startswith("data:image/png;base64,") and len(image["alt"]) > 20
        for image in page.images
    )
    assert page.links == {f"#{name}" for name in page.ids if name}
    words = " ".join(page.words.split())
    assert facts["message"] in words
    for part in (
        "<script>x&y</script>",
        "V(2)",
        "sd / prior sd",
        "directions",
        "E_a",
        "composite",
        "prior",
        "a blind guess",
    ):
        assert part in words


@pytest.mark.parametrize("groups", ["hierarchical", "separate"])
def test_report_of_several_groups_and_of_one_of_them(here: Path, groups: str) -> None:
    rng = np.random.default_rng(5)
    lines = [
        f"{t},{i},{int(i == t % 2)},{7 + t % 2},{rng.normal():.4f},{rng.normal():.4f}"
        for t in range(30)
        for i in (0, 1)
    ]
    table = write(
        here / "people.csv", "decision,action,chosen,group,price,size\n" + "\n".join(lines) + "\n"
    )
    works("fit", table, "--groups", groups, "--prior-sd", 2, "--out", "g.nc", *SMALL)
    post = load("g.nc")
    facts = answers("report", "g.nc", "--out", "r.html")
    assert (facts["decisions"], facts["message"]) == (30, post.message)
    page = Page()
    page.feed(Path("r.html").read_text())
    assert page.loads == []
    assert page.links == {f"#{name}" for name in page.ids if name}
    words = " ".join(page.words.split())
    assert " ".join(post.message.split()) in words.replace(" : ", ": ")
    for part in ("What 30 decisions say about 2 groups", "price", "size", "E_a", "made by 2"):
        assert part in words
    assert ("mean price" in words) == (groups == "hierarchical")
    post.report("s.html", "Two people")
    assert "<title>Two people" in Path("s.html").read_text()

    facts = answers("report", "g.nc", "--group", 8, "--out", "one.html")
    assert [each["name"] for each in facts["coefficients"]] == ["price", "size"]
    assert facts["decisions"] == 15
    assert "'9'" in refuses("report", "g.nc", "--group", 9, "--out", "two.html")
    assert "no groups" in refuses("report", "posterior.nc", "--group", 9, "--out", "two.html")
