"""Which strategy was in use when: smoothed probabilities, and what follows ahead of choices.

Draw by draw the recursions of `kernels/hidden_markov.py`, with likelihoods of different decisions
gathered along their sequences.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from revealed._types import Floats, Ints
from revealed.data.decisions import Decisions
from revealed.data.unique import choice_labels, find_kinds
from revealed.kernels.hidden_markov import Chain, most_probable_states, smooth_all
from revealed.kernels.interrupt import raise_if_stopping
from revealed.models.likelihood import choice_probabilities, log_likelihood
from revealed.models.noise import KnownNoise
from revealed.models.switching import sequences_of
from revealed.results.draw_batches import batch_deviations, batch_error, cut_into_batches
from revealed.results.prediction import Prediction
from revealed.results.predictive import noise_of_draws


@dataclass(frozen=True)
class StrategyLimits:
    """How much is worked on at once, and where doubles end.

    numbers: held at once for a block of draws, 32 MB; fewer cost time, more cost memory.
    probability: what one is taken as at least before its logarithm.
    """

    numbers: int = 4_000_000
    probability: float = 1e-300


LIMITS = StrategyLimits()


@dataclass(frozen=True, eq=False, repr=False)
class Strategies:
    """Which strategy made each decision.

    Attributes
    ----------
    probability
        (T, S) of each strategy at each decision given all choices, averaged over the draws.
    most_probable
        (T,) the labels 1 to S of the most probable sequence of strategies (Viterbi), under the draw
        of the highest log posterior: one sequence at one point, which does not say how sure it is.
    sequence
        (T,) the label of each decision's sequence.
    decisions
        Whose strategies they are.
    """

    probability: Floats
    most_probable: Ints
    sequence: Any
    decisions: Decisions

    def to_dataframe(self) -> Any:
        """A pandas table, one row a decision: its id, sequence, and each strategy's probability."""
        import pandas as pd

        columns: dict[str, Any] = {
            "decision": list(self.decisions.ids),
            "sequence": list(self.sequence),
            "most_probable": self.most_probable,
        }
        for s in range(self.probability.shape[1]):
            columns[f"strategy {s + 1}"] = self.probability[:, s]
        return pd.DataFrame(columns)

    def __repr__(self) -> str:
        shares = ", ".join(f"{share:.0%}" for share in self.probability.mean(axis=0))
        switches = int((np.diff(self.most_probable) != 0).sum())
        return (
            f"<Strategies: {len(self.most_probable)} decisions, in use {shares}; the most probable "
            f"sequence changes {switches} times>"
        )


@dataclass(frozen=True, eq=False)
class DrawnStrategies:
    """Draws of strategies: values (D, S, K), switch (D, S, S), initial (D, S), and their noise."""

    values: Floats
    switch: Floats
    initial: Floats
    noise: KnownNoise | None

    @property
    def count(self) -> int:
        """D, how many draws there are."""
        return len(self.values)

    def some(self, which: Ints) -> DrawnStrategies:
        """Some of the draws.

        With the noise of each.
        """
        return DrawnStrategies(
            self.values[which],
            self.switch[which],
            self.initial[which],
            noise_of_draws(self.noise, which),
        )

    def blocks(self, numbers: int) -> Iterator[tuple[Ints, DrawnStrategies]]:
        """Draws block by block, each of which needs so many numbers at once."""
        size = max(1, LIMITS.numbers // max(1, numbers * self.values.shape[1]))
        for first in range(0, self.count, size):
            which = np.arange(first, min(first + size, self.count))
            yield which, self.some(which)

    def logs(self, unique: Decisions) -> Floats:
        """(D, U, S) log P of each of these choices under each strategy.

        U different choices, D draws.
        """
        logs = [
            log_likelihood(unique, self.values[:, s], self.noise)
            for s in range(self.values.shape[1])
        ]
        return np.ascontiguousarray(np.stack(logs, axis=2))

    def chain(self, n: int) -> Chain:
        """The Markov chain of one draw.

        As compiled loops take it.
        """
        return Chain(np.ascontiguousarray(self.switch[n]), np.ascontiguousarray(self.initial[n]))


class SeenSequences(NamedTuple):
    """Sequences of choices: different decisions, of which kind each of T is, and their bounds.

    kind (T,), start (N + 1,): in the order (T,) of the decisions along the sequences.
    """

    unique: Decisions
    kind: Ints
    start: Ints
    order: Ints


def seen_sequences(decisions: Decisions) -> SeenSequences:
    """The sequences of these choices, equal ones once.

    Likelihoods are worked out for each different choice.
    """
    where, kind = find_kinds(decisions, choice_labels(decisions))
    _, order, start = sequences_of(decisions)
    return SeenSequences(decisions[where], kind[order].astype(np.int64), start, order)


def log_likelihoods(drawn: DrawnStrategies, decisions: Decisions) -> Floats:
    """(D, N) of each sequence under each draw, states summed out.

    Sequences in the order of first appearance.
    """
    return _go_through(drawn, seen_sequences(decisions))[0]


def smoothed(drawn: DrawnStrategies, decisions: Decisions) -> Floats:
    """(T, S) of each strategy at each decision, averaged over the draws.

    Given all choices of its sequence, in the order of the decisions.
    """
    seen = seen_sequences(decisions)
    probability = np.empty((len(decisions), drawn.values.shape[1]))
    probability[seen.order] = _go_through(drawn, seen)[1]
    return probability


def _go_through(drawn: DrawnStrategies, seen: SeenSequences) -> tuple[Floats, Floats]:
    """Log-likelihoods (D, N), and mean smoothed probabilities (T, S) along the sequences."""
    logs = np.empty((drawn.count, len(seen.start) - 1))
    shape = len(seen.kind), drawn.values.shape[1]
    # one draw at a time: arrays of all of them would fill memory
    smooth, predicted, total = np.empty(shape), np.empty(shape), np.zeros(shape)
    for which, some in drawn.blocks(len(seen.unique)):
        for n, block in enumerate(some.logs(seen.unique)):
            raise_if_stopping()
            chain = some.chain(n)
            smooth_all(seen.kind, seen.start, chain, block, smooth, predicted, logs[which[n]])
            total += smooth
    return logs, total / drawn.count


def most_probable(one: DrawnStrategies, decisions: Decisions) -> Ints:
    """(T,) positions of the strategies of the most probable sequence, under a single draw."""
    seen = seen_sequences(decisions)
    # in the order of sequences, then in that of the decisions
    path, found = np.empty(len(seen.kind), np.int64), np.empty(len(seen.kind), np.int64)
    logs = one.logs(seen.unique)[0]
    most_probable_states(seen.kind, seen.start, one.chain(0), logs, path)
    found[seen.order] = path
    return found


def predict_sequences(
    drawn: DrawnStrategies,
    decisions: Decisions,
    filtered: bool,
    shape: tuple[int, int],
    which: Ints,
) -> Prediction:
    """Probabilities of all actions, a mixture over strategies, averaged over draws.

    filtered: whether the earlier choices of a sequence say which strategy is in use. shape: chains,
    draws. which: of the draws that are used.
    """
    _, order, start = sequences_of(decisions)
    where, kind = find_kinds(decisions)
    offers = decisions[where]
    # rows of each decision among those of its kind
    sizes = decisions.sizes
    within = np.arange(decisions.start[-1]) - np.repeat(decisions.start[:-1], sizes)
    row = np.repeat(offers.start[kind], sizes) + within
    decision = decisions.decision_of_row
    seen = seen_sequences(decisions) if filtered else None
    # without choices all kinds are one, whose likelihood says nothing
    kinds = np.zeros(len(order), np.int64) if seen is None else seen.kind
    cells = len(decisions), drawn.values.shape[1]
    smooth, predicted, own = np.empty(cells), np.empty(cells), np.empty(cells)
    log_likelihood_of = np.empty(len(start) - 1)
    found, batch = np.unique(cut_into_batches(*shape)[which], return_inverse=True)
    sums = np.zeros((len(row), len(found)))
    used = drawn.some(which)
    numbers = offers.rows.shape[0] + (0 if seen is None else len(seen.unique))
    for block, some in used.blocks(numbers):
        states = some.values.shape[1]
        # of each kind of offer under each strategy, mixed below
        probabilities = np.stack(
            [choice_probabilities(offers, some.values[:, s], some.noise) for s in range(states)]
        )
        logs = np.zeros((len(block), 1, states)) if seen is None else some.logs(seen.unique)
        for n in range(len(block)):
            raise_if_stopping()
            smooth_all(kinds, start, some.chain(n), logs[n], smooth, predicted, log_likelihood_of)
            own[order] = predicted
            # each strategy counts as probable as it is before the choice
            mixed = np.zeros(len(row))
            for s in range(states):
                mixed += own[decision, s] * probabilities[s, n, row]
            sums[:, batch[block[n]]] += mixed
    # batches of draws say how far another run would be off
    mean, deviations = batch_deviations(sums, np.bincount(batch))
    logs_chosen, score = None, None
    if decisions.chosen is not None:
        chosen = np.maximum(mean[decisions.chosen_row], LIMITS.probability)
        logs_chosen = np.log(chosen)
        score = (deviations[decisions.chosen_row] / chosen[:, None]).sum(axis=0)
    return Prediction(
        mean,
        "average",
        decisions,
        logs_chosen,
        batch_error(deviations),
        np.full(len(decisions), used.count),
        drawn.count,
        score,
    )
