"""Particles that take one decision at a time give the posterior and the evidence of all of them."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
import scipy.stats as st

import revealed as rv
from revealed._types import Floats
from revealed.environments import Tetris
from revealed.models.likelihood import log_likelihood
from revealed.models.priors import resolve_prior
from revealed.results.diagnostics import mcse_mean, mcse_sd
from revealed.samplers import ibis, particle_law
from revealed.samplers.particle_law import ParticleSet
from tests.support.cases import choose, mdp_offers, ragged_offers
from tests.support.statistical_asserts import (
    assert_scores,
    must_fail,
    patched_source,
)

pytestmark = pytest.mark.proves(model="choices, normal prior", sampler="ibis")
REPEATS = 16  # independent sets of particles, whose differences give the Monte-Carlo error


def run_repeatedly(
    decisions: rv.Decisions, prior: rv.Normal, particles: int, seed: int, by: ModuleType
) -> list[ParticleSet]:
    """Independent sets of particles after all decisions."""
    sampler = by.IBISSampler(decisions, resolve_prior(prior, decisions), particles)
    found = []
    for source in np.random.SeedSequence(seed).spawn(REPEATS):
        rng = np.random.default_rng(source)
        state, _ = sampler.warmup(rng, sampler.init(rng, None), len(decisions), len(decisions))
        found.append(by._from_state(state))
    return found


def assert_agree(
    found: list[ParticleSet],
    mean: Floats,
    mean_error: Floats,
    sd: Floats,
    sd_error: Floats,
    how: str = "agreement",
) -> None:
    """Means and sds agree with the truth within Monte-Carlo error.

    mean_error, sd_error: of the truth itself, where it is made of draws.
    """
    means = np.array([c.weights @ c.parts["values"] for c in found])
    squares = np.array([c.weights @ (c.parts["values"] - mean) ** 2 for c in found])
    compared = ((means, mean, mean_error), (squares, sd**2, 2.0 * sd * sd_error))
    scores = [
        (each.mean(axis=0) - truth) / np.hypot(each.std(axis=0, ddof=1) / np.sqrt(REPEATS), error)
        for each, truth, error in compared
    ]
    assert_scores(scores, false_alarm=1e-6, degrees=REPEATS - 1, how=how)


def assert_agrees_with_default_sampler(
    decisions: rv.Decisions, prior: rv.Normal, particles: int, by: ModuleType = ibis
) -> None:
    post = rv.fit(decisions, rv.ChoiceModel(prior=prior), draws=10_000, seed=3)
    errors = mcse_mean(post.draws["value"]), mcse_sd(post.draws["value"])
    found = run_repeatedly(decisions, prior, particles, 7, by)
    assert_agree(found, post.mean(), errors[0], post.sd(), errors[1])


def tetris_decisions(count: int) -> rv.Decisions:
    world = Tetris()
    return world.decisions(world.simulate(np.random.default_rng(1), [-3.0, -15.0, -1.0], count))


def mdp_decisions(count: int) -> rv.Decisions:
    rng = np.random.default_rng(8)
    offers = mdp_offers(states=5, actions=3, count=count, seed=3)
    return offers.with_choices(
        choose(rng, offers, resolve_prior(rv.Normal(5.0), offers).draw(rng, 1)[0])[0]
    )


@pytest.mark.slow
def test_hundred_decisions_of_an_mdp_agree_with_the_default_sampler() -> None:
    assert_agrees_with_default_sampler(mdp_decisions(100), rv.Normal(5.0), 1000)


@pytest.mark.slow
def test_hundred_decisions_of_tetris_agree_with_the_default_sampler() -> None:
    assert_agrees_with_default_sampler(tetris_decisions(100), rv.Normal(50.0), 1000)


@pytest.mark.slow
@pytest.mark.proves(model="choices, inferred prior scale")
def test_inferred_prior_scale_agrees_with_the_default_sampler() -> None:
    assert_agrees_with_default_sampler(
        mdp_decisions(40), rv.Normal(rv.HalfStudentT(scale=3.0)), 1000
    )


def two_features(seed: int) -> rv.Decisions:
    rng = np.random.default_rng(seed)
    offers = ragged_offers(2, 15, seed=seed)
    return offers.with_choices(choose(rng, offers, np.array([1.5, -1.0]))[0])


def quadrature(decisions: rv.Decisions, variance: float) -> tuple[float, Floats, Floats]:
    """The log evidence, posterior means and sds of two coefficients.

    On an even grid, and twice more on a finer one where the mass is.
    """
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
    return (
        float(top + np.log(total * cell.prod())),
        mean,
        np.sqrt(weight @ (points - mean) ** 2 / total),
    )


def assert_evidence(found: list[ParticleSet], truth: float) -> None:
    """The mean of the estimated evidence, which is unbiased, agrees with the truth."""
    ratio = np.exp(np.array([c.log_evidence for c in found]) - truth)
    z = (ratio.mean() - 1.0) / (ratio.std(ddof=1) / np.sqrt(REPEATS))
    assert_scores(
        z, false_alarm=1e-6, degrees=REPEATS - 1, what=f"evidence {ratio.mean():.3f} of the truth"
    )


def assert_evidence_and_moments(
    found: list[ParticleSet], truth: float, mean: Floats, sd: Floats
) -> None:
    """All that quadrature gives agrees."""
    assert_evidence(found, truth)
    assert_agree(found, mean, np.zeros(2), sd, np.zeros(2), how="oracle")


@pytest.mark.parametrize("variance", [1.0, 400.0])
def test_evidence_and_moments_are_those_of_quadrature(variance: float) -> None:
    """With the wide prior the first decisions leave few particles, and are tempered."""
    decisions = two_features(5)
    truth, mean, sd = quadrature(decisions, variance)
    found = run_repeatedly(decisions, rv.Normal(variance**0.5), 1000, 11, ibis)
    assert_evidence_and_moments(found, truth, mean, sd)


@pytest.mark.proves(model="online learner")
def test_online_learner_has_the_evidence_and_moments_of_quadrature() -> None:
    decisions, model = two_features(5), rv.ChoiceModel(prior=rv.Normal(1.0))
    found = [
        rv.OnlineLearner(model, 2, 1000, seed=seed).update(decisions)._filters.of(None).particles
        for seed in range(REPEATS)
    ]
    assert_evidence_and_moments(found, *quadrature(decisions, 1.0))


def test_choice_that_is_rare_under_the_prior_gives_the_right_posterior() -> None:
    """One action lies between the others: it is chosen only where all utilities are about equal."""
    rows = np.array([[10.0, 0.0], [-10.0, 0.0], [0.0, 0.0], [0.0, 10.0], [0.0, -10.0]])
    decisions = rv.Decisions(np.tile(rows, (3, 1)), [0, 5, 10, 15], [2, 2, 2])
    truth, mean, sd = quadrature(decisions, 1.0)
    found = run_repeatedly(decisions, rv.Normal(1.0), 1000, 12, ibis)
    assert_evidence_and_moments(found, truth, mean, sd)


MUTANTS = {  # file, old and new text, and the prior variance
    "moves forget half of the last decision": (
        "samplers/ibis.py",
        "weight[-1] = exponent",
        "weight[-1] = 0.5 * exponent",
        400.0,
    ),
    "evidence of unweighted means": (
        "samplers/particle_law.py",
        "self.weights @ np.exp(log_factors - top)",
        "np.exp(log_factors - top).mean()",
        1.0,
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_wrong_particles_are_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file, old, new, variance = MUTANTS[name]
    wrong = ibis
    if file == "samplers/ibis.py":
        wrong = patched_source(ibis, old, new)
        # the weight is used where a decision is tempered, and here it always is
        always = replace(particle_law.PARTICLES, ess_temper_below=1.0)
        monkeypatch.setattr(particle_law, "PARTICLES", always)
    else:
        patched = patched_source(particle_law, old, new)
        monkeypatch.setattr(ibis, "ParticleSet", vars(patched)["ParticleSet"])
    decisions = two_features(5)
    truth, mean, sd = quadrature(decisions, variance)
    found = run_repeatedly(decisions, rv.Normal(variance**0.5), 1000, 11, wrong)
    with must_fail(name):
        assert_evidence_and_moments(found, truth, mean, sd)
