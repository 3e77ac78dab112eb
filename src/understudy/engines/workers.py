"""The same passes on a Dask cluster: pieces stay where they are, and only numbers travel."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from understudy._arrays import Floats
from understudy.engines.passes import Piece, prepare
from understudy.shards import Held, Shards

AHEAD = 4  # tasks that wait at the cluster for each of its threads
TURN = 1.0  # seconds after which one looks whether the worker of a task is still there
PATIENCE, WAIT = 5, 120  # losses of all workers in one pass that are put up with, and the seconds others are waited for


class Workers:
    """The work done by the workers of a ``dask.distributed.Client``.

    Each piece is one task that reads and prepares it, held by the cluster between passes; a worker that is lost takes its pieces with it, and
    the scheduler has them prepared again by another. Sums are made here, in the order of the pieces.
    """

    def __init__(self, shards: Shards, client: Any) -> None:
        self.client = client
        with warnings.catch_warnings():  # decisions held here go out with their task, so that they can be sent again
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
            if isinstance(shards, Held):
                self._pieces = [client.submit(prepare, *shards.load(i), pure=False) for i in range(len(shards))]
            else:
                self._pieces = [client.submit(_prepared, shards, i, pure=False) for i in range(len(shards))]

    def each(self, function: Callable[..., Floats], *given: Any, first: int = 0) -> Iterator[Floats]:
        """function(piece, *given) for every piece from `first` on, in order.

        What is given is held by the workers during a pass. Where all who held it are lost, it is sent again, and the pass goes on.
        """
        from distributed import CancelledError, KilledWorker

        done, losses = first, 0
        while done < len(self._pieces):
            try:
                for found in self._each(function, given, done):
                    done += 1
                    yield found
            except (CancelledError, KilledWorker) as loss:
                losses += 1
                if losses > PATIENCE:
                    raise ValueError(
                        f"the cluster lost its workers {losses} times in one pass ({loss}); see their logs"
                    ) from None
                self.client.wait_for_workers(1, timeout=WAIT)

    def _each(self, function: Callable[..., Floats], given: tuple[Any, ...], first: int) -> Iterator[Floats]:
        from distributed import wait

        wait(self._pieces[first:])
        homes = self.client.who_has(self._pieces[first:])
        most = AHEAD * max(1, sum(self.client.nthreads().values()))
        sent = [self.client.scatter(thing, broadcast=True) for thing in given]

        def submit(piece: Any, home: list[str] | None) -> Any:
            return self.client.submit(function, piece, *sent, workers=home, pure=False)

        def result(piece: Any, home: list[str] | None, task: Any) -> Floats:
            """Of a task at home with its piece; where that worker is lost, of one anywhere, which prepares the piece again."""
            while True:
                try:
                    return np.asarray(task.result(timeout=TURN))
                except TimeoutError:
                    if home and not set(home) & set(self.client.nthreads()):
                        home, task = None, submit(piece, None)

        waiting: deque[Any] = deque()
        for piece in self._pieces[first:]:
            home = list(homes.get(piece.key, ())) or None
            waiting.append((piece, home, submit(piece, home)))
            if len(waiting) >= most:
                yield result(*waiting.popleft())
        while waiting:
            yield result(*waiting.popleft())


def _prepared(shards: Shards, i: int) -> Piece:
    return prepare(*shards.load(i))


def refuse_no_client(client: Any) -> None:
    """Whatever is given as a cluster must be able to take work."""
    if not (hasattr(client, "submit") and hasattr(client, "nthreads")):
        raise ValueError(f"cluster must be a dask.distributed.Client, not {type(client).__name__}")
    if not client.nthreads():
        raise ValueError("the cluster has no workers yet; start some, or wait with client.wait_for_workers(1)")
