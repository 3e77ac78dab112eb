"""Figures of an inferred noise covariance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from revealed.models.correlated_noise import NoiseCovariance
from revealed.plots.check import check_class
from revealed.plots.style import PALETTE, finish, new_figure, shorten, style
from revealed.results.base import Posterior
from revealed.results.choice import ChoicePosterior
from revealed.results.drawn_noise import drawn_noise
from revealed.results.hierarchical import HierarchicalPosterior

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def noise_correlations(post: Posterior) -> Figure:
    """Which actions' noise goes together: mean correlations against the base, and their middle 90%.

    Parameters
    ----------
    post
        Of a fit with ``noise=rv.CorrelatedNoise(base=...)``.
    """
    how = "noise=rv.CorrelatedNoise(base=...)"
    if not isinstance(post, HierarchicalPosterior):
        check_class(post, ChoicePosterior, "noise_correlations", how)
    known = drawn_noise(post)
    if not isinstance(known, NoiseCovariance):
        raise ValueError(
            "noise_correlations needs a noise covariance that was inferred, and the noise of this "
            f"posterior is independent; fit with {how}"
        )
    names, size = [shorten(str(label)) for label in known.others], len(known.others)
    # correlations of each draw, then their mean and quantiles
    mean = known.correlation.mean(axis=0)
    low, high = np.quantile(known.correlation, [0.05, 0.95], axis=0)
    with style():
        figure = new_figure(2.2 + 0.95 * size, 1.6 + 0.75 * size)
        axes = figure.subplots()
        # the matrix is symmetric: numbers below the diagonal, and names on it
        below = np.where(np.tri(size, k=-1, dtype=bool), mean, np.nan)
        image = axes.imshow(below, cmap="RdBu_r", vmin=-1.0, vmax=1.0, aspect="auto")
        for i in range(size):
            axes.text(i, i, names[i], ha="center", va="center", fontweight="bold", fontsize=8)
            for j in range(i):
                ink = "white" if abs(mean[i, j]) > 0.6 else PALETTE.ink
                words = f"{mean[i, j]:.2f}\n{low[i, j]:.2f} to {high[i, j]:.2f}"
                axes.text(j, i, words, ha="center", va="center", color=ink, fontsize=7.5)
        axes.set_xticks([])
        axes.set_yticks([])
        for side in axes.spines.values():
            side.set_visible(False)
        figure.colorbar(image, ax=axes, label="correlation", shrink=0.8)
        note = f"Noise of each action less that of {known.base}; mean and middle 90%."
        finish(figure, "Which noise goes together?", note)
    return figure
