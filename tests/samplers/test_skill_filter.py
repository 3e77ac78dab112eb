"""Skills by their mode: the kernels against differences, determinants and grids; updates and walks.

What is proven: slopes and curvature are those of the likelihood, draws about the mode have the
covariance that they should, the evidence is Laplace's, and a game at a time ends where a fit ends.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import log_expit

import revealed as rv
from revealed._types import Floats
from revealed.data.rankings import Rankings
from revealed.kernels.bidiagonal import multiply_precision, write_variances
from revealed.kernels.skill_newton import add_curvature_product, game_slopes
from revealed.models.skill_nodes import component_columns, make_skill_nodes
from revealed.samplers.skill_filter import SkillFilter, _start_from, last_chosen
from revealed.samplers.skill_mode import MODE, SkillMode, order_games
from tests.support.statistical_asserts import assert_mean

LOGIT = rv.RankingModel(noise=rv.LogitNoise(), over_time=rv.RandomWalk())
NORMAL = rv.RankingModel(over_time=rv.RandomWalk())
KINDS = [(True, False, 4), (True, True, 4), (False, False, 2), (True, False, 2)]


def some_games(rng: np.random.Generator, size: int, count: int = 24) -> Rankings:
    """Games of so many of five players, at eight dates."""
    games = [[f"p{k}" for k in rng.permutation(5)[:size]] for _ in range(count)]
    return Rankings.from_lists(games, times=np.sort(rng.integers(0, 8, count)))


def mode_of(games: Rankings, logit: bool, from_last: bool) -> SkillMode:
    nodes = make_skill_nodes(games)
    ordered = order_games(games, nodes, logit, False, from_last)
    return SkillMode(ordered, nodes, np.array([1.0, 2.0]), np.full(2, np.nan))


def information(mode: SkillMode, high: int) -> Floats:
    """Q + H as a matrix, column by column."""
    count = len(mode.nodes)
    whole = np.zeros((count, count))
    for column, unit in zip(whole, np.eye(count), strict=True):
        multiply_precision(mode.precision.diagonal, mode.precision.coupling, unit, column)
        part = np.empty((2, len(mode.curvature.strength)))
        add_curvature_product(mode.games, high, mode.curvature, unit, part, column)
    return whole


@pytest.mark.parametrize(("logit", "from_last", "size"), KINDS)
def test_slopes_and_curvature_are_those_of_the_likelihood(
    logit: bool, from_last: bool, size: int
) -> None:
    rng = np.random.default_rng(1)
    mode = mode_of(some_games(rng, size), logit, from_last)
    count, step = len(mode.nodes), 1e-5
    value = rng.standard_normal(count)

    def at(moved: Floats) -> tuple[float, Floats]:
        slope = np.empty(count)
        return game_slopes(mode.games, 24, moved, slope, mode.curvature), slope

    slope = at(value)[1]
    moves = step * np.eye(count)
    differences = [(at(value + m)[0] - at(value - m)[0]) / (2 * step) for m in moves]
    np.testing.assert_allclose(slope, differences, atol=1e-7)
    by_slope = np.array([(at(value - m)[1] - at(value + m)[1]) / (2 * step) for m in moves])
    at(value)
    prior = np.zeros((count, count))
    for column, unit in zip(prior, np.eye(count), strict=True):
        multiply_precision(mode.precision.diagonal, mode.precision.coupling, unit, column)
    curvature = information(mode, 24) - prior
    np.testing.assert_allclose(curvature, by_slope, atol=1e-7)
    np.testing.assert_allclose(mode.curvature.diagonal, np.diag(curvature), atol=1e-10)


@pytest.mark.parametrize(("logit", "from_last", "size"), KINDS)
def test_law_about_the_mode(logit: bool, from_last: bool, size: int) -> None:
    rng = np.random.default_rng(2)
    mode = mode_of(some_games(rng, size), logit, from_last)
    mode.find(24)
    whole, count = information(mode, 24), len(mode.nodes)
    covariance = np.linalg.inv(whole)
    # at the mode the slope is nothing beside what is known
    slope = mode._log_density(24, mode.value)[1]
    assert slope @ covariance @ slope < 4.0 * MODE.gain
    mode._factorise()
    own = np.linalg.inv(
        whole + np.diag(mode.curvature.diagonal) - information_of_games(mode, whole)
    )
    found = np.empty(count)
    write_variances(mode._inverse, mode._lower, found)
    np.testing.assert_allclose(found, np.diag(own), rtol=1e-9)
    draws = mode.draws(rng, 24, 2000, np.arange(count))
    # squares of normal draws have twice the variance of their law
    z = (draws - mode.value) @ np.linalg.cholesky(whole)
    assert_mean((z**2).ravel(), 1.0)
    for n in range(1, count):
        assert_mean(z[:, n - 1] * z[:, n], 0.0, false_alarm=1e-6 / count)


def information_of_games(mode: SkillMode, whole: Floats) -> Floats:
    """H, which is what the precision of walks leaves of Q + H."""
    prior = np.zeros_like(whole)
    for column, unit in zip(prior, np.eye(len(whole)), strict=True):
        multiply_precision(mode.precision.diagonal, mode.precision.coupling, unit, column)
    return whole - prior


def test_evidence_by_random_signs_is_that_of_the_determinant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(3)
    mode = mode_of(some_games(rng, 3), True, False)
    mode.find(24)
    exact = mode.log_evidence(24)
    whole = information(mode, 24)
    np.testing.assert_allclose(mode._log_det(24), np.linalg.slogdet(whole)[1], rtol=1e-10)
    monkeypatch.setattr("revealed.samplers.skill_mode.MODE", _inexact())
    # of a trace with 200 signs
    assert abs(mode.log_evidence(24) - exact) < 0.05


def _inexact() -> Any:
    from dataclasses import replace

    return replace(MODE, exact_nodes=0, probes=200, probed=200 * 40)


def test_evidence_of_one_pair_is_near_the_integral() -> None:
    """Two players, one game each day for two days: a grid knows the evidence."""
    games = Rankings.from_lists([["a", "b"], ["b", "a"]], times=[0.0, 1.0])
    mode = mode_of(games, True, False)
    mode.set_sizes(np.log([0.5, 0.7]))
    mode.find(2)
    # differences of skills: first N(0, 2 spread^2), then a step of N(0, 2 drift^2)
    first = np.linspace(-8.0, 8.0, 801)
    later = first[:, None] + np.linspace(-6.0, 6.0, 601)
    law = np.exp(-(first**2) / (4 * 0.7**2))[:, None] * np.exp(
        -(np.linspace(-6.0, 6.0, 601) ** 2) / (4 * 0.5**2)
    )
    weight = law / law.sum()
    exact = np.log((weight * np.exp(log_expit(first)[:, None] + log_expit(-later))).sum())
    # Laplace's error with so little data, against a determinant that is left out
    assert abs(mode.log_evidence(2) - exact) < 0.02


def test_games_one_by_one_end_where_all_at_once_do() -> None:
    rng = np.random.default_rng(4)
    games = some_games(rng, 3, 60)
    model = rv.RankingModel(rv.Normal(0.8), noise=rv.LogitNoise(), over_time=rv.RandomWalk(0.3))
    whole = SkillFilter(games, model)
    found = SkillFilter(games[:40], model)
    # with a player who is new
    assert games.times is not None
    for date in np.unique(games.times[40:]).tolist():
        new = games.take(40 + np.flatnonzero(games.times[40:] == date))
        found.update(new)
    assert len(found) == 60
    mean, sd = whole.at(12.0)
    again, again_sd = found.at(12.0)
    # Newton's method stops where it gains less than this
    assert (np.abs(mean - again) < 4.0 * np.sqrt(MODE.gain) * sd).all()
    np.testing.assert_allclose(sd, again_sd, rtol=0.02)
    more = Rankings.from_lists([["new", "p1"]] * 3, times=[9.0] * 3)
    table = {line["player"]: line for line in found.update(more).table()}
    assert table["new"]["skill"] > table["p1"]["skill"]


def test_skills_of_drivers_and_cars_go_on_from_their_own_when_new_ones_come() -> None:
    """New names stand before old ones: a position says nothing of who somebody is."""

    def races(rows: list[tuple[str, str]], time: float) -> Rankings:
        drivers, cars = zip(*rows, strict=True)
        places = list(range(len(rows)))
        return Rankings.from_columns(
            [0] * len(rows),
            drivers,
            [1 + place for place in places],
            time=[time] * len(rows),
            columns={"car": cars},
        )

    old = races([("max", "red"), ("lewis", "silver")], 0.0)
    both = old + races([("ada", "blue"), ("max", "silver")], 1.0)
    columns = [component_columns(games, ["player", "car"]) for games in (old, both)]
    before, after = (make_skill_nodes(g, c) for g, c in zip((old, both), columns, strict=True))
    value = dict(zip(before.names(), (1.0, -1.0, 3.0, -3.0), strict=True))
    got = dict(
        zip(after.names(), _start_from(before, np.array([1.0, -1, 3, -3]), after), strict=True)
    )
    assert {name: got[name] for name in value} == value
    new = {"player ada at 1": 0.0, "car blue at 1": 0.0}
    # who was there before goes on from where he was
    same = {
        "player max at 1": value["player max at 0"],
        "car silver at 1": value["car silver at 0"],
    }
    assert {name: got[name] for name in got if name not in value} == new | same
    model = LOGIT.replace(prior=rv.Normal(1.0), components=["player", "car"])
    found = SkillFilter(old, model.replace(over_time=rv.RandomWalk(0.3)))
    found.update(both[1:])
    whole = SkillFilter(both, model.replace(over_time=rv.RandomWalk(0.3)))
    np.testing.assert_allclose(found.at(1.0)[0], whole.at(1.0)[0], atol=4.0 * MODE.gain**0.5)


def test_what_comes_later_changes_no_forecast() -> None:
    games = some_games(np.random.default_rng(5), 2, 60)
    walk = rv.walk_forward(games, LOGIT, sampler="laplace", baselines=["elo"], first=4)
    listed = [[name for (name,) in games.game(g)[0]] for g in range(60)]
    assert games.times is not None
    later = np.flatnonzero(games.times >= 6.0)
    for g in later.tolist():
        listed[g] = listed[g][::-1]
    names = Rankings.from_lists(listed, times=games.times)
    other = rv.walk_forward(names, LOGIT, sampler="laplace", baselines=["elo"], first=4)
    one, two = walk.events["pairs"], other.events["pairs"]
    early = one.times < 6.0
    # nodes stand in another order, as names are met in another: the same up to Newton's stop
    np.testing.assert_allclose(
        one.log_probability[:, early], two.log_probability[:, early], atol=0.02
    )
    assert np.abs(one.log_probability - two.log_probability)[0, ~early].max() > 0.1


def test_winners_from_the_last_place_up() -> None:
    utility = np.array([1.0, 0.5, 0.0, -2.0])
    rng = np.random.default_rng(6)
    # the least of noises that are Gumbel's turned round is the last: the largest is first
    first = (utility - rng.gumbel(size=(100_000, 4))).argmax(axis=1)
    found = last_chosen(utility[None])
    for k, p in enumerate(found.tolist()):
        assert_mean((first == k).astype(np.float64), p)


def test_forecasts_under_normal_noise_add_what_is_not_known() -> None:
    games = some_games(np.random.default_rng(7), 2, 40)
    found = SkillFilter(games, NORMAL, seen=30)
    scores = found.score(np.arange(30, 40))
    assert scores.pairs.log_probability.shape == (10,)
    assert (np.exp(scores.pairs.log_probability) < 1.0).all()
    np.testing.assert_allclose(
        np.exp(scores.pairs.log_probability),
        np.where(scores.pairs.correct > 0, scores.pairs.confidence, 1.0 - scores.pairs.confidence),
    )


@pytest.mark.parametrize(
    ("model", "given", "message"),
    [
        (LOGIT, {"sampler": "laplace", "draws": 5}, "has no use for draws"),
        (LOGIT, {"from_last": True}, "from_last goes with skills that change"),
        (rv.RankingModel(), {"update": True}, "update=True goes with values and skills that drift"),
    ],
)
def test_refused_in_walks(model: rv.RankingModel, given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rv.walk_forward(some_games(np.random.default_rng(8), 2), model, **given)


def test_refused() -> None:
    pair = some_games(np.random.default_rng(9), 2)
    with pytest.raises(ValueError, match="games of two entries"):
        SkillFilter(some_games(np.random.default_rng(9), 3), NORMAL)
    with pytest.raises(ValueError, match="under logit noise only"):
        SkillFilter(pair, NORMAL, from_last=True)
    with pytest.raises(ValueError, match=r"give over_time=rv.RandomWalk\(\)"):
        SkillFilter(pair, rv.RankingModel())
    tied = Rankings.from_columns([1, 1], ["a", "b"], [1, 1], time=[0, 0])
    with pytest.raises(ValueError, match="games with ties"):
        SkillFilter(tied, LOGIT)
    found = SkillFilter(pair, LOGIT)
    with pytest.raises(ValueError, match="before the last one so far"):
        found.update(Rankings.from_lists([["p1", "p2"]], times=[0.5]))
