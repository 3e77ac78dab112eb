"""The problems that speed is measured on, from the paper's toy to grids of 121 states.

`SUITE` is the list of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import revealed as rv
from revealed._types import Floats
from revealed.data.decisions import Decisions
from revealed.environments.tetris import Tetris, read_games
from revealed.models.priors import resolve_prior
from revealed.samplers.data_augmentation import most_expanded

Value = tuple[float, float, float]

HUMAN = Path(__file__).resolve().parents[2] / "shared" / "data" / "human_tetris.jsonl"
"""A person's games; kept beside the repository, never in it."""
_NO_HUMAN = (
    "the person's games are not here: "
    "shared/data/human_tetris.jsonl is looked for beside the repository"
)


def toy(count: int = 20, seed: int = 1) -> Decisions:
    """The paper's toy: 7 states, 3 actions, a value drawn from the prior with kappa = 2500."""
    rng = np.random.default_rng(seed)
    mdp = rv.random_mdp(rng, 7, 3)
    value = 50.0 * rng.standard_normal(7)
    path = mdp.simulate(rng, value - value.mean(), count)
    return mdp.decisions(path.states, path.actions)


def tetris_like(value: Value, count: int = 50, seed: int = 1) -> Decisions:
    """Choice sets of 9, 17 or 34 placements, as Tetris offers.

    With features of the size of height, holes, bumps.
    """
    rng = np.random.default_rng(seed)
    sizes = rng.choice([9, 17, 34], size=count, p=[1 / 7, 3 / 7, 3 / 7])
    ranges = np.array([3, 4, 20])
    rows: Floats = rng.integers(0, ranges, size=(int(sizes.sum()), 3)).astype(np.float64)
    start = np.concatenate([[0], np.cumsum(sizes)])
    w = rows @ np.array(value) + rng.standard_normal(len(rows))
    chosen = [int(np.argmax(w[a:b])) for a, b in itertools.pairwise(start)]
    return Decisions(rows, start, chosen, names=["height", "holes", "bumps"])


def tetris(value: Value, count: int = 50, seed: int = 1) -> Decisions:
    """The paper's Tetris, 30 x 10 with distinct placements, played by a noisy controller.

    A game that has ended is followed by another.
    """
    environment = Tetris()
    return environment.decisions(environment.simulate(np.random.default_rng(seed), value, count))


def human(count: int) -> Decisions:
    """The first straight drops of a person's games; needs the file `HUMAN`, see `SKIPPED`."""
    if not HUMAN.exists():
        raise FileNotFoundError(_NO_HUMAN)
    return read_games(HUMAN).decisions().first(count)


def grid_world(size: int, slip: float) -> rv.MDP:
    """A grid of size x size squares.

    A move goes astray with probability `slip`, and a move off the edge stays where it is.
    """
    row, column = np.divmod(np.arange(size * size), size)
    moves = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}

    def sure(down: int, right: int) -> sp.csr_array:
        lands = np.clip(row + down, 0, size - 1) * size + np.clip(column + right, 0, size - 1)
        return sp.csr_array(
            (np.ones(size * size), (np.arange(size * size), lands)),
            shape=(size * size, size * size),
        )

    straight = [sure(*step) for step in moves.values()]
    astray = sum(straight[1:], start=straight[0])
    # Weights that are zero would stay as stored zeros: a sure move keeps its rows of a single one.
    blurred = (
        [(1.0 - slip) * m + slip / 3.0 * (astray - m) for m in straight] if slip > 0.0 else straight
    )
    squares = [f"{r},{c}" for r, c in zip(row, column, strict=True)]
    return rv.MDP(blurred, states=squares, actions=list(moves))


def grid(size: int, slip: float, count: int, seed: int = 1) -> Decisions:
    """Walks through a grid whose value is a smooth random landscape.

    Its hills are a third of the grid wide, and so high that a step along the slope is worth about
    as much as the noise: choices are informative, and none is sure. A walk ends on a hill, so a
    new one sets out from anywhere after every 4 x size decisions, and the valleys are seen too.
    """
    rng = np.random.default_rng(seed)
    squares = np.stack(np.divmod(np.arange(size * size), size), axis=1)
    apart = ((squares[:, None] - squares[None]) ** 2).sum(axis=2)
    value: Floats = np.exp(-apart / (2.0 * (size / 6.0) ** 2)) @ rng.standard_normal(size * size)
    slopes = [np.diff(value.reshape(size, size), axis=axis).ravel() for axis in (0, 1)]
    value = (value - value.mean()) / np.sqrt(np.mean(np.concatenate(slopes) ** 2))
    mdp = grid_world(size, slip)
    paths = [mdp.simulate(rng, value, min(4 * size, count - t)) for t in range(0, count, 4 * size)]
    return mdp.decisions(
        np.concatenate([p.states for p in paths]), np.concatenate([p.actions for p in paths])
    )


@dataclass(frozen=True)
class Problem:
    """One problem of the suite: how its decisions are made from a seed, and its prior sd."""

    name: str
    make: Callable[[int], Decisions]
    prior_sd: float

    def paper(self, decisions: Decisions) -> str:
        """The paper's sampler for it: all the expansions that decisions and prior allow."""
        return most_expanded(decisions, resolve_prior(rv.Normal(self.prior_sd), decisions))


def _suite() -> dict[str, Problem]:
    def of_tetris(value: Value, count: int) -> Problem:
        name = f"Tetris ({', '.join(f'{v:g}' for v in value)}), T = {count}"
        return Problem(name, lambda seed: tetris(value, count, seed), 50.0)

    def of_human(count: int) -> Problem:
        return Problem(f"human Tetris, T = {count}", lambda seed: human(count), 50.0)

    def of_grid(size: int, slip: float, count: int) -> Problem:
        name = f"grid {size} x {size}, slip {slip:g}, T = {count}"
        return Problem(name, lambda seed: grid(size, slip, count, seed), 10.0)

    values: list[Value] = [(-3, -15, -1), (0, 5, 0), (-20, 0, 1)]
    problems = [Problem("toy, 7 states, 3 actions, T = 20", lambda seed: toy(20, seed), 50.0)]
    problems += [of_tetris(value, count) for value in values for count in (50, 100)]
    problems += [of_human(count) for count in (50, 100)]
    problems += [of_grid(5, 0.2, 300), of_grid(11, 0.2, 1000), of_grid(11, 0.0, 2000)]
    return {problem.name: problem for problem in problems}


SUITE: dict[str, Problem] = _suite()
SKIPPED: dict[str, str] = (
    {} if HUMAN.exists() else {name: _NO_HUMAN for name in SUITE if name.startswith("human")}
)
"""Problems that cannot be made here, and why; they are taken out of the suite."""
for _name in SKIPPED:
    del SUITE[_name]
