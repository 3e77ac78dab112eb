"""What is believed of the coefficients before any decision is seen (paper, section 4).

The likelihood of a finite MDP does not change when a constant is added to all values, so the prior of the
paper is a Gaussian on the values that sum to zero. In general some blocks of coefficients are *centred*.
With B an orthonormal basis of what is left, v = B q, and the prior is a Gaussian (or flat) on q.

How wide the Gaussian is may be learnt with the rest: v ~ N(mean, sd^2 shape), and the size sd has a prior of its own,
scale |t| with t Student with four degrees of freedom: flat near zero, with heavy tails, but with a mean and a variance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
import scipy.linalg as sla
from numpy.typing import ArrayLike

from understudy._arrays import Floats, Ints
from understudy.decisions import Block
from understudy.kernels.size import DEGREES, log_marginal

TIED = 0.9  # a correlation beyond which coefficients are one curve rather than many numbers


@dataclass(frozen=True)
class Gaussian:
    """v ~ N(mean, variance), restricted to centred blocks that sum to zero.

    Args:
        variance: kappa of the paper: a number, K numbers, a (K, K) covariance matrix, or a mapping from block
            names to numbers; or "learn", to learn a size sd with the rest, so that the variance is sd^2 times `shape`.
        mean: a number or K numbers.
        centred: True or False to centre all blocks or none; None to follow the decisions' own blocks.
        shape: with "learn", the variance of size one, given as a variance is; all ones unless said.
        scale: with "learn", of the prior of the size: sd is scale times |t|, t Student with four degrees of freedom. Half of
            its mass lies below 0.74 scale; values ten times as large are unlikely, but not ruled out.

    >>> rows = [[1.0, 0.0], [0.0, 1.0]] * 20  # tea or coffee, twenty times
    >>> d = us.Decisions(rows, start=range(0, 41, 2), chosen=[0] * 14 + [1] * 6, names=["tea", "coffee"])
    >>> priors = us.Gaussian(1.0), us.Gaussian([1.0, 4.0]), us.Gaussian("learn", scale=1.0)
    >>> [us.fit(d, prior, draws=4000).mean.argmax() for prior in priors]
    [np.int64(0), np.int64(0), np.int64(0)]
    """

    variance: ArrayLike | Mapping[str, float] | Literal["learn"] = 2500.0
    mean: ArrayLike = 0.0
    centred: bool | None = None
    shape: ArrayLike | Mapping[str, float] | None = None
    scale: float = 10.0

    @property
    def learns(self) -> bool:
        """Whether the size is learnt."""
        return isinstance(self.variance, str) and self.variance == "learn"


@dataclass(frozen=True)
class Flat:
    """No preference at all; the posterior exists only where the decisions bound every direction.

    >>> rows = [[1.0, 0.0], [0.0, 1.0]] * 20  # tea or coffee, twenty times
    >>> d = us.Decisions(rows, start=range(0, 41, 2), chosen=[0] * 14 + [1] * 6, blocks=[us.Block("drink", 2, centred=True)])
    >>> us.fit(d, us.Flat()).mean.round(1)
    array([ 0.4, -0.4])
    """

    centred: bool | None = None


Prior = Gaussian | Flat


@dataclass(frozen=True, eq=False)
class Placed:
    """A prior in the coordinates of one set of decisions.

    v = basis @ q with q ~ N(., precision^-1), precision zero when flat; `constants` holds one unit-norm
    indicator column for each centred block, so that [basis, constants] is an orthonormal square matrix.
    Where the prior's size is learnt, `precision` is that of size one, and `scale` that of the size's own prior.
    """

    basis: Floats
    constants: Floats
    precision: Floats
    mean: Floats
    flat: bool
    scale: float | None = None

    @property
    def has_mean(self) -> bool:
        """Whether the prior is centred anywhere but at zero."""
        return bool(np.any(self.mean))

    @property
    def slack(self) -> float:
        """The precision of the constants of centred blocks where they are let loose: as loose as the rest, on average."""
        return 1.0 if self.flat else float(np.trace(self.precision) / len(self.precision))

    @cached_property
    def whole(self) -> Floats:
        """(K, K) precision of v with the constants of centred blocks let loose."""
        loose = self.slack * (self.constants @ self.constants.T)
        return np.asarray(self.basis @ self.precision @ self.basis.T + loose)

    @cached_property
    def tied(self) -> bool:
        """Whether some coefficients can hardly move alone: the prior correlates them by more than TIED."""
        if self.flat:
            return False
        covariance = np.linalg.inv(self.whole)
        sd = np.sqrt(np.diag(covariance))
        return bool(np.abs(np.tril(covariance / np.outer(sd, sd), -1)).max() > TIED)

    @cached_property
    def split(self) -> tuple[Floats, Floats]:
        """`whole` as its diagonal and nothing, if it is one; else as nothing and itself."""
        own = np.diag(self.whole).copy()
        rest = np.abs(self.whole - np.diag(own)).max() > 1e-12 * own.max()
        return (np.zeros(0), np.ascontiguousarray(self.whole)) if rest else (own, np.zeros((0, 0)))

    def of_size(self, sd: float) -> Placed:
        """The same prior with a size that is given."""
        return replace(self, precision=self.precision / sd**2, scale=None)

    def loosened(self, rng: np.random.Generator, v: Floats) -> Floats:
        """Draws of v (n, K) with the constants of centred blocks drawn anew."""
        now = v @ self.constants
        loose = rng.standard_normal(now.shape) / np.sqrt(self.slack)
        return np.asarray(v + (loose - now) @ self.constants.T)

    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """(size, K) draws of v from the prior; of its size too, where that is learnt."""
        if self.flat:
            raise ValueError("a flat prior cannot be drawn from; give Gaussian(variance)")
        root = sla.cholesky(self.precision, lower=True)
        noise = rng.standard_normal((self.precision.shape[0], size))
        q = sla.solve_triangular(root, noise, lower=True, trans="T")
        if self.scale is not None:
            q = self.scale * np.abs(rng.standard_t(DEGREES, size)) * q
        return np.ascontiguousarray((self.basis @ q).T) + self.mean

    def log_density(self, v: Floats) -> Floats:
        """Log prior density of v, (K,) or (S, K), up to a constant; zero when flat."""
        q = (v - self.mean) @ self.basis
        quad = np.einsum("...i,ij,...j->...", q, self.precision, q)
        if self.scale is not None:
            return log_marginal(np.atleast_1d(quad), q.shape[-1], self.scale)[0].reshape(quad.shape)
        return np.asarray(-0.5 * quad)


class Coefficients(Protocol):
    """Whatever has named coefficients in blocks: decisions, or pieces of them."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of the coefficients."""
        ...

    @property
    def blocks(self) -> tuple[Block, ...]:
        """Of the coefficients."""
        ...


def place(prior: Prior, decisions: Coefficients) -> Placed:
    """The prior in the coordinates of these decisions, checked against their number of coefficients."""
    if not isinstance(prior, Gaussian | Flat):
        raise ValueError(f"prior must be us.Gaussian(variance) or us.Flat(), not {prior!r}")
    if isinstance(prior, Gaussian):
        _refuse_confused_size(prior)
    basis, constants = coordinates(decisions, prior.centred)
    width = len(decisions.names)
    if isinstance(prior, Flat):
        free = basis.shape[1]
        return Placed(basis, constants, np.zeros((free, free)), np.zeros(width), True)
    inverse = _inverse_variance(_of_size_one(prior) if prior.learns else prior.variance, decisions)
    precision = basis.T @ inverse @ basis
    mean = np.zeros(width)
    given = _vector("the prior mean", prior.mean, width)
    if np.any(given):
        mean = basis @ sla.solve(precision, basis.T @ inverse @ given, assume_a="pos")
    return Placed(basis, constants, precision, mean, False, prior.scale if prior.learns else None)


def coordinates(decisions: Coefficients, centred: bool | None = None) -> tuple[Floats, Floats]:
    """(K, D) orthonormal basis of the free coefficients, and (K, L) unit columns of the centred blocks."""
    parts, columns, at = [], [], 0
    width = len(decisions.names)
    for block in decisions.blocks:
        rows = slice(at, at + block.size)
        is_centred = block.centred if centred is None else centred
        part = np.zeros((width, block.size - is_centred))
        part[rows] = helmert(block.size) if is_centred else np.eye(block.size)
        parts.append(part)
        if is_centred:
            column = np.zeros(width)
            column[rows] = 1.0 / np.sqrt(block.size)
            columns.append(column)
        at += block.size
    basis = np.ascontiguousarray(np.hstack(parts))
    if basis.shape[1] == 0:
        raise ValueError("nothing is left to learn: every block has one coefficient and is centred, so it is zero")
    return basis, np.ascontiguousarray(np.array(columns).T) if columns else np.zeros((width, 0))


def helmert(size: int) -> Floats:
    """(size, size - 1) orthonormal columns that sum to zero."""
    basis = np.zeros((size, size - 1))
    for i in range(size - 1):
        basis[: i + 1, i] = 1.0
        basis[i + 1, i] = -(i + 1.0)
        basis[:, i] /= np.sqrt((i + 1.0) * (i + 2.0))
    return basis


def block_of_coefficient(decisions: Coefficients) -> Ints:
    """(K,) the position of the block each coefficient belongs to."""
    return np.repeat(np.arange(len(decisions.blocks)), [b.size for b in decisions.blocks]).astype(np.int64)


def _of_size_one(prior: Gaussian) -> Any:
    return 1.0 if prior.shape is None else prior.shape


def _refuse_confused_size(prior: Gaussian) -> None:
    """What `shape` and `scale` are for, said to who gives them elsewhere."""
    if isinstance(prior.variance, str) and not prior.learns:
        raise ValueError(f'the prior variance must be a number, numbers or "learn", not {prior.variance!r}')
    if not prior.learns and prior.shape is not None:
        raise ValueError('shape belongs to Gaussian("learn", shape=...); a variance that is given has its own')
    if not prior.learns and prior.scale != 10.0:
        raise ValueError('scale belongs to Gaussian("learn", scale=...); a variance that is given is not learnt')
    if not (isinstance(prior.scale, int | float | np.number) and np.isfinite(prior.scale) and prior.scale > 0):
        raise ValueError(f"the scale of the prior's size must be a positive number; it is {prior.scale!r}")


def _numbers(what: str, value: Any) -> Floats:
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{what} must be a number or numbers, not {value!r}") from None


def _vector(what: str, value: Any, width: int) -> Floats:
    given = _numbers(what, value)
    if given.ndim > 1 or (given.ndim == 1 and given.shape != (width,)):
        raise ValueError(f"{what} must be a number or {width} numbers; it has shape {given.shape}")
    if not np.isfinite(given).all():
        raise ValueError(f"{what} must be finite")
    return np.broadcast_to(given, (width,)).astype(np.float64)


def _inverse_variance(variance: Any, decisions: Coefficients) -> Floats:
    width = len(decisions.names)
    if isinstance(variance, Mapping):
        known = [b.name for b in decisions.blocks]
        if set(variance) != set(known):
            raise ValueError(f"the prior variance names blocks {list(variance)}, but the decisions have {known}")
        each = _vector("the prior variance", [variance[name] for name in known], len(known))
        variance = each[block_of_coefficient(decisions)]
    given = _numbers("the prior variance", variance)
    if given.ndim == 2:
        if given.shape != (width, width) or not np.allclose(given, given.T):
            raise ValueError(f"a prior covariance must be symmetric, {width} by {width}; it has shape {given.shape}")
        try:
            return np.asarray(sla.cho_solve(sla.cho_factor(given), np.eye(width)), dtype=np.float64)
        except (sla.LinAlgError, ValueError):
            raise ValueError("the prior covariance is not positive definite") from None
    diagonal = _vector("the prior variance", given, width)
    if (diagonal <= 0).any():
        raise ValueError(f"the prior variance must be positive; it is {diagonal.min():g} (use us.Flat() for no prior)")
    return np.diag(1.0 / diagonal)
