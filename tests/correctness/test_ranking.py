"""Skills inferred from rankings: wrong samplers are caught, and probits agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed.data.decisions import Decisions
from revealed.data.rankings import Rankings
from revealed.samplers import ranking_hmc
from revealed.samplers.ranking_hmc import RankingSampler
from tests.conformance.oracles import assert_moments, find_oracle
from tests.support.cases import warmed_up_draws
from tests.support.statistical_asserts import (
    assert_mean,
    must_fail,
    patched_source,
)

pytestmark = pytest.mark.proves(model="rankings", sampler="ranking-hmc")
Build = Callable[..., RankingSampler]


def assert_exact(build: Build, name: str, prior: str, draws: int = 16_000) -> None:
    """The sampler that this function builds has an exact posterior's moments."""
    oracle = find_oracle(name, prior)
    spread = None if prior == "inferred sd" else 1.5
    sampler = build(oracle.data, spread, "entry")
    made, _ = warmed_up_draws(np.random.default_rng(1), sampler, 300, draws)
    assert_moments(oracle.columns(made), oracle.exact())


def build_with_ties_as_wins(rankings: Rankings, *arguments: Any) -> RankingSampler:
    """A mutant: of those who tied, the first is taken to have won."""
    sampler = RankingSampler.build(rankings, *arguments)
    return RankingSampler(
        rankings, sampler.games._replace(tied=np.zeros_like(rankings.tied)), sampler.prior
    )


MUTANTS: dict[str, Build] = {
    "no Jacobian of the spread": patched_source(
        ranking_hmc, "(1.0 - k) * log_spread", "(0.0 - k) * log_spread"
    ).RankingSampler.build,
    "ties taken for wins": build_with_ties_as_wins,
}


@pytest.mark.parametrize("name", MUTANTS)
def test_wrong_sampler_is_caught_by_the_grid(name: str) -> None:
    with must_fail(name):
        assert_exact(MUTANTS[name], "pairs with ties", "inferred sd")


def build_with_successive_choices(rankings: Rankings, *arguments: Any) -> RankingSampler:
    """A mutant: a ranking taken for successive choices, each with noise of its own."""
    games = [[names for (names,) in rankings.game(g)[0]] for g in range(len(rankings))]
    return RankingSampler.build(
        Rankings.from_lists(
            [game[k:] for game in games for k in range(len(game) - 1)], winner_only=True
        ),
        *arguments,
    )


def test_rankings_split_into_choices_are_caught_by_the_grid() -> None:
    with must_fail("rankings split into successive choices"):
        # a small mistake: in 16,000 draws it is seen with some seeds only
        assert_exact(build_with_successive_choices, "three players", "normal", 60_000)


def test_posterior_with_known_spread_is_that_of_a_probit() -> None:
    """Teams of one and of two: a probit whose rows are sums of players, for the default sampler."""
    games: list[list[Any]] = (
        [["a", ("b", "c")]] * 4
        + [[("b", "c"), "a"]] * 2
        + [["b", "c"]] * 3
        + [["c", "b"], [("a", "c"), "b"]]
    )
    games.append(["b", ("a", "c")])
    found = rv.fit(
        games, rv.RankingModel(prior=rv.Normal(1.5)), draws=4000, chains=2, progress=False
    )
    place = {"a": 0, "b": 1, "c": 2}
    rows = np.zeros((2 * 12, 3))
    for e, entry in enumerate(entry for game in games for entry in game):
        rows[e, [place[name] for name in entry]] = 1.0
    d = Decisions(rows, np.arange(0, 25, 2), [0] * 12, names=["a", "b", "c"])
    post = rv.fit(d, rv.ChoiceModel(prior=rv.Normal(1.5)), draws=20_000, progress=False)
    for name in place:
        k = found.names.index(name)
        assert_mean(found.draws["skill"][:, :, k], post[name].mean(), 1e-6, how="agreement")
        assert_mean(
            found.draws["skill"][:, :, k] ** 2, (post[name] ** 2).mean(), 1e-6, how="agreement"
        )
