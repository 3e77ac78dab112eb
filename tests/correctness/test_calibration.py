"""Simulation-based calibration: the truth's rank among posterior draws is uniform."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import revealed as rv
from revealed._types import Ints
from revealed.models.priors import resolve_prior
from revealed.samplers.data_augmentation import AugmentationOptions
from tests.support.cases import (
    CALIBRATION_CASES,
    CALIBRATION_OFFERS,
    build_sampler,
    choose,
    label,
    mark_slow,
    warmed_up_draws,
)
from tests.support.statistical_asserts import assert_uniform_ranks, must_fail

pytestmark = pytest.mark.proves(model="choices, normal prior")
PRIOR_SD = 2.0
DRAWS = 63


def thinning(name: str, problem: str) -> int:
    """Iterations between draws, one and a half times the longest autocorrelation time or more.

    Ranks are uniform only among independent draws, and data augmentation mixes slowly where scales
    matter: with a thinning of 15 and larger features 4,000 replications rightly refuse `da`.
    """
    return {"da": 60, "px-scale": 40}.get(name, 25) if problem == "ragged" else 25


def ranks(
    variant: tuple[str, AugmentationOptions],
    problem: str,
    replications: int,
    seed: int,
    lost: float | None = None,
) -> Ints:
    """(replications, K + 1) ranks of the truth among 63 thinned draws.

    Of its coefficients and of its log-likelihood. lost: another number of lost degrees of freedom.
    """
    offers, thin, rng = (
        CALIBRATION_OFFERS[problem],
        thinning(variant[0], problem),
        np.random.default_rng(seed),
    )
    truths = resolve_prior(rv.Normal(PRIOR_SD), offers).draw(rng, replications)
    out = np.empty((replications, len(offers.names) + 1), dtype=np.int64)
    for i, truth in enumerate(truths):
        seen = offers.with_choices(choose(rng, offers, truth)[0])
        sampler = build_sampler(variant, seen, rv.Normal(PRIOR_SD))
        if lost is not None:
            sampler = replace(sampler, move=sampler.move._replace(lost_df=lost))
        draws = warmed_up_draws(rng, sampler, 10 * thin, DRAWS, thin)[0]["value"]
        fit = rv.log_likelihood(seen, np.vstack([draws, truth])).sum(axis=1)
        out[i, :-1] = (draws < truth).sum(axis=0)
        out[i, -1] = (fit[:-1] < fit[-1]).sum()
    return out


def runs_always(case: tuple[tuple[str, AugmentationOptions], str]) -> bool:
    """Whether a case is not left to --slow.

    Only the default sampler and one other are calibrated every time: test_known_posterior.py and
    test_grid_posteriors.py check every variant against exact posteriors every time.
    """
    variant, problem = case
    return problem == "mdp" and label(variant) in ("composite-exact", "da-exact")


@pytest.mark.parametrize(
    ("variant", "problem"),
    mark_slow(CALIBRATION_CASES, runs_always, unpack=True),
    ids=lambda x: x if isinstance(x, str) else label(x),
)
def test_ranks_are_uniform(variant: tuple[str, AugmentationOptions], problem: str) -> None:
    """400 replications, fewer of the composite sampler, which takes ten times as long."""
    replications = 150 if variant[0] == "composite" else 400
    assert_uniform_ranks(ranks(variant, problem, replications, seed=4), DRAWS, false_alarm=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variant", "problem"), CALIBRATION_CASES, ids=lambda x: x if isinstance(x, str) else label(x)
)
def test_ranks_are_uniform_in_the_long_run(
    variant: tuple[str, AugmentationOptions], problem: str
) -> None:
    """The full run: 3,000 replications."""
    assert_uniform_ranks(ranks(variant, problem, 3_000, seed=5), DRAWS, false_alarm=1e-6)


def test_wrong_degrees_of_freedom_are_caught() -> None:
    with must_fail("twenty degrees of freedom too few in the working scale", sampler="px-both"):
        assert_uniform_ranks(
            ranks(("px-both", AugmentationOptions()), "mdp", 400, seed=4, lost=20.0),
            DRAWS,
            false_alarm=1e-6,
        )
