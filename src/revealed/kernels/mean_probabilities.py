"""The probabilities of all actions of a decision at once, summed over draws: for predictions.

Measured from the best action, with g_j >= 0 how far action j is below it,

    P(c) = integral of  r(z + g_c) * prod over all j of Phi(z + g_j)  dz,   r = phi/Phi,

by the trapezoid rule on nodes that all actions and all draws share: multiples of a step, from about
-5 or -6 to 5 or 6, where the largest of the utilities lies but for 2e-6 at worst. The step is a
whole number of cells of the tables that `choice_lattice.py` reads, so that all nodes of an action
have the same position u within their cells, and sixteen of them are one polynomial in u whose
coefficients lie side by side in memory. They are then made to add to one.

The error is absolute, below 3e-7, and below 8e-8 for probabilities below a hundredth: of the rule
and its ends (steps are finer with more actions) and of single precision about half each, of actions
left out 2e-11 each. Averages over draws have a Monte-Carlo error hundreds of times as large.
Probabilities whose logarithm matters and that are not much larger have `choice_exact.py`, and so
have decisions with more actions that matter than the finest step serves.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from revealed._types import Floats, Ints, Singles
from revealed.kernels import vectors
from revealed.kernels._compile import compiled, inlined_formula
from revealed.kernels.choice_exact import ROOT_HALF, all_probabilities
from revealed.kernels.choice_tables import (
    CDF_TABLE,
    CELL_OFFSETS,
    LATTICE,
    PHASE_WIDTHS,
    RATIO_TABLE,
    STRIDES,
)
from revealed.kernels.normal import log_cdf
from revealed.kernels.vectors import SIXTEEN, multiply, multiply_add, quartic_block, sum_block


class SharedNodes(NamedTuple):
    """Which nodes serve how many actions.

    steps: positions in STRIDES. most_actions: that matter, with each of the steps. first: the first
    node, in steps from zero. nodes: how many. irrelevant: how far below the best an action is left
    out.
    """

    steps: tuple[int, ...]
    most_actions: tuple[int, ...]
    first: tuple[int, ...]
    nodes: tuple[int, ...]
    irrelevant: float


# steps, most_actions: steps of 5/8, 3/8 and 1/4 for 5, 12 and 64 actions, by measured error: with
# twice as many actions it is twenty times as large.
# first, nodes: with more actions the largest utility lies further right. Nodes come in blocks of
# sixteen; of five actions one block serves, where most of the time goes.
# irrelevant: Phi(-9.5 / sqrt(2)) = 9e-12, the probability of an action so far below, and at most
# its effect on the others.
NODES = SharedNodes(
    steps=(3, 6, 8),
    most_actions=(5, 12, 64),
    first=(-7, -15, -22),
    nodes=(16, 32, 48),
    irrelevant=9.5,
)
MOST_ACTIONS, COUNTS = np.array(NODES.most_actions), np.array(NODES.nodes)
MOST_NODES = max(NODES.nodes)
# What the tables have for these steps.
CELLS_A_STEP, WIDTHS, OFFSETS = (
    np.ascontiguousarray(of_step[list(NODES.steps)])
    for of_step in (STRIDES, PHASE_WIDTHS, CELL_OFFSETS)
)
# The cell of the tables in which the best action's first node lies, at its left end.
FIRST_CELLS = np.subtract(
    np.multiply(NODES.first, CELLS_A_STEP), LATTICE.low * LATTICE.cells_per_unit
)


@inlined_formula
def _add_on_nodes(
    gaps: Floats,
    rows: Ints,
    count: int,
    offsets: Any,
    positions: Singles,
    last: Any,
    product: Singles,
    out: Floats,
    batch: int,
) -> None:
    """Add the probabilities of actions with these gaps to column `batch` of out.

    The first of them is the best one, whose gap is zero.
    """
    step = 0
    while count > MOST_ACTIONS[step]:
        step += 1
    nodes, width = np.uint64(COUNTS[step]), np.uint64(WIDTHS[step])
    # Where the coefficients of each action's first node stand, and its position in the cell.
    for k in range(count):
        y = FIRST_CELLS[step] + gaps[k] * LATTICE.cells_per_unit
        cell = np.uint32(y)
        offsets[k] = OFFSETS[step, cell]
        positions[k] = np.float32(y - cell)
        # Further nodes lie right of the tables, where Phi is one and phi/Phi zero.
        last[k] = np.uint64((LATTICE.cells - cell) // np.uint32(CELLS_A_STEP[step]))
    # The product over all actions at the nodes. Those of the best action are the left ends of
    # cells, where polynomials are their constant coefficients.
    for q in range(np.uint64(0), nodes, SIXTEEN):
        block = vectors.load(CDF_TABLE, offsets[0] + q)
        for k in range(1, count):
            if q <= last[k]:
                cdf = quartic_block(CDF_TABLE, offsets[k] + q, width, positions[k])
                block = multiply(block, cdf)
        vectors.store(product, q, block)
    # Each action's own share of it.
    total = 0.0
    for k in range(count):
        sums = vectors.repeat(np.float32(0.0))
        for q in range(np.uint64(0), nodes, SIXTEEN):
            if q <= last[k]:
                ratio = quartic_block(RATIO_TABLE, offsets[k] + q, width, positions[k])
                sums = multiply_add(vectors.load(product, q), ratio, sums)
        gaps[k] = sum_block(sums)
        total += gaps[k]
    # The step, which all have in common, goes when they add to one. Equal actions have equal
    # numbers, to the last digit.
    share = 1.0 / total
    for k in range(count):
        out[rows[k], batch] += gaps[k] * share


@inlined_formula
def _add_few(
    mu: Floats,
    low: int,
    size: int,
    s: int,
    offsets: Any,
    positions: Singles,
    sums: Floats,
    out: Floats,
    batch: int,
) -> None:
    """Add the probabilities of so few actions that one block of nodes serves, without branches."""
    best = mu[low, s]
    for k in range(1, size):
        best = max(best, mu[low + k, s])
    # All are kept: one that is far below has no effect, wherever beyond that it is.
    width, block = np.uint64(WIDTHS[0]), vectors.repeat(np.float32(1.0))
    for k in range(size):
        gap = min(best - mu[low + k, s], NODES.irrelevant)
        y = FIRST_CELLS[0] + gap * LATTICE.cells_per_unit
        cell = np.uint32(y)
        offsets[k] = OFFSETS[0, cell]
        positions[k] = np.float32(y - cell)
        block = multiply(block, quartic_block(CDF_TABLE, offsets[k], width, positions[k]))
    total = 0.0
    for k in range(size):
        ratio = quartic_block(RATIO_TABLE, offsets[k], width, positions[k])
        sums[k] = sum_block(multiply(block, ratio))
        total += sums[k]
    share = 1.0 / total
    for k in range(size):
        out[low + k, batch] += sums[k] * share


@compiled
def add_probabilities(mu: Floats, start: Ints, batch: Ints, out: Floats) -> None:
    """Add the probability of every action under draw s to column batch[s] of out (P, B).

    mu: (P, S) rows @ v of each draw. start: (T + 1,) where each decision's rows begin.
    """
    most = 1
    for t in range(start.size - 1):
        most = max(most, start[t + 1] - start[t])
    rows, gaps, own, exact = (
        np.empty(most, np.int64),
        np.empty(most),
        np.empty(most),
        np.empty(most),
    )
    offsets, positions = np.empty(most, np.uint64), np.empty(most, np.float32)
    last, product = np.empty(most, np.uint64), np.empty(MOST_NODES, np.float32)
    for t in range(start.size - 1):
        low, high = start[t], start[t + 1]
        size = high - low
        if 2 < size <= MOST_ACTIONS[0]:
            for s in range(mu.shape[1]):
                _add_few(mu, low, size, s, offsets, positions, gaps, out, batch[s])
            continue
        for s in range(mu.shape[1]):
            best = low
            for j in range(low + 1, high):
                if mu[j, s] > mu[best, s]:
                    best = j
            rows[0], gaps[0], count = best, 0.0, 1
            for j in range(low, high):
                gap = mu[best, s] - mu[j, s]
                if j != best and gap < NODES.irrelevant:
                    rows[count] = j
                    gaps[count] = gap
                    count += 1
            # No rival: certain. One: Phi(-gap / sqrt(2)). More: the integral.
            if count == 1:
                out[best, batch[s]] += 1.0
            elif count == 2:
                other = math.exp(log_cdf(-ROOT_HALF * gaps[1])) if gaps[1] > 0.0 else 0.5
                out[rows[1], batch[s]] += other
                out[best, batch[s]] += 1.0 - other
            elif count > MOST_ACTIONS[-1]:
                for j in range(size):
                    own[j] = mu[low + j, s]
                all_probabilities(own[:size], np.array([0, size]), exact[:size])
                for j in range(size):
                    out[low + j, batch[s]] += exact[j]
            else:
                _add_on_nodes(gaps, rows, count, offsets, positions, last, product, out, batch[s])
