"""Expectation-maximisation for a mixture of normals on weighted points.

A mixture is fitted a few times in a warm-up, to some thousand points: matrix products do that as
fast as a compiled loop would, and need not be compiled.
"""

from __future__ import annotations

import numpy as np

from revealed._types import Floats

MixtureParts = tuple[Floats, Floats, Floats]
"""Shares (C,), means (C, D) and covariances (C, D, D) of the normals of a mixture."""

# Points in one matrix product. Libraries of linear algebra divide larger products among threads,
# which takes longer than the product where other chains run on the same cores.
BLOCK = 512


def fit_mixture(
    points: Floats, point_weights: Floats, initial: MixtureParts, ridge: float, iterations: int
) -> MixtureParts:
    """The parts after so many iterations on points (n, D), whose weights (n,) add to one.

    initial: where to begin. Each covariance is shrunk towards ridge times the identity with the
    force of D + 1 points of average weight: as many as it takes to fix a covariance, so that no
    part can collapse onto a few.
    """
    count, width = points.shape
    # Blocks (B, D, b), filled up with points of weight zero; b numbers lie side by side.
    size = min(count, BLOCK)
    missing = -count % size
    padded = np.pad(points, ((0, missing), (0, 0))).reshape(-1, size, width)
    blocks = np.ascontiguousarray(padded.swapaxes(1, 2))
    block_weights = np.pad(point_weights, (0, missing)).reshape(-1, size)
    parts, shrinkage = initial, (width + 1.0) / count
    for _ in range(iterations):
        responsibility = _responsibilities(blocks, block_weights, parts)
        parts = _maximise(blocks, responsibility, shrinkage, ridge)
    return parts


def _responsibilities(blocks: Floats, block_weights: Floats, parts: MixtureParts) -> Floats:
    """(C, B, b) each point's weight, divided among the parts by their densities there."""
    share, mean, covariance = parts
    inverse = np.linalg.inv(np.linalg.cholesky(covariance))
    # Each part's normalising constant, up to one that all parts share; a share may be zero.
    log_peak = np.log(share + 1e-300) + np.log(np.diagonal(inverse, axis1=1, axis2=2)).sum(axis=1)
    log_densities = np.empty((len(share), *block_weights.shape))
    for c in range(len(share)):
        z = inverse[c] @ (blocks - mean[c][:, None])
        z *= z
        log_densities[c] = log_peak[c] - 0.5 * z.sum(axis=1)
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
