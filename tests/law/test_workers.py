"""The same fit on a cluster of any size gives the same draws to the last bit, also when a worker is lost on the way."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import understudy as us
from evidence import assert_same
from problems import features, two_files
from understudy import shards

distributed = pytest.importorskip("distributed")

PRIOR = us.Gaussian(25.0)
LAPLACE = pytest.mark.proves(model="choices, Gaussian prior", engine="laplace")


@contextmanager
def cluster(workers: int) -> Iterator[Any]:
    """So many processes on this machine, reached over loopback."""
    where = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with (
        distributed.LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, **where) as local,
        distributed.Client(local) as client,
    ):
        assert len(client.nthreads()) == workers
        yield client


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """4,000 decisions in two files."""
    return two_files(tmp_path, features(4000), first=2500, group=1000)


@LAPLACE
def test_a_cluster_gives_the_draws_of_threads(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(shards, "SIZE", 500)
    decisions = features(4000)
    whole = us.fit(decisions, PRIOR, engine="laplace", draws=200)
    from_files = us.fit(us.from_folder(folder), PRIOR, draws=200)
    with cluster(2) as client:
        assert_same(us.fit(decisions, PRIOR, draws=200, cluster=client).draws, whole.draws)
        assert_same(us.fit(us.from_folder(folder), PRIOR, draws=200, cluster=client).draws, from_files.draws)


@pytest.mark.slow
@LAPLACE
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_clusters_of_several_sizes(workers: int, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(shards, "SIZE", 500)
    decisions = features(4000)
    with cluster(workers) as client:
        found = us.fit(decisions, PRIOR, draws=200, cluster=client)
        files = us.fit(us.from_folder(folder), PRIOR, draws=200, cluster=client)
    assert_same(found.draws, us.fit(decisions, PRIOR, engine="laplace", draws=200).draws)
    assert_same(files.draws, us.fit(us.from_folder(folder), PRIOR, draws=200).draws)


@LAPLACE
@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_worker_that_is_killed_costs_time_and_nothing_else(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "SIZE", 100)
    decisions = features(4000)
    whole = us.fit(decisions, PRIOR, engine="laplace", draws=4000)
    lost: list[str] = []

    def kill() -> None:
        """A worker that is known to have done some of the work."""
        while not lost:
            busy = {address: int(w["metrics"]["task_counts"].get("memory", 0)) for address, w in seen().items()}
            for address, done in busy.items():
                if done > 3:
                    os.kill(pids[address], signal.SIGKILL)
                    lost.append(address)
                    break
            time.sleep(0.02)

    with cluster(workers) as client:
        pids = client.run(os.getpid)

        def seen() -> dict[str, Any]:
            return dict(client.scheduler_info(n_workers=-1)["workers"])

        killer = threading.Thread(target=kill, daemon=True)
        killer.start()
        found = us.fit(decisions, PRIOR, draws=4000, cluster=client)
        killer.join(5)
    assert lost
    assert_same(found.draws, whole.draws)


def test_what_is_no_cluster_is_refused() -> None:
    with pytest.raises(ValueError, match=r"cluster must be a dask.distributed.Client, not int"):
        us.fit(features(100), PRIOR, cluster=3)
    with cluster(0) as client, pytest.raises(ValueError, match="the cluster has no workers yet"):
        us.fit(features(100), PRIOR, cluster=client)
