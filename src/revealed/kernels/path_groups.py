"""Paths of many groups, whose first values and sizes of steps come from one population.

    first value of group g ~ N(mean, covariance)
    log sd of its steps ~ N(log m, s^2)              of each step that is inferred

Arrays of all groups stand one after the other. Given the population groups are independent, and
each moves as if it were alone (`state_space_moves.py`); `path_population.py` moves the population.
"""

from typing import NamedTuple

import numpy as np

from revealed._types import Floats, Ints
from revealed.kernels._compile import compiled, compiled_internal
from revealed.kernels.block_tridiagonal import PathFactor
from revealed.kernels.choice_fast import RivalIndex
from revealed.kernels.interrupt import stop_requested
from revealed.kernels.path_likelihood import PathData, PathWorkspace
from revealed.kernels.path_process import PathLaw, PathMoments, PathProcess
from revealed.kernels.path_sizes import CoarsePaths
from revealed.kernels.state_space import (
    NormalPaths,
    PathPoint,
    PathTarget,
    Placed,
)
from revealed.kernels.state_space_moves import PathState, PathStats, sample_paths


class PathGroups(NamedTuple):
    """What G groups chose at their times, and the law of their paths.

    data, process: of all N nodes, as one set of paths with sds of their own. node, decision, rival
    (G + 1,): where each group's nodes, decisions and rivals begin. node_start, rival_start: as in
    `PathData` and `RivalIndex`, counted from zero for each group, with one entry more a group.
    at (G, P): where the theta of each group stands in that of all. sizes: J of each group.
    component (N,): zeros.
    """

    data: PathData
    process: PathProcess
    node: Ints
    decision: Ints
    rival: Ints
    node_start: Ints
    rival_start: Ints
    at: Ints
    sizes: int
    component: Ints


class PathPopulation(NamedTuple):
    """The population as one group sees it.

    precision (D, D) and mean (D,): of first values. log_mean, log_sd (P,): of log sds.
    """

    precision: Floats
    mean: Floats
    log_mean: Floats
    log_sd: Floats


class GroupChains(NamedTuple):
    """Where the paths of all groups are, and the coordinates in which they move.

    path, z (N, D), theta (G, P), xi (G, U). centre (G, P), root (G, P, U): of theta. curvature,
    linear, constant (G,): of stand-ins. adaptation (G, 2, 5): of step sizes.
    """

    path: Floats
    z: Floats
    theta: Floats
    xi: Floats
    centre: Floats
    root: Floats
    curvature: Floats
    linear: Floats
    constant: Floats
    adaptation: Floats


@compiled_internal
def data_of_group(groups: PathGroups, g: int) -> PathData:
    """What one group chose: views of the arrays of all."""
    # one entry more a group: starts are counted from zero in each
    a, b = groups.node[g], groups.node[g + 1]
    t, u = groups.decision[g], groups.decision[g + 1]
    r, s = groups.rival[g], groups.rival[g + 1]
    data = groups.data
    return PathData(
        data.rows[r:s],
        data.offset[r:s],
        groups.node_start[a + g : b + g + 1],
        RivalIndex(
            groups.rival_start[t + g : u + g + 1],
            data.rivals.multiplicity[r:s],
            data.rivals.weight[t:u],
        ),
        data.noise,
    )


@compiled_internal
def process_of_group(groups: PathGroups, population: PathPopulation, g: int) -> PathProcess:
    """The law of the path of one group, given the population."""
    a, b = groups.node[g], groups.node[g + 1]
    process, scales = groups.process, np.empty(groups.at.shape[1])
    # zero where an sd is known, as for all
    for p in range(scales.size):
        scales[p] = process.scales[groups.at[g, p]]
    return PathProcess(
        process.gap[a:b],
        process.first[a:b],
        process.crosses[a:b],
        process.size,
        groups.sizes,
        process.between,
        process.reverts,
        population.precision,
        process.infers_start,
        scales,
        groups.component[a:b],
        process.starts,
        population.mean,
        population.log_mean,
        population.log_sd,
    )


@compiled_internal
def _first_of_placed(placed: Placed, theta: Floats, gradient: Floats, count: int) -> Placed:
    """The law of so many nodes, in arrays that are long enough for all."""
    law = placed.law
    return Placed(
        theta,
        PathLaw(
            law.decay[:count],
            law.variance[:count],
            law.diagonal[:count],
            law.coupling[:count],
            law.start,
            law.centre,
        ),
        PathFactor(placed.factor.inverse[:count], placed.factor.below[:count]),
        placed.mean[:count],
        placed.log_density,
        gradient,
    )


@compiled_internal
def _first_of_point(point: PathPoint, count: int) -> PathPoint:
    """A path of so many nodes, in arrays that are long enough for all."""
    return PathPoint(
        point.value[:count], point.noise, point.r, point.slope[:count], point.noise_slope
    )


@compiled_internal
def _first_of_workspace(work: PathWorkspace, count: int, gaps: int) -> PathWorkspace:
    """Arrays for so many nodes and utilities."""
    moments = work.moments
    return PathWorkspace(
        work.gaps[:gaps],
        work.slopes[:gaps],
        work.right[:count],
        work.whitened[:count],
        PathMoments(
            moments.mean[:count], moments.variance[:count], moments.lagged[:count], moments.at_first
        ),
        work.choice,
    )


@compiled
def sweep_groups(
    rng: np.random.Generator,
    groups: PathGroups,
    population: PathPopulation,
    chains: GroupChains,
    work: PathWorkspace,
    placed: tuple[Placed, Placed, Placed, Placed],
    points: tuple[PathPoint, PathPoint],
    sweeps: int,
    targets: tuple[float, float],
    stats: PathStats,
) -> None:
    """Move path and theta of every group so many times, given the population.

    z and xi are where chains are; path and theta are written. stats: (G,) each. Sizes of steps are
    proposed on all nodes of a group, which are few beside those of all groups.
    """
    width, size = chains.z.shape[1], chains.theta.shape[1]
    gradients, noise, square = np.zeros((4, size)), np.zeros((1, 0)), np.zeros((0, 0))
    thetas = np.zeros((4, size))
    for g in range(chains.theta.shape[0]):
        a, b = groups.node[g], groups.node[g + 1]
        count, gaps = b - a, groups.rival[g + 1] - groups.rival[g]
        # the group's own stand-in and coordinates, under the prior that the population makes
        normal = NormalPaths(
            process_of_group(groups, population, g),
            chains.curvature[a:b],
            chains.linear[a:b],
            chains.constant[g],
            chains.centre[g],
            chains.root[g],
        )
        target = PathTarget(data_of_group(groups, g), normal, noise[0], square)
        own_work = _first_of_workspace(work, count, gaps)
        coarse = CoarsePaths(
            normal,
            own_work,
            (
                _first_of_placed(placed[2], thetas[2], gradients[2], count),
                _first_of_placed(placed[3], thetas[3], gradients[3], count),
            ),
        )
        # as if there were no other group: given the population there is none
        sample_paths(
            rng,
            target,
            coarse,
            own_work,
            (
                _first_of_placed(placed[0], thetas[0], gradients[0], count),
                _first_of_placed(placed[1], thetas[1], gradients[1], count),
            ),
            (_first_of_point(points[0], count), _first_of_point(points[1], count)),
            PathState(chains.z[a:b], noise[0], chains.xi[g], chains.adaptation[g]),
            sweeps,
            targets,
            chains.theta[g : g + 1],
            noise,
            chains.path[a:b].reshape((1, count, width)),
            PathStats(
                stats.acceptance_rate[g : g + 1],
                stats.size_acceptance[g : g + 1],
                stats.n_steps[g : g + 1],
            ),
        )
        if stop_requested():
            return
