"""fit_population: calibrated, for features and for centred blocks; its pieces have their laws; wrong ones are caught."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats as st
from scipy.special import digamma

import understudy as us
from evidence import assert_law, assert_mean, assert_uniform_ranks, caught, judge, mutant
from problems import choose, mdp_offers, ragged_offers, warm_draws
from understudy._arrays import Floats, Ints
from understudy.decisions import Decisions
from understudy.engines import hierarchy
from understudy.engines.hierarchy import Hierarchy
from understudy.engines.together import Moved
from understudy.kernels.crowd import move_players
from understudy.kernels.population import DEGREES, draw_inverse_wishart
from understudy.priors import place

pytestmark = pytest.mark.proves(model="population", engine="hierarchy")
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


def build(each: list[Decisions], scale: float) -> Hierarchy:
    """The engine for these players' decisions."""
    whole = each[0]
    for more in each[1:]:
        whole = whole + more
    owner = np.repeat(np.arange(len(each)), [len(d) for d in each])
    return Hierarchy.build(whole, owner, place(PRIOR, whole), scale, threads=1)


def ranks(problem: str, replications: int, seed: int, scale: float = SCALE) -> Ints:
    """(replications, quantities) ranks of the truth among thinned draws."""
    rng, offers = np.random.default_rng(seed), OFFERS[problem]
    found = []
    for _ in range(replications):
        seen, true = truth(rng, offers)
        engine = build(seen, scale)
        draws, _ = warm_draws(rng, engine, WARM, DRAWS, THIN)
        found.append((ranked(draws, engine.width) < ranked(true, engine.width)).sum(axis=0))
    return np.array(found)


@pytest.mark.parametrize("problem", OFFERS)
def test_ranks_are_uniform(problem: str) -> None:
    """The subset that always runs."""
    assert_uniform_ranks(ranks(problem, 64, seed=4), DRAWS, false_alarm=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("problem", OFFERS)
def test_ranks_are_uniform_in_the_long_run(problem: str) -> None:
    assert_uniform_ranks(ranks(problem, 1000, seed=5), DRAWS, false_alarm=1e-6)


def held_tightly(move: Any) -> Any:
    """Players who are drawn towards the population a hundred times too strongly."""

    def wrong(rng: Any, crowd: Any, mean: Any, root: Any, precision: Any, *rest: Any) -> None:
        move(rng, crowd, mean, root, 100.0 * precision, *rest)

    return wrong


def test_players_held_too_tightly_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hierarchy, "move_players", held_tightly(move_players))
    with caught("players held too tightly"):
        assert_uniform_ranks(ranks("features", 48, seed=4), DRAWS, false_alarm=1e-6)


def test_a_wrong_hyperprior_is_caught() -> None:
    with caught("a hyperprior that is too narrow"):
        assert_uniform_ranks(ranks("features", 48, seed=4, scale=SCALE / 20.0), DRAWS, false_alarm=1e-6)


def unasked(draws: int) -> Floats:
    """(draws, 5) log sds, the correlation and its square, and the mean of players who were never offered a choice."""
    offers = [Decisions([[1.0, 0.5]], [0, 1], [0]) for _ in range(3)]
    engine = build(offers, SCALE)
    found = ranked(warm_draws(np.random.default_rng(1), engine, 600, draws)[0], 2)
    return np.column_stack([np.log(found[:, 2:4]), found[:, 4], found[:, 4] ** 2, found[:, 0]])


LOG_T = 0.5 * (np.euler_gamma + digamma(0.5) + np.log(2.0))  # the mean of log |t| with two degrees of freedom
PRIOR_MEANS = (LOG_T + np.log(SCALE), LOG_T + np.log(SCALE), 0.0, 1.0 / 3.0, 0.0)


MOVES = {
    "draw_population": ("move_together", "stretch_one"),
    "move_together": ("stretch_one",),
    "stretch_one": ("move_together",),
}
"""Each move of the population, and those that would hide its mistakes and are left out."""


STILL = {
    "move_together": lambda rng, beliefs, metric, step, mean, root, seen, look: Moved(
        mean, root, seen.log_p, 0.8, np.zeros(5)
    ),
    "stretch_one": lambda rng, beliefs, wide, mean, root, *_: root,
}


def check(found: Floats) -> None:
    for x, mean in zip(found.T, PRIOR_MEANS, strict=True):
        assert_mean(x, mean, false_alarm=1e-6)


def without(patch: pytest.MonkeyPatch, others: tuple[str, ...]) -> None:
    for other in others:
        patch.setattr(hierarchy, other, STILL[other])


@pytest.mark.parametrize("part", MOVES)
def test_players_who_were_never_asked_show_the_prior(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but the priors moves then, and the volumes of all moves are laid bare."""
    without(monkeypatch, MOVES[part])
    check(unasked(12_000))


MUTANTS = {
    "volume of the stretch miscounted": (
        ("stretch_one", "engines.together"),
        "-(DEGREES + width - 1.0) * l",
        "-(DEGREES + width - 1.5) * l",
    ),
    "volume of the common path miscounted": (
        ("move_together", "engines.together"),
        "(DEGREES + width - 1.0) * theta[width + i]",
        "(DEGREES + width - 1.5) * theta[width + i]",
    ),
    "a degree of freedom too many": (
        ("draw_population", "kernels.population"),
        "DEGREES + width - 1.0 + count, rate",
        "DEGREES + width + count, rate",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_move_is_caught(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (part, module), old, new = MUTANTS[name]
    package = mutant(tmp_path, "kernels/population.py", old, new)
    wrong = importlib.import_module(f"{package.__name__}.{module}")
    monkeypatch.setattr(hierarchy, part, getattr(wrong, part))
    without(monkeypatch, MOVES[part])
    with caught(name):
        try:
            check(unasked(20_000))
        except np.linalg.LinAlgError as broken:
            judge(False, f"the wrong covariance ran away and broke down: {broken}", how="breakdown")


@pytest.mark.proves(part="a population's prior")
def test_the_prior_is_what_it_says() -> None:
    """Sds are scale times |t| with two degrees of freedom, and correlations uniform."""
    rng = np.random.default_rng(1)
    drawn = np.array([draw_covariance(rng, np.arange(3)) for _ in range(4000)])
    sd = np.sqrt(np.einsum("nkk->nk", drawn))
    for k in range(3):
        assert_law(1.0 - 2.0 * st.t.sf(sd[:, k] / SCALE, 2), false_alarm=1e-6 / 6)
        other = (k + 1) % 3
        correlation = drawn[:, k, other] / sd[:, k] / sd[:, other]
        assert_law(0.5 + 0.5 * correlation, false_alarm=1e-6 / 6)


@pytest.mark.proves(part="draws of an inverse Wishart")
def test_an_inverse_wishart_has_its_mean() -> None:
    rng = np.random.default_rng(2)
    rate = np.array([[2.0, 0.5], [0.5, 1.0]])
    drawn = np.array([draw_inverse_wishart(rng, 12.0, rate) for _ in range(20_000)])
    for i, j in ((0, 0), (0, 1), (1, 1)):
        assert_mean(drawn[:, i, j], rate[i, j] / (12.0 - 2 - 1), false_alarm=1e-6)
