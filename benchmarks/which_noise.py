"""Which noise real choices have: normal or Gumbel noise, with lapses or without.

Each law is fitted to the same decisions, all people taken for one, under a normal prior of sd 10,
and judged by leave-one-out predictive density: nats that it gains on normal noise, summed over all
decisions, with the standard error over decisions (Vehtari, Gelman and Gabry 2017). Human Tetris is
an expert's first 500 straight drops with the `rich` features; buses are Rust's group 4, with a
value of every mileage; travel modes are Greene's; electricity contracts are stated choices; the rat
compares two sounds (Roy and others 2021), with what it did the trial before. The data are looked
for in `shared/data` beside the repository.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import revealed as rv
from benchmarks._prior_problems import DATA, buses, electricity, travel
from benchmarks._record import Benchmark, Option, Result, table
from revealed.environments.tetris import read_games

LAWS: dict[str, rv.Noise] = {
    "normal": rv.NormalNoise(),
    "logit": rv.LogitNoise(),
    "normal, lapses": rv.NormalNoise(lapse=rv.Lapse()),
    "logit, lapses": rv.LogitNoise(lapse=rv.Lapse()),
}
PRIOR_SD = 10.0


@dataclass(frozen=True)
class Judged:
    """One law on one problem.

    gain: in leave-one-out predictive density over normal noise, with its standard error. lapse:
    posterior mean and sd of the rate. high_k: decisions whose estimate is not reliable.
    """

    problem: str
    law: str
    decisions: int
    elpd: float
    gain: float
    error: float
    lapse: float | None
    lapse_sd: float | None
    high_k: int
    converged: bool
    seconds: float


def whole(split: Any) -> rv.Decisions:
    """All decisions of a split."""
    together: rv.Decisions = split.train + split.test
    return together


def human() -> rv.Decisions:
    """The straight drops of an expert."""
    return read_games(DATA / "human_tetris.jsonl").decisions(features="rich")[:500]


def rat() -> rv.Decisions:
    """Left or right, by a constant, two sounds and the trial before; its last 5,000 trials."""
    import pyarrow.parquet as pq

    columns = pq.read_table(DATA / "rat_w053.parquet").to_pydict()
    names = ["s1", "s2", "s1_before", "s2_before", "h", "r", "c"]
    kept = [name for name in names if name in columns]
    x = np.column_stack([np.ones(len(columns["choice"])), *(columns[name] for name in kept)])
    x = x[-5000:].astype(np.float64)
    # choice 2 is right, which has the features; left has none
    chosen = (np.asarray(columns["choice"])[-5000:] == 2).astype(np.int64)
    rows = np.stack([np.zeros_like(x), x], axis=1).reshape(-1, x.shape[1])
    return rv.Decisions(rows, 2 * np.arange(len(x) + 1), chosen, names=["right", *kept])


PROBLEMS: dict[str, tuple[str, Callable[[], rv.Decisions]]] = {
    "human Tetris": ("human_tetris.jsonl", human),
    "buses": ("rust1987.csv", lambda: whole(buses(0))),
    "travel modes": ("travelmode.csv", lambda: whole(travel(0))),
    "electricity": ("electricity.csv.gz", lambda: whole(electricity(0))),
    "rat": ("rat_w053.parquet", rat),
}


def fit(d: rv.Decisions, noise: rv.Noise, draws: int) -> Any:
    """By the certified approximation where that succeeds, and else by chains."""
    model = rv.ChoiceModel(prior=rv.Normal(PRIOR_SD), noise=noise)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return rv.fit(d, model, sampler="laplace", draws=draws, progress=False)
        except ValueError:
            return rv.fit(d, model, draws=draws, progress=False)


def judge(problem: str, d: rv.Decisions, draws: int) -> list[Judged]:
    """All laws on one problem."""
    found, first = [], None
    for name, noise in LAWS.items():
        began = time.process_time()
        post = fit(d, noise, draws)
        loo = post.loo()
        each = np.asarray(loo.pointwise)
        first = each if first is None else first
        gain = each - first
        rate = post.draws.get("lapse")
        found.append(
            Judged(
                problem,
                name,
                len(d),
                float(each.sum()),
                float(gain.sum()),
                float(gain.std(ddof=1) * np.sqrt(len(gain))),
                None if rate is None else float(rate.mean()),
                None if rate is None else float(rate.std()),
                int(np.sum(np.asarray(loo.pareto_k) > 0.7)),
                bool(post.converged),
                time.process_time() - began,
            )
        )
        print(f"{problem}, {name}: {found[-1].gain:.1f}", file=sys.stderr)
    return found


def measure(draws: int, only: str) -> Result:
    """Every law on every problem whose file is here."""
    judged: list[Judged] = []
    for name, (file, read) in PROBLEMS.items():
        if only not in name:
            continue
        if not (DATA / file).exists():
            print(f"{name} is left out: shared/data/{file} is not there", file=sys.stderr)
            continue
        judged += judge(name, read(), draws)
    if not judged:
        raise ValueError("no problem has that in its name, or none has its file in shared/data")
    return {"judged": [asdict(each) for each in judged]}


def tables(result: Result) -> str:
    """A line for each law on each problem."""
    head = ("choices", "noise", "decisions", "gain in nats", "rate of lapses", "converged")
    lines = [Judged(**line) for line in result["judged"]]
    return table(
        head,
        [
            (
                each.problem,
                each.law,
                f"{each.decisions:,}",
                "" if each.law == "normal" else f"{each.gain:+.1f} ({each.error:.1f})",
                "" if each.lapse is None else f"{each.lapse:.3f} ({each.lapse_sd:.3f})",
                "yes" if each.converged else "no",
            )
            for each in lines
        ],
    )


def finding(result: Result) -> str:
    """What the best law gains."""
    lines = [Judged(**line) for line in result["judged"]]
    said = []
    for problem in dict.fromkeys(line.problem for line in lines):
        best = max((each for each in lines if each.problem == problem), key=lambda e: e.gain)
        said.append(f"{problem}: {best.law} {best.gain:+.1f} ({best.error:.1f})")
    return "; ".join(said)


BENCHMARK = Benchmark(
    __name__,
    __doc__,
    title="Which noise",
    takes="10 minutes",
    options={
        "draws": Option(1000, "of each of four chains", quick=100),
        "only": Option("", "problems with this in their name", quick="travel"),
    },
    measure=measure,
    tables=tables,
    finding=finding,
)
