"""Smooth densities of draws, as pages plot them."""

from __future__ import annotations

from typing import Any

import numpy as np

from understudy._arrays import Floats

POINTS = 80
Curve = dict[str, list[float]]


def density(values: Floats, weights: Floats | None = None) -> Curve:
    """Normal kernels as wide as Silverman's rule says, on points that hold nearly all of the weighted values."""
    w = np.full(len(values), 1.0 / len(values)) if weights is None else weights
    mean = float(w @ values)
    sd = float(np.sqrt(w @ (values - mean) ** 2))
    if not sd > 0.0:
        return {"x": [mean], "y": [0.0]}
    width = 1.06 * sd * float(np.sum(w**2)) ** 0.2
    x = np.linspace(mean - 4.0 * sd, mean + 4.0 * sd, POINTS)
    y = np.exp(-0.5 * ((x[:, None] - values) / width) ** 2) @ w / (width * np.sqrt(2.0 * np.pi))
    return {"x": [short(v) for v in x], "y": [short(v) for v in y]}


def short(number: Any) -> float:
    """Six digits are enough for a page."""
    return float(f"{float(number):.6g}")
