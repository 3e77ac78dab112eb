"""Figures of predictions: how often they came true."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from revealed.plots.style import PALETTE, finish, new_figure, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from revealed.results.prediction import Prediction


def calibration(prediction: Prediction) -> Figure:
    """Did predictions made with probability p come true in a share p of the decisions?

    Decisions are gathered by the probability of their predicted action. Points on the diagonal are
    right; the grey bars are where 95% of the points of a right predictor fall, given how few
    decisions some of them stand for.

    Parameters
    ----------
    prediction
        As ``rv.predict`` returns it, of decisions whose choices were seen.
    """
    from matplotlib.ticker import MaxNLocator

    bins = prediction.calibration()
    blue, grey = PALETTE.blue, PALETTE.grey
    with style():
        figure = new_figure(6.0, 5.2)
        shares, counts = figure.subplots(2, 1, sharex=True, height_ratios=(4, 1))
        shares.plot([0, 1], [0, 1], color=grey, lw=1.0, label="as often as predicted")
        # where points of a right predictor fall in 95 of 100 bins
        reach = 1.96 * bins.standard_error
        low, high = np.maximum(bins.predicted - reach, 0.0), np.minimum(bins.predicted + reach, 1.0)
        shares.vlines(bins.predicted, low, high, color=grey, alpha=0.45, lw=7, label="chance (95%)")
        shares.plot(
            bins.predicted, bins.observed, "o", color=blue, mec="white", ms=8, label="what happened"
        )
        shares.set_ylim(-0.03, 1.03)
        shares.set_ylabel("share that came true")
        # below, how many decisions each point stands for
        counts.bar(
            bins.low,
            bins.count,
            bins.high - bins.low,
            align="edge",
            color=blue,
            alpha=0.55,
            ec="white",
        )
        counts.set_ylabel("decisions")
        counts.yaxis.set_major_locator(MaxNLocator(3, integer=True))
        counts.set_xlabel("probability of the predicted action")
        counts.set_xlim(-0.02, 1.02)
        note = (
            f"Error E_a, predicted wrongly: {prediction.error_rate:.0%} of "
            f"{int(prediction.scored.sum())} decisions; mean log probability of what was chosen: "
            f"{prediction.log_score:.3f}."
        )
        finish(figure, "Can its predictions be believed?", note)
    return figure
