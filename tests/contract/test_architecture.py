"""ARCHITECTURE.md matches the tree: every room has its line and every line its room, in the layer it is tested to be in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

from contract.test_imports import HELPERS, LAYERS

ROOT = Path(__file__).parents[2]
LONG = 400  # lines; a longer room says why
SOURCES = {".py", ".js", ".css", ".html"}


def section(page: str, title: str) -> str:
    """What stands below a heading, up to the next; nothing where there is no such heading."""
    return next((text for head, _, text in (s.partition("\n") for s in page.split("\n## ")) if head == title), "")


def block(text: str) -> list[str]:
    """The lines that are set off by four spaces, without these."""
    return [line[4:].rstrip() for line in text.splitlines() if line.startswith("    ") and line.strip()]


def rooms(page: str) -> list[str]:
    """The paths that the list of rooms names, from the top of the tree; a folder ends with a slash."""
    found: list[str] = []
    above: list[tuple[int, str]] = []
    for line in block(section(page, "The rooms")):
        depth, name = len(line) - len(line.lstrip()), line.split()[0]
        above = [(at, folder) for at, folder in above if at < depth]
        found.append("".join(folder for _, folder in above) + name)
        if name.endswith("/"):
            above.append((depth, name))
    return found


def sources(root: Path) -> list[Path]:
    return sorted(path for path in (root / "src").rglob("*") if path.suffix in SOURCES)


def to_be_named(root: Path) -> Iterator[str]:
    """Folders at the top, but for hidden and ignored ones; scripts; and in src every package and source file."""
    ignore = root / ".gitignore"
    ignored = ignore.read_text(encoding="utf-8").split() if ignore.exists() else []
    for folder in root.iterdir():
        hidden = folder.name.startswith(".") and folder.name != ".ci"
        if folder.is_dir() and not hidden and not any(fnmatch(f"{folder.name}/", each) for each in ignored):
            yield f"{folder.name}/"
    for path in [*(root / "scripts").glob("[!.]*"), *sources(root)]:
        if path.is_file():
            name = path.relative_to(root).as_posix()
            yield name.removesuffix("__init__.py")


def wrong_rooms(root: Path, page: str) -> Iterator[str]:
    named = rooms(page)
    for name in sorted({name for name in named if named.count(name) > 1}):
        yield f"{name} is named twice"
    for name in named:
        there = root / name
        if not (there.is_dir() if name.endswith("/") else there.is_file()):
            yield f"{name} is named, but is not there"
    for name in sorted(to_be_named(root)):
        if name not in named and not (name.count("/") == 1 and any(n.startswith(name) for n in named)):
            yield f"{name} is not named among the rooms"


def other_layers(page: str, layers: list[set[str]], helpers: set[str]) -> Iterator[str]:
    text = section(page, "Which way imports point")
    table = [set(line.partition("(")[0].split()) for line in block(text)]
    if len(table) != len(layers):
        yield f"there are {len(table)} lines of layers, and {len(layers)} in the test"
        return
    for here, tested in zip(table, reversed(layers), strict=True):
        for name in sorted(here ^ tested):
            yield f"{name} is in the layer of {min(tested)} only {'here' if name in here else 'in the test'}"
    said = set(re.findall(r"`(_[a-z]+)\.py`", text))
    for name in sorted(said ^ helpers):
        yield f"{name}.py is used by anybody only {'here' if name in said else 'in the test'}"


def strangers(root: Path, page: str) -> Iterator[str]:
    """Modules that the page speaks of, in the flow of data or as paths, and that do not exist."""
    package = root / "src" / "understudy"
    for line in block(section(page, "How data flows")):
        for name in re.split(r"   *", line)[0].split(", "):
            if not (package / f"{name}.py").is_file() and not (package / name).is_dir():
                yield f"{name} stands in the flow of data, but is no module"
    for name in re.findall(r"`([\w/]+\.py)`", page):
        if not (root / name).is_file() and not (package / name).is_file():
            yield f"{name} is spoken of, but is not there"


def too_long(root: Path, page: str) -> Iterator[str]:
    reasons = dict(re.findall(r"^- `([^`]+)`: *(.*)$", section(page, f"Rooms above {LONG} lines"), re.MULTILINE))
    package = root / "src" / "understudy"
    lines = {p.relative_to(package).as_posix(): len(p.read_text(encoding="utf-8").splitlines()) for p in sources(root)}
    for name, count in lines.items():
        if count > LONG and not reasons.get(name):
            yield f"{name} has {count} lines, and no reason is given"
    for name in reasons:
        if lines.get(name, 0) <= LONG:
            yield f"{name} has a reason to be above {LONG} lines, and is not"


def complaints(root: Path, layers: list[set[str]], helpers: set[str]) -> list[str]:
    """A sentence for each thing that ARCHITECTURE.md says otherwise than the tree."""
    page = (root / "ARCHITECTURE.md").read_text(encoding="utf-8")
    return [
        *wrong_rooms(root, page),
        *other_layers(page, layers, helpers),
        *strangers(root, page),
        *too_long(root, page),
    ]


def test_the_page_matches_the_tree() -> None:
    found = complaints(ROOT, LAYERS, HELPERS)
    assert not found, "\n".join(found)


PAGE = """# Architecture

## How data flows

    priors, kernels     make    things

## Which way imports point

    priors   noise
    kernels   (numpy and numba only)

`_arrays.py` names the array types.

## The rooms

    .ci/
      run             the test command
    docs/             pages
    scripts/
      test            tests
    src/understudy/
      _arrays.py      array types
      _files.py       files
      priors.py       what is believed
      noise.py        what is not
      kernels/        loops
        normal.py     the normal
        static/
          play.js     a script

## Rooms above 400 lines

- `noise.py`: a table of numbers.

## Words

Nothing of `kernels/normal.py`.
"""
TREE = {
    ".ci/run": 1, ".git/config": 1, ".cache/some": 1, ".gitignore": 1, "site/index.html": 1, "docs/index.md": 1,
    "scripts/test": 1, "src/understudy/__init__.py": 1, "src/understudy/_arrays.py": 1, "src/understudy/_files.py": 1, "src/understudy/priors.py": 400,
    "src/understudy/noise.py": 401, "src/understudy/kernels/__init__.py": 0, "src/understudy/kernels/normal.py": 9,
    "src/understudy/kernels/static/play.js": 9,
}  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "old", "new", "complaint"),
    [
        ({}, "", "", None),
        ({"src/understudy/attic.py": 1}, "", "", "src/understudy/attic.py is not named among the rooms"),
        ({"src/understudy/cli/__init__.py": 1}, "", "", "src/understudy/cli/ is not named among the rooms"),
        ({"src/understudy/kernels/static/a.css": 1}, "", "", "src/understudy/kernels/static/a.css is not named"),
        ({"scripts/bench": 1}, "", "", "scripts/bench is not named among the rooms"),
        ({"data/some.csv": 1}, "", "", "data/ is not named among the rooms"),
        ({}, "    .ci/\n      run             the test command\n", "", ".ci/ is not named among the rooms"),
        ({}, "      priors.py ", "      cellar.py     dark\n      priors.py ", "cellar.py is named, but is not there"),
        ({}, "    docs/ ", "    attic/    old\n    docs/ ", "attic/ is named, but is not there"),
        ({}, "      priors.py ", "      noise.py   again\n      priors.py ", "noise.py is named twice"),
        ({}, "priors   noise\n", "priors\n", "noise is in the layer of noise only in the test"),
        ({}, "priors   noise\n", "priors   noise   cli\n", "cli is in the layer of noise only here"),
        ({}, "    kernels   (numpy", "    decisions\n    kernels   (numpy", "there are 3 lines of layers, and 2 in the test"),
        ({}, "array types.\n", "array types, `_files.py` files.\n", "_files.py is used by anybody only here"),
        ({}, "`_arrays.py` names", "It names", "_arrays.py is used by anybody only in the test"),
        ({}, "priors, kernels  ", "priors, mdp  ", "mdp stands in the flow of data, but is no module"),
        ({}, "Nothing of `kernels/normal", "Nothing of `kernels/student", "kernels/student.py is spoken of"),
        ({"src/understudy/priors.py": 401}, "", "", "priors.py has 401 lines, and no reason is given"),
        ({"src/understudy/kernels/static/play.js": 500}, "", "", "kernels/static/play.js has 500 lines"),
        ({}, ": a table of numbers.", ":", "noise.py has 401 lines, and no reason is given"),
        ({}, "## Rooms above 400 lines", "## Rooms", "noise.py has 401 lines, and no reason is given"),
        ({"src/understudy/noise.py": 400}, "", "", "noise.py has a reason to be above 400 lines, and is not"),
        ({"src/understudy/noise.py": 9}, "## Rooms above 400 lines\n\n- `noise.py`: a table of numbers.\n", "", None),
    ],
)  # fmt: skip
def test_a_page_that_is_wrong_is_noticed(
    tmp_path: Path, lines: dict[str, int], old: str, new: str, complaint: str | None
) -> None:
    assert old in PAGE
    for name, count in {**TREE, **lines}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("line\n" * count)
    (tmp_path / ".gitignore").write_text("site/\n*.egg-info/\n")
    (tmp_path / "ARCHITECTURE.md").write_text(PAGE.replace(old, new, 1) if old else PAGE)
    found = complaints(tmp_path, [{"kernels"}, {"priors", "noise"}], {"_arrays"})
    assert len(found) == (complaint is not None), found
    assert complaint is None or complaint in found[0]
