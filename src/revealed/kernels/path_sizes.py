"""Proposals of the sizes of steps: along Hamiltonian paths, and from nowhere in particular.

    paths       a few Hamiltonian paths on p(theta) Y(theta), Y the evidence of paths on fewer
                nodes, whose slope is Fisher's identity. Each is accepted or not by p Y, so that
                together they are reversible with respect to it, and the whole is a proposal
                whose density p Y takes out of the ratio (Liu 2001, surrogate transitions)
    anywhere    a multivariate t about the coordinates xi of theta, which the warm-up scaled

Both give the log of what the ratio of acceptance has besides p Z exp(r) (`state_space.py`).
"""

import math
from typing import NamedTuple

import numpy as np

from revealed._types import Floats
from revealed.kernels._compile import compiled, compiled_internal
from revealed.kernels.interrupt import stop_requested
from revealed.kernels.state_space import (
    NormalPaths,
    PathWorkspace,
    Placed,
    add_evidence_slope,
    place_law,
)


class CoarsePaths(NamedTuple):
    """Paths on fewer nodes, whose evidence Y moves of sizes follow.

    work, placed: what a chain writes to, two laws of such paths.
    """

    normal: NormalPaths
    work: PathWorkspace
    placed: tuple[Placed, Placed]


class MoveLengths(NamedTuple):
    """How long moves are; other lengths cost time, never correctness.

    turn: of a rotation: a quarter of a circle leaves nothing of where it began, and somewhat more
    leads to the other side of the mean, so that means of draws have smaller errors. size_turn: of a
    path of theta, for the same reason. shortest, longest: what both are multiplied by, at random,
    so that no path comes back to where it began. least_step: of either. most_steps: of a path,
    which a step size that came out too small must not make endless. rotations: in each iteration.
    size_paths: of theta in a proposal, at most; their number is random, its log evenly, as where r
    varies much a short way is more likely to be accepted. anywhere: the share of moves of a single
    size that begin nowhere in particular; of several it is divided by their number, as fewer of
    them are accepted; df: of their proposal, a t about the coordinates of theta. Logs of sds that
    may be zero have a long tail below, in which paths go to and fro.
    """

    turn: float
    size_turn: float
    shortest: float
    longest: float
    least_step: float
    most_steps: int
    rotations: int
    size_paths: int
    anywhere: float
    df: float


LENGTHS = MoveLengths(
    turn=0.6 * math.pi,
    size_turn=2.0,
    shortest=0.8,
    longest=1.2,
    least_step=0.02,
    most_steps=64,
    rotations=1,
    size_paths=12,
    anywhere=0.5,
    df=5.0,
)


@compiled_internal
def half_square(x: Floats) -> float:
    """Half the sum of squares."""
    total = 0.0
    for i in range(x.size):
        total += x[i] * x[i]
    return 0.5 * total


@compiled
def acceptance(log_ratio: float) -> float:
    """The probability with which a proposal is accepted; a NaN is refused."""
    if math.isnan(log_ratio):
        return 0.0
    return math.exp(min(0.0, log_ratio))


@compiled
def whitened_gradient(normal: NormalPaths, placed: Placed, out: Floats) -> None:
    """Write the slope of log p Z in the coordinates of theta.

    By the chain rule: the root's transpose times the slope in theta.
    """
    for u in range(out.size):
        out[u] = 0.0
        for p in range(placed.theta.size):
            out[u] += normal.theta_root[p, u] * placed.gradient[p]


@compiled
def theta_of(normal: NormalPaths, xi: Floats, theta: Floats) -> None:
    """Write theta from its coordinates.

    theta = theta_centre + theta_root xi; what is known has a row of zeros, and stays.
    """
    for p in range(theta.size):
        theta[p] = normal.theta_centre[p]
        for u in range(xi.size):
            theta[p] += normal.theta_root[p, u] * xi[u]


@compiled
def copy_placed(source: Placed, to: Placed) -> None:
    """Write the law at one theta over that at another."""
    to.theta[:] = source.theta
    to.law.decay[:] = source.law.decay
    to.law.variance[:] = source.law.variance
    to.law.diagonal[:] = source.law.diagonal
    to.law.coupling[:] = source.law.coupling
    to.law.start[:] = source.law.start
    to.law.centre[:] = source.law.centre
    to.factor.inverse[:] = source.factor.inverse
    to.factor.below[:] = source.factor.below
    to.mean[:] = source.mean
    to.log_density[:] = source.log_density
    to.gradient[:] = source.gradient


@compiled
def follow_path(
    rng: np.random.Generator,
    normal: NormalPaths,
    work: PathWorkspace,
    placed: Placed,
    other: Placed,
    xi: Floats,
    step_size: float,
) -> float:
    """Follow a Hamiltonian path of p Z from `placed` to `other`, moving xi in place.

    Returns the log of p Z times that of the momentum at its end, over that at its beginning; minus
    infinity where the path left what can be worked with. Of `placed` it reads density and slope.
    """
    size = xi.size
    momentum, slope, theta = np.empty(size), np.empty(size), np.empty(placed.theta.size)
    for u in range(size):
        momentum[u] = rng.standard_normal()
    # here larger is more probable: the log of p Z and of the momentum
    before = placed.log_density[0] - half_square(momentum)
    length = LENGTHS.size_turn * rng.uniform(LENGTHS.shortest, LENGTHS.longest)
    steps = max(1, math.ceil(min(length / step_size, LENGTHS.most_steps)))
    # steps of one length that add up to the whole
    step = length / steps
    whitened_gradient(normal, placed, slope)
    for _ in range(steps):
        for u in range(size):
            momentum[u] += 0.5 * step * slope[u]
            xi[u] += step * momentum[u]
        # the normal law of paths is another one at every theta: factor and mean anew
        theta_of(normal, xi, theta)
        if not place_law(normal, work, theta, other) or stop_requested():
            return -np.inf
        # only now is the slope worth its pass over all nodes
        add_evidence_slope(normal, work, other)
        whitened_gradient(normal, other, slope)
        for u in range(size):
            momentum[u] += 0.5 * step * slope[u]
    found: float = other.log_density[0] - half_square(momentum) - before
    return found


@compiled
def propose_theta(
    rng: np.random.Generator, coarse: CoarsePaths, xi: Floats, step_size: float
) -> tuple[float, float]:
    """Move xi in place by some Hamiltonian paths of p Y, each accepted or not.

    Returns the log of p Y where they began, less that where they ended, and their mean acceptance.
    Minus infinity and zero where there is no law to begin with.
    """
    normal, work = coarse.normal, coarse.work
    placed, other = coarse.placed
    theta, proposed = np.empty(placed.theta.size), np.empty(xi.size)
    theta_of(normal, xi, theta)
    if not place_law(normal, work, theta, placed):
        return -np.inf, 0.0
    add_evidence_slope(normal, work, placed)
    before, accepted = placed.log_density[0], 0.0
    # a number that does not depend on where the chain is
    paths = int((LENGTHS.size_paths + 1.0) ** rng.random())
    for _ in range(paths):
        proposed[:] = xi
        probability = acceptance(follow_path(rng, normal, work, placed, other, proposed, step_size))
        accepted += probability / paths
        if rng.random() < probability:
            xi[:] = proposed
            # all that the next path reads of where it begins
            placed.log_density[:] = other.log_density
            placed.gradient[:] = other.gradient
    ratio: float = before - placed.log_density[0]
    return ratio, accepted


@compiled_internal
def log_t(xi: Floats) -> float:
    """The log density of the proposal at coordinates of theta, up to a constant."""
    square = 2.0 * half_square(xi) / LENGTHS.df
    return -0.5 * (LENGTHS.df + xi.size) * math.log1p(square)


@compiled
def propose_anywhere(rng: np.random.Generator, xi: Floats) -> float:
    """Write a draw from the t into xi.

    Returns the log of the proposal's density where xi was, less that where it is now.
    """
    before = log_t(xi)
    # a normal over the root of a chi-squared variable
    scale = math.sqrt(LENGTHS.df / (2.0 * rng.standard_gamma(0.5 * LENGTHS.df)))
    for u in range(xi.size):
        xi[u] = scale * rng.standard_normal()
    found: float = before - log_t(xi)
    return found
