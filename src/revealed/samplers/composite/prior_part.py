"""The part of a proposal that has the prior's shape, where the prior's scale is inferred.

`kernels/prior_part.py` says what it is for: the posterior over such a proposal is bounded, at the
prior's pole and in its tails. Here is the density of that part in whitened coordinates,

    p_s(v(x)) |dv/dx|,   p_s(v) = (scale / s)^D p(mean + (scale / s) (v - mean)),

for the scales s among which the fit chooses. Near the prior mean p_s is larger than p by scale / s,
and in the tails it is smaller by (s / scale)^4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.linalg as sla

from revealed._types import Floats
from revealed.kernels.independence import Mixture
from revealed.kernels.log_posterior import LogPosterior
from revealed.kernels.prior_scale import GRID, PriorScale
from revealed.kernels.skew_transform import skew, skew_derivative


@dataclass(frozen=True)
class PriorPartSettings:
    """How the part with the prior's shape is fitted."""

    # The scales s that are tried: that of the hyperprior, and so many smaller ones, each so many
    # times smaller than the one before. A coarser choice fits the pole worse.
    scales: int = 13
    scale_ratio: float = math.sqrt(2.0)
    # Below the first of these fitted shares there is no such part: less than one of the draws that
    # it is fitted to is anywhere near pole or tails, and the part would only cost time. Else the
    # share is as fitted, within the other two: the least bounds the importance weights, the most
    # leaves the normals something.
    negligible_share: float = 1e-4
    min_share: float = 0.02
    max_share: float = 0.95


PRIOR_PART = PriorPartSettings()


@dataclass(frozen=True, eq=False)
class PriorParts:
    """The parts with the prior's shape that a fit chooses among; none where its scale is given.

    target: the posterior in whitened coordinates. scale: of the hyperprior. own_scales: (G,) s.
    log_constants: (G,) what is added to the tabulated log prior and the log Jacobian. factor:
    (K, D) F with F F' the covariance of v at sd one. unscaled: how many coefficients, the last
    ones, the scale leaves alone; they are standard normal.
    """

    target: LogPosterior
    scale: float
    own_scales: Floats
    log_constants: Floats
    factor: Floats
    unscaled: int = 0

    @staticmethod
    def build(target: LogPosterior, prior_scale: PriorScale | None) -> PriorParts:
        """Those of this posterior."""
        if prior_scale is None:
            return PriorParts(target, 1.0, np.zeros(0), np.zeros(0), np.zeros((0, 0)))
        # With J = dv/dx at x = 0, where all skew curves have slope one, the prior precision of x
        # there is J'PJ = R'R, and F = J R^-1.
        width = target.unwhiten.shape[1] - prior_scale.unscaled
        jacobian = target.scale[:, None] * target.unwhiten
        root = sla.cholesky(jacobian.T @ _times_precision(target, jacobian.T).T)
        factor = sla.solve_triangular(root, jacobian.T, trans="T").T
        # The integral of the tabulated density over a space of D dimensions, in log Q: the area of
        # the unit sphere, times that over Q^(D/2) d(log Q) / 2.
        log_quad = np.linspace(GRID.low, GRID.high, len(target.prior_scale_table))
        logs = target.prior_scale_table[:, 0] + 0.5 * width * log_quad
        log_integral = (
            0.5 * width * math.log(math.pi)
            - math.lgamma(0.5 * width)
            + logs.max()
            + math.log(np.exp(logs - logs.max()).sum() / GRID.knots_per_unit)
        )
        ratios = np.asarray(
            PRIOR_PART.scale_ratio ** np.arange(PRIOR_PART.scales), dtype=np.float64
        )
        log_constants = width * np.log(ratios) - log_integral + np.log(np.diag(root)).sum()
        log_constants -= 0.5 * prior_scale.unscaled * math.log(2.0 * math.pi)
        return PriorParts(
            target,
            prior_scale.scale,
            prior_scale.scale / ratios,
            log_constants,
            np.ascontiguousarray(factor),
            prior_scale.unscaled,
        )

    def log_densities(self, points: Floats) -> Floats:
        """(n, G) the log densities of all parts at points x (n, D)."""
        if not len(self.own_scales):
            return np.zeros((len(points), 0))
        target = self.target
        w = points @ target.unwhiten.T
        offset = target.centre + target.scale * skew(w, target.skew) - target.prior_mean
        rest = (offset[:, offset.shape[1] - self.unscaled :] ** 2).sum(axis=1)
        quad = (offset * _times_precision(target, offset)).sum(axis=1) - rest
        # The log prior at (scale / s)^2 Q, by its table.
        log_quad = np.linspace(GRID.low, GRID.high, len(target.prior_scale_table))
        log_ratios = 2.0 * np.log(self.scale / self.own_scales)
        prior = np.interp(
            np.log(np.maximum(quad, 1e-300))[:, None] + log_ratios,
            log_quad,
            target.prior_scale_table[:, 0],
        )
        log_jacobian = np.log(skew_derivative(w, target.skew)).sum(axis=1)
        return np.asarray(prior + self.log_constants + (log_jacobian - 0.5 * rest)[:, None])

    def add_to(self, mixture: Mixture, share: float, which: int) -> Mixture:
        """The mixture with one of these parts, of this share, unless that is next to nothing."""
        if share < PRIOR_PART.negligible_share:
            return mixture
        share = min(max(share, PRIOR_PART.min_share), PRIOR_PART.max_share)
        return mixture._replace(
            prior_part=np.array([share, self.own_scales[which], self.log_constants[which]]),
            prior_factor=self.factor,
        )


def _times_precision(target: LogPosterior, rows: Floats) -> Floats:
    """(n, K) rows times the prior precision at sd one, which is diagonal or full."""
    full = target.prior_full
    return np.asarray(rows @ full if full.size else rows * target.prior_diag)
