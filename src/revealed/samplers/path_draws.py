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
    drawn: Draws = {"value": paths @ prior.basis.T + prior.mean}
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
