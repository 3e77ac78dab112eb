"""The probability of one finishing order of any number of entries: integrals along a grid.

A game's entries, best first, have utilities w_k, normal with mean m_k and sd s_k, and
w_0 > w_1 > ... was seen. The noise is shared by all comparisons of a game, so an order does not
split into choices; but it is a chain. Seen from below,

    H_k(x) = P(everyone below k in order, given w_k = x)
           = integral over y < x - margin of f_k+1(y) H_k+1(y) dy

with f_k the density of w_k: one integral after another along a grid, and P = integral of f_0 H_0.
Seen from above the same gives A_k, and A_k f_k H_k is the density of w_k given the order, whose
mean minus m_k is s_k^2 times the derivative in m_k.

The margin is zero unless games can be tied. Then neighbours are apart by more than it, or tied and
apart by less. Who tied may stand in any order among themselves. For a subset S of a tied group, let
E_S(x) be the density that exactly those in S stand right below x, with everybody below the group.
Whoever is first among S is some j, with the others of S below it:

    E_S(x) = integral over x - margin < y < x of sum over j in S of f_j(y) E_S-j(y) dy

starting with E of the empty set, which is H of the group below. Subsets are the bits of an integer,
so that S - j is a smaller integer and all are computed in increasing order. The whole group needs
no window above it: it passes sum over j of f_j E_rest on to the group above.

Nothing changes when all means, sds and the margin are multiplied by one number. So the derivative
in log margin is

    - sum of m_k d log P / d m_k + s_k d log P / d s_k,
    s_k d log P / d s_k = E (w_k - m_k)^2 / s_k^2 - 1.

Those of whom only is known that they came behind (retired, or all but the winner) are the product
of their Phi at the end of the chain. Two entries need no grid. Others have steps of `GRID.step` of
the smallest sd, and finer ones where there are many entries. Log P is then off by less than 1e-4 up
to twenty entries and 1e-3 at forty, nearly by the same for all skills. Steps half as long, which
predictions use, leave 1e-6 and 1e-5.
"""

import math
from typing import NamedTuple

import numpy as np

from revealed._types import Bools, Floats, Ints
from revealed.kernels import vectors
from revealed.kernels._compile import compiled, compiled_no_nan, inlined
from revealed.kernels.quadrature_grid import (
    integrate_cells,
    integrate_from_left,
    integrate_from_right,
    normal_density,
    shift,
)
from revealed.kernels.vectors import multiply_add


class GridSettings(NamedTuple):
    """How fine and how wide grids are, in units of the smallest sd unless another is named."""

    step: float
    step_times_entries: float
    reach_sds: float
    edge_nodes: int
    max_width: float
    prediction_refinement: float


# step: chosen for the errors in the module's docstring; longer steps bias the skills.
# step_times_entries: H grows like Phi to the power of those below; with many entries n, steps are
# this over n. reach_sds: how far beyond the means a grid goes, in sds; shorter cuts off tails of
# mass above 1e-8. edge_nodes: empty nodes at both ends, which rules of eight nodes need.
# max_width: means further apart are refused as P = 0, for a grid would need too much memory.
# prediction_refinement: steps of predictions are multiplied by it.
GRID = GridSettings(
    step=0.4,
    step_times_entries=2.0,
    reach_sds=5.5,
    edge_nodes=4,
    max_width=3000.0,
    prediction_refinement=0.5,
)


class Order(NamedTuple):
    """One game: mean, sd and tied (n,) of its entries, best first; the first n_ordered in order."""

    mean: Floats
    sd: Floats
    tied: Bools
    n_ordered: int
    margin: float


class Grid(NamedTuple):
    """Nodes left, left + step, ...; offset is the margin in steps."""

    left: float
    step: float
    nodes: int
    offset: float


class TieGroups(NamedTuple):
    """Groups of tied entries, best first: a group of one where nobody tied.

    start: where each group's entries begin, and the end. row: where the rows E_S of its subsets
    begin, from none to all but the whole, and the end. The row of a subset is row[group] plus the
    integer whose bits are its members.
    """

    start: Ints
    row: Ints


@compiled
def _make_grid(order: Order, refinement: float) -> Grid:
    """The grid for one game; it has no nodes where means are too far apart."""
    mean, sd = order.mean, order.sd
    # the narrowest density sets the step, the widest how far the grid reaches
    min_sd, max_sd, lowest, highest = sd[0], sd[0], mean[0], mean[0]
    for k in range(1, mean.size):
        min_sd, max_sd = min(min_sd, sd[k]), max(max_sd, sd[k])
        lowest, highest = min(lowest, mean[k]), max(highest, mean[k])
    step = refinement * min(GRID.step, GRID.step_times_entries / mean.size) * min_sd
    left = lowest - GRID.reach_sds * max_sd - order.margin - GRID.edge_nodes * step
    width = highest + GRID.reach_sds * max_sd + order.margin - left
    if not width < GRID.max_width * min_sd:
        return Grid(left, step, 0, order.margin / step)
    return Grid(left, step, int(width / step) + GRID.edge_nodes + 2, order.margin / step)


@compiled
def chain_workspace_size(order: Order, with_gradient: bool, refinement: float) -> int:
    """How many numbers `chain_log_probability` needs; negative where means are too far apart."""
    nodes = _make_grid(order, refinement).nodes
    rows, run = 0, 0
    # a group of n who tied has 2^n - 1 subsets without the whole
    for k in range(1, order.n_ordered + 1):
        run += 1
        if k == order.n_ordered or not order.tied[k]:
            rows += (1 << run) - 1
            run = 0
    factor = 2 if with_gradient else 1
    return (order.mean.size + rows * factor + 4) * nodes if nodes > 0 else -1


@compiled
def _tie_groups(tied: Bools, n_ordered: int) -> TieGroups:
    """The groups of tied entries and the rows of their subsets."""
    # a group ends where the next entry is not tied with its last one
    start, row = np.zeros(n_ordered + 1, np.int64), np.zeros(n_ordered + 1, np.int64)
    count = 0
    for k in range(1, n_ordered + 1):
        if k == n_ordered or not tied[k]:
            count += 1
            start[count] = k
            row[count] = row[count - 1] + (1 << (k - start[count - 1])) - 1
    return TieGroups(start[: count + 1], row[: count + 1])


@compiled
def chain_log_probability(
    order: Order, gradient: Floats, refinement: float, workspace: Floats
) -> tuple[float, float]:
    """Log probability of any number of entries along a grid, and its derivative in log margin.

    From the last group to the first. Within a group, E_S of all subsets in increasing order (see
    the module's docstring); what the whole group passes on is divided by its largest value, whose
    logarithm is added up, so that long chains do not underflow.
    """
    count, grid = order.mean.size, _make_grid(order, refinement)
    nodes, step, offset = grid.nodes, grid.step, grid.offset
    groups = _tie_groups(order.tied, order.n_ordered)
    # the workspace: densities f_k, rows E_S from below, four rows to compute with
    rows = groups.row[-1]
    density = workspace[: count * nodes].reshape((count, nodes))
    below = workspace[count * nodes : (count + rows) * nodes].reshape((rows, nodes))
    spare = workspace[(count + rows) * nodes : (count + rows + 4) * nodes].reshape((4, nodes))
    integrand, cell, running, shifted = spare[0], spare[1], spare[2], spare[3]
    for k in range(count):
        normal_density(grid.left, step, order.mean[k], order.sd[k], density[k])
    # those who only came behind: the product of their Phi, shifted by the margin
    last = below[groups.row[-2]]
    last[:] = 1.0
    for j in range(order.n_ordered, count):
        integrate_cells(density[j], step, cell)
        integrate_from_left(cell, running)
        shift(running, offset, shifted)
        _multiply_by(last, shifted)
    value = 0.0
    for group in range(groups.start.size - 2, -1, -1):
        first, size = groups.start[group], groups.start[group + 1] - groups.start[group]
        first_row, whole = groups.row[group], (1 << size) - 1
        for subset in range(1, whole + 1):
            # sum over j of f_j E_S-j, integrated from the left; less the same a margin before
            _subset_integrand(density, below, first, size, first_row, subset, integrand)
            integrate_cells(integrand, step, cell)
            integrate_from_left(cell, running)
            if offset > 0.0 and (subset < whole or group > 0):
                shift(running, offset, shifted)
            if subset < whole:
                _within_margin(running, shifted, below[first_row + subset])
        # the integral over the whole grid, and what the group above starts with
        largest = running[nodes - 1]
        if not largest > 0.0:
            return -np.inf, 0.0
        value += math.log(largest)
        if group > 0:
            _scale_into(
                shifted if offset > 0.0 else running, 1.0 / largest, below[groups.row[group - 1]]
            )
    if gradient.size == 0:
        return value, 0.0
    above = workspace[(count + rows + 4) * nodes : (count + 2 * rows + 4) * nodes].reshape(
        (rows, nodes)
    )
    return value, _chain_gradient(order, grid, groups, density, below, above, spare, gradient)


@compiled
def _chain_gradient(
    order: Order,
    grid: Grid,
    groups: TieGroups,
    density: Floats,
    below: Floats,
    above: Floats,
    spare: Floats,
    gradient: Floats,
) -> float:
    """Write the derivatives in the means into gradient (n,); returns that in log margin.

    The same recursion from above: row S of `above` is for those of a tie who stand in S right
    above x. An entry j of a group has the density f_j times the sum, over subsets S without j, of
    those in S above it and the rest below it.
    """
    mean, sd = order.mean, order.sd
    left, step, offset = grid.left, grid.step, grid.offset
    integrand, cell, running, shifted = spare[0], spare[1], spare[2], spare[3]
    grad_log_margin = 0.0
    # nobody stands above the first group
    above[0, :] = 1.0
    for group in range(groups.start.size - 1):
        first, size = groups.start[group], groups.start[group + 1] - groups.start[group]
        first_row, whole = groups.row[group], (1 << size) - 1
        for subset in range(1, whole + 1):
            _subset_integrand(density, above, first, size, first_row, subset, integrand)
            if subset < whole:
                integrate_cells(integrand, step, cell)
                integrate_from_right(cell, running)
                shift(running, -offset, shifted)
                _within_margin(running, shifted, above[first_row + subset])
        # mean and variance of each w_j given the order
        for j in range(first, first + size):
            mass, moment, square = 0.0, 0.0, 0.0
            for subset in range(whole):
                if not subset >> (j - first) & 1:
                    # all of the group but j and those above it
                    rest = first_row + (whole ^ subset ^ (1 << (j - first)))
                    zeroth, one, two = _moments(
                        above[first_row + subset], density[j], below[rest], left - mean[j], step
                    )
                    mass += zeroth
                    moment += one
                    square += two
            variance = sd[j] * sd[j]
            # d log P / d m_j = E(w_j - m_j) / s_j^2
            gradient[j] = moment / mass / variance
            # derivatives in the means sum to zero, so means may be taken from the first one's
            grad_log_margin -= (mean[j] - mean[0]) * gradient[j] + square / mass / variance - 1.0
        # what the group below starts with
        if group + 2 < groups.start.size:
            integrate_cells(integrand, step, cell)
            integrate_from_right(cell, running)
            if offset > 0.0:
                shift(running, -offset, shifted)
            _scale_into(
                shifted if offset > 0.0 else running,
                1.0 / running[0],
                above[groups.row[group + 1]],
            )
    # times H: the density of the last ordered entry's w
    _multiply_by(integrand, below[groups.row[groups.start.size - 2]])
    return _unordered_gradient(order, grid, density, spare, grad_log_margin, gradient)


@inlined
def _unordered_gradient(
    order: Order,
    grid: Grid,
    density: Floats,
    spare: Floats,
    grad_log_margin: float,
    gradient: Floats,
) -> float:
    """Write the derivatives in the means of those who only came behind.

    d log Phi(x - margin - m_j), averaged over the density of the last ordered entry, which is
    spare[0]. Returns grad_log_margin with their part added.
    """
    integrand, cell, running, shifted = spare[0], spare[1], spare[2], spare[3]
    count, nodes = density.shape
    # normalised by its own sum: scales of the recursions drop out
    mass = integrand.sum()
    for j in range(order.n_ordered, count):
        integrate_cells(density[j], grid.step, cell)
        integrate_from_left(cell, running)
        shift(running, grid.offset, shifted)
        shift(density[j], grid.offset, running)
        ratio, moment = 0.0, 0.0
        for i in range(nodes):
            if shifted[i] > 0.0:
                # f_j / Phi_j is minus the derivative of log Phi_j
                term = integrand[i] * running[i] / shifted[i]
                ratio += term
                moment += term * (grid.left + grid.step * (i - grid.offset) - order.mean[j])
        gradient[j] = -ratio / mass
        grad_log_margin -= (order.mean[j] - order.mean[0]) * gradient[j] - moment / mass
    return grad_log_margin


@compiled_no_nan
def _subset_integrand(
    density: Floats,
    values: Floats,
    first: int,
    size: int,
    first_row: int,
    subset: int,
    out: Floats,
) -> None:
    """Write the sum over j in a subset of f_j times the row of the subset without j.

    The group's entries begin at `first`, the rows of its subsets at `first_row`.
    """
    nodes = np.uint64(out.size)
    # the common case, without a tie: one product
    if size == 1:
        f, v = density[first], values[first_row]
        for i in range(nodes):
            out[i] = f[i] * v[i]
        return
    out[:] = 0.0
    for j in range(size):
        if subset >> j & 1:
            f, v = density[first + j], values[first_row + (subset ^ (1 << j))]
            for i in range(nodes):
                out[i] = multiply_add(f[i], v[i], out[i])


@compiled_no_nan
def _moments(
    a: Floats, f: Floats, h: Floats, begin: float, step: float
) -> tuple[float, float, float]:
    """Sums of a f h times 1, x and x^2, with x = begin, begin + step, ..."""
    # Eight partial sums each, then what is left of the nodes.
    masses, moments, squares = vectors.repeat(0.0), vectors.repeat(0.0), vectors.repeat(0.0)
    width, lanes = vectors.repeat(step), vectors.count_up()
    whole = np.uint64(a.size) // vectors.EIGHT * vectors.EIGHT
    for i in range(np.uint64(0), whole, vectors.EIGHT):
        x = multiply_add(width, lanes, vectors.repeat(begin + step * np.int64(i)))
        term = vectors.multiply(
            vectors.multiply(vectors.load(a, i), vectors.load(f, i)), vectors.load(h, i)
        )
        masses = vectors.add(masses, term)
        moments = multiply_add(term, x, moments)
        squares = multiply_add(vectors.multiply(term, x), x, squares)
    mass, moment, square = (
        vectors.sum_block(masses),
        vectors.sum_block(moments),
        vectors.sum_block(squares),
    )
    for i in range(whole, np.uint64(a.size)):
        term, x = a[i] * f[i] * h[i], begin + step * np.int64(i)
        mass += term
        moment += term * x
        square += term * x * x
    return mass, moment, square


@compiled_no_nan
def _multiply_by(out: Floats, factor: Floats) -> None:
    """Multiply out by factor, node by node, in place."""
    for i in range(np.uint64(out.size)):
        out[i] *= factor[i]


@compiled_no_nan
def _scale_into(values: Floats, factor: float, out: Floats) -> None:
    """Write values times a number into out."""
    for i in range(np.uint64(out.size)):
        out[i] = factor * values[i]


@compiled_no_nan
def _within_margin(near: Floats, far: Floats, out: Floats) -> None:
    """Write what lies within the margin: one running integral less the same shifted."""
    for i in range(np.uint64(out.size)):
        out[i] = max(near[i] - far[i], 0.0)
