"""A full noise covariance on real brand choices: effective draws a second and agreement, beside R's package MNP.

    scripts/bench                            runs every benchmark
    python -m benchmarks.covariance --json   this one, for machines

2,657 choices among six detergents, five intercepts and a price, base All (the data of the R package MNP). MNP is Imai and
van Dyk's (2005) data augmentation in C; it needs Rscript and Debian's r-cran-mnp, and is left out where they are missing.
Ours and MNP take turns on one core; both are judged by the slowest of 21 parameters, bulk or of squares, after warm-up.
The converged posterior, the corrected data augmentation and the published figures stand beside ours on both scales.
"""

from __future__ import annotations

# isort: off
from benchmarks import _one_core  # noqa: F401
# isort: on

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import understudy as us
from understudy._arrays import Floats
from understudy.diagnostics import ess_bulk, ess_squares, mcse_mean
from understudy.engines.fit import make_engine
from understudy.noise import place_noise
from understudy.priors import place

DATA = Path(__file__).parents[2] / "shared" / "data" / "detergent.txt"
BRANDS = ("All", "EraPlus", "Solo", "Surf", "Tide", "Wisk")
COEFFICIENTS = (*BRANDS[1:], "price")
GOAL = 50.0  # times MNP's effective draws a second
WARMUP = 1000
PUBLISHED = {"first": (2.54, 1.72, 1.56, 2.70, 1.62, -80.91)}  # Imai and van Dyk (2005), MNP's documentation
CONVERGED = {"first": (2.634, 1.818, 1.655, 2.792, 1.702, -81.50)}  # an earlier, longer run of another program
CONVERGED_PRICE = {"first": (-81.50, 9.61), "trace": (-58.97, 4.40)}
MNP = """
suppressMessages(library(MNP))
given <- commandArgs(trailingOnly = TRUE)
set.seed(as.integer(given[4]))
seen <- read.table(given[1], header = TRUE)
clock <- system.time(fitted <- mnp(choice ~ 1, choiceX = list(Surf = SurfPrice, Tide = TidePrice, Wisk = WiskPrice,
  EraPlus = EraPlusPrice, Solo = SoloPrice, All = AllPrice), cXnames = "price", data = seen, base = "All",
  n.draws = as.integer(given[3]), burnin = 0, verbose = FALSE))
write.table(fitted$param, given[2], row.names = FALSE, col.names = FALSE)
cat(clock[["elapsed"]])
"""

Sampler = Callable[[int], tuple[Floats, float]]
"""A seed in, (n, 21) draws after warm-up and the seconds they took out."""


@dataclass(frozen=True)
class Speed:
    """Effective draws a second of the slowest parameter: the median over rounds, and the extremes."""

    method: str
    rate: float
    low: float
    high: float
    effective: float


def read(path: Path) -> us.Decisions:
    """The choices, one intercept for each brand but the base, and prices."""
    lines = [line.replace('"', "").split() for line in path.read_text().splitlines()]
    columns = [lines[0].index(f"{brand}Price") for brand in BRANDS]
    rows = np.zeros((len(lines) - 1, len(BRANDS), len(COEFFICIENTS)))
    rows[:, 1:, :-1] = np.eye(len(BRANDS) - 1)
    rows[:, :, -1] = [[float(line[c]) for c in columns] for line in lines[1:]]
    return us.Decisions(
        rows.reshape(-1, len(COEFFICIENTS)),
        len(BRANDS) * np.arange(len(rows) + 1),
        [BRANDS.index(line[0]) for line in lines[1:]],
        names=COEFFICIENTS,
        actions=np.tile(BRANDS, len(rows)),
    )


def ours(d: us.Decisions, engine: str, scale: str, draws: int, warmup: int = WARMUP) -> Sampler:
    """One of our engines under a flat prior, compiled."""
    noise = place_noise(us.FullNoise(base="All", scale=scale), d)
    machine = make_engine(engine, d, place(us.Flat(), d), {}, noise)

    def sample(seed: int) -> tuple[Floats, float]:
        rng = np.random.default_rng(seed)
        state, left = machine.start(rng, None), warmup
        while left > 0:
            state, made = machine.warm(rng, state, left, left)
            left -= made
        began = time.perf_counter()
        _, kept, _ = machine.advance(rng, state, draws, 1)
        return kept, time.perf_counter() - began

    rng = np.random.default_rng(0)
    machine.advance(rng, machine.warm(rng, machine.start(rng, None), 2, 2)[0], 2, 1)
    return sample


def mnp(path: Path, draws: int, burn: int = 5_000) -> Sampler | None:
    """R's MNP, where it is installed."""
    script = shutil.which("Rscript")
    if script is None or subprocess.run([script, "-e", "library(MNP)"], capture_output=True, check=False).returncode:
        print("Rscript with the package MNP is not installed (Debian: r-cran-mnp); it is left out", file=sys.stderr)
        return None

    def sample(seed: int) -> tuple[Floats, float]:
        with tempfile.TemporaryDirectory() as folder:
            out, program = Path(folder) / "draws", Path(folder) / "mnp.R"
            program.write_text(MNP)
            told = subprocess.run(
                [script, str(program), str(path), str(out), str(draws + burn), str(seed)],
                capture_output=True, text=True, check=True,
            )  # fmt: skip
            kept = np.loadtxt(out)[burn:]
        return kept, float(told.stdout.split()[-1]) * draws / (draws + burn)

    return sample


def effective(draws: Floats) -> float:
    """Effective draws of the slowest parameter that varies, bulk or of squares."""
    moving = draws[:, draws.std(axis=0) > 1e-9]
    return float(min(ess_bulk(moving[None]).min(), ess_squares(moving[None]).min()))


def race(methods: dict[str, Sampler], rounds: int) -> tuple[list[Speed], dict[str, Floats]]:
    """All methods in turn, round after round; speeds and all draws, round by round."""
    rates: dict[str, list[tuple[float, float]]] = {name: [] for name in methods}
    kept: dict[str, list[Floats]] = {name: [] for name in methods}
    for number in range(rounds):
        for name, sample in methods.items():
            draws, seconds = sample(number + 1)
            count = effective(draws)
            rates[name].append((count / seconds, count))
            kept[name].append(draws)
            print(f"round {number + 1}, {name}: {count:.0f} effective draws in {seconds:.0f} s", file=sys.stderr)
    speeds = []
    for name, found in rates.items():
        each = [rate for rate, _ in found]
        speeds.append(
            Speed(name, float(np.median(each)), min(each), max(each), float(np.median([n for _, n in found])))
        )
    return speeds, {name: np.stack(found) for name, found in kept.items()}


def price(draws: Floats) -> tuple[float, float, float]:
    """Mean, sd and Monte-Carlo error of the price's coefficient."""
    k = COEFFICIENTS.index("price")
    return float(draws[..., k].mean()), float(draws[..., k].std()), float(mcse_mean(draws[..., [k]])[0])


def main() -> None:
    """Measure and print tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--data", type=Path, default=DATA, help="detergent.txt of the R package MNP")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if not given.data.exists():
        print(f"{given.data.name} is not there; give --data, the file of the R package MNP", file=sys.stderr)
        return
    d = read(given.data)
    methods: dict[str, Sampler] = {
        "conditioned, trace": ours(d, "auto", "trace", 3_000),
        "conditioned, first": ours(d, "auto", "first", 3_000),
        "da, trace": ours(d, "da", "trace", 8_000),
        "da, first": ours(d, "da", "first", 8_000),
    }
    peer = mnp(given.data, 30_000)
    if peer is not None:
        methods["MNP, trace"] = peer
    speeds, draws = race(methods, given.rounds)
    found: dict[str, Any] = {"speeds": [asdict(s) for s in speeds]}
    found["price"] = {name: price(kept) for name, kept in draws.items()}
    found["means"] = {name: kept[..., :6].mean(axis=(0, 1)).tolist() for name, kept in draws.items()}
    if given.json:
        print(json.dumps(found, indent=1))
        return
    _tell(speeds, draws)


def _tell(speeds: list[Speed], draws: dict[str, Floats]) -> None:
    rate = {s.method: s.rate for s in speeds}
    base = rate.get("MNP, trace")
    print("| method | effective draws a second | lowest - highest | times MNP |\n|---|---|---|---|")
    for s in speeds:
        times = "" if base is None else f"{s.rate / base:.1f}"
        print(f"| {s.method} | {s.rate:.2f} | {s.low:.2f} - {s.high:.2f} | {times} |")
    if base is not None:
        ratio = rate["conditioned, trace"] / base
        print(f"\nThe default makes {ratio:.0f} times MNP's effective draws a second (goal {GOAL:.0f}).")
    print("\n| price | mean | Monte-Carlo error | sd |\n|---|---|---|---|")
    for name, kept in draws.items():
        mean, sd, error = price(kept)
        print(f"| {name} | {mean:.2f} | {error:.2f} | {sd:.2f} |")
    for scale, (mean, sd) in CONVERGED_PRICE.items():
        print(f"| converged, {scale} | {mean:.2f} | | {sd:.2f} |")
    print(f"\n| first | {' | '.join(COEFFICIENTS)} |\n|---|{'---|' * len(COEFFICIENTS)}")
    rows = {
        "conditioned": draws["conditioned, first"][..., :6].mean(axis=(0, 1)),
        "da": draws["da, first"][..., :6].mean(axis=(0, 1)),
    }
    for name, means in {**rows, "converged": CONVERGED["first"], "published": PUBLISHED["first"]}.items():
        print(f"| {name} | {' | '.join(f'{m:.2f}' for m in means)} |")


if __name__ == "__main__":
    main()
