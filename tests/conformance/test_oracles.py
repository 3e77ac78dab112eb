"""Every sampler has the means and sds of an exact posterior, for every kind of model.

The long runs see an error of a mean of about 2 % of the posterior sd, and the short ones of 5 to
10 %, nine times in ten.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed.kernels.noise import NORMAL, LapseArguments
from revealed.samplers import hierarchical_paths
from revealed.samplers.path_augmentation import PathAugmentationSampler
from revealed.samplers.path_population import PathPopulationChain
from tests.conformance.cases import (
    Pair,
    Spoil,
    build,
    case,
    fit,
    is_default,
    missing,
    named,
    pairs,
    tried_each_time,
    variants,
)
from tests.conformance.every import ALL_ORACLES
from tests.conformance.oracles import Oracle, assert_moments
from tests.conformance.problems import Draws
from tests.support.cases import warmed_up_draws
from tests.support.statistical_asserts import BATCHES, must_fail

WARMUP = {
    "composite": 300,
    "hierarchical": 200,
    "hierarchical-hmc": 400,
    "hierarchical-gibbs": 50,
    "state-space": 400,
    "hierarchical-state-space": 600,
    "hidden-markov": 400,
    "skill-paths": 600,
}
"""Iterations before the first draw; of other samplers 1,000."""
THIN = {
    "hierarchical": 4,
    "hierarchical-hmc": 2,
    "state-space": 2,
    "hierarchical-state-space": 2,
    "skill-paths": 6,
}
"""Iterations between draws, where so many belong to one batch otherwise that batches correlate."""
COUNTS = {
    "composite": (20_000, 200_000),
    "ghk-hmc": (6_000, 20_000),
    "hierarchical": (600, 8_000),
    "hierarchical-hmc": (6_000, 40_000),
    "hierarchical-gibbs": (2_000, 20_000),
    "transitions-hmc": (6_000, 40_000),
    "ranking-hmc": (8_000, 40_000),
    "state-space": (10_000, 100_000),
    "hierarchical-state-space": (2_000, 40_000),
    "hidden-markov": (1_000, 40_000),
    "skill-paths": (8_000, 60_000),
    "ibis": (4_000, 20_000),
    "laplace": (10_000, 40_000),
}
"""Draws by default, and with --slow; of a sampler that is not here as many as of the paper's."""
# an evaluation of this noise costs many times as much
SLOWER_NOISE = {"hierarchical": 2, "ibis": 2, "hidden-markov": 2}


def draw_count(pair: Pair, long: bool) -> int:
    """How many draws of a pair are compared with the exact posterior."""
    count = COUNTS.get(pair.entry.name, (40_000, 200_000))[long]
    # every label is a coefficient more, of every particle
    if pair.kind.lapses == "habit" and pair.entry.name == "ibis":
        count //= 2
    # each of these is followed by its prior sd
    if pair.entry.name == "hierarchical-hmc" and pair.kind.lapses != "no":
        count //= 3 if pair.kind.prior == "inferred sd" else 1
    slower = pair.kind.noise in ("other", "student", "student df")
    return count // SLOWER_NOISE.get(pair.entry.name, 5) if slower else count


def many_draws(
    pair: Pair,
    oracle: Oracle,
    options: dict[str, Any],
    count: int,
    data: Any,
    spoil: Spoil | None = None,
) -> Draws:
    """So many draws by one chain, or by independent sets of particles, one after the other.

    spoil: makes a wrong sampler of the right one, of a chain.
    """
    rng = np.random.default_rng(1)
    if pair.entry.build is None:
        post = fit(data, oracle.model, pair.entry.name, count, seed=1)
        return {name: each[0] for name, each in post.draws.items()}
    if pair.entry.name == "ibis":
        # batch means are then those of the sets
        sampler = build(pair, oracle.model, data, options, count // BATCHES)
        sets = [
            warmed_up_draws(rng, sampler, len(data), count // BATCHES)[0] for _ in range(BATCHES)
        ]
        made = {name: np.concatenate([each[name] for each in sets]) for name in sets[0]}
        return named(oracle.model, data, made)
    sampler = build(pair, oracle.model, data, options, count)
    sampler = spoil(sampler) if spoil else sampler
    name = pair.entry.name
    made, _ = warmed_up_draws(rng, sampler, WARMUP.get(name, 1_000), count, THIN.get(name, 1))
    return named(oracle.model, data, made)


def oracles_for(pair: Pair) -> list[Oracle]:
    """Those of a pair's kind that are for its sampler."""
    return [o for o in ALL_ORACLES if o.kind == pair.kind and o.is_for(pair.entry.name)]


CASES = [
    case(
        pair,
        "oracle",
        pair,
        oracle,
        variant[1],
        draw_count(pair, long),
        slow=long or i > 0 or not is_default(variant),
        name=f"{oracle.name}-{draw_count(pair, long)}",
        problem=oracle.name,
        variant=variant[0],
    )
    for long in (False, True)
    for pair in pairs()
    for i, oracle in enumerate(oracles_for(pair))
    for variant in variants(pair)
    # the short run only where it runs always
    if long or (i == 0 and is_default(variant) and tried_each_time(pair))
]


def test_every_pair_has_an_exact_posterior() -> None:
    assert missing("oracle", (pair for pair in pairs() if not oracles_for(pair))) == []


@pytest.mark.parametrize(("pair", "oracle", "options", "count"), CASES)
def test_moments_are_exact(pair: Pair, oracle: Oracle, options: dict[str, Any], count: int) -> None:
    draws = many_draws(pair, oracle, options, count, oracle.data)
    assert_moments(oracle.columns(draws), oracle.exact())


@pytest.mark.parametrize(
    ("pair", "oracle"),
    [
        case(pair, "mutants", pair, oracles_for(pair)[0], slow=True)
        for pair in pairs()
        if oracles_for(pair)
    ],
)
def test_everything_seen_twice_is_caught(pair: Pair, oracle: Oracle) -> None:
    """The check has power on every pair: here for a posterior of about 0.7 of its width."""
    options = variants(pair)[0][1]
    count = min(4 * draw_count(pair, long=False), draw_count(pair, long=True))
    # of hierarchical groups a short run leaves five standard errors, where six are asked for
    if pair.entry.name == "hierarchical-hmc":
        count = max(count, 20_000)
    draws = many_draws(pair, oracle, options, count, oracle.twice)
    with must_fail("everything that was seen counts twice"):
        assert_moments(oracle.columns(draws), oracle.exact())


def habits_of_all_labels(sampler: Any) -> Any:
    """Habits are shared among all labels, also those that a decision does not offer."""
    habit = sampler.noise.habit
    wrong = habit._replace(offered=np.ones_like(habit.offered))
    return replace(sampler, noise=sampler.noise._replace(habit=wrong))


@pytest.mark.parametrize(
    "pair",
    [
        case(pair, "mutants", pair, slow=(pair.kind.noise, pair.kind.prior) != ("logit", "normal"))
        for pair in pairs()
        if pair.kind.lapses == "habit" and pair.entry.name == "composite"
    ],
)
def test_habits_that_are_not_normalised_over_the_actions_offered_are_caught(pair: Pair) -> None:
    (oracle,) = oracles_for(pair)
    draws = many_draws(pair, oracle, {}, 40_000, oracle.data, habits_of_all_labels)
    with must_fail("habits that are not normalised over the actions offered"):
        assert_moments(oracle.columns(draws), oracle.exact())


def normal_in_place(sampler: Any) -> Any:
    """No decision is noisier than another."""
    return replace(sampler, noise=NORMAL)


def another_prior_of_df(sampler: Any) -> Any:
    """Degrees of freedom have a prior that keeps them large."""
    table, noise = rv.Gamma(30.0, 0.5).table.copy(), sampler.noise
    if isinstance(noise, LapseArguments):
        return replace(sampler, noise=noise._replace(noise=noise.noise._replace(table=table)))
    return replace(sampler, noise=noise._replace(table=table))


@pytest.mark.parametrize(
    ("pair", "spoil"),
    [
        case(pair, "mutants", pair, spoil, slow=pair.kind.lapses != "no")
        for pair in pairs()
        for noise, lapses, spoil in (
            ("student", "no", normal_in_place),
            ("student df", "no", another_prior_of_df),
            ("student df", "lapses", another_prior_of_df),
        )
        if pair.entry.name == "composite"
        and (pair.kind.noise, pair.kind.prior, pair.kind.lapses) == (noise, "normal", lapses)
    ],
)
def test_tails_that_are_not_those_of_the_model_are_caught(pair: Pair, spoil: Spoil) -> None:
    (oracle,) = oracles_for(pair)
    # lapses explain what is wrong by far, and leave tails less to say
    count = 4_000 if pair.kind.lapses == "no" else 40_000
    draws = many_draws(pair, oracle, {}, count, oracle.data, spoil)
    with must_fail(str(spoil.__doc__)):
        assert_moments(oracle.columns(draws), oracle.exact())


def sequences_of_one(sampler: Any) -> Any:
    """The forward recursion without the transition: every decision begins anew."""
    data = sampler.density.data
    start = np.arange(len(data.kind) + 1)
    density = replace(sampler.density, data=data._replace(start=start))
    return replace(sampler, density=density, starts=replace(sampler.starts, density=density))


def first_strategy_stays(sampler: Any) -> Any:
    """A prior that depends on the label: the first strategy stays as it likes, the other hardly."""
    shape = np.array([[30.0, 1.0], [1.0, 1.0]])
    density = replace(sampler.density, prior=sampler.density.prior._replace(switch=shape))
    return replace(sampler, density=density, starts=replace(sampler.starts, density=density))


@pytest.mark.parametrize(
    ("pair", "spoil"),
    [
        case(pair, "mutants", pair, spoil, slow=False, name=spoil.__name__)
        for pair in pairs()
        for spoil in (sequences_of_one, first_strategy_stays)
        if pair.entry.name == "hidden-markov"
        and pair.kind[1:] == ("normal", "logit", "pooled", "no", "switching")
    ],
)
def test_wrong_switching_is_caught(pair: Pair, spoil: Spoil) -> None:
    (oracle,) = oracles_for(pair)
    draws = many_draws(pair, oracle, {}, 2_000, oracle.data, spoil)
    with must_fail(str(spoil.__doc__)):
        assert_moments(oracle.columns(draws), oracle.exact())


def forget_the_root(sampler: Any) -> Any:
    """The sd of a step grows with the gap, not with its root."""
    if isinstance(sampler, PathAugmentationSampler):
        process = sampler.problem.process
        process = process._replace(gap=process.gap**2)
        return replace(sampler, problem=sampler.problem._replace(process=process))
    process = sampler.process._replace(gap=sampler.process.gap**2)
    return replace(sampler, process=process)


def first_value_twice(sampler: Any) -> Any:
    """The prior of the first value is counted twice."""
    if isinstance(sampler, PathAugmentationSampler):
        covariance = 0.5 * sampler.problem.start_covariance
        return replace(sampler, problem=sampler.problem._replace(start_covariance=covariance))
    precision = 2.0 * sampler.process.start_precision
    return replace(sampler, process=sampler.process._replace(start_precision=precision))


def step_backwards(sampler: Any) -> Any:
    """A step leads from minus the value before."""
    if isinstance(sampler, PathAugmentationSampler):
        rows, second = sampler.problem.rows.copy(), sampler.problem.node_row[1]
        rows[second:] *= -1.0
        return replace(sampler, problem=sampler.problem._replace(rows=rows))
    rows, second = sampler.data.rows.copy(), sampler.data.node_start[1]
    rows[second:] *= -1.0
    return replace(sampler, data=sampler.data._replace(rows=rows))


@pytest.mark.parametrize(
    ("pair", "spoil"),
    [
        case(pair, "mutants", pair, spoil, slow=False, name=spoil.__name__)
        for pair in pairs()
        for spoil in (forget_the_root, first_value_twice, step_backwards)
        for noise in ("logit" if pair.entry.name == "state-space" else "normal",)
        if pair.entry.name in ("state-space", "da")
        and pair.kind[1:] == ("normal", noise, "pooled", "no", "random walk")
    ],
)
def test_wrong_steps_of_paths_are_caught(pair: Pair, spoil: Spoil) -> None:
    (oracle,) = oracles_for(pair)
    draws = many_draws(pair, oracle, {}, 40_000, oracle.data, spoil)
    with must_fail(str(spoil.__doc__)):
        assert_moments(oracle.columns(draws), oracle.exact())


def forget_the_mean(patch: pytest.MonkeyPatch) -> None:
    """Groups begin about zero, and not about the mean of their population."""
    right = PathPopulationChain.population

    def wrong(chain: PathPopulationChain) -> Any:
        found = right(chain)
        return found._replace(mean=np.zeros_like(found.mean))

    patch.setattr(PathPopulationChain, "population", wrong)


def spread_without_jacobian(patch: pytest.MonkeyPatch) -> None:
    """The spread of groups' steps is drawn on the log scale without the factor that brings."""
    right = PathPopulationChain.log_density_of_steps

    def wrong(chain: Any, k: int, log_m: float, log_s: float, *rest: float) -> float:
        return right(chain, k, log_m, log_s, *rest) - log_s

    patch.setattr(PathPopulationChain, "log_density_of_steps", wrong)
    # the other move of the spread is right, and would make up for it
    settings = replace(hierarchical_paths.SETTINGS, moves=0)
    patch.setattr(hierarchical_paths, "SETTINGS", settings)


def sizes_that_stay(patch: pytest.MonkeyPatch) -> None:
    """Sizes of groups' steps do not follow their population where it moves with all paths."""
    right = PathPopulationChain._move_population

    def wrong(chain: PathPopulationChain, rng: np.random.Generator) -> float:
        before = chain.chains.theta.copy()
        found = right(chain, rng)
        chain.chains.theta[:] = before
        return found

    patch.setattr(PathPopulationChain, "_move_population", wrong)


def one_walk_for_all(patch: pytest.MonkeyPatch) -> None:
    """Groups do not look at the sizes of others' steps."""
    right = PathPopulationChain.population

    def wrong(chain: PathPopulationChain) -> Any:
        found = right(chain)
        return found._replace(log_mean=np.zeros_like(found.log_mean))

    patch.setattr(PathPopulationChain, "population", wrong)


@pytest.mark.parametrize(
    ("pair", "spoil"),
    [
        case(pair, "mutants", pair, spoil, slow=slow, name=spoil.__name__)
        for pair in pairs()
        for spoil, slow in (
            (forget_the_mean, False),
            (spread_without_jacobian, False),
            (sizes_that_stay, True),
            (one_walk_for_all, True),
        )
        if pair.entry.name == "hierarchical-state-space" and pair.kind.noise == "logit"
    ],
)
def test_wrong_populations_of_paths_are_caught(
    pair: Pair, spoil: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (oracle,) = oracles_for(pair)
    spoil(monkeypatch)
    draws = many_draws(pair, oracle, {}, 4_000, oracle.data)
    with must_fail(str(spoil.__doc__)):
        assert_moments(oracle.columns(draws), oracle.exact())
