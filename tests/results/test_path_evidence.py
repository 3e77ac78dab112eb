"""The evidence of values that change: against grids, the same model told otherwise, and PsyTrack."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.stats as st

import revealed as rv
from revealed.samplers.builders import BuildArguments, build_state_space
from revealed.samplers.path_evidence import _bridge, laplace_evidence
from revealed.samplers.path_filter_evidence import _mean_weight
from tests.conformance.paths import EACH, GAP, STEP, half_t, likelihoods, two_times
from tests.conformance.problems import LAPSE
from tests.results.test_paths import rat
from tests.support.statistical_asserts import assert_scores, must_fail

START = 1.5


@cache
def walk(lapses: bool) -> rv.PathPosterior:
    """Two times, the sd of a step inferred."""
    noise = rv.LogitNoise(lapse=LAPSE) if lapses else rv.LogitNoise()
    over_time = rv.RandomWalk(rv.HalfStudentT(scale=STEP))
    model = rv.ChoiceModel(prior=rv.Normal(START), noise=noise, over_time=over_time)
    post = rv.fit(two_times(), model, draws=4_000, seed=2, progress=False)
    assert isinstance(post, rv.PathPosterior)
    return post


def exact_walk(noise: Any) -> float:
    """The log evidence of both times on a grid of values and log sds."""
    d, v = two_times(), np.linspace(-15.0, 15.0, 601)
    spacing = v[1] - v[0]
    left, right = likelihoods(d[:EACH], noise, v), likelihoods(d[EACH:], noise, v)
    first = left * st.norm.pdf(v, 0.0, START) * spacing
    total = 0.0
    log_sds, density = half_t(121, -9.0, 6.0, STEP)
    for log_sd, weight in zip(log_sds, density, strict=True):
        sd = max(np.exp(log_sd) * np.sqrt(GAP), 0.6 * spacing)
        move = np.exp(-0.5 * ((v - v[:, None]) / sd) ** 2)
        move /= np.maximum(move.sum(axis=1), sd * np.sqrt(2.0 * np.pi) / spacing)[:, None]
        total += weight * float((first @ move * right).sum())
    # Gauss's weights of rates of lapses sum to two, and densities of sds to their scale
    share = (0.5 if noise.lapse is not None else 1.0) / STEP
    return float(np.log(share * total * (log_sds[1] - log_sds[0])))


@pytest.mark.parametrize(
    ("method", "draws", "error"), [("bridge", 2_000, 0.05), ("filter", 400, 0.1)]
)
@pytest.mark.parametrize("lapses", [False, True])
def test_evidence_is_that_of_a_grid(lapses: bool, method: str, draws: int, error: float) -> None:
    post = walk(lapses)
    noise: Any = post.model.noise
    found = post.evidence(method, draws=draws)
    exact = exact_walk(noise)
    assert found.error < error
    assert_scores(np.array([(found.log_evidence - exact) / found.error]), 1e-6, 20)
    with must_fail("a prior of steps that does not integrate to one"):
        wrong = (found.log_evidence + np.log(2.0) - exact) / found.error
        assert_scores(np.array([wrong]), 1e-6, 20)


def times_of(kind: str) -> tuple[rv.Decisions, Any]:
    """Choices at some times, whose values hardly move."""
    rng = np.random.default_rng(4)
    rows = rng.standard_normal((120, 2))
    utility = rows @ [1.0, -0.5] + rng.gumbel(size=120)
    chosen = utility.reshape(40, 3).argmax(axis=1)
    times = np.cumsum(rng.uniform(0.2, 2.0, 40))
    sessions = np.repeat(["a", "b"], 20)
    d = rv.Decisions(rows, range(0, 121, 3), chosen, times=times, sessions=sessions)
    over_time: dict[str, Any] = {
        "walk": rv.RandomWalk(1e-3),
        "sessions": rv.RandomWalk(1e-3, between_sessions=1e-3),
        "reverting": rv.MeanReverting(1e-3, 0.5),
    }
    return d, over_time[kind]


@pytest.mark.parametrize(
    "kind", ["sessions", "reverting", pytest.param("walk", marks=pytest.mark.slow)]
)
def test_values_that_hardly_move_have_the_evidence_of_those_that_stay(kind: str) -> None:
    """By particles, which know nothing of paths."""
    d, over_time = times_of(kind)
    model = rv.ChoiceModel(prior=rv.Normal(2.0), noise=rv.LogitNoise(), over_time=over_time)
    post: Any = rv.fit(d, model, draws=500, seed=1, progress=False)
    still = rv.fit(
        d,
        model.replace(over_time=rv.Constant()),
        sampler="ibis",
        draws=1_000,
        chains=8,
        seed=1,
        progress=False,
    )
    found = rv.compare({"moving": post, "still": still})
    z = np.diff(found.log_evidence) / np.hypot(*found.log_evidence_se)
    assert_scores(z, 1e-6, 7)
    # nothing but the path is unknown of the walks: Laplace's approximation is near
    if kind != "reverting":
        near = post.evidence(method="laplace")
        assert near.log_evidence == pytest.approx(post.evidence().log_evidence, abs=0.3)


def test_what_is_not_known_is_refused() -> None:
    post = walk(False)
    with pytest.raises(ValueError, match=r'"bridge", "filter" or "laplace"'):
        post.evidence("harmonic")
    with pytest.raises(ValueError, match="give the sizes of steps"):
        post.evidence("laplace")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rv.NotConvergedWarning)
        few: Any = rv.fit(post.decisions, post.model, draws=10, warmup=50, progress=False)
    with pytest.raises(ValueError, match="at least 100 draws"):
        few.evidence()
    # such a model is compared by what it predicts alone
    found = rv.compare({"few": few, "many": post})
    assert np.isnan(found.log_evidence[found.models.index("few")])
    rng = np.random.default_rng(1)
    apart = rng.normal(30.0, 3.0, (4, 100)), rng.normal(-30.0, 3.0, 400)
    with pytest.raises(ValueError, match="the evidence is not known"):
        _bridge(*apart)


def test_the_evidence_of_a_rat_is_that_of_psytrack() -> None:
    """At the sizes that PsyTrack found, whose log evidence is -6389.27 with a first sd of 16."""
    model = rv.ChoiceModel(
        prior=rv.Normal(16.0),
        noise=rv.LogitNoise(),
        over_time=rv.RandomWalk([0.01779, 0.00323, 0.00289]),
    )
    sampler: Any = build_state_space(model.resolve(rat(10_000)), BuildArguments({}, 1))
    found = laplace_evidence(sampler.data, sampler.process, sampler.known)
    assert found == pytest.approx(-6389.27477, abs=0.01)


@pytest.mark.parametrize("kind", ["walk", "sessions", "reverting"])
def test_particles_have_the_evidence_of_the_bridge(kind: str) -> None:
    """Over forty times, at which particles are drawn anew, and values that move far."""
    d, _ = times_of(kind)
    over_time: Any = {
        "walk": rv.RandomWalk(0.5),
        "sessions": rv.RandomWalk(0.1, between_sessions=2.0),
        "reverting": rv.MeanReverting(1.5, 0.3),
    }[kind]
    model = rv.ChoiceModel(prior=rv.Normal(2.0), noise=rv.LogitNoise(), over_time=over_time)
    post: Any = rv.fit(d, model, draws=1_000, seed=1, progress=False)
    bridge, particles = post.evidence(draws=600), post.evidence("filter", draws=200)
    assert particles.error < 0.1

    def check(log_evidence: float) -> None:
        error = np.hypot(bridge.error, particles.error)
        assert_scores(np.array([(log_evidence - bridge.log_evidence) / error]), 1e-6, 60)

    check(particles.log_evidence)
    with must_fail("a mean weight that is not one of all particles"):
        check(particles.log_evidence + np.log(2.0))


def test_a_filter_refuses_what_it_cannot_say() -> None:
    with pytest.raises(ValueError, match="the evidence is not known"):
        _mean_weight(np.append(np.zeros(99), 50.0))
