"""A pass on a cluster goes on where a connection was closed while its arguments were sent.

The exception is Dask's own, raised by hand: a worker that dies does so before, while or after it is
sent something, and no real cluster can be made to lose it in between. Everything else is a real
cluster in this process.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from revealed.data.chunks import InMemoryChunks
from revealed.samplers.chunk_likelihood import log_likelihoods
from revealed.samplers.executors import EXECUTORS, DaskExecutor, ThreadExecutor
from tests.support.cases import features
from tests.support.statistical_asserts import assert_same

distributed = pytest.importorskip("distributed")

VALUES = np.random.default_rng(0).standard_normal((5, 3))


class LosingClient:
    """A client whose connections are closed the first so many times that it sends arguments."""

    def __init__(self, client: Any, losses: int) -> None:
        self.client, self.losses, self.waited = client, losses, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    def scatter(self, *arguments: Any, **options: Any) -> Any:
        if self.losses:
            self.losses -= 1
            raise distributed.comm.CommClosedError("in <TCP>: Stream is closed")
        return self.client.scatter(*arguments, **options)

    def wait_for_workers(self, *arguments: Any, **options: Any) -> None:
        self.waited += 1
        self.client.wait_for_workers(*arguments, **options)


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """One worker that is a thread: nothing here depends on processes."""
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
        ) as local,
        distributed.Client(local) as made,
    ):
        yield made


@pytest.fixture
def chunks(monkeypatch: pytest.MonkeyPatch) -> InMemoryChunks:
    monkeypatch.setattr("revealed.data.chunks.CHUNK_SIZE", 20)
    return InMemoryChunks(features(100), np.ones(100))


@pytest.mark.parametrize("first", [0, 3])
def test_pass_whose_connection_is_closed_twice_gives_the_results_of_threads(
    client: Any, chunks: InMemoryChunks, first: int
) -> None:
    losing = LosingClient(client, losses=2)
    found = list(DaskExecutor(chunks, losing).map(log_likelihoods, VALUES, first=first))
    whole = list(ThreadExecutor(chunks, 1).map(log_likelihoods, VALUES, first=first))
    assert len(found) == 5 - first
    assert_same(found, whole)
    # new workers were waited for after every loss
    assert losing.waited == 2


def test_pass_whose_connection_is_closed_too_often_is_refused_in_a_sentence(
    client: Any, chunks: InMemoryChunks
) -> None:
    losing = LosingClient(client, losses=EXECUTORS.max_cluster_losses + 1)
    with pytest.raises(ValueError, match=r"lost its workers 6 times in one pass \(in <TCP>"):
        list(DaskExecutor(chunks, losing).map(log_likelihoods, VALUES))
    assert losing.waited == EXECUTORS.max_cluster_losses
