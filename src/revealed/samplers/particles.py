"""Functions of weighted draws of a posterior: effective size, resampling, choice probabilities.

With weights w that sum to one, a posterior mean is sum_n w_n f(v_n), and the particles are worth
as many independent draws as (sum w)^2 / sum w^2 says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from revealed._types import Floats, Ints
from revealed.kernels.choice import all_probabilities, log_probabilities
from revealed.kernels.choice_fast import RivalIndex, make_choice_workspace
from revealed.kernels.choice_student import log_probabilities_of_draws
from revealed.kernels.noise import (
    NORMAL,
    AnyNoise,
    LapseArguments,
    NoiseArguments,
    count_coordinates,
)
from revealed.kernels.prior_scale import PriorScale, draw_prior_sd
from revealed.models.habit import weights_of
from revealed.models.lapse import KnownLapse, rates_of
from revealed.models.noise import NormalNoise
from revealed.models.noise_coordinates import parameters_at
from revealed.models.priors import ResolvedPrior
from revealed.samplers.composite.proposal import importance_efficiency


def effective_size(log_weights: Floats) -> float:
    """The effective number of draws with these log weights (N,): (sum w)^2 / sum w^2."""
    return importance_efficiency(log_weights) * len(log_weights)


def systematic_resample(
    rng: np.random.Generator, weights: Floats, count: int | None = None
) -> Ints:
    """(count,) the parents of so many particles, default: N, drawn by their weights (N,).

    One at each even step of the running sum of the weights, from a random beginning.
    """
    count = len(weights) if count is None else count
    # One uniform for all: fewer copies differ from their expectation than with one for each.
    positions = (rng.random() + np.arange(count)) / count
    return np.asarray(
        np.minimum(np.searchsorted(np.cumsum(weights), positions), len(weights) - 1),
        dtype=np.int64,
    )


def log_choice_probabilities(
    rows: Floats,
    chosen: int,
    values: Floats,
    noise: AnyNoise = NORMAL,
    actions: Sequence[int] = (),
) -> Floats:
    """(N,) exact log probability of a choice under each of values (N, K).

    chosen: which one of the rows (M, K) was chosen. actions: M labels of the rows as numbers, where
    lapses follow habits.
    """
    if isinstance(noise, LapseArguments):
        # each particle has lapses of its own, its last coefficients
        without = values[:, : values.shape[1] - noise.coordinates]
        logs = log_choice_probabilities(rows[:, : without.shape[1]], chosen, without, noise.noise)
        shares = _blind_shares(noise, values, len(rows), actions)[:, [chosen]]
        return _known_lapse(noise, values).log_mix(logs[:, None], shares)[:, 0]
    if noise.is_student:
        return _log_student_probabilities(rows, chosen, values, noise)
    # One decision for each value: N decisions with the same M actions.
    count, size = len(values), len(rows)
    mu, out = np.ascontiguousarray((values @ rows.T).reshape(-1)), np.empty(count)
    chosen_row = size * np.arange(count) + chosen
    log_probabilities(noise, mu, size * np.arange(count + 1), chosen_row, out)
    return out


def choice_probabilities(
    rows: Floats, values: Floats, noise: AnyNoise = NORMAL, actions: Sequence[int] = ()
) -> Floats:
    """(N, M) exact probabilities of each of rows (M, K) under each of values (N, K).

    Every row sums to one. actions: as in `log_choice_probabilities`.
    """
    if isinstance(noise, LapseArguments):
        own = values.shape[1] - noise.coordinates
        without = choice_probabilities(rows[:, :own], values[:, :own], noise.noise)
        shares = _blind_shares(noise, values, len(rows), actions)
        return _known_lapse(noise, values).mix(without, shares)
    count, size = len(values), len(rows)
    if noise.is_student:
        found = [_log_student_probabilities(rows, c, values, noise) for c in range(size)]
        p = np.exp(np.stack(found, axis=1))
        return np.asarray(p / p.sum(axis=1, keepdims=True))
    out = np.empty(count * size)
    mu = np.ascontiguousarray((values @ rows.T).reshape(-1))
    all_probabilities(noise, mu, size * np.arange(count + 1), out)
    return out.reshape(count, size)


def _log_student_probabilities(
    rows: Floats, chosen: int, values: Floats, noise: NoiseArguments
) -> Floats:
    """(N,) log probability of a choice under Student noise, by the rule of samplers."""
    # each particle has its own degrees of freedom where they are not known
    df = np.full(len(values), noise.parameters[0])
    if count_coordinates(noise):
        df = parameters_at(noise, values[:, -1])
    if len(rows) == 1:
        return np.zeros(len(values))
    gaps = np.ascontiguousarray(values @ (np.delete(rows, chosen, axis=0) - rows[chosen]).T)
    index = RivalIndex(np.array([0, gaps.shape[1]]), np.ones(gaps.shape[1]), np.ones(1))
    out = np.empty(len(values))
    log_probabilities_of_draws(df, gaps, make_choice_workspace(index), out)
    return out


def _known_lapse(noise: LapseArguments, values: Floats) -> KnownLapse:
    """The rate of lapses of each of values (N, K), from its coordinate among the last of them."""
    # those of habits come after it
    z = values[:, values.shape[1] - noise.coordinates]
    return KnownLapse(NormalNoise(), rates_of(noise.table, z))


def _blind_shares(
    noise: LapseArguments, values: Floats, size: int, actions: Sequence[int]
) -> Floats:
    """(N, M) how probable it is that a lapse chooses each of M rows, under each of values."""
    if not noise.has_habits:
        return np.full((len(values), size), 1.0 / size)
    # every particle has habits of its own, of which those offered count
    labels = noise.habit.weights.size
    weights = weights_of(values[:, values.shape[1] - labels :][:, list(actions)])
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def draw_prior_sds(
    rng: np.random.Generator, resolved_prior: ResolvedPrior, values: Floats
) -> Floats:
    """(N,) the prior sd given each of values (N, K), exactly.

    The prior must be one whose scale is inferred.
    """
    # coordinates that are not of the value have another prior
    values = values[:, : values.shape[1] - resolved_prior.unscaled]
    resolved_prior = resolved_prior.of_value()
    assert resolved_prior.scale is not None
    q = (values - resolved_prior.mean) @ resolved_prior.basis
    # Only scale and dimension matter for the draw given Q.
    empty, empty_matrix = np.zeros(0), np.zeros((0, 0))
    prior_scale = PriorScale(
        scale=resolved_prior.scale,
        dimension=q.shape[1],
        mean=empty,
        prior_diag=empty,
        prior_full=empty_matrix,
        constant_precision=0.0,
        eigenvectors=empty_matrix,
        gram_eigenvalues=empty,
        precision_times_mean=empty,
        translation_sd=0.0,
    )
    # Q of each value, in the coordinates q of the prior.
    quads = np.einsum("ni,ij,nj->n", q, resolved_prior.precision, q)
    return np.array([draw_prior_sd(rng, prior_scale, quad) for quad in quads])


def dense_rows(rows: Any) -> Floats:
    """Rows as a contiguous array, from an array or a sparse matrix."""
    return np.ascontiguousarray(rows.toarray() if hasattr(rows, "toarray") else rows)


def check_proper_prior(resolved_prior: ResolvedPrior) -> None:
    """Refuse a flat prior: particles begin as draws of the prior."""
    if resolved_prior.flat:
        raise ValueError(
            "learning one decision at a time begins with draws of the prior, and a flat prior has "
            "none; give rv.Normal(sd)"
        )
