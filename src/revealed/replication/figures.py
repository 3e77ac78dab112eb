"""Figures that more than one study draws.

All are matplotlib figures, in the style of `revealed.plots`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed._types import Floats
from revealed.plots.style import PALETTE, finish, new_figure, style
from revealed.results.density import density

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SAMPLER_LABELS = MappingProxyType(
    {
        "da": "data augmentation",
        "px-scale": "scale",
        "px-translate": "translation",
        "px-both": "scale and translation",
        "auto": "the default sampler",
    }
)


def _line_style(i: int) -> dict[str, Any]:
    """Colour and dashes of the i-th line; lines differ in both, for print without colour."""
    dashes = ("-", "-.", ":", "--", (0, (5, 1, 1, 1, 1, 1)))
    return {"color": PALETTE.chains[i % len(PALETTE.chains)], "ls": dashes[i % len(dashes)]}


def plot_autocorrelations(
    title: str, panels: Sequence[str], lags: Any, curves: Mapping[str, Floats], note: str
) -> Figure:
    """Autocorrelation against lag: a panel a component, a line a method.

    `curves` maps a method to (MDPs, panels, lags); its line is the median over the random MDPs
    and its shade the middle half of them.
    """
    with style():
        figure = new_figure(8.4, 3.6)
        grid = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        # One panel for each component, with the same vertical scale.
        for p, (axes, name) in enumerate(zip(grid, panels, strict=True)):
            for i, (method, values) in enumerate(curves.items()):
                # the middle half over random MDPs, and their median
                low, middle, high = np.quantile(values[:, p], [0.25, 0.5, 0.75], axis=0)
                x = np.asarray(lags)[: len(middle)]
                line = _line_style(i)
                axes.fill_between(x, low, high, color=line["color"], alpha=0.12, lw=0)
                axes.plot(x, middle, **line, lw=1.6, label=method)
            # independent draws would lie on this line
            axes.axhline(0.0, color=PALETTE.grey, lw=0.6)
            # lags span three orders of magnitude
            axes.set_xscale("log")
            axes.set_title(name)
            axes.set_xlabel("lag")
        grid[0].set_ylabel("autocorrelation")
        finish(figure, title, note)
    return figure


def plot_traces(title: str, chains: Mapping[str, Floats], note: str) -> Figure:
    """Traces of one component by each method, one panel below the other, on one scale.

    `chains` maps a sampler's name to its draws (n,); long chains are thinned to 1,500 points,
    more than a page can show.
    """
    with style():
        figure = new_figure(8.4, 0.9 + 1.0 * len(chains))
        grid = figure.subplots(len(chains), 1, sharey=True, squeeze=False)[:, 0]
        for i, (axes, (name, draws)) in enumerate(zip(grid, chains.items(), strict=True)):
            # a page cannot show more points
            thin = max(1, len(draws) // 1500)
            shown = draws[::thin]
            iteration = np.arange(len(shown)) * thin
            axes.plot(iteration, shown, lw=0.5, color=PALETTE.chains[i % len(PALETTE.chains)])
            axes.set_title(SAMPLER_LABELS.get(name, name))
        grid[-1].set_xlabel("iteration")
        finish(figure, title, note)
    return figure


def plot_densities(
    title: str,
    rows: Sequence[str],
    names: Sequence[str],
    draws: Sequence[Floats],
    truths: Sequence[Any],
    note: str,
) -> Figure:
    """Histogram and kernel density of draws: a row of panels a case, a panel a coefficient.

    `draws` are (n, K) for each case, and `truths` (K,), or None where the truth is not known.
    """
    with style():
        figure = new_figure(8.4, 0.9 + 1.7 * len(rows))
        grid = figure.subplots(len(rows), len(names), squeeze=False)
        # A row of panels for each case.
        for r, case in enumerate(rows):
            for k, name in enumerate(names):
                axes, values = grid[r, k], draws[r][:, k]
                # a few draws far out would squeeze everything else
                low, high = np.quantile(values, [0.001, 0.999])
                x = np.linspace(low, high, 200)
                axes.hist(
                    values,
                    bins=50,
                    range=(low, high),
                    density=True,
                    color=PALETTE.chains[4],
                    alpha=0.5,
                    label="histogram",
                )
                axes.plot(
                    x, density(values, x), color=PALETTE.chains[0], lw=1.4, label="kernel density"
                )
                # the truth is known of simulated players only
                if truths[r] is not None:
                    axes.axvline(
                        truths[r][k], color=PALETTE.chains[5], ls="--", lw=1.4, label="true value"
                    )
                axes.set_yticks([])
                axes.spines["left"].set_visible(False)
                axes.set_title(f"{case}: {name}" if len(rows) > 1 else name)
        finish(figure, title, note)
    return figure


def plot_boards(
    title: str, rows: Mapping[str, Sequence[Any]], columns: Sequence[str], note: str
) -> Figure:
    """Boards in a grid: a row a kind of play, a column a player.

    On a board, 1 marks an occupied square and 2 the piece just placed.
    """
    from matplotlib.colors import ListedColormap

    # The same colours as everywhere, for free, occupied and new squares.
    colours = ListedColormap(["#f4f4f1", "#5b6069", PALETTE.chains[5]])
    with style():
        figure = new_figure(max(6.0, 2.4 * len(columns)), 0.8 + 3.9 * len(rows))
        grid = figure.subplots(len(rows), len(columns), squeeze=False)
        for r, (kind, pictures) in enumerate(rows.items()):
            for c, player in enumerate(columns):
                axes, board = grid[r, c], pictures[c]
                # free, occupied, just placed
                axes.imshow(board, cmap=colours, vmin=0, vmax=2, interpolation="none")
                # lines between squares, no numbers
                axes.set_xticks(np.arange(-0.5, board.shape[1]), labels=[])
                axes.set_yticks(np.arange(-0.5, board.shape[0]), labels=[])
                axes.grid(color="white", lw=0.6)
                axes.tick_params(length=0)
                axes.set_title(f"{player}, {kind}" if kind else player)
        finish(figure, title, note)
    return figure


def plot_errors(
    title: str,
    counts: Sequence[int],
    errors: Mapping[str, Floats],
    floors: Mapping[str, Any],
    note: str,
) -> Figure:
    """Prediction error E_a against the number of decisions learnt from.

    `errors` maps a label to (seeds, counts), drawn as mean and range over seeds; `floors` maps
    it to the error of somebody who knows the true values, or None.
    """
    with style():
        figure = new_figure(6.8, 3.8)
        axes = figure.subplots()
        for i, (name, values) in enumerate(errors.items()):
            line, middle = _line_style(i), np.mean(values, axis=0)
            # Players are moved apart a little, so that error bars do not cover one another.
            shift = np.asarray(counts) * (1.0 + 0.03 * (i - 1))
            axes.errorbar(
                shift,
                middle,
                yerr=[middle - np.min(values, axis=0), np.max(values, axis=0) - middle],
                **line,
                marker="os^Dv"[i % 5],
                ms=5,
                lw=1.5,
                capsize=3,
                label=name,
            )
            if floors.get(name) is not None:
                axes.axhline(floors[name], color=line["color"], lw=0.8, ls=":")
        # counts are about evenly spaced on a logarithmic scale
        axes.set_xscale("log")
        axes.set_xticks(counts, labels=[str(c) for c in counts])
        axes.minorticks_off()
        axes.set_ylim(bottom=0.0)
        axes.set_xlabel("decisions learnt from")
        axes.set_ylabel("prediction error E_a")
        finish(figure, title, note)
    return figure


def plot_by_condition(
    title: str,
    conditions: Sequence[str],
    panels: Mapping[str, Sequence[Floats]],
    truths: Mapping[str, Any],
    note: str,
) -> Figure:
    """Median, middle half and 90 % interval of draws: a panel a quantity, a line a condition.

    `panels` maps a quantity to draws (n,) of each condition, and `truths` to its true values,
    which may be missing.
    """
    with style():
        figure = new_figure(8.4, 1.1 + 0.42 * len(conditions))
        grid = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        # The first condition is on top.
        heights = np.arange(len(conditions))[::-1]
        for axes, (name, draws) in zip(grid, panels.items(), strict=True):
            for y, values in zip(heights, draws, strict=True):
                # 90 % as a thin line, half as a thick one, the median as a dot
                low, left, middle, right, high = np.quantile(values, [0.05, 0.25, 0.5, 0.75, 0.95])
                axes.plot([low, high], [y, y], color=PALETTE.chains[0], lw=1.0, label="90 %")
                axes.plot(
                    [left, right],
                    [y, y],
                    color=PALETTE.chains[0],
                    lw=4.0,
                    solid_capstyle="butt",
                    label="half",
                )
                axes.plot(middle, y, "o", color=PALETTE.ink, ms=4, label="median")
            if truths.get(name) is not None:
                for y, truth in zip(
                    heights, np.broadcast_to(truths[name], len(heights)), strict=True
                ):
                    axes.plot(truth, y, "|", color=PALETTE.chains[5], ms=13, mew=2, label="truth")
            # Quantities that span more than a factor of thirty are shown on a logarithmic scale.
            ends = np.quantile(np.concatenate([np.asarray(chain) for chain in draws]), [0.01, 0.99])
            if ends[0] > 0.0 and ends[1] > 30.0 * ends[0]:
                axes.set_xscale("log")
            axes.set_yticks(heights, labels=conditions)
            axes.tick_params(axis="y", length=0)
            axes.grid(axis="x", color=PALETTE.grey, alpha=0.25, lw=0.6)
            axes.set_title(name)
        finish(figure, title, note)
    return figure
