"""2,000 players and 20,000 games on one core, from results to skills whose chains agree.

Skills are standard normal, line-ups drawn at random, and the spread is inferred. Shown are the
seconds of processor time for four chains one after the other, the largest R-hat and the fewest
effective draws of all 2,001 unknowns, and how the estimated skills agree with the true ones.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import asdict, dataclass

import numpy as np

import revealed as rv
from benchmarks._record import Benchmark, Option, Result, cell, table
from revealed.results.diagnostics import ess_bulk, r_hat

PLAYERS, GAMES = 2_000, 20_000
FIELDS = {2: (1000, 300), 4: (1000, 150)}  # entries of a game -> draws a chain, and its warm-up


@dataclass(frozen=True)
class Time:
    """How long one league took, and how good the draws are."""

    entries: int
    draws: int
    seconds: float
    worst_r_hat: float
    fewest: float
    correlation: float | None = None
    sds_off: float | None = None


def league(entries: int, share: float) -> Time:
    """One league; `share` makes it smaller."""
    players, games = int(share * PLAYERS), int(share * GAMES)
    draws, warmup = FIELDS[entries]
    rng = np.random.default_rng(1)
    skill = rng.standard_normal(players)
    who = np.array([rng.choice(players, entries, replace=False) for _ in range(games)])
    order = np.argsort(-(skill[who] + rng.standard_normal(who.shape)), axis=1)
    orders = rv.Rankings.from_lists(np.take_along_axis(who, order, 1).tolist())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # R-hat and effective draws are reported below
        rv.fit(orders[:50], draws=5, warmup=5, chains=1, progress=False)  # compiles
        began = time.process_time()
        found = rv.fit(orders, draws=draws, warmup=warmup, executor=1)
        seconds = time.process_time() - began
    whole = np.concatenate([found.draws["skill"], found.spread[:, :, None]], axis=2)
    truth = skill[[int(name) for name in found.names]]
    truth -= truth.mean()
    mean, sd = found.values.mean(axis=0), found.values.std(axis=0)
    off = float(np.sqrt(np.mean(((mean - truth) / sd) ** 2)))
    correlation = float(np.corrcoef(mean, truth)[0, 1])
    fewest = float(ess_bulk(whole).min())
    return Time(entries, 4 * draws, seconds, float(r_hat(whole).max()), fewest, correlation, off)


def measure(entries: int, share: float) -> Result:
    """Leagues of games of two and of four, or one of them."""
    if entries not in (0, *FIELDS):
        raise ValueError(
            f"games of {entries} are not measured; give --entries one of "
            f"{', '.join(map(str, FIELDS))}"
        )
    return {"leagues": [asdict(league(n, share)) for n in FIELDS if entries in (0, n)]}


def tables(result: Result) -> str:
    """A line for each league."""
    head = (
        "entries a game",
        "draws",
        "seconds",
        "largest R-hat",
        "fewest effective draws",
        "correlation with the truth",
        "sds off",
    )
    leagues = [Time(**line) for line in result["leagues"]]
    return table(
        head,
        [
            (
                f"{t.entries}",
                f"{t.draws:,}",
                f"{t.seconds:,.0f}",
                f"{t.worst_r_hat:.3f}",
                f"{t.fewest:,.0f}",
                cell(t.correlation, ".3f"),
                cell(t.sds_off, ".2f"),
            )
            for t in leagues
        ],
    )


def finding(result: Result) -> str:
    """The time of each league."""
    each = ", ".join(
        f"{line['seconds']:,.0f} seconds for games of {line['entries']}"
        for line in result["leagues"]
    )
    return f"{each}; R-hat at most {max(line['worst_r_hat'] for line in result['leagues']):.3f}"


BENCHMARK = Benchmark(
    __name__,
    __doc__,
    title="A league",
    takes="20 minutes",
    options={
        "entries": Option(0, "only games of so many"),
        "share": Option(1.0, "of the league: players and games", quick=0.01),
    },
    measure=measure,
    tables=tables,
    finding=finding,
)
