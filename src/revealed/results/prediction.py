"""Prediction: the probability of every action, how sure that is, and how good it was.

A prediction is compared with the actions chosen by the error E_a (the share of decisions it got
wrong), by the log score (the mean log probability it gave to what was chosen) and by its
calibration. Decisions with a single action cannot be predicted wrongly: they count in neither the
error nor the calibration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from revealed._types import Bools, Floats, Ints
from revealed._validation import check_count
from revealed.data.decisions import Decisions
from revealed.results.actions import action_table, first_best, row_flags
from revealed.results.draw_batches import batch_error
from revealed.results.text import plural


@dataclass(frozen=True, eq=False)
class Calibration:
    """Whether predictions made with probability p came true in a share p of the decisions.

    Looks at the predicted action of each decision: decisions are put into bins of equal width by
    its probability, and bins that hold none are left out.

    Attributes
    ----------
    low, high
        The bins' edges.
    count
        Decisions in the bin.
    predicted
        Mean probability of the predicted action.
    observed
        Share of decisions in which it was chosen.
    standard_error
        Of `observed`, were the probabilities right: binomial, with each its own probability.
    error
        The mean distance between predicted and observed, weighted by count (the expected
        calibration error); noise alone makes it positive, so compare the bins with
        `standard_error` too.
    """

    low: Floats
    high: Floats
    count: Ints
    predicted: Floats
    observed: Floats
    standard_error: Floats
    error: float


def gather_calibration(confidence: Floats, correct: Any, bins: int) -> Calibration:
    """The calibration of n events, from what was thought most likely and whether it came about."""
    # a probability of one belongs to the last bin
    bin_of = np.minimum((confidence * bins).astype(np.int64), bins - 1)
    used = np.unique(bin_of)

    def sums(values: Any) -> Floats:
        return np.asarray(np.bincount(bin_of, weights=values, minlength=bins)[used])

    # empty bins are left out: they have no mean
    count = np.bincount(bin_of, minlength=bins)[used]
    predicted, observed = sums(confidence) / count, sums(correct) / count
    # the variance of a sum of independent events, each with its own probability
    variance = np.maximum(confidence * (1.0 - confidence), 0.0)
    return Calibration(
        low=used / bins,
        high=(used + 1) / bins,
        count=count,
        predicted=predicted,
        observed=observed,
        standard_error=np.sqrt(sums(variance)) / count,
        error=float(count @ np.abs(predicted - observed) / len(correct)),
    )


@dataclass(frozen=True, eq=False, repr=False)
class Prediction:
    """The probability of every action, and where choices were seen how good it was.

    `log_probability_chosen` is the log probability of each action chosen, None where choices were
    not seen. It is exact for "average" and "point", however small. A vote share may be zero, whose
    logarithm would sink any score, though it only means "fewer than one in S": there each action of
    the decision gets half a vote on top.

    `standard_error` (P,) is the Monte-Carlo standard error of each probability, what another run of
    the sampler would change: by batch means of the draws, which depend on one another. It is zero
    for one value that was given, and NaN where a single draw says nothing of it. `draws` (T,) is
    how many draws each decision was predicted from, and `draws_available` how many there are.
    `score_deviations` has what `log_score_standard_error` is made of.
    """

    probabilities: Floats
    method: str
    decisions: Decisions
    log_probability_chosen: Floats | None
    standard_error: Floats
    draws: Ints
    draws_available: int
    score_deviations: Floats | None

    @property
    def predicted(self) -> Ints:
        """(T,) the most likely action, as a position within the decision.

        The first of equals.
        """
        return first_best(self.probabilities, self.decisions.start)

    @property
    def confidence(self) -> Floats:
        """(T,) the probability of the most likely action."""
        return np.asarray(np.maximum.reduceat(self.probabilities, self.decisions.start[:-1]))

    @property
    def scored(self) -> Bools:
        """(T,) which decisions count in `error_rate` and `calibration`.

        Those with more than one action: a single one cannot be predicted wrongly.
        """
        return np.asarray(self.decisions.sizes > 1)

    @property
    def error_rate(self) -> float:
        """E_a of the paper: the share of decisions whose predicted action is not the one chosen.

        Of decisions with more than one action; refused where choices were not seen.
        """
        return float(1.0 - self._correct().mean())

    @property
    def guessing_error(self) -> float:
        """The error rate of a blind guess among the actions; NaN where there is nothing to guess.

        Of decisions with more than one action.
        """
        sizes = self.decisions.sizes[self.scored]
        return float(1.0 - (1.0 / sizes).mean()) if sizes.size else float("nan")

    @property
    def log_score(self) -> float:
        """The mean log probability of the actions chosen; higher is better, 0 is perfect.

        Over all decisions: one with a single action has 0.
        """
        self._check_seen()
        assert self.log_probability_chosen is not None
        return float(self.log_probability_chosen.mean())

    @property
    def log_score_standard_error(self) -> float:
        """The Monte-Carlo standard error of `log_score`.

        It says what another run of the sampler would change, not what other decisions would.
        """
        self._check_seen()
        assert self.score_deviations is not None
        if not self.score_deviations.size:
            return 0.0
        return float(batch_error(self.score_deviations) / len(self.decisions))

    def calibration(self, bins: int = 10) -> Calibration:
        """How often predictions of each probability came true; see `Calibration`.

        bins: how many intervals of equal width the probabilities are put into.
        """
        check_count("bins", bins)
        return gather_calibration(self.confidence[self.scored], self._correct(), bins)

    def to_dataframe(self) -> Any:
        """A pyarrow table, one row an action.

        Columns: decision, action, probability, standard_error, predicted, and chosen where choices
        were seen.
        """
        d = self.decisions
        columns = {
            "probability": self.probabilities,
            "standard_error": self.standard_error,
            "predicted": row_flags(d, self.predicted),
        }
        if d.chosen is not None:
            columns["chosen"] = row_flags(d, d.chosen)
        return action_table(d, columns)

    def describe_draws(self) -> str:
        """In words how many draws were used, and the largest Monte-Carlo error."""
        # one value was given, and its probabilities are exact
        if self.draws_available == 1 and not self.standard_error.any():
            return ""
        fewest, most = int(self.draws.min()), int(self.draws.max())
        span = f"{most}" if fewest == most else f"{fewest} to {most}"
        of_all = "" if fewest == self.draws_available else f" of {self.draws_available}"
        error = self.standard_error.max()
        known = f"at most {error:.1g}" if np.isfinite(error) else "unknown"
        if self.method == "point":
            return f"Monte-Carlo error {known}"
        return f"{span}{of_all} {plural('draw', self.draws_available)}, Monte-Carlo error {known}"

    def __repr__(self) -> str:
        scores = ""
        if self.log_probability_chosen is not None:
            if self.scored.any():
                scores = f", error {self.error_rate:.3g}"
            scores += f", log score {self.log_score:.3g}"
        words = self.describe_draws()
        used = f"; {words}" if words else ""
        return f"<Prediction: {len(self.decisions)} decisions by {self.method}{scores}{used}>"

    def _correct(self) -> Bools:
        """Whether the predicted action was chosen, of the decisions that are scored."""
        scored = self._check_scored()
        assert self.decisions.chosen is not None
        return np.asarray(self.predicted == self.decisions.chosen)[scored]

    def _check_scored(self) -> Bools:
        """(T,) which decisions are scored.

        Refuses where choices were not seen, or none is.
        """
        self._check_seen()
        if not self.scored.any():
            raise ValueError(
                "every decision here offers a single action, so that there is nothing to predict "
                "rightly or wrongly; give decisions of two actions or more"
            )
        return self.scored

    def _check_seen(self) -> None:
        """Refuse where choices were not seen."""
        if self.decisions.chosen is None:
            raise ValueError(
                "these decisions carry no choices (chosen is None), so the prediction cannot be "
                "compared with what was done"
            )
