"""NASCAR's season of 2002 under logit noise: the maximum that choix finds, and the posterior."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import revealed as rv
from revealed._types import Floats
from revealed.data.rankings import Rankings
from revealed.kernels.plackett_luce import LuceGames, log_likelihood
from revealed.models.propriety import unbounded_skills
from revealed.samplers.ranking_hmc import RankingSampler
from tests.support.statistical_asserts import assert_error, assert_scores, must_fail, z_of_mean

NASCAR = Path(__file__).parents[3] / "shared" / "data" / "nascar2002.csv"
pytestmark = pytest.mark.proves(
    model="rankings, logit noise", sampler="ranking-hmc", problem="NASCAR 2002"
)


@pytest.fixture(scope="module")
def season() -> Rankings:
    """36 races of 83 drivers: four were always last, and nothing bounds their skills."""
    if not NASCAR.exists():
        pytest.skip("shared/data/nascar2002.csv is not here; it is looked for beside the project")
    frame = pd.read_csv(NASCAR).sort_values(["race", "finish"])
    final = frame.groupby("race")["finish"].transform("max")
    beat_somebody = set(frame.loc[frame["finish"] < final, "driver"])
    kept = frame[frame["driver"].isin(beat_somebody)]
    return Rankings.from_lists([race["driver"].tolist() for _, race in kept.groupby("race")])


def luce_games(season: Rankings) -> LuceGames:
    games = RankingSampler.build(season, None, "entry", logit=True).games
    assert isinstance(games, LuceGames)
    return games


def test_maximum_is_that_of_choix(season: Rankings) -> None:
    """There every driver was chosen as often as is expected, to a millionth of a choice."""
    if importlib.util.find_spec("choix") is None:
        pytest.skip("choix is not installed; scripts/bench installs it")
    import choix

    assert (len(season), len(season.names), unbounded_skills(season)) == (36, 83, [])
    orders = [
        season.players[a:b].tolist() for a, b in zip(season.start, season.start[1:], strict=False)
    ]
    found = choix.ilsr_rankings(len(season.names), orders)
    games, gradient = luce_games(season), np.empty(len(season.names))
    value = log_likelihood(games, found, gradient)
    assert_error(gradient, 1e-6)
    assert value == pytest.approx(-sum(_log_luce(found[order]) for order in orders), rel=1e-12)
    # the table of Hunter (2004): shares of all strength
    share = np.exp(found) / np.exp(found).sum()
    published = {"PJ Jones": 0.1864, "Scott Pruett": 0.1096, "Mark Martin": 0.0235}
    for name, strength in published.items():
        assert share[season.names.index(name)] == pytest.approx(strength, abs=1e-4)
    with must_fail("the last choice of every race left out of the denominators"):
        log_likelihood(games._replace(n_chosen=games.n_chosen - 1), found, gradient)
        assert_error(gradient, 1e-6)


def _log_luce(utility: Floats) -> float:
    """Minus the log probability of one order, as a sum over places."""
    return float(sum(np.logaddexp.reduce(utility[k:]) - utility[k] for k in range(len(utility))))


def assert_stein(games: LuceGames, draws: Floats) -> None:
    """Under a flat prior draws (n, K) that sum to zero have Stein's two moments.

    With g the gradient of the log-likelihood, E g_k = 0 and E x_k g_k = 1 / K - 1.
    """
    gradients = np.empty_like(draws)
    for skill, gradient in zip(draws, gradients, strict=True):
        log_likelihood(games, skill, gradient)
    moment = 1.0 / draws.shape[1] - 1.0
    scores = [z_of_mean(g, 0.0) for g in gradients.T]
    scores += [z_of_mean(each, moment) for each in (draws * gradients).T]
    assert_scores(scores, false_alarm=1e-6)


def test_posterior_has_the_moments_of_its_gradient(season: Rankings) -> None:
    games, flat = luce_games(season), rv.RankingModel(prior=rv.Flat(), noise=rv.LogitNoise())
    found = rv.fit(season, flat, draws=4000, chains=2, progress=False)
    assert_stein(games, found.values)
    with must_fail("skills a tenth too small"):
        assert_stein(games, 0.9 * found.values)
    with must_fail("a spread that is inferred"):
        inferred = rv.fit(season, flat.replace(prior=None), draws=1000, chains=2, progress=False)
        assert_stein(games, inferred.values)
