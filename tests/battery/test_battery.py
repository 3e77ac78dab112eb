"""Problems at every extreme: the exact posterior, or a sentence, and never a fit without an end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tests.battery.choice_problems import given_sd, grid_of_pairs
from tests.battery.fit_process import ENDLESS, FitProcess, Outcome
from tests.battery.oracles import (
    choice,
    normal_prior,
    oblique_pairs,
    on_grid,
    one_pair,
    orthogonal_pairs,
    pairs,
    product,
    symmetric_choice,
)
from tests.battery.problem import Problem, assert_exact
from tests.battery.problems import PROBLEMS
from tests.support.statistical_asserts import assert_error, must_fail

Fit = Callable[..., Outcome]


@pytest.fixture(scope="module")
def fit() -> Iterator[Fit]:
    """`rv.fit` in a process of its own; a new one after a fit that did not end."""
    processes: list[FitProcess] = []

    def fit_in_process(data: Any, model: Any, **settings: Any) -> Outcome:
        if not processes or not processes[-1].alive:
            processes.append(FitProcess())
        return processes[-1].fit(data, model, **settings)

    yield fit_in_process
    for process in processes:
        process.close()


CASES = [
    pytest.param(
        problem,
        sampler,
        id=f"{problem.kind}: {problem.name}, {sampler}",
        marks=[pytest.mark.slow] if problem.is_slow(sampler) else [],
    )
    for problem in PROBLEMS
    for sampler in problem.samplers
]


@pytest.mark.parametrize(("problem", "sampler"), CASES)
def test_posterior_is_exact(problem: Problem, sampler: str, fit: Fit) -> None:
    outcome = fit(problem.data(), problem.model, **problem.run(sampler))
    if problem.refused:
        assert problem.refused in outcome.refused
        return
    assert not outcome.refused
    if sampler in problem.unconverged:
        assert outcome.warned == tuple(sorted(["NotConvergedWarning", *problem.warns]))
        return
    assert problem.exact is not None
    assert_exact(problem.columns(outcome.draws) / problem.unit, problem.exact())
    assert outcome.warned == problem.warns


def test_there_are_forty_problems_of_fourteen_kinds() -> None:
    assert len(PROBLEMS) >= 40
    assert len({problem.kind for problem in PROBLEMS}) == 14
    assert len({(problem.kind, problem.name) for problem in PROBLEMS}) == len(PROBLEMS)


def test_wrong_posteriors_are_seen(fit: Fit) -> None:
    """The same checks object to the posterior of other data, and of another prior."""
    leads = np.array([[1.0], [0.5], [-0.7], [2.0], [-0.2], [1.5]])
    right = grid_of_pairs("right", "mutants", leads, 1.0)
    assert right.exact is not None
    settings = right.run("auto")
    assert_exact(fit(right.data(), right.model, **settings).draws["value"], right.exact())
    with must_fail("a prior sd that is a tenth too large"):
        wider = fit(right.data(), given_sd(1.1), **settings)
        assert_exact(wider.draws["value"], right.exact())
    with must_fail("a choice that was not made"):
        flipped = leads * np.array([[1.0]] * 5 + [[-1.0]])
        other = grid_of_pairs("other", "mutants", flipped, 1.0)
        assert_exact(fit(other.data(), right.model, **settings).draws["value"], right.exact())
    with must_fail("a decision that is counted twice"):
        twice = grid_of_pairs("twice", "mutants", leads, 1.0, [1, 1, 2, 1, 1, 1])
        assert_exact(fit(twice.data(), right.model, **settings).draws["value"], right.exact())


def test_fit_without_an_end_fails_its_test() -> None:
    process = FitProcess()
    with pytest.raises(pytest.fail.Exception, match="has not ended"):
        process.fit(ENDLESS, None, limit=0.1)
    assert not process.alive


def test_oracles_agree_with_one_another() -> None:
    """Each is another way to the same numbers: grids, closed forms, exact draws, Gibbs chains."""
    lead = np.array([[1.0, -0.5]])
    drawn = one_pair(lead[0], 2.0)
    summed = on_grid(product(normal_prior(2.0), pairs(lead)), 2, 24.0)
    mean, sd = orthogonal_pairs(lead, 2.0)
    # 400,000 draws have an error of 0.0016 sds; six times that is not by chance
    assert_error((drawn.mean - mean) / sd, 0.01)
    assert_error((summed.mean - mean) / sd, 1e-6)
    assert_error(summed.sd / sd - 1.0, 1e-6)
    three = symmetric_choice(3, 1.0)
    # of three values in two coordinates, from the first: v0 - v1 and v0 - v2, correlated by a half
    both = product(choice(np.eye(2)), lambda u: -((u**2).sum(axis=1) - u[:, 0] * u[:, 1]) / 3.0)
    differences = on_grid(both, 2, points=121)
    found = three.points[:, :1] - three.points[:, 1:]
    assert_error((found.mean(axis=0) - differences.mean) / differences.sd, 0.01)
    assert_error(found.std(axis=0) / differences.sd - 1.0, 0.01)
    leads = np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    gibbs, exact = oblique_pairs(leads, 2.0), orthogonal_pairs(leads, 2.0)
    # 60,000 draws
    assert_error((gibbs.mean - exact[0]) / exact[1], 0.02)
    assert_error(gibbs.sd / exact[1] - 1.0, 0.02)
