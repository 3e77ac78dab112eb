"""Dask workers for a command: of this machine, or of a scheduler that is running already."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def dask_client(workers: int | None, cluster: str | None) -> Iterator[Any]:
    """A Dask client of `workers` local processes, or of the scheduler at `cluster`.

    None where neither is given: then threads of this process do the work.
    """
    if workers is None and cluster is None:
        yield None
        return
    # Dask is an extra: only this needs it.
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        raise ValueError(
            'a cluster needs Dask, which is not installed; pip install "revealed[cluster]"'
        ) from None
    # Ten seconds are enough for a scheduler that is there.
    if cluster is not None:
        try:
            client = distributed.Client(cluster, timeout=10)
        except (OSError, ValueError, TimeoutError) as reason:
            raise ValueError(
                f"there is no Dask scheduler at {cluster}: {str(reason).splitlines()[0]}"
            ) from None
        with client:
            yield client
        return
    # Workers of our own listen on the loopback interface only.
    loopback = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with (
        distributed.LocalCluster(n_workers=workers, threads_per_worker=1, **loopback) as local,
        distributed.Client(local) as client,
    ):
        yield client
