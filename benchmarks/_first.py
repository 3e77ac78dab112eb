"""Seconds to the first 1,000 effective draws by the public path, warm-up and all: `us.fit`, one chain on one core."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import understudy as us
from benchmarks._measure import effective
from benchmarks._problems import Problem
from understudy._arrays import Floats

WANTED = 1000.0
TRIES = 8
COLD = """
import sys
from benchmarks import _first, _problems
print(_first.timed_fit(_problems.SUITE[sys.argv[1]], int(sys.argv[2]), 1)[1])
"""


@dataclass(frozen=True)
class First:
    """One problem: how many draws 1,000 effective ones take, and the seconds with and without compilation."""

    problem: str
    draws: int
    effective: float
    seconds: float
    with_compilation: float | None = None


def timed_fit(problem: Problem, draws: int, seed: int) -> tuple[Floats, float]:
    """(n, K) draws by `us.fit`, and the seconds of the call."""
    decisions = problem.make(1)
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", us.NotConvergedWarning)
        post = us.fit(
            decisions, us.Gaussian(problem.kappa), draws=draws, chains=1, threads=1, seed=seed, progress=False
        )
    return post.draws[0], time.perf_counter() - began


def measure(problem: Problem, cold: bool) -> First:
    """Find how many draws it takes, with everything compiled; if asked, the same in a process that has compiled nothing."""
    draws = 1000
    timed_fit(problem, draws, 0)
    for seed in range(1, TRIES + 1):
        made, seconds = timed_fit(problem, draws, seed)
        enough = effective(made)
        if enough >= WANTED:
            break
        draws = int(draws * 1.1 * WANTED / max(enough, 0.1 * WANTED)) + 1
    # where no try was enough, the line shows the last one with the effective draws it had
    draws = len(made)
    return First(problem.name, draws, enough, seconds, _cold(problem.name, draws) if cold else None)


def _cold(name: str, draws: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run(
            [sys.executable, "-c", COLD, name, str(draws)],
            env={**os.environ, "NUMBA_CACHE_DIR": folder}, cwd=Path(__file__).resolve().parents[1],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    return float(run.stdout.split()[-1])
