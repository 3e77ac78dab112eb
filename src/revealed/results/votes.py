"""Votes of draws for actions: each adds fresh noise to rows @ v and votes for the best action."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from revealed._types import Floats, Ints
from revealed.data.decisions import Decisions
from revealed.models.correlated_noise import NoiseCovariance
from revealed.models.lapse import KnownLapse
from revealed.models.noise import KnownNoise, NormalNoise
from revealed.results.actions import first_best
from revealed.results.averaging import Average
from revealed.results.draw_batches import DrawBatches
from revealed.results.given_draws import relative_utilities

# Numbers held at once when draws and rows meet, 32 MB: more are worked on one after the other.
MAX_CELLS = 4_000_000


def count_votes(
    rng: np.random.Generator,
    values: Floats,
    decisions: Decisions,
    noise: KnownNoise | None,
    batches: DrawBatches,
) -> tuple[Average, Ints]:
    """Vote shares of all actions, and (T, B) how many votes of each batch what was chosen got.

    values: (S, K) all draws, of which those of `batches` vote. The score of the average is left at
    zero.
    """
    used = batches.used
    count = batches.counts(len(batches.stages))
    add_noise = _noise_adder(rng, noise, values, decisions)
    chosen_row = None if decisions.chosen is None else decisions.chosen_row
    votes, squares, weighted = (np.zeros(decisions.rows.shape[0]) for _ in range(3))
    chosen = np.zeros((len(decisions), batches.count), np.int64)
    begin = 0
    # a batch after the other: the order of draws decides the noise, however they are cut
    for b, size in enumerate(count.tolist()):
        own = _count_some(values, used[begin : begin + size], decisions, add_noise)
        votes += own
        squares += own.astype(np.float64) ** 2
        weighted += size * own
        if chosen_row is not None:
            chosen[:, b] = own[chosen_row]
        begin += size
    share, total = votes / len(used), float(len(used))
    # the sum over batches of (votes - size share)^2
    spread = squares - 2.0 * share * weighted + share**2 * float(count @ count)
    error = np.full(len(share), np.nan)
    if batches.count > 1:
        error = np.sqrt(batches.count / (batches.count - 1.0) * np.maximum(spread, 0.0)) / total
    draws = np.full(len(decisions), len(used))
    return Average(share, error, draws, np.zeros(batches.count)), chosen


def score_votes(
    average: Average, chosen: Ints, decisions: Decisions, batches: DrawBatches
) -> tuple[Floats, Floats]:
    """(T,) log probability of what was chosen, and its deviations (T, B) by batch.

    With half a vote on top for each action, as Jeffreys' prior would have it.
    """
    count = batches.counts(len(batches.stages))
    total, votes = count.sum(), chosen.sum(axis=1)
    logs = np.log((votes + 0.5) / (total + 0.5 * decisions.sizes))
    deviations = (chosen - np.outer(votes / total, count)) / (votes + 0.5)[:, None]
    return logs, deviations


def _count_some(
    values: Floats,
    draws: Ints,
    decisions: Decisions,
    add_noise: Callable[[Floats, Ints], None],
) -> Ints:
    """(P,) how many of these draws vote for each action.

    Some at a time, to bound the memory.
    """
    rows = decisions.rows.shape[0]
    votes = np.zeros(rows, np.int64)
    at_once = max(1, MAX_CELLS // rows)
    for first in range(0, len(draws), at_once):
        now = draws[first : first + at_once]
        w = relative_utilities(values[now], decisions)
        add_noise(w, now)
        best = first_best(w, decisions.start) + decisions.start[:-1]
        votes += np.bincount(best.ravel(), minlength=rows)
    return votes


def _noise_adder(
    rng: np.random.Generator,
    noise: KnownNoise | None,
    values: Floats,
    decisions: Decisions,
) -> Callable[[Floats, Ints], None]:
    """What adds fresh noise to utilities (n, P) of these n draws."""
    if isinstance(noise, KnownLapse):
        # each draw has a rate of its own
        rate, attending = np.broadcast_to(noise.rate, len(values)), noise.noise
        label = noise.label_of_row(decisions)

        def add_with_lapses(w: Floats, draws: Ints) -> None:
            w += attending.sample_decisions(rng, w.shape, decisions.decision_of_row, draws)
            # who lapses looks at numbers that are all alike
            lapses = rng.random((len(draws), len(decisions))) < rate[draws, None]
            blind = rng.random(w.shape)
            if label is not None:
                # of exponentials divided by weights each is the least as often as its weight says
                blind = np.log(blind) / noise.of_draws(draws).weights[..., label]
            w[:] = np.where(lapses[:, decisions.decision_of_row], blind, w)

        return add_with_lapses
    if not isinstance(noise, NoiseCovariance):
        law = noise or NormalNoise()

        def add_independent(w: Floats, draws: Ints) -> None:
            w += law.sample_decisions(rng, w.shape, decisions.decision_of_row, draws)

        return add_independent
    label, decision = noise.label_of_row(decisions), decisions.decision_of_row
    # one covariance serves all draws where only one is given
    shape = noise.covariance.shape[-2:]
    covariance = np.broadcast_to(noise.covariance, (len(values), *shape))

    def add_correlated(w: Floats, draws: Ints) -> None:
        root = np.linalg.cholesky(covariance[draws])
        z = rng.standard_normal((len(root), len(decisions), root.shape[-1]))
        # the base's noise is zero, because noise is measured against it
        base = np.zeros((*z.shape[:2], 1))
        of_label = np.concatenate([base, z @ root.transpose(0, 2, 1)], axis=2)
        w += of_label[:, decision, label]

    return add_correlated
