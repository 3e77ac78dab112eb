"""Data augmentation of paths: Kalman's filter, and a path drawn backwards (section 3 of the paper).

At node n the utilities are w_n = X_n q_n + offset_n + N(0, I), and q_n - m = F_n (q_{n-1} - m) +
N(0, W_n), F and W diagonal. Each iteration draws

    w | q, choices      normals with the chosen one the largest     (`utilities.py`)
    theta | w           number by number, by slices of p(w | theta) p(theta), the path summed out
    q | w, theta        filtered forwards, drawn backwards

The filter has means and covariances of q_n given what was seen up to n (Kalman 1960), takes the
utilities one by one, and gives p(w | theta) on its way. Given the next node, q_n is drawn as x +
J (q_{n+1} - y): x from the filter, y the next node that x would have, J the regression of q_n on
it (Carter and Kohn 1994; the correction of a joint draw is Matheron's). Nothing of this is shared
with `block_tridiagonal.py` and `state_space.py`, so that each is a check of the other.
"""

import math
from typing import NamedTuple

import numpy as np

from revealed._types import Bools, Floats, Ints
from revealed.kernels._compile import compiled, compiled_internal
from revealed.kernels.interrupt import stop_requested
from revealed.kernels.path_process import PathProcess, between_at, centre_at, rate_at, start_at
from revealed.kernels.prior_scale import HYPERPRIOR_DF
from revealed.kernels.utilities import draw_utilities


class SliceSettings(NamedTuple):
    """How slices are found (Neal 2003); wrong settings cost time, never correctness.

    width: of the first interval, in logs of sds and rates, and in units of the noise for a centre.
    most_widths: that an interval grows to.
    """

    width: float
    most_widths: int


SLICES = SliceSettings(width=1.5, most_widths=12)


class PathUtilities(NamedTuple):
    """Decisions in the order of their nodes, and how values move.

    rows (P, D): of all actions, in the free coordinates. offset (P,): utilities at a value of zero.
    start (T + 1,), chosen_row (T,): of decisions. node_row (N + 1,): where each node's rows begin.
    start_covariance (D, D): of the first value, or of the centre. unknown (P,): of theta.
    """

    rows: Floats
    offset: Floats
    start: Ints
    chosen_row: Ints
    node_row: Ints
    process: PathProcess
    start_covariance: Floats
    unknown: Bools


class Filtered(NamedTuple):
    """Means (N, D) and covariances (N, D, D) of each node, given what was seen up to it."""

    mean: Floats
    covariance: Floats


class PathAugmentationWorkspace(NamedTuple):
    """Arrays of one chain.

    mu, w (P,): means of utilities, and utilities. rivals: of the largest decision. filtered.
    """

    mu: Floats
    w: Floats
    rivals: Floats
    filtered: Filtered


@compiled_internal
def step_of(process: PathProcess, theta: Floats, n: int, i: int) -> tuple[float, float]:
    """By what coordinate i shrinks on its way to node n, and the variance that is added.

    A step between sessions may have a variance of its own.
    """
    j = process.size[i]
    if process.reverts:
        forgets = math.exp(-math.exp(theta[rate_at(process) + j]) * process.gap[n])
        return forgets, math.exp(2.0 * theta[j]) * (1.0 - forgets * forgets)
    if process.between and process.crosses[n]:
        return 1.0, math.exp(2.0 * theta[between_at(process) + j])
    return 1.0, math.exp(2.0 * theta[j]) * process.gap[n]


@compiled
def filter_path(problem: PathUtilities, theta: Floats, w: Floats, found: Filtered) -> float:
    """Write means and covariances of all nodes; returns log p(w | theta) but for a constant."""
    process, rows = problem.process, problem.rows
    count, width = found.mean.shape
    gain, log_density = np.empty(width), 0.0
    for n in range(count):
        mean, covariance = found.mean[n], found.covariance[n]
        # what is expected of the node before anything is seen of it
        for i in range(width):
            centre = theta[centre_at(process) + i] if process.reverts else 0.0
            if process.first[n]:
                mean[i] = centre
                for k in range(width):
                    covariance[i, k] = 0.0 if process.reverts else problem.start_covariance[i, k]
                    if process.infers_start:
                        covariance[i, k] *= math.exp(2.0 * theta[start_at(process)])
                if process.reverts:
                    covariance[i, i] = math.exp(2.0 * theta[process.size[i]])
            else:
                decay, variance = step_of(process, theta, n, i)
                mean[i] = centre + decay * (found.mean[n - 1, i] - centre)
                for k in range(width):
                    other = step_of(process, theta, n, k)[0]
                    covariance[i, k] = decay * found.covariance[n - 1, i, k] * other
                covariance[i, i] += variance
        # utilities have independent noise of variance one, and are taken one by one
        for p in range(problem.node_row[n], problem.node_row[n + 1]):
            error, variance = w[p] - problem.offset[p], 1.0
            for i in range(width):
                gain[i] = 0.0
                for k in range(width):
                    gain[i] += covariance[i, k] * rows[p, k]
                error -= rows[p, i] * mean[i]
                variance += rows[p, i] * gain[i]
            log_density -= 0.5 * (math.log(variance) + error * error / variance)
            for i in range(width):
                mean[i] += gain[i] * error / variance
                for k in range(i + 1):
                    # one number for both halves: it stays symmetric
                    covariance[i, k] -= gain[i] * gain[k] / variance
                    covariance[k, i] = covariance[i, k]
    return log_density


@compiled_internal
def cholesky(matrix: Floats, root: Floats) -> None:
    """Write the lower root of a covariance; directions that rounding leaves nothing of are zero."""
    for j in range(matrix.shape[0]):
        left = matrix[j, j]
        for k in range(j):
            left -= root[j, k] * root[j, k]
        root[j, j] = math.sqrt(max(left, 0.0))
        for i in range(j + 1, matrix.shape[0]):
            left = matrix[i, j]
            for k in range(j):
                left -= root[i, k] * root[j, k]
            root[i, j] = left / root[j, j] if root[j, j] > 0.0 else 0.0


@compiled_internal
def solve(root: Floats, x: Floats) -> None:
    """Turn x (D,) into (root root')^-1 x.

    In place, forwards and then backwards.
    """
    width = x.size
    for i in range(width):
        for k in range(i):
            x[i] -= root[i, k] * x[k]
        x[i] = x[i] / root[i, i] if root[i, i] > 0.0 else 0.0
    for i in range(width - 1, -1, -1):
        for k in range(i + 1, width):
            x[i] -= root[k, i] * x[k]
        x[i] = x[i] / root[i, i] if root[i, i] > 0.0 else 0.0


@compiled
def draw_path(
    rng: np.random.Generator, process: PathProcess, theta: Floats, seen: Filtered, path: Floats
) -> None:
    """Write a draw of the path (N, D) given what the filter saw, from the last node to the first.

    Those of several paths stand one after the other, and are independent.
    """
    count, width = path.shape
    root, expected = np.zeros((width, width)), np.empty((width, width))
    normals, surprise = np.empty(width), np.empty(width)
    for n in range(count - 1, -1, -1):
        # a draw from what was seen up to this node
        cholesky(seen.covariance[n], root)
        for i in range(width):
            normals[i] = rng.standard_normal()
        for i in range(width):
            path[n, i] = seen.mean[n, i]
            for k in range(i + 1):
                path[n, i] += root[i, k] * normals[k]
        if n + 1 == count or process.first[n + 1]:
            continue
        # where the next node would be after it, against where it is
        for i in range(width):
            centre = theta[centre_at(process) + i] if process.reverts else 0.0
            decay, variance = step_of(process, theta, n + 1, i)
            step = decay * (path[n, i] - centre) + math.sqrt(variance) * rng.standard_normal()
            surprise[i] = path[n + 1, i] - centre - step
            for k in range(width):
                other = step_of(process, theta, n + 1, k)[0]
                expected[i, k] = decay * seen.covariance[n, i, k] * other
            expected[i, i] += variance
        # q_n moves by its regression on the next node: covariance F' (F covariance F' + W)^-1
        cholesky(expected, root)
        solve(root, surprise)
        for k in range(width):
            surprise[k] *= step_of(process, theta, n + 1, k)[0]
        for i in range(width):
            for k in range(width):
                path[n, i] += seen.covariance[n, i, k] * surprise[k]


@compiled_internal
def log_prior_of(process: PathProcess, theta: Floats, p: int) -> float:
    """The log prior density of number p of theta given the others, up to a constant."""
    if p < process.scales.size:
        # half-t of exp(theta), with the factor exp(theta) of a density on the log scale
        ratio = math.exp(theta[p]) / process.scales[p]
        tail = 0.5 * (HYPERPRIOR_DF + 1.0) * math.log(1.0 + ratio**2 / HYPERPRIOR_DF)
        return float(theta[p]) - tail
    # a centre is normal
    at, square = centre_at(process), 0.0
    for i in range(process.size.size):
        for k in range(process.size.size):
            square += theta[at + i] * process.start_precision[i, k] * theta[at + k]
    return -0.5 * square


@compiled
def log_density_of(
    problem: PathUtilities, theta: Floats, p: int, w: Floats, found: Filtered
) -> float:
    """The log of p(w | theta) p(theta), along number p of theta; NaN is never above a slice."""
    prior: float = log_prior_of(problem.process, theta, p)
    return prior + filter_path(problem, theta, w, found)


@compiled
def slice_step(
    rng: np.random.Generator,
    problem: PathUtilities,
    p: int,
    w: Floats,
    theta: Floats,
    found: Filtered,
    now: float,
) -> float:
    """Move number p of theta by a slice of its density, which is `now`; returns what it is then.

    Stepping out, then shrinking towards where it was (Neal 2003). The filter is left at the end.
    """
    was = theta[p]
    level = now - rng.standard_exponential()
    low = was - SLICES.width * rng.random()
    high = low + SLICES.width
    # so many steps to the left and to the right, dealt out at random: else it were not reversible
    left = math.floor(SLICES.most_widths * rng.random())
    right = SLICES.most_widths - 1 - left
    theta[p] = low
    while left > 0 and log_density_of(problem, theta, p, w, found) > level:
        low -= SLICES.width
        left -= 1
        theta[p] = low
    theta[p] = high
    while right > 0 and log_density_of(problem, theta, p, w, found) > level:
        high += SLICES.width
        right -= 1
        theta[p] = high
    while True:
        theta[p] = low + (high - low) * rng.random()
        density = log_density_of(problem, theta, p, w, found)
        if density > level or stop_requested():
            return density
        if theta[p] < was:
            low = theta[p]
        else:
            high = theta[p]
        # rounding alone keeps it from coming back to where it was
        if not high - low > 1e-14 * (1.0 + abs(was)):
            theta[p] = was
            return log_density_of(problem, theta, p, w, found)


@compiled
def augment_paths(
    rng: np.random.Generator,
    problem: PathUtilities,
    work: PathAugmentationWorkspace,
    thin: int,
    theta: Floats,
    path: Floats,
    mode_offset: Floats,
    theta_draws: Floats,
    path_draws: Floats,
    acceptance: Floats,
) -> None:
    """Write draws of theta (n, P) and of paths (n, N, D), and the acceptance of utilities (n,).

    theta, path and mode_offset (T,), where a chain is, are changed in place. Where utilities are
    too large for data augmentation, the draws are NaN from there on.
    """
    process, width = problem.process, path.shape[1]
    for n in range(theta_draws.shape[0]):
        acceptance[n] = 0.0
        for _ in range(thin):
            if stop_requested():
                return
            # utilities given the path
            for node in range(path.shape[0]):
                for p in range(problem.node_row[node], problem.node_row[node + 1]):
                    work.mu[p] = problem.offset[p]
                    for k in range(width):
                        work.mu[p] += problem.rows[p, k] * path[node, k]
            accepted = draw_utilities(
                rng,
                work.mu,
                problem.start,
                problem.chosen_row,
                work.rivals,
                mode_offset,
                work.w,
            )
            if not accepted >= 0.0:
                theta_draws[n:] = np.nan
                path_draws[n:] = np.nan
                return
            acceptance[n] += accepted / thin
            # theta given the utilities, whatever the path; each slice ends with its filter
            known = filter_path(problem, theta, work.w, work.filtered)
            for p in range(theta.size):
                if problem.unknown[p]:
                    before = log_prior_of(process, theta, p)
                    at = slice_step(rng, problem, p, work.w, theta, work.filtered, known + before)
                    known = at - log_prior_of(process, theta, p)
            # and the path given both
            draw_path(rng, process, theta, work.filtered, path)
        theta_draws[n] = theta
        path_draws[n] = path
