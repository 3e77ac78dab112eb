"""How values move: the normal law of paths, and the law of paths that data are seen of.

Node n of a path lies gap_n after the one before it. In the free coordinates, u_n = q_n - centre,

    u_n = decay_n u_{n-1} + N(0, variance_n),

coordinate by coordinate. A random walk has decay 1 and variance sd^2 gap, or between two sessions
an sd of its own, whatever the gap; its first value has the prior of a value. A path that reverts to
its centre has decay exp(-rate gap) and variance sd^2 (1 - decay^2), so that sd is that of all
nodes, the first one too. Paths may be of several components, each with sds of its own.

theta: the logarithms of sds, of sds between sessions, of rates, and of the sd of the first value
where it is inferred; then the centre. Each sd or rate has a half-t prior with four degrees of
freedom, on the log scale with the factor that brings; of one of many groups, a normal law on the
log scale. The first value of a random walk may have a mean, which then is the centre.
"""

import math
from typing import NamedTuple

import numpy as np

from revealed._types import Bools, Floats, Ints
from revealed.kernels._compile import compiled, compiled_internal
from revealed.kernels.prior_scale import HYPERPRIOR_DF

NONE = np.zeros(0)


class PathProcess(NamedTuple):
    """What N nodes and D coordinates of paths are told of their law.

    gap (N,): time since the node before. first (N,): of a path. crosses (N,): whether a new session
    begins. size (D,): which of the J sds moves each coordinate. sizes: J. between: whether there
    are sds between sessions. reverts: whether paths revert to a centre. start_precision (D, D): of
    the first value, or of the centre. infers_start: whether theta has a factor of its sd.
    scales (P,): of the half-t priors of theta's sds and rates; 0 where one is known. component
    (N,): of each node's path, whose sizes are those of the first component that much further on.
    starts: 0, or where first values are independent how many sds theta has for them, one for each
    component, known or not. mean (D,): of the first value of a random walk; empty where it is zero.
    log_mean, log_sd (P,): of the normal prior of theta's sds; empty where priors are half-t.
    """

    gap: Floats
    first: Bools
    crosses: Bools
    size: Ints
    sizes: int
    between: bool
    reverts: bool
    start_precision: Floats
    infers_start: bool
    scales: Floats
    component: Ints
    starts: int = 0
    mean: Floats = NONE
    log_mean: Floats = NONE
    log_sd: Floats = NONE


class PathLaw(NamedTuple):
    """The law of paths at some theta.

    decay, variance (N, D): of each step. diagonal, coupling (N, D): of the precision of paths, but
    for the first values of random walks, whose precision start (D, D) is a matrix. centre (D,).
    """

    decay: Floats
    variance: Floats
    diagonal: Floats
    coupling: Floats
    start: Floats
    centre: Floats


class PathMoments(NamedTuple):
    """Means and covariances of u under a normal law, as `write_path_moments` has them.

    mean, variance, lagged: (N, D). at_first: (D, D).
    """

    mean: Floats
    variance: Floats
    lagged: Floats
    at_first: Floats


def make_path_law(nodes: int, width: int) -> PathLaw:
    """Arrays for a law."""
    line, square = (nodes, width), (width, width)
    return PathLaw(
        np.zeros(line),
        np.ones(line),
        np.zeros(line),
        np.zeros(line),
        np.zeros(square),
        np.zeros(width),
    )


def make_path_moments(nodes: int, width: int) -> PathMoments:
    """Arrays for moments."""
    line = (nodes, width)
    return PathMoments(np.zeros(line), np.zeros(line), np.zeros(line), np.zeros((width, width)))


@compiled_internal
def between_at(process: PathProcess) -> int:
    """Where theta's sds between sessions begin."""
    return process.sizes


@compiled_internal
def rate_at(process: PathProcess) -> int:
    """Where theta's rates begin."""
    return process.sizes * (2 if process.between else 1)


@compiled_internal
def start_at(process: PathProcess) -> int:
    """Where theta has the sd of the first value."""
    return rate_at(process) + (process.sizes if process.reverts else 0)


@compiled_internal
def centre_at(process: PathProcess) -> int:
    """Where theta's centre begins."""
    if process.starts > 0:
        return start_at(process) + process.starts
    return start_at(process) + (1 if process.infers_start else 0)


@compiled_internal
def first_at(process: PathProcess, size: int, node: int) -> int:
    """Where theta has the sd of a path's first value, where it is independent of others.

    Of what reverts it is that of all values.
    """
    own: int = start_at(process) + process.component[node]
    return own if process.starts > 0 else size


@compiled
def write_path_law(process: PathProcess, theta: Floats, law: PathLaw) -> float:
    """Write the law of paths at theta; returns half the log determinant of their precision.

    Up to a constant that does not depend on theta.
    """
    count, width = law.decay.shape
    half_log_det, paths = 0.0, 0
    # an inferred sd of the start multiplies its precision
    scale = math.exp(-2.0 * theta[start_at(process)]) if process.infers_start else 1.0
    own_start = not (process.reverts or process.starts > 0)
    for i in range(width):
        law.centre[i] = theta[centre_at(process) + i] if process.reverts else 0.0
        # every node of a walk is about where the first one is
        if process.mean.size > 0:
            law.centre[i] = process.mean[i]
        for j in range(width):
            law.start[i, j] = scale * process.start_precision[i, j] if own_start else 0.0
    # an exponential for each size, not for each node
    sds = np.empty(process.sizes)
    for j in range(process.sizes):
        sds[j] = math.exp(theta[j])
    for n in range(count):
        paths += 1 if process.first[n] else 0
        for i in range(width):
            # which sd moves this coordinate of this node
            j = process.size[i] + process.component[n]
            sd = sds[j]
            if process.first[n]:
                law.decay[n, i] = 0.0
                # of a random walk the first value has a precision of its own, see above
                log_sd = theta[first_at(process, j, n)]
                independent = process.reverts or process.starts > 0
                sd = math.exp(log_sd)
                law.variance[n, i] = sd * sd if independent else math.inf
                if independent:
                    half_log_det -= log_sd
            elif process.reverts:
                # in units of the time in which what was is forgotten
                elapsed = math.exp(theta[rate_at(process) + j]) * process.gap[n]
                law.decay[n, i] = math.exp(-elapsed)
                law.variance[n, i] = -sd * sd * math.expm1(-2.0 * elapsed)
                half_log_det -= 0.5 * math.log(law.variance[n, i])
            else:
                # a walk forgets nothing
                law.decay[n, i] = 1.0
                log_sd = theta[j]
                if process.crosses[n] and process.between:
                    log_sd = theta[between_at(process) + j]
                    law.variance[n, i] = math.exp(2.0 * log_sd)
                else:
                    law.variance[n, i] = sd * sd * process.gap[n]
                half_log_det -= log_sd
            # (u_n - decay u_{n-1})^2 / variance touches this node, the one before, and both
            precision = 1.0 / law.variance[n, i]
            law.diagonal[n, i] = precision
            law.coupling[n, i] = -law.decay[n, i] * precision
            if not process.first[n]:
                law.diagonal[n - 1, i] += law.decay[n, i] * law.decay[n, i] * precision
    if process.infers_start and not process.reverts:
        # every path has a start of its own
        half_log_det -= paths * width * theta[start_at(process)]
    return half_log_det


@compiled
def log_prior_of_theta(process: PathProcess, theta: Floats, gradient: Floats) -> float:
    """The log prior density of theta, up to a constant; adds its gradient.

    That of known numbers is left out.
    """
    width, total = process.size.size, 0.0
    for p in range(process.scales.size):
        if process.scales[p] == 0.0:
            continue
        if process.log_mean.size > 0:
            z = (theta[p] - process.log_mean[p]) / process.log_sd[p]
            total -= 0.5 * z * z
            gradient[p] -= z / process.log_sd[p]
            continue
        # half-t of exp(theta): theta - (df + 1) / 2 log(1 + exp(2 theta) / (df scale^2))
        # the factor exp(theta) is that of a density on the log scale
        ratio = math.exp(2.0 * theta[p]) / (HYPERPRIOR_DF * process.scales[p] ** 2)
        total += theta[p] - 0.5 * (HYPERPRIOR_DF + 1.0) * math.log1p(ratio)
        gradient[p] += 1.0 - (HYPERPRIOR_DF + 1.0) * ratio / (1.0 + ratio)
    if process.reverts:
        # the centre has the prior of a value
        at, log_scale = centre_at(process), 0.0
        if process.infers_start:
            log_scale = theta[start_at(process)]
        scale, square = math.exp(-2.0 * log_scale), 0.0
        for i in range(width):
            slope = 0.0
            for j in range(width):
                slope += scale * process.start_precision[i, j] * theta[at + j]
            square += slope * theta[at + i]
            gradient[at + i] -= slope
        total -= 0.5 * square + width * log_scale
        if process.infers_start:
            gradient[start_at(process)] += square - width
    return total


@compiled
def add_path_slopes(
    process: PathProcess, theta: Floats, law: PathLaw, moments: PathMoments, gradient: Floats
) -> None:
    """Add the mean slope in theta of the log density of paths, over a normal law of paths.

    By Fisher's identity this is the slope of the log evidence; that in the centre, on which the
    precision does not depend, is left to the caller.
    """
    count, width = law.decay.shape
    mean, variance, lagged = moments.mean, moments.variance, moments.lagged
    paths = 0
    for n in range(count):
        paths += 1 if process.first[n] else 0
        for i in range(width):
            j = process.size[i] + process.component[n]
            if process.first[n]:
                if process.reverts or process.starts > 0:
                    square = variance[n, i] + mean[n, i] ** 2
                    gradient[first_at(process, j, n)] += square / law.variance[n, i] - 1.0
                continue
            decay, before = law.decay[n, i], variance[n - 1, i] + mean[n - 1, i] ** 2
            # second moments: covariance and product of means
            product = lagged[n, i] + mean[n, i] * mean[n - 1, i]
            step = variance[n, i] + mean[n, i] ** 2 - 2.0 * decay * product + decay**2 * before
            # the slope in the log of the step's sd
            slope = step / law.variance[n, i] - 1.0
            if process.reverts:
                gradient[j] += slope
                # decay and variance both depend on the rate
                elapsed = math.exp(theta[rate_at(process) + j]) * process.gap[n]
                in_decay = (product - decay * before) / law.variance[n, i]
                share = decay * decay / -math.expm1(-2.0 * elapsed)
                gradient[rate_at(process) + j] += elapsed * (slope * share - in_decay * decay)
            elif process.crosses[n] and process.between:
                gradient[between_at(process) + j] += slope
            else:
                gradient[j] += slope
    if process.infers_start and not process.reverts:
        square = 0.0
        for i in range(width):
            for k in range(width):
                # the start's quadratic form at its mean second moments
                second = moments.at_first[i, k]
                for n in range(count):
                    if process.first[n]:
                        second += mean[n, i] * mean[n, k]
                square += law.start[i, k] * second
        gradient[start_at(process)] += square - paths * width
