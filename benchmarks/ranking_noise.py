"""Rankings under logit noise (Plackett-Luce) beside normal noise, and beside choix.

A league: 2,000 players whose skills are standard normal, 20,000 games of four with Gumbel noise,
line-ups drawn at random; both models infer skills and spread from the same games, with equal
settings, two chains one after the other on one core. Shown are the seconds of processor time,
warm-up included, the fewest effective draws of any skill, and how many of these a second makes.

NASCAR's season of 2002 without the four drivers who were always last, for whom there is no maximum
(36 races, 83 drivers): the most likely skills by `choix` (ilsr_rankings), how far from expected our
gradient has any driver's number of choices there, which is zero at the maximum, and our posterior
under a flat prior. The data are read from `shared/data` beside the project, as is
[the next race](benchmarks.md#the-next-race-predicted).
"""

from __future__ import annotations

import importlib
import importlib.util
import time
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv

import revealed as rv
from benchmarks._record import Benchmark, Option, Result, table
from revealed.kernels.plackett_luce import log_likelihood, make_luce_games
from revealed.results.diagnostics import ess_bulk, r_hat

PLAYERS, GAMES, ENTRIES = 2_000, 20_000, 4
LEAST_RATIO = 20.0  # claimed of effective draws a second, logit noise over normal
NASCAR = Path(__file__).resolve().parents[2] / "shared" / "data" / "nascar2002.csv"
NOISES: dict[str, rv.NormalNoise | rv.LogitNoise] = {
    "normal": rv.NormalNoise(),
    "logit": rv.LogitNoise(),
}


@dataclass(frozen=True)
class Run:
    """How long a fit took, and how good the draws of its slowest skill are."""

    noise: str
    draws: int
    seconds: float
    fewest: float
    worst_r_hat: float

    @property
    def speed(self) -> float:
        """Effective draws of the slowest skill a second."""
        return self.fewest / self.seconds


def fit_league(share: float, draws: int, warmup: int) -> list[Run]:
    """The league under both noises; `share` makes it smaller."""
    players, games = int(share * PLAYERS), int(share * GAMES)
    rng = np.random.default_rng(1)
    skill = rng.standard_normal(players)
    who = np.array([rng.choice(players, ENTRIES, replace=False) for _ in range(games)])
    order = np.argsort(-(skill[who] + rv.LogitNoise().sample(rng, who.shape)), axis=1)
    orders = rv.Rankings.from_lists(np.take_along_axis(who, order, 1).tolist())
    found = []
    for name, noise in NOISES.items():
        model = rv.RankingModel(noise=noise)
        rv.fit(orders[:50], model, draws=5, warmup=5, chains=1, progress=False)  # compiles
        began = time.process_time()
        fit = rv.fit(
            orders, model, draws=draws, warmup=warmup, chains=2, executor=1, progress=False
        )
        seconds, skills = time.process_time() - began, fit.draws["skill"]
        fewest, worst = float(ess_bulk(skills).min()), float(r_hat(skills).max())
        found.append(Run(name, 2 * draws, seconds, fewest, worst))
    return found


def fit_season() -> dict[str, Any]:
    """NASCAR 2002: choix's maximum, our gradient there, and our posterior."""
    found = pyarrow.csv.read_csv(NASCAR).sort_by([("race", "ascending"), ("finish", "ascending")])
    races: dict[int, list[str]] = {}
    for race, driver in zip(*(found[c].to_pylist() for c in ("race", "driver")), strict=True):
        races.setdefault(race, []).append(driver)
    # four beat nobody
    kept = {driver for race in races.values() for driver in race[:-1]}
    season = rv.Rankings.from_lists([[d for d in race if d in kept] for race in races.values()])
    began = time.process_time()
    model = rv.RankingModel(prior=rv.Flat(), noise=rv.LogitNoise())
    fit = rv.fit(season, model, draws=1000, executor=1, progress=False)
    seconds, count = time.process_time() - began, len(season.names)
    answer = {
        "drivers": count,
        "seconds": seconds,
        "fewest": float(ess_bulk(fit.draws["skill"]).min()),
        "choix_seconds": None,
        "gradient": None,
    }
    if importlib.util.find_spec("choix") is None:
        return answer
    peer = importlib.import_module("choix")
    orders = np.split(season.players, season.start[1:-1])
    began = time.process_time()
    mode = peer.ilsr_rankings(count, [order.tolist() for order in orders])
    taken = time.process_time() - began
    parts = season.players, season.member_start, season.start, season.tied, season.n_ordered
    gradient = np.empty(count)
    log_likelihood(make_luce_games(*parts, count), mode, gradient)
    return answer | {"choix_seconds": taken, "gradient": float(np.abs(gradient).max())}


def measure(share: float, draws: int, warmup: int) -> Result:
    """The league, and the season where its data are."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # R-hat and effective draws are reported
        league = [asdict(run) for run in fit_league(share, draws, warmup)]
        return {"league": league, "season": fit_season() if NASCAR.exists() else None}


def ratio(result: Result) -> float:
    """Effective draws a second under logit noise over those under normal noise."""
    normal, logit = (Run(**line) for line in result["league"])
    return logit.speed / normal.speed


def tables(result: Result) -> str:
    """A line for each noise; then the season."""
    head = (
        "noise",
        "draws",
        "seconds",
        "fewest effective draws",
        "effective draws a second",
        "largest R-hat",
    )
    runs = [Run(**line) for line in result["league"]]
    found = table(
        head,
        [
            (
                run.noise,
                f"{run.draws:,}",
                f"{run.seconds:,.1f}",
                f"{run.fewest:,.0f}",
                f"{run.speed:,.2f}",
                f"{run.worst_r_hat:.3f}",
            )
            for run in runs
        ],
    )
    season = result["season"]
    if season is None:
        return found
    peer = (
        "choix took no part."
        if season["gradient"] is None
        else f"choix finds the maximum in {season['choix_seconds']:.2g} seconds, where our "
        f"gradient is at most {season['gradient']:.1g} choices of any driver."
    )
    return (
        f"{found}\n\nThe season of {season['drivers']} drivers: {peer} Four chains of 1,000 draws "
        f"of the posterior took {season['seconds']:.2g} seconds, with at least "
        f"{season['fewest']:,.0f} effective draws."
    )


def finding(result: Result) -> str:
    """How much faster effective draws are."""
    return f"{ratio(result):,.0f} times the effective draws a second under logit noise"


def missed(result: Result) -> str:
    """Where the ratio is below what is claimed."""
    found = ratio(result)
    if found >= LEAST_RATIO:
        return ""
    return f"{found:.1f} times the effective draws a second, where {LEAST_RATIO:g} are claimed"


BENCHMARK = Benchmark(
    __name__,
    __doc__,
    title="Rankings under logit noise",
    takes="8 minutes",
    options={
        "share": Option(1.0, "of the league: players and games", quick=0.01),
        "draws": Option(300, "kept from each of two chains"),
        "warmup": Option(150, "iterations before the first draw"),
    },
    measure=measure,
    tables=tables,
    finding=finding,
    packages=("choix",),
    missed=missed,
)
