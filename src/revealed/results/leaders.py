"""Who was the best, and when: shares of draws in which each player leads on each date."""

from __future__ import annotations

from typing import Any

import numpy as np

from revealed._types import Floats
from revealed.results.skill_sizes import draw_path


def leading_shares(post: Any, dates: Floats, draws: int) -> Floats:
    """(M, K) how probable it is of each player to be the best of those active on each date.

    post: a `RankingPathPosterior`, of which at most about so many draws are used.
    """
    total = post.shape[0] * post.shape[1]
    every = max(1, total // draws)
    count = len(range(0, total, every))
    # of each draw and date the best so far, and who that is
    best = np.full((count, len(dates)), -np.inf)
    who = np.zeros((count, len(dates)), np.int64)
    rng = np.random.default_rng(0)
    # player by player: skills of all at once would fill memory
    for k, player in enumerate(post.names):
        path = post.path_of(player)
        own = post.nodes.times[path]
        active = np.flatnonzero((dates >= own[0]) & (dates <= own[-1]))
        if active.size:
            skill = draw_path(rng, post, path, dates[active])[::every]
            better = skill > best[:, active]
            best[:, active] = np.where(better, skill, best[:, active])
            who[:, active] = np.where(better, k, who[:, active])
    shares = np.zeros((len(dates), len(post.names)))
    # a date between the careers of all has no leader, and shares of nothing
    for m in range(len(dates)):
        seen = np.isfinite(best[:, m])
        shares[m] = np.bincount(who[seen, m], minlength=len(post.names)) / max(1, seen.sum())
    return shares
