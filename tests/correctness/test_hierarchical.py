"""Hierarchical groups: calibrated, for features and for blocks that sum to zero.

Its moves have the right laws one by one, and wrong ones are caught.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats as st
from scipy.special import digamma

import revealed as rv
from revealed._types import Floats, Ints
from revealed.data.decisions import Decisions
from revealed.kernels.group_values import draw_group_values
from revealed.kernels.hmc import PathOutcome
from revealed.kernels.population import SD_PRIOR_DF, draw_inverse_wishart
from revealed.models.priors import resolve_prior
from revealed.samplers import hierarchical
from revealed.samplers.hierarchical import HierarchicalSampler
from revealed.samplers.noncentred import PopulationMove
from tests.support.cases import choose, mdp_offers, ragged_offers, warmed_up_draws
from tests.support.statistical_asserts import (
    assert_law,
    assert_mean,
    assert_uniform_ranks,
    must_fail,
    patched_package,
    record_check,
)

pytestmark = pytest.mark.proves(model="population", sampler="hierarchical")
GROUPS = 6
DRAWS = 15  # that a truth is ranked among
THIN = 9  # the slowest autocorrelation time is 4 to 8 iterations
WARMUP = 160
PRIOR = rv.Normal(2.0**0.5)
SCALE = 1.0  # of the population's sds under their prior
OFFERS = {
    "features": [ragged_offers(2, 6, seed=i) for i in range(GROUPS)],
    "states": [mdp_offers(states=3, actions=3, count=6, seed=7) for _ in range(GROUPS)],
}


def draw_covariance(rng: np.random.Generator, scale_group: Ints) -> Floats:
    """(width, width) covariance of the population, from its prior.

    scale_group: (width,) which coefficients share a scale.
    """
    a = (1.0 / SCALE**2) / rng.standard_gamma(0.5, scale_group.max() + 1)
    return draw_inverse_wishart(
        rng, SD_PRIOR_DF + len(scale_group) - 1.0, np.diag(2.0 * SD_PRIOR_DF / a[scale_group])
    )


def simulate(rng: np.random.Generator, offers: list[Decisions]) -> tuple[list[Decisions], Floats]:
    """The choices of groups drawn from a population drawn from its prior.

    And all that was drawn, in the order of the sampler's draws: mean, covariance, groups.
    """
    resolved_prior = resolve_prior(PRIOR, offers[0])
    mean = resolved_prior.draw(rng, 1)[0] @ resolved_prior.basis
    covariance = draw_covariance(rng, hierarchical.scale_groups(resolved_prior))
    q = mean + rng.standard_normal((len(offers), len(mean))) @ np.linalg.cholesky(covariance).T
    seen = [
        d.with_choices(choose(rng, d, resolved_prior.basis @ each)[0])
        for d, each in zip(offers, q, strict=True)
    ]
    return seen, np.concatenate([mean, covariance.ravel(), q.ravel()])


def ranked_quantities(x: Floats, width: int) -> Floats:
    """(..., quantities) mean, sds, correlations, the first group, and the last one's distance."""
    covariance = x[..., width : width + width**2].reshape(*x.shape[:-1], width, width)
    sd = np.sqrt(np.einsum("...kk->...k", covariance))
    first = x[..., width + width**2 :][..., :width]
    distance = ((x[..., -width:] - x[..., :width]) ** 2).sum(axis=-1, keepdims=True)
    return np.concatenate(
        [x[..., :width], sd, covariance[..., 1:, 0] / sd[..., 1:] / sd[..., :1], first, distance],
        axis=-1,
    )


def free_coordinates(made: dict[str, Floats], basis: Floats) -> Floats:
    """(draws, D + D * D + N * D) mean, covariance and groups in the free coordinates of a basis."""
    covariance = basis.T @ made["population_covariance"] @ basis
    parts = (made["population_mean"] @ basis, covariance, made["value"] @ basis)
    return np.hstack([part.reshape(len(part), -1) for part in parts])


def build(by_group: list[Decisions], scale: float) -> HierarchicalSampler:
    """The sampler for the decisions of these groups."""
    whole = by_group[0]
    for more in by_group[1:]:
        whole = whole + more
    group = np.repeat(np.arange(len(by_group)), [len(d) for d in by_group])
    return HierarchicalSampler.build(whole, group, resolve_prior(PRIOR, whole), scale, threads=1)


def ranks(problem: str, replications: int, seed: int, scale: float = SCALE) -> Ints:
    """(replications, quantities) ranks of the truth among thinned draws."""
    rng, offers = np.random.default_rng(seed), OFFERS[problem]
    found = []
    for _ in range(replications):
        seen, truth = simulate(rng, offers)
        sampler = build(seen, scale)
        made, _ = warmed_up_draws(rng, sampler, WARMUP, DRAWS, THIN)
        draws = free_coordinates(made, sampler.basis)
        below = ranked_quantities(draws, sampler.width) < ranked_quantities(truth, sampler.width)
        found.append(below.sum(axis=0))
    return np.array(found)


@pytest.mark.parametrize("problem", OFFERS)
def test_ranks_are_uniform(problem: str) -> None:
    """64 replications."""
    assert_uniform_ranks(ranks(problem, 64, seed=4), DRAWS, false_alarm=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("problem", OFFERS)
def test_ranks_are_uniform_in_the_long_run(problem: str) -> None:
    assert_uniform_ranks(ranks(problem, 1000, seed=5), DRAWS, false_alarm=1e-6)


def with_precision_times_100(move: Any) -> Any:
    """The move of group values, which draws them towards the population far too strongly."""

    def wrong(rng: Any, groups: Any, population: Any, *rest: Any) -> None:
        tighter = population._replace(precision=100.0 * population.precision)
        move(rng, groups, tighter, *rest)

    return wrong


def test_groups_drawn_too_close_to_the_population_are_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wrong = with_precision_times_100(draw_group_values)
    monkeypatch.setattr(hierarchical, "draw_group_values", wrong)
    with must_fail("groups drawn too close to the population"):
        assert_uniform_ranks(ranks("features", 24, seed=4), DRAWS, false_alarm=1e-6)


@pytest.mark.slow
def test_wrong_hyperprior_is_caught() -> None:
    with must_fail("a hyperprior that is too narrow"):
        assert_uniform_ranks(
            ranks("features", 48, seed=4, scale=SCALE / 20.0), DRAWS, false_alarm=1e-6
        )


def draws_without_information(draws: int) -> Floats:
    """(draws, 5) log sds, the correlation and its square, and the mean.

    Of groups that only had decisions of one action, which say nothing.
    """
    offers = [Decisions([[1.0, 0.5]], [0, 1], [0]) for _ in range(3)]
    sampler = build(offers, SCALE)
    made, _ = warmed_up_draws(np.random.default_rng(1), sampler, 600, draws)
    found = ranked_quantities(free_coordinates(made, sampler.basis), 2)
    return np.column_stack([np.log(found[:, 2:4]), found[:, 4], found[:, 4] ** 2, found[:, 0]])


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
    drawn = np.array([draw_covariance(rng, np.arange(3)) for _ in range(4000)])
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
