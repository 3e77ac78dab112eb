"""What moves cost, counted instead of clocked, so that a seed makes the same choices on any day.

The unit is about a nanosecond of one core; only ratios matter. An evaluation of the log posterior
costs so much per decision, rival and product of the design; a Hamiltonian move is so many
evaluations with their gradient; a sweep of data augmentation costs so much per row and direction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from revealed._types import Floats
from revealed.kernels.choice_fast import RivalIndex
from revealed.kernels.choice_lattice import FAST_RULE
from revealed.kernels.composite import Cycle
from revealed.kernels.independence import Mixture
from revealed.kernels.log_posterior import (
    LogPosterior,
    log_posterior,
    make_posterior_workspace,
)


@dataclass(frozen=True)
class CostConstants:
    """Nanoseconds of single steps, fitted to the measurements of `benchmarks/costs.py`.

    Wrong constants make a worse choice of the cycle, and draws that are as right.
    """

    # Of an evaluation of the log posterior: per decision, per rival in decisions where more than
    # three rivals matter, per rival, per product of the design or of the coordinates.
    per_decision: float = 60.0
    per_relevant_rival: float = 20.0
    per_rival: float = 1.0
    per_product: float = 0.3
    # An evaluation with its gradient, in evaluations without.
    gradient_factor: float = 1.45
    # Of a sweep: per row, per row and direction of interweaving, per direction.
    per_utility: float = 25.0
    per_utility_direction: float = 2.5
    per_direction: float = 400.0
    # Of a mixture's density: per part and coordinate.
    per_mixture_coefficient: float = 5.0


COST = CostConstants()


@dataclass(frozen=True)
class CostModel:
    """The cost of single moves on one posterior.

    log_posterior: of one evaluation. augmentation: of one sweep. width: the number of coordinates.
    """

    log_posterior: float
    augmentation: float
    width: int

    @staticmethod
    def at(target: LogPosterior, x: Floats, rows: int) -> CostModel:
        """Count the terms of an evaluation at x (D,), and of a sweep over so many rows."""
        # The evaluation leaves the rivals' utility gaps at x in its workspace; one of its own, so
        # that nothing of the caller's changes.
        workspace = make_posterior_workspace(target)
        log_posterior(target, workspace, x, -np.inf, np.empty(0))
        relevant = count_relevant_rivals(
            target.rival_index, workspace.utility_gap[: target.rival_index.multiplicity.size]
        )
        width, rivals = len(x), len(target.rival_index.multiplicity)
        dense = target.design.columns.size
        # A product of a sparse design costs about four of a dense one.
        products = (dense if dense else 4 * len(target.design.data)) + target.unwhiten.size
        evaluation = (
            COST.per_decision * len(target.rival_index.weight)
            + COST.per_relevant_rival * relevant
            + COST.per_rival * rivals
            + COST.per_product * products
        )
        # Interweaving moves in every coordinate's direction and in four random ones.
        directions = width + 4
        sweep = (
            rows * (COST.per_utility + COST.per_utility_direction * directions)
            + COST.per_direction * directions
        )
        return CostModel(evaluation, sweep, width)

    def hmc(self, cycle: Cycle) -> float:
        """The cost of one Hamiltonian move with the cycle's mean number of steps."""
        return COST.gradient_factor * self.log_posterior * 0.5 * (cycle.min_steps + cycle.max_steps)

    def independence(self, mixture: Mixture) -> float:
        """The cost of one independence step: one evaluation, and the mixture's density."""
        return self.log_posterior + COST.per_mixture_coefficient * self.width * len(mixture.weight)


def count_relevant_rivals(rival_index: RivalIndex, utility_gap: Floats) -> int:
    """How many rivals matter, by their utility gaps (R,), in decisions where more than three do.

    As in the likelihood, a rival matters unless it lies far below a lower bound of the mode, which
    is half way to the best rival where that is better than the chosen action.
    """
    if not utility_gap.size:
        return 0
    # Only decisions that have a rival at all: `reduceat` has no empty segments.
    with_rivals = np.flatnonzero(np.diff(rival_index.start))
    first, sizes = rival_index.start[with_rivals], np.diff(rival_index.start)[with_rivals]
    best = np.maximum(np.maximum.reduceat(utility_gap, first), 0.0)
    matters = utility_gap > 0.5 * np.repeat(best, sizes) - FAST_RULE.irrelevance_margin
    counts = np.add.reduceat(matters.astype(np.int64), first)
    return int(counts[counts > 3].sum())
