"""Learning one decision at a time: a cloud of particles that follows the posterior (Chopin 2002, IBIS).

A particle is a value, drawn from the prior. Each decision multiplies its weight by the exact probability of the choice, and
the mean of these factors is what the decision adds to the evidence. When too few particles carry the weight, they are
resampled, and each takes rounds of the default engine's moves, which leave the posterior of all decisions so far as it
is, until the cloud has forgotten where it was. A decision that would leave next to no particles is learnt in parts: its probability to
a power that leaves enough of them, then the rest (Del Moral, Doucet and Jasra 2006).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from understudy._arrays import Floats, Ints
from understudy.decisions import Decisions
from understudy.engines.adapt import AT_LEAST, efficiency, learn_proposal, no_mixture, path_round, wander
from understudy.engines.base import State, Stats
from understudy.engines.blended import POWER, Blended, engine_map, latent_of
from understudy.engines.labour import Labour
from understudy.kernels.flock import move_flock
from understudy.kernels.integral import all_probabilities, log_probabilities
from understudy.kernels.size import Size, draw_sd
from understudy.priors import Placed

HALF = 0.5  # of the particles: with fewer effective ones they are resampled and moved
SUDDEN, PART = (
    0.1,
    0.3,
)  # a decision that leaves less than the first is learnt in parts, each of which leaves the second
TUNING = 30  # Hamiltonian moves that learn the step
FORGOTTEN, ROUNDS = 0.1, 20  # the largest correlation with where the cloud was that ends the moves, and the most rounds
LEAPS = 3  # in a round, where a mixture fits
DEAR = 3.0  # sweeps beyond so many paths' worth of labour are left out of the round


@dataclass(frozen=True, eq=False)
class Cloud:
    """Weighted particles: values (N, K), log weights (N,) whose largest is zero, and the log evidence so far."""

    values: Floats
    log_weights: Floats
    log_evidence: float = 0.0

    @staticmethod
    def of(rng: np.random.Generator, placed: Placed, count: int) -> Cloud:
        """As many draws of the prior."""
        return Cloud(placed.draw(rng, count), np.zeros(count))

    @property
    def weights(self) -> Floats:
        """(N,) that sum to one."""
        w = np.exp(self.log_weights)
        return np.asarray(w / w.sum())

    @property
    def effective(self) -> float:
        """How many particles of equal weight are worth as much."""
        return effective_size(self.log_weights)

    def weighed(self, log_factors: Floats) -> Cloud:
        """With weights multiplied by factors (N,), whose weighted mean goes into the evidence."""
        top = log_factors.max()
        mean = top + np.log(self.weights @ np.exp(log_factors - top))
        log_weights = self.log_weights + log_factors
        return Cloud(self.values, log_weights - log_weights.max(), self.log_evidence + float(mean))

    def resampled(self, rng: np.random.Generator) -> Cloud:
        """Particles of equal weight."""
        return replace(self, values=self.values[systematic(rng, self.weights)], log_weights=np.zeros(len(self.values)))


def effective_size(log_weights: Floats) -> float:
    """(sum w)^2 / sum w^2."""
    return efficiency(log_weights) * len(log_weights)


def systematic(rng: np.random.Generator, weights: Floats, count: int | None = None) -> Ints:
    """(count,) the parents of so many particles, N unless said: one at each even step along the running sum of the weights (N,)."""
    count = len(weights) if count is None else count
    places = (rng.random() + np.arange(count)) / count
    return np.asarray(np.minimum(np.searchsorted(np.cumsum(weights), places), len(weights) - 1), dtype=np.int64)


def log_chances(rows: Floats, chosen: int, values: Floats) -> Floats:
    """(N,) exact log probability of choosing that one of rows (M, K) under each of values (N, K)."""
    count, size = len(values), len(rows)
    mu, out = np.ascontiguousarray((values @ rows.T).reshape(-1)), np.empty(count)
    log_probabilities(mu, size * np.arange(count + 1), size * np.arange(count) + chosen, out)
    return out


def chances(rows: Floats, values: Floats) -> Floats:
    """(N, M) exact probabilities of each of rows (M, K) under each of values (N, K)."""
    count, size = len(values), len(rows)
    out = np.empty(count * size)
    all_probabilities(np.ascontiguousarray((values @ rows.T).reshape(-1)), size * np.arange(count + 1), out)
    return out.reshape(count, size)


def learn_one(
    rng: np.random.Generator, cloud: Cloud, rows: Floats, chosen: int, so_far: Callable[[], Decisions], placed: Placed
) -> Cloud:
    """The cloud after one more decision, the choice of that one of rows (M, K).

    so_far: all decisions up to this one, asked for only when particles have to move.
    """
    learnt = 0.0
    while True:
        factors = log_chances(rows, chosen, cloud.values)
        count, left = len(factors), 1.0 - learnt
        if effective_size(cloud.log_weights + left * factors) < SUDDEN * count:
            left = _part(cloud.log_weights, factors, min(PART * count, 0.9 * cloud.effective), left)
        learnt += left
        cloud = cloud.weighed(left * factors)
        if learnt >= 1.0:
            break
        cloud = _moved(rng, cloud.resampled(rng), so_far(), placed, learnt)
    if cloud.effective < HALF * len(cloud.values):
        cloud = _moved(rng, cloud.resampled(rng), so_far(), placed, 1.0)
    return cloud


def _part(log_weights: Floats, factors: Floats, enough: float, most: float) -> float:
    """The power of the factors that leaves just enough effective particles, by bisection."""
    low, high = 0.0, most
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if effective_size(log_weights + middle * factors) > enough else (low, middle)
    return high


def _moved(rng: np.random.Generator, cloud: Cloud, decisions: Decisions, placed: Placed, learnt: float) -> Cloud:
    """Rounds of moves for every particle, under the posterior in which the last decision counts as much as was learnt of it."""
    weight = np.ones(len(decisions))
    weight[-1] = learnt
    engine = Blended.build(decisions, placed, weight if learnt < 1.0 else None)
    loose = _loosened(rng, placed, cloud.values)
    flat = engine.flattened(rng, cloud.values)
    begun = flat.coordinates(loose)
    chart, directions = flat.stretched(begun, POWER), engine.directions(flat.stretched(begun, 1.0))
    target, work = engine.posterior(chart)
    x = np.ascontiguousarray(chart.coordinates(loose))
    begun = x.copy()
    step, _ = wander(rng, target, work, 0.5, x[rng.integers(len(x))], TUNING)
    labour = Labour.of(target, work, x[0], decisions.rows.shape[0])
    round, mixture = path_round(step), no_mixture(x.shape[1])
    proposal = learn_proposal(rng, target, work, x, 500) if engine.few else None
    if proposal is not None and proposal.usable:
        round, mixture = round._replace(leaps=LEAPS), proposal.mixture
    # A mixture that fits needs no more than a path beside it.
    sure = proposal is not None and proposal.guard == AT_LEAST
    if engine.weaves and not sure and labour.sweep < DEAR * labour.path(round):
        round = round._replace(sweeps=1)
    round = round._replace(moves=round.paths + round.sweeps + round.leaps)
    latent, size = latent_of(engine.inner, directions, round.sweeps > 0), engine.size(x.shape[1])
    values, accepted, lead = np.empty_like(cloud.values), np.empty(len(x)), np.zeros(len(decisions))
    for _ in range(ROUNDS):
        move_flock(
            rng, target, work, engine_map(chart, placed), round, mixture, latent, size, lead, x, values, accepted
        )
        if _memory(begun, x) < FORGOTTEN:
            break
    return replace(cloud, values=values)


def _loosened(rng: np.random.Generator, placed: Placed, values: Floats) -> Floats:
    """Values (N, K) with the constants of centred blocks drawn from their prior, at its own size where that is learnt."""
    if placed.scale is None:
        return placed.loosened(rng, values)
    noise = rng.standard_normal((len(values), placed.constants.shape[1])) / np.sqrt(placed.slack)
    return np.asarray(values + (draw_sizes(rng, placed, values)[:, None] * noise) @ placed.constants.T)


def draw_sizes(rng: np.random.Generator, placed: Placed, values: Floats) -> Floats:
    """(N,) the size of the prior given each of values (N, K), exactly."""
    assert placed.scale is not None
    q, none, square = (values - placed.mean) @ placed.basis, np.zeros(0), np.zeros((0, 0))
    size = Size(placed.scale, q.shape[1], none, none, square, 0.0, square, none, none, 0.0)
    return np.array([draw_sd(rng, size, quad) for quad in np.einsum("ni,ij,nj->n", q, placed.precision, q)])


def _memory(before: Floats, after: Floats) -> float:
    """The largest correlation between coordinates, or their squares, before and after."""
    return max(
        float(np.abs(np.einsum("nd,nd->d", _standard(a), _standard(b))).max() / len(a))
        for a, b in ((before, after), ((before - before.mean(0)) ** 2, (after - after.mean(0)) ** 2))
    )


def _standard(x: Floats) -> Floats:
    return np.asarray((x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-300))


def dense(rows: Any) -> Floats:
    """Rows as an array, side by side in memory."""
    return np.ascontiguousarray(rows.toarray() if hasattr(rows, "toarray") else rows)


@dataclass(frozen=True, eq=False)
class Sequential:
    """The engine: one cloud a chain, one decision an iteration of its warm-up, as many particles as there are to be draws."""

    decisions: Decisions
    placed: Placed
    particles: int

    def __post_init__(self) -> None:
        refuse_unfit(self.placed)

    @property
    def name(self) -> str:
        """What users call it."""
        return "ibis"

    def start(self, rng: np.random.Generator, init: Floats | None) -> State:
        """Draws of the prior."""
        return _written(Cloud.of(rng, self.placed, self.particles)) | {"seen": np.zeros(1), "given": np.zeros(1)}

    def warm(self, rng: np.random.Generator, state: State, left: int, piece: int) -> tuple[State, int]:
        """Learn some of the decisions; after the last, particles of equal weight are picked."""
        cloud, seen = _read(state), int(state["seen"][0])
        count = min(piece, left)
        for t in range(seen, seen + count):
            cloud = self._learn(rng, cloud, t)
        new = _written(cloud) | {"seen": np.array([seen + count]), "given": np.zeros(1)}
        if count == left:
            new["parents"] = systematic(rng, cloud.weights).astype(np.float64)
        return new, count

    def _learn(self, rng: np.random.Generator, cloud: Cloud, t: int) -> Cloud:
        d = self.decisions
        rows, chosen = dense(d.rows[d.start[t] : d.start[t + 1]]), int(d.taken[t] - d.start[t])
        return learn_one(rng, cloud, rows, chosen, lambda: d.first(t + 1), self.placed)

    def advance(self, rng: np.random.Generator, state: State, draws: int, thin: int) -> tuple[State, Floats, Stats]:
        """The next particles; of each the log of its weight, times N, before it was picked, and the log evidence of its cloud."""
        given, cloud = int(state["given"][0]), _read(state)
        parents = state["parents"][given : given + draws].astype(np.int64)
        values = cloud.values[parents]
        stats = {
            "log_weight": np.log(len(cloud.values) * cloud.weights[parents]),
            "log_evidence": np.full(draws, cloud.log_evidence),
        }
        if self.placed.scale is not None:
            stats["prior_sd"] = draw_sizes(rng, self.placed, values)
        return state | {"given": np.array([given + draws])}, values, stats


def refuse_unfit(placed: Placed) -> None:
    """Particles begin as draws of the prior."""
    if placed.flat:
        raise ValueError(
            "learning one decision at a time begins with draws of the prior, and a flat prior has none; "
            "give us.Gaussian(variance)"
        )


def _written(cloud: Cloud) -> State:
    return {"values": cloud.values, "log_weights": cloud.log_weights, "evidence": np.array([cloud.log_evidence])}


def _read(state: State) -> Cloud:
    return Cloud(state["values"], state["log_weights"], float(state["evidence"][0]))
