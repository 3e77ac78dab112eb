"""How many effective draws a second a method makes on a problem.

They are those of the slowest coefficient, bulk or of squares. A method is prepared for a problem
once, which compiles everything; then each run takes a seed and a number of seconds, warms up
before the clock starts, and samples.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

import revealed as rv
from benchmarks import _peers
from benchmarks._problems import Problem
from revealed._types import Floats
from revealed.data.decisions import Decisions
from revealed.results.diagnostics import ess_bulk, ess_sd
from revealed.samplers.base import Sampler, State
from revealed.samplers.data_augmentation import most_expanded
from revealed.samplers.model_kind import kind_of
from revealed.samplers.registry import REGISTRY, BuildArguments


@dataclass(frozen=True)
class MeasuringPlan:
    """How runs are measured.

    warmup: iterations of our samplers, the default of `rv.fit`.
    nutpie_warmup: nutpie's own default.
    numpyro_warmup: NumPyro has no default, and more would take a minute.
    max_numbers: draws times coefficients kept of a run; enough to diagnose any chain.
    pilot_seconds: spent on finding out what an iteration takes.
    min_ess: effective draws below which a rate is only an upper guess.
    min_draws: a run with fewer draws could have been as good as independent, and is counted so.
    """

    warmup: int = 1000
    nutpie_warmup: int = 400
    numpyro_warmup: int = 200
    max_numbers: int = 500_000
    pilot_seconds: float = 0.05
    min_ess: float = 50.0
    min_draws: int = 500


PLAN = MeasuringPlan()

Run = Callable[[int, float], tuple[Floats, float]]
"""A seed and seconds in, (n, K) draws and the seconds they took out."""
Prepare = Callable[[Decisions, rv.ChoiceModel, float], Run]
"""Compiles all there is to compile.

A TimeoutError says that it took more than the seconds given.
"""


@dataclass(frozen=True)
class Measurement:
    """One method in one round on one problem."""

    effective: float
    draws: int
    seconds: float

    @property
    def guess(self) -> bool:
        """Whether too few draws were effective to measure a rate."""
        return self.effective < PLAN.min_ess

    @property
    def rate(self) -> float:
        """Effective draws a second.

        Where too few were effective and the run was short, the most there can have been.
        """
        return (
            self.draws if self.guess and self.draws < PLAN.min_draws else self.effective
        ) / self.seconds


@dataclass(frozen=True)
class Speed:
    """One method on one problem, over the rounds.

    `guess` says that in some round too few draws were effective to measure a rate.
    """

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
    return float(min(ess_bulk(draws[None]).min(), ess_sd(draws[None]).min()))


def warm_up(sampler: Sampler, rng: np.random.Generator) -> State:
    """The state of a sampler after its warm-up."""
    return sampler.warmup(rng, sampler.init(rng, None), PLAN.warmup, PLAN.warmup)[0]


def our_sampler(name: str, **options: str) -> Prepare:
    """One of our samplers; "widest" is the widest move of the paper that the problem allows.

    Samplers with long autocorrelations are thinned to `PLAN.max_numbers`.
    """

    def prepare(decisions: Decisions, model: rv.ChoiceModel, patience: float) -> Run:
        resolved = model.resolve(decisions)
        own = most_expanded(decisions, resolved.prior) if name == "widest" else name
        build = REGISTRY.find(own, kind_of(model)).build
        assert build is not None
        sampler = build(resolved, BuildArguments(options, draws=PLAN.max_numbers))
        warm_up(sampler, np.random.default_rng(0))

        def run(seed: int, seconds: float) -> tuple[Floats, float]:
            rng = np.random.default_rng(seed)
            state = warm_up(sampler, rng)
            # A short run says how many iterations fit into the time.
            pilot, began = 0, time.perf_counter()
            while pilot == 0 or time.perf_counter() - began < PLAN.pilot_seconds:
                state = sampler.sample(rng, state, 10, 1)[0]
                pilot += 10
            iterations = max(10, int(seconds * pilot / (time.perf_counter() - began)))
            most = PLAN.max_numbers // len(decisions.names)
            thin = max(1, iterations // most) if name != "auto" else 1
            began = time.perf_counter()
            _, draws, _ = sampler.sample(rng, state, min(iterations // thin, most), thin)
            return draws["value"], time.perf_counter() - began

        return run

    return prepare


def nutpie(decisions: Decisions, model: rv.ChoiceModel, patience: float) -> Run:
    """nutpie's NUTS on our own collapsed likelihood; warms up in every run."""
    resolved_prior = model.resolve(decisions).prior
    most = PLAN.max_numbers // len(decisions.names)
    _peers.nutpie_draws(decisions, resolved_prior, 2, 10, 0)

    def run(seed: int, seconds: float) -> tuple[Floats, float]:
        made = _peers.nutpie_draws(
            decisions, resolved_prior, most, PLAN.nutpie_warmup, seed, seconds
        )
        return made.draws, made.sampling

    return run


def numpyro(decisions: Decisions, model: rv.ChoiceModel, patience: float) -> Run:
    """NumPyro's NUTS on a quadrature likelihood.

    It compiles and warms up once for a problem, and every run goes on from there.
    """
    peer = _peers.Numpyro(decisions, model.resolve(decisions).prior, PLAN.numpyro_warmup)
    peer.warm_up(0, patience)
    most = PLAN.max_numbers // len(decisions.names)

    def run(seed: int, seconds: float) -> tuple[Floats, float]:
        made = peer.sample(most, seed, seconds)
        return made.draws, made.sampling

    return run


METHODS: dict[str, Prepare] = {
    "default": our_sampler("auto"),
    "da": our_sampler("da", utilities="metropolis"),
    "paper": our_sampler("widest", utilities="metropolis"),
    "exact": our_sampler("widest"),
    "nutpie": nutpie,
    "numpyro": numpyro,
}
"""Method -> how it is prepared for a problem.

"paper" is px-both or px-scale, whichever is the widest move there is, with utilities moved by
Metropolis-Hastings as in the paper; "exact" is the same with our exact draw of them."""


def prepare_method(problem: Problem, method: str, patience: float = math.inf) -> Run:
    """A method, ready to run on a problem of the suite."""
    decisions = problem.make(1)
    model = rv.ChoiceModel(prior=rv.Normal(problem.prior_sd))
    return METHODS[method](decisions, model, patience)


def one_run(run: Run, seed: int, seconds: float) -> Measurement:
    """One method in one round: its effective draws and seconds."""
    draws, took = run(seed, seconds)
    return Measurement(effective(draws), len(draws), took)


def compare(
    problem: Problem, methods: Sequence[str], rounds: int, seconds: float, patience: float
) -> Iterator[Speed]:
    """The speeds of all methods, which run in turn in every round, with a seed for each round.

    A method that is not ready within `patience` seconds is left out.
    """
    runs: dict[str, Run] = {}
    for method in methods:
        try:
            runs[method] = prepare_method(problem, method, patience)
        except TimeoutError as slow:
            print(f"{method} is left out of {problem.name}: {slow}", file=sys.stderr)
    figures: dict[str, list[Measurement]] = {method: [] for method in runs}
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
    """(seeds,) rates of the default sampler, sorted; each seed warms up afresh."""
    run = prepare_method(problem, "default")
    return np.sort([one_run(run, seed, seconds).rate for seed in range(1, seeds + 1)])
