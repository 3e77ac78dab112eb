"""A full noise covariance: calibration of both engines on both scales, their agreement, and mutants that are caught.

The truth is simulated by other means: the covariance by scipy's inverse Wishart, brought to scale; the noise by its
Cholesky factor; the choice by comparing utilities.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats as st

import understudy as us
from evidence import assert_scores, assert_uniform_ranks, caught, mutant, z_of_mean
from problems import warm_draws
from understudy._arrays import Floats, Ints
from understudy.engines.conditioned import Conditioned
from understudy.engines.wishart import Wishart
from understudy.noise import PlacedNoise, place_noise
from understudy.priors import place

pytestmark = pytest.mark.proves(model="choices, noise covariance")
DRAWS = 63
PRIOR = us.Gaussian(1.0)
ENGINES = {"conditioned": (Conditioned, 300, 3), "da": (Wishart, 200, 25)}  # warm-up, thinning by their memories
SCALES = ("trace", "first")


def offers(count: int, seed: int) -> us.Decisions:
    """Decisions among two to four of the actions a, b, c, d, with three features; the base b is not always there."""
    rng = np.random.default_rng(seed)
    shown = [rng.permutation(4)[: rng.integers(2, 5)] for _ in range(count)]
    start = np.concatenate([[0], np.cumsum([len(s) for s in shown])])
    rows = rng.standard_normal((start[-1], 3))
    return us.Decisions(rows, start, np.zeros(count, int), actions=np.array(list("abcd"))[np.concatenate(shown)])


OFFERS = offers(20, seed=1)


def truth(rng: np.random.Generator, noise: PlacedNoise) -> tuple[Floats, Floats]:
    """Coefficients and covariance from their priors."""
    size = len(noise.others)
    wide = np.atleast_2d(st.invwishart(noise.df, noise.root @ noise.root.T).rvs(random_state=rng))
    scale = wide[0, 0] if noise.scale == "first" else np.trace(wide) / size
    return rng.standard_normal(3), wide / scale


def choose(
    rng: np.random.Generator, d: us.Decisions, noise: PlacedNoise, v: Floats, covariance: Floats
) -> us.Decisions:
    """The same offers with simulated choices."""
    each = np.zeros((len(d), len(noise.labels)))
    others = np.delete(np.arange(len(noise.labels)), noise.base)
    each[:, others] = rng.multivariate_normal(np.zeros(len(others)), covariance, size=len(d))
    w = d.rows @ v + each[d.decision_of_row, noise.of_row]
    best = [int(np.argmax(w[a:b])) for a, b in zip(d.start[:-1], d.start[1:], strict=True)]
    return d.with_choices(best)


def ranks(engine: Any, warmup: int, thin: int, scale: str, replications: int, seed: int, prior: Any = PRIOR) -> Ints:
    """(replications, 3 + 6) ranks of the true coefficients and covariance among 63 thinned draws."""
    rng = np.random.default_rng(seed)
    noise = place_noise(us.FullNoise(base="b", scale=scale, df=5.0, centre="independent"), OFFERS)
    low, out = np.tril_indices(3), np.empty((replications, 9), dtype=np.int64)
    for i in range(replications):
        v, covariance = truth(rng, noise)
        seen = choose(rng, OFFERS, noise, v, covariance)
        machine = engine(seen, place(prior, seen), noise)
        draws, _ = warm_draws(rng, machine, warmup, DRAWS, thin)
        out[i] = (draws < np.concatenate([v, covariance[low]])).sum(axis=0)
    return out[:, [k for k in range(9) if scale == "trace" or k != 3]]


@pytest.mark.proves(engine="{name}", problem="{scale}")
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", ENGINES)
def test_ranks_are_uniform(name: str, scale: str) -> None:
    """The subset that always runs: 150 replications."""
    assert_uniform_ranks(ranks(*ENGINES[name], scale, 150, seed=2), DRAWS, false_alarm=1e-6)


@pytest.mark.slow
@pytest.mark.proves(engine="{name}", problem="{scale}")
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", ENGINES)
def test_ranks_are_uniform_in_the_long_run(name: str, scale: str) -> None:
    """The full run: 2,000 replications."""
    assert_uniform_ranks(ranks(*ENGINES[name], scale, 2_000, seed=3), DRAWS, false_alarm=1e-6)


@cache
def moments(engine: Any, warmup: int, draws: int, thin: int, scale: str, flat: bool) -> Floats:
    """(draws, 9) after a warm-up, on 60 decisions; large entries are tamed so that means exist."""
    d = offers(60, seed=5)
    noise = place_noise(us.FullNoise(base="b", scale=scale), d)
    seen = choose(np.random.default_rng(6), d, noise, np.array([0.8, -0.4, 0.2]), 0.5 + 0.5 * np.eye(3))
    machine = engine(seen, place(us.Flat() if flat else us.Gaussian(0.3, mean=[0.5, 0.0, 0.0]), seen), noise)
    return np.asarray(np.arcsinh(warm_draws(np.random.default_rng(7), machine, warmup, draws, thin)[0]))


def check(conditioned: Any, augmented: Any, scale: str, flat: bool) -> None:
    """Means and squares of the two engines agree."""
    one, two = moments(conditioned, 1_000, 8_000, 1, scale, flat), moments(augmented, 1_000, 5_000, 8, scale, flat)
    scores = []
    for power in (1, 2):
        for k in np.flatnonzero(one.std(axis=0) > 1e-9):
            a, b = one[:, k] ** power, two[:, k] ** power
            error = np.hypot(a.mean() / z_of_mean(a, 0.0), b.mean() / z_of_mean(b, 0.0))
            scores.append((a.mean() - b.mean()) / error)
    assert_scores(scores, false_alarm=1e-6, how="agreement")


@pytest.mark.proves(engine="conditioned and da", problem="{scale}")
@pytest.mark.parametrize(("scale", "flat"), [("trace", True), ("first", False)])
def test_the_engines_agree(scale: str, flat: bool) -> None:
    """Under a flat prior and a proper one."""
    check(Conditioned, Wishart, scale, flat)


def test_the_uncorrected_step_is_caught(tmp_path: Path) -> None:
    """Imai and van Dyk's step accepts every covariance, as if the coefficients' prior did not know the scale."""
    wrong = mutant(
        tmp_path, "kernels/wishart.py", "if log_ratio < -rng.standard_exponential():", "if log_ratio < -np.inf:"
    )
    engine = __import__(f"{wrong.__name__}.engines.wishart", fromlist=["Wishart"]).Wishart
    with caught("every covariance accepted, whatever its scale", engine="da"):
        check(Conditioned, engine, "trace", True)


@pytest.mark.slow
def test_a_forgotten_jacobian_is_caught(tmp_path: Path) -> None:
    """The coordinates of the covariance have a density of their own."""
    wrong = mutant(tmp_path, "kernels/conditioned.py", "stretch = float(i)", "stretch = 0.0")
    engine = __import__(f"{wrong.__name__}.engines.conditioned", fromlist=["Conditioned"]).Conditioned
    with caught("Jacobian of the covariance's coordinates forgotten", engine="conditioned"):
        check(engine, Wishart, "trace", True)


@pytest.mark.slow
def test_a_forgotten_scale_is_caught(tmp_path: Path) -> None:
    """The coefficients' prior is on the reported scale, not on the one the chain works in."""
    wrong = mutant(tmp_path, "kernels/conditioned.py", "stretch = float(free)", "stretch = 0.0")
    engine = __import__(f"{wrong.__name__}.engines.conditioned", fromlist=["Conditioned"]).Conditioned
    with caught("the coefficients' prior on the wrong scale", engine="conditioned"):
        check(engine, Wishart, "first", False)
