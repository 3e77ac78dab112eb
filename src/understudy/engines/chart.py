"""Coordinates for a posterior: v = centre + slope bent(turn x), with x about normal, and as wide in every direction.

In straight coordinates nothing is bent, slope is one, and `turn` is basis @ S for a square S: a centred block stays
centred. In curved ones the constants of centred blocks are let loose: the likelihood does not see them, they have a
prior of their own, and whoever takes v from x leaves them out. `back` undoes `turn`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as sla
from scipy.special import ndtri

from understudy._arrays import Floats
from understudy.engines.tally import Tally
from understudy.kernels.bend import bent, stretch, swing, unbent
from understudy.kernels.design import Design
from understudy.kernels.size import marginal_table
from understudy.kernels.target import Target
from understudy.likelihood import slopes_at
from understudy.priors import Placed

CURVED = 0.9  # the most that a coordinate is bent
SOFT = (
    0.1  # with one coordinate, which has no way round it: the squared distance, in likely sizes, that softens the pole
)
UNSEEN = 1e-8  # a change of utility by a constant of one that is put down to rounding


@dataclass(frozen=True, eq=False)
class Chart:
    """v = centre + slope bent(turn x) and back; centre, slope and bend (K,), turn (K, D), back (D, K)."""

    centre: Floats
    slope: Floats
    bend: Floats
    turn: Floats
    back: Floats

    @staticmethod
    def straight(centre: Floats, turn: Floats, back: Floats) -> Chart:
        """v = centre + turn x."""
        turn, back = np.ascontiguousarray(turn), np.ascontiguousarray(back)
        return Chart(centre, np.ones(len(centre)), np.zeros(len(centre)), turn, back)

    @staticmethod
    def of(placed: Placed, centre: Floats, precision: Floats) -> Chart:
        """The straight coordinates in which a precision (D, D) of q, v = basis q, is the identity."""
        root, inverse = _roots(precision)
        return Chart.straight(centre, placed.basis @ inverse.T, root.T @ placed.basis.T)

    @staticmethod
    def flat(tally: Tally, placed: Placed, values: Floats, points: int) -> Chart:
        """The straight coordinates in which the curvature, averaged over about so many draws of v (n, K), is the identity."""
        some = values[:: max(1, len(values) // points)]
        mean = sum(slopes_at(tally.unique, placed, v, tally.offers.weight)[1] for v in some) / len(some)
        return Chart.of(placed, values.mean(axis=0), placed.basis.T @ mean @ placed.basis)

    @staticmethod
    def curved(tally: Tally, placed: Placed, values: Floats, points: int) -> Chart:
        """The coordinates in which each of draws of v (n, K) is about normal, and their mean curvature the identity.

        v's quantiles are fitted, by least squares, to those of a bent normal. The curvature of the log posterior is
        averaged over about so many of the draws.
        """
        normal = ndtri((np.arange(len(values)) + 0.5) / len(values))
        terms = np.stack([np.ones_like(normal), normal, bent(normal, 1.0) - normal], axis=1)
        centre, slope, curve = np.linalg.lstsq(terms, np.sort(values, axis=0), rcond=None)[0]
        bend = np.clip(curve / slope, -CURVED, CURVED)
        width = len(slope)
        mean = np.zeros((width, width))
        some = values[:: max(1, len(values) // points)]
        for v in some:
            w = unbent((v - centre) / slope, bend)
            gradient, information = slopes_at(tally.unique, placed, v, tally.offers.weight)
            first, second = stretch(w, bend), swing(w, bend)
            third = -3.0 * second * w / (1.0 + w * w)
            mean += (slope * first)[:, None] * information * (slope * first)
            mean -= np.diag(second * slope * gradient + third / first - (second / first) ** 2)
        spread, axes = np.linalg.eigh(mean / len(some))
        # K numbers of variance one have no direction wider than K.
        root, inverse = _roots((axes * np.maximum(spread, 1.0 / width)) @ axes.T)
        return Chart(centre, slope, bend, np.ascontiguousarray(inverse.T), np.ascontiguousarray(root.T))

    def value(self, x: Floats) -> Floats:
        """V of x, (D,) or (n, D)."""
        return np.asarray(self.centre + self.slope * bent(x @ self.turn.T, self.bend))

    def coordinates(self, v: Floats) -> Floats:
        """X of v, (K,) or (n, K)."""
        return np.asarray(unbent((v - self.centre) / self.slope, self.bend) @ self.back.T)

    def stretched(self, draws: Floats, power: float) -> Chart:
        """Coordinates that take the covariance S of draws (n, D) to the given power: 1 makes it the identity.

        Where the present coordinates make the mean curvature the identity, 1/2 makes the new metric the geometric mean of
        covariance and inverse curvature. S is pulled towards the identity with the force of D draws.
        """
        count, width = draws.shape
        apart = draws - draws.mean(axis=0)
        spread, axes = np.linalg.eigh((apart.T @ apart + width * np.eye(width)) / (count + width))
        root = (axes * spread ** (0.5 * power)) @ axes.T
        undo = (axes * spread ** (-0.5 * power)) @ axes.T
        turn, back = np.ascontiguousarray(self.turn @ root), np.ascontiguousarray(undo @ self.back)
        return Chart(self.centre, self.slope, self.bend, turn, back)


def _roots(precision: Floats) -> tuple[Floats, Floats]:
    """The Cholesky factor of a precision, and its inverse."""
    root = sla.cholesky(precision, lower=True)
    return root, sla.solve_triangular(root, np.eye(len(root)), lower=True)


def chart_target(tally: Tally, placed: Placed, given: Placed, chart: Chart) -> Target:
    """The posterior in the coordinates of a chart; given: the prior of a likely size, where that is learnt."""
    design = Design.of(_blind(tally.leads, placed.constants))
    own, quad = placed.split
    sizes = np.zeros((0, 2)) if placed.scale is None else marginal_table(chart.turn.shape[1], placed.scale)
    soft = SOFT * placed.slack / given.slack if chart.turn.shape[1] == 1 else 0.0
    return Target(
        design, tally.offers, own, quad, placed.mean, sizes, soft, chart.centre, chart.slope, chart.bend, chart.turn
    )


def _blind(leads: Any, constants: Floats) -> Any:
    """The rows, made blind to constants (K, L) of centred blocks; most of them are so by nature."""
    seen = leads @ constants
    return leads if np.abs(seen).max(initial=0.0) < UNSEEN else np.asarray(leads - seen @ constants.T)
