"""Posteriors in two dimensions, summed on a grid of the exact likelihood, against every sampler."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import revealed as rv
from revealed._types import Floats
from revealed.data.decisions import Decisions
from revealed.models.priors import Prior, resolve_prior
from revealed.samplers.data_augmentation import AugmentationOptions
from tests.support.cases import (
    VARIANTS,
    build_sampler,
    choose,
    label,
    long_run,
    mark_slow,
    mdp_offers,
    ragged_offers,
)
from tests.support.statistical_asserts import assert_mean, assert_sd, grid_moments, must_fail


def _three_states() -> Decisions:
    offers = mdp_offers(states=3, actions=3, count=25, seed=5)
    return offers.with_choices(
        choose(np.random.default_rng(6), offers, np.array([1.0, -2.0, 1.0]))[0]
    )


def _two_features() -> Decisions:
    offers = ragged_offers(features=2, count=25, seed=7)
    return offers.with_choices(choose(np.random.default_rng(8), offers, np.array([0.8, -0.5]))[0])


def _action_rewards() -> Decisions:
    """Two states and two actions with rewards: two centred blocks, whose translations coincide."""
    rng = np.random.default_rng(9)
    mdp = rv.random_mdp(rng, states=2, actions=2)
    offers = mdp.decisions(rng.integers(0, 2, 40), action_rewards=True)
    return offers.with_choices(choose(rng, offers, np.array([1.0, -1.0, 0.3, -0.3]))[0])


PROBLEMS = {
    "three states": _three_states(),
    "two features": _two_features(),
    "action rewards": _action_rewards(),
}
PRIORS: dict[str, Prior] = {"normal prior": rv.Normal(2.0), "flat prior": rv.Flat()}
CASES = [
    (v, p)
    for v in VARIANTS
    for p in PROBLEMS
    if p != "two features" or v[0] not in ("px-translate", "px-both")
]
pytestmark = pytest.mark.proves(model="choices, normal prior")


def _grid_moments(decisions: Decisions, prior: Prior) -> tuple[Floats, Floats]:
    """Mean and sd of each coefficient: a coarse grid finds the mass, a fine one sums it."""
    resolved_prior = resolve_prior(prior, decisions)
    low, high = np.full(2, -60.0), np.full(2, 60.0)
    for points in (81, 81, 81, 121):
        axes = [np.linspace(a, b, points) for a, b in zip(low, high, strict=True)]
        grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
        values = grid @ resolved_prior.basis.T
        log_density = rv.log_likelihood(decisions, values).sum(axis=1)
        log_density = log_density + resolved_prior.log_density(values)
        kept = grid[log_density > log_density.max() - 25]
        step = np.array([a[1] - a[0] for a in axes])
        low, high = kept.min(axis=0) - 2 * step, kept.max(axis=0) + 2 * step
    return grid_moments(values, log_density)


@pytest.fixture(scope="module")
def exact() -> dict[tuple[str, str], tuple[Floats, Floats]]:
    return {(p, q): _grid_moments(PROBLEMS[p], PRIORS[q]) for p in PROBLEMS for q in PRIORS}


def assert_moments(draws: Floats, mean: Floats, sd: Floats) -> None:
    for k in range(len(mean)):
        assert_mean(draws[:, k], mean[k], false_alarm=1e-6)
        assert_sd(draws[:, k], mean[k], sd[k], false_alarm=1e-6)


@pytest.mark.proves(model="choices, {prior_name}")
@pytest.mark.parametrize("count", mark_slow([40_000, 200_000], lambda count: count == 40_000))
@pytest.mark.parametrize("prior_name", PRIORS)
@pytest.mark.parametrize(
    ("variant", "problem"), CASES, ids=lambda x: x if isinstance(x, str) else label(x)
)
def test_every_sampler_agrees_with_the_grid(
    variant: tuple[str, AugmentationOptions],
    problem: str,
    prior_name: str,
    count: int,
    exact: dict[tuple[str, str], tuple[Floats, Floats]],
) -> None:
    decisions = PROBLEMS[problem]
    draws = long_run(
        build_sampler(variant, decisions, PRIORS[prior_name]),
        count,
        seed=2,
        init=np.zeros(len(decisions.names)),
    )
    assert_moments(draws, *exact[problem, prior_name])


@pytest.mark.proves(model="choices, flat prior")
def test_counting_both_translations_of_action_rewards_is_caught(
    exact: dict[tuple[str, str], tuple[Floats, Floats]],
) -> None:
    """The translations of both blocks shift utilities alike: one degree of freedom is lost."""
    decisions = PROBLEMS["action rewards"]
    sampler = build_sampler(("px-both", AugmentationOptions()), decisions, rv.Flat())
    assert sampler.move.lost_df == 1.0
    wrong = replace(sampler, move=sampler.move._replace(lost_df=2.0))
    with must_fail("both translations of action rewards counted", sampler="px-both"):
        assert_moments(
            long_run(wrong, 600_000, seed=2, init=np.zeros(4)),
            *exact["action rewards", "flat prior"],
        )


@pytest.mark.proves(sampler="composite", problem="strongly correlated prior")
def test_strongly_correlated_prior_agrees_with_the_grid() -> None:
    """The default sampler keeps coordinates linear under such a prior.

    It skews coefficients one by one, which suits only those that the prior leaves independent.
    """
    prior = rv.Normal(covariance=[[4.0, 3.9], [3.9, 4.0]])
    decisions = PROBLEMS["two features"]
    sampler = build_sampler(("composite", AugmentationOptions()), decisions, prior)
    assert sampler.resolved_prior.strongly_correlated
    assert_moments(
        long_run(sampler, 100_000, seed=2, init=np.zeros(2)), *_grid_moments(decisions, prior)
    )
