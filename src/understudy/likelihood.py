"""How likely the choices are, exactly: likelihood, derivatives, probabilities and the posterior mode (paper, section 2).

The controller takes the best of rows @ v + e, e ~ N(0, I). The probability of a choice is one integral
(`kernels.integral`), its logarithm is concave in v, so that with a Gaussian prior there is exactly one mode.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.linalg as sla
import scipy.sparse as sp

from understudy._arrays import Bools, Floats, Ints
from understudy.decisions import Decisions
from understudy.kernels import integral, orthant
from understudy.kernels.information import add_information_dense, add_information_sparse
from understudy.noise import KnownNoise
from understudy.priors import Placed

FEW_POINTS = 8  # of the lattice a draw, at least, where probabilities are averaged over draws
CHUNK = 8_000_000  # utilities held at a time: 64 MB
LIMIT = 1e100  # utilities beyond this would overflow when squared
STEPS = 200  # of Newton's method; ten are usual
AT_REST = 1e-14  # the gain in log posterior that a step promises: a ten-millionth of a standard deviation
ROUNDS = 4  # to find a likely size of the prior
STILL, OPEN = 1e-3, 1e-6  # the change of utilities, and the pivot, that tell a mode from a climb without end


def log_likelihood(d: Decisions, v: Any, noise: KnownNoise | None = None) -> Floats:
    """Log probability of each choice: (T,) for v of shape (K,), (S, T) for S draws of shape (S, K).

    Exact under independent noise; noise with a covariance is integrated over its lattice (`correlated`).

    >>> d = us.Decisions([[0.0], [1.0], [0.0], [1.0]], start=[0, 2, 4], chosen=[1, 0])
    >>> us.log_likelihood(d, [1.0]).round(3)  # log Phi(1 / sqrt 2), and log Phi(-1 / sqrt 2)
    array([-0.274, -1.428])
    """
    draws = _coefficients(d, v)
    taken = d.taken
    out = np.empty((len(draws), len(d)))
    if noise is not None:
        asked = np.zeros(d.rows.shape[0], dtype=np.bool_)
        asked[taken] = True
        for s, logs in correlated(d, draws, noise, asked, noise.points):
            out[s] = logs[taken]
        return out if np.ndim(v) == 2 else out[0]
    for s, mu in _utilities(d, draws):
        integral.log_probabilities(mu, d.start, taken, out[s])
    return out if np.ndim(v) == 2 else out[0]


def choice_probabilities(d: Decisions, v: Any, noise: KnownNoise | None = None) -> Floats:
    """Probability of every action offered: (P,) for v of shape (K,), (S, P) for S draws; one in sum per decision.

    >>> d = us.Decisions([[0.0], [1.0], [2.0]], start=[0, 3], chosen=[1])
    >>> us.choice_probabilities(d, [1.0]).round(3)
    array([0.047, 0.224, 0.729])
    """
    draws = _coefficients(d, v)
    out = np.empty((len(draws), d.rows.shape[0]))
    if noise is not None:
        for s, logs in correlated(d, draws, noise, np.ones(d.rows.shape[0], dtype=np.bool_), noise.points):
            out[s] = _normalised(d, logs)
        return out if np.ndim(v) == 2 else out[0]
    for s, mu in _utilities(d, draws):
        integral.all_probabilities(mu, d.start, out[s])
    return out if np.ndim(v) == 2 else out[0]


def mean_choice_probabilities(d: Decisions, draws: Any, noise: KnownNoise | None = None) -> Floats:
    """(P,) probability of every action offered, averaged over the draws, (S, K).

    Under noise with a covariance the draws share the points of the lattice, each its own few.
    """
    given = _coefficients(d, draws)
    total, one = np.zeros(d.rows.shape[0]), np.empty(d.rows.shape[0])
    if noise is not None:
        few = max(FEW_POINTS, noise.points // len(given))
        for _, logs in correlated(d, given, noise, np.ones(len(total), dtype=np.bool_), few):
            total += _normalised(d, logs)
        return total / len(given)
    for _, mu in _utilities(d, given):
        integral.all_probabilities(mu, d.start, one)
        total += one
    return total / len(given)


def correlated(
    d: Decisions, draws: Floats, noise: KnownNoise, asked: Bools, points: int
) -> Iterator[tuple[int, Floats]]:
    """For each draw s the log probability of every row asked for, (P,), under noise with a covariance.

    By sequential conditioning (`kernels.orthant`) over a lattice of so many points and their mirror images; a decision
    between two actions needs none. The first coordinate of the points is even, the others go on as Richtmyer's do from
    draw to draw, and all are folded: what an average over draws needs is that they differ.
    """
    if noise.covariance.ndim == 3 and len(noise.covariance) != len(draws):
        raise ValueError(
            f"{len(noise.covariance)} noise covariances for {len(draws)} draws of v; give one for each draw"
        )
    label, whole = noise.label_of_row(d), noise.whole(len(draws))
    turns = np.sqrt(_primes(max(1, int(d.sizes.max()) - 2)))
    for s, mu in _utilities(d, draws):
        place = (np.arange(s * points, (s + 1) * points)[:, None] + 0.5) * turns
        place[:, 0] = (np.arange(points) + 0.5) / points + s * turns[0]
        place %= 1.0
        folded = np.clip(np.abs(2.0 * place - 1.0), 1e-12, 1.0 - 1e-12)
        logs = np.zeros(len(mu))
        orthant.log_probabilities(
            mu, d.start, label, whole[s], asked, np.stack([np.log(folded), np.log1p(-folded)], axis=2), logs
        )
        yield s, logs


def _normalised(d: Decisions, logs: Floats) -> Floats:
    """(P,) probabilities that sum to one in each decision; integrated one by one, they do so only nearly."""
    chances = np.exp(logs)
    return np.asarray(chances / np.repeat(np.add.reduceat(chances, d.start[:-1]), d.sizes))


def _primes(count: int) -> Ints:
    found: list[int] = []
    number = 2
    while len(found) < count:
        if all(number % p for p in found):
            found.append(number)
        number += 1
    return np.array(found)


def derivatives(d: Decisions, v: Any) -> tuple[float, Floats, Floats]:
    """The log-likelihood of all choices together, its gradient (K,) and its Hessian (K, K) at v."""
    given = _coefficients(d, v)
    if np.ndim(v) != 1:
        raise ValueError(f"derivatives are taken at one v of {len(d.names)} numbers; it has shape {np.shape(v)}")
    value, gradient, information = _derivatives(d, d.taken, given[0], np.ones(len(d)))
    return value, gradient, -information


def posterior_mode(d: Decisions, placed: Placed, weight: Floats | None = None) -> tuple[Floats, Floats]:
    """The most likely v under the prior, by damped Newton steps from the prior mean.

    Returns v (K,), and minus the Hessian of the log posterior in the coordinates q of v = mean + basis @ q. Under a
    flat prior a mode need not exist: then this says so. weight (T,) counts a decision more than once.
    """
    taken, basis, v = d.taken, placed.basis, placed.mean.copy()
    times = np.ones(len(d)) if weight is None else weight

    def log_posterior(v: Floats) -> float:
        return float(log_likelihood(d, v) @ times + placed.log_density(v))

    for _ in range(STEPS):
        _, gradient_v, information_v = _derivatives(d, taken, v, times)
        gradient = basis.T @ gradient_v - placed.precision @ (basis.T @ (v - placed.mean))
        information = basis.T @ information_v @ basis + placed.precision
        step, pivot = _newton_step(information, gradient)
        move, gain = basis @ step, float(gradient @ step)
        if placed.flat and gain <= AT_REST and pivot <= OPEN:
            break
        # A likelihood that climbs for ever loses its slope, but the steps go on: the utilities must stand still too.
        if gain <= AT_REST and (not placed.flat or _largest_shift(d, taken, move) <= STILL):
            return v, information
        value, share = log_posterior(v), 1.0
        rounding = 1e-12 * (1.0 + abs(value))
        while share > 1e-9 and log_posterior(v + share * move) < value + 1e-4 * share * gain - rounding:
            share *= 0.5
        v = v + share * move
    if placed.flat:
        raise ValueError(
            "under a flat prior these decisions have no most likely v: they leave a direction open, "
            "or agree so well that ever larger values fit ever better; use us.Gaussian(variance)"
        )
    raise ValueError(
        f"the posterior mode was not found in {STEPS} Newton steps; "
        "bring the features to scales that are less far apart, or give a smaller prior variance"
    )


def with_likely_size(d: Decisions, placed: Placed, weight: Floats | None = None) -> Placed:
    """The prior as it is; or where its size is learnt, at a size that suits these decisions.

    A few rounds of expectation and maximisation with normal approximations, E[Q] = D sd^2: good enough to start from.
    """
    if placed.scale is None:
        return placed
    sd = placed.scale
    for _ in range(ROUNDS):
        given = placed.of_size(sd)
        v, information = posterior_mode(d, given, weight)
        q = (v - placed.mean) @ placed.basis
        expected = q @ placed.precision @ q + np.trace(sla.solve(information, placed.precision, assume_a="pos"))
        sd = float(np.clip(np.sqrt(expected / len(q)), 0.1 * sd, 10.0 * sd))
    return placed.of_size(sd)


def _coefficients(d: Decisions, v: Any) -> Floats:
    """V or draws of v as a checked (S, K) array."""
    width = len(d.names)
    try:
        given = np.asarray(v, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"v must be {width} numbers, or draws of them with shape (S, {width})") from None
    if given.ndim not in (1, 2) or given.shape[-1] != width or given.size == 0:
        raise ValueError(
            f"v has shape {given.shape}, but the decisions have {width} coefficients; "
            f"give {width} numbers, or draws of shape (S, {width})"
        )
    if not np.isfinite(given).all():
        where = np.argwhere(~np.isfinite(given))[0]
        raise ValueError(f"v is NaN or infinite at {d.names[where[-1]]!r}; all coefficients must be finite numbers")
    return np.atleast_2d(given)


def _utilities(d: Decisions, draws: Floats) -> Iterator[tuple[int, Floats]]:
    """For each draw s its mean utilities rows @ v, (P,), worked out a few draws at a time."""
    few = max(1, CHUNK // d.rows.shape[0])
    for first in range(0, len(draws), few):
        with np.errstate(over="ignore", invalid="ignore"):
            mu = np.ascontiguousarray((d.rows @ draws[first : first + few].T).T)
            largest = np.abs(mu).max()
        if not largest < LIMIT:
            raise ValueError(f"the utilities rows @ v reach {largest:g}, too large to compare; scale the features or v")
        for i in range(len(mu)):
            yield first + i, mu[i]


def slopes_at(d: Decisions, placed: Placed, v: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """The gradient of the log posterior in v itself, and minus its Hessian, the constants of centred blocks let loose."""
    off = v - placed.mean
    _, gradient, information = _derivatives(d, d.taken, v - placed.constants @ (placed.constants.T @ off), weight)
    return gradient - placed.whole @ off, information + placed.whole


def weighted_slopes(d: Decisions, v: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """The gradient (K,) of the log-likelihood with each decision counted as often as weight (T,) says, and minus its Hessian."""
    _, gradient, information = _derivatives(d, d.taken, v, weight)
    return gradient, information


def _derivatives(d: Decisions, taken: Ints, v: Floats, weight: Floats) -> tuple[float, Floats, Floats]:
    """The total log-likelihood, unweighted, and the gradient and minus the Hessian of the weighted one."""
    ((_, mu),) = _utilities(d, v[None])
    slopes = np.empty(len(mu))
    value = integral.value_and_gradient(mu, d.start, taken, slopes)
    information = np.zeros((len(v), len(v)))
    if sp.issparse(d.rows):
        indptr, indices = d.rows.indptr.astype(np.int64), d.rows.indices.astype(np.int64)
        add_information_sparse(mu, d.start, taken, weight, indptr, indices, d.rows.data, information)
    else:
        add_information_dense(mu, d.start, taken, weight, d.rows, information)
    return value, d.rows.T @ (np.repeat(weight, d.sizes) * slopes), information


def _newton_step(information: Floats, gradient: Floats) -> tuple[Floats, float]:
    """information^-1 gradient, each coordinate measured in its own scale, and the smallest pivot met on the way."""
    scale = np.sqrt(np.diag(information))
    scale[scale == 0.0] = 1.0
    ridge = 0.0
    while True:
        try:
            root = sla.cholesky(information / np.outer(scale, scale) + ridge * np.eye(len(scale)), lower=True)
            return sla.cho_solve((root, True), gradient / scale) / scale, float(np.diag(root).min())
        except sla.LinAlgError:
            ridge = max(1e-14, 10.0 * ridge)


def _largest_shift(d: Decisions, taken: Ints, move: Floats) -> float:
    """How much a move of v changes any utility against the chosen one's."""
    shift = d.rows @ move
    return float(np.abs(shift - np.repeat(shift[taken], d.sizes)).max())
