"""The engine for finishing orders: Hamiltonian moves on the exact likelihood of the orders, noise integrated out.

Unknown are the skills, spread * z with z standard normal; the spread, unless it is given; and the margin of a tie, if there
are any. Paths go over z, log spread and log margin at once (`kernels/skills.py`). Between them the spread moves given the skills: where games
say much, skills stay and the spread follows; where they say little, z stays and the skills follow; the two together do both.

Where all entries of a game have as many players, the games do not see the level of all skills together. It is then drawn
from its prior and taken off the draws: skills sum to zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from understudy._arrays import Floats
from understudy.engines.base import State, Stats
from understudy.kernels.orders import Games
from understudy.kernels.skills import Beliefs, look, travel
from understudy.orders import Orders

WIDE, APART = 2.0, 1.0  # the half-normal priors of spread and margin have these sds
WILLING = 0.8  # the acceptance that steps aim at
LENGTH = 1.6  # of a path, in units of the posterior sd: a quarter of a turn
AGAIN = 10  # moves of the spread given the skills
WINDOWS = (0.1, 0.3, 0.6, 1.0)  # of the warm-up; the second and the third measure the widths of the posterior


@dataclass(frozen=True, eq=False)
class Ranked:
    """The engine, ready to run on one set of orders."""

    orders: Orders
    games: Games
    beliefs: Beliefs

    @property
    def name(self) -> str:
        """What users call it."""
        return "orders"

    @staticmethod
    def build(orders: Orders, spread: float | None, noise: str) -> Ranked:
        """Spread: of the skills, None to learn it, infinite under a flat prior. Noise: "entry" gives every entry a noise of sd
        one, "player" every player in it.
        """
        sd = np.sqrt(orders.sizes.astype(np.float64)) if noise == "player" else np.ones(len(orders.sizes))
        games = Games(orders.players, orders.first, orders.start, sd, orders.tied, orders.known)
        flat = spread is not None and np.isinf(spread)
        given = 1.0 if flat else (spread or 0.0)
        return Ranked(orders, games, Beliefs(0.0 if flat else 1.0, given, WIDE, APART * orders.has_ties))

    @cached_property
    def level(self) -> bool:
        """Whether adding a number to all skills leaves every game as it is."""
        return self.orders.level

    @property
    def width(self) -> int:
        """How many players there are."""
        return len(self.orders.names)

    def start(self, rng: np.random.Generator, init: Floats | None) -> State:
        """At `init`, or at skills half as far apart as the noise of a game, or as the prior has them if that is less."""
        learnt, ties = self.beliefs.spread == 0.0, self.beliefs.apart > 0.0
        unit = 1.0 if learnt else self.beliefs.spread
        x = 0.5 * rng.standard_normal(self.width + learnt + ties)
        x[: self.width] *= min(1.0, 1.0 / unit)
        scale = np.full(x.size, 0.2)
        if learnt:
            x[self.width] *= 0.2
            scale[self.width] = 1.0 / np.sqrt(1.0 + 2.0 * self.width)
        if ties:
            x[-1] -= 1.0
        if init is not None:
            x[: self.width] = init / (np.exp(x[self.width]) if learnt else unit)
        scale[: self.width] = 1.0 / np.sqrt(1.0 + 0.3 * self.orders.games * unit**2)
        seen, push = np.empty(2), np.empty(self.width)
        look(self.games, self.beliefs, x, seen, push)
        return {
            "x": x, "seen": seen, "push": push, "force": np.zeros(x.size), "scale": scale, "step": np.array([0.5]),
            "done": np.zeros(2), "sums": np.zeros((4, x.size)),
        }  # fmt: skip

    def warm(self, rng: np.random.Generator, state: State, left: int, piece: int) -> tuple[State, int]:
        """Learn the step all along (Robbins and Monro 1951) and the widths of the posterior in the middle.

        Done are the iterations of the whole warm-up and of the present window; the sums are of x, of the gradient, and of their squares.
        """
        new = {name: array.copy() for name, array in state.items()}
        ends = [round(share * (new["done"][0] + left)) for share in WINDOWS]
        count = min(piece, left)
        for _ in range(count):
            probability = self._move(rng, new)
            new["done"] += 1.0
            log_step = np.log(new["step"]) + 2.0 * new["done"][1] ** -0.6 * (probability - WILLING)
            new["step"] = np.clip(np.exp(log_step), 0.02, LENGTH)
            seen = new["x"].copy()
            if self.level:
                seen[: self.width] -= seen[: self.width].mean()
            new["sums"] += seen, seen**2, new["force"], new["force"] ** 2
            if new["done"][0] in ends:
                if new["done"][0] in ends[1:3]:
                    new["scale"] = self._widths(new)
                new["done"][1] = 0.0
                new["sums"][:] = 0.0
        return new, count

    def _widths(self, state: State) -> Floats:
        """Of a path's coordinates: between the sd, and that given all others, which is one over the sd of the gradient."""
        n = state["done"][1]
        place, square, force, pressure = state["sums"] / n
        between = np.sqrt(np.maximum(square - place**2, 0.0) / np.maximum(pressure - force**2, 1e-12))
        weight = n / (n + 10.0)
        return np.asarray(np.sqrt(weight * between + (1.0 - weight) * state["scale"] ** 2))

    def advance(self, rng: np.random.Generator, state: State, draws: int, thin: int) -> tuple[State, Floats, Stats]:
        """Go on for draws * thin moves; a draw is the skills, their spread (infinite under a flat prior), and the margin."""
        new = {name: array.copy() for name, array in state.items()}
        x, k = new["x"], self.width
        out, accepted = np.empty((draws, k + 2)), np.empty(draws)
        for n in range(draws):
            for _ in range(thin):
                accepted[n] = self._move(rng, new)
            spread = np.exp(x[k]) if self.beliefs.spread == 0.0 else self.beliefs.spread
            out[n, :k] = spread * (x[:k] - (x[:k].mean() if self.level else 0.0))
            out[n, k] = spread
            out[n, k + 1] = np.exp(x[-1]) if self.beliefs.apart > 0.0 else 0.0
        return new, out, {"acceptance": accepted}

    def _move(self, rng: np.random.Generator, state: State) -> float:
        """A path, then level and spread, in place; returns the acceptance probability of the path."""
        x, step = state["x"], float(state["step"][0])
        count = max(1, round(LENGTH / step * rng.uniform(0.6, 1.4)))
        tilted = step * rng.uniform(0.9, 1.1)
        known = state["seen"], state["push"]  # neither level nor spread given the skills change what games see
        probability = travel(rng, self.games, self.beliefs, state["scale"], tilted, count, x, *known, state["force"])
        z = x[: self.width]
        if self.level:
            z += self.beliefs.pull * rng.standard_normal() / np.sqrt(self.width) - z.mean()
        if self.beliefs.spread == 0.0:
            self._respread(rng, x)
        return probability

    def _respread(self, rng: np.random.Generator, x: Floats) -> None:
        """The spread given the skills, by a random walk on its logarithm; z follows."""
        k = self.width
        squares = float(x[:k] @ x[:k]) * np.exp(2.0 * x[k])

        def height(log_spread: float) -> float:
            spread = np.exp(log_spread)
            return float((1.0 - k) * log_spread - 0.5 * squares / spread**2 - 0.5 * (spread / WIDE) ** 2)

        log_spread = float(x[k])
        for _ in range(AGAIN):
            other = log_spread + 1.7 / np.sqrt(1.0 + 2.0 * k) * rng.standard_normal()
            if np.log(rng.random()) < height(other) - height(log_spread):
                log_spread = other
        x[:k] *= np.exp(x[k] - log_spread)
        x[k] = log_spread
