"""The package's old name is gone.

"understudy" is now the stand-in that acts in a controller's place, in the studio and in prose. As
the name of the package it is left only where old files are read, and in the history.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "tests", "docs", "scripts", "benchmarks", ".ci")
SUFFIXES = (".py", ".md", ".toml", ".yml", ".txt", ".cff", ".js", ".css", ".html", ".svg", "")
MAY_NAME_THE_OLD_PACKAGE = (
    "CHANGELOG.md",
    "docs/upgrade.md",
    "src/revealed/io/old_files.py",  # reads what the old package wrote
    "tests/old_files/*",
    "tests/same_draws/*",  # compares draws with those of the old package
    "tests/test_old_files.py",
    "tests/project/test_old_name.py",
)
MAY_SPEAK_OF_THE_STAND_IN = (
    "README.md",
    "ARCHITECTURE.md",
    "docs/*.md",
    "benchmarks/studio.py",
    "src/revealed/cli/demo.py",
    "src/revealed/cli/play.py",
    "src/revealed/cli/studio.py",
    "src/revealed/studio/*",
    "tests/cli/test_demo.py",
    "tests/web/*",
)
STAND_IN = re.compile(
    r"""
    \b(the|your|its|an|and|of\ the)[\s-]+understudy\b   # prose, and anchors of headings
    | \bunderstudy's\b
    | ["'#./]understudy(-title|-canvas|-text|\.highlighted)?\b(?!\.\w)  # the page, addresses
    | \bUnderstudyBoard\b
    | \b(_play_|test_)?understudy_(board|boards|choice|plays)\w*
    | _play_understudy\b | _an_understudy_
    | ^\|\ understudy\ \|                               # the glossary
    | ^def\ understudy\(rows\) | \(Meadow\(\),\ understudy,  # an example in docs/inverse.md
    """,
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)


def texts(root: Path) -> Iterator[tuple[str, str]]:
    """Every text file of the repository, by its path."""
    tops = [path for path in root.iterdir() if path.is_file() and path.suffix]
    inside = [path for folder in FOLDERS for path in (root / folder).rglob("*")]
    for path in sorted([*tops, *inside]):
        if path.is_file() and path.suffix in SUFFIXES and "__pycache__" not in path.parts:
            yield path.relative_to(root).as_posix(), path.read_text("utf-8", errors="replace")


def old_names(root: Path) -> list[str]:
    """A sentence for each place that has the old name where it is not allowed."""
    found = []
    for name, text in texts(root):
        if any(fnmatch(name, pattern) for pattern in MAY_NAME_THE_OLD_PACKAGE):
            continue
        if any(fnmatch(name, pattern) for pattern in MAY_SPEAK_OF_THE_STAND_IN):
            # what is allowed goes, but not its lines, so that they can be counted
            text = STAND_IN.sub(lambda match: "\n" * match[0].count("\n"), text)
        if "understudy" in name.lower():
            found.append(f"{name} has the old name")
        for number, line in enumerate(text.splitlines(), 1):
            if "understudy" in line.lower():
                found.append(f"{name}, line {number}: {line.strip()[:80]}")
    return found


def test_old_name_is_gone() -> None:
    found = old_names(ROOT)
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("file", "text", "caught"),
    [
        ("docs/index.md", "pip install understudy", True),
        ("docs/index.md", "import understudy as us", True),
        ("docs/index.md", "understudy fit decisions.csv", True),
        ("docs/index.md", "from understudy.fit import fit", True),
        ("docs/index.md", "watch your understudy play; the\nunderstudy's board", False),
        ("src/revealed/api/fit.py", "the understudy plays", True),
        ("src/revealed/studio/quiz.py", 'mover: "player" or "understudy"', False),
        ("src/revealed/studio/quiz.py", 'Path("understudy.db")', True),
        ("src/revealed/studio/quiz.py", 'os.environ["UNDERSTUDY_DB"]', True),
        ("src/revealed/understudy.py", "", True),
        ("CHANGELOG.md", "understudy is called revealed", False),
        ("tests/old_files/write.py", "import understudy", False),
    ],
)
def test_old_name_is_caught_where_it_is_not_the_stand_in(
    tmp_path: Path, file: str, text: str, caught: bool
) -> None:
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(text)
    assert bool(old_names(tmp_path)) == caught, old_names(tmp_path)
