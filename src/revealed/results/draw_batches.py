"""Monte-Carlo errors of averages over chains, by batch means; and which draws to average over.

Draws of a chain depend on one another, so that S of them are worth fewer. Each chain is cut into
stretches, batches, that are long beside the dependence: their means are nearly independent, and the
average over all has the variance

    B / (B - 1)  sum over batches of  w_b^2 (mean_b - mean)^2,    w_b the share of draws in b

(Geyer 1992, section 3.2, "batch means"). What is added up over many quantities of the same draws
has its deviations w_b (mean_b - mean) added up before they are squared.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from revealed._types import Floats, Ints
from revealed._validation import check_count


@dataclass(frozen=True)
class BatchRule:
    """How draws are cut into batches, and how many of each are used first.

    Attributes
    ----------
    most
        Batches in all: with 40 the error itself is known to a ninth. More are shorter, and batches
        not much longer than the dependence between draws give too small an error.
    fewest
        Batches in all, where there are as many draws: with fewer the error is hardly known.
    length
        Draws that a batch has before there are more than the fewest batches.
    first
        Draws of each batch that are used first, spread over it; then twice as many, until the
        answer is good enough. Fewer are too few to tell.
    """

    most: int = 40
    fewest: int = 20
    length: int = 25
    first: int = 8


RULE = BatchRule()


@dataclass(frozen=True, eq=False)
class DrawBatches:
    """Which draws are used one after the other, and in which batch each is.

    batch: (S,) of all draws, chains one after the other. stages: positions of the draws that are
    used first, that are added next, and so on.
    """

    batch: Ints
    stages: tuple[Ints, ...]

    @property
    def count(self) -> int:
        """How many batches there are."""
        return int(self.batch.max()) + 1

    @property
    def used(self) -> Ints:
        """All draws that may be used, in their order."""
        return np.sort(np.concatenate(self.stages))

    def counts(self, stages: int) -> Ints:
        """(B,) draws of each batch in the first so many stages."""
        drawn = np.concatenate(self.stages[:stages])
        return np.bincount(self.batch[drawn], minlength=self.count)


def cut_into_batches(chains: int, draws: int) -> Ints:
    """(chains * draws,) the batch of each draw, chains one after the other.

    All chains have equally many batches, of equal length but for one draw.
    """
    total = chains * draws
    batches = min(RULE.most, max(RULE.fewest, total // RULE.length))
    of_chain = min(draws, max(1, -(-batches // chains)))
    within = np.arange(draws) * of_chain // draws
    return np.asarray((np.arange(chains)[:, None] * of_chain + within).ravel())


def plan_draws(chains: int, draws: int, wanted: int | str | None) -> DrawBatches:
    """Which draws are averaged over.

    wanted: "all", at most so many, or None for as many as are needed, which come in stages.
    """
    total, batch = chains * draws, cut_into_batches(chains, draws)
    if isinstance(wanted, str) and wanted != "all":
        raise ValueError(f'draws must be a number, "all" or None; it is {wanted!r}')
    if wanted == "all":
        return DrawBatches(batch, (np.arange(total),))
    if wanted is not None:
        check_count("draws", wanted)
        count = min(int(wanted), total)
        # evenly over all chains
        picked = np.arange(count) * total // count + total // count // 2
        # batches of which there is no draw do not count
        found, batch_of_picked = np.unique(batch[picked], return_inverse=True)
        relabelled = np.full(total, -1)
        relabelled[picked] = batch_of_picked
        assert len(found) <= count
        return DrawBatches(relabelled, (picked,))
    # The rank of each draw within its batch, in an order that spreads the first ones evenly.
    rank = np.concatenate([_spread(size) for size in np.bincount(batch).tolist()])
    stages, before, until = [], 0, RULE.first
    while before < rank.max() + 1:
        stages.append(np.flatnonzero((rank >= before) & (rank < until)))
        before, until = until, 2 * until
    return DrawBatches(batch, tuple(stages))


def _spread(size: int) -> Ints:
    """(size,) ranks such that draws of a rank below any number lie evenly.

    Those of van der Corput's sequence: bits in reverse order.
    """
    bits = max(1, (size - 1).bit_length())
    reversed_bits = np.zeros(size, np.int64)
    for bit in range(bits):
        reversed_bits |= (np.arange(size) >> bit & 1) << (bits - 1 - bit)
    return np.argsort(np.argsort(reversed_bits))


def batch_deviations(sums: Floats, counts: Ints) -> tuple[Floats, Floats]:
    """Means (n,), and the weighted deviations (n, B) of their batches.

    sums: (n, B) of each batch. counts: (B,) of its draws.
    """
    mean = sums.sum(axis=1) / counts.sum()
    return mean, (sums - mean[:, None] * counts) / counts.sum()


def batch_error(deviations: Floats) -> Floats:
    """Standard errors from weighted deviations (..., B), by the formula above.

    NaN from a single batch, which says nothing of it.
    """
    count = deviations.shape[-1]
    if count == 1:
        return np.full(deviations.shape[:-1], np.nan)
    return np.asarray(np.sqrt(count / (count - 1.0) * (deviations**2).sum(axis=-1)))


def leave_batches_out(draws: Floats, batch: Ints) -> Floats:
    """(B, ...) the means of draws (S, ...) without those of each batch.

    For the jackknife, which has the error of what is not a mean.
    """
    flat = draws.reshape(len(draws), -1)
    count = np.bincount(batch)
    sums = np.stack([flat[batch == b].sum(axis=0) for b in range(len(count))])
    means = (flat.sum(axis=0) - sums) / np.maximum(len(draws) - count, 1)[:, None]
    return np.asarray(means.reshape(-1, *draws.shape[1:]))


def jackknife_deviations(values: Floats) -> Floats:
    """(..., B) deviations as `batch_error` takes them, from values without each batch."""
    count = values.shape[-1]
    return np.asarray((values.mean(axis=-1, keepdims=True) - values) * (count - 1.0) / count)


def split_rows(start: Ints, rows: int) -> list[Ints]:
    """The decisions cut into runs of about so many rows, at least one decision each.

    start: (T + 1,) where the rows of each begin.
    """
    # a decision belongs to the run in which its last row lies
    run = (start[1:] - 1) // max(1, rows)
    return np.split(np.arange(len(start) - 1), np.flatnonzero(np.diff(run)) + 1)


def rows_of(start: Ints, which: Ints) -> Ints:
    """The rows of these decisions, one after the other.

    start: (T + 1,) where the rows of each begin.
    """
    sizes = np.diff(start)[which]
    before = np.cumsum(sizes) - sizes
    return np.asarray(np.repeat(start[which] - before, sizes) + np.arange(sizes.sum()))
