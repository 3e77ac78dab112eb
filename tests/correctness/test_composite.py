"""Every move of the default sampler leaves the posterior invariant, alone and with others.

Wrong moves, made by changing one line of a kernel, are caught.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed._types import Floats
from revealed.samplers.data_augmentation import AugmentationOptions
from tests.conformance.oracles import skewed_decisions
from tests.support.cases import (
    build_patched_sampler,
    build_sampler,
    fixed_cycle,
    mark_slow,
    skewed_cycle,
)
from tests.support.statistical_asserts import (
    assert_mean,
    assert_sd,
    grid_moments,
    must_fail,
    patched_package,
)

pytestmark = pytest.mark.proves(model="choices, normal prior", sampler="composite")
COMPOSITE = ("composite", AugmentationOptions())
PRIOR_SD = 30.0**0.5
DRAWS = 1_500_000  # as many as the subtlest mutant needs to be seen
FEWER_DRAWS = 500_000  # of right samplers, by default
CYCLES = {
    "hmc": (1, 0, 0),
    "augmentation": (0, 1, 0),
    "independence": (0, 0, 1),
    "augmentation and independence": (0, 1, 1),
    "all": (1, 1, 3),
}
"""How many moves of each kind are made in turn: Hamiltonian, augmentation, independence."""


@functools.cache
def exact_moments() -> tuple[float, float]:
    """Mean and sd of its first coefficient, by a fine grid."""
    first = np.linspace(-30.0, 40.0, 14_001)
    values = np.stack([first, -first], axis=1)
    log_likelihood = rv.log_likelihood(skewed_decisions(), values).sum(axis=1)
    log_density = log_likelihood - (first / PRIOR_SD) ** 2
    mean, sd = grid_moments(values, log_density)
    return float(mean[0]), float(sd[0])


COORDINATES = {"linear": fixed_cycle, "skewed": skewed_cycle}


def draw_first_coefficient(
    sampler: Any, coordinates: str, moves: tuple[int, int, int], draws: int
) -> Floats:
    """(draws,) of the first coefficient by a fixed cycle in fixed coordinates, nothing adapted."""
    rng = np.random.default_rng(1)
    values = sampler.sample(rng, COORDINATES[coordinates](sampler, rng, *moves), draws, 1)[1][
        "value"
    ]
    np.testing.assert_allclose(values.sum(axis=1), 0.0, atol=1e-9)
    return np.asarray(values)[:, 0]


def assert_exact_moments(draws: Floats) -> None:
    mean, sd = exact_moments()
    assert_mean(draws, mean, false_alarm=1e-6)
    assert_sd(draws, mean, sd, false_alarm=1e-6)


@pytest.mark.parametrize("draws", mark_slow([FEWER_DRAWS, DRAWS], lambda n: n == FEWER_DRAWS))
@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("moves", CYCLES.values(), ids=CYCLES)
def test_each_move_alone_has_the_exact_mean_and_sd(
    coordinates: str, moves: tuple[int, int, int], draws: int
) -> None:
    sampler = build_sampler(COMPOSITE, skewed_decisions(), rv.Normal(PRIOR_SD))
    assert_exact_moments(draw_first_coefficient(sampler, coordinates, moves, draws))


EXACT_UTILITIES = """    utilities.draw_utilities(
        rng,
        augmentation.mu,
        augmentation.start,
        augmentation.chosen_row,
        augmentation.rivals,
        mode_offset,
        augmentation.w,
    )
    draw_expanded_value(
        rng, move, augmentation.design, augmentation.expansion_workspace, v, augmentation.w
    )
"""
METROPOLIS_UTILITIES = (
    EXACT_UTILITIES.replace("draw_utilities", "metropolis_utilities").replace("mode_offset", "0")
    + "    return True\n"
)
MUTANTS = {
    "goes on adapting the proposal": (
        "kernels/composite.py",
        "height[0], log_weight = new_height, new_log_weight",
        "height[0], log_weight = new_height, new_log_weight; mixture.mean[0] = x",
        "independence",
    ),
    "goes on adapting the step": (
        "kernels/composite.py",
        "cycle.step_size,",
        "3.0 * cycle.step_size * (0.2 + draws.acceptance[max(n - 1, 0)]) ** 2,",
        "hmc",
    ),
    "utilities redrawn by MH after a collapsed move": (
        "kernels/augmentation_sweep.py",
        EXACT_UTILITIES,
        METROPOLIS_UTILITIES,
        "augmentation and independence",
    ),
    "weight of the value before augmentation": (
        "kernels/composite.py",
        "gradient_is_current, weight_is_current = False, False",
        "gradient_is_current, weight_is_current = False, True",
        "all",
    ),
    "proposal's density forgotten": (
        "kernels/composite.py",
        "floor = proposal_density + log_weight",
        "floor = log_weight",
        "independence",
    ),
    "every Hamiltonian path accepted": (
        "kernels/hmc.py",
        "if rng.random() < probability:",
        "if True:",
        "hmc",
    ),
    "prior forgotten given the noise": (
        "kernels/interweaving.py",
        "if precision > 0.0:",
        "if precision > 1e9:",
        "augmentation",
    ),
    "utilities not moved with the value": (
        "kernels/interweaving.py",
        "gap[p] = max(gap[p] + s * margin_slope[p], 0.0)",
        "pass",
        "augmentation",
    ),
    "log-Jacobian of the skew transform forgotten": (
        "kernels/log_posterior.py",
        "return log_jacobian + math.log(jacobian)",
        "return 0.0",
        "independence",
    ),
    "constants of the value before augmentation forgotten": (
        "kernels/composite.py",
        "v, block_constants, x)\n                draws.acceptance[n] = 1.0",
        "v, 0.0 * block_constants, x)\n                draws.acceptance[n] = 1.0",
        "augmentation and independence",
    ),
    "weights of equal decisions forgotten": (
        "data/unique.py",
        "np.bincount(kind, weights, len(where))",
        "weights[where]",
        "independence",
    ),
}


SEEN_IN_SKEWED_COORDINATES = (
    "log-Jacobian of the skew transform forgotten",
    "constants of the value before augmentation forgotten",
)
"""Mutants that linear coordinates do not show."""
ALWAYS = "log-Jacobian of the skew transform forgotten"
"""Each mutant is a sampler to compile: this one is tried every time, the others with --slow.

Its machine code is kept from run to run, as that of the right sampler is.
"""


@pytest.mark.parametrize("name", mark_slow(MUTANTS, lambda name: name == ALWAYS))
def test_wrong_kernel_is_caught(name: str, tmp_path: Path) -> None:
    file, old, new, moves = MUTANTS[name]
    package = patched_package(tmp_path, file, old, new, keep=name == ALWAYS)
    wrong = build_patched_sampler(package, COMPOSITE, skewed_decisions(), rv.Normal(PRIOR_SD))
    coordinates = "skewed" if name in SEEN_IN_SKEWED_COORDINATES else "linear"
    with must_fail(name):
        assert_exact_moments(draw_first_coefficient(wrong, coordinates, CYCLES[moves], DRAWS))
