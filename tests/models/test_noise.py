"""Noise with a covariance: what is refused, the probability of a choice, and what a posterior does with it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats as st

import revealed as rv
from revealed._types import Floats
from revealed.kernels.ghk import log_cdf_pairs
from revealed.kernels.ghk_posterior import log_posterior
from revealed.models.correlated_noise import resolve_noise
from revealed.models.priors import resolve_prior
from revealed.samplers.ghk_hmc import GHKSampler
from revealed.samplers.model_kind import kind_of
from revealed.samplers.registry import REGISTRY, BuildArguments
from tests.support.statistical_asserts import assert_error, assert_scores


def offers(count: int = 30, width: int = 2, actions: int = 4, seed: int = 0) -> rv.Decisions:
    """Decisions among two or more labelled actions, chosen at random."""
    rng = np.random.default_rng(seed)
    shown = [rng.permutation(actions)[: rng.integers(2, actions + 1)] for _ in range(count)]
    start = np.concatenate([[0], np.cumsum([len(s) for s in shown])])
    labels = np.array([f"brand {i}" for i in range(actions)])[np.concatenate(shown)]
    chosen = [int(rng.integers(len(s))) for s in shown]
    return rv.Decisions(rng.standard_normal((start[-1], width)), start, chosen, actions=labels)


def covariance(size: int, seed: int) -> Floats:
    root = np.random.default_rng(seed).standard_normal((size, size))
    return np.asarray(root @ root.T + 0.3 * np.eye(size))


@pytest.mark.proves(part="choice probabilities under a covariance")
@pytest.mark.parametrize("actions", [2, 3, 4, 6, 8])
def test_probabilities_are_those_of_scipy(actions: int) -> None:
    """256 points: probabilities within 5e-4 in fifteen random problems each; two actions exactly."""
    rng = np.random.default_rng(actions)
    for seed in range(15):
        d = rv.Decisions(
            rng.standard_normal((actions, 2)), [0, actions], [0], actions=np.arange(actions)
        )
        v, size = 1.5 * rng.standard_normal(2), actions - 1
        noise = rv.NoiseCovariance(0, tuple(range(1, actions)), covariance(size, seed))
        behind = d.rows[1:] @ v - d.rows[0] @ v
        exact = st.multivariate_normal.cdf(
            np.zeros(size), behind, noise.covariance, maxpts=500_000, abseps=1e-6
        )
        found = float(np.exp(rv.log_likelihood(d, v, noise))[0])
        assert_error(found - exact, 1e-12 if actions == 2 else 5e-4)


@pytest.mark.proves(part="choice probabilities under a covariance")
def test_independent_noise_is_a_covariance_too() -> None:
    """Differences of independent noise have covariance one plus the identity: the exact likelihood is the same."""
    d, v = offers(), np.array([0.7, -0.3])
    noise = rv.NoiseCovariance(
        "brand 2", ("brand 0", "brand 1", "brand 3"), 1.0 + np.eye(3), points=4096
    )
    assert_error(rv.log_likelihood(d, v, noise) - rv.log_likelihood(d, v), 2e-4)
    chances = rv.choice_probabilities(d, v, noise)
    assert np.allclose(chances, rv.choice_probabilities(d, v), atol=1e-4)
    assert np.allclose(np.add.reduceat(chances, d.start[:-1]), 1.0, atol=1e-12)


def test_the_base_does_not_matter() -> None:
    d, v = offers(), np.array([0.7, -0.3])
    against_0 = covariance(3, 5)
    swap = np.array(
        [[-1.0, 0.0, 0.0], [-1.0, 1.0, 0.0], [-1.0, 0.0, 1.0]]
    )  # from base 0 and 1, 2, 3 to base 1 and 0, 2, 3
    one = rv.NoiseCovariance("brand 0", ("brand 1", "brand 2", "brand 3"), against_0)
    two = rv.NoiseCovariance(
        "brand 1", ("brand 0", "brand 2", "brand 3"), swap @ against_0 @ swap.T
    )
    assert np.allclose(rv.log_likelihood(d, v, one), rv.log_likelihood(d, v, two), atol=1e-10)


@pytest.mark.parametrize("scale", ["trace", "first"])
@pytest.mark.parametrize("prior", [rv.Flat(), rv.Normal(0.7, mean=[0.3, -0.1])])
def test_the_gradient_is_that_of_the_posterior(scale: str, prior: Any) -> None:
    d = offers()
    sampler = GHKSampler(
        d,
        resolve_prior(prior, d),
        resolve_noise(rv.CorrelatedNoise(base="brand 1", scale=scale), d),
    )
    state = sampler.init(np.random.default_rng(0), None)
    target, work = sampler._posterior(state["order_theta"])
    logs, theta = np.empty((len(state["z"]), 2)), state["order_theta"] + 0.1 * state["x"]
    log_cdf_pairs(state["z"], logs)
    slope, aside = np.empty(len(theta)), np.empty(len(theta))
    log_posterior(target, work, theta, logs, slope)
    for i in range(len(theta)):
        step = np.zeros(len(theta))
        step[i] = 1e-5
        high = log_posterior(target, work, theta + step, logs, aside)
        low = log_posterior(target, work, theta - step, logs, aside)
        assert abs((high - low) / 2e-5 - slope[i]) < 1e-6 * max(1.0, abs(slope[i]))


def test_the_mean_weight_is_the_probability() -> None:
    """What makes the sampler exact: averaged over z, weights are the likelihood. 20,000 z, false alarm 1e-6 a decision."""
    d = offers(count=6)
    sampler = GHKSampler(
        d, resolve_prior(rv.Flat(), d), resolve_noise(rv.CorrelatedNoise(base="brand 1"), d)
    )
    rng = np.random.default_rng(1)
    state = sampler.init(rng, np.array([0.5, -0.5]))
    target, work = sampler._posterior(state["order_theta"])
    logs, slope = np.empty((len(state["z"]), 2)), np.empty(len(state["x"]))
    weights = np.empty((20_000, len(d)))
    for i in range(len(weights)):
        log_cdf_pairs(rng.standard_normal(len(state["z"])), logs)
        log_posterior(target, work, state["order_theta"], logs, slope)
        weights[i] = np.exp(work.log_weights)
    drawn = sampler.to_reported_scale(state["order_theta"][None])
    value, matrix = drawn["value"][0], drawn["noise_covariance"][0]
    others = ("brand 0", "brand 2", "brand 3")
    exact = np.exp(
        rv.log_likelihood(d, value, rv.NoiseCovariance("brand 1", others, matrix, points=16_384))
    )
    error = weights.std(axis=0) / np.sqrt(len(weights))
    assert (np.abs(weights.mean(axis=0) - exact) < 5.0 * error + 1e-5).all()


@pytest.fixture(scope="module")
def posterior() -> rv.ChoicePosterior:
    model = rv.ChoiceModel(prior=rv.Normal(1.5), noise=rv.CorrelatedNoise(base="brand 1"))
    found = rv.fit(offers(60), model, draws=1000, chains=2)
    assert isinstance(found, rv.ChoicePosterior)
    return found


def test_a_fit_reports_what_is_identified(posterior: rv.ChoicePosterior) -> None:
    assert posterior.sampler == "ghk-hmc"
    covariance = posterior.draws["noise_covariance"]
    assert covariance.shape == (2, 1000, 3, 3)
    assert np.allclose(np.trace(covariance, axis1=2, axis2=3), 3.0)
    assert np.array_equal(covariance, covariance.swapaxes(2, 3))
    known = posterior.known_noise
    assert isinstance(known, rv.NoiseCovariance)
    assert known.labels == ("brand 1", "brand 0", "brand 2", "brand 3")
    assert np.allclose(np.diagonal(known.correlation, axis1=1, axis2=2), 1.0)
    assert "cov(brand 2, brand 0)" in str(posterior.summary())


def test_it_comes_back_from_a_file(posterior: rv.ChoicePosterior, tmp_path: Path) -> None:
    posterior.save(tmp_path / "brands.nc")
    again = rv.load(tmp_path / "brands.nc")
    assert again.model.noise == rv.CorrelatedNoise(base="brand 1")
    assert np.array_equal(again.draws["noise_covariance"], posterior.draws["noise_covariance"])
    assert rv.predict(again, offers(3)).log_score == rv.predict(posterior, offers(3)).log_score


def test_arviz_has_it_all(posterior: rv.ChoicePosterior) -> None:
    data = posterior.to_arviz()
    assert data["posterior"]["noise_covariance"].dims == ("chain", "draw", "action", "other_action")
    assert np.isfinite(data["log_likelihood"]["choice"]).all()


def test_three_ways_to_predict_agree(posterior: rv.ChoicePosterior) -> None:
    """A vote of 2,000 draws is within five standard errors of the average."""
    ahead = offers(10, seed=9)
    average, vote = rv.predict(posterior, ahead), rv.predict(posterior, ahead, "vote")
    error = np.sqrt(average.probabilities * (1.0 - average.probabilities) / 2000)
    assert (np.abs(average.probabilities - vote.probabilities) < 5.0 * error + 1e-3).all()
    assert np.allclose(np.add.reduceat(average.probabilities, ahead.start[:-1]), 1.0)
    assert rv.policy(posterior, ahead).certainty.min() > 0.25
    assert rv.predict(posterior, ahead, "point").error_rate <= 1.0


def test_a_run_cut_in_two_draws_the_same(tmp_path: Path) -> None:
    d, rng = offers(), np.random.default_rng(0)
    model = rv.ChoiceModel(prior=rv.Normal(1.5), noise=rv.CorrelatedNoise())
    build = REGISTRY.find("auto", kind_of(model)).build
    assert build is not None
    sampler = build(model.resolve(d), BuildArguments({}, draws=20))
    state, _ = sampler.warmup(rng, sampler.init(rng, None), 100, 100)
    kept = rng.bit_generator.state
    whole = sampler.sample(rng, state, 20, 2)[1]
    rng.bit_generator.state = kept
    state, first, _ = sampler.sample(rng, state, 7, 2)
    second = sampler.sample(rng, state, 13, 2)[1]
    assert list(whole) == ["value", "noise_covariance"]
    for name in whole:
        assert np.array_equal(whole[name], np.concatenate([first[name], second[name]]))


@pytest.mark.proves(model="choices, noise covariance", sampler="ghk-hmc", problem="two actions")
def test_two_actions_are_a_probit() -> None:
    """With one difference there is nothing to learn of the covariance, and sqrt 2 is all that tells the scales apart."""
    rng = np.random.default_rng(0)
    rows, start = rng.standard_normal((80, 1)), 2 * np.arange(41)
    chosen = (
        rows[1::2, 0] + rng.standard_normal(40) > rows[::2, 0] + rng.standard_normal(40)
    ).astype(int)
    d = rv.Decisions(rows, start, chosen, actions=np.tile(["no", "yes"], 40))
    correlated = rv.ChoiceModel(prior=rv.Normal(1.0), noise=rv.CorrelatedNoise())
    full = rv.fit(d, correlated, draws=2000, chains=2)
    plain = rv.fit(d, rv.ChoiceModel(prior=rv.Normal(1.5)), draws=2000, chains=2)
    error = np.hypot(full.summary().mcse[0], plain.summary().mcse[0] / np.sqrt(2.0))
    assert_scores(
        (full.mean()[0] - plain.mean()[0] / np.sqrt(2.0)) / error, degrees=np.inf, how="agreement"
    )


def plain() -> rv.Decisions:
    return rv.Decisions([[1.0], [0.0]], [0, 2], [0], actions=["a", "b"])


def fit(d: rv.Decisions, noise: Any, prior: Any = None, **settings: Any) -> Any:
    return rv.fit(d, rv.ChoiceModel(prior=prior, noise=noise), **settings)


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (
            lambda: fit(rv.Decisions([[1.0], [0.0]], [0, 2], [0]), noise=rv.CorrelatedNoise()),
            "have no labels",
        ),
        (
            lambda: fit(plain(), noise=rv.CorrelatedNoise(base="z")),
            "the base action 'z' is never offered",
        ),
        (
            lambda: fit(plain(), noise="full"),
            "noise must be rv.NormalNoise() or rv.CorrelatedNoise(); it is 'full'",
        ),
        (
            lambda: fit(plain(), noise=rv.CorrelatedNoise),
            "noise must be rv.NormalNoise() or rv.CorrelatedNoise(); it is <class",
        ),
        (
            lambda: fit(plain(), sampler="px-both", noise=rv.CorrelatedNoise()),
            'the sampler "px-both" is for choices, and this model has correlated noise; '
            "choose one of auto, ghk-hmc, da",
        ),
        (
            lambda: rv.fit(plain(), sampler="ghk-hmc"),
            'the sampler "ghk-hmc" is for correlated noise, and this model has',
        ),
        (
            lambda: fit(plain(), options={"a": 1}, noise=rv.CorrelatedNoise()),
            'the sampler "ghk-hmc" has no use for options; leave it out',
        ),
        (
            lambda: fit(plain(), sampler="da", options={"a": 1}, noise=rv.CorrelatedNoise()),
            'the sampler "da" has no use for options; leave it out',
        ),
        (lambda: fit(plain(), noise=rv.CorrelatedNoise(df=-1.0)), "df must be more than 0"),
        (
            lambda: fit(plain(), noise=rv.CorrelatedNoise(centre="round")),
            'a matrix or "independent"',
        ),
        (
            lambda: fit(plain(), noise=rv.CorrelatedNoise(centre=[[-1.0]])),
            "not positive definite",
        ),
        (
            lambda: fit(plain(), rv.CorrelatedNoise(), rv.Normal(rv.HalfStudentT()), sampler="da"),
            'the sampler "da" is for correlated noise, and this model has a prior sd that is '
            "inferred and correlated noise; choose one of auto, ghk-hmc",
        ),
        (
            lambda: rv.fit(
                rv.Trajectories([([0, 1], [0])], 2, 1),
                rv.ChoiceModel(noise=rv.CorrelatedNoise(), transitions=rv.Dirichlet()),
            ),
            "no sampler takes unknown transitions and correlated noise together; "
            "give noise=rv.NormalNoise() or transitions=rv.Known()",
        ),
        (lambda: rv.CorrelatedNoise(scale="last"), '"trace" or "first"'),
        (
            lambda: fit(
                rv.Decisions([[1.0], [0.0]], [0, 2], [0], actions=["a", "a"]),
                noise=rv.CorrelatedNoise(),
            ),
            "decision 0 offers 'a' twice",
        ),
        (
            lambda: fit(
                rv.Decisions([[1.0], [0.0]], [0, 1, 2], [0, 0], actions=["a", "a"]),
                noise=rv.CorrelatedNoise(),
            ),
            "at least two actions",
        ),
        (
            lambda: rv.log_likelihood(plain(), [1.0], rv.NoiseCovariance("a", ("c",), np.eye(1))),
            "offers 'b'",
        ),
        (lambda: rv.NoiseCovariance("a", ("a",), np.eye(1)), "need different labels"),
        (lambda: rv.NoiseCovariance("a", ("b",), np.eye(2)), "it has shape (2, 2)"),
        (lambda: rv.NoiseCovariance("a", ("b",), -np.eye(1)), "not positive definite"),
        (lambda: rv.NoiseCovariance("a", ("b",), np.eye(1), points=0), "points must be"),
        (
            lambda: rv.log_likelihood(
                plain(), [[1.0]] * 3, rv.NoiseCovariance("a", ("b",), np.ones((2, 1, 1)))
            ),
            "2 noise covariances for 3 draws",
        ),
    ],
)
def test_bad_input_gets_a_sentence(action: Any, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        action()
