"""What every engine is: a start, and a step that takes the state and returns it with the draws it made."""

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from understudy._arrays import Floats

State = dict[str, Floats]
"""All an engine needs to go on, as plain arrays: it can be written down and picked up again."""

Stats = Mapping[str, Floats]
"""What a reader wants to know of each draw, such as acceptance; one number a draw."""


class Engine(Protocol):
    """A Markov chain on the coefficients whose law is the posterior."""

    @property
    def name(self) -> str:
        """What users call it."""
        ...

    def start(self, rng: np.random.Generator, init: Floats | None) -> State:
        """The state a chain begins with, at `init` or at a point of the engine's own choosing."""
        ...

    def warm(self, rng: np.random.Generator, state: State, left: int, piece: int) -> tuple[State, int]:
        """Go on with a warm-up that has so many iterations left; returns the new state and how many of them were made.

        All that an engine learns, it learns here, and what it has learnt so far is in the state. About `piece` are made, or as many
        as belong together; cutting a warm-up into pieces must not change what follows.
        """
        ...

    def advance(self, rng: np.random.Generator, state: State, draws: int, thin: int) -> tuple[State, Floats, Stats]:
        """Go on for draws * thin iterations; returns the new state, (draws, K) coefficients and their stats.

        Nothing is learnt from these: every iteration leaves the posterior as it is. Cutting a run into pieces must not change its draws.
        """
        ...
