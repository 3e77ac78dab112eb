"""Coefficients that the choices cannot inform are named before anything is fitted."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import revealed as rv
from revealed._types import Floats
from revealed.models.informed import describe_uninformed, uninformed_directions
from revealed.models.priors import resolve_prior


def offers(columns: list[Floats], names: list[str], blocks: Any = None) -> rv.Decisions:
    """Forty choices among three actions."""
    rows = np.column_stack(columns)
    chosen = np.random.default_rng(2).integers(0, 3, len(rows) // 3)
    if blocks is not None:
        return rv.Decisions(rows, np.arange(0, len(rows) + 1, 3), chosen, blocks=blocks)
    return rv.Decisions(rows, np.arange(0, len(rows) + 1, 3), chosen, names=names)


RNG = np.random.default_rng(1)
PRICE, TIME = RNG.standard_normal(120), RNG.standard_normal(120)
INCOME = np.repeat(RNG.standard_normal(40), 3)
BRANDS = [np.tile(np.eye(3)[k], 40) for k in range(3)]


def sentence(d: rv.Decisions, prior: rv.Normal | rv.Flat | None = None) -> str | None:
    return describe_uninformed(d, resolve_prior(prior or rv.Normal(50.0), d))


@pytest.mark.parametrize(
    ("columns", "names", "said"),
    [
        ([PRICE, INCOME], ["price", "income"], "nothing about 'income', which is the same for all"),
        ([PRICE, 0 * PRICE], ["price", "none"], "nothing about 'none', which is the same for all"),
        ([PRICE, INCOME, INCOME**2], ["price", "i", "i2"], "'i', 'i2', which are the same for all"),
        ([PRICE, 1e-9 * TIME], ["price", "time"], "about 'time', whose values are so close"),
        ([PRICE, *BRANDS], ["price", "a", "b", "c"], "about +1 a +1 b +1 c: along it all actions"),
        ([PRICE, TIME, PRICE - TIME], ["x", "y", "z"], "about"),
    ],
    ids=["case-specific", "zero", "two constants", "tiny", "intercepts", "collinear"],
)
def test_uninformed_coefficients_are_named(
    columns: list[Floats], names: list[str], said: str
) -> None:
    found = sentence(offers(columns, names))
    assert found is not None
    assert said in found


def test_informed_coefficients_are_not_mentioned() -> None:
    for columns in ([PRICE, TIME], [PRICE, *BRANDS[1:]], [1e6 * PRICE, 1e-2 * TIME]):
        assert sentence(offers(columns, [f"x{k}" for k in range(len(columns))])) is None
    # what a sum-to-zero block removes is no question
    blocks = [rv.Block("price", 1), rv.Block("brand", 3, sum_to_zero=True)]
    assert sentence(offers([PRICE, *BRANDS], [], blocks)) is None
    # under a flat prior such decisions are refused
    assert sentence(offers([PRICE, INCOME], ["price", "income"]), rv.Flat()) is None


def test_state_that_is_never_reached_is_named_in_a_sum_to_zero_block() -> None:
    rows = [[0.5, 0.5, 0.0, 0.0], [0.1, 0.2, 0.7, 0.0]] * 20 + [[0.9, 0.1, 0.0, 0.0]] * 2
    blocks = [rv.Block("state", 4, sum_to_zero=True)]
    d = rv.Decisions(rows, np.arange(0, 43, 2), np.arange(21) % 2, blocks=blocks)
    found = sentence(d)
    assert found is not None
    assert "nothing about 'v3', which is the same" in found


@pytest.mark.parametrize("sd", [rv.HalfStudentT(), 3.0])
def test_directions_are_the_null_space_and_the_same_for_sparse_rows(sd: Any) -> None:
    d = offers([PRICE, *BRANDS], ["price", "a", "b", "c"])
    sparse = rv.Decisions(sp.csr_array(d.rows), d.start, d.chosen, names=d.names)
    for each in (d, sparse):
        found = uninformed_directions(each, resolve_prior(rv.Normal(sd), each))
        np.testing.assert_allclose(np.abs(found[:, 0]), [0.0, *3 * [3**-0.5]], atol=1e-6)
        assert found.shape == (4, 1)


def test_fit_warns_once_and_groups_are_named() -> None:
    d = offers([PRICE, INCOME], ["price", "income"])
    with pytest.warns(rv.UninformedWarning, match="'income'") as said:
        rv.fit(d, draws=50)
    assert len([w for w in said if w.category is rv.UninformedWarning]) == 1
    assert said[0].filename == __file__
    grouped = rv.Decisions(
        d.rows, d.start, d.chosen, names=d.names, groups=np.repeat(["ann", "bob"], 20)
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rv.fit(grouped, rv.ChoiceModel(groups=rv.Separate()), draws=50)
    told = [str(w.message) for w in caught if w.category is rv.UninformedWarning]
    assert len(told) == 1
    assert told[0].startswith("group 'ann' (and 1 more): the choices say nothing about 'income'")
