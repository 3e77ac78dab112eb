"""Scores of forecasts, against sums that are written out."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from revealed.data.decisions import Decisions
from revealed.data.rankings import Rankings
from revealed.models.noise import LogitNoise
from revealed.models.over_time import RandomWalk
from revealed.models.ranking import RankingModel
from revealed.results.baselines import EloRatings, fit_elo_step, frequencies, has_frequencies
from revealed.results.forecasts import Forecasts, score_actions, score_pairs
from revealed.results.game_forecasts import (
    known_pairs,
    score_posterior,
    score_ratings,
    single_winners,
)
from revealed.results.skill_paths import RankingPathPosterior


def some_games(rng: np.random.Generator, count: int = 30) -> Rankings:
    """Games of two to five entries, some of two players, with ties and retirements."""
    rows = []
    for g in range(count):
        players = rng.permutation(9)[: rng.integers(2, 6)]
        for place, player in enumerate(players):
            text = "DNF" if place > 2 else str(1 + place - int(rng.random() < 0.2 and place > 0))
            rows.append((g, f"p{player}", text, g // 3))
    of_game, player, places, times = zip(*rows, strict=True)
    return Rankings.from_columns(of_game, player, places, time=times)


def places_of(games: Rankings, g: int) -> list[float]:
    """The place of each entry; infinite for those in no known order."""
    teams, tied, n_ordered = games.game(g)
    places: list[float] = []
    for i in range(len(teams)):
        places.append(places[-1] if tied[i] else float(i) if i < n_ordered else np.inf)
    return places


def test_known_pairs_are_all_that_were_seen_in_order() -> None:
    games = some_games(np.random.default_rng(1))
    found = known_pairs(games)
    expected = [
        (g, int(games.start[g]) + i, int(games.start[g]) + j)
        for g in range(len(games))
        for i, j in itertools.combinations(range(len(places_of(games, g))), 2)
        if places_of(games, g)[i] < places_of(games, g)[j]
    ]
    assert list(zip(*(part.tolist() for part in found), strict=True)) == expected
    assert single_winners(games).tolist() == [
        places_of(games, g).count(0.0) == 1 for g in range(len(games))
    ]


def test_elo_ratings_are_those_of_the_formula() -> None:
    """All games of a date begin from the ratings before it."""
    games, step = some_games(np.random.default_rng(2)), 0.3
    assert games.times is not None
    ratings = dict.fromkeys(games.names, 0.0)
    for time in range(6):
        change = dict.fromkeys(games.names, 0.0)
        for g in np.flatnonzero(games.times == time).tolist():
            teams, places = games.game(g)[0], places_of(games, g)
            for i, j in itertools.permutations(range(len(teams)), 2):
                (one,), (other,) = teams[i], teams[j]
                if places[i] == places[j] == np.inf:
                    continue
                seen = 0.5 if places[i] == places[j] else float(places[i] < places[j])
                expected = 1.0 / (1.0 + np.exp(ratings[other] - ratings[one]))
                change[one] += step / (len(teams) - 1) * (seen - expected)
        for name, moved in change.items():
            ratings[name] += moved
    elo = EloRatings(games, step)
    elo.learn_before(6.0)
    np.testing.assert_allclose(elo.ratings, [ratings[name] for name in games.names], atol=1e-12)


def test_the_step_of_elo_is_where_pairs_are_foretold_best() -> None:
    rng = np.random.default_rng(3)
    skill = rng.standard_normal(8)
    rows = []
    for _ in range(400):
        i, j = rng.permutation(8)[:2]
        first = rng.random() < 1.0 / (1.0 + np.exp(skill[j] - skill[i]))
        rows.append([f"p{i}", f"p{j}"] if first else [f"p{j}", f"p{i}"])
    games = Rankings.from_lists(rows, times=range(400))
    best = fit_elo_step(games)

    def loss(step: float) -> float:
        elo, total = EloRatings(games, step), 0.0
        for g in range(400):
            elo.learn_before(float(g))
            total -= score_ratings(elo.ratings, games[g : g + 1]).pairs.log_probability[0]
        return total

    assert loss(best) < min(loss(0.7 * best), loss(1.4 * best))


def test_games_are_foretold_from_the_skills_of_their_dates() -> None:
    """Against the posterior's own score of whole games, which for two entries is that of pairs."""
    rng = np.random.default_rng(6)
    names = [["a", "b"], ["b", "c"], ["c", "a"], ["a", "b"]]
    games = Rankings.from_lists(names, times=[0.0, 1.0, 2.0, 5.0])
    model = RankingModel(noise=LogitNoise(), over_time=RandomWalk())
    draws = {
        "skill": rng.standard_normal((2, 50, 8)),
        "drift_sd": np.full((2, 50, 1), 0.3),
        "spread": np.ones((2, 50, 1)),
    }
    post = RankingPathPosterior(draws, games, model, "skill-paths")
    later = Rankings.from_lists([["a", "b"], ["c", "b"], ["a", "c"]], times=[6.0, 6.0, 9.0])
    found = score_posterior(post, later).pairs.log_probability
    np.testing.assert_allclose(found, post.log_score(later), rtol=1e-9)


def test_ties_of_forecasts_are_guesses() -> None:
    found = score_actions(np.array([0.4, 0.4, 0.2, 1.0]), np.array([0, 3, 4]), np.array([1, 0]))
    assert found.correct.tolist() == [0.5, 1.0]
    np.testing.assert_allclose(np.exp(found.log_probability), [0.4, 1.0])
    pairs = score_pairs(np.log([0.3, 0.2, 0.1]), np.log([0.3, 0.1, 0.3]))
    assert pairs.correct.tolist() == [0.5, 1.0, 0.0]
    # given that there was no tie
    np.testing.assert_allclose(np.exp(pairs.log_probability), [0.5, 2.0 / 3.0, 0.25])
    np.testing.assert_allclose(pairs.confidence, [0.5, 2.0 / 3.0, 0.75])


def test_frequencies_count_actions_that_are_offered() -> None:
    rows = np.zeros((5, 1))
    seen = Decisions(rows, [0, 2, 5], [1, 0], actions=["a", "b", "b", "c", "a"])
    ahead = Decisions(rows[:2], [0, 2], actions=["b", "c"])
    assert has_frequencies(seen)
    # b was chosen twice, c never
    np.testing.assert_allclose(frequencies(seen, ahead), [0.75, 0.25])


def some_forecasts(rng: np.random.Generator) -> Forecasts:
    losses = rng.exponential(size=(2, 60)) + 3.0 * np.repeat(rng.exponential(size=12), 5)
    unit, times = np.repeat(np.arange(12), 5), np.repeat(np.arange(20.0), 3)
    return Forecasts(("a", "b"), times, unit, -losses, np.exp(-losses), np.ones((2, 60)))


def test_resampling_draws_whole_units_alike_for_all_forecasters() -> None:
    found = some_forecasts(np.random.default_rng(4))
    drawn = found.resampled(4000, 1)
    # the bootstrap's sd of a mean of units of one size is that of the units' means, without n - 1
    of_unit = -found.log_probability.reshape(2, 12, 5).mean(axis=2)
    np.testing.assert_allclose(drawn.std(axis=0), of_unit.std(axis=1) / np.sqrt(12), rtol=0.06)
    difference = drawn[:, 0] - drawn[:, 1]
    exact = (of_unit[0] - of_unit[1]).std() / np.sqrt(12)
    np.testing.assert_allclose(difference.std(), exact, rtol=0.06)
    # events by themselves would look much better known
    alone = found.log_probability.std(axis=1) / np.sqrt(60)
    assert (drawn.std(axis=0) > 1.5 * alone).all()


def test_losses_over_time_are_means_of_runs_of_events() -> None:
    found = some_forecasts(np.random.default_rng(5))
    times, losses = found.over_time(4)
    np.testing.assert_allclose(times, np.arange(20.0).reshape(4, 5).mean(axis=1))
    np.testing.assert_allclose(losses, -found.log_probability.reshape(2, 4, 15).mean(axis=2))
    with pytest.raises(ValueError, match="no forecaster 'c'; there are a, b"):
        found.calibration("c")


def test_the_winner_of_two_is_the_pair() -> None:
    ratings = np.array([0.4, -1.3, 0.2])
    two = Rankings.from_lists([["a", "b"], ["c", "a"], ["b", "c"]])
    of_two = score_ratings(ratings, two)
    np.testing.assert_allclose(of_two.winners.log_probability, of_two.pairs.log_probability)
    # beside a game of three they are scored by the general rule, which must say the same
    more = Rankings.from_lists([["a", "b"], ["c", "a"], ["b", "c"], ["a", "b", "c"]])
    general = score_ratings(ratings, more).winners.log_probability
    np.testing.assert_allclose(general[:3], of_two.winners.log_probability)
    strength = np.exp(ratings)
    np.testing.assert_allclose(general[3], np.log(strength[0] / strength.sum()))
