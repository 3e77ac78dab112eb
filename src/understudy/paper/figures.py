"""Pictures that more than one study draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from understudy._arrays import Floats
from understudy.canvas import CHAINS, GREY, INK, finish, new_figure, style
from understudy.plots import density

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHODS = {
    "da": "data augmentation", "px-scale": "scale", "px-translate": "translation", "px-both": "scale and translation",
    "auto": "the default engine",
}  # fmt: skip
DASHES = ("-", "-.", ":", "--", (0, (5, 1, 1, 1, 1, 1)))
POINTS = 1500


def lines(title: str, panels: Sequence[str], lags: Any, curves: Mapping[str, Floats], note: str) -> Figure:
    """A panel a component, a line a method: the median of its curves (worlds, panels, lags), and a shade of the middle half."""
    with style():
        figure = new_figure(8.4, 3.6)
        grid = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for p, (at, name) in enumerate(zip(grid, panels, strict=True)):
            for i, (method, each) in enumerate(curves.items()):
                low, middle, high = np.quantile(each[:, p], [0.25, 0.5, 0.75], axis=0)
                x = np.asarray(lags)[: len(middle)]
                colour = CHAINS[i % len(CHAINS)]
                at.fill_between(x, low, high, color=colour, alpha=0.12, lw=0)
                at.plot(x, middle, color=colour, ls=DASHES[i % len(DASHES)], lw=1.6, label=method)
            at.axhline(0.0, color=GREY, lw=0.6)
            at.set_xscale("log")
            at.set_title(name)
            at.set_xlabel("lag")
        grid[0].set_ylabel("autocorrelation")
        finish(figure, title, note)
    return figure


def traces(title: str, chains: Mapping[str, Floats], note: str) -> Figure:
    """One panel below the other, on one scale: the draws of one component by each method."""
    with style():
        figure = new_figure(8.4, 0.9 + 1.0 * len(chains))
        grid = figure.subplots(len(chains), 1, sharey=True, squeeze=False)[:, 0]
        for i, (at, (name, draws)) in enumerate(zip(grid, chains.items(), strict=True)):
            some = draws[:: max(1, len(draws) // POINTS)]
            at.plot(np.arange(len(some)) * max(1, len(draws) // POINTS), some, lw=0.5, color=CHAINS[i % len(CHAINS)])
            at.set_title(METHODS.get(name, name))
        grid[-1].set_xlabel("iteration")
        finish(figure, title, note)
    return figure


def densities(
    title: str, rows: Sequence[str], names: Sequence[str], draws: Sequence[Floats], truths: Sequence[Any], note: str
) -> Figure:
    """A row a case, a panel a coefficient: histogram and kernel density of draws (n, K), with the truth where it is known."""
    with style():
        figure = new_figure(8.4, 0.9 + 1.7 * len(rows))
        grid = figure.subplots(len(rows), len(names), squeeze=False)
        for r, case in enumerate(rows):
            for k, name in enumerate(names):
                at, values = grid[r, k], draws[r][:, k]
                low, high = np.quantile(values, [0.001, 0.999])
                x = np.linspace(low, high, 200)
                at.hist(values, bins=50, range=(low, high), density=True, color=CHAINS[4], alpha=0.5, label="histogram")
                at.plot(x, density(values, x), color=CHAINS[0], lw=1.4, label="kernel density")
                if truths[r] is not None:
                    at.axvline(truths[r][k], color=CHAINS[5], ls="--", lw=1.4, label="true value")
                at.set_yticks([])
                at.spines["left"].set_visible(False)
                at.set_title(f"{case}: {name}" if len(rows) > 1 else name)
        finish(figure, title, note)
    return figure


def boards(title: str, rows: Mapping[str, Sequence[Any]], columns: Sequence[str], note: str) -> Figure:
    """Boards in a grid: a row a kind of play, a column a player. 2 marks the piece just placed."""
    from matplotlib.colors import ListedColormap

    colours = ListedColormap(["#f4f4f1", "#5b6069", CHAINS[5]])
    with style():
        figure = new_figure(max(6.0, 2.4 * len(columns)), 0.8 + 3.9 * len(rows))
        grid = figure.subplots(len(rows), len(columns), squeeze=False)
        for r, (kind, pictures) in enumerate(rows.items()):
            for c, player in enumerate(columns):
                at, board = grid[r, c], pictures[c]
                at.imshow(board, cmap=colours, vmin=0, vmax=2, interpolation="none")
                at.set_xticks(np.arange(-0.5, board.shape[1]), labels=[])
                at.set_yticks(np.arange(-0.5, board.shape[0]), labels=[])
                at.grid(color="white", lw=0.6)
                at.tick_params(length=0)
                at.set_title(f"{player}, {kind}" if kind else player)
        finish(figure, title, note)
    return figure


def error_curves(
    title: str, counts: Sequence[int], errors: Mapping[str, Floats], floors: Mapping[str, Any], note: str
) -> Figure:
    """E_a against the number of decisions learnt from: medians over seeds (seeds, counts), ranges, and the floor."""
    with style():
        figure = new_figure(6.8, 3.8)
        at = figure.subplots()
        for i, (name, each) in enumerate(errors.items()):
            colour, middle = CHAINS[i % len(CHAINS)], np.mean(each, axis=0)
            shift = np.asarray(counts) * (1.0 + 0.03 * (i - 1))
            at.errorbar(
                shift, middle, yerr=[middle - np.min(each, axis=0), np.max(each, axis=0) - middle], color=colour,
                ls=DASHES[i % len(DASHES)], marker="os^Dv"[i % 5], ms=5, lw=1.5, capsize=3, label=name,
            )  # fmt: skip
            if floors.get(name) is not None:
                at.axhline(floors[name], color=colour, lw=0.8, ls=":")
        at.set_xscale("log")
        at.set_xticks(counts, labels=[str(c) for c in counts])
        at.minorticks_off()
        at.set_ylim(bottom=0.0)
        at.set_xlabel("decisions learnt from")
        at.set_ylabel("prediction error E_a")
        finish(figure, title, note)
    return figure


def by_condition(
    title: str, conditions: Sequence[str], panels: Mapping[str, Sequence[Floats]], truths: Mapping[str, Any], note: str
) -> Figure:
    """A panel a quantity, a line a condition: median, middle half and 90 % interval of draws."""
    with style():
        figure = new_figure(8.4, 1.1 + 0.42 * len(conditions))
        grid = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        places = np.arange(len(conditions))[::-1]
        for at, (name, draws) in zip(grid, panels.items(), strict=True):
            for y, values in zip(places, draws, strict=True):
                low, left, middle, right, high = np.quantile(values, [0.05, 0.25, 0.5, 0.75, 0.95])
                at.plot([low, high], [y, y], color=CHAINS[0], lw=1.0, label="90 %")
                at.plot([left, right], [y, y], color=CHAINS[0], lw=4.0, solid_capstyle="butt", label="half")
                at.plot(middle, y, "o", color=INK, ms=4, label="median")
            if truths.get(name) is not None:
                for y, truth in zip(places, np.broadcast_to(truths[name], len(places)), strict=True):
                    at.plot(truth, y, "|", color=CHAINS[5], ms=13, mew=2, label="truth")
            ends = np.quantile(np.concatenate([np.asarray(each) for each in draws]), [0.01, 0.99])
            if ends[0] > 0.0 and ends[1] > 30.0 * ends[0]:
                at.set_xscale("log")
            at.set_yticks(places, labels=conditions)
            at.tick_params(axis="y", length=0)
            at.grid(axis="x", color=GREY, alpha=0.25, lw=0.6)
            at.set_title(name)
        finish(figure, title, note)
    return figure
