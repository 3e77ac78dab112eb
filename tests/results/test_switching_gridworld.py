"""Two strategies in a grid world are recovered: when each was in use, and what each values."""

from __future__ import annotations

import warnings
from functools import cache
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

import revealed as rv
from revealed._types import Floats, Ints
from revealed.results.strategies import DrawnStrategies, smoothed

WORLD = rv.environments.GridWorld(["A..", "...", "..B"])
STAYS, WALKS, STEPS, PRIOR_SD = 0.95, 4, 100, 3.0
# of a right sampler and data of this kind
FALSE_ALARM = 1e-6


def towards(mark: str) -> Floats:
    """Values that sum to zero and rise by two with each step towards the square of a mark."""
    row, column = WORLD.find(mark)[0]
    value = np.array([-2.0 * (abs(row - r) + abs(column - c)) for r, c in WORLD.marks])
    return np.asarray(value - value.mean())


VALUES = np.stack([towards("A"), towards("B")])


@cache
def simulated() -> tuple[rv.Decisions, Ints]:
    """Walks of somebody who heads for A, and at times for B; and for which, step by step."""
    rng, mdp = np.random.default_rng(7), WORLD.mdp
    # of every state and action, where it leads
    every = mdp.decisions(range(len(mdp.states)), [0] * len(mdp.states))
    rows = np.asarray(every.rows.todense()).reshape(len(mdp.states), -1, len(mdp.states))
    states, actions, used = [], [], []
    for _ in range(WALKS):
        x, strategy = 4, int(rng.integers(2))
        for _ in range(STEPS):
            utility = rows[x] @ VALUES[strategy] + rng.gumbel(size=len(rows[x]))
            a = int(utility.argmax())
            states.append(x)
            actions.append(a)
            used.append(strategy)
            x = int(rng.choice(len(mdp.states), p=rows[x, a]))
            strategy ^= int(rng.random() > STAYS)
    d = mdp.decisions(states, actions)
    walks = np.repeat(np.arange(WALKS), STEPS)
    named = rv.Decisions(d.rows, d.start, d.chosen, names=d.names, blocks=d.blocks, sessions=walks)
    return named, np.array(used)


@cache
def fitted(strategies: int) -> Any:
    model = rv.ChoiceModel(
        prior=rv.Normal(PRIOR_SD), noise=rv.LogitNoise(), over_time=rv.Switching(strategies)
    )
    with warnings.catch_warnings():
        # R-hat and effective draws are looked at where it matters
        warnings.simplefilter("ignore", rv.NotConvergedWarning)
        return rv.fit(
            simulated()[0], model, draws=1500, warmup=500, chains=2, seed=1, progress=False
        )


def distance(draws: Floats, truth: Floats) -> float:
    """The squared distance of the truth from the posterior mean, in posterior covariances.

    Over the free coordinates; about chi-square distributed with their number of degrees of freedom.
    """
    flat = draws.reshape(len(draws), -1)
    size = len(WORLD.mdp.states)
    # differences from the last value of each strategy: a block that sums to zero has these free
    free = np.delete(np.arange(flat.shape[1]), np.arange(size - 1, flat.shape[1], size))
    gap = (flat.mean(axis=0) - truth.ravel())[free]
    return float(gap @ np.linalg.solve(np.cov(flat[:, free].T), gap))


def bound(strategies: int) -> float:
    """What the distance exceeds with the probability of a false alarm."""
    return float(chi2.isf(FALSE_ALARM, strategies * (len(WORLD.mdp.states) - 1)))


def order_of(found: Any) -> Ints:
    """The label of each true strategy: those whose mean values are nearest to the true ones."""
    mean = found.mean("value")
    errors = {order: ((mean[list(order)] - VALUES) ** 2).sum() for order in permutations((0, 1))}
    return np.array(min(errors, key=lambda order: errors[order]))


def test_strategies_of_a_gridworld_are_decoded_as_well_as_the_truth_allows() -> None:
    found, (d, used) = fitted(2), simulated()
    # who knows values and switch probabilities decodes best, and not without errors either
    switch = np.array([[STAYS, 1.0 - STAYS], [1.0 - STAYS, STAYS]])
    known = DrawnStrategies(VALUES[None], switch[None], np.full((1, 2), 0.5), rv.LogitNoise())
    best = smoothed(known, d)
    possible = float((best.argmax(axis=1) == used).mean())
    chance = max(used.mean(), 1.0 - used.mean())
    assert possible > chance + 0.25, "these walks hardly tell which strategy is in use"
    probability = found.states().probability[:, order_of(found)]
    right = float((probability.argmax(axis=1) == used).mean())
    # at least nine tenths of the way from chance to the best
    least = chance + 0.9 * (possible - chance)
    assert right >= least
    swapped = probability[:, ::-1]
    assert float((swapped.argmax(axis=1) == used).mean()) < least


def test_values_of_a_gridworld_are_recovered_within_their_posterior_error() -> None:
    found = fitted(2)
    assert np.nanmax(found.summary().r_hat) < 1.05
    order = order_of(found)
    draws = found.stacked("value")[:, order]
    assert distance(draws, VALUES) < bound(2)
    # and the error is small: less than half of what it was before any choice
    assert draws.std(axis=0).mean() < PRIOR_SD / 2.0
    # swapped labels are no recovery
    assert distance(draws, VALUES[::-1]) > bound(2)
    stays = np.diag(found.mean("switch_probability"))
    sd = found.stacked("switch_probability").std(axis=0)[[0, 1], [0, 1]]
    assert (np.abs(stays - STAYS) < 5.0 * sd).all()


@pytest.mark.parametrize("strategy", [0, 1])
def test_a_single_strategy_does_not_recover_either_value(strategy: int) -> None:
    draws = fitted(1).stacked("value")
    assert distance(draws, VALUES[strategy]) > bound(1)
