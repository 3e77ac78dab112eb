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


HIERARCHICAL = rv.ChoiceModel(groups=rv.Hierarchical())
SEPARATE = rv.ChoiceModel(groups=rv.Separate())


def quick(model: rv.ChoiceModel = HIERARCHICAL, **settings: Any) -> Any:
    """A short fit whose convergence does not matter, by a sampler that can use a cluster."""
    if isinstance(model.groups, rv.Hierarchical):
        settings = {"sampler": "hierarchical", **settings}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rv.NotConvergedWarning)
        d = simulated()
        if not isinstance(model.over_time, rv.Constant):
            # groups decide at times of their own
            times = np.arange(float(len(d)))
            d = Decisions(d.rows, d.start, d.chosen, groups=d.groups, times=times)
        return rv.fit(
            d,
            model,
            **{"draws": 4, "warmup": 8, "chains": 2, "progress": False, **settings},
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


def assert_same(one: rv.Posterior, other: rv.Posterior) -> None:
    assert list(one.draws) == list(other.draws)
    for name, draws in one.draws.items():
        np.testing.assert_array_equal(draws, other.draws[name])


@pytest.mark.usefixtures("small_shares")
def test_draws_do_not_depend_on_who_works(two: Any) -> None:
    one = quick(executor=1)
    assert_same(one, quick(executor=3))
    assert_same(one, quick(executor=two))


@pytest.mark.slow
@pytest.mark.usefixtures("small_shares")
@pytest.mark.parametrize(("workers", "threads"), [(1, 1), (1, 3), (4, 1)])
def test_draws_do_not_depend_on_how_many_work(workers: int, threads: int) -> None:
    client, cluster = client_of(workers, threads)
    with cluster, client:
        assert_same(quick(executor=1), quick(executor=client))


@pytest.mark.usefixtures("small_shares")
@pytest.mark.parametrize("turn", [pytest.param(3, marks=pytest.mark.slow), 9])
def test_a_lost_worker_is_survived(two: Any, turn: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed in the middle of the warm-up, and of the draws: the draws are those of a run in which nobody died."""
    whole = quick(executor=1)
    iterate, killed = running.Run.iterate, []

    def deadly(run: running.Run) -> Any:
        for at, done in enumerate(iterate(run)):
            if at == turn:
                killed.append(next(iter(two.run(os.getpid).values())))
                os.kill(killed[0], signal.SIGKILL)
            yield done

    monkeypatch.setattr(running, "CHUNK_SECONDS", 1e-5)
    monkeypatch.setattr(running.Run, "iterate", deadly)
    assert_same(whole, quick(executor=two))
    assert killed


@pytest.mark.parametrize("over_time", [rv.Constant(), rv.RandomWalk()])
def test_each_group_alone_has_the_same_draws_anywhere(two: Any, over_time: Any) -> None:
    model = SEPARATE.replace(over_time=over_time)
    one = quick(model, executor=1)
    for other in (quick(model, executor=3), quick(model, executor=two)):
        assert list(one) == list(other)
        assert_same(one, other)


@pytest.mark.parametrize("model", [rv.ChoiceModel(), HIERARCHICAL, SEPARATE])
def test_what_is_no_cluster_is_refused(model: rv.ChoiceModel) -> None:
    with pytest.raises(
        ValueError, match=r"executor must be .* or a dask.distributed.Client, not str"
    ):
        quick(model, executor="tcp://127.0.0.1:8786")
    client, cluster = client_of(0)
    with cluster, client, pytest.raises(ValueError, match="the cluster has no workers yet"):
        quick(model, executor=client)


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
    groups = rv.Pooled() if what == "pooled" else rv.Hierarchical()
    draws = rv.fit(d, rv.ChoiceModel(groups=groups), **how).draws["value"]
    found[what] = hashlib.sha256(draws.tobytes()).hexdigest()
print(sorted(found.items()))
"""


@pytest.mark.slow  # tests/correctness/test_process_history.py has these models among others
def test_draws_do_not_depend_on_what_a_process_did_before() -> None:
    """Compiled loops have one order of summation each, whichever of them was loaded first."""
    told = [
        subprocess.run(
            [sys.executable, "-c", DIGEST, *order], capture_output=True, text=True, check=True
        ).stdout
        for order in (("pooled", "hierarchical"), ("hierarchical", "pooled"))
    ]
    assert told[0] == told[1]
