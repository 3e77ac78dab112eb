"""Figures of inferred transitions: where actions lead, and how unsure that is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from revealed._types import Floats
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
        As ``rv.fit_mdp`` returns it.
    """
    if not isinstance(posterior, MDPPosterior):
        raise ValueError(
            "transitions needs an MDPPosterior, such as rv.fit_mdp returns, not a "
            f"{type(posterior).__name__}"
        )
    # means above, sds below, actions side by side
    both = {"mean": posterior.mean_transitions, "sd": posterior.sd_transitions}
    names, count = [shorten(str(state)) for state in posterior.states], len(posterior.actions)
    with style():
        figure = new_figure(1.2 + 2.3 * count, 5.2)
        grid = figure.subplots(2, count, squeeze=False)
        for line, (what, numbers) in zip(grid, both.items(), strict=True):
            # sds are small, and have a scale of their own
            top = 1.0 if what == "mean" else float(numbers.max()) or 1.0
            for a, axes in enumerate(line):
                image = axes.imshow(numbers[a], cmap="Blues", vmin=0.0, vmax=top)
                axes.set_title(f"action {shorten(str(posterior.actions[a]))}: {what}")
                for side in axes.spines.values():
                    side.set_visible(False)
                if len(names) <= LIMITS.labelled_states:
                    _write_numbers(axes, numbers[a], names, top)
            line[0].set_ylabel("from state")
            figure.colorbar(image, ax=list(line), shrink=0.8)
        for axes in grid[-1]:
            axes.set_xlabel("to state")
        note = f"{posterior.counts.sum():,} transitions were seen."
        finish(figure, "Where actions lead: the transitions that were learnt", note)
    return figure


def _write_numbers(axes: Axes, numbers: Floats, names: list[str], top: float) -> None:
    """Name the states of one panel, and write its numbers into the cells."""
    axes.set_xticks(range(len(names)), names)
    axes.set_yticks(range(len(names)), names)
    for (x, y), p in np.ndenumerate(numbers):
        # white on the darker cells
        color = "white" if p > 0.6 * top else PALETTE.ink
        axes.text(y, x, f"{p:.2f}", ha="center", va="center", fontsize=7, color=color)
