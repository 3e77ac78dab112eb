"""Leaving one out: how well each observation is predicted from all others (PSIS-LOO).

Draws given all observations stand in for draws given all but one, with importance weights of one
over the likelihood of that one, smoothed (Vehtari, Gelman and Gabry 2017).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from revealed._types import Floats, Ints
from revealed.data.threads import map_in_threads
from revealed.results.draw_batches import batch_error, cut_into_batches
from revealed.results.psis import pareto_smoothed
from revealed.samplers.progress import RULE, progress_bar


@dataclass(frozen=True)
class LeaveOneOutLimits:
    """What can be relied on, and how much is worked on at once.

    Attributes
    ----------
    pareto_k
        Beyond which draws given all observations cannot stand in for draws given all but one
        (Vehtari and others 2024); observations beyond it are counted and reported.
    mcse
        Monte-Carlo standard errors beyond which a difference between two models is one: of equal
        models, one pair in a thousand passes three. With fewer, more do; with more, small
        differences are not seen.
    observations
        Different ones that are worked on at once: more need more memory, fewer more time.
    """

    pareto_k: float = 0.7
    mcse: float = 3.0
    observations: int = 64


LIMITS = LeaveOneOutLimits()


@dataclass(frozen=True, eq=False)
class Observations:
    """What was observed, equal observations once.

    kind: (n,) which of the different ones each is. logs_of: from positions among the different ones
    to their log-likelihoods (S, m) in each draw.
    """

    kind: Ints
    logs_of: Callable[[Ints], Floats]

    @property
    def count(self) -> int:
        """How many different ones there are."""
        return int(self.kind.max()) + 1


def all_observations(log_likelihood: Floats) -> Observations:
    """Each observation as one of its own, from log-likelihoods (S, n) in each draw."""
    return Observations(np.arange(log_likelihood.shape[1]), lambda which: log_likelihood[:, which])


@dataclass(frozen=True, eq=False, repr=False)
class LeaveOneOut:
    """The log probability of each observation given the others.

    Attributes
    ----------
    pointwise
        (n,) for each observation.
    pareto_k
        (n,) how far each estimate can be relied on; above 0.7 not at all.
    deviations
        (B,) what the batches of draws (`draw_batches.py`) contribute to the Monte-Carlo error of
        the sum.
    """

    pointwise: Floats
    pareto_k: Floats
    deviations: Floats = field(default_factory=lambda: np.empty(0))

    @property
    def elpd(self) -> float:
        """The sum over all observations.

        Higher is better.
        """
        return float(self.pointwise.sum())

    @property
    def se(self) -> float:
        """The standard error of `elpd` over observations, which count as independent."""
        return float(np.sqrt(len(self.pointwise)) * self.pointwise.std())

    @property
    def mcse(self) -> float:
        """The Monte-Carlo standard error of `elpd`: what another run of the sampler would change.

        By batch means of the draws, and the delta method; not to be relied on where a Pareto k is
        high.
        """
        return float(batch_error(self.deviations)) if self.deviations.size else float("nan")

    @property
    def n_high_pareto_k(self) -> int:
        """How many observations have a Pareto k above 0.7."""
        return int((self.pareto_k > LIMITS.pareto_k).sum())

    def __repr__(self) -> str:
        return (
            f"<LeaveOneOut: elpd {self.elpd:.1f} (se {self.se:.1f}, Monte-Carlo error "
            f"{self.mcse:.2g}) over {len(self.pointwise)} observations, {self.n_high_pareto_k} "
            "with a high Pareto k>"
        )


def leave_one_out(observations: Observations, chains: int, draws: int) -> LeaveOneOut:
    """The log probability of each observation given the others, from chains of draws."""
    batch, count = cut_into_batches(chains, draws), observations.count
    batches = int(batch.max()) + 1

    def leave_out(which: Ints) -> tuple[Floats, Floats, Floats]:
        logs = observations.logs_of(which)
        pointwise, shapes = np.empty(len(which)), np.empty(len(which))
        deviations = np.empty((len(which), batches))
        for i, column in enumerate(np.ascontiguousarray(logs.T)):
            log_weights, shapes[i] = pareto_smoothed(-column)
            weights = np.exp(log_weights - log_weights.max())
            total = weights.sum()
            # a ratio of two means over draws: its logarithm changes by w (p / P - 1) with a draw
            terms = log_weights + column
            shares = np.exp(terms - terms.max())
            pointwise[i] = terms.max() - log_weights.max() + np.log(shares.sum() / total)
            change = shares / shares.sum() - weights / total
            deviations[i] = np.bincount(batch, change, batches)
        return pointwise, shapes, deviations

    blocks = np.array_split(np.arange(count), -(-count // LIMITS.observations))
    with progress_bar("leaving one out", total=len(blocks), after=RULE.unseen) as completed:
        parts = map_in_threads(leave_out, blocks, completed)
    pointwise, shapes, deviations = (np.concatenate(column) for column in zip(*parts, strict=True))
    # equal observations have equal answers
    kind, times = observations.kind, np.bincount(observations.kind, minlength=count)
    return LeaveOneOut(pointwise[kind], shapes[kind], times @ deviations)
