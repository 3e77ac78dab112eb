"""Coefficients and a full noise covariance together: the exact posterior, by sequential conditioning.

Each iteration draws the conditioning's normals anew given the parameters (nearly all are accepted), then moves the
parameters along a Hamiltonian path given them. Warm-up finds in what order to condition (the hardest rivals first), a
metric between the mean curvature and the covariance of the draws, and a step; then all of it stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg as sla
import scipy.sparse as sp

from understudy._arrays import Floats, Ints
from understudy.decisions import Decisions
from understudy.engines.base import State, Stats
from understudy.kernels.conditioned import Problem, Room, curvature, make_room, unpack, walk
from understudy.kernels.design import Design
from understudy.kernels.hamiltonian import begin_tempo
from understudy.kernels.orthant import Fields, below, hardest_first
from understudy.likelihood import posterior_mode
from understudy.noise import PlacedNoise
from understudy.priors import Placed

LENGTH, WILLING = 2.5, 0.8  # of paths, in coordinates where the posterior is about one wide; the acceptance aimed at
PARTS = (0.15, 0.15, 0.3, 0.4)  # of a warm-up, after each of which order, metric and step are learnt again
STRAIGHT = 2  # so many parts find a metric from curvature alone
BRIEF = 60  # a warm-up shorter than this learns nothing
POINTS = 8  # draws over which curvature is averaged
POWER = 0.5  # how far the metric goes from mean curvature, 0, to covariance, 1
FLAT = 0.05  # the least curvature that is believed, in units of each coordinate's own
TIMID = 0.1  # the first step


@dataclass(frozen=True, eq=False)
class Conditioned:
    """The engine, ready to run on one set of decisions under one prior."""

    decisions: Decisions
    placed: Placed
    noise: PlacedNoise

    @property
    def name(self) -> str:
        """What users call it."""
        return "conditioned"

    @property
    def size(self) -> int:
        """D, the number of actions beside the base."""
        return len(self.noise.others)

    @cached_property
    def offers(self) -> Decisions:
        """The decisions with something to choose; the others say nothing."""
        return self.decisions[np.flatnonzero(self.decisions.sizes > 1)]

    @cached_property
    def label(self) -> Ints:
        """(P,) labels of the offers' rows."""
        return self.noise.of_row[np.repeat(self.decisions.sizes > 1, self.decisions.sizes)]

    @cached_property
    def independent(self) -> tuple[Floats, Floats]:
        """Under independent noise: theta at the posterior mode, and what curvature each of its coordinates has at least.

        The prior alone gives those of N a curvature of about one.
        """
        v, information = posterior_mode(self.decisions, self.placed)
        mode = self.theta(v, 1.0 + np.eye(self.size))
        least = np.ones(len(mode))
        least[: len(information)] = 2.0 * np.diag(information)
        return mode, FLAT * least

    def theta(self, v: Floats, covariance: Floats) -> Floats:
        """The coordinates of coefficients and covariance on any one scale."""
        root = sla.cholesky(covariance, lower=True)
        size = np.exp(np.log(np.diag(root)).mean())
        root = root / size
        below_diagonal = np.concatenate([root[i, :i] for i in range(self.size)])
        return np.concatenate([self.placed.basis.T @ v / size, below_diagonal, np.log(np.diag(root))[1:]])

    def reported(self, theta: Floats) -> Floats:
        """(n, K + D (D + 1) / 2) coefficients and covariance, by rows of its lower triangle, on the user's scale."""
        free = self.placed.basis.shape[1]
        root = np.zeros((len(theta), self.size, self.size))
        for one, into in zip(theta, root, strict=True):
            unpack(one, free, into)
        size = root[:, 0, 0] if self.noise.scale == "first" else np.sqrt((root**2).sum(axis=(1, 2)) / self.size)
        covariance = root @ root.transpose(0, 2, 1) / size[:, None, None] ** 2
        low = np.tril_indices(self.size)
        return np.hstack([theta[:, :free] @ self.placed.basis.T / size[:, None], covariance[:, low[0], low[1]]])

    def start(self, rng: np.random.Generator, init: Floats | None) -> State:
        """At `init` with independent noise, or around the mode under it."""
        mode = self.independent[0] if init is None else self.theta(init * np.sqrt(2.0), 1.0 + np.eye(self.size))
        z = rng.standard_normal(int(self.offers.start[-1]) - 2 * len(self.offers))
        problem, room = self._posterior(mode)
        turn = self._metric(self._curvature(problem, room, mode[None], z[None]))
        x = np.zeros(len(mode)) if init is not None else 0.5 * rng.standard_normal(len(mode))
        return {
            "x": x, "z": z, "centre": mode, "turn": turn, "order": mode, "tempo": begin_tempo(TIMID),
            "done": np.zeros(1), "seen": np.empty((0, len(mode))),
        }  # fmt: skip

    def warm(self, rng: np.random.Generator, state: State, left: int, piece: int) -> tuple[State, int]:
        """Learn order, metric and step. The state counts what is done, and holds the draws seen in the present part."""
        done = int(state["done"][0])
        total = done + left
        ends = [0, *np.cumsum([round(part * total) for part in PARTS]).clip(max=total).tolist()]
        last = total < BRIEF or done >= ends[-1]
        part = int(np.searchsorted(ends, done, side="right"))
        count = min(piece, left if last else ends[part] - done)
        if last:
            state = self.advance(rng, state, 1, count)[0]
        else:
            state = self._learn(rng, state, count, part if done + count == ends[part] else None)
        state = state | {"done": np.array([done + count], dtype=np.float64)}
        if count < min(piece, left):
            state, more = self.warm(rng, state, left - count, piece - count)
            count += more
        return state, count

    def _learn(self, rng: np.random.Generator, state: State, count: int, ends: int | None) -> State:
        """Go on while the step is learnt; where a part ends, the step is settled, and but for the last part order and metric."""
        new = state | {name: state[name].copy() for name in ("x", "z", "tempo")}
        problem, room = self._posterior(state["order"])
        draws, accepted, renewed = np.empty((count, len(new["x"]))), np.empty(count), np.empty(count)
        step = walk(
            rng, problem, room, state["centre"], state["turn"], new["tempo"], LENGTH, WILLING, 1,
            new["x"], new["z"], draws, accepted, renewed,
        )  # fmt: skip
        seen = np.concatenate([state["seen"], draws])
        if ends is None:
            return new | {"seen": seen}
        new |= {"tempo": begin_tempo(step), "seen": seen[:0]}
        return new if ends == len(PARTS) else self._settle(rng, new, seen[len(seen) // 3 :], straight=ends <= STRAIGHT)

    def _settle(self, rng: np.random.Generator, state: State, draws: Floats, straight: bool) -> State:
        """Order and metric from these draws of theta; z begins anew, as another order gives it another meaning."""
        centre = draws.mean(axis=0)
        problem, room = self._posterior(centre)
        some = draws[:: max(1, len(draws) // POINTS)]
        turn = self._metric(self._curvature(problem, room, some, rng.standard_normal((len(some), len(state["z"])))))
        if not straight:
            turn = _stretched(turn, draws)
        z = rng.standard_normal(len(state["z"]))
        x = sla.solve(turn, draws[-1] - centre)
        return state | {"x": x, "z": z, "centre": centre, "turn": turn, "order": centre}

    def advance(self, rng: np.random.Generator, state: State, draws: int, thin: int) -> tuple[State, Floats, Stats]:
        """Go on for draws * thin iterations."""
        new = state | {"x": state["x"].copy(), "z": state["z"].copy()}
        problem, room = self._posterior(state["order"])
        out, accepted, renewed = np.empty((draws, len(new["x"]))), np.empty(draws), np.empty(draws)
        walk(
            rng, problem, room, state["centre"], state["turn"], state["tempo"], LENGTH, 0.0, thin,
            new["x"], new["z"], out, accepted, renewed,
        )  # fmt: skip
        return new, self.reported(out), {"acceptance": accepted, "renewed": renewed}

    def _posterior(self, theta: Floats) -> tuple[Problem, Room]:
        """The posterior with rivals in the order that is best at theta."""
        d, placed, noise = self.offers, self.placed, self.noise
        fields, order = self._fields(theta)
        rivals = d.rows[order] - d.rows[np.repeat(d.taken, d.sizes - 1)]
        problem = Problem(
            Design.of(sp.csr_array(rivals) if sp.issparse(rivals) else rivals), fields, placed.basis, placed.precision,
            placed.basis.T @ placed.mean, noise.base, noise.df, noise.root, noise.scale == "trace",
        )  # fmt: skip
        return problem, make_room(problem)

    def _fields(self, theta: Floats) -> tuple[Fields, Ints]:
        """The rivals of each decision in the order that is best at theta: their kinds, and the rows they are."""
        d, free, size = self.offers, self.placed.basis.shape[1], self.size
        root = np.zeros((size, size))
        unpack(theta, free, root)
        mu = np.asarray(d.rows @ (self.placed.basis @ theta[:free]))
        noise = np.zeros((size + 1, size + 1))
        others = np.delete(np.arange(size + 1), self.noise.base)
        noise[np.ix_(others, others)] = root @ root.T
        rows = np.delete(np.arange(d.start[-1]), d.taken)
        first = d.start - np.arange(len(d) + 1)
        members = np.full((len(d), size + 1), -1, dtype=np.int64)
        for t, taken in enumerate(d.taken):
            mine = rows[first[t] : first[t + 1]]
            own, rival = self.label[taken], self.label[mine]
            between = noise[np.ix_(rival, rival)] - noise[rival, own][:, None] - noise[own, rival] + noise[own, own]
            order = np.empty(len(mine), dtype=np.int64)
            hardest_first(mu[mine] - mu[taken], between, order)
            rows[first[t] : first[t + 1]] = mine[order]
            members[t, 0], members[t, 1 : len(mine) + 1] = own, rival[order]
        kinds, kind = np.unique(members, axis=0, return_inverse=True)
        return Fields(first, kind.ravel(), kinds, (kinds >= 0).sum(axis=1) - 1), rows

    def _curvature(self, problem: Problem, room: Room, draws: Floats, z: Floats) -> Floats:
        """Minus the Hessian of the log posterior, averaged over draws of theta (n, .) and of z (n, .)."""
        total = np.zeros((draws.shape[1],) * 2)
        width = 1e-4 * np.maximum(1.0, np.abs(draws).max(axis=0))
        logs = np.empty((z.shape[1], 2))
        for theta, one in zip(draws, z, strict=True):
            below(one, logs)
            curvature(problem, room, theta, logs, width, total)
        return total / len(draws)

    def _metric(self, curvature: Floats) -> Floats:
        """Directions in which this curvature is the identity; where it is hardly there or negative, it is taken as FLAT."""
        own = 1.0 / np.sqrt(np.maximum(np.diag(curvature), self.independent[1]))
        size, along = sla.eigh(curvature * np.outer(own, own))
        return np.ascontiguousarray(own[:, None] * along / np.sqrt(np.maximum(size, FLAT)))


def _stretched(turn: Floats, draws: Floats) -> Floats:
    """The directions, each group of them made longer or shorter by how widely the draws spread along it, to the POWER."""
    x = sla.solve(turn, (draws - draws.mean(axis=0)).T)
    share = len(draws) / (len(draws) + 2.0 * len(turn))
    spread = share * np.cov(x) + (1.0 - share) * np.eye(len(turn)) * np.mean(x**2)
    size, along = sla.eigh(np.atleast_2d(spread))
    return np.ascontiguousarray(turn @ (along * size ** (0.5 * POWER)))
