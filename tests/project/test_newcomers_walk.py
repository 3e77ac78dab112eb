"""The newcomer's walk of CONTRIBUTING.md: its files exist, are few, and one left out is noticed."""

from __future__ import annotations

import doctest
import importlib.util
import inspect
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

import revealed
from revealed import environments
from revealed.cli import app
from revealed.samplers.model_kind import ModelKind
from revealed.samplers.registry import REGISTRY
from tests.project.test_architecture import section
from tests.support.cases import VARIANTS
from tests.support.follow_docs import blocks

ROOT = Path(__file__).parents[2]
INSIDE = "src/revealed"
CHOICES = ModelKind("decisions", "normal")
KINDS = ("a sampler", "a part of a model", "an environment", "a command")
MAX_FILES = 7
CODE = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"(?:[\w<>.-]+/)+[\w<>.-]*|[\w.-]+\.(?:md|yml|toml|txt)")
FOLLOWED = "\nFollowed by "


# What the walk says


def walks(page: str) -> dict[str, str]:
    """The text of each walk, by what is added: "an environment" and so on."""
    parts = section(page, "A newcomer's walk").split("\n### ... ")[1:]
    return {kind: text for kind, _, text in (part.partition("\n") for part in parts)}


def items(text: str) -> list[str]:
    """The numbered items of a walk, each with the lines that belong to it."""
    return re.findall(r"^\d+\. .*(?:\n   .*)*", text, re.MULTILINE)


def paths(text: str) -> list[str]:
    """The files and folders that a text names, in backticks and from the root of the repository."""
    return [code for code in CODE.findall(text) if PATH.fullmatch(code)]


def is_there(root: Path, path: str) -> bool:
    """Whether a path exists; one with a placeholder such as <name> needs its folder only."""
    return (root / path).parent.is_dir() if "<" in path else (root / path).exists()


def are_of_walk(found: list[str], files: list[str]) -> bool:
    """Whether the files of an example are those of a walk, with one name for the placeholder."""
    name = Path(found[0]).stem if found else ""
    return found == [file.replace("<name>", name) for file in files]


def untrue_walks(root: Path) -> Iterator[str]:
    """A sentence for each thing in the walk that is not so."""
    found = walks((root / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    for kind in (kind for kind in KINDS if kind not in found):
        yield f"there is no walk for {kind}"
    for kind, text in found.items():
        files = [(paths(item) or [""])[0] for item in items(text)]
        if not 1 <= len(files) <= MAX_FILES:
            yield f"{kind}: {len(files)} files; a walk has one to {MAX_FILES}"
        if len(set(files)) < len(files) or "" in files:
            yield f"{kind}: every item begins with a file of its own"
        for path in paths(text):
            if not is_there(root, path):
                yield f"{kind}: {path} is not there"
        _, followed, example = text.partition(FOLLOWED)
        if followed and not are_of_walk(paths(example)[: len(files)], files):
            yield f"{kind}: the files of its example are not those of the list, in their order"


# What a newcomer may leave out


def in_changelog(root: Path, name: str) -> bool:
    """Whether the changelog has a name as code, or the table of renamed things that it links to."""
    text = "".join(
        (root / page).read_text(encoding="utf-8") for page in ("CHANGELOG.md", "docs/upgrade.md")
    )
    words = {word for code in CODE.findall(text) for word in re.findall(r"[\w-]+", code)}
    return name in words


def environment_modules(root: Path) -> list[str]:
    """The modules and folders of environments."""
    return sorted(
        path.stem
        for path in (root / INSIDE / "environments").iterdir()
        if not path.name.startswith("_")
    )


def public_names(module: str) -> list[str]:
    """The names of `environments` that come from one of its modules or folders."""
    things = {name: getattr(environments, name) for name in environments.__all__}
    # A module that is itself public has a name only.
    origins = {name: getattr(thing, "__module__", thing.__name__) for name, thing in things.items()}
    whole = f"{environments.__name__}.{module}"
    return [name for name, origin in origins.items() if f"{origin}.".startswith(f"{whole}.")]


def incomplete_environments(root: Path) -> Iterator[str]:
    """A sentence for each file that an environment lacks."""
    pages = [page for page in (root / "docs").glob("*.md") if page.name != "reference.md"]
    code = "".join(
        block.text
        for page in pages
        for block in blocks(page.read_text(encoding="utf-8"))
        if block.language == "python"
    )
    for module in environment_modules(root):
        tests = root / "tests" / "environments"
        if not (tests / f"test_{module}.py").is_file() and not (tests / module).is_dir():
            yield f"{module}: there is no tests/environments/test_{module}.py"
        names = public_names(module)
        if not names:
            yield f"{module}: environments/__init__.py has no name of it"
        for name in names:
            if not re.search(rf"\benvironments\.{name}\b", code):
                yield f"{module}: no page of docs/ uses environments.{name}"
            if not in_changelog(root, name):
                yield f"{module}: CHANGELOG.md has no `{name}`"


def incomplete_commands(root: Path) -> Iterator[str]:
    """A sentence for each file that a command lacks."""
    group: Any = typer.main.get_command(app)
    page = (root / "docs" / "commands.md").read_text(encoding="utf-8")
    tests = "".join(
        path.read_text(encoding="utf-8")
        for folder in ("cli", "web")
        for path in (root / "tests" / folder).glob("test_*.py")
    )
    for path in sorted((root / INSIDE / "cli").glob("[!_]*.py")):
        name = path.stem
        if name not in group.commands:
            yield f"{name}: cli/__init__.py does not list it"
        if f'"{name}"' not in tests:
            yield f"{name}: no test of tests/cli runs it"
        if not re.search(rf"^revealed {name}\b", page, re.MULTILINE):
            yield f"{name}: docs/commands.md does not show it"
        if not in_changelog(root, name):
            yield f"{name}: CHANGELOG.md has no `{name}`"


def pages_outside_navigation(root: Path) -> Iterator[str]:
    """A sentence for each page that no reader of the built pages would find."""
    listed = (root / "mkdocs.yml").read_text(encoding="utf-8")
    for page in sorted((root / "docs").rglob("*.md")):
        name = page.relative_to(root / "docs").as_posix()
        if not re.search(rf"(?:: |- ){re.escape(name)}$", listed, re.MULTILINE):
            yield f"mkdocs.yml does not list {name}"


def complaints(root: Path) -> list[str]:
    """All that is untrue or left out."""
    return [
        *untrue_walks(root),
        *incomplete_environments(root),
        *incomplete_commands(root),
        *pages_outside_navigation(root),
    ]


def test_walk_is_true() -> None:
    assert list(untrue_walks(ROOT)) == []


def test_every_environment_is_complete() -> None:
    assert list(incomplete_environments(ROOT)) == []


def test_every_command_is_complete() -> None:
    assert list(incomplete_commands(ROOT)) == []


def test_every_page_is_in_the_navigation() -> None:
    assert list(pages_outside_navigation(ROOT)) == []


def test_every_sampler_of_chains_is_among_the_variants() -> None:
    """Particles and passes are no chains of values; they have tests of their own."""
    chains = {
        entry.name
        for entry in REGISTRY.entries
        if CHOICES in entry.kinds and entry.build is not None and entry.name != "ibis"
    }
    assert chains == {name for name, _ in VARIANTS}
    assert [entry.name for entry in REGISTRY.entries if not in_changelog(ROOT, entry.name)] == []


def reference() -> Any:
    """The module scripts/reference.py."""
    spec = importlib.util.spec_from_file_location("reference", ROOT / "scripts" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_reference_finds_environments_by_itself() -> None:
    """A public name is described without a line of its own in docs/reference.md."""
    assert "::: environments.*" in (ROOT / "docs/reference.md").read_text(encoding="utf-8")
    text = reference().describe_all("environments")
    shown = {
        entry.partition("\n")[0]: entry for entry in f"\n{text}".split("\n### environments.")[1:]
    }
    tops = {name.partition(".")[0] for name in shown}
    assert [name for name in environments.__all__ if name not in tops] == []
    assert {"Tetris", "bus_engine.read_buses", "bus_engine.RustLogit"} <= set(shown)
    assert not [name for name in shown if "._" in name or name == "bus_engine.MDP"]
    assert [name for name, entry in shown.items() if len(entry.split()) < 8] == []


@pytest.mark.parametrize(
    "name", [name for name in environments.__all__ if inspect.isclass(getattr(environments, name))]
)
def test_example_of_environment_runs(name: str) -> None:
    docstring = inspect.getdoc(getattr(environments, name)) or ""
    given = {"rv": revealed, "np": np}
    test = doctest.DocTestParser().get_doctest(docstring, given, name, None, 0)
    assert test.examples, f"{name} has no example in its docstring"
    failures: list[str] = []
    doctest.DocTestRunner(verbose=False).run(test, out=failures.append)
    assert not failures, "".join(failures)


# The checks themselves


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The files that the walk is about, in a folder that may be changed."""
    for folder in ("docs", "tests", INSIDE):
        shutil.copytree(
            ROOT / folder,
            tmp_path / folder,
            ignore=shutil.ignore_patterns("__pycache__", "*.png", "old_files", "static"),
        )
    for page in ROOT.glob("docs/*.png"):
        (tmp_path / "docs" / page.name).touch()
    for name in ("CONTRIBUTING.md", "CHANGELOG.md", "mkdocs.yml"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("file", "old", "new", "complaint"),
    [
        (
            "CONTRIBUTING.md",
            "`tests/support/cases.py`",
            "`tests/cases.py`",
            "cases.py is not there",
        ),
        (
            "CONTRIBUTING.md",
            "`src/revealed/cli/<name>",
            "`src/cli/<name>",
            "<name>.py is not there",
        ),
        (
            "CONTRIBUTING.md",
            "### ... a part of",
            "### ... a piece of",
            "there is no walk for a part of a model",
        ),
        ("CONTRIBUTING.md", "1. `", "1. `A.md`\n1. `B.md`\n1. `", "9 files; a walk has one to 7"),
        ("CONTRIBUTING.md", "6. `mkdocs.yml`", "6. `CHANGELOG.md`", "a file of its own"),
        ("CONTRIBUTING.md", ", `docs/gridworld.md`", "", "its example are not those of the list"),
        ("mkdocs.yml", ": tetris.md", ": mdp.md", "mkdocs.yml does not list tetris.md"),
        ("docs/gridworld.md", "environments.Grid", "x", "no page of docs/ uses environments.Grid"),
        ("docs/upgrade.md", "environments.bus_engine", "x", "CHANGELOG.md has no `bus_engine`"),
        ("docs/commands.md", "revealed rank ", "revealed r ", "docs/commands.md does not show it"),
        ("src/revealed/cli/sing.py", "", "", "sing: cli/__init__.py does not list it"),
        ("src/revealed/environments/chess.py", "", "", "environments/__init__.py has no name of"),
        (
            "tests/environments/test_bus_engine.py",
            "",
            None,
            "no tests/environments/test_bus_engine",
        ),
    ],
)
def test_walk_that_is_untrue_or_cut_short_is_caught(
    copy: Path, file: str, old: str, new: str | None, complaint: str
) -> None:
    path = copy / file
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    assert old in text
    if new is None:
        path.unlink()
    else:
        path.write_text(text.replace(old, new) if old else "", encoding="utf-8")
    assert any(complaint in sentence for sentence in complaints(copy)), complaints(copy)
