"""Very many controllers: a population of ten thousand, fifty decisions each, on a Dask cluster of this machine.

    scripts/bench                             runs every benchmark
    python -m benchmarks.controllers --json   this one, for machines

Two worker processes of one thread each take half of the controllers; this process draws the population. Told are the time, the most memory that
each process held, whether the chains agree (also on each of the thirty thousand coefficients), and how often the 90% interval of a
coefficient holds its true value. The exit code says whether all converged and the share is what it should be.
"""

from __future__ import annotations

# isort: off
from benchmarks import _one_core  # noqa: F401
# isort: on

import argparse
import importlib
import json
import os
import resource
import sys
import time
import warnings
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import understudy as us
from understudy._arrays import Floats
from understudy.decisions import Decisions

CONTROLLERS, EACH, ACTIONS, FEATURES = 10_000, 50, 4, 3
SETTINGS: dict[str, Any] = {"draws": 700, "warmup": 200, "chains": 4}
MEAN = np.array([-1.0, 0.5, 0.8])
ROOT = np.array([[0.6, 0.0, 0.0], [0.3, 0.7, 0.0], [-0.2, 0.1, 0.5]])


@dataclass(frozen=True)
class Figures:
    """What was measured; memory in gigabytes, traffic in megabytes over the loopback interface; load: of the machine before we began."""

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
    converged: bool
    load: float


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=1, help="accepted for scripts/bench; there is one round")
    parser.add_argument("--controllers", type=int, default=CONTROLLERS)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--draws", type=int, default=SETTINGS["draws"])
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = measure(given.controllers, given.workers, given.draws)
    if given.json:
        print(json.dumps(asdict(found), indent=1))
    else:
        print("| | |\n|---|---|")
        for what, value in asdict(found).items():
            print(
                f"| {what.replace('_', ' ')} | {value:.4g} |"
                if isinstance(value, float)
                else f"| {what.replace('_', ' ')} | {value} |"
            )
    sys.exit(int(not found.converged or abs(found.covered - 0.9) > 0.02))


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


def measure(controllers: int, workers: int, draws: int) -> Figures:
    """One fit on a cluster of this machine."""
    from dask.distributed import Client, LocalCluster

    decisions, values = simulate(np.random.default_rng(1), controllers)
    settings = {**SETTINGS, "draws": draws}
    load = os.getloadavg()[0]
    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster) as client,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", us.NotConvergedWarning)
        us.fit_population(
            decisions[: 20 * EACH], draws=2, warmup=2, chains=1, cluster=client
        )  # compiles, or loads what was compiled
        before, began = _traffic(), time.perf_counter()
        population = us.fit_population(decisions, **settings, cluster=client)
        seconds = time.perf_counter() - began
        sent = _traffic() - before
        worker_memory = max(client.run(_peak).values())
    client_memory = _peak()
    alone, each = population.summary(), population.summary_of_players()
    low, high = np.quantile(population.values, [0.05, 0.95], axis=(0, 1))
    of_mean = np.quantile(population.mean, [0.05, 0.95], axis=(0, 1))
    iterations = settings["chains"] * (settings["warmup"] + draws)
    return Figures(
        controllers=controllers, workers=workers, chains=settings["chains"], draws=draws, warmup=settings["warmup"],
        seconds=seconds,
        client_memory=client_memory, worker_memory=worker_memory, traffic_an_iteration=sent / iterations / 1e6,
        r_hat_population=float(alone.r_hat.max()), r_hat_controllers=float(each.r_hat.max()),
        ess_population=float(np.minimum(alone.ess_bulk, alone.ess_tail).min()),
        ess_controllers=float(np.minimum(each.ess_bulk, each.ess_tail).min()),
        covered=float(((low <= values) & (values <= high)).mean()),
        true_mean_covered=int(((of_mean[0] <= MEAN) & (of_mean[1] >= MEAN)).sum()),
        converged=alone.trusted and each.trusted, load=load,
    )  # fmt: skip


def _peak() -> float:
    """The most memory this process ever held, in gigabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def _traffic() -> float:
    """Bytes that went over the loopback interface since the machine started, whoever sent them: an upper bound of ours."""
    psutil: Any = importlib.import_module("psutil")

    return float(psutil.net_io_counters(pernic=True)["lo"].bytes_sent)


if __name__ == "__main__":
    main()
