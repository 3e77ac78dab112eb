"""Blocks of time: what is seen before each, and what comes in it.

Walking forward, each block is foretold from all that came before it. A block has all observations
of its times: two of one time are never on both sides.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from revealed._types import Floats, Ints
from revealed._validation import check_count, check_positive
from revealed.data.times import check_times


class Block(NamedTuple):
    """Positions of what is seen before some times, and of what comes then; and their first time."""

    seen: Ints
    next: Ints
    time: float


def cut_into_blocks(times: Floats, every: float, unit: str, first: Any) -> list[Block]:
    """The blocks that are foretold one after the other.

    Refuses a first time with nothing before it, or nothing from it on.
    """
    # several events may share a time, and are foretold together
    dates = np.unique(times)
    begin = dates[len(dates) // 2] if first is None else check_times([first], ["first"], "time")[0]
    later = dates[dates >= begin]
    if not later.size or len(later) == len(dates):
        side = "before" if later.size else "from it on"
        raise ValueError(
            f"there is nothing {side} the first time that is to be foretold, {begin:g}: the data "
            f"have {len(dates)} different times, from {dates[0]:g} to {dates[-1]:g}"
        )
    # a block begins at a date that there is
    if unit == "dates":
        starts = later[:: check_count("every", every)]
    elif unit == "time":
        # a stretch without any date has no block
        stretch = np.floor((later - later[0]) / check_positive("every", every))
        starts = later[np.flatnonzero(np.diff(stretch, prepend=-1.0))]
    else:
        raise ValueError(f'unit must be "dates" or "time"; it is {unit!r}')
    # observations may come in any order
    order = np.argsort(times, kind="stable")
    cuts = np.append(np.searchsorted(times[order], starts), len(times))
    return [
        Block(order[:a], order[a:b], float(start))
        for a, b, start in zip(cuts[:-1], cuts[1:], starts, strict=True)
    ]
