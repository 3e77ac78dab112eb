"""Kernel density estimates of draws: the one estimate that figures, pages and reports show.

With kernel width h and weights w_i that sum to one,

    density(x) = sum_i w_i phi((x - draw_i) / h) / h

where phi is the standard normal density.
"""

from __future__ import annotations

import numpy as np

from revealed._types import Floats


def kernel_density(
    draws: Floats, grid: Floats, bandwidth: float, weights: Floats | None = None
) -> Floats:
    """The density of the draws (S,) at each point of the grid.

    weights: (S,) that sum to one; default: all draws count the same.
    """
    # (points, draws) kernels, added up over the draws
    kernels = np.exp(-0.5 * ((grid[:, None] - draws) / bandwidth) ** 2)
    mean = kernels.mean(axis=1) if weights is None else kernels @ weights
    return np.asarray(mean / (bandwidth * np.sqrt(2.0 * np.pi)))


def robust_bandwidth(draws: Floats) -> float:
    """Silverman's rule of thumb: 0.9 min(sd, interquartile range / 1.349) S^(-1/5).

    The interquartile range keeps outliers from blurring the rest; zero for draws that never vary.
    """
    # of a normal law, the interquartile range is 1.349 sds
    upper, lower = np.quantile(draws, [0.75, 0.25])
    interquartile = (upper - lower) / 1.349
    return float(0.9 * (min(draws.std(), interquartile) or draws.std()) * draws.size**-0.2)


def normal_bandwidth(sd: float, weights: Floats) -> float:
    """The normal reference rule 1.06 sd ESS^(-1/5), with 1 / sum(w^2) effective draws."""
    return float(1.06 * sd * float(np.sum(weights**2)) ** 0.2)


def density(draws: Floats, grid: Floats) -> Floats:
    """A smooth density of the draws at each point of the grid; zero for draws that never vary."""
    # More draws than this only take time: the curve no longer changes to the eye.
    most = 4000
    some = draws[:: -(-draws.size // most)]
    bandwidth = robust_bandwidth(some)
    if bandwidth == 0.0:
        return np.zeros_like(grid)
    return kernel_density(some, grid, bandwidth)
