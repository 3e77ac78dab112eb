"""The documents are executed or looked up: their Python, commands, links and public names."""

import doctest
import functools
import importlib.util
import inspect
import os
import re
import shlex
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import revealed
from revealed.cli import app
from tests.support.cases import mark_slow
from tests.support.follow_docs import FENCE, Block, blocks, follow

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
DOCUMENTS = sorted({*PAGES, *ROOT.glob("*.md")})
SHARED = ROOT.parent / "shared" / "data"
# Data of others, which pages read where they exist and which are not shipped.
DATA = ("rust1987.csv", "f1_2018_2022.csv", "rat_w053.parquet")
TUTORIALS = (
    "inverse.md",
    "zurcher.md",
    "brands.md",
    "pressure.md",
    "season.md",
    "sport-over-years.md",
    "training-over-sessions.md",
)
FOLLOWED_ALWAYS = ("README.md", "docs/index.md", "docs/how.md", "docs/tables.md", "docs/mdp.md")
# Its example is a long fit, and the first lines of that of HierarchicalPosterior.
SAME_FIT = ("Hierarchical",)
REFERENCE = ROOT / "docs" / "reference.md"
REFERENCE_ENTRY = re.compile(r"^::: ([\w.]+)$", re.MULTILINE)


def find_commands(document: str) -> list[list[str]]:
    """The shown commands `scripts/...` and `revealed ...`, each as a list of words.

    Blocks of bash and sh are commands; in a console block only lines after a prompt are.
    """
    found = []
    for block in blocks(document):
        if block.language not in {"bash", "sh", "console"}:
            continue
        for line in block.text.replace("\\\n", " ").splitlines():
            prompt, typed = line.startswith("$ "), line.removeprefix("$ ")
            if block.language == "console" and not prompt:
                continue  # output of the command
            for part in re.split(r"&&|\|\||[|;]", re.sub(r"(^|\s)#.*", "", typed)):
                words = shlex.split(part)
                while words and re.match(r"\w+=", words[0]):
                    words.pop(0)
                if words and (words[0] == "revealed" or words[0].startswith("scripts/")):
                    found.append(words)
    return found


@functools.cache
def help_text(*command: str) -> str:
    """What `revealed COMMAND --help` prints, or nothing where there is no such command."""
    wide = {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}
    shown = CliRunner().invoke(app, [*command, "--help"], env=wide)
    return shown.stdout if shown.exit_code == 0 else ""


def find_error(command: list[str]) -> str | None:
    """The error that a reader who types this command would get, or None."""
    program, *rest = command
    if program != "revealed":
        script = ROOT / program
        return (
            None
            if script.is_file() and os.access(script, os.X_OK)
            else f"{program} is not a script that can be run"
        )
    subcommand = [word for word in rest[:1] if not word.startswith("-")]
    text = help_text(*subcommand)
    if not text:
        return f"{shlex.join([program, *subcommand])} is not a command"
    options = {word.split("=")[0] for word in rest if word.startswith("--")}
    unknown = sorted(
        option for option in options if not re.search(rf"(?<![\w-]){option}(?![\w-])", text)
    )
    return f"{shlex.join([program, *subcommand])} has no option {unknown[0]}" if unknown else None


def find_anchors(path: Path) -> set[str]:
    """The anchors of a Markdown file: its headings, spelt as mkdocs and GitHub spell them."""
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ +(.+?) *$", text, re.MULTILINE)
    headings += REFERENCE_ENTRY.findall(text)
    plain = (
        unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode().lower()
        for heading in headings
    )
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", each).strip()) for each in plain}


def find_dead_links(path: Path) -> list[str]:
    """The links of a Markdown file to missing files or headings.

    Addresses on the web are not checked, nor what stands in code.
    """
    prose = re.sub(r"`[^`\n]*`", "", FENCE.sub("", path.read_text(encoding="utf-8")))
    targets = re.findall(r"\]\(<?([^)>\s]+)>?[^)]*\)", prose) + re.findall(
        r"^\[[^\]]+\]: *(\S+)", prose, re.MULTILINE
    )
    dead = []
    for target in targets:
        if re.match(r"[a-z]+:", target):
            continue  # on the web
        file, _, anchor = target.partition("#")
        linked = path if not file else path.parent / file
        if not linked.exists() or (anchor and anchor not in find_anchors(linked)):
            dead.append(target)
    return dead


def relative_name(path: Path) -> str:
    """The path of a document from the root of the repository."""
    return str(path.relative_to(ROOT))


def always_or_slow(path: Path) -> Any:
    """A page as a parameter: those that everybody reads first run always, the others with --slow."""
    if relative_name(path) in FOLLOWED_ALWAYS:
        return path
    return pytest.param(path, marks=pytest.mark.slow)


@pytest.mark.parametrize("path", PAGES, ids=relative_name)
def test_python_of_page_compiles_and_its_public_names_exist(path: Path) -> None:
    for block in blocks(path.read_text(encoding="utf-8")):
        if block.language != "python":
            continue
        compile(block.text, f"{path.name}, line {block.line}", "exec")
        for name in re.findall(r"\brv\.([A-Za-z_]\w*)", block.text):
            assert hasattr(revealed, name), f"line {block.line}: there is no rv.{name}"


@pytest.mark.parametrize(
    "path", [always_or_slow(page) for page in PAGES], ids=[relative_name(page) for page in PAGES]
)
def test_page_followed_in_empty_folder_runs(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In order: the Python of every page, and the `sh` blocks of tutorials."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    for data in (name for name in DATA if name in path.read_text(encoding="utf-8")):
        if (SHARED / data).exists():
            (tmp_path / data).symlink_to(SHARED / data)
    follow(path, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", ["zurcher.md", "gallery.md", "sport-over-years.md", "training-over-sessions.md"]
)
def test_page_on_others_data_runs_without_the_data(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    follow(ROOT / "docs" / page, tmp_path)


@pytest.mark.parametrize("page", TUTORIALS)
def test_tutorial_begins_with_audience_result_and_time(page: str) -> None:
    top = (ROOT / "docs" / page).read_text(encoding="utf-8").partition("\n## ")[0]
    expected = ("- **For** ", "- **Out comes** ", "- **Takes** ")
    assert [word for word in expected if word not in top] == []
    assert page in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


def test_figures_of_tutorials_and_gallery_are_made_by_a_page() -> None:
    made = "".join(path.read_text(encoding="utf-8") for path in PAGES)
    # The benchmarks make the second, and the page on populations shows the first without saving.
    made_elsewhere = {"populations.png", "speed.png"}
    for page in (*TUTORIALS, "gallery.md"):
        shown = re.findall(
            r"!\[[^\]]*\]\(([\w-]+\.(?:png|gif))\)",
            (ROOT / "docs" / page).read_text(encoding="utf-8"),
        )
        assert [
            each for each in shown if f'"{each}"' not in made and each not in made_elsewhere
        ] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=relative_name)
def test_commands_of_document_exist(path: Path) -> None:
    errors = [find_error(command) for command in find_commands(path.read_text(encoding="utf-8"))]
    assert not any(errors), "; ".join(filter(None, errors))


@pytest.mark.parametrize("path", DOCUMENTS, ids=relative_name)
def test_links_of_document_exist(path: Path) -> None:
    assert find_dead_links(path) == []


def test_ci_runs_test_command_of_readme() -> None:
    assert ["scripts/test"] in find_commands((ROOT / "README.md").read_text(encoding="utf-8"))
    assert (ROOT / ".ci/run").read_text(encoding="utf-8").rstrip().endswith('/../scripts/test"')


def docstring_example(public: str) -> doctest.DocTest:
    """The doctest of a public name, with `rv` and `np` defined."""
    docstring = inspect.getdoc(getattr(revealed, public)) or ""
    namespace = {"rv": revealed, "np": np}
    return doctest.DocTestParser().get_doctest(docstring, namespace, public, None, 0)


def test_reference_lists_every_public_name() -> None:
    listed = REFERENCE_ENTRY.findall(REFERENCE.read_text(encoding="utf-8"))
    assert [public for public in revealed.__all__ if public not in listed] == []


def test_reference_describes_every_listed_name() -> None:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "scripts" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    hook: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    listed = REFERENCE_ENTRY.findall(REFERENCE.read_text(encoding="utf-8"))
    undescribed = [each for each in listed if len(hook.describe(each).split()) < 8]
    assert undescribed == [], "a name without a docstring"


@pytest.mark.parametrize("public", revealed.__all__)
def test_public_name_has_example(public: str) -> None:
    assert docstring_example(public).examples, f"rv.{public} has no example in its docstring"


@pytest.mark.parametrize("public", mark_slow(revealed.__all__, lambda each: each not in SAME_FIT))
def test_example_of_public_name_runs(
    public: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    failures: list[str] = []
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    doctest.DocTestRunner(verbose=False, optionflags=flags).run(
        docstring_example(public), out=failures.append
    )
    assert not failures, "".join(failures)


def test_blocks_of_document_have_language_text_and_line() -> None:
    document = "one\n\n```python\nx = 1\n```\n\n- item\n\n  ```bash\n  scripts/test\n  ```\n"
    assert blocks(document) == [Block("python", "x = 1\n", 3), Block("bash", "scripts/test\n", 9)]


def test_commands_of_document_are_found_as_typed() -> None:
    document = (
        "```bash\ncd somewhere && scripts/test --slow  # a while; it's long\n"
        "PYTHON=python3.12 scripts/demo\n```\n"
        "```console\n$ revealed fit x.csv \\\n  --out y.nc\nscripts/printed is output\n```\n"
        "```text\nscripts/not-a-command\n```\n"
    )
    fit = ["revealed", "fit", "x.csv", "--out", "y.nc"]
    assert find_commands(document) == [["scripts/test", "--slow"], ["scripts/demo"], fit]


@pytest.mark.parametrize("command", ["scripts/nothing", "scripts/_setup", "revealed dance"])
def test_missing_command_is_an_error(command: str) -> None:
    assert find_error(shlex.split(command))


def test_dead_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# The top!\n[a](page.md#the-top) [b](gone.md) `[c](code.md)` [d](https://example.org)\n"
        "[e] [f](#there) [g](#the-top)\n\n[e]: lost.md\n"
    )
    assert find_dead_links(page) == ["gone.md", "#there", "lost.md"]
