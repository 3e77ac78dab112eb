"""Offsets that all actions of a decision share are taken out where they would cost digits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import revealed as rv
from revealed._types import Floats
from revealed.data.offsets import without_far_offsets

START = np.arange(0, 61, 4)


def rows_of(seed: int = 1) -> Floats:
    return np.random.default_rng(seed).standard_normal((60, 2))


def decisions(rows: Any, **more: Any) -> rv.Decisions:
    return rv.Decisions(rows, START, np.arange(15) % 4, names=["near", "far"], **more)


@pytest.mark.parametrize("offset", [0.0, 1.0, 1000.0])
def test_ordinary_features_stay_as_they_are(offset: float) -> None:
    d = decisions(rows_of() + offset)
    assert without_far_offsets(d) is d


def test_only_a_feature_far_from_zero_is_measured_from_the_mean_of_its_decision() -> None:
    rows, offset = rows_of(), np.repeat(1e7 * np.random.default_rng(2).standard_normal(15), 4)
    given = rows + offset[:, None] * [0.0, 1.0]
    found = without_far_offsets(decisions(given, groups=np.arange(15) % 4))
    np.testing.assert_array_equal(found.rows[:, 0], given[:, 0])
    centred = rows[:, 1].reshape(15, 4) - rows[:, 1].reshape(15, 4).mean(axis=1, keepdims=True)
    # what the offset has left of the differences: the spacing of doubles at 3e7
    np.testing.assert_allclose(found.rows[:, 1], centred.ravel(), atol=2 * np.spacing(3e7))
    assert found.groups is not None
    assert found.names == ("near", "far")


def test_a_feature_that_no_choice_can_inform_stays_as_it_is() -> None:
    rows = rows_of()
    rows[:, 1] = np.repeat(1e9 + np.arange(15.0), 4)
    d = decisions(rows)
    assert without_far_offsets(d) is d


def test_far_decisions_behind_many_ordinary_ones_are_seen() -> None:
    rows = np.tile([[0.0], [1e-6]], (3000, 1))
    rows[4000:] += 1.0
    d = rv.Decisions(rows, np.arange(0, 6001, 2), np.zeros(3000, int))
    assert np.abs(without_far_offsets(d).rows).max() < 1e-5


def test_sums_to_zero_and_sparse_rows_stay_as_they_are() -> None:
    blocks = [rv.Block("value", 2, sum_to_zero=True)]
    rows = 1e8 + np.round(rows_of())
    rows[:, 1] = -rows[:, 0]
    d = decisions(rows, blocks=blocks)
    assert without_far_offsets(d) is d
    d = decisions(sp.csr_array(1e8 + rows_of()))
    assert without_far_offsets(d) is d


@pytest.mark.parametrize("sampler", ["composite", "px-scale", "laplace"])
def test_a_fit_does_not_see_the_offset(sampler: str) -> None:
    # eighths, and four actions: nothing is lost beside the offset, and means are exact
    rows = np.round(8.0 * rows_of()) / 8.0
    centre = rows.reshape(15, 4, 2).mean(axis=1, keepdims=True)
    near = decisions((rows.reshape(15, 4, 2) - centre).reshape(60, 2))
    settings: dict[str, Any] = {"sampler": sampler, "draws": 2000, "seed": 1, "progress": False}
    model = rv.ChoiceModel(prior=rv.Normal(2.0))
    found = rv.fit(decisions(rows + 2.0**30), model, **settings)
    np.testing.assert_array_equal(
        found.draws["value"], rv.fit(near, model, **settings).draws["value"]
    )
