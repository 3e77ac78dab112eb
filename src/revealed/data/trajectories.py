"""What was seen of a controller in a finite Markov decision process."""

from __future__ import annotations

from dataclasses import dataclass

from revealed._types import Ints


@dataclass(frozen=True, eq=False)
class Trajectory:
    """The state a controller was in and the action it chose, time by time.

    states, actions: (T,) positions among the states and actions of the process, not labels.
    """

    # Time t is index t of both.
    states: Ints
    actions: Ints

    def __len__(self) -> int:
        return len(self.states)
