"""200 simulated players at once for two minutes on one server process, twenty of them learnt from.

Players think for 0.5 to 1.5 seconds, then place a piece as low as it goes. Who is learnt from asks
after every move for the posterior and the understudy's board, as the page does. The time of a move
is that from sending it to having read the answer; this program's own work is on the same machine
and in the same figures. At the end every acknowledged move is looked up in the database. Then one
player is alone: from having read the answer to a move to having read the posterior after it, with
1,000 particles and 100 to 200 decisions before.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from benchmarks._record import Benchmark, Option, Result, cell, table

GOAL_MOVE, GOAL_LEARNT, GOAL_LEARNT_95 = 150.0, 30.0, 300.0  # milliseconds
DECISIONS_BEFORE = 100  # decisions


class Connection:
    """One connection that is kept, and as little between the clock and the socket as possible."""

    def __init__(self, address: str) -> None:
        self.host, self.port = urlsplit(address).hostname or "", urlsplit(address).port or 80
        self._stream: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """The status and the answer."""
        if self._stream is None:
            self._stream = await asyncio.open_connection(self.host, self.port)
        reader, writer = self._stream
        content = b"" if body is None else json.dumps(body).encode()
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: {self.host}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        )
        writer.write(head.encode() + content)
        answer = (await reader.readuntil(b"\r\n\r\n")).lower()
        size = int(answer.partition(b"content-length: ")[2].split(b"\r\n")[0])
        return int(answer[9:12]), json.loads(await reader.readexactly(size))


@dataclass
class PlayLog:
    """What all players together saw."""

    moves: list[float] = field(default_factory=list)
    learnt: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    acknowledged: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)


def lowest_placement(rng: random.Random, state: dict[str, Any]) -> dict[str, int]:
    """The placement that comes to rest lowest, one of them."""
    placement = max(
        state["placements"], key=lambda p: (sum(row for row, _ in p["cells"]), rng.random())
    )
    return {"turn": state["turn"], "rotation": placement["rotation"], "column": placement["column"]}


async def play(address: str, number: int, learn: bool, until: float, log: PlayLog) -> None:
    """Plays until the time is up."""
    rng, connection, state = random.Random(number), Connection(address), None
    await asyncio.sleep(rng.uniform(0.0, 1.0))
    while time.monotonic() < until:
        if state is None or state["over"]:
            status, state = await connection.ask("POST", "/api/games", {"learn": learn})
            if status != 201:
                log.errors.append(f"{status} {state}")
                return
        await asyncio.sleep(rng.uniform(0.5, 1.5))
        move = lowest_placement(rng, state)
        began = time.perf_counter()
        status, answer = await connection.ask("POST", f"/api/games/{state['game']}/moves", move)
        log.moves.append(1e3 * (time.perf_counter() - began))
        if status != 200:
            log.errors.append(f"{status} {answer}")
            return
        log.acknowledged[state["game"], move["turn"]] = move["rotation"], move["column"]
        state = answer["state"]
        if learn:
            began = time.perf_counter()
            for what in ("learning", "understudy"):
                known = state["turn"] if what == "learning" else state["turn"] - 1
                status, answer = await connection.ask(
                    "GET", f"/api/games/{state['game']}/{what}?turn={known}"
                )
                if status != 200:
                    log.errors.append(f"{status} {answer}")
                if what == "learning":
                    log.learnt.append(1e3 * (time.perf_counter() - began))


async def play_together(address: str, players: int, learners: int, seconds: float) -> PlayLog:
    """All players at once."""
    log, until = PlayLog(), time.monotonic() + seconds
    await asyncio.gather(*(play(address, n, n < learners, until, log) for n in range(players)))
    return log


async def play_alone(address: str, moves: int) -> list[float]:
    """How long one player waits for each posterior, the first hundred decisions left out."""
    rng, connection, times = np.random.default_rng(1), Connection(address), []
    state: dict[str, Any] = (
        await connection.ask("POST", "/api/games", {"learn": True, "seed": 3})
    )[1]
    for turn in range(DECISIONS_BEFORE + moves):
        _, answer = await connection.ask(
            "POST", f"/api/games/{state['game']}/moves", _noisy_placement(rng, state)
        )
        state = answer["state"]
        assert not state["over"], f"the game ended after {turn} moves"
        began = time.perf_counter()
        _, learnt = await connection.ask(
            "GET", f"/api/games/{state['game']}/learning?turn={state['turn']}"
        )
        assert learnt["turn"] == state["turn"], learnt
        if turn >= DECISIONS_BEFORE:
            times.append(1e3 * (time.perf_counter() - began))
        await asyncio.sleep(0.1)
    return times


def _noisy_placement(rng: np.random.Generator, state: dict[str, Any]) -> dict[str, int]:
    """A noisy player who dislikes height, holes and bumps."""
    from revealed.environments import Tetris

    board = np.array([[square != "." for square in row] for row in state["board"]], np.uint8)
    rows = Tetris().placements_with_features(board, state["piece"])[1]
    placement = state["placements"][
        int(np.argmax(rows @ [-0.6, -3.0, -0.2] + rng.standard_normal(len(rows))))
    ]
    return {"turn": state["turn"], "rotation": placement["rotation"], "column": placement["column"]}


async def wait_until_ready(address: str) -> None:
    """Wait until the studio learns: its loops may have to be compiled first."""
    connection = Connection(address)
    game = (await connection.ask("POST", "/api/games", {"learn": True}))[1]["game"]
    while (await connection.ask("GET", f"/api/games/{game}/learning"))[0] != 200:
        await asyncio.sleep(0.5)


def count_lost_moves(database: str, log: PlayLog) -> int:
    """How many acknowledged moves are not in the database as they were acknowledged."""
    from revealed.studio.storage.database import Storage

    storage, missing, found = Storage(database), 0, {}
    for (game, turn), placement in log.acknowledged.items():
        if game not in found:
            record = storage.game(game)
            found[game] = [] if record is None else [(m.rotation, m.column) for m in record[1]]
        missing += not (len(found[game]) > turn and found[game][turn] == placement)
    storage.close()
    return missing


@dataclass(frozen=True)
class Figures:
    """What came out; times in milliseconds."""

    players: int
    learners: int
    seconds: float
    moves: int
    errors: int
    lost: int
    move_median: float
    move_95: float
    move_99: float
    move_worst: float
    learnt_median: float | None
    learnt_95: float | None
    server_cpu: float | None
    alone_median: float
    alone_95: float
    alone_worst: float


def run_studio(database: str, players: int, learners: int, seconds: float, moves: int) -> Figures:
    """Start a studio, let all play, look everything up, then let one play alone."""
    words = [
        "--port",
        "0",
        "--json",
        "--database",
        database,
        "--rate",
        "100000",
        "--games",
        "100000",
    ]
    command = [sys.executable, "-c", "from revealed.cli import main; main()", "studio", *words]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        address = json.loads(server.stdout.readline())["address"]
        asyncio.run(wait_until_ready(address))
        began = _cpu(server.pid)
        log = asyncio.run(play_together(address, players, learners, seconds))
        busy = (_cpu(server.pid) - began) / seconds
        missing = count_lost_moves(database, log)
        by_oneself = asyncio.run(play_alone(address, moves))
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()
    for sentence in sorted(set(log.errors))[:5]:
        print(f"error: {sentence}", file=sys.stderr)
    half, most, nearly = np.percentile(log.moves, [50, 95, 99]).tolist()
    learnt, learnt_most = np.percentile(log.learnt or [np.nan], [50, 95]).tolist()
    own, own_most = np.percentile(by_oneself, [50, 95]).tolist()
    return Figures(
        players,
        learners,
        seconds,
        len(log.moves),
        len(log.errors),
        missing,
        half,
        most,
        nearly,
        max(log.moves),
        learnt,
        learnt_most,
        busy,
        own,
        own_most,
        max(by_oneself),
    )


def _cpu(pid: int) -> float:
    """Seconds of processor time a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(players: int, learners: int, seconds: float, moves: int, database: str) -> Result:
    """On the database that is named, or on a new file."""
    with tempfile.TemporaryDirectory() as folder:
        return asdict(
            run_studio(
                database or str(Path(folder) / "studio.db"), players, learners, seconds, moves
            )
        )


def tables(result: Result) -> str:
    """All players together and the one alone, then whether the goals were kept."""
    f = Figures(**result)
    rows = [
        (
            f"moves of {f.players} players, {f.learners} of them learnt from, in {f.seconds:.0f} "
            "seconds",
            f"{f.moves:,}",
        ),
        ("errors, moves lost", f"{f.errors}, {f.lost}"),
        (
            "answer to a move: median, 95 %, 99 %, most",
            f"{f.move_median:.0f}, {f.move_95:.0f}, {f.move_99:.0f}, {f.move_worst:.0f} ms",
        ),
        (
            "posterior after a move, players together: median, 95 %",
            _times(f.learnt_median, f.learnt_95),
        ),
        (
            f"posterior after a move, a player alone with {DECISIONS_BEFORE} decisions before: "
            "median, 95 %, most",
            _times(f.alone_median, f.alone_95, f.alone_worst),
        ),
        ("the server's share of a core", cell(f.server_cpu, ".0%")),
    ]
    goals = (
        f"a move below {GOAL_MOVE:g} ms in 95 %, no errors, no move lost, and for a player alone "
        "a posterior below "
        f"{GOAL_LEARNT:g} ms in half and {GOAL_LEARNT_95:g} ms in 95 %"
    )
    kept = "missed" if missed(result) else "kept"
    measured = table(("what", "measured"), [row for row in rows if row[1]])
    return f"{measured}\n\nGoals ({goals}): {kept}."


def missed(result: Result) -> str:
    """Whether a goal was missed."""
    f = Figures(**result)
    kept = f.move_95 < GOAL_MOVE and f.alone_median < GOAL_LEARNT and f.alone_95 < GOAL_LEARNT_95
    return "" if kept and not f.errors + f.lost else "a goal was missed"


def _times(*milliseconds: float | None) -> str:
    return ", ".join(
        f"{t:.0f} ms" if t < 100 else f"{t / 1e3:.1f} s" for t in milliseconds if t is not None
    )


def finding(result: Result) -> str:
    """Moves, losses and answers."""
    f = Figures(**result)
    return (
        f"{f.players} players: {f.moves:,} moves, {f.lost} lost, "
        f"95 % answered within {f.move_95:.0f} ms"
    )


BENCHMARK = Benchmark(
    __name__,
    __doc__,
    title="The studio under load",
    takes="three minutes",
    options={
        "players": Option(200, "players at once", quick=10),
        "learners": Option(20, "of them learnt from", quick=2),
        "seconds": Option(120.0, "of play", quick=5.0),
        "moves": Option(100, "of the player alone", quick=10),
        "database": Option("", "a file, or postgresql://...; default: a new file", recorded=False),
    },
    measure=measure,
    tables=tables,
    finding=finding,
    missed=missed,
)
