"""The default sampler against long runs of a simpler one, on one data set after another.

The reference is data augmentation with interweaving alone, which fits no proposal and adapts no
step; on grids, where that mixes too slowly, it is nutpie's NUTS. Means and sds must agree within
the Monte-Carlo errors of both.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed._types import Floats
from revealed.data.decisions import Decisions
from revealed.models.priors import ResolvedPrior, resolve_prior
from revealed.results.diagnostics import mcse_mean, mcse_sd, standard_deviation
from revealed.samplers.composite.sampler import CompositeSampler
from tests.support.cases import fixed_cycle, mark_slow, warmed_up_draws
from tests.support.statistical_asserts import assert_scores

pytestmark = pytest.mark.proves(
    model="choices, normal prior", sampler="composite", problem="{kind}"
)
DATA_SETS = 4  # of each kind, always
MANY_DATA_SETS = 200  # with --slow


def _benchmark_problems() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[2]))
        return importlib.import_module("benchmarks._problems")


def augmentation_reference(iterations: int) -> Callable[[Decisions, ResolvedPrior, int], Floats]:
    """A function that makes so many draws by augmentation moves alone, after a tenth as many."""

    def run(decisions: Decisions, resolved_prior: ResolvedPrior, seed: int) -> Floats:
        sampler = CompositeSampler.build(decisions, resolved_prior)
        rng = np.random.default_rng(1000 + seed)
        # a warm-up only for the directions of interweaving
        adapted, _ = sampler.warmup(rng, sampler.init(rng, None), 500, 500)
        state = fixed_cycle(sampler, rng, 0, 1, 0)
        state["interweaving_directions"] = adapted["interweaving_directions"]
        state["x"] = np.zeros_like(state["x"])
        state, _, _ = sampler.sample(rng, state, 1, iterations // 10)
        return np.asarray(sampler.sample(rng, state, iterations, 1)[1]["value"])

    return run


def nutpie_reference(decisions: Decisions, resolved_prior: ResolvedPrior, seed: int) -> Floats:
    """Draws by NUTS."""
    if importlib.util.find_spec("nutpie") is None:
        pytest.skip("nutpie is not installed; scripts/bench installs it")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[2]))
        peers = importlib.import_module("benchmarks._peers")
    return np.asarray(peers.nutpie_draws(decisions, resolved_prior, 2000, 600, 1000 + seed).draws)


KINDS: dict[
    str, tuple[Callable[[int], Decisions], float, Callable[[Decisions, ResolvedPrior, int], Floats]]
] = {  # decisions, the prior's sd, the reference
    "toy": (lambda seed: _benchmark_problems().toy(20, seed), 50.0, augmentation_reference(40_000)),
    "Tetris": (
        lambda seed: _benchmark_problems().tetris(
            [(-3, -15, -1), (0, 5, 0), (-20, 0, 1)][seed % 3], 50, seed
        ),
        50.0,
        augmentation_reference(20_000),
    ),
    "grid": (lambda seed: _benchmark_problems().grid(5, 0.2, 300, seed), 10.0, nutpie_reference),
}


def scores(kind: str, count: int) -> Floats:
    """(comparisons,) differences of means and sds in standard errors, over data sets of a kind."""
    make, prior_sd, reference = KINDS[kind]
    found = []
    for seed in range(1, count + 1):
        decisions = make(seed)
        resolved_prior = resolve_prior(rv.Normal(prior_sd), decisions)
        sampler = CompositeSampler.build(decisions, resolved_prior)
        made, _ = warmed_up_draws(np.random.default_rng(seed), sampler, 1000, 6000)
        ours = made["value"][None]
        theirs = reference(decisions, resolved_prior, seed)[None]
        statistics: list[tuple[Any, Any]] = [
            (lambda draws: draws.mean(axis=(0, 1)), mcse_mean),
            (standard_deviation, mcse_sd),
        ]
        for statistic, error in statistics:
            z = (statistic(ours) - statistic(theirs)) / np.hypot(error(ours), error(theirs))
            found.append(z)
    return np.concatenate(found)


@pytest.mark.parametrize(
    "data_sets", mark_slow([DATA_SETS, MANY_DATA_SETS], lambda count: count == DATA_SETS)
)
@pytest.mark.parametrize("kind", KINDS)
def test_means_and_sds_agree_with_a_long_reference_run(kind: str, data_sets: int) -> None:
    z = scores(kind, data_sets)
    assert_scores(z, false_alarm=1e-6, degrees=np.inf, how="agreement")
