"""What warm-up learns, and what it refuses to lean on."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats as st

import revealed as rv
from revealed.kernels.independence import TAIL_DF, Mixture, mixture_log_density
from revealed.models.priors import resolve_prior
from revealed.results.psis import pareto_k
from revealed.samplers.composite.cost import CostModel
from revealed.samplers.composite.cycle import EssPerCost, choose_cycle, hmc_only_cycle
from revealed.samplers.composite.proposal import (
    Proposal,
    add_student_tail,
    fit_proposal,
    null_mixture,
)
from revealed.samplers.composite.sampler import CompositeSampler
from revealed.samplers.composite.transform import WhiteningTransform
from tests.support.cases import choose, ragged_offers
from tests.support.statistical_asserts import BATCHES, assert_error, assert_mean

COST = CostModel(log_posterior=1000.0, augmentation=5000.0, width=2)


@pytest.mark.parametrize("shape", [0.1, 0.5, 1.0])
def test_pareto_k_finds_the_shape_of_the_largest_weights(shape: float) -> None:
    found = [
        pareto_k(np.log(np.random.default_rng(s).pareto(1.0 / shape, 20_000) + 1.0))
        for s in range(BATCHES)
    ]
    # 50 independent estimates, whose spread gives the error of their mean: about 0.01
    assert_mean(found, shape)


def test_pareto_k_of_equal_weights_is_harmless() -> None:
    assert pareto_k(np.zeros(1000)) == -np.inf


def some_mixture() -> Mixture:
    points = np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    parts = (
        np.array([0.3, 0.7]),
        np.array([[0.0, 0.0], [1.0, 1.0]]),
        np.array([np.eye(2), [[2.0, 0.5], [0.5, 1.0]]]),
    )
    return add_student_tail(parts, points, np.full(4, 0.25))


def test_a_mixture_is_a_density() -> None:
    mixture, side, logs = some_mixture(), np.linspace(-60.0, 60.0, 241), np.empty(3)
    values = [
        np.exp(mixture_log_density(mixture, np.array([a, b]), logs)) for a in side for b in side
    ]
    # what lies outside of the square is the Student part's, by its margins; the sum over a grid of
    # half a sd has an error of exp(-24), by the characteristic function of that part at 4 pi
    tail_scales = np.sqrt(np.diag(mixture.cholesky[-1] @ mixture.cholesky[-1].T))
    outside = mixture.weight[-1] * 2.0 * st.t.sf(60.0 / tail_scales, TAIL_DF).sum()
    assert_error(np.sum(values) * (side[1] - side[0]) ** 2 - 1.0, outside + 1e-8)


def test_a_good_proposal_gets_most_of_the_work_but_never_all() -> None:
    mixture, cycle = choose_cycle(
        EssPerCost(1e-5, 2e-5, 5e-4), Proposal(some_mixture(), 0.9, 0.2), hmc_only_cycle(0.5), COST
    )
    safe = cycle.hmc * COST.hmc(cycle) + cycle.augmentation * COST.augmentation
    independent = cycle.independence * COST.independence(mixture)
    assert cycle.augmentation == 1
    assert 0.05 < safe / (safe + independent) < 0.2


@pytest.mark.parametrize(("k", "least"), [(0.6, 0.25), (0.9, 0.5)])
def test_a_proposal_with_huge_weights_gives_its_work_to_safe_moves(k: float, least: float) -> None:
    mixture, cycle = choose_cycle(
        EssPerCost(1e-5, 2e-5, 5e-4), Proposal(some_mixture(), 0.9, k), hmc_only_cycle(0.5), COST
    )
    safe = cycle.hmc * COST.hmc(cycle) + cycle.augmentation * COST.augmentation
    assert safe / (safe + cycle.independence * COST.independence(mixture)) > least


@pytest.mark.parametrize(("efficiency", "k"), [(0.9, 1.1), (0.01, 0.1)])
def test_a_useless_proposal_is_not_used(efficiency: float, k: float) -> None:
    _, cycle = choose_cycle(
        EssPerCost(1e-5, 1e-7, 5e-4),
        Proposal(some_mixture(), efficiency, k),
        hmc_only_cycle(0.5),
        COST,
    )
    assert (cycle.hmc, cycle.augmentation, cycle.independence) == (1, 0, 0)


def test_independence_steps_that_earn_little_are_not_taken_however_well_the_proposal_seems_to_fit() -> (
    None
):
    _, cycle = choose_cycle(
        EssPerCost(1e-5, 1e-7, 1e-6), Proposal(some_mixture(), 0.9, 0.2), hmc_only_cycle(0.5), COST
    )
    assert (cycle.hmc, cycle.augmentation, cycle.independence) == (1, 0, 0)


def test_the_dearer_of_two_safe_moves_stays_only_if_it_is_not_much_dearer() -> None:
    unused = Proposal(some_mixture(), 0.01, 2.0)
    assert choose_cycle(EssPerCost(1.0, 0.5, 0.0), unused, hmc_only_cycle(0.5), COST)[1][:3] == (
        1,
        1,
        0,
    )
    assert choose_cycle(EssPerCost(1.0, 0.1, 0.0), unused, hmc_only_cycle(0.5), COST)[1][:3] == (
        1,
        0,
        0,
    )
    assert choose_cycle(EssPerCost(0.1, 1.0, 0.0), unused, hmc_only_cycle(0.5), COST)[1][:3] == (
        0,
        1,
        0,
    )


def test_without_independence_steps_the_better_move_works_alone() -> None:
    assert choose_cycle(EssPerCost(1.0, 0.5, 0.0), None, hmc_only_cycle(0.5), COST)[1][:3] == (
        1,
        0,
        0,
    )
    assert choose_cycle(EssPerCost(0.5, 1.0, 0.0), None, hmc_only_cycle(0.5), COST)[1][:3] == (
        0,
        1,
        0,
    )


def test_a_proposal_learnt_from_the_wrong_place_finds_the_posterior_or_is_not_used() -> None:
    """Points a dozen sds off and ten times too narrow: importance draws say so, and refitting comes nearer."""
    offers = ragged_offers(3, 80, seed=1)
    rng = np.random.default_rng(2)
    seen = offers.with_choices(choose(rng, offers, np.array([1.0, -1.0, 0.5]))[0])
    sampler = CompositeSampler.build(seen, resolve_prior(rv.Normal(2.0), seen))
    problem = sampler.tuning_problem(
        WhiteningTransform.from_precision(sampler.resolved_prior, sampler.mode, sampler.information)
    )
    wrong = fit_proposal(rng, problem, None, 4.0 + 0.1 * rng.standard_normal((200, 3)), 1000)
    right = fit_proposal(rng, problem, None, rng.standard_normal((200, 3)), 1000)
    assert right.efficiency > 0.8
    assert right.pareto_k < 0.7
    assert wrong.score < right.score
    assert not wrong.usable or wrong.efficiency > 0.3 or wrong.min_safe_share > 0.25


def test_nothing_is_learnt_while_draws_are_kept() -> None:
    offers = ragged_offers(3, 30, seed=1)
    rng = np.random.default_rng(2)
    seen = offers.with_choices(choose(rng, offers, np.array([1.0, -1.0, 0.5]))[0])
    sampler = CompositeSampler.build(seen, resolve_prior(rv.Normal(2.0), seen))
    state, _ = sampler.warmup(rng, sampler.init(rng, None), 300, 300)
    kept = {name: value.copy() for name, value in state.items()}
    after, _, _ = sampler.sample(rng, state, 500, 2)
    for name, value in after.items():
        if name not in ("x", "gradient", "cycle_state", "mode_offset"):
            np.testing.assert_array_equal(value, kept[name], err_msg=name)
        np.testing.assert_array_equal(
            state[name], kept[name], err_msg=f"{name} was changed in place"
        )


def test_no_mixture_stands_where_none_is_used() -> None:
    assert null_mixture(3).weight.sum() == 1.0
