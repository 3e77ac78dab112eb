"""What moves are said to cost."""

from __future__ import annotations

from typing import Any

import numpy as np

import revealed as rv
from revealed._types import Floats
from revealed.models.priors import resolve_prior
from revealed.samplers.composite.cost import COST, CostModel
from revealed.samplers.composite.sampler import CompositeSampler
from revealed.samplers.composite.transform import WhiteningTransform
from tests.support.cases import choose, ragged_offers
from tests.support.statistical_asserts import assert_same


def arrays(thing: Any) -> list[Floats]:
    """All arrays of a tuple, and of the tuples in it."""
    if isinstance(thing, tuple):
        return [array for part in thing for array in arrays(part)]
    return [thing] if isinstance(thing, np.ndarray) else []


def test_cost_model_at_a_point_changes_neither_posterior_nor_point() -> None:
    rng = np.random.default_rng(2)
    offers = ragged_offers(3, 40, seed=1)
    seen = offers.with_choices(choose(rng, offers, np.array([1.0, -1.0, 0.5]))[0])
    sampler = CompositeSampler.build(seen, resolve_prior(rv.Normal(2.0), seen))
    transform = WhiteningTransform.from_precision(
        sampler.resolved_prior, sampler.mode, sampler.information
    )
    target, workspace = sampler.posterior(transform)
    for array in arrays(workspace):
        array[:] = 7
    x, rows = np.array([0.5, -1.0, 2.0]), seen.rows.shape[0]
    before = [array.copy() for array in arrays((target, workspace, x))]
    cost = CostModel.at(target, x, rows)
    for array, was in zip(arrays((target, workspace, x)), before, strict=True):
        assert_same(array, was)
    assert cost == CostModel.at(target, x, rows)
    # a sweep over so many rows moves in three directions and four random ones
    per_row = COST.per_utility + 7 * COST.per_utility_direction
    assert cost.augmentation == rows * per_row + 7 * COST.per_direction
    # an evaluation costs something for every decision, and for every product
    products = target.design.columns.size + target.unwhiten.size
    assert cost.log_posterior > COST.per_decision * 40 + COST.per_product * products
