from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.integrate import quad
from scipy.stats import norm

import revealed.mdp.bellman
from revealed._types import Floats, Ints
from revealed.mdp.bellman import (
    Reward,
    expected_maximum,
    expected_maximum_and_shares,
    maximum_and_shares,
)
from revealed.mdp.process import MDP
from revealed.mdp.random_process import random_mdp

FALSE_ALARM = 1e-6
ONE = np.array([0, 3], dtype=np.int64)


def by_quadrature(u: Floats) -> float:
    """E max of independent N(u, 1): top + mass above it - mass below it, in short adaptive pieces."""
    top = float(u.max())

    def tail(z: float) -> float:
        return float((z > 0) - np.exp(norm.logcdf(z - (u - top)).sum()))

    return top + sum(float(quad(tail, at, at + 1, epsabs=1e-13)[0]) for at in range(-9, 9))


def whole(u: Floats) -> Ints:
    return np.array([0, len(u)], dtype=np.int64)


CASES = {
    "one": np.array([-3.25]),
    "two equal": np.zeros(2),
    "close": np.array([0.3, -0.2, 0.9]),
    "far": np.array([250.0, -50.0, 249.0, 0.0]),
    "500 tied": np.full(500, 7.0),
    "a leader of 500": np.append(np.zeros(500), 3.0),
    "a laggard": np.append(np.zeros(20), -4.0),
}


@pytest.mark.parametrize("case", CASES)
def test_expected_maximum_against_adaptive_quadrature(case: str) -> None:
    u = CASES[case]
    assert expected_maximum(u, whole(u))[0] == pytest.approx(by_quadrature(u), rel=0, abs=1e-10)


def test_expected_maximum_in_closed_form() -> None:
    u = np.array([5.0, 2.0, 2.0, 0.0, 0.0, 0.0, 1.0, 0.0])
    got = expected_maximum(u, np.array([0, 1, 3, 6, 8]))
    gap = norm.cdf(1 / np.sqrt(2)) + np.sqrt(2) * norm.pdf(
        1 / np.sqrt(2)
    )  # Clark's formula for two
    np.testing.assert_allclose(
        got, [5.0, 2 + 1 / np.sqrt(np.pi), 1.5 / np.sqrt(np.pi), gap], rtol=0, atol=1e-12
    )


def test_expected_maximum_and_shares_against_simulation() -> None:
    rng = np.random.default_rng(1)
    u = np.array([0.5, -0.3, 0.2])
    noisy = u + rng.standard_normal((400_000, 3))
    mean, shares = expected_maximum_and_shares(u, ONE)
    wide = norm.isf(FALSE_ALARM / 8)  # four two-sided comparisons
    best = noisy.max(axis=1)
    assert abs(best.mean() - mean[0]) < wide * best.std() / np.sqrt(len(best))
    counted = np.bincount(noisy.argmax(axis=1), minlength=3) / len(best)
    assert (np.abs(counted - shares) < wide * np.sqrt(shares * (1 - shares) / len(best))).all()


def test_shares_are_the_gradient_and_sum_to_one() -> None:
    rng = np.random.default_rng(2)
    start = np.array([0, 1, 4, 9])
    u = 3 * rng.standard_normal((6, 9))
    mean, shares = expected_maximum_and_shares(u, start)
    np.testing.assert_allclose(mean, expected_maximum(u, start), rtol=0, atol=1e-14)
    np.testing.assert_allclose(
        np.add.reduceat(shares, start[:-1], axis=-1), 1.0, rtol=0, atol=1e-12
    )
    for k, state in enumerate([0, 1, 1, 1, 2, 2, 2, 2, 2]):
        nudge = 1e-4 * np.eye(9)[k]
        slope = (expected_maximum(u + nudge, start) - expected_maximum(u - nudge, start)) / 2e-4
        np.testing.assert_allclose(shares[:, k], slope[:, state], rtol=0, atol=1e-8)
        np.testing.assert_allclose(np.delete(slope, state, axis=1), 0.0, atol=1e-10)


def test_extreme_utilities_stay_finite() -> None:
    u = np.array([1e200, -1e200, 1e200])
    mean, shares = expected_maximum_and_shares(u, ONE)
    np.testing.assert_allclose(mean, 1e200)
    np.testing.assert_allclose(shares, [0.5, 0.0, 0.5], atol=1e-12)
    best, plain = maximum_and_shares(u, ONE)
    assert best[0] == 1e200
    np.testing.assert_array_equal(plain, [0.5, 0.0, 0.5])


# --- there and back -------------------------------------------------------------------------------------------


def world(rng: np.random.Generator, constrained: bool, sparse: bool) -> MDP:
    mdp = random_mdp(rng, 6, 4, 0.5)
    available = rng.random((6, 4)) < 0.6 if constrained else np.ones((6, 4), bool)
    available[np.arange(6), rng.integers(4, size=6)] = True
    return MDP([sp.csr_array(p) for p in mdp.transitions] if sparse else mdp.transitions, available)


def centred(r: Any) -> Floats:
    return np.asarray(r - np.mean(r, axis=-1, keepdims=True))


@pytest.mark.parametrize("discount", [0.3, 0.95, 0.9999])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("constrained", [False, True])
@pytest.mark.parametrize("with_actions", [False, True])
@pytest.mark.parametrize("noise", [False, True])
def test_what_was_put_in_comes_back(
    noise: bool, with_actions: bool, constrained: bool, sparse: bool, discount: float
) -> None:
    rng = np.random.default_rng(3)
    mdp = world(rng, constrained, sparse)
    r, extra = 4 * rng.standard_normal(6), 2 * rng.standard_normal(4) if with_actions else None
    value = mdp.solve(r, discount, action_reward=extra, noise=noise)
    v = discount * value if noise or with_actions else value
    back = mdp.reward(
        v + 11.0, discount, noise=noise, action_reward=extra
    )  # 11: the constant nobody can know
    np.testing.assert_allclose(back.draws, centred(r), rtol=0, atol=1e-8)


@pytest.mark.parametrize("with_actions", [False, True])
@pytest.mark.parametrize("noise", [False, True])
def test_what_was_put_in_comes_back_without_discount(noise: bool, with_actions: bool) -> None:
    rng = np.random.default_rng(4)
    p = rng.dirichlet(np.ones(5), size=(3, 5))
    p[:, 4] = np.eye(5)[4]
    available = np.ones((5, 3), bool)
    available[4] = [False, False, True]  # the last action is to stop
    mdp = MDP(p, available)
    r, extra = (
        np.append(rng.standard_normal(4), 0.0),
        np.array([1.0, -2.0, 0.0]) if with_actions else None,
    )
    value = mdp.solve(r, 1.0, action_reward=extra, noise=noise)
    assert value[4] == 0.0
    back = mdp.reward(value - 3.0, 1.0, noise=noise, action_reward=extra)
    np.testing.assert_allclose(back.draws, centred(r), rtol=0, atol=1e-8)
    np.testing.assert_allclose(back.draws - back.draws[..., [4]], r, rtol=0, atol=1e-8)
    assert "known up to an additive constant" in back.note


def test_a_constant_on_the_value_is_a_constant_on_the_reward() -> None:
    rng = np.random.default_rng(5)
    mdp, c, discount = world(rng, True, False), 2.5, 0.8
    r, extra = rng.standard_normal(6), rng.standard_normal(4)
    value = mdp.solve(r, discount)
    np.testing.assert_allclose(mdp.solve(r + c * (1 - discount), discount), value + c, atol=1e-11)
    for noise in (False, True):
        v = discount * mdp.solve(r, discount, action_reward=extra, noise=noise)
        more = mdp.solve(
            r + c * (1 - discount) / discount, discount, action_reward=extra, noise=noise
        )
        np.testing.assert_allclose(discount * more, v + c, atol=1e-11)
        less = mdp.solve(r - c, discount, action_reward=extra + c, noise=noise)
        np.testing.assert_allclose(discount * less, v, atol=1e-11)


def test_reward_by_hand() -> None:
    mdp = MDP([[[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]])  # go to 0, go to 1
    v, extra = np.array([1.0, 3.0]), np.array([5.0, 0.0])
    np.testing.assert_allclose(mdp.reward(v, 0.5).draws, centred([1 - 1.5, 3 - 1.5]))
    np.testing.assert_allclose(
        mdp.reward(v, 0.5, action_reward=extra).draws, centred([2 - 6.0, 6 - 6.0])
    )
    np.testing.assert_allclose(mdp.reward(v, 0.5, noise=True).draws, centred([2.0, 6.0]))


# --- draws ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [False, True])
def test_draws_are_read_one_by_one_and_in_portions(
    noise: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(6)
    mdp = world(rng, True, False)
    draws = rng.standard_normal((2, 7, 10))  # six states and four action rewards
    every = mdp.reward(draws, 0.9, noise=noise)
    assert every.draws.shape == (2, 7, 6)
    np.testing.assert_allclose(every.draws.sum(axis=-1), 0.0, atol=1e-12)
    alone = [
        [mdp.reward(d[:6], 0.9, noise=noise, action_reward=d[6:]).draws for d in chain]
        for chain in draws
    ]
    np.testing.assert_allclose(every.draws, alone, rtol=0, atol=1e-13)
    apart = mdp.reward(draws[..., :6], 0.9, noise=noise, action_reward=draws[..., 6:])
    np.testing.assert_array_equal(every.draws, apart.draws)
    sizes: list[int] = []
    inner = revealed.mdp.bellman._maximum

    def spy(utilities: Floats, start: Ints) -> Floats:
        sizes.append(len(utilities))
        return inner(utilities, start)

    monkeypatch.setattr(revealed.mdp.bellman, "_maximum", spy)
    settings = revealed.mdp.bellman.BellmanSettings(utilities_at_a_time=3 * len(mdp.offered))
    monkeypatch.setattr(revealed.mdp.bellman, "SETTINGS", settings)
    np.testing.assert_allclose(
        mdp.reward(draws, 0.9, noise=noise).draws, every.draws, rtol=0, atol=1e-13
    )
    assert sizes == [3, 3, 3, 3, 2]


def test_one_action_reward_may_serve_all_draws() -> None:
    rng = np.random.default_rng(7)
    mdp, extra = world(rng, False, False), np.array([1.0, 0.0, -1.0, 0.0])
    draws = rng.standard_normal((5, 6))
    one = mdp.reward(draws, 0.9, action_reward=extra)
    two = mdp.reward(draws, 0.9, action_reward=np.tile(extra, (5, 1)))
    np.testing.assert_array_equal(one.draws, two.draws)
    assert np.abs(one.draws - mdp.reward(draws, 0.9, action_reward=np.zeros(4)).draws).max() > 0.1


def test_reward_speaks_of_mean_sd_and_of_the_constant() -> None:
    mdp = MDP(np.full((1, 2, 2), 0.5), states=["dry", "wet"])
    reward = mdp.reward([[[0.0, 2.0], [0.0, 6.0]]], 0.5)
    assert isinstance(reward, Reward)
    np.testing.assert_allclose(reward.mean, [-2.0, 2.0])
    np.testing.assert_allclose(reward.sd, [1.0, 1.0])
    np.testing.assert_array_equal(mdp.reward([0.0, 2.0], 0.5).sd, [0.0, 0.0])
    assert reward.states == ("dry", "wet")
    assert (
        "known up to an additive constant: c more on every value is c (1 - discount) more"
        in reward.note
    )
    assert "c (1 - discount) / discount more" in mdp.reward([0.0, 2.0], 0.5, noise=True).note
    assert "2 states, draws of shape (1, 2, 2), known up to an additive constant" in repr(reward)
    with pytest.raises(AttributeError):
        reward.note = "certain"  # type: ignore[misc]
