"""Smooth densities of draws, as pages plot them."""

from __future__ import annotations

from typing import Any

import numpy as np

from revealed._types import Floats
from revealed.results.density import kernel_density, normal_bandwidth

Curve = dict[str, list[float]]


def density_curve(values: Floats, weights: Floats | None = None) -> Curve:
    """The density of (n,) values with weights that sum to one, as the points of a curve.

    Normal kernels of Silverman's width 1.06 sd n^(-1/5), with n the effective number 1 / sum(w^2)
    of weighted values, on 80 points within four standard deviations of the mean: nearly all of the
    mass, and as many points as a chart of a few hundred pixels shows. A single point at height zero
    where the values do not vary.
    """
    points = 80
    w = np.full(len(values), 1.0 / len(values)) if weights is None else weights
    mean = float(w @ values)
    sd = float(np.sqrt(w @ (values - mean) ** 2))
    if not sd > 0.0:
        return {"x": [mean], "y": [0.0]}
    # Six digits of 80 points are about 1.5 kB for each curve of a page.
    x = np.linspace(mean - 4.0 * sd, mean + 4.0 * sd, points)
    y = kernel_density(values, x, normal_bandwidth(sd, w), w)
    return {"x": [round_to_six_digits(v) for v in x], "y": [round_to_six_digits(v) for v in y]}


def round_to_six_digits(number: Any) -> float:
    """A number rounded to six digits, which are enough for a page."""
    return float(f"{float(number):.6g}")
