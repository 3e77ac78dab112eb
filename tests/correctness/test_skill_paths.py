"""Skills that change: slopes against differences, shifts against dense laws, and wrong samplers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.stats as st

import revealed as rv
from revealed._types import Floats
from revealed.kernels.block_tridiagonal import solve_lower
from revealed.kernels.common_shift import draw_common_shift, make_common_shift
from revealed.kernels.joint_paths import write_theta_slope
from revealed.kernels.path_process import make_path_law, write_path_law
from revealed.kernels.skill_likelihood import margin_of
from revealed.kernels.state_space import evaluate_path, make_path_workspace, place_law, place_path
from revealed.samplers.builders import BuildArguments, build_skill_paths
from revealed.samplers.skill_paths import SkillPathSampler, SkillReferenceFinder
from tests.conformance.oracles import Oracle, assert_moments
from tests.conformance.skills import WALK, skill_oracles, skill_problems
from tests.support.cases import warmed_up_draws
from tests.support.statistical_asserts import assert_mean, must_fail

NOISES: list[Any] = [rv.NormalNoise(), rv.LogitNoise()]


def sampler_of(noise: Any, name: str = "on three dates", seed: int = 0) -> SkillPathSampler:
    """For games of players, teams or ties on three dates."""
    problem: Any = next(
        p for p in skill_problems() if name in p.name and _noise_of(p) == noise and _infers(p)
    )
    rng = np.random.default_rng(seed)
    data = None
    while data is None:
        data = problem.observe(rng, problem.draw(rng))
    made = build_skill_paths(problem.model.resolve(data), BuildArguments({}, 1))
    assert isinstance(made, SkillPathSampler)
    return made


def _noise_of(problem: Any) -> Any:
    return problem.model.noise


def _infers(problem: Any) -> bool:
    return problem.model.prior is None


@pytest.mark.parametrize(
    ("noise", "name"), [(NOISES[0], "ties on"), (NOISES[0], "teams on"), (NOISES[1], "teams on")]
)
def test_slopes_are_those_of_the_likelihood(noise: Any, name: str) -> None:
    sampler, rng = sampler_of(noise, name), np.random.default_rng(3)
    # coefficients of covariates too, whatever the model has
    entries = sampler.data.gaps
    data: Any = sampler.data
    data = data._replace(
        covariates=rng.standard_normal((entries, 2)), coefficient_sd=np.array([0.7, 1.5])
    )
    work = make_path_workspace(data, sampler.nodes, 1)
    value, beside = rng.standard_normal((sampler.nodes, 1)), rng.standard_normal(data.coordinates)
    slope, own = np.empty_like(value), np.empty_like(beside)

    def likelihood(v: Floats, x: Floats) -> float:
        return evaluate_path(data, work, v, x, np.empty_like(v), np.empty_like(x))

    evaluate_path(data, work, value, beside, slope, own)
    # the chain of integrals has steps of its own: differences are no better than these
    step = 1e-3
    for n in range(sampler.nodes):
        move = np.zeros_like(value)
        move[n] = step
        by_steps = likelihood(value + move, beside) - likelihood(value - move, beside)
        assert slope[n, 0] == pytest.approx(by_steps / (2.0 * step), rel=5e-3, abs=1e-3)
    for k in range(len(beside)):
        move = np.eye(len(beside))[k] * step
        by_steps = likelihood(value, beside + move) - likelihood(value, beside - move)
        assert own[k] == pytest.approx(by_steps / (2.0 * step), rel=5e-3, abs=1e-3)


def test_margins_have_the_quantiles_of_their_prior() -> None:
    for xi in (-6.0, -1.3, 0.0, 0.8, 5.0):
        margin, by_xi = margin_of(xi, 1.7)
        assert margin == pytest.approx(1.7 * st.halfnorm.ppf(st.norm.cdf(xi)), rel=1e-6)
        near = np.log(margin_of(xi + 1e-3, 1.7)[0]) - np.log(margin_of(xi - 1e-3, 1.7)[0])
        assert by_xi == pytest.approx(near / 2e-3, rel=1e-4)


@pytest.mark.parametrize("most", [64, 2])
def test_common_shifts_have_their_dense_law(most: int) -> None:
    sampler = sampler_of(rv.LogitNoise())
    process, nodes = sampler.process, sampler.nodes
    law, theta = make_path_law(nodes, 1), np.log([0.6, 1.4])
    write_path_law(process, theta, law)
    # the path's prior precision, step by step
    precision = np.zeros((nodes, nodes))
    for n in range(nodes):
        step = np.eye(nodes)[n] - (0.0 if process.first[n] else np.eye(nodes)[n - 1])
        variance = 1.4**2 if process.first[n] else 0.6**2 * process.gap[n]
        precision += np.outer(step, step) / variance
    date = np.searchsorted([0.0, 0.5, 2.0], _times(sampler))
    shift = make_common_shift(date, 3, process.component, 1, most)
    weights = np.zeros((nodes, shift.knots))
    for n in range(nodes):
        weights[n, shift.knot[n]] += 1.0 - shift.share[n]
        weights[n, min(shift.knot[n] + 1, shift.knots - 1)] += shift.share[n]
    rng = np.random.default_rng(1)
    value, deltas = rng.standard_normal((nodes, 1)), np.empty((4_000, shift.knots))
    for each in deltas:
        assert draw_common_shift(rng, shift, process.first, law, 0, value, each)
    covariance = np.linalg.inv(weights.T @ precision @ weights)
    mean = -covariance @ weights.T @ precision @ value[:, 0]
    for k in range(shift.knots):
        assert_mean(deltas[:, k], float(mean[k]), false_alarm=1e-6)
    for k in range(shift.knots):
        for j in range(k + 1):
            product = (deltas[:, k] - mean[k]) * (deltas[:, j] - mean[j])
            assert_mean(product, float(covariance[k, j]), false_alarm=1e-6)


def _times(sampler: SkillPathSampler) -> Floats:
    """When each node is: every path's first date is told by its other gaps."""
    # the third player's path is the only one that may begin late
    times, at = np.zeros(sampler.nodes), 0.0
    for n in range(sampler.nodes):
        at = 0.0 if sampler.process.first[n] else at + sampler.process.gap[n]
        times[n] = at
    return times


def test_curvatures_are_right_on_average() -> None:
    sampler = sampler_of(rv.LogitNoise(), "teams on")
    finder = SkillReferenceFinder(sampler.data, sampler.process, sampler.known)
    value, none = np.random.default_rng(2).standard_normal((sampler.nodes, 1)), np.empty(0)
    drawn = np.array([finder.curvature(value, none)[:, 0, 0] for _ in range(1_000)])
    for n in range(sampler.nodes):
        step = np.zeros_like(value)
        step[n] = 1e-3
        above, below = (finder.slopes(value + move, none)[1][n, 0] for move in (step, -step))
        assert_mean(drawn[:, n], (below - above) / 2e-3, false_alarm=1e-6)


@pytest.mark.parametrize(
    ("noise", "name"),
    [
        (NOISES[1], "skills on three dates"),
        (NOISES[1], "cars on"),
        (NOISES[0], "ties on"),
        (NOISES[1], "that revert"),
        (NOISES[1], "newcomers"),
    ],
)
def test_slopes_in_sizes_are_those_of_the_posterior(noise: Any, name: str) -> None:
    sampler, rng = sampler_of(noise, name), np.random.default_rng(4)
    state = sampler.init(rng, None)
    # any stand-in will do, and one that is far from right has large slopes of r
    state["curvature"] = 0.3 + rng.random(state["curvature"].shape)
    target, placed, point = sampler._target(state), sampler._empty_law(), sampler._empty_point()
    work = make_path_workspace(sampler.data, sampler.nodes, 1)
    z, e, theta = state["z"], state["e"], sampler.start.theta.copy()

    def log_density(at: Floats) -> float:
        assert place_law(target.normal, work, at, placed)
        place_path(target, work, placed, z, e, point)
        return float(placed.log_density[0] + point.r[0])

    log_density(theta)
    solve_lower(placed.factor, sampler.process.first, point.slope, work.whitened)
    slope, staying = np.empty_like(theta), np.empty_like(theta)
    write_theta_slope(target.normal, work, placed, point, slope)
    # as if the path did not move with the sizes
    work.whitened[:] = 0.0
    point.slope[:] = 0.0
    write_theta_slope(target.normal, work, placed, point, staying)
    differences, step = np.empty_like(theta), 1e-4
    for p, move in enumerate(step * np.eye(len(theta))):
        differences[p] = (log_density(theta + move) - log_density(theta - move)) / (2.0 * step)
    unknown = np.isnan(sampler.known)
    # the chain of integrals of normal noise is no better than this
    close: Any = pytest.approx(differences[unknown], rel=1e-3, abs=1e-2)
    assert slope[unknown] == close
    assert staying[unknown] != close


# Wrong samplers, which the exact posteriors of two dates catch


def forget_root(sampler: SkillPathSampler) -> SkillPathSampler:
    """Steps have the sd times the gap, and not its root."""
    process = sampler.process
    return replace(sampler, process=process._replace(gap=process.gap**2))


def count_first_twice(sampler: SkillPathSampler) -> SkillPathSampler:
    """The prior of first skills counts twice: its variance is halved."""
    known = sampler.known - np.array([0.0, 0.5 * np.log(2.0)])
    theta = np.where(np.isnan(known), sampler.start.theta, known)
    return replace(sampler, known=known, given_start=sampler.start._replace(theta=theta))


def turn_innovations(sampler: SkillPathSampler) -> SkillPathSampler:
    """Each skill is minus the one before and a step: the second date's games end the other way."""
    data: Any = sampler.data
    node = data.node.reshape(-1, 2)
    late = np.arange(len(node)) >= len(node) // 2
    node = np.where(late[:, None], node[:, ::-1], node)
    return replace(sampler, data=data._replace(node=np.ascontiguousarray(node.ravel())))


def shift_teams(sampler: SkillPathSampler) -> SkillPathSampler:
    """Everybody on a date is shifted, although teams differ in size."""
    process = sampler.process
    date = (~process.first).astype(np.int64)
    return replace(sampler, shift=make_common_shift(date, 2, process.component, 1))


def oracle(name: str, noise: Any) -> Oracle:
    """Of a spread that is given, which no other number can make up for."""
    return next(
        o
        for o in skill_oracles()
        if o.name == name and _noise_of(o) == noise and o.model.prior is not None
    )


MUTANTS: list[Any] = [
    ("two players", forget_root, True),
    ("two players", count_first_twice, False),
    ("two players", turn_innovations, True),
    ("a team", shift_teams, False),
]


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        pytest.param(name, spoil, marks=[pytest.mark.slow] if slow else [], id=spoil.__name__)
        for name, spoil, slow in MUTANTS
    ],
)
def test_wrong_samplers_are_caught(name: str, spoil: Any) -> None:
    exact = oracle(name, rv.LogitNoise())
    resolved: Any = exact.model.resolve(exact.data)
    sampler = build_skill_paths(resolved, BuildArguments({}, 1))
    # the root of one gap hides behind a drift that is hardly known
    count = 30_000 if spoil is forget_root else 4_000
    draws, _ = warmed_up_draws(np.random.default_rng(1), spoil(sampler), 400, count, 4)
    with must_fail(spoil.__name__, model="skills that change", sampler="skill-paths"):
        assert_moments(exact.columns(draws), exact.exact())


def test_what_does_not_go_with_changing_skills_is_refused() -> None:
    timed = rv.Rankings.from_lists([["a", "b"], ["b", "a"]], times=[1, 2])
    for part, words in (
        (rv.RandomWalk(shared=True), "one drift for each component already"),
        (rv.RandomWalk(between_sessions=1.0), "games have no sessions"),
        (rv.RandomWalk([1.0, 2.0]), "sd has 2 numbers"),
    ):
        with pytest.raises(ValueError, match=words):
            rv.RankingModel(over_time=part).resolve(timed)
    with pytest.raises(ValueError, match="over_time of a RankingModel must be"):
        rv.RankingModel(over_time="walk")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="need a proper prior"):
        rv.RankingModel(prior=rv.Flat(), over_time=WALK).resolve(timed)
    with pytest.raises(ValueError, match="when each game was played"):
        rv.RankingModel(over_time=WALK).resolve(rv.Rankings.from_lists([["a", "b"]]))
