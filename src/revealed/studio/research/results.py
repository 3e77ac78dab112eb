"""What a study yields: a long table of decisions, and the values by condition.

Decisions of all participants in a condition are taken together. Each condition gets its posterior,
and consistency and direction of the value (`revealed.results.size_and_direction`): the size of the
value in units of what was offered, which is signal over noise, and what is wanted, whatever the
noise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from revealed._types import Floats, Ints
from revealed.api import fit_quietly
from revealed.data.decisions import Decisions
from revealed.environments.tetris import PAPER_FEATURES
from revealed.models.choice import ChoiceModel
from revealed.results.size_and_direction import (
    direction_p_value,
    offered_covariance,
    prior_for_direction,
    size_and_direction,
    unit_vectors,
)
from revealed.studio.game.game import Game, Move
from revealed.studio.learning.density import density_curve, round_to_six_digits
from revealed.studio.research.studies import Study, games_of_study
from revealed.studio.server.errors import RequestError
from revealed.studio.storage.database import Storage


@dataclass(frozen=True)
class ResultLimits:
    """Bounds of what is computed while a researcher waits.

    `min_decisions`: below as many, a condition says little but its prior, and nothing is shown of
    it. `max_decisions`: about a minute of fitting; larger studies are downloaded. `density_draws`:
    draws that a density is estimated from; more would not change the curve on a page.
    """

    min_decisions: int
    max_decisions: int
    density_draws: int


LIMITS = ResultLimits(min_decisions=5, max_decisions=100_000, density_draws=1000)


def iterate_decisions(game: Game, moves: list[Move]) -> Iterator[tuple[Move, Ints, Floats, int]]:
    """The decisions of a game, missed deadlines left out.

    Each is the move, the legal placements (M, 2), their features (M, K), and which was chosen.
    """
    # The game is replayed: what was offered follows from seed and moves.
    for move in moves:
        if not move.missed:
            placements, rows = game.offered_features()
            chosen = np.flatnonzero(
                (placements[:, 0] == move.rotation) & (placements[:, 1] == move.column)
            )
            yield move, placements, rows, int(chosen[0])
        game.apply(move)


def write_decision_table(storage: Storage, study: Study, path: Path) -> None:
    """Write the long table of all decisions, CSV or Parquet by the file's name, game by game.

    One row for each placement that was offered: decision, action, chosen, the features, then
    participant, condition, deadline_seconds, turn and seconds.
    """
    # Only downloads need pyarrow, and it takes a while to import.
    import pyarrow as pa
    from pyarrow import csv, parquet

    fields = [("decision", pa.int64()), ("action", pa.string()), ("chosen", pa.bool_())]
    fields += [(name, pa.float64()) for name in PAPER_FEATURES]
    fields += [
        ("participant", pa.int64()),
        ("condition", pa.string()),
        ("deadline_seconds", pa.float64()),
        ("turn", pa.int64()),
        ("seconds", pa.float64()),
    ]
    # The schema is fixed beforehand, so that a file without any decision has its columns too.
    schema = pa.schema(fields)
    writer_class = csv.CSVWriter if path.suffix == ".csv" else parquet.ParquetWriter
    # Decisions are numbered through the whole study.
    count = 0
    with writer_class(str(path), schema) as writer:
        for played, moves in games_of_study(storage, study):
            condition = study.conditions[played.condition]
            # One game at a time: the largest study does not have to fit into memory.
            columns: defaultdict[str, list[Any]] = defaultdict(list)
            for move, placements, rows, chosen in iterate_decisions(
                Game(study.seed, condition["pieces"]), moves
            ):
                columns["decision"] += [count] * len(rows)
                columns["action"] += [f"rotation {r}, column {c}" for r, c in placements.tolist()]
                columns["chosen"] += [i == chosen for i in range(len(rows))]
                for k, name in enumerate(PAPER_FEATURES):
                    columns[name] += rows[:, k].tolist()
                columns["turn"] += [move.turn] * len(rows)
                columns["seconds"] += [move.seconds] * len(rows)
                count += 1
            # What is the same in all rows of a game.
            length = len(columns["decision"])
            columns["participant"] = [played.participant] * length
            columns["condition"] = [condition["name"]] * length
            columns["deadline_seconds"] = [condition["deadline_seconds"]] * length
            if length:
                writer.write_table(
                    pa.table({name: columns[name] for name in schema.names}, schema=schema)
                )


def decisions_by_condition(
    storage: Storage, study: Study
) -> tuple[list[Decisions | None], list[int]]:
    """By condition: the decisions of all participants together, and how many deadlines were missed.

    None for a condition without decisions; RequestError where there are too many to wait for.
    """
    rows: list[list[Floats]] = [[] for _ in study.conditions]
    chosen: list[list[int]] = [[] for _ in study.conditions]
    missed = [0] * len(study.conditions)
    for played, moves in games_of_study(storage, study):
        # Conditions are positions in the study's list.
        c = played.condition
        missed[c] += sum(move.missed for move in moves)
        game = Game(study.seed, study.conditions[c]["pieces"])
        for _, _, offered, taken in iterate_decisions(game, moves):
            rows[c].append(offered)
            chosen[c].append(taken)
        if sum(map(len, chosen)) > LIMITS.max_decisions:
            raise RequestError(
                409,
                f"there are more than {LIMITS.max_decisions:,} decisions, too many to wait for; "
                "download them and use rv.fit",
            )
    found: list[Decisions | None] = []
    for offered_rows, taken_actions in zip(rows, chosen, strict=True):
        if not offered_rows:
            found.append(None)
            continue
        # Stacked rows with the start of each decision: the arrays of `Decisions`.
        sizes = [len(rows) for rows in offered_rows]
        start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        stacked = np.concatenate(offered_rows)
        found.append(Decisions(stacked, start, taken_actions, names=PAPER_FEATURES))
    return found, missed


def condition_results(storage: Storage, study: Study) -> dict[str, Any]:
    """The paper's Experiment 3 from live data, as JSON: the values by condition.

    Each condition is fitted alone. Its `chance` is how likely its direction would differ from that
    of the first fitted condition as much as it does if the wishes were the same.
    """
    decisions, missed = decisions_by_condition(storage, study)
    usable = [d for d in decisions if d is not None and len(d) >= LIMITS.min_decisions]
    if not usable:
        raise RequestError(
            409, f"nothing can be said yet: no condition has {LIMITS.min_decisions} decisions"
        )
    # Sizes are comparable between conditions only in common units.
    units = np.mean([offered_covariance(d) for d in usable], axis=0)
    # Without variation in some direction the prior's covariance does not exist.
    if np.linalg.eigvalsh(units)[0] <= 1e-9 * np.trace(units):
        raise RequestError(
            409, "nothing can be said yet: the decisions so far do not tell all features apart"
        )
    prior = prior_for_direction(units)
    first_directions: Floats | None = None
    parts = []
    for condition, d, misses in zip(study.conditions, decisions, missed, strict=True):
        # Conditions with too few decisions are listed too, without values.
        part: dict[str, Any] = {**condition, "made": 0 if d is None else len(d), "missed": misses}
        if d is not None and len(d) >= LIMITS.min_decisions:
            # One thread and a fixed seed: the same moves give the same figure, beside people who
            # play.
            values = fit_quietly(d, ChoiceModel(prior), seed=1, executor=1).values
            size, direction = size_and_direction(values, units)
            directions = unit_vectors(values, size, units)
            part |= _value_payload(values, size, direction)
            part["chance"] = (
                None
                if first_directions is None
                else direction_p_value(first_directions, directions)
            )
            first_directions = directions if first_directions is None else first_directions
        parts.append(part)
    return {"names": list(PAPER_FEATURES), "conditions": parts}


def _value_payload(values: Floats, size: Floats, direction: Floats) -> dict[str, Any]:
    """Means, densities, consistency and direction of one condition's draws, as JSON for a page.

    `values` and `direction` are (n, K), `size` is (n,); intervals hold 90 % of the posterior.
    """
    # Every so many draws, because a density costs draws times points.
    thin = max(1, len(values) // LIMITS.density_draws)
    # The middle 90 % of the posterior, as in the paper's figures.
    low, median, high = np.quantile(size, [0.05, 0.5, 0.95])
    return {
        "mean": [round_to_six_digits(v) for v in values.mean(axis=0)],
        "sd": [round_to_six_digits(v) for v in values.std(axis=0)],
        "densities": [density_curve(values[::thin, k]) for k in range(values.shape[1])],
        "consistency": {
            "median": round_to_six_digits(median),
            "low": round_to_six_digits(low),
            "high": round_to_six_digits(high),
            "density": density_curve(size[::thin]),
        },
        "direction": {
            "median": [round_to_six_digits(v) for v in np.median(direction, axis=0)],
            "low": [round_to_six_digits(v) for v in np.quantile(direction, 0.05, axis=0)],
            "high": [round_to_six_digits(v) for v in np.quantile(direction, 0.95, axis=0)],
            "densities": [density_curve(direction[::thin, k]) for k in range(direction.shape[1])],
        },
    }
