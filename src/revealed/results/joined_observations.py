"""What was observed of several groups, each with draws of its own, as leaving one out needs it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from revealed._types import Floats, Ints
from revealed.results.loo import Observations


def join_observations(parts: Sequence[Observations], group: Ints, draws: int) -> Observations:
    """The observations of all groups, each group's by its own draws.

    group (T,): whose each observation is. draws: how many there are, of all chains.
    """
    # kinds of all groups in one count
    before = np.cumsum([0, *(part.count for part in parts)])
    kind = np.empty(len(group), np.int64)
    for i, part in enumerate(parts):
        kind[group == i] = before[i] + part.kind

    def logs_of(which: Ints) -> Floats:
        # which group each kind is of
        of_part = np.searchsorted(before, which, side="right") - 1
        logs = np.empty((draws, len(which)))
        for i in np.unique(of_part):
            own = of_part == i
            logs[:, own] = parts[i].logs_of(which[own] - before[i])
        return logs

    return Observations(kind, logs_of)
