"""Blind clicks bias a value by several sds, and with lapses in the model by none.

Values come from their prior, whose means are not zero, so that a bias towards zero has one sign in
all sets; and one choice in twenty is made blindly. Given the data the truth then has the posterior
for its law: (truth - mean) / sd has mean 0 and variance 1 whatever the number of decisions is, but
for the rate, which is one twentieth in all sets.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.stats as st

import revealed as rv
from revealed._types import Floats
from tests.support.cases import mark_slow
from tests.support.statistical_asserts import assert_scores, must_fail

PRIOR = rv.Normal(0.5, mean=[2.0, -1.5])
RATE = 0.05
NOISES: dict[str, Any] = {"normal": rv.NormalNoise(), "logit": rv.LogitNoise()}


def simulate(rng: np.random.Generator, noise: Any, count: int, actions: int = 3) -> Any:
    """The true value, and decisions among three actions, one in twenty blind."""
    value = rng.normal([2.0, -1.5], 0.5)
    rows = rng.standard_normal((count * actions, 2))
    worth = (rows @ value + noise.sample(rng, len(rows))).reshape(count, actions)
    blind = rng.random(count) < RATE
    chosen = np.where(blind, rng.integers(0, actions, count), worth.argmax(axis=1))
    return value, rv.Decisions(rows, actions * np.arange(count + 1), chosen)


def standardised_errors(
    noise: Any, sets: int, count: int, seed: int, draws: int = 400
) -> tuple[Floats, Floats]:
    """(sets, 2) (truth - mean) / sd of both coefficients, and (sets,) how far up the rate lies.

    The latter is the share of draws of the rate below the truth; empty without lapses.
    """
    rng, errors, ranks = np.random.default_rng(seed), [], []
    settings: dict[str, Any] = {"chains": 2, "draws": draws, "warmup": draws, "executor": 1}
    for _ in range(sets):
        value, d = simulate(rng, replace(noise, lapse=None), count)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", rv.NotConvergedWarning)
            post: Any = rv.fit(
                d,
                rv.ChoiceModel(prior=PRIOR, noise=noise),
                seed=int(rng.integers(2**31)),
                sampler="composite",
                progress=False,
                **settings,
            )
        errors.append((value - post.mean("value")) / post.sd("value"))
        if noise.lapse is not None:
            ranks.append((post.stacked("lapse") < RATE).mean())
    return np.array(errors), np.array(ranks)


def check(errors: Floats) -> None:
    """Both coefficients are right on average: the sum of independent errors of variance one."""
    assert_scores(errors.mean(axis=0) * np.sqrt(len(errors)), degrees=np.inf)


@pytest.mark.parametrize("name", mark_slow(NOISES, lambda name: name == "logit"))
def test_blind_clicks_bias_a_value_unless_lapses_are_in_the_model(name: str) -> None:
    noise = NOISES[name]
    with_lapses, ranks = standardised_errors(replace(noise, lapse=rv.Lapse()), 12, 500, seed=1)
    check(with_lapses)
    assert 0.0 < ranks.mean() < 1.0
    without, _ = standardised_errors(noise, 12, 500, seed=1)
    with must_fail("a model without lapses"):
        check(without)


def answers(noise: Any, d: Any, prior: rv.Prior, seed: int) -> tuple[Floats, Floats, Floats]:
    """Means and sds of both coefficients, and the draws of the rate, if there is one."""
    model = rv.ChoiceModel(prior=prior, noise=noise)
    plan: dict[str, Any] = {"chains": 2, "executor": 1, "draws": 400, "warmup": 400}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rv.NotConvergedWarning)
        post: Any = rv.fit(d, model, seed=seed, sampler="composite", progress=False, **plan)
    rate = post.stacked("lapse") if noise.lapse is not None else np.empty(0)
    return post.mean("value"), post.sd("value"), rate


@pytest.mark.slow
@pytest.mark.parametrize("name", NOISES)
def test_a_model_with_lapses_is_off_by_no_more_than_a_tenth_of_an_sd(name: str) -> None:
    """Each set is also decided with no blind clicks: most of what chance does, it does to both.

    What is left of the difference has an sd of about .35, so that the mean over 200 sets is known
    to .025: a model that is right is beyond a tenth four times in 100,000 tests.
    """
    noise, value, sets, actions, count = NOISES[name], np.array([1.0, -0.8]), 200, 4, 3_000
    rng, shifts, wrong, ranks = np.random.default_rng(11), [], [], []
    start = actions * np.arange(count + 1)
    for _ in range(sets):
        rows = rng.standard_normal((count * actions, 2))
        worth = (rows @ value + noise.sample(rng, len(rows))).reshape(count, actions)
        seen = worth.argmax(axis=1)
        clicked = np.where(rng.random(count) < RATE, rng.integers(0, actions, count), seen)
        clean, blind = (rv.Decisions(rows, start, chosen) for chosen in (seen, clicked))
        seed, prior = int(rng.integers(2**31)), rv.Normal(10.0)
        mean, sd, _ = answers(noise, clean, prior, seed)
        found, _, rate = answers(replace(noise, lapse=rv.Lapse()), blind, prior, seed)
        without, _, _ = answers(noise, blind, prior, seed)
        shifts.append((found - mean) / sd)
        wrong.append((without - mean) / sd)
        ranks.append((rate < RATE).mean())
    shift, error = np.mean(shifts, axis=0), np.std(shifts, axis=0) / np.sqrt(sets)
    covered = int(((np.array(ranks) > 0.05) & (np.array(ranks) < 0.95)).sum())
    print(name, "with lapses", shift, error, "without", np.mean(wrong, axis=0), covered, sets)
    assert (np.abs(shift) < 0.1).all(), (shift, error)
    assert (np.abs(np.mean(wrong, axis=0)) > 1.0).all()
    # 90 % intervals of the rate: outside these limits once in 10,000 tests
    low, high = st.binom.ppf([5e-5, 1.0 - 5e-5], sets, 0.9)
    assert low <= covered <= high
