"""The probabilities of all actions of a decision at once, summed over draws: for predictions.

Measured from the best action, with g_j >= 0 how far action j is below it,

    P(c) = integral of  r(z + g_c) * prod over all j of Phi(z + g_j)  dz,   r = phi/Phi,

by the trapezoid rule on nodes that all actions and all draws share: the midpoints of equal steps
from about -6 to 6, where the largest of the utilities lies but for 1e-9 a tail. Each step is a
whole number of table cells, so that all nodes of an action have the same position u within their
cells, and eight of them are one polynomial in u whose coefficients lie side by side in memory.
They are then made to add to one.

The error is absolute, below 2e-8: of the rule 1e-9 (its steps are finer with more actions), of the
tails 1e-9 and 2e-10 an action, of the tables 1e-10, of actions left out 2e-11 each. Probabilities
whose logarithm matters and that are not much larger have `choice_exact.py`, and so have decisions
with more actions that matter than the finest step serves.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtr

from revealed._types import Floats, Ints
from revealed.kernels import vectors
from revealed.kernels._compile import compiled, inlined_formula
from revealed.kernels.choice_exact import ROOT_HALF, all_probabilities
from revealed.kernels.normal import LOG_ROOT_TWO_PI, log_cdf
from revealed.kernels.vectors import EIGHT, multiply, multiply_add, quartic_block, sum_block


class SharedNodes(NamedTuple):
    """The tables, and which step serves how many actions.

    strides: cells a step. most_actions: that matter, with each of the steps. first: the left end of
    the first step. width: of all steps together. irrelevant: how far below the best an action is
    left out.
    """

    cells_per_unit: int
    degree: int
    low: float
    high: float
    width: float
    irrelevant: float
    strides: tuple[int, ...]
    most_actions: tuple[int, ...]
    first: tuple[float, ...]


# cells_per_unit, degree: the polynomials are off by 1e-10 at most; half the cells, 32 times that.
# low, high: no node lies left of the tables; right of them 1 - Phi is 1e-12.
# irrelevant: Phi(-9.5 / sqrt(2)) = 9e-12, the probability of an action so far below, and at most
# its effect on the others.
# strides, most_actions: steps of 1/2, 3/8 and 1/4 for 5, 12 and 64 actions, by measured error:
# below 4e-9, ties and leads over ties included. With twice as many actions it is 1e-6.
# first: with more actions the largest utility lies further right.
NODES = SharedNodes(
    cells_per_unit=16,
    degree=4,
    low=-6.0,
    high=7.0,
    width=12.0,
    irrelevant=9.5,
    strides=(8, 6, 4),
    most_actions=(5, 12, 64),
    first=(-6.0, -5.75, -5.75),
)
STRIDES = np.array(NODES.strides)
MOST_ACTIONS = np.array(NODES.most_actions)
# Steps in units of utility, and where their first node lies.
STEPS = np.divide(STRIDES, NODES.cells_per_unit)
FIRST_NODES = np.add(NODES.first, STEPS / 2.0)
COUNTS = np.array(np.rint(NODES.width / STEPS), dtype=np.int64)
# Cells that a first node can lie in; the last node lies a width further right.
CELLS = math.ceil((max(NODES.first) - NODES.low + 1.0 + NODES.irrelevant) * NODES.cells_per_unit)
# Entries of one phase (cell number modulo stride) in the tables.
PHASE_WIDTHS = np.add(-(-CELLS // STRIDES), COUNTS)


def _cell_polynomials(function: Callable[[Floats], Floats]) -> Floats:
    """(degree + 1, cells) coefficients in u, from 0 to 1, by interpolation at Chebyshev points."""
    terms = NODES.degree + 1
    points = 0.5 - 0.5 * np.cos((2 * np.arange(terms) + 1) * np.pi / (2 * terms))
    cells = round((NODES.high - NODES.low) * NODES.cells_per_unit)
    left = NODES.low + np.arange(cells) / NODES.cells_per_unit
    values = function(left[:, None] + points[None, :] / NODES.cells_per_unit)
    return np.asarray(np.linalg.solve(np.vander(points, terms, increasing=True), values.T))


def _by_phase(function: Callable[[Floats], Floats], beyond: float) -> Floats:
    """For each stride the polynomials of cells a stride apart side by side.

    Coefficient k of cell n * stride + phase stands (phase * (degree + 1) + k) * width + n behind
    where the stride begins. Behind the last cell the function is `beyond`.
    """
    polynomials, terms, parts = _cell_polynomials(function), NODES.degree + 1, []
    for stride, width in zip(STRIDES, PHASE_WIDTHS, strict=True):
        padded = np.zeros((terms, stride * width))
        padded[0] = beyond
        known = min(polynomials.shape[1], padded.shape[1])
        padded[:, :known] = polynomials[:, :known]
        # (terms, n, phase) -> (phase, terms, n), the order of the formula above.
        parts.append(padded.reshape(terms, width, stride).transpose(2, 0, 1).ravel())
    return np.concatenate(parts)


def _cell_offsets() -> Ints:
    """(steps, cells) where the constant coefficient of a cell stands in the tables."""
    terms = NODES.degree + 1
    begin = np.concatenate([[0], np.cumsum(STRIDES * PHASE_WIDTHS * terms)[:-1]])
    cell, stride = np.arange(CELLS)[None, :], STRIDES[:, None]
    offsets = begin[:, None] + cell % stride * terms * PHASE_WIDTHS[:, None] + cell // stride
    return np.ascontiguousarray(offsets).astype(np.uint32)


def _best_at_nodes() -> Floats:
    """(steps, nodes) Phi of the best action at the nodes, times the step."""
    out = np.zeros((len(STRIDES), COUNTS.max()))
    for k, count in enumerate(COUNTS):
        out[k, :count] = STEPS[k] * ndtr(FIRST_NODES[k] + STEPS[k] * np.arange(count))
    return out


CDF_TABLE = _by_phase(ndtr, 1.0)
RATIO_TABLE = _by_phase(lambda x: np.exp(-0.5 * x * x - LOG_ROOT_TWO_PI - log_ndtr(x)), 0.0)
CELL_OFFSETS = _cell_offsets()
BEST_CDF = _best_at_nodes().ravel()
BEST_WIDTH = int(COUNTS.max())


@inlined_formula
def _add_on_nodes(
    gaps: Floats,
    rows: Ints,
    count: int,
    offsets: Any,
    positions: Floats,
    product: Floats,
    out: Floats,
    batch: int,
) -> None:
    """Add the probabilities of actions with these gaps to column `batch` of out.

    The first of them is the best one, whose gap is zero.
    """
    step = 0
    while count > MOST_ACTIONS[step]:
        step += 1
    blocks, width = np.uint64(COUNTS[step]), np.uint64(PHASE_WIDTHS[step])
    # Where the coefficients of each action's first node stand, and its position in the cell.
    left = (FIRST_NODES[step] - NODES.low) * NODES.cells_per_unit
    for k in range(count):
        y = left + gaps[k] * NODES.cells_per_unit
        cell = np.uint32(y)
        offsets[k] = CELL_OFFSETS[step, cell]
        positions[k] = y - cell
    # The product over all actions at the nodes, then for each its own share of it.
    for q in range(np.uint64(0), blocks, EIGHT):
        block = vectors.load(BEST_CDF, np.uint64(step * BEST_WIDTH) + q)
        for k in range(1, count):
            block = multiply(block, quartic_block(CDF_TABLE, offsets[k] + q, width, positions[k]))
        vectors.store(product, q, block)
    total = 0.0
    for k in range(count):
        sums = vectors.repeat(0.0)
        for q in range(np.uint64(0), blocks, EIGHT):
            ratio = quartic_block(RATIO_TABLE, offsets[k] + q, width, positions[k])
            sums = multiply_add(vectors.load(product, q), ratio, sums)
        gaps[k] = sum_block(sums)
        total += gaps[k]
    # Equal actions have equal numbers, to the last digit.
    for k in range(count):
        out[rows[k], batch] += gaps[k] / total


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
    offsets, positions = np.empty(most, np.uint64), np.empty(most)
    product = np.empty(BEST_WIDTH)
    for t in range(start.size - 1):
        low, high = start[t], start[t + 1]
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
                size = high - low
                for j in range(size):
                    own[j] = mu[low + j, s]
                all_probabilities(own[:size], np.array([0, size]), exact[:size])
                for j in range(size):
                    out[low + j, batch[s]] += exact[j]
            else:
                _add_on_nodes(gaps, rows, count, offsets, positions, product, out, batch[s])
