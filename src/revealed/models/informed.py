"""Which coefficients the choices can inform at all, before any of them is fitted.

With rows centred within their decision, x_j - mean of x, let

    G = sum over all rows of (x_j - mean) (x_j - mean)'.

Minus the Hessian of log P is at most the identity on utilities, so that G bounds the information of
the choices, wherever the coefficients are. Along a direction u whose u' G u is far below its prior
precision u' Lambda u, the posterior is the prior, whatever was chosen: columns that are the same
for all actions of a decision, one intercept too many, columns that add up to another, and features
on a scale so small that no allowed coefficient makes them matter.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as sla
import scipy.sparse as sp

from revealed._types import Floats
from revealed.data.decisions import Decisions, Rows
from revealed.models.priors import ResolvedPrior
from revealed.models.propriety import describe_direction

# Information of a direction, in units of its prior precision, below which it counts as none: the
# posterior sd is then at least 0.995 of the prior's. Larger, and prior and choices share the work.
MIN_INFORMATION = 0.01
# Coefficients beyond which nobody looks: the eigenvectors take K^3 steps.
MAX_COEFFICIENTS = 1000


class UninformedWarning(UserWarning):
    """The choices cannot inform some coefficients: their posterior is their prior.

    Examples
    --------
    >>> rows = [[1.0, 30.0], [0.0, 30.0], [2.0, 55.0], [1.0, 55.0]] * 20
    >>> d = rv.Decisions(rows, range(0, 81, 2), [0, 1] * 20, names=["speed", "income"])
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     post = rv.fit(d, rv.ChoiceModel(prior=rv.Normal(1.0)))
    >>> print(said[0].message)
    the choices say nothing about 'income', which is the same for all actions of every decision...
    """


def centred_gram(decisions: Decisions) -> Floats:
    """(K, K) the sum over all rows of the outer product of a row with itself, centred."""
    rows, sizes = decisions.rows, decisions.sizes
    if sp.issparse(rows):
        # sum of x x' minus, for each decision, its sum times its sum over its size
        which = sp.csr_array(
            (np.ones(rows.shape[0]), (decisions.decision_of_row, np.arange(rows.shape[0])))
        )
        sums = sp.diags_array(1.0 / np.sqrt(sizes)) @ (which @ rows)
        return np.asarray((rows.T @ rows - sums.T @ sums).toarray())
    centred = _centred(rows, decisions)
    return np.asarray(centred.T @ centred)


def _centred(rows: Rows, decisions: Decisions) -> Floats:
    """(P, K) dense rows minus the mean of their decision."""
    means = np.add.reduceat(rows, decisions.start[:-1], axis=0) / decisions.sizes[:, None]
    return np.asarray(rows - np.repeat(means, decisions.sizes, axis=0))


def uninformed_directions(decisions: Decisions, prior: ResolvedPrior) -> Floats:
    """(K, n) orthonormal directions of the coefficients that no choice can inform.

    None under a flat prior, which is refused where there is one; none under a prior that correlates
    coefficients, where those that are informed speak for the others; and none where there are more
    than `MAX_COEFFICIENTS`.
    """
    width = len(decisions.names)
    if prior.flat or width > MAX_COEFFICIENTS or prior.diagonal_or_full[1].size:
        return np.zeros((width, 0))
    gram = prior.basis.T @ centred_gram(decisions) @ prior.basis
    precision = prior.precision / (1.0 if prior.scale is None else prior.scale**2)
    # in coordinates of unit prior precision, where eigenvalues are the information
    root = sla.cholesky(precision, lower=True)
    half = sla.solve_triangular(root, gram, lower=True)
    information, vectors = sla.eigh(sla.solve_triangular(root, half.T, lower=True))
    found = vectors[:, information < MIN_INFORMATION]
    if not found.shape[1]:
        return np.zeros((width, 0))
    # back to coefficients, orthonormal again
    q = sla.solve_triangular(root, found, lower=True, trans="T")
    return np.asarray(sla.orth(prior.basis @ q))


def describe_uninformed(decisions: Decisions, prior: ResolvedPrior) -> str | None:
    """One sentence about what the choices cannot inform, and what would help; None for nothing."""
    directions = uninformed_directions(decisions, prior)
    if not directions.shape[1]:
        return None
    names = decisions.names
    # a coefficient by itself is uninformed where its unit vector lies among the directions; in a
    # sum-to-zero block, what is left of that when the others make up for it
    free = (prior.basis**2).sum(axis=1)
    alone = np.flatnonzero((directions**2).sum(axis=1) > (1.0 - 1e-6) * free)
    if len(alone):
        # nothing but rounding is left of a column that is constant within every decision
        constant = [k for k in alone.tolist() if _is_constant(decisions, k)]
        if constant:
            return (
                f"the choices say nothing about {_quoted([names[k] for k in constant])}, which "
                f"{'is' if len(constant) == 1 else 'are'} the same for all actions of every "
                "decision: the posterior is the prior; leave it out, or let it differ by action"
            )
        return (
            f"the choices say nothing about {_quoted([names[k] for k in alone])}, whose values "
            "are so close together within each decision that no coefficient that the prior allows "
            "makes them matter: the posterior is the prior; bring the feature to a larger scale, "
            "or leave it out"
        )
    # with a largest entry of one, as coefficients are talked about
    direction = directions[:, 0] / directions[np.abs(directions[:, 0]).argmax(), 0]
    more = directions.shape[1] - 1
    also = f" (and {more} more such combination{'s' if more > 1 else ''})" if more else ""
    return (
        f"the choices say nothing about {describe_direction(np.round(direction, 6), names)}{also}: "
        "along it all actions of every decision stay equal, so that only the prior bounds these "
        "coefficients; leave one of them out, or hold them to sum to zero with "
        "rv.Block(..., sum_to_zero=True)"
    )


def _is_constant(decisions: Decisions, k: int) -> bool:
    """Whether column k is the same for all actions of every decision."""
    column = decisions.rows[:, [k]]
    dense = np.asarray(column.toarray() if sp.issparse(column) else column)[:, 0]
    return bool((dense == np.repeat(dense[decisions.start[:-1]], decisions.sizes)).all())


def _quoted(names: list[str]) -> str:
    """Up to six names in quotes."""
    shown = ", ".join(repr(name) for name in names[:6])
    return shown + (f" and {len(names) - 6} more" if len(names) > 6 else "")
