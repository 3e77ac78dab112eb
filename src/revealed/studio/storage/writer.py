"""One thread that writes: all waiting jobs go into one transaction, and only then are answered.

A commit costs the disk one synchronisation, however many moves are in it, so many players cost
little more than one.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DataError, IntegrityError, SQLAlchemyError

from revealed.studio.server.errors import Conflict, Unavailable

Job = Callable[[Connection], Any]
PendingJob = tuple[Job, "Future[Any]"]


@dataclass(frozen=True)
class WriterLimits:
    """Bounds of the queue and of a transaction, in jobs.

    `max_waiting`: with 200 players about ten jobs wait; a disk that has stalled is noticed by
    refusing further moves instead of filling the memory. `max_batch`: a larger transaction would
    keep its first job waiting, a smaller one would synchronise the disk more often.
    """

    max_waiting: int
    max_batch: int


WRITER_LIMITS = WriterLimits(max_waiting=10_000, max_batch=500)


class Writer:
    """Runs jobs, each a function of a connection, and answers when they are on disk.

    `check` is called before each transaction and raises OSError where the database must not be
    written to.
    """

    def __init__(self, engine: Engine, check: Callable[[], None]) -> None:
        self._engine, self._check = engine, check
        # None in the queue is the end.
        self._queue: queue.Queue[PendingJob | None] = queue.Queue(WRITER_LIMITS.max_waiting)
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="studio-writer", daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> Future[Any]:
        """A future that ends with what the job returns, once that is on disk.

        It ends in `Conflict` where the database holds another record under the same key, and in
        `Unavailable` where it cannot be written.
        """
        promise: Future[Any] = Future()
        if self._closed:
            promise.set_exception(Unavailable("the studio is closing"))
            return promise
        try:
            self._queue.put_nowait((job, promise))
        except queue.Full:
            promise.set_exception(Unavailable("too many moves are waiting to be saved"))
        return promise

    def close(self) -> None:
        """Write what is waiting, then stop.

        Jobs submitted from now on end in `Unavailable`.
        """
        self._closed = True
        self._queue.put(None)
        # A disk that hangs must not keep the process alive for ever.
        self._thread.join(timeout=30)

    def _run(self) -> None:
        """The loop of the thread."""
        while (batch := self._next_batch()) is not None:
            self._write(batch)

    def _next_batch(self) -> list[PendingJob] | None:
        """All jobs that are waiting, at least one and at most a batch; None at the end."""
        # Waits for the first job, and takes whatever else is there by then.
        pending = self._queue.get()
        batch: list[PendingJob] = []
        while pending is not None:
            batch.append(pending)
            if len(batch) == WRITER_LIMITS.max_batch:
                return batch
            try:
                pending = self._queue.get_nowait()
            except queue.Empty:
                return batch
        if batch:
            # The end was seen behind these jobs: write them first, and meet the end again.
            self._queue.put(None)
            return batch
        return None

    def _write(self, batch: list[PendingJob]) -> None:
        """Run jobs in one transaction and fulfil their futures.

        Where one of them conflicts with what is stored, the transaction is rolled back and each
        job is tried alone, so that the others do not suffer.
        """
        try:
            # Before the transaction: a lost file is noticed even when its writes would succeed.
            self._check()
            with self._engine.begin() as connection:
                results = [job(connection) for job, _ in batch]
        except (IntegrityError, DataError) as error:
            if len(batch) == 1:
                batch[0][1].set_exception(Conflict(str(error.orig)))
            else:
                for pending in batch:
                    self._write([pending])
        except (SQLAlchemyError, OSError) as reason:
            for _, promise in batch:
                promise.set_exception(Unavailable(str(getattr(reason, "orig", None) or reason)))
        except Exception as reason:
            # A mistake in a job: whoever waits for it must hear of it.
            for _, promise in batch:
                promise.set_exception(reason)
        else:
            for (_, promise), result in zip(batch, results, strict=True):
                promise.set_result(result)
