"""Moves of paths and of the sizes of their steps (`state_space.py`), and chains of them.

    z, e    a rotation by more than a quarter of a circle, exact for their normal law, with
            kicks by the slopes of r on the way
    theta   Hamiltonian paths that follow the evidence of paths on fewer nodes, or a draw from a t
            (`path_sizes.py`), z and e staying; the path follows, and p Z exp(r) enters the ratio

Both are reversible and keep volume, so that accepting by the ratio of the posterior is exact.
"""

import math
from typing import NamedTuple

import numpy as np

from revealed._types import Bools, Floats
from revealed.kernels._compile import compiled, inlined
from revealed.kernels.block_tridiagonal import solve_lower
from revealed.kernels.hmc import update_step_size
from revealed.kernels.interrupt import stop_requested
from revealed.kernels.path_sizes import (
    LENGTHS,
    CoarsePaths,
    acceptance,
    copy_placed,
    half_square,
    propose_anywhere,
    propose_theta,
    theta_of,
)
from revealed.kernels.state_space import (
    PathPoint,
    PathTarget,
    PathWorkspace,
    Placed,
    place_law,
    place_path,
)


class PathState(NamedTuple):
    """A chain: z (N, D), e (E,), xi (U,) of theta, and dual averaging of both step sizes (2, 5)."""

    z: Floats
    e: Floats
    xi: Floats
    adaptation: Floats


class PathStats(NamedTuple):
    """Of each draw (n,): acceptance of paths and of sizes, and mean number of kicks of a path."""

    acceptance_rate: Floats
    size_acceptance: Floats
    n_steps: Floats


@compiled
def copy_point(source: PathPoint, to: PathPoint) -> None:
    """Write one path over another.

    Arrays are filled in place: loops of compiled code make no new ones.
    """
    to.value[:] = source.value
    to.noise[:] = source.noise
    to.r[:] = source.r
    to.slope[:] = source.slope
    to.noise_slope[:] = source.noise_slope


@compiled
def kick(
    first: Bools,
    noise_root: Floats,
    whitened: Floats,
    placed: Placed,
    point: PathPoint,
    size: float,
    momentum: Floats,
    noise_momentum: Floats,
    e: Floats,
) -> None:
    """Move the momenta of z and e by slopes of r, times size; whitened (N, D) is written to."""
    solve_lower(placed.factor, first, point.slope, whitened)
    for n in range(momentum.shape[0]):
        for i in range(momentum.shape[1]):
            momentum[n, i] += size * whitened[n, i]
    for j in range(e.size):
        total = e[j]
        for i in range(e.size):
            total += noise_root[i, j] * point.noise_slope[i]
        # r has + e'e / 2 in it, whose slope is e
        noise_momentum[j] += size * total


@compiled
def rotate(x: Floats, momentum: Floats, cosine: float, sine: float) -> float:
    """Turn positions and momenta; returns half the sum of squares of both, which stays."""
    total = 0.0
    for i in range(x.size):
        a, b = x[i], momentum[i]
        x[i] = cosine * a + sine * b
        momentum[i] = cosine * b - sine * a
        total += a * a + b * b
    return 0.5 * total


@inlined
def path_move(
    rng: np.random.Generator,
    target: PathTarget,
    work: PathWorkspace,
    placed: Placed,
    state: PathState,
    point: PathPoint,
    proposed: PathPoint,
    step_size: float,
) -> tuple[bool, float, int]:
    """Move z and e by one Hamiltonian path, theta staying, and with it the law of paths.

    Returns whether the path is `proposed` now, the acceptance probability, and how many kicks.
    """
    z, e = state.z.copy(), state.e.copy()
    # fresh momenta: what makes a path one of many that could have been taken
    momentum = np.empty(z.shape)
    for n in range(z.shape[0]):
        for i in range(z.shape[1]):
            momentum[n, i] = rng.standard_normal()
    noise_momentum = np.empty(e.size)
    for i in range(e.size):
        noise_momentum[i] = rng.standard_normal()
    # of random length, so that no number comes back to where it was every time
    turn = LENGTHS.turn * rng.uniform(LENGTHS.shortest, LENGTHS.longest)
    # as many kicks as the step size asks for, evenly spaced along the turn
    kicks = max(1, math.ceil(min(turn / step_size, LENGTHS.most_steps)))
    angle = turn / kicks
    cosine, sine = math.cos(angle), math.sin(angle)
    # minus the log of the posterior with momenta; the smaller, the more probable
    before = half_square(momentum.ravel()) + half_square(z.ravel()) - point.r[0]
    before += half_square(noise_momentum) + half_square(e)
    first, root, whitened = target.normal.process.first, target.noise_root, work.whitened
    # half a kick at either end makes the path reversible
    kick(first, root, whitened, placed, point, 0.5 * angle, momentum, noise_momentum, e)
    for k in range(kicks):
        rotate(z.ravel(), momentum.ravel(), cosine, sine)
        rotate(e, noise_momentum, cosine, sine)
        place_path(target, work, placed, z, e, proposed)
        # a path that left what can be worked with ends there
        if not proposed.r[0] > -np.inf:
            return False, 0.0, kicks
        # two halves, that of this turn and that of the next, are one
        size = angle if k + 1 < kicks else 0.5 * angle
        kick(first, root, whitened, placed, proposed, size, momentum, noise_momentum, e)
        if stop_requested():
            return False, 0.0, kicks
    after = half_square(momentum.ravel()) + half_square(z.ravel()) - proposed.r[0]
    after += half_square(noise_momentum) + half_square(e)
    # a rotation keeps the normal part, so that all that is lost is by the kicks
    probability = acceptance(before - after)
    # what was computed at the proposal is kept, as the next path begins there
    accepted = rng.random() < probability
    if accepted:
        state.z[:] = z
        state.e[:] = e
    return accepted, probability, kicks


@inlined
def size_move(
    rng: np.random.Generator,
    target: PathTarget,
    coarse: CoarsePaths,
    work: PathWorkspace,
    placed: Placed,
    other: Placed,
    state: PathState,
    point: PathPoint,
    proposed: PathPoint,
    step_size: float,
) -> tuple[bool, float, float]:
    """Move theta along some Hamiltonian paths, or to anywhere, z staying.

    Returns whether law and path are `other` and `proposed` now, the acceptance probability, and the
    mean one of paths, which the step size adapts to; NaN where there were none.
    """
    xi, theta, of_paths = state.xi.copy(), np.empty(placed.theta.size), math.nan
    if rng.random() < LENGTHS.anywhere / xi.size:
        ratio = propose_anywhere(rng, xi)
    else:
        ratio, of_paths = propose_theta(rng, coarse, xi, step_size)
    # drawn in any case, so that a proposal that ends early takes as many random numbers
    accepts = rng.random()
    theta_of(target.normal, xi, theta)
    if ratio == -np.inf or not place_law(target.normal, work, theta, other):
        return False, 0.0, of_paths
    # z stays, and the path that it stands for moves with mean and width of the new law
    place_path(target, work, other, state.z, state.e, proposed)
    ratio += other.log_density[0] - placed.log_density[0]
    probability = acceptance(ratio + proposed.r[0] - point.r[0])
    if accepts < probability:
        state.xi[:] = xi
        return True, probability, of_paths
    return False, probability, of_paths


@inlined
def place_state(
    target: PathTarget, work: PathWorkspace, state: PathState, placed: Placed, point: PathPoint
) -> bool:
    """Write law and path of a chain's state; returns whether there is such a law."""
    theta = np.empty(placed.theta.size)
    theta_of(target.normal, state.xi, theta)
    if not place_law(target.normal, work, theta, placed):
        return False
    place_path(target, work, placed, state.z, state.e, point)
    return True


@compiled
def sample_paths(
    rng: np.random.Generator,
    target: PathTarget,
    coarse: CoarsePaths,
    work: PathWorkspace,
    placed: tuple[Placed, Placed],
    points: tuple[PathPoint, PathPoint],
    state: PathState,
    thin: int,
    targets: tuple[float, float],
    theta_draws: Floats,
    noise_draws: Floats,
    value_draws: Floats,
    stats: PathStats,
) -> None:
    """Write draws of theta (n, P), of the noise (n, E) and of paths (n, N, D), or none of these.

    state is changed in place, and the first of `placed` and of `points` are the last draw's.
    targets: acceptance of paths and of sizes that step sizes are adapted to; zero where they stay.
    """
    place_state(target, work, state, placed[0], points[0])
    # which of two the chain is at: to swap them is cheaper than to copy
    law, at = 0, 0
    for n in range(theta_draws.shape[0]):
        stats.acceptance_rate[n] = stats.size_acceptance[n] = stats.n_steps[n] = 0.0
        for _ in range(thin):
            for _ in range(LENGTHS.rotations):
                accepted, probability, kicks = path_move(
                    rng,
                    target,
                    work,
                    placed[law],
                    state,
                    points[at],
                    points[1 - at],
                    state.adaptation[0, 0],
                )
                if stop_requested():
                    return
                at = 1 - at if accepted else at
                # in the warm-up alone: a step size that still moves would spoil the law of draws
                if targets[0] > 0.0:
                    update_step_size(
                        state.adaptation[0], targets[0], probability, LENGTHS.least_step
                    )
                stats.acceptance_rate[n] += probability / (thin * LENGTHS.rotations)
                stats.n_steps[n] += kicks / (thin * LENGTHS.rotations)
            if state.xi.size > 0:
                accepted, probability, of_paths = size_move(
                    rng,
                    target,
                    coarse,
                    work,
                    placed[law],
                    placed[1 - law],
                    state,
                    points[at],
                    points[1 - at],
                    state.adaptation[1, 0],
                )
                if stop_requested():
                    return
                if accepted:
                    law, at = 1 - law, 1 - at
                if targets[1] > 0.0 and not math.isnan(of_paths):
                    update_step_size(state.adaptation[1], targets[1], of_paths, LENGTHS.least_step)
                stats.size_acceptance[n] += probability / thin
        theta_draws[n] = placed[law].theta
        noise_draws[n] = points[at].noise
        # paths are large: the warm-up keeps none
        if value_draws.shape[0] > 0:
            value_draws[n] = points[at].value
    if law == 1:
        copy_placed(placed[1], placed[0])
    if at == 1:
        copy_point(points[1], points[0])
