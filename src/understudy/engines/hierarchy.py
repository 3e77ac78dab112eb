"""The population engine: many players, each with a value of its own, drawn from one Gaussian that is learnt with them.

    q_i ~ N(mean, covariance),  v_i = basis q_i        each player, in the free coordinates

with the priors of `kernels/population.py`. The coefficients of a centred block share one a, so that none of its states is
special.

An iteration moves every player by a Hamiltonian path given the population (exactly parallel: each batch of players has a
generator of its own), then draws mean, covariance and a from their conditionals, and then, given where each player stands
*within* the population, moves mean and covariance by a Hamiltonian path on which all players follow: interweaving again. At last one sd is stretched.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from understudy._arrays import Floats, Ints
from understudy.decisions import Decisions
from understudy.engines.adapt import LENGTH, WILLING
from understudy.engines.base import State, Stats
from understudy.engines.tally import tally
from understudy.kernels.crowd import Crowd, move_players
from understudy.kernels.population import draw_population, fold, move_together, stretch_one
from understudy.priors import Placed

BATCH = 64  # players that share a generator; fixed, so that who works on them does not change their draws
SAFE = 0.1  # a step before any is learnt
STEPS = (1e-3, 1.5)  # the shortest and the longest of a path
COMMON = 4  # steps of the common path, on average


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """The engine, ready for one set of players. prior: of the population mean. scale: of the sds' prior."""

    crowd: Crowd
    players: int
    prior: Placed
    scale: float
    shares: Ints  # (D,) which coordinates share one a

    @property
    def name(self) -> str:
        """What users see."""
        return "population"

    @staticmethod
    def build(each: list[Decisions], prior: Placed, scale: float) -> Hierarchy:
        """From every player's decisions."""
        found = [tally(d) for d in each]
        leads = [np.asarray(t.leads @ prior.basis) for t in found]
        crowd = Crowd(
            columns=np.concatenate([rows.T.ravel() for rows in leads]),
            rival=np.concatenate([[0], np.cumsum([len(rows) for rows in leads])]).astype(np.int64),
            kind=np.concatenate([[0], np.cumsum([len(t.offers.weight) for t in found])]).astype(np.int64),
            first=np.concatenate([t.offers.first for t in found]).astype(np.int64),
            copies=np.concatenate([t.offers.copies for t in found]),
            weight=np.concatenate([t.offers.weight for t in found]),
        )
        return Hierarchy(crowd, len(each), prior, scale, _shares(prior))

    @property
    def width(self) -> int:
        """D, the free coordinates."""
        return len(self.shares)

    @property
    def parts(self) -> tuple[int, int]:
        """Where the covariance and the players begin in a draw: mean (D), covariance (D * D), players (N * D)."""
        return self.width, self.width + self.width**2

    def start(self, rng: np.random.Generator, init: Floats | None) -> State:
        """Everybody near the prior mean, in a population about as wide as the noise."""
        count, width = self.players, self.width
        q = 0.3 * rng.standard_normal((count, width)) + self.prior.mean @ self.prior.basis
        return {
            "q": q,
            "mean": q.mean(axis=0),
            "covariance": np.eye(width),
            "centre": np.zeros((count, width)),
            "turn": np.tile(np.eye(width), (count, 1, 1)),
            "step": np.full(count, SAFE),
            "metric": 0.3 * np.eye(2 * width + width * (width - 1) // 2),
            "common": np.array([SAFE]),
        }

    def warm(self, rng: np.random.Generator, state: State, left: int, piece: int) -> tuple[State, int]:
        """Learn each player's coordinates and step, and those of the common path, all at once."""
        new = {name: value.copy() for name, value in state.items()}
        spent = 0
        for part in (left // 4, left // 4, left - 2 * (left // 4)):
            if part > 2 * self.width:
                moments = Moments(self.players, self.width)
            for n in range(part):
                accepted, taken = self._iterate(rng, new)
                rate = 2.0 / (n + 8.0) ** 0.7
                new["step"] = np.clip(new["step"] * np.exp(rate * (accepted - WILLING)), *STEPS)
                new["common"] = np.clip(new["common"] * np.exp(rate * (taken - WILLING)), *STEPS)
                spent += 1
                if part > 2 * self.width and n >= part // 3:
                    moments.add(new)
            if part > 2 * self.width and spent < left:
                new |= moments.coordinates()
        return new, left

    def advance(self, rng: np.random.Generator, state: State, draws: int, thin: int) -> tuple[State, Floats, Stats]:
        """Go on for draws * thin iterations; a draw is the mean, the covariance and every player's q."""
        new = {name: value.copy() for name, value in state.items()}
        to, of = self.parts
        out, players, common = np.empty((draws, of + new["q"].size)), np.empty(draws), np.empty(draws)
        for n in range(draws):
            for _ in range(thin):
                accepted, common[n] = self._iterate(rng, new)
            players[n] = accepted.mean()
            out[n, :to], out[n, to:of], out[n, of:] = new["mean"], new["covariance"].ravel(), new["q"].ravel()
        return new, out, {"acceptance": players, "acceptance_common": common}

    def _iterate(self, rng: np.random.Generator, state: State) -> tuple[Floats, float]:
        """One iteration, in place; returns how willingly each player's path and the common one were accepted."""
        accepted = self._move_players(rng, state)
        tight, middle = self.prior.precision, self.prior.mean @ self.prior.basis
        mean, covariance = state["mean"], state["covariance"]
        draw_population(rng, state["q"], middle, tight, self.scale, self.shares, mean, covariance)
        taken = move_together(
            rng, self.crowd, middle, tight, self.scale, self.shares, state["metric"], state["common"][0], COMMON,
            mean, covariance, state["q"],
        )  # fmt: skip
        stretch_one(rng, self.crowd, self.scale, self.shares, mean, covariance, state["q"])
        return accepted, taken

    def _move_players(self, rng: np.random.Generator, state: State) -> Floats:
        """Each player given the population, in coordinates x: q = mean + root z and z = centre + turn x."""
        precision = np.asarray(np.linalg.inv(state["covariance"]), dtype=np.float64)
        root = np.linalg.cholesky(state["covariance"])
        off = places(state) - state["centre"]
        x = np.ascontiguousarray(np.linalg.solve(state["turn"], off[:, :, None])[:, :, 0])
        centre, turn = state["mean"] + state["centre"] @ root.T, root @ state["turn"]
        accepted = np.empty(self.players)
        keys = rng.integers(2**63, size=-(-self.players // BATCH))
        for low, key in zip(range(0, self.players, BATCH), keys, strict=True):
            own = np.random.Generator(np.random.Philox(key=int(key)))
            move_players(
                own, self.crowd, low, min(low + BATCH, self.players), state["mean"], precision,
                centre, turn, state["step"], LENGTH, x, accepted,
            )  # fmt: skip
        state["q"] = centre + np.einsum("nij,nj->ni", turn, x)
        return accepted


def places(state: State) -> Floats:
    """(N, D) where each player stands within the population, in its sds."""
    apart = (state["q"] - state["mean"]).T
    return np.ascontiguousarray(np.linalg.solve(np.linalg.cholesky(state["covariance"]), apart).T)


class Moments:
    """Running means and covariances of every player's place within the population, and of the population itself."""

    def __init__(self, players: int, width: int) -> None:
        self.count = 0
        self.first, self.second = np.zeros((players, width)), np.zeros((players, width, width))
        self.common: list[Floats] = []

    def add(self, state: State) -> None:
        """One more draw."""
        z = places(state)
        self.count += 1
        self.first += z
        self.second += z[:, :, None] * z[:, None, :]
        self.common.append(fold(state["mean"], np.asarray(np.linalg.cholesky(state["covariance"]), np.float64)))

    def coordinates(self) -> State:
        """Centres and roots of the covariances, drawn towards the average player's with the force of 2 D draws."""
        mean = self.first / self.count
        covariance = self.second / self.count - mean[:, :, None] * mean[:, None, :]
        width = mean.shape[1]
        force = 2.0 * width
        pooled = covariance.mean(axis=0) + 1e-9 * np.eye(width)
        together = np.cov(np.array(self.common).T)
        alone, many = np.diag(np.diag(together)) + 1e-9 * np.eye(len(together)), len(together)
        return {
            "centre": mean,
            "turn": np.linalg.cholesky((self.count * covariance + force * pooled) / (self.count + force)),
            "metric": np.linalg.cholesky((self.count * together + many * alone) / (self.count + many)),
        }


def _shares(placed: Placed) -> Ints:
    """(D,) equal numbers for the coordinates of one centred block, others for all others."""
    together = (placed.basis.T != 0.0).astype(np.int64)  # (D, K) which coefficients a coordinate touches
    inside = (placed.constants != 0.0).astype(np.int64)  # (K, L) which of them belong to which centred block
    block = together @ inside
    key = np.where(block.any(axis=1), -1 - block.argmax(axis=1) if inside.size else 0, np.arange(len(block)))
    return np.unique(key, return_inverse=True)[1].astype(np.int64)
