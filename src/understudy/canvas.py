"""What our figures have in common: colours and type, title, legend and note, and how many quantities are laid out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np

from understudy._arrays import Floats, Ints

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, ORANGE, GREY, INK = "#0072b2", "#d55e00", "#8a8f98", "#22262b"
CHAINS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#000000")
LINES = 40  # intervals in one figure

STYLE: dict[Any, Any] = {
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.labelcolor": INK,
    "axes.edgecolor": GREY,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "text.color": INK,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "figure.dpi": 150.0,
    "savefig.dpi": 150.0,
    "legend.frameon": False,
}


def style() -> AbstractContextManager[None]:
    """Our looks for as long as a figure is drawn."""
    import matplotlib

    # the reader's own settings are set aside; only to look up the backend would load pyplot
    plain = {key: matplotlib.rcParamsDefault[key] for key in matplotlib.rcParamsDefault if "backend" not in key}
    return matplotlib.rc_context({**plain, **STYLE})


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of so many inches that belongs to nobody else."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    return figure


def finish(figure: Figure, title: str, note: str) -> None:
    """A title, one legend of all marks below it, and at the foot what the reader should know."""
    inch = 1.0 / figure.get_figheight()
    edge = 0.1 / figure.get_figwidth()
    figure.text(edge, 1.0 - 0.1 * inch, title, va="top", fontsize=11.5, fontweight="bold")
    marks = {name: mark for at in figure.axes for mark, name in zip(*at.get_legend_handles_labels(), strict=True)}
    where = (edge, 1.0 - 0.36 * inch)
    figure.legend(
        list(marks.values()), list(marks), loc="upper left", bbox_to_anchor=where, ncols=len(marks) or 1, fontsize=8,
        borderpad=0.0,
    )  # fmt: skip
    foot = 0.25 * inch if note else 0.0
    if note:
        figure.text(edge, 0.06 * inch, note, va="bottom", fontsize=8, color="#5b6069")
    figure.set_layout_engine("constrained", rect=(edge / 2, foot, 1.0 - edge, 1.0 - foot - 0.58 * inch))


def intervals(draws: Floats, names: Sequence[str], truth: Floats | None, title: str, label: str) -> Figure:
    """Quantities on one scale, a line each: mean, middle half and middle 90% of (S, K) draws; the clearest, where there are many."""
    count = len(names)
    shown = np.arange(count)
    note = ""
    if count > LINES:
        far = np.abs(np.median(draws, axis=0)) / np.maximum(draws.std(axis=0), 1e-300)
        shown = np.sort(np.argsort(-far, kind="stable")[:LINES])
        note = f"Shown are the {LINES} of {count} that are most clearly not zero; {count - LINES} are left out."
    low, lower, upper, high = np.quantile(draws[:, shown], [0.05, 0.25, 0.75, 0.95], axis=0)
    place_of = np.arange(len(shown))[::-1]

    with style():
        figure = new_figure(7.0, 1.25 + 0.26 * len(shown))
        at = figure.subplots()
        at.axvline(0.0, color=GREY, lw=0.8, zorder=0)
        at.hlines(place_of, low, high, color=BLUE, lw=1.4, label="middle 90%")
        at.hlines(place_of, lower, upper, color=BLUE, lw=4.5, alpha=0.55, label="middle half")
        at.plot(draws[:, shown].mean(axis=0), place_of, "o", color=BLUE, mec="white", ms=6, label="mean")
        if truth is not None:
            at.plot(truth[shown], place_of, "D", color="none", mec=ORANGE, mew=1.6, ms=6.5, label="truth")
        at.set_yticks(place_of, [short(names[int(k)]) for k in shown])
        at.set_ylim(-0.7, len(shown) - 0.3)
        at.set_xlabel(label)
        at.tick_params(axis="y", length=0)
        at.grid(axis="x", color=GREY, alpha=0.25, lw=0.6)
        at.spines["left"].set_visible(False)
        finish(figure, title, note)
    return figure


def panels(
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
    """Small multiples, one panel for each coefficient, with one legend for all."""
    columns = min(len(shown), columns)
    rows = -(-len(shown) // columns)
    with style():
        figure = new_figure(8.4 if columns > 1 else 6.4, 0.9 + rows * height)
        grid = figure.subplots(rows, columns, squeeze=False, sharex=bool(below), sharey=share)
        for spare in grid.flat[len(shown) :]:
            figure.delaxes(spare)
        for i, (at, k) in enumerate(zip(grid.flat, shown, strict=False)):
            draw(at, int(k))
            if below and i + columns >= len(shown):  # nothing stands below this panel
                at.set_xlabel(below)
                at.tick_params(labelbottom=True)
        finish(figure, title, note)
    return figure


def short(name: str) -> str:
    """A name that fits over a panel, with no letter read as mathematics."""
    cut = name if len(name) <= 24 else f"{name[:12]}…{name[-11:]}"
    return cut.replace("$", r"\$")
