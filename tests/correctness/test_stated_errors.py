"""Monte-Carlo errors are what they are said to be: real data, forty seeds, every sampler.

A mean that a fit states with a standard error is compared with that of one long run. Over seeds the
differences, divided by their standard errors, have a root mean square of one.
"""

from __future__ import annotations

import csv
import functools
import gzip
from pathlib import Path

import numpy as np
import pytest

import revealed as rv
from revealed._types import Floats

DATA = Path(__file__).parents[3] / "shared" / "data" / "electricity.csv.gz"
COEFFICIENTS = ("pf", "cl", "loc", "wk", "tod", "seas")
ACTIONS, SEEDS = 4, 40
# Of the root mean square of 240 scores, which are independent between seeds only.
LOW, HIGH = 0.85, 1.15
DRAWS, LONG_DRAWS = 500, 10_000
FEW = 300
# Decisions, and iterations for each draw: data augmentation takes many on these, as few of the
# choices are sure.
CASES = {
    "composite": (None, 1),
    "laplace": (None, 1),
    "ibis": (FEW, 1),
    "px-scale": (FEW, 20),
    "da": (FEW, 60),
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
@pytest.mark.parametrize("sampler", list(CASES))
def test_scores_of_means_over_seeds_have_the_size_that_is_stated(sampler: str) -> None:
    count, thin = CASES[sampler]
    decisions, (exact, its_error) = electricity()[:count], long_run(count)
    scores = []
    for seed in range(SEEDS):
        post = rv.fit(decisions, sampler=sampler, draws=DRAWS, thin=thin, seed=seed, progress=False)
        error = np.hypot(post.summary().mcse, its_error)
        scores.append((post.mean() - exact) / error)
    size = float(np.sqrt(np.mean(np.square(scores))))
    print(f"{sampler}: rms of {np.size(scores)} scores {size:.3f}")
    assert LOW < size < HIGH
