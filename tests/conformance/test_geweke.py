"""Geweke's joint test: where a sampler's steps alternate with new data, both keep their joint law.

If the sampler leaves the posterior invariant, then drawing data given the parameters and moving the
parameters given the data leaves their joint law invariant. It is compared with independent draws
from the prior and of data given these. No long chains, no exact posterior. Nothing is adapted on
the way: what warm-up found with the first data stays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

from revealed._types import Floats
from revealed.kernels.ranking_hmc import RankingLikelihood, evaluate_likelihood
from revealed.samplers.hierarchical_chain import HierarchicalChain
from revealed.samplers.state_space import Position
from tests.conformance.cases import (
    Pair,
    Spoil,
    build,
    case,
    is_default,
    missing,
    named,
    pace,
    pairs,
    problems_for,
    variants,
)
from tests.conformance.problems import Draws, Problem
from tests.support.statistical_asserts import BATCHES, assert_scores

State = dict[str, Floats]
Carry = Callable[[np.random.Generator, Any, State, Draws], State]


def keep(rng: np.random.Generator, sampler: Any, state: State, at: Draws) -> State:
    """Nothing in the state is of the data."""
    return state


def redraw_utilities(rng: np.random.Generator, sampler: Any, state: State, at: Draws) -> State:
    """Utilities are drawn exactly given the value and the new choices, as in the first state."""
    begun = sampler.init(rng, at["value"][0])
    return dict(begun | {name: state[name] for name in ("prior_sd",) if name in state})


def reject_utilities(rng: np.random.Generator, sampler: Any, state: State, at: Draws) -> State:
    """Correlated utilities, drawn until they agree with the new choices."""
    if "q" in state:  # a value for each group
        seen, group = sampler.utilities.decisions, sampler.utilities.group
        values, covariance = state["q"][group], state["noise_covariance"]
    else:
        seen, values, covariance = sampler.differenced, state["v"], state["covariance"]
        values = np.tile(values, (len(seen.design), 1))
    mean, root = np.einsum("tdk,tk->td", seen.design, values), np.linalg.cholesky(covariance)
    w = np.empty_like(state["w"])
    left = np.arange(len(w))
    while left.size:
        drawn = mean[left] + rng.standard_normal((left.size, len(root))) @ root.T
        w[left] = drawn
        # the base's utility is zero; what is not offered is not chosen
        best = np.where(seen.offered[left], drawn, -np.inf)
        top = np.where(seen.base_offered[left] & (best.max(axis=1) < 0.0), -1, best.argmax(axis=1))
        left = left[top != seen.chosen[left]]
    return state | {"w": w}


def forget_density(rng: np.random.Generator, sampler: Any, state: State, at: Draws) -> State:
    """Gradient and weight at the present point are computed anew."""
    return state | {"cycle_state": np.zeros(5)}


def redraw_totals(rng: np.random.Generator, sampler: Any, state: State, at: Draws) -> State:
    """Rows are normalised gammas, whose sum depends on how often a row was seen."""
    t, rows = state["t"].copy(), sampler.rows
    for low, high in zip(rows.cell_start[:-1], rows.cell_start[1:], strict=True):
        total = rng.standard_gamma(rows.shape[low:high].sum())
        t[low:high] += np.log(total) - logsumexp(t[low:high])
    return state | {"t": t}


def evaluate_ranking(rng: np.random.Generator, sampler: Any, state: State, at: Draws) -> State:
    """The likelihood is part of the state."""
    found = RankingLikelihood(np.empty(1), np.empty(1), np.empty(sampler.n_players))
    evaluate_likelihood(sampler.games, sampler.prior, state["x"], found)
    return state | found._asdict()


def place_skills(rng: np.random.Generator, sampler: Any, state: State, at: Draws) -> State:
    """The same skills and sizes in the coordinates of the new data alone."""
    theta = sampler.known.copy()
    for name, where in sampler.places.items():
        if name in at:
            theta[where : where + sampler.process.sizes] = np.log(at[name][0])
    # coefficients have a prior sd of one
    beside = at["coefficient"][0] if "coefficient" in at else np.empty(0)
    here = Position(theta, beside, at["skill"][0][:, None])
    return dict(sampler.at_position(sampler.init(rng, None), here))


# Coordinates that belong to a chain, not to its data, stay what they are: those of the first data
# would be right, but slow on others, and to find those of each new set takes far longer than to
# iterate. So they are the average of those that chains begin with on some sets of data.

Prepare = Callable[[np.random.Generator, Any, State, list[State]], State]


def averages(starts: list[State], *names: str) -> State:
    """Arrays of states by name, averaged over these."""
    return {name: np.mean([each[name] for each in starts], axis=0) for name in names}


def average_population(
    rng: np.random.Generator, sampler: Any, state: State, starts: list[State]
) -> State:
    """The same population and groups in average coordinates."""
    theta, values = HierarchicalChain(sampler, state, 0.0).position()
    new = state | averages(starts, "curvature", "linear", "centre", "adaptation")
    spread = np.mean([each["metric"] @ each["metric"].T for each in starts], axis=0)
    new["metric"] = np.linalg.cholesky(spread)
    return dict(new | {"x": sampler.coordinates(new, theta, values)})


def average_paths(
    rng: np.random.Generator, sampler: Any, state: State, starts: list[State]
) -> State:
    """A path, steps and noise one iteration on, with the average stand-in."""
    made = sampler._run(rng, state, 1)
    return dict(
        sampler.at_position(made.state | averages(starts, "curvature", "linear"), made.position)
    )


def average_group_paths(
    rng: np.random.Generator, sampler: Any, state: State, starts: list[State]
) -> State:
    """The same paths, which this sampler has as they are, with average stand-ins."""
    return state | averages(starts, "curvature", "linear")


CARRY: dict[str, Carry] = {
    "composite": forget_density,
    "da": redraw_utilities,
    "px-scale": redraw_utilities,
    "px-translate": redraw_utilities,
    "px-both": redraw_utilities,
    "da with noise": reject_utilities,
    "da with paths": keep,
    "hierarchical": keep,
    "hierarchical-hmc": keep,
    "hierarchical-gibbs": reject_utilities,
    "transitions-hmc": redraw_totals,
    "ranking-hmc": evaluate_ranking,
    "state-space": keep,
    "hierarchical-state-space": keep,
    # it is evaluated afresh whenever it goes on
    "hidden-markov": keep,
    "skill-paths": place_skills,
}
"""How each sampler's state goes from one set of data to the next."""
NOT_POSSIBLE = {
    "ibis": "its particles begin at the prior each time",
    "laplace": "its draws do not come from a chain",
    "ghk-hmc": "its auxiliary normals would have to be drawn given new choices",
}
PREPARE: dict[str, Prepare] = {
    "hierarchical-hmc": average_population,
    "state-space": average_paths,
    "hierarchical-state-space": average_group_paths,
}
"""How a state is made to suit many sets of data, given where chains of some of them begin."""
PREPARED_FOR = 12
"""Sets of data that a state is made to suit."""
STEPS = {
    "composite": (600, 3_000),
    "hierarchical": (500, 6_000),
    "hierarchical-hmc": (500, 6_000),
    "hierarchical-gibbs": (1_000, 6_000),
    "transitions-hmc": (1_000, 6_000),
    "ranking-hmc": (2_000, 10_000),
    "state-space": (500, 4_000),
    "hierarchical-state-space": (500, 4_000),
    "hidden-markov": (1_000, 6_000),
    "skill-paths": (500, 4_000),
}
"""Steps of the joint chain by default, and with --slow; of the paper's samplers more."""
THIN = {
    "hierarchical-hmc": 8,
    "state-space": 8,
    "hierarchical-state-space": 8,
    "hidden-markov": 8,
    "skill-paths": 8,
}
"""Iterations for each set of data, where making a sampler for it takes longer than these.

Batches of a chain must not correlate.
"""


def steps_of(pair: Pair) -> tuple[int, int]:
    """Steps of a pair's joint chain by default, and with --slow."""
    if pair.entry.name == "da" and pair.kind.over_time != "constant":
        return 800, 6_000
    short, long = STEPS.get(pair.entry.name, (2_000, 15_000))
    return short, long


def carry_of(pair: Pair) -> Carry | None:
    """How a pair's state is carried over; None where it cannot be."""
    name = pair.entry.name
    if name == "da" and pair.kind.noise == "correlated":
        name = "da with noise"
    # utilities are drawn first in every iteration: its state is theta and the path
    if name == "da" and pair.kind.over_time != "constant":
        name = "da with paths"
    return CARRY.get(name)


def functions(x: Floats) -> Floats:
    """Bounded functions of quantities (n, k), so that means exist whatever the tails."""
    bent = np.arctan(x)
    return np.hstack([bent, bent**2])


def joint_draws(
    pair: Pair,
    problem: Problem,
    options: dict[str, Any],
    steps: int,
    seed: int,
    spoil: Spoil | None = None,
) -> Floats:
    """(steps, functions) of the parameters and data of the joint chain, begun at the prior."""
    rng, carry = np.random.default_rng(seed), carry_of(pair)
    assert carry is not None
    at = problem.draw(rng)
    found = []

    def sampler_for(data: Any) -> Any:
        made = build(pair, problem.model, data, options, 1)
        return spoil(made) if spoil else made

    data = problem.observe(rng, at)
    sampler = sampler_for(data)
    warmup, thin = (
        pace(pair.kind, pair.entry.name, problem.name).warmup,
        THIN.get(pair.entry.name, 1),
    )
    state, _ = sampler.warmup(rng, sampler.init(rng, None), warmup, warmup)
    _, drawn, _ = sampler.sample(rng, state, 1, 1)
    at = named(problem.model, data, drawn)
    if pair.entry.name in PREPARE:
        others = [sampler_for(problem.observe(rng, problem.draw(rng))) for _ in range(PREPARED_FOR)]
        starts = [each.init(rng, None) for each in others]
        state = PREPARE[pair.entry.name](rng, sampler, state, starts)
    for _ in range(steps):
        data = problem.observe(rng, at)
        sampler = sampler_for(data)
        state, drawn, _ = sampler.sample(rng, carry(rng, sampler, state, at), 1, thin)
        at = named(problem.model, data, drawn)
        found.append(problem.rank(data, at)[0])
    return functions(np.array(found))


def independent(problem: Problem, count: int, seed: int) -> Floats:
    """(count, functions) of independent parameters from the prior, and of data given these."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(count):
        truth = problem.draw(rng)
        found.append(problem.rank(problem.observe(rng, truth), truth)[0])
    return functions(np.array(found))


def assert_same_law(chain: Floats, other: Floats) -> None:
    """Means agree within the errors of both, that of the chain by batch means."""
    size = len(chain) // BATCHES
    means = chain[: size * BATCHES].reshape(BATCHES, size, -1).mean(axis=1)
    error = np.hypot(
        means.std(axis=0, ddof=1) / np.sqrt(BATCHES),
        other.std(axis=0, ddof=1) / np.sqrt(len(other)),
    )
    difference = means.mean(axis=0) - other.mean(axis=0)
    moved = error > 1e-12
    assert_scores(difference[moved] / error[moved], false_alarm=1e-6, how="Geweke")


def joint_problems(pair: Pair) -> list[Problem]:
    """Problems of a pair in which no data are left out."""
    return [p for p in problems_for(pair) if not p.some_left_out] if carry_of(pair) else []


CASES = [
    case(
        pair,
        "Geweke",
        pair,
        problem,
        variant[1],
        steps_of(pair)[long],
        # of paths the walk always: filters take longer than values
        slow=long
        or pair.entry.name == "composite"
        or pair.kind.noise == "other"
        or pair.kind.over_time == "reverting"
        or (pair.kind.over_time == "random walk" and pair.kind.prior != "normal"),
        name=f"{problem.name}-{'long' if long else 'short'}",
        problem=problem.name if pair.kind.prior == "normal" else f"{problem.name}, inferred sd",
        variant=variant[0],
    )
    for long in (False, True)
    for pair in pairs()
    for i, problem in enumerate(joint_problems(pair))
    for variant in variants(pair)
    if long
    or (
        i == 0
        and is_default(variant)
        and pair.entry.name in (("da", "px-both") if pair.kind.lapses == "no" else ("px-both",))
    )
]


def test_every_sampler_has_a_joint_chain_or_a_reason() -> None:
    lacks = (
        pair
        for pair in pairs()
        if pair.kind.prior != "flat"
        and pair.entry.name not in NOT_POSSIBLE
        and not joint_problems(pair)
    )
    assert missing("Geweke (CARRY says how a state is kept, or NOT_POSSIBLE why not)", lacks) == []


@pytest.mark.parametrize(("pair", "problem", "options", "steps"), CASES)
def test_joint_chain_keeps_its_law(
    pair: Pair, problem: Problem, options: dict[str, Any], steps: int
) -> None:
    chain = joint_draws(pair, problem, options, steps, seed=3)
    assert_same_law(chain, independent(problem, max(steps, 4_000), seed=4))
