"""How much the choices say of the value: minus the second derivatives of their log-likelihood."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from revealed._types import Floats, Ints
from revealed.data.decisions import Decisions
from revealed.kernels import choice, choice_logit
from revealed.kernels.choice_formula import write_information
from revealed.kernels.choice_information import add_information_dense, add_information_sparse
from revealed.kernels.choice_student import write_df_slopes
from revealed.kernels.coordinate_table import table_values
from revealed.kernels.noise import AnyNoise, LapseArguments, NoiseArguments, without_lapses
from revealed.models.habit import HabitDerivatives


def information_matrix(
    d: Decisions, chosen_row: Ints, mu: Floats, weight: Floats, noise: AnyNoise
) -> Floats:
    """(K, K) minus the Hessian of the weighted log-likelihood, a rate of lapses being known.

    mu: (P,) rows @ v. chosen_row: (T,). weight: (T,) how often each decision counts.
    """
    if isinstance(noise, LapseArguments):
        return _information_with_lapses(d, chosen_row, mu, weight, noise)
    if noise.is_logit:
        return _logit_information(d, mu, weight)
    if not noise.is_normal:
        return _information_by_formula(d, chosen_row, mu, weight, noise)
    information = np.zeros((d.rows.shape[1], d.rows.shape[1]))
    if sp.issparse(d.rows):
        indptr, indices = d.rows.indptr.astype(np.int64), d.rows.indices.astype(np.int64)
        add_information_sparse(
            mu, d.start, chosen_row, weight, indptr, indices, d.rows.data, information
        )
    else:
        add_information_dense(mu, d.start, chosen_row, weight, d.rows, information)
    return information


def _logit_information(d: Decisions, mu: Floats, weight: Floats) -> Floats:
    """(K, K) minus the Hessian of the weighted log-likelihood under logit noise.

    The covariance of the rows under the choice probabilities, E[x x'] - E[x] E[x]', summed.
    """
    # by sparse products: one row a decision, whose entries are its probabilities
    p = np.empty(len(mu))
    choice_logit.all_probabilities(mu, d.start, p)
    shape = (len(d), len(mu))
    by_decision = sp.csr_array((p, np.arange(len(mu)), d.start), shape=shape)
    # of few rows, products of dense ones take a tenth of the time; more numbers than this leave
    # the cache next to a core
    dense = d.rows.shape[0] * d.rows.shape[1] <= 50_000
    rows = d.rows.toarray() if dense and sp.issparse(d.rows) else d.rows
    mean, weight_of_row = by_decision @ rows, np.repeat(weight, d.sizes) * p
    if sp.issparse(rows):
        scaled = sp.diags_array(weight_of_row) @ rows
        information = rows.T @ scaled - mean.T @ (sp.diags_array(weight) @ mean)
        return np.asarray(information.toarray())
    return np.asarray(rows.T @ (weight_of_row[:, None] * rows) - mean.T @ (weight[:, None] * mean))


def _information_by_formula(
    d: Decisions, chosen_row: Ints, mu: Floats, weight: Floats, noise: NoiseArguments
) -> Floats:
    """(K, K) minus the Hessian of the weighted log-likelihood, by the formula of a noise.

    rows' W rows, W having a square for each decision, its second derivatives in mu (P,).
    """
    squares = np.empty(int((d.sizes**2).sum()))
    write_information(noise, mu, d.start, chosen_row, weight, squares)
    # W in compressed sparse form: each row has as many entries as its decision has rows.
    lengths = np.repeat(d.sizes, d.sizes)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    first = np.repeat(d.start[:-1], d.sizes)
    indices = np.arange(len(squares)) + np.repeat(first - indptr[:-1], lengths)
    curvature = sp.csr_array((squares, indices, indptr), shape=(len(mu), len(mu)))
    information = d.rows.T @ (curvature @ d.rows)
    return np.asarray(information.toarray() if sp.issparse(information) else information)


class DecisionSlopes(NamedTuple):
    """Of each decision, without lapses: the slope of its log probability, and what it is worth.

    gradient: (T, K). attends: (T,) how probable it is that the choice was no lapse.
    """

    gradient: Floats
    attends: Floats


def _decision_slopes(
    d: Decisions, chosen_row: Ints, mu: Floats, noise: LapseArguments
) -> DecisionSlopes:
    slopes, log_p, log_total = np.empty(len(mu)), np.empty(len(d)), np.empty(len(d))
    choice.log_likelihood_and_gradient(noise.noise, mu, d.start, chosen_row, slopes)
    choice.log_probabilities(noise.noise, mu, d.start, chosen_row, log_p)
    choice.log_probabilities(noise, mu, d.start, chosen_row, log_total)
    by_decision = sp.csr_array((slopes, np.arange(len(mu)), d.start), shape=(len(d), len(mu)))
    gradient = by_decision @ d.rows
    if sp.issparse(gradient):
        gradient = gradient.toarray()
    return DecisionSlopes(np.asarray(gradient), np.exp(noise.log_attends + log_p - log_total))


def _information_with_lapses(
    d: Decisions, chosen_row: Ints, mu: Floats, weight: Floats, noise: LapseArguments
) -> Floats:
    """w times that without lapses, less w (1 - w) g g', of every decision; not always positive."""
    # a choice that was probably a lapse says little of the value
    g, w = _decision_slopes(d, chosen_row, mu, noise)
    without = information_matrix(d, chosen_row, mu, weight * w, noise.noise)
    return without - g.T @ ((weight * w * (1.0 - w))[:, None] * g)


def df_slope(
    d: Decisions,
    chosen_row: Ints,
    mu: Floats,
    weight: Floats,
    noise: AnyNoise,
    known: AnyNoise,
    z: float,
) -> float:
    """The slope of the weighted log-likelihood in the coordinate z of degrees of freedom.

    known: the noise at all its coordinates.
    """
    slopes = np.empty(len(d))
    write_df_slopes(without_lapses(known).parameters[0], mu, d.start, chosen_row, slopes)
    # a choice that was probably a lapse says little of the noise
    if isinstance(known, LapseArguments):
        slopes *= _decision_slopes(d, chosen_row, mu, known).attends
    slope_of_log = table_values(without_lapses(noise).table, np.asarray(z))[1]
    return float(slope_of_log * (weight @ slopes))


def coordinate_derivatives(
    d: Decisions,
    chosen_row: Ints,
    mu: Floats,
    weight: Floats,
    noise: LapseArguments,
    slopes_of_map: Floats,
    habit: Floats,
) -> tuple[Floats, Floats]:
    """The slopes (n,) of the weighted log-likelihood in the n coordinates of the lapses.

    And (n, K) minus its second derivatives in them and in all coefficients, the last n being these
    coordinates. noise: at them. slopes_of_map: the first and second derivative of the log odds in
    the coordinate of the rate. habit: (n - 1,) the coordinates of habits.
    """
    # decisions one by one: each has a probability of its own of having been no lapse
    first, second = slopes_of_map
    g, w = _decision_slopes(d, chosen_row, mu, noise)
    rate, unsure = np.exp(noise.log_rate), weight * w * (1.0 - w)
    # by the log odds, then by z
    slope = float(weight @ (1.0 - w - rate))
    # the coordinate of the rate comes first, then those of habits
    slopes, mixed = np.empty(1 + habit.size), np.empty((1 + habit.size, g.shape[1]))
    slopes[0], mixed[0] = first * slope, first * (unsure @ g)
    at = g.shape[1] - 1 - habit.size
    curvature = float(weight.sum() * rate * (1.0 - rate) - unsure.sum())
    mixed[0, at] = first**2 * curvature - second * slope
    if habit.size:
        # by log q, and then by the coordinates of habits, kinds of decisions together
        by = HabitDerivatives(noise.habit, habit)
        kind, own = noise.habit.of_decision, slice(at + 1, None)
        lapsed: Floats = np.bincount(kind, weight * (1.0 - w), len(by.first)).astype(np.float64)
        of_kind = np.bincount(kind, unsure, len(by.first))
        slopes[1:] = lapsed @ by.first
        mixed[1:] = by.first[kind].T @ (unsure[:, None] * g)
        mixed[0, own] = mixed[1:, at] = -first * (of_kind @ by.first)
        mixed[1:, own] = -by.first.T @ (of_kind[:, None] * by.first) - by.second(lapsed)
    return slopes, mixed
