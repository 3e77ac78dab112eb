"""Problems of many coefficients, of what cannot be learnt, and of every part of a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import revealed as rv
from tests.battery import oracles
from tests.battery.choice_problems import (
    PAPER,
    UNINFORMED,
    given_sd,
    mistaken_leads,
    two_actions,
)
from tests.battery.oracles import (
    Exact,
    Floats,
    normal_prior,
    oblique_pairs,
    on_grid,
    orthogonal_pairs,
    pairs,
    prior_draws,
    product,
    with_prior_scale,
)
from tests.battery.problem import Problem

UNBOUNDED = ("UnboundedSkillWarning",)
COEFFICIENTS, DECISIONS = 60, 30
APART, APART_LEADS = np.array([1e-9, 1e9]), mistaken_leads(24, 2, 20)


def orthogonal_leads() -> Floats:
    """(30, 60) of lengths from 0.1 to 10, orthogonal, along no axis."""
    normal = np.random.default_rng(11).standard_normal((COEFFICIENTS, COEFFICIENTS))
    rotation = np.linalg.qr(normal)[0][:DECISIONS]
    return np.asarray(np.geomspace(0.1, 10.0, DECISIONS)[:, None] * rotation)


def many_coefficients() -> list[Problem]:
    kind, leads = "60 coefficients and 30 decisions", orthogonal_leads()
    oblique = np.random.default_rng(12).standard_normal((DECISIONS, COEFFICIENTS))

    def orthogonal(sd: float, **more: Any) -> Problem:
        return Problem(
            f"orthogonal, prior sd {sd:g}",
            kind,
            lambda: two_actions(leads),
            given_sd(sd),
            lambda: orthogonal_pairs(leads, sd),
            warns=UNINFORMED,
            **more,
        )

    return [
        orthogonal(3.0, samplers=("auto", *PAPER), slow=PAPER),
        orthogonal(1e3, slow=True),
        Problem(
            "oblique",
            kind,
            lambda: two_actions(oblique),
            given_sd(2.0),
            lambda: oblique_pairs(oblique, 2.0),
            warns=UNINFORMED,
            slow=True,
        ),
    ]


def nothing_to_learn() -> list[Problem]:
    kind = "nothing to learn"
    x = np.random.default_rng(13).standard_normal((40, 2))
    leads = np.column_stack([mistaken_leads(20, 1, 14)[:, 0], np.zeros(20)])
    constant = two_actions(leads).rows + np.array([0.0, 7.0])
    start, chosen = np.arange(0, 41, 2), np.zeros(20, dtype=int)
    return [
        Problem(
            "decisions of one action",
            kind,
            lambda: rv.Decisions(x, np.arange(41), np.zeros(40, dtype=int)),
            given_sd(3.0),
            lambda: prior_draws(2, 3.0),
            samplers=("auto", "composite", "ibis"),
            warns=UNINFORMED,
        ),
        # the paper's samplers draw utilities that say nothing, and hardly move under a wider prior
        Problem(
            "decisions of one action, narrow prior",
            kind,
            lambda: rv.Decisions(x, np.arange(41), np.zeros(40, dtype=int)),
            given_sd(0.2),
            lambda: prior_draws(2, 0.2),
            samplers=PAPER,
            slow=True,
            warns=UNINFORMED,
        ),
        Problem(
            "rows that are equal",
            kind,
            lambda: rv.Decisions(np.repeat(x, 3, axis=0), np.arange(0, 121, 3), [1] * 40),
            given_sd(1e5),
            lambda: prior_draws(2, 1e5),
            warns=UNINFORMED,
        ),
        Problem(
            "one feature that is constant",
            kind,
            lambda: rv.Decisions(constant, start, chosen),
            given_sd(4.0),
            lambda: on_grid(product(normal_prior(4.0), pairs(leads)), 2, 50.0),
            warns=UNINFORMED,
        ),
    ]


def flat_priors() -> list[Problem]:
    kind, leads = "flat priors", mistaken_leads(40, 2, 15)
    flat = rv.ChoiceModel(prior=rv.Flat())
    size = np.array([1e-6, 1e6])
    return [
        Problem(
            "three of five",
            kind,
            lambda: two_actions([[1.0], [-1.0]], [3, 2]),
            flat,
            lambda: on_grid(pairs([[1.0], [-1.0]], [3, 2]), 1, 100.0),
            samplers=("auto", "composite", *PAPER),
        ),
        Problem(
            "features of 1e6 and 1e-6, one mistake",
            kind,
            lambda: two_actions(leads / size),
            flat,
            lambda: on_grid(pairs(leads), 2, 200.0),
            unit=size,
            samplers=("auto", "composite"),
        ),
        Problem(
            "no mistake",
            kind,
            lambda: two_actions(np.abs(leads)),
            flat,
            refused="flat prior",
            samplers=("auto", "composite", "laplace", "da"),
        ),
    ]


def inferred_priors() -> list[Problem]:
    def pose(name: str, leads: Floats, scale: float, unit: float, **more: Any) -> Problem:
        return Problem(
            name,
            "inferred prior sds",
            lambda: two_actions(leads / unit),
            rv.ChoiceModel(prior=rv.Normal(rv.HalfStudentT(scale=scale * unit))),
            lambda: with_prior_scale(pairs(leads), scale),
            columns=lambda draws: np.stack(
                [
                    draws["value"][..., 0] / draws["prior_sd"],
                    np.log(draws["prior_sd"] / unit),
                ],
                axis=-1,
            ),
            **more,
        )

    return [
        pose("one choice", np.array([[1.0]]), 1.0, 1.0, slow=("ibis",), samplers=("auto", "ibis")),
        pose("features of 1e-6", mistaken_leads(20, 1, 16), 10.0, 1e6),
    ]


def offsets_and_blocks() -> list[Problem]:
    kind, leads = "offsets and blocks", mistaken_leads(30, 2, 17)
    plain = two_actions(leads)
    offset = np.repeat(1e6 * np.random.default_rng(18).standard_normal((30, 2)), 2, axis=0)
    # exactly what is left of the leads beside these offsets
    kept = (plain.rows + 1e8)[::2] - 1e8
    kept_beside = (plain.rows + offset)[::2] - (plain.rows + offset)[1::2]

    def moved(name: str, rows: Floats, seen: Floats, **more: Any) -> Problem:
        return Problem(
            name,
            kind,
            lambda: rv.Decisions(rows, plain.start, plain.chosen),
            given_sd(5.0),
            lambda: on_grid(product(normal_prior(5.0), pairs(seen)), 2, 60.0),
            slow=PAPER,
            **more,
        )

    states = rv.Block("value", 2, sum_to_zero=True)
    rows, start = np.tile([[0.8, 0.2], [0.3, 0.7]], (5, 1)), np.arange(0, 11, 2)
    both = ("auto", "composite", *PAPER)
    # utilities hold on to what all actions of a decision have in common: some hardly move
    return [
        moved(
            "1e8 added to all rows",
            plain.rows + 1e8,
            kept,
            samplers=both[:3],
            unconverged=both[2:3],
        ),
        moved(
            "1e8 added, many draws",
            plain.rows + 1e8,
            kept,
            samplers=("px-scale",),
            settings={"draws": 80_000},
        ),
        moved(
            "1e6 added to each decision",
            plain.rows + offset,
            kept_beside,
            samplers=both,
            unconverged=("da",),
        ),
        Problem(
            "two states that sum to zero",
            kind,
            lambda: rv.Decisions(rows, start, [0, 0, 1, 0, 0], blocks=[states]),
            given_sd(40.0),
            # v = (a, -a) with a ~ N(0, sd^2 / 2), and the first row leads by a
            lambda: on_grid(
                product(normal_prior(40.0 / np.sqrt(2.0)), pairs([[1.0], [-1.0]], [4, 1])), 1, 300.0
            ),
            columns=lambda draws: draws["value"][..., :1],
            samplers=("auto", "composite", "da", "px-scale", "px-translate", "px-both"),
            slow=("px-scale", "px-translate", "px-both"),
        ),
    ]


def far_apart(name: str, model: rv.ChoiceModel, exact: Callable[[], Exact]) -> Problem:
    """Two labelled actions with features of 1e9 and 1e-9, and coefficients of 1e-9 and 1e9.

    Matrices of such scales are ill-conditioned, and their factors are none the worse for it.
    """
    plain = two_actions(APART_LEADS / APART)
    return Problem(
        name,
        "groups and noise",
        lambda: rv.Decisions(plain.rows, plain.start, plain.chosen, actions=["a", "b"] * 24),
        model,
        exact,
        unit=APART,
    )


def groups_and_noise() -> list[Problem]:
    kind, ones, two = "groups and noise", np.ones((8, 1)), np.array([[1.0], [-1.0]])
    apart = two_actions(two, [3, 1])
    scaled = rv.Decisions(1e-3 * apart.rows, apart.start, apart.chosen)
    both = rv.Decisions(
        np.concatenate([apart.rows, scaled.rows]),
        np.arange(0, 17, 2),
        np.zeros(8, dtype=int),
        groups=np.repeat(["a", "b"], 4),
    )
    signs = np.array([1.0, 1.0, 1.0, -1.0, 1.0, 1.0, -1.0, 1.0])
    people = two_actions(ones * signs[:, None])
    each = rv.Decisions(people.rows, people.start, people.chosen, groups=np.arange(8))
    equal = rv.Decisions(np.ones((16, 1)), people.start, people.chosen, groups=np.arange(8))
    labelled = rv.Decisions(
        two_actions(two, [6, 2]).rows, people.start, people.chosen, actions=["a", "b"] * 8
    )
    population = rv.ChoiceModel(prior=rv.Normal(2.0), groups=rv.Hierarchical(sd_scale=1.0))

    def of_population(draws: dict[str, Any]) -> Floats:
        log_sd = 0.5 * np.log(draws["population_covariance"][..., 0, 0])
        return np.stack([draws["population_mean"][..., 0], log_sd], axis=-1)

    def separate() -> Exact:
        first = on_grid(product(normal_prior(5.0), pairs(two, [3, 1])), 1, 60.0)
        second = on_grid(product(normal_prior(), pairs(0.005 * two, [3, 1])), 1, 12.0)
        # the columns are compared each by itself, so that any pairing will do
        rng, count = np.random.default_rng(19), oracles.EXACT_DRAWS
        picked = [
            rng.choice(part.points[:, 0], count, p=part.weight / part.weight.sum())
            for part in (first, second)
        ]
        return Exact(np.stack(picked, axis=1), np.ones(count))

    return [
        Problem(
            "separate groups at different scales",
            kind,
            lambda: both,
            rv.ChoiceModel(prior=rv.Normal(5.0), groups=rv.Separate()),
            separate,
            columns=lambda draws: draws["value"][..., 0] / np.array([1.0, 5.0]),
            warns=UNINFORMED,
        ),
        Problem(
            "a population of one choice each",
            kind,
            lambda: each,
            population,
            lambda: oracles.one_pair_each(signs, 2.0, 1.0),
            columns=of_population,
            settings={"draws": 10_000},
            slow=True,
        ),
        Problem(
            "a population that shows nothing",
            kind,
            lambda: equal,
            population,
            lambda: oracles.one_pair_each(np.zeros(8), 2.0, 1.0),
            columns=of_population,
            settings={"draws": 10_000},
            warns=UNINFORMED,
            slow=True,
        ),
        far_apart(
            "a prior mean, features far apart",
            rv.ChoiceModel(prior=rv.Normal(APART, mean=APART)),
            lambda: on_grid(product(lambda v: normal_prior()(v - 1.0), pairs(APART_LEADS)), 2),
        ),
        far_apart(
            "a noise covariance, features far apart",
            rv.ChoiceModel(prior=rv.Normal(APART), noise=rv.CorrelatedNoise()),
            lambda: on_grid(product(normal_prior(), pairs(APART_LEADS, noise_sd=1.0)), 2),
        ),
        Problem(
            "a noise covariance of two labels",
            kind,
            lambda: labelled,
            rv.ChoiceModel(prior=rv.Normal(5.0), noise=rv.CorrelatedNoise()),
            # one difference of noise, whose variance the scale makes one
            lambda: on_grid(product(normal_prior(5.0), pairs(two, [6, 2], 1.0)), 1, 60.0),
            samplers=("auto", "da"),
            slow=("da",),
        ),
    ]


def rankings() -> list[Problem]:
    def two_players(name: str, wins: int, losses: int, model: Any, **more: Any) -> Problem:
        games = [["ann", "bob"]] * wins + [["bob", "ann"]] * losses
        return Problem(name, "rankings", lambda: rv.Rankings.from_lists(games), model, **more)

    def difference(draws: dict[str, Any]) -> Floats:
        return np.asarray(draws["skill"][..., :1] - draws["skill"][..., 1:])

    def difference_and_spread(draws: dict[str, Any]) -> Floats:
        skill, spread = draws["skill"], draws["spread"]
        return np.stack([(skill[..., 0] - skill[..., 1]) / spread, np.log(spread)], axis=-1)

    def race(players: int, sd: float, slow: bool) -> Problem:
        names = [f"p{k}" for k in range(players)]
        return Problem(
            f"one race of {players}",
            "rankings",
            lambda: rv.Rankings.from_lists([names]),
            rv.RankingModel(prior=rv.Normal(sd)),
            lambda: oracles.one_race(players, sd),
            columns=lambda draws: draws["skill"],
            slow=slow,
            warns=UNBOUNDED,
        )

    return [
        two_players(
            "seven of ten",
            *(7, 3, rv.RankingModel(prior=rv.Normal(1.0))),
            exact=lambda: oracles.two_players(7, 3, 1.0),
            columns=difference,
        ),
        two_players(
            "two hundred of two hundred, prior sd 5",
            *(200, 0, rv.RankingModel(prior=rv.Normal(5.0))),
            exact=lambda: oracles.two_players(200, 0, 5.0),
            columns=difference,
            warns=UNBOUNDED,
        ),
        two_players(
            "two hundred of two hundred, prior sd 50",
            *(200, 0, rv.RankingModel(prior=rv.Normal(50.0))),
            exact=lambda: oracles.two_players(200, 0, 50.0),
            columns=difference,
            warns=UNBOUNDED,
            # an edge as wide as the noise beside a tail of fifty: steps are short
            settings={"draws": 20_000},
            slow=True,
        ),
        two_players(
            "two of three, spread inferred",
            *(2, 1, rv.RankingModel()),
            exact=lambda: oracles.two_players_of_unknown_spread(2, 1, 2.0),
            columns=difference_and_spread,
        ),
        race(5, 2.0, slow=False),
        race(60, 1.0, slow=True),
    ]
