"""Derivatives of the log-likelihood in all coefficients, coordinates of the noise among them."""

from __future__ import annotations

import numpy as np

from revealed._types import Floats, Ints
from revealed.data.decisions import Decisions
from revealed.kernels import choice
from revealed.kernels.noise import AnyNoise, LapseArguments, count_coordinates, without_lapses
from revealed.models.information import coordinate_derivatives, df_slope, information_matrix
from revealed.models.lapse import log_odds_and_slopes
from revealed.models.noise_coordinates import at_coordinate


def value_and_gradient(
    d: Decisions, chosen_row: Ints, mu: Floats, v: Floats, weight: Floats, noise: AnyNoise
) -> tuple[float, Floats]:
    """The total log-likelihood, unweighted, and the gradient (K,) of the weighted one."""
    # By utility, and then by coefficient through the rows.
    slopes, known = np.empty(len(mu)), at_coordinate(noise, v)
    value = choice.log_likelihood_and_gradient(known, mu, d.start, chosen_row, slopes)
    gradient = d.rows.T @ (np.repeat(weight, d.sizes) * slopes)
    if isinstance(noise, LapseArguments) and noise.coordinates:
        own = slice(len(v) - noise.coordinates, None)
        gradient[own], _ = _lapse_derivatives(d, chosen_row, mu, v, weight, noise)
    if count_coordinates(without_lapses(noise)):
        at = len(v) - count_coordinates(noise)
        gradient[at] = df_slope(d, chosen_row, mu, weight, noise, known, float(v[at]))
    return value, gradient


def _lapse_derivatives(
    d: Decisions, chosen_row: Ints, mu: Floats, v: Floats, weight: Floats, noise: LapseArguments
) -> tuple[Floats, Floats]:
    """`coordinate_derivatives` at v (K,)."""
    known, z = at_coordinate(noise, v), v[len(v) - noise.coordinates :]
    assert isinstance(known, LapseArguments)
    of_map = log_odds_and_slopes(noise.table, float(z[0]))[1:]
    return coordinate_derivatives(d, chosen_row, mu, weight, known, of_map, z[1:])


def minus_hessian(
    d: Decisions, chosen_row: Ints, mu: Floats, v: Floats, weight: Floats, noise: AnyNoise
) -> Floats:
    """(K, K) minus the second derivatives of the weighted log-likelihood; mu (P,) is rows @ v."""
    information = information_matrix(d, chosen_row, mu, weight, at_coordinate(noise, v))
    if isinstance(noise, LapseArguments) and noise.coordinates:
        own = slice(len(v) - noise.coordinates, None)
        _, mixed = _lapse_derivatives(d, chosen_row, mu, v, weight, noise)
        information[own], information[:, own] = mixed, mixed.T
    if count_coordinates(without_lapses(noise)):
        # that of the noise without lapses: by differences of the whole gradient, which is exact to
        # nine digits, so that six of the differences are left; Newton steps need two
        at, move, step = len(v) - count_coordinates(noise), np.zeros(len(v)), 1e-3
        move[at] = step
        high, low = (
            value_and_gradient(d, chosen_row, mu, moved, weight, noise)[1]
            for moved in (v + move, v - move)
        )
        information[at] = information[:, at] = (low - high) / (2.0 * step)
    return information
