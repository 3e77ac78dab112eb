"""Tennis over time: men's singles from 1991 to 2017, 625,844 matches of 20,167 players.

The last 30 % by date are foretold, each date from all before it, every match of a tournament being
of its first day. Skills of ours are random walks whose drift and spread are found by their
evidence; a second time, each player has a skill on each surface beside his own, with a drift and a
spread of its own. Beside them Elo, whose step is the best for the first 70 %.

Losses are means of minus the log probability of who won, nearer to zero being better. Intervals,
of differences too, are from resampling dates. Seconds are of the processor. The data are looked for
in `shared/data` beside the repository.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import revealed as rv
from benchmarks._record import Benchmark, Option, Result
from benchmarks._sports import tennis
from benchmarks.walk_forward import SKILLS, join_forecasts, loss_table

SURFACES = SKILLS.replace(components=["player", "player*surface"])
LARGEST = 0.551  # nats a match: what is claimed, and Elo has .565
RESAMPLES = 1000


def measure(matches: int) -> Result:
    """Both models on the same matches."""
    games = tennis()
    if games is None:
        raise ValueError("tennis has no file in shared/data")
    games = games[:matches] if matches else games
    assert games.times is not None
    first = games.times[int(0.7 * len(games))]
    parts: list[tuple[str, Any]] = []
    seconds: dict[str, float] = {}
    for name, model, baselines in (
        ("ours", SKILLS, ["elo"]),
        ("ours, and the surface", SURFACES, []),
    ):
        print(name, file=sys.stderr, flush=True)
        began = time.process_time()
        walk = rv.walk_forward(
            games, model, first=first, sampler="laplace", baselines=baselines, resample="date"
        )
        found = walk.events["pairs"]
        seconds[name] = time.process_time() - began
        names = {"model": name, "elo": "Elo"}
        for f, who in enumerate(found.forecasters):
            fields = (found.log_probability[f], found.confidence[f], found.correct[f])
            parts.append((names[who], fields))
    joined = {"pairs": join_forecasts(found, parts)}
    whole = rv.WalkForward(joined, walk.refits, "dates", float("nan"), RESAMPLES, 1, True)
    return {"lines": whole.table(), "fits": len(walk.refits.seconds), "seconds": seconds}


def tables(result: Result) -> str:
    """Losses with their intervals."""
    took = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in result["seconds"].items())
    return (
        f"{loss_table(result['lines'])}\n\n{result['fits']} fits of each, with Elo beside: {took}."
    )


def finding(result: Result) -> str:
    """The losses of all three."""
    said = [f"{line['forecaster']} {line['log_loss']:.4f}" for line in result["lines"]]
    return f"log loss of a match: {'; '.join(said)}"


def missed(result: Result) -> str:
    """A sentence where ours is worse than what is claimed."""
    loss = float(result["lines"][0]["log_loss"])
    return f"a match has {loss:.4f} nats, more than {LARGEST}" if loss > LARGEST else ""


BENCHMARK = Benchmark(
    __name__,
    __doc__,
    title="Tennis over time",
    takes="ten minutes",
    options={"matches": Option(0, "the first so many matches; 0 is all", quick=4000)},
    measure=measure,
    tables=tables,
    finding=finding,
    missed=missed,
)
