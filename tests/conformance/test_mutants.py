"""Samplers that are wrong on purpose are caught by ranks and by Geweke's test.

Exact posteriors catch others: `test_oracles.py`, and the mutants of single moves and kernels in
`tests/correctness`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed.kernels.group_values import draw_group_values
from revealed.kernels.noise import NORMAL
from revealed.samplers import hierarchical
from revealed.samplers.ranking_hmc import RankingSampler
from tests.conformance.cases import RANKED, Pair, Spoil, case, pairs, problems_for, ranks, variants
from tests.conformance.problems import CONCENTRATION, Problem
from tests.conformance.test_geweke import assert_same_law, independent, joint_draws, joint_problems
from tests.support.logistic_noise import LogisticNoise
from tests.support.statistical_asserts import assert_uniform_ranks, must_fail


def lose_degrees(lost: float) -> Spoil:
    """Another number of lost degrees of freedom in the working scale."""
    return lambda sampler: replace(sampler, move=sampler.move._replace(lost_df=lost))


def more_dimensions(sampler: Any) -> Any:
    """The prior's scale is drawn with six coordinates too many."""
    wrong = sampler.prior_scale.dimension + 6
    return replace(sampler, prior_scale=sampler.prior_scale._replace(dimension=wrong))


def narrow_hyperprior(sampler: Any) -> Any:
    """The sds of a population have a prior of a twentieth of the width."""
    return replace(sampler, prior=sampler.prior._replace(sd_scale=sampler.prior.sd_scale / 20.0))


def narrow_mean_scale(sampler: Any) -> Any:
    """The prior of the sd of a population's mean has a twentieth of the width."""
    prior = sampler.mean_prior
    return replace(sampler, mean_prior=replace(prior, scale=prior.scale / 20.0))


def ties_as_wins(sampler: RankingSampler) -> RankingSampler:
    """Of those who tied, the first is taken to have won."""
    tied = np.zeros_like(sampler.orders.tied)
    return RankingSampler(sampler.orders, sampler.games._replace(tied=tied), sampler.prior)


def unseen_orders_as_seen(sampler: RankingSampler) -> RankingSampler:
    """Of those whose order was not seen, the first that is listed is taken to have won."""
    spread = None if sampler.infers_spread else sampler.prior.spread
    seen = replace(sampler.orders, tied=np.zeros_like(sampler.orders.tied))
    return RankingSampler.build(seen, spread, "entry", logit=True)


def count_transitions_twice(sampler: Any) -> Any:
    """Every transition counts as two."""
    shape = 2.0 * sampler.rows.shape - CONCENTRATION
    return replace(sampler, rows=sampler.rows._replace(shape=shape))


def fix_rows(sampler: Any) -> Any:
    """Rows are fixed at what transitions alone suggest, as if choices said nothing of them."""
    return replace(sampler, rows=sampler.rows._replace(shape=1e6 * sampler.rows.shape))


def narrow_noise(sampler: Any) -> Any:
    """The noise of a plug-in, ten times as narrow."""
    return replace(sampler, noise=LogisticNoise(0.06).kernel())


def rate_without_prior(sampler: Any) -> Any:
    """The rate of lapses is drawn as if its prior were next to nothing."""
    return replace(sampler, lapse=replace(sampler.lapse, prior=rv.Beta(0.1, 0.1)))


def normal_noise(sampler: Any) -> Any:
    """Choices by Gumbel noise are taken for those by normal noise."""
    return replace(sampler, noise=NORMAL)


@contextmanager
def close_groups() -> Iterator[None]:
    """Groups are drawn towards their population far too strongly."""

    def wrong(rng: Any, groups: Any, population: Any, *rest: Any) -> None:
        tighter = population._replace(precision=100.0 * population.precision)
        draw_group_values(rng, groups, tighter, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hierarchical, "draw_group_values", wrong)
        yield


def keep_sampler(sampler: Any) -> Any:
    """The sampler as it is, in a context that is wrong."""
    return sampler


@dataclass(frozen=True)
class Mutant:
    """A wrong sampler of a pair, given by the pair's name, and how many data sets or steps see it."""

    name: str
    pair: str
    spoil: Spoil
    count: int
    by: str = "ranks"
    always: bool = True
    context: Callable[[], AbstractContextManager[None]] = nullcontext


MUTANTS = [
    Mutant(
        "twenty degrees of freedom too few in the working scale",
        "px-both: choices",
        lose_degrees(20.0),
        400,
    ),
    Mutant(
        "half the rows missing from the working scale's shape",
        "px-both: choices",
        lose_degrees(12.0),
        15_000,
        by="Geweke",
        always=False,
    ),
    Mutant(
        "a scale drawn with six coordinates too many",
        "px-both: a prior sd that is inferred",
        more_dimensions,
        160,
    ),
    Mutant(
        "groups drawn too close to the population",
        "hierarchical: hierarchical groups",
        keep_sampler,
        24,
        always=False,
        context=close_groups,
    ),
    Mutant(
        "a hyperprior that is too narrow",
        "hierarchical: hierarchical groups",
        narrow_hyperprior,
        48,
        always=False,
    ),
    Mutant(
        "a hyperprior that is too narrow",
        "hierarchical: independent noise that is not normal and hierarchical groups",
        narrow_hyperprior,
        60,
        always=False,
    ),
    Mutant(
        "a mean's prior sd that is far too small",
        "hierarchical: a prior sd that is inferred and hierarchical groups",
        narrow_mean_scale,
        48,
        always=False,
    ),
    Mutant(
        "a hyperprior that is too narrow",
        "hierarchical-hmc: hierarchical groups",
        narrow_hyperprior,
        48,
    ),
    Mutant(
        "a hyperprior that is too narrow",
        "hierarchical-hmc: independent noise that is not normal and hierarchical groups",
        narrow_hyperprior,
        60,
        always=False,
    ),
    Mutant(
        "a mean's prior sd that is far too small",
        "hierarchical-hmc: a prior sd that is inferred and hierarchical groups",
        narrow_mean_scale,
        48,
        always=False,
    ),
    Mutant(
        "ties taken for wins",
        "ranking-hmc: rankings and a prior sd that is inferred",
        ties_as_wins,
        60,
    ),
    Mutant(
        "orders that were not seen taken for seen",
        "ranking-hmc: rankings and logit noise",
        unseen_orders_as_seen,
        2_000,
        by="Geweke",
    ),
    Mutant(
        "transitions counted twice",
        "transitions-hmc: unknown transitions",
        count_transitions_twice,
        150,
        always=False,
    ),
    Mutant(
        "rows fixed at what transitions alone suggest",
        "transitions-hmc: unknown transitions",
        fix_rows,
        150,
        always=False,
    ),
    Mutant(
        "noise ten times as narrow",
        "composite: independent noise that is not normal",
        narrow_noise,
        150,
        always=False,
    ),
    Mutant(
        "a rate of lapses drawn without its prior",
        "px-both: lapses",
        rate_without_prior,
        300,
        always=False,
    ),
    Mutant(
        "normal noise in place of Gumbel's",
        "composite: logit noise",
        normal_noise,
        600,
        always=False,
    ),
]
BY_NAME = {str(pair): pair for pair in pairs()}


@pytest.mark.parametrize(
    ("mutant", "pair", "problem"),
    [
        case(
            pair,
            "mutants",
            mutant,
            pair,
            (problems_for if mutant.by == "ranks" else joint_problems)(pair)[0],
            slow=not mutant.always,
            name=mutant.name,
        )
        for mutant in MUTANTS
        for pair in [BY_NAME[mutant.pair]]
    ],
)
def test_wrong_sampler_is_caught(mutant: Mutant, pair: Pair, problem: Problem) -> None:
    options = variants(pair)[0][1]
    with mutant.context():
        if mutant.by == "ranks":
            found: Any = ranks(pair, problem, options, mutant.count, 4, mutant.spoil)
        else:
            found = joint_draws(pair, problem, options, mutant.count, 3, mutant.spoil)
    with must_fail(mutant.name):
        if mutant.by == "ranks":
            assert_uniform_ranks(found, RANKED, false_alarm=1e-6)
        else:
            assert_same_law(found, independent(problem, mutant.count, seed=4))
