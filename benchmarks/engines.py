"""Effective draws a second: the default engine, the paper's samplers and general-purpose NUTS, in the same run.

    scripts/bench                                          runs every benchmark
    python -m benchmarks.engines --json                    this one, for machines
    python -m benchmarks.engines --only toy --rounds 5     one problem
    python -m benchmarks.engines --seeds 20                the default engine alone, over 20 seeds
    python -m benchmarks.engines --first [--cold]          seconds to the first 1,000 effective draws, warm-up included

Of the slowest coefficient, bulk or of squares, whichever is fewer; one chain on one core, compilation and warm-up left
out. Each round runs every method with a seed of its own for a few seconds; medians over rounds are reported with the
extremes. "<" marks a method that made fewer than 50 effective draws in some round: its rate is only an upper guess, and
where it made fewer than 500 draws at all, each is counted as effective. Ratios follow suit: ">", or "?" where the
default is the one that is guessed. "-" marks a method that was not ready in time.
"""

from __future__ import annotations

# isort: off
from benchmarks import _one_core  # noqa: F401
# isort: on

import argparse
import importlib.util
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from benchmarks import _first
from benchmarks._measure import METHODS, Speed, compare, over_seeds
from benchmarks._problems import SKIPPED, SUITE, Problem

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
    "default": "default", "da": "`da`", "paper": "the paper's widest move", "exact": "the same, exact utilities", "nutpie": "nutpie", "numpyro": "NumPyro",
}  # fmt: skip


def main() -> None:
    """Measure what is asked for and print a table."""
    given = _arguments()
    problems = [problem for name, problem in SUITE.items() if given.only.lower() in name.lower()]
    for name, why in SKIPPED.items():
        print(f"{name} is left out: {why}", file=sys.stderr)
    if not problems:
        sys.exit(f"no problem has {given.only!r} in its name; there are: {'; '.join(SUITE)}")
    if given.first:
        first_draws(problems, given.cold, given.json)
    elif given.seeds:
        seed_by_seed(problems, given.seeds, given.seconds, given.json)
    else:
        methods = [m for m in given.methods.split(",") if m not in ("nutpie", "numpyro") or _there(m)]
        speeds: list[Speed] = []
        for problem in problems:
            print(problem.name, file=sys.stderr, flush=True)
            speeds += compare(problem, methods, given.rounds, given.seconds, given.patience)
        print(json.dumps([asdict(speed) for speed in speeds], indent=1) if given.json else table(speeds, methods))
        if given.figure is not None:
            draw(speeds, methods, given.figure)


def table(speeds: Sequence[Speed], methods: Sequence[str]) -> str:
    """Markdown: a line a problem, a column a method, and how many times faster the default is."""
    others = [method for method in methods if method != "default"] if "default" in methods else []
    head = ["problem", *(LABELS[m] for m in methods), *(f"default / {LABELS[m]}" for m in others)]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for name in dict.fromkeys(speed.problem for speed in speeds):
        of = {speed.method: speed for speed in speeds if speed.problem == name}
        rates = [_rate(of.get(method)) for method in methods]
        ratios = [_ratio(of["default"], of.get(method)) for method in others]
        lines.append(f"| {' | '.join([name, *rates, *ratios])} |")
    return "\n".join(lines)


def draw(speeds: Sequence[Speed], methods: Sequence[str], path: Path) -> None:
    """A dot for each method on each problem, from the least to the most over rounds; hollow where only guessed."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(speed.problem for speed in speeds))
    figure = Figure(figsize=(9.0, 1.6 + 0.42 * len(names)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for method in methods:
        some = [speed for speed in speeds if speed.method == method]
        height = np.array([names.index(speed.problem) for speed in some])
        axes.hlines(height, [s.low for s in some], [s.high for s in some], color=COLOURS[method], linewidth=1.5)
        for told in (True, False):
            shown = [i for i, speed in enumerate(some) if speed.guess != told]
            axes.plot(
                [some[i].rate for i in shown], height[shown], MARKS[method], color=COLOURS[method], markersize=8,
                markerfacecolor=COLOURS[method] if told else "white", label=LABELS[method].strip("`") if told else None,
            )  # fmt: skip
    axes.set_xscale("log")
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.grid(axis="both", color="0.9")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel("effective draws a second, slowest coefficient, one core (hollow: an upper guess)")
    figure.legend(loc="outside upper center", ncols=len(methods), frameon=False)
    figure.savefig(path, dpi=150)


def seed_by_seed(problems: Sequence[Problem], seeds: int, seconds: float, as_json: bool) -> None:
    """The default engine over many seeds."""
    rates = {problem.name: over_seeds(problem, seeds, seconds) for problem in problems}
    if as_json:
        print(json.dumps({name: rate.tolist() for name, rate in rates.items()}, indent=1))
        return
    print(f"| problem | worst of {seeds} seeds | median | best | worst / median |\n|---|---|---|---|---|")
    for name, rate in rates.items():
        low, middle, high = rate[0], np.median(rate), rate[-1]
        print(f"| {name} | {_few(low)} | {_few(middle)} | {_few(high)} | {low / middle:.2f} |")


def first_draws(problems: Sequence[Problem], cold: bool, as_json: bool) -> None:
    """Seconds to the first 1,000 effective draws."""
    lines = [_first.measure(problem, cold) for problem in problems]
    if as_json:
        print(json.dumps([asdict(line) for line in lines], indent=1))
        return
    print("| problem | draws | effective | seconds, warm-up included | compilation included |\n|---|---|---|---|---|")
    for f in lines:
        compiled = "" if f.with_compilation is None else f"{f.with_compilation:.1f}"
        print(f"| {f.problem} | {f.draws:,} | {f.effective:,.0f} | {f.seconds:.2f} | {compiled} |")


def _rate(speed: Speed | None) -> str:
    if speed is None:
        return "-"
    return f"{'< ' * speed.guess}{_few(speed.rate)} ({_few(speed.low)} - {_few(speed.high)})"


def _ratio(ours: Speed, speed: Speed | None) -> str:
    if speed is None:
        return "-"
    return f"{'? ' if ours.guess else '> ' * speed.guess}{_few(speed.ratio)}"


def _few(number: float) -> str:
    """As many digits as can be trusted."""
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


def _there(peer: str) -> bool:
    if importlib.util.find_spec(peer) is None:
        print(f"{peer} is not installed and is left out; scripts/bench installs it", file=sys.stderr)
        return False
    return True


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", metavar="SUBSTRING", help="problems with this in their name")
    parser.add_argument("--methods", default=",".join(METHODS), help="some of %(default)s")
    parser.add_argument("--seconds", type=float, default=2.0, help="of sampling for each method in each round")
    parser.add_argument("--patience", type=float, default=60.0, help="seconds NumPyro's warm-up may take on a problem")
    parser.add_argument("--seeds", type=int, default=0, help="the default engine alone, over so many seeds")
    parser.add_argument("--first", action="store_true", help="time to the first 1,000 effective draws instead")
    parser.add_argument("--cold", action="store_true", help="with --first: also in a process that has compiled nothing")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--figure", type=Path, help="also draw the speeds, to this file")
    given = parser.parse_args()
    wrong = set(given.methods.split(",")) - set(METHODS)
    if wrong:
        parser.error(f"there is no method {', '.join(sorted(wrong))}; choose from {', '.join(METHODS)}")
    return given


if __name__ == "__main__":
    main()
