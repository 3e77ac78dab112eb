"""How quickly a population of real people is inferred, beside R's package bayesm.

361 people chose 4,308 times among four electricity contracts (Train's data); six coefficients of
each person come from one normal law. Four chains of every method run one after the other on one
core, each from its own start, and everything counts: start, warm-up, draws. What is measured are
effective draws a second of processor time, of the slowest of the six means, six sds and fifteen
correlations; R-hat, the worst of these, says whether the chains agree. Lines are medians over
seeds. bayesm's `rhierMnlRwMixture` (Rossi, Allenby and McCulloch 2005) is a Metropolis sampler in
C++ for logit noise, with one normal component and its default prior, an inverse Wishart law; it
needs Rscript and Debian's `r-cran-bayesm`, and is left out where they are missing. Its first fifth
is left out as warm-up. The data are looked for in `shared/data` beside the repository, or where
`--data` says.
"""

from __future__ import annotations

import csv
import gzip
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
from revealed.models.noise import Noise
from revealed.results.diagnostics import ess_bulk, r_hat
from revealed.samplers.model_kind import kind_of
from revealed.samplers.registry import REGISTRY, BuildArguments

DATA = Path(__file__).parents[2] / "shared" / "data" / "electricity.csv.gz"
COEFFICIENTS = ("pf", "cl", "loc", "wk", "tod", "seas")
ACTIONS, CHAINS = 4, 4
PEER, OURS, OTHER = "bayesm", "hierarchical-hmc", "hierarchical"
# times bayesm's effective draws a second, and times those of our other sampler
GOALS = {PEER: 10.0, OTHER: 5.0}
DISCARDED = 0.2  # of bayesm's draws
BAYESM = """
suppressMessages(library(bayesm))
given <- commandArgs(trailingOnly = TRUE)
set.seed(as.integer(given[4]))
seen <- as.matrix(read.csv(given[1], header = FALSE))
people <- lapply(split(seq_len(nrow(seen)), seen[, 1]), function(mine) {
  list(y = seen[mine[seq(1, length(mine), by = 4)], 2], X = seen[mine, -(1:2)])
})
names(people) <- NULL
sink(tempfile())
before <- proc.time()
found <- rhierMnlRwMixture(Data = list(p = 4, lgtdata = people), Prior = list(ncomp = 1),
  Mcmc = list(R = as.integer(given[3]), keep = 1, nprint = 0))
took <- proc.time() - before
sink()
draws <- t(sapply(found$nmix$compdraw, function(one) c(one[[1]]$mu, one[[1]]$rooti)))
writeBin(as.vector(draws), given[2])
cat(took[["user.self"]] + took[["sys.self"]])
"""

Method = Callable[[int], tuple[Floats, float]]
"""A seed in, (chains, draws, quantities) and the seconds of processor time they took out."""


@dataclass(frozen=True)
class Speed:
    """A method: medians over seeds, and the extremes of the rate."""

    noise: str
    method: str
    rate: float
    low: float
    high: float
    effective: float
    r_hat: float
    seconds: float


def read_choices(path: Path) -> rv.Decisions:
    """The choices of all people."""
    with gzip.open(path, "rt", newline="", encoding="utf-8") as stream:
        lines = list(csv.DictReader(stream))
    rows = np.array([[float(line[name]) for name in COEFFICIENTS] for line in lines])
    chosen = np.flatnonzero([line["choice"] == "TRUE" for line in lines]) % ACTIONS
    people = [int(line["id"]) for line in lines[::ACTIONS]]
    start = ACTIONS * np.arange(len(chosen) + 1)
    return rv.Decisions(rows, start, chosen, names=COEFFICIENTS, groups=people)


def quantities(mean: Floats, covariance: Floats) -> Floats:
    """(..., 27) means, sds and correlations."""
    sd = np.sqrt(np.einsum("...kk->...k", covariance))
    i, j = np.tril_indices(covariance.shape[-1], -1)
    correlation = covariance[..., i, j] / sd[..., i] / sd[..., j]
    return np.concatenate([mean, sd, correlation], axis=-1)


def prepare_ours(d: rv.Decisions, sampler: str, noise: Noise, draws: int) -> Method:
    """One of our samplers, compiled, with the warm-up that it has by default."""
    model = rv.ChoiceModel(groups=rv.Hierarchical(), noise=noise)
    entry = REGISTRY.find(sampler, kind_of(model))
    assert entry.build is not None
    build, arguments = entry.build, BuildArguments({}, draws, threads=1)

    def run(seed: int, warmup: int, count: int, chains: int) -> tuple[Floats, float]:
        made, began = [], time.process_time()
        built = build(model.resolve(d), arguments)
        for spawned in np.random.SeedSequence(seed).spawn(chains):
            rng = np.random.default_rng(spawned)
            state, remaining = built.init(rng, None), warmup
            while remaining > 0:
                state, done = built.warmup(rng, state, remaining, remaining)
                remaining -= done
            _, kept, _ = built.sample(rng, state, count, 1)
            made.append(quantities(kept["population_mean"], kept["population_covariance"]))
        return np.stack(made), time.process_time() - began

    run(0, 30, 2, 1)  # compiles
    return lambda seed: run(seed, entry.warmup, draws, CHAINS)


def prepare_bayesm(d: rv.Decisions, draws: int) -> Method | None:
    """R's bayesm, where it is installed."""
    script = shutil.which("Rscript")
    if script is None or not r_versions(script):
        print(
            "Rscript with the package bayesm is not installed (Debian: r-cran-bayesm); it is left "
            "out",
            file=sys.stderr,
        )
        return None
    width, chosen = len(COEFFICIENTS), np.asarray(d.chosen)
    assert d.groups is not None
    person = np.repeat(np.asarray(d.groups), ACTIONS)
    columns = np.column_stack([person, np.repeat(chosen + 1, ACTIONS), np.asarray(d.rows)])

    def sample(seed: int) -> tuple[Floats, float]:
        made, seconds = [], 0.0
        with tempfile.TemporaryDirectory() as folder:
            data, out, program = (Path(folder) / name for name in ("data.csv", "out", "bayesm.R"))
            np.savetxt(data, columns, delimiter=",")
            program.write_text(BAYESM)
            for chain in range(CHAINS):
                own = str(CHAINS * seed + chain)
                completed = subprocess.run(
                    [script, str(program), str(data), str(out), str(draws), own],
                    capture_output=True,
                    text=True,
                    check=True,
                )
                seconds += float(completed.stdout.split()[-1])
                found = np.fromfile(out).reshape(width + width**2, draws).T
                # rooti is upper triangular, and rooti rooti' the precision; R writes by columns
                root = found[:, width:].reshape(-1, width, width).swapaxes(1, 2)
                covariance = np.asarray(np.linalg.inv(root @ root.swapaxes(1, 2)), np.float64)
                made.append(quantities(found[:, :width], covariance)[int(DISCARDED * draws) :])
        return np.stack(made), seconds

    return sample


def r_versions(script: str) -> dict[str, str]:
    """Those of R and bayesm, where both are there."""
    completed = subprocess.run(
        [script, "-e", 'cat(as.character(getRversion()), as.character(packageVersion("bayesm")))'],
        capture_output=True,
        text=True,
        check=False,
    )
    return (
        {}
        if completed.returncode
        else dict(zip(("R", "bayesm"), completed.stdout.split(), strict=True))
    )


def measure(seeds: int, draws: int, bayesm: int, data: str) -> Result:
    """All methods in turn, seed after seed."""
    path = Path(data) if data else DATA
    if not path.exists():
        raise ValueError(f"{path.name} is not there; give --data, the file of electricity choices")
    d = read_choices(path)
    methods: dict[tuple[str, str], Method] = {
        (noise, sampler): prepare_ours(d, sampler, law, draws)
        for noise, law in (("logit", rv.LogitNoise()), ("normal", rv.NormalNoise()))
        for sampler in (OURS, OTHER)
    }
    peer = prepare_bayesm(d, bayesm)
    if peer is not None:
        methods["logit", PEER] = peer
    found: dict[tuple[str, str], list[tuple[float, float, float]]] = {name: [] for name in methods}
    for seed in range(1, seeds + 1):
        for name, run in methods.items():
            kept, seconds = run(seed)
            effective, worst = float(ess_bulk(kept).min()), float(r_hat(kept).max())
            found[name].append((effective, worst, seconds))
            print(
                f"seed {seed}, {', '.join(name)}: {effective:.0f} effective draws in "
                f"{seconds:.1f} s, R-hat {worst:.3f}",
                file=sys.stderr,
            )
    speeds = []
    for (noise, method), runs in found.items():
        rates = [effective / seconds for effective, _, seconds in runs]
        effective, worst, seconds = np.median(runs, axis=0).tolist()
        speeds.append(
            Speed(
                noise,
                method,
                float(np.median(rates)),
                min(rates),
                max(rates),
                effective,
                worst,
                seconds,
            )
        )
    return {
        "speeds": [asdict(speed) for speed in speeds],
        "versions": {} if peer is None else r_versions(shutil.which("Rscript") or ""),
    }


def times(result: Result, noise: str, other: str) -> float | None:
    """How many times as many effective draws a second the default makes; None without the other."""
    rates = {(s["noise"], s["method"]): s["rate"] for s in result["speeds"]}
    beside = rates.get((noise, other))
    return None if beside is None else float(rates[noise, OURS] / beside)


def tables(result: Result) -> str:
    """A line for each noise and method."""
    return table(
        (
            "noise, method",
            "effective draws a second",
            "lowest - highest",
            "effective draws",
            "R-hat",
            "seconds",
        ),
        [
            (
                f"{s['noise']}, {s['method']}",
                f"{s['rate']:.1f}",
                f"{s['low']:.1f} - {s['high']:.1f}",
                f"{s['effective']:.0f}",
                f"{s['r_hat']:.3f}",
                f"{s['seconds']:.1f}",
            )
            for s in result["speeds"]
        ],
    )


def missed(result: Result) -> str:
    """Whether the default was not so many times as fast, or had not converged."""
    for noise, other in (("logit", PEER), ("normal", OTHER)):
        ratio = times(result, noise, other)
        if ratio is not None and ratio < GOALS[other]:
            return f"{OURS} was {ratio:.1f} times as fast as {other}, not {GOALS[other]:.0f}"
    worst = max(s["r_hat"] for s in result["speeds"] if s["method"] == OURS)
    return "" if worst < 1.01 else f"R-hat of {OURS} was {worst:.3f}"


def finding(result: Result) -> str:
    """The default beside bayesm, and beside our other sampler under normal noise."""
    peer, other = times(result, "logit", PEER), times(result, "normal", OTHER)
    assert other is not None
    beside = "" if peer is None else f"{rounded(peer)} times bayesm's effective draws a second; "
    return f"{beside}{rounded(other)} times those of groups and population in turns"


BENCHMARK = Benchmark(
    __name__,
    __doc__,
    title="A population of real people",
    takes="30 minutes",
    options={
        "seeds": Option(5, "seeds of all methods in turn", quick=1),
        "draws": Option(1000, "kept draws of each of our chains", quick=50),
        "bayesm": Option(10_000, "iterations of each of bayesm's chains", quick=500),
        "data": Option("", "electricity.csv.gz", recorded=False),
    },
    measure=measure,
    tables=tables,
    finding=finding,
    missed=missed,
)
