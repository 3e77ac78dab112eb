"""Moves of paths that do not follow the evidence of their stand-in, and chains of them.

A stand-in of games has a diagonal curvature, which knows nothing of opponents; one of choices of
which some are lapses is near no likelihood. So Z(theta) is no evidence, and theta has other moves:

    paths and theta     in one Hamiltonian path (`joint_paths.py`)
    theta given z       a draw from a t, as sizes that may be zero have a long tail below; the whole
                        path follows
    theta given paths   a random walk on p(theta) p(path | theta); z follows. Where few choices say
                        what a value is, it leaves theta more room than the others would find
    common shifts       of everybody on a date, drawn exactly (`common_shift.py`)
"""

from typing import NamedTuple

import numpy as np

from revealed._types import Floats
from revealed.kernels._compile import compiled, inlined
from revealed.kernels.block_tridiagonal import multiply_upper
from revealed.kernels.common_shift import CommonShift, draw_common_shift
from revealed.kernels.hmc import update_step_size
from revealed.kernels.interrupt import stop_requested
from revealed.kernels.joint_paths import joint_move
from revealed.kernels.path_process import log_prior_of_theta, write_path_law
from revealed.kernels.path_sizes import (
    LENGTHS,
    acceptance,
    copy_placed,
    propose_anywhere,
    theta_of,
)
from revealed.kernels.state_space import (
    NormalPaths,
    PathPoint,
    PathTarget,
    PathWorkspace,
    Placed,
    place_law,
    place_path,
)
from revealed.kernels.state_space_moves import (
    PathState,
    PathStats,
    copy_point,
    place_state,
)


class JointMoves(NamedTuple):
    """How many moves of theta follow each path; other numbers cost time, never correctness.

    anywhere: each costs a factor and a likelihood, about a third of a kick. given_path: each costs
    a pass over all nodes.
    """

    anywhere: int
    given_path: int


MOVES = JointMoves(anywhere=3, given_path=3)


@compiled
def log_density_of_path(normal: NormalPaths, theta: Floats, value: Floats, placed: Placed) -> float:
    """log p(theta) p(path | theta) up to a constant; the law at theta is written to placed."""
    law, first = placed.law, normal.process.first
    found = write_path_law(normal.process, theta, law)
    width = value.shape[1]
    for n in range(value.shape[0]):
        for i in range(width):
            step = value[n, i] - law.centre[i]
            if first[n]:
                # of a random walk all coordinates together, whose variance is infinite here
                for j in range(width):
                    found -= 0.5 * step * law.start[i, j] * (value[n, j] - law.centre[j])
            else:
                step -= law.decay[n, i] * (value[n - 1, i] - law.centre[i])
            found -= 0.5 * step * step / law.variance[n, i]
    # the slope of the prior has no use here, and needs a place to go
    placed.gradient[:] = 0.0
    return found + log_prior_of_theta(normal.process, theta, placed.gradient)


@compiled
def propose_walk(
    rng: np.random.Generator, normal: NormalPaths, xi: Floats, size: float, theta: Floats
) -> None:
    """Move coordinates of theta by a normal step, in place; theta is written from them."""
    for u in range(xi.size):
        xi[u] += size * rng.standard_normal()
    theta_of(normal, xi, theta)


@inlined
def move_anywhere(
    rng: np.random.Generator,
    target: PathTarget,
    work: PathWorkspace,
    placed: Placed,
    other: Placed,
    state: PathState,
    point: PathPoint,
    proposed: PathPoint,
) -> float:
    """Move theta to anywhere, z staying; returns the acceptance probability."""
    xi, theta = state.xi.copy(), np.empty(placed.theta.size)
    ratio = propose_anywhere(rng, xi)
    theta_of(target.normal, xi, theta)
    # drawn in any case, so that every proposal takes as many random numbers
    accepts = rng.random()
    if not place_law(target.normal, work, theta, other):
        return 0.0
    ratio += other.log_density[0] - placed.log_density[0]
    # the path that z stands for moves with mean and width of the new law
    place_path(target, work, other, state.z, state.e, proposed)
    probability = acceptance(ratio + proposed.r[0] - point.r[0])
    if accepts < probability:
        state.xi[:] = xi
        copy_placed(other, placed)
        copy_point(proposed, point)
    return probability


@compiled
def write_coordinates(normal: NormalPaths, placed: Placed, value: Floats, z: Floats) -> None:
    """Write the coordinates of a path at the law that is placed: z = L'(q - centre - mean)."""
    u = np.empty(value.shape)
    for n in range(value.shape[0]):
        for i in range(value.shape[1]):
            u[n, i] = value[n, i] - placed.law.centre[i] - placed.mean[n, i]
    multiply_upper(placed.factor, normal.process.first, u, z)


@compiled
def walk_given_path(
    rng: np.random.Generator,
    normal: NormalPaths,
    work: PathWorkspace,
    placed: Placed,
    other: Placed,
    state: PathState,
    value: Floats,
    size: float,
) -> float:
    """Move theta, the path staying, so that r stays too; returns the acceptance probability.

    z is that of the law before: `place_again` writes it.
    """
    xi, theta = state.xi.copy(), np.empty(placed.theta.size)
    before = log_density_of_path(normal, placed.theta, value, other)
    propose_walk(rng, normal, xi, size, theta)
    accepts = rng.random()
    # the law of paths first: beyond its limits there is none
    if not place_law(normal, work, theta, other):
        return 0.0
    probability = acceptance(log_density_of_path(normal, theta, value, other) - before)
    if accepts < probability:
        state.xi[:] = xi
        # what the density wrote over is written again
        place_law(normal, work, theta, placed)
    return probability


@compiled
def move_common_shift(
    rng: np.random.Generator,
    normal: NormalPaths,
    shift: CommonShift,
    placed: Placed,
    value: Floats,
) -> None:
    """Draw the common shifts of each component; `place_again` writes z and r."""
    delta = np.empty(shift.knots)
    for component in range(shift.components):
        if not draw_common_shift(
            rng, shift, normal.process.first, placed.law, component, value, delta
        ):
            continue
        for n in range(value.shape[0]):
            if shift.component[n] != component:
                continue
            after = min(shift.knot[n] + 1, shift.knots - 1)
            move = delta[shift.knot[n]] * (1.0 - shift.share[n]) + delta[after] * shift.share[n]
            value[n, 0] += move


@inlined
def place_again(
    target: PathTarget, work: PathWorkspace, placed: Placed, state: PathState, point: PathPoint
) -> None:
    """Write z of a path that has moved, or whose law has, and all else from z.

    From z, as a run that is continued does: the last digit of every number is then the same.
    """
    write_coordinates(target.normal, placed, point.value, state.z)
    place_path(target, work, placed, state.z, state.e, point)


@compiled
def sample_joint_paths(
    rng: np.random.Generator,
    target: PathTarget,
    shift: CommonShift,
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
    """Write draws as `sample_paths` does.

    Acceptance of sizes is that of moves to anywhere.
    """
    # what moves keep of the present point is computed once
    place_state(target, work, state, placed[0], points[0])
    infers = state.xi.size > 0
    for n in range(theta_draws.shape[0]):
        stats.acceptance_rate[n] = stats.size_acceptance[n] = stats.n_steps[n] = 0.0
        for _ in range(thin):
            size = state.adaptation[0, 0]
            probability, kicks = joint_move(
                rng, target, work, placed[0], placed[1], state, points[0], points[1], size
            )
            if stop_requested():
                return
            if targets[0] > 0.0:
                update_step_size(state.adaptation[0], targets[0], probability, LENGTHS.least_step)
            stats.acceptance_rate[n] += probability / thin
            stats.n_steps[n] += kicks / thin
            # everybody on a date together, which paths are slow at
            if shift.knots > 0:
                move_common_shift(rng, target.normal, shift, placed[0], points[0].value)
            for _ in range(MOVES.given_path if infers else 0):
                size = state.adaptation[1, 0]
                probability = walk_given_path(
                    rng, target.normal, work, placed[0], placed[1], state, points[0].value, size
                )
                if targets[1] > 0.0:
                    update_step_size(
                        state.adaptation[1], targets[1], probability, LENGTHS.least_step
                    )
            if shift.knots > 0 or infers:
                place_again(target, work, placed[0], state, points[0])
            for _ in range(MOVES.anywhere if infers else 0):
                probability = move_anywhere(
                    rng, target, work, placed[0], placed[1], state, points[0], points[1]
                )
                if stop_requested():
                    return
                stats.size_acceptance[n] += probability / (thin * MOVES.anywhere)
        theta_draws[n] = placed[0].theta
        noise_draws[n] = points[0].noise
        # paths are large: the warm-up keeps none
        if value_draws.shape[0] > 0:
            value_draws[n] = points[0].value
