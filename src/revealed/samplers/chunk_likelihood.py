"""The likelihood of a chunk of decisions: log-probabilities at many values, and derivatives at one.

A pass over very many decisions evaluates a function of every chunk and adds the results up in the
order of the chunks. The order is what makes a pass come out the same to the last bit, whoever does
the work. Only the value goes out to the chunks, and only K numbers, a K x K matrix or one number a
proposal come back.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from revealed._types import Floats
from revealed.data.decisions import Decisions
from revealed.data.unique import deduplicate
from revealed.kernels.choice import add_log_likelihoods
from revealed.kernels.choice_fast import RivalIndex, make_choice_workspace
from revealed.kernels.design import Design
from revealed.kernels.interrupt import raise_if_stopping
from revealed.kernels.noise import NORMAL, AnyNoise
from revealed.models.likelihood import weighted_derivatives


class PreparedBlock(NamedTuple):
    """Some decisions with equal ones counted once, ready for the kernels.

    unique: the different decisions. rivals: which rivals each has, and how often it counts. design:
    rival row minus chosen row, laid out by columns.
    """

    unique: Decisions
    rivals: RivalIndex
    design: Design

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return int(
            2 * (self.design.columns.nbytes + 2 * self.design.data.nbytes)
            + 3 * self.rivals.multiplicity.nbytes
        )


PreparedChunk = list[PreparedBlock]
"""A chunk of decisions, cut into blocks that are evaluated together."""


def prepare(decisions: Decisions, weights: Floats) -> PreparedChunk:
    """A chunk in blocks, ready for passes; labels of actions and groups are left behind.

    weights: (T,) how often each decision counts.
    """
    # Decisions evaluated together: the rivals of so many fit into the cache of one core. Larger
    # blocks are slower, and smaller ones pay more for the call.
    block_size = 4096
    # equal decisions are evaluated once and counted as often as they were made
    counted = deduplicate(
        Decisions(decisions.rows, decisions.start, decisions.chosen_row - decisions.start[:-1]),
        weights,
    )
    unique, (begin, multiplicity, weight) = counted.unique, counted.rival_index
    blocks = []
    for low in range(0, len(unique), block_size):
        high = min(low + block_size, len(unique))
        # the rivals of a block's decisions lie together
        rivals = slice(begin[low], begin[high])
        index = RivalIndex(
            begin[low : high + 1] - begin[low], multiplicity[rivals], weight[low:high]
        )
        design = Design.from_rows(counted.rival_minus_chosen[rivals])
        blocks.append(PreparedBlock(unique[low:high], index, design))
    return blocks


def log_likelihoods(chunk: PreparedChunk, values: Floats, noise: AnyNoise = NORMAL) -> Floats:
    """(S,) log probability of a chunk's choices at each of values (S, K)."""
    out = np.zeros(len(values))
    _add_log_likelihoods(chunk, values, noise, out, np.zeros((0, values.shape[1])))
    return out


def values_and_gradients(chunk: PreparedChunk, values: Floats, noise: AnyNoise = NORMAL) -> Floats:
    """(S, K + 1) log probability of a chunk's choices at each of values (S, K), and its gradient.

    The gradient costs about as much again as the log probability.
    """
    out, gradients = np.zeros(len(values)), np.zeros(values.shape)
    _add_log_likelihoods(chunk, values, noise, out, gradients)
    return np.column_stack([out, gradients])


def _add_log_likelihoods(
    chunk: PreparedChunk, values: Floats, noise: AnyNoise, out: Floats, gradients: Floats
) -> None:
    """Add the log probability of a chunk's choices to out, and its gradient where it is wanted."""
    # Rivals evaluated between two moments at which Ctrl-C is seen: a tenth of a second or so.
    rivals_at_a_time = 2_000_000
    for block in chunk:
        # threads work on chunks at the same time, so that each call has arrays of its own
        workspace = make_choice_workspace(block.rivals)
        some = max(1, rivals_at_a_time // max(1, block.rivals.multiplicity.size))
        for low in range(0, len(values), some):
            raise_if_stopping()
            part = slice(low, low + some)
            add_log_likelihoods(
                noise,
                block.design,
                block.rivals,
                workspace,
                values[part],
                out[part],
                gradients[part],
            )


def derivatives(chunk: PreparedChunk, v: Floats, noise: AnyNoise = NORMAL) -> Floats:
    """(K + 1, K + 1) log probability of a chunk's choices at v, its gradient and minus its Hessian.

    One array, so that a pass has one sum: [0, 0] is the log probability, [0, 1:] the gradient and
    [1:, 1:] minus the Hessian; the rest is zero.
    """
    out = np.zeros((len(v) + 1, len(v) + 1))
    out[0, 0] = log_likelihoods(chunk, v[None], noise)[0]
    for block in chunk:
        # blocks are added in their order, which fixes the last bit
        gradient, information = weighted_derivatives(block.unique, v, block.rivals.weight, noise)
        out[0, 1:] += gradient
        out[1:, 1:] += information
    return out
