"""What our figures have in common: colours and type, title, legend and note, and the layout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from revealed._types import Floats, Ints

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Palette:
    """Colours that colour-blind readers tell apart, and that differ in grey.

    Those of Okabe and Ito (2008), with inks for text and lines.
    """

    blue: str = "#0072b2"
    orange: str = "#d55e00"
    grey: str = "#8a8f98"
    ink: str = "#22262b"
    quiet: str = "#5b6069"
    chains: tuple[str, ...] = (
        "#0072b2",
        "#e69f00",
        "#009e73",
        "#cc79a7",
        "#56b4e9",
        "#d55e00",
        "#f0e442",
        "#000000",
    )


@dataclass(frozen=True)
class Limits:
    """How much a figure or a table shows; more could not be read.

    intervals: lines of intervals. panels: small multiples. labelled_states: states that are named,
    with numbers, in a table of transitions. actions: those that have such a table. trace_points: of
    a trace, where more only make the line thicker. rows: of a table in a report, where more make
    the page slow. group_columns: values beside each other in a table of groups. path_groups: groups
    whose paths a report shows.
    """

    intervals: int = 40
    panels: int = 12
    labelled_states: int = 10
    actions: int = 6
    trace_points: int = 1000
    rows: int = 100
    group_columns: int = 6
    path_groups: int = 3


PALETTE = Palette()
LIMITS = Limits()


def style() -> AbstractContextManager[None]:
    """Our looks for as long as a figure is drawn.

    A context manager; outside of it the reader's own settings hold.
    """
    import matplotlib

    # the reader's own settings are set aside; only to look up the backend would load pyplot
    defaults = {
        key: matplotlib.rcParamsDefault[key]
        for key in matplotlib.rcParamsDefault
        if "backend" not in key
    }
    ours: dict[Any, Any] = {
        "font.size": 9.0,
        "axes.titlesize": 9.5,
        "axes.titlelocation": "left",
        "axes.labelcolor": PALETTE.ink,
        "axes.edgecolor": PALETTE.grey,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.linewidth": 0.8,
        "text.color": PALETTE.ink,
        "xtick.color": PALETTE.grey,
        "ytick.color": PALETTE.grey,
        "xtick.labelcolor": PALETTE.ink,
        "ytick.labelcolor": PALETTE.ink,
        "figure.dpi": 150.0,
        "savefig.dpi": 150.0,
        "legend.frameon": False,
    }
    return matplotlib.rc_context({**defaults, **ours})


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of so many inches that pyplot does not know of."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # not by pyplot, which would keep every figure until somebody closes it
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    return figure


def finish(figure: Figure, title: str, note: str) -> None:
    """Add a title, one legend of all marks below it, and a note at the foot.

    The axes get the rest of the figure, with room between them for their labels.
    """
    # distances in inches, so that titles look alike on figures of any size
    inch = 1.0 / figure.get_figheight()
    edge = 0.1 / figure.get_figwidth()
    figure.text(edge, 1.0 - 0.1 * inch, title, va="top", fontsize=11.5, fontweight="bold")
    # marks of one name in several panels stand in the legend once
    marks = {
        name: mark
        for axes in figure.axes
        for mark, name in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    legend = figure.legend(
        list(marks.values()),
        list(marks),
        loc="upper left",
        bbox_to_anchor=(edge, 1.0 - 0.36 * inch),
        ncols=len(marks) or 1,
        fontsize=8,
        borderpad=0.0,
    )
    # lines that are thin where many lie on one another would have no colour by themselves
    for mark in legend.get_lines():
        if mark.get_linewidth() < 1.4:
            mark.set(linewidth=1.4, alpha=1.0)
    # no space is left for a note or a legend that is not there
    foot = 0.25 * inch if note else 0.0
    if note:
        figure.text(edge, 0.06 * inch, note, va="bottom", fontsize=8, color=PALETTE.quiet)
    head = (0.58 if marks else 0.36) * inch
    rectangle = (edge / 2, foot, 1.0 - edge, 1.0 - foot - head)
    figure.set_layout_engine("constrained", rect=rectangle)


def label_times(axes: Axes, dates: bool) -> None:
    """What the horizontal axis is: times, or dates where times are days since 1970-01-01."""
    if not dates:
        axes.set_xlabel("time")
        return
    # it counts days from the same day
    import matplotlib.dates

    dated: Any = matplotlib.dates  # which has no types
    locator = dated.AutoDateLocator()
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(dated.ConciseDateFormatter(locator))
    axes.set_xlabel("date")


class Intervals(NamedTuple):
    """Quantities that share a scale.

    draws: (S, n). label: what they are, below their axis. truth: (n,) known values to mark, NaN for
    those that are not known; or None.
    """

    draws: Floats
    names: Sequence[str]
    label: str
    truth: Floats | None = None


def plot_intervals(parts: Sequence[Intervals], title: str, note: str) -> Figure:
    """A line for each quantity: mean, middle half and middle 90% of its draws.

    Quantities of different parts have scales of their own, one below the other.
    """
    lines = [len(part.names) for part in parts]
    with style():
        # an axis with its label takes about as much as three lines
        height = 0.62 + 0.63 * len(parts) + 0.26 * sum(lines)
        figure = new_figure(7.0, height)
        ratios = [0.2 + 0.26 * count for count in lines]
        grid = figure.subplots(len(parts), 1, squeeze=False, height_ratios=ratios)[:, 0]
        for axes, part in zip(grid, parts, strict=True):
            _draw_intervals(axes, part)
        finish(figure, title, note)
    return figure


def _draw_intervals(axes: Axes, part: Intervals) -> None:
    """The lines of quantities that share a scale, the first on top."""
    # the middle 90% and the middle half
    low, lower, upper, high = np.quantile(part.draws, [0.05, 0.25, 0.75, 0.95], axis=0)
    y, blue = np.arange(len(part.names))[::-1], PALETTE.blue
    # zero is a mark only where numbers may lie on both sides of it
    if low.min() < 0.0:
        axes.axvline(0.0, color=PALETTE.grey, lw=0.8, zorder=0)
    axes.hlines(y, low, high, color=blue, lw=1.4, label="middle 90%")
    axes.hlines(y, lower, upper, color=blue, lw=4.5, alpha=0.55, label="middle half")
    axes.plot(part.draws.mean(axis=0), y, "o", color=blue, mec="white", ms=6, label="mean")
    if part.truth is not None:
        marks: dict[str, Any] = {"color": "none", "mec": PALETTE.orange, "mew": 1.6, "ms": 6.5}
        axes.plot(part.truth, y, "D", label="truth", **marks)
    # a third of the width is enough for most names of transitions
    axes.set_yticks(y, [shorten(name, 40) for name in part.names])
    axes.set_ylim(-0.7, len(part.names) - 0.3)
    axes.set_xlabel(part.label)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color=PALETTE.grey, alpha=0.25, lw=0.6)
    axes.spines["left"].set_visible(False)


def plot_panels(
    shown: Ints,
    draw: Callable[[Axes, int], None],
    title: str,
    note: str,
    *,
    columns: int,
    height: float,
    below: str = "",
    share: bool = False,
) -> Figure:
    """Small multiples, one panel for each coefficient, with one legend for all.

    draw: draws the panel of a coefficient. columns: at most, beside each other. height: of a panel,
    in inches. below: label of the x axes, which are then shared. share: the y axes too.
    """
    columns = min(len(shown), columns)
    # rounded up: the last row may have empty places
    rows = -(-len(shown) // columns)
    with style():
        figure = new_figure(8.4 if columns > 1 else 6.4, 0.9 + rows * height)
        grid = figure.subplots(rows, columns, squeeze=False, sharex=bool(below), sharey=share)
        for spare in grid.flat[len(shown) :]:
            figure.delaxes(spare)
        for i, (axes, k) in enumerate(zip(grid.flat, shown, strict=False)):
            draw(axes, int(k))
            # where nothing stands below this panel, it has the label
            if below and i + columns >= len(shown):
                axes.set_xlabel(below)
                axes.tick_params(labelbottom=True)
        finish(figure, title, note)
    return figure


def shorten(name: str, most: int = 24) -> str:
    """A name of at most so many letters, with none read as mathematics; 24 fit over a panel.

    Long names lose their middle; matplotlib would typeset what stands between dollar signs.
    """
    # the beginning and the end of a name say more than its middle
    half = most // 2
    cut = name if len(name) <= most else f"{name[:half]}…{name[half + 1 - most :]}"
    return cut.replace("$", r"\$")
