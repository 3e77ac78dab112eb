"""Work on parts of the data by several threads, with the same result for any number of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")


def map_in_threads(
    function: Callable[[A], B], parts: Sequence[A], progress: Callable[[float], None] | None = None
) -> list[B]:
    """The results of a function for each part, in their order.

    By as many threads as there are cores; an interrupt waits only for parts that have begun.
    progress: is told after each part how many are done.
    """
    threads = min(len(parts), os.cpu_count() or 1)
    if threads <= 1:
        return _collect(map(function, parts), progress)
    pool = ThreadPoolExecutor(threads)
    try:
        return _collect(pool.map(function, parts), progress)
    finally:
        # an interrupt need not wait for parts that have not begun
        pool.shutdown(cancel_futures=True)


def _collect(results: Iterator[B], progress: Callable[[float], None] | None) -> list[B]:
    """All results as they come, and how many there are, to whom it is told."""
    found = []
    for result in results:
        found.append(result)
        if progress is not None:
            progress(len(found))
    return found
