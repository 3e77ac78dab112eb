"""Least squares about the present value, against the difference of two large numbers."""

from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed._types import Floats
from revealed.kernels._compile import compiled
from revealed.kernels.parameter_expansion import residual_projection
from revealed.kernels.prior_scale import at_scale
from revealed.samplers.data_augmentation import AugmentationOptions, DataAugmentationSampler
from tests.support.kill_and_resume import features, states

PROBLEMS: dict[str, tuple[str, Any, rv.Decisions]] = {
    "px-scale": ("px-scale", rv.Normal(2.0), features()),
    "flat": ("px-scale", rv.Flat(), features()),
    "correlated": ("px-scale", rv.Normal(covariance=np.eye(3) + 0.5), features()),
    "px-both": ("px-both", rv.Normal(2.0), states()),
    "flat px-both": ("px-both", rv.Flat(), states()),
    "inferred sd": ("px-both", rv.Normal(rv.HalfStudentT()), states()),
}


@compiled
def project(
    move: Any, design: Any, work: Any, translation: Floats, root: float, v: Floats, y: Floats
) -> float:
    return residual_projection(move, design, work, translation, root, v, y)


@compiled
def rescaled(prior_scale: Any, move: Any, work: Any, sd: float) -> Any:
    return at_scale(prior_scale, move, work, sd)


def build(name: str) -> tuple[DataAugmentationSampler, Any, Any]:
    sampler, prior, decisions = PROBLEMS[name]
    resolved = rv.ChoiceModel(prior=prior).resolve(decisions)
    made = DataAugmentationSampler.build(
        sampler, resolved.decisions, resolved.prior, AugmentationOptions()
    )
    work, move = made.expansion_workspace(), made.move
    if made.prior_scale is not None:
        move = rescaled(made.prior_scale, move, work, 1.7)
    return made, move, work


@pytest.mark.parametrize("name", PROBLEMS)
def test_residuals_are_those_of_least_squares(name: str) -> None:
    """The sum of squares, and the draw's mean, with a working scale and translation."""
    made, move, work = build(name)
    rng, rows = np.random.default_rng(1), np.asarray(made.decisions.rows)
    v = made.resolved_prior.basis @ rng.standard_normal(made.resolved_prior.basis.shape[1])
    translation = np.zeros(v.size)
    if move.translation_sd > 0.0:
        translation = move.constants.T @ rng.standard_normal(len(move.constants))
    root = 1.3
    y = root * (rows @ (v + translation) + rng.standard_normal(len(rows)))
    quad = project(move, made.design, work, translation, root, v, y)
    h = move.factor.T @ (rows.T @ y)
    # the rounding of y'y, and of the factor
    assert abs(quad - (y @ y - h @ h)) < 1e-11 * (y @ y)
    mean = work.coefficients + move.factor @ work.projection
    np.testing.assert_allclose(rows @ mean, rows @ (move.factor @ h), atol=1e-11 * abs(y).max())


def test_residuals_of_utilities_far_beyond_their_noise() -> None:
    """Under a flat prior they are those of the noise alone, however large the value is."""
    made, move, work = build("flat")
    rng, rows = np.random.default_rng(1), np.asarray(made.decisions.rows)
    v, noise = np.array([1.0, -2.0, 0.5]), rng.standard_normal(len(rows))
    h = move.factor.T @ (rows.T @ noise)
    truth = noise @ noise - h @ h
    for size in (1e3, 1e9):
        y = size * (rows @ v) + noise
        quad = project(move, made.design, work, np.zeros(3), 1.0, size * v, y)
        # what rounding to a double leaves of the noise
        assert abs(quad / truth - 1.0) < 10.0 * size * np.finfo(float).eps
    h = move.factor.T @ (rows.T @ y)
    assert abs((y @ y - h @ h) / truth - 1.0) > 1.0  # two large numbers have no such difference
