"""A population of ten thousand simulated controllers, fifty decisions each, on a Dask cluster.

The cluster is one machine: two worker processes of one thread each take half of the controllers;
the client draws the population. A decision is among four actions with three features. Shown are
the time, the most memory that each process held, whether the chains agree (also on each of the
thirty thousand coefficients), and how often the 90% interval of a coefficient holds its true
value. It is one run with one seed.
"""

from __future__ import annotations

import importlib
import resource
import time
import warnings
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import revealed as rv
from benchmarks._record import Benchmark, Option, Result, table
from revealed._types import Floats
from revealed.data.decisions import Decisions

EACH, ACTIONS, FEATURES = 50, 4, 3
CHAINS = 4
MEAN = np.array([-1.0, 0.5, 0.8])
ROOT = np.array([[0.6, 0.0, 0.0], [0.3, 0.7, 0.0], [-0.2, 0.1, 0.5]])


@dataclass(frozen=True)
class Figures:
    """What was measured; memory in gigabytes, traffic in megabytes over the loopback interface."""

    controllers: int
    workers: int
    chains: int
    draws: int
    warmup: int
    seconds: float
    client_memory: float
    worker_memory: float
    traffic_an_iteration: float
    r_hat_population: float
    r_hat_controllers: float
    ess_population: float
    ess_controllers: float
    covered: float
    true_mean_covered: int
    converged: bool | None = None


def simulate(rng: np.random.Generator, controllers: int) -> tuple[Decisions, Floats]:
    """Controllers from one Gaussian, with their values."""
    values = MEAN + rng.standard_normal((controllers, FEATURES)) @ ROOT.T
    rows = rng.standard_normal((controllers, EACH, ACTIONS, FEATURES))
    w = np.einsum("ntak,nk->nta", rows, values) + rng.standard_normal((controllers, EACH, ACTIONS))
    decisions = Decisions(
        rows.reshape(-1, FEATURES),
        np.arange(controllers * EACH + 1) * ACTIONS,
        w.argmax(axis=2).ravel(),
        groups=np.repeat(np.arange(controllers), EACH),
        group_name="controller",
    )
    return decisions, values


def measure(controllers: int, workers: int, draws: int, warmup: int) -> Result:
    """One fit on a cluster of this machine."""
    from dask.distributed import Client, LocalCluster

    decisions, values = simulate(np.random.default_rng(1), controllers)
    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster) as client,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", rv.NotConvergedWarning)
        model = rv.ChoiceModel(groups=rv.Hierarchical())
        rv.fit(
            decisions[: 20 * EACH], model, draws=2, warmup=2, chains=1, executor=client
        )  # compiles, or loads what was compiled
        before, began = _traffic(), time.perf_counter()
        population = rv.fit(
            decisions, model, draws=draws, warmup=warmup, chains=CHAINS, executor=client
        )
        seconds = time.perf_counter() - began
        sent = _traffic() - before
        worker_memory = max(client.run(_peak).values())
    client_memory = _peak()
    alone, each = population.summary(), population.summary_of_groups()
    low, high = np.quantile(population.draws["value"], [0.05, 0.95], axis=(0, 1))
    of_mean = np.quantile(population.draws["population_mean"], [0.05, 0.95], axis=(0, 1))
    iterations = CHAINS * (warmup + draws)
    found = Figures(
        controllers=controllers,
        workers=workers,
        chains=CHAINS,
        draws=draws,
        warmup=warmup,
        seconds=seconds,
        client_memory=client_memory,
        worker_memory=worker_memory,
        traffic_an_iteration=sent / iterations / 1e6,
        r_hat_population=float(alone.r_hat.max()),
        r_hat_controllers=float(each.r_hat.max()),
        ess_population=float(np.minimum(alone.ess_bulk, alone.ess_tail).min()),
        ess_controllers=float(np.minimum(each.ess_bulk, each.ess_tail).min()),
        covered=float(((low <= values) & (values <= high)).mean()),
        true_mean_covered=int(((of_mean[0] <= MEAN) & (of_mean[1] >= MEAN)).sum()),
        converged=alone.converged and each.converged,
    )
    return asdict(found)


def tables(result: Result) -> str:
    """A line for each thing that was measured."""
    f = Figures(**result)
    n_coefficients = f"{f.controllers * FEATURES:,}"
    return table(
        ("what", "measured"),
        [
            (f"{f.chains} chains of {f.draws} draws after {f.warmup}", f"{f.seconds:,.0f} seconds"),
            (
                "most memory: the client, the largest worker",
                f"{f.client_memory:.1f} GB, {f.worker_memory:.1f} GB",
            ),
            (
                "over the loopback interface, whoever sent it",
                f"{f.traffic_an_iteration:.1f} MB an iteration",
            ),
            (
                f"R-hat: population, the worst of {n_coefficients} coefficients",
                f"{f.r_hat_population:.3f}, {f.r_hat_controllers:.3f}",
            ),
            (
                f"effective draws of {f.chains * f.draws:,}: population, the worst of "
                f"{n_coefficients}",
                f"{f.ess_population:,.0f}, {f.ess_controllers:,.0f}",
            ),
            ("controllers' coefficients within their 90% interval", f"{f.covered:.1%}"),
            ("the population's true means within theirs", f"{f.true_mean_covered} of {FEATURES}"),
        ],
    )


def missed(result: Result) -> str:
    """Whether all converged, and intervals hold what they should."""
    if not result["converged"]:
        return "the chains do not agree"
    share = result["covered"]
    return "" if abs(share - 0.9) <= 0.02 else f"90% intervals hold {share:.1%} of the true values"


def _peak() -> float:
    """The most memory this process ever held, in gigabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def _traffic() -> float:
    """Bytes that went over the loopback interface since the machine started.

    Whoever sent them is counted: it is an upper bound of ours.
    """
    psutil: Any = importlib.import_module("psutil")

    return float(psutil.net_io_counters(pernic=True)["lo"].bytes_sent)


def finding(result: Result) -> str:
    """Time, and whether intervals hold what they should."""
    f = Figures(**result)
    return (
        f"{f.controllers:,} controllers in {f.seconds:,.0f} seconds; "
        f"{f.covered:.1%} of coefficients in their 90% interval"
    )


BENCHMARK = Benchmark(
    __name__,
    __doc__,
    title="Ten thousand controllers",
    takes="40 minutes",
    options={
        "controllers": Option(10_000, "controllers", quick=60),
        "workers": Option(2, "processes of one thread each"),
        "draws": Option(700, "draws of each of four chains", quick=30),
        "warmup": Option(200, "iterations before the first draw", quick=30),
    },
    measure=measure,
    tables=tables,
    finding=finding,
    packages=("distributed",),
    missed=missed,
)
