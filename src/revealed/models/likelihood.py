"""How likely the choices are, exactly: likelihood, derivatives, probabilities, posterior mode.

The controller takes the best of rows @ v + e, e ~ N(0, I) (paper, section 2). The probability of
a choice is one integral (`kernels.choice_exact`). Its logarithm is concave in v, so that with a
normal prior there is exactly one mode. Another law of the noise has a formula of its own
(`kernels.noise`); under noise with a covariance, probabilities are integrals over orthants
(`ghk_probabilities.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as sla

from revealed._types import Bools, Floats, Ints
from revealed.data.decisions import Decisions, Rows
from revealed.kernels import choice
from revealed.kernels.interrupt import raise_if_stopping
from revealed.kernels.noise import NORMAL, AnyNoise
from revealed.models.correlated_noise import NoiseCovariance
from revealed.models.derivatives import minus_hessian, value_and_gradient
from revealed.models.ghk_probabilities import ghk_log_probabilities, normalise
from revealed.models.habit import bind_habits
from revealed.models.lapse import KnownLapse
from revealed.models.noise import KnownNoise, Noise, as_kernel
from revealed.models.noise_coordinates import at_coordinate
from revealed.models.priors import ResolvedPrior
from revealed.models.student import StudentDraws


@dataclass(frozen=True)
class NewtonLimits:
    """When Newton's method for the posterior mode stops, and when it gives up."""

    # Ten steps are usual; features of very different scales need more.
    max_steps: int = 200
    # The gain in log posterior that a step promises, at which the mode is found: a ten-millionth
    # of a standard deviation away. Larger, and what is computed at the mode is less exact.
    min_gain: float = 1e-14
    # Under a flat prior: the change of utilities, and the pivot of the Cholesky factor, that tell
    # a mode from a likelihood that climbs for ever. Too large, and an improper posterior passes.
    max_utility_change: float = 1e-3
    min_pivot: float = 1e-6


NEWTON = NewtonLimits()
UTILITIES_AT_A_TIME = 8_000_000  # 64 MB of mean utilities; fewer cost time, more cost memory


def log_likelihood(d: Decisions, v: Any, noise: KnownNoise | None = None) -> Floats:
    """Log probability of each choice under the value v, or under draws of it.

    Exact under normal noise; noise with a covariance is integrated over its lattice.

    Parameters
    ----------
    d
        T decisions whose choices were seen.
    v
        (K,) coefficients, or (S, K) draws of them.
    noise
        The law of each action's noise, a covariance, or ``KnownLapse``; None for independent
        standard normal noise.

    Returns
    -------
    array
        (T,) for one v, (S, T) for S draws.

    Examples
    --------
    >>> d = rv.Decisions([[0.0], [1.0], [0.0], [1.0]], start=[0, 2, 4], chosen=[1, 0])
    >>> rv.log_likelihood(d, [1.0]).round(3)  # log Phi(1 / sqrt 2), and log Phi(-1 / sqrt 2)
    array([-0.274, -1.428])
    """
    draws = _check_coefficients(d, v)
    if isinstance(noise, KnownLapse):
        logs = np.atleast_2d(log_likelihood(d, draws, noise.without_lapses))
        mixed = noise.log_mix(logs, noise.shares_of_choices(d))
        return mixed if np.ndim(v) == 2 else mixed[0]
    chosen_row = d.chosen_row
    out = np.empty((len(draws), len(d)))
    if isinstance(noise, NoiseCovariance):
        # Only the chosen rows' orthants are integrated.
        wanted = np.zeros(d.rows.shape[0], dtype=np.bool_)
        wanted[chosen_row] = True
        for s, logs in _by_ghk(d, draws, noise, wanted, noise.points):
            out[s] = logs[chosen_row]
    else:
        _write_log_likelihoods(d, draws, _kernels_of_draws(noise), out)
    return out if np.ndim(v) == 2 else out[0]


def choice_probabilities(d: Decisions, v: Any, noise: KnownNoise | None = None) -> Floats:
    """Probability of every action offered; they sum to one in each decision.

    Parameters
    ----------
    d
        Decisions with P rows in all; their choices do not matter.
    v
        (K,) coefficients, or (S, K) draws of them.
    noise
        The law of each action's noise, a covariance, or ``KnownLapse``; None for independent
        standard normal noise.

    Returns
    -------
    array
        (P,) for one v, (S, P) for S draws.

    Examples
    --------
    >>> d = rv.Decisions([[0.0], [1.0], [2.0]], start=[0, 3], chosen=[1])
    >>> rv.choice_probabilities(d, [1.0]).round(3)
    array([0.047, 0.224, 0.729])
    """
    draws = _check_coefficients(d, v)
    if isinstance(noise, KnownLapse):
        without = np.atleast_2d(choice_probabilities(d, draws, noise.without_lapses))
        mixed = noise.mix(without, noise.shares(d))
        return mixed if np.ndim(v) == 2 else mixed[0]
    out = np.empty((len(draws), d.rows.shape[0]))
    if isinstance(noise, NoiseCovariance):
        every_row = np.ones(d.rows.shape[0], dtype=np.bool_)
        for s, logs in _by_ghk(d, draws, noise, every_row, noise.points):
            out[s] = normalise(d, logs)
    else:
        kernel_of = _kernels_of_draws(noise)
        for s, mu in _mean_utilities(d, draws):
            choice.all_probabilities(kernel_of(s), mu, d.start, out[s])
    return out if np.ndim(v) == 2 else out[0]


def _by_ghk(
    d: Decisions, draws: Floats, noise: NoiseCovariance, wanted: Bools, points: int
) -> Iterator[tuple[int, Floats]]:
    """For each draw s the log probability (P,) of every row wanted (`ghk_probabilities.py`)."""
    return ghk_log_probabilities(d, _mean_utilities(d, draws), len(draws), noise, wanted, points)


def _kernels_of_draws(noise: Noise | None) -> Callable[[int], AnyNoise]:
    """What gives the noise of each draw as compiled loops take it; None is normal noise."""
    if isinstance(noise, StudentDraws):
        return noise.kernel_of_draw
    kernel = as_kernel(noise)
    return lambda s: kernel


def _write_log_likelihoods(
    d: Decisions, draws: Floats, noise_of: Callable[[int], AnyNoise], out: Floats
) -> None:
    """Write the log probability of each choice under each draw into out (S, T)."""
    start, chosen_row, write = d.start, d.chosen_row, choice.log_probabilities
    for s, mu in _mean_utilities(d, draws):
        write(at_coordinate(noise_of(s), draws[s]), mu, start, chosen_row, out[s])


def derivatives(
    d: Decisions, v: Any, noise: Noise | KnownLapse | None = None
) -> tuple[float, Floats, Floats]:
    """The log-likelihood of all choices, its gradient (K,) and its Hessian (K, K) at v (K,)."""
    given = _check_coefficients(d, v)
    if np.ndim(v) != 1:
        raise ValueError(
            f"derivatives are taken at one v of {len(d.names)} numbers; it has shape {np.shape(v)}"
        )
    once, kernel = np.ones(len(d)), as_kernel(noise)
    if isinstance(noise, KnownLapse):
        kernel = bind_habits(kernel, d, noise.label_of_row(d))
    value, gradient, information = _derivatives(d, d.chosen_row, given[0], once, kernel)
    return value, gradient, -information


def posterior_mode(
    d: Decisions,
    resolved_prior: ResolvedPrior,
    weight: Floats | None = None,
    noise: AnyNoise = NORMAL,
    start: Floats | None = None,
    min_gain: float = NEWTON.min_gain,
) -> tuple[Floats, Floats]:
    """The most likely v under the prior, by damped Newton steps from `start` or the prior mean.

    Returns v (K,), and minus the Hessian of the log posterior in the coordinates q of
    v = mean + basis @ q. Under a flat prior a mode need not exist: then this says so. weight (T,)
    counts a decision more than once. min_gain: the gain in log posterior that a step must promise
    to be made.
    """
    chosen_row, basis = d.chosen_row, resolved_prior.basis
    v = (resolved_prior.mean if start is None else start).copy()
    # Equal decisions may have been counted together.
    times = np.ones(len(d)) if weight is None else weight
    flat, precision, mean = resolved_prior.flat, resolved_prior.precision, resolved_prior.mean

    def log_posterior(v: Floats) -> float:
        logs = np.empty((1, len(d)))
        _write_log_likelihoods(d, v[None], lambda s: noise, logs)
        return float(logs[0] @ times + resolved_prior.log_density(v))

    for _ in range(NEWTON.max_steps):
        # Derivatives in v, then in the free coordinates q, with the prior's.
        _, gradient_v, information_v = _derivatives(d, chosen_row, v, times, noise)
        gradient = basis.T @ gradient_v - precision @ (basis.T @ (v - mean))
        information = basis.T @ information_v @ basis + precision
        step, pivot = _newton_step(information, gradient)
        move, gain = basis @ step, float(gradient @ step)
        if flat and gain <= min_gain and pivot <= NEWTON.min_pivot:
            break
        # A likelihood that climbs for ever loses its slope, but the steps go on: under a flat
        # prior the utilities must have stopped changing too.
        if gain <= min_gain and (
            not flat or _largest_shift(d, chosen_row, move) <= NEWTON.max_utility_change
        ):
            return v, information
        # Halve the step until the log posterior rises by a part of what was promised (Armijo).
        value, share = log_posterior(v), 1.0
        rounding = 1e-12 * (1.0 + abs(value))
        while (
            share > 1e-9
            and log_posterior(v + share * move) < value + 1e-4 * share * gain - rounding
        ):
            share *= 0.5
        v = v + share * move
    if flat:
        raise ValueError(
            "under a flat prior these decisions have no most likely v: they leave a direction "
            "open, or agree so well that ever larger values fit ever better; use rv.Normal(sd)"
        )
    raise ValueError(
        f"the posterior mode was not found in {NEWTON.max_steps} Newton steps; "
        "bring the features to scales that are less far apart, or give a smaller prior sd"
    )


def at_likely_scale(
    d: Decisions,
    resolved_prior: ResolvedPrior,
    weight: Floats | None = None,
    noise: AnyNoise = NORMAL,
) -> ResolvedPrior:
    """The prior as it is; or where its scale is inferred, at a scale that suits these decisions.

    A few rounds of expectation and maximisation with normal approximations, from
    E[(v - mean)' precision (v - mean)] = D sd^2: good enough to start from.
    """
    if resolved_prior.scale is None:
        return resolved_prior
    sd = resolved_prior.scale
    # Only of the value's coordinates is it the scale.
    free = len(resolved_prior.precision) - resolved_prior.unscaled
    precision = np.zeros_like(resolved_prior.precision)
    precision[:free, :free] = resolved_prior.precision[:free, :free]
    # Each of the four rounds changes the sd by a factor of ten at most.
    for _ in range(4):
        v, information = posterior_mode(d, resolved_prior.at_scale(sd), weight, noise)
        q = (v - resolved_prior.mean) @ resolved_prior.basis
        # The quadratic form at the mode, plus its spread around the mode.
        expected = q @ precision @ q + np.trace(
            sla.cho_solve(sla.cho_factor(information), precision)
        )
        sd = float(np.clip(np.sqrt(expected / free), 0.1 * sd, 10.0 * sd))
    return resolved_prior.at_scale(sd)


def log_posterior_derivatives(
    d: Decisions,
    resolved_prior: ResolvedPrior,
    v: Floats,
    weight: Floats,
    noise: AnyNoise = NORMAL,
) -> tuple[Floats, Floats]:
    """The gradient (K,) of the log posterior in v itself, and minus its Hessian (K, K).

    The constants of sum-to-zero blocks are left free, with a prior of their own
    (`ResolvedPrior.full_precision`); the likelihood does not depend on them.
    """
    offset, constants = v - resolved_prior.mean, resolved_prior.constant_directions
    _, gradient, information = _derivatives(
        d, d.chosen_row, v - constants @ (constants.T @ offset), weight, noise
    )
    precision = resolved_prior.full_precision
    return gradient - precision @ offset, information + precision


def weighted_derivatives(
    d: Decisions, v: Floats, weight: Floats, noise: AnyNoise = NORMAL
) -> tuple[Floats, Floats]:
    """The gradient (K,) of the weighted log-likelihood at v, and minus its Hessian (K, K).

    weight (T,) is how often each decision counts.
    """
    _, gradient, information = _derivatives(d, d.chosen_row, v, weight, noise)
    return gradient, information


def _check_coefficients(d: Decisions, v: Any) -> Floats:
    """v, or draws of v, as a checked (S, K) array."""
    width = len(d.names)
    try:
        given = np.asarray(v, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"v must be {width} numbers, or draws of them with shape (S, {width})"
        ) from None
    # An empty set of draws has no mean and no maximum.
    if given.ndim not in (1, 2) or given.shape[-1] != width or given.size == 0:
        raise ValueError(
            f"v has shape {given.shape}, but the decisions have {width} coefficients; "
            f"give {width} numbers, or draws of shape (S, {width})"
        )
    if not np.isfinite(given).all():
        name = d.names[np.argwhere(~np.isfinite(given))[0][-1]]
        raise ValueError(
            f"v is NaN or infinite at {name!r}; all coefficients must be finite numbers"
        )
    return np.atleast_2d(given)


def _mean_utilities(d: Decisions, draws: Floats) -> Iterator[tuple[int, Floats]]:
    """For each draw s its mean utilities rows @ v, (P,), worked out some draws at a time."""
    at_a_time = max(1, UTILITIES_AT_A_TIME // d.rows.shape[0])
    for first in range(0, len(draws), at_a_time):
        mu = np.ascontiguousarray(mean_utilities(d.rows, draws[first : first + at_a_time]).T)
        for i in range(len(mu)):
            # what is done with each may take a while
            raise_if_stopping()
            yield first + i, mu[i]


def mean_utilities(rows: Rows, draws: Floats) -> Floats:
    """(P, S) rows @ v under each of draws (S, K).

    Refuses utilities too large to compare.
    """
    largest_allowed = 1e100  # beyond, utilities would overflow when squared
    with np.errstate(over="ignore", invalid="ignore"):
        mu = np.asarray(rows @ draws.T)
        # without a second array of that size
        largest = np.maximum(mu.max(), -mu.min())
    # Written this way round, so that a NaN is refused too.
    if not largest < largest_allowed:
        raise ValueError(
            f"the utilities rows @ v reach {largest:g}, too large to compare; "
            "scale the features or v"
        )
    return mu


def _derivatives(
    d: Decisions, chosen_row: Ints, v: Floats, weight: Floats, noise: AnyNoise
) -> tuple[float, Floats, Floats]:
    """The total log-likelihood, unweighted.

    Gradient and minus Hessian of the weighted one.
    """
    ((_, mu),) = _mean_utilities(d, v[None])
    value, gradient = value_and_gradient(d, chosen_row, mu, v, weight, noise)
    raise_if_stopping()
    return value, gradient, minus_hessian(d, chosen_row, mu, v, weight, noise)


def _newton_step(information: Floats, gradient: Floats) -> tuple[Floats, float]:
    """information^-1 gradient, and the smallest pivot of the scaled Cholesky factor.

    Each coordinate is measured in its own scale, so that pivots are comparable. A ridge grows
    until the matrix is positive definite.
    """
    # A feature that never differs has no information; its scale is left at one. Where log P is not
    # concave a diagonal may be negative, which the ridge makes up for.
    scale = np.sqrt(np.abs(np.diag(information)))
    scale[scale == 0.0] = 1.0
    ridge = 0.0
    while True:
        try:
            root = sla.cholesky(
                information / np.outer(scale, scale) + ridge * np.eye(len(scale)), lower=True
            )
            return sla.cho_solve((root, True), gradient / scale) / scale, float(np.diag(root).min())
        except sla.LinAlgError:
            ridge = max(1e-14, 10.0 * ridge)


def _largest_shift(d: Decisions, chosen_row: Ints, move: Floats) -> float:
    """The largest change of a utility against the chosen one's, when v moves by `move`."""
    shift = d.rows @ move
    return float(np.abs(shift - np.repeat(shift[chosen_row], d.sizes)).max())
