"""Features and priors at scales that are far apart: the right law, or a sentence, and no hang."""

from typing import Any

import numpy as np
import pytest
from scipy import integrate
from scipy.special import ndtr

import revealed as rv
from revealed._types import Floats
from tests.support.statistical_asserts import assert_mean, assert_sd

RUN: dict[str, Any] = {"progress": False, "chains": 2, "seed": 1}
PRIOR_SD = 50.0  # of rv.Normal()


def separable(scale: float) -> rv.Decisions:
    """Ten choices between two actions, by the sum of two features, one of them this large."""
    x = np.random.default_rng(0).normal(size=(20, 2))
    x[:, 0] *= scale
    return rv.Decisions(x, range(0, 21, 2), x.sum(1).reshape(10, 2).argmax(1))


def assert_half_normal(draws: Floats, sd: float) -> None:
    """Draws of a normal with mean zero and this sd, cut off at zero."""
    mean = sd * np.sqrt(2.0 / np.pi)
    assert_mean(draws, mean)
    assert_sd(draws, mean, sd * np.sqrt(1.0 - 2.0 / np.pi))


@pytest.mark.parametrize("scale", [1e6, pytest.param(1e9, marks=pytest.mark.slow)])
def test_separable_choices_by_a_large_feature(scale: float) -> None:
    """Only the sign of the large feature's coefficient is known, and nothing of the other one."""
    value = rv.fit(separable(scale), **RUN).draws["value"]
    assert_half_normal(value[..., 0], PRIOR_SD)
    assert_mean(value[..., 1], 0.0)


@pytest.mark.filterwarnings("ignore::revealed.UninformedWarning")
def test_one_choice_under_a_prior_of_a_hundred_million() -> None:
    """The noise is nothing beside the prior: the difference of values is a normal, cut at zero."""
    decisions = rv.Decisions(np.eye(2), [0, 2], [0])
    value = rv.fit(decisions, rv.ChoiceModel(prior=rv.Normal(1e8)), **RUN).draws["value"]
    assert_half_normal(value[..., 0] - value[..., 1], np.sqrt(2.0) * 1e8)
    assert_mean(value.sum(axis=-1), 0.0)


def test_flat_prior_with_rows_that_are_a_hundred_million_apart() -> None:
    """One choice says that v is positive, the other that it is not much above a hundred million."""
    small = 1e-8
    rows = np.array([[1.0], [0.0], [0.0], [small]])
    model = rv.ChoiceModel(prior=rv.Flat())
    value = rv.fit(rv.Decisions(rows, [0, 2, 4], [0, 0]), model, **RUN).draws["value"]

    def moment(power: int) -> float:
        return float(integrate.quad(lambda y: y**power * ndtr(-y / np.sqrt(2.0)), 0.0, 30.0)[0])

    # in units of 1 / small, where the first choice is a step at zero
    mean, square = moment(1) / moment(0), moment(2) / moment(0)
    assert_mean(small * value, mean)
    assert_sd(small * value, mean, np.sqrt(square - mean**2))


@pytest.mark.parametrize("sampler", ["da", "px-scale"])
def test_utilities_beyond_double_precision_are_refused(sampler: str) -> None:
    with pytest.raises(ValueError, match="too large for double precision; bring the features to"):
        rv.fit(separable(1e16), sampler=sampler, init=[1.0, 1.0], **RUN)


@pytest.mark.filterwarnings("ignore::revealed.UninformedWarning")
@pytest.mark.parametrize(
    ("rows", "prior", "sentence"),
    [
        ([[1e160, 0.0], [0.0, 1.0]], rv.Normal(), "a feature is 1e\\+160; bring the features to"),
        (np.eye(2), rv.Normal(1e120), "the prior sd is 1e\\+120; bring the features to a scale"),
        (np.eye(2), rv.Normal(1e-120), "the prior sd is 1e-120; bring the features to a scale"),
        (np.eye(2), rv.Normal(1e16), "curvature is lost to rounding; give a smaller prior sd"),
    ],
)
def test_scales_that_cannot_be_computed_with_are_refused(
    rows: Any, prior: Any, sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        rv.fit(rv.Decisions(rows, [0, 2], [0]), rv.ChoiceModel(prior=prior), **RUN)
