"""Posteriors in two dimensions, summed on a grid of the exact likelihood, against every engine."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import understudy as us
from evidence import assert_mean, assert_sd, caught, grid_moments
from problems import VARIANTS, build, choose, label, long_run, mdp_offers, ragged_offers
from understudy._arrays import Floats
from understudy.decisions import Decisions
from understudy.engines.augmented import Options
from understudy.priors import Prior, place


def _three_states() -> Decisions:
    offers = mdp_offers(states=3, actions=3, count=25, seed=5)
    return offers.with_choices(choose(np.random.default_rng(6), offers, np.array([1.0, -2.0, 1.0]))[0])


def _two_features() -> Decisions:
    offers = ragged_offers(features=2, count=25, seed=7)
    return offers.with_choices(choose(np.random.default_rng(8), offers, np.array([0.8, -0.5]))[0])


def _action_rewards() -> Decisions:
    """Two states and two actions with rewards: two centred blocks, whose translations coincide."""
    rng = np.random.default_rng(9)
    mdp = us.random_mdp(rng, states=2, actions=2)
    offers = mdp.decisions(rng.integers(0, 2, 40), action_rewards=True)
    return offers.with_choices(choose(rng, offers, np.array([1.0, -1.0, 0.3, -0.3]))[0])


PROBLEMS = {"three states": _three_states(), "two features": _two_features(), "action rewards": _action_rewards()}
PRIORS: dict[str, Prior] = {"Gaussian prior": us.Gaussian(4.0), "flat prior": us.Flat()}
CASES = [(v, p) for v in VARIANTS for p in PROBLEMS if p != "two features" or v[0] not in ("px-translate", "px-both")]
pytestmark = pytest.mark.proves(model="choices, Gaussian prior")


def _exact(decisions: Decisions, prior: Prior) -> tuple[Floats, Floats]:
    """Mean and sd of each coefficient: a coarse grid finds the mass, a fine one sums it."""
    placed = place(prior, decisions)
    low, high = np.full(2, -60.0), np.full(2, 60.0)
    for points in (81, 81, 81, 121):
        axes = [np.linspace(a, b, points) for a, b in zip(low, high, strict=True)]
        grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
        values = grid @ placed.basis.T
        log_density = us.log_likelihood(decisions, values).sum(axis=1) + placed.log_density(values)
        kept = grid[log_density > log_density.max() - 25]
        step = np.array([a[1] - a[0] for a in axes])
        low, high = kept.min(axis=0) - 2 * step, kept.max(axis=0) + 2 * step
    return grid_moments(values, log_density)


@pytest.fixture(scope="module")
def exact() -> dict[tuple[str, str], tuple[Floats, Floats]]:
    return {(p, q): _exact(PROBLEMS[p], PRIORS[q]) for p in PROBLEMS for q in PRIORS}


def check(draws: Floats, mean: Floats, sd: Floats) -> None:
    for k in range(len(mean)):
        assert_mean(draws[:, k], mean[k], false_alarm=1e-6)
        assert_sd(draws[:, k], mean[k], sd[k], false_alarm=1e-6)


@pytest.mark.proves(model="choices, {which}")
@pytest.mark.parametrize("which", PRIORS)
@pytest.mark.parametrize(("variant", "problem"), CASES, ids=lambda x: x if isinstance(x, str) else label(x))
def test_every_engine_agrees_with_the_grid(
    variant: tuple[str, Options], problem: str, which: str, exact: dict[tuple[str, str], tuple[Floats, Floats]]
) -> None:
    decisions = PROBLEMS[problem]
    draws = long_run(build(variant, decisions, PRIORS[which]), 100_000, seed=2, init=np.zeros(len(decisions.names)))
    check(draws, *exact[problem, which])


@pytest.mark.proves(model="choices, flat prior")
def test_counting_both_translations_of_action_rewards_is_caught(
    exact: dict[tuple[str, str], tuple[Floats, Floats]],
) -> None:
    """Both blocks' translations shift the utilities alike, so one degree of freedom is lost, not two."""
    decisions = PROBLEMS["action rewards"]
    engine = build(("px-both", Options()), decisions, us.Flat())
    assert engine.move.lost == 1.0
    wrong = replace(engine, move=engine.move._replace(lost=2.0))
    with caught("both translations of action rewards counted", engine="px-both"):
        check(long_run(wrong, 600_000, seed=2, init=np.zeros(4)), *exact["action rewards", "flat prior"])


@pytest.mark.proves(engine="blended", problem="coefficients tied by the prior")
def test_a_prior_that_ties_coefficients_agrees_with_the_grid() -> None:
    """The default engine bends coordinates one by one, which such a prior forbids: it keeps them straight."""
    prior = us.Gaussian([[4.0, 3.9], [3.9, 4.0]])
    decisions = PROBLEMS["two features"]
    engine = build(("blended", Options()), decisions, prior)
    assert engine.placed.tied
    check(long_run(engine, 100_000, seed=2, init=np.zeros(2)), *_exact(decisions, prior))
