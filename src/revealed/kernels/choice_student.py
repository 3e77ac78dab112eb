"""The likelihood of all decisions under Student noise, by the rule of samplers (`student.py`)."""

import math

import numpy as np

from revealed._types import Floats, Ints
from revealed.kernels._compile import compiled, compiled_internal
from revealed.kernels.choice_fast import ChoiceWorkspace, RivalIndex
from revealed.kernels.coordinate_table import read_table
from revealed.kernels.noise import NoiseArguments
from revealed.kernels.student import (
    EXACT_NODES,
    FAST_NODES,
    integrate_scales,
    scale_density,
    scale_workspace,
)


@compiled_internal
def log_likelihood(
    noise: NoiseArguments,
    utility_gap: Floats,
    rival_index: RivalIndex,
    workspace: ChoiceWorkspace,
    floor: float,
    slope: Floats,
) -> float:
    """As `choice_fast.log_likelihood`, under Student noise.

    Where df is not known, its coordinate comes behind the gaps of the rivals.
    """
    start, multiplicity, weight = rival_index
    rivals, with_slopes = multiplicity.size, slope.size > 0
    unknown, slope_of_log = noise.table.shape[1] > 0, 0.0
    if unknown:
        log_df, slope_of_log, _ = read_table(noise.table, utility_gap[rivals])
        density = scale_density(math.exp(log_df))
    else:
        density = scale_density(noise.parameters[0])
    work, none = scale_workspace(workspace.gaps.size), np.empty((0, 0))
    result, by_log_df = 0.0, 0.0
    for t in range(weight.size):
        low, high = start[t], start[t + 1]
        if low == high:
            continue
        own = slope[low:high] if with_slopes else slope[:0]
        log_p, score = integrate_scales(
            density,
            FAST_NODES,
            utility_gap[low:high],
            multiplicity[low:high],
            work,
            workspace,
            own,
            none,
        )
        result += weight[t] * log_p
        by_log_df += weight[t] * score
        # the terms that follow are not positive
        if result < floor:
            return -np.inf
        for j in range(own.size):
            own[j] *= weight[t]
    # by the chain rule from log df to its coordinate
    if unknown and with_slopes:
        slope[rivals] = slope_of_log * by_log_df
    return result


@compiled
def write_df_slopes(df: float, mu: Floats, start: Ints, chosen_row: Ints, out: Floats) -> None:
    """Write the derivative in log df of the log probability of each choice into out (T,).

    mu: (P,) rows @ v. By the exact rule.
    """
    density, most = scale_density(df), 0
    for t in range(chosen_row.size):
        most = max(most, start[t + 1] - start[t])
    work, gaps, ones = scale_workspace(most), np.empty(most), np.ones(most)
    no_slopes, no_hessian = np.empty(0), np.empty((0, 0))
    for t in range(chosen_row.size):
        count = 0
        for j in range(start[t], start[t + 1]):
            if j != chosen_row[t]:
                gaps[count] = mu[j] - mu[chosen_row[t]]
                count += 1
        out[t] = 0.0
        if count > 0:
            _, out[t] = integrate_scales(
                density,
                EXACT_NODES,
                gaps[:count],
                ones[:count],
                work,
                None,
                no_slopes,
                no_hessian,
            )


@compiled
def log_probabilities_of_draws(
    df: Floats, gaps: Floats, workspace: ChoiceWorkspace, out: Floats
) -> None:
    """Write log P of one decision under each of N draws into out (N,), by the rule of samplers.

    df: (N,). gaps: (N, n) of its rivals.
    """
    work, ones = scale_workspace(gaps.shape[1]), np.ones(gaps.shape[1])
    no_slopes, no_hessian = np.empty(0), np.empty((0, 0))
    for s in range(df.size):
        out[s], _ = integrate_scales(
            scale_density(df[s]),
            FAST_NODES,
            gaps[s],
            ones,
            work,
            workspace,
            no_slopes,
            no_hessian,
        )
