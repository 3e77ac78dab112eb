"""The value given the noise: the other half of interweaving (Yu and Meng 2011, ASIS).

Data augmentation draws v given the utilities w, and then moves by no more than the noise. Given
the noise e = w - X v instead, the choices only say that v lies in a polyhedron,

    gap_j = w_chosen - w_j >= 0   with   w = X v + e,

and v may cross it in one step. Along a direction d, v + s d keeps gap_j + s slope_j >= 0, where
slope_j = (row_chosen - row_j) d: one pass over the rows finds the interval for s, and s is drawn
from the prior along d cut to that interval.
"""

from typing import NamedTuple

import numpy as np

from revealed._types import Floats, Ints
from revealed.kernels._compile import compiled_internal, compiled_within
from revealed.kernels.normal import draw_between
from revealed.kernels.vectors import dot, multiply_add

# Stands for infinity in bounds of s: the loops below are compiled for finite numbers only.
UNBOUNDED = 1e300


class InterweavingDirections(NamedTuple):
    """Directions in which the value moves: the columns of F (K, D), and random mixtures of them.

    columns: (D, K) F'. precision_times_columns: (D, K) (prior precision F)', zero for a flat prior.
    prior_mean: (K,). margin_slopes: (D, P), in row r (row_chosen - row_j) F[:, r].
    n_random: how many random mixtures of the directions are tried in each iteration.
    """

    columns: Floats
    precision_times_columns: Floats
    prior_mean: Floats
    margin_slopes: Floats
    n_random: int


class InterweavingWorkspace(NamedTuple):
    """Arrays for one random direction, and the utility gaps.

    weights: (D,) of the mixture. direction, precision_times_direction: (K,).
    margin_slope, utility_gap: (P,).
    """

    weights: Floats
    direction: Floats
    precision_times_direction: Floats
    margin_slope: Floats
    utility_gap: Floats


@compiled_within
def _feasible_interval(margin_slope: Floats, gap: Floats) -> tuple[float, float]:
    """The smallest and largest s for which gap + s margin_slope stays non-negative.

    Both arrays are (P,). Rows of chosen actions have slope zero and do not bound s.
    """
    low, high = -UNBOUNDED, UNBOUNDED
    for p in range(gap.size):
        # Written without branches, so that it is vectorised: a row bounds s on one side only.
        h = margin_slope[p]
        edge = -gap[p] / h if h != 0.0 else 0.0
        low = max(low, edge if h > 0.0 else -UNBOUNDED)
        high = min(high, edge if h < 0.0 else UNBOUNDED)
    return low, high


@compiled_within
def _combine_rows(weights: Floats, rows: Floats, out: Floats) -> None:
    """Write weights (D,) @ rows (D, P) into out (P,).

    Row by row, so that memory is read in order.
    """
    for p in range(out.size):
        out[p] = weights[0] * rows[0, p]
    for r in range(1, weights.size):
        weight = weights[r]
        for p in range(out.size):
            out[p] = multiply_add(weight, rows[r, p], out[p])


@compiled_internal
def _move_in_direction(
    rng: np.random.Generator,
    direction: Floats,
    precision_times_direction: Floats,
    prior_precision: float,
    margin_slope: Floats,
    prior_mean: Floats,
    v: Floats,
    gap: Floats,
) -> None:
    """Draw the step s in one direction, and move v (K,) and the gaps (P,) with it.

    In this direction the prior is a normal with precision prior_precision times d' Q d, Q being
    the precision behind `precision_times_direction`; where that is zero, s is uniform.
    """
    low, high = _feasible_interval(margin_slope, gap)
    precision = dot(direction, precision_times_direction)
    # s ~ N(mean, sd^2) cut to the interval; uniform there under a flat prior.
    if precision > 0.0:
        mean = (
            -(dot(precision_times_direction, v) - dot(precision_times_direction, prior_mean))
            / precision
        )
        sd = 1.0 / np.sqrt(prior_precision * precision)
        s = mean + sd * draw_between(rng, (low - mean) / sd, (high - mean) / sd)
    else:
        s = low + (high - low) * rng.random()
    # Rounding must not carry s across the edge: a gap below zero would contradict a choice.
    s = min(max(s, low), high)
    for k in range(v.size):
        v[k] += s * direction[k]
    for p in range(gap.size):
        gap[p] = max(gap[p] + s * margin_slope[p], 0.0)


@compiled_internal
def interweave(
    rng: np.random.Generator,
    directions: InterweavingDirections,
    start: Ints,
    chosen_row: Ints,
    workspace: InterweavingWorkspace,
    prior_precision: float,
    v: Floats,
    w: Floats,
) -> None:
    """Move v (K,) given the noise behind the utilities w (P,), in every direction in turn.

    The utilities no longer belong to v afterwards: draw them afresh. `prior_precision` multiplies
    the precision that `directions` holds; it is one where the prior scale is given.
    """
    weights, direction, precision_times_direction, margin_slope, gap = workspace
    # By how much the chosen utility is ahead: never negative, and zero for itself.
    for t in range(chosen_row.size):
        best = w[chosen_row[t]]
        for j in range(start[t], start[t + 1]):
            gap[j] = best - w[j]
    # The columns of F, chosen so that the posterior is about uncorrelated in them.
    for r in range(directions.columns.shape[0]):
        _move_in_direction(
            rng,
            directions.columns[r],
            directions.precision_times_columns[r],
            prior_precision,
            directions.margin_slopes[r],
            directions.prior_mean,
            v,
            gap,
        )
    # Random mixtures of them, for polyhedra that are long in none of the columns' directions.
    for _ in range(directions.n_random):
        for r in range(weights.size):
            weights[r] = rng.standard_normal()
        _combine_rows(weights, directions.columns, direction)
        _combine_rows(weights, directions.precision_times_columns, precision_times_direction)
        _combine_rows(weights, directions.margin_slopes, margin_slope)
        _move_in_direction(
            rng,
            direction,
            precision_times_direction,
            prior_precision,
            margin_slope,
            directions.prior_mean,
            v,
            gap,
        )
