"""Figures of inferred transitions: where actions lead, and how unsure that is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from revealed._types import Floats
from revealed.plots.check import check_class
from revealed.plots.style import LIMITS, PALETTE, finish, new_figure, shorten, style
from revealed.results.mdp import MDPPosterior

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def transitions(posterior: MDPPosterior) -> Figure:
    """For each action the mean of p(y | x, a), and below it how unsure that is.

    Parameters
    ----------
    posterior
        As ``rv.fit`` returns it with Dirichlet transitions.
    """
    check_class(posterior, MDPPosterior, "transitions", "transitions=rv.Dirichlet()")
    both = {"mean": posterior.mean_transitions, "sd": posterior.sd_transitions}
    tops = {"mean": 1.0, "sd": float(both["sd"].max()) or 1.0}
    names = [shorten(str(state), 14) for state in posterior.states]
    labelled = len(names) <= LIMITS.labelled_states
    # a cell of a table with numbers is as wide as its number
    side = max(1.7, 0.36 * len(names)) if labelled else 2.3
    shown = range(min(len(posterior.actions), LIMITS.actions))
    across = min(len(shown), int(7.5 // side))
    # rounded up: the last lines may have empty places
    blocks = -(-len(shown) // across)
    margin = 0.08 * max(map(len, names)) if labelled else 0.3
    with style():
        width, height = 1.4 + margin + across * side, 1.0 + 2 * blocks * (side + 0.45) + margin
        figure = new_figure(width, height)
        # means above, sds below, actions side by side, as many as fit
        grid = figure.subplots(2 * blocks, across, squeeze=False, sharex=True, sharey=True)
        images = {}
        for place in range(blocks * across):
            block, column = divmod(place, across)
            for line, what in enumerate(both):
                axes = grid[2 * block + line, column]
                if place not in shown:
                    figure.delaxes(axes)
                    continue
                numbers, top = both[what][place], tops[what]
                images[what] = axes.imshow(numbers, cmap="Blues", vmin=0.0, vmax=top)
                axes.set_title(f"action {shorten(str(posterior.actions[place]))}: {what}")
                for edge in axes.spines.values():
                    edge.set_visible(False)
                if labelled:
                    _write_numbers(axes, numbers, names, top)
                if column == 0:
                    axes.set_ylabel("from state")
                # where nothing stands below this table, it has the labels
                if what == "sd" and place + across not in shown:
                    axes.set_xlabel("to state")
                    axes.tick_params(labelbottom=True)
        # sds are small, and have a scale of their own
        for line, what in enumerate(both):
            lines = grid[line::2].ravel().tolist()
            seen = [axes for axes in lines if axes in figure.axes]
            label = f"{what} of the probability"
            figure.colorbar(images[what], ax=seen, label=label, shrink=min(1.0, 2.4 / height))
        left = len(posterior.actions) - len(shown)
        note = f"{posterior.trajectories.counts.sum():,} transitions were seen." + (
            f" {left} of {len(posterior.actions)} actions are left out." if left else ""
        )
        finish(figure, "Where actions lead: the transitions that were learnt", note)
    return figure


def _write_numbers(axes: Axes, numbers: Floats, names: list[str], top: float) -> None:
    """Name the states of one panel, and write its numbers into the cells."""
    # names that are wider than their cells stand upright
    upright = max(map(len, names)) > 5
    axes.set_xticks(range(len(names)), names, rotation=90 if upright else 0)
    axes.set_yticks(range(len(names)), names)
    for (x, y), p in np.ndenumerate(numbers):
        # white on the darker cells
        color = "white" if p > 0.6 * top else PALETTE.ink
        axes.text(y, x, f"{p:.2f}", ha="center", va="center", fontsize=7, color=color)
