"""What the default engine learns in warm-up: coordinates, a step length, a proposal, and how to share the work.

Everything is decided by counting (draws, rows, nodes), never by a clock, so that the same seed learns the same. When it
is over, all of it is frozen; the draws made meanwhile are thrown away.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from understudy._arrays import Floats
from understudy.diagnostics import ess_bulk, ess_squares
from understudy.engines.labour import Labour
from understudy.kernels.blend import Round
from understudy.kernels.hamiltonian import learn_step
from understudy.kernels.mixture import Mixture, heights, refine, sample
from understudy.kernels.target import Target, Work, log_posterior
from understudy.pareto import pareto_k

WILLING = 0.8  # the acceptance that Hamiltonian steps aim at
LENGTH = 1.9  # of a path, in coordinates where the posterior is about one wide
WIDER, HEAVY = 0.04, 0.025  # a coefficient: how much wider than fitted the proposal's parts are; its heavy tail's share
TAIL = 1.5  # the heavy part's covariance, in units of the posterior's
FAIR, POOR, BAD = 0.5, 0.7, 1.0  # Pareto k: beyond the first, safe moves get more of the work; beyond the last, all
GOOD, HALF_GOOD = 0.95, 0.4  # importance efficiency: needs no improving; needs no more guarding than a perfect one
RIDGE = 0.03  # the variance that keeps a part of the mixture from collapsing
AT_LEAST, MORE, MOST = 0.1, 0.3, 0.6  # shares of the work for moves that need no proposal, by how well it fits
RIVAL = 3.0  # paths and sweeps both stay in the round if neither is this much dearer than the other
FARTHEST = 500.0  # steps of a path
SHORTEST = 1e-4  # a step below which there is no use in trying again
LONGEST = 100  # leaps in a round


def efficiency(log_weights: Floats) -> float:
    """The share of importance draws that count: (sum w)^2 / (n sum w^2)."""
    w = np.exp(log_weights - log_weights.max())
    return float(w.sum() ** 2 / (w @ w) / w.size)


def effective(draws: Floats) -> float:
    """Effective draws of the slowest coordinate that moves at all, bulk or of squares whichever are fewer.

    The least of many estimates from few draws looks worse than it is: of more than forty, one in forty is passed over.
    """
    found = np.concatenate([ess_bulk(draws[None]), ess_squares(draws[None])])
    found = np.sort(found[np.isfinite(found)])
    return float(max(1.0, found[found.size // 40])) if found.size else float(len(draws))


@dataclass(frozen=True, eq=False)
class Proposal:
    """A mixture, and how well it fits: its importance efficiency and Pareto k."""

    mixture: Mixture
    efficiency: float
    k: float

    @property
    def usable(self) -> bool:
        """Whether independence steps from it are worth taking at all."""
        return self.k < BAD and self.efficiency > 0.02

    @property
    def score(self) -> float:
        """By which proposals are compared: one with a few huge weights is worth little, however efficient it looks."""
        return self.efficiency * (1.0 if self.k < POOR else 0.25)

    @property
    def guard(self) -> float:
        """The least share of the work that safe moves should have beside it."""
        return AT_LEAST if self.k < FAIR and self.efficiency > HALF_GOOD else MORE if self.k < POOR else MOST


def learn_proposal(rng: np.random.Generator, target: Target, work: Work, points: Floats, most: int) -> Proposal:
    """Fit a mixture to draws of the posterior, then to its own importance draws, until it is good or gains no more.

    Cappe, Douc, Guillin, Marin and Robert (2008), adaptive importance sampling in general mixture classes: each round
    draws from the mixture and refits it to the draws weighted towards the posterior.
    """
    weights = np.full(len(points), 1.0 / len(points))
    parts = _fit(points, weights, 1, rng)
    best = current = _try(rng, target, work, parts, points, weights, min(most, 500))
    proposal, drawn, log_weights = current
    for count in (4, 4, 4) if points.shape[1] <= 3 else (4, 8, 8, 8, 8):
        if best[0].efficiency > GOOD and best[0].k < FAIR:
            break
        old = points, weights
        points, weights = drawn, _clipped(log_weights)
        if len(old[0]) > 0 and proposal.efficiency < 0.3:  # a poor batch is helped by the points it came from
            points = np.concatenate([points, old[0]])
            weights = np.concatenate([0.5 * weights, 0.5 * old[1]])
        kept = weights > 1e-12
        points, weights = np.ascontiguousarray(points[kept]), weights[kept] / weights[kept].sum()
        parts = _fit(points, weights, count, rng) if len(parts[0]) < count else _fit(points, weights, 0, rng, parts)
        proposal, drawn, log_weights = current = _try(rng, target, work, parts, points, weights, most)
        if proposal.score > best[0].score:
            best = current
    return best[0]


Parts = tuple[Floats, Floats, Floats]


def _fit(points: Floats, weights: Floats, count: int, rng: np.random.Generator, begin: Parts | None = None) -> Parts:
    """Shares, means and covariances of normals fitted to weighted points, from scratch or from those given."""
    width = points.shape[1]
    if begin is None:
        middle = weights @ points
        spread = float(weights @ ((points - middle) ** 2).mean(axis=1))
        means = points[[rng.choice(len(points), p=weights)]]
        nearest = np.full(len(points), np.inf)
        for _ in range(count - 1):
            nearest = np.minimum(nearest, ((points - means[-1]) ** 2).sum(axis=1))
            far = weights * nearest
            means = np.concatenate([means, points[[rng.choice(len(points), p=far / far.sum())]]])
        share = np.full(count, 1.0 / count)
        covariance = np.tile(spread * count ** (-1.0 / width) * np.eye(width), (count, 1, 1))
        rounds = 25
    else:
        share, means, covariance = (part.copy() for part in begin)
        rounds = 8
    refine(points, weights, share, means, covariance, RIDGE, rounds)
    kept = share > 0.003
    return share[kept] / share[kept].sum(), np.ascontiguousarray(means[kept]), np.ascontiguousarray(covariance[kept])


def _try(
    rng: np.random.Generator, target: Target, work: Work, parts: Parts, points: Floats, weights: Floats, count: int
) -> tuple[Proposal, Floats, Floats]:
    """The proposal made of these parts, and importance draws from it that show how good it is."""
    mixture = with_tail(parts, points, weights)
    drawn, log_weights = np.empty((count, points.shape[1])), np.empty(count)
    sample(rng, target, work, mixture, drawn, log_weights)
    return Proposal(mixture, efficiency(log_weights), pareto_k(log_weights)), drawn, log_weights


def with_tail(parts: Parts, points: Floats, weights: Floats) -> Mixture:
    """The parts made somewhat wider, and a Student-t part as wide as all points together."""
    share, means, covariance = parts
    middle = weights @ points
    total = (weights[:, None] * (points - middle)).T @ (points - middle)
    heavy = min(HEAVY * len(total), 0.2)
    share = np.append((1.0 - heavy) * share, heavy)
    factor = np.linalg.cholesky(
        np.concatenate([(1.0 + WIDER * len(total)) * covariance, TAIL * total[None] + 1e-12 * np.eye(len(total))])
    )
    inverse = np.ascontiguousarray(np.linalg.inv(factor))
    means = np.ascontiguousarray(np.concatenate([means, middle[None]]))
    return Mixture(share, means, np.ascontiguousarray(factor), inverse, heights(share, inverse))


def _clipped(log_weights: Floats) -> Floats:
    """Importance weights that add to one, the largest hundredth cut to one size."""
    top = np.sort(log_weights)[-max(20, log_weights.size // 100)]
    w = np.exp(np.minimum(log_weights, top) - top)
    return np.asarray(w / w.sum())


def wander(
    rng: np.random.Generator, target: Target, work: Work, step: float, x: Floats, count: int
) -> tuple[float, Floats]:
    """Hamiltonian moves from x while the step is learnt: the step, and the draws (count, D).

    Where next to none was accepted, the step was far too long to learn from: again with a tenth of it.
    """
    draws = np.empty((count, x.size))
    learnt = learn_step(rng, target, work, step, LENGTH, WILLING, x.copy(), draws)
    stuck = np.mean((np.diff(draws, axis=0) == 0.0).all(axis=1)) > 0.9 if count > 1 else False
    return wander(rng, target, work, 0.1 * step, x, count) if stuck and step > SHORTEST else (learnt, draws)


def within_reach(target: Target, work: Work, x: Floats) -> Floats:
    """X, drawn towards the mode at zero until the posterior there is not absurd: paths begun beyond a wall end nowhere."""
    none = np.empty(0)
    low = log_posterior(target, work, np.zeros_like(x), -np.inf, none) - 10.0 - 3.0 * len(x)
    while not log_posterior(target, work, x, -np.inf, none) >= low:
        x = 0.5 * x
    return x


def path_round(step: float) -> Round:
    """A round of Hamiltonian moves alone, with paths of about LENGTH."""
    count = min(max(1.0, LENGTH / step), FARTHEST)
    return Round(1, 0, 0, step, max(1, round(0.7 * count)), max(1, round(1.3 * count)), 1)


def no_mixture(width: int) -> Mixture:
    """Stands where no mixture is used."""
    one = np.eye(width)[None]
    return Mixture(np.ones(1), np.zeros((1, width)), one, one, np.zeros(1))


def plan(
    by_path: float, by_sweep: float, by_leap: float, proposal: Proposal | None, paths: Round, labour: Labour
) -> tuple[Mixture, Round]:
    """The round, from effective draws per unit of labour by each kind of move, and the proposal if there is one.

    The better of paths and sweeps is always in the round; beside leaps the other one too, if it is not RIVAL times dearer.
    Leaps that are twice as good leave safe moves only what the proposal's fit demands; others share the work by rates.
    """
    best = max(by_path, by_sweep)
    rival = 1.0 if proposal is None else RIVAL
    with_paths, with_sweeps = by_path * rival >= best, by_sweep * rival >= best
    safe = with_paths * labour.path(paths) + with_sweeps * labour.sweep
    fixed = paths._replace(paths=int(with_paths), sweeps=int(with_sweeps))
    if proposal is None or not proposal.usable or by_leap * RIVAL < best:
        return no_mixture(labour.width), fixed
    cost = labour.leap(proposal.mixture)
    share = proposal.guard if by_leap > 2.0 * best else max(best / (best + by_leap), proposal.guard)
    leaps = round(safe * (1.0 - share) / (share * cost))
    return proposal.mixture, fixed._replace(leaps=min(max(leaps, 1), LONGEST))
