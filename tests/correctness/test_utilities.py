"""Utilities given the value: their law, the paper's acceptance rate, and a start in the tail."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_ndtr

import revealed as rv
from revealed._types import Floats
from revealed.kernels.utilities import draw_utilities, metropolis_utilities
from revealed.samplers.data_augmentation import AugmentationOptions
from tests.support.cases import build_sampler, choose, mdp_offers
from tests.support.statistical_asserts import assert_law

CASES = {
    "alone": ([0.3], 0),
    "a tie of two": ([1.0, 1.0], 0),
    "duplicates of the chosen": ([2.0, 2.0, 2.0, -1.0], 1),
    "leads many by three": ([3.0] + [0.0] * 30, 0),
    "the worst is chosen": ([-6.0, 0.0, 1.0, 6.0], 0),
    "far rivals matter low down": ([0.0, 9.0, -4.6, -8.7], 0),
    "hundreds apart": ([-150.0, 150.0, 149.0, -300.0], 0),
}


def _cdf_of_chosen(mu: Floats, chosen: int) -> tuple[Floats, Floats]:
    """The law of the chosen utility by brute summation on a fine grid around its mass."""
    rivals = np.delete(mu, chosen)

    def log_f(z: Floats) -> Floats:
        return np.asarray(
            -0.5 * (z - mu[chosen]) ** 2 + log_ndtr(z[:, None] - rivals[None, :]).sum(axis=1)
        )

    z = np.linspace(mu.min() - 12, mu.max() + 12, 200_001)
    mass = z[log_f(z) > log_f(z).max() - 40]
    z = np.linspace(mass[0], mass[-1], 40_001)
    weight = np.exp(log_f(z) - log_f(z).max())
    return z, np.concatenate([[0.0], np.cumsum((weight[1:] + weight[:-1]) / 2)]) / (
        (weight[1:] + weight[:-1]) / 2
    ).sum()


@pytest.mark.proves(part="utilities given the value, {how}")
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("how", ["exact", "metropolis"])
def test_chosen_and_rivals_have_the_right_law(name: str, how: str) -> None:
    """Kolmogorov-Smirnov on the chosen utility, and on each rival through its conditional law.

    The false-alarm rate is 1e-6 each.
    """
    means, chosen = CASES[name]
    count = 20_000
    mu = np.tile(np.array(means), count)
    start = np.arange(count + 1) * len(means)
    chosen_row = start[:-1] + chosen
    rivals_workspace, w = np.empty(len(means)), np.empty(mu.size)
    rng = np.random.default_rng(11)
    draw_utilities(rng, mu, start, chosen_row, rivals_workspace, np.zeros(chosen_row.size), w)
    if how == "metropolis":
        for _ in range(3):
            metropolis_utilities(rng, mu, start, chosen_row, rivals_workspace, 3, w)
    each = w.reshape(count, -1)
    z, cdf = _cdf_of_chosen(np.array(means), chosen)
    assert_law(np.interp(each[:, chosen], z, cdf), false_alarm=1e-6)
    for j in range(min(len(means), 6)):
        if j != chosen:
            assert (each[:, j] <= each[:, chosen]).all()
            place = np.exp(log_ndtr(each[:, j] - means[j]) - log_ndtr(each[:, chosen] - means[j]))
            assert_law(place, false_alarm=1e-6)


@pytest.mark.proves(part="utilities given the value, exact")
@pytest.mark.parametrize("gap", [1e6, 1e8, 1e11])
@pytest.mark.parametrize("rivals", [1, 12])
def test_utilities_of_a_choice_that_could_not_be_further_from_likely(
    gap: float, rivals: int
) -> None:
    """A chain may begin where a choice is a million sds behind; its law is then a normal.

    log Phi(z - gap) is -(z - gap)^2 / 2 but for a logarithm that does not change over the mass.
    """
    count, size = 2000, rivals + 1
    mu = np.tile(np.r_[0.0, np.full(rivals, gap)], count)
    start = np.arange(count + 1) * size
    w = np.empty(mu.size)
    draw_utilities(
        np.random.default_rng(2), mu, start, start[:-1], np.empty(size), np.zeros(count), w
    )
    chosen = w.reshape(count, size)[:, 0]
    place = (chosen - gap * rivals / size) * np.sqrt(size)
    assert_law(np.exp(log_ndtr(place)), false_alarm=1e-6)
    assert (w.reshape(count, size) <= chosen[:, None]).all()


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, 1e13])
def test_means_that_are_out_of_range_have_no_utilities(wrong: float) -> None:
    mu, w, start = np.array([0.0, wrong]), np.zeros(2), np.array([0, 2])
    for chosen in (0, 1):
        given = np.random.default_rng(1), mu, start, np.array([chosen]), np.empty(2)
        assert np.isnan(draw_utilities(*given, np.zeros(1), w))
        assert np.isnan(w).all()
        assert np.isnan(metropolis_utilities(*given, 3, w))


def _toy(count: int, seed: int) -> rv.Decisions:
    """The paper's toy: 7 states, 3 actions, the value drawn from the prior with sd 50."""
    rng = np.random.default_rng(seed)
    offers = mdp_offers(7, 3, count, seed)
    value = 50.0 * rng.standard_normal(7)
    return offers.with_choices(choose(rng, offers, value - value.mean())[0])


def test_metropolis_step_accepts_more_than_95_percent_on_the_toy() -> None:
    for seed in range(5):
        sampler = build_sampler(
            ("px-both", AugmentationOptions("metropolis", a=1.0, b=1.0)),
            _toy(20, seed),
            rv.Normal(50.0),
        )
        rng = np.random.default_rng(seed)
        state = sampler.init(rng, None)
        _, _, stats = sampler.sample(rng, state, 5_000, 1)
        assert stats["acceptance_rate"].mean() > 0.95


def test_start_in_the_tail_stops_the_metropolis_step_but_not_the_exact_draw() -> None:
    """The proposal's right tail is lighter than its target's: large utilities are kept for ever."""
    mu, start, chosen_row = np.zeros(300), np.arange(101) * 3, np.arange(100) * 3
    rivals_workspace = np.empty(3)
    rng = np.random.default_rng(1)
    w = np.full(300, 10.0)
    for _ in range(1000):
        metropolis_utilities(rng, mu, start, chosen_row, rivals_workspace, 3, w)
    assert (w[chosen_row] == 10.0).mean() > 0.9
    draw_utilities(rng, mu, start, chosen_row, rivals_workspace, np.zeros(chosen_row.size), w)
    assert w[chosen_row].max() < 6.0
