"""What our figures have in common: colours and type, title, legend and note, and the layout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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
    """How much one figure shows; more could not be read.

    intervals: lines of intervals. panels: small multiples. labelled_states: states that are named,
    with numbers, in a table of transitions. trace_points: of a trace, where more only make the line
    thicker.
    """

    intervals: int = 40
    panels: int = 12
    labelled_states: int = 10
    trace_points: int = 1000


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
    figure.legend(
        list(marks.values()),
        list(marks),
        loc="upper left",
        bbox_to_anchor=(edge, 1.0 - 0.36 * inch),
        ncols=len(marks) or 1,
        fontsize=8,
        borderpad=0.0,
    )
    # no room is left for a note that is not there
    foot = 0.25 * inch if note else 0.0
    if note:
        figure.text(edge, 0.06 * inch, note, va="bottom", fontsize=8, color=PALETTE.quiet)
    rectangle = (edge / 2, foot, 1.0 - edge, 1.0 - foot - 0.58 * inch)
    figure.set_layout_engine("constrained", rect=rectangle)


def plot_intervals(
    draws: Floats, names: Sequence[str], truth: Floats | None, title: str, label: str
) -> Figure:
    """Quantities on one scale, a line each: mean, middle half and middle 90% of (S, K) draws.

    Where there are many, those that are most clearly not zero. truth: (K,) known values to mark.
    """
    count, most = len(names), LIMITS.intervals
    shown = np.arange(count)
    note = ""
    if count > most:
        distance = np.abs(np.median(draws, axis=0)) / np.maximum(draws.std(axis=0), 1e-300)
        shown = np.sort(np.argsort(-distance, kind="stable")[:most])
        note = (
            f"Shown are the {most} of {count} that are most clearly not zero; {count - most} are "
            "left out."
        )
    # the middle 90% and the middle half
    low, lower, upper, high = np.quantile(draws[:, shown], [0.05, 0.25, 0.75, 0.95], axis=0)
    mean = draws[:, shown].mean(axis=0)
    # the first on top
    y = np.arange(len(shown))[::-1]
    blue = PALETTE.blue

    with style():
        figure = new_figure(7.0, 1.25 + 0.26 * len(shown))
        axes = figure.subplots()
        axes.axvline(0.0, color=PALETTE.grey, lw=0.8, zorder=0)
        axes.hlines(y, low, high, color=blue, lw=1.4, label="middle 90%")
        axes.hlines(y, lower, upper, color=blue, lw=4.5, alpha=0.55, label="middle half")
        axes.plot(mean, y, "o", color=blue, mec="white", ms=6, label="mean")
        if truth is not None:
            marks: dict[str, Any] = {"color": "none", "mec": PALETTE.orange, "mew": 1.6, "ms": 6.5}
            axes.plot(truth[shown], y, "D", label="truth", **marks)
        axes.set_yticks(y, [shorten(names[int(k)]) for k in shown])
        axes.set_ylim(-0.7, len(shown) - 0.3)
        axes.set_xlabel(label)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x", color=PALETTE.grey, alpha=0.25, lw=0.6)
        axes.spines["left"].set_visible(False)
        finish(figure, title, note)
    return figure


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


def shorten(name: str) -> str:
    """A name that fits over a panel, with no letter read as mathematics.

    Long names lose their middle; matplotlib would typeset what stands between dollar signs.
    """
    # the beginning and the end of a name say more than its middle
    cut = name if len(name) <= 24 else f"{name[:12]}…{name[-11:]}"
    return cut.replace("$", r"\$")


def check_truth(truth: Any, count: int) -> Floats | None:
    """Known values to mark in a figure, one for each quantity; None where there are none."""
    if truth is None:
        return None
    given = np.asarray(truth, dtype=np.float64)
    if given.shape != (count,):
        raise ValueError(f"truth has shape {given.shape}; give {count} numbers, one for each")
    return given
