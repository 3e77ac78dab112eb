"""How the noise of different actions goes together (paper, section 4.1.4).

Unless said, the noise of every action is standard normal and independent. With labelled actions (brands, routes, modes of
travel) it can have a covariance of its own: who likes one powder more than its price says may like another one too. Only
differences of utilities are seen, and only up to scale. So everything is told against a base action: the covariance of
the other D actions' noise less the base's, on one of two scales:

    "trace"   the D variances add up to D
    "first"   the first of them is one

The noun for what is to be learnt is `FullNoise`; `KnownNoise` is a covariance that is known, or draws of one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import ArrayLike

from understudy._arrays import Floats, Ints
from understudy.decisions import Decisions

SCALES = ("trace", "first")


@dataclass(frozen=True)
class FullNoise:
    """Noise with a covariance to be learnt: inverse Wishart, of which the size is not identified and drops out.

    Args:
        base: the label of the action that others are told against; unless said, the first label in sorted order.
        scale: "trace", the mean variance of the differences is one; or "first", the first difference's variance is one.
        df: the inverse Wishart's degrees of freedom, more than D - 1; unless said D + 1, as in R's package MNP.
        centre: the (D, D) matrix it is centred on, up to its size: unless said the identity, as in MNP; "independent"
            is one plus the identity, which are differences of independent noise, and favours no base.

    >>> rng = np.random.default_rng(1)
    >>> price = rng.uniform(1.0, 3.0, (60, 3))
    >>> chosen = np.argmin(price + rng.normal(size=(60, 3)), axis=1)
    >>> d = us.Decisions(price.reshape(-1, 1), range(0, 181, 3), chosen, names=["price"], actions=["bus", "car", "tram"] * 60)
    >>> post = us.fit(d, us.Gaussian(25.0), noise=us.FullNoise(base="car"), draws=2000)
    >>> post.covariance.shape  # (chain, draw, D, D): bus and tram, each less car
    (4, 2000, 2, 2)
    """

    base: Any = None
    scale: str = "trace"
    df: float | None = None
    centre: ArrayLike | str | None = None

    def __post_init__(self) -> None:
        if self.scale not in SCALES:
            raise ValueError(f'the scale of a noise covariance is "trace" or "first", not {self.scale!r}')


@dataclass(frozen=True, eq=False)
class PlacedNoise:
    """A `FullNoise` for one set of decisions: labels in sorted order, and which one each row has (P,)."""

    labels: tuple[Any, ...]
    of_row: Ints
    base: int
    scale: str
    df: float
    root: Floats  # (D, D) lower, of the centre

    @property
    def others(self) -> tuple[Any, ...]:
        """The D labels other than the base's."""
        return self.labels[: self.base] + self.labels[self.base + 1 :]


def place_noise(noise: FullNoise, decisions: Decisions) -> PlacedNoise:
    """The noise in terms of these decisions' labels, checked against them."""
    if not isinstance(noise, FullNoise):
        raise ValueError(f"noise must be us.FullNoise(...), or None for independent noise; it is {noise!r}")
    if decisions.actions is None:
        raise ValueError(
            "a noise covariance needs to know which action is which, and these decisions have no labels; "
            "give Decisions(..., actions=...), or an action column"
        )
    labels, of_row = np.unique(decisions.actions, return_inverse=True)
    refuse_twice(decisions, of_row, labels)
    names = tuple(labels.tolist())
    if len(names) < 2:
        raise ValueError(f"all rows have the label {names[0]!r}; a noise covariance needs at least two actions")
    base = names[0] if noise.base is None else noise.base
    if base not in names:
        some = ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
        raise ValueError(f"the base action {base!r} is never offered; the actions are {some}")
    size = len(names) - 1
    df = size + 1.0 if noise.df is None else float(noise.df)
    if not (np.isfinite(df) and df > size - 1):
        raise ValueError(f"df must be more than {size - 1} for a covariance of {size} differences; it is {noise.df!r}")
    return PlacedNoise(names, of_row.astype(np.int64), names.index(base), noise.scale, df, _root(noise.centre, size))


def refuse_twice(decisions: Decisions, of_row: Ints, labels: Any) -> None:
    """Refuse decisions that offer one label twice."""
    pairs = decisions.decision_of_row * len(labels) + of_row
    found, count = np.unique(pairs, return_counts=True)
    if (count > 1).any():
        t, label = divmod(int(found[np.argmax(count > 1)]), len(labels))
        raise ValueError(
            f"decision {decisions.ids[t]} offers {labels[label].item()!r} twice; under a noise covariance "
            "every action of a decision needs a label of its own"
        )


def _root(centre: Any, size: int) -> Floats:
    if centre is None:
        return np.eye(size)
    if isinstance(centre, str):
        if centre != "independent":
            raise ValueError(f'the centre of a noise covariance is a matrix or "independent", not {centre!r}')
        return np.asarray(np.linalg.cholesky(1.0 + np.eye(size)))
    return _cholesky(np.asarray(centre, dtype=np.float64), size, "the centre of a noise covariance")


def _cholesky(matrix: Floats, size: int, what: str) -> Floats:
    if matrix.shape != (size, size) or not np.allclose(matrix, matrix.T):
        raise ValueError(f"{what} must be symmetric, {size} by {size}; it has shape {matrix.shape}")
    try:
        return np.asarray(sla.cholesky(matrix, lower=True))
    except (sla.LinAlgError, ValueError):
        raise ValueError(f"{what} is not positive definite") from None


@dataclass(frozen=True, eq=False)
class KnownNoise:
    """Noise of known covariance, for probabilities and predictions.

    Args:
        base: the action that the others are told against.
        others: the D other actions.
        covariance: (D, D) of the others' noise less the base's; or (S, D, D), one for each of S draws.
        points: of the lattice that probabilities are integrated over, in decisions with four actions or more.

    >>> noise = us.KnownNoise("car", ("bus", "tram"), [[1.0, 0.9], [0.9, 1.0]])  # bus and tram are nearly the same
    >>> d = us.Decisions(np.zeros((3, 1)), [0, 3], [0], actions=["car", "bus", "tram"])
    >>> us.choice_probabilities(d, [0.0], noise).round(2)
    array([0.43, 0.29, 0.29])
    """

    base: Any
    others: tuple[Any, ...]
    covariance: Floats
    points: int = 256

    def __post_init__(self) -> None:
        given = np.asarray(self.covariance, dtype=np.float64)
        size = len(self.others)
        if len({self.base, *self.others}) != size + 1:
            raise ValueError("the base and the other actions need different labels")
        if given.ndim not in (2, 3) or given.shape[-2:] != (size, size) or given.size == 0:
            raise ValueError(
                f"a covariance of {size} actions against their base is ({size}, {size}), or (S, {size}, {size}) for S draws; "
                f"it has shape {given.shape}"
            )
        for matrix in given if given.ndim == 3 else given[None]:
            _cholesky(matrix, size, "a noise covariance")
        if not isinstance(self.points, int | np.integer) or self.points < 1:
            raise ValueError(f"points must be a whole number, at least 1; it is {self.points!r}")
        object.__setattr__(self, "others", tuple(self.others))
        object.__setattr__(self, "covariance", given)

    @property
    def labels(self) -> tuple[Any, ...]:
        """The base, then the others."""
        return (self.base, *self.others)

    @property
    def correlation(self) -> Floats:
        """The covariance with unit diagonal."""
        sd = np.sqrt(np.diagonal(self.covariance, axis1=-2, axis2=-1))
        return np.asarray(self.covariance / (sd[..., :, None] * sd[..., None, :]))

    def whole(self, draws: int) -> Floats:
        """(draws, D + 1, D + 1) covariance with the base first, whose noise is zero."""
        many = np.broadcast_to(self.covariance, (draws, *self.covariance.shape[-2:]))
        out = np.zeros((draws, len(self.labels), len(self.labels)))
        out[:, 1:, 1:] = many
        return out

    def label_of_row(self, decisions: Decisions) -> Ints:
        """(P,) the position of each row's label; refuses labels that were never seen."""
        if decisions.actions is None:
            raise ValueError("these decisions have no action labels, which a noise covariance needs; give actions=...")
        found, of_row = np.unique(decisions.actions, return_inverse=True)
        known = {label: i for i, label in enumerate(self.labels)}
        for label in found.tolist():
            if label not in known:
                row = int(np.argmax(decisions.actions == label))
                raise ValueError(
                    f"decision {decisions.ids[decisions.decision_of_row[row]]} offers {label!r}, and the noise covariance "
                    f"knows only {', '.join(map(repr, self.labels))}"
                )
        refuse_twice(decisions, of_row, found)
        return np.array([known[label] for label in found.tolist()], dtype=np.int64)[of_row]
