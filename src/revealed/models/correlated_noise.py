"""Noise with a covariance (paper, section 4.1.4).

With labelled actions (brands, routes, modes of travel) normal noise can have a covariance of its
own: who likes one powder more than its price explains may like another one too. Only differences of
utilities are identified, and only up to scale. So noise is measured against a base action: the
covariance of the other D actions' noise minus the base's, on one of two scales:

    "trace"   the D variances add up to D
    "first"   the first of them is one

`CorrelatedNoise` is a covariance to be inferred; `NoiseCovariance` one that is known, or draws of
one.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import ArrayLike

from revealed._types import Floats, Ints, Labels
from revealed._validation import check_count
from revealed.data.decisions import Decisions
from revealed.models.habit import ResolvedHabit


@dataclass(frozen=True)
class CorrelatedNoise:
    """Noise with a covariance to be inferred, under an inverse Wishart prior.

    The scale of the covariance is not identified and drops out (Imai and van Dyk 2005).

    Parameters
    ----------
    base
        The label of the action that others are measured against; default: the first label in
        sorted order.
    scale
        "trace", the mean variance of the differences is one; or "first", the first difference's
        variance is one.
    df
        The inverse Wishart's degrees of freedom, more than D - 1; default: D + 1, as in R's
        package MNP.
    centre
        The (D, D) matrix it is centred on, up to scale; default: the identity, as in MNP.
        "independent" is one plus the identity, which are differences of independent noise, and
        favours no base.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> price = rng.uniform(1.0, 3.0, (60, 3))
    >>> chosen = np.argmin(price + rng.normal(size=(60, 3)), axis=1)
    >>> rows, modes = price.reshape(-1, 1), ["bus", "car", "tram"] * 60
    >>> d = rv.Decisions(rows, range(0, 181, 3), chosen, names=["price"], actions=modes)
    >>> model = rv.ChoiceModel(prior=rv.Normal(5.0), noise=rv.CorrelatedNoise(base="car"))
    >>> post = rv.fit(d, model, draws=2000)
    >>> post.draws["noise_covariance"].shape  # (chain, draw, D, D): bus and tram, each minus car
    (4, 2000, 2, 2)
    """

    base: Any = None
    scale: str = "trace"
    df: float | None = None
    centre: ArrayLike | str | None = None

    def __post_init__(self) -> None:
        if self.scale not in ("trace", "first"):
            raise ValueError(
                f'the scale of a noise covariance is "trace" or "first", not {self.scale!r}'
            )


@dataclass(frozen=True, eq=False)
class ResolvedNoise:
    """A `CorrelatedNoise` for one set of decisions.

    labels: the D + 1 action labels in sorted order. of_row: (P,) which label each row has. base:
    the position of the base's label. df: the prior's degrees of freedom. root: (D, D) lower
    Cholesky factor of the prior's centre.
    """

    labels: tuple[Any, ...]
    of_row: Ints
    base: int
    scale: str
    df: float
    root: Floats

    @property
    def non_base(self) -> tuple[Any, ...]:
        """The D labels other than the base's."""
        return self.labels[: self.base] + self.labels[self.base + 1 :]


def resolve_noise(noise: CorrelatedNoise, decisions: Decisions) -> ResolvedNoise:
    """The noise in terms of these decisions' labels, checked against them.

    Refuses decisions without action labels, with a single label, or with one label twice in a
    decision.
    """
    if not isinstance(noise, CorrelatedNoise):
        raise ValueError(
            f"noise must be rv.CorrelatedNoise(...), or None for independent noise; it is {noise!r}"
        )
    if decisions.actions is None:
        raise ValueError(
            "a noise covariance needs to know which action is which, and these decisions have no "
            "labels; give Decisions(..., actions=...), or an action column"
        )
    # Sorted order, so that the meaning of a draw does not depend on the order of rows.
    labels, of_row = np.unique(decisions.actions, return_inverse=True)
    check_labels_unique(decisions, of_row, labels)
    names = tuple(labels.tolist())
    if len(names) < 2:
        raise ValueError(
            f"all rows have the label {names[0]!r}; a noise covariance needs at least two actions"
        )
    # The choice of the base changes the prior a little, not the model.
    base = names[0] if noise.base is None else noise.base
    if base not in names:
        some = ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
        raise ValueError(f"the base action {base!r} is never offered; the actions are {some}")
    # An inverse Wishart of size D has a density when df > D - 1.
    size = len(names) - 1
    df = size + 1.0 if noise.df is None else float(noise.df)
    if not (np.isfinite(df) and df > size - 1):
        raise ValueError(
            f"df must be more than {size - 1} for a covariance of {size} differences; "
            f"it is {noise.df!r}"
        )
    return ResolvedNoise(
        labels=names,
        of_row=of_row.astype(np.int64),
        base=names.index(base),
        scale=noise.scale,
        df=df,
        root=_centre_cholesky(noise.centre, size),
    )


def check_labels_unique(decisions: Decisions, of_row: Ints, labels: Labels) -> None:
    """Refuse decisions that offer one label twice.

    of_row: (P,) the position of each row's label in `labels`.
    """
    # One number for each (decision, label): a number that occurs twice is a label offered twice.
    pairs = decisions.decision_of_row * len(labels) + of_row
    found, count = np.unique(pairs, return_counts=True)
    if (count > 1).any():
        t, label = divmod(int(found[np.argmax(count > 1)]), len(labels))
        raise ValueError(
            f"decision {decisions.ids[t]} offers {labels[label].item()!r} twice; under a noise "
            "covariance every action of a decision needs a label of its own"
        )


def _centre_cholesky(centre: Any, size: int) -> Floats:
    """(size, size) lower Cholesky factor of the prior's centre, as `CorrelatedNoise` takes it."""
    if centre is None:
        return np.eye(size)
    if isinstance(centre, str):
        if centre != "independent":
            raise ValueError(
                f'the centre of a noise covariance is a matrix or "independent", not {centre!r}'
            )
        # Noise minus the base's: variance two, covariance one.
        return np.asarray(np.linalg.cholesky(1.0 + np.eye(size)))
    return _cholesky(np.asarray(centre, dtype=np.float64), size, "the centre of a noise covariance")


def _cholesky(matrix: Floats, size: int, what: str) -> Floats:
    """(size, size) the lower Cholesky factor of a covariance.

    Refuses what is not symmetric and positive definite; `what` names it in the message.
    """
    if matrix.shape != (size, size) or not np.allclose(matrix, matrix.T):
        raise ValueError(f"{what} must be symmetric, {size} by {size}; it has shape {matrix.shape}")
    # The factorisation is also the test of positive definiteness.
    try:
        # by rows, as loops are compiled for: scipy's is by columns
        return np.ascontiguousarray(sla.cholesky(matrix, lower=True))
    except (sla.LinAlgError, ValueError):
        raise ValueError(f"{what} is not positive definite") from None


@dataclass(frozen=True, eq=False)
class NoiseCovariance:
    """Noise of known covariance, for probabilities and predictions.

    Parameters
    ----------
    base
        The action that the others are measured against.
    others
        The D other actions.
    covariance
        (D, D) of the others' noise minus the base's; or (S, D, D), one for each of S draws.
    points
        How many points of the lattice that probabilities are integrated over, in decisions with
        four actions or more.

    Examples
    --------
    >>> covariance = [[1.0, 0.9], [0.9, 1.0]]  # bus and tram are nearly the same
    >>> noise = rv.NoiseCovariance("car", ("bus", "tram"), covariance)
    >>> d = rv.Decisions(np.zeros((3, 1)), [0, 3], [0], actions=["car", "bus", "tram"])
    >>> rv.choice_probabilities(d, [0.0], noise).round(2)
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
                f"a covariance of {size} actions against their base is ({size}, {size}), "
                f"or (S, {size}, {size}) for S draws; it has shape {given.shape}"
            )
        # Every draw must be a covariance by itself.
        for matrix in given if given.ndim == 3 else given[None]:
            _cholesky(matrix, size, "a noise covariance")
        check_count("points", self.points)
        # The class is frozen: fields in their final types are set this way.
        object.__setattr__(self, "others", tuple(self.others))
        object.__setattr__(self, "covariance", given)

    @property
    def labels(self) -> tuple[Any, ...]:
        """(D + 1,) the base's label, then the others'."""
        return (self.base, *self.others)

    @property
    def correlation(self) -> Floats:
        """(D, D) or (S, D, D) the covariance divided by its sds: its diagonal is one."""
        # The last two axes are the matrix; draws come before them.
        sd = np.sqrt(np.diagonal(self.covariance, axis1=-2, axis2=-1))
        return np.asarray(self.covariance / (sd[..., :, None] * sd[..., None, :]))

    def full_covariance(self, draws: int) -> Floats:
        """(draws, D + 1, D + 1) covariance with the base first, whose own noise is zero."""
        # One covariance serves all draws where only one is given.
        repeated = np.broadcast_to(self.covariance, (draws, *self.covariance.shape[-2:]))
        out = np.zeros((draws, len(self.labels), len(self.labels)))
        out[:, 1:, 1:] = repeated
        return out

    def label_of_row(self, decisions: Decisions) -> Ints:
        """(P,) the position in `labels` of each row's label; refuses labels that are not there."""
        if decisions.actions is None:
            raise ValueError(
                "these decisions have no action labels, which a noise covariance needs; "
                "give actions=..."
            )
        # Labels are looked up once each, not once a row.
        found, of_row = np.unique(decisions.actions, return_inverse=True)
        known = {label: i for i, label in enumerate(self.labels)}
        for label in found.tolist():
            if label not in known:
                row = int(np.argmax(decisions.actions == label))
                decision = decisions.ids[decisions.decision_of_row[row]]
                raise ValueError(
                    f"decision {decision} offers {label!r}, and the noise covariance "
                    f"knows only {', '.join(map(repr, self.labels))}"
                )
        check_labels_unique(decisions, of_row, found)
        return np.array([known[label] for label in found.tolist()], dtype=np.int64)[of_row]


def check_all_offered(
    noise: ResolvedNoise | ResolvedHabit, group_of_row: Ints, groups: tuple[Hashable, ...]
) -> None:
    """Refuse separate groups that were not all offered the same actions.

    The noise covariance, or the habits, of each would have other actions, and they could not stand
    side by side.
    group_of_row: (P,) positions among the groups.
    """
    offered = np.zeros((len(groups), len(noise.labels)), np.bool_)
    offered[group_of_row, noise.of_row] = True
    for i, k in np.argwhere(~offered)[:1]:
        raise ValueError(
            f"group {groups[i]!r} was never offered {noise.labels[k]!r}; separate groups with "
            "correlated noise or habits need the same actions: leave out the group, or the action"
        )
