"""Data augmentation with a full noise covariance (paper, section 4.1.4), corrected.

A Gibbs sampler of utilities, coefficients and covariance; the reference for "ghk-hmc", which mixes
far better.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from revealed._types import Floats
from revealed.data.decisions import Decisions
from revealed.kernels.covariance_gibbs import (
    CoefficientPrior,
    DifferencedDecisions,
    NoisePrior,
    sample_chain,
)
from revealed.models.correlated_noise import ResolvedNoise
from revealed.models.likelihood import posterior_mode
from revealed.models.priors import ResolvedPrior
from revealed.samplers.base import Draws, State, Stats


@dataclass(frozen=True, eq=False)
class CovarianceGibbsSampler:
    """The sampler, ready to run on one set of decisions under one prior."""

    decisions: Decisions
    resolved_prior: ResolvedPrior
    noise: ResolvedNoise

    @property
    def name(self) -> str:
        """What users call it."""
        return "da"

    @cached_property
    def differenced(self) -> DifferencedDecisions:
        """The decisions as utilities less the base's."""
        return difference_decisions(self.decisions, self.noise)

    def init(self, rng: np.random.Generator, position: Floats | None) -> State:
        """At `position`, or at the mode, under independent noise.

        Utilities (T, D) are drawn with the chosen one above and all others below the base's.
        """
        v = (
            posterior_mode(self.decisions, self.resolved_prior)[0] / np.sqrt(2.0)
            if position is None
            else position
        )
        return {
            "v": v.copy(),
            "w": initial_utilities(rng, self.differenced),
            "covariance": independent_covariance(self.noise),
        }

    def warmup(
        self, rng: np.random.Generator, state: State, remaining: int, chunk: int
    ) -> tuple[State, int]:
        """Iterate; there is nothing to adapt."""
        made = min(remaining, chunk)
        return self.sample(rng, state, 1, made)[0], made

    def sample(
        self, rng: np.random.Generator, state: State, draws: int, thin: int
    ) -> tuple[State, Draws, Stats]:
        """Make draws * thin iterations."""
        new = {name: value.copy() for name, value in state.items()}
        prior, size = self.resolved_prior, len(self.noise.non_base)
        values, covariances = np.empty((draws, len(new["v"]))), np.empty((draws, size, size))
        acceptance_rate = np.empty(draws)
        # the kernel changes the arrays of the new state in place
        sample_chain(
            rng,
            self.differenced,
            CoefficientPrior(prior.basis, prior.precision, prior.basis.T @ prior.mean),
            noise_prior(self.noise),
            thin,
            new["v"],
            new["w"],
            new["covariance"],
            values,
            covariances,
            acceptance_rate,
        )
        drawn = {"value": values, "noise_covariance": covariances}
        return new, drawn, {"acceptance_rate": acceptance_rate}


def difference_decisions(decisions: Decisions, noise: ResolvedNoise) -> DifferencedDecisions:
    """The decisions as utilities less the base's."""
    # rows as (T, labels, K), zero where a label is not offered
    rows = np.asarray(decisions.rows.todense() if sp.issparse(decisions.rows) else decisions.rows)
    by_label = np.zeros((len(decisions), len(noise.labels), rows.shape[1]))
    offered = np.zeros((len(decisions), len(noise.labels)), dtype=np.bool_)
    by_label[decisions.decision_of_row, noise.of_row] = rows
    offered[decisions.decision_of_row, noise.of_row] = True
    # less the base's, which moves from the labels to its own arrays
    others = np.delete(np.arange(len(noise.labels)), noise.base)
    base_rows = np.where(offered[:, others, None], by_label[:, [noise.base]], 0.0)
    label = noise.of_row[decisions.chosen_row]
    return DifferencedDecisions(
        design=np.ascontiguousarray(by_label[:, others] - base_rows),
        offered=np.ascontiguousarray(offered[:, others]),
        base_offered=np.ascontiguousarray(offered[:, noise.base]),
        chosen=np.where(label == noise.base, -1, label - (label > noise.base)),
    )


def noise_prior(noise: ResolvedNoise) -> NoisePrior:
    """The prior of the noise, as kernels take it."""
    return NoisePrior(noise.df, noise.root, noise.scale == "trace")


def independent_covariance(noise: ResolvedNoise) -> Floats:
    """(D, D) that of independent noise: differences against one base have correlation one half."""
    return np.asarray(0.5 * (1.0 + np.eye(len(noise.non_base))))


def initial_utilities(rng: np.random.Generator, differenced: DifferencedDecisions) -> Floats:
    """(T, D) utilities that explain the choices, whatever the values.

    All are below the base's zero, but for the chosen ones, which are mirrored.
    """
    w = -np.abs(rng.standard_normal(differenced.offered.shape))
    not_base = np.flatnonzero(differenced.chosen >= 0)
    w[not_base, differenced.chosen[not_base]] *= -1.0
    return w
