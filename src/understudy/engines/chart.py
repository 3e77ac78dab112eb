"""Coordinates for a posterior: v = centre + turn x, with x about as wide in every direction.

`turn` is basis @ S for a square S, so that a centred block stays centred; `back` undoes it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg as sla
import scipy.sparse as sp

from understudy._arrays import Floats
from understudy.engines.tally import Tally
from understudy.kernels.design import Design
from understudy.kernels.target import Target
from understudy.priors import Placed


@dataclass(frozen=True, eq=False)
class Chart:
    """v = centre + turn x, x = back (v - centre); centre (K,), turn (K, D), back (D, K)."""

    centre: Floats
    turn: Floats
    back: Floats

    @staticmethod
    def of(placed: Placed, centre: Floats, precision: Floats) -> Chart:
        """The coordinates in which a precision (D, D) of q, v = basis q, is the identity."""
        root = sla.cholesky(precision, lower=True)
        inverse = sla.solve_triangular(root, np.eye(len(root)), lower=True)
        turn, back = placed.basis @ inverse.T, root.T @ placed.basis.T
        return Chart(centre, np.ascontiguousarray(turn), np.ascontiguousarray(back))

    def value(self, x: Floats) -> Floats:
        """V of x, (D,) or (n, D)."""
        return self.centre + x @ self.turn.T

    def coordinates(self, v: Floats) -> Floats:
        """X of v."""
        return self.back @ (v - self.centre)

    def stretched(self, draws: Floats, power: float) -> Chart:
        """Coordinates that take the covariance S of draws (n, D) to the given power: 1 makes it the identity.

        Where the present coordinates make the mean curvature the identity, 1/2 makes the new metric the geometric mean of
        covariance and inverse curvature. S is pulled towards the identity with the force of D draws.
        """
        count, width = draws.shape
        middle = draws.mean(axis=0)
        apart = draws - middle
        spread, axes = np.linalg.eigh((apart.T @ apart + width * np.eye(width)) / (count + width))
        root = (axes * spread ** (0.5 * power)) @ axes.T
        undo = (axes * spread ** (-0.5 * power)) @ axes.T
        turn, back = np.ascontiguousarray(self.turn @ root), np.ascontiguousarray(undo @ self.back)
        return Chart(self.value(middle), turn, back)


def chart_target(tally: Tally, placed: Placed, chart: Chart) -> Target:
    """The posterior in the coordinates of a chart."""
    leads, turn = tally.leads, chart.turn
    root = placed.basis.T @ turn
    quad = root.T @ placed.precision @ root
    pull = root.T @ (placed.precision @ (placed.basis.T @ (placed.mean - chart.centre)))
    base = leads @ chart.centre
    apart = sp.issparse(leads) and 2 * leads.nnz + turn.size < leads.shape[0] * turn.shape[1]
    if apart:
        design = Design.sparse(leads.indptr, leads.indices, leads.data)
    else:
        design, turn = Design.dense(np.asarray(leads @ turn)), np.zeros((0, 0))
    return Target(design, turn, base, tally.offers, quad, pull)
