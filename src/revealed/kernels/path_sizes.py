"""Proposals of the sizes of steps: along Hamiltonian paths, and from nowhere in particular.

    paths       leapfrog steps on p(theta) Z(theta), whose slope is Fisher's identity
    anywhere    a multivariate t about the coordinates xi of theta, which the warm-up scaled

Both give the log of what the ratio of acceptance has besides r (`state_space.py`).
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


class MoveLengths(NamedTuple):
    """How long moves are; other lengths cost time, never correctness.

    turn: of a rotation: a quarter of a circle leaves nothing of where it began. size_turn: of a
    path of theta. shortest, longest: what both are multiplied by, at random, so that no path comes
    back to where it began; evenly about one, so that a quarter of a circle is turned on average.
    least_step: of either. most_steps: of a path, which a step size that came out too small must not
    make endless. rotations: in each iteration; one costs a fifth of a path of theta. anywhere: the
    share of moves of theta that begin nowhere in particular; df: of their proposal, a t about the
    coordinates of theta. Logs of sds that may be zero have a long tail below, in which paths go to
    and fro; and such a move costs half of one.
    """

    turn: float
    size_turn: float
    shortest: float
    longest: float
    least_step: float
    most_steps: int
    rotations: int
    anywhere: float
    df: float


LENGTHS = MoveLengths(
    turn=0.5 * math.pi,
    size_turn=1.6,
    shortest=0.8,
    longest=1.2,
    least_step=0.02,
    most_steps=64,
    rotations=2,
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
def propose_theta(
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
    infinity where the path left what can be worked with.
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


@compiled_internal
def log_t(xi: Floats) -> float:
    """The log density of the proposal at coordinates of theta, up to a constant."""
    square = 2.0 * half_square(xi) / LENGTHS.df
    return -0.5 * (LENGTHS.df + xi.size) * math.log1p(square)


@compiled
def propose_anywhere(
    rng: np.random.Generator,
    normal: NormalPaths,
    work: PathWorkspace,
    placed: Placed,
    other: Placed,
    xi: Floats,
) -> float:
    """Write a draw from the t into xi, and its law into `other`, without slopes.

    Returns the log of p Z over the proposal's density there, less what that is where it was; minus
    infinity where there is no law.
    """
    before, theta = placed.log_density[0] - log_t(xi), np.empty(placed.theta.size)
    # a normal over the root of a chi-squared variable
    scale = math.sqrt(LENGTHS.df / (2.0 * rng.standard_gamma(0.5 * LENGTHS.df)))
    for u in range(xi.size):
        xi[u] = scale * rng.standard_normal()
    theta_of(normal, xi, theta)
    if not place_law(normal, work, theta, other):
        return -np.inf
    found: float = other.log_density[0] - log_t(xi) - before
    return found
