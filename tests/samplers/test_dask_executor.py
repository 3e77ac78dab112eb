"""Controllers on a Dask cluster: the same draws to the last bit, however many work, and when one of them is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed.data.decisions import Decisions
from revealed.samplers import partitions as shares
from revealed.samplers import run as running
from tests.support.cases import choose

distributed = pytest.importorskip("distributed")

PLAYERS, TIMES = 30, 6


def simulated() -> Decisions:
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((PLAYERS * TIMES * 3, 2))
    offers = Decisions(
        rows, np.arange(PLAYERS * TIMES + 1) * 3, groups=np.tile(np.arange(PLAYERS), TIMES)
    )
    return offers.with_choices(choose(rng, offers, np.array([1.0, -0.5]))[0])


def quick(fit: Any = rv.fit_population, **settings: Any) -> Any:
    """A short fit whose convergence does not matter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rv.NotConvergedWarning)
        return fit(
            simulated(), **{"draws": 4, "warmup": 8, "chains": 2, "progress": False, **settings}
        )


def client_of(workers: int, threads: int = 1) -> Any:
    """Processes of this machine, which only talk to one another."""
    cluster = distributed.LocalCluster(
        n_workers=workers,
        threads_per_worker=threads,
        processes=True,
        dashboard_address="127.0.0.1:0",
        host="127.0.0.1",
    )
    return distributed.Client(cluster), cluster


@pytest.fixture(scope="module")
def two() -> Iterator[Any]:
    client, cluster = client_of(2)
    yield client
    client.close()
    cluster.close()


@pytest.fixture
def small_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "DECISIONS_PER_PARTITION", 40)


def assert_same(one: rv.Population, other: rv.Population) -> None:
    for name in ("values", "mean", "covariance"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.usefixtures("small_shares")
def test_draws_do_not_depend_on_who_works(two: Any) -> None:
    one = quick(threads=1)
    assert_same(one, quick(threads=3))
    assert_same(one, quick(cluster=two))


@pytest.mark.slow
@pytest.mark.usefixtures("small_shares")
@pytest.mark.parametrize(("workers", "threads"), [(1, 1), (1, 3), (4, 1)])
def test_draws_do_not_depend_on_how_many_work(workers: int, threads: int) -> None:
    client, cluster = client_of(workers, threads)
    with cluster, client:
        assert_same(quick(threads=1), quick(cluster=client))


@pytest.mark.usefixtures("small_shares")
@pytest.mark.parametrize("turn", [3, 9])
def test_a_lost_worker_is_survived(two: Any, turn: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed in the middle of the warm-up, and of the draws: the draws are those of a run in which nobody died."""
    whole = quick(threads=1)
    iterate, killed = running.Run.iterate, []

    def deadly(run: running.Run) -> Any:
        for at, done in enumerate(iterate(run)):
            if at == turn:
                killed.append(next(iter(two.run(os.getpid).values())))
                os.kill(killed[0], signal.SIGKILL)
            yield done

    monkeypatch.setattr(running, "CHUNK_SECONDS", 1e-5)
    monkeypatch.setattr(running.Run, "iterate", deadly)
    assert_same(whole, quick(cluster=two))
    assert killed


def test_each_controller_alone_has_the_same_draws_anywhere(two: Any) -> None:
    one = quick(rv.fit_separately, threads=1)
    for other in (quick(rv.fit_separately, threads=3), quick(rv.fit_separately, cluster=two)):
        assert list(one) == list(other)
        for label in one:
            np.testing.assert_array_equal(one[label].draws, other[label].draws)


@pytest.mark.parametrize("fit", [rv.fit, rv.fit_population, rv.fit_separately])
def test_what_is_no_cluster_is_refused(fit: Any) -> None:
    with pytest.raises(ValueError, match=r"cluster must be a dask.distributed.Client, not str"):
        quick(fit, cluster="tcp://127.0.0.1:8786")
    client, cluster = client_of(0)
    with cluster, client, pytest.raises(ValueError, match="the cluster has no workers yet"):
        quick(fit, cluster=client)


DIGEST = """
import hashlib, sys, warnings
import numpy as np
import revealed as rv
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
d = rv.Decisions(rng.standard_normal((240, 2)), np.arange(81) * 3, rng.integers(3, size=80), groups=np.repeat(np.arange(8), 10))
found = {}
for what in sys.argv[1:]:
    how = {"draws": 10, "warmup": 30, "chains": 1, "progress": False}
    draws = rv.fit(d, **how).draws if what == "fit" else rv.fit_population(d, **how).values
    found[what] = hashlib.sha256(draws.tobytes()).hexdigest()
print(sorted(found.items()))
"""


def test_draws_do_not_depend_on_what_a_process_did_before() -> None:
    """Compiled loops have one order of summation each, whichever of them was loaded first."""
    told = [
        subprocess.run(
            [sys.executable, "-c", DIGEST, *order], capture_output=True, text=True, check=True
        ).stdout
        for order in (("fit", "population"), ("population", "fit"))
    ]
    assert told[0] == told[1]
