"""An independent fit for every group, by threads or on a Dask cluster.

Nothing is shared between groups. The seed of the i-th group (in the order of first appearance) is
made of (seed, i), so that its draws are the same whoever does the work, and whoever else is there.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from revealed.kernels.interrupt import stopped_loops
from revealed.samplers.executors import EXECUTORS


class FitTask(NamedTuple):
    """The fit of one group: its position and label, its data, and how it is fitted."""

    position: int
    label: Hashable
    data: Any
    settings: Mapping[str, Any]


def seed_for(seed: int, position: int) -> int:
    """The seed of the group at this position.

    Made of both numbers, so that groups are independent of one another.
    """
    return int(np.random.SeedSequence([seed, position]).generate_state(1, np.uint64)[0])


def fit_all(
    tasks: Iterator[FitTask],
    fit_one: Callable[[FitTask], tuple[int, Hashable, Any]],
    threads: int | None,
    client: Any,
) -> Iterator[tuple[int, Hashable, Any]]:
    """The results of all tasks in order, with so many under way as keep all workers busy.

    On Ctrl-C also of those that were finished before their turn.
    """
    workers = (
        (threads or os.cpu_count() or 1) if client is None else sum(client.nthreads().values())
    )
    # both hand out futures; Dask must not take two tasks for the same because they look alike
    pool: Any = ThreadPoolExecutor(workers) if client is None else client
    extra = {} if client is None else {"pure": False}
    waiting: deque[Any] = deque()
    interrupted = False
    try:
        # data are cut out only when their task is submitted, which bounds the memory
        for task in tasks:
            waiting.append(pool.submit(fit_one, task, **extra))
            if len(waiting) >= EXECUTORS.queued_per_thread * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except KeyboardInterrupt:
        interrupted = True
        for future in waiting:
            if not future.cancelled() and future.done():
                yield future.result()
        raise
    finally:
        for future in waiting:
            future.cancel()
        if client is None:
            # after Ctrl-C nobody waits for the end of a fit
            with stopped_loops() if interrupted else nullcontext():
                pool.shutdown()
