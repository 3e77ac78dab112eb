"""The program around the commands: help, version, mistakes of ours, and Ctrl-C."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import revealed
from tests.support.command_line import PROGRAM, run, works

COMMANDS = ("simulate", "fit", "predict", "report", "rank", "play", "replay", "reproduce", "demo")


def test_version_and_common_options() -> None:
    shown = subprocess.run([sys.executable, PROGRAM, "--version"], capture_output=True, text=True)
    assert (shown.returncode, shown.stdout) == (0, f"revealed {revealed.__version__}\n")
    for command in COMMANDS:
        text = works(command, "--help").stdout
        assert [
            option
            for option in ("--seed", "--out", "--no-progress", "--json")
            if option not in text
        ] == []
    assert works().stdout == works("--help").stdout
    again = subprocess.run(
        [sys.executable, "-m", "revealed", "--version"], capture_output=True, text=True
    )
    assert again.stdout == shown.stdout


def test_the_shell_completes_commands_and_options() -> None:
    for words, expected in (("revealed pre", "predict"), ("revealed fit --work", "--workers")):
        typed = {
            "_REVEALED_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(words.count(" ")),
        }
        shown = subprocess.run(
            [sys.executable, PROGRAM], capture_output=True, text=True, env={**os.environ, **typed}
        )
        assert shown.stdout.split() == [expected]


def test_help_is_quick_to_load() -> None:
    heavy = [
        "matplotlib",
        "arviz",
        "pyarrow",
        "sklearn",
        "pandas",
        "narwhals",
        "scipy.optimize",
        "xarray",
    ]
    code = f"import sys, revealed as rv; was = set(sys.modules); import revealed.cli; print(*(set({heavy}) & (set(sys.modules) - was)))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == []


def test_a_mistake_of_ours_is_said_without_a_traceback(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("oops")

    monkeypatch.setattr("revealed.plots.report.write_report", broken)
    result = run("report", "posterior.nc", "--out", "o.html")
    assert result.exit_code == 1
    assert re.fullmatch(r"revealed: [^\n]*mistake in revealed[^\n]*oops[^\n]*\n", result.stderr)


def test_the_installed_program_refuses_too(here: Path) -> None:
    shown = subprocess.run(
        [sys.executable, PROGRAM, "fit", "none.csv", "--out", "p.nc"],
        capture_output=True,
        text=True,
        cwd=here,
    )
    assert (shown.returncode, shown.stdout) == (2, "")
    assert shown.stderr == "revealed: none.csv: there is no such file\n"


@pytest.mark.parametrize(
    "words",
    [
        ("predict", "posterior.nc", "decisions.csv", "--out", "o.csv"),
        ("report", "posterior.nc", "--out", "o.html"),
    ],
)
def test_ctrl_c_elsewhere_ends_quietly(
    here: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    def pressed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    for module, name in (
        ("revealed.results.choice", "predict"),
        ("revealed.plots.report", "prediction_section"),
    ):
        monkeypatch.setattr(importlib.import_module(module), name, pressed)
    result = run(*words)
    assert result.exit_code == 130
    assert result.stderr == "revealed: interrupted; nothing was written\n"
    assert not Path(words[-1]).exists()
