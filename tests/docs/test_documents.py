"""What the documents say is run or looked up: Python, commands, links, public names."""

import functools
import os
import re
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import NamedTuple

import pytest

import understudy

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
DOCUMENTS = sorted({*PAGES, *ROOT.glob("*.md")})
SHARED = ROOT.parent / "shared" / "data"
DATA = ("rust1987.csv",)  # others' data, which pages read and we do not ship
FENCE = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """One fenced block of a document."""

    language: str
    text: str
    line: int


def blocks(document: str) -> list[Block]:
    return [
        Block(
            fence[2], re.sub(f"^{fence[1]}", "", fence[3], flags=re.MULTILINE), document.count("\n", 0, fence.start(3))
        )
        for fence in FENCE.finditer(document)
    ]


def commands(document: str) -> list[list[str]]:
    """The shell commands shown, split into words, that are ours: `scripts/...` and `understudy ...`."""
    found = []
    for block in blocks(document):
        if block.language not in {"bash", "console"}:
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


def dead_links(path: Path) -> list[str]:
    """Links of a Markdown file to files that are not there; addresses elsewhere are left alone."""
    prose = re.sub(r"`[^`\n]*`", "", FENCE.sub("", path.read_text(encoding="utf-8")))
    targets = re.findall(r"\]\(<?([^)>\s]+)>?[^)]*\)", prose) + re.findall(r"^\[[^\]]+\]: *(\S+)", prose, re.MULTILINE)
    inside = [target.partition("#")[0] for target in targets if not re.match(r"[a-z]+:", target)]
    return [target for target in inside if target and not (path.parent / target).exists()]


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_python_in_the_pages_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    for data in (name for name in DATA if name in path.read_text(encoding="utf-8")):
        if not (SHARED / data).exists():
            pytest.skip(f"{data}, which this page reads, is not here")
        (tmp_path / data).symlink_to(SHARED / data)
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(path.read_text(encoding="utf-8")):
        if block.language == "python":
            # padded, so that a traceback names the line of the document
            exec(compile("\n" * block.line + block.text, str(path), "exec"), namespace)


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


def test_the_reference_mentions_every_public_name() -> None:
    reference = ROOT / "docs" / "reference.md"
    if not reference.exists():
        pytest.skip("docs/reference.md is not written yet")
    text = reference.read_text(encoding="utf-8")
    assert [public for public in understudy.__all__ if not re.search(rf"\b{public}\b", text)] == []


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
    page.write_text("[a](page.md#top) [b](gone.md) `[c](code.md)` [d](https://example.org) [e]\n\n[e]: lost.md\n")
    assert dead_links(page) == ["gone.md", "lost.md"]
