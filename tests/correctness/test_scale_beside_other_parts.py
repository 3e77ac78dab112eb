"""The sd of the prior of a population's mean, by a move that must leave the joint law as it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed._types import Floats
from revealed.models.priors import resolve_prior
from revealed.samplers import inferred_scale
from tests.conformance.problems import SCALE
from tests.support.statistical_asserts import assert_mean, must_fail


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
