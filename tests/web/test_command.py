"""`revealed studio`: what it prints and refuses, and that nothing else needs its packages."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from revealed.cli import app
from tests.support.studio_server import PATIENCE, TOKEN, StudioProcess


def refused(*words: str) -> str:
    run = CliRunner().invoke(app, ["studio", *words])
    assert run.exit_code == 2, (run.exit_code, run.stdout, run.stderr)
    assert run.stdout == ""
    assert run.stderr.count("\n") == 1
    return str(run.stderr)


def test_studio_starts_prints_its_address_and_stops(tmp_path: Path) -> None:
    server = StudioProcess(str(tmp_path / "studio.db"))
    assert server.address.startswith("http://127.0.0.1:")
    assert httpx.get(f"{server.address}/api/health", timeout=PATIENCE).json()["ok"]
    headers = {"Authorization": f"Bearer {TOKEN}"}
    assert (
        httpx.get(f"{server.address}/api/studies", headers=headers, timeout=PATIENCE).json() == []
    )
    assert "server" not in httpx.get(server.address, timeout=PATIENCE).headers
    assert server.stop() == 0


def test_studio_without_json_prints_address_token_and_database(tmp_path: Path) -> None:
    words = ["studio", "--port", "0", "--database", str(tmp_path / "studio.db")]
    command = [sys.executable, "-u", "-c", "from revealed.cli import main; main()", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        lines = [run.stdout.readline() for _ in range(3)]
        run.terminate()
    assert lines[0].startswith("Studio: http://127.0.0.1:")
    assert len(lines[1].removeprefix("Token for studies: ").strip()) == 22
    assert lines[2] == f"Games are kept in {tmp_path / 'studio.db'}.\n"


def test_database_that_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    assert "cannot be opened" in refused(
        "--port", "0", "--database", str(tmp_path / "nowhere" / "studio.db")
    )
    assert "not supported" in refused("--port", "0", "--database", "oracle://here/there")


def test_port_that_is_taken_is_refused(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        said = refused(
            "--port", str(taken.getsockname()[1]), "--database", str(tmp_path / "studio.db")
        )
    assert "cannot listen on 127.0.0.1" in said


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--token", "short"], "at least 16"),
        (["--rate", "0"], "--rate must be at least 1"),
        (["--games", "nan"], "--games must be at least 1"),
        (["--learners", "0"], "--learners must be at least 1"),
        (["--particles", "50"], "--particles must be at least 100"),
        (["--noise", "probit"], "--noise must be normal or logit"),
        (["--lapse", "habit"], "no habits; give --lapse alone"),
        (["--lapse", "--noise", "normal"], "give --noise logit"),
        (["--host", "no.such.host.invalid"], "cannot listen on no.such.host.invalid"),
    ],
)
def test_options_out_of_range_are_refused(tmp_path: Path, words: list[str], sentence: str) -> None:
    assert sentence in refused(*words, "--database", str(tmp_path / "studio.db"))
    assert not (tmp_path / "studio.db").exists()


def test_studio_without_its_packages_says_what_to_install() -> None:
    """The core, the command line's help included, runs where the extra is not installed."""
    code = """
import sys
for name in ("fastapi", "uvicorn", "sqlalchemy", "starlette", "psycopg", "plotly", "httpx"):
    sys.modules[name] = None
import revealed
from revealed.cli import main
sys.argv = ["revealed", "studio", "--port", "0"]
main()
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert 'pip install "revealed[studio]"' in run.stderr
    assert run.stderr.count("\n") == 1
