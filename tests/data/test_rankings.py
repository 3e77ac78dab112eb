"""The probability of a finishing order against answers known otherwise, and how results are read."""

from __future__ import annotations

import itertools
import math
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import norm

import revealed as rv
from revealed._types import Floats
from revealed.data.rankings import Rankings
from revealed.kernels.ranking_chain import GRID
from revealed.kernels.ranking_likelihood import log_ranking_probability
from tests.support.statistical_asserts import assert_error, assert_scores

NONE = np.empty(0)
PART = pytest.mark.proves(part="the probability of a finishing order")


def log_p(
    mean: Any,
    sd: Any = None,
    tied: Any = None,
    known: int | None = None,
    margin: float = 0.0,
    fine: float = GRID.prediction_refinement,
) -> float:
    m = np.asarray(mean, dtype=np.float64)
    s = np.ones(m.size) if sd is None else np.asarray(sd, dtype=np.float64)
    t = np.zeros(m.size, np.bool_) if tied is None else np.asarray(tied, np.bool_)
    return float(
        log_ranking_probability(m, s, t, m.size if known is None else known, margin, NONE, fine)[0]
    )


@PART
@pytest.mark.parametrize(
    ("count", "error", "rough"),
    [
        (2, 1e-12, 1e-12),
        (3, 1e-6, 1e-5),
        (5, 1e-6, 1e-4),
        (8, 1e-6, 1e-4),
        (20, 1e-6, 1e-4),
        (43, 1e-5, 1e-3),
    ],
)
def test_equal_entries_finish_in_any_order_alike(count: int, error: float, rough: float) -> None:
    """Each of the n! orders alike: as predictions see it, and as the sampler does."""
    assert_error(log_p(np.full(count, 0.7)) + math.lgamma(count + 1), error)
    assert_error(log_p(np.full(count, 0.7), fine=1.0) + math.lgamma(count + 1), rough)


def test_a_shift_or_another_scale_changes_nothing() -> None:
    mean, sd = np.array([0.4, -1.0, 0.3, 2.0]), np.array([1.0, 1.4, 1.0, 1.7])
    whole = log_p(mean, sd, margin=0.2)
    assert log_p(mean + 123.4, sd, margin=0.2) == pytest.approx(whole, abs=1e-6)
    assert log_p(3.0 * mean, 3.0 * sd, margin=0.6) == pytest.approx(whole, abs=1e-9)


def by_hand(mean: Floats, sd: Floats) -> float:
    """P(w_0 > w_1 > w_2) = E Phi((w_1 - m_0) .. ) by plain quadrature over the middle one."""
    x = np.linspace(mean[1] - 12 * sd[1], mean[1] + 12 * sd[1], 20_001)
    middle = norm.pdf(x, mean[1], sd[1]) * norm.sf(x, mean[0], sd[0]) * norm.cdf(x, mean[2], sd[2])
    return float(np.log(np.sum(middle) * (x[1] - x[0])))


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.floats(-3, 3), min_size=3, max_size=3),
    st.lists(st.floats(1, 2), min_size=3, max_size=3),
)
@example([-3.0, 3.0, 3.0], [1.0, 1.0, 1.0])
def test_three_entries_by_plain_quadrature(mean: list[float], sd: list[float]) -> None:
    """To a millionth; in orders that hardly ever happen P itself is off by up to 2e-11."""
    m, s = np.array(mean), np.array(sd)
    exact = by_hand(m, s)
    assert log_p(m, s) == pytest.approx(exact, rel=0.0, abs=1e-6 + 2e-11 / math.exp(exact))


@pytest.mark.parametrize("apart", [3.0, 10.0, 20.0])
def test_great_upsets_are_unlikely_and_no_more(apart: float) -> None:
    """Three finish in the reverse order of their skills: far out the lattice is coarse, but right to a few per cent of log P."""
    mean = np.array([-apart, 0.0, apart])
    x = np.linspace(-15.0, 15.0, 20_001)
    logs = norm.logpdf(x) + norm.logsf(x, mean[0]) + norm.logcdf(x, mean[2])
    exact = float(np.log(np.exp(logs - logs.max()).sum() * (x[1] - x[0])) + logs.max())
    slope = np.empty(3)
    value, _ = log_ranking_probability(
        mean, np.ones(3), np.zeros(3, np.bool_), 3, 0.0, slope, GRID.prediction_refinement
    )
    assert value == pytest.approx(exact, rel=0.02)
    assert slope[0] > 0.5 * apart
    assert slope[2] < -0.5 * apart


def test_means_beyond_all_reason_end_in_minus_infinity() -> None:
    """Where a path has run away it must be refused, not fill the memory."""
    for far in (1e4, 1e300, np.nan):
        assert log_p([0.0, far, 1.0]) == -np.inf


@PART
def test_all_orders_of_a_field_add_up_to_one() -> None:
    mean = np.array([0.5, -0.3, 1.1, 0.0, -2.0])
    total = sum(math.exp(log_p(mean[list(p)])) for p in itertools.permutations(range(5)))
    assert_error(total - 1.0, 1e-6)


def outcomes(count: int) -> list[tuple[tuple[int, ...], tuple[bool, ...]]]:
    """Every way to finish with ties, each once: an order, and who ties with the one before; those tied in rising order."""
    found = []
    for order in itertools.permutations(range(count)):
        for tied in itertools.product([False, True], repeat=count - 1):
            flags = (False, *tied)
            if all(order[k - 1] < order[k] for k in range(1, count) if flags[k]):
                found.append((order, flags))
    return found


@PART
@pytest.mark.parametrize("count", [2, 3, 4])
def test_all_outcomes_with_ties_add_up_to_one(count: int) -> None:
    mean = np.array([0.5, -0.3, 1.1, 0.0])[:count]
    total = sum(math.exp(log_p(mean[list(o)], tied=t, margin=0.35)) for o, t in outcomes(count))
    assert_error(total - 1.0, 1e-5)


@PART
def test_ties_by_simulation() -> None:
    """Two tie behind the winner: those apart by less than the margin, in either order."""
    rng = np.random.default_rng(1)
    mean, margin, size = np.array([0.8, 0.2, -0.4]), 0.5, 4_000_000
    w = mean + rng.standard_normal((size, 3))
    low, high = np.minimum(w[:, 1], w[:, 2]), np.maximum(w[:, 1], w[:, 2])
    share = float(np.mean((w[:, 0] - high > margin) & (high - low <= margin)))
    error = math.sqrt(share / size)
    found = math.exp(log_p(mean, tied=[False, False, True], margin=margin))
    assert_scores((found - share) / error, degrees=np.inf)
    assert math.exp(
        log_p(mean[[0, 2, 1]], tied=[False, False, True], margin=margin)
    ) == pytest.approx(found, abs=1e-6)


@PART
def test_a_winner_is_a_choice() -> None:
    """Who is first, with the rest unknown, is what `choice_probabilities` says."""
    mean = np.array([0.5, -0.3, 1.1, 0.0, -2.0, 0.9])
    d = rv.Decisions(np.eye(6), [0, 6])
    exact = rv.choice_probabilities(d, mean)
    for k in range(6):
        order = [k, *(j for j in range(6) if j != k)]
        assert_error(math.exp(log_p(mean[order], known=1)) / exact[k] - 1.0, 1e-6)


def test_who_retired_is_behind_in_any_order() -> None:
    mean = np.array([0.5, -0.3, 1.1, 0.0])
    whole = sum(math.exp(log_p([0.5, -0.3, *p])) for p in itertools.permutations(mean[2:]))
    assert math.exp(log_p(mean, known=2)) == pytest.approx(whole, abs=1e-7)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.integers(2, 7), st.booleans())
def test_slopes_are_finite_differences(seed: int, count: int, ties: bool) -> None:
    rng = np.random.default_rng(seed)
    mean, sd = rng.normal(size=count), rng.uniform(1.0, 2.0, count)
    known = int(rng.integers(1, count + 1))
    tied = np.zeros(count, np.bool_)
    if ties:
        tied[1:known] = rng.random(max(known - 1, 0)) < 0.4
    margin, slope = (0.4 if ties else 0.0), np.empty(count)
    _, by_margin = log_ranking_probability(
        mean, sd, tied, known, margin, slope, GRID.prediction_refinement
    )
    for k in range(count):
        up, down = mean.copy(), mean.copy()
        up[k] += 1e-4
        down[k] -= 1e-4
        rise = log_p(up, sd, tied, known, margin) - log_p(down, sd, tied, known, margin)
        assert slope[k] == pytest.approx(rise / 2e-4, abs=2e-4)
    if ties:
        rise = log_p(mean, sd, tied, known, margin * 1.001) - log_p(
            mean, sd, tied, known, margin / 1.001
        )
        assert by_margin == pytest.approx(rise / (2.0 * math.log(1.001)), abs=2e-4)


# How results are read


def test_tables_are_read_with_ties_teams_and_retirements() -> None:
    orders = Rankings.from_columns(
        ["a", "a", "a", "a", "b", "b", "b"],
        ["x", "y", "z", "u", "x", "y", "z"],
        ["2", 1, 2.0, "DNF", "DNS", "1", None],
    )
    assert orders.names == ("x", "y", "z", "u")
    assert [orders.names[p] for p in orders.players] == ["y", "x", "z", "u", "y", "z"]
    assert orders.tied.tolist() == [False, False, True, False, False, False]
    assert orders.n_ordered.tolist() == [3, 1]
    assert orders[1:].ids == ("b",)
    teams = Rankings.from_columns(
        [1] * 4, ["p", "q", "r", "s"], [1, 1, 2, 2], team=["A", "A", "B", "B"]
    )
    assert teams.sizes.tolist() == [2, 2]
    assert not teams.has_ties
    assert Rankings.from_lists([["p", "q", "r"]], winner_only=True).n_ordered.tolist() == [1]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: Rankings.from_lists([["a"]]),
            "game 0: there is one entry; a game needs at least two",
        ),
        (lambda: Rankings.from_lists([["a", "a"]]), "game 0: a takes part twice"),
        (lambda: Rankings.from_lists([]), "there are no games"),
        (lambda: Rankings.from_lists([["a", ()]]), "game 0: an entry has no players"),
        (
            lambda: Rankings.from_columns([7, 7], ["a", "b"], ["DNF", "DNF"]),
            "game 7: there is no winner",
        ),
        (lambda: Rankings.from_columns([7, 7], ["a", "a"], [1, 2]), "game 7: a takes part twice"),
        (
            lambda: Rankings.from_columns([7, 7], ["a", "b"], [1, 2], team=["t", "t"]),
            "game 7: the players of team t have different positions",
        ),
        (
            lambda: Rankings.from_columns([7, 7], ["a", "b"], [1, 1], winner_only=True),
            "game 7: 2 entries share the first place",
        ),
        (
            lambda: Rankings.from_columns([7] * 9, list("abcdefghi"), [1] * 9),
            "game 7: more than 8 entries share a rank",
        ),
        (
            lambda: Rankings.from_columns([7], ["a", "b"], [1, 2]),
            "must be columns of the same length",
        ),
    ],
)
def test_bad_results_get_a_sentence(make: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        make()


# What results look like when people write them


def order(positions: list[Any], **more: Any) -> tuple[list[str], list[bool], int]:
    """Players a, b, c, ... of one game in order, who ties, and how many have a place."""
    names = list("abcdefgh")[: len(positions)]
    teams, tied, known = Rankings.from_columns([1] * len(names), names, positions, **more).game(0)
    return [team[0] for team in teams], tied.tolist(), known


@pytest.mark.parametrize("tie", ["T2", "t2", "T-2", "=2", "2=", "2T", " = 2 "])
def test_ties_may_be_written_as_such(tie: str) -> None:
    found = order(["1", tie, tie, "4"])
    assert found == (["a", "b", "c", "d"], [False, False, True, False], 4)
    assert order([1, tie, 2, 4]) == found  # by the number, however it is written


def test_only_listed_codes_are_behind_or_left_out() -> None:
    for code in ("DNF", "RET", "DSQ", "DQ", "NC", "OTL", "OCS", "CUT", "MC", "MDF"):
        assert order([code, 2, f" {code.lower()} ", 1])[0][:2] == ["d", "b"]
        assert order([code, 2, code, 1])[2] == 2
    for code in ("DNS", "DNC", "DNQ", "DNPQ", "DNP", "WD", "EX"):
        assert order([code, 2, code, 1])[0] == ["d", "b"]
    for nothing in (None, float("nan"), "", pd.NA):
        assert order([nothing, 2, 1]) == (["c", "b", "a"], [False] * 3, 2)
    for written in ("retired", "1st", "W", "2-1", "T"):
        with pytest.raises(
            ValueError, match=rf"^row 2: the position '{written}' is no number, a tie such as T2 or"
        ):
            order([1, 2, written])


def test_a_column_of_numbers_and_codes_is_read_from_any_dataframe() -> None:
    games, players = [1, 1, 1], ["ann", "bob", "cid"]
    frame = pd.DataFrame({"game": games, "player": players, "position": [2, 1, "DNF"]})
    assert rv.read_rankings(frame).game(0)[0] == [("bob",), ("ann",), ("cid",)]
    frame["position"] = [2, 1, np.nan]
    assert rv.read_rankings(frame).game(0)[2] == 2
    frame["position"] = [np.nan, 1, "T2"]
    assert rv.read_rankings(frame).game(0)[0] == [("bob",), ("cid",), ("ann",)]


@pytest.mark.parametrize("missing", [None, float("nan"), " "])
def test_a_missing_name_is_refused_by_its_row(missing: Any) -> None:
    for column, sentence in (
        (0, "row 1: the game is missing; every row needs one"),
        (1, "row 1: the player is missing"),
        (3, "row 1: the team is missing"),
    ):
        columns: list[list[Any]] = [[1, 1], ["a", "b"], [1, 2], ["x", "y"]]
        columns[column][1] = missing
        with pytest.raises(ValueError, match=sentence):
            Rankings.from_columns(columns[0], columns[1], columns[2], columns[3])
    frame = pd.DataFrame({"game": [1, 1], "player": ["ann", None], "position": [1, 2]})
    with pytest.raises(ValueError, match="row 1: the player is missing"):
        rv.read_rankings(frame)
    with pytest.raises(ValueError, match="game 0: a name is missing; every entry needs one"):
        Rankings.from_lists([["ann", None]])


@pytest.mark.parametrize(
    ("scores", "named"),
    [
        ([[3, 1], [2, 0], [1, 2]], "game 1: 0 is no position among 2 entries"),
        ([[88, 91], [102, 97]], "game 0: 88 is no position among 2 entries"),
        ([[81.25, 80.75, 84.125]], "game 0: 80.75 is no position among 3 entries"),
        ([[-1, 1, 2], [1, 2, 3], [1, 2, 3]], "game 0: -1 is no position among 3 entries"),
    ],
)
def test_scores_in_place_of_positions_are_told(scores: list[list[float]], named: str) -> None:
    game = [g for g, each in enumerate(scores) for _ in each]
    player = ["abc"[k] for each in scores for k in range(len(each))]
    flat = [number for each in scores for number in each]
    sentence = (
        f"{named}; the smallest number is taken for the best, so pass score= (on the command line "
        "--score) where the largest is"
    )
    with pytest.warns(rv.DataWarning, match=f"^{re.escape(sentence)}$"):
        by_position = Rankings.from_columns(game, player, flat)
    # with score= the order is the other one, and nothing is said
    by_score = Rankings.from_columns(game, player, score=flat)
    for g in range(len(scores)):
        assert by_score.game(g)[0] == by_position.game(g)[0][::-1]


def test_positions_in_every_way_of_counting_ties_are_read_quietly() -> None:
    for positions in ([1, 2, 2, 3], [1, 2, 2, 4], [1, 3, 3, 4], [1, 2.5, 2.5, 4], [1, 1, 1, 1]):
        order(list(positions))
    # a few games lack a row
    Rankings.from_columns([1, 1, 2, 2, 3, 3], list("ababab"), [1, 2, 2, 1, 1, 3])


def test_scores_tie_and_take_codes_and_positions_exclude_them() -> None:
    found = Rankings.from_columns([1] * 4, list("abcd"), score=[2, "DNF", 5.5, 2]).game(0)
    assert [team[0] for team in found[0]] == ["c", "a", "d", "b"]
    assert found[1].tolist() == [False, False, True, False]
    for both in (None, [1, 2]):
        with pytest.raises(ValueError, match="give position, where 1 is the best, or score"):
            Rankings.from_columns([1, 1], ["a", "b"], position=both, score=both)
    with pytest.raises(ValueError, match="give position, where 1 is the best, or score"):
        rv.read_rankings("races.csv", position="finish", score="points")
    with pytest.raises(ValueError, match="row 0: the score 'many' is no number or a code"):
        Rankings.from_columns([1, 1], ["a", "b"], score=["many", 2])


def test_players_that_differ_in_case_only_are_told() -> None:
    sentence = "players: 'ann' and 'Ann ' differ only in case or blanks"
    with pytest.warns(rv.DataWarning, match=sentence):
        Rankings.from_lists([["ann", "bob"], ["bob", "Ann "]])
    with pytest.warns(rv.DataWarning, match=sentence):
        Rankings.from_columns([1, 1, 2, 2], ["ann", "bob", "Ann ", "bob"], [1, 2, 1, 2])


SHARED = Path(__file__).parents[3] / "shared" / "data"


@pytest.mark.parametrize(
    ("file", "columns", "games"),
    [
        ("f1_2018_2022.csv", {"game": ["year", "round"], "player": "driver"}, 103),
        ("nascar2002.csv", {"game": ["race"], "player": "driver", "position": "finish"}, 36),
    ],
)
def test_published_results_are_read_quietly(file: str, columns: Any, games: int) -> None:
    if not SHARED.is_dir():
        pytest.skip(f"others' data are not shipped: {SHARED} is not there")
    frame = pd.read_csv(SHARED / file, keep_default_na=False)
    frame["game"] = frame[columns["game"]].astype(str).agg("-".join, axis=1)
    assert len(rv.read_rankings(frame, **{**columns, "game": "game"})) == games


def test_rankings_go_to_other_processes() -> None:
    columns: dict[str, Any] = {"car": ["x", "y", "y", "x"], "grid": [1.0, 2.0, 1.0, 2.0]}
    games = Rankings.from_columns(
        game=[1, 1, 2, 2], player=["ann", "bob"] * 2, position=[1, 2, 2, 1], columns=columns
    )
    found = pickle.loads(pickle.dumps(games))
    assert found.names == games.names
    assert found.columns["car"].tolist() == games.columns["car"].tolist()
    with pytest.raises(TypeError, match="does not support item assignment"):
        found.columns["car"] = None
