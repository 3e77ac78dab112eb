"""Figures of values that change: paths of coefficients with the uncertainty of each time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.plots.check import check_class
from revealed.plots.style import LIMITS, PALETTE, finish, label_times, new_figure, style
from revealed.results.paths import PathPosterior

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def value_paths(
    posterior: PathPosterior,
    names: str | Sequence[str] | None = None,
    *,
    truth: Any = None,
    title: str | None = None,
    dates: bool = False,
) -> Figure:
    """How coefficients change: the mean path of each with bands of 50% and 90%.

    Parameters
    ----------
    posterior
        Of a model whose values change.
    names
        The coefficients, one or some; default: all of them, at most twelve.
    truth
        (N, K) true values at the posterior's times, where they are known.
    title
        Of the figure.
    dates
        Whether times are days since 1970-01-01, as those of data with dates are; the axis then has
        dates.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> taken = (rng.logistic(size=200) < np.linspace(-2.0, 2.0, 200)).astype(int)
    >>> d = rv.Decisions([[0.0], [1.0]] * 200, range(0, 401, 2), taken, times=range(200))
    >>> model = rv.ChoiceModel(noise=rv.LogitNoise(), over_time=rv.RandomWalk())
    >>> post = rv.fit(d, model, draws=500)
    >>> rv.plots.value_paths(post).savefig("paths.png")
    """
    check_class(posterior, PathPosterior, "value_paths", "over_time=rv.RandomWalk()")
    wanted = [names] if isinstance(names, str) else list(names or posterior.names[: LIMITS.panels])
    for name in wanted:
        if name not in posterior.names:
            some = ", ".join(posterior.names[:8])
            raise ValueError(f"there is no coefficient {name!r}; there are {some}")
    times = posterior.times
    # more points are not seen on a page, and make files large
    shown = np.unique(np.linspace(0, len(times) - 1, LIMITS.trace_points).round().astype(int))
    values = posterior.stacked("value")
    # few paths are wide, one below the other; many stand in two columns
    columns = 1 if len(wanted) < 4 else 2
    rows = -(-len(wanted) // columns)
    with style():
        figure = new_figure(7.6 if columns == 1 else 10.0, 1.0 + 1.9 * rows)
        panels = figure.subplots(rows, columns, sharex=True, squeeze=False)
        for axes, name in zip(panels.ravel(), wanted, strict=False):
            k = posterior.names.index(name)
            # of each time by itself, which is not a band that holds the whole path
            quantiles = np.quantile(values[:, shown, k], [0.05, 0.25, 0.75, 0.95], axis=0)
            x, blue = times[shown], PALETTE.blue
            axes.fill_between(
                x, quantiles[0], quantiles[3], color=blue, alpha=0.16, lw=0, label="90%"
            )
            axes.fill_between(
                x, quantiles[1], quantiles[2], color=blue, alpha=0.28, lw=0, label="50%"
            )
            axes.plot(x, values[:, shown, k].mean(axis=0), color=blue, lw=1.6, label="mean")
            if truth is not None:
                own = np.asarray(truth)[shown, k]
                axes.plot(x, own, color=PALETTE.ink, lw=1.1, dashes=(4, 2), label="truth")
            _mark_sessions(axes, posterior)
            axes.axhline(0.0, color=PALETTE.ink, lw=0.6, alpha=0.4)
            axes.set_ylabel(name)
        for axes in panels.ravel()[len(wanted) :]:
            axes.set_visible(False)
        for axes in panels[-1]:
            label_times(axes, dates)
        note = "Bands hold the value at each time with this probability."
        finish(figure, title or "What is valued, over time", note)
    return figure


def _mark_sessions(axes: Any, posterior: PathPosterior) -> None:
    """A thin line where a new session begins, if there are not too many to be seen."""
    # more lines would hide the path
    most = 100
    crosses = posterior.over_time.process.crosses
    if 0 < crosses.sum() <= most:
        for time in posterior.times[crosses]:
            axes.axvline(time, color=PALETTE.ink, lw=0.4, alpha=0.25)
