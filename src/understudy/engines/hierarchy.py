"""The population engine: many players, each with a value of its own, drawn from one Gaussian that is learnt with them.

    q_i ~ N(mean, covariance),  v_i = basis q_i        each player, in the free coordinates

with the priors of `kernels/population.py`. The coefficients of a centred block share one a, so that none of its states is
special.

An iteration moves every player given the population by leaps and a Hamiltonian path (exactly parallel: each share of players has a
generator of its own), then draws mean, covariance and a from their conditionals, and then, given where each player stands
*within* the population, moves mean and covariance by a Hamiltonian path on which all players follow: interweaving again. At last one sd
is stretched, now and then. What the population needs to know of its players are sums over them, made share by share (`shares.py`): an iteration
is one pass that moves players, and one that looks at them for every step of the common path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy._arrays import Floats, Ints
from understudy.decisions import Decisions
from understudy.engines.adapt import LENGTH, WILLING
from understudy.engines.base import State, Stats
from understudy.engines.shares import Here, Team, There, share_out
from understudy.engines.together import Moved, Seen, move_together, stretch_one
from understudy.kernels.crowd import Crowd, follow, look_at_all, move_players
from understudy.kernels.population import Beliefs, draw_population
from understudy.priors import Placed

SAFE = 0.1  # a step before any is learnt
STEPS = (1e-3, 1.5)  # the shortest and the longest of a path
LEAPS = 2  # of a player, before its path
WINDOWS = (0.2, 0.7)  # of the warm-up: where they end, coordinates are learnt from the draws of their last two thirds


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """The engine, ready for one set of players. begin: where the shares of players begin, then N."""

    team: Team
    begin: Ints
    beliefs: Beliefs

    @property
    def name(self) -> str:
        """What users see."""
        return "population"

    @staticmethod
    def build(
        decisions: Decisions, owner: Ints, prior: Placed, scale: float, threads: int | None = None, cluster: Any = None
    ) -> Hierarchy:
        """From all decisions; owner (T,) says whose each is, counted from zero. prior: of the mean. scale: of the sds' prior."""
        shares, begin = share_out(decisions, owner, prior.basis)
        team = Here(shares, threads) if cluster is None else There(shares, cluster)
        beliefs = Beliefs(prior.mean @ prior.basis, prior.precision, scale, _shares(prior))
        return Hierarchy(team, begin, beliefs)

    @property
    def players(self) -> int:
        """N."""
        return int(self.begin[-1])

    @property
    def width(self) -> int:
        """D, the free coordinates."""
        return len(self.beliefs.shares)

    @property
    def parts(self) -> tuple[int, int]:
        """Where the covariance and the players begin in a draw: mean (D), covariance (D * D), players (N * D)."""
        return self.width, self.width + self.width**2

    def start(self, rng: np.random.Generator, init: Floats | None) -> State:
        """Everybody near the prior mean, in a population about as wide as the noise."""
        count, width = self.players, self.width
        q = 0.3 * rng.standard_normal((count, width)) + self.beliefs.middle
        return {
            "q": q,
            "mean": q.mean(axis=0),
            "covariance": np.eye(width),
            "centre": np.zeros((count, width)),
            "turn": np.tile(np.eye(width), (count, 1, 1)),
            "step": np.full(count, SAFE),
            "metric": np.eye(2 * width + width * (width - 1) // 2) / np.sqrt(count),
            "common": np.array([SAFE]),
            "wide": np.full(width, min(1.0, 3.0 / np.sqrt(count))),
            "done": np.zeros(2),
        }

    def warm(self, rng: np.random.Generator, state: State, left: int, piece: int) -> tuple[State, int]:
        """Learn each player's coordinates and step, and those of the common path.

        Done are the iterations of the whole warm-up and of the present window.
        """
        new = dict(state)
        total = int(new["done"][0]) + left
        ends = [round(share * total) for share in WINDOWS]
        count = min(piece, left)
        for _ in range(count):
            accepted, moved = self._iterate(rng, new)
            done, n = new["done"]
            rate = 2.0 / (n + 8.0) ** 0.7
            new["step"] = np.clip(new["step"] * np.exp(rate * (accepted - WILLING)), *STEPS)
            new["common"] = np.clip(new["common"] * np.exp(rate * (moved.probability - WILLING)), *STEPS)
            new["done"] = new["done"] + 1.0
            end = next((e for e in ends if done < e), 0)
            window = end - (done - n)
            if end and window > 3 * self.width and n >= window // 3:
                remember(new, moved.gradient)
            if done + 1 in ends:
                if "first" in new:
                    learn_coordinates(new)
                new["done"] = np.array([done + 1, 0.0])
        return new, count

    def advance(self, rng: np.random.Generator, state: State, draws: int, thin: int) -> tuple[State, Floats, Stats]:
        """Go on for draws * thin iterations; a draw is the mean, the covariance and every player's q."""
        new = dict(state)
        to, of = self.parts
        out, players, common = np.empty((draws, of + new["q"].size)), np.empty(draws), np.empty(draws)
        for n in range(draws):
            for _ in range(thin):
                accepted, moved = self._iterate(rng, new)
            players[n], common[n] = accepted.mean(), moved.probability
            out[n, :to], out[n, to:of], out[n, of:] = new["mean"], new["covariance"].ravel(), new["q"].ravel()
        return new, out, {"acceptance": players, "acceptance_common": common}

    def _iterate(self, rng: np.random.Generator, state: State) -> tuple[Floats, Moved]:
        """One iteration; arrays of the state are replaced. Returns how willingly each player's path was accepted, and the common move."""
        q, accepted, sums = self._move_players(rng, state)
        width, about = self.width, state["mean"]
        push, first = sums[1 : 1 + width], sums[1 + width : 1 + 2 * width]
        by_apart, second = sums[1 + 2 * width :].reshape(2, width, width)
        mean, covariance = draw_population(rng, self.beliefs, self.players, about, first, second, state["covariance"])
        root = np.asarray(np.linalg.cholesky(covariance), np.float64)

        # the players have not moved since they were looked at, but z = root^-1 (q - mean) has
        by_place = np.ascontiguousarray(np.linalg.solve(root, (by_apart - np.outer(push, mean - about)).T).T)
        look = Looking(self, q, mean, root)
        moved = move_together(
            rng,
            self.beliefs,
            state["metric"],
            float(state["common"][0]),
            mean,
            root,
            Seen(sums[0], push, by_place),
            look,
        )
        last = stretch_one(rng, self.beliefs, state["wide"], moved.mean, moved.root, moved.log_p, look)
        state["q"] = follow(q, mean, root, moved.mean, last)
        state["mean"], state["covariance"] = moved.mean, last @ last.T
        return accepted, moved

    def _move_players(self, rng: np.random.Generator, state: State) -> tuple[Floats, Floats, Floats]:
        """Each player given the population: q, how willingly paths were accepted, and the sums of `move_players`."""
        keep, cut, count = self.team.keep, self.cut, len(self.begin) - 1
        centre, turn = (keep(state[name], cut(state[name])) for name in ("centre", "turn"))
        key, root = int(rng.integers(2**63)), np.asarray(np.linalg.cholesky(state["covariance"]), np.float64)
        found = self.team.each(
            moved_players, cut(state["q"]), centre, turn, cut(state["step"]),
            [state["mean"]] * count, [root] * count, [(key, i) for i in range(count)],
        )  # fmt: skip
        q, accepted = (np.concatenate([part[k] for part in found]) for k in (0, 1))
        return q, accepted, in_order([sums for _, _, sums in found])

    def cut(self, array: Floats) -> list[Floats]:
        """An array with one entry a player, in shares."""
        return [array[low:high] for low, high in zip(self.begin[:-1], self.begin[1:], strict=True)]


@dataclass(frozen=True, eq=False)
class Looking:
    """The likelihood of all players in another population, each at its place in this one."""

    engine: Hierarchy
    q: Floats
    mean: Floats
    root: Floats

    def __call__(self, mean: Floats, root: Floats, sloped: bool) -> Seen:
        """Log P, and if asked for its slopes."""
        engine, width = self.engine, self.engine.width
        count = len(engine.begin) - 1
        given = [[thing] * count for thing in (self.mean, self.root, mean, root, sloped)]
        sums = in_order(engine.team.each(looked, engine.cut(self.q), *given))
        return Seen(float(sums[0]), sums[1 : 1 + width], sums[1 + width :].reshape(-1, width))


def moved_players(
    crowd: Crowd,
    q: Floats,
    centre: Floats,
    turn: Floats,
    step: Floats,
    mean: Floats,
    root: Floats,
    key: tuple[int, int],
) -> tuple[Floats, Floats, Floats]:
    """A share of players after their move."""
    count, width = q.shape
    q, accepted, sums = q.copy(), np.empty(count), np.zeros(1 + 2 * width + 2 * width**2)
    rng = np.random.Generator(np.random.Philox(key=np.array(key, dtype=np.uint64)))
    inverse = np.linalg.inv(root)
    precision = np.ascontiguousarray(inverse.T) @ inverse
    move_players(rng, crowd, mean, root, precision, centre, turn, step, LENGTH, LEAPS, q, accepted, sums)
    return q, accepted, sums


def looked(
    crowd: Crowd, q: Floats, mean: Floats, root: Floats, to_mean: Floats, to_root: Floats, sloped: bool
) -> Floats:
    """A share of players, seen in another population."""
    width = q.shape[1]
    sums = np.zeros(1 + width + width**2 if sloped else 1)
    look_at_all(crowd, q, mean, root, to_mean, to_root, sums)
    return sums


def in_order(parts: Sequence[Floats]) -> Floats:
    """Their sum, the first one first."""
    total = parts[0].copy()
    for part in parts[1:]:
        total += part
    return total


def places(state: State) -> Floats:
    """(N, D) where each player stands within the population, in its sds."""
    width = len(state["mean"])
    root = np.asarray(np.linalg.cholesky(state["covariance"]), np.float64)
    return follow(state["q"], state["mean"], root, np.zeros(width), np.eye(width))


MEMORY = ("first", "second", "pull", "logs")


def remember(state: State, gradient: Floats) -> None:
    """Add to the sums of every player's place and its square; of the common path's squared gradient; of log sds and their squares."""
    z, logs = places(state), 0.5 * np.log(np.diag(state["covariance"]))
    now = (
        z,
        z[:, :, None] * z[:, None, :],
        np.outer(gradient, gradient),
        np.stack([np.ones_like(logs), logs, logs**2]),
    )
    for name, array in zip(MEMORY, now, strict=True):
        state[name] = state[name] + array if name in state else array


def learn_coordinates(state: State) -> None:
    """From what is remembered, which is then forgotten.

    Players: centres and roots of the covariances, drawn towards the average player's with the force of 2 D draws. The common path: the
    covariance of a log density's gradient is the inverse of the covariance that a Gaussian of its curvature has.
    """
    first, second, pull, (number, logs, squares) = (state.pop(name) for name in MEMORY)
    count, width = number[0], first.shape[1]
    mean = first / count
    covariance = second / count - mean[:, :, None] * mean[:, None, :]
    force, pooled = 2.0 * width, covariance.mean(axis=0) + 1e-9 * np.eye(width)
    state["centre"] = mean
    state["turn"] = np.linalg.cholesky((count * covariance + force * pooled) / (count + force))
    many, steep = len(pull), pull / count
    steep = (count * steep + many * np.diag(np.diag(steep) + 1e-9)) / (count + many)
    state["metric"] = np.ascontiguousarray(np.linalg.inv(np.linalg.cholesky(steep)).T)
    state["wide"] = np.sqrt(np.maximum(squares / count - (logs / count) ** 2, 0.0))
    state["step"], state["common"] = np.maximum(state["step"], 0.5), np.array([0.5])


def _shares(placed: Placed) -> Ints:
    """(D,) equal numbers for the coordinates of one centred block, others for all others."""
    together = (placed.basis.T != 0.0).astype(np.int64)  # (D, K) which coefficients a coordinate touches
    inside = (placed.constants != 0.0).astype(np.int64)  # (K, L) which of them belong to which centred block
    block = together @ inside
    key = np.where(block.any(axis=1), -1 - block.argmax(axis=1) if inside.size else 0, np.arange(len(block)))
    return np.unique(key, return_inverse=True)[1].astype(np.int64)
