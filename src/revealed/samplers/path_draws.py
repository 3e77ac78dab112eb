"""Draws of theta and of paths by the names of a model's parameters."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from revealed._types import Floats
from revealed.kernels.path_process import PathProcess
from revealed.models.priors import ResolvedPrior
from revealed.samplers.base import Draws


def name_path_draws(
    process: PathProcess,
    places: Mapping[str, int],
    known: Floats,
    prior: ResolvedPrior,
    theta: Floats,
    paths: Floats,
) -> Draws:
    """From theta (n, P) and paths (n, N, D): values (n, N, K), and what is inferred of steps.

    places: where the sds and rates of each name begin in theta. known: (P,), NaN where inferred.
    """
    drawn: Draws = {"value": _values(prior, paths)}
    for name, at in places.items():
        if np.isnan(known[at]):
            drawn[name] = np.exp(theta[:, at : at + process.sizes])
    # after sds and rates theta has the sd of the start, then the centre
    at = process.sizes * len(places)
    if process.infers_start:
        drawn["prior_sd"] = np.exp(theta[:, at])
        at += 1
    if process.reverts:
        drawn["long_run_mean"] = theta[:, at:] @ prior.basis.T + prior.mean
    return drawn


def _values(prior: ResolvedPrior, paths: Floats) -> Floats:
    """Values (n, N, K) of paths (n, N, D): basis u + mean.

    Paths are large: one product of all nodes, not one of each, and none where nothing would change.
    """
    basis, (draws, nodes, width) = prior.basis, paths.shape
    if not np.array_equal(basis, np.eye(len(basis))):
        paths = (paths.reshape(-1, width) @ basis.T).reshape(draws, nodes, len(basis))
    return paths + prior.mean if prior.mean.any() else paths
