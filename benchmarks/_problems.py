"""The problems that speed is measured on."""

from __future__ import annotations

import itertools

import numpy as np

import understudy as us
from understudy._arrays import Floats
from understudy.decisions import Decisions


def toy(count: int = 20, seed: int = 1) -> Decisions:
    """The paper's toy: 7 states, 3 actions, a value drawn from the prior with kappa = 2500."""
    rng = np.random.default_rng(seed)
    mdp = us.random_mdp(rng, 7, 3)
    value = 50.0 * rng.standard_normal(7)
    path = mdp.simulate(rng, value - value.mean(), count)
    return mdp.decisions(path.states, path.actions)


def tetris_like(value: tuple[float, float, float], count: int = 50, seed: int = 1) -> Decisions:
    """Choice sets of 9, 17 or 34 placements, as Tetris offers, with features of the size of height, holes, bumps."""
    rng = np.random.default_rng(seed)
    sizes = rng.choice([9, 17, 34], size=count, p=[1 / 7, 3 / 7, 3 / 7])
    ranges = np.array([3, 4, 20])
    rows: Floats = rng.integers(0, ranges, size=(int(sizes.sum()), 3)).astype(np.float64)
    start = np.concatenate([[0], np.cumsum(sizes)])
    w = rows @ np.array(value) + rng.standard_normal(len(rows))
    chosen = [int(np.argmax(w[a:b])) for a, b in itertools.pairwise(start)]
    return Decisions(rows, start, chosen, names=["height", "holes", "bumps"])
