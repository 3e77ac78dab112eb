"""What moves cost, counted instead of clocked, so that the same seed makes the same choices on any day.

The unit is about a nanosecond of one core; only ratios matter. The constants are fitted to `benchmarks/costs.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from understudy._arrays import Floats
from understudy.kernels.blend import Round
from understudy.kernels.collapsed import SKIP, Offers
from understudy.kernels.mixture import Mixture
from understudy.kernels.target import Target, Work, log_posterior

DECISION, NEAR, ROW, TERM = (
    60.0,
    20.0,
    1.0,
    0.3,
)  # an evaluation: per decision, rival of many that matter, rival, product
GRADIENT = 1.45  # of an evaluation
UTILITY, EDGE, DIRECTION = 25.0, 2.5, 400.0  # a sweep: per row, row and direction, direction
PART = 5.0  # of a mixture, per coefficient


@dataclass(frozen=True)
class Labour:
    """The cost of one evaluation of the log posterior, and of one sweep; and how many coefficients there are."""

    value: float
    sweep: float
    width: int

    @staticmethod
    def of(target: Target, work: Work, x: Floats, rows: int) -> Labour:
        """Count what is looked at near x."""
        log_posterior(target, work, x, -np.inf, np.empty(0))  # leaves the rivals' gaps in work
        width, rivals = len(x), len(target.offers.copies)
        dense = target.design.columns.size
        products = (dense if dense else 4 * len(target.design.data)) + target.turn.size
        near = count_near(target.offers, work.gap)
        value = DECISION * len(target.offers.weight) + NEAR * near + ROW * rivals + TERM * products
        directions = width + 4
        return Labour(value, rows * (UTILITY + EDGE * directions) + DIRECTION * directions, width)

    def path(self, round: Round) -> float:
        """One Hamiltonian move."""
        return GRADIENT * self.value * 0.5 * (round.fewest + round.most)

    def leap(self, mixture: Mixture) -> float:
        """One independence step."""
        return self.value + PART * self.width * len(mixture.share)


def count_near(offers: Offers, gap: Floats) -> int:
    """How many rivals matter, by their gaps (R,), in decisions with more than three of them."""
    if not gap.size:
        return 0
    some = np.flatnonzero(np.diff(offers.first))  # decisions that have a rival at all
    first, sizes = offers.first[some], np.diff(offers.first)[some]
    ahead = np.maximum(np.maximum.reduceat(gap, first), 0.0)
    near = np.add.reduceat((gap > 0.5 * np.repeat(ahead, sizes) - SKIP).astype(np.int64), first)
    return int(near[near > 3].sum())
