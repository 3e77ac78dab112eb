"""Effective draws a second: the default engine against the paper's sampler for the same problem, in the same run.

    scripts/bench                        runs every benchmark
    python -m benchmarks.engines --json  this one, for machines

Of the slowest coefficient, bulk or of squares, whichever is fewer; one chain on one core, compilation and warm-up left
out. Each round runs both engines with a seed of its own; medians over rounds are reported with the extremes.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

import understudy as us
from benchmarks._problems import tetris_like, toy
from understudy.decisions import Decisions
from understudy.diagnostics import ess_bulk, ess_squares
from understudy.engines.augmented import widest
from understudy.engines.base import Engine
from understudy.engines.fit import make_engine
from understudy.priors import place

PROBLEMS: dict[str, Callable[[], Decisions]] = {
    "toy, 7 states, 3 actions, T = 20": toy,
    "Tetris-like (-3, -15, -1), T = 50": lambda: tetris_like((-3, -15, -1)),
    "Tetris-like (0, 5, 0), T = 50": lambda: tetris_like((0, 5, 0)),
    "Tetris-like (-20, 0, 1), T = 50": lambda: tetris_like((-20, 0, 1)),
    "Tetris-like (-20, 0, 1), T = 100": lambda: tetris_like((-20, 0, 1), 100),
}


@dataclass(frozen=True)
class Speed:
    """One line of the table."""

    problem: str
    paper: str
    paper_rate: float
    rate: float
    rate_low: float
    rate_high: float


def effective_rate(engine: Engine, iterations: int, seed: int) -> float:
    """Effective draws a second of the slowest coefficient."""
    rng = np.random.default_rng(seed)
    state, _, _ = engine.advance(rng, engine.start(rng, None), 1000, 1)
    began = time.perf_counter()
    _, draws, _ = engine.advance(rng, state, iterations, 1)
    took = time.perf_counter() - began
    return float(min(ess_bulk(draws[None]).min(), ess_squares(draws[None]).min()) / took)


def measure(name: str, rounds: int) -> Speed:
    """Both engines on one problem, in turns; the paper's sampler gets ten times the iterations, for it needs them."""
    decisions = PROBLEMS[name]()
    placed = place(us.Gaussian(2500.0), decisions)
    paper = widest(decisions, placed)
    slow, fast = (make_engine(engine, decisions, placed, {}) for engine in (paper, "blended"))
    iterations = max(2000, 8_000_000 // decisions.rows.shape[0])
    rates = np.array(
        [(effective_rate(slow, 10 * iterations, s), effective_rate(fast, iterations, s)) for s in range(rounds)]
    )
    middle = np.median(rates, axis=0)
    return Speed(name, paper, middle[0], middle[1], rates[:, 1].min(), rates[:, 1].max())


def main() -> None:
    """Measure everything and print a table."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--json", action="store_true")
    given = arguments.parse_args()
    speeds = [measure(name, given.rounds) for name in PROBLEMS]
    if given.json:
        print(json.dumps([asdict(speed) for speed in speeds], indent=1))
        return
    print("| problem | the paper's sampler | its effective draws a second | `blended` (least - most) | ratio |")
    print("|---|---|---|---|---|")
    for s in speeds:
        print(
            f"| {s.problem} | {s.paper} | {s.paper_rate:,.0f} | {s.rate:,.0f} ({s.rate_low:,.0f} - {s.rate_high:,.0f}) "
            f"| {s.rate / s.paper_rate:,.0f} |"
        )


if __name__ == "__main__":
    main()
