"""ARCHITECTURE.md matches the tree: folders have their lines, and layers are the tested ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.project.test_imports import HELPERS, LAYERS

ROOT = Path(__file__).parents[2]
MAX_LINES = 400  # of a source file; a longer one wants to be two
MAX_WORDS = 30  # of the glossary
SOURCES = {".py", ".js", ".css", ".html"}
INSIDE = "src/revealed/"


def section(page: str, title: str) -> str:
    """The text below a heading, up to the next heading; empty where there is no such heading."""
    return next(
        (
            text
            for head, _, text in (s.partition("\n") for s in page.split("\n## "))
            if head == title
        ),
        "",
    )


def block(text: str) -> list[str]:
    """The indented lines of a section."""
    return [line for line in text.splitlines() if line.startswith("    ") and line.strip()]


def named_folders(page: str) -> list[str]:
    """The folders that the page has a line for, with the package's below INSIDE."""
    found = []
    for line in block(section(page, "Folders")):
        match = re.match(r"    (  )?(\S+/)  ", line)
        if match:
            found.append((INSIDE if match.group(1) else "") + match.group(2))
    return found


def existing_folders(root: Path) -> set[str]:
    """Folders at the top that git does not ignore, and those of the package."""
    ignored = [
        line.rstrip("/")
        for line in (root / ".gitignore").read_text().splitlines()
        if line and not line.startswith("#")
    ]

    def kept(folder: Path) -> bool:
        hidden = folder.name.startswith(".") and folder.name != ".ci"
        return (
            folder.is_dir()
            and not hidden
            and not any(fnmatch(folder.name, pattern) for pattern in ignored)
        )

    top = {f"{folder.name}/" for folder in root.iterdir() if kept(folder) and folder.name != "src"}
    return (
        top
        | {INSIDE}
        | {f"{INSIDE}{folder.name}/" for folder in (root / INSIDE).iterdir() if kept(folder)}
    )


def wrong_folders(root: Path, page: str) -> Iterator[str]:
    named = named_folders(page)
    for name in sorted({name for name in named if named.count(name) > 1}):
        yield f"{name} is named twice"
    for name in sorted(set(named) - existing_folders(root)):
        yield f"{name} is named, but is not there"
    for name in sorted(existing_folders(root) - set(named)):
        yield f"{name} is not named among the folders"


def wrong_layers(page: str, layers: list[set[str]], helpers: set[str]) -> Iterator[str]:
    text = section(page, "Which way imports point")
    table = [set(line.partition("(")[0].split()) for line in block(text)]
    if len(table) != len(layers):
        yield f"there are {len(table)} lines of layers, and {len(layers)} in the test"
        return
    for shown, tested in zip(table, reversed(layers), strict=True):
        for name in sorted(shown ^ tested):
            where = "here" if name in shown else "in the test"
            yield f"{name} is in the layer of {min(tested)} only {where}"
    said = set(re.findall(r"`(_[a-z]+)\.py`", text))
    for name in sorted(said ^ helpers):
        yield f"{name}.py is used by anybody only {'here' if name in said else 'in the test'}"


def missing_files(root: Path, page: str) -> Iterator[str]:
    for name in re.findall(r"`([\w/]+\.(?:py|md|yml))`", page):
        if not (root / name).is_file() and not (root / INSIDE / name).is_file():
            yield f"{name} is spoken of, but is not there"


def long_files(root: Path) -> Iterator[str]:
    for path in sorted((root / INSIDE).rglob("*")):
        if path.suffix in SOURCES:
            count = len(path.read_text(encoding="utf-8").splitlines())
            if count > MAX_LINES:
                name = path.relative_to(root / INSIDE).as_posix()
                yield f"{name} has {count} lines, more than {MAX_LINES}"


def long_glossary(page: str) -> Iterator[str]:
    words = [
        line for line in section(page, "Glossary").splitlines() if re.match(r"\| (?!word )\w", line)
    ]
    if len(words) > MAX_WORDS:
        yield f"the glossary has {len(words)} words, more than {MAX_WORDS}"


def complaints(root: Path, layers: list[set[str]], helpers: set[str]) -> list[str]:
    """A sentence for each thing that ARCHITECTURE.md says otherwise than the tree."""
    page = (root / "ARCHITECTURE.md").read_text(encoding="utf-8")
    return [
        *wrong_folders(root, page),
        *wrong_layers(page, layers, helpers),
        *missing_files(root, page),
        *long_files(root),
        *long_glossary(page),
    ]


def test_architecture_page_matches_the_tree() -> None:
    found = complaints(ROOT, LAYERS, HELPERS)
    assert not found, "\n".join(found)


PAGE = """# Architecture

## Folders

    .ci/              the test command
    docs/             pages
    scripts/          each does one thing
    src/revealed/     the package
      models/         what is assumed
                      and more of it
      kernels/        loops

## Which way imports point

    models
    kernels   (numpy and numba only)

`_types.py` names the array types.

## Glossary

| word | meaning |
|---|---|
| row | of `kernels/normal.py` |
"""
TREE = {
    ".ci/run": 1,
    ".git/config": 1,
    ".cache/some": 1,
    ".gitignore": 1,
    "site/index.html": 1,
    "docs/index.md": 1,
    "scripts/test": 1,
    "src/revealed/__init__.py": 1,
    "src/revealed/_types.py": 1,
    "src/revealed/models/priors.py": 400,
    "src/revealed/kernels/__init__.py": 0,
    "src/revealed/kernels/normal.py": 9,
    "src/revealed/kernels/static/play.js": 9,
}
WORD = "| row |"


@pytest.mark.parametrize(
    ("lines", "old", "new", "complaint"),
    [
        ({}, "", "", None),
        (
            {"src/revealed/cli/__init__.py": 1},
            "",
            "",
            "src/revealed/cli/ is not named among the folders",
        ),
        ({"data/some.csv": 1}, "", "", "data/ is not named among the folders"),
        ({}, "    .ci/              the test command\n", "", ".ci/ is not named among the folders"),
        ({}, "    docs/ ", "    attic/    old\n    docs/ ", "attic/ is named, but is not there"),
        (
            {},
            "      models/ ",
            "      cellar/   dark\n      models/ ",
            "src/revealed/cellar/ is named, but is not there",
        ),
        (
            {},
            "      models/ ",
            "      kernels/   again\n      models/ ",
            "src/revealed/kernels/ is named twice",
        ),
        ({}, "    models\n", "    models   cli\n", "cli is in the layer of models only here"),
        ({}, "    models\n", "    data\n", "data is in the layer of models only here"),
        (
            {},
            "    kernels   (numpy",
            "    data\n    kernels   (numpy",
            "there are 3 lines of layers, and 2 in the test",
        ),
        (
            {},
            "array types.\n",
            "array types, `_io.py` files.\n",
            "_io.py is used by anybody only here",
        ),
        ({}, "`_types.py` names", "It names", "_types.py is used by anybody only in the test"),
        ({}, "`kernels/normal", "`kernels/student", "kernels/student.py is spoken of"),
        (
            {"src/revealed/models/priors.py": 401},
            "",
            "",
            "models/priors.py has 401 lines, more than 400",
        ),
        (
            {"src/revealed/kernels/static/play.js": 500},
            "",
            "",
            "kernels/static/play.js has 500 lines",
        ),
        (
            {},
            WORD,
            "\n".join([*(f"| w{i} | x |" for i in range(30)), WORD]),
            "the glossary has 31 words",
        ),
    ],
)
def test_wrong_architecture_page_is_caught(
    tmp_path: Path, lines: dict[str, int], old: str, new: str, complaint: str | None
) -> None:
    assert old in PAGE
    for name, count in {**TREE, **lines}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("line\n" * count)
    (tmp_path / ".gitignore").write_text("site/\n*.egg-info/\n")
    (tmp_path / "ARCHITECTURE.md").write_text(PAGE.replace(old, new, 1) if old else PAGE)
    if old.startswith("`_types"):
        (tmp_path / "src/revealed/_io.py").write_text("")
    found = complaints(tmp_path, [{"kernels"}, {"models"}], {"_types"})
    assert complaint is None or any(complaint in sentence for sentence in found), found
    assert bool(found) == (complaint is not None), found
