"""fit_population: calibrated, for features and for centred blocks; its pieces have their laws; wrong ones are caught."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats as st

import understudy as us
from evidence import assert_mean, assert_uniform_ranks
from problems import choose, mdp_offers, ragged_offers
from understudy._arrays import Floats, Ints
from understudy.decisions import Decisions
from understudy.engines import hierarchy
from understudy.engines.hierarchy import Hierarchy
from understudy.kernels.population import DEGREES, draw_inverse_wishart
from understudy.priors import place

PLAYERS, DRAWS, THIN, WARM = 6, 15, 9, 160  # the slowest autocorrelation time is 4 to 8 iterations
PRIOR, SCALE = us.Gaussian(2.0), 1.0
OFFERS = {
    "features": [ragged_offers(2, 6, seed=i) for i in range(PLAYERS)],
    "states": [mdp_offers(states=3, actions=3, count=6, seed=7) for _ in range(PLAYERS)],
}


def draw_covariance(rng: np.random.Generator, shares: Ints) -> Floats:
    """From its prior."""
    a = (1.0 / SCALE**2) / rng.standard_gamma(0.5, shares.max() + 1)
    return draw_inverse_wishart(rng, DEGREES + len(shares) - 1.0, np.diag(2.0 * DEGREES / a[shares]))


def truth(rng: np.random.Generator, offers: list[Decisions]) -> tuple[list[Decisions], Floats]:
    """Players drawn from a population drawn from its prior, with their choices; and all that was drawn, in a row."""
    placed = place(PRIOR, offers[0])
    mean = placed.draw(rng, 1)[0] @ placed.basis
    covariance = draw_covariance(rng, hierarchy._shares(placed))
    q = mean + rng.standard_normal((len(offers), len(mean))) @ np.linalg.cholesky(covariance).T
    seen = [d.with_choices(choose(rng, d, placed.basis @ each)[0]) for d, each in zip(offers, q, strict=True)]
    return seen, np.concatenate([mean, covariance.ravel(), q.ravel()])


def ranked(x: Floats, width: int) -> Floats:
    """(..., quantities) what is ranked: mean, log sds, correlations, the first player, and the last one's distance."""
    covariance = x[..., width : width + width**2].reshape(*x.shape[:-1], width, width)
    sd = np.sqrt(np.einsum("...kk->...k", covariance))
    first = x[..., width + width**2 :][..., :width]
    apart = ((x[..., -width:] - x[..., :width]) ** 2).sum(axis=-1, keepdims=True)
    return np.concatenate(
        [x[..., :width], sd, covariance[..., 1:, 0] / sd[..., 1:] / sd[..., :1], first, apart], axis=-1
    )


def ranks(problem: str, replications: int, seed: int, scale: float = SCALE) -> Ints:
    """(replications, quantities) ranks of the truth among thinned draws."""
    rng, offers = np.random.default_rng(seed), OFFERS[problem]
    found = []
    for _ in range(replications):
        seen, true = truth(rng, offers)
        engine = Hierarchy.build(seen, place(PRIOR, seen[0]), scale)
        state, _ = engine.warm(rng, engine.start(rng, None), WARM, WARM)
        _, draws, _ = engine.advance(rng, state, DRAWS, THIN)
        found.append((ranked(draws, engine.width) < ranked(true, engine.width)).sum(axis=0))
    return np.array(found)


def check(found: Ints) -> None:
    for k in range(found.shape[1]):
        assert_uniform_ranks(found[:, k], DRAWS, false_alarm=1e-6 / found.shape[1])


@pytest.mark.parametrize("problem", OFFERS)
def test_ranks_are_uniform(problem: str) -> None:
    """The subset that always runs."""
    check(ranks(problem, 96, seed=4))


@pytest.mark.slow
@pytest.mark.parametrize("problem", OFFERS)
def test_ranks_are_uniform_in_the_long_run(problem: str) -> None:
    check(ranks(problem, 1000, seed=5))


def held_tightly(move: Any) -> Any:
    """Players who are drawn towards the population nine times too strongly."""

    def wrong(rng: Any, crowd: Any, low: int, high: int, mean: Any, precision: Any, *rest: Any) -> None:
        move(rng, crowd, low, high, mean, 9.0 * precision, *rest)

    return wrong


def never_refused(_: Any) -> Any:
    """A common move that nobody refuses."""

    def wrong(rng: Any, *rest: Any) -> float:
        mean, _, q = rest[-3:]
        shift = rng.standard_normal(len(mean))
        mean += shift
        q += shift
        return 1.0

    return wrong


MUTANTS = {
    "players held too tightly": ("move_players", held_tightly),
    "a common move that is never refused": ("move_together", never_refused),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_engine_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    part, spoil = MUTANTS[name]
    monkeypatch.setattr(hierarchy, part, spoil(getattr(hierarchy, part)))
    with pytest.raises(AssertionError, match="ranks are not uniform"):
        check(ranks("features", 64, seed=4))


def test_a_wrong_hyperprior_is_caught() -> None:
    with pytest.raises(AssertionError, match="ranks are not uniform"):
        check(ranks("features", 64, seed=4, scale=20.0 * SCALE))


def test_the_prior_is_what_it_says() -> None:
    """Sds are scale times |t| with two degrees of freedom, and correlations uniform."""
    rng = np.random.default_rng(1)
    drawn = np.array([draw_covariance(rng, np.arange(3)) for _ in range(4000)])
    sd = np.sqrt(np.einsum("nkk->nk", drawn))
    for k in range(3):
        assert st.kstest(sd[:, k] / SCALE, lambda t: 1.0 - 2.0 * st.t.sf(t, 2)).pvalue > 1e-6 / 6
        other = (k + 1) % 3
        correlation = drawn[:, k, other] / sd[:, k] / sd[:, other]
        assert st.kstest(correlation, st.uniform(-1, 2).cdf).pvalue > 1e-6 / 6


def test_an_inverse_wishart_has_its_mean() -> None:
    rng = np.random.default_rng(2)
    rate = np.array([[2.0, 0.5], [0.5, 1.0]])
    drawn = np.array([draw_inverse_wishart(rng, 12.0, rate) for _ in range(20_000)])
    for i, j in ((0, 0), (0, 1), (1, 1)):
        assert_mean(drawn[:, i, j], rate[i, j] / (12.0 - 2 - 1), false_alarm=1e-6)
