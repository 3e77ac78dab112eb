"""Logit noise in a finite MDP: the expected maximum is a log sum of exponentials, paths follow it."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

import revealed as rv
from revealed._types import Floats, Ints
from revealed.kernels.noise import NORMAL
from revealed.mdp.bellman import expected_maximum, expected_maximum_and_shares
from tests.support.logistic_noise import LogisticNoise
from tests.support.statistical_asserts import assert_scores, must_fail

LOGIT = rv.LogitNoise()
START = np.array([0, 1, 3, 3, 6])  # the third state has no action
U = np.array([[0.5, -800.0, 3.0, 1.0, 1.0, -2.0], [2.0, 700.0, 702.0, 0.0, 0.0, 0.0]])


def test_expected_maximum_is_a_log_sum_of_exponentials() -> None:
    exact = np.zeros((2, 4))
    for x, (low, high) in enumerate(itertools.pairwise(START)):
        if high > low:
            exact[:, x] = logsumexp(U[:, low:high], axis=1)
    np.testing.assert_allclose(expected_maximum(U, START, LOGIT.law()), exact, rtol=1e-14)
    mean, shares = expected_maximum_and_shares(U, START, LOGIT.law())
    np.testing.assert_allclose(mean, exact, rtol=1e-14)
    np.testing.assert_allclose(shares[:, 3:], softmax(U[:, 3:], axis=1), rtol=1e-14)
    assert not np.allclose(expected_maximum(U, START, NORMAL)[:, 3], exact[:, 3])


def test_expected_maximum_is_that_of_noise_with_mean_zero() -> None:
    """Drawn: the maximum of utilities with Gumbel noise, less the noise's own mean."""
    u, rng = np.array([0.3, -0.5, 1.0]), np.random.default_rng(3)
    best = (u + LOGIT.sample(rng, (200_000, 3)) - np.euler_gamma).max(axis=1)
    exact = expected_maximum(u, np.array([0, 3]), LOGIT.law())
    assert_scores((best.mean() - exact) / (best.std() / np.sqrt(len(best))), false_alarm=1e-6)


@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_solution_satisfies_its_equation_and_gives_the_reward_back(discount: float) -> None:
    rng = np.random.default_rng(1)
    inner, last = rng.dirichlet(np.ones(5), size=(3, 4)), np.eye(5)[4]
    transitions = np.stack([np.vstack([inner[a], last]) for a in range(3)])
    available = np.ones((5, 3), bool)
    available[4] = False
    mdp = rv.MDP(transitions, available=available)
    reward = np.array([-3.0, -2.5, -4.0, -3.0, 0.0])
    value = mdp.solve(reward, discount, noise=LOGIT)
    best = expected_maximum(discount * (mdp.rows @ value), mdp.start, LOGIT.law())
    np.testing.assert_allclose(value, reward + best, rtol=0, atol=1e-11)
    back = mdp.reward(discount * value, discount, noise=LOGIT)
    np.testing.assert_allclose(back.draws, reward, rtol=0, atol=1e-10)
    assert not np.allclose(mdp.solve(reward, discount, noise=True), value)


def test_paths_choose_by_softmax() -> None:
    mdp = rv.MDP(np.full((3, 2, 2), 0.5))
    value, by_action = np.zeros(2), np.array([0.0, 1.0, -1.0])
    count = 20_000
    p = softmax(by_action)

    def scores(actions: Ints) -> Floats:
        frequency = np.bincount(actions, minlength=3) / count
        return np.asarray((frequency - p) / np.sqrt(p * (1.0 - p) / count))

    path = mdp.simulate(4, value, count, action_reward=by_action, noise=LOGIT)
    assert_scores(scores(path.actions), false_alarm=1e-6)
    with must_fail("normal noise"):
        path = mdp.simulate(4, value, count, action_reward=by_action)
        assert_scores(scores(path.actions), false_alarm=1e-6)


def test_paths_lapse_at_the_rate_that_is_given() -> None:
    mdp = rv.MDP(np.full((3, 2, 2), 0.5))
    by_action, count, rate = np.array([0.0, 1.0, -1.0]), 20_000, 0.3
    p = (1.0 - rate) * softmax(by_action) + rate / 3.0

    def scores(noise: Any) -> Floats:
        path = mdp.simulate(4, np.zeros(2), count, action_reward=by_action, noise=noise)
        frequency = np.bincount(path.actions, minlength=3) / count
        return np.asarray((frequency - p) / np.sqrt(p * (1.0 - p) / count))

    assert_scores(scores(rv.KnownLapse(LOGIT, rate)), false_alarm=1e-6)
    with must_fail("no lapses"):
        assert_scores(scores(LOGIT), false_alarm=1e-6)


def test_lapses_are_no_part_of_a_reward() -> None:
    mdp, lapsing = rv.random_mdp(1, 3, 2), rv.LogitNoise(lapse=rv.Lapse())
    for given in (lapsing, rv.KnownLapse(LOGIT, 0.1)):
        with pytest.raises(ValueError, match=r"nobody counts on lapses, .* give the noise without"):
            mdp.solve(np.zeros(3), 0.9, noise=given)
        with pytest.raises(ValueError, match="nobody counts on lapses"):
            mdp.reward(np.zeros(3), 0.9, noise=given)
    with pytest.raises(ValueError, match=r"give rv\.KnownLapse\(noise, rate\) in place of"):
        mdp.simulate(1, np.zeros(3), 5, noise=lapsing)
    habits = rv.KnownLapse(LOGIT, 0.1, {0: 0.5, 1: 0.5})
    with pytest.raises(ValueError, match="with one number and without habits"):
        mdp.simulate(1, np.zeros(3), 5, noise=habits)
    path = mdp.simulate(3, [1.0, 0.0, -1.0], 60, noise=LOGIT)
    model = rv.ChoiceModel(prior=rv.Normal(2.0), transitions=rv.Dirichlet(), noise=lapsing)
    post = rv.fit(rv.Trajectories(path, 3, 2), model, draws=1000, progress=False)
    # as somebody counts who does not know of them
    plain = post.reward(0.9, noise=True).draws
    utilities, rows = post.draws["value"], post.draws["transition"].reshape(-1, 3, 2, 3)
    best = logsumexp(np.einsum("sxay,sy->sxa", rows, utilities.reshape(-1, 3)), axis=2)
    reward = utilities.reshape(-1, 3) / 0.9 - best
    centred = reward - reward.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(plain.reshape(-1, 3), centred, atol=1e-10)


def test_a_noise_without_a_known_maximum_is_refused() -> None:
    mdp = rv.random_mdp(1, 3, 2)
    for given in (LogisticNoise(), "logit", None):
        with pytest.raises(ValueError, match=r"noise must be True, False, rv\.NormalNoise\(\) or"):
            mdp.solve(np.zeros(3), 0.9, noise=given)
    with pytest.raises(ValueError, match=r"a controller without noise .* see MDP\.policy"):
        mdp.simulate(1, np.zeros(3), 5, noise=False)


def test_posterior_of_unknown_transitions_counts_on_its_own_noise() -> None:
    mdp = rv.random_mdp(2, 3, 2)
    path = mdp.simulate(3, [1.0, 0.0, -1.0], 200, noise=LOGIT)
    seen = rv.Trajectories(path, 3, 2)
    model = rv.ChoiceModel(prior=rv.Normal(2.0), transitions=rv.Dirichlet(), noise=LOGIT)
    post = rv.fit(seen, model, draws=2000, progress=False)
    found = post.reward(0.9, noise=True).draws.reshape(-1, 3)
    utilities = post.draws["value"].reshape(-1, 3)
    assert found.shape == utilities.shape
    plain = post.reward(0.9).draws.reshape(-1, 3)
    assert not np.allclose(found, plain)
    # each draw is Bellman's equation backwards, with the transitions of that draw
    rows = post.draws["transition"].reshape(-1, 3, 2, 3)
    best = logsumexp(np.einsum("sxay,sy->sxa", rows, utilities), axis=2)
    reward = utilities / 0.9 - best
    np.testing.assert_allclose(found, reward - reward.mean(axis=1, keepdims=True), atol=1e-10)
