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
from revealed.models.likelihood import derivatives
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


def bias_of(errors: Floats, scores: Floats) -> tuple[Floats, Floats]:
    """The mean of errors, and its standard error, with what the data's chance did taken out.

    scores (sets, P): slopes of the log-likelihood at the truth, which are zero on average and which
    errors follow but for terms that vanish with more decisions: what is left at scores of zero
    varies a tenth as much as errors do.
    """
    design = np.column_stack([np.ones(len(scores)), scores])
    found, *_ = np.linalg.lstsq(design, errors, rcond=None)
    left = (errors - design @ found).std(axis=0, ddof=design.shape[1])
    return found[0], left * np.sqrt(np.linalg.inv(design.T @ design)[0, 0])


@pytest.mark.slow
@pytest.mark.parametrize("name", NOISES)
def test_a_model_with_lapses_is_off_by_no_more_than_a_tenth_of_an_sd(name: str) -> None:
    """One value and one rate, whatever the prior: what is left is what few decisions leave."""
    noise, value, sets, actions, count = NOISES[name], np.array([1.0, -0.8]), 60, 4, 3_000
    lapsing, known = replace(noise, lapse=rv.Lapse()), rv.KnownLapse(noise, RATE)
    rng = np.random.default_rng(11)
    errors, wrong, scores, ranks = (list[Any]() for _ in range(4))
    plan: dict[str, Any] = {"chains": 2, "executor": 1, "draws": 200, "warmup": 300}
    for _ in range(sets):
        rows = rng.standard_normal((count * actions, 2))
        worth = (rows @ value + noise.sample(rng, len(rows))).reshape(count, actions)
        blind = rng.random(count) < RATE
        chosen = np.where(blind, rng.integers(0, actions, count), worth.argmax(axis=1))
        d = rv.Decisions(rows, actions * np.arange(count + 1), chosen)
        seed = int(rng.integers(2**31))
        for law, found in ((lapsing, errors), (noise, wrong)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", rv.NotConvergedWarning)
                model = rv.ChoiceModel(prior=rv.Normal(10.0), noise=law)
                post: Any = rv.fit(d, model, seed=seed, sampler="composite", progress=False, **plan)
            found.append((post.mean("value") - value) / post.sd("value"))
            if law is lapsing:
                ranks.append((post.stacked("lapse") < RATE).mean())
        # slopes in value and rate, in units in which they do not grow
        p = np.exp(rv.log_likelihood(d, value, noise))
        of_rate = (1.0 / actions - p) / ((1.0 - RATE) * p + RATE / actions)
        slopes = np.append(derivatives(d, value, known)[1], of_rate.sum())
        scores.append(slopes / np.sqrt(count))
    bias, error = bias_of(np.array(errors), np.array(scores))
    covered = int(((np.array(ranks) > 0.05) & (np.array(ranks) < 0.95)).sum())
    print(name, "bias", bias, error, "without", np.mean(wrong, axis=0), covered, "of", sets)
    assert (error < 0.03).all()
    assert (np.abs(bias) < 0.1).all(), (bias, error)
    # nine standard errors at least: without lapses in the model every value is far too small
    assert (np.mean(wrong, axis=0) * np.sign(value) < -1.2).all()
    # 90 % intervals of the rate: outside these limits once in 10,000 tests
    low, high = st.binom.ppf([5e-5, 1.0 - 5e-5], sets, 0.9)
    assert low <= covered <= high
