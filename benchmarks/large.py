"""Very many decisions: time and memory against their number, from memory, from a folder, and on a cluster.

    python -m benchmarks.large                         the curve from 1,000 to 1,000,000 Tetris decisions, and what each step costs
    python -m benchmarks.large --folder 10000000       as many from a folder of Parquet files, which is written first and removed at the end
    python -m benchmarks.large --cluster 100000        the same fit by 1, 2 and 4 Dask workers, and what travels

The player of the paper's first Tetris experiment decides among some 23 placements a time, by three features. Every fit has a process of its own, which tells
how much memory it took at most, and everything is compiled before the clock starts. A fit is certified, and its
effective draws are those of its importance weights.
"""

from __future__ import annotations

import argparse
import importlib
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import understudy as us
from understudy.engines.passes import heights, prepare, slopes
from understudy.worlds.tetris import Tetris

VALUE = np.array([-3.0, -15.0, -1.0])
CURVE = (1_000, 10_000, 100_000, 1_000_000)
PART = 50_000  # decisions that are simulated at a time, and of a Parquet file's row group
DRAWS = 275  # of each of four chains: 1,265 proposals, so that at least 1,000 draws are effective
FEW = 100  # the same for a folder
TASK = 1_000  # decisions of a row group, where a cluster is measured: there are many tasks then


def main() -> None:
    """Measure and print tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--folder", type=int, metavar="DECISIONS")
    parser.add_argument("--cluster", type=int, metavar="DECISIONS")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one is not None:
        print(json.dumps(one(json.loads(given.one))))
        return
    if given.cluster is not None:
        show(clusters(given.cluster), given.json)
    elif given.folder is not None:
        with tempfile.TemporaryDirectory(dir=".") as place:
            size = write_folder(Path(place), given.folder)
            print(f"{given.folder:,} decisions in {size / 1e9:.2f} GB of Parquet files", file=sys.stderr)
            show([alone({"folder": place, "draws": FEW})], given.json)
    else:
        show([alone({"count": count, "draws": DRAWS}) for count in CURVE], given.json)
        show([costs()], given.json)


def show(rows: list[dict[str, Any]], as_json: bool) -> None:
    """A table of what was measured."""
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    print("| " + " | ".join(rows[0]) + " |\n|" + "---|" * len(rows[0]))
    for row in rows:
        print("| " + " | ".join(f"{x:,.4g}" if isinstance(x, float) else f"{x:,}" if isinstance(x, int) else str(x) for x in row.values()) + " |")  # fmt: skip
    print()


def alone(task: dict[str, Any]) -> dict[str, Any]:
    """One fit in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.large", "--one", json.dumps(task)]
    return dict(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout))


def one(task: dict[str, Any]) -> dict[str, Any]:
    """A fit from memory or from a folder; everything is compiled before."""
    us.fit(simulated(2000), engine="laplace", draws=50, progress=False)
    decisions: Any = us.from_folder(task["folder"]) if "folder" in task else simulated(task["count"])
    before = peak()
    began = time.perf_counter()
    post = us.fit(decisions, engine="laplace", draws=task["draws"], progress=None)
    seconds = time.perf_counter() - began
    off = (post.mean - VALUE) / post.sd
    return {
        "decisions": post.settings["decisions"],
        "seconds": seconds,
        "microseconds a decision": 1e6 * seconds / post.settings["decisions"],
        "passes": post.settings["passes"],
        "proposals": post.settings["proposals"],
        "effective draws": float(post.settings["effective"]),
        "Pareto k": float(post.settings["pareto_k"]),
        "GB before": before,
        "GB at most": peak(),
        "from the truth, in sds": " ".join(f"{x:.1f}" for x in off),
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
        table = us.to_frame(part).drop_columns(["action"])
        if i % 20 == 0:
            if writer is not None:
                writer.close()
            writer = pq.ParquetWriter(place / f"part-{i // 20:04}.parquet", table.schema)
        assert writer is not None
        writer.write_table(table)
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
            "microseconds a decision for": "",
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
        rows.append({"workers": "threads", "seconds": time.perf_counter() - began, "same draws": "", "kB a task": 0.0})
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
                    "seconds": seconds,
                    "same draws": "yes" if np.array_equal(whole.draws, found.draws) else "NO",
                    "kB a task": sent / 1e3 / found.settings["passes"] / -(-count // TASK),
                }
            )
    return rows


if __name__ == "__main__":
    main()
