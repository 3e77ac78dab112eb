"""How many effective draws a second a method makes on a problem: of the slowest coefficient, bulk or of squares.

A method is prepared for a problem once, which compiles everything; then each run takes a seed and a number of seconds,
warms up outside the clock and samples inside it.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

import understudy as us
from benchmarks import _peers
from benchmarks._problems import Problem
from understudy._arrays import Floats
from understudy.decisions import Decisions
from understudy.diagnostics import ess_bulk, ess_squares
from understudy.engines.augmented import widest
from understudy.engines.base import Engine, State
from understudy.engines.fit import make_engine
from understudy.priors import Placed, place

WARMUP = 1000  # of our engines, as `us.fit` has it
NUTPIE_WARMUP, NUMPYRO_WARMUP = 400, 200  # nutpie's own default; NumPyro has none, and needs a minute for more
MOST = 500_000  # numbers kept in a run, draws times coefficients: enough to judge any chain by
PILOT = 0.05  # seconds spent on finding out what an iteration takes
TELLING = 50.0  # effective draws below which a rate is an upper guess: a chain that has not mixed cannot tell
SHORT = 500  # draws; a run that is cut off before could have been as good as independent, and is guessed to be

Run = Callable[[int, float], tuple[Floats, float]]
"""A seed and seconds in, (n, K) draws and the seconds they took out."""
Prepare = Callable[[Decisions, Placed, float], Run]
"""Compiles all there is to compile; a TimeoutError says that it took more than the seconds given."""


@dataclass(frozen=True)
class Figure:
    """One method in one round on one problem."""

    effective: float
    draws: int
    seconds: float

    @property
    def guess(self) -> bool:
        """Whether too few draws were effective to tell."""
        return self.effective < TELLING

    @property
    def rate(self) -> float:
        """Effective draws a second, or the most there can have been when the run was too short to tell."""
        return (self.draws if self.guess and self.draws < SHORT else self.effective) / self.seconds


@dataclass(frozen=True)
class Speed:
    """One method on one problem, over the rounds; `guess` says that in some round too few draws were effective to tell."""

    problem: str
    method: str
    rate: float
    low: float
    high: float
    guess: bool
    ratio: float
    """How many times faster the default is: the median over rounds."""
    effective: float | None = None
    """The fewest in a round."""


def effective(draws: Floats) -> float:
    """Effective draws of the slowest coefficient, bulk or of squares, in one chain (n, K)."""
    return float(min(ess_bulk(draws[None]).min(), ess_squares(draws[None]).min()))


def warmed(engine: Engine, rng: np.random.Generator) -> State:
    """The state after warm-up: the one place that knows how an engine is warmed up."""
    return engine.warm(rng, engine.start(rng, None), WARMUP, WARMUP)[0]


def our_engine(name: str, **options: str) -> Prepare:
    """One of our engines, "widest" for the widest move there is; those that forget slowly keep only as many of their draws as MOST allows."""

    def prepare(decisions: Decisions, placed: Placed, patience: float) -> Run:
        engine = make_engine(widest(decisions, placed) if name == "widest" else name, decisions, placed, options)
        warmed(engine, np.random.default_rng(0))

        def run(seed: int, seconds: float) -> tuple[Floats, float]:
            rng = np.random.default_rng(seed)
            state = warmed(engine, rng)
            pilot, began = 0, time.perf_counter()
            while pilot == 0 or time.perf_counter() - began < PILOT:
                state = engine.advance(rng, state, 10, 1)[0]
                pilot += 10
            iterations = max(10, int(seconds * pilot / (time.perf_counter() - began)))
            most = MOST // len(decisions.names)
            thin = max(1, iterations // most) if name != "auto" else 1
            began = time.perf_counter()
            _, draws, _ = engine.advance(rng, state, min(iterations // thin, most), thin)
            return draws, time.perf_counter() - began

        return run

    return prepare


def nutpie(decisions: Decisions, placed: Placed, patience: float) -> Run:
    """nutpie's NUTS on our own collapsed likelihood; warms up in every run."""
    most = MOST // len(decisions.names)
    _peers.nutpie_draws(decisions, placed, 2, 10, 0)

    def run(seed: int, seconds: float) -> tuple[Floats, float]:
        made = _peers.nutpie_draws(decisions, placed, most, NUTPIE_WARMUP, seed, seconds)
        return made.draws, made.sampling

    return run


def numpyro(decisions: Decisions, placed: Placed, patience: float) -> Run:
    """NumPyro's NUTS on a quadrature likelihood; compiles and warms up once a problem, and every run goes on from there."""
    peer = _peers.Numpyro(decisions, placed, NUMPYRO_WARMUP)
    peer.warm_up(0, patience)
    most = MOST // len(decisions.names)

    def run(seed: int, seconds: float) -> tuple[Floats, float]:
        made = peer.sample(most, seed, seconds)
        return made.draws, made.sampling

    return run


METHODS: dict[str, Prepare] = {
    "default": our_engine("auto"),
    "da": our_engine("da", utilities="metropolis"),
    "paper": our_engine("widest", utilities="metropolis"),
    "exact": our_engine("widest"),
    "nutpie": nutpie,
    "numpyro": numpyro,
}
"""Method -> how it is prepared for a problem. "paper" is px-both or px-scale, whichever is the widest move there is,
with utilities moved by Metropolis-Hastings as in the paper; "exact" is the same with our exact draw of them."""


def prepared(problem: Problem, method: str, patience: float = math.inf) -> Run:
    """A method, ready to run on a problem of the suite."""
    decisions = problem.make(1)
    return METHODS[method](decisions, place(us.Gaussian(problem.kappa), decisions), patience)


def one_run(run: Run, seed: int, seconds: float) -> Figure:
    """One method in one round."""
    draws, took = run(seed, seconds)
    return Figure(effective(draws), len(draws), took)


def compare(problem: Problem, methods: Sequence[str], rounds: int, seconds: float, patience: float) -> Iterator[Speed]:
    """All methods in turn, in every round with a seed of its own; one that is never ready is left out."""
    runs: dict[str, Run] = {}
    for method in methods:
        try:
            runs[method] = prepared(problem, method, patience)
        except TimeoutError as slow:
            print(f"{method} is left out of {problem.name}: {slow}", file=sys.stderr)
    figures: dict[str, list[Figure]] = {method: [] for method in runs}
    for seed in range(1, rounds + 1):
        for method, run in runs.items():
            figures[method].append(one_run(run, seed, seconds))
    for method, made in figures.items():
        rates = np.array([figure.rate for figure in made])
        fastest = np.array([figure.rate for figure in figures.get("default", made)])
        yield Speed(
            problem.name,
            method,
            rate=float(np.median(rates)),
            low=float(rates.min()),
            high=float(rates.max()),
            effective=min(figure.effective for figure in made),
            guess=any(figure.guess for figure in made),
            ratio=float(np.median(fastest / rates)),
        )


def over_seeds(problem: Problem, seeds: int, seconds: float) -> Floats:
    """(seeds,) rates of the default engine, sorted; each seed warms up afresh."""
    run = prepared(problem, "default")
    return np.sort([one_run(run, seed, seconds).rate for seed in range(1, seeds + 1)])
