"""Orders under logit noise: against sums over all permutations, differences, and simulation."""

from __future__ import annotations

import importlib
import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed._types import Bools, Floats
from revealed.data.rankings import Rankings
from revealed.kernels.plackett_luce import log_likelihood, log_probabilities, make_luce_games
from tests.support.statistical_asserts import (
    assert_error,
    assert_scores,
    must_fail,
    patched_package,
)

PART = pytest.mark.proves(part="the probability of a finishing order under logit noise")


def strict_order_probability(utility: Floats) -> float:
    """Of entries in just this order: one choice after the other."""
    found = 1.0
    for k in range(len(utility)):
        found *= 1.0 / sum(math.exp(u - utility[k]) for u in utility[k:])
    return found


def brute_force(utility: Floats, place: list[int]) -> float:
    """The sum over all orders of the entries that agree with their places.

    Who shares a place may stand in any order, the unordered too, whose place is the last.
    """
    return sum(
        strict_order_probability(utility[list(order)])
        for order in itertools.permutations(range(len(place)))
        if all(place[a] <= place[b] for a, b in itertools.pairwise(order))
    )


def places(tied: Bools, n_ordered: int) -> list[int]:
    """The place of each entry; those in no known order share one behind all."""
    found = (np.cumsum(~tied) - 1).tolist()
    return [p if k < n_ordered else len(tied) for k, p in enumerate(found)]


def patterns(count: int) -> Iterator[tuple[Bools, int]]:
    """Every way in which places may be shared, and the last entries be in no known order."""
    for n_ordered in range(1, count + 1):
        for flags in itertools.product((False, True), repeat=n_ordered - 1):
            yield np.array([False, *flags, *[False] * (count - n_ordered)]), n_ordered


def games_of(*games: tuple[list[tuple[int, ...]], Bools, int], players: int) -> Any:
    """Games given by their entries, best first, who tied, and how many are in order."""
    teams = [team for entries, _, _ in games for team in entries]
    sizes = [len(entries) for entries, _, _ in games]
    return make_luce_games(
        np.array([p for team in teams for p in team]),
        np.concatenate([[0], np.cumsum([len(team) for team in teams])]),
        np.concatenate([[0], np.cumsum(sizes)]),
        np.concatenate([tied for _, tied, _ in games]),
        np.array([n for _, _, n in games]),
        players,
    )


PATTERNS = [
    pytest.param(tied, n, id=f"{''.join('=' if t else '<' for t in tied[1:])}-{n}")
    for tied, n in patterns(4)
]


@PART
@pytest.mark.parametrize(("tied", "n_ordered"), PATTERNS)
@pytest.mark.parametrize("size", [1.0, 8.0])
def test_probability_is_the_sum_over_orders(tied: Bools, n_ordered: int, size: float) -> None:
    utility = size * np.array([0.3, -1.2, 0.9, 0.1])
    exact = math.log(brute_force(utility, places(tied, n_ordered)))
    found = log_probabilities(utility[None], tied, n_ordered)[0]
    games = games_of(([(0,), (1,), (2,), (3,)], tied, n_ordered), players=4)
    both = np.array([found, log_likelihood(games, utility, np.empty(0))])
    assert_error((both - exact) / max(1.0, abs(exact)), 1e-12)


def forget_the_retired(utility: Floats, tied: Bools, n_ordered: int) -> float:
    """A mutant: who retired is in no denominator."""
    found = log_probabilities(utility[None, :n_ordered], tied[:n_ordered], n_ordered)
    return float(found[0])


def tie_as_win(utility: Floats, tied: Bools, n_ordered: int) -> float:
    """A mutant: of those who tied, the first is taken to have won."""
    return float(log_probabilities(utility[None], np.zeros_like(tied), n_ordered)[0])


def log_probability(utility: Floats, tied: Bools, n_ordered: int) -> float:
    return float(log_probabilities(utility[None], tied, n_ordered)[0])


TEAMS = [(0,), (1, 2), (3,), (4, 5, 6)]
SKILL = np.array([0.4, -0.7, 1.1, -0.3, 0.6, -1.5, 0.8])


def assert_outcomes_add_up(log_p: Any, tied: Bools, n_ordered: int) -> None:
    """Of teams: all outcomes with as many entries in each place have probability one together."""
    strength = np.array([SKILL[list(team)].sum() for team in TEAMS])
    place, outcomes = places(tied, n_ordered), set()
    for order in itertools.permutations(range(4)):
        # the same outcome is met once for each order within a place
        outcomes.add(tuple(sorted(zip(place, order, strict=True))))
    total = sum(
        math.exp(log_p(strength[[entry for _, entry in outcome]], tied, n_ordered))
        for outcome in outcomes
    )
    assert_error(total - 1.0, 1e-12)


@PART
@pytest.mark.parametrize(("tied", "n_ordered"), PATTERNS)
def test_outcomes_add_up_to_one(tied: Bools, n_ordered: int) -> None:
    assert_outcomes_add_up(log_probability, tied, n_ordered)


@PART
def test_wrong_probabilities_do_not_add_up() -> None:
    nobody = np.zeros(4, np.bool_)
    with must_fail("the retired are forgotten"):
        assert_outcomes_add_up(forget_the_retired, nobody, 2)
    with must_fail("a tie taken for a win"):
        assert_outcomes_add_up(tie_as_win, np.array([False, True, False, False]), 4)


@PART
def test_simulated_orders_are_as_frequent_as_they_are_probable() -> None:
    """Utilities with Gumbel noise, sorted: an oracle that knows nothing of successive choices."""
    rng, utility = np.random.default_rng(1), np.array([0.5, 0.0, -0.8])
    drawn = np.argsort(-(utility + rv.LogitNoise().sample(rng, (40_000, 3))), axis=1)
    strict = np.zeros(3, np.bool_)
    scores = []
    for order in itertools.permutations(range(3)):
        p = math.exp(log_probability(utility[list(order)], strict, 3))
        seen = (drawn == order).all(axis=1).mean()
        scores.append((seen - p) / math.sqrt(p * (1.0 - p) / len(drawn)))
    assert_scores(scores, false_alarm=1e-6)


STEP = 1e-5


def mixed_games() -> Any:
    """Teams of one and two, ties at the top, in the middle and at the end, retirements."""
    no, yes = False, True
    return games_of(
        ([(0,), (1,), (2, 3), (4,)], np.array([no, yes, no, no]), 4),
        ([(4, 0), (3,), (2,), (1,), (5,)], np.array([no, no, yes, yes, no]), 4),
        ([(2,), (5,), (0,)], np.array([no, no, no]), 1),
        ([(5,), (4,), (3,)], np.array([no, no, yes]), 3),
        ([(1,), (0,)], np.array([no, yes]), 2),
        ([(3,), (1,), (2,), (4,), (5,)], np.array([no, yes, no, yes, no]), 5),
        ([(3, 1), (2,)], np.array([no, no]), 2),
        players=6,
    )


@PART
@pytest.mark.parametrize("size", [0.5, 5.0, 400.0])
def test_gradient_is_that_of_differences(size: float) -> None:
    """The largest utilities are worked out by logarithms."""
    games, skill = mixed_games(), size * np.array([0.2, -0.9, 0.5, 0.4, -0.1, 1.0])
    gradient, none = np.empty(6), np.empty(0)
    value = log_likelihood(games, skill, gradient)
    assert log_likelihood(games, skill, none) == pytest.approx(value, rel=1e-14)
    assert_error(gradient - central_differences(log_likelihood, games, skill), tolerance(value))


def central_differences(log_p: Any, games: Any, skill: Floats) -> Floats:
    """(K,) derivatives of the log probability of all games in the skills."""
    steps = STEP * np.eye(len(skill))
    up, down = (
        np.array([log_p(games, skill + sign * each, np.empty(0)) for each in steps])
        for sign in (1.0, -1.0)
    )
    return np.asarray((up - down) / (2.0 * STEP))


def tolerance(value: float) -> float:
    """Of central differences: their own error, and the rounding of a log probability of this size."""
    return 1e-8 + 4.0 * abs(value) * float(np.finfo(float).eps) / STEP


def test_logarithms_and_strengths_agree() -> None:
    games, skill = mixed_games(), np.array([0.2, -0.9, 0.5, 0.4, -0.1, 1.0])
    one, other = np.empty(6), np.empty(6)
    value = log_likelihood(games, 140.0 * skill, one)
    # as if there were teams so large that their strengths might overflow
    by_logs = log_likelihood(games._replace(most_members=10), 140.0 * skill, other)
    assert value == pytest.approx(by_logs, rel=1e-13)
    np.testing.assert_allclose(one, other, atol=1e-12)


def test_utilities_of_any_size() -> None:
    """Far apart, an order is sure or as improbable as its gaps are wide; no overflow, no NaN."""
    utility = np.array([3000.0, 0.0, -3000.0])
    strict = np.zeros(3, np.bool_)
    assert log_probability(utility, strict, 3) == 0.0
    assert log_probability(utility[::-1].copy(), strict, 3) == -9000.0
    together = np.array([False, True, False])
    # of two orders, each as improbable
    both = pytest.approx(-9000.0 + math.log(2.0), rel=1e-12)
    assert log_probability(utility[[1, 2, 0]], together, 3) == both
    assert log_probability(utility[[0, 1, 2]], together, 3) == 0.0
    games = games_of(([(2,), (1,), (0,)], together, 3), players=3)
    gradient = np.empty(3)
    assert log_likelihood(games, utility, gradient) == both
    np.testing.assert_allclose(gradient, [-2.0, 1.0, 1.0], atol=1e-12)
    assert log_likelihood(games, np.array([np.inf, 0.0, 0.0]), gradient) == -np.inf
    assert log_likelihood(games, np.array([np.nan, 0.0, 0.0]), gradient) == -np.inf


def test_eight_who_tied_and_forty_entries() -> None:
    """Two groups of eight are exact: their order is a race of exponential times."""
    rng = np.random.default_rng(3)
    utility = 2.0 * rng.standard_normal(40)
    tied = np.zeros(40, np.bool_)
    tied[3:10] = tied[21:28] = True
    found = log_probability(utility, tied, 35)
    exact, at = 0.0, 0
    t = np.exp(np.linspace(-60.0, 12.0, 40_001))
    while at < 35:
        end = at + 1
        while end < 35 and tied[end]:
            end += 1
        strength, behind = np.exp(utility[at:end]), np.exp(utility[end:]).sum()
        # all of a group arrive before the first of those behind, whose time is exponential
        density = behind * np.exp(-behind * t) * np.prod(-np.expm1(-np.outer(t, strength)), axis=1)
        exact += math.log(np.trapezoid(density * t, np.log(t)))
        at = end
    assert found == pytest.approx(exact, abs=1e-9)


def test_a_tied_game_of_two_says_nothing() -> None:
    games = Rankings.from_columns([1, 1], ["a", "b"], [1, 1])
    made = make_luce_games(
        games.players, games.member_start, games.start, games.tied, games.n_ordered, 2
    )
    gradient = np.empty(2)
    assert log_likelihood(made, np.array([3.0, -1.0]), gradient) == 0.0
    np.testing.assert_array_equal(gradient, 0.0)


@PART
def test_a_wrong_gradient_is_caught(tmp_path: Path) -> None:
    file = "kernels/plackett_luce.py"
    package = patched_package(tmp_path, file, "gained / behind", "1.0 / behind", keep=True)
    wrong: Any = importlib.import_module(f"{package.__name__}.kernels.plackett_luce")
    games, skill = wrong.LuceGames(*mixed_games()), np.array([0.2, -0.9, 0.5, 0.4, -0.1, 1.0])
    gradient = np.empty(6)
    value = wrong.log_likelihood(games, skill, gradient)
    differences = central_differences(wrong.log_likelihood, games, skill)
    with must_fail("those behind lose more than a tied group gains"):
        assert_error(gradient - differences, tolerance(value))
