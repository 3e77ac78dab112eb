"""The default sampler, the paper's samplers and general-purpose NUTS, in the same run.

Effective draws are those of the slowest coefficient, bulk or of squares, whichever are fewer; one
chain on one core, compilation and warm-up left out. All methods run in one process in turn, each
round with a seed of its own for a few seconds; medians over rounds are shown with the least and
the most in brackets. The problems are in `benchmarks/_problems.py`, and
[the composite sampler](decisions/composite-sampler.md) says what was tried.

- *default* is `sampler="auto"`; *`da`* and *the paper's widest move* (`px-both` on the decision
  processes, `px-scale` on Tetris) move utilities by Metropolis-Hastings as in the paper;
- *the same, exact utilities* is that widest move with our exact draw of the utilities;
- *nutpie* is its NUTS with default settings on our own collapsed likelihood, the very function
  that the default sampler calls, without Python in the loop;
- *NumPyro* is its NUTS on a quadrature likelihood as a user would write it, compiled.

"<" marks a method that made fewer than 50 effective draws in some round: its rate is only an upper
guess, and where it made fewer than 500 draws at all, each is counted as effective. Ratios follow
suit: ">", or "?" where the default is the one that is guessed. "-" marks a method whose warm-up
did not end within the seconds of `patience`.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import numpy as np

from benchmarks import _first
from benchmarks._measure import METHODS, Speed, compare, over_seeds
from benchmarks._problems import SKIPPED, SUITE
from benchmarks._record import Benchmark, Option, Result, cell, rounded, table

COLOURS = {
    "default": "#D55E00",
    "da": "#999999",
    "paper": "#000000",
    "exact": "#CC79A7",
    "nutpie": "#0072B2",
    "numpyro": "#009E73",
}
MARKS = {"default": "D", "da": "v", "paper": "s", "exact": "P", "nutpie": "o", "numpyro": "^"}
LABELS = {
    "default": "default",
    "da": "`da`",
    "paper": "the paper's widest move",
    "exact": "the same, exact utilities",
    "nutpie": "nutpie",
    "numpyro": "NumPyro",
}


def measure(
    rounds: int,
    seconds: float,
    methods: str,
    patience: float,
    seeds: int,
    seed_seconds: float,
    cold: int,
    only: str,
) -> Result:
    """All methods in turn, the default over many seeds, and the first thousand effective draws.

    The arguments are the options of the benchmark.
    """
    problems = [problem for name, problem in SUITE.items() if only.lower() in name.lower()]
    wrong = sorted(set(methods.split(",")) - set(METHODS))
    if wrong:
        raise ValueError(f"there is no method {', '.join(wrong)}; choose from {', '.join(METHODS)}")
    if not problems:
        raise ValueError(f"no problem has {only!r} in its name; there are: {'; '.join(SUITE)}")
    for name, why in SKIPPED.items():
        print(f"{name} is left out: {why}", file=sys.stderr)
    wanted = [m for m in methods.split(",") if m not in ("nutpie", "numpyro") or _is_installed(m)]
    found: Result = {"speeds": [], "seeds": [], "first": []}
    for i, problem in enumerate(problems):
        print(problem.name, file=sys.stderr, flush=True)
        found["speeds"] += [
            asdict(speed) for speed in compare(problem, wanted, rounds, seconds, patience)
        ]
        if seeds:
            rates = over_seeds(problem, seeds, seed_seconds)
            spread = {"worst": rates[0], "median": np.median(rates), "best": rates[-1]}
            found["seeds"].append({"problem": problem.name, "seeds": seeds, **spread})
        found["first"].append(asdict(_first.measure(problem, cold=i < cold)))
    return found


def tables(result: Result) -> str:
    """The tables: speeds, how many times faster the default is, over seeds, and first draws."""
    speeds = {(s["problem"], s["method"]): Speed(**s) for s in result["speeds"]}
    problems, methods = _sorted(speeds)
    parts = [
        table(
            ("effective draws a second", *(LABELS[m] for m in methods)),
            [(p, *(_rate(speeds.get((p, m))) for m in methods)) for p in problems],
        )
    ]
    if "default" in methods:
        others = [m for m in methods if m != "default"]
        parts.append("How many times as many the default makes, the median over rounds:")
        rows = [
            (p, *(_ratio(speeds[p, "default"], speeds.get((p, m))) for m in others))
            for p in problems
        ]
        parts.append(table(("default against", *(LABELS[m] for m in others)), rows))
    if result["seeds"]:
        parts += [
            "### Over many seeds",
            "The default sampler alone, each seed with a warm-up of its own.",
        ]
        head = (
            "effective draws a second",
            f"worst of {result['seeds'][0]['seeds']} seeds",
            "median",
            "best",
            "worst / median",
        )
        parts.append(
            table(
                head,
                [
                    (
                        s["problem"],
                        rounded(s["worst"]),
                        rounded(s["median"]),
                        rounded(s["best"]),
                        f"{s['worst'] / s['median']:.2f}",
                    )
                    for s in result["seeds"]
                ],
            )
        )
    parts += [
        "### From nothing to a thousand effective draws",
        "`rv.fit` with one chain on one core, everything included: counting, mode, warm-up, "
        "draws. Compilation is timed apart, in a process that has compiled nothing.",
        table(
            ("problem", "draws", "effective", "seconds, warm-up included", "compilation included"),
            [
                (
                    f.problem,
                    f"{f.draws:,}",
                    f"{f.effective:,.0f}",
                    f"{f.seconds:.2f}",
                    cell(f.with_compilation, ".1f"),
                )
                for f in (_first.FirstDraws(**line) for line in result["first"])
            ],
        ),
    ]
    return "\n\n".join(parts)


def draw(result: Result, path: Path) -> None:
    """Draw a dot for each method on each problem, from the least to the most over rounds.

    A hollow dot is a rate that is only an upper guess.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    speeds = [Speed(**line) for line in result["speeds"]]
    names, methods = _sorted((s.problem, s.method) for s in speeds)
    figure = Figure(figsize=(9.0, 1.6 + 0.42 * len(names)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for method in methods:
        some = [speed for speed in speeds if speed.method == method]
        height = np.array([names.index(speed.problem) for speed in some])
        axes.hlines(
            height,
            [s.low for s in some],
            [s.high for s in some],
            color=COLOURS[method],
            linewidth=1.5,
        )
        for measured in (True, False):
            shown = [i for i, speed in enumerate(some) if speed.guess != measured]
            axes.plot(
                [some[i].rate for i in shown],
                height[shown],
                MARKS[method],
                color=COLOURS[method],
                markersize=8,
                markerfacecolor=COLOURS[method] if measured else "white",
                label=LABELS[method].strip("`") if measured else None,
            )
    axes.set_xscale("log")
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.grid(axis="both", color="0.9")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel(
        "effective draws a second, slowest coefficient, one core (hollow: an upper guess)"
    )
    figure.legend(loc="outside upper center", ncols=len(methods), frameon=False)
    figure.savefig(path, dpi=150, metadata={"Software": None})


def _sorted(pairs: Iterable[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """Problems in their order, and methods in that of METHODS."""
    seen = list(pairs)
    return list(dict.fromkeys(problem for problem, _ in seen)), [
        m for m in METHODS if any(m == used for _, used in seen)
    ]


def _rate(speed: Speed | None) -> str:
    """A rate as a cell, with its range; "-" where the method took no part."""
    if speed is None:
        return "-"
    return (
        f"{'< ' * speed.guess}{rounded(speed.rate)} ({rounded(speed.low)} - {rounded(speed.high)})"
    )


def _ratio(ours: Speed, speed: Speed | None) -> str:
    """How many times faster the default is, as a cell."""
    if speed is None:
        return "-"
    return f"{'? ' if ours.guess else '> ' * speed.guess}{rounded(speed.ratio)}"


def _is_installed(peer: str) -> bool:
    """Whether a peer is installed; if not, that is said on stderr."""
    if importlib.util.find_spec(peer) is None:
        print(
            f"{peer} is not installed and is left out; scripts/bench installs it", file=sys.stderr
        )
        return False
    return True


def finding(result: Result) -> str:
    """In words: the range over problems, beside NUTS and beside the paper's sampler."""
    found = []
    for method in ("nutpie", "paper"):
        ratios = {s["ratio"]: s["guess"] for s in result["speeds"] if s["method"] == method}
        if ratios:
            least, most = (
                f"{'> ' * ratios[ratio]}{rounded(ratio)}" for ratio in (min(ratios), max(ratios))
            )
            found.append(f"{least} to {most} times as many as {LABELS[method]}")
    return ", ".join(found) or "no peer took part"


BENCHMARK = Benchmark(
    __name__,
    __doc__,
    title="Effective draws a second",
    takes="45 minutes",
    options={
        "rounds": Option(3, "rounds of all methods in turn", quick=1),
        "seconds": Option(2.5, "of sampling for each method in each round", quick=0.3),
        "methods": Option(",".join(METHODS), "which methods"),
        "patience": Option(
            60.0, "seconds that NumPyro's warm-up may take on a problem", quick=20.0
        ),
        "seeds": Option(20, "seeds of the default sampler alone; 0 for none", quick=2),
        "seed_seconds": Option(0.6, "seconds of sampling for each of them", quick=0.1),
        "cold": Option(
            1, "problems that are also timed in a process that has compiled nothing", quick=0
        ),
        "only": Option("", "problems with this in their name", quick="toy"),
    },
    measure=measure,
    tables=tables,
    finding=finding,
    packages=("nutpie", "numpyro", "jax"),
    figure=("speed.png", "Effective draws a second by problem and method", draw),
)
