"""Seconds to the first 1,000 effective draws by `rv.fit`, one chain on one core.

Everything is included: counting equal decisions, the mode, warm-up and draws.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import revealed as rv
from benchmarks._measure import effective
from benchmarks._problems import Problem
from revealed._types import Floats

TARGET_ESS = 1000.0
MAX_TRIES = 8
COLD_PROGRAM = """
import sys
from benchmarks import _first, _problems
print(_first.timed_fit(_problems.SUITE[sys.argv[1]], int(sys.argv[2]), 1)[1])
"""


@dataclass(frozen=True)
class FirstDraws:
    """One problem: how many draws 1,000 effective ones take, and how many seconds.

    `with_compilation` are the seconds in a process that has compiled nothing; None: not measured.
    """

    problem: str
    draws: int
    effective: float
    seconds: float
    with_compilation: float | None = None


def timed_fit(problem: Problem, draws: int, seed: int) -> tuple[Floats, float]:
    """(n, K) draws by `rv.fit`, and the seconds of the call."""
    decisions = problem.make(1)
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rv.NotConvergedWarning)
        post = rv.fit(
            decisions,
            rv.ChoiceModel(prior=rv.Normal(problem.prior_sd)),
            draws=draws,
            chains=1,
            executor=1,
            seed=seed,
            progress=False,
        )
    return post.draws["value"][0], time.perf_counter() - began


def measure(problem: Problem, cold: bool) -> FirstDraws:
    """The draws and seconds to 1,000 effective ones, with everything compiled.

    `cold` adds the seconds in a process that has compiled nothing.
    """
    # The first fit compiles, and is not timed.
    draws = 1000
    timed_fit(problem, draws, 0)
    for seed in range(1, MAX_TRIES + 1):
        made, seconds = timed_fit(problem, draws, seed)
        ess = effective(made)
        if ess >= TARGET_ESS:
            break
        # ten per cent more than the rate so far says are needed
        draws = int(draws * 1.1 * TARGET_ESS / max(ess, 0.1 * TARGET_ESS)) + 1
    # where no try was ess, the line shows the last one with the effective draws it had
    draws = len(made)
    return FirstDraws(
        problem.name, draws, ess, seconds, _seconds_cold(problem.name, draws) if cold else None
    )


def _seconds_cold(name: str, draws: int) -> float:
    """The seconds of one fit in a new process with an empty cache of compiled code."""
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run(
            [sys.executable, "-c", COLD_PROGRAM, name, str(draws)],
            env={**os.environ, "NUMBA_CACHE_DIR": folder},
            cwd=Path(__file__).resolve().parents[1],
            capture_output=True,
            text=True,
            check=True,
        )
    return float(run.stdout.split()[-1])
