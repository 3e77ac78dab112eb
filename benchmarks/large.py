"""Time and memory of `sampler="laplace"` against the number of decisions.

From memory, from a folder of Parquet files, and by workers of a Dask cluster. The player of the
paper's first Tetris experiment decides among some 23 placements a time, by three features; 1,265
proposals make 1,100 draws. Every fit has a process of its own, which reports how much memory it
took at most, and everything is compiled before the clock starts. A fit is certified, and its
effective draws are those of its importance weights. [Very many decisions](large.md) says what
follows for more of them.
"""

from __future__ import annotations

import importlib
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import revealed as rv
from benchmarks._record import Benchmark, Option, Result, cell, rounded, table
from revealed.environments.tetris import Tetris
from revealed.samplers.chunk_likelihood import derivatives, log_likelihoods, prepare

VALUE = np.array([-3.0, -15.0, -1.0])
SMALLEST_COUNT = 1_000
"""Decisions at the start of the curve, which goes on by tens."""
CHUNK = 50_000
"""Decisions that are simulated at a time, and of a Parquet file's row group."""
DRAWS = 275
"""Draws of each of four chains: 1,265 proposals, so that at least 1,000 draws are effective."""
FOLDER_DRAWS = 100
"""The same for a folder."""
TASK_DECISIONS = 1_000
"""Decisions of a row group, where a cluster is measured: there are many tasks then."""


def measure(most: int, folder: int, cluster: int) -> Result:
    """Fits from memory and from a folder, what each step costs, and fits by workers."""
    sizes = [SMALLEST_COUNT * 10**i for i in range(9) if SMALLEST_COUNT * 10**i <= most]
    fits = [
        {"packed": None, **fit_in_new_process({"count": count, "draws": DRAWS})} for count in sizes
    ]
    if folder:
        with tempfile.TemporaryDirectory(dir=".") as folder_path:
            size = write_folder(Path(folder_path), folder)
            fits.append(
                {
                    "packed": size / 1e9,
                    **fit_in_new_process({"folder": folder_path, "draws": FOLDER_DRAWS}),
                }
            )
    return {
        "fits": fits,
        "steps": measure_steps(),
        "cluster": measure_clusters(cluster) if cluster else [],
    }


def tables(result: Result) -> str:
    """Fits, steps, and fits by workers."""
    columns: dict[str, Callable[[dict[str, Any]], str]] = {
        "decisions": lambda r: f"{r['decisions']:,}",
        "from": lambda r: "memory" if r["packed"] is None else f"a folder of {r['packed']:.2g} GB",
        "proposals": lambda r: f"{r['proposals']:,}",
        "seconds": lambda r: rounded(r["seconds"]),
        "µs a decision": lambda r: rounded(r["microseconds"]),
        "processor minutes": lambda r: rounded(r["processor_minutes"]),
        "passes": lambda r: f"{r['passes']}",
        "effective": lambda r: f"{r['effective']:,.0f}",
        "Pareto k": lambda r: f"{r['pareto_k']:.2f}",
        "memory": lambda r: f"{r['memory']:.1f} GB",
    }
    parts = [
        table(tuple(columns), [[write(r) for write in columns.values()] for r in result["fits"]]),
        "What a decision takes of one core's time, in microseconds:",
        table(tuple(result["steps"]), [tuple(map(rounded, result["steps"].values()))]),
    ]
    if result["cluster"]:
        same = {True: "yes", False: "NO", None: ""}
        parts += [
            f"{result['cluster'][0]['decisions']:,} decisions in a folder with row groups of "
            f"{TASK_DECISIONS:,}, by workers of a Dask "
            "cluster on one machine. The kilobytes went over its loopback interface for each task "
            "and pass, whoever sent them.",
            table(
                ("workers", "seconds", "same draws as threads", "kilobytes a task"),
                [
                    (
                        f"{r['workers'] or 'threads'}",
                        rounded(r["seconds"]),
                        same[r["same"]],
                        cell(r["kilobytes"], ".1f"),
                    )
                    for r in result["cluster"]
                ],
            ),
        ]
    return "\n\n".join(parts)


def fit_in_new_process(task: dict[str, Any]) -> dict[str, Any]:
    """One fit in a process of its own."""
    program = (
        "import json, sys; from benchmarks import large; "
        "print(json.dumps(large.fit_one(json.loads(sys.argv[1]))))"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, json.dumps(task)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return dict(json.loads(run.stdout))


def fit_one(task: dict[str, Any]) -> dict[str, Any]:
    """A fit from memory or from a folder; everything is compiled before."""
    rv.fit(simulate(2000), sampler="laplace", draws=50, progress=False)
    decisions: Any = (
        rv.scan_parquet(task["folder"]) if "folder" in task else simulate(task["count"])
    )
    before = peak_memory()
    began, busy = time.perf_counter(), time.process_time()
    post = rv.fit(decisions, sampler="laplace", draws=task["draws"], progress=None)
    seconds, busy = time.perf_counter() - began, time.process_time() - busy
    off = (post.mean() - VALUE) / post.sd()
    return {
        "decisions": post.settings["decisions"],
        "seconds": seconds,
        "microseconds": 1e6 * seconds / post.settings["decisions"],
        "processor_minutes": busy / 60,
        "passes": post.settings["passes"],
        "proposals": post.settings["proposals"],
        "effective": float(post.settings["effective"]),
        "pareto_k": float(post.settings["pareto_k"]),
        "memory_before": before,
        "memory": peak_memory(),
        "sds_off": off.tolist(),
    }


def peak_memory() -> float:
    """The most memory this process has had, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def simulate_chunks(count: int, size: int = CHUNK) -> Iterator[rv.Decisions]:
    """So many decisions of a simulated player, a part at a time.

    Without labels of the placements.
    """
    world, rng = Tetris(), np.random.default_rng(1)
    for first in range(0, count, size):
        d = world.decisions(world.simulate(rng, VALUE, min(size, count - first)))
        yield rv.Decisions(d.rows, d.start, d.chosen, names=d.names, ids=first + np.arange(len(d)))


def simulate(count: int) -> rv.Decisions:
    """All of them in memory."""
    rows, sizes, chosen = [], [], []
    for part in simulate_chunks(count):
        rows.append(part.rows)
        sizes.append(part.sizes)
        chosen.append(part.chosen_row - part.start[:-1])
    start = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
    return rv.Decisions(
        np.concatenate(rows), start, np.concatenate(chosen), names=Tetris().feature_names
    )


def write_folder(folder_path: Path, count: int, size: int = CHUNK) -> int:
    """Parquet files of twenty row groups each, of so many decisions; returns their bytes."""
    import pyarrow.parquet as pq

    writer = None
    for i, part in enumerate(simulate_chunks(count, size)):
        frame = rv.to_dataframe(part).drop_columns(["action"])
        if i % 20 == 0:
            if writer is not None:
                writer.close()
            writer = pq.ParquetWriter(folder_path / f"part-{i // 20:04}.parquet", frame.schema)
        assert writer is not None
        writer.write_table(frame)
    if writer is not None:
        writer.close()
    return sum(file.stat().st_size for file in folder_path.iterdir())


def measure_steps() -> dict[str, Any]:
    """Microseconds of one core for one decision, in each step of the work; medians of five."""
    with tempfile.TemporaryDirectory(dir=".") as folder_path:
        write_folder(Path(folder_path), CHUNK)
        folder = rv.scan_parquet(folder_path)
        loaded, weights = folder.load(0)
        piece = prepare(loaded, weights)
        many = np.repeat(VALUE[None], 50, axis=0)
        derivatives(piece, VALUE)
        log_likelihoods(piece, many)

        def each(work: Any) -> float:
            times = []
            for _ in range(5):
                began = time.perf_counter()
                work()
                times.append(time.perf_counter() - began)
            return float(1e6 * np.median(times) / len(loaded))

        return {
            "reading": each(lambda: folder.load(0)),
            "preparing": each(lambda: prepare(loaded, weights)),
            "a Newton step": each(lambda: derivatives(piece, VALUE)),
            "weighing a proposal": each(lambda: log_likelihoods(piece, many)) / len(many),
        }


def measure_clusters(count: int) -> list[dict[str, Any]]:
    """The same fit by threads here and by several workers.

    Seconds, whether the draws are the same, and what travels.
    """
    distributed: Any = importlib.import_module("distributed")
    psutil: Any = importlib.import_module("psutil")

    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(dir=".") as folder_path:
        write_folder(Path(folder_path), count, TASK_DECISIONS)
        began = time.perf_counter()
        whole = rv.fit(rv.scan_parquet(folder_path), draws=DRAWS)
        rows.append(
            {
                "workers": None,
                "decisions": count,
                "seconds": time.perf_counter() - began,
                "same": None,
                "kilobytes": None,
            }
        )
        where = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
        for workers in (1, 2, 4):
            with (
                distributed.LocalCluster(n_workers=workers, threads_per_worker=1, **where) as local,
                distributed.Client(local) as client,
            ):
                rv.fit(
                    rv.scan_parquet(folder_path), draws=DRAWS, executor=client
                )  # loads the compiled code
                sent, began = (
                    psutil.net_io_counters(pernic=True)["lo"].bytes_sent,
                    time.perf_counter(),
                )
                found = rv.fit(rv.scan_parquet(folder_path), draws=DRAWS, executor=client)
                seconds = time.perf_counter() - began
                sent = psutil.net_io_counters(pernic=True)["lo"].bytes_sent - sent
            rows.append(
                {
                    "workers": workers,
                    "decisions": count,
                    "seconds": seconds,
                    "same": bool(np.array_equal(whole.draws["value"], found.draws["value"])),
                    "kilobytes": sent
                    / 1e3
                    / found.settings["passes"]
                    / -(-count // TASK_DECISIONS),
                }
            )
    return rows


def finding(result: Result) -> str:
    """The most from memory."""
    most = max(
        (fit for fit in result["fits"] if fit["packed"] is None),
        key=lambda fit: int(fit["decisions"]),
    )
    return (
        f"{most['decisions']:,} decisions in {rounded(most['seconds'])} seconds "
        f"with {most['memory']:.1f} GB"
    )


BENCHMARK = Benchmark(
    __name__,
    __doc__,
    title="Very many decisions",
    takes="30 minutes",
    options={
        "most": Option(1_000_000, "decisions at the end of the curve", quick=10_000),
        "folder": Option(
            10_000_000,
            "decisions in a folder, which is written first and removed at the end; 0 for none",
            quick=20_000,
        ),
        "cluster": Option(30_000, "decisions of the fit by workers; 0 for none", quick=2_000),
    },
    measure=measure,
    tables=tables,
    finding=finding,
    packages=("distributed",),
)
