"""Unknown transitions: value and transition probabilities have the right joint law.

And wrong moves are caught.
"""

from __future__ import annotations

import functools
import importlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import log_ndtr

import revealed as rv
from revealed._types import Floats, Ints
from revealed.kernels import unknown_transitions as kernels
from revealed.kernels.hmc import PathPlan, init_dual_averaging, make_path_statistics
from revealed.samplers.transition_problem import build_unknown_transitions
from revealed.samplers.unknown_transitions import UnknownTransitionsSampler
from tests.support.cases import mark_slow, warmed_up_draws
from tests.support.statistical_asserts import (
    assert_error,
    assert_mean,
    assert_sd,
    assert_uniform_ranks,
    must_fail,
    patched_package,
)

pytestmark = pytest.mark.proves(model="unknown transitions", sampler="transitions-hmc")
PRIOR_SD = 6.0**0.5
ACTION_COUNTS = np.array([[9, 2], [3, 1]])  # how often each action was taken in each state
NEXT_STATE_COUNTS = (1, 3)  # the unknown row led to state 0 once, to state 1 three times
CONCENTRATION = 0.7  # of that row


def one_unknown_row(package: str = "revealed") -> Any:
    """The sampler for two states and two actions.

    Only p = p(0 | 0, first) is unknown: the other rows lead to one state each.
    """
    x = np.repeat([0, 0, 1, 1], ACTION_COUNTS.ravel())
    a = np.repeat([0, 1, 0, 1], ACTION_COUNTS.ravel())
    counts = np.zeros((2, 2, 2), np.int64)
    counts[0, 0] = NEXT_STATE_COUNTS
    prior = np.zeros((2, 2, 2))
    prior[0, 0] = CONCENTRATION
    prior[1, 0, 1] = prior[0, 1, 0] = prior[1, 1, 1] = 1.0
    data, problem, choice, priors, transitions = (
        importlib.import_module(f"{package}.{name}")
        for name in (
            "data.trajectories",
            "samplers.transition_problem",
            "models.choice",
            "models.priors",
            "models.transitions",
        )
    )
    seen = data.Trajectories.from_counts((x, a), counts, (0, 1), (0, 1))
    model = choice.ChoiceModel(
        prior=priors.Normal(PRIOR_SD), transitions=transitions.Dirichlet(prior)
    )
    return problem.build_unknown_transitions(model.resolve(seen))


@functools.cache
def exact_moments() -> dict[str, tuple[float, float]]:
    """Mean and sd of the value of state 0, of p and of their product, summed on a grid.

    v = (s, -s) with s ~ N(0, PRIOR_SD^2 / 2). In state 0 the utilities are (2 p - 1) s and -s
    before noise, in state 1 s and -s. An action that leads by d is chosen with probability
    Phi(d / sqrt(2)).
    """
    s = np.linspace(-12.0, 12.0, 2401)[:, None]
    logit = np.linspace(-40.0, 40.0, 4001)[None, :]
    p, rest = 1.0 / (1.0 + np.exp(-logit)), 1.0 / (1.0 + np.exp(logit))
    first, second = 2.0 * p * s / np.sqrt(2.0), 2.0 * s / np.sqrt(2.0)
    log_density = (
        -(s**2) / PRIOR_SD**2
        + (CONCENTRATION + NEXT_STATE_COUNTS[0]) * np.log(p)
        + (CONCENTRATION + NEXT_STATE_COUNTS[1])
        * np.log(rest)  # and the logit's Jacobian, p (1 - p)
        + ACTION_COUNTS[0, 0] * log_ndtr(first)
        + ACTION_COUNTS[0, 1] * log_ndtr(-first)
        + ACTION_COUNTS[1, 0] * log_ndtr(second)
        + ACTION_COUNTS[1, 1] * log_ndtr(-second)
    )
    weight = np.exp(log_density - log_density.max())
    weight /= weight.sum()

    def moments(f: Floats) -> tuple[float, float]:
        mean = float((weight * f).sum())
        return mean, float(np.sqrt((weight * (f - mean) ** 2).sum()))

    return {"value": moments(s + 0 * p), "p": moments(p + 0 * s), "product": moments(p * s)}


def run(sampler: Any, count: int, seed: int = 1) -> dict[str, Floats]:
    draws, _ = warmed_up_draws(np.random.default_rng(seed), sampler, 1000, count)
    cell = int(np.flatnonzero((sampler.rows.next_state == 0) & (sampler.rows.shape != 1.0))[0])
    value, p = draws["value"][:, 0], draws["transition"][:, cell]
    return {"value": value, "p": p, "product": value * p}


def assert_exact_moments(found: dict[str, Floats]) -> None:
    for name, (mean, sd) in exact_moments().items():
        assert_mean(found[name], mean, false_alarm=1e-6 / 6)
        assert_sd(found[name], mean, sd, false_alarm=1e-6 / 6)


def test_posterior_agrees_with_the_grid() -> None:
    assert_exact_moments(run(one_unknown_row(), 40_000))


def run_single_moves(
    sampler: UnknownTransitionsSampler, moves: str, wrong: str = "", count: int = 30_000
) -> dict[str, Floats]:
    """Hamiltonian paths, row updates or both, called one by one.

    wrong: the name of a mistake that is made on purpose.
    """
    rng = np.random.default_rng(2)
    state = sampler.init(rng, None)
    rows, choices, value_prior = sampler.rows, sampler.choices, sampler._value_prior
    work = kernels.make_workspace(rows, choices, 2)
    without_choices = choices._replace(
        rival_index=choices.rival_index._replace(weight=0.0 * choices.rival_index.weight)
    )
    rows_of_path = (
        rows._replace(shape=rows.shape - 1.0)
        if wrong == "Jacobian of the logarithm forgotten"
        else rows
    )
    row_choices = without_choices if wrong == "choices forgotten when a row is drawn" else choices
    v, t, out = state["v"], state["t"], np.empty((count, 2))
    root, cell_sd = 1.5 * state["value_root"], state["cell_sd"]
    target = kernels.ValueAndRows(rows_of_path, choices, value_prior, root, cell_sd, v, t)
    plan, statistics = PathPlan(1.5, 0.0, init_dual_averaging(0.5)), make_path_statistics(1)
    cell = int(np.flatnonzero((rows.next_state == 0) & (rows.shape != 1.0))[0])
    for n in range(count):
        if "paths" in moves:
            kernels.move_value_and_rows(rng, target, work, plan, statistics, 0, 1)
        if "row updates" in moves:
            kernels.update_rows(rng, rows, row_choices, work, v, t)
        kernels.compute_row(rows, 0, t, v, work.probabilities)
        out[n] = v[0], work.probabilities[cell]
    return {"value": out[:, 0], "p": out[:, 1], "product": out[:, 0] * out[:, 1]}


@pytest.mark.parametrize("moves", ["paths", "paths and row updates"])
def test_each_move_leaves_the_posterior_invariant(moves: str) -> None:
    assert_exact_moments(run_single_moves(one_unknown_row(), moves))


@pytest.mark.parametrize(
    ("wrong", "moves"),
    [
        ("choices forgotten when a row is drawn", "paths and row updates"),
        ("Jacobian of the logarithm forgotten", "paths"),
    ],
)
def test_wrong_move_is_caught(wrong: str, moves: str) -> None:
    with must_fail(wrong):
        assert_exact_moments(run_single_moves(one_unknown_row(), moves, wrong))


@pytest.mark.parametrize("wrong", ["transitions counted twice", "equal choices counted once"])
def test_wrong_counts_are_caught(wrong: str) -> None:
    sampler = one_unknown_row()
    rows, choices = sampler.rows, sampler.choices
    if wrong == "transitions counted twice":
        twice = rows._replace(
            shape=np.where(rows.shape == 1.0, 1.0, 2.0 * rows.shape - CONCENTRATION)
        )
        sampler = replace(sampler, rows=twice)
    else:
        offers = choices.rival_index._replace(weight=np.ones_like(choices.rival_index.weight))
        sampler = replace(sampler, choices=choices._replace(rival_index=offers))
    with must_fail(wrong):
        assert_exact_moments(run(sampler, 20_000))


MUTANTS = {
    "the share of a row that is kept is not reduced": (
        "kernels/unknown_transitions.py",
        "log_sum_exp(fresh, kept + t[c])",
        "log_sum_exp(fresh, t[c])",
    ),
    "a row is always accepted": (
        "kernels/unknown_transitions.py",
        "<= after - before:",
        "<= 1e300:",
    ),
    "half of the prior's gradient": (
        "kernels/unknown_transitions.py",
        "work.grad_v[k] = -dot",
        "work.grad_v[k] = -0.5 * dot",
    ),
    "transitions counted twice": (
        "models/transitions.py",
        "concentration + seen.counts",
        "concentration + 2 * seen.counts",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_wrong_kernel_is_caught(name: str, tmp_path: Path) -> None:
    package = patched_package(tmp_path, *MUTANTS[name])
    with must_fail(name):
        assert_exact_moments(run(one_unknown_row(package.__name__), 20_000))


@pytest.mark.proves(part="the gradient of value and rows together")
def test_gradient_is_that_of_the_log_posterior() -> None:
    """Against differences, of a fast likelihood that has five digits: relative error 1e-3."""
    rng = np.random.default_rng(3)
    mdp = rv.random_mdp(rng, 4, 3)
    seen = rv.Trajectories(mdp.simulate(rng, [1.0, 0.0, -1.0, 2.0, 0.5, -0.5, 0.0], 60), 4, 3)
    model = rv.ChoiceModel(prior=rv.Normal(2.0), transitions=rv.Dirichlet(0.9, action_rewards=True))
    sampler = build_unknown_transitions(model.resolve(seen))
    work = kernels.make_workspace(sampler.rows, sampler.choices, 7)
    state = sampler.init(rng, None)
    v, t = (
        state["v"],
        np.log(sampler.rows.shape) + 0.3 * rng.standard_normal(sampler.rows.shape.size),
    )

    def value() -> float:
        return float(
            kernels.log_posterior(sampler.rows, sampler.choices, sampler._value_prior, work, v, t)
        )

    value()
    for at, slope in ((v, work.grad_v.copy()), (t, work.grad_t.copy())):
        for i in range(at.size):
            middle, h = at[i], 1e-2
            at[i] = middle + h
            high = value()
            at[i] = middle - h
            low = value()
            at[i] = middle
            assert_error(((high - low) / (2 * h) - slope[i]) / max(10.0, abs(slope[i])), 1e-3)


# Calibration: the truth is drawn from the prior, values and transition probabilities.

STATES, ACTIONS, DECISIONS = 3, 2, 15
ROW_CONCENTRATION = 0.8
DRAWS, THIN = 63, 8


def ranks(
    replications: int, seed: int, counted_twice: bool = False, without_choices: bool = False
) -> Ints:
    """(replications, quantities) ranks of the truth among thinned draws.

    Of values, transition probabilities, and the log-likelihoods of choices and of transitions.
    counted_twice, without_choices: mistakes in the law of the rows.
    """
    rng = np.random.default_rng(seed)
    shape = (-1, STATES, ACTIONS, STATES)
    found = np.empty((replications, STATES + STATES * ACTIONS * STATES + 2), np.int64)
    model = rv.ChoiceModel(prior=rv.Normal(PRIOR_SD), transitions=rv.Dirichlet(ROW_CONCENTRATION))
    for i in range(replications):
        rows = rng.dirichlet(np.full(STATES, ROW_CONCENTRATION), size=(STATES, ACTIONS))
        v = PRIOR_SD * rng.standard_normal(STATES)
        v -= v.mean()
        path = rv.MDP(rows.transpose(1, 0, 2)).simulate(rng, v, DECISIONS, start=0)
        seen = rv.Trajectories(path, STATES, ACTIONS)
        if counted_twice:
            seen = rv.Trajectories.from_counts(
                (seen.state_position, seen.action_position),
                2 * seen.counts,
                seen.states,
                seen.actions,
            )
        sampler = build_unknown_transitions(model.resolve(seen))
        if without_choices:  # as if choices said nothing of the rows
            sampler = replace(sampler, rows=sampler.rows._replace(shape=1e6 * sampler.rows.shape))
        state, _ = sampler.warmup(rng, sampler.init(rng, None), 200, 200)
        _, made, _ = sampler.sample(rng, state | {"moves": np.ones(1)}, DRAWS, THIN)
        draws = np.hstack([made["value"], made["transition"]])
        everything = np.vstack([draws, np.concatenate([v, rows.ravel()])])
        transitions = everything[:, STATES:].reshape(shape)
        utility = np.einsum("sxay,sy->sxa", transitions, everything[:, :STATES])
        taken, other = (utility[:, path.states, a] for a in (path.actions, 1 - path.actions))
        log_choice = log_ndtr((taken - other) / np.sqrt(2.0)).sum(axis=1)
        followed = transitions[:, path.states[:-1], path.actions[:-1], path.states[1:]]
        fits = np.stack([log_choice, np.log(followed).sum(axis=1)], axis=1)
        everything = np.hstack([everything, fits])
        found[i] = (everything[:-1] < everything[-1]).sum(axis=0)
    return found


@pytest.mark.proves(problem="3 states, 2 actions")
def test_ranks_are_uniform() -> None:
    """100 replications."""
    assert_uniform_ranks(ranks(100, seed=4), DRAWS, false_alarm=1e-6)


@pytest.mark.slow
@pytest.mark.proves(problem="3 states, 2 actions")
def test_ranks_are_uniform_in_the_long_run() -> None:
    assert_uniform_ranks(ranks(3_000, seed=5), DRAWS, false_alarm=1e-6)


WRONG = {
    "transitions counted twice": "counted_twice",
    "rows fixed at what transitions alone suggest": "without_choices",
}


@pytest.mark.parametrize(
    "wrong", mark_slow(WRONG, lambda wrong: wrong == "transitions counted twice")
)
def test_wrong_law_of_the_rows_is_caught(wrong: str) -> None:
    with must_fail(wrong):
        assert_uniform_ranks(ranks(150, seed=4, **{WRONG[wrong]: True}), DRAWS, false_alarm=1e-6)
