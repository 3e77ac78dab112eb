"""Formula 1 over time: who is in front of whom, and who wins, foretold race after race.

Races from 2018 to 2022, those from 2019 on foretold, and all methods learning from the same races,
those before, anew before every second one. Everybody sees those who finished, first to last, and
drivers who retired are left out for all: one row in seven. Skills of ours are random walks whose
drift and spread are found by their evidence, nothing else being tuned: with places chosen from the
last one up, from the first one down, with the sum of a driver and his car in place of the driver,
and without any change, by draws. These forms were tried on the very races that are foretold;
the second table has their evidence in 2018, which was looked up afterwards and agrees.

Beside them Elo, whose step is the best for 2018; TrueSkill and OpenSkill with their own settings;
TrueSkill, and TrueSkill Through Time, with that of several drifts which did best in the second half
of 2018; the latter also with that of the same drifts which turned out to be the best, which nobody
could have known, and with teams of a driver and a car.

Losses are means of minus the log probability, nearer to zero being better. Intervals, of
differences too, are from resampling races, the same for all. The data are looked for in
`shared/data` beside the repository.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

import revealed as rv
from benchmarks._rating_peers import EVERY, Race, peer_scores, peers
from benchmarks._record import Benchmark, Option, Result, table
from benchmarks._sports import formula_one
from revealed.results.forecasts import Forecasts

SKILLS = rv.RankingModel(noise=rv.LogitNoise(), over_time=rv.RandomWalk())
CARS = SKILLS.replace(components=["player", "car"])
FORMS = (
    ("ours, from the last place up", SKILLS, True),
    ("ours, driver and car, from the last place up", CARS, True),
    ("ours, from the first place down", SKILLS, False),
    ("ours, driver and car, from the first place down", CARS, False),
)
_OWN = {False: FORMS[0][0], True: FORMS[1][0]}  # whether with cars
RESAMPLES = 4000


def measure(races: int) -> Result:
    """All forecasters on the same races."""
    games = formula_one()
    seen = formula_one(2018)
    if games is None or seen is None:
        raise ValueError("Formula 1 has no file in shared/data")
    first = len(seen)
    last = min(len(games), first + races) if races else len(games)
    games = games[:last]
    walks: dict[str, Forecasts] = {}
    parts: dict[str, list[tuple[str, Any]]] = {"pairs": [], "winners": []}
    for name, model, from_last in FORMS:
        print(name, file=sys.stderr, flush=True)
        walk = rv.walk_forward(
            games,
            model,
            every=EVERY,
            first=first,
            sampler="laplace",
            from_last=from_last,
            baselines=["static", "elo"] if name == FORMS[0][0] else [],
        )
        walks = walks or dict(walk.events)
        names = {"model": name, "static": "ours, without change", "elo": "Elo"}
        for kind, found in walk.events.items():
            for f, who in enumerate(found.forecasters):
                fields = (found.log_probability[f], found.confidence[f], found.correct[f])
                parts[kind].append((names[who], fields))
    drivers = [games.game(g)[0] for g in range(last)]
    for peer in peers(drivers, _with_cars(games), first):
        print(peer.name, file=sys.stderr, flush=True)
        own: list[Race] = _with_cars(games) if peer.cars else drivers
        for kind, score in peer_scores(peer.method, own, first, last).items():
            parts[kind].append((peer.name, score))
    joined = {kind: join_forecasts(walks[kind], found) for kind, found in parts.items()}
    whole = rv.WalkForward(joined, walk.refits, "games", float("nan"), RESAMPLES, 1, True)
    filters = [(name, rv.SkillFilter(seen, m, from_last=up)) for name, m, up in FORMS]
    evidence = [{"form": name, "log_evidence": found.log_evidence} for name, found in filters]
    return {"lines": whole.table(), "evidence": evidence}


def _with_cars(games: rv.Rankings) -> list[Race]:
    """Races with the car behind each driver."""
    cars = [f"car {car}" for car in games.columns["car"].tolist()]
    return [
        [(*team, cars[entry]) for entry, team in enumerate(games.game(g)[0], games.start[g])]
        for g in range(len(games))
    ]


def join_forecasts(like: Forecasts, parts: list[tuple[str, Any]]) -> Forecasts:
    """Forecasts of the same events by all."""
    fields = [np.stack(field) for field in zip(*(own for _, own in parts), strict=True)]
    names = tuple(name for name, _ in parts)
    return Forecasts(names, like.times.copy(), like.unit.copy(), *fields)


def tables(result: Result) -> str:
    """Losses with their intervals, then what was known of the forms in 2018."""
    forms = table(
        ("form", "log evidence in 2018"),
        [(line["form"], f"{line['log_evidence']:.1f}") for line in result["evidence"]],
    )
    return f"{loss_table(result['lines'])}\n\n{forms}"


def loss_table(lines: Sequence[dict[str, Any]]) -> str:
    """Losses, and by how much they are worse than that of the first, with intervals."""
    return table(
        ("events", "method", "log loss", "worse than the first by", "right"),
        [
            (
                f"{line['events']:,} {line['kind']}",
                line["forecaster"],
                _with_interval(line, "log_loss", "low", "high", ".4f"),
                _with_interval(line, "worse", "worse_low", "worse_high", "+.4f")
                if line["worse"]
                else "",
                f"{line['accuracy']:.1%}",
            )
            for line in lines
        ],
    )


def _with_interval(line: dict[str, Any], name: str, low: str, high: str, digits: str) -> str:
    """A number with its interval."""
    return f"{line[name]:{digits}} [{line[low]:{digits}}, {line[high]:{digits}}]"


def finding(result: Result) -> str:
    """The losses of pairs of ours, and of the best of the others."""
    pairs = [line for line in result["lines"] if line["kind"] == "pairs"]
    said = []
    for cars, form in _OWN.items():
        others = [
            line
            for line in pairs
            if not line["forecaster"].startswith("ours")
            and cars == ("driver and car" in line["forecaster"])
        ]
        best = min(others, key=lambda line: float(line["log_loss"]), default=None)
        beside = "" if best is None else f" ({best['forecaster']} {best['log_loss']:.4f})"
        what = "driver and car" if cars else "drivers"
        said.append(f"{what} {_line(pairs, form)['log_loss']:.4f}{beside}")
    return "log loss of pairs: " + "; ".join(said)


def _line(lines: list[dict[str, Any]], forecaster: str) -> dict[str, Any]:
    """The line of one of them."""
    return next(line for line in lines if line["forecaster"] == forecaster)


def missed(result: Result) -> str:
    """A sentence where another method foretells pairs better than ours."""
    pairs = [line for line in result["lines"] if line["kind"] == "pairs"]
    # like with like: who looks at cars is beside ours that does
    ours = {cars: float(_line(pairs, form)["log_loss"]) for cars, form in _OWN.items()}
    better = [
        line["forecaster"]
        for line in pairs
        if not line["forecaster"].startswith("ours")
        and line["log_loss"] < ours["driver and car" in line["forecaster"]]
    ]
    return f"pairs are foretold better by {', '.join(better)}" if better else ""


BENCHMARK = Benchmark(
    __name__,
    __doc__,
    title="Formula 1 over time",
    takes="ten minutes",
    options={"races": Option(0, "foretell so many races at most; 0 is all", quick=2)},
    measure=measure,
    tables=tables,
    finding=finding,
    packages=("trueskill", "openskill", "trueskillthroughtime"),
    missed=missed,
)
