"""The exact posterior of the two-state example of docs/mathematics.md, for every engine; and the wrong samplers it catches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import understudy as us
from evidence import assert_error, assert_mean, assert_sd, caught, grid_moments, mutant
from problems import VARIANTS, build, label, long_run, rebuild, two_states
from understudy._arrays import Floats
from understudy.engines.augmented import Options
from understudy.kernels.expansion import Move
from understudy.priors import Prior

EXACT: dict[str, tuple[Prior, float, float]] = {
    "Gaussian prior": (us.Gaussian(3.0), 0.631026, 0.747402),
    "flat prior": (us.Flat(), 1.06463, 0.99780),
}
DRAWS = 200_000
pytestmark = pytest.mark.proves(model="choices, Gaussian prior", problem="two states")


@pytest.mark.proves(part="the published moments of the two-state example")
@pytest.mark.parametrize("which", EXACT)
def test_the_published_moments_are_those_of_the_exact_likelihood(which: str) -> None:
    prior, mean, sd = EXACT[which]
    first = np.linspace(-12, 16, 200_001)
    values = np.stack([first, -first], axis=1)
    log_density = us.log_likelihood(two_states(), values[::20]).sum(axis=1)
    log_density = np.interp(first, first[::20], log_density)
    if isinstance(prior, us.Gaussian):
        log_density = log_density - 2 * first**2 / (2 * 3.0)
    weight = np.exp(log_density - log_density.max())
    weight /= weight.sum()
    found = weight @ first
    assert_error([found - mean, np.sqrt(weight @ (first - found) ** 2) - sd], 1e-5)


def check(draws: Floats, mean: float, sd: float) -> None:
    assert_mean(draws, mean, false_alarm=1e-6)
    assert_sd(draws, mean, sd, false_alarm=1e-6)


@pytest.mark.proves(model="choices, {which}")
@pytest.mark.parametrize("which", EXACT)
@pytest.mark.parametrize("variant", VARIANTS, ids=label)
def test_every_engine_has_the_exact_mean_and_sd(variant: tuple[str, Options], which: str) -> None:
    prior, mean, sd = EXACT[which]
    draws = long_run(build(variant, two_states(), prior), DRAWS, seed=1, init=np.zeros(2))
    np.testing.assert_allclose(draws.sum(axis=1), 0.0, atol=1e-9)
    check(draws[:, 0], mean, sd)


@pytest.mark.parametrize("variant", [v for v in VARIANTS if "scale" not in v[0] and v[0] != "px-both"], ids=label)
def test_a_prior_mean_pulls_as_it_should(variant: tuple[str, Options]) -> None:
    """Against the exact posterior, for every engine that takes a prior mean: those without a scale move."""
    first = np.linspace(-8, 10, 18_001)
    values = np.stack([first, -first], axis=1)
    log_density = us.log_likelihood(two_states(), values).sum(axis=1) - (first - 2.0) ** 2 / 3.0
    mean, sd = grid_moments(values, log_density)
    engine = build(variant, two_states(), us.Gaussian(3.0, mean=[2.0, -2.0]))
    check(long_run(engine, DRAWS, seed=1, init=np.zeros(2))[:, 0], mean[0], sd[0])


HAAR, PROPER, PAPER = Options(), Options(a=2.0, b=3.0), Options("metropolis")
MUTANTS: dict[str, tuple[str, str, Options, Callable[[Move], Move]]] = {
    "shape P/2 under the flat prior": ("flat prior", "px-both", HAAR, lambda m: m._replace(lost=0.0)),
    "shape P/2 - 1 under the flat prior": ("flat prior", "px-both", HAAR, lambda m: m._replace(lost=2.0)),
    "IG(a, b) without the chi-squared term": ("flat prior", "px-both", PROPER, lambda m: m._replace(lost=0.0)),
    "no Jacobian": ("Gaussian prior", "px-scale", HAAR, lambda m: m._replace(lost=6.0)),
    "missing sum to zero": ("Gaussian prior", "px-both", HAAR, lambda m: m._replace(constants=m.constants[:0])),
    "wrong sign of z2": ("Gaussian prior", "px-translate", PAPER, lambda m: m._replace(offsets=-m.offsets)),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_move_is_caught(name: str) -> None:
    which, move, options, spoil = MUTANTS[name]
    prior, mean, sd = EXACT[which]
    engine = build((move, options), two_states(), prior)
    wrong = replace(engine, move=spoil(engine.move))
    with caught(name, model=f"choices, {which}", engine=move):
        check(long_run(wrong, DRAWS, seed=1, init=np.zeros(2))[:, 0], mean, sd)


REVERSE = "    log_ratio += 0.5 * (((z - m) / s) ** 2 - ((held - m) / s) ** 2)\n"
SOURCE_MUTANTS: dict[str, tuple[str, str, str, str, Options]] = {
    "MH without the reverse term": ("px-both", "kernels/utilities.py", REVERSE.strip(), "pass", PAPER),
    "every exact proposal accepted": (
        "px-both",
        "kernels/utilities.py",
        "if allowed <= log_ratio:\n                break",
        "break",
        HAAR,
    ),
    "noise of the coefficients not rescaled": (
        "px-both",
        "kernels/expansion.py",
        "root * rng.standard_normal()",
        "rng.standard_normal()",
        HAAR,
    ),
}


@pytest.mark.parametrize("name", SOURCE_MUTANTS)
def test_a_wrong_kernel_is_caught(name: str, tmp_path: Path) -> None:
    engine_name, file, old, new, options = SOURCE_MUTANTS[name]
    prior, mean, sd = EXACT["Gaussian prior"]
    wrong = rebuild(mutant(tmp_path, file, old, new), (engine_name, options), two_states(), prior)
    with caught(name, engine=engine_name):
        check(long_run(wrong, DRAWS, seed=1, init=np.zeros(2))[:, 0], mean, sd)
