"""Pareto smoothed importance sampling: the tail of importance weights, fitted and smoothed.

The largest importance weights follow about a generalised Pareto distribution; its shape k says how
heavy their tail is, and its quantiles what they should have been (Vehtari, Simpson, Gelman, Yao and
Gabry 2024).
"""

from __future__ import annotations

import numpy as np

from revealed._types import Floats


def pareto_k(log_weights: Floats) -> float:
    """Shape of the generalised Pareto distribution that the largest importance weights follow.

    Above 0.7 an importance sample, or an independence sampler, is not to be relied on, nor one of S
    weights above 1 - 1 / log10(S), which is less where S < 2200 (Vehtari and others 2024).
    Estimated as Zhang and Stephens (2009) do; minus infinity where the weights are all the same.
    """
    # relative to the largest, so that nothing overflows
    ordered = np.exp(np.sort(log_weights) - np.max(log_weights))
    return _fit_tail(ordered, ordered.size, float(ordered[0]))[1]


def pareto_smoothed(log_weights: Floats) -> tuple[Floats, float]:
    """Log importance weights with the largest ones smoothed, and the shape k of their tail.

    The largest weights are replaced by what the Pareto distribution fitted to them expects. No
    weight becomes larger than the largest was, and the shape is drawn a little towards 1/2 (Vehtari
    and others 2024).
    """
    # the tail and the weight before it, in increasing order; the rest only bounds it from below
    size = log_weights.size
    few = min(_tail_size(size) + 1, size)
    top = np.argpartition(log_weights, size - few)[size - few :]
    order = top[np.argsort(log_weights[top])]
    largest, smallest = log_weights[order[-1]], np.min(log_weights)
    count, shape, scale = _fit_tail(
        np.exp(log_weights[order] - largest), size, float(np.exp(smallest - largest))
    )
    if not np.isfinite(shape):
        return log_weights, shape
    # a weak prior on the shape, worth ten observations at 1/2
    shape = (count * shape + 5.0) / (count + 10.0)
    # the expected order statistics of the fitted tail
    expected = scale / shape * np.expm1(-shape * np.log1p(-(np.arange(count) + 0.5) / count))
    before = np.exp(log_weights[order[-count - 1]] - largest)
    smooth = log_weights.copy()
    smooth[order[-count:]] = largest + np.minimum(np.log(before + expected), 0.0)
    return smooth, shape


def _tail_size(size: int) -> int:
    """How many weights make the tail: a fifth, or 3 sqrt(S) where that is less."""
    return int(min(0.2 * size, 3.0 * np.sqrt(size)))


def _fit_tail(ordered: Floats, size: int, smallest: float) -> tuple[int, float, float]:
    """How many weights make the tail, and its shape and scale.

    ordered: increasing weights, of which only the tail and the one before it count. size: how many
    there are in all. smallest: of all of them. The shape is infinite where there is nothing to fit:
    plus where the tail has hardly any weights, minus where all weights are the same.
    """
    count = _tail_size(size)
    tail = ordered[-count:] - ordered[-count - 1]
    # the tail's first quartile, zero where draws repeat themselves
    quartile = tail[int(count / 4 + 0.5) - 1] if count else 0.0
    if count < 5 or not quartile > 0.0:
        return count, (-np.inf if smallest > 0.999 * ordered[-1] else np.inf), np.nan
    # a grid of theta = - shape / scale, weighted by its profile likelihood
    guesses = 30 + int(np.sqrt(count))
    theta = 1.0 / tail[-1] + (1.0 - np.sqrt(guesses / (np.arange(guesses) + 0.5))) / (
        3.0 * quartile
    )
    # given theta, the likelihood is largest at this shape
    shapes = np.log1p(-theta[:, None] * tail).mean(axis=1)
    profile = count * (np.log(-theta / shapes) - shapes - 1.0)
    weight = np.exp(profile - profile.max())
    centre = weight @ theta / weight.sum()
    shape = np.log1p(-centre * tail).mean()
    return count, float(shape), float(-shape / centre)
