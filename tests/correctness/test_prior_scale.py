"""Normal(HalfStudentT()): value and scale of the prior have their exact joint law.

Each move of the default sampler alone, and wrong ones; `tests/conformance` has every sampler.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed._types import Floats
from revealed.kernels import prior_scale
from revealed.samplers.composite import transform
from revealed.samplers.data_augmentation import AugmentationOptions
from tests.conformance.oracles import CORRELATED_PRIOR, Moments, find_oracle
from tests.conformance.oracles import few_features as features
from tests.conformance.problems import SCALE
from tests.support.cases import (
    build_patched_sampler,
    build_sampler,
    fixed_cycle,
    skewed_cycle,
    two_states,
    warmed_up_draws,
)
from tests.support.statistical_asserts import (
    assert_mean,
    assert_sd,
    must_fail,
    patched_package,
)

pytestmark = pytest.mark.proves(model="choices, inferred prior scale")
INFERRED_SCALE = rv.Normal(rv.HalfStudentT(scale=SCALE))
DRAWS = 200_000
COMPOSITE = ("composite", AugmentationOptions())


def two_states_law() -> Moments:
    """Of the first value and of the log scale."""
    mean, sd = find_oracle("two states", "inferred sd").exact()
    return mean[[0, 2]], sd[[0, 2]]


def features_law() -> Moments:
    """Of both coefficients and of the log scale."""
    return find_oracle("correlated prior", "inferred sd").exact()


def run(sampler: Any, draws: int, seed: int = 1) -> Floats:
    """(draws, columns) the free coefficients and the log scale, after a warm-up."""
    made, _ = warmed_up_draws(np.random.default_rng(seed), sampler, 1000, draws)
    return columns(sampler, made)


def columns(sampler: Any, made: dict[str, Floats]) -> Floats:
    values = made["value"]
    free = values[:, :1] if sampler.resolved_prior.constant_directions.size else values
    return np.column_stack([free, np.log(made["prior_sd"])])


def assert_moments(found: Floats, exact: Moments) -> None:
    for x, mean, sd in zip(found.T, *exact, strict=True):
        assert_mean(x, mean, false_alarm=1e-6)
        assert_sd(x, mean, sd, false_alarm=1e-6)


CYCLES = {
    "hmc": (1, 0, 0),
    "augmentation": (0, 1, 0),
    "independence": (0, 0, 1),
    "all": (1, 1, 3),
}
"""How many moves of each kind are made in turn: Hamiltonian, augmentation, independence."""
COORDINATES = {"linear": fixed_cycle, "skewed": skewed_cycle}


def run_fixed_cycle(
    sampler: Any, coordinates: str, moves: tuple[int, int, int], draws: int
) -> Floats:
    """The same by a fixed cycle of the default sampler in fixed coordinates.

    Skewed coordinates have one more, which moves constants.
    """
    rng = np.random.default_rng(1)
    state = COORDINATES[coordinates](sampler, rng, *moves)
    return columns(sampler, sampler.sample(rng, state, draws, 1)[1])


@pytest.mark.proves(sampler="composite")
@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("moves", CYCLES.values(), ids=CYCLES)
def test_each_move_of_the_default_sampler_has_the_exact_law(
    coordinates: str, moves: tuple[int, int, int]
) -> None:
    assert_moments(
        run_fixed_cycle(
            build_sampler(COMPOSITE, two_states(), INFERRED_SCALE), coordinates, moves, DRAWS
        ),
        two_states_law(),
    )


def test_scale_drawn_with_one_coordinate_too_many_is_caught() -> None:
    sampler = build_sampler(("px-both", AugmentationOptions()), two_states(), INFERRED_SCALE)
    wrong = replace(sampler, prior_scale=sampler.prior_scale._replace(dimension=2))
    with must_fail("a scale drawn with one coordinate too many", sampler="px-both"):
        assert_moments(run(wrong, DRAWS), two_states_law())


def test_factor_that_does_not_follow_the_scale_is_caught() -> None:
    sampler = build_sampler(("da", AugmentationOptions()), features(), CORRELATED_PRIOR)
    wrong = replace(
        sampler,
        prior_scale=sampler.prior_scale._replace(
            gram_eigenvalues=2.0 * sampler.prior_scale.gram_eigenvalues
        ),
    )
    with must_fail("a factor that does not follow the scale", sampler="da"):
        assert_moments(run(wrong, DRAWS), features_law())


def test_scale_integrated_out_with_one_coordinate_too_few_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        transform,
        "marginal_table",
        lambda width, scale: prior_scale.marginal_table(width - 1, scale),
    )
    wrong = build_sampler(COMPOSITE, features(), CORRELATED_PRIOR)
    with must_fail("a scale integrated out with one coordinate too few", sampler="composite"):
        assert_moments(run_fixed_cycle(wrong, "linear", CYCLES["hmc"], DRAWS), features_law())


# Also without what keeps the scale within the interval: with it, this would be a Metropolis step,
# and right.
NOT_TRUNCATED = (
    "least + (most - least) * rng.random())\n"
    "    change = new / sd - 1.0\n"
    "    # Rounding, at the edge of a far interval, must not contradict a choice.\n"
    "    if not low <= change <= high:",
    "rng.random())\n    change = new / sd - 1.0\n    if False:",
)
MUTANTS = {
    "Jacobian of scaling the value forgotten": (
        "kernels/prior_scale_path.py",
        "\n        + (target.unwhiten.shape[1] - count_coordinates(target.noise)) * log_factor",
        "",
        "hmc",
    ),
    "utilities do not follow the scale": (
        "kernels/prior_scale.py",
        "w[p] += change * offset_utility[p]",
        "pass",
        "augmentation",
    ),
    "constants do not follow the scale": (
        "kernels/augmentation_sweep.py",
        "block_constants[block] *= new / sd",
        "pass",
        "augmentation",
    ),
    "hyperprior not truncated to the interval": (
        "kernels/prior_scale.py",
        NOT_TRUNCATED[0],
        NOT_TRUNCATED[1],
        "augmentation",
    ),
    "every proposed scale accepted": (
        "kernels/prior_scale.py",
        "if bound - rng.standard_exponential() <= _log_density(u, a, c, z)[0]:",
        "if True:",
        "augmentation",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_wrong_kernel_is_caught(name: str, tmp_path: Path) -> None:
    file, old, new, moves = MUTANTS[name]
    package = patched_package(tmp_path, file, old, new)
    sampler = build_patched_sampler(package, COMPOSITE, two_states(), INFERRED_SCALE)
    with must_fail(name, sampler="composite"):
        assert_moments(run_fixed_cycle(sampler, "skewed", CYCLES[moves], DRAWS), two_states_law())
