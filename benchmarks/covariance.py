"""Real brand choices with correlated noise: speed and agreement, beside R's package MNP.

2,657 choices among six detergents, five intercepts and a price, base All (the data of the R
package MNP). MNP is Imai and van Dyk's (2005) data augmentation in C; it needs Rscript and
Debian's `r-cran-mnp`, and is left out where they are missing. Ours and MNP take turns on one core;
both are measured by the slowest of 21 parameters, bulk or of squares, after warm-up. The posterior
stands beside a longer run of another program and the published figures, with Monte-Carlo errors in
brackets. [Noise that goes together](noise.md#real-choices-detergents) says what was found. The
data are looked for in `shared/data` beside the repository, or where `--data` says.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import revealed as rv
from benchmarks._record import Benchmark, Option, Result, rounded, table
from revealed._types import Floats
from revealed.results.diagnostics import ess_bulk, ess_sd, mcse_mean
from revealed.samplers.model_kind import kind_of
from revealed.samplers.registry import REGISTRY, BuildArguments

DATA = Path(__file__).parents[2] / "shared" / "data" / "detergent.txt"
BRANDS = ("All", "EraPlus", "Solo", "Surf", "Tide", "Wisk")
COEFFICIENTS = (*BRANDS[1:], "price")
GOAL = 50.0  # times MNP's effective draws a second
WARMUP = 1000
PUBLISHED = (
    2.54,
    1.72,
    1.56,
    2.70,
    1.62,
    -80.91,
)
"""On the scale "first": Imai and van Dyk (2005), MNP's documentation."""
CONVERGED = (
    2.634,
    1.818,
    1.655,
    2.792,
    1.702,
    -81.50,
)
"""On the scale "first": an earlier, longer run of another program."""
CONVERGED_PRICE = {"trace": (-58.97, 4.40), "first": (-81.50, 9.61)}  # its mean and sd of the price
PEER = "MNP, trace"
MNP = """
suppressMessages(library(MNP))
given <- commandArgs(trailingOnly = TRUE)
set.seed(as.integer(given[4]))
seen <- read.table(given[1], header = TRUE)
clock <- system.time(fitted <- mnp(choice ~ 1,
  choiceX = list(Surf = SurfPrice, Tide = TidePrice, Wisk = WiskPrice, EraPlus = EraPlusPrice,
    Solo = SoloPrice, All = AllPrice), cXnames = "price", data = seen, base = "All",
  n.draws = as.integer(given[3]), burnin = 0, verbose = FALSE))
write.table(fitted$param, given[2], row.names = FALSE, col.names = FALSE)
cat(clock[["elapsed"]])
"""

Sampler = Callable[[int], tuple[Floats, float]]
"""A seed in, (n, 21) draws after warm-up and the seconds they took out."""


@dataclass(frozen=True)
class Speed:
    """Effective draws a second of the slowest parameter.

    The median over rounds, and the extremes.
    """

    method: str
    rate: float
    low: float
    high: float
    effective: float


def read_choices(path: Path) -> rv.Decisions:
    """The choices, one intercept for each brand but the base, and prices."""
    lines = [line.replace('"', "").split() for line in path.read_text().splitlines()]
    columns = [lines[0].index(f"{brand}Price") for brand in BRANDS]
    rows = np.zeros((len(lines) - 1, len(BRANDS), len(COEFFICIENTS)))
    rows[:, 1:, :-1] = np.eye(len(BRANDS) - 1)
    rows[:, :, -1] = [[float(line[c]) for c in columns] for line in lines[1:]]
    return rv.Decisions(
        rows.reshape(-1, len(COEFFICIENTS)),
        len(BRANDS) * np.arange(len(rows) + 1),
        [BRANDS.index(line[0]) for line in lines[1:]],
        names=COEFFICIENTS,
        actions=np.tile(BRANDS, len(rows)),
    )


def prepare_ours(
    d: rv.Decisions, sampler: str, scale: str, draws: int, warmup: int = WARMUP
) -> Sampler:
    """One of our samplers under a flat prior, compiled."""
    model = rv.ChoiceModel(prior=rv.Flat(), noise=rv.CorrelatedNoise(base="All", scale=scale))
    build = REGISTRY.find(sampler, kind_of(model)).build
    assert build is not None
    fitted_sampler = build(model.resolve(d), BuildArguments({}, draws))

    def sample(seed: int) -> tuple[Floats, float]:
        rng = np.random.default_rng(seed)
        state, remaining = fitted_sampler.init(rng, None), warmup
        while remaining > 0:
            state, made = fitted_sampler.warmup(rng, state, remaining, remaining)
            remaining -= made
        began = time.perf_counter()
        _, kept, _ = fitted_sampler.sample(rng, state, draws, 1)
        seconds = time.perf_counter() - began
        # coefficients, then the lower triangle of the covariance
        i, j = np.tril_indices(kept["noise_covariance"].shape[-1])
        return np.hstack([kept["value"], kept["noise_covariance"][:, i, j]]), seconds

    rng = np.random.default_rng(0)
    fitted_sampler.sample(
        rng, fitted_sampler.warmup(rng, fitted_sampler.init(rng, None), 2, 2)[0], 2, 1
    )
    return sample


def prepare_mnp(path: Path, draws: int, burn: int = 5_000) -> Sampler | None:
    """R's MNP, where it is installed."""
    script = shutil.which("Rscript")
    if script is None or not r_versions(script):
        print(
            "Rscript with the package MNP is not installed (Debian: r-cran-mnp); it is remaining "
            "out",
            file=sys.stderr,
        )
        return None

    def sample(seed: int) -> tuple[Floats, float]:
        with tempfile.TemporaryDirectory() as folder:
            out, program = Path(folder) / "draws", Path(folder) / "mnp.R"
            program.write_text(MNP)
            completed = subprocess.run(
                [script, str(program), str(path), str(out), str(draws + burn), str(seed)],
                capture_output=True,
                text=True,
                check=True,
            )
            kept = np.loadtxt(out)[burn:]
        return kept, float(completed.stdout.split()[-1]) * draws / (draws + burn)

    return sample


def r_versions(script: str) -> dict[str, str]:
    """Those of R and MNP, where both are there."""
    completed = subprocess.run(
        [script, "-e", 'cat(as.character(getRversion()), as.character(packageVersion("MNP")))'],
        capture_output=True,
        text=True,
        check=False,
    )
    return (
        {}
        if completed.returncode
        else dict(zip(("R", "MNP"), completed.stdout.split(), strict=True))
    )


def effective(draws: Floats) -> float:
    """Effective draws of the slowest parameter that varies, bulk or of squares."""
    moving = draws[:, draws.std(axis=0) > 1e-9]
    return float(min(ess_bulk(moving[None]).min(), ess_sd(moving[None]).min()))


def compare(methods: dict[str, Sampler], rounds: int) -> tuple[list[Speed], dict[str, Floats]]:
    """All methods in turn, round after round; speeds and all draws, round by round."""
    rates: dict[str, list[tuple[float, float]]] = {name: [] for name in methods}
    kept: dict[str, list[Floats]] = {name: [] for name in methods}
    for number in range(rounds):
        for name, sample in methods.items():
            draws, seconds = sample(number + 1)
            count = effective(draws)
            rates[name].append((count / seconds, count))
            kept[name].append(draws)
            print(
                f"round {number + 1}, {name}: {count:.0f} effective draws in {seconds:.0f} s",
                file=sys.stderr,
            )
    speeds = []
    for name, found in rates.items():
        each = [rate for rate, _ in found]
        speeds.append(
            Speed(
                name,
                float(np.median(each)),
                min(each),
                max(each),
                float(np.median([n for _, n in found])),
            )
        )
    return speeds, {name: np.stack(found) for name, found in kept.items()}


def price(draws: Floats) -> tuple[float, float, float]:
    """Mean, sd and Monte-Carlo error of the price's coefficient."""
    k = COEFFICIENTS.index("price")
    return (
        float(draws[..., k].mean()),
        float(draws[..., k].std()),
        float(mcse_mean(draws[..., [k]])[0]),
    )


def measure(rounds: int, draws: int, data: str) -> Result:
    """Ours on both scales, the corrected data augmentation, and MNP, in turns."""
    path = Path(data) if data else DATA
    if not path.exists():
        raise ValueError(f"{path.name} is not there; give --data, the file of the R package MNP")
    d = read_choices(path)
    methods: dict[str, Sampler] = {
        "ghk-hmc, trace": prepare_ours(d, "auto", "trace", 3 * draws),
        "ghk-hmc, first": prepare_ours(d, "auto", "first", 3 * draws),
        "da, trace": prepare_ours(d, "da", "trace", 8 * draws),
        "da, first": prepare_ours(d, "da", "first", 8 * draws),
    }
    peer = prepare_mnp(path, 30 * draws)
    if peer is not None:
        methods[PEER] = peer
    speeds, kept = compare(methods, rounds)
    base = next((s.rate for s in speeds if s.method == PEER), None)
    return {
        "speeds": [{**asdict(s), "times": None if base is None else s.rate / base} for s in speeds],
        "price": {name: price(made) for name, made in kept.items()},
        "means": {name: made[..., :6].mean(axis=(0, 1)).tolist() for name, made in kept.items()},
        "versions": {} if peer is None else r_versions(shutil.which("Rscript") or ""),
    }


def tables(result: Result) -> str:
    """Speed, the price on both scales, and the intercepts on one of them."""
    speeds = [
        (
            s["method"],
            _rate(s["rate"]),
            f"{_rate(s['low'])} - {_rate(s['high'])}",
            rounded(s["times"]),
        )
        for s in result["speeds"]
    ]

    def found(method: str) -> list[str]:
        cells = []
        for scale in CONVERGED_PRICE:
            mean, sd, error = result["price"].get(f"{method}, {scale}", (None, None, None))
            cells += ["", ""] if mean is None else [f"{mean:.2f} ({error:.2f})", f"{sd:.2f}"]
        return cells

    prices = [
        *((method, *found(method)) for method in ("ghk-hmc", "da")),
        (
            "converged, another program",
            *(f"{x:.2f}" for pair in CONVERGED_PRICE.values() for x in pair),
        ),
        *([("MNP", *found("MNP"))] if PEER in result["price"] else []),
        ("published (Imai and van Dyk 2005)", "", "", f"{PUBLISHED[-1]:.2f}", ""),
    ]
    means = {
        "ghk-hmc": result["means"]["ghk-hmc, first"],
        "da": result["means"]["da, first"],
        "converged, another program": CONVERGED,
        "published": PUBLISHED,
    }
    brands = COEFFICIENTS[:-1]
    return "\n\n".join(
        [
            table(
                ("method, scale", "effective draws a second", "lowest - highest", "times MNP"),
                speeds,
            ),
            table(("price coefficient", "trace: mean", "sd", "first: mean", "sd"), prices),
            table(
                ("intercepts, first", *brands),
                [(name, *(f"{m:.2f}" for m in row[: len(brands)])) for name, row in means.items()],
            ),
        ]
    )


def missed(result: Result) -> str:
    """Whether the default was not so many times as fast as MNP."""
    times = result["speeds"][0]["times"]
    return (
        ""
        if times is None or times >= GOAL
        else f"the default made {times:.0f} times MNP's effective draws a second, not {GOAL:.0f}"
    )


def _rate(rate: float) -> str:
    return f"{rate:.1f}" if rate >= 10 else f"{rate:.2f}"


def finding(result: Result) -> str:
    """The default, and beside MNP."""
    ours = result["speeds"][0]
    beside = "" if ours["times"] is None else f", {rounded(ours['times'])} times MNP's"
    return f"{_rate(ours['rate'])} effective draws a second{beside}"


BENCHMARK = Benchmark(
    __name__,
    __doc__,
    title="A full noise covariance",
    takes="15 minutes",
    options={
        "rounds": Option(3, "rounds of all methods in turn", quick=1),
        "draws": Option(
            1000,
            "the default makes three times as many in a round, da eight times, MNP thirty times",
            quick=20,
        ),
        "data": Option("", "detergent.txt of the R package MNP", recorded=False),
    },
    measure=measure,
    tables=tables,
    finding=finding,
    missed=missed,
)
