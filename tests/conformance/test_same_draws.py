"""Every sampler gives the same draws to the last bit: resumed, on threads, on a Dask cluster.

`tests/correctness/test_kill_and_resume.py` kills processes; here a run is interrupted in the middle
of the warm-up and of the draws, and goes on with another number of threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from revealed.data import chunks
from revealed.samplers import laplace, partitions
from revealed.samplers import run as running
from tests.conformance.cases import Pair, case, fit, missing, pairs, tried_each_time
from tests.conformance.every import ALL_ORACLES
from tests.conformance.oracles import Oracle
from tests.support.statistical_asserts import assert_same

DRAWS, WARMUP = 10, 40
DASK = ("hierarchical", "laplace")
"""Samplers that take a client of a cluster; all others refuse it."""


def small_problem(pair: Pair) -> Oracle | None:
    """The first exact posterior of a pair's kind, of which only the data are used here."""
    found = (o for o in ALL_ORACLES if o.kind == pair.kind and o.is_for(pair.entry.name))
    return next(found, None)


def run(pair: Pair, oracle: Oracle, **settings: Any) -> Any:
    """A short run of two chains."""
    chains = pair.entry.build is not None and pair.entry.name != "ibis"
    warmup = {"warmup": WARMUP} if chains else {}
    given = {"chains": 2, "seed": 5, "draws": DRAWS, **warmup, **settings}
    return fit(oracle.data, oracle.model, pair.entry.name, **given)


def assert_same_posterior(one: Any, other: Any) -> None:
    """All draws, and all statistics of them."""
    for mine, theirs in ((one.draws, other.draws), (one.sample_stats, other.sample_stats)):
        assert list(mine) == list(theirs)
        for name in mine:
            assert_same(mine[name], theirs[name])


class Interrupts:
    """Counts the steps of runs, and stops them at one."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.steps, self.stop = 0, -1
        # a step is one iteration of each chain, or one chunk of the decisions
        patch.setattr(running, "CHUNK_SECONDS", 1e-9)
        patch.setattr(chunks, "CHUNK_SIZE", 20)
        patch.setattr(partitions, "DECISIONS_PER_PARTITION", 8)
        for kind in (running.Run, laplace.Laplace):
            patch.setattr(kind, "iterate", self._counted(kind.iterate))

    def _counted(self, iterate: Any) -> Any:
        def counted(sampler: Any) -> Iterator[Any]:
            for done in iterate(sampler):
                self.steps += 1
                if self.steps == self.stop:
                    raise KeyboardInterrupt
                yield done

        return counted


CASES = [
    case(pair, "resume, threads", pair, oracle, slow=not tried_each_time(pair))
    for pair in pairs()
    if (oracle := small_problem(pair))
]


def test_every_pair_has_data() -> None:
    assert missing("resume", (pair for pair in pairs() if small_problem(pair) is None)) == []


@pytest.mark.parametrize(("pair", "oracle"), CASES)
def test_interrupted_run_goes_on_to_the_same_draws_on_any_number_of_threads(
    pair: Pair, oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupts = Interrupts(monkeypatch)
    whole = run(pair, oracle, executor=1)
    steps = interrupts.steps
    assert steps > 2, "there is nowhere to interrupt it"
    file, done = tmp_path / "run.checkpoint", 0
    # once in each half, which is in the warm-up and in the draws
    for share, threads in ((0.3, 1), (0.93, 3)):
        interrupts.steps, interrupts.stop = done, max(done + 1, int(share * steps))
        try:
            part = run(pair, oracle, executor=threads, checkpoint=file, resume=done > 0)
            assert not part.settings["complete"]
        except KeyboardInterrupt:
            pass  # before the first draw there is nothing to return
        assert interrupts.steps == interrupts.stop
        # what was being done is lost
        done = interrupts.stop - 1
    interrupts.stop = -1
    assert_same_posterior(whole, run(pair, oracle, executor=3, checkpoint=file, resume=True))


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Two workers that are threads of this process; `test_dask_executor.py` has processes."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as local,
        distributed.Client(local) as made,
    ):
        yield made


# the first pair of each sampler always, the others with --slow
FIRST = [next(p for p in pairs() if p.entry.name == name) for name in DASK]


@pytest.mark.parametrize(
    ("pair", "oracle"),
    [
        case(pair, "Dask", pair, oracle, slow=pair not in FIRST)
        for pair in pairs()
        if pair.entry.name in DASK and (oracle := small_problem(pair))
    ],
)
def test_draws_on_a_cluster_are_the_same(
    pair: Pair, oracle: Oracle, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "CHUNK_SIZE", 20)
    monkeypatch.setattr(partitions, "DECISIONS_PER_PARTITION", 8)
    # every iteration of a population is two messages to every worker
    few = {"chains": 1, "draws": 3, "warmup": 9} if pair.entry.build else {}
    one, other = (run(pair, oracle, executor=executor, **few) for executor in (1, client))
    assert_same_posterior(one, other)


@pytest.mark.parametrize("pair", [p for p in pairs() if p.entry.name not in DASK], ids=str)
def test_sampler_without_a_cluster_refuses_one(pair: Pair, client: Any) -> None:
    """One that comes to take a client belongs to DASK."""
    oracle = small_problem(pair)
    assert oracle is not None
    with pytest.raises(ValueError, match=r"cluster|executor|Client"):
        run(pair, oracle, executor=client)


def test_other_seed_gives_other_draws() -> None:
    """The comparison can fail."""
    pair = pairs()[0]
    oracle = small_problem(pair)
    assert oracle is not None
    one, other = (
        fit(oracle.data, oracle.model, pair.entry.name, DRAWS, warmup=WARMUP, seed=seed)
        for seed in (5, 6)
    )
    assert not np.array_equal(one.draws["value"], other.draws["value"])
