"""Monte-Carlo errors are what they are said to be: many seeds, every sampler, real data.

A mean that a fit states with a standard error is compared with that of one long run. Over seeds the
differences, divided by their standard errors, have a root mean square of one.
"""

from __future__ import annotations

import csv
import functools
import gzip
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import revealed as rv
from revealed._types import Floats
from revealed.results.comparison import log_evidence

DATA = Path(__file__).parents[3] / "shared" / "data" / "electricity.csv.gz"
COEFFICIENTS = ("pf", "cl", "loc", "wk", "tod", "seas")
ACTIONS, SEEDS = 4, 40
# Of the root mean square of 240 scores, which are independent between seeds only.
LOW, HIGH = 0.85, 1.15
LONG_DRAWS = 10_000


class Case(NamedTuple):
    """How many of the decisions, draws of each chain, and iterations for each draw."""

    decisions: int | None
    draws: int
    thin: int


# Data augmentation takes many iterations on these, as few of the choices are sure; particles, which
# move again and again, take seconds for each dozen of decisions.
CASES = {
    "composite": Case(None, 500, 1),
    "laplace": Case(None, 500, 1),
    "ibis": Case(40, 200, 1),
    "px-scale": Case(300, 500, 20),
    "da": Case(40, 500, 300),
}
# What they need, a sum-to-zero block, contracts do not have.
LEFT_OUT = {"px-translate", "px-both"}


def test_every_sampler_is_tried() -> None:
    assert set(CASES) | LEFT_OUT == set(rv.samplers_for(rv.ChoiceModel()))


@functools.cache
def electricity() -> rv.Decisions:
    """Stated choices among electricity contracts; all people taken for one."""
    if not DATA.exists():
        pytest.skip("shared/data/electricity.csv.gz is not beside the repository")
    with gzip.open(DATA, "rt", newline="", encoding="utf-8") as stream:
        lines = list(csv.DictReader(stream))
    rows = np.array([[float(line[name]) for name in COEFFICIENTS] for line in lines])
    chosen = np.flatnonzero([line["choice"] == "TRUE" for line in lines]) % ACTIONS
    start = ACTIONS * np.arange(len(chosen) + 1)
    return rv.Decisions(rows, start, chosen, names=COEFFICIENTS)


@functools.cache
def long_run(count: int | None) -> tuple[Floats, Floats]:
    """Means of a run that is long beside all others, and their standard errors."""
    decisions = electricity()[:count]
    post = rv.fit(decisions, sampler="composite", draws=LONG_DRAWS, seed=1000, progress=False)
    return post.mean(), post.summary().mcse


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Do not trust this yet")
@pytest.mark.parametrize("sampler", list(CASES))
def test_scores_of_means_over_seeds_have_the_size_that_is_stated(sampler: str) -> None:
    count, draws, thin = CASES[sampler]
    decisions, (exact, its_error) = electricity()[:count], long_run(count)
    scores = []
    for seed in range(SEEDS):
        post = rv.fit(decisions, sampler=sampler, draws=draws, thin=thin, seed=seed, progress=False)
        error = np.hypot(post.summary().mcse, its_error)
        scores.append((post.mean() - exact) / error)
    size = float(np.sqrt(np.mean(np.square(scores))))
    print(f"{sampler}: rms of {np.size(scores)} scores {size:.3f}")
    assert LOW < size < HIGH


# Of a hundred runs as many are to have the truth within two stated errors; 95 are expected.
RUNS, ENOUGH = 100, 90


@functools.cache
def known_evidence() -> tuple[rv.Decisions, rv.ChoiceModel, float]:
    """Decisions by two features, and the evidence of their choices, summed on a grid."""
    rng, sd = np.random.default_rng(5), 1.5
    rows = rng.standard_normal((180, 2))
    chosen = (rows @ [1.0, -0.5] + rng.standard_normal(180)).reshape(60, 3).argmax(axis=1)
    decisions = rv.Decisions(rows, 3 * np.arange(61), chosen)
    line = np.linspace(-6.0, 6.0, 241) * sd
    grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    # far below the largest there is nothing to add up
    log_prior = -0.5 * (grid**2).sum(axis=1) / sd**2 - np.log(2.0 * np.pi * sd**2)
    logs = rv.log_likelihood(decisions, grid).sum(axis=-1) + log_prior
    top = logs.max()
    exact = top + np.log(np.exp(logs - top).sum()) + 2.0 * np.log(line[1] - line[0])
    return decisions, rv.ChoiceModel(prior=rv.Normal(sd)), float(exact)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Do not trust this yet")
@pytest.mark.parametrize(("sampler", "draws"), [("laplace", 1000), ("ibis", 100), ("ibis", 500)])
def test_evidence_is_within_two_of_its_errors(sampler: str, draws: int) -> None:
    decisions, model, exact = known_evidence()
    within = 0
    for seed in range(RUNS):
        post = rv.fit(decisions, model, sampler=sampler, draws=draws, seed=seed, progress=False)
        found, error = log_evidence(post)
        within += abs(found - exact) <= 2.0 * error
    print(f"{sampler} with {draws} draws: {within} of {RUNS} within two errors")
    assert within >= ENOUGH
