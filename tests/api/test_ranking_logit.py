"""What a user of rankings under logit noise meets: predictions, ties, teams, files and refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

import revealed as rv
from revealed.data.rankings import Rankings
from revealed.models.propriety import unbounded_skills, unbounded_team_direction
from revealed.samplers.ranking_hmc import RankingSampler

BRIEF: dict[str, Any] = {"draws": 50, "warmup": 50, "chains": 2, "progress": False}
LOGIT = rv.RankingModel(noise=rv.LogitNoise())
not_converged = pytest.mark.filterwarnings("ignore::revealed.NotConvergedWarning")
SKILL = np.array([1.5, 0.5, 0.0, -0.7, -1.3])


def played(games: int, seed: int = 4) -> Rankings:
    """Games of four with Gumbel noise; in some the second and third tie, in others the last retires."""
    rng, rows = np.random.default_rng(seed), []
    for g in range(games):
        who = rng.permutation(5)[:4]
        order = who[np.argsort(-(SKILL[who] + rng.gumbel(size=4)))]
        places: list[Any] = [1, 2, 2 if g % 3 == 0 else 3, "DNF" if g % 3 == 1 else 4]
        rows += [(g, f"p{p}", place) for p, place in zip(order, places, strict=True)]
    game, player, position = zip(*rows, strict=True)
    return Rankings.from_columns(game, player, position)


@pytest.fixture(scope="module")
def found() -> rv.RankingPosterior:
    made = rv.fit(played(60), LOGIT, progress=False)
    assert isinstance(made, rv.RankingPosterior)
    return made


def test_ties_have_no_margin(found: rv.RankingPosterior) -> None:
    assert found.rankings.has_ties
    assert list(found.draws) == ["skill", "spread"]
    assert [p.name for p in LOGIT.resolve(found.rankings).parameters] == ["skill", "spread"]
    assert found.margin.max() == 0.0
    assert found.columns().names[-1] == "spread of skills"
    assert found.summary().converged
    assert found.table()[0]["player"] == "p0"


def test_two_win_by_the_logistic_of_their_difference(found: rv.RankingPosterior) -> None:
    # predictions take every so many draws
    kept = found.values[:: len(found.values) // 1000]
    p0, p4 = (kept[:, found.names.index(name)] for name in ("p0", "p4"))
    win = found.win_probabilities(["p0", "p4"])
    np.testing.assert_allclose(win, [expit(p0 - p4).mean(), expit(p4 - p0).mean()], rtol=1e-12)
    assert found.probability_better("p0", "p4") == (p0 > p4).mean()


def test_what_is_predicted_adds_up(found: rv.RankingPosterior) -> None:
    """To one also where some tied: of a tie only the order was not seen."""
    line_up = ["p0", "p1", ("p2", "p3"), "somebody new"]
    win = found.win_probabilities(line_up, allow_new_players=True)
    every = found.orderings(line_up, allow_new_players=True)
    assert win.sum() == pytest.approx(1.0, abs=1e-12)
    assert sum(p for _, p in every) == pytest.approx(1.0, abs=1e-12)
    assert sum(p for order, p in every if order[0] == "p0") == pytest.approx(win[0], abs=1e-12)
    tied = Rankings.from_columns([1, 1, 1], ["p0", "p1", "p4"], [1, 1, 3])
    seen = [found.order_probability(order) for order in (["p0", "p1", "p4"], ["p1", "p0", "p4"])]
    assert np.exp(found.log_score(tied)[0]) == pytest.approx(sum(seen), rel=1e-12)


def test_games_are_left_out_and_models_compared(found: rv.RankingPosterior) -> None:
    logs = found.log_likelihood()
    assert logs.shape == (*found.shape, 60)
    assert found.loo().elpd < logs.sum(axis=2).mean()
    wide = rv.fit(found.rankings, LOGIT.replace(prior=rv.Normal(30.0)), progress=False)
    assert rv.compare({"wide": wide, "inferred": found}).models == ("inferred", "wide")


@not_converged
def test_a_tie_is_not_the_same_thing_under_both_noises(found: rv.RankingPosterior) -> None:
    other = rv.fit(found.rankings, rv.RankingModel(), **BRIEF)
    with pytest.raises(ValueError, match="normal and logit take a tie for different things"):
        rv.compare({"normal": other, "logit": found})
    strict = Rankings.from_lists([["a", "b", "c"], ["c", "a", "b"], ["b", "c", "a"]] * 4)
    posts = {"normal": rv.fit(strict, **BRIEF), "logit": rv.fit(strict, LOGIT, **BRIEF)}
    assert len(rv.compare(posts).models) == 2


@not_converged
def test_files_and_pages_hold_everything(tmp_path: Path) -> None:
    made = rv.fit(played(20), LOGIT, **BRIEF)
    made.save(tmp_path / "r.nc")
    again: Any = rv.load(tmp_path / "r.nc")
    assert again.model.noise == rv.LogitNoise()
    for name in made.draws:
        np.testing.assert_array_equal(made.draws[name], again.draws[name])
    line_up = ["p0", "p1", "p2"]
    np.testing.assert_array_equal(made.predict(line_up), again.predict(line_up))
    again.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "its skill plus Gumbel noise (Plackett-Luce)" in page
    assert "the order among those who share a place was not seen" in page
    assert "somebody to whom all orders are equally likely" in page
    assert "margin" not in page.partition("<body>")[2]


def test_a_run_in_pieces_is_the_same_run() -> None:
    sampler = RankingSampler.build(played(30), None, "entry", logit=True)
    ends = []
    for pieces in ([40], [1, 12, 27]):
        rng, left = np.random.default_rng(1), 40
        state = sampler.init(rng, None)
        for piece in pieces:
            state, made = sampler.warmup(rng, state, left, piece)
            left -= made
        ends.append(sampler.sample(rng, state, 4, 2)[1])
    assert list(ends[0]) == ["skill", "spread"]
    for name in ends[0]:
        np.testing.assert_array_equal(ends[0][name], ends[1][name])


@not_converged
@pytest.mark.filterwarnings("ignore::revealed.UnboundedSkillWarning")
def test_noise_of_each_player_is_refused_for_teams() -> None:
    of_player = LOGIT.replace(team_noise="player")
    teams: list[list[Any]] = [[("a", "b"), ("c", "d")], [("c", "b"), ("a", "d")]]
    with pytest.raises(ValueError, match="a sum of Gumbel noises has another law; give team_noise"):
        rv.fit(teams, of_player, **BRIEF)
    alone = [["a", "b"], ["b", "a"]]
    one, two = (rv.fit(alone, model, **BRIEF).draws["skill"] for model in (of_player, LOGIT))
    np.testing.assert_array_equal(one, two)
    assert rv.fit(teams, LOGIT, **BRIEF).draws["skill"].shape == (2, 50, 4)


def test_a_tie_bounds_nobody() -> None:
    """It says that an order was not seen, and the order may have been any."""
    both = Rankings.from_columns([1, 1, 2, 2], ["a", "b"] * 2, [1, 1, 1, 2])
    assert unbounded_skills(both) == []
    assert unbounded_skills(both, ties_bound=False) == [
        "a was never beaten",
        "b never beat anybody",
    ]
    flat = LOGIT.replace(prior=rv.Flat())
    with pytest.raises(ValueError, match="a was never beaten, so there is no posterior"):
        rv.fit(both, flat, **BRIEF)
    only = Rankings.from_columns([1, 1], ["a", "b"], [1, 1])
    with pytest.raises(ValueError, match="no game links a with the others"):
        rv.fit(only, flat, **BRIEF)
    teams = Rankings.from_columns([1] * 3, ["a", "b", "c"], [1, 1, 1], ["x", "x", "y"])
    assert unbounded_team_direction(teams, ties_bound=False) == "+1 a"
    # c is behind both of the first place, ahead of neither; d behind all
    places = Rankings.from_columns(
        [1] * 4 + [2] * 4, list("abcd") * 2, [1, 1, 3, "DNF", 4, 3, 1, 1]
    )
    assert unbounded_skills(places, ties_bound=False) == []
    assert unbounded_skills(places[:1], ties_bound=False) == [
        "a and b were never beaten",
        "d never beat anybody",
    ]
