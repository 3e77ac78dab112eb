"""Offsets that all actions of a decision share, taken out where they would cost digits.

What all actions of a decision have in common changes no choice, and the prior is about
coefficients; so a feature may be measured from anywhere, in each decision anew. One that is large
beside its differences, such as a year or a time in seconds, leaves few digits of these in products
of whole rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from revealed._types import Floats, Ints
from revealed.data.decisions import Decisions


@dataclass(frozen=True)
class OffsetRule:
    """When a feature is measured from each decision's mean.

    far: size beside the largest difference within a decision; squares of rows have then lost eight
    of sixteen digits. With less, offsets stay, as draws depend on them to the last digit. first:
    decisions that are looked at first; mostly they show that nothing is far, without copying all.
    """

    far: float = 1e4
    first: int = 1000


RULE = OffsetRule()


def without_far_offsets(decisions: Decisions) -> Decisions:
    """The same choices, with features far from zero measured from each decision's mean.

    The rows of a finite MDP are probabilities, and stay as they are.
    """
    rows = decisions.rows
    if sp.issparse(rows) or any(block.sum_to_zero for block in decisions.blocks):
        return decisions
    size = np.maximum(rows.max(axis=0), -rows.min(axis=0))
    count = min(RULE.first, len(decisions))
    if (size <= RULE.far * _spread(rows[: decisions.start[count]], decisions.sizes[:count])).all():
        return decisions
    spread = _spread(rows, decisions.sizes)
    far = np.flatnonzero((size > RULE.far * spread) & (spread > 0.0))
    if not far.size:
        return decisions
    moved = rows.copy()
    differences = rows[:, far] - _first_rows(rows[:, far], decisions.sizes)
    means = np.add.reduceat(differences, decisions.start[:-1]) / decisions.sizes[:, None]
    moved[:, far] = differences - np.repeat(means, decisions.sizes, axis=0)
    return Decisions(
        moved,
        decisions.start,
        decisions.chosen,
        names=decisions.names,
        actions=decisions.actions,
        groups=decisions.groups,
        group_name=decisions.group_name,
        blocks=decisions.blocks,
        ids=decisions.ids,
        times=decisions.times,
        sessions=decisions.sessions,
    )


def _first_rows(rows: Floats, sizes: Ints) -> Floats:
    """(P, K) for each row the first one of its decision."""
    start = np.cumsum(sizes) - sizes
    return np.repeat(rows[start], sizes, axis=0)


def _spread(rows: Floats, sizes: Ints) -> Floats:
    """(K,) the largest difference from the first row within a decision."""
    return np.asarray(np.abs(rows - _first_rows(rows, sizes)).max(axis=0))
