"""What every sampler is: an initial state, and steps from a state to the next one with its draws.

The state holds all that the chain needs to go on, as plain arrays. A run can therefore be cut into
chunks at any place, written down and continued, and the draws stay the same.
"""

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from revealed._types import Floats

# A dictionary of arrays, because each sampler has others and all go into one kind of file.
State = dict[str, Floats]
"""All a sampler needs to go on, as plain arrays: it can be written down and picked up again."""

Draws = dict[str, Floats]
"""Draws of each parameter of the model, by name: (draws, *shape of the parameter)."""

Stats = Mapping[str, Floats]
"""Statistics of the draws, such as acceptance rates: by name, one number a draw."""


class Sampler(Protocol):
    """A Markov chain on the parameters whose stationary law is the posterior."""

    @property
    def name(self) -> str:
        """What users call it."""
        ...

    def init(self, rng: np.random.Generator, position: Floats | None) -> State:
        """The state a chain begins with.

        It is at `position` (K,), or at a point of the sampler's choice where that is None.
        """
        ...

    def warmup(
        self, rng: np.random.Generator, state: State, remaining: int, chunk: int
    ) -> tuple[State, int]:
        """Continue a warm-up that has `remaining` iterations left.

        Returns the new state and how many iterations were made: about `chunk`, or as many as
        belong together. All that a sampler adapts, it adapts here, and what it has adapted so far
        is in the state. Cutting a warm-up into chunks must not change what follows.
        """
        ...

    def sample(
        self, rng: np.random.Generator, state: State, draws: int, thin: int
    ) -> tuple[State, Draws, Stats]:
        """Go on for draws * thin iterations.

        Returns the new state, draws of every parameter, and their stats. Nothing is adapted: every
        iteration leaves the posterior invariant. Cutting a run into chunks must not change its
        draws.
        """
        ...
