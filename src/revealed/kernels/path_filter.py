"""The likelihood of choices whose values change, every path summed over: a particle filter.

Particles are values. At each node they move by the law of paths, and are weighted by the
probability of what was chosen there; where few carry most of the weight they are drawn anew by
their weights. The product of the mean weights is an unbiased estimate of the likelihood (Del Moral
2004), whatever the noise is; its error grows with the number of nodes over that of particles.
"""

import math
from typing import NamedTuple

import numpy as np

from revealed._types import Floats
from revealed.kernels._compile import compiled, compiled_internal
from revealed.kernels.choice import log_likelihood
from revealed.kernels.choice_fast import RivalIndex
from revealed.kernels.interrupt import stop_requested
from revealed.kernels.path_likelihood import PathData, PathWorkspace
from revealed.kernels.path_process import PathLaw, PathProcess


class FilterLimits(NamedTuple):
    """least_share: of particles that are effective; where fewer are, they are drawn anew."""

    least_share: float


FILTER_LIMITS = FilterLimits(least_share=0.5)


@compiled_internal
def _normalise(log_weights: Floats, weights: Floats) -> tuple[float, float]:
    """Write weights that sum to one; returns the log of the sum before, and how many count."""
    # relative to the largest, so that not all are zero
    largest, total, square = log_weights.max(), 0.0, 0.0
    if not largest > -np.inf:
        return -np.inf, 0.0
    for p in range(weights.size):
        weights[p] = math.exp(log_weights[p] - largest)
        total += weights[p]
    for p in range(weights.size):
        weights[p] /= total
        square += weights[p] * weights[p]
    return largest + math.log(total), 1.0 / square


@compiled_internal
def _resample(rng: np.random.Generator, weights: Floats, values: Floats, parents: Floats) -> None:
    """Draw particles by their weights, one at each even step of their running sum."""
    count = weights.size
    # those that are drawn are written over these
    parents[:] = values
    position, reached, p = rng.random() / count, weights[0], 0
    for q in range(count):
        while reached < position and p + 1 < count:
            p += 1
            reached += weights[p]
        values[q] = parents[p]
        position += 1.0 / count


@compiled_internal
def _move(
    rng: np.random.Generator, process: PathProcess, law: PathLaw, start: Floats, n: int, u: Floats
) -> None:
    """Move all particles u (C, D), which are about the centre, to node n; start: as below."""
    width = u.shape[1]
    fresh = np.empty(width)
    for p in range(u.shape[0]):
        for i in range(width):
            fresh[i] = rng.standard_normal()
        for i in range(width):
            if not process.first[n]:
                u[p, i] = law.decay[n, i] * u[p, i] + math.sqrt(law.variance[n, i]) * fresh[i]
                continue
            # a path begins: nothing was before
            u[p, i] = 0.0
            for j in range(i + 1):
                u[p, i] += start[i, j] * fresh[j]


@compiled
def filter_paths(
    rng: np.random.Generator,
    data: PathData,
    process: PathProcess,
    law: PathLaw,
    start: Floats,
    noise: Floats,
    work: PathWorkspace,
    particles: int,
) -> float:
    """The log of an estimate of the likelihood of all choices, given the law of paths.

    start: (D, D) lower triangular root of the covariance of a path's first value. noise: (E,).
    """
    width, nodes = start.shape[0], process.first.size
    u, parents = np.zeros((particles, width)), np.empty((particles, width))
    log_weights, weights = np.zeros(particles), np.empty(particles)
    rivals, t, total = data.rivals, 0, 0.0
    for n in range(nodes):
        _move(rng, process, law, start, n, u)
        low, high = data.node_start[n], data.node_start[n + 1]
        # the decisions of this node: rivals of all stand one after the other
        first = t
        while t < rivals.weight.size and rivals.start[t + 1] <= high:
            t += 1
        count = high - low
        index = RivalIndex(
            rivals.start[first : t + 1] - low, rivals.multiplicity[low:high], rivals.weight[first:t]
        )
        gaps = work.gaps[: count + noise.size]
        gaps[count:] = noise
        # every particle is a value, under which choices here have a probability
        for p in range(particles):
            for r in range(count):
                gap = data.offset[low + r]
                for k in range(width):
                    gap += data.rows[low + r, k] * (law.centre[k] + u[p, k])
                gaps[r] = gap
            log_weights[p] += log_likelihood(
                data.noise, gaps, index, work.choice, -np.inf, work.slopes[:0]
            )
        if stop_requested():
            return -np.inf
        log_sum, effective = _normalise(log_weights, weights)
        if effective < FILTER_LIMITS.least_share * particles or n + 1 == nodes:
            # the mean weight since particles were drawn last
            total += log_sum - math.log(particles)
            if not total > -np.inf:
                return -np.inf
            _resample(rng, weights, u, parents)
            log_weights[:] = 0.0
    return total
