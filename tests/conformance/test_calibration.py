"""Calibration by ranks: the truth's rank among posterior draws is uniform, for every sampler.

Under a flat prior there is no truth to draw, and exact posteriors must do (`test_oracles.py`).

Of n data sets, a posterior that is off by d of its sds gives a chi-squared statistic of n d^2 more,
and one that is too wide by a share e of 2 n e^2 more. With a false-alarm rate of 1e-6 for all
quantities together, nine times in ten 100 data sets see d = 0.9 and e = 0.65, 400 see 0.45 and 0.3,
1,000 see 0.3 and 0.2. Smaller mistakes are for exact posteriors and Geweke's test.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.cases import (
    RANKED,
    Pair,
    case,
    is_default,
    is_first,
    missing,
    pairs,
    problems_for,
    ranks,
    variants,
)
from tests.conformance.problems import Problem
from tests.support.statistical_asserts import assert_uniform_ranks

LONG = {
    "composite": 400,
    "hierarchical": 300,
    "hierarchical-hmc": 400,
    "hierarchical-gibbs": 400,
    "ibis": 250,
    "laplace": 400,
    "transitions-hmc": 600,
    "state-space": 400,
    "hierarchical-state-space": 400,
    "hidden-markov": 400,
}
"""Data sets of the long run, where one takes long; else 1,000."""
SHARE = {"other": 2, "student": 4, "student df": 4}
"""What the long run is divided by under noises whose probabilities take many times as long."""
SHORT = {"da": 100, "px-both": 100, "ghk-hmc": 50, "ranking-hmc": 50}
"""Data sets of the short run that is always made; of other samplers none."""


def data_sets(pair: Pair, long: bool) -> int:
    """How many data sets are drawn for a pair."""
    # paths by data augmentation take long; their joint chain is quicker
    if pair.entry.name == "da" and pair.kind.over_time != "constant":
        return 400 if long else 0
    if not long:
        quick = pair.kind.prior == "normal" or pair.entry.name != "ghk-hmc"
        # with lapses exact posteriors and the joint chain are quicker
        quick = quick and pair.kind.lapses == "no"
        return SHORT.get(pair.entry.name, 0) if quick else 0
    count = LONG.get(pair.entry.name, 1_000) // SHARE.get(pair.kind.noise, 1)
    # what differs from another pair in the prior's sd or in df alone has the same loops
    return count if is_first(pair) else max(100, count // 4)


CASES = [
    case(
        pair,
        "calibration",
        pair,
        problem,
        variant[1],
        data_sets(pair, long),
        slow=long,
        name=f"{problem.name}-{data_sets(pair, long)}",
        problem=problem.name if pair.kind.prior == "normal" else f"{problem.name}, inferred sd",
        variant=variant[0],
    )
    for long in (False, True)
    for pair in pairs()
    for i, problem in enumerate(problems_for(pair))
    for variant in variants(pair)
    if long or (i == 0 and is_default(variant) and data_sets(pair, long))
]


def test_every_pair_with_a_proper_prior_has_a_problem() -> None:
    lacks = (p for p in pairs() if p.kind.prior != "flat" and not problems_for(p))
    assert missing("calibration", lacks) == []


@pytest.mark.parametrize(("pair", "problem", "options", "count"), CASES)
def test_ranks_are_uniform(
    pair: Pair, problem: Problem, options: dict[str, Any], count: int
) -> None:
    found = ranks(pair, problem, options, count, seed=4 if count < 200 else 5)
    assert_uniform_ranks(found, RANKED, false_alarm=1e-6)
