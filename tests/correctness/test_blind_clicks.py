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

import revealed as rv
from revealed._types import Floats
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


@pytest.mark.parametrize("name", NOISES)
def test_blind_clicks_bias_a_value_unless_lapses_are_in_the_model(name: str) -> None:
    noise = NOISES[name]
    with_lapses, ranks = standardised_errors(replace(noise, lapse=rv.Lapse()), 12, 500, seed=1)
    check(with_lapses)
    assert 0.0 < ranks.mean() < 1.0
    without, _ = standardised_errors(noise, 12, 500, seed=1)
    with must_fail("a model without lapses"):
        check(without)
