"""Figures of skills that change: curves of players, and who was the best when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from revealed.plots.check import check_class
from revealed.plots.style import LIMITS, PALETTE, finish, label_times, new_figure, style
from revealed.results.skill_paths import RankingPathPosterior

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def skill_curves(
    posterior: RankingPathPosterior,
    players: str | Sequence[str] | None = None,
    *,
    title: str | None = None,
    dates: bool = False,
) -> Figure:
    """The skills of some players over time, each with a band of 90%.

    Zero is what a player is expected to be worth at his first game.

    Parameters
    ----------
    posterior
        Of a ``RankingModel`` whose skills change.
    players
        One or some; default: the six who are the best on the last date.
    title
        Of the figure.
    dates
        Whether times are days since 1970-01-01, as those of data with dates are; the axis then has
        dates.

    Examples
    --------
    >>> games = [["bob", "ann"] if t % 3 else ["ann", "bob"] for t in range(30)]
    >>> seen = rv.Rankings.from_lists(games, times=range(30))
    >>> post = rv.fit(seen, rv.RankingModel(over_time=rv.RandomWalk()), draws=200)
    >>> rv.plots.skill_curves(post).savefig("skills.png")
    """
    check_class(posterior, RankingPathPosterior, "skill_curves", "over_time=rv.RandomWalk()")
    best = [line["player"] for line in posterior.table()[:6]]
    wanted = [players] if isinstance(players, str) else list(players or best)
    # more points are not seen on a page, and make files large
    times, nodes = posterior.times, posterior.nodes
    some = np.linspace(0, len(times) - 1, LIMITS.trace_points).round().astype(int)
    points = times[np.unique(some)]
    with style():
        figure = new_figure(8.4, 4.6)
        axes = figure.subplots()
        for k, player in enumerate(wanted):
            own = nodes.times[posterior.path_of(player)]
            # from his first game to his last: what follows is the prior's alone
            within = points[(points >= own[0]) & (points <= own[-1])]
            # both ends belong to the curve, wherever points were left out
            shown = np.unique(np.append(within, own[[0, -1]]))
            skill = posterior.skills_at(shown, player)[:, :, 0]
            # of each time by itself, which is not a band that holds the whole curve
            low, high = np.quantile(skill, [0.05, 0.95], axis=0)
            color = PALETTE.chains[k % len(PALETTE.chains)]
            axes.fill_between(shown, low, high, color=color, alpha=0.14, lw=0)
            axes.plot(shown, skill.mean(axis=0), color=color, lw=1.6, label=player)
        axes.axhline(0.0, color=PALETTE.ink, lw=0.6, alpha=0.4)
        label_times(axes, dates)
        axes.set_ylabel("skill, in units of the noise of one game")
        note = "Bands hold the skill at each time with 90%. Zero: expected at a first game."
        finish(figure, title or "Skills over time", note)
    return figure


def leaders(
    posterior: RankingPathPosterior,
    *,
    most: int = 6,
    title: str | None = None,
    dates: bool = False,
) -> Figure:
    """Who was the best, and when: how probable it is of each player, one above the other.

    Parameters
    ----------
    posterior
        Of a ``RankingModel`` whose skills change.
    most
        How many players have a colour of their own; all others share one.
    title
        Of the figure.
    dates
        Whether times are days since 1970-01-01, as those of data with dates are; the axis then has
        dates.

    Examples
    --------
    >>> games = [["bob", "ann"] if t > 15 else ["ann", "bob"] for t in range(30)]
    >>> seen = rv.Rankings.from_lists(games, times=range(30))
    >>> post = rv.fit(seen, rv.RankingModel(over_time=rv.RandomWalk()), draws=200)
    >>> rv.plots.leaders(post).savefig("leaders.png")
    """
    check_class(posterior, RankingPathPosterior, "leaders", "over_time=rv.RandomWalk()")
    times, shares = posterior.leaders()
    # those who led longest, in the order in which they did
    longest = np.argsort(-shares.sum(axis=0))[:most]
    longest = longest[np.argsort(times @ shares[:, longest] / shares[:, longest].sum(axis=0))]
    # what is left is shared by all others
    rest = 1.0 - shares[:, longest].sum(axis=1)
    with style():
        figure = new_figure(8.4, 4.2)
        axes = figure.subplots()
        colors = [PALETTE.chains[k % len(PALETTE.chains)] for k in range(len(longest))]
        bands, names = [*shares[:, longest].T], [posterior.names[k] for k in longest]
        # others are there only where some are left
        if rest.max() > 1e-9:
            bands, names = [*bands, rest], [*names, "others"]
            colors.append(PALETTE.grey)
        axes.stackplot(times, np.array(bands), labels=names, colors=colors, alpha=0.75, lw=0)
        axes.set_ylim(0.0, 1.0)
        axes.set_xlim(times[0], times[-1] if len(times) > 1 else times[0] + 1.0)
        label_times(axes, dates)
        axes.set_ylabel("probability to be the best")
        note = "Of those who had played by then and would play again."
        finish(figure, title or "Who was the best", note)
    return figure
