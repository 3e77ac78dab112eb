"""`revealed reproduce`: the studies of the paper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.cases import mark_slow
from tests.support.command_line import answers
from tests.support.short_studies import limit_draws

FEW_DRAWS = 60  # no number is looked at


@pytest.mark.parametrize("draws", mark_slow([FEW_DRAWS, "all"], lambda draws: draws == FEW_DRAWS))
def test_the_paper_is_reproduced_and_the_same_seed_gives_the_same_numbers(
    here: Path, monkeypatch: pytest.MonkeyPatch, draws: Any
) -> None:
    if draws != "all":
        limit_draws(monkeypatch, draws)
    first = answers("reproduce", "all", "--quick", "--out", "one", "--no-progress")
    answers("reproduce", "toy", "--quick", "--out", "two", "--no-progress")
    folder = here / "one" / "pressure"
    assert {p.name for p in folder.iterdir()} == {
        "study.json",
        "index.html",
        *(f"figure-{n}.{kind}" for n in (1, 2, 3) for kind in ("png", "pdf")),
    }
    assert "left out" in first["left_out"]["pressure, from a person"]
    made = [path.relative_to(here / "one") for path in (here / "one").rglob("*.*")]
    assert {path.parts[0] for path in made} == {"toy", "tetris", "pressure", "index.html"}
    for path in (
        path for path in made if path.parts[0] == "toy" and path.suffix != ".pdf"
    ):  # whose letters may be ordered anew
        assert (here / "one" / path).read_bytes() == (here / "two" / path).read_bytes(), path
    assert "The paper:" in (folder / "index.html").read_text()
