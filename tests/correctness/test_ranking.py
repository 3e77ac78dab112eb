"""Skills inferred from rankings: exact posteriors on grids, and calibration of all parameters."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import log_ndtr, ndtr

import revealed as rv
from revealed._types import Floats, Ints
from revealed.data.decisions import Decisions
from revealed.data.rankings import Rankings
from revealed.kernels.ranking_likelihood import log_ranking_probabilities
from revealed.samplers import ranking_hmc
from revealed.samplers.ranking_hmc import MARGIN_PRIOR_SD, SPREAD_PRIOR_SD, RankingSampler
from tests.support.cases import warmed_up_draws
from tests.support.statistical_asserts import (
    assert_mean,
    assert_scores,
    assert_uniform_ranks,
    must_fail,
    patched_source,
    z_of_mean,
)

pytestmark = pytest.mark.proves(model="rankings", sampler="ranking-hmc")
Build = Callable[..., RankingSampler]

# Exact posteriors on grids


def run(sampler: RankingSampler, draws: int = 16_000) -> dict[str, Floats]:
    """Skills, and where they are inferred spread and margin."""
    return warmed_up_draws(np.random.default_rng(1), sampler, 300, draws)[0]


PAIRS = Rankings.from_columns(
    [g for g in range(12) for _ in range(2)], ["a", "b"] * 12, [1, 2] * 6 + [2, 1] * 2 + [1, 1] * 4
)  # a won six times, b twice, and four games were tied


def exact_means_of_pairs() -> dict[str, float]:
    """Means under the exact posterior of (a - b) / 2, log spread and log margin, given PAIRS."""
    z = np.linspace(-6.0, 6.0, 121)[:, None, None]
    log_spread, log_margin = (
        np.linspace(-9.0, 2.0, 221)[None, :, None],
        np.linspace(-4.0, 1.5, 111)[None, None, :],
    )
    spread, margin = np.exp(log_spread), np.exp(log_margin)
    gap = np.sqrt(2.0) * spread * z
    log_p = (
        -0.5 * z**2
        + log_spread
        - 0.5 * (spread / SPREAD_PRIOR_SD) ** 2
        + log_margin
        - 0.5 * (margin / MARGIN_PRIOR_SD) ** 2
    )
    up, down = (margin + gap) / np.sqrt(2.0), (margin - gap) / np.sqrt(2.0)
    log_p = (
        log_p
        + 6.0 * log_ndtr(-down)
        + 2.0 * log_ndtr(-up)
        + 4.0 * np.log(np.maximum(ndtr(up) - ndtr(-down), 1e-300))
    )
    weight = np.exp(log_p - log_p.max())
    weight /= weight.sum()
    whole = {
        "skill": 0.5 * gap,
        "square": 0.25 * gap**2,
        "log spread": log_spread,
        "log margin": log_margin,
    }
    return {name: float((weight * value).sum()) for name, value in whole.items()}


def assert_means_of_pairs(build: Build) -> None:
    draws, truth = run(build(PAIRS, None, "entry")), exact_means_of_pairs()
    found = {
        "skill": draws["skill"][:, 0],
        "square": draws["skill"][:, 0] ** 2,
        "log spread": np.log(draws["spread"]),
        "log margin": np.log(draws["margin"]),
    }
    assert_scores([z_of_mean(found[name], truth[name]) for name in truth], false_alarm=1e-6)


def build_with_ties_as_wins(rankings: Rankings, *arguments: Any) -> RankingSampler:
    """A mutant: of those who tied, the first is taken to have won."""
    sampler = RankingSampler.build(rankings, *arguments)
    return RankingSampler(
        rankings, sampler.games._replace(tied=np.zeros_like(rankings.tied)), sampler.prior
    )


def test_skill_spread_and_margin_of_two_players_agree_with_the_grid() -> None:
    assert_means_of_pairs(RankingSampler.build)


MUTANTS: dict[str, Build] = {
    "no Jacobian of the spread": patched_source(
        ranking_hmc, "(1.0 - k) * log_spread", "(0.0 - k) * log_spread"
    ).RankingSampler.build,
    "ties taken for wins": build_with_ties_as_wins,
}


@pytest.mark.parametrize("name", MUTANTS)
def test_wrong_sampler_is_caught_by_the_grid(name: str) -> None:
    with must_fail(name):
        assert_means_of_pairs(MUTANTS[name])


RANKINGS_OF_THREE = [["a", "b", "c"]] * 5 + [["b", "a", "c"], ["c", "a", "b"], ["a", "c", "b"]]
KNOWN_SPREAD = 1.5


def build_with_successive_choices(rankings: Rankings, *arguments: Any) -> RankingSampler:
    """A mutant: a ranking taken for successive choices, each with noise of its own."""
    games = [[names for (names,) in rankings.game(g)[0]] for g in range(len(rankings))]
    return RankingSampler.build(
        Rankings.from_lists(
            [game[k:] for game in games for k in range(len(game) - 1)], winner_only=True
        ),
        *arguments,
    )


def assert_moments_of_three(build: Build, count: int = 16_000) -> None:
    sampler = build(Rankings.from_lists(RANKINGS_OF_THREE), KNOWN_SPREAD, "entry")
    draws = run(sampler, count)["skill"]
    one, two = (
        part.ravel() for part in np.meshgrid(np.linspace(-5, 6, 111), np.linspace(-5, 6, 111))
    )
    skill = np.stack([one, two, -one - two], axis=1)  # skills sum to zero, and are normal there
    log_p, tied, none = (
        -0.5 * (skill**2).sum(axis=1) / KNOWN_SPREAD**2,
        np.zeros(3, np.bool_),
        np.zeros(len(skill)),
    )
    for order in itertools.permutations("abc"):
        at = ["abc".index(name) for name in order]
        if (often := RANKINGS_OF_THREE.count(list(order))) > 0:
            log_p += often * log_ranking_probabilities(
                np.ascontiguousarray(skill[:, at]), np.ones(3), tied, 3, none
            )
    weight = np.exp(log_p - log_p.max())
    weight /= weight.sum()
    pairs = [
        (draws[:, k] ** power, weight @ skill[:, k] ** power) for k in range(3) for power in (1, 2)
    ]
    assert_scores([z_of_mean(found, float(truth)) for found, truth in pairs], false_alarm=1e-6)


def test_rankings_of_three_players_agree_with_the_grid() -> None:
    assert_moments_of_three(RankingSampler.build)


def test_rankings_split_into_choices_are_caught_by_the_grid() -> None:
    with must_fail("rankings split into successive choices"):
        # a small mistake: in 16,000 draws it is seen with some seeds only
        assert_moments_of_three(build_with_successive_choices, 60_000)


def test_flat_prior_agrees_with_the_grid() -> None:
    """Half the difference of two players under a flat prior, seven wins to three."""
    draws = run(
        RankingSampler.build(
            Rankings.from_lists([["a", "b"]] * 7 + [["b", "a"]] * 3), np.inf, "entry"
        )
    )["skill"]
    x = np.linspace(-4.0, 5.0, 2_001)
    weight = np.exp(7.0 * log_ndtr(np.sqrt(2.0) * x) + 3.0 * log_ndtr(-np.sqrt(2.0) * x))
    weight /= weight.sum()
    np.testing.assert_allclose(draws[:, 0] + draws[:, 1], 0.0, atol=1e-12)
    for power in (1, 2):
        assert_mean(draws[:, 0] ** power, float(weight @ x**power), 1e-6 / 2)


def test_posterior_with_known_spread_is_that_of_a_probit() -> None:
    """Teams of one and of two: a probit whose rows are sums of players, for the default sampler."""
    games: list[list[Any]] = (
        [["a", ("b", "c")]] * 4
        + [[("b", "c"), "a"]] * 2
        + [["b", "c"]] * 3
        + [["c", "b"], [("a", "c"), "b"]]
    )
    games.append(["b", ("a", "c")])
    found = rv.fit(
        games, rv.RankingModel(prior=rv.Normal(1.5)), draws=4000, chains=2, progress=False
    )
    place = {"a": 0, "b": 1, "c": 2}
    rows = np.zeros((2 * 12, 3))
    for e, entry in enumerate(entry for game in games for entry in game):
        rows[e, [place[name] for name in entry]] = 1.0
    d = Decisions(rows, np.arange(0, 25, 2), [0] * 12, names=["a", "b", "c"])
    post = rv.fit(d, rv.ChoiceModel(prior=rv.Normal(1.5)), draws=20_000, progress=False)
    for name in place:
        k = found.names.index(name)
        assert_mean(found.draws["skill"][:, :, k], post[name].mean(), 1e-6, how="agreement")
        assert_mean(
            found.draws["skill"][:, :, k] ** 2, (post[name] ** 2).mean(), 1e-6, how="agreement"
        )


# Calibration

PLAYERS, GAMES = 5, 14
DRAWS, THIN = 31, 3


def simulate_games(
    rng: np.random.Generator, skill: Floats, margin: float, games: int = GAMES, teams: bool = False
) -> Rankings:
    """Games of two to four of the players; neighbours closer than the margin tie.

    In every third game the last two retire. With teams, the first two players of every other game
    are one team.
    """
    columns: dict[str, list[Any]] = {"game": [], "player": [], "position": [], "team": []}
    for g in range(games):
        who = rng.permutation(len(skill))[: int(rng.integers(2, 5)) + teams]
        entries = [[p] for p in who]
        if teams and g % 2 == 0:
            entries = [[who[0], who[1]], *entries[2:]]
        w = np.array([skill[entry].sum() for entry in entries]) + rng.standard_normal(len(entries))
        order = np.argsort(-w)
        place, retired = 1, False
        for k, at in enumerate(order):
            if k > 0 and w[order[k - 1]] - w[at] > margin:
                place = k + 1
                retired = retired or (g % 3 == 0 and k >= len(order) - 2)
            for p in entries[at]:
                for name, cell in zip(
                    columns, (g, f"p{p}", "DNF" if retired else place, str(at)), strict=True
                ):
                    columns[name].append(cell)
    return Rankings.from_columns(
        columns["game"], columns["player"], columns["position"], columns["team"]
    )


def ranks(build: Build, replications: int, seed: int, teams: bool = False) -> Ints:
    """(replications, PLAYERS + 2) ranks of skills, spread and margin among thinned draws."""
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(replications):
        spread, margin = (
            SPREAD_PRIOR_SD * abs(rng.standard_normal()),
            MARGIN_PRIOR_SD * abs(rng.standard_normal()),
        )
        skill = spread * rng.standard_normal(PLAYERS)
        rankings = simulate_games(rng, skill, margin, teams=teams)
        # what is left out depends on the data alone, so that the rest stays calibrated
        if len(rankings.names) < PLAYERS or not rankings.has_ties:
            continue
        truth = np.array([skill[int(name[1:])] for name in rankings.names]) - (
            skill.mean() if rankings.location_free else 0.0
        )
        sampler = build(rankings, None, "entry")
        made, _ = warmed_up_draws(rng, sampler, 150, DRAWS, THIN)
        draws = np.column_stack([made["skill"], made["spread"], made["margin"]])
        out.append((draws < np.array([*truth, spread, margin])).sum(axis=0))
    assert len(out) > 0.5 * replications
    return np.array(out)


@pytest.mark.parametrize("problem", ["players", "teams"])
def test_ranks_are_uniform(problem: str) -> None:
    """100 replications."""
    assert_uniform_ranks(
        ranks(RankingSampler.build, 100, seed=1, teams=problem == "teams"), DRAWS, false_alarm=1e-6
    )


def test_ties_taken_for_wins_are_caught_by_ranks() -> None:
    with must_fail("ties taken for wins"):
        assert_uniform_ranks(ranks(build_with_ties_as_wins, 60, seed=1), DRAWS, false_alarm=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("problem", ["players", "teams"])
def test_ranks_are_uniform_in_the_long_run(problem: str) -> None:
    assert_uniform_ranks(
        ranks(RankingSampler.build, 3_000, seed=2, teams=problem == "teams"),
        DRAWS,
        false_alarm=1e-6,
    )
