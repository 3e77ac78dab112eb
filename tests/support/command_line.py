"""For tests of the command line: run a command, and look at what it answers or refuses."""

from __future__ import annotations

import json
import re
import sysconfig
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from revealed.cli import app

SMALL = ("--draws", "60", "--warmup", "20", "--chains", "2", "--no-progress")
PROGRAM = Path(sysconfig.get_path("scripts")) / "revealed"


def run(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def works(*words: object) -> Any:
    result = run(*words)
    assert result.exit_code == 0, result.stderr
    return result


def answers(*words: object) -> dict[str, Any]:
    """The JSON object, which is all there is on stdout."""
    printed = works(*words, "--json").stdout
    assert printed.count("\n") == 1
    found = json.loads(printed, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert isinstance(found, dict)
    return found


def refuses(*words: object) -> str:
    """Exit code 2 and one sentence on stderr, nothing on stdout; returns the sentence."""
    result = run(*words)
    assert result.exit_code == 2, (result.exit_code, result.stdout, result.stderr)
    assert result.stdout == ""
    assert re.fullmatch(r"revealed: [^\n]+\n", result.stderr), result.stderr
    assert "Traceback" not in result.stderr
    return str(result.stderr)


def write(path: Path, lines: str) -> Path:
    path.write_text(lines)
    return path


HEAD = "decision,action,chosen,x,y\n"
GOOD = HEAD + "7,a,1,0.0,1.0\n7,b,0,1.0,0.5\n8,a,0,0.3,0.2\n8,b,1,0.9,0.1\n"
