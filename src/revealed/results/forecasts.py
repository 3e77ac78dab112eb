"""Forecasts: the probability that each of several forecasters gave to what then happened.

An event is one choice, one pair of entries whose order was seen, or one winner. Its loss is minus
the log probability of what happened; means of it over events have intervals by resampling whole
units, such as games, whose events depend on one another (the cluster bootstrap, Field and Welsh
2007): with n_u events and loss L_u of unit u, drawn w_u times,

    mean = sum over u of w_u L_u / sum over u of w_u n_u.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from revealed._types import Floats, Ints
from revealed._validation import check_count
from revealed.results.prediction import Calibration, gather_calibration


@dataclass(frozen=True)
class ResamplingRule:
    """What is resampled, and when two forecasts are one.

    fewest_units: of fewer groups or sessions nobody learns how much they differ: with less,
    intervals are much too narrow. equal: probabilities that differ by less are equal, and a guess
    between them is right by chance; much more, and forecasts that differ would be taken for equal.
    """

    fewest_units: int = 10
    equal: float = 1e-12


RESAMPLING = ResamplingRule()


class Scores(NamedTuple):
    """How one forecaster did with n events; arrays (n,).

    log_probability: of what happened. confidence: probability of what was thought most likely.
    correct: whether that happened; with equals at the top, the share of a guess among them.
    """

    log_probability: Floats
    confidence: Floats
    correct: Floats


def score_actions(probability: Floats, start: Ints, happened: Ints) -> Scores:
    """Scores of events with several outcomes: (P,) probabilities, event e's from start[e] on.

    happened: (n,) which of its outcomes came about, counted from zero.
    """
    taken = start[:-1] + happened
    top = np.maximum.reduceat(probability, start[:-1])
    # all that are as likely as the most likely one share its place
    is_top = probability >= np.repeat(top, np.diff(start)) * (1.0 - RESAMPLING.equal)
    count = np.add.reduceat(is_top.astype(np.float64), start[:-1])
    # what was thought impossible and came about has an infinite loss
    with np.errstate(divide="ignore"):
        return Scores(np.log(probability[taken]), top, is_top[taken] / count)


def score_pairs(log_probability: Floats, other: Floats) -> Scores:
    """Scores of events with two outcomes, from the log probabilities of both.

    log_probability: of the one that happened. They need not sum to one: ties are left aside.
    """
    # given that it was one of the two
    both = np.logaddexp(log_probability, other)
    gap = log_probability - other
    correct = np.where(np.abs(gap) <= RESAMPLING.equal, 0.5, (gap > 0.0).astype(np.float64))
    confidence = np.exp(np.maximum(log_probability, other) - both)
    return Scores(log_probability - both, confidence, correct)


def join_scores(parts: list[Scores]) -> Scores:
    """The scores of several lists of events.

    One after the other, field by field.
    """
    return Scores(*(np.concatenate(fields) for fields in zip(*parts, strict=True)))


@dataclass(frozen=True, eq=False, repr=False)
class Forecasts:
    """What F forecasters said of the same n events before they were seen.

    Attributes
    ----------
    forecasters
        Their names.
    times
        (n,) when each event was.
    unit
        (n,) which unit each belongs to, of those that are resampled together.
    log_probability
        (F, n) of what happened.
    confidence
        (F, n) of what was thought most likely.
    correct
        (F, n) whether that happened; a guess among equals counts as its share.
    """

    forecasters: tuple[str, ...]
    times: Floats
    unit: Ints
    log_probability: Floats
    confidence: Floats
    correct: Floats

    def __post_init__(self) -> None:
        # frozen all the way down
        for name in ("times", "unit", "log_probability", "confidence", "correct"):
            getattr(self, name).flags.writeable = False

    def __len__(self) -> int:
        return len(self.times)

    @property
    def units(self) -> int:
        """How many units there are.

        Those of which some event was foretold.
        """
        return len(np.unique(self.unit))

    @property
    def log_loss(self) -> Floats:
        """(F,) the mean of minus the log probability of what happened; lower is better."""
        return np.asarray(-self.log_probability.mean(axis=1))

    @property
    def accuracy(self) -> Floats:
        """(F,) the share of events in which the most likely outcome came about."""
        return np.asarray(self.correct.mean(axis=1))

    def calibration(self, forecaster: str | None = None, bins: int = 10) -> Calibration:
        """How often outcomes that were thought most likely came about, by their probability.

        Parameters
        ----------
        forecaster
            One of `forecasters`; default: the first.
        bins
            How many intervals of equal width the probabilities are put into.
        """
        check_count("bins", bins)
        f = self._position(forecaster)
        return gather_calibration(self.confidence[f], self.correct[f], bins)

    def _position(self, forecaster: str | None) -> int:
        if forecaster is None:
            return 0
        if forecaster not in self.forecasters:
            known = ", ".join(self.forecasters)
            raise ValueError(f"there is no forecaster {forecaster!r}; there are {known}")
        return self.forecasters.index(forecaster)

    def resampled(self, count: int, seed: int) -> Floats:
        """(count, F) mean losses with units drawn with replacement, the same for all forecasters.

        So that also differences between forecasters have intervals.
        """
        # sums of each unit are all that a resample needs
        _, unit = np.unique(self.unit, return_inverse=True)
        size = np.bincount(unit).astype(np.float64)
        loss = np.stack([np.bincount(unit, weights=-own) for own in self.log_probability])
        rng = np.random.default_rng(seed)
        found = np.empty((count, len(self.forecasters)))
        for r in range(count):
            # how often each unit was drawn, in place of a list of them
            times = np.bincount(rng.integers(0, len(size), len(size)), minlength=len(size))
            found[r] = loss @ times / (size @ times)
        return found

    def over_time(self, parts: int) -> tuple[Floats, Floats]:
        """Mean times (m,) and mean losses (F, m) of so many runs of about equally many events.

        Events of one time stay together, so there may be fewer runs.
        """
        order = np.argsort(self.times, kind="stable")
        times = self.times[order]
        # each cut is moved back to the first event of its time
        cuts = np.unique(np.searchsorted(times, times[(np.arange(parts) * len(times)) // parts]))
        counts = np.diff(np.append(cuts, len(times)))
        means = np.add.reduceat(-self.log_probability[:, order], cuts, axis=1) / counts
        return np.add.reduceat(times, cuts) / counts, means

    def first_forecasters(self, count: int) -> Forecasts:
        """The same events with the first so many forecasters.

        The others are left out.
        """
        arrays = ("log_probability", "confidence", "correct")
        kept = {name: getattr(self, name)[:count].copy() for name in arrays}
        return replace(self, forecasters=self.forecasters[:count], **kept)
