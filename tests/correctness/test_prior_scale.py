"""Normal(HalfStudentT()): value and scale of the prior have their exact joint law.

For every sampler; and wrong samplers are caught.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats as st

import revealed as rv
from revealed._types import Floats, Ints
from revealed.data.decisions import Decisions
from revealed.kernels import prior_scale
from revealed.models.priors import resolve_prior
from revealed.samplers.composite import transform
from revealed.samplers.data_augmentation import AugmentationOptions
from tests.support.cases import (
    CALIBRATION_CASES,
    CALIBRATION_OFFERS,
    VARIANTS,
    build_patched_sampler,
    build_sampler,
    choose,
    fixed_cycle,
    label,
    skewed_cycle,
    two_states,
    warmed_up_draws,
)
from tests.support.statistical_asserts import (
    assert_mean,
    assert_sd,
    assert_uniform_ranks,
    must_fail,
    patched_package,
)

pytestmark = pytest.mark.proves(model="choices, inferred prior scale")
SCALE = 2.0
INFERRED_SCALE = rv.Normal(rv.HalfStudentT(scale=SCALE))
DRAWS = 200_000
COMPOSITE = ("composite", AugmentationOptions())


def exact_law(
    values: Floats, log_likelihood: Floats, quad: Floats, width: int
) -> tuple[Floats, Floats]:
    """Means and sds of the columns of values (n, K) and of the log scale, on a grid of both.

    quad: (n,) the values' squared length under the prior of scale one. width: free coordinates.
    """
    logs = np.linspace(-14.0, 8.0, 301)
    sd = np.exp(logs)
    hyper = st.t.logpdf(sd / SCALE, 4) + logs - width * logs
    weight = np.exp(log_likelihood[:, None] - 0.5 * quad[:, None] / sd**2 + hyper)
    weight /= weight.sum()
    over_values, over_scales = weight.sum(axis=1), weight.sum(axis=0)
    mean = np.append(over_values @ values, over_scales @ logs)
    return mean, np.sqrt(np.append(over_values @ values**2, over_scales @ logs**2) - mean**2)


def points_dense_at_zero(count: int) -> tuple[Floats, Floats]:
    """Points on a line, ever closer towards zero, where the prior has a pole; and log distances."""
    even = np.linspace(-9.0, 9.0, count)
    return np.sinh(even) / 100, np.log(np.cosh(even))


@functools.cache
def two_states_law() -> tuple[Floats, Floats]:
    first, step = points_dense_at_zero(2000)
    values = np.stack([first, -first], axis=1)
    log_likelihood = rv.log_likelihood(two_states(), values).sum(axis=1) + step
    return exact_law(values[:, :1], log_likelihood, 2.0 * first**2, 1)


def features() -> Decisions:
    """Two features of different sizes, six choices among three actions."""
    rng = np.random.default_rng(8)
    return Decisions(
        rng.standard_normal((18, 2)) * [1.0, 0.4], np.arange(7) * 3, [0, 2, 1, 1, 0, 2]
    )


CORRELATION = np.array([[1.0, 0.6], [0.6, 2.0]])
CORRELATED_PRIOR = rv.Normal(rv.HalfStudentT(scale=SCALE), covariance=CORRELATION)


@functools.cache
def features_law() -> tuple[Floats, Floats]:
    axis, step = points_dense_at_zero(260)
    values = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    log_likelihood = (
        rv.log_likelihood(features(), values).sum(axis=1) + (step[:, None] + step).ravel()
    )
    quad = np.einsum("ni,ij,nj->n", values, np.linalg.inv(CORRELATION), values)
    return exact_law(values, log_likelihood, quad, 2)


def run(sampler: Any, draws: int, seed: int = 1) -> Floats:
    """(draws, columns) the free coefficients and the log scale, after a warm-up."""
    made, _ = warmed_up_draws(np.random.default_rng(seed), sampler, 1000, draws)
    return columns(sampler, made)


def columns(sampler: Any, made: dict[str, Floats]) -> Floats:
    values = made["value"]
    free = values[:, :1] if sampler.resolved_prior.constant_directions.size else values
    return np.column_stack([free, np.log(made["prior_sd"])])


def assert_moments(found: Floats, exact: tuple[Floats, Floats]) -> None:
    for x, mean, sd in zip(found.T, *exact, strict=True):
        assert_mean(x, mean, false_alarm=1e-6)
        assert_sd(x, mean, sd, false_alarm=1e-6)


@pytest.mark.parametrize("variant", VARIANTS, ids=label)
def test_every_sampler_has_the_exact_law_of_value_and_scale(
    variant: tuple[str, AugmentationOptions],
) -> None:
    assert_moments(
        run(build_sampler(variant, two_states(), INFERRED_SCALE), DRAWS), two_states_law()
    )


@pytest.mark.proves(sampler="{name}")
@pytest.mark.parametrize("name", ["da", "px-scale", "composite"])
def test_correlated_prior_with_inferred_scale_has_the_exact_law(name: str) -> None:
    assert_moments(
        run(build_sampler((name, AugmentationOptions()), features(), CORRELATED_PRIOR), DRAWS),
        features_law(),
    )


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
        "\n        + target.unwhiten.shape[1] * log_factor",
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


ALWAYS = [
    (v, p)
    for v, p in CALIBRATION_CASES
    if label(v) in ("da-exact", "px-both-metropolis", "composite-exact") and p == "mdp"
]
KEPT = 31  # draws that a truth is ranked among


def thinning(name: str) -> int:
    """Iterations between draws: the paper's samplers mix slowly in the prior's scale."""
    return {"composite": 10, "px-both": 30, "px-scale": 60}.get(name, 100)


def ranks(
    variant: tuple[str, AugmentationOptions],
    problem: str,
    replications: int,
    seed: int,
    extra_dimensions: int = 0,
) -> Ints:
    """(replications, K + 1) ranks of the true coefficients and scale among thinned draws.

    extra_dimensions: a mistake, coordinates that the scale is given and does not have.
    """
    offers, thin, rng = (
        CALIBRATION_OFFERS[problem],
        thinning(variant[0]),
        np.random.default_rng(seed),
    )
    resolved_prior = resolve_prior(rv.Normal(1.0), offers)
    out = np.empty((replications, len(offers.names) + 1), dtype=np.int64)
    for i in range(replications):
        sd = SCALE * abs(rng.standard_t(4))
        truth = sd * resolved_prior.draw(rng, 1)[0]
        seen = offers.with_choices(choose(rng, offers, truth)[0])
        sampler = build_sampler(variant, seen, INFERRED_SCALE)
        if extra_dimensions:
            wrong = sampler.prior_scale.dimension + extra_dimensions
            sampler = replace(sampler, prior_scale=sampler.prior_scale._replace(dimension=wrong))
        warmup = 10 * thin if variant[0] == "composite" else 5 * thin
        draws, _ = warmed_up_draws(rng, sampler, warmup, KEPT, thin)
        out[i, :-1] = (draws["value"] < truth).sum(axis=0)
        out[i, -1] = (draws["prior_sd"] < sd).sum()
    return out


@pytest.mark.parametrize(
    ("variant", "problem"), ALWAYS, ids=lambda x: x if isinstance(x, str) else label(x)
)
def test_ranks_are_uniform(variant: tuple[str, AugmentationOptions], problem: str) -> None:
    """100 replications."""
    assert_uniform_ranks(ranks(variant, problem, 100, seed=4), KEPT, false_alarm=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variant", "problem"), CALIBRATION_CASES, ids=lambda x: x if isinstance(x, str) else label(x)
)
def test_ranks_are_uniform_in_the_long_run(
    variant: tuple[str, AugmentationOptions], problem: str
) -> None:
    assert_uniform_ranks(ranks(variant, problem, 1_500, seed=5), KEPT, false_alarm=1e-6)


def test_wrong_law_of_the_scale_is_caught_by_ranks() -> None:
    with must_fail("a scale drawn with six coordinates too many", sampler="px-both"):
        assert_uniform_ranks(
            ranks(("px-both", AugmentationOptions()), "mdp", 160, seed=4, extra_dimensions=6),
            KEPT,
            false_alarm=1e-6,
        )
