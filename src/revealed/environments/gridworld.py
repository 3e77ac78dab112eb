"""Grid worlds: a controller steps from square to square of a map with walls, and may slip.

The standard example of inverse reinforcement learning (Ng and Russell 2000). The state is a square
(row, column). A step goes up, down, left or right; a wall or the edge stops it. With probability
`slip` another direction is taken than the one that was chosen:

    p(y | x, a) = (1 - slip) 1[step(x, a) = y] + slip mean_{b in S(a)} 1[step(x, b) = y]

where S(a) are the three other directions, or only the two at right angles to a, as in the 4 x 3
world of Russell and Norvig. End squares are never left, and a walk stops there.

Ng and Russell (2000), Algorithms for inverse reinforcement learning, ICML, 663-670.
Russell and Norvig (2010), Artificial intelligence: a modern approach, 3rd ed., section 17.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import scipy.sparse as sp

from revealed._types import Floats
from revealed._validation import Seed, as_generator, check_counts
from revealed.data.decisions import Decisions
from revealed.data.labels import to_positions
from revealed.data.trajectories import Trajectory
from revealed.mdp.checks import check_finite_table
from revealed.mdp.process import MDP

Square = tuple[int, int]
# Rows are counted downwards, as they are written.
DIRECTIONS = MappingProxyType({"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)})
SYMBOLS = MappingProxyType({"up": "↑", "down": "↓", "left": "←", "right": "→", "stay": "o"})


@dataclass(frozen=True)
class GridWorld:
    """A grid world, drawn as text.

    Parameters
    ----------
    layout
        Lines of text, all equally long, as a list or in one text: "#" is a wall, "." a plain
        square, a letter or digit a square with that mark. Several squares may have one mark.
    slip
        The probability that a step goes in another direction than the chosen one.
    slip_direction
        Where a slip goes: "other", one of the three other directions, or "sideways", one of the
        two at right angles; all equally likely.
    ends
        Marks of the squares that are never left: their only action is "stay".
    stay
        Whether every square offers "stay" too, which never slips.

    Examples
    --------
    >>> world = rv.environments.GridWorld(["...G", ".#.C", "...."], slip=0.1, ends="G")
    >>> value = world.mdp.solve(world.reward({"G": 1.0, "C": -3.0}), discount=0.9)
    >>> print(world.draw(world.mdp.policy(value)))
    →→→G
    ↑#↑↑
    ↑→↑←
    >>> walks = world.simulate(1, value, walks=20, length=30)
    >>> world.decisions(walks[:1])
    <Decisions: 2 decisions of 4 actions, 11 coefficients, sparse>
    """

    layout: str | Sequence[str]
    slip: float = 0.0
    slip_direction: str = "other"
    ends: str = ""
    stay: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "layout", _check_layout(self.layout))
        if not isinstance(self.slip, int | float | np.number) or not 0.0 <= self.slip <= 1.0:
            raise ValueError(f"slip must be a probability, from 0 to 1; it is {self.slip!r}")
        if (given := self.slip_direction) not in ("other", "sideways"):
            raise ValueError(f'slip_direction must be "other" or "sideways"; it is {given!r}')
        if not isinstance(self.ends, str):
            raise ValueError(f'ends must be a text of marks, such as "G"; it is {self.ends!r}')
        # A mark that no square has would end nothing, unnoticed.
        for mark in self.ends:
            self.find(mark)

    @cached_property
    def marks(self) -> Mapping[Square, str]:
        """The character of every square that is no wall, row by row; the order of the states."""
        grid = np.array([list(line) for line in self.layout])
        squares = {square: str(mark) for square, mark in np.ndenumerate(grid) if mark != "#"}
        return MappingProxyType(squares)

    def find(self, mark: str) -> list[Square]:
        """The squares with a mark; refuses a mark that no square has."""
        found = [square for square, its_mark in self.marks.items() if its_mark == mark]
        if not found:
            known = ", ".join(sorted(set(self.marks.values())))
            raise ValueError(f"no square has the mark {mark!r}; the marks are {known}")
        return found

    def actions(self, square: Square) -> tuple[str, ...]:
        """The actions that a square offers; refuses a wall, and what is outside."""
        if not isinstance(square, tuple) or square not in self.marks:
            raise ValueError(f"{square!r} is not a square (row, column) of this grid world")
        if self.marks[square] in self.ends:
            return ("stay",)
        return (*DIRECTIONS, "stay") if self.stay else tuple(DIRECTIONS)

    def step(self, square: Square, action: str) -> Square:
        """The square that an action leads to where nothing slips; walls and edges stop it."""
        offered = self.actions(square)
        if action not in offered:
            raise ValueError(f"square {square} does not offer {action!r}, only {offered}")
        down, right = DIRECTIONS.get(action, (0, 0))
        wanted = (square[0] + down, square[1] + right)
        return wanted if wanted in self.marks else square

    def outcomes(self, square: Square, action: str) -> dict[Square, float]:
        """The squares that an action may lead to, with probabilities; staying never slips."""
        chances = {action: 1.0}
        if action in DIRECTIONS:
            slips = [other for other in DIRECTIONS if other != action]
            if self.slip_direction == "sideways":
                slips = ["left", "right"] if action in ("up", "down") else ["up", "down"]
            chances = {action: 1.0 - self.slip} | dict.fromkeys(slips, self.slip / len(slips))
        # Several directions may end on the same square, for walls stop them.
        found: dict[Square, float] = {}
        for direction, chance in chances.items():
            lands = self.step(square, direction)
            found[lands] = found.get(lands, 0.0) + chance
        return {lands: chance for lands, chance in found.items() if chance > 0.0}

    @cached_property
    def mdp(self) -> MDP:
        """The finite Markov decision process, sparse; its states are the squares."""
        squares = tuple(self.marks)
        position = {square: x for x, square in enumerate(squares)}
        offered = [self.actions(square) for square in squares]
        labels = [name for name in SYMBOLS if any(name in actions for actions in offered)]
        transitions = []
        for name in labels:
            # One cell for every outcome of the action, in the squares that offer it.
            cells = [
                (position[square], position[lands], chance)
                for square, actions in zip(squares, offered, strict=True)
                if name in actions
                for lands, chance in self.outcomes(square, name).items()
            ]
            x, y, chances = zip(*cells, strict=True)
            transitions.append(sp.csr_array((chances, (x, y)), shape=(len(squares), len(squares))))
        available = [[name in actions for name in labels] for actions in offered]
        return MDP(transitions, available, states=squares, actions=labels)

    def reward(self, by_mark: Mapping[str, float], otherwise: float = 0.0) -> Floats:
        """(N,) the reward of each square: that of its mark, or `otherwise`."""
        for mark in by_mark:
            self.find(mark)
        given = [by_mark.get(mark, otherwise) for mark in self.marks.values()]
        return check_finite_table("reward", given)

    def simulate(
        self,
        seed: Seed,
        value: Any,
        walks: int,
        length: int,
        start: str | Square | None = None,
        *,
        noise: Any = True,
    ) -> list[Trajectory]:
        """Walks of the noisy controller, who takes the largest e(a) + (R_x v)(a).

        A walk stops on arrival at an end square: that is its last state, with the action "stay".

        Parameters
        ----------
        seed
            A numpy Generator, which is used; or a number, or None.
        value
            (N,) what each square is worth, in units of the noise; see `MDP.simulate`.
        walks, length
            How many walks, and decisions of a walk at most.
        start
            A square, or a mark: each walk starts on one of its squares; default: on any.
        noise
            Of the utilities, as `MDP.simulate` takes it; default normal noise.
        """
        rng = as_generator(seed)
        check_counts(walks=walks, length=length)
        if isinstance(start, str):
            starts = self.find(start)
        else:
            starts = list(self.marks) if start is None else [start]
        # On an end square there is only one action.
        starts = [square for square in starts if len(self.actions(square)) > 1]
        if not starts:
            raise ValueError("a walk must start on a square that is no end")
        found = []
        for _ in range(walks):
            first = starts[int(rng.integers(len(starts)))]
            # One time more than decisions, because the last may lead to an end.
            path = self.mdp.simulate(rng, value, length + 1, first, noise=noise)
            arrived = np.flatnonzero(np.diff(self.mdp.start)[path.states] == 1)
            stop = int(arrived[0]) + 1 if arrived.size else length
            found.append(Trajectory(path.states[:stop], path.actions[:stop]))
        return found

    def decisions(self, walks: Sequence[Trajectory]) -> Decisions:
        """The decisions of simulated walks; `mdp.decisions` takes what you recorded yourself."""
        if not walks or not all(isinstance(walk, Trajectory) for walk in walks):
            raise ValueError("walks must be a list of what simulate returns, at least one of them")
        states = np.concatenate([walk.states for walk in walks])
        actions = np.concatenate([walk.actions for walk in walks])
        x = to_positions("time", "state", states, self.mdp.states)
        # On an end square nothing is decided.
        decides = np.diff(self.mdp.start)[x] > 1
        return self.mdp.decisions(x[decides], actions[decides])

    def to_grid(self, numbers: Any) -> Floats:
        """(..., rows, columns) numbers of squares (..., N) where they lie; NaN on walls."""
        given, N = check_finite_table("numbers", numbers), len(self.marks)
        if given.shape[-1:] != (N,):
            raise ValueError(f"numbers has shape {given.shape}; the last axis must be {N} squares")
        grid = np.full((*given.shape[:-1], len(self.layout), len(self.layout[0])), np.nan)
        row, column = np.array(list(self.marks)).T
        grid[..., row, column] = given
        return grid

    def draw(self, policy: Any) -> str:
        """The layout with an arrow for the action (N,) of each square; ends keep their marks."""
        chosen, N = to_positions("policy", "action", policy, self.mdp.actions), len(self.marks)
        if chosen.size != N:
            raise ValueError(f"policy has {chosen.size} actions; give one for each of {N} squares")
        lines = [list(line) for line in self.layout]
        for ((row, column), mark), a in zip(self.marks.items(), chosen, strict=True):
            if mark not in self.ends:
                lines[row][column] = SYMBOLS[self.mdp.actions[a]]
        return "\n".join("".join(line) for line in lines)


def _check_layout(layout: Any) -> tuple[str, ...]:
    """The lines of a layout: equally long, of known characters, with at least one square."""
    # The lines of one text may be indented like the code around it.
    lines = layout.split() if isinstance(layout, str) else layout
    texts = isinstance(lines, list | tuple) and all(isinstance(line, str) for line in lines)
    if not texts or len({len(line) for line in lines}) != 1:
        raise ValueError("layout must be lines of text, at least one, all equally long")
    for mark in "".join(lines):
        if mark not in "#." and not mark.isalnum():
            known = "'#' is a wall, '.' a plain square, letters and digits are marks"
            raise ValueError(f"the layout has a {mark!r}, which is unknown; {known}")
    if set("".join(lines)) <= {"#"}:
        raise ValueError("the layout has walls only; at least one square is needed")
    return tuple(lines)
