"""What the documents say is run or looked up: Python, commands, links, public names."""

import doctest
import functools
import importlib.util
import inspect
import os
import re
import shlex
import subprocess
import sys
import sysconfig
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import understudy
from reading import FENCE, Block, blocks, follow

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
DOCUMENTS = sorted({*PAGES, *ROOT.glob("*.md")})
SHARED = ROOT.parent / "shared" / "data"
DATA = ("rust1987.csv",)  # others' data, which pages read where they are and we do not ship
FOLLOWED = ("inverse.md", "zurcher.md", "brands.md", "pressure.md", "season.md")  # the five paths
REFERENCE = ROOT / "docs" / "reference.md"


def commands(document: str) -> list[list[str]]:
    """The shell commands shown, split into words, that are ours: `scripts/...` and `understudy ...`."""
    found = []
    for block in blocks(document):
        if block.language not in {"bash", "sh", "console"}:
            continue
        for line in block.text.replace("\\\n", " ").splitlines():
            prompt, typed = line.startswith("$ "), line.removeprefix("$ ")
            if block.language == "console" and not prompt:
                continue  # what the command printed
            for part in re.split(r"&&|\|\||[|;]", re.sub(r"(^|\s)#.*", "", typed)):
                words = shlex.split(part)
                while words and re.match(r"\w+=", words[0]):
                    words.pop(0)
                if words and (words[0] == "understudy" or words[0].startswith("scripts/")):
                    found.append(words)
    return found


@functools.cache
def help_of(*command: str) -> str:
    program = Path(sysconfig.get_path("scripts")) / "understudy"
    run = subprocess.run(
        [sys.executable, program, *command, "--help"],
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"},
    )
    return run.stdout if run.returncode == 0 else ""


def wrong_with(command: list[str]) -> str | None:
    """What a reader who types this would stumble over, or None."""
    program, *rest = command
    if program != "understudy":
        script = ROOT / program
        return None if script.is_file() and os.access(script, os.X_OK) else f"{program} is not a script that can be run"
    sub = [word for word in rest[:1] if not word.startswith("-")]
    text = help_of(*sub)
    if not text:
        return f"{shlex.join([program, *sub])} is not a command"
    options = {word.split("=")[0] for word in rest if word.startswith("--")}
    unknown = sorted(option for option in options if not re.search(rf"(?<![\w-]){option}(?![\w-])", text))
    return f"{shlex.join([program, *sub])} has no option {unknown[0]}" if unknown else None


def anchors(path: Path) -> set[str]:
    """What a link may point to within a Markdown file: its headings, spelt as mkdocs and GitHub spell them."""
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    names = re.findall(r"^#+ +(.+?) *$", text, re.MULTILINE)
    names += re.findall(r"^::: ([\w.]+)$", text, re.MULTILINE)  # of the reference
    plain = (unicodedata.normalize("NFKD", each).encode("ascii", "ignore").decode().lower() for each in names)
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", each).strip()) for each in plain}


def dead_links(path: Path) -> list[str]:
    """Links of a Markdown file to files or headings that are not there; addresses elsewhere are left alone."""
    prose = re.sub(r"`[^`\n]*`", "", FENCE.sub("", path.read_text(encoding="utf-8")))
    targets = re.findall(r"\]\(<?([^)>\s]+)>?[^)]*\)", prose) + re.findall(r"^\[[^\]]+\]: *(\S+)", prose, re.MULTILINE)
    dead = []
    for target in targets:
        file, _, place = target.partition("#")
        there = path if not file else path.parent / file
        if re.match(r"[a-z]+:", target) or (there.exists() and (not place or place in anchors(there))):
            continue
        dead.append(target)
    return dead


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_a_page_can_be_followed(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In an empty folder, in order: Python, and on the five paths every command."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    for data in (name for name in DATA if name in path.read_text(encoding="utf-8")):
        if (SHARED / data).exists():
            (tmp_path / data).symlink_to(SHARED / data)
    follow(path, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("page", ["zurcher.md", "gallery.md"])
def test_pages_on_others_data_can_be_followed_without_them(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    follow(ROOT / "docs" / page, tmp_path)


@pytest.mark.parametrize("page", FOLLOWED)
def test_a_path_says_for_whom_it_is_what_comes_out_and_how_long_it_takes(page: str) -> None:
    top = (ROOT / "docs" / page).read_text(encoding="utf-8").partition("\n## ")[0]
    assert [word for word in ("- **For** ", "- **Out comes** ", "- **Takes** ") if word not in top] == []
    assert page in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


def test_every_figure_of_a_path_and_of_the_gallery_is_made_by_a_page() -> None:
    made = "".join(path.read_text(encoding="utf-8") for path in PAGES)
    for page in (*FOLLOWED, "gallery.md"):
        shown = re.findall(r"!\[[^\]]*\]\(([\w-]+\.(?:png|gif))\)", (ROOT / "docs" / page).read_text(encoding="utf-8"))
        measured = {"populations.png", "speed.png"}  # of benchmarks, and of a page that saves none
        assert [each for each in shown if f'"{each}"' not in made and each not in measured] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_commands_in_the_documents_exist(path: Path) -> None:
    wrong = [wrong_with(command) for command in commands(path.read_text(encoding="utf-8"))]
    assert not any(wrong), "; ".join(filter(None, wrong))


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_links_in_the_documents_lead_somewhere(path: Path) -> None:
    assert dead_links(path) == []


def test_the_ci_runs_the_test_command_of_the_readme() -> None:
    assert ["scripts/test"] in commands((ROOT / "README.md").read_text(encoding="utf-8"))
    assert (ROOT / ".ci/run").read_text(encoding="utf-8").rstrip().endswith('/../scripts/test"')


def example(public: str) -> doctest.DocTest:
    thing = getattr(understudy, public)
    known = {"us": understudy, "np": np}
    return doctest.DocTestParser().get_doctest(inspect.getdoc(thing) or "", known, public, None, 0)


def test_the_reference_has_every_public_name() -> None:
    listed = re.findall(r"^::: ([\w.]+)$", REFERENCE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [public for public in understudy.__all__ if public not in listed] == []


def test_the_reference_can_be_made() -> None:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "scripts" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    hook: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    listed = re.findall(r"^::: ([\w.]+)$", REFERENCE.read_text(encoding="utf-8"), re.MULTILINE)
    thin = [each for each in listed if len(hook.told(each).split()) < 8]
    assert thin == [], "a name without a docstring"


@pytest.mark.parametrize("public", understudy.__all__)
def test_every_public_name_has_an_example(public: str) -> None:
    assert example(public).examples, f"us.{public} has no example in its docstring"


@pytest.mark.parametrize("public", understudy.__all__)
def test_the_example_of_a_public_name_runs(public: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said: list[str] = []
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    doctest.DocTestRunner(verbose=False, optionflags=flags).run(example(public), out=said.append)
    assert not said, "".join(said)


def test_blocks_keep_their_language_text_and_line() -> None:
    document = "one\n\n```python\nx = 1\n```\n\n- item\n\n  ```bash\n  scripts/test\n  ```\n"
    assert blocks(document) == [Block("python", "x = 1\n", 3), Block("bash", "scripts/test\n", 9)]


def test_commands_are_found_as_a_reader_would_type_them() -> None:
    document = (
        "```bash\ncd somewhere && scripts/test --slow  # a while; it's long\nPYTHON=python3.12 scripts/demo\n```\n"
        "```console\n$ understudy fit x.csv \\\n  --out y.nc\nscripts/printed is output\n```\n"
        "```text\nscripts/not-a-command\n```\n"
    )
    fit = ["understudy", "fit", "x.csv", "--out", "y.nc"]
    assert commands(document) == [["scripts/test", "--slow"], ["scripts/demo"], fit]


@pytest.mark.parametrize("command", ["scripts/nothing", "scripts/_setup", "understudy dance"])
def test_a_command_that_does_not_exist_is_noticed(command: str) -> None:
    assert wrong_with(shlex.split(command))


def test_a_dead_link_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# The top!\n[a](page.md#the-top) [b](gone.md) `[c](code.md)` [d](https://example.org) [e] [f](#there) [g](#the-top)\n\n"
        "[e]: lost.md\n"
    )
    assert dead_links(page) == ["gone.md", "#there", "lost.md"]
