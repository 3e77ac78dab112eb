"""The joint log density of a population and its groups, and Hamiltonian paths on it.

    x = (x_theta, z),   theta = centre + metric x_theta,   q_i = m_i + R_i^-T z_i

theta: mean and precision P of the population (`precision_root.py`), and behind them coordinates of
the noise that all groups share, which are standard normal under their prior. Those of which each
group has its own are the last of its q_i. z_i: coordinates of group i
that a normal stand-in of its likelihood makes all but independent of theta (`group_blocks.py`).
Up to a constant the log density is

    log prior(theta) + sum over groups of  l_i(q_i) - (q_i - mean)'P (q_i - mean) / 2
                                           + log |T| - log |R_i|,

exactly, whatever the stand-ins are, as long as they stay what they are: the last term is the
Jacobian of q_i in z_i. Groups are filled up to a multiple of eight with some that decided nothing;
their part is -z'z / 2, and says nothing of theta.
"""

from typing import NamedTuple

import numpy as np

from revealed._types import Floats
from revealed.kernels._compile import compiled, compiled_internal
from revealed.kernels.choice import log_likelihood
from revealed.kernels.group_batches import (
    GroupBatches,
    LikelihoodWorkspace,
    make_batch_workspace,
    select_rivals,
    select_rivals_of_group,
    write_coordinates,
    write_gaps,
    write_gradient,
    write_own_slopes,
)
from revealed.kernels.group_blocks import (
    BLOCKS,
    BlockScratch,
    GroupBlock,
    add_slopes,
    make_block_scratch,
    place_values,
)
from revealed.kernels.hmc import TWO_STAGES, HmcState, PathPlan, PathStatistics, hmc_move
from revealed.kernels.interrupt import stop_requested
from revealed.kernels.log_density import log_density, log_density_of
from revealed.kernels.noise import count_coordinates
from revealed.kernels.population import PopulationPrior
from revealed.kernels.precision_root import log_density_of_population, unpack_precision
from revealed.kernels.vectors import dot, multiply_add


class PathLimits(NamedTuple):
    """Where a path is given up: beyond any data, and while squares are still numbers.

    log_root: of the logarithms of t. value: of means, entries of C and values of groups.
    """

    log_root: float
    value: float


LIMITS = PathLimits(log_root=30.0, value=1e30)


class HierarchicalTarget(NamedTuple):
    """What the joint density is made of.

    batches: what groups chose. prior: of the population. centre (P,), metric (P, P): theta from
    x_theta. curvature, linear: H and h of every group's stand-in, blocks of eight groups one after
    the other, each as in `group_blocks.py`.
    """

    batches: GroupBatches
    prior: PopulationPrior
    centre: Floats
    metric: Floats
    curvature: Floats
    linear: Floats


class HierarchicalWorkspace(NamedTuple):
    """Arrays that an evaluation writes to.

    theta (P,), mean (D,), root and precision (D, D): of the population. precision_times_mean (D,).
    grad_theta (P,), grad_mean (D,), grad_precision (D, D). sums, triangle: what blocks add up to,
    for each of eight groups. inverse, centre, offset: of the blocks of a batch, as in `GroupBlock`.
    scratch, likelihood: what a block and the likelihood of a batch write to. values: (8 blocks, D)
    every group's value, where it was evaluated last.
    """

    theta: Floats
    mean: Floats
    root: Floats
    precision: Floats
    precision_times_mean: Floats
    grad_theta: Floats
    grad_mean: Floats
    grad_precision: Floats
    sums: Floats
    triangle: Floats
    inverse: Floats
    centre: Floats
    offset: Floats
    scratch: BlockScratch
    likelihood: LikelihoodWorkspace
    values: Floats


def make_hierarchical_workspace(
    batches: GroupBatches, width: int, shared: int = 0
) -> HierarchicalWorkspace:
    """A workspace for one chain; shared: how many coordinates of the noise all groups share."""
    size, square = 2 * width + width * (width - 1) // 2 + shared, (width, width)
    line, triangle = BLOCKS.lanes * width, BLOCKS.lanes * (width * (width + 1) // 2)
    return HierarchicalWorkspace(
        np.empty(size),
        np.empty(width),
        np.empty(square),
        np.empty(square),
        np.empty(width),
        np.empty(size),
        np.empty(width),
        np.empty(square),
        np.empty(line),
        np.empty(triangle),
        np.empty(batches.max_blocks * triangle),
        np.empty(batches.max_blocks * line),
        np.empty(batches.max_blocks * line),
        make_block_scratch(width),
        make_batch_workspace(batches),
        np.empty((BLOCKS.lanes * int(batches.block_start[-1]), width)),
    )


@compiled_internal
def locate_population(
    centre: Floats,
    metric: Floats,
    x: Floats,
    theta: Floats,
    mean: Floats,
    root: Floats,
    precision: Floats,
    precision_times_mean: Floats,
) -> bool:
    """Write theta, mean, T, P and P mean at x; returns whether these are of a reasonable size."""
    size, width = theta.size, mean.size
    for k in range(size):
        theta[k] = centre[k] + dot(metric[k], x[:size])
        # written so that a NaN is outside
        bound = LIMITS.log_root if width <= k < 2 * width else LIMITS.value
        if not abs(theta[k]) < bound:
            return False
    unpack_precision(theta, mean, root)
    for a in range(width):
        for b in range(a + 1):
            total = 0.0
            for c in range(b + 1):
                total += root[a, c] * root[b, c]
            precision[a, b] = precision[b, a] = total
    for a in range(width):
        precision_times_mean[a] = dot(precision[a], mean)
    return True


@compiled_internal
def add_up_lanes(
    precision: Floats, sums: Floats, triangle: Floats, grad_mean: Floats, grad_precision: Floats
) -> None:
    """Write the derivatives in mean and precision from the sums of each of eight groups."""
    width = grad_mean.size
    grad_mean[:] = 0.0
    for a in range(width):
        summed = 0.0
        for lane in range(BLOCKS.lanes):
            summed += sums[a * BLOCKS.lanes + lane]
        # from e + s to the derivative in the mean
        for b in range(width):
            grad_mean[b] += precision[b, a] * summed
        for b in range(a + 1):
            summed = 0.0
            for lane in range(BLOCKS.lanes):
                summed += triangle[BLOCKS.lanes * (a * (a + 1) // 2 + b) + lane]
            grad_precision[a, b] = grad_precision[b, a] = summed


@log_density_of(HierarchicalTarget)
@compiled
def joint_log_density(
    target: HierarchicalTarget,
    workspace: HierarchicalWorkspace,
    x: Floats,
    floor: float,
    gradient: Floats,
) -> float:
    """The joint log density at x, and its gradient."""
    work, batches, groups = workspace, target.batches, target.batches.groups
    size, width = work.theta.size, work.mean.size
    line, triangle = BLOCKS.lanes * width, BLOCKS.lanes * (width * (width + 1) // 2)
    count, total, values, scratch = groups.rival_start.size - 1, 0.0, work.values, work.scratch
    # coordinates of the noise: those that all groups share, how many each has for itself, and how
    # many numbers stand between the gaps of two groups
    coordinates, population = count_coordinates(groups.noise), 2 * width + width * (width - 1) // 2
    shared, by_group = work.theta[population:], coordinates - (size - population)
    between = coordinates if by_group > 0 else 0
    if not locate_population(
        target.centre,
        target.metric,
        x,
        work.theta,
        work.mean,
        work.root,
        work.precision,
        work.precision_times_mean,
    ):
        return -np.inf
    work.sums[:] = 0.0
    work.triangle[:] = 0.0
    work.grad_theta[population:] = 0.0
    for b in range(batches.block_start.size - 1):
        first_block, last_block = batches.block_start[b], batches.block_start[b + 1]
        first_group = first_block * BLOCKS.lanes
        last_group = min(last_block * BLOCKS.lanes, count)
        first_rival = groups.rival_start[first_group]
        # values of all groups of the batch, and the utility gaps of their rivals
        for n in range(first_block, last_block):
            at, own = size + n * line, n - first_block
            block = GroupBlock(
                work.inverse[own * triangle : (own + 1) * triangle],
                work.centre[own * line : (own + 1) * line],
                work.offset[own * line : (own + 1) * line],
            )
            total += place_values(
                work.precision,
                work.mean,
                work.precision_times_mean,
                target.curvature[n * triangle : (n + 1) * triangle],
                target.linear[n * line : (n + 1) * line],
                x[at : at + line],
                block,
                scratch,
            )
            for lane in range(BLOCKS.lanes):
                i = n * BLOCKS.lanes + lane
                for k in range(width):
                    values[i, k] = scratch.value[k * BLOCKS.lanes + lane]
                    if not abs(values[i, k]) < LIMITS.value:
                        return -np.inf
                if i < count:
                    low, high = groups.rival_start[i], groups.rival_start[i + 1]
                    gap = low - first_rival + (i - first_group) * between
                    write_gaps(
                        groups.columns,
                        width * low,
                        high - low,
                        values[i],
                        work.likelihood.gaps,
                        gap,
                    )
                    # up to seven numbers behind the gaps were overwritten, so not before
                    if by_group > 0:
                        write_coordinates(
                            shared, values[i], coordinates, work.likelihood.gaps, gap + high - low
                        )
        # one likelihood for all of them, or where the noise is their own one for each
        for call in range(last_group - first_group if by_group > 0 else 1):
            gap = 0
            if by_group > 0:
                i = first_group + call
                gap = groups.rival_start[i] - first_rival + call * between
                index = select_rivals_of_group(groups, i)
            else:
                index = select_rivals(batches, b)
            seen = index.multiplicity.size
            if by_group == 0:
                write_coordinates(shared, values[0], coordinates, work.likelihood.gaps, seen)
            total += log_likelihood(
                groups.noise,
                work.likelihood.gaps[gap : gap + seen + coordinates],
                index,
                work.likelihood.choice,
                -np.inf,
                work.likelihood.slopes[gap : gap + seen + coordinates],
            )
            for j in range(shared.size):
                work.grad_theta[population + j] += work.likelihood.slopes[gap + seen + j]
        if stop_requested():
            return -np.inf
        # and back: the derivatives in values, then in z, mean and precision
        for n in range(first_block, last_block):
            at, own = size + n * line, n - first_block
            for lane in range(BLOCKS.lanes):
                i = n * BLOCKS.lanes + lane
                low, high = groups.rival_start[min(i, count)], groups.rival_start[min(i + 1, count)]
                gap = low - first_rival + (i - first_group) * between
                write_gradient(
                    groups.columns,
                    width * low,
                    high - low,
                    work.likelihood.slopes,
                    gap,
                    scratch.grad,
                    lane,
                )
                if i < count and by_group > 0:
                    first = gap + high - low + shared.size
                    write_own_slopes(work.likelihood.slopes, first, by_group, scratch.grad, lane)
            block = GroupBlock(
                work.inverse[own * triangle : (own + 1) * triangle],
                work.centre[own * line : (own + 1) * line],
                work.offset[own * line : (own + 1) * line],
            )
            total += add_slopes(
                work.precision,
                x[at : at + line],
                block,
                scratch,
                gradient[at : at + line],
                work.sums,
                work.triangle,
            )
    add_up_lanes(work.precision, work.sums, work.triangle, work.grad_mean, work.grad_precision)
    total += log_density_of_population(
        target.prior,
        work.theta,
        work.root,
        work.precision,
        values.shape[0],
        work.grad_mean,
        work.grad_precision,
        work.grad_theta,
    )
    # the prior of what all groups share of the noise
    for k in range(population, size):
        total -= 0.5 * work.theta[k] * work.theta[k]
        work.grad_theta[k] -= work.theta[k]
    # from theta to x_theta
    gradient[:size] = 0.0
    for k in range(size):
        for j in range(size):
            gradient[j] = multiply_add(target.metric[k, j], work.grad_theta[k], gradient[j])
    return total


@compiled
def sample_joint_paths(
    rng: np.random.Generator,
    target: HierarchicalTarget,
    work: HierarchicalWorkspace,
    plan: PathPlan,
    thin: int,
    x: Floats,
    values: Floats,
    theta_draws: Floats,
    value_draws: Floats,
    statistics: PathStatistics,
) -> None:
    """Write draws of theta (n, P) and of the groups' values (n, N, D), `thin` paths for each.

    x (P + 8 blocks D,) is changed in place; values (8 blocks, D) gets the groups' values there.
    value_draws may be empty, (0, N, D).
    """
    state = HmcState(x, np.empty(1), np.empty(x.size))
    state.log_density[0] = log_density(target, work, x, -np.inf, state.gradient)
    values[:] = work.values
    size = theta_draws.shape[1]
    for n in range(theta_draws.shape[0]):
        for _ in range(thin):
            if hmc_move(rng, target, work, TWO_STAGES, plan, state, statistics, n, thin):
                values[:] = work.values
            if stop_requested():
                return
        for k in range(size):
            total = target.centre[k]
            for j in range(size):
                total += target.metric[k, j] * x[j]
            theta_draws[n, k] = total
        if value_draws.shape[0] > 0:
            value_draws[n] = values[: value_draws.shape[1]]
