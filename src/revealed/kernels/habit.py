"""Habits: a choice that is a lapse follows how often each action is taken, whatever it is worth.

    q = pi[label of the choice] / sum over the actions offered of pi[label]

Actions have labels, and pi ~ Dirichlet(1, ..., 1) has a probability for each of them. With
independent g ~ Exponential(1), one for each label, pi = g / sum of g has this law, and sums cancel
from q. Each g has a coordinate z of its own with a standard normal prior,

    g(z) = -log Phi(-z),    d log g / dz = h / g,    h = phi(z) / Phi(-z),

so that all labels are treated alike. Decisions that offer the same labels and in which the same
label was chosen have the same q: they are one kind.
"""

import math
from typing import NamedTuple

import numpy as np

from revealed._types import Floats, Ints
from revealed.kernels._compile import compiled, compiled_within
from revealed.kernels.normal import log_cdf_and_ratio


class HabitIndex(NamedTuple):
    """Which labels each decision offers, decisions of one kind once.

    offered: (H, L) how often each kind offers each label; L is zero where lapses are uniform.
    chosen: (H,) the label that was chosen. of_decision: (U,) the kind of each decision. weights:
    (L,) in proportion to pi, where that is known.
    """

    offered: Floats
    chosen: Ints
    of_decision: Ints
    weights: Floats

    @property
    def shares(self) -> Floats:
        """(U,) q of each decision, at the known weights."""
        # only ratios of weights matter: their sum over all labels cancels
        of_kind = self.weights[self.chosen] / (self.offered @ self.weights)
        return np.asarray(of_kind[self.of_decision])


def unbound_habit(labels: int) -> HabitIndex:
    """Habits of so many labels, before it is known which decisions offer them."""
    # loops are compiled for the types of these arrays, whatever their sizes are
    none = np.empty(0, np.int64)
    return HabitIndex(np.empty((0, labels)), none, none, np.ones(labels))


UNIFORM = unbound_habit(0)
"""No habits: every action offered is as likely as another."""


class HabitRule(NamedTuple):
    """Limits of g.

    least: no g is smaller, so that its logarithm exists. left: below this z, Phi(z) is so small
    that g is found from it and not from the logarithm of what is next to one.
    """

    least: float = 1e-300
    left: float = -1.0


HABIT_RULE = HabitRule()


@compiled_within
def weight_at(z: float) -> tuple[float, float, float]:
    """The weight g of a coordinate z, and the first and second derivative of log g."""
    # Phi(-z) is the survival of a standard normal, and phi(z) / Phi(-z) its hazard
    log_survival, hazard = log_cdf_and_ratio(-z)
    if z < HABIT_RULE.left:
        # 1 - Phi(-z) without the loss of digits
        g = -math.log1p(-0.5 * math.erfc(-z * math.sqrt(0.5)))
        hazard = math.exp(-0.5 * z * z - log_survival) / math.sqrt(2.0 * math.pi)
    else:
        g = -log_survival
    # far out doubles end, and log g is about -z^2 / 2
    if g <= HABIT_RULE.least:
        return HABIT_RULE.least, -z, -1.0
    first = hazard / g
    return g, first, first * (hazard - z - first)


@compiled_within
def write_shares(habit: HabitIndex, weights: Floats, shares: Floats) -> None:
    """Write q of every kind of decision into shares (H,), at weights (L,)."""
    for h in range(shares.size):
        # the weights of all actions offered, a label that stands there twice counted twice
        total = 0.0
        for i in range(weights.size):
            total += habit.offered[h, i] * weights[i]
        shares[h] = weights[habit.chosen[h]] / total


@compiled_within
def write_habit_slopes(
    habit: HabitIndex, weights: Floats, slopes_of_log: Floats, by_share: Floats, slopes: Floats
) -> None:
    """Write the slope in every coordinate z into slopes (L,).

    slopes_of_log: (L,) d log g / dz. by_share: (H,) the slope in log q of every kind.
    """
    slopes[:] = 0.0
    # kinds of decisions one after the other: there are fewer of them than decisions
    for h in range(by_share.size):
        total = 0.0
        for i in range(weights.size):
            total += habit.offered[h, i] * weights[i]
        # d log q / d log g: one for what was chosen, less the share of each
        slopes[habit.chosen[h]] += by_share[h]
        for i in range(weights.size):
            slopes[i] -= by_share[h] * habit.offered[h, i] * weights[i] / total
    # from log g to z
    for i in range(weights.size):
        slopes[i] *= slopes_of_log[i]


@compiled
def write_weights(z: Floats, out: Floats) -> None:
    """Write g and the two derivatives of log g at every one of z (n,) into out (3, n)."""
    for i in range(z.size):
        out[0, i], out[1, i], out[2, i] = weight_at(z[i])
