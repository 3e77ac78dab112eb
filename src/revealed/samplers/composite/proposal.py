"""The mixture proposal of independence steps: how it is fitted, and how well it fits.

A mixture of normals with a Student-t part for the tails is fitted to draws of the posterior, and
then to its own importance draws. Its fit is judged by the importance efficiency and by Pareto k of
the largest weights. Everything is decided by counting, never by a clock, so that the same seed
fits the same proposal; once warm-up is over it is fixed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from revealed._types import Floats
from revealed.kernels.composite import (
    ChainArrays,
    CompositeProblem,
    Cycle,
    CycleState,
    TuningArrays,
    make_draw_arrays,
    run_cycles,
)
from revealed.kernels.independence import Mixture, log_peak_densities
from revealed.kernels.interrupt import raise_if_stopping
from revealed.kernels.prior_scale import PriorScale
from revealed.results.psis import pareto_k
from revealed.samplers.composite.mixture_fit import MixtureParts, fit_mixture
from revealed.samplers.composite.prior_part import PriorParts

# One draw of the mixture for every kept draw, and no other moves.
IMPORTANCE = Cycle(
    hmc=0,
    augmentation=0,
    independence=1,
    step_size=0.0,
    min_steps=0,
    max_steps=0,
    moves_per_draw=1,
)


@dataclass(frozen=True)
class ProposalSettings:
    """How a proposal is fitted, and how far it is relied upon."""

    # Per coordinate, the share by which the fitted covariances are inflated. A proposal that is
    # too narrow in some direction has unbounded importance weights; one too wide is rejected.
    widening: float = 0.04
    # The share of the Student-t part, per coordinate and at most; and its covariance in units of
    # the posterior's. It bounds the weights where the normals fit badly.
    tail_share: float = 0.025
    max_tail_share: float = 0.2
    tail_covariance: float = 1.5
    # The variance towards which a part's covariance is shrunk, in whitened coordinates: without it
    # a part may collapse on a single point.
    ridge: float = 0.03
    # A part with a smaller share is dropped.
    min_share: float = 0.003
    # Pareto k (Vehtari, Simpson, Gelman, Yao and Gabry 2024): up to 0.5 importance weights have a
    # finite variance, up to 0.7 estimates by them are reliable in practice, from 1 on their mean
    # does not exist.
    pareto_k_good: float = 0.5
    pareto_k_ok: float = 0.7
    pareto_k_max: float = 1.0
    # Importance efficiency: beyond the first no further fitting is needed; beyond the second and
    # with a good k, the least share of other moves is enough; below the third, draws are joined
    # with the points they were fitted to; below the last, steps are hardly ever accepted.
    efficiency_good: float = 0.95
    efficiency_ok: float = 0.4
    efficiency_poor: float = 0.3
    efficiency_min: float = 0.02
    # The share of the work that moves without a proposal keep, by how well it fits. If it were
    # zero, a region that the proposal misses would never be visited.
    min_safe_share_good: float = 0.1
    min_safe_share_ok: float = 0.3
    min_safe_share_bad: float = 0.6


PROPOSAL = ProposalSettings()


@dataclass(frozen=True, eq=False)
class Proposal:
    """A mixture, and how well it fits: its importance efficiency and Pareto k.

    The efficiency says how often independence steps are accepted, Pareto k whether some region
    of the posterior is missed.
    """

    mixture: Mixture
    efficiency: float
    pareto_k: float

    @property
    def usable(self) -> bool:
        """Whether independence steps from it are worth taking at all.

        They are not where the weights have no mean, or hardly any step would be accepted.
        """
        return self.pareto_k < PROPOSAL.pareto_k_max and self.efficiency > PROPOSAL.efficiency_min

    @property
    def score(self) -> float:
        """The number by which proposals are compared.

        It is the efficiency, quartered for a Pareto k that is not reliable: a proposal with a few
        huge weights is worth little, however efficient it looks.
        """
        return self.efficiency * (1.0 if self.pareto_k < PROPOSAL.pareto_k_ok else 0.25)

    @property
    def min_safe_share(self) -> float:
        """The least share of the work that moves without a proposal should have beside it."""
        if self.pareto_k < PROPOSAL.pareto_k_good and self.efficiency > PROPOSAL.efficiency_ok:
            return PROPOSAL.min_safe_share_good
        if self.pareto_k < PROPOSAL.pareto_k_ok:
            return PROPOSAL.min_safe_share_ok
        return PROPOSAL.min_safe_share_bad


@dataclass(frozen=True, eq=False)
class EvaluatedProposal:
    """A proposal, and the importance draws that show how good it is.

    draws: (n, D) from the mixture. log_weights: (n,) log of posterior over mixture at each.
    """

    proposal: Proposal
    draws: Floats
    log_weights: Floats


def importance_efficiency(log_weights: Floats) -> float:
    """The effective share of importance draws with these log weights (n,).

    It is (sum w)^2 / (n sum w^2), between 1 / n and one (Kong 1992).
    """
    w = np.exp(log_weights - log_weights.max())
    return float(w.sum() ** 2 / (w @ w) / w.size)


def fit_proposal(
    rng: np.random.Generator,
    problem: CompositeProblem,
    prior_scale: PriorScale | None,
    points: Floats,
    max_draws: int,
) -> Proposal:
    """Fit a mixture to draws of the posterior (n, D), then to its own importance draws.

    Each round draws from the mixture and refits it to the draws weighted towards the posterior
    (Cappe, Douc, Guillin, Marin and Robert 2008, adaptive importance sampling in general mixture
    classes). It ends when the fit is good, or after a few rounds; the best of them is returned.
    """
    prior_parts = PriorParts.build(problem.target, prior_scale)
    weights = np.full(len(points), 1.0 / len(points))
    parts, mixture = _fit_parts(points, weights, 1, rng, prior_parts)
    trial = best = evaluate_proposal(rng, problem, prior_scale, mixture, min(max_draws, 500))
    # The number of normals in each round; up to three coordinates four are enough.
    for count in (4, 4, 4) if points.shape[1] <= 3 else (4, 8, 8, 8, 8):
        if (
            best.proposal.efficiency > PROPOSAL.efficiency_good
            and best.proposal.pareto_k < PROPOSAL.pareto_k_good
        ):
            break
        fitted_points, fitted_weights = points, weights
        points, weights = trial.draws, _clipped_weights(trial.log_weights)
        # A poor batch is helped by the points it came from.
        if len(fitted_points) > 0 and trial.proposal.efficiency < PROPOSAL.efficiency_poor:
            points = np.concatenate([points, fitted_points])
            weights = np.concatenate([0.5 * weights, 0.5 * fitted_weights])
        kept = weights > 1e-12
        points, weights = np.ascontiguousarray(points[kept]), weights[kept] / weights[kept].sum()
        # More normals than before are placed afresh; as many are refined.
        parts, mixture = (
            _fit_parts(points, weights, count, rng, prior_parts)
            if len(parts[0]) < count
            else _fit_parts(points, weights, 0, rng, prior_parts, parts)
        )
        trial = evaluate_proposal(rng, problem, prior_scale, mixture, max_draws)
        if trial.proposal.score > best.proposal.score:
            best = trial
    return best.proposal


def _fit_parts(
    points: Floats,
    weights: Floats,
    count: int,
    rng: np.random.Generator,
    prior_parts: PriorParts,
    initial: MixtureParts | None = None,
) -> tuple[MixtureParts, Mixture]:
    """Normals fitted to weighted points (n, D) by expectation-maximisation, and their mixture.

    They start from `initial`, or from `count` means drawn far from one another, as in k-means++
    (Arthur and Vassilvitskii 2007). The mixture has the other parts, too.
    """
    width = points.shape[1]
    if initial is None:
        centre = weights @ points
        variance = float(weights @ ((points - centre) ** 2).mean(axis=1))
        means = points[[rng.choice(len(points), p=weights)]]
        nearest = np.full(len(points), np.inf)
        # Each further mean is drawn by weight and squared distance to the nearest one so far.
        for _ in range(count - 1):
            nearest = np.minimum(nearest, ((points - means[-1]) ** 2).sum(axis=1))
            far = weights * nearest
            means = np.concatenate([means, points[[rng.choice(len(points), p=far / far.sum())]]])
        # Points that all coincide have no variance, and a factorisation wants one.
        variance = max(variance * count ** (-1.0 / width), 1e-300)
        covariance = np.tile(variance * np.eye(width), (count, 1, 1))
        initial, iterations = (np.full(count, 1.0 / count), means, covariance), 25
    else:
        iterations = 8
    (share, means, covariance), prior_share, which = fit_mixture(
        points,
        weights,
        initial,
        PROPOSAL.ridge,
        iterations,
        prior_parts.log_densities(points),
    )
    kept = share > PROPOSAL.min_share * (1.0 - prior_share)
    parts = (
        share[kept] / share[kept].sum(),
        np.ascontiguousarray(means[kept]),
        np.ascontiguousarray(covariance[kept]),
    )
    mixture = add_student_tail(parts, points, weights)
    return parts, prior_parts.add_to(mixture, prior_share, which)


def evaluate_proposal(
    rng: np.random.Generator,
    problem: CompositeProblem,
    prior_scale: PriorScale | None,
    mixture: Mixture,
    count: int,
) -> EvaluatedProposal:
    """The proposal of this mixture, with `count` importance draws from it."""
    width = mixture.mean.shape[1]
    draws, log_weights = np.empty((count, width)), np.empty(count)
    run_cycles(
        rng,
        *problem._replace(mixture=mixture, cycle=IMPORTANCE),
        prior_scale,
        1,
        ChainArrays(np.empty(width), np.empty(width), np.empty(0)),
        CycleState(0.0, 0.0, False, False, 0),
        make_draw_arrays(count, len(problem.transform.centre), tuning=True),
        TuningArrays(draws, np.empty(0), 0.0, 0.0, log_weights),
    )
    raise_if_stopping()
    proposal = Proposal(mixture, importance_efficiency(log_weights), pareto_k(log_weights))
    return EvaluatedProposal(proposal, draws, log_weights)


def add_student_tail(parts: MixtureParts, points: Floats, weights: Floats) -> Mixture:
    """The mixture of these parts made somewhat wider, and of a Student-t part.

    The latter comes last, with the mean and covariance of all weighted points (n, D) together,
    which are those that the parts were fitted to.
    """
    share, means, covariance = parts
    centre = weights @ points
    total = (weights[:, None] * (points - centre)).T @ (points - centre)
    tail_share = min(PROPOSAL.tail_share * len(total), PROPOSAL.max_tail_share)
    share = np.append((1.0 - tail_share) * share, tail_share)
    # The tiny multiple of the identity keeps the factorisation going where points coincide.
    widened = (1.0 + PROPOSAL.widening * len(total)) * covariance
    tail = PROPOSAL.tail_covariance * total[None] + 1e-12 * np.eye(len(total))
    factor = np.linalg.cholesky(np.concatenate([widened, tail]))
    inverse = np.ascontiguousarray(np.linalg.inv(factor))
    means = np.ascontiguousarray(np.concatenate([means, centre[None]]))
    return Mixture(
        share,
        means,
        np.ascontiguousarray(factor),
        inverse,
        log_peak_densities(share, inverse),
        np.zeros(0),
        np.zeros((0, 0)),
    )


def null_mixture(width: int) -> Mixture:
    """A mixture of one standard normal in `width` coordinates, for cycles that use no mixture."""
    one = np.eye(width)[None]
    return Mixture(
        np.ones(1), np.zeros((1, width)), one, one, np.zeros(1), np.zeros(0), np.zeros((0, 0))
    )


def _clipped_weights(log_weights: Floats) -> Floats:
    """Importance weights (n,) that add up to one, the largest of them cut to one size.

    These are the largest hundredth, or twenty: a fit must not follow a few huge weights.
    """
    top = np.sort(log_weights)[-max(20, log_weights.size // 100)]
    w = np.exp(np.minimum(log_weights, top) - top)
    return np.asarray(w / w.sum())
