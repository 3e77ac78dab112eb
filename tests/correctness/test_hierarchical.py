"""Hierarchical groups: the moves have the right laws one by one, and wrong ones are caught."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats as st
from scipy.special import digamma

import revealed as rv
from revealed._types import Floats
from revealed.data.decisions import Decisions
from revealed.kernels.hmc import PathOutcome
from revealed.kernels.population import draw_inverse_wishart
from revealed.models.priors import resolve_prior
from revealed.samplers import hierarchical
from revealed.samplers.hierarchical import HierarchicalSampler
from revealed.samplers.noncentred import PopulationMove
from tests.conformance.problems import SD_SCALE as SCALE
from tests.conformance.problems import draw_population_covariance
from tests.support.cases import warmed_up_draws
from tests.support.statistical_asserts import (
    assert_law,
    assert_mean,
    must_fail,
    patched_package,
    record_check,
)

pytestmark = pytest.mark.proves(model="population", sampler="hierarchical")
PRIOR = rv.Normal(2.0**0.5)


def build(by_group: list[Decisions], scale: float) -> HierarchicalSampler:
    """The sampler for the decisions of these groups."""
    whole = by_group[0]
    for more in by_group[1:]:
        whole = whole + more
    group = np.repeat(np.arange(len(by_group)), [len(d) for d in by_group])
    return HierarchicalSampler.build(whole, group, resolve_prior(PRIOR, whole), scale, threads=1)


def draws_without_information(draws: int) -> Floats:
    """(draws, 5) log sds, the correlation and its square, and the mean.

    Of groups that only had decisions of one action, which say nothing.
    """
    offers = [Decisions([[1.0, 0.5]], [0, 1], [0]) for _ in range(3)]
    sampler = build(offers, SCALE)
    made, _ = warmed_up_draws(np.random.default_rng(1), sampler, 600, draws)
    covariance = made["population_covariance"]
    sd = np.sqrt(np.einsum("nkk->nk", covariance))
    correlation = covariance[:, 1, 0] / sd.prod(axis=1)
    mean = made["population_mean"][:, 0]
    return np.column_stack([np.log(sd), correlation, correlation**2, mean])


# the mean of log |t| with two degrees of freedom
MEAN_LOG_T = 0.5 * (np.euler_gamma + digamma(0.5) + np.log(2.0))
PRIOR_MEANS = (MEAN_LOG_T + np.log(SCALE), MEAN_LOG_T + np.log(SCALE), 0.0, 1.0 / 3.0, 0.0)


OTHER_MOVES = {
    "draw_population": ("hmc_noncentred", "slice_sample_sd"),
    "hmc_noncentred": ("slice_sample_sd",),
    "slice_sample_sd": ("hmc_noncentred",),
}
"""Each move of the population, and those that would correct its mistakes and are left out."""


NO_MOVE: dict[str, Any] = {
    "hmc_noncentred": lambda rng, prior, metric, step_size, mean, root, current, likelihood: (
        PopulationMove(
            mean, root, current.log_likelihood, PathOutcome(0.8, False, False, 1), np.zeros(5)
        )
    ),
    "slice_sample_sd": lambda rng, prior, log_sd_spread, mean, root, log_likelihood, *_: (
        root,
        log_likelihood,
    ),
}


def assert_prior_means(found: Floats) -> None:
    for x, mean in zip(found.T, PRIOR_MEANS, strict=True):
        assert_mean(x, mean, false_alarm=1e-6)


def leave_out(patch: pytest.MonkeyPatch, others: tuple[str, ...]) -> None:
    for other in others:
        patch.setattr(hierarchical, other, NO_MOVE[other])


@pytest.mark.parametrize("part", OTHER_MOVES)
def test_population_without_information_has_its_prior(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For each move alone: a wrong Jacobian would show, as nothing else moves the population."""
    leave_out(monkeypatch, OTHER_MOVES[part])
    assert_prior_means(draws_without_information(12_000))


MUTATED_FILE = "kernels/population.py"
MUTANTS = {
    "Jacobian of the slice sampler miscounted": (
        ("slice_sample_sd", "samplers.noncentred"),
        "-(SD_PRIOR_DF + width - 1.0) * log_factor",
        "-(SD_PRIOR_DF + width - 1.5) * log_factor",
    ),
    "Jacobian of the noncentred path miscounted": (
        ("hmc_noncentred", "samplers.noncentred"),
        "(SD_PRIOR_DF + width - 1.0) * theta[width + i]",
        "(SD_PRIOR_DF + width - 1.5) * theta[width + i]",
    ),
    "a degree of freedom too many": (
        ("draw_population", "kernels.population"),
        "SD_PRIOR_DF + width - 1.0 + count, rate",
        "SD_PRIOR_DF + width + count, rate",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_wrong_population_move_is_caught(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (part, module), old, new = MUTANTS[name]
    package = patched_package(tmp_path, MUTATED_FILE, old, new)
    wrong = importlib.import_module(f"{package.__name__}.{module}")
    monkeypatch.setattr(hierarchical, part, getattr(wrong, part))
    leave_out(monkeypatch, OTHER_MOVES[part])
    with must_fail(name):
        try:
            assert_prior_means(draws_without_information(20_000))
        except np.linalg.LinAlgError as broken:
            record_check(
                False, f"the wrong covariance ran away and broke down: {broken}", how="breakdown"
            )


@pytest.mark.proves(part="a population's prior")
def test_draws_of_the_population_prior_have_its_law() -> None:
    """Sds are scale times |t| with two degrees of freedom, and correlations uniform."""
    rng = np.random.default_rng(1)
    drawn = np.array([draw_population_covariance(rng, np.arange(3)) for _ in range(4000)])
    sd = np.sqrt(np.einsum("nkk->nk", drawn))
    for k in range(3):
        assert_law(1.0 - 2.0 * st.t.sf(sd[:, k] / SCALE, 2), false_alarm=1e-6 / 6)
        other = (k + 1) % 3
        correlation = drawn[:, k, other] / sd[:, k] / sd[:, other]
        assert_law(0.5 + 0.5 * correlation, false_alarm=1e-6 / 6)


@pytest.mark.proves(part="draws of an inverse Wishart")
def test_draws_of_an_inverse_wishart_have_its_mean() -> None:
    rng = np.random.default_rng(2)
    rate = np.array([[2.0, 0.5], [0.5, 1.0]])
    drawn = np.array([draw_inverse_wishart(rng, 12.0, rate) for _ in range(20_000)])
    for i, j in ((0, 0), (0, 1), (1, 1)):
        assert_mean(drawn[:, i, j], rate[i, j] / (12.0 - 2 - 1), false_alarm=1e-6)
