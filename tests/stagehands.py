"""For tests of the studio: databases to run it on, a studio in this process or in one of its own, and somebody who plays."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

BINARIES = Path("/usr/lib/postgresql")
TOKEN = "a-token-for-the-tests"
VALUE = np.array([-0.6, -3.0, -0.2])


def features_of(state: dict[str, Any]) -> Any:
    """(M, 3) the features of what a state offers, in its order."""
    from understudy.worlds import Tetris

    board = [["0" if square == "." else "1" for square in row] for row in state["board"]]
    return Tetris().offer(np.array(board).astype(np.uint8), state["piece"])[1]


def pick(rng: np.random.Generator, state: dict[str, Any], noise: float = 1.0) -> dict[str, int]:
    """A placement that a noisy player with given wishes would choose."""
    rows = features_of(state)
    place = state["placements"][int(np.argmax(rows @ VALUE + noise * rng.standard_normal(len(rows))))]
    return {"turn": state["turn"], "rotation": place["rotation"], "column": place["column"]}


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Inside:
    """A studio in this process: served on a free port by a thread, asked by `get` and `post`."""

    def __init__(self, settings: dict[str, Any]) -> None:
        import httpx
        import uvicorn

        from understudy.studio.app import create_app
        from understudy.studio.settings import Settings

        self.gate = create_app(Settings(**settings))
        self.state: Any = self.gate.app.state  # type: ignore[attr-defined]
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.bind(("127.0.0.1", 0))
        listening.listen(128)  # who asks before the server is ready waits
        self.port = listening.getsockname()[1]
        self._server = uvicorn.Server(uvicorn.Config(self.gate, log_level="warning", lifespan="on"))
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [listening]}, daemon=True)
        self._thread.start()
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=60)
        self.get, self.post, self.request = self.http.get, self.http.post, self.http.request

    def close(self) -> None:
        """Stop it, as Ctrl-C would."""
        self.http.close()
        self._server.should_exit = True
        self._thread.join()


Opened = Callable[..., Inside]
"""Opens a studio in this process, with settings of one's own."""


class Studio:
    """A studio in a process of its own."""

    def __init__(self, database: str, *options: str, before: str = "") -> None:
        words = ["studio", "--port", "0", "--json", "--database", database, "--token", TOKEN, *options]
        code = f"{before}\nfrom understudy.cli import main\nmain()"  # `before` is for studios that are wrong on purpose
        self.process = subprocess.Popen([sys.executable, "-c", code, *words], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the studio did not start: exit code {self.process.wait()}")
        self.address: str = json.loads(line)["address"]

    def kill(self) -> None:
        """As hard as it goes."""
        self.process.kill()
        self.process.wait()
        self._close()

    def stop(self) -> int:
        """As Ctrl-C does; the exit code."""
        self.process.send_signal(signal.SIGINT)
        try:
            code = self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        self._close()
        return code

    def _close(self) -> None:
        assert self.process.stdout is not None
        self.process.stdout.close()


@contextmanager
def studio(database: str, *options: str) -> Iterator[Studio]:
    """A studio that is stopped at the end, if it still runs."""
    running = Studio(database, *options)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.stop()


def postgres_binaries() -> Path | None:
    """Where Debian keeps PostgreSQL's programs, the newest; None where it is not installed."""
    found = sorted(BINARIES.glob("*/bin/pg_ctl"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    other = shutil.which("pg_ctl")
    return None if other is None else Path(other).parent


class Postgres:
    """A PostgreSQL server of the tests' own, in a folder that goes with it, on a socket in that folder."""

    def __init__(self) -> None:
        binaries = postgres_binaries()
        assert binaries is not None
        self.binaries = binaries
        self.folder = Path(tempfile.mkdtemp(prefix="understudy-pg-"))
        self.data = self.folder / "data"
        if os.geteuid() == 0:  # PostgreSQL refuses to be root
            shutil.chown(self.folder, "postgres")
        self._run(
            "initdb", "-D", str(self.data), "-U", "studio", "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C"
        )
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.start()
        self._made = 0

    def _run(self, program: str, *words: str) -> None:
        as_other = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        subprocess.run(
            [*as_other, str(self.binaries / program), *words],
            check=True, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = f"-c listen_addresses=127.0.0.1 -p {self.port} -k {self.folder}"
        self._run("pg_ctl", "-D", str(self.data), "-l", str(self.folder / "log"), "-w", "-o", options, "start")

    def stop(self) -> None:
        """Stop it at once, connections or not."""
        self._run("pg_ctl", "-D", str(self.data), "-m", "immediate", "-w", "stop")

    def database(self) -> str:
        """The address of a new, empty database."""
        import psycopg

        self._made += 1
        with psycopg.connect(f"postgresql://studio@127.0.0.1:{self.port}/postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE studio{self._made}")  # type: ignore[arg-type,unused-ignore]
        return f"postgresql://studio@127.0.0.1:{self.port}/studio{self._made}"

    def remove(self) -> None:
        """Stop it and take its folder away."""
        with suppress(subprocess.CalledProcessError):  # it may have been stopped before
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
