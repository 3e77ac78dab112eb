"""Sport over time: what comes next foretold by skills that change, with Elo and others beside them.

Formula 1 2018 to 2022: every race from 2019 on is foretold, all methods knowing the results of the
same races, anew before every second one: who finishes in front of whom, and who wins. Skills of
ours are random walks whose drift and spread are found by their evidence, nothing else being tuned,
once with places chosen from the last one up and once from the first one down; beside them the same
model without change, Elo whose step is the best for 2018, TrueSkill and OpenSkill with their own
settings, and TrueSkill Through Time with that of a few drifts that does best in 2018. Tennis: men's
singles from 1991 to 2017; the last 30 % by date, each date foretold from all before it, every
match of a tournament being of one date.

Losses are means of minus the log probability, nearer to zero being better; intervals are from
resampling games. The data are looked for in `shared/data` beside the repository.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any

import numpy as np
import pyarrow.parquet
from scipy.special import log_ndtr

import revealed as rv
from benchmarks._record import Benchmark, Option, Result, table
from benchmarks.ranking import DATA, OpenSkill, Race, TrueSkill, sports
from revealed._types import Floats

GAMMAS = (0.05, 0.1, 0.2, 0.4)  # drifts that TrueSkill Through Time chooses from, a root of a race
SKILLS = rv.RankingModel(noise=rv.LogitNoise(), over_time=rv.RandomWalk())


class ThroughTime(TrueSkill):
    """TrueSkill Through Time: all races so far at once, each race one unit of time."""

    def __init__(self, gamma: float) -> None:
        self.package: Any = importlib.import_module("trueskillthroughtime")
        self.gamma = gamma
        self.latest: dict[str, tuple[float, float, float]] = {}
        self.n_learnt = 0

    def learn(self, races: Sequence[Race]) -> None:
        entries = [[[name] for name in race] for race in races]
        # the package takes the highest result for the best
        results = [list(range(len(race), 0, -1)) for race in races]
        found = self.package.History(
            entries, results, times=list(range(len(races))), gamma=self.gamma
        )
        found.convergence(epsilon=0.01, iterations=10, verbose=False)
        for name, curve in found.learning_curves().items():
            at, skill = curve[-1]
            self.latest[name] = (at, skill.mu, skill.sigma)
        self.n_learnt = len(races)

    def predict(self, starters: Race) -> tuple[Floats, Floats, Floats]:
        beginner = (float(self.n_learnt), 0.0, float(self.package.SIGMA))
        got = np.array([self.latest.get(name, beginner) for name in starters])
        # what has moved since a driver's last race, and the noise of a race
        variance = got[:, 2] ** 2 + self.gamma**2 * (self.n_learnt - got[:, 0])
        variance += float(self.package.BETA) ** 2
        gap = got[:, 1][:, None] - got[:, 1]
        front = log_ndtr(gap / np.sqrt(variance[:, None] + variance))
        x = np.linspace(gap.min() - 9.0, gap.max() + 9.0, 2001) + got[:, 1].mean()
        z = (x - got[:, 1][:, None]) / np.sqrt(variance)[:, None]
        below = log_ndtr(z)
        win = np.exp(below.sum(axis=0) - below - 0.5 * z**2).sum(axis=1) / np.sqrt(variance)
        return np.log(win / win.sum()), front, got[:, 1]


def peer_losses(method: Any, races: list[Race], first: int, last: int) -> tuple[Floats, Floats]:
    """Minus the log probabilities of pairs and winners; learnt before every second race."""
    pairs, winners = [], []
    for g in range(first, last):
        if (g - first) % 2 == 0:
            method.learn(races[:g])
        win, front, _ = method.predict(races[g])
        better, worse = np.triu_indices(len(races[g]), 1)
        pairs.append(-front[better, worse])
        winners.append(-float(win[0]))
    return np.concatenate(pairs), np.array(winners)


def peers(races: list[Race], first: int) -> Iterator[tuple[str, Any]]:
    """Those that are installed; a drift is chosen by the second half of what is known at first."""
    for name, module, make in (
        ("TrueSkill", "trueskill", TrueSkill),
        ("OpenSkill", "openskill", OpenSkill),
    ):
        if importlib.util.find_spec(module) is not None:
            yield name, make()
    if importlib.util.find_spec("trueskillthroughtime") is not None:
        losses = [
            peer_losses(ThroughTime(gamma), races, first // 2, first)[0].mean() for gamma in GAMMAS
        ]
        yield "TrueSkill Through Time", ThroughTime(GAMMAS[int(np.argmin(losses))])


def lines_of(sport: str, walk: rv.WalkForward, names: dict[str, str]) -> list[dict[str, Any]]:
    """The table of a walk, with the sport and the names that the page has."""
    found = [
        {**line, "sport": sport, "forecaster": names[line["forecaster"]]}
        for line in walk.table()
        if line["forecaster"] in names
    ]
    found[0]["seconds"] = float(walk.refits.seconds.sum())
    return found


def measure_races(most: int) -> list[dict[str, Any]]:
    """Formula 1, by ours and by those who are installed."""
    found: list[dict[str, Any]] = []
    for sport in sports():
        if sport.name != "Formula 1":
            continue
        last = min(len(sport.races), sport.first + most) if most else len(sport.races)
        games = rv.Rankings.from_lists(sport.races[:last], times=range(last))
        settings: dict[str, Any] = {"every": 2, "first": sport.first, "sampler": "laplace"}
        names = {"model": "ours, from the last place up", "static": "ours, without change"}
        walk = rv.walk_forward(games, SKILLS, from_last=True, **settings)
        found += lines_of(sport.name, walk, names | {"elo": "Elo"})
        walk = rv.walk_forward(games, SKILLS, baselines=[], **settings)
        found += lines_of(sport.name, walk, {"model": "ours, from the first place down"})
        for name, method in peers(sport.races, sport.first):
            print(f"Formula 1: {name}", file=sys.stderr, flush=True)
            began = time.perf_counter()
            losses = peer_losses(method, sport.races, sport.first, last)
            for kind, loss in zip(("pairs", "winners"), losses, strict=True):
                found.append(
                    {
                        "sport": sport.name,
                        "kind": kind,
                        "forecaster": name,
                        "log_loss": float(loss.mean()),
                        "events": len(loss),
                        "seconds": time.perf_counter() - began,
                    }
                )
    return found


def tennis() -> rv.Rankings | None:
    """All matches, each on the first day of its tournament; None where the file is not there."""
    path = DATA / "tennis_atp_1991_2017.parquet"
    if not path.exists():
        print("tennis is left out: its file is looked for in shared/data", file=sys.stderr)
        return None
    matches = pyarrow.parquet.read_table(path)
    days, day_of = np.unique(np.asarray(matches["date"]), return_inverse=True)
    ordinal = [date(d // 10000, d // 100 % 100, d % 100).toordinal() for d in days.tolist()]
    both = np.stack([matches[c].to_numpy(zero_copy_only=False) for c in ("winner", "loser")], 1)
    names, player = np.unique(both.astype(str), return_inverse=True)
    player = player.reshape(-1, 2)
    # a handful of matches have one player twice
    kept = player[:, 0] != player[:, 1]
    count = int(kept.sum())
    return rv.Rankings(
        tuple(names.tolist()),
        player[kept].ravel(),
        np.arange(2 * count + 1),
        np.arange(0, 2 * count + 1, 2),
        np.zeros(2 * count, np.bool_),
        np.full(count, 2),
        tuple(range(count)),
        np.array(ordinal, np.float64)[day_of][kept],
    )


def measure_tennis(matches: int) -> list[dict[str, Any]]:
    """The last 30 % of the matches by date, each date from all before it."""
    games = tennis()
    if games is None:
        return []
    games = games[:matches] if matches else games
    assert games.times is not None
    first = games.times[int(0.7 * len(games))]
    began = time.perf_counter()
    walk = rv.walk_forward(
        games, SKILLS, first=first, sampler="laplace", baselines=["elo"], resamples=200
    )
    print(f"tennis: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    return lines_of("Tennis", walk, {"model": "ours", "elo": "Elo"})


def measure(races: int, matches: int) -> Result:
    """Both sports, where their files are there."""
    found = measure_races(races) + measure_tennis(matches)
    if not found:
        raise ValueError("neither Formula 1 nor tennis has its file in shared/data")
    return {"lines": found}


def tables(result: Result) -> str:
    """Losses with their intervals, sport by sport."""
    lines = sorted(result["lines"], key=lambda line: (line["sport"], line["kind"]))
    return table(
        ("sport, events", "method", "log loss", "worse than ours by", "right", "seconds of fits"),
        [
            (
                f"{line['sport']}, {line['events']} {line['kind']}",
                line["forecaster"],
                _with_interval(line, "log_loss", "low", "high", ".4f"),
                _with_interval(line, "worse", "worse_low", "worse_high", "+.4f"),
                f"{line['accuracy']:.1%}" if "accuracy" in line else "",
                f"{line['seconds']:.0f}" if "seconds" in line else "",
            )
            for line in lines
        ],
    )


def _with_interval(line: dict[str, Any], name: str, low: str, high: str, digits: str) -> str:
    """A number with its interval, where it has one; nothing where it is zero by definition."""
    if name not in line or (name == "worse" and line["worse"] == 0.0):
        return ""
    number = f"{line[name]:{digits}}"
    return f"{number} [{line[low]:{digits}}, {line[high]:{digits}}]" if low in line else number


def finding(result: Result) -> str:
    """The losses of ours and of Elo."""
    said = []
    for sport in ("Formula 1", "Tennis"):
        own = [
            line for line in result["lines"] if line["sport"] == sport and line["kind"] == "pairs"
        ]
        if own:
            elo = next(line for line in own if line["forecaster"] == "Elo")
            said.append(f"{sport} {own[0]['log_loss']:.4f}, Elo {elo['log_loss']:.4f}")
    return "log loss of pairs: " + "; ".join(said)


BENCHMARK = Benchmark(
    __name__,
    __doc__,
    title="Sport over time",
    takes="half an hour",
    options={
        "races": Option(0, "foretell so many races of Formula 1 at most; 0 is all", quick=2),
        "matches": Option(0, "the first so many matches of tennis; 0 is all", quick=4000),
    },
    measure=measure,
    tables=tables,
    finding=finding,
    packages=("trueskill", "openskill", "trueskillthroughtime"),
)
