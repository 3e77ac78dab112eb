"""The likelihood of many groups, worked out for a batch of them at a time.

A group may have a dozen decisions, and calling the likelihood for each would take longer than the
likelihood itself. So utility gaps of some hundred groups are laid out one after the other, and one
call serves all of them.
"""

from typing import NamedTuple

import numpy as np

from revealed._types import Floats, Ints
from revealed.kernels._compile import compiled, inlined
from revealed.kernels.choice import log_likelihood
from revealed.kernels.choice_fast import ChoiceWorkspace, RivalIndex
from revealed.kernels.group_blocks import BLOCKS
from revealed.kernels.group_values import GroupedDecisions, make_likelihood_workspace
from revealed.kernels.interrupt import stop_requested
from revealed.kernels.noise import count_coordinates
from revealed.kernels.vectors import EIGHT, load, multiply_add, repeat, store, sum_block


class GroupBatches(NamedTuple):
    """Groups in batches of some blocks of eight, whose likelihood is worked out together.

    groups: what N groups chose; eight numbers follow the last of their columns. block_start,
    decision_start: (batches + 1,) where the blocks and the different decisions of each begin.
    start: where each decision's rivals begin, counted from zero for each batch, with one entry more
    a batch. max_blocks, max_rivals: of a batch.
    """

    groups: GroupedDecisions
    block_start: Ints
    decision_start: Ints
    start: Ints
    max_blocks: int
    max_rivals: int


class LikelihoodWorkspace(NamedTuple):
    """Arrays that the likelihood of a batch writes to.

    gaps, slopes: of its rivals, of the coordinates of the noise, and eight more. choice: what that
    of a decision writes to.
    """

    gaps: Floats
    slopes: Floats
    choice: ChoiceWorkspace


def make_batches(groups: GroupedDecisions) -> GroupBatches:
    """All groups in batches of whole blocks."""
    count = len(groups.rival_start) - 1
    blocks = -(-count // BLOCKS.lanes)
    # the group that each block begins with, and behind the last block the last one's end
    first = np.minimum(BLOCKS.lanes * np.arange(blocks + 1), count)
    number = groups.rival_start[first[:-1]] // BLOCKS.rivals_per_batch
    block_start = np.concatenate([np.flatnonzero(np.diff(number, prepend=-1)), [blocks]])
    group_start = first[block_start]
    rival_start = groups.rival_start[group_start]
    start = []
    for low, high, offset in zip(group_start[:-1], group_start[1:], rival_start[:-1], strict=True):
        for i in range(low, high):
            begin, end = groups.decision_start[i] + i, groups.decision_start[i + 1] + i
            start.append(groups.start[begin:end] + (groups.rival_start[i] - offset))
        start.append(groups.rival_start[[high]] - offset)
    return GroupBatches(
        groups._replace(columns=np.concatenate([groups.columns, np.zeros(BLOCKS.lanes)])),
        block_start.astype(np.int64),
        groups.decision_start[group_start].astype(np.int64),
        np.concatenate(start).astype(np.int64),
        int(np.diff(block_start).max()),
        int(np.diff(rival_start).max()),
    )


def make_batch_workspace(batches: GroupBatches) -> LikelihoodWorkspace:
    """A workspace for one chain."""
    # behind the rivals of each group, or of the batch, come the coordinates of the noise
    coordinates = count_coordinates(batches.groups.noise) * BLOCKS.lanes * batches.max_blocks
    count = batches.max_rivals + coordinates + BLOCKS.lanes
    choice = make_likelihood_workspace(batches.groups)
    return LikelihoodWorkspace(np.zeros(count), np.zeros(count), choice)


@inlined
def write_gaps(
    columns: Floats, first: int, count: int, value: Floats, gaps: Floats, at: int
) -> None:
    """Write the utility gaps of a group's rivals from position `at` on, for its value (D,).

    first: where its columns begin, count numbers each. Up to seven numbers more are overwritten.
    """
    for p in range(np.uint64(0), np.uint64(count), EIGHT):
        total = repeat(0.0)
        for k in range(value.size):
            column = np.uint64(first + k * count) + p
            total = multiply_add(load(columns, column), repeat(value[k]), total)
        store(gaps, np.uint64(at) + p, total)


@inlined
def write_gradient(
    columns: Floats, first: int, count: int, slopes: Floats, at: int, out: Floats, place: int
) -> None:
    """Write the gradient of a group's log-likelihood, each coordinate eight numbers further.

    From the slopes in the gaps of its rivals, from position `at` on. place: of the first one.
    """
    whole = np.uint64(count) // EIGHT * EIGHT
    for k in range(out.size // BLOCKS.lanes):
        column, total = np.uint64(first + k * count), repeat(0.0)
        for p in range(np.uint64(0), whole, EIGHT):
            block = load(slopes, np.uint64(at) + p)
            total = multiply_add(load(columns, column + p), block, total)
        rest: float = sum_block(total)
        for p in range(whole, np.uint64(count)):
            rest = multiply_add(columns[column + p], slopes[np.uint64(at) + p], rest)
        out[place + k * BLOCKS.lanes] = rest


@inlined
def select_rivals(batches: GroupBatches, b: int) -> RivalIndex:
    """The rivals of all decisions of batch b."""
    groups, begin, end = batches.groups, batches.decision_start[b], batches.decision_start[b + 1]
    count = groups.rival_start.size - 1
    low = groups.rival_start[min(batches.block_start[b] * BLOCKS.lanes, count)]
    high = groups.rival_start[min(batches.block_start[b + 1] * BLOCKS.lanes, count)]
    return RivalIndex(
        batches.start[begin + b : end + b + 1],
        groups.multiplicity[low:high],
        groups.weight[begin:end],
    )


@inlined
def select_rivals_of_group(groups: GroupedDecisions, i: int) -> RivalIndex:
    """The rivals of all decisions of group i."""
    low, high = groups.rival_start[i], groups.rival_start[i + 1]
    begin, end = groups.decision_start[i], groups.decision_start[i + 1]
    return RivalIndex(
        groups.start[begin + i : end + i + 1],
        groups.multiplicity[low:high],
        groups.weight[begin:end],
    )


@inlined
def write_coordinates(
    shared: Floats, value: Floats, coordinates: int, gaps: Floats, at: int
) -> None:
    """Write the coordinates of the noise behind a group's gaps, from position `at` on.

    First those that all groups share, then the group's own, which are the last of its value (D,).
    """
    own = coordinates - shared.size
    for j in range(shared.size):
        gaps[at + j] = shared[j]
    for j in range(own):
        gaps[at + shared.size + j] = value[value.size - own + j]


@inlined
def write_own_slopes(slopes: Floats, at: int, own: int, out: Floats, place: int) -> None:
    """Write the derivatives in a group's own coordinates of the noise into its gradient.

    They stand from position `at` on. place: of the gradient's first number, as in `write_gradient`.
    """
    width = out.size // BLOCKS.lanes
    for j in range(own):
        out[place + (width - own + j) * BLOCKS.lanes] = slopes[at + j]


@compiled
def evaluate_groups(
    batches: GroupBatches,
    work: LikelihoodWorkspace,
    values: Floats,
    shared: Floats,
    log_likelihoods: Floats,
    gradients: Floats,
) -> None:
    """Write the log-likelihoods (N,) and gradients (N, D) of groups at values (N, D).

    shared: coordinates of the noise that all groups share. No log-likelihoods are written where
    that array is empty.
    """
    groups, width = batches.groups, values.shape[1]
    lanes, coordinates = np.empty(width * BLOCKS.lanes), count_coordinates(batches.groups.noise)
    for i in range(values.shape[0]):
        if stop_requested():
            return
        low, high = groups.rival_start[i], groups.rival_start[i + 1]
        write_gaps(groups.columns, width * low, high - low, values[i], work.gaps, 0)
        write_coordinates(shared, values[i], coordinates, work.gaps, high - low)
        found = log_likelihood(
            groups.noise,
            work.gaps[: high - low + coordinates],
            select_rivals_of_group(groups, i),
            work.choice,
            -np.inf,
            work.slopes[: high - low + coordinates],
        )
        if log_likelihoods.size > 0:
            log_likelihoods[i] = found
        write_gradient(groups.columns, width * low, high - low, work.slopes, 0, lanes, 0)
        first = high - low + shared.size
        write_own_slopes(work.slopes, first, coordinates - shared.size, lanes, 0)
        for k in range(width):
            gradients[i, k] = lanes[k * BLOCKS.lanes]
