"""`revealed --help` and the help of every command: each shows examples, and they are what a reader can type."""

from __future__ import annotations

import inspect
import os
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from revealed.cli import app, show_version_or_help

GROUP: Any = typer.main.get_command(app)
COMMANDS = {
    "": show_version_or_help,
    **{name: command.callback for name, command in GROUP.commands.items()},
}
RESULTS = "game,player,position\n" + "".join(
    f"{game},{player},{place}\n"
    for game, order in enumerate(("ann bob cid", "bob ann cid", "ann cid bob"))
    for place, player in enumerate(order.split(), 1)
)
STEPS = "episode,state,action\n" + "".join(
    f"{time // 5},{time % 3},{time % 2}\n" for time in range(20)
)
NEEDS_MORE = {
    "demo": "takes longer than with --quick",
    "studio --port 8000 --database games.db": "serves until Ctrl-C; tests/web starts it",
    "reproduce toy --quick --out paper-output": "takes long; tests/cli/test_reproduce.py does it",
    "reproduce all --games games.jsonl --out paper-output": "takes very long",
    "doctor --database games.db --cluster tcp://127.0.0.1:8786": "needs a scheduler; tests/cli/test_doctor.py has one",
    "fit folder/ --workers 4 --out posterior.nc": "needs a folder; tests/cli/test_fit.py has one",
}


def examples(name: str) -> list[str]:
    """What stands in backticks in a command's help and begins with our name, without it."""
    text = " ".join((inspect.getdoc(COMMANDS[name]) or "").split())
    return re.findall(r"`revealed ([^`]+)`", text)


def wrong_with(typed: str) -> str | None:
    """Why a command cannot be understood, or None; it is not run."""
    name, *rest = shlex.split(typed)
    if name not in GROUP.commands:
        return f"there is no command {name}"
    try:
        GROUP.commands[name].make_context(name, rest)
    except Exception as reason:
        return repr(reason)
    return None


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_an_example_of_this_very_command_and_all_can_be_typed(name: str) -> None:
    shown = CliRunner().invoke(app, [name, "--help"] if name else ["--help"]).stdout
    assert f"Example: revealed {name}".strip() in " ".join(shown.split())
    assert any(typed.startswith(name) for typed in examples(name))
    assert [problem for problem in map(wrong_with, examples(name)) if problem] == []


def test_an_example_that_cannot_be_typed_is_noticed() -> None:
    assert wrong_with("fit decisions.csv --out p.nc --warmpu 3")
    assert wrong_with("fit decisions.csv")
    assert wrong_with("dance")
    assert wrong_with("fit decisions.csv --out p.nc") is None


def test_the_examples_run_in_an_empty_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the order in which a newcomer would try them; files that a person brings are put there."""
    monkeypatch.chdir(tmp_path)
    Path("results.csv").write_text(RESULTS)
    Path("steps.csv").write_text(STEPS)
    typed = dict.fromkeys(
        each for name in ("simulate", "demo", *COMMANDS) for each in examples(name)
    )
    assert [command for command in NEEDS_MORE if command not in typed] == []
    for command in typed:
        if command not in NEEDS_MORE:
            done = CliRunner().invoke(app, shlex.split(command))
            assert done.exit_code == 0, (command, done.stderr)
    # every file that an example says it writes, and no other
    said = re.findall(
        r"--(?:out|plot) (\S+\.\w+)", " ".join(c for c in typed if c not in NEEDS_MORE)
    )
    assert {"decisions.csv", "posterior.nc", "ranking.png", "game.gif"} <= set(said)
    assert {name for name in os.listdir() if "." in name} == {*said, "results.csv", "steps.csv"}
