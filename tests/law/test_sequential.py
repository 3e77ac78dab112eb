"""Learning one decision at a time gives the posterior, and the evidence, of all of them."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
import scipy.stats as st

import understudy as us
from evidence import assert_scores, assert_uniform_ranks, caught, changed
from problems import choose, mdp_offers, ragged_offers
from understudy._arrays import Floats, Ints
from understudy.diagnostics import mcse_mean, mcse_sd
from understudy.engines import sequential
from understudy.likelihood import log_likelihood
from understudy.priors import place
from understudy.worlds import Tetris

pytestmark = pytest.mark.proves(model="choices, Gaussian prior", engine="ibis")
CLOUDS = 16


def clouds(
    decisions: us.Decisions, prior: us.Gaussian, particles: int, seed: int, by: ModuleType
) -> list[sequential.Cloud]:
    """Independent clouds after all decisions."""
    engine = by.Sequential(decisions, place(prior, decisions), particles)
    found = []
    for source in np.random.SeedSequence(seed).spawn(CLOUDS):
        rng = np.random.default_rng(source)
        state, _ = engine.warm(rng, engine.start(rng, None), len(decisions), len(decisions))
        found.append(by._read(state))
    return found


def assert_agree(
    found: list[sequential.Cloud],
    mean: Floats,
    mean_error: Floats,
    sd: Floats,
    sd_error: Floats,
    how: str = "agreement",
) -> None:
    """Means and sds over clouds lie within Monte-Carlo error of the truth, or of draws with errors of their own."""
    means = np.array([c.weights @ c.values for c in found])
    squares = np.array([c.weights @ (c.values - mean) ** 2 for c in found])
    pairs = ((means, mean, mean_error), (squares, sd**2, 2.0 * sd * sd_error))
    scores = [
        (each.mean(axis=0) - truth) / np.hypot(each.std(axis=0, ddof=1) / np.sqrt(CLOUDS), error)
        for each, truth, error in pairs
    ]
    assert_scores(scores, false_alarm=1e-6, degrees=CLOUDS - 1, how=how)


def assert_agrees_with_batch(
    decisions: us.Decisions, prior: us.Gaussian, particles: int, by: ModuleType = sequential
) -> None:
    post = us.fit(decisions, prior, draws=10_000, seed=3)
    errors = mcse_mean(post.draws), mcse_sd(post.draws)
    assert_agree(clouds(decisions, prior, particles, 7, by), post.mean, errors[0], post.sd, errors[1])


def tetris(count: int) -> us.Decisions:
    world = Tetris()
    return world.decisions(world.simulate(np.random.default_rng(1), [-3.0, -15.0, -1.0], count))


def toy(count: int) -> us.Decisions:
    rng = np.random.default_rng(8)
    offers = mdp_offers(states=5, actions=3, count=count, seed=3)
    return offers.with_choices(choose(rng, offers, place(us.Gaussian(25.0), offers).draw(rng, 1)[0])[0])


def test_the_toy_after_a_hundred_decisions() -> None:
    assert_agrees_with_batch(toy(100), us.Gaussian(25.0), 1000)


def test_tetris_after_a_hundred_decisions() -> None:
    assert_agrees_with_batch(tetris(100), us.Gaussian(2500.0), 1000)


@pytest.mark.proves(model="choices, learnt size")
def test_a_prior_whose_size_is_learnt() -> None:
    assert_agrees_with_batch(toy(40), us.Gaussian("learn", scale=3.0), 1000)


def two_features(seed: int) -> us.Decisions:
    rng = np.random.default_rng(seed)
    offers = ragged_offers(2, 15, seed=seed)
    return offers.with_choices(choose(rng, offers, np.array([1.5, -1.0]))[0])


def quadrature(decisions: us.Decisions, variance: float) -> tuple[float, Floats, Floats]:
    """The log evidence, posterior means and sds of two coefficients: on an even grid, and once more on a finer one over all that matters."""
    low, high = np.full(2, -8.0 * np.sqrt(variance)), np.full(2, 8.0 * np.sqrt(variance))
    for _ in range(3):
        edges = np.linspace(low, high, 241)
        points = np.stack(np.meshgrid(*edges.T, indexing="ij"), axis=-1).reshape(-1, 2)
        logs = log_likelihood(decisions, points).sum(axis=1)
        logs += st.norm.logpdf(points, scale=np.sqrt(variance)).sum(axis=1)
        top, cell = logs.max(), edges[1] - edges[0]
        seen = points[logs > top - 30.0]
        low, high = seen.min(axis=0) - cell, seen.max(axis=0) + cell
    weight = np.exp(logs - top)
    total = weight.sum()
    mean = weight @ points / total
    return float(top + np.log(total * cell.prod())), mean, np.sqrt(weight @ (points - mean) ** 2 / total)


def assert_evidence(found: list[sequential.Cloud], truth: float) -> None:
    """The mean of the clouds' evidence, which is unbiased, agrees with the truth."""
    ratio = np.exp(np.array([c.log_evidence for c in found]) - truth)
    z = (ratio.mean() - 1.0) / (ratio.std(ddof=1) / np.sqrt(CLOUDS))
    assert_scores(z, false_alarm=1e-6, degrees=CLOUDS - 1, what=f"evidence {ratio.mean():.3f} of the truth")


def assert_right(found: list[sequential.Cloud], truth: float, mean: Floats, sd: Floats) -> None:
    """All that quadrature knows."""
    assert_evidence(found, truth)
    assert_agree(found, mean, np.zeros(2), sd, np.zeros(2), how="oracle")


@pytest.mark.parametrize("variance", [1.0, 400.0])
def test_evidence_is_that_of_quadrature(variance: float) -> None:
    """With the wide prior the first decisions leave few particles, and are learnt in parts."""
    decisions = two_features(5)
    truth, mean, sd = quadrature(decisions, variance)
    found = clouds(decisions, us.Gaussian(variance), 1000, 11, sequential)
    assert_right(found, truth, mean, sd)


@pytest.mark.proves(model="a stream")
def test_a_stream_has_the_evidence_and_the_posterior_of_quadrature() -> None:
    decisions = two_features(5)
    found = [us.Stream(2, us.Gaussian(1.0), 1000, seed=seed).update(decisions)._cloud for seed in range(CLOUDS)]
    assert_right(found, *quadrature(decisions, 1.0))


def test_a_choice_that_hardly_any_prior_draw_would_make() -> None:
    """One action is between two others: it is chosen only where all three are worth about the same."""
    rows = np.array([[10.0, 0.0], [-10.0, 0.0], [0.0, 0.0], [0.0, 10.0], [0.0, -10.0]])
    decisions = us.Decisions(np.tile(rows, (3, 1)), [0, 5, 10, 15], [2, 2, 2])
    truth, mean, sd = quadrature(decisions, 1.0)
    found = clouds(decisions, us.Gaussian(1.0), 1000, 12, sequential)
    assert_right(found, truth, mean, sd)


OFFERS = ragged_offers(3, 12, seed=2, size=0.7)
KEPT = 15


def ranks(replications: int, seed: int, by: ModuleType) -> Ints:
    """(replications, 4) ranks of the true coefficients and of their log-likelihood among 15 particles of 240."""
    rng = np.random.default_rng(seed)
    prior = us.Gaussian(25.0)
    placed = place(prior, OFFERS)
    out = np.empty((replications, 4), dtype=np.int64)
    for i, truth in enumerate(placed.draw(rng, replications)):
        seen = OFFERS.with_choices(choose(rng, OFFERS, truth)[0])
        engine = by.Sequential(seen, placed, 240)
        state, _ = engine.warm(rng, engine.start(rng, None), len(seen), len(seen))
        cloud = by._read(state)
        drawn = cloud.values[rng.choice(240, KEPT, p=cloud.weights)]
        fit = us.log_likelihood(seen, np.vstack([drawn, truth])).sum(axis=1)
        out[i, :3] = (drawn < truth).sum(axis=0)
        out[i, 3] = (fit[:-1] < fit[-1]).sum()
    return out


@pytest.mark.proves(problem="features")
def test_ranks_are_uniform() -> None:
    assert_uniform_ranks(ranks(150, 4, sequential), KEPT, false_alarm=1e-6)


@pytest.mark.slow
@pytest.mark.proves(problem="features")
def test_ranks_are_uniform_in_the_long_run() -> None:
    assert_uniform_ranks(ranks(2_000, 5, sequential), KEPT, false_alarm=1e-6)


MUTANTS = {  # old and new text, and the prior variance
    "moves forget half of the last decision": ("weight[-1] = learnt", "weight[-1] = 0.5 * learnt", 400.0),
    "evidence of unweighted means": (
        "self.weights @ np.exp(log_factors - top)", "np.exp(log_factors - top).mean()", 1.0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTANTS)
def test_wrong_clouds_are_caught(name: str) -> None:
    old, new, variance = MUTANTS[name]
    wrong = changed(sequential, old, new)
    if name.startswith("moves"):  # the weight is used where a decision is learnt in parts; here it always is
        vars(wrong)["SUDDEN"] = 1.0
    decisions = two_features(5)
    truth, mean, sd = quadrature(decisions, variance)
    found = clouds(decisions, us.Gaussian(variance), 1000, 11, wrong)
    with caught(name):
        assert_right(found, truth, mean, sd)
