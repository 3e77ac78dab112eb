"""What draws call strategies, brought together: pivotal reordering.

Nothing tells strategies apart but their values, so that every chain calls them as it likes, and may
change. The rule (Marin, Mengersen and Robert 2005): the pivot is the draw of the highest log
posterior among all chains; every draw's strategies take the labels with which they are nearest to
the pivot's, in the sum over strategies of the mean square of

    (difference of utilities within a decision under the one) - (the same under the other)

over the decisions that were seen. The pivot's own strategies are 1, 2, ... in the order of how much
its switch probabilities have them in use in the long run. The posterior does not change: it has the
same density under every order of the labels.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment

from revealed._types import Floats, Ints
from revealed.data.decisions import Decisions


def relabel(decisions: Decisions, draws: Mapping[str, Floats], lp: Floats) -> dict[str, Floats]:
    """Draws (chain, draw, ...) with strategies that mean the same in all of them.

    lp (chain, draw): the log posterior of each.
    """
    order = common_order(decisions, draws, lp)
    new, rows = dict(draws), np.arange(len(order))[:, None]
    for name in ("value", "switch_probability", "initial"):
        given = draws[name].reshape(len(order), *draws[name].shape[2:])
        found = given[rows, order]
        # of switch probabilities the columns too
        if name == "switch_probability":
            found = np.take_along_axis(found, order[:, None, :], axis=2)
        new[name] = found.reshape(draws[name].shape)
    return new


def common_order(decisions: Decisions, draws: Mapping[str, Floats], lp: Floats) -> Ints:
    """(draws, S) for each draw, chains one after the other, which strategy gets each label."""
    value, switch = draws["value"], draws["switch_probability"]
    states, width = value.shape[2:]
    pivot = int(np.argmax(lp))
    used = long_run_use(switch.reshape(-1, states, states)[pivot])
    first = np.argsort(-used, kind="stable")
    # distances of utilities are those of values in these coordinates
    seen = value.reshape(-1, states, width) @ utility_root(decisions)
    target = seen[pivot][first]
    order = np.empty((len(seen), states), np.int64)
    for n, own in enumerate(seen):
        distance = ((target[:, None] - own) ** 2).sum(axis=2)
        order[n] = linear_sum_assignment(distance)[1]
    return order


def utility_root(decisions: Decisions) -> Floats:
    """(K, r) R with |R'(v - w)|^2 the mean square of how v and w differ within decisions."""
    rows, sizes = decisions.rows, decisions.sizes
    # means of each decision, times the root of how many rows it has
    weight = np.repeat(1.0 / np.sqrt(sizes), sizes)
    sums = sp.csr_array((weight, np.arange(len(weight)), decisions.start))
    means = sums @ rows
    gram = rows.T @ rows - means.T @ means
    gram = (gram.toarray() if sp.issparse(gram) else np.asarray(gram)) / len(weight)
    variances, axes = np.linalg.eigh(gram)
    # rounding leaves some that are hardly below zero
    kept = variances > 1e-12 * max(float(variances[-1]), 1e-300)
    return np.asarray(axes[:, kept] * np.sqrt(variances[kept]))


def long_run_use(switch: Floats) -> Floats:
    """(S,) the stationary law of switch probabilities (S, S).

    All of these are positive, so that there is one.
    """
    states = len(switch)
    # p (switch - I) = 0 and sum p = 1
    equations = np.vstack([switch.T - np.eye(states), np.ones(states)])
    right = np.append(np.zeros(states), 1.0)
    return np.asarray(np.linalg.lstsq(equations, right, rcond=None)[0])
