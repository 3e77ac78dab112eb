"""The largest importance weights: how heavy their tail is, and what it should have been."""

from __future__ import annotations

import numpy as np

from understudy._arrays import Floats


def pareto_k(log_weights: Floats) -> float:
    """Shape of the generalised Pareto distribution that the largest importance weights follow.

    Above 0.7 an importance sample, or an independence sampler, is not to be trusted (Vehtari, Simpson, Gelman, Yao and
    Gabry 2024). Estimated as Zhang and Stephens (2009) do; minus infinity where the weights are all the same.
    """
    ordered = np.exp(np.sort(log_weights) - np.max(log_weights))
    return _pareto(ordered)[1]


def pareto_smoothed(log_weights: Floats) -> tuple[Floats, float]:
    """Log importance weights, the largest replaced by what the Pareto distribution fitted to them expects, and its shape k.

    No weight becomes larger than the largest was, and the shape is drawn a little towards 1/2 (Vehtari and others 2024, section 3).
    """
    top, order = np.max(log_weights), np.argsort(log_weights)
    ordered = np.exp(log_weights[order] - top)
    count, shape, scale = _pareto(ordered)
    if not np.isfinite(shape):
        return log_weights, shape
    shape = (count * shape + 5.0) / (count + 10.0)
    expected = scale / shape * np.expm1(-shape * np.log1p(-(np.arange(count) + 0.5) / count))
    smooth = log_weights.copy()
    smooth[order[-count:]] = top + np.minimum(np.log(ordered[-count - 1] + expected), 0.0)
    return smooth, shape


def _pareto(ordered: Floats) -> tuple[int, float, float]:
    """How many weights make the tail, and its shape and scale; the shape is infinite where there is nothing to fit."""
    count = int(min(0.2 * ordered.size, 3.0 * np.sqrt(ordered.size)))
    tail = ordered[-count:] - ordered[-count - 1]
    if count < 5 or not tail[count // 4] > 0.0:
        return count, (-np.inf if ordered[0] > 0.999 * ordered[-1] else np.inf), np.nan
    guesses = 30 + int(np.sqrt(count))
    theta = 1.0 / tail[-1] + (1.0 - np.sqrt(guesses / (np.arange(guesses) + 0.5))) / (
        3.0 * tail[int(count / 4 + 0.5) - 1]
    )
    shapes = np.log1p(-theta[:, None] * tail).mean(axis=1)
    profile = count * (np.log(-theta / shapes) - shapes - 1.0)
    weight = np.exp(profile - profile.max())
    centre = weight @ theta / weight.sum()
    shape = np.log1p(-centre * tail).mean()
    return count, float(shape), float(-shape / centre)
