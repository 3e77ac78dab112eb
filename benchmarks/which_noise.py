"""Which noise real choices have: normal or Gumbel noise, with lapses or without.

Each law is fitted to the same decisions, all people taken for one, and judged by leave-one-out
predictive density: nats that it gains on normal noise, summed over all decisions, with the standard
error over decisions (Vehtari, Gelman and Gabry 2017). Unreliable are decisions whose Pareto k is
above 0.7. Human Tetris is an expert's first 500 straight drops with the `rich` features; buses are
Rust's group 4, with a value of every mileage under the smooth prior of the tutorial; travel modes
are Greene's; electricity contracts are stated choices; the rat compares two sounds (Roy and others
2021), with what it did the trial before, in its last 5,000 trials. But for buses the prior is
normal of sd 10, the same for every law.

The expert is also foretold: each law learns from his first 100 straight drops, and the 400 that
follow are scored. Shown are mean log scores, what lapses gain a decision with the standard error
over decisions, and which of the 100 were the likeliest lapses. The data are looked for in
`shared/data` beside the repository.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

import revealed as rv
from benchmarks._prior_problems import DATA, all_buses, all_electricity, all_travel
from benchmarks._record import Benchmark, Option, Result, table
from revealed.environments.bus_engine import smooth_prior
from revealed.environments.tetris import read_games

LAWS: dict[str, rv.Noise] = {
    "normal": rv.NormalNoise(),
    "logit": rv.LogitNoise(),
    "normal, lapses": rv.NormalNoise(lapse=rv.Lapse()),
    "logit, lapses": rv.LogitNoise(lapse=rv.Lapse()),
}
FORETOLD: dict[str, rv.Noise] = {**LAWS, "Student": rv.StudentNoise()}
FORETOLD["Student, lapses"] = rv.StudentNoise(lapse=rv.Lapse())
PRIOR = rv.Normal(10.0)
LEARNT = 100  # decisions of the expert; the 400 after them are foretold


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


@dataclass(frozen=True)
class Foretold:
    """One law on decisions that it has not seen.

    score: mean log probability of what was chosen. gain: of lapses over the same noise without,
    with its standard error. likeliest: the lapses among those learnt from, with their probability.
    """

    law: str
    score: float
    gain: float | None
    error: float | None
    likeliest: list[tuple[str, float]]
    converged: bool
    seconds: float


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


class Problem(NamedTuple):
    """The file in `DATA`, what reads it, and the prior of the values."""

    file: str
    read: Callable[[], rv.Decisions]
    prior: rv.Normal = PRIOR


PROBLEMS = {
    "human Tetris": Problem("human_tetris.jsonl", human),
    "buses": Problem("rust1987.csv", lambda: all_buses()[0], smooth_prior()),
    "travel modes": Problem("travelmode.csv", all_travel),
    "electricity": Problem("electricity.csv.gz", lambda: all_electricity()[0]),
    "rat": Problem("rat_w053.parquet", rat),
}


def fit(d: rv.Decisions, model: rv.ChoiceModel, draws: int) -> Any:
    """As a user would, the table saying whether draws have converged."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rv.fit(d, model, draws=draws, progress=False)


def judge(name: str, problem: Problem, draws: int) -> list[Judged]:
    """All laws on one problem."""
    d = problem.read()
    found, first = [], None
    for law, noise in LAWS.items():
        began = time.process_time()
        post = fit(d, rv.ChoiceModel(prior=problem.prior, noise=noise), draws)
        loo = post.loo()
        each = np.asarray(loo.pointwise)
        first = each if first is None else first
        gain = each - first
        rate = post.draws.get("lapse")
        found.append(
            Judged(
                name,
                law,
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
        print(f"{name}, {law}: {found[-1].gain:.1f}", file=sys.stderr)
    return found


def foretell(d: rv.Decisions, draws: int) -> list[Foretold]:
    """All laws, learnt from the first decisions; each with lapses follows the one without."""
    learnt, later = d[:LEARNT], d[LEARNT:]
    found: list[Foretold] = []
    scores: dict[str, Any] = {}
    for law, noise in sorted(FORETOLD.items(), key=lambda item: "lapses" in item[0]):
        began = time.process_time()
        post = fit(learnt, rv.ChoiceModel(prior=PRIOR, noise=noise), draws)
        each = scores[law] = post.predict(later).log_probability_chosen
        gain, likeliest = None, []
        if "lapses" in law:
            gain = each - scores[law.removesuffix(", lapses")]
            lapses = post.lapses()
            likeliest = [
                (str(learnt.ids[t]), float(lapses.probability[t])) for t in lapses.likeliest(5)
            ]
        found.append(
            Foretold(
                law,
                float(each.mean()),
                None if gain is None else float(gain.mean()),
                None if gain is None else float(gain.std(ddof=1) / np.sqrt(len(gain))),
                likeliest,
                bool(post.converged),
                time.process_time() - began,
            )
        )
        print(f"foretold, {law}: {found[-1].score:.3f}", file=sys.stderr)
    return found


def measure(draws: int, only: str) -> Result:
    """Every law on every problem whose file is here."""
    judged: list[Judged] = []
    for name, problem in PROBLEMS.items():
        if only not in name:
            continue
        if not (DATA / problem.file).exists():
            print(f"{name} is left out: shared/data/{problem.file} is not there", file=sys.stderr)
            continue
        judged += judge(name, problem, draws)
    if not judged:
        raise ValueError("no problem has that in its name, or none has its file in shared/data")
    known = [] if "human Tetris" not in {each.problem for each in judged} else [human()]
    return {
        "judged": [asdict(each) for each in judged],
        "foretold": [asdict(each) for d in known for each in foretell(d, draws)],
    }


def tables(result: Result) -> str:
    """A line for each law on each problem, and for each law on what it has not seen."""
    head = (
        "choices",
        "noise",
        "decisions",
        "gain in nats",
        "rate of lapses",
        "unreliable",
        "converged",
    )
    lines = [Judged(**line) for line in result["judged"]]
    judged = table(
        head,
        [
            (
                each.problem,
                each.law,
                f"{each.decisions:,}",
                "" if each.law == "normal" else f"{each.gain:+.1f} ({each.error:.1f})",
                "" if each.lapse is None else f"{each.lapse:.3f} ({each.lapse_sd:.3f})",
                str(each.high_k),
                "yes" if each.converged else "no",
            )
            for each in lines
        ],
    )
    later = [Foretold(**line) for line in result.get("foretold", [])]
    if not later:
        return judged
    foretold = table(
        ("noise", "log score", "gain of lapses", "likeliest lapses", "converged", "seconds"),
        [
            (
                each.law,
                f"{each.score:.3f}",
                "" if each.gain is None else f"{each.gain:+.3f} ({each.error:.3f})",
                ", ".join(f"{name}: {probability:.2f}" for name, probability in each.likeliest),
                "yes" if each.converged else "no",
                f"{each.seconds:.0f}",
            )
            for each in later
        ],
    )
    return f"{judged}\n\nHuman Tetris, decisions {LEARNT + 1} to 500:\n\n{foretold}"


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
        "draws": Option(2500, "of each of four chains", quick=100),
        "only": Option("", "problems with this in their name", quick="travel"),
    },
    measure=measure,
    tables=tables,
    finding=finding,
)
