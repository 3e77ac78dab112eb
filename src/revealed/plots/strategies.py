"""Figures of strategies that take turns: which was in use, as ribbons along sequences."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.plots.check import check_class
from revealed.plots.style import LIMITS, PALETTE, finish, new_figure, style
from revealed.results.switching import SwitchingPosterior

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def strategy_ribbons(
    posterior: SwitchingPosterior,
    sequences: Sequence[Hashable] | None = None,
    *,
    truth: Any = None,
    title: str | None = None,
) -> Figure:
    """Which strategy was in use when: a ribbon for each, as wide as it is probable.

    Parameters
    ----------
    posterior
        Of a model whose strategies take turns.
    sequences
        Labels of the sequences to show; default: the first ones, at most twelve.
    truth
        (T,) the true strategy of each decision, 1 to S, where it is known: a line above.
    title
        Of the figure.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> likes = np.repeat([3.0, -3.0, 3.0, -3.0], 50)  # two strategies take turns
    >>> taken = (rng.logistic(size=200) < likes).astype(int)
    >>> d = rv.Decisions([[0.0], [1.0]] * 200, range(0, 401, 2), taken)
    >>> model = rv.ChoiceModel(noise=rv.LogitNoise(), over_time=rv.Switching(states=2))
    >>> post = rv.fit(d, model, draws=500)
    >>> rv.plots.strategy_ribbons(post).savefig("strategies.png")
    """
    check_class(posterior, SwitchingPosterior, "strategy_ribbons", "over_time=rv.Switching(2)")
    switching = posterior.switching
    wanted = list(switching.labels[: LIMITS.panels] if sequences is None else sequences)
    for label in wanted:
        if label not in switching.labels:
            some = ", ".join(map(str, switching.labels[:8]))
            raise ValueError(f"there is no sequence {label!r}; there are {some}")
    probability = posterior.states().probability
    strategies, colours = posterior.strategies, PALETTE.chains
    with style():
        figure = new_figure(7.6, 1.0 + 0.9 * len(wanted))
        panels = figure.subplots(len(wanted), 1, squeeze=False)[:, 0]
        for axes, label in zip(panels, wanted, strict=True):
            n = switching.labels.index(label)
            own = switching.order[switching.start[n] : switching.start[n + 1]]
            # more points are not seen on a page, and make files large
            shown = np.unique(np.linspace(0, len(own) - 1, LIMITS.trace_points).round().astype(int))
            low = np.zeros(len(shown))
            for s, strategy in enumerate(strategies):
                high = low + probability[own[shown], s]
                # steps: a strategy holds for a decision, and not between two
                axes.fill_between(
                    shown,
                    low,
                    high,
                    step="mid",
                    lw=0,
                    color=colours[s % len(colours)],
                    alpha=0.75,
                    label=f"strategy {strategy}",
                )
                low = high
            if truth is not None:
                of_decision = np.asarray(truth)[own[shown]]
                for s, strategy in enumerate(strategies):
                    at = shown[of_decision == strategy]
                    colour = colours[s % len(colours)]
                    axes.plot(at, np.full(len(at), 1.08), "|", ms=4, color=colour)
            axes.set(ylim=(0.0, 1.15 if truth is not None else 1.0), xlim=(0, max(1, shown[-1])))
            axes.set_yticks([0.0, 1.0])
            # one sequence needs no name
            if len(switching.labels) > 1:
                axes.set_ylabel(str(label), rotation=0, ha="right", va="center")
        panels[-1].set_xlabel("decision")
        above = " Marks above: the truth." if truth is not None else ""
        note = f"A ribbon is as wide as its strategy is probable, given all choices.{above}"
        finish(figure, title or "Which strategy was in use", note)
    return figure
