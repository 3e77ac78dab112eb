"""All legal placements of a state of Tetris with their features, beside tetris-gymnasium.

Also timed are a noisy player's decisions. States are met in play by the same reasonable player on a
30 x 10 board; ours and the peer take turns, and medians over rounds are shown with the extremes.
The peer's GroupedActionsObservations looks at all 40 placements of a state (four rotations of every
column) and takes its own features of each; ours are the literal placements, as many, with the
paper's three.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmarks._record import Benchmark, Option, Result, table
from revealed.environments.tetris import Tetris
from revealed.environments.tetris.features import FEATURE_SETS

VALUE = (-3.0, -15.0, -1.0)
STATES = 200
OURS = "all literal placements of a state"
PEER = f"{OURS}, tetris-gymnasium"
AT_MOST = {"paper": 25e-6}  # seconds for all placements of a state
SIMULATED, WITHIN = 500, 0.1  # noisy decisions, and the seconds they may take


@dataclass(frozen=True)
class Time:
    """Seconds for one thing: the median over rounds, and the extremes."""

    what: str
    seconds: float
    low: float
    high: float
    goal: float | None = None


def measure(rounds: int) -> Result:
    """Everything in turns, so that all meet the same noise."""
    jobs = {
        f"all placements of a state, {name} features": (_time_placements(name), AT_MOST.get(name))
        for name in FEATURE_SETS
    }
    jobs[f"{OURS}, paper features"] = _time_placements("paper", "literal"), None
    jobs[f"{SIMULATED} noisy decisions"] = _time_simulation, WITHIN
    if importlib.util.find_spec("tetris_gymnasium") is None:
        print(
            "tetris-gymnasium is not installed and is left out; scripts/bench installs it",
            file=sys.stderr,
        )
    else:
        jobs[PEER] = _time_peer(), None
    seconds: dict[str, list[float]] = {what: [] for what in jobs}
    for job, _ in jobs.values():
        job()
    for _ in range(rounds):
        for what, (job, _) in jobs.items():
            seconds[what].append(job())
    times = [
        Time(what, float(np.median(s)), min(s), max(s), jobs[what][1])
        for what, s in seconds.items()
    ]
    return {"times": [asdict(t) for t in times]}


def tables(result: Result) -> str:
    """A line for each thing that was timed."""
    return table(
        ("what", "median", "lowest - highest", "goal"),
        [
            (
                t.what,
                _format_seconds(t.seconds),
                f"{_format_seconds(t.low)} - {_format_seconds(t.high)}",
                "" if t.goal is None else f"at most {_format_seconds(t.goal)}",
            )
            for t in (Time(**line) for line in result["times"])
        ],
    )


def _time_placements(features: str, actions: str = "distinct") -> Callable[[], float]:
    """A function that times all placements of the states of one rollout, in seconds a state."""
    environment = Tetris(actions=actions, features=features)
    rollout = Tetris().simulate(np.random.default_rng(1), VALUE, STATES)
    states = list(zip(rollout.boards, rollout.pieces.tolist(), strict=True))

    def once() -> float:
        begin = time.perf_counter()
        for board, piece in states:
            environment.placements_with_features(board, piece)
        return (time.perf_counter() - begin) / STATES

    return once


def _time_simulation() -> float:
    """The seconds that 500 noisy decisions take."""
    begin = time.perf_counter()
    Tetris().simulate(np.random.default_rng(1), VALUE, SIMULATED)
    return time.perf_counter() - begin


def _time_peer() -> Callable[[], float]:
    """A function that times a step of tetris-gymnasium, in seconds."""
    import gymnasium

    importlib.import_module("tetris_gymnasium.envs.tetris")  # registers the environment
    grouped: Any = importlib.import_module("tetris_gymnasium.wrappers.grouped")
    observed: Any = importlib.import_module("tetris_gymnasium.wrappers.observation")

    plain = gymnasium.make("tetris_gymnasium/Tetris", height=30, width=10)
    env = grouped.GroupedActionsObservations(
        plain, observation_wrappers=[observed.FeatureVectorObservation(plain)]
    )
    rng = np.random.default_rng(1)
    steps = 5

    def once() -> float:
        _, info = env.reset(seed=1)
        begin = time.perf_counter()
        for _ in range(steps):
            _, _, ended, _, info = env.step(int(rng.choice(np.flatnonzero(info["action_mask"]))))
            if ended:
                _, info = env.reset()
        return (time.perf_counter() - begin) / steps

    return once


def _format_seconds(seconds: float) -> str:
    """A time for people, in microseconds or milliseconds."""
    return f"{1e6 * seconds:.1f} µs" if seconds < 1e-3 else f"{1e3 * seconds:.1f} ms"


def finding(result: Result) -> str:
    """All placements of a state, ours and the peer's."""
    seconds = {line["what"]: line["seconds"] for line in result["times"]}
    peer = f"; tetris-gymnasium {_format_seconds(seconds[PEER])}" if PEER in seconds else ""
    return (
        f"all placements of a state in {_format_seconds(seconds[f'{OURS}, paper features'])}{peer}"
    )


BENCHMARK = Benchmark(
    __name__,
    __doc__,
    title="Placements in Tetris",
    takes="a minute",
    options={"rounds": Option(9, "rounds of all in turn", quick=2)},
    measure=measure,
    tables=tables,
    finding=finding,
    packages=("tetris-gymnasium", "gymnasium"),
)
