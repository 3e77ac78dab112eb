"""Players with few decisions each, learnt as one population, beside separate and pooled fits.

200 simulated players with five features decide 15 times among four actions; all are predicted on
30 decisions more, and the held-out log loss is compared. Every fit learns from the same decisions:
one population, one player after the other (under the default prior, and with the sd of the prior
inferred), and all together as if they were one. The standard errors are those of the differences,
over players.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import revealed as rv
from benchmarks._record import Benchmark, Option, Result, cell, table
from revealed._types import Floats
from revealed.data.decisions import Decisions
from revealed.results.prediction import Prediction

SEEN, KEPT_OUT, ACTIONS, FEATURES = 15, 30, 4, 5
DRAWS: dict[str, Any] = {"draws": 500, "warmup": 500, "chains": 2}


@dataclass(frozen=True)
class Row:
    """How well one way of learning predicts.

    The standard error is that of its difference from the population.
    """

    what: str
    log_loss: float
    worse_by: float
    standard_error: float
    seconds: float | None = None


def measure(players: int, populations: int) -> Result:
    """Every way of learning, on each population."""
    compare_fits(2, 0)  # compiles everything, before a clock runs
    return {
        "rows": [asdict(row) for seed in range(populations) for row in compare_fits(players, seed)]
    }


def tables(result: Result) -> str:
    """A line for each way of learning."""
    rows = [Row(**line) for line in result["rows"]]
    return table(
        ("learnt", "held-out log loss", "worse than the population by", "seconds"),
        [(r.what, f"{r.log_loss:.3f}", _worse(r), cell(r.seconds, ".1f")) for r in rows],
    )


def missed(result: Result) -> str:
    """Whether the population lost against another way."""
    return (
        "the population did not predict best"
        if any(row["worse_by"] < 0.0 for row in result["rows"])
        else ""
    )


def _worse(row: Row) -> str:
    """The difference and its standard error, which has two digits that count."""
    if row.standard_error == 0.0:
        return ""
    digits = max(0, 1 - math.floor(math.log10(row.standard_error)))
    return f"{row.worse_by:.{digits}f} ± {row.standard_error:.{digits}f}"


def simulate(rng: np.random.Generator, players: int) -> Decisions:
    """Players from one Gaussian, decision after decision of each."""
    mean = rng.standard_normal(FEATURES)
    mix = rng.standard_normal((FEATURES, FEATURES)) / np.sqrt(FEATURES)
    values = (
        mean
        + 0.7 * rng.standard_normal((players, FEATURES)) @ (0.5 * np.eye(FEATURES) + 0.5 * mix).T
    )
    each = SEEN + KEPT_OUT
    rows = rng.standard_normal((players, each, ACTIONS, FEATURES))
    w = np.einsum("ntak,nk->nta", rows, values) + rng.standard_normal((players, each, ACTIONS))
    return Decisions(
        rows.reshape(-1, FEATURES),
        np.arange(players * each + 1) * ACTIONS,
        w.argmax(axis=2).ravel(),
        groups=np.repeat(np.arange(players), each),
        group_name="player",
    )


def compare_fits(players: int, seed: int) -> list[Row]:
    """One population, learnt in every way."""
    d = simulate(np.random.default_rng(seed), players)
    early = np.tile(np.arange(SEEN + KEPT_OUT) < SEEN, players)
    seen, rest = d[np.flatnonzero(early)], d[np.flatnonzero(~early)]
    who = rest.groups
    assert who is not None

    def alone(prior: rv.Normal) -> Floats:
        losses = np.empty(len(rest))
        for i in range(players):
            at = np.flatnonzero(who == i)
            losses[at] = -_log(
                rv.predict(
                    rv.fit(
                        seen[np.flatnonzero(seen.groups == i)],
                        rv.ChoiceModel(prior=prior),
                        **DRAWS,
                        seed=i,
                        progress=False,
                    ),
                    rest[at],
                )
            )
        return losses

    def pooled() -> Floats:
        model = rv.ChoiceModel(prior=rv.Normal(10.0))
        return -_log(rv.predict(rv.fit(seen, model, **DRAWS, progress=False), rest))

    def population() -> Floats:
        model = rv.ChoiceModel(groups=rv.Hierarchical())
        return -_log(rv.fit(seen, model, **DRAWS, progress=False).predict(rest))

    ways: dict[str, Callable[[], Floats]] = {
        "one population": population,
        "all players as one": pooled,
        "each player alone, prior sd inferred": lambda: alone(rv.Normal(rv.HalfStudentT())),
        "each player alone, prior sd 50": lambda: alone(rv.Normal(50.0)),
    }
    rows: list[Row] = []
    best = np.zeros(len(rest))
    for what, learn in ways.items():
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", rv.NotConvergedWarning)
            losses = learn()
        if not rows:
            best = losses
        apart = (losses - best).reshape(players, KEPT_OUT).mean(axis=1)
        error = apart.std(ddof=1) / np.sqrt(players)
        rows.append(
            Row(
                what,
                float(losses.mean()),
                float(apart.mean()),
                float(error),
                time.perf_counter() - began,
            )
        )
    return rows


def _log(found: Prediction) -> Floats:
    return np.asarray(found.log_probability_chosen)


def finding(result: Result) -> str:
    """The population beside the best of the rest."""
    ours, *others = (row["log_loss"] for row in result["rows"])
    return f"log loss {ours:.3f} with one population, {min(others):.3f} with the best other way"


BENCHMARK = Benchmark(
    __name__,
    __doc__,
    title="What a population gains",
    takes="four minutes",
    options={
        "players": Option(200, "players", quick=10),
        "populations": Option(1, "populations to simulate"),
    },
    measure=measure,
    tables=tables,
    finding=finding,
    missed=missed,
)
