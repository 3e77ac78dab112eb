"""Independence steps that propose from the prior's shape: exact, and wrong versions are caught.

The chains make no other moves, so that whatever is wrong with the part shows.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from revealed._types import Floats
from revealed.samplers.composite import prior_part
from tests.conformance.oracles import CORRELATED_PRIOR
from tests.conformance.oracles import few_features as features
from tests.correctness.test_prior_scale import (
    COMPOSITE,
    COORDINATES,
    INFERRED_SCALE,
    assert_moments,
    columns,
    features_law,
    two_states_law,
)
from tests.support.cases import build_patched_sampler, build_sampler, two_states
from tests.support.statistical_asserts import (
    assert_error,
    must_fail,
    patched_package,
    patched_source,
)

pytestmark = pytest.mark.proves(model="choices, inferred prior scale", sampler="composite")
DRAWS = 200_000
# The part's share of the proposal, and which of its scales: a quarter of the prior's.
SHARE, WHICH = 0.4, 4


def run_with_prior_part(
    sampler: Any, coordinates: str, module: ModuleType = prior_part, draws: int = DRAWS
) -> Floats:
    """Draws by independence steps alone, from a mixture with a part of the prior's shape.

    module: that of the part, which may be a mutant.
    """
    rng = np.random.default_rng(1)
    state = COORDINATES[coordinates](sampler, rng, 0, 0, 1)
    mixture = with_prior_part(sampler, state, module)
    state |= {f"mixture/{name}": array for name, array in mixture._asdict().items()}
    return columns(sampler, sampler.sample(rng, state, draws, 1)[1])


def with_prior_part(sampler: Any, state: Any, module: ModuleType) -> Any:
    """The mixture of a state, with a part of the prior's shape."""
    package = type(sampler).__module__.rpartition(".")[0]
    states = importlib.import_module(f"{package}.state")
    target, _ = sampler.posterior(states.unpack_transform(state))
    parts = module.PriorParts.build(target, sampler.prior_scale(state["x"].size))
    return parts.add_to(states.unpack_mixture(state, "mixture"), SHARE, WHICH)


CASES = {
    "two states": (two_states, INFERRED_SCALE, two_states_law),
    "correlated features": (features, CORRELATED_PRIOR, features_law),
}


@pytest.mark.proves(problem="{problem}")
@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("problem", CASES)
def test_steps_from_the_shape_of_the_prior_have_the_exact_law(
    problem: str, coordinates: str
) -> None:
    decisions, prior, law = CASES[problem]
    sampler = build_sampler(COMPOSITE, decisions(), prior)
    assert_moments(run_with_prior_part(sampler, coordinates), law())


@pytest.mark.parametrize("coordinates", COORDINATES)
def test_the_part_is_a_density(coordinates: str) -> None:
    """Summed over two coordinates, in log radius about the pole and angle; at every scale."""
    sampler = build_sampler(COMPOSITE, features(), CORRELATED_PRIOR)
    state = COORDINATES[coordinates](sampler, np.random.default_rng(1), 0, 0, 1)
    states = importlib.import_module("revealed.samplers.composite.state")
    transform = states.unpack_transform(state)
    target, _ = sampler.posterior(transform)
    parts = prior_part.PriorParts.build(target, sampler.prior_scale(2))
    # Polar coordinates of v about the pole, and |dx/dv| by the slopes of the skew curves.
    log_radius, angle = np.linspace(-25.0, 12.0, 1200), np.linspace(0.0, 2.0 * np.pi, 400)[:-1]
    radius = np.exp(log_radius)[:, None, None]
    v = (radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)).reshape(-1, 2)
    x = transform.coordinates(v)
    w = x @ transform.unwhiten.T
    slopes = transform.scale * (1.0 + transform.skew * w / np.sqrt(1.0 + w * w))
    jacobian = np.abs(np.linalg.det(transform.unwhiten)) * slopes.prod(axis=1)
    area = (radius**2 * (log_radius[1] - log_radius[0]) * (angle[1] - angle[0])).repeat(len(angle))
    total = (np.exp(parts.log_densities(x)) * (area / jacobian)[:, None]).sum(axis=0)
    # the table is interpolated by straight lines here, which is off by a part in a thousand
    assert_error(total - 1.0, 2e-3)


PYTHON_MUTANTS = {
    "density of the part not rescaled with its scale": (
        "log_constants = width * np.log(ratios) - log_integral",
        "log_constants = 0.0 * ratios - log_integral",
    ),
    "Jacobian of the part's coordinates forgotten": (" + np.log(np.diag(root)).sum()", ""),
    "part drawn wider than its density": (
        "prior_factor=self.factor,",
        "prior_factor=1.2 * self.factor,",
    ),
}


@pytest.mark.parametrize("name", PYTHON_MUTANTS)
def test_wrong_part_is_caught(name: str) -> None:
    wrong = patched_source(prior_part, *PYTHON_MUTANTS[name])
    sampler = build_sampler(COMPOSITE, features(), CORRELATED_PRIOR)
    with must_fail(name):
        assert_moments(run_with_prior_part(sampler, "skewed", wrong), features_law())


FILE = "kernels/prior_part.py"
MUTANTS = {
    "Jacobian of the skew curves forgotten": (FILE, " + prior + log_jacobian", " + prior"),
    "share of the normals forgotten": (
        FILE,
        "first = math.log1p(-share) + log_density",
        "first = log_density",
    ),
    "part drawn at the prior's own scale": (
        FILE,
        "sd = mixture.prior_part[1] *",
        "sd = prior_scale.scale *",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_wrong_kernel_is_caught(name: str, tmp_path: Path) -> None:
    package = patched_package(tmp_path, *MUTANTS[name])
    sampler = build_patched_sampler(package, COMPOSITE, two_states(), INFERRED_SCALE)
    module = importlib.import_module(f"{package.__name__}.samplers.composite.prior_part")
    with must_fail(name):
        assert_moments(run_with_prior_part(sampler, "skewed", module), two_states_law())
