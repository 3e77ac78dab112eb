"""An online learner has the posterior and the evidence of `rv.fit`, for every part of the model.

Independent learners give the Monte-Carlo error: their mean must agree with the long run, or with an
integral where there is one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed._types import Floats, Ints
from revealed.kernels.population import draw_inverse_wishart
from revealed.models.correlated_noise import NoiseCovariance
from revealed.results.diagnostics import mcse_mean
from revealed.samplers import particles
from revealed.samplers.correlated_law import CorrelatedLaw
from revealed.samplers.observations import tells_actions_apart
from revealed.samplers.particle_filter import make_law
from revealed.samplers.particle_law import Observation, ParticleSet
from revealed.samplers.population_law import PopulationLaw
from tests.support.logistic_noise import LogisticNoise
from tests.support.statistical_asserts import assert_scores, assert_uniform_ranks, must_fail

pytestmark = pytest.mark.proves(model="online learner", sampler="ibis")
REPEATS = 12  # independent learners, whose differences give the Monte-Carlo error
PARTICLES = 400
ACTIONS = ("bus", "car", "tram")
NORMAL = rv.ChoiceModel(prior=rv.Normal(2.0))
HIERARCHICAL = rv.ChoiceModel(prior=rv.Normal(2.0), groups=rv.Hierarchical(sd_scale=1.0))
CORRELATED = rv.ChoiceModel(prior=rv.Normal(2.0), noise=rv.CorrelatedNoise(base="car"))


def grouped(count: int, groups: int, seed: int) -> rv.Decisions:
    """Decisions between three actions, of groups whose values differ."""
    rng = np.random.default_rng(seed)
    who, rows = rng.integers(groups, size=count), rng.normal(size=(count, 3, 2))
    values = rng.normal([1.0, -0.5], 0.6, (groups, 2))
    utilities = np.einsum("tmk,tk->tm", rows, values[who]) + rng.normal(size=(count, 3))
    labels = np.array([f"p{i}" for i in range(groups)])[who]
    starts = range(0, 3 * count + 1, 3)
    return rv.Decisions(rows.reshape(-1, 2), starts, utilities.argmax(axis=1), groups=labels)


def labelled(count: int, seed: int, sizes: tuple[int, ...] = (3,)) -> rv.Decisions:
    """Decisions between labelled actions, of which bus and tram have noise in common."""
    rng = np.random.default_rng(seed)
    rows, start, chosen, actions = [], [0], [], []
    for t in range(count):
        labels = rng.permutation(len(ACTIONS))[: sizes[t % len(sizes)]]
        offered = rng.normal(size=(len(labels), 1))
        common = rng.normal()
        noise = np.where(labels == 1, rng.normal(size=len(labels)), 0.0)
        noise += np.where(labels != 1, 0.8 * common + 0.6 * rng.normal(size=len(labels)), 0.0)
        rows.append(offered)
        start.append(start[-1] + len(labels))
        chosen.append(int(np.argmax(1.2 * offered[:, 0] + noise)))
        actions += [ACTIONS[i] for i in labels]
    return rv.Decisions(np.vstack(rows), start, chosen, actions=actions)


def learners(
    d: rv.Decisions, model: rv.ChoiceModel, seed: int = 0, repeats: int = REPEATS
) -> list[rv.OnlineLearner]:
    """Independent learners that have seen all decisions."""
    actions = ACTIONS if tells_actions_apart(model) else None
    made = [
        rv.OnlineLearner(model, d.names, PARTICLES, seed + i, actions=actions)
        for i in range(repeats)
    ]
    return [learner.update(d) for learner in made]


def quantities(draws: Any) -> Floats:
    """(..., n) what is compared: means of these are those of the posterior."""
    parts = []
    for name, array in draws.items():
        lead = array.shape[:2]
        if name == "population_covariance":
            parts.append(np.log(np.einsum("...kk->...k", array)))
        elif name == "prior_sd":
            parts.append(np.log(array)[..., None])
        else:
            flat = array.reshape(*lead, -1)
            parts += [flat, np.tanh(flat) ** 2]  # a second moment whose tails are light
    return np.concatenate(parts, axis=-1)


def assert_agrees_with_fit(
    d: rv.Decisions, model: rv.ChoiceModel, draws: int = 4000, repeats: int = REPEATS
) -> None:
    post = rv.fit(d, model, draws=draws, seed=5)
    truth = quantities(post.draws)
    found = [quantities(one.posterior().draws).mean(axis=(0, 1)) for one in learners(d, model)]
    assert_means(np.array(found), truth.mean(axis=(0, 1)), mcse_mean(truth))


def assert_means(found: Floats, truth: Floats, error: Any) -> None:
    """Means over independent learners agree with the truth, which has an error itself."""
    spread = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    scores = (found.mean(axis=0) - truth) / np.hypot(spread, error)
    moving = np.hypot(spread, error) > 1e-9
    assert_scores(scores[moving], false_alarm=1e-6, degrees=len(found) - 1, how="agreement")


@pytest.mark.slow
def test_another_noise_agrees_with_fit() -> None:
    model = NORMAL.replace(noise=LogisticNoise())
    assert_agrees_with_fit(grouped(30, 1, seed=1), model)


def test_separate_groups_agree_with_fit() -> None:
    model = NORMAL.replace(groups=rv.Separate())
    assert_agrees_with_fit(grouped(40, 3, seed=2), model)


def test_lapses_agree_with_fit() -> None:
    model = NORMAL.replace(noise=rv.LogitNoise(lapse=rv.Lapse(rv.Beta(2.0, 8.0))))
    assert_agrees_with_fit(grouped(40, 1, seed=9), model)


@pytest.mark.slow
def test_habits_agree_with_fit() -> None:
    model = NORMAL.replace(noise=rv.NormalNoise(lapse=rv.Lapse(rv.Beta(2.0, 4.0), to="habit")))
    assert_agrees_with_fit(labelled(40, seed=10, sizes=(3, 3, 2)), model)


@pytest.mark.slow
def test_hierarchical_groups_agree_with_fit() -> None:
    assert_agrees_with_fit(grouped(40, 4, seed=3), HIERARCHICAL)


@pytest.mark.slow
def test_correlated_noise_agrees_with_fit() -> None:
    assert_agrees_with_fit(labelled(40, seed=4, sizes=(3, 3, 2)), CORRELATED)


PARTS: dict[str, tuple[rv.ChoiceModel, Callable[[], rv.Decisions]]] = {
    "hierarchical, inferred sd": (
        HIERARCHICAL.replace(prior=rv.Normal(rv.HalfStudentT(scale=2.0))),
        lambda: grouped(40, 4, seed=3),
    ),
    "hierarchical, logistic": (
        HIERARCHICAL.replace(noise=LogisticNoise()),
        lambda: grouped(40, 4, seed=6),
    ),
    "separate, correlated": (
        CORRELATED.replace(groups=rv.Separate()),
        lambda: with_groups(labelled(40, seed=7)),
    ),
    "correlated, inferred sd": (
        CORRELATED.replace(prior=rv.Normal(rv.HalfStudentT(scale=2.0))),
        lambda: labelled(40, seed=8),
    ),
}


def with_groups(d: rv.Decisions) -> rv.Decisions:
    """The same decisions, taken in turn by two."""
    who = np.arange(len(d)) % 2
    return rv.Decisions(d.rows, d.start, d.chosen, actions=d.actions, groups=who)


@pytest.mark.slow
@pytest.mark.parametrize("name", PARTS)
def test_parts_together_agree_with_fit(name: str) -> None:
    model, data = PARTS[name]
    assert_agrees_with_fit(data(), model, draws=10_000)


def assert_evidence(found: list[rv.OnlineLearner], truth: float, error: float) -> None:
    """The mean of the estimated evidence, which is unbiased, agrees with the truth.

    error: of the true evidence, as a share of it.
    """
    ratio = np.exp(np.array([learner.log_evidence for learner in found]) - truth)
    spread = np.hypot(ratio.std(ddof=1) / np.sqrt(len(found)), error)
    z = (ratio.mean() - 1.0) / spread
    assert_scores(z, false_alarm=1e-6, degrees=len(found) - 1, what="evidence")


def importance_evidence(log_likelihoods: Floats) -> tuple[float, float]:
    """The log evidence as the mean of likelihoods (n,) over draws of the prior, and its error."""
    top = log_likelihoods.max()
    weight = np.exp(log_likelihoods - top)
    return float(top + np.log(weight.mean())), float(
        weight.std() / weight.mean() / np.sqrt(len(weight))
    )


def draw_populations(count: int, groups: int) -> Floats:
    """(count, groups, 2) values of groups of populations drawn from `HIERARCHICAL`."""
    rng = np.random.default_rng(0)
    a = 1.0 / rng.standard_gamma(0.5, (count, 2))
    covariance = np.array([draw_inverse_wishart(rng, 3.0, np.diag(4.0 / each)) for each in a])
    z = rng.standard_normal((count, groups, 2))
    mean = 2.0 * rng.standard_normal((count, 1, 2))
    return np.asarray(mean + np.einsum("nij,ngj->ngi", np.linalg.cholesky(covariance), z))


def evidence_of_populations(d: rv.Decisions) -> tuple[float, float]:
    labels = list(dict.fromkeys(np.asarray(d.groups).tolist()))
    values = draw_populations(40_000, len(labels))
    total = np.zeros(len(values))
    for i, label in enumerate(labels):
        own = d[np.flatnonzero(np.asarray(d.groups) == label)]
        total += rv.log_likelihood(own, values[:, i]).sum(axis=1)
    return importance_evidence(total)


def test_evidence_of_a_population() -> None:
    d = grouped(10, 3, seed=9)
    assert_evidence(learners(d, HIERARCHICAL), *evidence_of_populations(d))


def test_evidence_with_lapses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of somebody who takes the worst action now and then, so that the rate matters."""
    model = NORMAL.replace(noise=rv.LogitNoise(lapse=rv.Lapse(rv.Beta(2.0, 8.0))))
    rng, count = np.random.default_rng(11), 40_000
    rows = np.sort(rng.normal(0.0, 2.0, (12, 3, 1)), axis=1)
    chosen = np.where(np.arange(12) % 4 == 3, 0, 2)
    d = rv.Decisions(rows.reshape(-1, 1), range(0, 37, 3), chosen)
    noise = rv.KnownLapse(rv.LogitNoise(), rng.beta(2.0, 8.0, count))
    values = 2.0 * rng.standard_normal((count, 1))
    truth = importance_evidence(rv.log_likelihood(d, values, noise).sum(axis=1))
    assert_evidence(learners(d, model), *truth)

    def whole(noise: Any, values: Floats, size: int, actions: Any) -> Floats:
        return np.ones((len(values), size))

    # moves forget wrong weights, the evidence does not
    monkeypatch.setattr(particles, "_blind_shares", whole)
    with must_fail("lapses that do not add to one"):
        assert_evidence(learners(d, model), *truth)


def evidence_of_covariances(d: rv.Decisions) -> tuple[float, float]:
    rng = np.random.default_rng(0)
    count = 10_000
    value = 2.0 * rng.standard_normal((count, 1))
    covariance = np.array([draw_inverse_wishart(rng, 3.0, np.eye(2)) for _ in range(count)])
    covariance *= 2.0 / np.trace(covariance, axis1=1, axis2=2)[:, None, None]
    noise = NoiseCovariance("car", ("bus", "tram"), covariance, points=32)
    return importance_evidence(rv.log_likelihood(d, value, noise).sum(axis=1))


def test_evidence_under_correlated_noise() -> None:
    d = labelled(8, seed=10)
    assert_evidence(learners(d, CORRELATED), *evidence_of_covariances(d))


# Calibration: the truth is a draw from the prior, and its rank among particles is uniform.

KEPT = 15  # particles that a truth is ranked among
POPULATION_OFFERS = grouped(18, 4, seed=11)
NOISE_OFFERS = labelled(14, seed=12)


def population_ranks(replications: int, seed: int) -> Ints:
    """Ranks of a population's mean and log sds, and of the first group's value."""
    rng, d = np.random.default_rng(seed), POPULATION_OFFERS
    who = list(dict.fromkeys(np.asarray(d.groups).tolist()))
    position = np.array([who.index(label) for label in np.asarray(d.groups).tolist()])
    out = []
    for _ in range(replications):
        covariance = draw_inverse_wishart(rng, 3.0, np.diag(4.0 * rng.standard_gamma(0.5, 2)))
        mean = 2.0 * rng.standard_normal(2)
        q = mean + rng.standard_normal((len(who), 2)) @ np.linalg.cholesky(covariance).T
        utilities = np.einsum("pk,pk->p", d.rows, q[position][d.decision_of_row])
        noisy = (utilities + rng.standard_normal(len(utilities))).reshape(-1, 3)
        learner = rv.OnlineLearner(HIERARCHICAL, 2, 200, int(rng.integers(2**31)))
        post = learner.update(d.with_choices(noisy.argmax(axis=1))).posterior()
        pick = rng.choice(200, KEPT, replace=False)
        drawn = np.hstack(
            [
                post.stacked("population_mean")[pick],
                np.log(np.einsum("nkk->nk", post.stacked("population_covariance")[pick])),
                post.stacked("value")[pick, 0],
            ]
        )
        truth = np.concatenate([mean, np.log(np.diag(covariance)), q[0]])
        out.append((drawn < truth).sum(axis=0))
    return np.array(out)


def noise_ranks(replications: int, seed: int) -> Ints:
    """Ranks of the coefficient and of the covariance's entries."""
    rng, d = np.random.default_rng(seed), NOISE_OFFERS
    others = np.array(["bus", "tram"])
    out = []
    for _ in range(replications):
        covariance = draw_inverse_wishart(rng, 3.0, np.eye(2))
        covariance *= 2.0 / np.trace(covariance)
        value = 2.0 * rng.standard_normal()
        errors = rng.standard_normal((len(d), 2)) @ np.linalg.cholesky(covariance).T
        utilities = value * d.rows[:, 0]
        for i, label in enumerate(others):
            mine = np.asarray(d.actions) == label
            utilities[mine] += errors[d.decision_of_row[mine], i]
        chosen = utilities.reshape(-1, 3).argmax(axis=1)
        learner = rv.OnlineLearner(CORRELATED, 1, 200, int(rng.integers(2**31)), actions=ACTIONS)
        post = learner.update(d.with_choices(chosen)).posterior()
        pick = rng.choice(200, KEPT, replace=False)
        found = post.stacked("noise_covariance")[pick]
        drawn = np.column_stack([post.stacked("value")[pick, 0], found[:, 0, 0], found[:, 0, 1]])
        truth = np.array([value, covariance[0, 0], covariance[0, 1]])
        out.append((drawn < truth).sum(axis=0))
    return np.array(out)


RANKS: dict[str, Callable[[int, int], Ints]] = {
    "population": population_ranks,
    "correlated noise": noise_ranks,
}


@pytest.mark.parametrize("name", RANKS)
def test_ranks_are_uniform(name: str) -> None:
    assert_uniform_ranks(RANKS[name](24, 1), KEPT, false_alarm=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", RANKS)
def test_ranks_are_uniform_in_the_long_run(name: str) -> None:
    assert_uniform_ranks(RANKS[name](400, 2), KEPT, false_alarm=1e-6)


# Mutants


def divided() -> rv.Decisions:
    """Six groups of two opinions, each of which decides twice and the same."""
    opinion = np.tile([0, 1], 6)
    rows = np.tile([[2.0, 0.0], [-2.0, 0.0]], (12, 1))
    groups = [f"p{i}" for i in range(6)] * 2
    return rv.Decisions(rows, range(0, 25, 2), opinion, groups=groups)


def test_evidence_of_groups_of_two_opinions() -> None:
    assert_evidence(learners(divided(), HIERARCHICAL), *evidence_of_populations(divided()))


def test_a_new_group_that_is_not_drawn_from_its_population_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every new group at the mean: the evidence is that of a population without differences."""

    def at_the_mean(self: PopulationLaw, rng: Any, particles: ParticleSet) -> Floats:
        return particles.parts["mean"]

    d = divided()
    truth = evidence_of_populations(d)
    monkeypatch.setattr(PopulationLaw, "_draw_new", at_the_mean)
    with must_fail("a new group is not drawn from its population"):
        assert_evidence(learners(d, HIERARCHICAL), *truth)


def test_a_forgotten_weight_of_a_new_group_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right, met = PopulationLaw.log_factors, set[int]()

    def forgetful(self: PopulationLaw, particles: ParticleSet, seen: Observation) -> Floats:
        new = seen.position not in met
        met.add(seen.position)
        return np.zeros(len(particles)) if new else right(self, particles, seen)

    d = grouped(10, 3, seed=9)
    monkeypatch.setattr(PopulationLaw, "log_factors", forgetful)
    found = []
    for i in range(REPEATS):
        met.clear()
        found += learners(d, HIERARCHICAL, seed=i, repeats=1)
    with must_fail("the first decision of a group has no weight"):
        assert_evidence(found, *evidence_of_populations(d))


def assert_unbiased_factors() -> None:
    """Under each particle a factor has the probability of the choice as its mean over normals."""
    d, rng = labelled(1, seed=10), np.random.default_rng(3)
    law = make_law(CORRELATED, d, ACTIONS)
    particles = law.draw_prior(rng, 10_000)
    assert d.actions is not None
    seen = Observation(d.rows, int(d.chosen_row[0]), actions=d.actions.tolist())
    factors = np.exp(law.log_factors(law.extend(rng, particles, seen), seen))
    draws = law.draws(rng, particles)
    noise = NoiseCovariance("car", ("bus", "tram"), draws["noise_covariance"], points=64)
    error = factors - np.exp(rv.log_likelihood(d, draws["value"], noise)[:, 0])
    # a mean of zero under each particle, so also times whatever the particle says
    covariance = draws["noise_covariance"][:, 0, 1]
    weights = np.stack([np.ones(len(error)), covariance, covariance**2, draws["value"][:, 0]])
    z = (weights * error).mean(axis=1) / ((weights * error).std(axis=1) / np.sqrt(len(error)))
    assert_scores(z, false_alarm=1e-6, degrees=np.inf, what="factors less probabilities")


def test_factors_under_correlated_noise_are_unbiased() -> None:
    assert_unbiased_factors()


def test_normals_that_are_not_drawn_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = CorrelatedLaw.extend

    def stale(self: CorrelatedLaw, rng: Any, particles: ParticleSet, seen: Any) -> ParticleSet:
        found = right(self, rng, particles, seen)
        return found.with_parts(z=np.full_like(found.parts["z"], 2.5))

    monkeypatch.setattr(CorrelatedLaw, "extend", stale)
    with must_fail("the normals of a decision are not drawn"):
        assert_unbiased_factors()
