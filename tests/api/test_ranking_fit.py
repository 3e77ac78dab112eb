"""What a user of a RankingModel meets: tables, predictions, files, open ends, and sentences for what cannot be done."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed.data.rankings import Rankings
from revealed.models.propriety import unbounded_skills, unbounded_team_direction
from revealed.samplers.ranking_hmc import RankingSampler
from tests.support.statistical_asserts import assert_mean

SKILL = np.array([1.5, 0.5, 0.0, -0.7, -1.3])
BRIEF: dict[str, Any] = {"draws": 50, "warmup": 50, "chains": 2}
not_converged = pytest.mark.filterwarnings("ignore::revealed.NotConvergedWarning")
RING = [["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"]]  # everybody beat everybody


def rank(
    results: Any, prior: Any = None, team_noise: str = "entry", **settings: Any
) -> rv.RankingPosterior:
    """Fit a ranking model to the games."""
    model = rv.RankingModel(prior=prior, team_noise=team_noise)
    found = rv.fit(results, model, **{"progress": False, **settings})
    assert isinstance(found, rv.RankingPosterior)
    return found


def played(seed: int, games: int, ties: bool = False) -> Rankings:
    """Games of three; who performs alike to the nearest whole number ties."""
    rng = np.random.default_rng(seed)
    game, player, position = [], [], []
    for g in range(games):
        who = rng.permutation(5)[:3]
        w = SKILL[who] + rng.standard_normal(3)
        rank = (
            np.argsort(np.argsort(-w))
            if not ties
            else np.unique(np.round(-w), return_inverse=True)[1]
        )
        place = rank + 1
        for p, at in zip(who, place, strict=True):
            game.append(f"g{g}")
            player.append(f"p{p}")
            position.append(float(at))
    return Rankings.from_columns(game, player, position)


@pytest.fixture(scope="module")
def found() -> rv.RankingPosterior:
    return rank(played(4, 60))


def test_more_games_say_more(found: rv.RankingPosterior) -> None:
    many = rank(played(3, 200, ties=True), draws=800, warmup=300)
    order = [many.names.index(f"p{k}") for k in range(5)]
    assert np.corrcoef(many.values.mean(axis=0)[order], SKILL)[0, 1] > 0.97
    assert many.values.std(axis=0).mean() < 0.75 * found.values.std(axis=0).mean()
    assert many.table()[0]["player"] == "p0"
    assert many.probability_better("p0", "p4") > 0.999
    assert many.margin.min() > 0.0
    assert found.margin.max() == 0.0
    np.testing.assert_allclose(many.values.sum(axis=1), 0.0, atol=1e-10)
    assert repr(found) == (
        "<RankingPosterior: 4 chains of 1000 draws, 5 players, 60 games, sampler ranking-hmc>"
    )
    shown = str(found)
    assert shown.splitlines()[0].split() == ["skill", "sd", "places", "games"]
    assert shown.splitlines()[1].startswith("p0")


def test_what_a_ranking_foresees_adds_up(found: rv.RankingPosterior) -> None:
    line_up = ["p0", "p1", ("p2", "p3"), "somebody new"]
    win = found.win_probabilities(line_up, allow_new_players=True)
    assert win.sum() == pytest.approx(1.0, abs=1e-6)
    every = found.orderings(line_up, allow_new_players=True)
    assert len(every) == 24
    assert sum(p for _, p in every) == pytest.approx(1.0, abs=1e-6)
    assert sum(p for order, p in every if order[0] == "p0") == pytest.approx(win[0], abs=1e-6)
    assert every[0][1] == max(p for _, p in every)
    assert found.order_probability(every[0][0], allow_new_players=True) == pytest.approx(
        every[0][1], rel=1e-9
    )
    scores = found.log_score(Rankings.from_lists([["p0", "p4"], ["p4", "p0"]]))
    assert np.exp(scores).sum() == pytest.approx(1.0, abs=1e-9)
    np.testing.assert_allclose(np.exp(scores), found.win_probabilities(["p0", "p4"]), rtol=1e-9)


@not_converged
def test_a_stranger_is_anybody() -> None:
    """Against the mean of many allow_new_players, a stranger wins one game in two; and it does not depend on who else stands there."""
    found = rank(played(4, 60), **{**BRIEF, "draws": 1000})
    p = found.win_probabilities(["new", "newer"], allow_new_players=True)
    assert p[0] == pytest.approx(0.5, abs=5.0 * 0.5 / np.sqrt(1000))
    assert found.win_probabilities(["p0", "new"], allow_new_players=True)[0] > 0.6


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (
            lambda f: f.win_probabilities(["p0"]),
            "a line-up needs at least two entries; there are 1",
        ),
        (lambda f: f.win_probabilities(["p0", "p0"]), "p0 stands twice in the line-up"),
        (lambda f: f.win_probabilities(["p0", ()]), "an entry of the line-up has no players"),
        (
            lambda f: f.win_probabilities(["p0", "pp1"]),
            r"'pp1' was in no game \(did you mean 'p1'\?\); pass allow_new_players=True",
        ),
        (
            lambda f: f.order_probability(["p0", "zebra"]),
            "'zebra' was in no game; pass allow_new_players=True",
        ),
        (lambda f: f.log_score(Rankings.from_lists([["p0", "zebra"]])), "'zebra' was in no game"),
        (lambda f: f.probability_better("p0", "zebra"), "'zebra' was in no game"),
        (
            lambda f: f.orderings(list("abcdefg")),
            "7 entries have 5040 orderings; they are listed for up to 6",
        ),
    ],
)
def test_bad_line_ups_get_a_sentence(found: rv.RankingPosterior, ask: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        ask(found)


def test_nothing_is_known_of_a_stranger_under_a_flat_prior() -> None:
    found = rank(RING * 20, rv.Flat(), draws=400)
    assert np.isinf(found.spread).all()
    assert found.win_probabilities(["a", "b", "c"]) == pytest.approx([1 / 3] * 3, abs=0.1)
    with pytest.raises(ValueError, match="under a flat prior nothing is known of 'd'"):
        found.win_probabilities(["a", "d"], allow_new_players=True)


def test_a_wide_prior_is_nearly_flat() -> None:
    flat, wide = (
        rank(RING * 20 + [["a", "b"]] * 10, prior, draws=800)
        for prior in (rv.Flat(), rv.Normal(50.0))
    )
    for k in range(3):
        assert_mean(flat.draws["skill"][:, :, k] - wide.draws["skill"][:, :, k], 0.0, 1e-6 / 6)
        assert_mean(
            flat.draws["skill"][:, :, k] ** 2 - wide.draws["skill"][:, :, k] ** 2, 0.0, 1e-6 / 6
        )


@not_converged
@pytest.mark.parametrize("ties", [False, True])
def test_files_hold_everything(tmp_path: Path, ties: bool) -> None:
    found = rank(played(5, 30, ties), team_noise="player", **BRIEF)
    found.save(tmp_path / "r.nc")
    again = rv.load(tmp_path / "r.nc")
    assert isinstance(again, rv.RankingPosterior)
    assert isinstance(again.model, rv.RankingModel)
    assert list(found.draws) == list(again.draws) == ["skill", "spread", *["margin"] * ties]
    for name in found.draws:
        np.testing.assert_array_equal(found.draws[name], again.draws[name])
    for name in ("spread", "margin"):
        np.testing.assert_array_equal(getattr(found, name), getattr(again, name))
    for name in ("players", "member_start", "start", "tied", "n_ordered"):
        np.testing.assert_array_equal(getattr(found.rankings, name), getattr(again.rankings, name))
    assert (again.names, again.rankings.ids, again.model.team_noise, again.settings) == (
        found.names,
        found.rankings.ids,
        "player",
        found.settings,
    )
    np.testing.assert_array_equal(
        again.sample_stats["acceptance_rate"], found.sample_stats["acceptance_rate"]
    )
    np.testing.assert_array_equal(
        again.win_probabilities(["p0", "p1"]), found.win_probabilities(["p0", "p1"])
    )
    assert repr(again) == repr(found)


@not_converged
def test_arviz_reads_a_ranking() -> None:
    found = rank(played(5, 20), **BRIEF)
    data = found.to_arviz(log_likelihood=True)
    assert data["posterior"]["skill"].dims == ("chain", "draw", "player")
    assert data["posterior"]["skill"].sel(player="p0").shape == (2, 50)
    seen = np.asarray(data["log_likelihood"]["order"])
    exact = np.log(np.exp(seen).mean(axis=(0, 1)))
    np.testing.assert_allclose(exact, found.log_score(found.rankings), rtol=1e-9)


@not_converged
def test_one_function_reads_them_all_and_refuses_what_is_damaged(tmp_path: Path) -> None:
    rank(RING, **BRIEF).save(tmp_path / "r.nc")
    assert isinstance(rv.load(tmp_path / "r.nc"), rv.RankingPosterior)
    d = rv.Decisions(np.eye(2), [0, 2], [0])
    model = rv.ChoiceModel(prior=rv.Normal(1.0))
    rv.ChoicePosterior({"value": np.zeros((1, 4, 2))}, d, model, "da").save(tmp_path / "p.nc")
    assert isinstance(rv.load(tmp_path / "p.nc"), rv.ChoicePosterior)
    (tmp_path / "r.nc").write_bytes((tmp_path / "r.nc").read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"r\.nc is damaged or cut short"):
        rv.load(tmp_path / "r.nc")
    with pytest.raises(ValueError, match="there is no file"):
        rv.load(tmp_path / "none.nc")


def test_a_run_in_pieces_is_the_same_run() -> None:
    sampler = RankingSampler.build(played(5, 30, ties=True), None, "entry")
    ends = []
    for pieces in ([40], [1, 12, 27]):
        rng, left = np.random.default_rng(1), 40
        state = sampler.init(rng, None)
        for piece in pieces:
            state, made = sampler.warmup(rng, state, left, piece)
            left -= made
        assert left == 0
        first, _, _ = sampler.sample(rng, state, 3, 1)
        ends.append(sampler.sample(rng, first, 4, 2)[1])
    assert list(ends[0]) == list(ends[1]) == ["skill", "spread", "margin"]
    for name in ends[0]:
        np.testing.assert_array_equal(ends[0][name], ends[1][name])


@not_converged
def test_tables_and_files_are_ranked_alike(tmp_path: Path) -> None:
    import pyarrow as pa

    rows = {
        "race": [1, 1, 1, 2, 2, 2],
        "who": ["a", "b", "c", "b", "a", "c"],
        "finish": ["1", "2", "DNF", "2", "3", "1"],
    }
    names: dict[str, Any] = {"game": "race", "player": "who", "position": "finish"}
    (tmp_path / "r.csv").write_text("race,who,finish\n1,a,1\n1,b,2\n1,c,DNF\n2,b,2\n2,a,3\n2,c,1\n")
    of_table = rank(rv.read_rankings(pa.table(rows), **names), **BRIEF)
    of_file = rank(rv.read_rankings(tmp_path / "r.csv", **names), **BRIEF)
    np.testing.assert_array_equal(of_table.draws["skill"], of_file.draws["skill"])
    assert of_file.rankings.n_ordered.tolist() == [2, 3]
    with pytest.raises(ValueError, match="no column 'position'"):
        rv.read_rankings(pa.table(rows), game="race", player="who")
    # a table whose columns have the usual names is data as it is
    usual = pa.table({"game": rows["race"], "player": rows["who"], "position": rows["finish"]})
    np.testing.assert_array_equal(rank(usual, **BRIEF).draws["skill"], of_file.draws["skill"])
    (tmp_path / "u.csv").write_text(
        (tmp_path / "r.csv").read_text().replace("race,who,finish", "game,player,position")
    )
    of_path = rank(tmp_path / "u.csv", **BRIEF)
    np.testing.assert_array_equal(of_path.draws["skill"], of_file.draws["skill"])
    assert of_path.rankings.ids == of_file.rankings.ids


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"team_noise": "none"}, "team_noise must be one of entry, player; it is 'none'"),
        (
            {"prior": rv.Normal(-1.0)},
            "the prior sd of skills must be a positive number; it is -1",
        ),
        (
            {"prior": rv.Normal(covariance=[1.0, 2.0])},
            r"must be rv.Normal\(sd\) with one number, or rv.Flat",
        ),
        (
            {"prior": rv.Normal(1.0, mean=3.0)},
            r"must be rv.Normal\(sd\) with one number, or rv.Flat",
        ),
        ({"prior": 2.0}, r"must be rv.Normal\(sd\) with one number, or rv.Flat"),
        ({"draws": 0}, "draws must be a whole number, at least 1"),
        ({"init": [0.0, 0.0, 0.0]}, 'the sampler "ranking-hmc" has no use for init'),
        ({"options": {"a": 1}}, 'the sampler "ranking-hmc" has no use for options'),
        ({"sampler": "da"}, 'the sampler "da" is for .* this model has rankings'),
    ],
)
def test_bad_arguments_get_a_sentence(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        rank(RING, progress=False, **arguments)


# What games leave open

OPEN = {
    "a champion": ([*RING, ["x", "a"]], "x was never beaten"),
    "a beginner": ([*RING, ["a", "x"], ["b", "y"]], "x and y never beat anybody"),
    "two leagues": (
        [*RING, ["x", "y"], ["y", "x"]],
        "no game links x and y with the others, directly or through others",
    ),
    "a division above": (
        [*RING, ["x", "y"], ["y", "x"], ["x", "a"]],
        "x and y were never beaten by others",
    ),
    "a division below": (
        [*RING, ["x", "y"], ["y", "x"], ["a", "x"]],
        "x and y never beat anybody else",
    ),
    "many champions": (
        [*RING, *([name, "a"] for name in "vwxyz")],
        "v, w, x and 2 more were never beaten",
    ),
}


@pytest.mark.parametrize("what", OPEN)
def test_a_flat_prior_is_refused_where_games_leave_something_open(what: str) -> None:
    games, sentence = OPEN[what]
    assert unbounded_skills(Rankings.from_lists(games))[0] == sentence
    with pytest.raises(
        ValueError, match=f"^{sentence}, so there is no posterior under a flat prior"
    ):
        rank(games, rv.Flat(), **BRIEF)


@not_converged
@pytest.mark.parametrize("what", OPEN)
def test_a_proper_prior_warns_of_it(what: str) -> None:
    games, sentence = OPEN[what]
    with pytest.warns(rv.UnboundedSkillWarning, match=f"^{sentence}[:;].* the prior alone"):
        rank(games, rv.Normal(1.0), **BRIEF)


@not_converged
def test_a_player_without_games_is_named() -> None:
    some = Rankings.from_lists([["x", "a"], *RING])[1:]
    with pytest.raises(ValueError, match=r"^x took part in no game, so there is no posterior"):
        rank(some, rv.Flat(), **BRIEF)
    with pytest.warns(
        rv.UnboundedSkillWarning, match=r"^x took part in no game: there the prior alone"
    ):
        rank(some, **BRIEF)


def test_ties_and_retirements_count_as_limits() -> None:
    assert unbounded_skills(Rankings.from_columns([1, 1], ["a", "b"], [1, 1])) == []
    last = Rankings.from_columns(
        [1, 1, 1, 2, 2], ["a", "b", "c", "c", "b"], [1, "DNF", "DNF", 1, 2]
    )
    assert unbounded_skills(last) == ["a was never beaten", "b never beat anybody"]


def test_teams_that_leave_a_direction_open_are_refused() -> None:
    """a and b always play together: no game tells them apart; and x and y together are never beaten."""
    games: list[list[Any]] = [[("a", "b"), ("x", "y")], [("x", "y"), ("a", "b")]]
    with pytest.raises(
        ValueError, match=r"no game contradicts the direction \(.*\), so there is no posterior"
    ):
        rank(games, rv.Flat(), **BRIEF)
    pairs = list(itertools.permutations([("a", "b"), ("a", "x"), ("b", "x"), ("y", "z")], 2))
    both: list[list[Any]] = [list(pair) for pair in pairs if not set(pair[0]) & set(pair[1])]
    singles: list[list[Any]] = [[one, two] for one, two in itertools.permutations("abxyz", 2)]
    assert unbounded_team_direction(Rankings.from_lists(both + singles)) is None
    assert (
        unbounded_team_direction(
            Rankings.from_lists([["a", ("b", "c")], [("b", "c"), "a"], ["b", "c"]])
        )
        is not None
    )
