"""Figures of a ranking: skills with their uncertainty."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from revealed.plots.style import LIMITS, plot_intervals
from revealed.results.ranking import RankingPosterior

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def skill_intervals(ranking: RankingPosterior, most: int = LIMITS.intervals) -> Figure:
    """The skills of the best players, best first, with their uncertainty.

    Parameters
    ----------
    ranking
        As ``rv.rank`` returns it.
    most
        How many players, up to forty.
    """
    if not isinstance(ranking, RankingPosterior):
        raise ValueError(
            "skill_intervals needs a RankingPosterior, such as rv.rank returns, not a "
            f"{type(ranking).__name__}"
        )
    # by mean skill, as the table has them
    best = np.argsort(-ranking.values.mean(axis=0))[: min(most, LIMITS.intervals)]
    names = [ranking.names[k] for k in best]
    title = "Who is better, and how sure that is"
    if len(best) < len(ranking.names):
        title += f": the best {len(best)} of {len(ranking.names)}"
    label = "skill, in units of the noise of one game"
    if ranking.rankings.location_free:
        label += "; zero is the average player"
    return plot_intervals(ranking.values[:, best], names, None, title, label)
