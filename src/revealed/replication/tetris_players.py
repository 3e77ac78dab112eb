"""The paper's three Tetris players, and the settings of Experiment 1 (section 5.2)."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from revealed._types import Floats

VALUES = MappingProxyType(
    {
        "efficient": (-3.0, -15.0, -1.0),
        "zig-zag": (0.0, 5.0, 0.0),
        "towers": (-20.0, 0.0, 1.0),
    }
)
"""The paper's three players: their weights of height, holes and bumps."""


@dataclass(frozen=True)
class TetrisPlan:
    """The settings of the experiment, the paper's but for `smaller_prior_sd`.

    counts: how many decisions are learnt from.
    learn_from, predict: the decisions of a player that are learnt from, and the others.
    prior_sd: the paper's kappa = 2500.
    smaller_prior_sd: kappa = 100, nearer to the true values; for comparison.
    working_a, working_b: the paper's prior of the working scale on Tetris.
    """

    counts: tuple[int, ...] = (10, 20, 50, 100)
    learn_from: int = 100
    predict: int = 400
    prior_sd: float = 50.0
    smaller_prior_sd: float = 10.0
    working_a: float = 3.0
    working_b: float = 1e5

    @property
    def px_options(self) -> dict[str, Any]:
        """Options of the paper's PX-DA: utilities by Metropolis-Hastings, and a and b."""
        return {"utilities": "metropolis", "a": self.working_a, "b": self.working_b}


PLAN = TetrisPlan()


def player_label(name: str) -> str:
    """A player by its values, such as "(-3, -15, -1)"."""
    return f"({', '.join(f'{v:g}' for v in VALUES[name])})"


def player_generator(seed: int, i: int) -> np.random.Generator:
    """A generator of its own for each purpose, so that they can be run apart."""
    return np.random.default_rng([seed, i])


def thin_draws(values: Floats, count: int = 1000) -> Floats:
    """At most about `count` of the draws (n, K), evenly spaced."""
    return values[:: max(1, len(values) // count)]
