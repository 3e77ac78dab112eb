"""A fit on any cluster gives the same draws to the last bit, also when a worker is lost."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import revealed as rv
from revealed.data import chunks
from revealed.samplers.executors import DaskExecutor
from tests.support.cases import features, write_two_parquet_files
from tests.support.statistical_asserts import assert_same

distributed = pytest.importorskip("distributed")

MODEL = rv.ChoiceModel(prior=rv.Normal(5.0))
LAPLACE = pytest.mark.proves(model="choices, normal prior", sampler="laplace")


@contextmanager
def cluster(workers: int) -> Iterator[Any]:
    """So many processes on this machine, reached over loopback."""
    where = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with (
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, **where
        ) as local,
        distributed.Client(local) as client,
    ):
        assert len(client.nthreads()) == workers
        yield client


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """4,000 decisions in two files."""
    return write_two_parquet_files(tmp_path, features(4000), first=2500, group=1000)


@LAPLACE
def test_cluster_gives_the_draws_of_threads(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(chunks, "CHUNK_SIZE", 500)
    decisions = features(4000)
    whole = rv.fit(decisions, MODEL, sampler="laplace", draws=200)
    from_files = rv.fit(rv.scan_parquet(folder), MODEL, draws=200)
    with cluster(2) as client:
        assert_same(
            rv.fit(decisions, MODEL, draws=200, executor=client).draws["value"],
            whole.draws["value"],
        )
        assert_same(
            rv.fit(rv.scan_parquet(folder), MODEL, draws=200, executor=client).draws["value"],
            from_files.draws["value"],
        )


@pytest.mark.slow
@LAPLACE
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_clusters_of_several_sizes_give_the_same_draws(
    workers: int, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    monkeypatch.setattr(chunks, "CHUNK_SIZE", 500)
    decisions = features(4000)
    with cluster(workers) as client:
        found = rv.fit(decisions, MODEL, draws=200, executor=client)
        files = rv.fit(rv.scan_parquet(folder), MODEL, draws=200, executor=client)
    whole = rv.fit(decisions, MODEL, sampler="laplace", draws=200)
    from_files = rv.fit(rv.scan_parquet(folder), MODEL, draws=200)
    assert_same(found.draws["value"], whole.draws["value"])
    assert_same(files.draws["value"], from_files.draws["value"])


@LAPLACE
@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_killed_worker_changes_no_draw(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that holds chunks is killed in the middle of the second pass over them."""
    monkeypatch.setattr(chunks, "CHUNK_SIZE", 200)
    decisions = features(4000)
    whole = rv.fit(decisions, MODEL, sampler="laplace", draws=200)
    passes, lost = [0], list[str]()
    undisturbed = DaskExecutor.map

    def kill_during_map(executor: Any, *words: Any, **more: Any) -> Iterator[Any]:
        passes[0] += 1
        for done, result in enumerate(undisturbed(executor, *words, **more)):
            if passes[0] == 2 and done == 3:
                holders = executor.client.who_has(executor._chunks)
                lost.append(next(address for held in holders.values() for address in held))
                os.kill(pids[lost[0]], signal.SIGKILL)
            yield result

    monkeypatch.setattr(DaskExecutor, "map", kill_during_map)
    with cluster(workers) as client:
        pids = client.run(os.getpid)
        found = rv.fit(decisions, MODEL, draws=200, executor=client)
    assert lost
    assert_same(found.draws["value"], whole.draws["value"])


def test_object_that_is_no_cluster_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"executor must be .* or a dask.distributed.Client, not float"
    ):
        rv.fit(features(100), MODEL, executor=3.0)
    with cluster(0) as client, pytest.raises(ValueError, match="the cluster has no workers yet"):
        rv.fit(features(100), MODEL, executor=client)
