"""Averages of choice probabilities over as many draws as their Monte-Carlo error asks for.

Every decision begins with a few draws of each batch (`draw_batches.py`) and goes on, by doubling,
until all its probabilities are known well enough or all draws are used. Which draws a decision uses
depends on nothing but itself, so that blocks of decisions are worked on by any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from revealed._types import Bools, Floats, Ints
from revealed.data.threads import map_in_threads
from revealed.results.draw_batches import (
    DrawBatches,
    batch_deviations,
    batch_error,
    jackknife_deviations,
    rows_of,
    split_rows,
)
from revealed.samplers.progress import RULE, progress_bar

Adder = Callable[[Ints, Ints, Ints, Floats], Any]
"""Adds probabilities of decisions under draws to columns; see `DrawnProbabilities`."""


@dataclass(frozen=True)
class AveragingLimits:
    """When a probability is known well enough.

    Attributes
    ----------
    error
        Its Monte-Carlo standard error at most: 0.002 shows in no figure and changes no decision
        that matters. Half of it takes four times the draws.
    relative_error
        At most, beside the probability: log scores ask for it.
    small
        Probabilities below this need no smaller error than it has.
    rows
        Of a block of decisions, which is worked on at once: fewer cost time in Python, more do not
        share as well between threads.
    """

    error: float = 0.002
    relative_error: float = 0.1
    small: float = 0.002
    rows: int = 256


LIMITS = AveragingLimits()


@dataclass(frozen=True, eq=False)
class Average:
    """Probabilities of decisions, with what is known of their errors.

    probabilities, standard_error: (P,). draws: (U,) used for each decision. score: (B,) deviations
    of the sum of the log probabilities that count, as `batch_error` takes them.
    """

    probabilities: Floats
    standard_error: Floats
    draws: Ints
    score: Floats


def average_probabilities(
    start: Ints, add: Adder, batches: DrawBatches, times: Floats, smallest: float
) -> Average:
    """The probability of every action of decisions whose rows begin at start, over draws.

    times: (P,) how often each row counts in a log score, where its probability is not below
    `smallest`.
    """

    def average(which: Ints) -> Average:
        return _average_block(start, which, add, batches, times, smallest)

    return _join(_by_blocks(average, start))


def point_probabilities(
    start: Ints, add: Adder, batches: int, times: Floats, smallest: float
) -> Average:
    """The same at one value, that of draw 0; draws 1 to `batches` are what it is without a batch.

    Errors are those of the jackknife.
    """

    def at_point(which: Ints) -> Average:
        # column 0 is the value itself, the others are what is left without one batch
        rows, every = rows_of(start, which), np.arange(batches + 1)
        found = np.zeros((len(rows), batches + 1))
        add(which, every, every, found)
        mean, deviations = found[:, 0], jackknife_deviations(found[:, 1:])
        score = _score(mean, deviations, times[rows], smallest)
        return Average(mean, batch_error(deviations), np.ones(len(which), np.int64), score)

    return _join(_by_blocks(at_point, start))


def _by_blocks(average: Callable[[Ints], Average], start: Ints) -> list[Average]:
    """The averages of blocks of decisions, which say how far they are where that takes long."""
    blocks = split_rows(start, LIMITS.rows)
    with progress_bar("prediction", total=len(blocks), after=RULE.unseen) as completed:
        return map_in_threads(average, blocks, completed)


def _join(parts: list[Average]) -> Average:
    """The averages of blocks of decisions as one."""
    return Average(
        np.concatenate([part.probabilities for part in parts]),
        np.concatenate([part.standard_error for part in parts]),
        np.concatenate([part.draws for part in parts]),
        np.sum([part.score for part in parts], axis=0),
    )


def _average_block(
    start: Ints,
    which: Ints,
    add: Adder,
    batches: DrawBatches,
    times: Floats,
    smallest: float,
) -> Average:
    """The average of some decisions.

    Each over as many stages of draws as it needs, and none beyond.
    """
    # rows of these decisions alone, one after the other: `begin` says where each one's are
    sizes = np.diff(start)[which]
    begin = np.concatenate([[0], np.cumsum(sizes)])
    rows = rows_of(start, which)
    sums = np.zeros((len(rows), batches.count))
    mean, error = np.empty(len(rows)), np.empty(len(rows))
    deviations = np.empty_like(sums)
    draws, active = np.zeros(len(which), np.int64), np.arange(len(which))
    for stage, drawn in enumerate(batches.stages):
        # only decisions that are not known well enough get more draws
        own = rows_of(begin, active)
        more = np.zeros((len(own), batches.count))
        add(which[active], drawn, batches.batch[drawn], more)
        sums[own] += more
        counts = batches.counts(stage + 1)
        mean[own], deviations[own] = batch_deviations(sums[own], counts)
        error[own] = batch_error(deviations[own])
        draws[active] = counts.sum()
        # a decision goes on while any of its actions is not known well enough
        bad = ~_good_enough(mean[own], error[own])
        unfinished = np.logical_or.reduceat(bad, np.cumsum(sizes[active]) - sizes[active])
        active = active[unfinished]
        if not active.size:
            break
    return Average(mean, error, draws, _score(mean, deviations, times[rows], smallest))


def _good_enough(mean: Floats, error: Floats) -> Bools:
    """Which probabilities are known well enough; a NaN is not."""
    small = np.maximum(mean, LIMITS.small)
    # asked this way round, since a comparison with NaN is false and must not end the averaging
    return np.asarray(error <= np.minimum(LIMITS.error, LIMITS.relative_error * small))


def _score(mean: Floats, deviations: Floats, times: Floats, smallest: float) -> Floats:
    """(B,) deviations of the sum of log mean, each row as often as it counts.

    By the delta method: those of the mean, divided by it.
    """
    counted = np.flatnonzero((times > 0.0) & (mean >= smallest))
    return np.asarray((times[counted] / mean[counted]) @ deviations[counted])
