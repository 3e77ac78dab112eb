r"""Size and direction of values: how consistently wishes are followed, and what is wished for.

Let S be the mean covariance of the rows within a decision, the units of what is offered. The size
of a value is |v| = sqrt(v' S v): signal over noise, how consistently a controller follows its
wishes. The direction v / |v| is what is wanted, whatever the noise. Pressure that only adds noise
shrinks the first and leaves the second alone.

Two directions differ if their means lie further apart than chance would have it, measured in the
posterior covariance of both on the plane that touches the sphere between them.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2

from revealed._types import Floats
from revealed.data.decisions import Decisions
from revealed.models.priors import Normal


def offered_covariance(decisions: Decisions) -> Floats:
    """(K, K) the mean covariance of the rows within a decision: the units that size is measured in.

    Rows are centred within their decision, because only differences between its actions matter;
    each decision counts the same, however many actions it offers.
    """
    rows = np.asarray(decisions.rows)
    means = np.add.reduceat(rows, decisions.start[:-1], axis=0) / decisions.sizes[:, None]
    centred = rows - np.repeat(means, decisions.sizes, axis=0)
    return np.asarray(
        (centred / np.repeat(decisions.sizes, decisions.sizes)[:, None]).T
        @ centred
        / len(decisions)
    )


def prior_for_direction(units: Floats) -> Normal:
    """A prior without an opinion on direction, v ~ N(0, 5^2 S^-1), for units S (K, K).

    It holds the size to about 5: a player whose signal is five times the noise hardly ever makes
    another choice, so larger sizes cannot be told apart. A wide prior that takes no account of
    what is offered turns the direction of a controller who is observed too seldom.
    """
    prior_size = 5.0
    return Normal(covariance=prior_size**2 * np.linalg.inv(units))


def size_and_direction(values: Floats, units: Floats) -> tuple[Floats, Floats]:
    """(n,) the sizes of draws of v (n, K) in these units (K, K), and (n, K) their directions.

    A direction is in shares of each feature's own scale: v_k sqrt(S_kk) / |v|.
    """
    size = np.sqrt(np.einsum("ni,ij,nj->n", values, units, values))
    return size, values * np.sqrt(np.diag(units)) / size[:, None]


def unit_vectors(values: Floats, size: Floats, units: Floats) -> Floats:
    """(n, K) draws of v (n, K) of these sizes as points of the unit sphere.

    With the Cholesky factor L of S, v' L / |v| has length one, since v' L L' v = v' S v.
    """
    root = np.linalg.cholesky(units)
    return np.asarray(values @ root / size[:, None])


def direction_p_value(one: Floats, other: Floats) -> float:
    """How likely two posteriors of a direction are as far apart as this if there is one direction.

    `one` and `other` are draws of unit length (n, K). Both are projected on the plane that touches
    the sphere halfway between their means; the squared distance of the means there, in units of
    the sum of both covariances, is about chi-squared with K - 1 degrees of freedom.
    """
    halfway = one.mean(axis=0) + other.mean(axis=0)
    halfway = np.asarray(halfway / np.linalg.norm(halfway))
    # The right singular vectors after the first are an orthonormal basis of the tangent plane.
    plane = np.linalg.svd(halfway[None])[2][1:].T
    projected_one, projected_other = one @ plane, other @ plane
    difference = projected_other.mean(axis=0) - projected_one.mean(axis=0)
    covariance = np.atleast_2d(np.cov(projected_one.T) + np.cov(projected_other.T))
    statistic = difference @ np.linalg.solve(covariance, difference)
    return float(chi2.sf(statistic, df=len(difference)))
