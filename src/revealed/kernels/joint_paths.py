"""Hamiltonian paths of values and the sizes of their steps together.

z, e and xi (`state_space_moves.py`) turn on a circle, which is exact for a standard normal law of
all of them, with kicks by the slopes of what is left of the log posterior,

    log p(theta) Z(theta) + xi'xi / 2 + r.

While z stays, the path follows theta, and r follows the path. With A = L L', b = linear - H centre,

    v = centre + x,    x = L^-T (y + z),    y = L^-1 b,
    dv = -A^-1 dL y - L^-T dL'x,

so that with slope g of r in v, h = L^-1 g and k = L^-T h the slope of r in the entries of L is

    dr / dL_ij = -(k_i y_j + x_i h_j).

From L it goes back to A by reverse differentiation of the Cholesky factor (Smith 1995), block by
block: with L_n and B_n of `block_tridiagonal.py`, S_n = L_n L_n', and bars for slopes,

    S-bar_n = sym L_n^-T tril(L_n' L-bar_n) L_n^-1,    half of the diagonal in tril,
    B-bar_n -= 2 S-bar_n B_n,    L-bar_{n-1} -= L_{n-1}^-T B-bar_n' B_n,

and A-bar_n = S-bar_n, coupling-bar_n = diag(B-bar_n L_{n-1}^-1). A quadratic form in the precision
of paths has a slope in theta that is linear in its second moments, so that r's are added to those
of log Z.
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

    x (N, D): the path less its centre. work.whitened has h, and work.right k.
    """
    process, moments, mean = normal.process, work.moments, placed.mean
    inverse, below, h, k = placed.factor.inverse, placed.factor.below, work.whitened, work.right
    count, width = x.shape
    shape = (width, width)
    y, y_before, pull = np.empty(width), np.empty(width), np.zeros(width)
    by_root, by_below, from_behind = np.empty(shape), np.empty(shape), np.zeros(shape)
    product, slope = np.empty(shape), np.empty(shape)
    write_root_times(inverse[count - 1], mean[count - 1], pull, y)
    # from the last node to the first, as the factor was made from the first to the last
    for n in range(count - 1, -1, -1):
        first = process.first[n]
        # dr / dL_n, with what came back from the node behind
        for i in range(width):
            for j in range(i + 1):
                by_root[i, j] = from_behind[i, j] - k[n, i] * y[j] - x[n, i] * h[n, j]
        write_block_slope(inverse[n], by_root, product, slope)
        # a second moment M has the slope -M dA / 2
        for i in range(width):
            moments.variance[n, i] -= 2.0 * slope[i, i]
        from_behind[:] = 0.0
        if first:
            moments.at_first[:] -= 2.0 * slope
            pull[:] = 0.0
        else:
            # y = L' mean, of the node before too
            for j in range(width):
                pull[j] = 0.0
                for i in range(j + 1):
                    pull[j] += below[n, i, j] * mean[n, i]
        if n == 0:
            return
        write_root_times(inverse[n - 1], mean[n - 1], pull, y_before)
        if not first:
            for i in range(width):
                for j in range(width):
                    total = -k[n, i] * y_before[j] - x[n, i] * h[n - 1, j]
                    for m in range(j + 1):
                        total -= 2.0 * slope[i, m] * below[n, m, j]
                    by_below[i, j] = total
            before = inverse[n - 1]
            for i in range(width):
                # the coupling stands in A twice, and so does the moment
                total = 0.0
                for j in range(i, width):
                    total += by_below[i, j] * before[j, i]
                moments.lagged[n, i] -= total
            # B-bar' B, and L^-T of the node before times it
            for i in range(width):
                for j in range(width):
                    product[i, j] = 0.0
                    for m in range(j + 1):
                        product[i, j] += by_below[m, i] * below[n, m, j]
            for i in range(width):
                for j in range(i + 1):
                    for m in range(i, width):
                        from_behind[i, j] -= before[m, i] * product[m, j]
        y[:] = y_before


@compiled
def write_root_times(inverse: Floats, mean: Floats, pull: Floats, y: Floats) -> None:
    """Write y = L'mean + pull (D,), from the inverse (D, D) of a lower triangular L."""
    # L'mean by substitution: L^-T (L'mean) = mean
    for i in range(y.size - 1, -1, -1):
        total = mean[i]
        for j in range(i + 1, y.size):
            total -= inverse[j, i] * y[j]
        y[i] = total / inverse[i, i]
    for i in range(y.size):
        y[i] += pull[i]


@compiled
def write_block_slope(inverse: Floats, by_root: Floats, product: Floats, slope: Floats) -> None:
    """Write the symmetric slope in S = L L' from the lower triangle of that in L, all (D, D).

    inverse: of L. product is written to.
    """
    width = inverse.shape[0]
    # from L-bar to L^-T tril(L' L-bar) L^-1 without L: it is tril of what solves L^-T P = L-bar
    for j in range(width):
        for i in range(width - 1, -1, -1):
            total = by_root[i, j] if i >= j else 0.0
            for m in range(i + 1, width):
                total -= inverse[m, i] * product[m, j]
            product[i, j] = total / inverse[i, i]
    for i in range(width):
        product[i, i] *= 0.5
        for j in range(i + 1, width):
            product[i, j] = 0.0
    for i in range(width):
        for j in range(width):
            total = 0.0
            for m in range(i, width):
                for q in range(j, m + 1):
                    total += inverse[m, i] * product[m, q] * inverse[q, j]
            slope[i, j] = total
    for i in range(width):
        for j in range(i):
            mean = 0.5 * (slope[i, j] + slope[j, i])
            slope[i, j] = slope[j, i] = mean


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
        count, width = placed.mean.shape
        for n in range(count):
            for i in range(width):
                total = normal.linear[n, i] + point.slope[n, i]
                for j in range(width):
                    inner = law.centre[j] + placed.mean[n, j] + work.right[n, j]
                    total -= normal.curvature[n, i, j] * inner
                slope[centre_at(process) + i] += total


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
