"""Hamiltonian paths of skills and the sizes of their steps together.

z, e and xi (`state_space_moves.py`) turn on a circle, which is exact for a standard normal law of
all of them, with kicks by the slopes of what is left of the log posterior,

    log p(theta) Z(theta) + xi'xi / 2 + r.

While z stays, the path follows theta, and r follows the path. With A = L L', b = linear - H centre,

    v = centre + x,    x = L^-T (y + z),    y = L^-1 b,
    dv = -A^-1 dL y - L^-T dL'x,

so that with slope g of r in v, h = L^-1 g and k = L^-T h the slope of r in the entries of L is

    dr / dL_ij = -(k_i y_j + x_i h_j),

and from L it goes back to A by reverse differentiation of the Cholesky factor (Smith 1995), here
bidiagonal: linear in the number of nodes. A quadratic form in the precision of paths has a slope in
theta that is linear in its second moments, so that r's are added to those of log Z.
"""

import math

import numpy as np

from revealed._types import Floats
from revealed.kernels._compile import compiled, inlined
from revealed.kernels.block_tridiagonal import solve_upper, write_path_moments
from revealed.kernels.interrupt import stop_requested
from revealed.kernels.path_process import add_path_slopes, centre_at, log_prior_of_theta
from revealed.kernels.path_sizes import LENGTHS, acceptance, copy_placed, half_square, theta_of
from revealed.kernels.state_space import (
    NormalPaths,
    PathPoint,
    PathTarget,
    PathWorkspace,
    Placed,
    place_law,
    place_path,
)
from revealed.kernels.state_space_moves import PathState, copy_point, kick, rotate


@compiled
def add_factor_moments(normal: NormalPaths, work: PathWorkspace, placed: Placed, x: Floats) -> None:
    """Add to second moments in the workspace what r's slope in the precision is of them.

    x (N, 1): the path less its centre. work.whitened has h, and work.right k.
    """
    process, moments = normal.process, work.moments
    inverse, below, mean = placed.factor.inverse, placed.factor.below, placed.mean
    h, k, by_diagonal = work.whitened, work.right, 0.0
    y_next = 0.0
    # from the last node to the first, as the factor was made from the first to the last
    for n in range(x.shape[0] - 1, -1, -1):
        share = inverse[n, 0, 0]
        # y = L' mean
        y = mean[n, 0] / share + y_next
        first = process.first[n]
        y_next = 0.0 if first else below[n, 0, 0] * mean[n, 0]
        # dr / dL_nn, with what came back from the node behind
        by_diagonal -= k[n, 0] * y + x[n, 0] * h[n, 0]
        # A_nn = L_nn^2 + B_n^2; a second moment S has the slope -S dA / 2
        moments.variance[n, 0] -= by_diagonal * share
        if first:
            by_diagonal = 0.0
            continue
        before = inverse[n - 1, 0, 0]
        y_before = mean[n - 1, 0] / before + y_next
        by_below = -(k[n, 0] * y_before + x[n, 0] * h[n - 1, 0])
        by_below -= by_diagonal * below[n, 0, 0] * share
        # B_n = coupling_n / L_n-1; the coupling stands in A twice
        moments.lagged[n, 0] -= by_below * before
        by_diagonal = -by_below * below[n, 0, 0] * before


@compiled
def write_theta_slope(
    normal: NormalPaths, work: PathWorkspace, placed: Placed, point: PathPoint, slope: Floats
) -> None:
    """Write the slope (P,) of log p Z + r in theta, z staying; `kick` has written work.whitened."""
    process, moments, law = normal.process, work.moments, placed.law
    solve_upper(placed.factor, process.first, work.whitened, work.right)
    write_path_moments(
        placed.factor, process.first, moments.variance, moments.lagged, moments.at_first
    )
    add_factor_moments(normal, work, placed, point.value - law.centre)
    moments.mean[:] = placed.mean
    slope[:] = 0.0
    log_prior_of_theta(process, placed.theta, slope)
    add_path_slopes(process, placed.theta, law, moments, slope)
    if process.reverts:
        # the centre moves every node, and b
        total = 0.0
        for n in range(placed.mean.shape[0]):
            curvature = normal.curvature[n, 0, 0]
            total += normal.linear[n, 0] - curvature * (law.centre[0] + placed.mean[n, 0])
            total += point.slope[n, 0] - curvature * work.right[n, 0]
        slope[centre_at(process)] += total


@compiled
def kick_all(
    normal: NormalPaths,
    noise_root: Floats,
    work: PathWorkspace,
    placed: Placed,
    point: PathPoint,
    size: float,
    momentum: Floats,
    noise_momentum: Floats,
    size_momentum: Floats,
    e: Floats,
    xi: Floats,
    slope: Floats,
) -> None:
    """Move all momenta by slopes, times size; slope (P,) is written to."""
    kick(
        normal.process.first,
        noise_root,
        work.whitened,
        placed,
        point,
        size,
        momentum,
        noise_momentum,
        e,
    )
    # sizes that are known stay
    if xi.size == 0:
        return
    write_theta_slope(normal, work, placed, point, slope)
    for u in range(xi.size):
        total = xi[u]
        for p in range(slope.size):
            total += normal.theta_root[p, u] * slope[p]
        size_momentum[u] += size * total


@compiled
def draw_momenta(rng: np.random.Generator, momentum: Floats) -> None:
    """Write standard normal numbers (n,)."""
    for i in range(momentum.size):
        momentum[i] = rng.standard_normal()


@inlined
def joint_move(
    rng: np.random.Generator,
    target: PathTarget,
    work: PathWorkspace,
    placed: Placed,
    other: Placed,
    state: PathState,
    point: PathPoint,
    proposed: PathPoint,
    step_size: float,
) -> tuple[float, int]:
    """Move path, noise and sizes by one Hamiltonian path.

    Returns the acceptance probability, and how many kicks; other and proposed are written to.
    """
    normal, noise_root = target.normal, target.noise_root
    z, e, xi = state.z.copy(), state.e.copy(), state.xi.copy()
    theta, slope = np.empty(placed.theta.size), np.empty(placed.theta.size)
    momentum, noise_momentum, size_momentum = (
        np.empty(z.shape),
        np.empty(e.size),
        np.empty(xi.size),
    )
    draw_momenta(rng, momentum.ravel())
    draw_momenta(rng, noise_momentum)
    draw_momenta(rng, size_momentum)
    # of random length, so that no number comes back to where it was every time
    turn = LENGTHS.turn * rng.uniform(LENGTHS.shortest, LENGTHS.longest)
    kicks = max(1, math.ceil(min(turn / step_size, LENGTHS.most_steps)))
    # drawn in any case, so that a path that ends early takes as many random numbers
    accepts = rng.random()
    angle = turn / kicks
    cosine, sine = math.cos(angle), math.sin(angle)
    # a rotation keeps the normal part: minus the log of the rest of the posterior, and that part
    before = half_square(momentum.ravel()) + half_square(z.ravel()) - point.r[0]
    before += half_square(noise_momentum) + half_square(e)
    before += half_square(size_momentum) - placed.log_density[0]
    # where sizes are known, so is the law of paths
    if xi.size == 0:
        copy_placed(placed, other)
    kick_all(
        normal,
        noise_root,
        work,
        placed,
        point,
        0.5 * angle,
        momentum,
        noise_momentum,
        size_momentum,
        e,
        xi,
        slope,
    )
    for k in range(kicks):
        rotate(z.ravel(), momentum.ravel(), cosine, sine)
        rotate(e, noise_momentum, cosine, sine)
        rotate(xi, size_momentum, cosine, sine)
        # where there is no law of paths, or a path left what can be worked with, it ends
        if xi.size > 0:
            theta_of(normal, xi, theta)
            if not place_law(normal, work, theta, other):
                return 0.0, kicks
        place_path(target, work, other, z, e, proposed)
        if not proposed.r[0] > -np.inf:
            return 0.0, kicks
        # two halves, that of this turn and that of the next, are one
        kick_all(
            normal,
            noise_root,
            work,
            other,
            proposed,
            angle if k + 1 < kicks else 0.5 * angle,
            momentum,
            noise_momentum,
            size_momentum,
            e,
            xi,
            slope,
        )
        if stop_requested():
            return 0.0, kicks
    after = half_square(momentum.ravel()) + half_square(z.ravel()) - proposed.r[0]
    after += half_square(noise_momentum) + half_square(e)
    after += half_square(size_momentum) - other.log_density[0]
    probability = acceptance(before - after)
    if accepts < probability:
        state.z[:] = z
        state.e[:] = e
        state.xi[:] = xi
        copy_placed(other, placed)
        copy_point(proposed, point)
    return probability, kicks
