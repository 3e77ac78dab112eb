"""A league: 2,000 players and 20,000 games on one core, from results to skills whose chains agree.

    scripts/bench                              runs every benchmark
    python -m benchmarks.ranking_size --json   this one, for machines

Skills are standard normal, line-ups drawn at random, and the spread is learnt. Reported are the seconds of processor time for four chains one after the other, the
largest R-hat and the fewest effective draws of all 2,001 unknowns, and how the found skills agree with the true ones.
"""

from __future__ import annotations

# isort: off
from benchmarks import _one_core  # noqa: F401
# isort: on

import argparse
import json
import time
import warnings
from dataclasses import asdict, dataclass

import numpy as np

import understudy as us
from understudy.diagnostics import ess_bulk, r_hat

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
    correlation: float
    sds_off: float


def measure(entries: int, share: float) -> Time:
    """One league; `share` makes it smaller."""
    players, games = int(share * PLAYERS), int(share * GAMES)
    draws, warmup = FIELDS[entries]
    rng = np.random.default_rng(1)
    skill = rng.standard_normal(players)
    who = np.array([rng.choice(players, entries, replace=False) for _ in range(games)])
    order = np.argsort(-(skill[who] + rng.standard_normal(who.shape)), axis=1)
    orders = us.Orders.of(np.take_along_axis(who, order, 1).tolist())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # R-hat and effective draws are reported below
        us.rank(orders[:50], draws=5, warmup=5, chains=1, progress=False)  # compiles
        began = time.process_time()
        found = us.rank(orders, draws=draws, warmup=warmup, threads=1)
        seconds = time.process_time() - began
    whole = np.concatenate([found.skills, found.spread[:, :, None]], axis=2)
    truth = skill[[int(name) for name in found.names]]
    truth -= truth.mean()
    mean, sd = found.values.mean(axis=0), found.values.std(axis=0)
    off = float(np.sqrt(np.mean(((mean - truth) / sd) ** 2)))
    correlation = float(np.corrcoef(mean, truth)[0, 1])
    fewest = float(ess_bulk(whole).min())
    return Time(entries, 4 * draws, seconds, float(r_hat(whole).max()), fewest, correlation, off)


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--entries", type=int, choices=list(FIELDS), help="only games of so many")
    parser.add_argument("--share", type=float, default=1.0, help="of the league")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    times = [measure(entries, given.share) for entries in FIELDS if given.entries in (None, entries)]
    if given.json:
        print(json.dumps([asdict(t) for t in times], indent=1))
        return
    print(
        "| entries a game | draws | seconds | largest R-hat | fewest effective draws | correlation with the truth | sds off |"
    )
    print("|---|---|---|---|---|---|---|")
    for t in times:
        print(
            f"| {t.entries} | {t.draws} | {t.seconds:.0f} | {t.worst_r_hat:.4f} | {t.fewest:.0f} | {t.correlation:.3f} | {t.sds_off:.2f} |"
        )


if __name__ == "__main__":
    main()
