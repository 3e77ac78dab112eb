"""Time and memory of `engine="laplace"` against the number of decisions, from memory, from a folder of Parquet files, and by workers of a Dask cluster.

The player of the paper's first Tetris experiment decides among some 23 placements a time, by three features; 1,265 proposals make 1,100 draws. Every fit has a process
of its own, which tells how much memory it took at most, and everything is compiled before the clock starts. A fit is certified, and its
effective draws are those of its importance weights. [Very many decisions](large.md) says what follows for more of them.
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

import understudy as us
from benchmarks._record import Benchmark, Option, Result, cell, few, table
from understudy.engines.passes import heights, prepare, slopes
from understudy.worlds.tetris import Tetris

VALUE = np.array([-3.0, -15.0, -1.0])
SMALLEST = 1_000  # decisions of the curve, which goes on by tens
PART = 50_000  # decisions that are simulated at a time, and of a Parquet file's row group
DRAWS = 275  # of each of four chains: 1,265 proposals, so that at least 1,000 draws are effective
FEW = 100  # the same for a folder
TASK = 1_000  # decisions of a row group, where a cluster is measured: there are many tasks then


def measure(most: int, folder: int, cluster: int) -> Result:
    """Fits from memory and from a folder, what each step costs, and fits by workers."""
    sizes = [SMALLEST * 10**i for i in range(9) if SMALLEST * 10**i <= most]
    fits = [{"packed": None, **alone({"count": count, "draws": DRAWS})} for count in sizes]
    if folder:
        with tempfile.TemporaryDirectory(dir=".") as place:
            size = write_folder(Path(place), folder)
            fits.append({"packed": size / 1e9, **alone({"folder": place, "draws": FEW})})
    return {"fits": fits, "steps": costs(), "cluster": clusters(cluster) if cluster else []}


def tables(result: Result) -> str:
    """Fits, steps, and fits by workers."""
    columns: dict[str, Callable[[dict[str, Any]], str]] = {
        "decisions": lambda r: f"{r['decisions']:,}",
        "from": lambda r: "memory" if r["packed"] is None else f"a folder of {r['packed']:.2g} GB",
        "proposals": lambda r: f"{r['proposals']:,}",
        "seconds": lambda r: few(r["seconds"]),
        "µs a decision": lambda r: few(r["microseconds"]),
        "processor minutes": lambda r: few(r["processor_minutes"]),
        "passes": lambda r: f"{r['passes']}",
        "effective": lambda r: f"{r['effective']:,.0f}",
        "Pareto k": lambda r: f"{r['pareto_k']:.2f}",
        "memory": lambda r: f"{r['memory']:.1f} GB",
    }
    parts = [
        table(tuple(columns), [[write(r) for write in columns.values()] for r in result["fits"]]),
        "What a decision takes of one core's time, in microseconds:",
        table(tuple(result["steps"]), [tuple(map(few, result["steps"].values()))]),
    ]
    if result["cluster"]:
        same = {True: "yes", False: "NO", None: ""}
        parts += [
            f"{result['cluster'][0]['decisions']:,} decisions in a folder with row groups of {TASK:,}, by workers of a Dask "
            "cluster on one machine. The kilobytes went over its loopback interface for each task and pass, whoever sent them.",
            table(
                ("workers", "seconds", "same draws as threads", "kilobytes a task"),
                [
                    (f"{r['workers'] or 'threads'}", few(r["seconds"]), same[r["same"]], cell(r["kilobytes"], ".1f"))
                    for r in result["cluster"]
                ],
            ),
        ]
    return "\n\n".join(parts)


def alone(task: dict[str, Any]) -> dict[str, Any]:
    """One fit in a process of its own."""
    program = "import json, sys; from benchmarks import large; print(json.dumps(large.one(json.loads(sys.argv[1]))))"
    run = subprocess.run(
        [sys.executable, "-c", program, json.dumps(task)], check=True, stdout=subprocess.PIPE, text=True
    )
    return dict(json.loads(run.stdout))


def one(task: dict[str, Any]) -> dict[str, Any]:
    """A fit from memory or from a folder; everything is compiled before."""
    us.fit(simulated(2000), engine="laplace", draws=50, progress=False)
    decisions: Any = us.from_folder(task["folder"]) if "folder" in task else simulated(task["count"])
    before = peak()
    began, busy = time.perf_counter(), time.process_time()
    post = us.fit(decisions, engine="laplace", draws=task["draws"], progress=None)
    seconds, busy = time.perf_counter() - began, time.process_time() - busy
    off = (post.mean - VALUE) / post.sd
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
        "memory": peak(),
        "sds_off": off.tolist(),
    }


def peak() -> float:
    """The most memory this process has had, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def parts(count: int, size: int = PART) -> Iterator[us.Decisions]:
    """So many decisions of a simulated player, a part at a time, without labels of the placements."""
    world, rng = Tetris(), np.random.default_rng(1)
    for first in range(0, count, size):
        d = world.decisions(world.simulate(rng, VALUE, min(size, count - first)))
        yield us.Decisions(d.rows, d.start, d.chosen, names=d.names, ids=first + np.arange(len(d)))


def simulated(count: int) -> us.Decisions:
    """All of them in memory."""
    rows, sizes, chosen = [], [], []
    for part in parts(count):
        rows.append(part.rows)
        sizes.append(part.sizes)
        chosen.append(part.taken - part.start[:-1])
    start = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
    return us.Decisions(np.concatenate(rows), start, np.concatenate(chosen), names=Tetris().feature_names)


def write_folder(place: Path, count: int, size: int = PART) -> int:
    """Parquet files of twenty row groups each, of so many decisions; returns their bytes."""
    import pyarrow.parquet as pq

    writer = None
    for i, part in enumerate(parts(count, size)):
        frame = us.to_frame(part).drop_columns(["action"])
        if i % 20 == 0:
            if writer is not None:
                writer.close()
            writer = pq.ParquetWriter(place / f"part-{i // 20:04}.parquet", frame.schema)
        assert writer is not None
        writer.write_table(frame)
    if writer is not None:
        writer.close()
    return sum(file.stat().st_size for file in place.iterdir())


def costs() -> dict[str, Any]:
    """Microseconds of one core for one decision, in each step of the work; medians of five."""
    with tempfile.TemporaryDirectory(dir=".") as place:
        write_folder(Path(place), PART)
        folder = us.from_folder(place)
        loaded, weights = folder.load(0)
        piece = prepare(loaded, weights)
        many = np.repeat(VALUE[None], 50, axis=0)
        slopes(piece, VALUE)
        heights(piece, many)

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
            "a Newton step": each(lambda: slopes(piece, VALUE)),
            "weighing a proposal": each(lambda: heights(piece, many)) / len(many),
        }


def clusters(count: int) -> list[dict[str, Any]]:
    """The same fit by threads here and by several workers: seconds, whether the draws are the same, and what travels."""
    distributed: Any = importlib.import_module("distributed")
    psutil: Any = importlib.import_module("psutil")

    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(dir=".") as place:
        write_folder(Path(place), count, TASK)
        began = time.perf_counter()
        whole = us.fit(us.from_folder(place), draws=DRAWS)
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
                us.fit(us.from_folder(place), draws=DRAWS, cluster=client)  # loads the compiled code
                sent, began = psutil.net_io_counters(pernic=True)["lo"].bytes_sent, time.perf_counter()
                found = us.fit(us.from_folder(place), draws=DRAWS, cluster=client)
                seconds = time.perf_counter() - began
                sent = psutil.net_io_counters(pernic=True)["lo"].bytes_sent - sent
            rows.append(
                {
                    "workers": workers,
                    "decisions": count,
                    "seconds": seconds,
                    "same": bool(np.array_equal(whole.draws, found.draws)),
                    "kilobytes": sent / 1e3 / found.settings["passes"] / -(-count // TASK),
                }
            )
    return rows


def finding(result: Result) -> str:
    """The most from memory."""
    most = max((fit for fit in result["fits"] if fit["packed"] is None), key=lambda fit: int(fit["decisions"]))
    return f"{most['decisions']:,} decisions in {few(most['seconds'])} seconds with {most['memory']:.1f} GB"


BENCHMARK = Benchmark(
    __name__,
    __doc__,
    title="Very many decisions",
    takes="30 minutes",
    options={
        "most": Option(1_000_000, "decisions at the end of the curve", quick=10_000),
        "folder": Option(
            10_000_000, "decisions in a folder, which is written first and removed at the end; 0 for none", quick=20_000
        ),
        "cluster": Option(30_000, "decisions of the fit by workers; 0 for none", quick=2_000),
    },
    measure=measure,
    tables=tables,
    finding=finding,
    packages=("distributed",),
)
