"""What a study yields: a long table of decisions, and by condition the posterior, consistency and direction of the values.

Decisions of all participants in a condition are taken together. Consistency and direction are those of `paper/pressure.py`: the size
of the value in units of what was offered, which is signal over noise, and what is wanted whatever the noise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from understudy._arrays import Floats, Ints
from understudy.decisions import Decisions
from understudy.paper.pressure import SIZE, chance_of_turning, metric, size_and_direction
from understudy.paper.study import learn
from understudy.priors import Gaussian
from understudy.studio.densities import density, short
from understudy.studio.faults import Refusal
from understudy.studio.games import Game, Move
from understudy.studio.storage import Storage
from understudy.studio.studies import Study, games_of_study
from understudy.worlds.tetris import FEATURES

FEWEST = 5  # decisions of a condition below which nothing is said of it
DRAWN = 1000  # draws a density is made of
MOST = 100_000  # decisions that are learnt from while a researcher waits


def decisions_of(game: Game, moves: list[Move]) -> Iterator[tuple[Move, Ints, Floats, int]]:
    """The decisions of a game, misses left out: the move, what was offered with its features, and which was taken."""
    for move in moves:
        if not move.missed:
            where, rows = game.offer()
            taken = np.flatnonzero((where[:, 0] == move.rotation) & (where[:, 1] == move.column))
            yield move, where, rows, int(taken[0])
        game.make(move)


def write_table(storage: Storage, study: Study, path: Path) -> None:
    """The long table of all decisions, CSV or Parquet by the file's name, game by game."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    fields = [("decision", pa.int64()), ("action", pa.string()), ("chosen", pa.bool_())]
    fields += [(name, pa.float64()) for name in FEATURES]
    fields += [("participant", pa.int64()), ("condition", pa.string()), ("tau", pa.float64()), ("turn", pa.int64())]
    schema = pa.schema([*fields, ("seconds", pa.float64())])
    kind = csv.CSVWriter if path.suffix == ".csv" else parquet.ParquetWriter
    count = 0
    with kind(str(path), schema) as writer:
        for played, moves in games_of_study(storage, study):
            condition = study.conditions[played.condition]
            columns: defaultdict[str, list[Any]] = defaultdict(list)
            for move, where, rows, taken in decisions_of(Game(study.seed, condition["pieces"]), moves):
                columns["decision"] += [count] * len(rows)
                columns["action"] += [f"rotation {r}, column {c}" for r, c in where.tolist()]
                columns["chosen"] += [i == taken for i in range(len(rows))]
                for k, name in enumerate(FEATURES):
                    columns[name] += rows[:, k].tolist()
                columns["turn"] += [move.turn] * len(rows)
                columns["seconds"] += [move.seconds] * len(rows)
                count += 1
            many = len(columns["decision"])
            columns["participant"] = [played.participant] * many
            columns["condition"], columns["tau"] = [condition["name"]] * many, [condition["tau"]] * many
            if many:
                writer.write_table(pa.table({name: columns[name] for name in schema.names}, schema=schema))


def gathered(storage: Storage, study: Study) -> tuple[list[Decisions | None], list[int]]:
    """By condition: the decisions of all participants together, and how many deadlines were missed."""
    rows: list[list[Floats]] = [[] for _ in study.conditions]
    taken: list[list[int]] = [[] for _ in study.conditions]
    missed = [0] * len(study.conditions)
    for played, moves in games_of_study(storage, study):
        c = played.condition
        missed[c] += sum(move.missed for move in moves)
        for _, _, offered, chosen in decisions_of(Game(study.seed, study.conditions[c]["pieces"]), moves):
            rows[c].append(offered)
            taken[c].append(chosen)
        if sum(map(len, taken)) > MOST:
            raise Refusal(
                409, f"there are more than {MOST:,} decisions, too many to wait for; download them and use us.fit"
            )
    found: list[Decisions | None] = []
    for r, t in zip(rows, taken, strict=True):
        start = np.concatenate([[0], np.cumsum([len(each) for each in r])]).astype(np.int64)
        found.append(Decisions(np.concatenate(r), start, t, names=FEATURES) if r else None)
    return found, missed


def posteriors(storage: Storage, study: Study) -> dict[str, Any]:
    """The paper's Experiment 3 from live data: what each condition alone says, and whether its direction is the first one's."""
    decisions, missed = gathered(storage, study)
    seen = [d for d in decisions if d is not None and len(d) >= FEWEST]
    if not seen:
        raise Refusal(409, f"nothing can be said yet: no condition has {FEWEST} decisions")
    units = np.mean([metric(d) for d in seen], axis=0)
    if np.linalg.eigvalsh(units)[0] <= 1e-9 * np.trace(units):
        raise Refusal(409, "nothing can be said yet: the decisions so far do not tell all features apart")
    prior, root = Gaussian(SIZE**2 * np.linalg.inv(units)), np.linalg.cholesky(units)
    first: Floats | None = None
    parts = []
    for condition, d, misses in zip(study.conditions, decisions, missed, strict=True):
        part: dict[str, Any] = {**condition, "made": 0 if d is None else len(d), "missed": misses}
        if d is not None and len(d) >= FEWEST:
            values = learn(d, prior, seed=1, threads=1).values
            size, direction = size_and_direction(values, units)
            unit = values @ root / size[:, None]
            part |= _told(values, size, direction)
            part["chance"] = None if first is None else chance_of_turning(first, unit)
            first = unit if first is None else first
        parts.append(part)
    return {"names": list(FEATURES), "conditions": parts}


def _told(values: Floats, size: Floats, direction: Floats) -> dict[str, Any]:
    thin = max(1, len(values) // DRAWN)
    low, middle, high = np.quantile(size, [0.05, 0.5, 0.95])
    return {
        "mean": [short(v) for v in values.mean(axis=0)],
        "sd": [short(v) for v in values.std(axis=0)],
        "densities": [density(values[::thin, k]) for k in range(values.shape[1])],
        "consistency": {
            "median": short(middle),
            "low": short(low),
            "high": short(high),
            "density": density(size[::thin]),
        },
        "direction": {
            "median": [short(v) for v in np.median(direction, axis=0)],
            "low": [short(v) for v in np.quantile(direction, 0.05, axis=0)],
            "high": [short(v) for v in np.quantile(direction, 0.95, axis=0)],
            "densities": [density(direction[::thin, k]) for k in range(direction.shape[1])],
        },
    }
