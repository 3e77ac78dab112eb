"""Skills go on from earlier draws: the posterior is that of a fit to all games."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats as st

import revealed as rv
from revealed.models.skill_paths import ResolvedSkillPaths
from revealed.results.dated_ranking import of_players_met
from revealed.samplers.skill_paths import skill_data
from revealed.samplers.skill_update import skill_noise, skill_theta
from tests.support.statistical_asserts import must_fail, record_check

SEEN, DATES = 18, 22
MODEL = rv.RankingModel(prior=rv.Normal(1.0), noise=rv.LogitNoise(), over_time=rv.RandomWalk(0.4))
INFERRED = MODEL.replace(prior=None, over_time=rv.RandomWalk())


@cache
def some_games() -> rv.Rankings:
    """Six players on 22 dates, two games each; the last of them comes on the 20th."""
    rng = np.random.default_rng(3)
    skill = np.cumsum(rng.normal(0.0, 0.4, (DATES, 6)), axis=0) + rng.normal(0.0, 1.0, 6)
    skill[:, 5] = 1.0
    lists, times = [], []
    for date in np.repeat(np.arange(DATES), 2):
        who = rng.permutation(6 if date >= SEEN + 2 else 5)[:4]
        order = np.argsort(-skill[date, who] - rng.gumbel(size=4))
        lists.append([f"p{k}" for k in who[order]])
        times.append(float(date))
    return rv.Rankings.from_lists(lists, times=times)


@cache
def fresh(model: rv.RankingModel) -> Any:
    return rv.fit(some_games(), model, draws=2000, seed=2)


@cache
def earlier(model: rv.RankingModel) -> Any:
    return rv.fit(of_players_met(some_games()[: 2 * SEEN]), model, draws=2000, seed=1)


def check_agreement(one: Any, other: Any, false_alarm: float = 1e-6) -> None:
    """Means of skills and of the logs of sizes agree within the Monte-Carlo error of both."""
    wanted = [(0.0, "p0"), (SEEN - 1.0, "p1"), (DATES - 1.0, "p2"), (DATES - 1.0, "p5")]
    pairs = [tuple(p.skills_at([t], [k])[:, 0, 0] for p in (one, other)) for t, k in wanted]
    for name in ("drift_sd", "spread"):
        if name in one.draws:
            pairs.append(tuple(np.log(p.stacked(name)[:, 0]) for p in (one, other)))
    for a, b in pairs:
        # 10 batches a chain of both: about normal, with few degrees of freedom
        means = [x.reshape(40, -1).mean(axis=1) for x in (a, b)]
        z, p = st.ttest_ind(*means, equal_var=False)
        record_check(p > false_alarm / len(pairs), f"z is {z:.2f}", z=float(z))


@pytest.mark.parametrize("model", [MODEL, INFERRED], ids=["known sizes", "inferred sizes"])
def test_update_agrees_with_a_fit_to_all_games(model: rv.RankingModel) -> None:
    updated = earlier(model).update(some_games()[2 * SEEN :], draws=1000, seed=3)
    every = fresh(model)
    assert set(updated.names) == set(every.names)
    assert updated.draws["skill"].shape[2:] == every.draws["skill"].shape[2:]
    check_agreement(updated, every)
    if model is MODEL:
        # the last player was not there: he would be drawn from the population
        with must_fail("the new games are forgotten"):
            one = earlier(model).skills_at([DATES - 1.0], ["p2"])[:, 0, 0]
            other = every.skills_at([DATES - 1.0], ["p2"])[:, 0, 0]
            z, p = st.ttest_ind(*(x.reshape(40, -1).mean(axis=1) for x in (one, other)))
            record_check(p > 1e-6, f"z is {z:.2f}", z=float(z))


def test_the_result_is_a_posterior_like_any_other(tmp_path: Path) -> None:
    games, first = some_games(), earlier(MODEL)
    found = first.update(games[2 * SEEN : 2 * SEEN + 2])
    again = first.update(games[2 * SEEN : 2 * SEEN + 2])
    np.testing.assert_array_equal(found.draws["skill"], again.draws["skill"])
    assert found.settings["updated"] == 2
    # and can be updated itself, stored and loaded
    found.save(tmp_path / "more.nc")
    loaded: Any = rv.load(tmp_path / "more.nc")
    more = loaded.update(games[2 * SEEN + 2 :], draws=20)
    assert more.shape == (4, 20)
    assert len(more.times) == DATES
    walk = rv.walk_forward(
        games, MODEL, first=SEEN, every=2, update=True, draws=100, warmup=50, baselines=[]
    )
    assert len(walk.refits.seconds) == 2


def test_coordinates_are_those_that_draws_came_from() -> None:
    """The map from coordinates to names, turned round: margin, coefficient, mean of newcomers."""
    games = rv.Rankings.from_columns(
        game=[0, 0, 1, 1],
        player=["ann", "bob", "ann", "cid"],
        position=[1, 2, 1, 1],
        time=[0, 0, 1, 1],
        columns={"grid": [1, 2, 1, 2]},
    )
    model = rv.RankingModel(
        over_time=rv.RandomWalk(),
        covariates=["grid"],
        covariate_prior=rv.Normal(2.0),
        newcomer_prior=rv.Normal(3.0),
    )
    paths: Any = model.resolve(games).paths
    assert isinstance(paths, ResolvedSkillPaths)
    assert paths.newcomer.tolist() == [False, False, False, True]
    np.testing.assert_array_equal(paths.newcomers, [0.0, 0.0, 0.0, 1.0])
    data = skill_data(games, paths, "entry", logit=False)
    rng = np.random.default_rng(4)
    z = rng.standard_normal((2, 50, 3))
    # a margin is half-normal: its coordinate has the same probability to lie below
    half = st.halfnorm(scale=data.margin_sd).ppf(st.norm.cdf(z[..., 0]))
    draws = {
        "skill": np.zeros((2, 50, 4)),
        "margin": half,
        "coefficient": 2.0 * z[..., 1:2],
        "newcomer_mean": 3.0 * z[..., 2],
        "drift_sd": np.exp(rng.standard_normal((2, 50, 1))),
        "spread": np.exp(rng.standard_normal((2, 50, 1))),
    }
    np.testing.assert_allclose(skill_noise(paths, data, draws), z, atol=1e-6)
    named = [np.log(draws["drift_sd"]), np.log(draws["spread"])]
    np.testing.assert_allclose(skill_theta(paths, draws), np.concatenate(named, axis=2))


def test_refused() -> None:
    games, first = some_games(), earlier(MODEL)
    with pytest.raises(ValueError, match="update takes games that came later"):
        first.update(games[:2])
    with pytest.raises(ValueError, match="update takes Rankings with times"):
        first.update(rv.Rankings.from_lists([["p0", "p1"]]))
    with pytest.raises(ValueError, match="update=True goes with values and skills that drift"):
        rv.walk_forward(games, rv.RankingModel(), first=SEEN, every=2, update=True)
