"""Executors: who evaluates a function of every chunk of decisions, threads or a Dask cluster.

Results come back in the order of the chunks, so that their sum is the same to the last bit whoever
does the work. On a cluster chunks stay where they are, and only numbers travel.

Passes here are few and long, over chunks that may not fit into memory, and each result is used as
it comes, so that a pass can be written down and resumed. Those over groups (`partitions.py`) are
thousands and short, by several chains at once, each with arguments for every partition, and want
all results together: they have executors of their own.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from revealed._types import Floats
from revealed.data.chunks import ChunkedDecisions, InMemoryChunks
from revealed.kernels.interrupt import stopped_loops
from revealed.samplers.chunk_likelihood import PreparedChunk, prepare


@dataclass(frozen=True)
class ExecutorSettings:
    """What executors hold, and how long they wait.

    Attributes
    ----------
    cache_bytes
        Of prepared chunks that threads keep between passes; beyond, chunks are read and prepared
        again. `estimate_memory` counts on it.
    queued_per_thread
        Tasks that wait at the cluster for each of its threads. Fewer leave threads idle between
        tasks, more let results pile up at the scheduler.
    poll_seconds
        After which one looks whether the worker of a task is still there.
    max_cluster_losses
        Losses of all workers in one pass that are put up with; more are taken for a fault of the
        work itself, such as too little memory.
    worker_timeout_seconds
        How long new workers are waited for.
    """

    cache_bytes: float = 1.5e9
    queued_per_thread: int = 4
    poll_seconds: float = 1.0
    max_cluster_losses: int = 5
    worker_timeout_seconds: int = 120


EXECUTORS = ExecutorSettings()


class Executor(Protocol):
    """Whoever evaluates functions of chunks.

    Results come back in the order of the chunks, whoever is quickest.
    """

    def map(
        self, function: Callable[..., Floats], *arguments: Any, first: int = 0
    ) -> Iterator[Floats]:
        """function(chunk, *arguments) for every chunk from number `first` on, in order."""
        ...


class ThreadExecutor:
    """Threads of this process; chunks are prepared once, as long as memory to keep them lasts."""

    def __init__(self, chunks: ChunkedDecisions, threads: int | None = None) -> None:
        self.chunks, self.threads = chunks, threads or os.cpu_count() or 1
        self._cached: dict[int, PreparedChunk] = {}
        self._free_bytes = EXECUTORS.cache_bytes

    def map(
        self, function: Callable[..., Floats], *arguments: Any, first: int = 0
    ) -> Iterator[Floats]:
        """function(chunk, *arguments) for every chunk from number `first` on, in order."""
        # results are handed out in order, and only a few chunks are in memory at a time
        waiting: deque[Future[Floats]] = deque()
        with ThreadPoolExecutor(self.threads) as pool:
            try:
                for i in range(first, len(self.chunks)):
                    waiting.append(pool.submit(lambda i: function(self.cache(i), *arguments), i))
                    if len(waiting) > self.threads:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            except KeyboardInterrupt:
                with stopped_loops():
                    pool.shutdown(cancel_futures=True)
                raise
            finally:
                # whoever stops in the middle, by Ctrl-C or an error, leaves no work behind
                for future in waiting:
                    future.cancel()

    def cache(self, i: int) -> PreparedChunk:
        """The i-th chunk, prepared: the one that is kept, or read again, and kept if it fits.

        Threads never ask for the same chunk at once, so that no lock is needed.
        """
        if i in self._cached:
            return self._cached[i]
        chunk = prepare(*self.chunks.load(i))
        # first come, first kept: which chunks are kept does not matter, as each is used once a
        # pass
        size = sum(block.size for block in chunk)
        if size <= self._free_bytes:
            self._free_bytes -= size
            self._cached[i] = chunk
        return chunk


class DaskExecutor:
    """The workers of a ``dask.distributed.Client``.

    Each chunk is one task that reads and prepares it, held by the cluster between passes. A worker
    that is lost takes its chunks with it, and the scheduler has them prepared again by another.
    Sums are made here, in the order of the chunks.
    """

    def __init__(self, chunks: ChunkedDecisions, client: Any) -> None:
        self.client, count = client, len(chunks)
        # decisions in memory go out with their task, so that they can be sent again
        self._chunks = (
            submit_parts(client, prepare, (chunks.load(i) for i in range(count)))
            if isinstance(chunks, InMemoryChunks)
            else submit_parts(client, _load_and_prepare, ((chunks, i) for i in range(count)))
        )

    def map(
        self, function: Callable[..., Floats], *arguments: Any, first: int = 0
    ) -> Iterator[Floats]:
        """function(chunk, *arguments) for every chunk from number `first` on, in order.

        Arguments are held by the workers during a pass. Where all who held them are lost, they are
        sent again, and the pass goes on.
        """
        # an optional dependency, imported by those who have a cluster
        from distributed import CancelledError, KilledWorker
        from distributed.comm import CommClosedError

        # a loss costs only the chunks whose results have not come back
        done, losses = first, 0
        while done < len(self._chunks):
            try:
                for result in self._map_once(function, arguments, done):
                    done += 1
                    yield result
            # a worker that dies while arguments are sent to it closes the connection
            except (CancelledError, KilledWorker, CommClosedError) as loss:
                losses += 1
                if losses > EXECUTORS.max_cluster_losses:
                    raise ValueError(
                        f"the cluster lost its workers {losses} times in one pass ({loss}); see "
                        "their logs"
                    ) from None
                self.client.wait_for_workers(1, timeout=EXECUTORS.worker_timeout_seconds)

    def _map_once(
        self, function: Callable[..., Floats], arguments: tuple[Any, ...], first: int
    ) -> Iterator[Floats]:
        """One attempt at a pass; ends with an exception where the arguments are lost."""
        from distributed import wait

        wait(self._chunks[first:])
        # where each chunk is now; workers come and go between passes
        holders = self.client.who_has(self._chunks[first:])
        threads = max(1, sum(self.client.nthreads().values()))
        # one copy of the value for every worker, instead of one with every task
        sent = [self.client.scatter(argument, broadcast=True) for argument in arguments]

        def submit(chunk: Any, workers: list[str] | None) -> Any:
            return self.client.submit(function, chunk, *sent, workers=workers, pure=False)

        def result(chunk: Any, workers: list[str] | None, task: Any) -> Floats:
            # a task runs beside its chunk; where that worker is lost, anywhere, and the chunk is
            # prepared again on the way
            while True:
                try:
                    return np.asarray(task.result(timeout=EXECUTORS.poll_seconds))
                except TimeoutError:
                    if workers and not set(workers) & set(self.client.nthreads()):
                        workers, task = None, submit(chunk, None)

        waiting: deque[Any] = deque()
        # a bounded number of tasks at the scheduler, whatever the number of chunks
        for chunk in self._chunks[first:]:
            workers = list(holders.get(chunk.key, ())) or None
            waiting.append((chunk, workers, submit(chunk, workers)))
            if len(waiting) >= EXECUTORS.queued_per_thread * threads:
                yield result(*waiting.popleft())
        while waiting:
            yield result(*waiting.popleft())


def _load_and_prepare(chunks: ChunkedDecisions, i: int) -> PreparedChunk:
    """The task that makes a chunk of a folder, on whatever worker does it."""
    return prepare(*chunks.load(i))


def make_executor(chunks: ChunkedDecisions, client: Any, threads: int | None) -> Executor:
    """Threads of this process, or the workers of a cluster where there is a client."""
    if client is None:
        return ThreadExecutor(chunks, threads)
    check_client(client)
    return DaskExecutor(chunks, client)


def submit_parts(
    client: Any, function: Callable[..., Any], parts: Iterable[tuple[Any, ...]]
) -> list[Any]:
    """A future of function(*part) for every part of the data, to be held by the cluster.

    The scheduler remembers how each was made, and makes it again where a worker is lost with it.
    """
    import dask

    # the data have to be sent, however large: no warning about it
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
        # pure=False: parts that look alike are different tasks
        return [client.submit(function, *part, pure=False) for part in parts]


def check_client(client: Any) -> None:
    """Refuse what is not a Dask client, and one whose cluster has no workers.

    A fit on a cluster without workers would wait for ever.
    """
    if not (hasattr(client, "submit") and hasattr(client, "nthreads")):
        raise ValueError(
            "executor must be a number of threads or a dask.distributed.Client, not "
            f"{type(client).__name__}"
        )
    if not client.nthreads():
        raise ValueError(
            "the cluster has no workers yet; start some, or wait with client.wait_for_workers(1)"
        )
