"""A population and its groups along one path: density, slopes, and the law of the draws."""

from __future__ import annotations

import importlib
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.integrate as si
import scipy.stats as st

import revealed as rv
from revealed._types import Floats
from revealed.data.decisions import Decisions
from revealed.kernels.group_blocks import BLOCKS
from revealed.kernels.hierarchical_hmc import joint_log_density, make_hierarchical_workspace
from revealed.kernels.population import SD_PRIOR_DF
from revealed.kernels.precision_root import pack_precision, unpack_precision
from revealed.models.noise import Noise
from revealed.models.noise_coordinates import with_noise_coordinates
from revealed.models.priors import resolve_prior
from revealed.samplers import hierarchical_hmc
from revealed.samplers.hierarchical import HierarchicalSampler
from revealed.samplers.hierarchical_hmc import HierarchicalHMCSampler
from revealed.samplers.stand_ins import (
    StandIns,
    coordinates_of,
    group_curvatures,
    in_lanes,
    positive_part,
)
from tests.conformance.problems import SD_SCALE as SCALE
from tests.correctness.test_hierarchical import PRIOR_MEANS
from tests.support.cases import mdp_offers, ragged_offers, warmed_up_draws
from tests.support.logistic_noise import LogisticNoise
from tests.support.statistical_asserts import (
    BATCHES,
    assert_error,
    assert_mean,
    assert_scores,
    must_fail,
    patched_package,
)

pytestmark = pytest.mark.proves(model="population", sampler="hierarchical-hmc")
PRIOR = rv.Normal(2.0**0.5, mean=0.3)
LOGIT = rv.LogitNoise()


def joined(by_group: list[Decisions]) -> tuple[Decisions, Any]:
    """All decisions, and whose each is."""
    whole = by_group[0]
    for more in by_group[1:]:
        whole = whole + more
    return whole, np.repeat(np.arange(len(by_group)), [len(d) for d in by_group])


TWO_FEATURES = partial(ragged_offers, 2)


def simulated(count: int, seed: int, offers: Any = TWO_FEATURES) -> list[Decisions]:
    """Groups that chose at random, which any value may explain."""
    rng = np.random.default_rng(seed)
    made = [offers(count=2 + i % 5, seed=seed + i) for i in range(count)]
    return [d.with_choices(rng.integers(0, d.sizes)) for d in made]


class Problem(NamedTuple):
    """A sampler with stand-ins that are no good approximations, and a point x."""

    sampler: HierarchicalHMCSampler
    target: Any
    work: Any
    x: Floats
    stand_ins: StandIns


def problem(by_group: list[Decisions], noise: Noise = LOGIT, seed: int = 1) -> Problem:
    """With a centre and a metric of theta that mix all of its coordinates."""
    rng = np.random.default_rng(seed)
    whole, group = joined(by_group)
    prior, kernel = resolve_prior(PRIOR, whole), noise.kernel()
    # rates of lapses by group are a coefficient more
    own = 1 if noise.lapse is not None and noise.lapse.by == "group" else 0
    sampler = HierarchicalHMCSampler.build(
        with_noise_coordinates(whole, own),
        group,
        prior.with_standard_normal(own),
        SCALE,
        kernel,
        own,
    )
    width, count = sampler.width, sampler.n_groups
    root = rng.standard_normal((count, width, width))
    stand_ins = StandIns(root @ root.swapaxes(1, 2), rng.standard_normal((count, width)))
    size = 2 * width + width * (width - 1) // 2 + sampler.shared
    target = sampler.make_target(
        sampler.prior,
        0.3 * rng.standard_normal(size),
        0.5 * np.eye(size) + 0.1 * rng.standard_normal((size, size)),
        stand_ins,
    )
    x = 0.7 * rng.standard_normal(size + sampler.n_lanes * width)
    work = make_hierarchical_workspace(sampler.batches, width, sampler.shared)
    return Problem(sampler, target, work, x, stand_ins)


def log_density(given: Problem, x: Floats) -> tuple[float, Floats]:
    gradient = np.empty_like(x)
    return joint_log_density(given.target, given.work, x, -np.inf, gradient), gradient


def slope_errors(given: Problem, gradient: Floats) -> Floats:
    """Of a gradient at x, by central differences, in units of one plus its size."""
    errors = []
    for k in range(len(given.x)):
        step = np.zeros_like(given.x)
        step[k] = 1e-4
        above, below = (log_density(given, given.x + move)[0] for move in (step, -step))
        errors.append(((above - below) / 2e-4 - gradient[k]) / (1.0 + abs(gradient[k])))
    return np.array(errors)


FEW = {
    "features": partial(simulated, 11, 3),
    "three features": partial(simulated, 9, 5, partial(ragged_offers, 3)),
    "states": partial(simulated, 5, 4, partial(mdp_offers, 4, 3)),
}


LAPSES = {by: rv.LogitNoise(lapse=rv.Lapse(by=by)) for by in ("all", "group")}
NOISES = {"logit": LOGIT, "logistic": LogisticNoise(0.6)} | LAPSES


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
@pytest.mark.parametrize("name", FEW)
def test_gradient_is_that_of_the_density(name: str, noise: Noise) -> None:
    """Of theta, of every group's z, and of the groups that fill up the last block of eight."""
    given = problem(FEW[name](), noise)
    gradient = log_density(given, given.x)[1]
    assert_error(slope_errors(given, gradient), 1e-5)
    with must_fail("one slope a thousandth too large"):
        wrong = gradient.copy()
        wrong[2] += 1e-3 * (1.0 + abs(wrong[2]))
        assert_error(slope_errors(given, wrong), 1e-5)


def test_batches_of_groups_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The density does not depend on how many groups' likelihoods are worked out together."""
    from revealed.kernels import group_batches

    by_group = simulated(40, 6)
    whole = problem(by_group)
    small = BLOCKS._replace(rivals_per_batch=30)
    monkeypatch.setattr(group_batches, "BLOCKS", small)
    cut = problem(by_group)
    assert len(cut.target.batches.block_start) > len(whole.target.batches.block_start) == 2
    (one, first), (other, second) = (log_density(given, whole.x) for given in (whole, cut))
    assert_error([one - other, *(first - second)], 1e-9)


# the density by other means


def log_prior_of_covariance(covariance: Floats, scale_group: Any) -> float:
    """Log density of a population's covariance, a integrated numerically, one after the other.

    Given a the density is that of scipy's inverse Wishart, whose rate is diagonal: in each a a
    factor of its own.
    """
    width, precision = len(covariance), np.linalg.inv(covariance)
    df = SD_PRIOR_DF + width - 1.0
    total = float(st.invwishart(df, np.eye(width)).logpdf(covariance) + 0.5 * np.trace(precision))
    for g in range(scale_group.max() + 1):
        mine = np.flatnonzero(scale_group == g)

        log_a = np.linspace(-25.0, 25.0, 2001)
        rate = 2.0 * SD_PRIOR_DF / np.exp(log_a)
        logs = st.invgamma(0.5, scale=1.0 / SCALE**2).logpdf(np.exp(log_a)) + log_a
        for k in mine:
            logs = logs + 0.5 * df * np.log(rate) - 0.5 * rate * precision[k, k]
        total += float(np.log(si.trapezoid(np.exp(logs - logs.max()), log_a)) + logs.max())
    return total


def inverted(matrix: Floats) -> Floats:
    return np.asarray(np.linalg.inv(matrix), np.float64)


def unfold(given: Problem, x: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean, covariance and values (N, D) at x, by the equations of the module."""
    sampler, width = given.sampler, given.sampler.width
    size = len(given.target.centre)
    theta = given.target.centre + given.target.metric @ x[:size]
    mean, root = np.empty(width), np.empty((width, width))
    unpack_precision(theta, mean, root)
    precision = root @ root.T
    z = x[size:].reshape(-1, width, 8).swapaxes(1, 2).reshape(-1, width)[: sampler.n_groups]
    values = []
    for mine, curvature, linear in zip(z, *given.stand_ins, strict=True):
        factor = np.linalg.cholesky(precision + curvature)
        centre = np.linalg.solve(precision + curvature, precision @ mean + linear)
        values.append(centre + np.linalg.solve(factor.T, mine))
    return mean, inverted(precision), np.array(values)


def log_density_otherwise(given: Problem, by_group: list[Decisions], x: Floats) -> float:
    """Prior, normal law of values, likelihood, and the Jacobian of the whole map by differences."""
    sampler, prior = given.sampler, given.sampler.prior
    mean, covariance, values = unfold(given, x)
    total = float(st.multivariate_normal(prior.mean, np.linalg.inv(prior.precision)).logpdf(mean))
    total += log_prior_of_covariance(covariance, prior.scale_group)
    for d, q in zip(by_group, values, strict=True):
        total += float(st.multivariate_normal(mean, covariance).logpdf(q))
        total += float(rv.log_likelihood(d, sampler.basis @ q, LOGIT).sum())
    # groups that do not exist: a standard normal law
    size, width = len(given.target.centre), sampler.width
    real = in_lanes(np.ones((sampler.n_groups, width))) > 0.0
    total -= 0.5 * float((x[size:][~real] ** 2).sum())
    free = np.concatenate([np.arange(size), size + np.flatnonzero(real)])
    row, column = np.tril_indices(width)

    def moved(k: int, by: float) -> Floats:
        there = x.copy()
        there[k] += by
        a, b, c = unfold(given, there)
        return np.concatenate([a, b[row, column], c.ravel()])

    jacobian = np.array([(moved(k, 1e-5) - moved(k, -1e-5)) / 2e-5 for k in free])
    return total + float(np.linalg.slogdet(jacobian)[1])


def density_errors(given: Problem, by_group: list[Decisions], forgotten: Any = None) -> Floats:
    """Differences of log densities between points, found in two ways.

    forgotten: a term of mean, precision and stand-ins that is left out.
    """
    rng, gaps = np.random.default_rng(7), []
    for _ in range(4):
        x = given.x + 0.5 * rng.standard_normal(len(given.x))
        value = log_density(given, x)[0]
        if forgotten is not None:
            value -= forgotten(np.linalg.inv(unfold(given, x)[1]))
        gaps.append(value - log_density_otherwise(given, by_group, x))
    return np.diff(gaps)


@pytest.mark.parametrize("name", ["features", "states"])
def test_density_is_that_of_the_model_with_its_jacobian(name: str) -> None:
    """Against scipy's laws, the prior's mixture by quadrature, and a Jacobian by differences."""
    by_group = FEW[name]()[:3]
    given = problem(by_group)
    assert_error(density_errors(given, by_group), 1e-5)

    def log_diagonal(precision: Floats) -> float:
        return float(np.log(np.diag(np.linalg.cholesky(precision))).sum())

    def log_factors(precision: Floats) -> float:
        total = precision + given.stand_ins.curvature
        return -0.5 * float(np.linalg.slogdet(total)[1].sum())

    with must_fail("no Jacobian of the logarithms of the diagonal"):
        assert_error(density_errors(given, by_group, log_diagonal), 1e-5)
    with must_fail("no Jacobian of values in their coordinates"):
        assert_error(density_errors(given, by_group, log_factors), 1e-5)


def test_coordinates_lead_back_to_values() -> None:
    given = problem(simulated(11, 3))
    mean, covariance, values = unfold(given, given.x)
    theta = pack_precision(mean, np.linalg.cholesky(np.linalg.inv(covariance)))
    state = {
        "x": given.x,
        "centre": given.target.centre,
        "metric": given.target.metric,
        "prior_sd": np.ones(1),
        **given.stand_ins._asdict(),
    }
    assert_error(given.sampler.coordinates(state, theta, values) - given.x, 1e-9)
    z = coordinates_of(values, mean, inverted(covariance), given.stand_ins)
    assert_error(in_lanes(z)[:8] - given.x[5:13], 1e-9)


@pytest.mark.proves(part="stand-ins of likelihoods")
def test_curvatures_are_minus_second_derivatives() -> None:
    """By differences over a neighbourhood, which is as wide as its error is large."""
    by_group = simulated(5, 8)
    given = problem(by_group)
    values = unfold(given, given.x)[2]
    found = group_curvatures(given.sampler.batches, values, np.empty(0), np.full(2, 0.01))
    exact = [
        -rv.models.likelihood.derivatives(d, v, LOGIT)[2]
        for d, v in zip(by_group, values, strict=True)
    ]
    assert_error(found - np.array(exact), 1e-4)


@pytest.mark.proves(part="stand-ins of likelihoods")
def test_stand_ins_of_likelihoods_that_are_not_concave_are_positive_semidefinite() -> None:
    matrix = np.array([[[1.0, 2.0], [2.0, 1.0]], [[2.0, 0.5], [0.5, 1.0]]])
    kept = positive_part(matrix)
    assert_error(np.minimum(np.linalg.eigvalsh(kept), 0.0), 1e-12)
    assert_error(kept[1] - matrix[1], 1e-12)  # what is positive stays


# the law of the draws


def draws_without_information(sampler_class: Any, draws: int) -> Floats:
    """(draws, 5) log sds, the correlation and its square, and the mean.

    Of groups that only had decisions of one action, which say nothing.
    """
    whole, group = joined([Decisions([[1.0, 0.5]], [0, 1], [0]) for _ in range(3)])
    prior = resolve_prior(rv.Normal(2.0**0.5), whole)
    sampler = sampler_class.build(whole, group, prior, SCALE)
    made, _ = warmed_up_draws(np.random.default_rng(1), sampler, 600, draws, thin=3)
    covariance = made["population_covariance"]
    sd = np.sqrt(np.einsum("nkk->nk", covariance))
    correlation = covariance[:, 1, 0] / sd.prod(axis=1)
    mean = made["population_mean"][:, 0]
    return np.column_stack([np.log(sd), correlation, correlation**2, mean])


def assert_prior_means(found: Floats) -> None:
    for x, mean in zip(found.T, PRIOR_MEANS, strict=True):
        assert_mean(x, mean, false_alarm=1e-6)


def test_population_without_information_has_its_prior() -> None:
    assert_prior_means(draws_without_information(HierarchicalHMCSampler, 20_000))


MUTANTS = {
    "Jacobian of the logarithms of the diagonal forgotten": (
        "kernels/precision_root.py",
        "power, at = SD_PRIOR_DF + width - 1.0 + count, 2 * width",
        "power, at = SD_PRIOR_DF + width - 2.0 + count, 2 * width",
    ),
    "Jacobian of values in their coordinates forgotten": (
        "kernels/group_blocks.py",
        "logs -= math.log(diagonals[lane])",
        "logs -= 0.0",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_wrong_density_is_caught(name: str, tmp_path: Path) -> None:
    """Its slopes stay right, so that paths go on as before: only what is accepted changes."""
    package = patched_package(tmp_path, *MUTANTS[name])
    wrong = importlib.import_module(f"{package.__name__}.samplers.hierarchical_hmc")
    with must_fail(name):
        assert_prior_means(draws_without_information(wrong.HierarchicalHMCSampler, 20_000))


def moments(draws: dict[str, Floats]) -> Floats:
    """(n, .) mean, log sds and correlation of the population, values of two groups, and squares."""
    covariance = draws["population_covariance"]
    sd = np.sqrt(np.einsum("nkk->nk", covariance))
    first = np.column_stack(
        [
            draws["population_mean"],
            np.log(sd),
            covariance[:, 1, 0] / sd[:, 0] / sd[:, 1],
            draws["value"][:, 0],
            draws["value"][:, -1],
        ]
    )
    return np.hstack([first, np.arctan(first) ** 2])


def assert_same_moments(one: Floats, other: Floats) -> None:
    """Means agree within the errors of both, by batch means."""
    means, errors = [], []
    for draws in (one, other):
        size = len(draws) // BATCHES
        batch = draws[: size * BATCHES].reshape(BATCHES, size, -1).mean(axis=1)
        means.append(batch.mean(axis=0))
        errors.append(batch.std(axis=0, ddof=1) / np.sqrt(BATCHES))
    assert_scores((means[0] - means[1]) / np.hypot(*errors), false_alarm=1e-6)


def both_samplers(draws: int, old_draws: int) -> tuple[Floats, Floats, HierarchicalHMCSampler]:
    """Draws of twelve groups by this sampler and by the one that takes turns, of another seed."""
    rng = np.random.default_rng(2)
    offers = [ragged_offers(2, 10, seed=i) for i in range(12)]
    likes = rng.normal([1.0, -0.5], [0.8, 0.3], (12, 2))
    by_group = [
        d.with_choices([int(rng.choice(n, p=p)) for n, p in zip(d.sizes, chances, strict=True)])
        for d, v in zip(offers, likes, strict=True)
        for chances in [np.split(rv.choice_probabilities(d, v, LOGIT), d.start[1:-1])]
    ]
    whole, group = joined(by_group)
    prior = resolve_prior(PRIOR, whole)
    sampler = HierarchicalHMCSampler.build(whole, group, prior, SCALE, LOGIT.law())
    other = HierarchicalSampler.build(whole, group, prior, SCALE, 1, None, LOGIT.law())
    mine, _ = warmed_up_draws(np.random.default_rng(3), sampler, 400, draws, 2)
    theirs, _ = warmed_up_draws(np.random.default_rng(4), other, 300, old_draws, 4)
    return moments(mine), moments(theirs), sampler


@pytest.mark.parametrize(
    ("draws", "old_draws"),
    [(5_000, 1_000), pytest.param(60_000, 15_000, marks=pytest.mark.slow)],
)
def test_moments_are_those_of_the_sampler_that_takes_turns(draws: int, old_draws: int) -> None:
    mine, theirs, _ = both_samplers(draws, old_draws)
    assert_same_moments(mine, theirs)


def test_number_of_steps_follows_the_step_size() -> None:
    """Paths are equally long whatever the step size: the number of steps is found in warm-up."""
    _, _, sampler = both_samplers(10, 1)
    rng = np.random.default_rng(5)
    state, _ = sampler.warmup(rng, sampler.init(rng, None), 300, 300)
    _, _, stats = sampler.sample(rng, state, 200, 1)
    length = stats["n_steps"].mean() * stats["step_size"].mean()
    wanted = hierarchical_hmc.HIERARCHICAL_HMC.path_length
    assert_error(length / wanted - 1.0, 0.3)
