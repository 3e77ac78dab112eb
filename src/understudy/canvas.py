"""What our figures have in common: colours, type, a title above, a legend below it, and a note at the foot."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLUE, ORANGE, GREY, INK = "#0072b2", "#d55e00", "#8a8f98", "#22262b"

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
