"""Problems of a few choices, of extreme ones, and of extreme scales; `problems.py` lists all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import revealed as rv
from tests.battery.oracles import (
    Floats,
    choice,
    normal_prior,
    on_grid,
    one_pair,
    pairs,
    product,
    symmetric_choice,
)
from tests.battery.problem import Problem

EVERY = ("auto", "composite", "laplace", "da", "px-scale", "ibis")
PAPER = ("da", "px-scale")
SLOW = ("composite", "laplace", "ibis", *PAPER)
UNINFORMED = ("UninformedWarning",)


def given_sd(sd: Any) -> rv.ChoiceModel:
    return rv.ChoiceModel(prior=rv.Normal(sd))


def two_actions(leads: Any, times: Any = 1) -> rv.Decisions:
    """The first of two is chosen, and leads by these rows (T, K), each so many times."""
    leads = np.repeat(np.atleast_2d(np.asarray(leads, dtype=np.float64)), times, axis=0)
    rows = np.zeros((2 * len(leads), leads.shape[1]))
    rows[::2] = leads
    return rv.Decisions(rows, np.arange(0, len(rows) + 1, 2), np.zeros(len(leads), dtype=int))


def many_actions(rows: Any, counts: Sequence[int]) -> rv.Decisions:
    """One choice of the first row, which is there once, among so many copies of the others."""
    every = np.repeat(np.asarray(rows, dtype=np.float64), counts, axis=0)
    return rv.Decisions(every, [0, len(every)], [0])


def mistaken_leads(count: int, width: int, seed: int) -> Floats:
    """Leads of choices by the sum of the features, of which the first is mistaken.

    It is mistaken by so little that the choices can nearly be separated, and in the very direction
    in which they cannot.
    """
    leads = np.random.default_rng(seed).standard_normal((count, width))
    leads *= np.sign(leads.sum(axis=1))[:, None]
    leads[0] = -0.1
    return np.asarray(leads)


def separable_leads(count: int, seed: int) -> Floats:
    """Leads of choices by the sum of two features, without a mistake."""
    leads = np.random.default_rng(seed).standard_normal((count, 2))
    return np.asarray(leads * np.sign(leads.sum(axis=1))[:, None])


def grid_of_pairs(
    name: str,
    kind: str,
    leads: Any,
    sd: Any,
    times: Any = 1,
    unit: Any = None,
    reach: float = 12.0,
    **more: Any,
) -> Problem:
    """Choices of two with one or two features.

    unit: how large the coefficients are, default: as the prior sd; the grid reaches so many units.
    """
    leads = np.atleast_2d(np.asarray(leads, dtype=np.float64))
    size = np.broadcast_to(np.asarray(sd if unit is None else unit, float), leads.shape[1])
    posterior = product(normal_prior(sd / size), pairs(leads * size, times))
    return Problem(
        name,
        kind,
        lambda: two_actions(leads, times),
        given_sd(sd),
        lambda: on_grid(posterior, leads.shape[1], reach),
        unit=size,
        **more,
    )


def grid_of_rows(
    name: str, kind: str, rows: Any, counts: Sequence[int], sd: float, **more: Any
) -> Problem:
    """One choice, of the first row, among many actions with one or two features."""
    leads = np.asarray(rows[0], dtype=np.float64) - np.asarray(rows[1:], dtype=np.float64)
    posterior = product(normal_prior(), choice(sd * leads, counts[1:]))
    width = leads.shape[1]
    points = {1: 1001, 2: 81}[width]
    return Problem(
        name,
        kind,
        lambda: many_actions(rows, counts),
        given_sd(sd),
        lambda: on_grid(posterior, width, points=points),
        unit=sd,
        **more,
    )


def near_separable() -> list[Problem]:
    def pose(name: str, leads: Floats, **more: Any) -> Problem:
        return grid_of_pairs(name, "near-separable", leads, 50.0, **more)

    two = ("auto", "composite")
    # coefficients move by about one at a time, and have to go as far as the prior sd
    every: dict[str, Any] = {"samplers": EVERY, "unconverged": ("da",)}
    return [
        pose("one mistake in twenty", mistaken_leads(20, 1, 1), slow=PAPER, **every),
        pose("one mistake in forty, two features", mistaken_leads(40, 2, 2), samplers=two),
        pose("no mistake in thirty, two features", separable_leads(30, 3), slow=SLOW, **every),
    ]


def huge_priors() -> list[Problem]:
    kind, triangle = "huge priors", [[1.0, 0.5], [0.0, 0.0], [-0.3, 1.0]]
    agreeing = np.ones((5, 1))
    return [
        grid_of_pairs("sd 1e4, five agree", kind, agreeing, 1e4, samplers=("auto", "composite")),
        grid_of_pairs("sd 1e8, two disagree", kind, [[1.0], [-1.0]], 1e8),
        grid_of_rows("sd 1e6, three actions", kind, triangle, [1, 1, 1], 1e6),
    ]


def tiny_priors() -> list[Problem]:
    kind = "tiny priors"
    return [
        grid_of_pairs("sd 1e-6", kind, mistaken_leads(20, 1, 4), 1e-6, warns=UNINFORMED),
        grid_of_pairs(
            "sd 0.01, a thousand agree", kind, [[1.0]], 0.01, 1000, samplers=EVERY, slow=SLOW
        ),
        grid_of_pairs(
            "sds 1e-3 and 1e3",
            kind,
            mistaken_leads(30, 2, 5),
            np.array([1e-3, 1e3]),
            unit=np.array([1e-3, 10.0]),
            reach=60.0,
            warns=UNINFORMED,
        ),
    ]


def feature_scales() -> list[Problem]:
    kind, one, two = "scales from 1e-9 to 1e9", mistaken_leads(20, 1, 6), mistaken_leads(30, 2, 7)
    apart, millions = np.array([1e9, 1e-9]), np.array([1e6, 1.0])
    with_paper = ("auto", "composite", *PAPER)
    return [
        grid_of_pairs("a feature of 1e-9", kind, 1e-9 * one, 2e9, samplers=with_paper, slow=PAPER),
        grid_of_pairs("a feature of 1e9", kind, 1e9 * one, 2e-9, samplers=with_paper, slow=PAPER),
        grid_of_pairs(
            "features of 1e9 and 1e-9", kind, two * apart, 2.0 / apart, samplers=EVERY, slow=SLOW
        ),
        grid_of_pairs(
            "features of 1e6 and 1", kind, two * millions, 50.0, unit=1.0 / millions, reach=600.0
        ),
    ]


def one_decision() -> list[Problem]:
    kind, lead = "one decision", np.array([1.0, -2.0, 0.5])

    def symmetric(actions: int, sd: float, **more: Any) -> Problem:
        return Problem(
            f"one of {actions} actions, each with a feature",
            kind,
            lambda: many_actions(np.eye(actions), [1] * actions),
            given_sd(sd),
            lambda: symmetric_choice(actions, sd),
            warns=UNINFORMED,
            **more,
        )

    return [
        grid_of_pairs("one of two", kind, [[1.0]], 1.0, samplers=EVERY, slow=PAPER),
        Problem(
            "one of two, three features",
            kind,
            lambda: two_actions(lead),
            given_sd(20.0),
            lambda: one_pair(lead, 20.0),
            warns=UNINFORMED,
        ),
        symmetric(3, 2.0, samplers=EVERY, slow=SLOW),
        symmetric(10, 30.0, samplers=("auto", "composite"), slow=("composite",)),
    ]


def equal_decisions() -> list[Problem]:
    kind, rows = "thousands of equal decisions", np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    counts = [6000, 9000, 5000]
    leads = [rows[i] - np.delete(rows, i, axis=0) for i in range(3)]
    parts = [choice(lead, 1.0, times) for lead, times in zip(leads, counts, strict=True)]
    start, chosen = np.arange(0, 60_001, 3), np.repeat([0, 1, 2], counts)
    both = np.array([[1.0], [-1.0]])
    # without particles, which take decisions one by one
    most = ("auto", "composite", "laplace", *PAPER)
    return [
        grid_of_pairs("3000 of 5000", kind, both, 50.0, [3000, 2000], samplers=most, slow=SLOW),
        grid_of_pairs("3000 of 3000", kind, [[1.0]], 50.0, 3000, samplers=("auto", "composite")),
        Problem(
            "20,000 of three actions",
            kind,
            lambda: rv.Decisions(np.tile(rows, (20_000, 1)), start, chosen),
            given_sd(3.0),
            lambda: on_grid(product(normal_prior(3.0), *parts), 2, 6.0, points=121),
        ),
    ]


def many_equal_actions() -> list[Problem]:
    kind = "1e5 actions"
    levels, each = np.linspace(1.0, -1.0, 21)[:, None], 5000
    one, other = [[1.0], [0.0]], [[0.0], [0.0], [1.0]]
    corner = [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    n = 99_999

    def pose(name: str, rows: Any, counts: Sequence[int], sd: float, **more: Any) -> Problem:
        return grid_of_rows(name, kind, rows, counts, sd, **more)

    # a chain takes seconds, most of them in its warm-up
    quick = {"chains": 1}
    return [
        pose("the one that differs is chosen", one, [1, n], 5.0, settings=quick),
        pose("one of the equal ones is chosen", other, [1, n - 1, 1], 50.0, slow=True),
        pose("on twenty levels", levels, [1, *[each] * 20], 3.0, slow=True),
        pose("two that differ", corner, [1, 1, n - 1], 5.0, slow=True),
    ]
