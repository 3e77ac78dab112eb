"""What one iteration of the paper's samplers costs, against one numpy standard normal a row.

Each round times the normals and then the sampler, so that both meet the same noise; the ratio is
taken within a round, and the median over rounds is shown with its quartiles. The goals are for
exact utilities, the default; the paper's Metropolis-Hastings step looks at every rival twice, and
costs more. Cost is not speed: how many iterations a draw is worth depends on how well the chain
mixes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

import revealed as rv
from benchmarks._problems import tetris_like, toy
from benchmarks._record import Benchmark, Option, Result, table
from revealed.data.decisions import Decisions
from revealed.models.priors import resolve_prior
from revealed.samplers.data_augmentation import AugmentationOptions, DataAugmentationSampler

PROBLEMS: dict[str, tuple[Callable[[], Decisions], str, float]] = {
    "toy, 7 states, 3 actions, T = 20": (toy, "px-both", 8.0),
    "Tetris-like (-3, -15, -1), T = 50": (lambda: tetris_like((-3, -15, -1)), "px-scale", 4.0),
    "Tetris-like (0, 5, 0), T = 50": (lambda: tetris_like((0, 5, 0)), "px-scale", 4.0),
    "Tetris-like (-20, 0, 1), T = 50": (lambda: tetris_like((-20, 0, 1)), "px-scale", 4.0),
    "Tetris-like (-3, -15, -1), T = 500": (
        lambda: tetris_like((-3, -15, -1), 500),
        "px-scale",
        4.0,
    ),
}
"""Problem -> how to make it, the paper's sampler, and the most it may cost, in normals a row."""


@dataclass(frozen=True)
class Cost:
    """One line of the table; times are medians over rounds, the ratio comes with its quartiles."""

    problem: str
    sampler: str
    utilities: str
    rows: int
    iteration_us: float
    row_ns: float
    normal_ns: float
    ratio: float
    ratio_low: float
    ratio_high: float
    at_most: float


def measure_cost(name: str, utilities: str, rounds: int) -> Cost:
    """Time one sampler on one problem against normals drawn in between."""
    make, sampler_name, at_most = PROBLEMS[name]
    decisions = make()
    sampler = DataAugmentationSampler.build(
        sampler_name,
        decisions,
        resolve_prior(rv.Normal(50.0), decisions),
        AugmentationOptions(utilities),
    )
    rng, normals = np.random.default_rng(1), np.random.default_rng(2)
    state, _, _ = sampler.sample(rng, sampler.init(rng, None), 1000, 1)
    rows = decisions.rows.shape[0]
    iterations = max(1, 1_000_000 // rows)
    buffer = np.empty(iterations * rows)
    cost, peer = np.empty(rounds), np.empty(rounds)
    for i in range(rounds):
        began = time.perf_counter()
        normals.standard_normal(out=buffer)
        peer[i] = (time.perf_counter() - began) / buffer.size
        began = time.perf_counter()
        state, _, _ = sampler.sample(rng, state, iterations, 1)
        cost[i] = (time.perf_counter() - began) / buffer.size
    row = float(np.median(cost))
    low, middle, high = np.quantile(cost / peer, [0.25, 0.5, 0.75])
    return Cost(
        name,
        sampler_name,
        utilities,
        rows,
        row * rows * 1e6,
        row * 1e9,
        float(np.median(peer)) * 1e9,
        float(middle),
        float(low),
        float(high),
        at_most,
    )


def measure(rounds: int) -> Result:
    """Every problem, with both ways to draw utilities."""
    return {
        "costs": [
            asdict(measure_cost(name, how, rounds))
            for name in PROBLEMS
            for how in ("exact", "metropolis")
        ]
    }


def tables(result: Result) -> str:
    """A line for each problem and way."""
    head = (
        "problem",
        "sampler",
        "utilities",
        "rows",
        "µs an iteration",
        "ns a row",
        "numpy normal, ns",
        "ratio (quartiles)",
        "goal",
    )
    costs = [Cost(**line) for line in result["costs"]]
    return table(
        head,
        [
            (
                c.problem,
                c.sampler,
                c.utilities,
                f"{c.rows}",
                f"{c.iteration_us:.2f}",
                f"{c.row_ns:.1f}",
                f"{c.normal_ns:.1f}",
                f"{c.ratio:.2f} ({c.ratio_low:.2f}-{c.ratio_high:.2f})",
                f"at most {c.at_most:.0f}" if c.utilities == "exact" else "",
            )
            for c in costs
        ],
    )


def finding(result: Result) -> str:
    """The range over problems, for the default."""
    ratios = [cost["ratio"] for cost in result["costs"] if cost["utilities"] == "exact"]
    return f"{min(ratios):.1f} to {max(ratios):.1f} numpy normals a row with exact utilities"


BENCHMARK = Benchmark(
    __name__,
    __doc__,
    title="What an iteration costs",
    takes="a minute",
    options={"rounds": Option(21, "rounds of normals and sampler in turn", quick=3)},
    measure=measure,
    tables=tables,
    finding=finding,
)
