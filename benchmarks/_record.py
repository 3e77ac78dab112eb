"""What a benchmark is, and what is stored of a run: its result, and what is needed to repeat it.

Every file here that is not private holds one `BENCHMARK`; `python -m benchmarks NAME` runs it.
Nothing here imports numpy: one core is asked for first.
"""

from __future__ import annotations

import datetime
import hashlib
import importlib
import importlib.metadata
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"
NAMES = (
    "first_answer",
    "samplers",
    "costs",
    "large",
    "population",
    "population_speed",
    "controllers",
    "covariance",
    "ranking",
    "ranking_size",
    "ranking_noise",
    "walk_forward",
    "tennis",
    "updates",
    "tetris",
    "default_prior",
    "default_prior_logit",
    "logit",
    "which_noise",
    "rat",
    "labyrinth",
    "studio",
)
"""All benchmarks, in the order of the page."""
ALWAYS = ("numpy", "numba", "scipy")
"""Packages whose versions are recorded with every run."""

Result = dict[str, Any]
Record = dict[str, Any]


@dataclass(frozen=True)
class Option:
    """One setting.

    Its value in a full run, what it means, and its value in a quick one where that differs.
    """

    full: int | float | str
    help: str
    quick: int | float | str | None = None
    recorded: bool = True
    """False where it may name a file of somebody's, or hold a password."""


@dataclass(frozen=True)
class Benchmark:
    """One claim. The docstring of its file says on the page what is measured and how.

    `measure` takes the options by name.
    """

    module: str
    about: str | None
    title: str
    takes: str
    """How long a full run takes, in words."""
    options: Mapping[str, Option]
    measure: Callable[..., Result]
    """`versions` in what it returns are those of peers that are no Python packages."""
    tables: Callable[[Result], str]
    """Markdown."""
    finding: Callable[[Result], str]
    """What came out, in a few words with figures."""
    packages: tuple[str, ...] = ()
    """Peers and others that may take part; the versions of those that did are recorded."""
    figure: tuple[str, str, Callable[[Result, Path], None]] | None = None
    """The name of the picture in docs, what it shows in words, and what draws it."""
    missed: Callable[[Result], str] = field(default=lambda result: "")
    """A sentence where a full run did not reach what is claimed."""

    @property
    def name(self) -> str:
        """The name of its file, without the suffix."""
        return self.module.rpartition(".")[2]

    def settings(self, quick: bool) -> dict[str, int | float | str]:
        """The default of every option, in a full or in a quick run."""
        return {
            name: option.quick if quick and option.quick is not None else option.full
            for name, option in self.options.items()
        }


def load(name: str) -> Benchmark:
    """The benchmark that a file holds."""
    found = importlib.import_module(f"benchmarks.{name}").BENCHMARK
    assert isinstance(found, Benchmark)
    return found


def use_one_core() -> None:
    """Let everybody use one core; numpy, jax and the rest read these settings when they start."""
    for name in (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "NUMBA_NUM_THREADS",
        "NPROC",
    ):
        os.environ[name] = "1"
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"


def record(benchmark: Benchmark, settings: Mapping[str, int | float | str]) -> Record:
    """The record of a run: the result, and what a reader needs to know to repeat it."""
    from revealed.io.atomic import to_jsonable

    load, today, began = (
        os.getloadavg()[0],
        datetime.datetime.now(datetime.UTC).date(),
        time.perf_counter(),
    )
    result = benchmark.measure(**settings)
    seconds = time.perf_counter() - began
    # a peer that was imported took part
    took_part = [name for name in benchmark.packages if name.replace("-", "_") in sys.modules]
    versions = {name: importlib.metadata.version(name) for name in (*ALWAYS, *took_part)}
    return {
        "name": benchmark.name,
        "date": today.isoformat(),
        "arguments": {
            name: value for name, value in settings.items() if benchmark.options[name].recorded
        },
        "seconds": round(seconds, 1),
        "revealed": {"version": importlib.metadata.version("revealed"), "source": source()},
        "versions": {"python": platform.python_version(), **versions, **result.pop("versions", {})},
        "machine": machine(),
        "load": round(load, 2),
        "circumstances": "",
        "result": to_jsonable(result),
    }


def source() -> str:
    """A digest of the package's source: which state of it was measured."""
    import revealed

    folder = Path(revealed.__file__).parent
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        digest.update(
            file.relative_to(folder).as_posix().encode() + b"\0" + file.read_bytes() + b"\0"
        )
    return digest.hexdigest()[:12]


def machine() -> dict[str, str | int | float]:
    """The kind of machine this is, and nothing that identifies it."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return {
        "architecture": platform.machine(),
        "model": names[0] if names else platform.processor(),
        "cores": os.cpu_count() or 0,
        "memory_gb": round(memory, 1),
    }


def store(measured: Record, folder: Path) -> Path:
    """Write a record, whole, in place of an older one; returns its file."""
    from revealed.io.atomic import atomic_write

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{measured['name']}.json"
    atomic_write(
        path, (json.dumps(measured, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
    )
    return path


def stored(name: str, folder: Path = RESULTS) -> Record | None:
    """The latest record of a benchmark, if there is one."""
    path = folder / f"{name}.json"
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table, without the columns that are empty in every row."""
    body = [list(row) for row in rows]
    shown = [i for i in range(len(head)) if any(row[i] for row in body)]
    lines = [
        [head[i] for i in shown],
        ["---"] * len(shown),
        *([row[i] for i in shown] for row in body),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cell(value: float | None, digits: str, unit: str = "") -> str:
    """A number as a cell of a table; what was not measured stays empty."""
    return "" if value is None else f"{value:{digits}}{unit}"


def rounded(number: float | None) -> str:
    """A number with as many digits as can be trusted: none from 10 on, two below."""
    return cell(number, ",.0f" if number is not None and number >= 10 else ".2g")
