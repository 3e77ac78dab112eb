"""Formula 1 and tennis as games with times, from files in `shared/data` beside the repository."""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet

import revealed as rv
from benchmarks.ranking import DATA


def find(name: str) -> Path | None:
    """A file of others; None, and a word about it, where it is not there."""
    path = DATA / name
    if path.exists():
        return path
    print(f"shared/data/{name} is not there, and is left out", file=sys.stderr)
    return None


def formula_one(upto: int = 2022) -> rv.Rankings | None:
    """Who finished in each race, with their cars; races are numbered in time.

    A row without a number for a position did not finish, and is left out for everybody.
    """
    path = find("f1_2018_2022.csv")
    if path is None:
        return None
    rows = [
        row
        for row in pyarrow.csv.read_csv(path).to_pylist()
        if str(row["position"]).isdigit() and row["year"] <= upto
    ]
    when = [(row["year"], row["round"]) for row in rows]
    number = {race: k for k, race in enumerate(sorted(set(when)))}
    order = sorted(range(len(rows)), key=lambda r: when[r])
    race = [number[when[r]] for r in order]
    return rv.Rankings.from_columns(
        race,
        [rows[r]["driver"] for r in order],
        [int(rows[r]["position"]) for r in order],
        time=race,
        columns={"car": [rows[r]["constructor"] for r in order]},
    )


def tennis() -> rv.Rankings | None:
    """All matches with their surface, each on the first day of its tournament."""
    path = find("tennis_atp_1991_2017.parquet")
    if path is None:
        return None
    matches = pyarrow.parquet.read_table(path)
    days, day_of = np.unique(np.asarray(matches["date"]), return_inverse=True)
    ordinal = [date(d // 10000, d // 100 % 100, d % 100).toordinal() for d in days.tolist()]
    both = np.stack([matches[c].to_numpy(zero_copy_only=False) for c in ("winner", "loser")], 1)
    names, player = np.unique(both.astype(str), return_inverse=True)
    player = player.reshape(-1, 2)
    surface = np.array([each or "unknown" for each in matches["surface"].to_pylist()])
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
        {"surface": np.repeat(surface[kept], 2)},
    )
