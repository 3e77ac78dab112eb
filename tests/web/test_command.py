"""`understudy studio`: what it prints, what it refuses, and that the rest of the project does without its packages."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from stagehands import TOKEN, Studio
from understudy.cli import app


def refused(*words: str) -> str:
    run = CliRunner().invoke(app, ["studio", *words])
    assert run.exit_code == 2, (run.exit_code, run.stdout, run.stderr)
    assert run.stdout == ""
    assert run.stderr.count("\n") == 1
    return str(run.stderr)


def test_it_starts_says_where_and_stops(tmp_path: Path) -> None:
    server = Studio(str(tmp_path / "studio.db"))
    assert server.address.startswith("http://127.0.0.1:")
    assert httpx.get(f"{server.address}/api/health").json() == {"ok": True}
    headers = {"Authorization": f"Bearer {TOKEN}"}
    assert httpx.get(f"{server.address}/api/studies", headers=headers).json() == []
    assert "server" not in httpx.get(server.address).headers
    assert server.stop() == 0


def test_it_prints_a_new_token_for_people(tmp_path: Path) -> None:
    words = ["studio", "--port", "0", "--database", str(tmp_path / "studio.db")]
    command = [sys.executable, "-u", "-c", "from understudy.cli import main; main()", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        lines = [run.stdout.readline() for _ in range(3)]
        run.terminate()
    assert lines[0].startswith("Studio: http://127.0.0.1:")
    assert len(lines[1].removeprefix("Token for studies: ").strip()) == 22
    assert lines[2] == f"Games are kept in {tmp_path / 'studio.db'}.\n"


def test_a_database_that_cannot_be_opened(tmp_path: Path) -> None:
    assert "cannot be opened" in refused("--port", "0", "--database", str(tmp_path / "nowhere" / "studio.db"))
    assert "not supported" in refused("--port", "0", "--database", "oracle://here/there")


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        said = refused("--port", str(taken.getsockname()[1]), "--database", str(tmp_path / "studio.db"))
    assert "cannot listen on 127.0.0.1" in said


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--token", "short"], "at least 16"),
        (["--rate", "0"], "--rate must be at least 1"),
        (["--games", "nan"], "--games must be at least 1"),
        (["--learners", "0"], "--learners must be at least 1"),
        (["--particles", "50"], "--particles must be at least 100"),
        (["--host", "no.such.host.invalid"], "cannot listen on no.such.host.invalid"),
    ],
)
def test_options_that_make_no_sense(tmp_path: Path, words: list[str], sentence: str) -> None:
    assert sentence in refused(*words, "--database", str(tmp_path / "studio.db"))
    assert not (tmp_path / "studio.db").exists()


def test_without_its_packages_it_says_what_to_install() -> None:
    """The core, the command line's help included, runs where the extra is not installed."""
    code = """
import sys
for name in ("fastapi", "uvicorn", "sqlalchemy", "starlette", "psycopg", "plotly", "httpx"):
    sys.modules[name] = None
import understudy
from understudy.cli import main
sys.argv = ["understudy", "studio", "--port", "0"]
main()
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert 'pip install "understudy[studio]"' in run.stderr
    assert run.stderr.count("\n") == 1
