"""Figures of a ranking: skills with their uncertainty."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from revealed.plots.check import check_class
from revealed.plots.style import LIMITS, Intervals, plot_intervals
from revealed.results.ranking import RankingPosterior

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def skill_intervals(ranking: RankingPosterior, most: int = LIMITS.intervals) -> Figure:
    """The skills of the best players, best first, with their uncertainty.

    Parameters
    ----------
    ranking
        As ``rv.fit`` returns it with a ``RankingModel``.
    most
        How many players, up to forty.
    """
    check_class(ranking, RankingPosterior, "skill_intervals", "rv.RankingModel()")
    # by mean skill, as the table has them
    best = np.argsort(-ranking.values.mean(axis=0))[: min(most, LIMITS.intervals)]
    names = [ranking.names[k] for k in best]
    title = "Who is better, and how sure that is"
    if len(best) < len(ranking.names):
        title += f": the best {len(best)} of {len(ranking.names)}"
    label = "skill, in units of the noise of one game"
    if ranking.rankings.location_free:
        label += "; zero is the average player"
    return plot_intervals([Intervals(ranking.values[:, best], names, label)], title, "")
