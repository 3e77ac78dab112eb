"""Sections of a report about what changes: paths of values and of skills, and strategies."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from revealed.plots.paths import value_paths
from revealed.plots.report_html import picture
from revealed.plots.skill_paths import leaders, skill_curves
from revealed.plots.strategies import strategy_ribbons
from revealed.plots.style import LIMITS
from revealed.results.base import Posterior
from revealed.results.paths import PathPosterior
from revealed.results.skill_paths import RankingPathPosterior
from revealed.results.switching import SwitchingPosterior


def paths_section(post: Posterior) -> str:
    """How values change, where they do."""
    if getattr(post.resolved, "group_paths", None) is not None:
        return _paths_of_groups(post)
    if not isinstance(post, PathPosterior):
        return ""
    figure = picture(
        value_paths(post),
        "The mean path of each value, with the middle half and the middle 90% at each time.",
    )
    return (
        "<p>Values change from decision to decision. The tables and pictures below have the sizes "
        f"of the steps, and the values at {len(post.shown_times)} of {len(post.times)} times.</p>"
        f"{figure}"
    )


def _paths_of_groups(post: Any) -> str:
    """How the values of some groups change; of many, those that decided at most times."""
    nodes = np.diff(post.resolved.group_paths.start)
    most = np.sort(np.argsort(-nodes, kind="stable")[: LIMITS.path_groups])
    figures = [
        picture(
            value_paths(post.select(group=label), title=f"What {label} values, over time"),
            f"Group {label}: the mean path of each value, with the middle half and the middle 90%.",
        )
        for label in (post.groups[i] for i in most)
    ]
    which = (
        "Pictures are of every group."
        if len(most) == len(nodes)
        else f"Pictures are of the {len(most)} of {len(nodes)} groups that decided at most times."
    )
    return f"<p>Values change from decision to decision. {which}</p>{''.join(figures)}"


def skill_paths_section(post: Posterior) -> str:
    """How skills change, where they do."""
    if not isinstance(post, RankingPathPosterior):
        return ""
    curves = picture(
        skill_curves(post),
        "The mean skill of the best players over time, with the middle 90% at each time.",
    )
    who = picture(leaders(post), "How probable it is of each player to have been the best.")
    return (
        "<p>Skills change from game to game. Intervals and players' table below are of the last "
        f"date; the table after them has the sizes of the steps.</p>{curves}{who}"
    )


def strategies_section(post: Posterior) -> str:
    """Which strategy was in use when, where they take turns."""
    if not isinstance(post, SwitchingPosterior):
        return ""
    figure = picture(
        strategy_ribbons(post),
        "How probable each strategy is at each decision, as ribbons along the sequences.",
    )
    return (
        "<p>Strategies take turns. What chains call them means nothing, so that draws were "
        "relabelled: each one's strategies are matched with those of the draw of the highest log "
        "posterior. R-hat below is that of draws after this; the log posterior, whose R-hat stands "
        "beside them, does not depend on labels.</p>"
        f"<p>{escape(repr(post.states()).strip('<>'))}.</p>{figure}"
    )
