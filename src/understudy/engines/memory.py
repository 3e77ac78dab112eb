"""How much memory a fit will take, told before it begins; one that cannot have it is refused.

    peak = now held + a * rows + b * draws

rows are the bytes of the decisions' rows, draws those of the kept draws. The factors are what engines were seen to take at most (`tests/law/test_memory.py`
measures them again): rows are copied when equal ones are counted, turned into rivals' leads and laid out by columns; draws are kept in pieces,
joined, handed to the posterior and ranked by the diagnostics.
"""

from __future__ import annotations

import os
from pathlib import Path

from understudy.decisions import Decisions
from understudy.engines.passes import HELD
from understudy.shards import Folder

ROWS = {"blended": 12.0, "laplace": 6.0, "ibis": 12.0, "conditioned": 12.0}  # bytes for each byte of the rows
AUGMENTED = 1.5  # the same for the paper's samplers
UTILITIES = 6.0  # doubles for each row in each chain
DRAWS = 8.0  # bytes for each byte of the draws
STATS = 3  # numbers kept with each draw
PIECE = 12.0  # bytes for each byte of a row group, while it is read and prepared
FEWER = "keep fewer draws or chains (thin lets them be further apart)"
ALWAYS = 100e6  # compiled code, libraries that are loaded on the way


def memory_needed(
    decisions: Decisions | Folder, engine: str = "auto", draws: int = 1000, chains: int = 4, threads: int | None = None
) -> int:
    """The bytes that ``us.fit`` will need at most, beyond what is held already.

    >>> us.memory_needed(us.Decisions([[0.8, 0.2], [0.3, 0.7]], start=[0, 2], chosen=[1])) < 200_000_000
    True
    """
    kept = DRAWS * 8 * chains * draws * (len(decisions.names) + STATS)
    if isinstance(decisions, Folder):
        return round(ALWAYS + kept + HELD + PIECE * decisions.largest * (threads or os.cpu_count() or 1))
    rows = decisions.rows
    size = rows.data.nbytes * 2 if hasattr(rows, "indptr") else rows.nbytes
    name = "blended" if engine == "auto" else engine
    work = ROWS.get(name, AUGMENTED) * size + UTILITIES * 8 * rows.shape[0] * min(chains, threads or chains)
    return int(ALWAYS + kept + work)


def refuse_too_large(needed: float, instead: str) -> None:
    """Say so before the work begins, if it would not fit into memory; `instead`: what would."""
    free = free_memory()
    if free is not None and needed > free:
        raise ValueError(
            f"this would need about {needed / 1e9:.1f} GB of memory, and {max(free, 0) / 1e9:.1f} GB are free; {instead}"
        )


def free_memory() -> float | None:
    """Bytes this process may still take: of the machine, its group's and its own limit; None where nobody tells."""
    limits = []
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            limits.append(1024.0 * float(line.split()[1]))
    most, now = _lines("/sys/fs/cgroup/memory.max"), _lines("/sys/fs/cgroup/memory.current")
    if most and now and most[0] != "max":
        limits.append(float(most[0]) - float(now[0]))
    for line in _lines("/proc/self/limits"):
        if line.startswith("Max address space") and line.split()[3] != "unlimited":
            pages = float(_lines("/proc/self/statm")[0].split()[0])
            limits.append(float(line.split()[3]) - pages * os.sysconf("SC_PAGE_SIZE"))
    return min(limits) if limits else None


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
