"""Expectation-maximisation for a mixture of normals on weighted points.

One more part may have a density that is given, up to a choice among several.

A mixture is fitted a few times in a warm-up, to some thousand points: matrix products do that as
fast as a compiled loop would, and need not be compiled.
"""

from __future__ import annotations

import numpy as np

from revealed._types import Floats
from revealed.kernels.normal import LOG_ROOT_TWO_PI

MixtureParts = tuple[Floats, Floats, Floats]
"""Shares (C,), means (C, D) and covariances (C, D, D) of the normals of a mixture."""

# Points in one matrix product. Libraries of linear algebra divide larger products among threads,
# which takes longer than the product where other chains run on the same cores.
BLOCK = 512


# The share that the part with a given density begins with. It moves from there in every iteration.
INITIAL_SHARE = 0.2


def fit_mixture(
    points: Floats,
    point_weights: Floats,
    initial: MixtureParts,
    ridge: float,
    iterations: int,
    given_log_densities: Floats,
) -> tuple[MixtureParts, float, int]:
    """The parts after so many iterations on points (n, D), whose weights (n,) add to one.

    initial: where to begin. Each covariance is shrunk towards ridge times the identity with the
    force of D + 1 points of average weight: as many as it takes to fix a covariance, so that no
    part can collapse onto a few. given_log_densities: (n, G) at the points, of the densities that
    one more part may have; its share and which of them fits best are returned too. With none of
    them there is no such part.
    """
    count, width = points.shape
    # Blocks (B, D, b), filled up with points of weight zero; b numbers lie side by side.
    size = min(count, BLOCK)
    missing = -count % size
    padded = np.pad(points, ((0, missing), (0, 0))).reshape(-1, size, width)
    blocks = np.ascontiguousarray(padded.swapaxes(1, 2))
    block_weights = np.pad(point_weights, (0, missing)).reshape(-1, size)
    # The same (G, B, b), with the constant that the normals leave out.
    given = np.pad(given_log_densities, ((0, missing), (0, 0))) + width * LOG_ROOT_TWO_PI
    given = np.ascontiguousarray(given.T).reshape(-1, *block_weights.shape)
    share, which = INITIAL_SHARE if len(given) else 0.0, 0
    parts, shrinkage = initial, (width + 1.0) / count
    for _ in range(iterations):
        log_densities = _log_densities(blocks, parts)
        if len(given):
            last = given[which] + np.log(share + 1e-300)
            log_densities = np.concatenate([log_densities, last[None]])
        responsibility = _responsibilities(log_densities, block_weights)
        # The given density that is likeliest for what falls to it.
        if len(given):
            own, responsibility = responsibility[-1], responsibility[:-1]
            share, which = float(own.sum()), int(np.argmax((own * given).sum(axis=(1, 2))))
        parts = _maximise(blocks, responsibility, shrinkage, ridge)
    return parts, share, which


def _log_densities(blocks: Floats, parts: MixtureParts) -> Floats:
    """(C, B, b) log of each part's share times its density, up to a constant that all share."""
    share, mean, covariance = parts
    inverse = np.linalg.inv(np.linalg.cholesky(covariance))
    # A share may be zero.
    log_peak = np.log(share + 1e-300) + np.log(np.diagonal(inverse, axis1=1, axis2=2)).sum(axis=1)
    log_densities = np.empty((len(share), blocks.shape[0], blocks.shape[2]))
    for c in range(len(share)):
        z = inverse[c] @ (blocks - mean[c][:, None])
        z *= z
        log_densities[c] = log_peak[c] - 0.5 * z.sum(axis=1)
    return log_densities


def _responsibilities(log_densities: Floats, block_weights: Floats) -> Floats:
    """(C, B, b) each point's weight, divided among the parts by their densities there."""
    log_densities -= log_densities.max(axis=0)
    densities = np.exp(log_densities, out=log_densities)
    densities *= block_weights / densities.sum(axis=0)
    return densities


def _maximise(
    blocks: Floats, responsibility: Floats, shrinkage: float, ridge: float
) -> MixtureParts:
    """Each part's weight, mean and covariance given the responsibilities (C, B, b).

    The covariance is the mean of the part's own and of ridge times the identity, which counts as
    mass of the amount shrinkage.
    """
    width = blocks.shape[1]
    mass = responsibility.sum(axis=(1, 2)) + 1e-12  # an empty part does not divide by zero
    mean, covariance = np.empty((len(mass), width)), np.empty((len(mass), width, width))
    for c in range(len(mass)):
        own = responsibility[c][:, None]
        mean[c] = (own @ blocks.swapaxes(1, 2)).sum(axis=(0, 1)) / mass[c]
        deviations = blocks - mean[c][:, None]
        products = ((own * deviations) @ deviations.swapaxes(1, 2)).sum(axis=0)
        covariance[c] = (products + shrinkage * ridge * np.eye(width)) / (mass[c] + shrinkage)
    return mass, mean, covariance
