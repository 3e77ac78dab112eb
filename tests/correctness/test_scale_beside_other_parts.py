"""A prior sd that is inferred beside correlated noise, unknown transitions and groups: exact laws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed._types import Floats
from revealed.models.priors import resolve_prior
from revealed.samplers import inferred_scale
from revealed.samplers.model_kind import kind_of
from revealed.samplers.registry import REGISTRY, BuildArguments
from tests.correctness.test_prior_scale import (
    SCALE,
    assert_moments,
    exact_law,
    points_dense_at_zero,
)
from tests.support.cases import warmed_up_draws
from tests.support.statistical_asserts import assert_mean, must_fail

PRIOR = rv.Normal(rv.HalfStudentT(scale=SCALE))


def run(model: rv.ChoiceModel, data: Any, draws: int) -> dict[str, Floats]:
    """Draws of the default sampler of a model, from one chain after a warm-up."""
    build = REGISTRY.find("auto", kind_of(model)).build
    assert build is not None
    sampler = build(model.resolve(data), BuildArguments({}, draws, threads=1))
    return warmed_up_draws(np.random.default_rng(1), sampler, 1000, draws)[0]


@pytest.mark.proves(model="choices, noise covariance", sampler="ghk-hmc")
def test_correlated_noise_of_two_actions_has_the_law_of_a_grid() -> None:
    # of two actions the covariance is one number, which the scale makes one
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(16, 2))
    d = rv.Decisions(rows, range(0, 17, 2), [0, 1, 0, 0, 1, 0, 1, 1], actions=["a", "b"] * 8)
    made = run(rv.ChoiceModel(prior=PRIOR, noise=rv.CorrelatedNoise(base="a")), d, 6000)
    np.testing.assert_allclose(made["noise_covariance"], 1.0)
    axis, step = points_dense_at_zero(260)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    noise = rv.NoiseCovariance("a", ("b",), np.ones((1, 1)))
    logs = rv.log_likelihood(d, grid, noise).sum(axis=1) + (step[:, None] + step).ravel()
    exact = exact_law(grid, logs, (grid**2).sum(axis=1), 2)
    found = np.column_stack([made["value"], np.log(made["prior_sd"])])
    assert_moments(found, exact)


@pytest.mark.proves(model="unknown transitions", sampler="transitions-hmc")
def test_rows_that_are_nearly_known_leave_the_law_of_a_grid() -> None:
    # rows that lead to one state each, but for one that 40,000 transitions have nearly settled
    x, a = np.repeat([0, 0, 1, 1], [9, 2, 3, 1]), np.repeat([0, 1, 0, 1], [9, 2, 3, 1])
    counts, concentration = np.zeros((2, 2, 2), np.int64), np.zeros((2, 2, 2))
    counts[0, 0], concentration[0, 0] = (10_000, 30_000), 1.0
    concentration[1, 0, 1] = concentration[0, 1, 0] = concentration[1, 1, 1] = 1.0
    seen = rv.Trajectories.from_counts((x, a), counts, (0, 1), (0, 1))
    model = rv.ChoiceModel(prior=PRIOR, transitions=rv.Dirichlet(concentration))
    made = run(model, seen, 12_000)
    # the value then has the posterior of known rows, on the line of sum zero
    first, step = points_dense_at_zero(2000)
    values = np.stack([first, -first], axis=1)
    decisions = model.resolve(seen).coefficients
    assert isinstance(decisions, rv.Decisions)
    logs = rv.log_likelihood(decisions, values).sum(axis=1) + step
    exact = exact_law(values[:, :1], logs, 2.0 * first**2, 1)
    assert_moments(np.column_stack([made["value"][:, 0], np.log(made["prior_sd"])]), exact)


# A population: the sd of its mean's prior, by a move that must leave the joint law as it is


def drawn_and_moved(count: int, move: Any) -> tuple[Floats, Floats]:
    """(count, 3) log sd, mean and mean times the groups' mean: of the prior, and after a move."""
    rng, width, groups = np.random.default_rng(5), 2, 3
    d = rv.Decisions(np.eye(2), [0, 2], [0])
    prior = resolve_prior(rv.Normal(rv.HalfStudentT(scale=SCALE), mean=[0.5, -1.0]), d)
    centre, covariance = prior.mean @ prior.basis, np.array([[1.0, 0.4], [0.4, 0.7]])
    root, before, after = np.linalg.cholesky(covariance), [], []

    def columns(mean: Floats, sd: float, q: Floats) -> list[float]:
        return [np.log(sd), float(mean[0]), float(mean @ q.mean(axis=0))]

    for _ in range(count):
        sd = SCALE * abs(rng.standard_t(4))
        mean = centre + sd * rng.standard_normal(width)
        q = mean + rng.standard_normal((groups, width)) @ root.T
        before.append(columns(mean, sd, q))
        mean, sd = move(rng, prior, mean, q, covariance)
        after.append(columns(mean, sd, q))
    return np.array(before), np.array(after)


def assert_invariant(move: Any) -> None:
    before, after = drawn_and_moved(20_000, move)
    # differences of paired draws, which a move that keeps the law has on average zero; heavy tails
    # are bent by a bounded function, whose law is kept as well
    bounded = np.arctan(after) - np.arctan(before)
    for column in bounded.T:
        assert_mean(column, 0.0, false_alarm=1e-6)


@pytest.mark.proves(model="population", sampler="hierarchical")
def test_scale_of_a_populations_mean_keeps_the_joint_law() -> None:
    assert_invariant(inferred_scale.interweave_scale)
    before, after = drawn_and_moved(200, inferred_scale.interweave_scale)
    assert (before[:, :2] != after[:, :2]).all()


@pytest.mark.proves(model="population", sampler="hierarchical")
def test_forgotten_jacobian_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = inferred_scale.slice_sample_half_t

    def wrong(
        rng: np.random.Generator, sd: float, linear: float, square: float, scale: float
    ) -> float:
        # a law with one factor sd less, by acceptance of the right one's draws
        while True:
            drawn = right(rng, sd, linear, square, scale)
            if rng.random() < min(1.0, 0.5 / drawn):
                return drawn

    monkeypatch.setattr(inferred_scale, "slice_sample_half_t", wrong)
    with must_fail("Jacobian of the logarithm forgotten"):
        assert_invariant(inferred_scale.interweave_scale)
