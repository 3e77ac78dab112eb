"""SIGINT ends every sampler's compiled loops: in warm-up by an interrupt, later with draws."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed.io.checkpoints import read_checkpoint
from revealed.kernels.interrupt import (
    LoopsStopped,
    count_stops,
    raise_if_stopping,
    stopped_loops,
    stopped_since,
)
from revealed.samplers import run as running
from revealed.samplers.registry import REGISTRY
from tests.support.kill_and_resume import features
from tests.support.watchdog import CASES, interrupt_fit

# before the last decision particles are no posterior of all of them, and proposals are no draws
WITHOUT_DRAWS = {"ibis", "laplace"}


def test_ctrl_c_ends_the_warm_up_of_the_default_sampler(tmp_path: Path) -> None:
    assert interrupt_fit("composite", "warm-up", tmp_path).words == "interrupted"
    assert read_checkpoint(tmp_path / "run.checkpoint") is not None


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_ctrl_c_ends_every_warm_up(case: str, tmp_path: Path) -> None:
    assert interrupt_fit(case, "warm-up", tmp_path).words == "interrupted"
    assert read_checkpoint(tmp_path / "run.checkpoint") is not None


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in CASES if case not in WITHOUT_DRAWS])
def test_ctrl_c_returns_the_draws_so_far(case: str, tmp_path: Path) -> None:
    assert interrupt_fit(case, "draws", tmp_path).words == "draws so far"
    assert read_checkpoint(tmp_path / "run.checkpoint") is not None


def test_every_sampler_of_the_registry_is_interrupted() -> None:
    assert {case.sampler for case in CASES.values()} == {entry.name for entry in REGISTRY.entries}


@pytest.mark.filterwarnings("ignore:Do not trust this yet")
def test_what_stopped_loops_have_written_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run whose loops were stopped by somebody else ends as after Ctrl-C, with whole draws."""
    settings: dict[str, Any] = {
        "chains": 2,
        "draws": 400,
        "warmup": 150,
        "progress": False,
        "executor": 1,
    }
    whole = rv.fit(features(), **settings)
    original = running.Chain._advance
    drawing: list[running.Chain] = []

    def stopped(chain: running.Chain, warmup: int, draws: int, thin: int, stops: int) -> None:
        if chain.draws_done:
            drawing.append(chain)
        if len(drawing) > 4:
            with stopped_loops():
                original(chain, warmup, draws, thin, stops)
        original(chain, warmup, draws, thin, stops)

    monkeypatch.setattr(running, "CHUNK_SECONDS", 1e-4)
    monkeypatch.setattr(running.Chain, "_advance", stopped)
    partial = rv.fit(features(), **settings)
    assert partial.settings["complete"] is False
    count = partial.draws["value"].shape[1]
    assert 0 < count < 400
    np.testing.assert_array_equal(partial.draws["value"], whole.draws["value"][:, :count])


def test_loops_of_python_stop_between_two_passes_over_the_decisions() -> None:
    """A search for the mode makes many passes, and a pass over very many decisions takes a while."""
    d = features()
    with stopped_loops(), pytest.raises(LoopsStopped):
        rv.log_likelihood(d, [1.0, 0.0, 0.0])
    assert np.isfinite(rv.log_likelihood(d, [1.0, 0.0, 0.0])).all()


def test_stops_are_seen_by_those_who_began_before() -> None:
    stops = count_stops()
    assert not stopped_since(stops)
    with stopped_loops():
        seen = []

        def begin() -> None:
            with pytest.raises(LoopsStopped):
                count_stops()
            with pytest.raises(LoopsStopped):
                raise_if_stopping()
            seen.append(True)

        other = threading.Thread(target=begin)
        other.start()
        other.join()
        assert seen
    assert stopped_since(stops)
    assert not stopped_since(count_stops())
    raise_if_stopping()
