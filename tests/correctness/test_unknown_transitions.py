"""Unknown transitions: each move leaves the joint law as it is, and wrong ones are caught."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed._types import Floats
from revealed.kernels import unknown_transitions as kernels
from revealed.kernels.hmc import PathPlan, init_dual_averaging, make_path_statistics
from revealed.samplers.transition_problem import build_unknown_transitions
from revealed.samplers.unknown_transitions import UnknownTransitionsSampler
from tests.conformance.oracles import (
    CONCENTRATION,
    ONE_UNKNOWN_ROW,
    find_oracle,
    transition_counts,
)
from tests.support.cases import warmed_up_draws
from tests.support.statistical_asserts import (
    assert_error,
    assert_mean,
    assert_sd,
    must_fail,
    patched_package,
)

pytestmark = pytest.mark.proves(model="unknown transitions", sampler="transitions-hmc")


def one_unknown_row(package: str = "revealed") -> Any:
    """The sampler for two states and two actions.

    Only p = p(0 | 0, first) is unknown: the other rows lead to one state each.
    """
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
    seen = data.Trajectories.from_counts(*transition_counts(), (0, 1), (0, 1))
    model = choice.ChoiceModel(
        prior=priors.Normal(6.0**0.5), transitions=transitions.Dirichlet(ONE_UNKNOWN_ROW)
    )
    return problem.build_unknown_transitions(model.resolve(seen))


def run(sampler: Any, count: int, seed: int = 1) -> dict[str, Floats]:
    draws, _ = warmed_up_draws(np.random.default_rng(seed), sampler, 1000, count)
    cell = int(np.flatnonzero((sampler.rows.next_state == 0) & (sampler.rows.shape != 1.0))[0])
    value, p = draws["value"][:, 0], draws["transition"][:, cell]
    return {"value": value, "p": p, "product": value * p}


def assert_exact_moments(found: dict[str, Floats]) -> None:
    exact = find_oracle("one unknown row", "normal").exact()
    for name, mean, sd in zip(("value", "p", "product"), *exact, strict=True):
        assert_mean(found[name], mean, false_alarm=1e-6 / 6)
        assert_sd(found[name], mean, sd, false_alarm=1e-6 / 6)


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
