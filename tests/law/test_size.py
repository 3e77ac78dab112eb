"""Gaussian("learn"): value and size of the prior have their exact joint law, for every engine; and wrong ones are caught."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats as st

import understudy as us
from evidence import assert_mean, assert_sd, assert_uniform_ranks, caught, mutant
from problems import (
    CALIBRATED,
    CALIBRATIONS,
    VARIANTS,
    bent_round,
    build,
    choose,
    fixed_round,
    label,
    rebuild,
    two_states,
    warm_draws,
)
from understudy._arrays import Floats, Ints
from understudy.decisions import Decisions
from understudy.engines import chart
from understudy.engines.augmented import Options
from understudy.kernels import size
from understudy.priors import place

pytestmark = pytest.mark.proves(model="choices, learnt size")
SCALE = 2.0
LEARN = us.Gaussian("learn", scale=SCALE)
DRAWS = 200_000
BLENDED = ("blended", Options())


def exact_law(values: Floats, log_likelihood: Floats, quad: Floats, width: int) -> tuple[Floats, Floats]:
    """Means and sds of the columns of values (n, K) and of the logarithm of the size, on a grid of values and sizes."""
    logs = np.linspace(-14.0, 8.0, 301)
    sd = np.exp(logs)
    hyper = st.t.logpdf(sd / SCALE, 4) + logs - width * logs
    weight = np.exp(log_likelihood[:, None] - 0.5 * quad[:, None] / sd**2 + hyper)
    weight /= weight.sum()
    over_values, over_sizes = weight.sum(axis=1), weight.sum(axis=0)
    mean = np.append(over_values @ values, over_sizes @ logs)
    return mean, np.sqrt(np.append(over_values @ values**2, over_sizes @ logs**2) - mean**2)


def spaced(count: int) -> tuple[Floats, Floats]:
    """Points on a line, ever closer towards zero, where the prior has a pole; and the logarithm of their distances."""
    even = np.linspace(-9.0, 9.0, count)
    return np.sinh(even) / 100, np.log(np.cosh(even))


def two_states_law() -> tuple[Floats, Floats]:
    first, step = spaced(2000)
    values = np.stack([first, -first], axis=1)
    log_likelihood = us.log_likelihood(two_states(), values).sum(axis=1) + step
    return exact_law(values[:, :1], log_likelihood, 2.0 * first**2, 1)


def features() -> Decisions:
    """Two features of different sizes, six choices among three actions."""
    rng = np.random.default_rng(8)
    return Decisions(rng.standard_normal((18, 2)) * [1.0, 0.4], np.arange(7) * 3, [0, 2, 1, 1, 0, 2])


SHAPE = np.array([[1.0, 0.6], [0.6, 2.0]])
SHAPED = us.Gaussian("learn", shape=SHAPE, scale=SCALE)


def features_law() -> tuple[Floats, Floats]:
    axis, step = spaced(260)
    values = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    log_likelihood = us.log_likelihood(features(), values).sum(axis=1) + (step[:, None] + step).ravel()
    quad = np.einsum("ni,ij,nj->n", values, np.linalg.inv(SHAPE), values)
    return exact_law(values, log_likelihood, quad, 2)


LAW = {"two states": two_states_law(), "two features": features_law()}


def run(engine: Any, draws: int, seed: int = 1) -> Floats:
    """(draws, columns) the free coefficients and the logarithm of the size, after a warm-up."""
    return columns(engine, *warm_draws(np.random.default_rng(seed), engine, 1000, draws))


def columns(engine: Any, values: Floats, stats: Any) -> Floats:
    free = values[:, :1] if engine.placed.constants.size else values
    return np.column_stack([free, np.log(stats["prior_sd"])])


def check(found: Floats, law: tuple[Floats, Floats]) -> None:
    for x, mean, sd in zip(found.T, *law, strict=True):
        assert_mean(x, mean, false_alarm=1e-6)
        assert_sd(x, mean, sd, false_alarm=1e-6)


@pytest.mark.parametrize("variant", VARIANTS, ids=label)
def test_every_engine_has_the_exact_law_of_value_and_size(variant: tuple[str, Options]) -> None:
    check(run(build(variant, two_states(), LEARN), DRAWS), LAW["two states"])


@pytest.mark.proves(engine="{name}")
@pytest.mark.parametrize("name", ["da", "px-scale", "blended"])
def test_with_a_shape_too(name: str) -> None:
    check(run(build((name, Options()), features(), SHAPED), DRAWS), LAW["two features"])


ROUNDS = {"paths": (1, 0, 0), "sweeps": (0, 1, 0), "leaps": (0, 0, 1), "all": (1, 1, 3)}
COORDINATES = {"straight": fixed_round, "bent": bent_round}


def by_round(engine: Any, coordinates: str, moves: tuple[int, int, int], draws: int) -> Floats:
    """The same by a fixed round of the default engine in fixed coordinates; bent ones let constants loose."""
    rng = np.random.default_rng(1)
    state = COORDINATES[coordinates](engine, rng, *moves)
    return columns(engine, *engine.advance(rng, state, draws, 1)[1:])


@pytest.mark.proves(engine="blended")
@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("moves", ROUNDS.values(), ids=ROUNDS)
def test_each_move_of_the_default_engine_has_the_exact_law(coordinates: str, moves: tuple[int, int, int]) -> None:
    check(by_round(build(BLENDED, two_states(), LEARN), coordinates, moves, DRAWS), LAW["two states"])


def test_a_size_drawn_with_one_coordinate_too_many_is_caught() -> None:
    engine = build(("px-both", Options()), two_states(), LEARN)
    wrong = replace(engine, size=engine.size._replace(width=2))
    with caught("a size drawn with one coordinate too many", engine="px-both"):
        check(run(wrong, DRAWS), LAW["two states"])


def test_a_factor_that_does_not_follow_the_size_is_caught() -> None:
    engine = build(("da", Options()), features(), SHAPED)
    wrong = replace(engine, size=engine.size._replace(gram=2.0 * engine.size.gram))
    with caught("a factor that does not follow the size", engine="da"):
        check(run(wrong, DRAWS), LAW["two features"])


def test_a_size_integrated_out_with_one_coordinate_too_few_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chart, "marginal_table", lambda width, scale: size.marginal_table(width - 1, scale))
    wrong = build(BLENDED, features(), SHAPED)
    with caught("a size integrated out with one coordinate too few", engine="blended"):
        check(by_round(wrong, "straight", ROUNDS["paths"], DRAWS), LAW["two features"])


UNCUT = (  # and without what keeps the size within the interval: with it, this would be a Metropolis step, and right
    "least + (most - least) * rng.random())\n    more = new / sd - 1.0\n    if not low <= more <= high:",
    "rng.random())\n    more = new / sd - 1.0\n    if False:",
)
MUTANTS = {
    "Jacobian of the ray forgotten": ("kernels/ray.py", " + target.turn.shape[1] * y", "", "paths"),
    "utilities do not follow the size": ("kernels/size.py", "w[p] += more * along[p]", "pass", "sweeps"),
    "constants do not follow the size": ("kernels/blend.py", "aside[block] *= new / sd", "pass", "sweeps"),
    "hyperprior not cut to the interval": ("kernels/size.py", UNCUT[0], UNCUT[1], "sweeps"),
    "every proposed size accepted": ("kernels/size.py", "if bound - rng.standard_exponential() <= _log_density(u, a, c, z)[0]:", "if True:", "sweeps"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_kernel_is_caught(name: str, tmp_path: Path) -> None:
    file, old, new, moves = MUTANTS[name]
    package = mutant(tmp_path, file, old, new)
    engine = rebuild(package, BLENDED, two_states(), LEARN)
    with caught(name, engine="blended"):
        check(by_round(engine, "bent", ROUNDS[moves], DRAWS), LAW["two states"])


ALWAYS = [
    (v, p) for v, p in CALIBRATIONS if label(v) in ("da-exact", "px-both-metropolis", "blended-exact") and p == "mdp"
]
KEPT = 31


def thinning(name: str) -> int:
    """Iterations between draws: the paper's samplers forget the size slowly, as they forget the scale."""
    return {"blended": 10, "px-both": 30, "px-scale": 60}.get(name, 100)


def ranks(variant: tuple[str, Options], problem: str, replications: int, seed: int, wide: int = 0) -> Ints:
    """(replications, K + 1) ranks of the true coefficients and of the true size among thinned draws."""
    offers, thin, rng = CALIBRATED[problem], thinning(variant[0]), np.random.default_rng(seed)
    placed = place(us.Gaussian(1.0), offers)
    out = np.empty((replications, len(offers.names) + 1), dtype=np.int64)
    for i in range(replications):
        sd = SCALE * abs(rng.standard_t(4))
        truth = sd * placed.draw(rng, 1)[0]
        seen = offers.with_choices(choose(rng, offers, truth)[0])
        engine = build(variant, seen, LEARN)
        if wide:
            engine = replace(engine, size=engine.size._replace(width=engine.size.width + wide))
        warm = 10 * thin if variant[0] == "blended" else 5 * thin
        draws, stats = warm_draws(rng, engine, warm, KEPT, thin)
        out[i, :-1] = (draws < truth).sum(axis=0)
        out[i, -1] = (stats["prior_sd"] < sd).sum()
    return out


@pytest.mark.parametrize(("variant", "problem"), ALWAYS, ids=lambda x: x if isinstance(x, str) else label(x))
def test_ranks_are_uniform(variant: tuple[str, Options], problem: str) -> None:
    """The subset that always runs."""
    assert_uniform_ranks(ranks(variant, problem, 160, seed=4), KEPT, false_alarm=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("variant", "problem"), CALIBRATIONS, ids=lambda x: x if isinstance(x, str) else label(x))
def test_ranks_are_uniform_in_the_long_run(variant: tuple[str, Options], problem: str) -> None:
    assert_uniform_ranks(ranks(variant, problem, 1_500, seed=5), KEPT, false_alarm=1e-6)


def test_a_wrong_law_of_the_size_is_caught_by_ranks() -> None:
    with caught("a size drawn with six coordinates too many", engine="px-both"):
        assert_uniform_ranks(ranks(("px-both", Options()), "mdp", 160, seed=4, wide=6), KEPT, false_alarm=1e-6)
