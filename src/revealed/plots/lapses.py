"""Which decisions were probably lapses, as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.plots.check import check_class
from revealed.plots.style import PALETTE, finish, new_figure, shorten, style
from revealed.results.choice import ChoicePosterior
from revealed.results.hierarchical import HierarchicalPosterior
from revealed.results.mdp import MDPPosterior
from revealed.results.separate import SeparatePosterior

if TYPE_CHECKING:
    from matplotlib.figure import Figure


WithLapses = ChoicePosterior | HierarchicalPosterior | SeparatePosterior | MDPPosterior
"""The posteriors that may have lapses."""


def lapse_probabilities(post: WithLapses, named: int = 5) -> Figure:
    """How probable it is that each choice was a lapse, in the order of the decisions.

    Parameters
    ----------
    post
        Of a fit with lapses, such as ``noise=rv.LogitNoise(lapse=rv.Lapse())``.
    named
        How many of the likeliest are named.
    """
    given: Any = post
    if not isinstance(given, WithLapses):
        check_class(post, ChoicePosterior, "lapse_probabilities", "a noise with lapse=rv.Lapse()")
    found = post.lapses()
    # a line for each decision: runs of lapses, such as a game that is given up, are seen at once
    order = np.arange(len(found.probability))
    with style():
        figure = new_figure(7.2, 3.4)
        axes = figure.subplots()
        axes.vlines(order, 0.0, found.probability, color=PALETTE.blue, linewidth=0.8)
        likely = found.likeliest(named)
        axes.plot(likely, found.probability[likely], "o", color=PALETTE.orange, markersize=4)
        for t in likely:
            axes.annotate(
                shorten(str(found.decisions.ids[t])),
                (t, found.probability[t]),
                xytext=(3, 3),
                textcoords="offset points",
                fontsize=7.5,
                color=PALETTE.ink,
            )
        axes.axhline(found.rate, color=PALETTE.grey, linestyle="--", linewidth=0.8)
        axes.set_ylim(0.0, 1.05)
        axes.set_xlim(-0.01 * len(order) - 0.5, 1.01 * len(order))
        axes.set_xlabel("decision, in order")
        axes.set_ylabel("probability of a lapse")
        note = f"Dashed: the rate before a choice is seen, {found.rate:.3f} on average."
        finish(figure, "Which choices were lapses?", note)
    return figure
