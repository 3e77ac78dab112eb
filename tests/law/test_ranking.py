"""Skills learnt from results: exact posteriors on grids, and calibration with everything unknown."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import log_ndtr, ndtr

import understudy as us
from evidence import assert_mean, assert_scores, assert_uniform_ranks, caught, changed, z_of_mean
from problems import warm_draws
from understudy._arrays import Floats, Ints
from understudy.decisions import Decisions
from understudy.engines import ranked
from understudy.engines.ranked import APART, WIDE, Ranked
from understudy.kernels.orders import log_order_each
from understudy.orders import Orders

pytestmark = pytest.mark.proves(model="finishing orders", engine="ranked")
Build = Callable[..., Ranked]

# Exact posteriors on grids


def drawn(engine: Ranked, draws: int = 16_000) -> Floats:
    """(draws, K + 2) skills, spread and margin."""
    return warm_draws(np.random.default_rng(1), engine, 300, draws)[0]


PAIRS = Orders.from_columns(
    [g for g in range(12) for _ in range(2)], ["a", "b"] * 12, [1, 2] * 6 + [2, 1] * 2 + [1, 1] * 4
)  # a won six times, b twice, and four games were tied


def by_grid() -> dict[str, float]:
    """Means under the exact posterior of (a - b) / 2, log spread and log margin, where PAIRS was seen."""
    z = np.linspace(-6.0, 6.0, 121)[:, None, None]
    log_spread, log_margin = np.linspace(-9.0, 2.0, 221)[None, :, None], np.linspace(-4.0, 1.5, 111)[None, None, :]
    spread, margin = np.exp(log_spread), np.exp(log_margin)
    gap = np.sqrt(2.0) * spread * z
    log_p = -0.5 * z**2 + log_spread - 0.5 * (spread / WIDE) ** 2 + log_margin - 0.5 * (margin / APART) ** 2
    up, down = (margin + gap) / np.sqrt(2.0), (margin - gap) / np.sqrt(2.0)
    log_p = (
        log_p + 6.0 * log_ndtr(-down) + 2.0 * log_ndtr(-up) + 4.0 * np.log(np.maximum(ndtr(up) - ndtr(-down), 1e-300))
    )
    weight = np.exp(log_p - log_p.max())
    weight /= weight.sum()
    whole = {"skill": 0.5 * gap, "square": 0.25 * gap**2, "log spread": log_spread, "log margin": log_margin}
    return {name: float((weight * value).sum()) for name, value in whole.items()}


def check_pairs(build: Build) -> None:
    draws, truth = drawn(build(PAIRS, None, "entry")), by_grid()
    found = {"skill": draws[:, 0], "square": draws[:, 0] ** 2, "log spread": np.log(draws[:, 2]), "log margin": np.log(draws[:, 3])}  # fmt: skip
    assert_scores([z_of_mean(found[name], truth[name]) for name in truth], false_alarm=1e-6)


def ties_are_wins(orders: Orders, *arguments: Any) -> Ranked:
    """A mutant: who tied is taken to have won."""
    engine = Ranked.build(orders, *arguments)
    return Ranked(orders, engine.games._replace(tied=np.zeros_like(orders.tied)), engine.beliefs)


def test_skill_spread_and_margin_of_two_players_by_a_grid() -> None:
    check_pairs(Ranked.build)


MUTANTS: dict[str, Build] = {
    "no Jacobian of the spread": changed(ranked, "(1.0 - k) * log_spread", "(0.0 - k) * log_spread").Ranked.build,
    "ties taken for wins": ties_are_wins,
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_engine_is_seen_by_the_grid(name: str) -> None:
    with caught(name):
        check_pairs(MUTANTS[name])


THREE = [["a", "b", "c"]] * 5 + [["b", "a", "c"], ["c", "a", "b"], ["a", "c", "b"]]
GIVEN = 1.5


def split(orders: Orders, *arguments: Any) -> Ranked:
    """A mutant: an order taken for successive choices, each with noise of its own."""
    games = [[names for (names,) in orders.game(g)[0]] for g in range(len(orders))]
    return Ranked.build(
        Orders.of([game[k:] for game in games for k in range(len(game) - 1)], winner_only=True), *arguments
    )


def check_orders(build: Build) -> None:
    draws = drawn(build(Orders.of(THREE), GIVEN, "entry"))[:, :3]
    one, two = (part.ravel() for part in np.meshgrid(np.linspace(-5, 6, 111), np.linspace(-5, 6, 111)))
    skill = np.stack([one, two, -one - two], axis=1)  # skills sum to zero, and are normal there
    log_p, tied, none = -0.5 * (skill**2).sum(axis=1) / GIVEN**2, np.zeros(3, np.bool_), np.zeros(len(skill))
    for order in itertools.permutations("abc"):
        at = ["abc".index(name) for name in order]
        if (often := THREE.count(list(order))) > 0:
            log_p += often * log_order_each(np.ascontiguousarray(skill[:, at]), np.ones(3), tied, 3, none)
    weight = np.exp(log_p - log_p.max())
    weight /= weight.sum()
    pairs = [(draws[:, k] ** power, weight @ skill[:, k] ** power) for k in range(3) for power in (1, 2)]
    assert_scores([z_of_mean(found, float(truth)) for found, truth in pairs], false_alarm=1e-6)


def test_orders_of_three_players_by_a_grid() -> None:
    check_orders(Ranked.build)


def test_orders_that_are_split_into_choices_are_seen_by_the_grid() -> None:
    with caught("orders split into successive choices"):
        check_orders(split)


def test_a_flat_prior_by_a_grid() -> None:
    """Half the difference of two players under a flat prior, seven wins to three."""
    draws = drawn(Ranked.build(Orders.of([["a", "b"]] * 7 + [["b", "a"]] * 3), np.inf, "entry"))
    x = np.linspace(-4.0, 5.0, 2_001)
    weight = np.exp(7.0 * log_ndtr(np.sqrt(2.0) * x) + 3.0 * log_ndtr(-np.sqrt(2.0) * x))
    weight /= weight.sum()
    np.testing.assert_allclose(draws[:, 0] + draws[:, 1], 0.0, atol=1e-12)
    for power in (1, 2):
        assert_mean(draws[:, 0] ** power, float(weight @ x**power), 1e-6 / 2)


def test_a_posterior_given_the_spread_is_that_of_a_probit() -> None:
    """Teams of one and of two, known spread: a probit whose rows are sums of players, which the default engine knows."""
    games: list[list[Any]] = (
        [["a", ("b", "c")]] * 4 + [[("b", "c"), "a"]] * 2 + [["b", "c"]] * 3 + [["c", "b"], [("a", "c"), "b"]]
    )
    games.append(["b", ("a", "c")])
    found = us.rank(games, us.Gaussian(1.5**2), draws=4000, chains=2, progress=False)
    place = {"a": 0, "b": 1, "c": 2}
    rows = np.zeros((2 * 12, 3))
    for e, entry in enumerate(entry for game in games for entry in game):
        rows[e, [place[name] for name in entry]] = 1.0
    d = Decisions(rows, np.arange(0, 25, 2), [0] * 12, names=["a", "b", "c"])
    post = us.fit(d, us.Gaussian(1.5**2), draws=20_000, progress=False)
    for name in place:
        k = found.names.index(name)
        assert_mean(found.skills[:, :, k], post[name].mean(), 1e-6, how="agreement")
        assert_mean(found.skills[:, :, k] ** 2, (post[name] ** 2).mean(), 1e-6, how="agreement")


# Calibration

PLAYERS, GAMES = 5, 14
DRAWS, THIN = 31, 3


def played(rng: np.random.Generator, skill: Floats, margin: float, games: int = GAMES, teams: bool = False) -> Orders:
    """Games of two to four of the players; who is apart by less than the margin ties; in some games the last two retire.

    In every other game, if there are teams, the first two players are one.
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
                for name, cell in zip(columns, (g, f"p{p}", "DNF" if retired else place, str(at)), strict=True):
                    columns[name].append(cell)
    return Orders.from_columns(columns["game"], columns["player"], columns["position"], columns["team"])


def ranks(build: Build, replications: int, seed: int, teams: bool = False) -> Ints:
    """(replications, PLAYERS + 2) ranks of the true skills, their spread and the margin among thinned draws."""
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(replications):
        spread, margin = WIDE * abs(rng.standard_normal()), APART * abs(rng.standard_normal())
        skill = spread * rng.standard_normal(PLAYERS)
        orders = played(rng, skill, margin, teams=teams)
        if len(orders.names) < PLAYERS or not orders.has_ties:
            continue  # which data sets are left out depends on the data alone, so the rest stay calibrated
        truth = np.array([skill[int(name[1:])] for name in orders.names]) - (skill.mean() if orders.level else 0.0)
        engine = build(orders, None, "entry")
        draws, _ = warm_draws(rng, engine, 150, DRAWS, THIN)
        out.append((draws < np.array([*truth, spread, margin])).sum(axis=0))
    assert len(out) > 0.5 * replications
    return np.array(out)


@pytest.mark.parametrize("problem", ["players", "teams"])
def test_ranks_are_uniform(problem: str) -> None:
    """The subset that always runs: 100 replications."""
    assert_uniform_ranks(ranks(Ranked.build, 100, seed=1, teams=problem == "teams"), DRAWS, false_alarm=1e-6)


def test_calibration_sees_ties_taken_for_wins() -> None:
    with caught("ties taken for wins"):
        assert_uniform_ranks(ranks(ties_are_wins, 60, seed=1), DRAWS, false_alarm=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("problem", ["players", "teams"])
def test_ranks_are_uniform_in_the_long_run(problem: str) -> None:
    assert_uniform_ranks(ranks(Ranked.build, 3_000, seed=2, teams=problem == "teams"), DRAWS, false_alarm=1e-6)
