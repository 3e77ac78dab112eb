"""One thread that writes. All that waits goes into one transaction, and only then is anybody answered.

A commit costs the disk one synchronisation, however many moves are in it, so many players cost little more than one.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DataError, IntegrityError, SQLAlchemyError

from understudy.studio.faults import Conflict, Unavailable

Job = Callable[[Connection], Any]
Waiting = tuple[Job, "Future[Any]"]
WAITING = 10_000
TOGETHER = 500


class Writer:
    """Takes jobs, each a function of a connection, and gives futures that are fulfilled when the job is on disk."""

    def __init__(self, engine: Engine, check: Callable[[], None]) -> None:
        self._engine, self._check = engine, check
        self._queue: queue.Queue[Waiting | None] = queue.Queue(WAITING)
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="studio-writer", daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> Future[Any]:
        """Have a job done. The future ends in `Conflict` or `Unavailable` where it could not be."""
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
        """Write what is waiting, then stop."""
        self._closed = True
        self._queue.put(None)
        self._thread.join(timeout=30)

    def _run(self) -> None:
        while (batch := self._next()) is not None:
            self._write(batch)

    def _next(self) -> list[Waiting] | None:
        """All that is waiting, at least one; None at the end."""
        first = self._queue.get()
        batch: list[Waiting] = []
        while first is not None:
            batch.append(first)
            if len(batch) == TOGETHER:
                return batch
            try:
                first = self._queue.get_nowait()
            except queue.Empty:
                return batch
        if batch:
            self._queue.put(None)  # the end was seen; write these first
            return batch
        return None

    def _write(self, batch: list[Waiting]) -> None:
        try:
            self._check()
            with self._engine.begin() as connection:
                results = [job(connection) for job, _ in batch]
        except (IntegrityError, DataError) as clash:
            if len(batch) == 1:
                batch[0][1].set_exception(Conflict(str(clash.orig)))
            else:
                for one in batch:  # somebody's record clashes; the others' need not suffer
                    self._write([one])
        except (SQLAlchemyError, OSError) as reason:
            for _, promise in batch:
                promise.set_exception(Unavailable(str(getattr(reason, "orig", None) or reason)))
        except Exception as reason:
            for _, promise in batch:
                promise.set_exception(reason)
        else:
            for (_, promise), result in zip(batch, results, strict=True):
                promise.set_result(result)
