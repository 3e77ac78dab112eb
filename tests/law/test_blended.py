"""Every move of the default engine leaves the posterior as it is, alone and in company; and the wrong ones are caught."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import understudy as us
from evidence import assert_mean, assert_sd, caught, grid_moments, mutant
from problems import bent_round, build, fixed_round, rebuild
from understudy._arrays import Floats
from understudy.decisions import Block, Decisions
from understudy.engines.augmented import Options

pytestmark = pytest.mark.proves(model="choices, Gaussian prior", engine="blended")
BLENDED = ("blended", Options())
KAPPA = 30.0
DRAWS = 1_500_000
ROUNDS = {"paths": (1, 0, 0), "sweeps": (0, 1, 0), "leaps": (0, 0, 1), "sweeps and leaps": (0, 1, 1), "all": (1, 1, 3)}


def lopsided() -> Decisions:
    """Two states, six actions and four choices that all but agree: a posterior far from normal, in one dimension."""
    up = np.array([0.9, 0.85, 0.8, 0.5, 0.3, 0.1])
    return Decisions(
        np.tile(np.stack([up, 1 - up], 1), (4, 1)), [0, 6, 12, 18, 24], [0, 2, 1, 0], blocks=[Block("v", 2, True)]
    )


def exact() -> tuple[float, float]:
    """Mean and sd of its first coefficient, by a fine grid."""
    first = np.linspace(-30.0, 40.0, 14_001)
    values = np.stack([first, -first], axis=1)
    log_density = us.log_likelihood(lopsided(), values).sum(axis=1) - first**2 / KAPPA
    mean, sd = grid_moments(values, log_density)
    return float(mean[0]), float(sd[0])


MEAN, SD = exact()


COORDINATES = {"straight": fixed_round, "bent": bent_round}


def drawn(engine: Any, coordinates: str, moves: tuple[int, int, int]) -> Floats:
    """(DRAWS,) of the first coefficient by a fixed round in fixed coordinates, nothing learnt."""
    rng = np.random.default_rng(1)
    values = engine.advance(rng, COORDINATES[coordinates](engine, rng, *moves), DRAWS, 1)[1]
    np.testing.assert_allclose(values.sum(axis=1), 0.0, atol=1e-9)
    return np.asarray(values)[:, 0]


def check(draws: Floats) -> None:
    assert_mean(draws, MEAN, false_alarm=1e-6)
    assert_sd(draws, MEAN, SD, false_alarm=1e-6)


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("moves", ROUNDS.values(), ids=ROUNDS)
def test_each_move_alone_has_the_exact_mean_and_sd(coordinates: str, moves: tuple[int, int, int]) -> None:
    check(drawn(build(BLENDED, lopsided(), us.Gaussian(KAPPA)), coordinates, moves))


EXACT_UTILITIES = """    utilities.draw_utilities(rng, latent.mu, latent.start, latent.taken, latent.near, lead, latent.w)
    expand(rng, move, latent.design, latent.scratch, v, latent.w)
"""
MOVED_UTILITIES = """    utilities.move_utilities(rng, latent.mu, latent.start, latent.taken, latent.near, 0, latent.w)
    expand(rng, move, latent.design, latent.scratch, v, latent.w)
    return
"""
MUTANTS = {
    "goes on adapting the proposal": (
        "kernels/blend.py",
        "weight = value - proposed",
        "weight = value - proposed\n                    mixture.mean[0] = x",
        "leaps",
    ),
    "goes on adapting the step": (
        "kernels/blend.py",
        "rng, target, work, round.step, round.fewest",
        "rng, target, work, 3.0 * round.step * (0.2 + accepted[max(n - 1, 0)]) ** 2, round.fewest",
        "paths",
    ),
    "utilities redrawn by MH after a collapsed move": (
        "kernels/blend.py",
        EXACT_UTILITIES,
        MOVED_UTILITIES,
        "sweeps and leaps",
    ),
    "weight of the value before the sweep": (
        "kernels/blend.py",
        "accepted[n] = 1.0\n                sloped, weighed = False, False",
        "accepted[n] = 1.0\n                sloped, weighed = False, True",
        "all",
    ),
    "proposal's density forgotten": ("kernels/blend.py", "floor = proposed + weight", "floor = weight", "leaps"),
    "every path accepted": ("kernels/hamiltonian.py", "if rng.random() < probability:", "if True:", "paths"),
    "prior forgotten given the noise": (
        "kernels/interweave.py",
        "if precision > 0.0:",
        "if precision > 1e9:",
        "sweeps",
    ),
    "utilities not moved with the value": (
        "kernels/interweave.py",
        "gap[p] = max(gap[p] + s * margin[p], 0.0)",
        "pass",
        "sweeps",
    ),
    "the curves' stretch forgotten": ("kernels/target.py", "return total + math.log(factor)", "return 0.0", "leaps"),
    "constants of the value before the sweep forgotten": (
        "kernels/blend.py",
        "sweep(rng, latent, size, lead, v, aside)\n                from_value(map, v, aside, x)",
        "sweep(rng, latent, size, lead, v, aside)\n                from_value(map, v, 0.0 * aside, x)",
        "sweeps and leaps",
    ),
    "weights of equal decisions forgotten": (
        "engines/tally.py",
        "np.bincount(kind, weights, len(where))",
        "weights[where]",
        "leaps",
    ),
}


BENT = ("the curves' stretch forgotten", "constants of the value before the sweep forgotten")
"""Mutants that only bent coordinates can tell."""
ALWAYS = ("proposal's density forgotten", "the curves' stretch forgotten")
"""Each mutant is an engine to compile; these are tried every time, the others with --slow."""


@pytest.mark.parametrize("name", [n if n in ALWAYS else pytest.param(n, marks=pytest.mark.slow) for n in MUTANTS])
def test_a_wrong_move_is_caught(name: str, tmp_path: Path) -> None:
    file, old, new, moves = MUTANTS[name]
    package = mutant(tmp_path, file, old, new)
    wrong = rebuild(package, BLENDED, lopsided(), us.Gaussian(KAPPA))
    with caught(name):
        check(drawn(wrong, "bent" if name in BENT else "straight", ROUNDS[moves]))
