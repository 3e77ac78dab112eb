"""Decisions in the order of their times, as loops on paths take them."""

from __future__ import annotations

import numpy as np

from revealed.data.decisions import Decisions
from revealed.data.unique import deduplicate
from revealed.kernels.noise import AnyNoise
from revealed.kernels.state_space import PathData
from revealed.models.over_time import ResolvedOverTime
from revealed.models.priors import ResolvedPrior


def make_path_data(
    decisions: Decisions, prior: ResolvedPrior, over_time: ResolvedOverTime, noise: AnyNoise
) -> PathData:
    """What was chosen at every node; equal decisions at one time are counted."""
    order = np.argsort(over_time.node, kind="stable")
    counted = deduplicate(decisions[order], None, over_time.node[order])
    rows = counted.rival_minus_chosen
    per_node = np.bincount(counted.group, minlength=len(over_time.times))
    decision_start = np.concatenate([[0], np.cumsum(per_node)])
    # a coefficient that the prior fixes has no coordinate: its share is in the offset
    return PathData(
        np.ascontiguousarray(np.asarray(rows @ prior.basis)),
        np.ascontiguousarray(np.asarray(rows @ prior.mean)),
        counted.rival_index.start[decision_start].astype(np.int64),
        counted.rival_index,
        noise,
    )
