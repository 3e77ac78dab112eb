"""Unknown transitions: values and rows together have the right law, and wrong moves are caught."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import log_ndtr

import understudy as us
from evidence import assert_error, assert_mean, assert_sd, assert_uniform_ranks, caught, mutant
from problems import warm_draws
from understudy._arrays import Floats, Ints
from understudy.engines.joint import Joint
from understudy.kernels import unknown
from understudy.learn import prepare
from understudy.trajectories import Seen, concentrations, see

pytestmark = pytest.mark.proves(model="unknown transitions", engine="joint")
KAPPA = 6.0
TIMES = np.array([[9, 2], [3, 1]])  # how often each action was taken in each state
MOVES = (1, 3)  # the unknown row was seen to lead to state 0 once, to state 1 three times
WEAK = 0.7  # its concentration


def half_known(package: str = "understudy") -> Any:
    """Two states, two actions. Only p = p(0 | 0, first) is unknown: the other rows lead to one place each."""
    x, a = np.repeat([0, 0, 1, 1], TIMES.ravel()), np.repeat([0, 1, 0, 1], TIMES.ravel())
    counts = np.zeros((2, 2, 2), np.int64)
    counts[0, 0] = MOVES
    prior = np.zeros((2, 2, 2))
    prior[0, 0] = WEAK
    prior[1, 0, 1] = prior[0, 1, 0] = prior[1, 1, 1] = 1.0
    tracks, learn, priors = (
        importlib.import_module(f"{package}.{name}") for name in ("trajectories", "learn", "priors")
    )
    seen = tracks.Seen(x, a, counts, (0, 1), (0, 1))
    return learn.prepare(seen, prior, np.ones((2, 2), bool), priors.Gaussian(KAPPA), False)[0]


def exact() -> dict[str, tuple[float, float]]:
    """Mean and sd of the value of state 0, of p and of their product, summed on a grid.

    v = (s, -s) with s ~ N(0, KAPPA / 2). In state 0 the first action is worth (2 p - 1) s and the second -s; in state 1
    they are worth s and -s. A difference d of utilities is chosen with probability Phi(d / sqrt(2)).
    """
    s = np.linspace(-12.0, 12.0, 2401)[:, None]
    logit = np.linspace(-40.0, 40.0, 4001)[None, :]
    p, rest = 1.0 / (1.0 + np.exp(-logit)), 1.0 / (1.0 + np.exp(logit))
    first, second = 2.0 * p * s / np.sqrt(2.0), 2.0 * s / np.sqrt(2.0)
    log_density = (
        -(s**2) / KAPPA
        + (WEAK + MOVES[0]) * np.log(p)
        + (WEAK + MOVES[1]) * np.log(rest)  # and the logit's Jacobian, p (1 - p)
        + TIMES[0, 0] * log_ndtr(first)
        + TIMES[0, 1] * log_ndtr(-first)
        + TIMES[1, 0] * log_ndtr(second)
        + TIMES[1, 1] * log_ndtr(-second)
    )
    weight = np.exp(log_density - log_density.max())
    weight /= weight.sum()

    def moments(f: Floats) -> tuple[float, float]:
        mean = float((weight * f).sum())
        return mean, float(np.sqrt((weight * (f - mean) ** 2).sum()))

    return {"value": moments(s + 0 * p), "p": moments(p + 0 * s), "product": moments(p * s)}


EXACT = exact()


def drawn(engine: Any, count: int, seed: int = 1) -> dict[str, Floats]:
    draws, _ = warm_draws(np.random.default_rng(seed), engine, 1000, count)
    cell = int(np.flatnonzero((engine.rows.where == 0) & (engine.rows.shape != 1.0))[0])
    value, p = draws[:, 0], draws[:, 2 + cell]
    return {"value": value, "p": p, "product": value * p}


def check(found: dict[str, Floats]) -> None:
    for name, (mean, sd) in EXACT.items():
        assert_mean(found[name], mean, false_alarm=1e-6 / 6)
        assert_sd(found[name], mean, sd, false_alarm=1e-6 / 6)


def test_the_posterior_is_that_of_the_grid() -> None:
    check(drawn(half_known(), 40_000))


def by_hand(engine: Joint, moves: str, wrong: str = "", count: int = 30_000) -> dict[str, Floats]:
    """Paths, refreshes or both, called one by one; `wrong` names a mistake that is made on purpose."""
    rng = np.random.default_rng(2)
    state = engine.start(rng, None)
    rows, choices, belief = engine.rows, engine.choices, engine._belief
    work = unknown.make_work(rows, choices, 2)
    pace = unknown.Pace(1.5 * state["turn"], state["own"], 1.5)
    heedless = choices._replace(offers=choices.offers._replace(weight=0.0 * choices.offers.weight))
    climbed = rows._replace(shape=rows.shape - 1.0) if wrong == "Jacobian of the logarithm forgotten" else rows
    weighed = heedless if wrong == "choices forgotten when a row is drawn" else choices
    v, t, out = state["v"], state["t"], np.empty((count, 2))
    cell = int(np.flatnonzero((rows.where == 0) & (rows.shape != 1.0))[0])
    for n in range(count):
        if "paths" in moves:
            unknown.path(rng, climbed, choices, belief, work, pace, 0.5, v, t)
        if "refreshes" in moves:
            unknown.refresh(rng, rows, weighed, work, v, t)
        unknown.find_row(rows, 0, t, v, work.p)
        out[n] = v[0], work.p[cell]
    return {"value": out[:, 0], "p": out[:, 1], "product": out[:, 0] * out[:, 1]}


@pytest.mark.parametrize("moves", ["paths", "paths and refreshes"])
def test_each_move_leaves_the_posterior_as_it_is(moves: str) -> None:
    check(by_hand(half_known(), moves))


@pytest.mark.parametrize(
    ("wrong", "moves"),
    [
        ("choices forgotten when a row is drawn", "paths and refreshes"),
        ("Jacobian of the logarithm forgotten", "paths"),
    ],
)
def test_a_wrong_move_is_caught(wrong: str, moves: str) -> None:
    with caught(wrong):
        check(by_hand(half_known(), moves, wrong))


@pytest.mark.parametrize("wrong", ["transitions counted twice", "equal choices counted once"])
def test_wrong_counts_are_caught(wrong: str) -> None:
    engine = half_known()
    rows, choices = engine.rows, engine.choices
    if wrong == "transitions counted twice":
        twice = rows._replace(shape=np.where(rows.shape == 1.0, 1.0, 2.0 * rows.shape - WEAK))
        engine = replace(engine, rows=twice)
    else:
        offers = choices.offers._replace(weight=np.ones_like(choices.offers.weight))
        engine = replace(engine, choices=choices._replace(offers=offers))
    with caught(wrong):
        check(drawn(engine, 20_000))


MUTANTS = {
    "a share is kept whole": ("kernels/unknown.py", "_log_sum(fresh, kept + t[c])", "_log_sum(fresh, t[c])"),
    "a row is always accepted": ("kernels/unknown.py", "<= after - before:", "<= 1e300:"),
    "half of the prior": ("kernels/unknown.py", "work.in_v[k] = -dot", "work.in_v[k] = -0.5 * dot"),
    "transitions counted twice": ("learn.py", "prior + seen.counts", "prior + 2 * seen.counts"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_caught(name: str, tmp_path: Path) -> None:
    package = mutant(tmp_path, *MUTANTS[name])
    with caught(name):
        check(drawn(half_known(package.__name__), 20_000))


@pytest.mark.proves(part="the gradient of value and rows together")
def test_the_gradient_is_that_of_the_log_posterior() -> None:
    """Against differences of the function itself, whose fast likelihood has five digits: relative error 1e-3."""
    rng = np.random.default_rng(3)
    mdp = us.random_mdp(rng, 4, 3)
    seen = see(mdp.simulate(rng, [1.0, 0.0, -1.0, 2.0, 0.5, -0.5, 0.0], 60), 4, 3)
    engine, _ = prepare(seen, *concentrations(0.9, None, seen), us.Gaussian(4.0), action_rewards=True)
    work = unknown.make_work(engine.rows, engine.choices, 7)
    state = engine.start(rng, None)
    v, t = state["v"], np.log(engine.rows.shape) + 0.3 * rng.standard_normal(engine.rows.shape.size)

    def value() -> float:
        return float(unknown.log_posterior(engine.rows, engine.choices, engine._belief, work, v, t))

    value()
    for at, slope in ((v, work.in_v.copy()), (t, work.in_t.copy())):
        for i in range(at.size):
            middle, h = at[i], 1e-2
            at[i] = middle + h
            high = value()
            at[i] = middle - h
            low = value()
            at[i] = middle
            assert_error(((high - low) / (2 * h) - slope[i]) / max(10.0, abs(slope[i])), 1e-3)


# Calibration: three states, two actions, fifteen decisions; the truth is drawn from the prior, rows and all.

N, M, T, ALPHA, DRAWS, THIN = 3, 2, 15, 0.8, 63, 8


def ranks(replications: int, seed: int, twice: bool = False, heedless: bool = False) -> Ints:
    """(replications, N + M N N + 2) ranks of values, transition probabilities, and the choices' and transitions' log-likelihood."""
    rng = np.random.default_rng(seed)
    found = np.empty((replications, N + N * M * N + 2), np.int64)
    for i in range(replications):
        rows = rng.dirichlet(np.full(N, ALPHA), size=(N, M))
        v = np.sqrt(KAPPA) * rng.standard_normal(N)
        v -= v.mean()
        path = us.MDP(rows.transpose(1, 0, 2)).simulate(rng, v, T, start=0)
        seen = see(path, N, M)
        if twice:
            seen = Seen(seen.x, seen.a, 2 * seen.counts, seen.states, seen.actions)
        engine, _ = prepare(seen, *concentrations(ALPHA, None, seen), us.Gaussian(KAPPA), action_rewards=False)
        if heedless:  # as if choices told nothing of the rows
            engine = replace(engine, rows=engine.rows._replace(shape=1e6 * engine.rows.shape))
        state, _ = engine.warm(rng, engine.start(rng, None), 200, 200)
        _, draws, _ = engine.advance(rng, state | {"moves": np.ones(1)}, DRAWS, THIN)
        everything = np.vstack([draws, np.concatenate([v, rows.ravel()])])
        u = np.einsum("sxay,sy->sxa", everything[:, N:].reshape(-1, N, M, N), everything[:, :N])
        ahead = u[:, path.states, path.actions] - u[:, path.states, 1 - path.actions]
        landed = everything[:, N:].reshape(-1, N, M, N)[:, path.states[:-1], path.actions[:-1], path.states[1:]]
        fits = np.stack([log_ndtr(ahead / np.sqrt(2.0)).sum(axis=1), np.log(landed).sum(axis=1)], axis=1)
        everything = np.hstack([everything, fits])
        found[i] = (everything[:-1] < everything[-1]).sum(axis=0)
    return found


@pytest.mark.proves(problem="3 states, 2 actions")
def test_ranks_are_uniform() -> None:
    """The subset that always runs: 300 replications."""
    assert_uniform_ranks(ranks(300, seed=4), DRAWS, false_alarm=1e-6)


@pytest.mark.slow
@pytest.mark.proves(problem="3 states, 2 actions")
def test_ranks_are_uniform_in_the_long_run() -> None:
    assert_uniform_ranks(ranks(3_000, seed=5), DRAWS, false_alarm=1e-6)


WRONG = {"transitions counted twice": "twice", "rows fixed at what transitions alone suggest": "heedless"}


@pytest.mark.parametrize(
    "wrong", [w if v == "twice" else pytest.param(w, marks=pytest.mark.slow) for w, v in WRONG.items()]
)
def test_a_wrong_law_of_the_rows_is_caught(wrong: str) -> None:
    with caught(wrong):
        assert_uniform_ranks(ranks(150, seed=4, **{WRONG[wrong]: True}), DRAWS, false_alarm=1e-6)
