"""For tests of the studio: databases, a studio in this process or in its own, and a player.

Nothing here waits for a clock: waits end with an event, and `PATIENCE` only keeps a test that has
gone wrong from hanging for ever.
"""

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
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

POSTGRES_FOLDER = Path("/usr/lib/postgresql")
TOKEN = "a-token-for-the-tests"
PLAYER_VALUE = np.array([-0.6, -3.0, -0.2])
# Seconds after which a test gives up. A machine ten times slower than ours, busy with six other
# programs, must stay far below it.
PATIENCE = 600.0
# Seconds to wait for compiled loops: several minutes on an idle machine without a cache.
COMPILE_PATIENCE = 3600.0
# Seconds in which a studio in this process ends, its graceful shutdown included.
CLOSE_SECONDS = 30.0


def features_of(state: dict[str, Any]) -> Any:
    """(M, 3) the features of what a state offers, in its order."""
    from revealed.environments import Tetris

    board = [["0" if square == "." else "1" for square in row] for row in state["board"]]
    return Tetris().placements_with_features(np.array(board).astype(np.uint8), state["piece"])[1]


def choose_placement(
    rng: np.random.Generator, state: dict[str, Any], noise: float = 1.0
) -> dict[str, int]:
    """The body of a move that a noisy player with `PLAYER_VALUE` would make."""
    rows = features_of(state)
    utilities = rows @ PLAYER_VALUE + noise * rng.standard_normal(len(rows))
    place = state["placements"][int(np.argmax(utilities))]
    return {"turn": state["turn"], "rotation": place["rotation"], "column": place["column"]}


def choose_worst(state: dict[str, Any]) -> dict[str, int]:
    """The body of a move that `PLAYER_VALUE` likes least of all."""
    place = state["placements"][int(np.argmin(features_of(state) @ PLAYER_VALUE))]
    return {"turn": state["turn"], "rotation": place["rotation"], "column": place["column"]}


class ManualClock:
    """A clock that goes only when a test moves it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class LocalStudio:
    """A studio in this process: served on a free port by a thread, asked by `get` and `post`.

    `middleware` is the application that is served; `state` has the games, the learner and the
    limits behind it.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        import httpx
        import uvicorn

        from revealed.studio.server.app import create_app
        from revealed.studio.server.settings import Settings

        self.middleware = create_app(Settings(**settings))
        self.state: Any = self.middleware.app.state  # type: ignore[attr-defined]
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.bind(("127.0.0.1", 0))
        # Connections made before the server is ready wait in the queue of the socket.
        listening.listen(128)
        self.port = listening.getsockname()[1]
        # as the command does: a connection that a test has left open must not hold up the end
        config = uvicorn.Config(
            self.middleware, log_level="warning", lifespan="on", timeout_graceful_shutdown=10
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [listening]}, daemon=True
        )
        self._thread.start()
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=PATIENCE)
        self.get, self.post, self.request = self.http.get, self.http.post, self.http.request

    def close(self) -> None:
        """Stop it, as Ctrl-C would."""
        self.http.close()
        self._server.should_exit = True
        # a daemon: one that does not end must not hold up all tests
        self._thread.join(CLOSE_SECONDS)


OpenStudio = Callable[..., LocalStudio]
"""Opens a studio in this process, with settings of the test's own."""


class StudioProcess:
    """A studio in a process of its own; `address` is where it answers.

    `before` is Python code that is run first: for studios that are wrong on purpose.
    """

    def __init__(self, database: str, *options: str, before: str = "") -> None:
        words = ["studio", "--port", "0", "--json", "--database", database, "--token", TOKEN]
        code = f"{before}\nfrom revealed.cli import main\nmain()"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *words, *options], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        # The first line of output is written when the studio listens.
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the studio did not start: exit code {self.process.wait()}")
        self.address: str = json.loads(line)["address"]

    def wait_until_learning(self) -> None:
        """Wait until its loops are compiled, as its health says.

        Asking for what is learnt waits in the server, for five seconds each time, so this does not
        poll in a hurry.
        """
        import httpx

        end = time.monotonic() + COMPILE_PATIENCE
        with httpx.Client(base_url=self.address, timeout=PATIENCE) as client:
            game = client.post("/api/games", json={"learn": True}).json()["game"]
            while not client.get("/api/health").json()["learning"]:
                assert time.monotonic() < end, "the studio's loops were not compiled in an hour"
                client.get(f"/api/games/{game}/learning")

    def kill(self) -> None:
        """End it as hard as the system can."""
        self.process.kill()
        self.process.wait()
        self._close()

    def stop(self) -> int:
        """End it as Ctrl-C does; the exit code."""
        self.process.send_signal(signal.SIGINT)
        try:
            code = self.process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        self._close()
        return code

    def _close(self) -> None:
        assert self.process.stdout is not None
        self.process.stdout.close()


@contextmanager
def run_studio(database: str, *options: str) -> Iterator[StudioProcess]:
    """A studio process that is stopped at the end, if it still runs."""
    running = StudioProcess(database, *options)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.stop()


def postgres_binaries() -> Path | None:
    """The folder of PostgreSQL's programs, the newest; None where it is not installed."""
    found = sorted(POSTGRES_FOLDER.glob("*/bin/pg_ctl"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    other = shutil.which("pg_ctl")
    return None if other is None else Path(other).parent


class Postgres:
    """A PostgreSQL server for tests, in a temporary folder with its socket."""

    def __init__(self) -> None:
        binaries = postgres_binaries()
        assert binaries is not None
        self.binaries = binaries
        self.folder = Path(tempfile.mkdtemp(prefix="revealed-pg-"))
        self.data = self.folder / "data"
        # PostgreSQL refuses to run as root.
        if os.geteuid() == 0:
            shutil.chown(self.folder, "postgres")
        options = ["--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C"]
        self._run("initdb", "-D", str(self.data), "-U", "studio", *options)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.start()
        self._made = 0

    def _run(self, program: str, *words: str) -> None:
        as_other = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        subprocess.run(
            [*as_other, str(self.binaries / program), *words],
            check=True,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def _control(self, *words: str) -> None:
        """Run pg_ctl, which waits until it is done."""
        self._run("pg_ctl", "-D", str(self.data), "-t", str(int(PATIENCE)), "-w", *words)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = f"-c listen_addresses=127.0.0.1 -p {self.port} -k {self.folder}"
        self._control("-l", str(self.folder / "log"), "-o", options, "start")

    def stop(self) -> None:
        """Stop it at once, connections or not."""
        self._control("-m", "immediate", "stop")

    def database(self) -> str:
        """The address of a new, empty database."""
        import psycopg

        self._made += 1
        with psycopg.connect(
            f"postgresql://studio@127.0.0.1:{self.port}/postgres", autocommit=True
        ) as connection:
            connection.execute(f"CREATE DATABASE studio{self._made}")  # type: ignore[arg-type,unused-ignore]
        return f"postgresql://studio@127.0.0.1:{self.port}/studio{self._made}"

    def remove(self) -> None:
        """Stop it and take its folder away."""
        with suppress(subprocess.CalledProcessError):  # it may have been stopped before
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
