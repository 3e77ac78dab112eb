"""Paths of values and the sizes of their steps, sampled together: the path moves with the sizes.

Of the log-likelihood of a path q = centre + u there is a fixed quadratic stand-in,
s(q) = constant + linear'q - q'H q / 2, H positive semi-definite. Prior and stand-in make a normal
law of paths for any theta: precision A(theta) = prior's + H = L L', mean m(theta), evidence
Z(theta). In coordinates

    u = m(theta) + L(theta)^-T z,    noise = centre + root e

the posterior is, exactly and whatever the stand-in is,

    p(theta) Z(theta)  N(z; 0, I) N(e; 0, I)  exp(r),    r = log-likelihood - s + log prior of noise
                                                            + e'e / 2

and r is nearly constant. Two moves: (z, e) by Hamiltonian paths whose normal part is an exact
rotation and whose kicks are slopes of r; and theta by Hamiltonian paths of p(theta) Z(theta), on
which z stays and the whole path follows; r enters their last ratio. m and L depend on theta alone,
which is what makes both exact.
"""

import math
from typing import NamedTuple

import numpy as np

from revealed._types import Bools, Floats
from revealed.kernels._compile import compiled, inlined
from revealed.kernels.block_tridiagonal import (
    PathFactor,
    factorise_path,
    make_path_factor,
    solve_lower,
    solve_upper,
    write_path_moments,
)
from revealed.kernels.path_likelihood import PathData as PathData
from revealed.kernels.path_likelihood import PathWorkspace as PathWorkspace
from revealed.kernels.path_likelihood import evaluate_path as evaluate_path
from revealed.kernels.path_likelihood import make_path_workspace as make_path_workspace
from revealed.kernels.path_process import (
    PathLaw,
    PathProcess,
    add_path_slopes,
    centre_at,
    log_prior_of_theta,
    make_path_law,
    write_path_law,
)
from revealed.kernels.skill_likelihood import SkillData


class PathLimits(NamedTuple):
    """Where moves are given up.

    log_ratio: of an sd or rate to the scale of its prior, either way: smaller ones are nothing
    beside what rounding leaves of a precision, and have a ten-thousandth of the prior's mass.
    centre: of the centre of a path. noise: of a coordinate of the noise, which is standard normal
    before any choice. value: of a path; loops of the likelihood take no infinite numbers.
    """

    log_ratio: float
    centre: float
    noise: float
    value: float


LIMITS = PathLimits(log_ratio=9.0, centre=1e15, noise=30.0, value=1e30)


class NormalPaths(NamedTuple):
    """Prior and stand-in of paths, which make a normal law of them at every theta.

    curvature (N, D, D), linear (N, D), constant: H, and the rest of the stand-in. theta_centre
    (P,), theta_root (P, U): theta from U coordinates, of what is not known of it. Apart from what
    knows the noise, so that loops on it are compiled once for all noises.
    """

    process: PathProcess
    curvature: Floats
    linear: Floats
    constant: float
    theta_centre: Floats
    theta_root: Floats


class PathTarget(NamedTuple):
    """What the posterior is made of.

    noise_centre (E,), noise_root (E, E): coordinates of the noise from e.
    """

    data: PathData | SkillData
    normal: NormalPaths
    noise_centre: Floats
    noise_root: Floats


class Placed(NamedTuple):
    """The normal law of paths at some theta: law, factor of A, and mean (N, D) of u.

    theta (P,). log_density (2,): of theta, p Z, in logs; then log Z. gradient (P,): of the first.
    """

    theta: Floats
    law: PathLaw
    factor: PathFactor
    mean: Floats
    log_density: Floats
    gradient: Floats


class PathPoint(NamedTuple):
    """Where a path is: q (N, D), coordinates of the noise (E,), r (1,), and its slopes in both."""

    value: Floats
    noise: Floats
    r: Floats
    slope: Floats
    noise_slope: Floats


def make_placed(nodes: int, width: int, size: int) -> Placed:
    """Arrays for the law at one theta of so many numbers.

    `place_law` fills them.
    """
    return Placed(
        np.zeros(size),
        make_path_law(nodes, width),
        make_path_factor(nodes, width),
        np.zeros((nodes, width)),
        np.zeros(2),
        np.zeros(size),
    )


def make_point(nodes: int, width: int, coordinates: int) -> PathPoint:
    """Arrays for one path.

    `place_path` fills them; coordinates: of the noise.
    """
    line = (nodes, width)
    return PathPoint(
        np.zeros(line),
        np.zeros(coordinates),
        np.zeros(1),
        np.zeros(line),
        np.zeros(coordinates),
    )


@compiled
def is_within(value: Floats, limit: float) -> bool:
    """Whether all numbers of a path (N, D) are smaller than a limit, and none is NaN."""
    for n in range(value.shape[0]):
        for i in range(value.shape[1]):
            if not abs(value[n, i]) < limit:
                return False
    return True


@compiled
def subtract_stand_in(normal: NormalPaths, point: PathPoint) -> float:
    """The stand-in at a path; its slope is taken from that of the log-likelihood."""
    stand_in, width = normal.constant, point.value.shape[1]
    for n in range(point.value.shape[0]):
        for i in range(width):
            total = 0.0
            for j in range(width):
                total += normal.curvature[n, i, j] * point.value[n, j]
            # the quadratic, and the difference of both slopes
            stand_in += point.value[n, i] * (normal.linear[n, i] - 0.5 * total)
            point.slope[n, i] += total - normal.linear[n, i]
    return stand_in


@inlined
def write_residual(target: PathTarget, work: PathWorkspace, e: Floats, point: PathPoint) -> None:
    """Write r and its slopes at a path, where the value is written already.

    Beyond `LIMITS` r is minus infinity, and slopes are not written.
    """
    coordinates, square = point.noise.size, 0.0
    point.r[0] = -np.inf
    for i in range(coordinates):
        total = target.noise_centre[i]
        for j in range(coordinates):
            total += target.noise_root[i, j] * e[j]
        point.noise[i] = total
        square += e[i] * e[i] - total * total
        # written so that a NaN is outside
        if not abs(total) < LIMITS.noise:
            return
    if not is_within(point.value, LIMITS.value):
        return
    found = evaluate_path(
        target.data, work, point.value, point.noise, point.slope, point.noise_slope
    )
    for i in range(coordinates):
        point.noise_slope[i] -= point.noise[i]
    # the noise is standard normal: log prior + e'e / 2 = (e'e - noise'noise) / 2
    point.r[0] = found - subtract_stand_in(target.normal, point) + 0.5 * square


@compiled
def place_law(normal: NormalPaths, work: PathWorkspace, theta: Floats, placed: Placed) -> bool:
    """Write the normal law of paths at theta; returns whether there is one."""
    process, law = normal.process, placed.law
    # numbers far out would overflow further down: there is no law there
    placed.theta[:] = theta
    for p in range(theta.size):
        if p < process.scales.size:
            scale = process.scales[p]
            if scale > 0.0 and not abs(theta[p] - math.log(scale)) < LIMITS.log_ratio:
                return False
        elif not abs(theta[p]) < LIMITS.centre:
            return False
    # log Z = constant + log |prior precision| / 2 - log |A| / 2 + |L^-1 right|^2 / 2
    log_z = normal.constant + write_path_law(process, theta, law)
    log_det = factorise_path(
        normal.curvature, law.diagonal, law.coupling, law.start, process.first, placed.factor
    )
    # rounding left A without a factor
    if math.isnan(log_det):
        return False
    # the stand-in about the centre: linear - H centre, and what that leaves of the constant
    count, width = placed.mean.shape
    if process.reverts or process.mean.size > 0:
        for n in range(count):
            for i in range(width):
                total = 0.0
                for j in range(width):
                    total += normal.curvature[n, i, j] * law.centre[j]
                work.right[n, i] = normal.linear[n, i] - total
                log_z += law.centre[i] * (normal.linear[n, i] - 0.5 * total)
    else:
        work.right[:] = normal.linear
    # mean = A^-1 right, by way of L^-1 right, whose square is in log Z
    solve_lower(placed.factor, process.first, work.right, work.whitened)
    for n in range(count):
        for i in range(width):
            log_z += 0.5 * work.whitened[n, i] * work.whitened[n, i]
    solve_upper(placed.factor, process.first, work.whitened, placed.mean)
    placed.log_density[1] = log_z - 0.5 * log_det
    placed.gradient[:] = 0.0
    prior = log_prior_of_theta(process, theta, placed.gradient)
    placed.log_density[0] = prior + placed.log_density[1]
    return not math.isnan(placed.log_density[0])


@compiled
def add_evidence_slope(normal: NormalPaths, work: PathWorkspace, placed: Placed) -> None:
    """Add the slope of log Z in theta to that of the prior; once after `place_law`."""
    process, moments, law = normal.process, work.moments, placed.law
    write_path_moments(
        placed.factor, process.first, moments.variance, moments.lagged, moments.at_first
    )
    # Fisher's identity needs mean and covariances of the path under this law
    moments.mean[:] = placed.mean
    add_path_slopes(process, placed.theta, law, moments, placed.gradient)
    if process.reverts:
        count, width = placed.mean.shape
        # the centre moves every node: its slope is the sum of linear - H q at the mean
        at = centre_at(process)
        for n in range(count):
            for i in range(width):
                total = normal.linear[n, i]
                for j in range(width):
                    total -= normal.curvature[n, i, j] * (law.centre[j] + placed.mean[n, j])
                placed.gradient[at + i] += total


@compiled
def write_value(placed: Placed, first: Bools, z: Floats, value: Floats) -> None:
    """Write the path (N, D) of coordinates z at a theta.

    q = centre + mean + L^-T z, which has the covariance A^-1 where z is standard normal.
    """
    solve_upper(placed.factor, first, z, value)
    for n in range(z.shape[0]):
        for i in range(z.shape[1]):
            value[n, i] += placed.law.centre[i] + placed.mean[n, i]


@inlined
def place_path(
    target: PathTarget, work: PathWorkspace, placed: Placed, z: Floats, e: Floats, point: PathPoint
) -> None:
    """Write the path of coordinates z and e at a theta, with r and its slopes."""
    write_value(placed, target.normal.process.first, z, point.value)
    write_residual(target, work, e, point)
