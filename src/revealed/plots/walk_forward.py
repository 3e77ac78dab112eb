"""Figures of forecasts: whether their probabilities can be believed, and losses over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.plots.style import PALETTE, finish, new_figure, style
from revealed.results.walk_forward import WalkForward

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def walk_forward(walk: WalkForward, kind: str | None = None, *, parts: int = 24) -> Figure:
    """How often outcomes came about as forecast, and what each forecaster lost over time.

    On the left events are gathered by the probability of the outcome that the model thought most
    likely; the grey bars are where 95% of the points of a right forecaster fall. On the right are
    mean losses of events that follow one another.

    Parameters
    ----------
    walk
        As ``rv.walk_forward`` returns it.
    kind
        One of its kinds of events; default: the first.
    parts
        Into how many runs of events the time is cut.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> games = [["ann", "bob"] if rng.random() < 0.8 else ["bob", "ann"] for _ in range(40)]
    >>> walk = rv.walk_forward(rv.Rankings.from_lists(games, times=range(40)), every=10, draws=200)
    >>> rv.plots.walk_forward(walk).savefig("forecasts.png")
    """
    if not isinstance(walk, WalkForward):
        raise ValueError(
            f"walk_forward draws what rv.walk_forward returns, and this is a {type(walk).__name__}"
        )
    # of games with more than two entries there are pairs and winners
    wanted = next(iter(walk.events)) if kind is None else kind
    if wanted not in walk.events:
        raise ValueError(
            f"there are no {wanted!r} in this walk; there are {', '.join(walk.events)}"
        )
    found = walk.events[wanted]
    with style():
        figure = new_figure(10.0, 4.6)
        left, right = figure.subplots(1, 2, width_ratios=(2, 3))
        _draw_calibration(left, walk, wanted)
        # single events lose too much or nothing: means of many are seen
        times, losses = found.over_time(parts)
        colours = PALETTE.chains
        for f, name in enumerate(found.forecasters):
            # the model is drawn above the baselines
            right.plot(
                times,
                losses[f],
                color=colours[f % len(colours)],
                lw=1.8 if f == 0 else 1.1,
                label=f"{name} {found.log_loss[f]:.4f}",
                zorder=3 if f == 0 else 2,
            )
        right.set_xlabel("time")
        right.set_ylabel("log loss")
        note = f"{len(found)} {wanted}, each foretold before it was seen."
        finish(figure, f"How well {wanted} are foretold", note)
    return figure


def _draw_calibration(axes: Any, walk: WalkForward, kind: str) -> None:
    """The share of events that came about as forecast.

    By the probability of the forecast.
    """
    bins = walk.events[kind].calibration()
    axes.plot([0, 1], [0, 1], color=PALETTE.grey, lw=1.0, label="as often as forecast")
    # where points of a right forecaster fall in 95 of 100 bins
    reach = 1.96 * bins.standard_error
    low, high = np.maximum(bins.predicted - reach, 0.0), np.minimum(bins.predicted + reach, 1.0)
    axes.vlines(bins.predicted, low, high, color=PALETTE.grey, alpha=0.45, lw=7)
    axes.plot(bins.predicted, bins.observed, "o", color=PALETTE.blue, mec="white", ms=8)
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlabel("probability of the likeliest outcome")
    axes.set_ylabel("share that came about")
