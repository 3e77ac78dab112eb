"""No wrong answer that looks right: the default engine against long safe runs, on data set after data set.

The safe run is data augmentation with interweaving alone, which fits no proposal and learns no step; on grids, where
that forgets too slowly, it is nutpie's NUTS. Means and sds must agree within the Monte-Carlo errors of both.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import understudy as us
from evidence import assert_scores
from problems import fixed_round, warm_draws
from understudy._arrays import Floats
from understudy.decisions import Decisions
from understudy.diagnostics import mcse_mean, mcse_sd, spread
from understudy.engines.blended import Blended
from understudy.priors import Placed, place

pytestmark = pytest.mark.proves(model="choices, Gaussian prior", engine="blended", problem="{kind}")
FEW, MANY = 4, 200  # data sets of each kind: always, and with --slow


def _suite() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[2]))
        return importlib.import_module("benchmarks._problems")


def by_sweeps(iterations: int) -> Callable[[Decisions, Placed, int], Floats]:
    def run(decisions: Decisions, placed: Placed, seed: int) -> Floats:
        engine, rng = Blended.build(decisions, placed), np.random.default_rng(1000 + seed)
        learnt, _ = engine.warm(rng, engine.start(rng, None), 500, 500)  # only for the directions
        state = fixed_round(engine, rng, 0, 1, 0)
        state = {**state, "directions": learnt["directions"], "x": np.zeros_like(state["x"])}
        state, _, _ = engine.advance(rng, state, 1, iterations // 10)
        return engine.advance(rng, state, iterations, 1)[1]

    return run


def by_nutpie(decisions: Decisions, placed: Placed, seed: int) -> Floats:
    if importlib.util.find_spec("nutpie") is None:
        pytest.skip("nutpie is not installed; scripts/bench installs it")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[2]))
        peers = importlib.import_module("benchmarks._peers")
    return np.asarray(peers.nutpie_draws(decisions, placed, 2000, 600, 1000 + seed).draws)


KINDS: dict[str, tuple[Callable[[int], Decisions], float, Callable[[Decisions, Placed, int], Floats]]] = {
    "toy": (lambda seed: _suite().toy(20, seed), 2500.0, by_sweeps(40_000)),
    "Tetris": (
        lambda seed: _suite().tetris([(-3, -15, -1), (0, 5, 0), (-20, 0, 1)][seed % 3], 50, seed),
        2500.0,
        by_sweeps(20_000),
    ),
    "grid": (lambda seed: _suite().grid(5, 0.2, 300, seed), 100.0, by_nutpie),
}


def scores(kind: str, count: int) -> Floats:
    """(comparisons,) differences of means and of sds in standard errors, over all data sets of a kind."""
    make, kappa, reference = KINDS[kind]
    found = []
    for seed in range(1, count + 1):
        decisions = make(seed)
        placed = place(us.Gaussian(kappa), decisions)
        ours = warm_draws(np.random.default_rng(seed), Blended.build(decisions, placed), 1000, 6000)[0][None]
        theirs = reference(decisions, placed, seed)[None]
        for statistic, error in ((lambda d: d.mean(axis=(0, 1)), mcse_mean), (spread, mcse_sd)):
            z = (statistic(ours) - statistic(theirs)) / np.hypot(error(ours), error(theirs))
            found.append(z)
    return np.concatenate(found)


def check(z: Floats) -> None:
    assert_scores(z, false_alarm=1e-6, degrees=np.inf, how="agreement")


@pytest.mark.parametrize("kind", KINDS)
def test_means_and_sds_are_those_of_a_long_safe_run(kind: str) -> None:
    check(scores(kind, FEW))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_means_and_sds_are_those_of_a_long_safe_run_on_two_hundred_data_sets(kind: str) -> None:
    check(scores(kind, MANY))
