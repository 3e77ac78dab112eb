"""The prior of a population, from that of its mean and the scale of the prior of its sds.

The coefficients of a sum-to-zero block share one scale of their sds, so that none of its states is
special; the law itself stands in `kernels/population.py`.
"""

from __future__ import annotations

import numpy as np

from revealed._types import Ints
from revealed.kernels.population import PopulationPrior
from revealed.models.priors import ResolvedPrior, scaled


def population_prior(
    prior: ResolvedPrior, scale: float, own: int = 0, own_scale: float = 1.0
) -> PopulationPrior:
    """The population's prior from that of its mean, and the scale of the prior of its sds.

    own: how many coordinates, the last ones, are of the groups' own noise; own_scale: of the prior
    of their sds.
    """
    groups = scale_groups(prior)
    # coordinates of no block have numbers in their own order, so that the last are the last
    sd_scale = np.full(groups.max() + 1, scale)
    sd_scale[len(sd_scale) - own :] = own_scale
    return PopulationPrior(prior.mean @ prior.basis, prior.precision, sd_scale, groups)


def prior_at_sd(prior: PopulationPrior, sd: float, unscaled: int = 0) -> PopulationPrior:
    """The population's prior, given at an sd of one, with another sd of its mean's prior.

    unscaled: how many coordinates, the last ones, that sd leaves alone.
    """
    return prior._replace(precision=scaled(prior.precision, sd, unscaled))


def scale_groups(resolved_prior: ResolvedPrior) -> Ints:
    """(D,) equal numbers for the coordinates of one sum-to-zero block, others for all others."""
    # (D, K) which coefficients a coordinate touches, (K, L) which of them are in which block
    touches = (resolved_prior.basis.T != 0.0).astype(np.int64)
    inside = (resolved_prior.constant_directions != 0.0).astype(np.int64)
    block = touches @ inside
    # a negative number for each block, a positive one for each other coordinate
    key = np.where(
        block.any(axis=1), -1 - block.argmax(axis=1) if inside.size else 0, np.arange(len(block))
    )
    return np.unique(key, return_inverse=True)[1].astype(np.int64)
