"""Whitened coordinates of a posterior: v = centre + scale * skew(unwhiten x).

In them x is about standard normal, as wide in every direction. In linear coordinates skew and scale
are zero and one, and `unwhiten` is basis @ S for a square S: a sum-to-zero block keeps its sum of
zero. In skewed ones the constants of sum-to-zero blocks are free: the likelihood does not depend on
them, they have a prior of their own, and whoever takes v from x leaves them out. `whiten` is the
inverse of `unwhiten`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as sla
from scipy.special import ndtri

from revealed._types import Floats
from revealed.data.unique import UniqueDecisions
from revealed.kernels.design import Design
from revealed.kernels.log_posterior import LogPosterior
from revealed.kernels.noise import NORMAL, AnyNoise
from revealed.kernels.prior_scale import marginal_table
from revealed.kernels.skew_transform import skew, skew_derivative, skew_second_derivative, unskew
from revealed.models.likelihood import log_posterior_derivatives
from revealed.models.priors import ResolvedPrior
from revealed.samplers.adaptation import cholesky_of_information, covariance_roots


@dataclass(frozen=True)
class TransformSettings:
    """Limits of the coordinates."""

    # The largest skew of a coefficient: at 1 its curve would be flat on one side, without inverse.
    max_skew: float = 0.9
    # With one coordinate and an inferred prior scale, paths cannot go round the pole of the prior
    # at its mean: the squared distance, in units of the prior at its likely scale, by which the
    # gradient is softened there. It changes how often paths are accepted, not their law.
    pole_softening: float = 0.1
    # A change of utilities, by a constant of one, that is put down to rounding; a larger one is
    # projected out of the rows.
    rounding: float = 1e-8


SETTINGS = TransformSettings()


@dataclass(frozen=True, eq=False)
class WhiteningTransform:
    """v = centre + scale * skew(unwhiten x), and back.

    centre, scale, skew: (K,). unwhiten: (K, D). whiten: (D, K). The field `skew` has the amount of
    skewness that the function `skew` takes.
    """

    centre: Floats
    scale: Floats
    skew: Floats
    unwhiten: Floats
    whiten: Floats

    @staticmethod
    def linear(centre: Floats, unwhiten: Floats, whiten: Floats) -> WhiteningTransform:
        """The coordinates v = centre + unwhiten x."""
        unwhiten, whiten = np.ascontiguousarray(unwhiten), np.ascontiguousarray(whiten)
        return WhiteningTransform(
            centre, np.ones(len(centre)), np.zeros(len(centre)), unwhiten, whiten
        )

    @staticmethod
    def from_precision(
        prior: ResolvedPrior, centre: Floats, precision: Floats
    ) -> WhiteningTransform:
        """The linear coordinates in which a precision (D, D) of q, v = basis q, is the identity.

        With the Cholesky factor L of the precision, x = L' q, so that x'x = q' precision q.
        """
        root, inverse = _cholesky_and_inverse(precision)
        return WhiteningTransform.linear(centre, prior.basis @ inverse.T, root.T @ prior.basis.T)

    @staticmethod
    def from_curvature(
        unique: UniqueDecisions,
        prior: ResolvedPrior,
        values: Floats,
        points: int,
        noise: AnyNoise = NORMAL,
    ) -> WhiteningTransform:
        """The linear coordinates in which the mean curvature of the log posterior is the identity.

        The curvature is averaged over about `points` of the draws `values` (n, K), whose mean is
        the centre.
        """
        some = values[:: max(1, len(values) // points)]
        weight = unique.rival_index.weight
        curvature = sum(
            log_posterior_derivatives(unique.unique, prior, v, weight, noise)[1] for v in some
        ) / len(some)
        precision = prior.basis.T @ curvature @ prior.basis
        if not noise.is_log_concave:
            # The curvature may be negative; no direction is wider than all coordinates together.
            eigenvalues, axes = np.linalg.eigh(precision)
            widest = (values @ prior.basis).var(axis=0).sum()
            precision = (axes * np.maximum(eigenvalues, 1.0 / widest)) @ axes.T
        return WhiteningTransform.from_precision(prior, values.mean(axis=0), precision)

    @staticmethod
    def from_draws_skewed(
        unique: UniqueDecisions,
        prior: ResolvedPrior,
        values: Floats,
        points: int,
        noise: AnyNoise = NORMAL,
    ) -> WhiteningTransform:
        """Coordinates in which each coefficient of draws of v (n, K) is about normal.

        A coefficient's quantiles are fitted, by least squares, to those of a skewed normal. Then
        the curvature of the log posterior in the unskewed coefficients is averaged over about
        `points` of the draws and made the identity.
        """
        # Sorted draws against normal quantiles: y = centre + scale (w + skew (sqrt(1 + w^2) - 1)).
        normal = ndtri((np.arange(len(values)) + 0.5) / len(values))
        terms = np.stack([np.ones_like(normal), normal, skew(normal, 1.0) - normal], axis=1)
        centre, scale, curve = np.linalg.lstsq(terms, np.sort(values, axis=0), rcond=None)[0]
        amount = np.clip(curve / scale, -SETTINGS.max_skew, SETTINGS.max_skew)
        width = len(scale)
        curvature = np.zeros((width, width))
        some = values[:: max(1, len(values) // points)]
        for v in some:
            # Minus the second derivative in w of log posterior(v(w)) + sum of log dv/dw.
            w = unskew((v - centre) / scale, amount)
            gradient, information = log_posterior_derivatives(
                unique.unique, prior, v, unique.rival_index.weight, noise
            )
            first, second = skew_derivative(w, amount), skew_second_derivative(w, amount)
            third = -3.0 * second * w / (1.0 + w * w)
            curvature += (scale * first)[:, None] * information * (scale * first)
            curvature -= np.diag(second * scale * gradient + third / first - (second / first) ** 2)
        eigenvalues, axes = np.linalg.eigh(curvature / len(some))
        # K numbers of variance one have no direction of variance larger than K.
        root, inverse = _cholesky_and_inverse(
            (axes * np.maximum(eigenvalues, 1.0 / width)) @ axes.T
        )
        return WhiteningTransform(
            centre, scale, amount, np.ascontiguousarray(inverse.T), np.ascontiguousarray(root.T)
        )

    def value(self, x: Floats) -> Floats:
        """The coefficients v, (K,) or (n, K), of coordinates x, (D,) or (n, D)."""
        return np.asarray(self.centre + self.scale * skew(x @ self.unwhiten.T, self.skew))

    def coordinates(self, v: Floats) -> Floats:
        """The coordinates x, (D,) or (n, D), of coefficients v, (K,) or (n, K)."""
        return np.asarray(unskew((v - self.centre) / self.scale, self.skew) @ self.whiten.T)

    def rescaled(self, draws: Floats, power: float) -> WhiteningTransform:
        """Coordinates that take the covariance S of draws of x (n, D) to a power: 1 makes it I.

        By `covariance_roots`, which shrinks S.
        """
        root, inverse_root = covariance_roots(draws, power)
        unwhiten = np.ascontiguousarray(self.unwhiten @ root)
        whiten = np.ascontiguousarray(inverse_root @ self.whiten)
        return WhiteningTransform(self.centre, self.scale, self.skew, unwhiten, whiten)


def _cholesky_and_inverse(precision: Floats) -> tuple[Floats, Floats]:
    """The lower Cholesky factor of a precision (D, D), and its inverse."""
    root = cholesky_of_information(precision)
    return root, sla.solve_triangular(root, np.eye(len(root)), lower=True)


def log_posterior_in_coordinates(
    unique: UniqueDecisions,
    prior: ResolvedPrior,
    likely_prior: ResolvedPrior,
    transform: WhiteningTransform,
    noise: AnyNoise = NORMAL,
) -> LogPosterior:
    """The log posterior in whitened coordinates, as the kernels take it.

    likely_prior: the prior at its likely scale where that is inferred, else the prior itself.
    """
    design = Design.from_rows(
        _remove_constants(unique.rival_minus_chosen, prior.constant_directions)
    )
    # the coordinates whose scale is inferred, if it is
    width = transform.unwhiten.shape[1] - prior.unscaled
    prior_diag, prior_full = prior.diagonal_or_full
    table = np.zeros((0, 2)) if prior.scale is None else marginal_table(width, prior.scale)
    # In two dimensions and more, paths pass the pole of the prior at its mean on one side.
    pole_softening = (
        SETTINGS.pole_softening * prior.constant_precision / likely_prior.constant_precision
        if width == 1
        else 0.0
    )
    return LogPosterior(
        design,
        unique.rival_index,
        prior_diag,
        prior_full,
        prior.mean,
        table,
        pole_softening,
        transform.centre,
        transform.scale,
        transform.skew,
        transform.unwhiten,
        noise,
    )


def _remove_constants(rows: Any, constants: Floats) -> Any:
    """The rows (R, K) without their part in the constants (K, L) of sum-to-zero blocks.

    Most rows have none: differences of transition probabilities add up to zero.
    """
    change = rows @ constants
    if np.abs(change).max(initial=0.0) < SETTINGS.rounding:
        return rows
    return np.asarray(rows - change @ constants.T)
