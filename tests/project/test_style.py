"""Names are the literature's words, and the figures of scripts/style.py are within their limits."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "revealed"
METAPHORS = {
    *("ahead", "along", "aside", "beside", "bend", "bent", "brief", "carried", "cloud", "crowd"),
    *("desk", "door", "doors", "each", "flock", "foresee", "gate", "hands", "heavy", "here"),
    *("hopeless", "house", "judge", "judges", "labour", "labourers", "leap", "leaps", "learnt"),
    *("loose", "loosened", "lopsided", "mimic", "mortal", "mortals", "patience", "pupil"),
    *("ray", "rehearse", "room", "rooms", "scribe", "seal", "shaky", "shelf", "slack", "sloped"),
    *("stagehand", "stagehands", "strangers", "stretched", "sudden", "swing", "tally", "tell"),
    *("tempo", "theatre", "there", "timid", "told", "unbent"),
    *("wander", "weave", "weaves", "weighed", "whose", "willing", "worth", "woven"),
}
"""Words of identifiers that no reader would search for; LITERAL has those that are no metaphor."""
LITERAL = {
    "slack",  # of a linear program
}


def style() -> Any:
    """The module scripts/style.py."""
    spec = importlib.util.spec_from_file_location("style", ROOT / "scripts" / "style.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def words(identifier: str) -> set[str]:
    """The whole words of a name in snake case, camel case or capitals."""
    parts = re.split(r"_|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", identifier)
    return {part.lower() for part in parts if part}


def identifiers(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and name of everything that a module names: what it defines, not what it uses."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id


def metaphors(path: Path) -> list[str]:
    """A sentence for each name of a file that has a metaphor in it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = [(0, path.stem), *identifiers(tree)]
    return [
        f"{path.name}, line {line}: {name}"
        for line, name in names
        if words(name) & (METAPHORS - LITERAL)
    ]


@pytest.mark.parametrize("folder", ["", *sorted(p.name for p in PACKAGE.iterdir() if p.is_dir())])
def test_no_name_is_a_metaphor(folder: str) -> None:
    paths = (PACKAGE / folder).rglob("*.py") if folder else PACKAGE.glob("*.py")
    found = [text for path in paths for text in metaphors(path)]
    assert not found, "\n".join(found)


def test_metaphor_is_caught(tmp_path: Path) -> None:
    file = tmp_path / "prior.py"
    file.write_text("class OpenDoors:\n    def go(self, LABOUR_OF=1): pass\nreach, door = 1, 2\n")
    found = sorted(text.split(": ")[1] for text in metaphors(file))
    assert found == ["LABOUR_OF", "OpenDoors", "door"]
    (tmp_path / "flock.py").write_text("birds = crowded = outdoors = 1")
    assert metaphors(tmp_path / "flock.py") == ["flock.py, line 0: flock"]


def test_figures_of_the_code_are_within_their_limits() -> None:
    found = style().figures(PACKAGE)
    limits: dict[str, Callable[[float], bool]] = {
        "lines over 100": lambda share: share <= 1.0,
        "fmt: skip": lambda count: count == 0,
        "comments": lambda share: share >= 4.0,
        "one-line docstrings": lambda share: share <= 50.0,
        "bare constants": lambda count: count <= 60,
    }
    wrong = [
        f"{name}: {found[name]}"
        for name, holds in limits.items()
        if not holds(float(found[name].rstrip("%")))
    ]
    assert not wrong, "; ".join(wrong)


def test_figures_are_counted_as_documented(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(
        '"""A module."""\n'
        "# a comment\n"
        "LIMIT, OTHER = 1, 2  # not a whole-line comment\n"
        "SETTINGS = dict(one=1)\n"
        "def f():\n"
        '    """One line."""\n'
        "def g():\n"
        '    """Two\n\n    lines."""\n'
        "def h(): pass  # fmt: skip\n"
        f"x = '{'#' * 100}'\n"
    )
    found = style().figures(tmp_path)
    assert found == {
        "lines over 100": "8.3%",
        "fmt: skip": "1",
        "comments": "8.3%",
        "one-line docstrings": "50%",
        "bare constants": "2",
        "with a docstring": "67%",
        "median / longest": "12 / 12",
    }
