"""What warm-up of the hierarchical sampler adapts: coordinates in which paths are easy.

Every group's path has coordinates of its own, from the moments of its standardised values
z = root^-1 (q - mean). The population's path has those of its log density given z, from the outer
products of the gradient. All moments are sums in the state, so that warm-up can be interrupted.
"""

from __future__ import annotations

import numpy as np

from revealed._types import Floats
from revealed.kernels.group_values import transfer_values
from revealed.kernels.hmc import ADAPTATION, init_dual_averaging
from revealed.samplers.adaptation import WINDOW
from revealed.samplers.base import State

# Names of what a window sums up in the state: z (N, D) and z z' (N, D, D) of every group, the outer
# product of the common path's gradient, and count, sum and squares (3, D) of the log sds.
MOMENTS = tuple(f"{WINDOW}{name}" for name in ("z", "z_outer", "gradient_outer", "log_sd"))


def standardised_values(state: State) -> Floats:
    """(N, D) z = root^-1 (q - mean): each group's value in units of the population."""
    width = len(state["mean"])
    root = np.asarray(np.linalg.cholesky(state["covariance"]), np.float64)
    return transfer_values(state["q"], state["mean"], root, np.zeros(width), np.eye(width))


def accumulate_moments(state: State, gradient: Floats) -> None:
    """Add this iteration to the sums that `adapted_metric` needs."""
    z, log_sd = standardised_values(state), 0.5 * np.log(np.diag(state["covariance"]))
    now = (
        z,
        z[:, :, None] * z[:, None, :],
        np.outer(gradient, gradient),
        np.stack([np.ones_like(log_sd), log_sd, log_sd**2]),
    )
    for name, array in zip(MOMENTS, now, strict=True):
        state[name] = state[name] + array if name in state else array


def adapted_metric(state: State) -> State:
    """The coordinates of all paths from the sums of `accumulate_moments`, with step sizes for them.

    Groups: centres and roots of the covariances of z, shrunk towards the average group's with the
    weight of 2 D draws; with fewer draws nothing is adapted. The population: the covariance of a
    log density's gradient is the inverse of the covariance that a normal law of its curvature has.
    """
    if MOMENTS[0] not in state or state[MOMENTS[3]][0, 0] <= 2.0 * state["mean"].size:
        return {}
    sum_z, sum_outer, sum_gradient, (number, log_sd, squares) = (state[name] for name in MOMENTS)
    count, width = number[0], sum_z.shape[1]
    mean = sum_z / count
    covariance = sum_outer / count - mean[:, :, None] * mean[:, None, :]
    weight, pooled = 2.0 * width, covariance.mean(axis=0) + 1e-9 * np.eye(width)
    scale = np.linalg.cholesky((count * covariance + weight * pooled) / (count + weight))
    # shrunk towards its diagonal with the weight of as many draws as it has rows
    size, information = len(sum_gradient), sum_gradient / count
    information = (count * information + size * np.diag(np.diag(information) + 1e-9)) / (
        count + size
    )
    # in the new coordinates about half a unit is right for a start
    step_size = np.maximum(state["group_adaptation"][:, ADAPTATION.step_size], 0.5)
    return {
        "group_centre": mean,
        "group_scale": scale,
        "group_adaptation": init_dual_averaging(step_size),
        "metric": np.ascontiguousarray(np.linalg.inv(np.linalg.cholesky(information)).T),
        "adaptation": init_dual_averaging(0.5),
        "log_sd_spread": np.sqrt(np.maximum(squares / count - (log_sd / count) ** 2, 0.0)),
    }
