"""Simulation-based calibration: the truth's rank among posterior draws is uniform, for every engine."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import understudy as us
from evidence import assert_uniform_ranks, caught
from problems import CALIBRATED, CALIBRATIONS, build, choose, label, warm_draws
from understudy._arrays import Ints
from understudy.engines.augmented import Options
from understudy.priors import place

pytestmark = pytest.mark.proves(model="choices, Gaussian prior")
KAPPA = 4.0
DRAWS = 63


def thinning(name: str, problem: str) -> int:
    """Iterations between draws, one and a half times the longest autocorrelation time or more.

    Ranks are uniform only among independent draws, and data augmentation forgets slowly where scales matter: with a
    thinning of 15 and larger features 4,000 replications find fault with `da`, and rightly so.
    """
    return {"da": 60, "px-scale": 40}.get(name, 25) if problem == "ragged" else 25


def ranks(variant: tuple[str, Options], problem: str, replications: int, seed: int, lost: float | None = None) -> Ints:
    """(replications, K + 1) ranks of the true coefficients and of their log-likelihood among 63 thinned draws."""
    offers, thin, rng = CALIBRATED[problem], thinning(variant[0], problem), np.random.default_rng(seed)
    truths = place(us.Gaussian(KAPPA), offers).draw(rng, replications)
    out = np.empty((replications, len(offers.names) + 1), dtype=np.int64)
    for i, truth in enumerate(truths):
        seen = offers.with_choices(choose(rng, offers, truth)[0])
        engine = build(variant, seen, us.Gaussian(KAPPA))
        if lost is not None:
            engine = replace(engine, move=engine.move._replace(lost=lost))
        draws, _ = warm_draws(rng, engine, 10 * thin, DRAWS, thin)
        fit = us.log_likelihood(seen, np.vstack([draws, truth])).sum(axis=1)
        out[i, :-1] = (draws < truth).sum(axis=0)
        out[i, -1] = (fit[:-1] < fit[-1]).sum()
    return out


@pytest.mark.parametrize(("variant", "problem"), CALIBRATIONS, ids=lambda x: x if isinstance(x, str) else label(x))
def test_ranks_are_uniform(variant: tuple[str, Options], problem: str) -> None:
    """The subset that always runs: 400 replications."""
    assert_uniform_ranks(ranks(variant, problem, 400, seed=4), DRAWS, false_alarm=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("variant", "problem"), CALIBRATIONS, ids=lambda x: x if isinstance(x, str) else label(x))
def test_ranks_are_uniform_in_the_long_run(variant: tuple[str, Options], problem: str) -> None:
    """The full run: 3,000 replications."""
    assert_uniform_ranks(ranks(variant, problem, 3_000, seed=5), DRAWS, false_alarm=1e-6)


def test_a_wrong_shape_is_caught() -> None:
    with caught("twenty degrees of freedom too few in the scale's shape", engine="px-both"):
        assert_uniform_ranks(ranks(("px-both", Options()), "mdp", 400, seed=4, lost=20.0), DRAWS, false_alarm=1e-6)
