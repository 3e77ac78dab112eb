"""The certificate's figures: ranks for every sampler and problem, and all scores."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import scipy.stats as st

from tests.support.evidence_log import (
    MODELS,
    PARTS,
    SCORED,
    Proof,
    longest_calibrations,
    measures,
    model_sampler_problem,
    two_sided,
)

matplotlib.use("agg")
import matplotlib.pyplot as plt

Found = list[tuple[Proof, dict[str, Any]]]
COLOURS = dict(zip(SCORED, ("C0", "C1", "C2"), strict=True))
STYLE: dict[Any, Any] = {"font.size": 7, "axes.spines.top": False, "axes.spines.right": False}


def figures(stored: dict[str, Any], folder: Path) -> None:
    """Both, where there is something to show."""
    shown = {
        "certificate.png": (ranks, longest_calibrations(stored)),
        "certificate-scores.png": (scores, list(measures(stored["proofs"], *SCORED))),
    }
    for name, (draw, found) in shown.items():
        if found:
            with plt.rc_context(STYLE):
                figure = draw(found)
                figure.savefig(folder / name, dpi=100)
                plt.close(figure)


def ranks(found: Found) -> Any:
    """Small multiples of rank histograms.

    Each with the band that holds 99 % of the bins of a right sampler.
    """
    wide, high = 6, math.ceil(len(found) / 6)
    figure, axes = plt.subplots(
        high, wide, figsize=(12, 1.5 * high + 0.3), sharex=True, layout="constrained", squeeze=False
    )
    for axis in axes.flat[len(found) :]:
        axis.set_visible(False)
    for axis, (proof, each) in zip(axes.flat, found, strict=False):
        counts = np.array(each["counts"])
        number, bins = int(counts[0].sum()), counts.shape[1]
        low, top = st.binom(number, 1 / bins).ppf([0.005, 0.995]) * bins / number
        axis.axhspan(low, top, color="0.88", lw=0)
        axis.plot(
            (np.arange(bins) + 0.5) / bins, counts.T * bins / number, color="C0", lw=0.6, alpha=0.7
        )
        model, sampler, problem = model_sampler_problem(proof)
        axis.set_title(
            f"{model}\n{sampler}, {problem}\n{number:,} data sets, p from {min(each['p']):.2g}",
            fontsize=6,
        )
        spread = 2.0 * max(top - 1, 1 - low)
        axis.set(
            xlim=(0, 1), xticks=[0, 1], ylim=(max(0, 1 - spread), 1 + spread), yticks=[low, 1, top]
        )
        axis.set_yticklabels([f"{low:.2f}", "1", f"{top:.2f}"])
    return figure


def scores(found: Found) -> Any:
    """A row of dots for every model and sampler, on the scale of a standard normal."""
    rows = [(model_sampler_problem(proof)[0], proof.get("sampler", "")) for proof, _ in found]
    order = [*MODELS, PARTS]
    keys = sorted(set(rows), key=lambda key: (order.index(key[0]), key[1]), reverse=True)
    figure, axis = plt.subplots(figsize=(9, 0.26 * len(keys) + 1.0), layout="constrained")
    rng = np.random.default_rng(1)
    for row, (_, each) in zip(rows, found, strict=True):
        z = np.sign(each["z"]) * st.norm.isf(two_sided(each) / 2)
        axis.scatter(
            z,
            keys.index(row) + rng.uniform(-0.3, 0.3, len(z)),
            s=5,
            alpha=0.6,
            lw=0,
            color=COLOURS[each["how"]],
        )
    for z, style in ((1.96, ":"), (3.29, "--"), (st.norm.isf(0.5e-6), "-")):
        axis.axvline(-z, color="0.6", lw=0.7, ls=style, zorder=0)
        axis.axvline(z, color="0.6", lw=0.7, ls=style, zorder=0)
    for way, colour in COLOURS.items():
        axis.scatter([], [], s=12, color=colour, label=way)
    axis.set(
        yticks=range(len(keys)),
        yticklabels=[", ".join(filter(None, key)) for key in keys],
        xlim=(-6, 6),
    )
    axis.set_xlabel(
        "errors in standard errors; lines at false-alarm rates of 5 % (dotted), 0.1 % (dashed), "
        "one in a million"
    )
    axis.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False)
    return figure
