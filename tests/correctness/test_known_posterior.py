"""The exact posterior of the two-state example of docs/mathematics.md, and what it catches.

`tests/conformance` compares every sampler with it; here are the wrong ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import revealed as rv
from revealed._types import Floats
from revealed.kernels.parameter_expansion import ExpansionMove
from revealed.models.priors import Prior
from revealed.samplers.data_augmentation import AugmentationOptions
from tests.conformance import oracles
from tests.conformance.oracles import find_oracle
from tests.support.cases import (
    build_patched_sampler,
    build_sampler,
    long_run,
    two_states,
)
from tests.support.statistical_asserts import (
    assert_error,
    assert_mean,
    assert_sd,
    must_fail,
    patched_package,
)

EXACT: dict[str, tuple[Prior, float, float]] = {
    "normal prior": (rv.Normal(3.0**0.5), 0.631026, 0.747402),
    "flat prior": (rv.Flat(), 1.06463, 0.99780),
}
DRAWS = 200_000
pytestmark = pytest.mark.proves(model="choices, normal prior", problem="two states")


@pytest.mark.proves(part="the published moments of the two-state example")
@pytest.mark.parametrize("prior_name", EXACT)
def test_published_moments_are_those_of_the_exact_likelihood(prior_name: str) -> None:
    prior, mean, sd = EXACT[prior_name]
    first = np.linspace(-12, 16, 200_001)
    values = np.stack([first, -first], axis=1)
    log_density = rv.log_likelihood(two_states(), values[::20]).sum(axis=1)
    log_density = np.interp(first, first[::20], log_density)
    if isinstance(prior, rv.Normal):
        log_density = log_density - 2 * first**2 / (2 * 3.0)
    weight = np.exp(log_density - log_density.max())
    weight /= weight.sum()
    found = weight @ first
    assert_error([found - mean, np.sqrt(weight @ (first - found) ** 2) - sd], 1e-5)


def assert_moments(draws: Floats, mean: float, sd: float) -> None:
    assert_mean(draws, mean, false_alarm=1e-6)
    assert_sd(draws, mean, sd, false_alarm=1e-6)


HAAR = AugmentationOptions()  # an improper working prior, the Haar measure
PROPER = AugmentationOptions(a=2.0, b=3.0)  # an inverse gamma working prior
METROPOLIS = AugmentationOptions("metropolis")  # utilities as in the paper
Spoil = Callable[[ExpansionMove], ExpansionMove]
MUTANTS: dict[str, tuple[str, str, AugmentationOptions, Spoil]] = {
    "shape P/2 under the flat prior": (
        "flat prior",
        "px-both",
        HAAR,
        lambda m: m._replace(lost_df=0.0),
    ),
    "shape P/2 - 1 under the flat prior": (
        "flat prior",
        "px-both",
        HAAR,
        lambda m: m._replace(lost_df=2.0),
    ),
    "IG(a, b) without the chi-squared term": (
        "flat prior",
        "px-both",
        PROPER,
        lambda m: m._replace(lost_df=0.0),
    ),
    "no Jacobian": ("normal prior", "px-scale", HAAR, lambda m: m._replace(lost_df=6.0)),
    "missing sum to zero": (
        "normal prior",
        "px-both",
        HAAR,
        lambda m: m._replace(constants=m.constants[:0]),
    ),
    "wrong sign of z2": (
        "normal prior",
        "px-translate",
        METROPOLIS,
        lambda m: m._replace(constant_utilities=-m.constant_utilities),
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_wrong_expansion_move_is_caught(name: str) -> None:
    prior_name, sampler_name, options, spoil = MUTANTS[name]
    prior, mean, sd = EXACT[prior_name]
    sampler = build_sampler((sampler_name, options), two_states(), prior)
    wrong = replace(sampler, move=spoil(sampler.move))
    with must_fail(name, model=f"choices, {prior_name}", sampler=sampler_name):
        assert_moments(long_run(wrong, DRAWS, seed=1, init=np.zeros(2))[:, 0], mean, sd)


@pytest.mark.proves(model="choices, flat prior")
def test_counting_both_translations_of_action_rewards_is_caught() -> None:
    """The translations of both blocks shift utilities alike: one degree of freedom is lost."""
    oracle = find_oracle("action rewards", "flat")
    sampler = build_sampler(("px-both", AugmentationOptions()), oracle.data, rv.Flat())
    assert sampler.move.lost_df == 1.0
    wrong = replace(sampler, move=sampler.move._replace(lost_df=2.0))
    with must_fail("both translations of action rewards counted", sampler="px-both"):
        draws = long_run(wrong, 600_000, seed=2, init=np.zeros(4))
        oracles.assert_moments(draws, oracle.exact())


REVERSE = "    log_ratio += 0.5 * (((z - m) / s) ** 2 - ((current - m) / s) ** 2)\n"
SOURCE_MUTANTS: dict[str, tuple[str, str, str, str, AugmentationOptions]] = {
    "MH without the reverse term": (
        "px-both",
        "kernels/utilities.py",
        REVERSE.strip(),
        "pass",
        METROPOLIS,
    ),
    "every exact proposal accepted": (
        "px-both",
        "kernels/utilities.py",
        "if allowed <= log_ratio:\n                accepted = True\n                break",
        "accepted = True\n            break",
        HAAR,
    ),
    "noise of the coefficients not rescaled": (
        "px-both",
        "kernels/parameter_expansion.py",
        "root * rng.standard_normal()",
        "rng.standard_normal()",
        HAAR,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SOURCE_MUTANTS)
def test_wrong_kernel_is_caught(name: str, tmp_path: Path) -> None:
    sampler_name, file, old, new, options = SOURCE_MUTANTS[name]
    prior, mean, sd = EXACT["normal prior"]
    package = patched_package(tmp_path, file, old, new)
    wrong = build_patched_sampler(package, (sampler_name, options), two_states(), prior)
    with must_fail(name, sampler=sampler_name):
        assert_moments(long_run(wrong, DRAWS, seed=1, init=np.zeros(2))[:, 0], mean, sd)
