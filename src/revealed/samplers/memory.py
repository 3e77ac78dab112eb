"""How much memory a fit will take, estimated before it begins; one that cannot have it is refused.

    peak = now held + a * rows + b * draws

rows are the bytes of the decisions' rows, draws those of the kept draws. The factors are what
samplers were seen to take at most (`tests/correctness/test_memory.py` measures them again): rows
are copied when equal ones are counted, turned into differences between rival and chosen rows, and
laid out by columns; draws are kept in chunks, joined, handed to the posterior and ranked by the
diagnostics.
"""

from __future__ import annotations

import math
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from revealed.data.decisions import Decisions
from revealed.data.trajectories import Trajectories
from revealed.io.data_and_model import as_data_and_model
from revealed.io.parquet_folder import ParquetDecisions
from revealed.models.choice import ResolvedChoiceModel
from revealed.models.groups import Pooled
from revealed.samplers.executors import EXECUTORS
from revealed.samplers.model_kind import Model, ResolvedModel
from revealed.samplers.progress import announce_memory
from revealed.samplers.registry import REGISTRY
from revealed.samplers.run_settings import RunSettings


@dataclass(frozen=True)
class MemoryFactors:
    """What fits were seen to take at most. Too small, and a machine runs out of memory half-way.

    Attributes
    ----------
    always
        Bytes of compiled code, and of libraries that are loaded on the way.
    utilities
        Doubles for each row in each chain.
    draws
        Bytes for each byte of the draws.
    stats
        Numbers kept with each draw.
    chunk
        Bytes for each byte of a row group, while it is read and prepared.
    population_draws
        Bytes for each byte of a population's draws: as they are made, as they are kept, and what
        the diagnostics look at.
    """

    always: float = 100e6
    utilities: float = 6.0
    draws: float = 8.0
    stats: int = 3
    chunk: float = 12.0
    population_draws: float = 4.0


MEMORY = MemoryFactors()

FEWER_DRAWS = "keep fewer draws or chains (thin lets them be further apart)"


def estimate_memory(
    data: Any,
    model: Model | None = None,
    sampler: str = "auto",
    draws: int = 1000,
    chains: int = 4,
    executor: Any = None,
) -> int:
    """The bytes that ``rv.fit`` will need at most, beyond what is held already.

    Parameters
    ----------
    data
        What is to be fitted.
    model, sampler, draws, chains, executor
        As in ``rv.fit``.

    Returns
    -------
    int
        Bytes, rather too many than too few.

    Examples
    --------
    >>> d = rv.Decisions([[0.8, 0.2], [0.3, 0.7]], start=[0, 2], chosen=[1])
    >>> rv.estimate_memory(d) < 200_000_000
    True
    """
    data, chosen = as_data_and_model(data, model)
    # what is said of the model and its data is said when it is fitted
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        resolved = chosen.resolve(data)
    threads = executor if isinstance(executor, int) else None
    return memory_of_run(resolved, sampler, draws, chains, threads)


def memory_of_run(
    resolved: ResolvedModel, sampler: str, draws: int, chains: int, threads: int | None
) -> int:
    """The same of a model that is resolved: bytes of rows at work, and of the draws kept."""
    numbers = sum(math.prod(parameter.shape) for parameter in resolved.parameters)
    hierarchical = any(p.name == "population_mean" for p in resolved.parameters)
    factor = MEMORY.population_draws if hierarchical else MEMORY.draws
    kept = factor * 8 * chains * draws * (numbers + MEMORY.stats)
    data = resolved.data
    # of a folder only the chunks at work, and those that are kept between passes, are in memory
    if isinstance(data, ParquetDecisions):
        at_work = MEMORY.chunk * data.largest_chunk_bytes * (threads or os.cpu_count() or 1)
        return round(MEMORY.always + kept + EXECUTORS.cache_bytes + at_work)
    work = 0.0
    if isinstance(data, Decisions):
        # a sparse matrix also has an index for each number
        rows = data.rows
        size = rows.data.nbytes * 2 if hasattr(rows, "indptr") else rows.nbytes
        # chains that wait for a thread have no workspace yet
        at_once = min(chains, threads or chains)
        work = _memory_factor(sampler) * size + MEMORY.utilities * 8 * rows.shape[0] * at_once
    return int(MEMORY.always + kept + work)


def check_memory(resolved: ResolvedModel, sampler: str, settings: RunSettings) -> None:
    """Refuse a fit that does not fit into memory, and say what would; announce a large one."""
    needed = memory_of_run(resolved, sampler, settings.draws, settings.chains, settings.threads)
    instead = FEWER_DRAWS
    if isinstance(resolved.data, Trajectories):
        instead += ", or say with rv.Dirichlet(support=...) which transitions are possible"
    elif isinstance(resolved, ResolvedChoiceModel) and isinstance(resolved.model.groups, Pooled):
        instead += (
            ", or put the decisions into a folder of Parquet files, which rv.scan_parquet reads "
            "chunk by chunk"
        )
    refuse_too_large(needed, instead)
    announce_memory(needed, settings.progress)


def _memory_factor(name: str) -> float:
    """Bytes a sampler takes for each byte of the rows.

    An unknown name, which is refused a moment later, counts as the most frugal one.
    """
    for entry in REGISTRY.entries:
        if name in ("auto", entry.name):
            return entry.memory_factor
    return min(entry.memory_factor for entry in REGISTRY.entries)


def refuse_too_large(needed: float, instead: str) -> None:
    """Refuse work that would not fit into memory, before it begins; `instead` says what would.

    Where the system does not say how much is free, nothing is refused.
    """
    free = free_memory()
    if free is not None and needed > free:
        raise ValueError(
            f"this would need about {needed / 1e9:.1f} GB of memory, and {max(free, 0) / 1e9:.1f} "
            f"GB are free; {instead}"
        )


def free_memory() -> float | None:
    """Bytes this process may still take; None where the system does not say.

    The smallest of what the machine has available, what the control group may still take, and what
    the process's own limit of address space leaves.
    """
    # each limit holds by itself, so that the smallest counts
    limits = []
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            limits.append(1024.0 * float(line.split()[1]))
    # the limit of a container or a service, which the machine's own number does not show
    maximum, current = _lines("/sys/fs/cgroup/memory.max"), _lines("/sys/fs/cgroup/memory.current")
    if maximum and current and maximum[0] != "max":
        limits.append(float(maximum[0]) - float(current[0]))
    # set by ulimit -v, or by those who share a machine
    for line in _lines("/proc/self/limits"):
        if line.startswith("Max address space") and line.split()[3] != "unlimited":
            pages = float(_lines("/proc/self/statm")[0].split()[0])
            limits.append(float(line.split()[3]) - pages * os.sysconf("SC_PAGE_SIZE"))
    return min(limits) if limits else None


def _lines(path: str) -> list[str]:
    """The lines of a file of the system; none where there is no such file."""
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
