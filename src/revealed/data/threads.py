"""Work on parts of the data by several threads, with the same result for any number of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")


def map_in_threads(function: Callable[[A], B], parts: Sequence[A]) -> list[B]:
    """The results of a function for each part, in their order.

    By as many threads as there are cores; an interrupt waits only for parts that have begun.
    """
    threads = min(len(parts), os.cpu_count() or 1)
    if threads <= 1:
        return [function(part) for part in parts]
    pool = ThreadPoolExecutor(threads)
    try:
        return list(pool.map(function, parts))
    finally:
        # an interrupt need not wait for parts that have not begun
        pool.shutdown(cancel_futures=True)
