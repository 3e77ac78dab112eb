"""What is assumed of the coefficients before any decision is seen (paper, section 4).

The likelihood of a finite MDP does not change when a constant is added to all values, so the prior
of the paper is a normal one on the values that sum to zero. In general some blocks of coefficients
are *sum-to-zero*. With B an orthonormal basis of what is left, v = B q, and the prior is a normal
(or flat) one on q.

The prior scale may be inferred with the rest: v ~ N(mean, sd^2 covariance), and sd has a prior of
its own, scale |t| with t Student with four degrees of freedom (a half-t prior, Gelman 2006): flat
near zero, with heavy tails, but with a mean and a variance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import ArrayLike

from revealed._types import Floats
from revealed._validation import NUMBERS, check_positive
from revealed.data.blocks import Coefficients
from revealed.kernels.prior_scale import HYPERPRIOR_DF, log_marginal
from revealed.models.coordinates import block_of_coefficient, coordinates

# The prior sd of `rv.Normal()`: the paper's kappa of 2500. A much smaller one shrinks values
# towards zero where decisions are few; a much larger one leaves separable choices unbounded. An
# inferred one predicts better and warns more often: docs/default-prior.md.
DEFAULT_SD = 50.0


@dataclass(frozen=True)
class HalfStudentT:
    """A prior of an sd: sd = scale |t|, with t Student with `df` degrees of freedom.

    Half of its mass lies below 0.74 scale; values ten times as large are unlikely, but not ruled
    out.

    Parameters
    ----------
    df
        Degrees of freedom; 4 is what the samplers have tables for: flat near zero, with heavy
        tails, but with a mean and a variance.
    scale
        A positive number, in the units of the coefficients.

    Examples
    --------
    >>> rows = [[1.0, 3.0], [0.0, 2.0], [1.0, 2.0], [0.0, 2.0]] * 10  # tea or coffee
    >>> chosen = [0] * 14 + [1] * 6
    >>> d = rv.Decisions(rows, start=range(0, 41, 2), chosen=chosen, names=["tea", "price"])
    >>> model = rv.ChoiceModel(prior=rv.Normal(sd=rv.HalfStudentT(4, scale=1.0)))
    >>> post = rv.fit(d, model, draws=4000)
    >>> post.names[post.mean().argmax()], bool(post.mean("prior_sd") > 0.0)
    ('tea', True)
    """

    df: float = HYPERPRIOR_DF
    scale: float = 10.0

    def __post_init__(self) -> None:
        if self.df != HYPERPRIOR_DF:
            raise ValueError(
                f"HalfStudentT has {HYPERPRIOR_DF:g} degrees of freedom here, not {self.df!r}"
            )
        check_positive("the scale of HalfStudentT", self.scale)


@dataclass(frozen=True)
class Normal:
    """The prior v ~ N(mean, sd^2 covariance), where sum-to-zero blocks are held to sum to zero.

    Parameters
    ----------
    sd
        How far coefficients may lie from the mean before any choice is seen: a number, K numbers,
        or a mapping from block names to numbers; or a prior of one number, ``HalfStudentT()``,
        which is then inferred with the rest. Default: 50, or 1 where a covariance is given. The
        paper's kappa is sd^2.
    mean
        A number, or K numbers; default 0.
    sum_to_zero
        True or False for all blocks or none; None follows the blocks of the decisions.
    covariance
        Of v where sd is one: a (K, K) matrix, K numbers for its diagonal, or a mapping from block
        names to numbers. Default: the identity. It goes with an sd that is one number, or
        inferred.

    Examples
    --------
    >>> rows = [[1.0, 3.0], [0.0, 2.0], [1.0, 2.0], [0.0, 2.0]] * 10  # tea or coffee
    >>> chosen = [0] * 14 + [1] * 6
    >>> d = rv.Decisions(rows, start=range(0, 41, 2), chosen=chosen, names=["tea", "price"])
    >>> priors = rv.Normal(1.0), rv.Normal([1.0, 2.0]), rv.Normal(rv.HalfStudentT(scale=1.0))
    >>> models = [rv.ChoiceModel(prior=prior) for prior in priors]
    >>> [rv.fit(d, model, draws=4000).mean().argmax() for model in models]
    [np.int64(0), np.int64(0), np.int64(0)]
    """

    sd: ArrayLike | Mapping[str, float] | HalfStudentT | None = None
    mean: ArrayLike = 0.0
    sum_to_zero: bool | None = None
    covariance: ArrayLike | Mapping[str, float] | None = None

    @property
    def infers_sd(self) -> bool:
        """Whether the prior scale is inferred with the coefficients."""
        return isinstance(self.sd, HalfStudentT)


@dataclass(frozen=True)
class Flat:
    """No preference at all; the posterior exists only where decisions bound every direction.

    Parameters
    ----------
    sum_to_zero
        True or False for all blocks or none; None follows the blocks of the decisions.

    Examples
    --------
    >>> rows = [[1.0, 0.0], [0.0, 1.0]] * 20  # tea or coffee, twenty times
    >>> chosen, drinks = [0] * 14 + [1] * 6, rv.Block("drink", 2, sum_to_zero=True)
    >>> d = rv.Decisions(rows, start=range(0, 41, 2), chosen=chosen, blocks=[drinks])
    >>> rv.fit(d, rv.ChoiceModel(prior=rv.Flat())).mean().round(1)
    array([ 0.4, -0.4])
    """

    sum_to_zero: bool | None = None


Prior = Normal | Flat


@dataclass(frozen=True, eq=False)
class ResolvedPrior:
    """A prior in the coordinates of one set of decisions.

    basis: (K, D), v = mean + basis @ q with q ~ N(0, precision^-1). constant_directions: (K, L) one
    unit-norm indicator column for each sum-to-zero block, so that [basis, constant_directions] is
    an orthonormal square matrix. precision: (D, D), zero when flat; where the prior scale is
    inferred, that of sd one. mean: (K,). scale: that of the sd's own prior, None if sd is given.
    unscaled: how many coordinates, the last ones, an inferred sd leaves alone; they are not of the
    value but of the noise.
    """

    basis: Floats
    constant_directions: Floats
    precision: Floats
    mean: Floats
    flat: bool
    scale: float | None = None
    unscaled: int = 0

    @property
    def has_mean(self) -> bool:
        """Whether the prior mean is anywhere but at zero."""
        return bool(np.any(self.mean))

    @property
    def constant_precision(self) -> float:
        """The precision of the blocks' constants where they are left free.

        Samplers may give sum-to-zero blocks a random constant, which changes no choice. It is as
        precise as the other directions are on average.
        """
        free = len(self.precision) - self.unscaled
        return 1.0 if self.flat else float(np.trace(self.precision[:free, :free]) / free)

    @cached_property
    def full_precision(self) -> Floats:
        """(K, K) precision of v where the constants of sum-to-zero blocks are left free."""
        constants = self.constant_precision * (
            self.constant_directions @ self.constant_directions.T
        )
        return np.asarray(self.basis @ self.precision @ self.basis.T + constants)

    @cached_property
    def strongly_correlated(self) -> bool:
        """Whether some coefficients can hardly move alone, because the prior correlates them."""
        if self.flat:
            return False
        covariance = np.linalg.inv(self.full_precision)
        sd = np.sqrt(np.diag(covariance))
        # Beyond this correlation, coefficients are one curve rather than many numbers. It only
        # decides how the sampler moves them: a wrong value costs speed, not correctness.
        threshold = 0.9
        return bool(np.abs(np.tril(covariance / np.outer(sd, sd), -1)).max() > threshold)

    @cached_property
    def diagonal_or_full(self) -> tuple[Floats, Floats]:
        """`full_precision` as its diagonal (K,) and an empty matrix, if it is diagonal.

        Otherwise an empty vector and the matrix itself: kernels take the cheaper of the two forms.
        """
        # Off the diagonal only rounding is left, where the prior is independent.
        diagonal, full = np.diag(self.full_precision).copy(), self.full_precision
        is_full = np.abs(full - np.diag(diagonal)).max() > 1e-12 * diagonal.max()
        if is_full:
            return np.zeros(0), np.ascontiguousarray(full)
        return diagonal, np.zeros((0, 0))

    def with_standard_normal(self, count: int) -> ResolvedPrior:
        """The same with so many standard normal coordinates more, behind the coefficients."""
        if count == 0:
            return self
        # independent of the coefficients, and in no block that sums to zero
        nothing = np.zeros((count, self.constant_directions.shape[1]))
        return replace(
            self,
            basis=np.ascontiguousarray(sla.block_diag(self.basis, np.eye(count))),
            constant_directions=np.vstack([self.constant_directions, nothing]),
            precision=sla.block_diag(self.precision, np.eye(count)),
            mean=np.append(self.mean, np.zeros(count)),
            unscaled=self.unscaled + count,
        )

    def of_value(self) -> ResolvedPrior:
        """The same without the coordinates that an inferred sd leaves alone."""
        if self.unscaled == 0:
            return self
        width, free = len(self.mean) - self.unscaled, len(self.precision) - self.unscaled
        return replace(
            self,
            basis=np.ascontiguousarray(self.basis[:width, :free]),
            constant_directions=self.constant_directions[:width],
            precision=self.precision[:free, :free],
            mean=self.mean[:width],
            unscaled=0,
        )

    def at_scale(self, sd: float) -> ResolvedPrior:
        """The same prior with an sd that is given, where it was to be inferred.

        `precision` is that of sd one, so it is divided by sd^2.
        """
        return replace(self, precision=scaled(self.precision, sd, self.unscaled), scale=None)

    def with_random_constants(self, rng: np.random.Generator, v: Floats) -> Floats:
        """Draws of v (n, K) with the constants of sum-to-zero blocks drawn anew.

        The choices do not depend on them; their precision is `constant_precision`.
        """
        # Replace the constants that v has now by fresh ones.
        current = v @ self.constant_directions
        drawn = rng.standard_normal(current.shape) / np.sqrt(self.constant_precision)
        return np.asarray(v + (drawn - current) @ self.constant_directions.T)

    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """(size, K) draws of v from the prior; each with its own sd, where that is inferred."""
        if self.flat:
            raise ValueError("a flat prior cannot be drawn from; give Normal(sd)")
        # q = root^-T z has precision root root'.
        root = sla.cholesky(self.precision, lower=True)
        noise = rng.standard_normal((self.precision.shape[0], size))
        q = sla.solve_triangular(root, noise, lower=True, trans="T")
        # The sd of each draw from its own half-t prior.
        if self.scale is not None:
            free = len(q) - self.unscaled
            q[:free] *= self.scale * np.abs(rng.standard_t(HYPERPRIOR_DF, size))
        return np.ascontiguousarray((self.basis @ q).T) + self.mean

    def log_density(self, v: Floats) -> Floats:
        """Log prior density of v, (K,) or (S, K), up to a constant; zero when flat.

        Where the sd is inferred, it is integrated out by quadrature (`kernels.prior_scale`).
        """
        # The quadratic form (v - mean)' precision (v - mean), in coordinates q.
        q = (v - self.mean) @ self.basis
        quad = np.einsum("...i,ij,...j->...", q, self.precision, q)
        if self.scale is None:
            return np.asarray(-0.5 * quad)
        # of the value's coordinates alone; those that the sd leaves alone are standard normal
        free = q.shape[-1] - self.unscaled
        rest = (q[..., free:] ** 2).sum(axis=-1)
        logs = log_marginal(np.atleast_1d(quad - rest), free, self.scale)[0]
        return np.asarray(logs.reshape(quad.shape) - 0.5 * rest)


def scaled(precision: Floats, sd: float, unscaled: int) -> Floats:
    """A precision (D, D) of sd one at another sd, but for the last coordinates: so many stay."""
    found = precision / sd**2
    free = len(precision) - unscaled
    found[free:, free:] = precision[free:, free:]
    return found


def resolve_prior(prior: Prior, decisions: Coefficients) -> ResolvedPrior:
    """The prior in the coordinates of these decisions.

    Every mistake in its numbers is found here, against the number of coefficients and the names of
    the blocks.
    """
    if not isinstance(prior, Normal | Flat):
        raise ValueError(f"prior must be rv.Normal(sd) or rv.Flat(), not {prior!r}")
    basis, constant_directions = coordinates(decisions, prior.sum_to_zero)
    width = len(decisions.names)
    if isinstance(prior, Flat):
        free = basis.shape[1]
        return ResolvedPrior(
            basis, constant_directions, np.zeros((free, free)), np.zeros(width), True
        )
    inverse = _inverse_covariance(prior, decisions)
    # Conditioning a normal law on a subspace: its precision, restricted.
    precision = basis.T @ inverse @ basis
    # A mean that does not sum to zero within a block is replaced by the mean of N(given, ...)
    # conditioned on summing to zero: the weighted least-squares fit of q.
    mean = np.zeros(width)
    # A zero mean, the usual case, needs no solving.
    given = _vector("the prior mean", prior.mean, width)
    if np.any(given):
        # by its factor, to which sds that are far apart are no loss of digits
        mean = basis @ sla.cho_solve(sla.cho_factor(precision), basis.T @ inverse @ given)
    scale = prior.sd.scale if isinstance(prior.sd, HalfStudentT) else None
    return ResolvedPrior(basis, constant_directions, precision, mean, False, scale)


def _numbers(what: str, value: Any) -> Floats:
    """A number or numbers as an array; `what` names them in the message."""
    # Text such as "learn" is refused here, in the argument's name.
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{what} must be a number or numbers, not {value!r}") from None


def _vector(what: str, value: Any, width: int) -> Floats:
    """(width,) finite numbers, from as many or from one for all."""
    given = _numbers(what, value)
    if given.ndim > 1 or (given.ndim == 1 and given.shape != (width,)):
        raise ValueError(f"{what} must be a number or {width} numbers; it has shape {given.shape}")
    if not np.isfinite(given).all():
        raise ValueError(f"{what} must be finite")
    # A copy, since broadcast arrays must not be written to.
    return np.broadcast_to(given, (width,)).astype(np.float64)


def _inverse_covariance(prior: Normal, decisions: Coefficients) -> Floats:
    """(K, K) precision of v before sum-to-zero blocks are cut out; at sd one if it is inferred."""
    given = prior.covariance
    if given is None:
        sd = 1.0 if prior.infers_sd else DEFAULT_SD if prior.sd is None else prior.sd
        return np.diag(1.0 / _positive("the prior sd", sd, decisions) ** 2)

    # With a covariance, the sd is one number that multiplies it.
    sd = 1.0 if prior.infers_sd or prior.sd is None else prior.sd
    if isinstance(sd, Mapping) or np.ndim(_numbers("the prior sd", sd)) > 0:
        raise ValueError(
            "beside a prior covariance the prior sd must be one number, or a prior of one"
        )
    variance = _positive("the prior sd", sd, decisions)[0] ** 2
    if isinstance(given, Mapping) or np.ndim(_numbers("the prior covariance", given)) != 2:
        return np.diag(1.0 / (variance * _positive("the prior covariance", given, decisions)))
    return _inverse_matrix(variance * _numbers("the prior covariance", given), len(decisions.names))


def _inverse_matrix(matrix: Floats, width: int) -> Floats:
    """The inverse of a (K, K) prior covariance, which must be symmetric and positive definite."""
    if matrix.shape != (width, width) or not np.allclose(matrix, matrix.T):
        raise ValueError(
            f"a prior covariance must be symmetric, {width} by {width}; it has shape {matrix.shape}"
        )
    try:
        inverse = sla.cho_solve(sla.cho_factor(matrix), np.eye(width))
    except (sla.LinAlgError, ValueError):
        raise ValueError("the prior covariance is not positive definite") from None
    return np.asarray(inverse, dtype=np.float64)


def _positive(what: str, given: Any, decisions: Coefficients) -> Floats:
    """(K,) positive numbers from one number, K, or one for each block.

    `what` names them in messages: the prior sd, or the prior covariance.
    """
    width = len(decisions.names)
    if isinstance(given, Mapping):
        known = [block.name for block in decisions.blocks]
        if set(given) != set(known):
            raise ValueError(f"{what} names blocks {list(given)}, but the decisions have {known}")
        # The mapping's order does not matter: numbers are put in the blocks' order.
        by_block = _vector(what, [given[name] for name in known], len(known))
        given = by_block[block_of_coefficient(decisions)]
    diagonal = _vector(what, given, width)
    # Squares of numbers beyond, and their inverses, would be infinite.
    if (diagonal > NUMBERS.largest).any() or (
        (diagonal > 0) & (diagonal < 1.0 / NUMBERS.largest)
    ).any():
        worst = diagonal[np.abs(np.log(np.maximum(diagonal, 1e-300))).argmax()]
        raise ValueError(f"{what} is {worst:g}; bring the features to a scale of about one")
    # A zero sd would fix a coefficient; leave it out of the rows instead.
    if (diagonal <= 0).any():
        raise ValueError(
            f"{what} must be positive; it is {diagonal.min():g} (use rv.Flat() for no prior)"
        )
    return diagonal
