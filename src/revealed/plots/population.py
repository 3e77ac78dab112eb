"""Figures of a population: each group alone, and as one of many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.plots.check import check_class
from revealed.plots.style import LIMITS, PALETTE, plot_panels, shorten
from revealed.results.hierarchical import HierarchicalPosterior

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def shrinkage(post: HierarchicalPosterior, names: Sequence[str] | None = None) -> Figure:
    """Each group by itself (above) and as one of the population (below), a line between the two.

    Parameters
    ----------
    post
        As ``rv.fit`` returns it with ``groups=rv.Hierarchical()``.
    names
        Which coefficients; default: all, up to twelve.
    """
    check_class(post, HierarchicalPosterior, "shrinkage", "groups=rv.Hierarchical()")
    # a mode for each group, which takes a moment with very many of them
    found = post.shrinkage()
    wanted = found.names if names is None else ([names] if isinstance(names, str) else list(names))
    unknown = [name for name in wanted if name not in found.names]
    if unknown:
        raise ValueError(
            f"there is no coefficient {unknown[0]!r}; there are {', '.join(found.names)}"
        )
    shown = np.array([found.names.index(name) for name in wanted[: LIMITS.panels]])

    def draw(axes: Axes, k: int) -> None:
        pooled = found.pooled[:, k]
        # a group with few decisions may lie so far out alone that nothing else would be seen
        low, high = np.quantile(found.unpooled[:, k], [0.01, 0.99])
        alone = np.clip(found.unpooled[:, k], min(low, pooled.min()), max(high, pooled.max()))
        count = len(alone)
        axes.set_title(shorten(found.names[k]))
        label = "mean of the population"
        axes.axvline(found.centre[k], color=PALETTE.grey, lw=1.0, ls="--", label=label)
        faint = min(1.0, 20 / count)
        axes.plot([alone, pooled], [1, 0], color=PALETTE.grey, alpha=faint, lw=0.8)
        marks: dict[str, Any] = {"ms": 4, "alpha": min(0.9, 40 / count), "mew": 0}
        axes.plot(
            alone, np.ones(count), "o", color=PALETTE.orange, label="each group alone", **marks
        )
        axes.plot(pooled, np.zeros(count), "o", color=PALETTE.blue, label="as one of many", **marks)
        axes.set_yticks([1, 0], ["alone", "of many"])
        axes.set_ylim(-0.35, 1.35)

    left = len(wanted) - len(shown)
    note = "The outermost hundredth of the groups alone is drawn at the edge." + (
        f" {left} coefficients are left out." if left else ""
    )
    title = "What the population makes of each group"
    return plot_panels(shown, draw, title, note, columns=2, height=1.7)
