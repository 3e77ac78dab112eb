"""Rankings over time: what is said of dates, new players, and what else games depend on."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import revealed as rv
from tests.support.statistical_asserts import assert_scores

SHAPE = (2, 40)


def seasons() -> rv.Rankings:
    """Five races of three on four dates; cid begins on the second, and each has a car."""
    return rv.Rankings.from_columns(
        game=[0, 0, 1, 1, 1, 2, 2, 3, 3, 3],
        player=["ann", "bob", "bob", "ann", "cid", "ann", "cid", "cid", "bob", "ann"],
        position=[1, 2, 1, 2, 3, 1, 2, 1, 2, 3],
        time=[0, 0, 1, 1, 1, 3, 3, 4, 4, 4],
        columns={"car": list("xyxyyxyxyx"), "grid": [1, 2, 1, 2, 3, 2, 1, 3, 2, 1]},
    )


@cache
def posterior(cars: bool = False) -> Any:
    """Draws that no sampler made."""
    more: dict[str, Any] = {"components": ["player", "car"], "covariates": ["grid"]} if cars else {}
    model = rv.RankingModel(noise=rv.LogitNoise(), over_time=rv.RandomWalk(), **more)
    rng = np.random.default_rng(1)
    parameters = model.resolve(seasons()).parameters
    draws = {p.name: np.abs(rng.standard_normal((*SHAPE, *p.shape))) for p in parameters}
    return rv.RankingPathPosterior(draws, seasons(), model, "any", {}, {"complete": True})


def test_newcomers_have_a_mean_of_their_own(tmp_path: Any) -> None:
    """Twenty players are there from the beginning; twenty weaker ones come later."""
    rng = np.random.default_rng(0)
    begins = np.where(np.arange(40) < 20, 0, rng.integers(1, 15, 40))
    skill = rng.normal(0.0, 0.7, 40) - 1.5 * (begins > 0)
    lists, times = [], []
    for date in np.repeat(np.arange(20), 12):
        who = rng.choice(np.flatnonzero(begins <= date), 4, replace=False)
        lists.append([f"p{k}" for k in who[np.argsort(-skill[who] - rng.gumbel(size=4))]])
        times.append(date)
    games = rv.Rankings.from_lists(lists, times=times)
    model = rv.RankingModel(
        noise=rv.LogitNoise(), over_time=rv.RandomWalk(), newcomer_prior=rv.Normal(1.0)
    )
    post: Any = rv.fit(games, model, draws=1000, seed=1, progress=False)
    late, early = (np.mean(skill[own]) for own in (begins > 0, begins == 0))
    # of twenty players each side; the posterior has an sd of about .2
    mean, sd = float(post.mean("newcomer_mean")), float(post.sd("newcomer_mean"))
    assert abs(mean - (late - early)) < 4.5 * sd
    assert mean < -3.0 * sd
    # the mean is in the skills of newcomers, and in what is drawn for one who was never seen
    two = ["p0", "p1", "new"]
    without = rv.fit(games, model.replace(newcomer_prior=None), seed=1, progress=False)
    chances = [p.win_probabilities(two, allow_new_players=True)[2] for p in (post, without)]
    assert chances[0] < 0.7 * chances[1]
    post.save(tmp_path / "r.nc")
    again: Any = rv.load(tmp_path / "r.nc")
    assert again.model.newcomer_prior.sd == 1.0
    np.testing.assert_array_equal(
        again.win_probabilities(two, allow_new_players=True),
        post.win_probabilities(two, allow_new_players=True),
    )
    with pytest.raises(ValueError, match="random walks"):
        rv.RankingModel(over_time=rv.MeanReverting(), newcomer_prior=rv.Normal(1.0))
    with pytest.raises(ValueError, match="a flat prior is one of skills that do not change"):
        rv.RankingModel(over_time=rv.RandomWalk(), newcomer_prior=rv.Flat())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="leave covariates and newcomer_prior out"):
        rv.SkillFilter(games, model)


def test_columns_stay_with_their_players() -> None:
    games = seasons()
    assert games.columns["car"].tolist() == list("xyxyyxyxyx")
    assert games.take([2, 0]).columns["grid"].tolist() == [2.0, 1.0, 1.0, 2.0]
    assert (games + games).columns["car"].tolist() == list("xyxyyxyxyx") * 2
    with pytest.raises(ValueError, match="both sides must have the same columns"):
        games + rv.Rankings.from_lists([["ann", "bob"]], times=[5])
    with pytest.raises(ValueError, match="the column car has shape"):
        replace(games, columns={"car": ["x"]})  # type: ignore[dict-item]


def test_files_keep_components_and_columns(tmp_path: Any) -> None:
    post = posterior(cars=True)
    post.save(tmp_path / "r.nc")
    again: Any = rv.load(tmp_path / "r.nc")
    assert again.model.components == ("player", "car")
    assert again.model.covariates == ("grid",)
    assert again.rankings.columns["car"].tolist() == list("xyxyyxyxyx")
    assert np.array_equal(again.draws["skill"], post.draws["skill"])
    assert np.array_equal(again.log_likelihood(), post.log_likelihood())


def test_skills_are_those_of_nodes_and_spread_after_them() -> None:
    post = posterior()
    at = post.skills_at([0.0, 1.0, 2.0, 4.0, 104.0], ["ann", "cid"])
    ann, cid = (post.stacked("skill")[:, post.path_of(name)] for name in ("ann", "cid"))
    assert np.array_equal(at[:, 0, 0], ann[:, 0])
    assert np.array_equal(at[:, 3, 0], ann[:, 3])
    assert np.isnan(at[:, 0, 1]).all()
    assert np.array_equal(at[:, 1, 1], cid[:, 0])
    # after the last game by a hundred units of time
    steps = (at[:, 4, 0] - at[:, 3, 0]) / (10.0 * post.drifts[:, 0])
    assert 0.7 < steps.std() < 1.3
    assert post.at(0.5).names == ("ann", "bob")
    assert {line["player"] for line in post.table()} == {"ann", "bob", "cid"}
    with pytest.raises(ValueError, match="nobody had played by -1"):
        post.at(-1.0)
    with pytest.raises(ValueError, match="'dan' was in no game"):
        post.skills_at(1.0, "dan")


def test_skills_that_revert_forget_where_they_were() -> None:
    model = rv.RankingModel(noise=rv.LogitNoise(), over_time=rv.MeanReverting(rate=0.5))
    assert [p.name for p in model.resolve(seasons()).parameters] == ["skill", "spread"]
    rng, shape = np.random.default_rng(2), (2, 2000)
    parameters = model.resolve(seasons()).parameters
    draws = {p.name: rng.standard_normal((*shape, *p.shape)) for p in parameters}
    draws["spread"] = np.full_like(draws["spread"], 1.5)
    post = rv.RankingPathPosterior(draws, seasons(), model, "any", {}, {"complete": True})
    decay = np.exp(-0.5 * 3.0)
    then, later = (post.skills_at(t, "ann")[:, 0, 0] for t in (4.0, 7.0))
    # three units after the last game: what is left of it, and the spread again in the long run
    left = later - decay * then
    error = 1.0 / np.sqrt(len(left))
    assert_scores(np.array([left.mean() / (1.5 * error)]), degrees=np.inf, how="law")
    spread = np.log(left.std() / (1.5 * np.sqrt(1.0 - decay**2))) / (np.sqrt(0.5) * error)
    assert_scores(np.array([spread]), degrees=np.inf, how="law")
    drift = 1.5 * np.sqrt(1.0 - np.exp(-1.0))
    np.testing.assert_allclose(post.drift_sd, drift)


def test_skills_refuse_parts_that_they_have_no_use_for() -> None:
    for over_time, sentence in (
        (rv.MeanReverting(sd=1.0), "leave sd out, and give prior=rv.Normal"),
        (rv.MeanReverting(rate=[1.0, 2.0]), "rate has 2 numbers, and there are 1 components"),
        (rv.MeanReverting(shared=True), "leave shared out"),
        (rv.RandomWalk(between_sessions=1.0), "games have no sessions"),
    ):
        model = rv.RankingModel(over_time=over_time)
        with pytest.raises(ValueError, match=re.escape(sentence)):
            model.resolve(seasons())


def test_leaders_are_among_those_who_play() -> None:
    times, shares = posterior().leaders()
    assert times.tolist() == [0.0, 1.0, 3.0, 4.0]
    assert np.allclose(shares.sum(axis=1), 1.0)
    assert shares[0, posterior().names.index("cid")] == 0.0


def test_games_depend_on_cars_and_grid() -> None:
    post = posterior(cars=True)
    with pytest.raises(ValueError, match="a game depends on car, grid too"):
        post.win_probabilities(["ann", "bob"])
    with pytest.raises(ValueError, match="nothing in this model depends on tyre"):
        post.win_probabilities(["ann", "bob"], columns={"car": "xy", "grid": [1, 2], "tyre": "ab"})
    given = {"car": ["x", "new"], "grid": [1, 2]}
    found = post.win_probabilities(["ann", "bob"], columns=given, at=9)
    assert found.sum() == pytest.approx(1.0)
    # all coefficients are positive here: further up is better
    other = post.win_probabilities(["ann", "bob"], columns=given | {"grid": [2, 1]}, at=9)
    assert other[0] > found[0]
    # what was seen is foretold at its own date as its likelihood says
    score = post.log_score(seasons())
    logs = post.log_likelihood().reshape(-1, 4)
    assert score == pytest.approx(np.log(np.exp(logs).mean(axis=0)))
    assert posterior().log_score(seasons()).shape == (4,)
    with pytest.raises(ValueError, match="give the games"):
        posterior().log_score(rv.Rankings.from_lists([["ann", "bob"]]))


def test_components_and_covariates_are_checked() -> None:
    walk = rv.RandomWalk()
    for more, words in (
        ({"components": ["car"]}, "components must begin with"),
        ({"components": "player"}, "components must be a list of names"),
        ({"covariate_prior": rv.Normal(1.0)}, "there are no covariates"),
    ):
        with pytest.raises(ValueError, match=words):
            rv.RankingModel(over_time=walk, **more)
    with pytest.raises(ValueError, match="are for skills that change"):
        rv.RankingModel(components=["player", "car"])
    with pytest.raises(ValueError, match="needs the column 'tyre'"):
        rv.RankingModel(over_time=walk, components=["player", "tyre"]).resolve(seasons())
    with pytest.raises(ValueError, match="needs a column of numbers"):
        rv.RankingModel(over_time=walk, covariates=["car"]).resolve(seasons())
    surface = rv.RankingModel(over_time=walk, components=["player", "player*car"])
    found: Any = surface.resolve(seasons())
    assert "ann / x" in found.paths.nodes.labels[1]
