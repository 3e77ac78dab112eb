"""Leaving one out: how well each observation is predicted from all others (PSIS-LOO).

Draws given all observations stand in for draws given all but one, with importance weights of one
over the likelihood of that one, smoothed (Vehtari, Gelman and Gabry 2017).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from revealed._types import Floats
from revealed.results.psis import pareto_smoothed

# Pareto k beyond which draws given all observations cannot stand in for draws given all but one
# (Vehtari and others 2024); observations beyond it are counted and reported.
MAX_PARETO_K = 0.7


@dataclass(frozen=True, eq=False, repr=False)
class LeaveOneOut:
    """The log probability of each observation given the others.

    Attributes
    ----------
    pointwise
        (n,) for each observation.
    pareto_k
        (n,) how far each estimate can be relied on; above 0.7 not at all.
    """

    pointwise: Floats
    pareto_k: Floats

    @property
    def elpd(self) -> float:
        """The sum over all observations; higher is better."""
        return float(self.pointwise.sum())

    @property
    def se(self) -> float:
        """The standard error of `elpd` over observations, which count as independent."""
        return float(np.sqrt(len(self.pointwise)) * self.pointwise.std())

    @property
    def n_high_pareto_k(self) -> int:
        """How many observations have a Pareto k above 0.7."""
        return int((self.pareto_k > MAX_PARETO_K).sum())

    def __repr__(self) -> str:
        return (
            f"<LeaveOneOut: elpd {self.elpd:.1f} ({self.se:.1f}) over {len(self.pointwise)} "
            f"observations, {self.n_high_pareto_k} with a high Pareto k>"
        )


def leave_one_out(log_likelihood: Floats) -> LeaveOneOut:
    """The same from the log-likelihood of each observation in each draw, (S, n)."""
    count = log_likelihood.shape[1]
    pointwise, shapes = np.empty(count), np.empty(count)
    for t, column in enumerate(log_likelihood.T):
        weights, shapes[t] = pareto_smoothed(-column)
        pointwise[t] = logsumexp(weights + column) - logsumexp(weights)
    return LeaveOneOut(pointwise, shapes)
