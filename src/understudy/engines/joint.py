"""The engine for unknown transitions: the value and every row p(. | x, a) are drawn together (`kernels/unknown.py`).

An iteration is a Hamiltonian path of everything at once and a refresh of each row. Warm-up learns how far paths should reach:
the value's covariance, each cell's spread, the step, and how many iterations make a kept draw; then it is all frozen.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg as sla

from understudy._arrays import Floats
from understudy.decisions import Decisions
from understudy.engines.adapt import LENGTH, WILLING, effective
from understudy.engines.base import State, Stats
from understudy.kernels.hamiltonian import begin_tempo
from understudy.kernels.unknown import Belief, Choices, Pace, Rows, go_on, learn_pace, make_work
from understudy.likelihood import posterior_mode
from understudy.priors import Placed

BRIEF = 100  # a warm-up shorter than this learns nothing
PARTS = (
    0.1,
    0.25,
    0.25,
    0.2,
)  # of warm-up: each learns a step, and with it how far the next should reach; the rest counts
SAFE = 0.05  # the step of a chain that was not warmed up
WORTH, MOST = (
    0.4,
    20,
)  # a kept draw takes as many iterations as make it worth about this many independent ones, up to MOST
FLATTEST = (
    0.5  # a cell with less than this of prior and transitions has a tail that no straight step suits: no longer steps
)
FORCE = 20.0  # draws by which a cell's first guess of its spread counts


@dataclass(frozen=True, eq=False)
class Joint:
    """The engine, ready to run on what was seen of one controller."""

    rows: Rows
    choices: Choices
    placed: Placed
    mode: Floats
    information: Floats

    @property
    def name(self) -> str:
        """What users call it."""
        return "joint"

    @staticmethod
    def build(rows: Rows, choices: Choices, placed: Placed, met: Decisions) -> Joint:
        """Find the value's mode where the rows are what transitions alone say; `met` are the kinds of choices at these rows."""
        mode, information = posterior_mode(met, placed, choices.offers.weight)
        return Joint(rows, choices, placed, mode, information)

    @property
    def _turn(self) -> Floats:
        """(K, D) by which standard normals become v's spread about the mode."""
        root = sla.cholesky(self.information, lower=True)
        return np.asarray(self.placed.basis @ sla.solve_triangular(root, np.eye(len(root)), lower=True).T)

    @cached_property
    def _spread(self) -> Floats:
        """(C,) how far a cell's log g reaches, by its mean curvature."""
        return np.asarray(1.0 / np.sqrt(np.maximum(self.rows.shape, FLATTEST)))

    @cached_property
    def _belief(self) -> Belief:
        placed = self.placed
        return Belief(np.ascontiguousarray(placed.basis @ placed.precision @ placed.basis.T), placed.mean)

    def start(self, rng: np.random.Generator, init: Floats | None) -> State:
        """The value at `init`, or twice as far about its mode as the normal approximation; rows as transitions alone have them."""
        turn, shape = np.ascontiguousarray(self._turn), self.rows.shape
        v = self.mode + np.sqrt(2.0) * (turn @ rng.standard_normal(turn.shape[1])) if init is None else init.copy()
        small = np.log(rng.standard_gamma(shape + 1.0)) - rng.standard_exponential(shape.size) / shape
        return {
            "v": v, "t": small, "turn": turn, "own": self._spread, "step": np.array([SAFE]), "moves": np.ones(1),
            "tempo": begin_tempo(2.0 * SAFE), "done": np.zeros(1), "seen": np.empty((0, v.size + small.size)),
        }  # fmt: skip

    def warm(self, rng: np.random.Generator, state: State, left: int, piece: int) -> tuple[State, int]:
        """Learn reach, step and thinning. The state counts what is done, and holds the draws seen in the present part."""
        done = int(state["done"][0])
        total = done + left
        if total < BRIEF:
            count = min(piece, left)
            return self.advance(rng, state, 1, count)[0] | {"done": np.array([done + count], dtype=np.float64)}, count
        ends = [0, *np.cumsum([int(part * total) for part in PARTS]).tolist(), total]
        part = int(np.searchsorted(ends, done, side="right"))
        count = min(piece, ends[part] - done)
        new = self._learn(rng, state, count) if part <= len(PARTS) else self._try(rng, state, count)
        new["done"] = np.array([done + count], dtype=np.float64)
        if done + count == ends[part]:
            new = self._settle(new, part)
        if count < min(piece, left):
            new, more = self.warm(rng, new, left - count, piece - count)
            count += more
        return new, count

    def _learn(self, rng: np.random.Generator, state: State, count: int) -> State:
        """Go on while the step is learnt."""
        new = state | {name: state[name].copy() for name in ("v", "t", "tempo")}
        draws = np.empty((count, new["v"].size + new["t"].size))
        step = learn_pace(
            rng,
            self.rows,
            self.choices,
            self._belief,
            make_work(self.rows, self.choices, new["v"].size),
            self._pace(new),
            new["tempo"],
            WILLING,
            new["v"],
            new["t"],
            draws,
        )
        return new | {"step": np.array([step]), "seen": np.concatenate([state["seen"], draws])}

    def _try(self, rng: np.random.Generator, state: State, count: int) -> State:
        """Go on with all that was learnt."""
        new, draws, _ = self.advance(rng, state, count, 1)
        return new | {"seen": np.concatenate([state["seen"], draws])}

    def _settle(self, state: State, part: int) -> State:
        """What the draws of a part teach: the first ones how far to reach, the last how many iterations make a kept draw."""
        seen, width = state["seen"], state["v"].size
        new = state | {"tempo": begin_tempo(2.0 * SAFE), "seen": seen[:0]}
        if part > len(PARTS):
            return new | {"moves": np.array([np.clip(round(WORTH * len(seen) / effective(seen)), 1, MOST)])}
        if part == len(PARTS):
            return new
        late = seen[len(seen) // 4 :]
        return new | {
            "turn": self._reach(np.ascontiguousarray(late[:, :width])),
            "own": self._cells(np.ascontiguousarray(late[:, width:])),
        }

    def _reach(self, values: Floats) -> Floats:
        """The turn for which draws of v are about one wide, pulled to the first guess with the force of D draws."""
        first = self._turn
        x = np.linalg.lstsq(first, (values - values.mean(axis=0)).T, rcond=None)[0]
        width = first.shape[1]
        spread, axes = np.linalg.eigh((x @ x.T + width * np.eye(width)) / (len(values) + width))
        return np.ascontiguousarray(first @ (axes * np.sqrt(spread)) @ axes.T)

    def _cells(self, t: Floats) -> Floats:
        """The spread of each cell over draws of t, never beyond the first guess."""
        first = self._spread
        found = (len(t) * t.var(axis=0) + FORCE * first**2) / (len(t) + FORCE)
        return np.asarray(np.minimum(np.sqrt(found), first))

    def advance(self, rng: np.random.Generator, state: State, draws: int, thin: int) -> tuple[State, Floats, Stats]:
        """Go on for draws * thin steps; a draw is the value and then the probability of every cell."""
        new = state | {name: state[name].copy() for name in ("v", "t")}
        out = np.empty((draws, new["v"].size + new["t"].size))
        accepted, refreshed = np.empty(draws), np.empty(draws)
        go_on(
            rng, self.rows, self.choices, self._belief, make_work(self.rows, self.choices, new["v"].size),
            self._pace(state), float(state["step"][0]), thin * int(state["moves"][0]), new["v"], new["t"], out, accepted, refreshed,
        )  # fmt: skip
        return new, out, {"acceptance": accepted, "refreshed": refreshed}

    def _pace(self, state: State) -> Pace:
        return Pace(state["turn"], state["own"], LENGTH)
