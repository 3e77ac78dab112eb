"""What the controller will do next (paper, section 5.2), and how good such predictions were.

Given draws v_1 .. v_S of the value, an action's predictive probability is the mean of
P(action given v_n), and the predicted action is the most likely one. Three ways to it:

    average   the mean of the exact choice probabilities over the draws
    vote      the paper's: each draw adds fresh noise to rows @ v_n and votes for the best action
    point     the exact choice probabilities at the mean of the draws

Voting tends to averaging as draws are added, with the noise of an opinion poll on top. A point
estimate ignores how unsure the value is, so its probabilities are too bold; its predicted actions
are often the same.

A prediction is compared with the actions chosen by the error E_a (the share of decisions it got
wrong), by the log score (the mean log probability it gave to what was chosen) and by its
calibration.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import logsumexp

from revealed._types import Bools, Floats, Ints
from revealed._validation import Seed, as_generator, check_count
from revealed.data.decisions import Decisions
from revealed.models.likelihood import log_likelihood, mean_choice_probabilities
from revealed.models.noise import Noise, NoiseCovariance, NormalNoise
from revealed.results.base import Posterior

METHODS = ("average", "vote", "point")

# Numbers held at once when draws and rows meet, 32 MB: more are worked on one after the other.
MAX_CELLS = 4_000_000


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


@dataclass(frozen=True, eq=False, repr=False)
class Prediction:
    """The probability of every action, and where choices were seen how good it was.

    `log_probability_chosen` is the log probability of each action chosen, None where choices were
    not seen. It is exact for "average" and "point", however small. A vote share may be zero, whose
    logarithm would sink any score, though it only means "fewer than one in S": there each action of
    the decision gets half a vote on top.
    """

    probabilities: Floats
    method: str
    decisions: Decisions
    log_probability_chosen: Floats | None

    @property
    def predicted(self) -> Ints:
        """(T,) the most likely action, as a position within the decision; the first of equals."""
        return first_best(self.probabilities, self.decisions.start)

    @property
    def confidence(self) -> Floats:
        """(T,) the probability of the most likely action."""
        return np.asarray(np.maximum.reduceat(self.probabilities, self.decisions.start[:-1]))

    @property
    def error_rate(self) -> float:
        """E_a of the paper: the share of decisions whose predicted action is not the one chosen.

        Refused where choices were not seen.
        """
        return float(1.0 - self._correct().mean())

    @property
    def log_score(self) -> float:
        """The mean log probability of the actions chosen; higher is better, 0 is perfect."""
        if self.log_probability_chosen is None:
            raise ValueError(_no_choices())
        return float(self.log_probability_chosen.mean())

    def calibration(self, bins: int = 10) -> Calibration:
        """How often predictions of each probability came true; see `Calibration`.

        bins: how many intervals of equal width the probabilities are put into.
        """
        check_count("bins", bins)
        correct, confidence = self._correct(), self.confidence
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
            error=float(count @ np.abs(predicted - observed) / len(self.decisions)),
        )

    def to_dataframe(self) -> Any:
        """A pyarrow table, one row an action.

        Columns: decision, action, probability, predicted, and chosen where choices were seen.
        """
        d = self.decisions
        columns = {"probability": self.probabilities, "predicted": row_flags(d, self.predicted)}
        if d.chosen is not None:
            columns["chosen"] = row_flags(d, d.chosen)
        return action_table(d, columns)

    def __repr__(self) -> str:
        scores = (
            ""
            if self.log_probability_chosen is None
            else f", error {self.error_rate:.3g}, log score {self.log_score:.3g}"
        )
        return f"<Prediction: {len(self.decisions)} decisions by {self.method}{scores}>"

    def _correct(self) -> Bools:
        """(T,) whether the predicted action was chosen; refuses where choices were not seen."""
        if self.decisions.chosen is None:
            raise ValueError(_no_choices())
        return np.asarray(self.predicted == self.decisions.chosen)


def _no_choices() -> str:
    """The sentence about decisions whose choices were not seen."""
    return (
        "these decisions carry no choices (chosen is None), so the prediction cannot be compared "
        "with what was done"
    )


def predict(
    posterior: Any,
    decisions: Decisions,
    method: str = "average",
    *,
    seed: Seed = 0,
    noise: Noise | NoiseCovariance | None = None,
) -> Prediction:
    """Predict what is chosen in each of these decisions.

    Parameters
    ----------
    posterior
        A ChoicePosterior; or draws (..., K); or a point (K,).
    decisions
        What is offered. Where choices were seen, the prediction can be scored against them.
    method
        "average", "vote" or "point".
    seed
        Of the votes' noise, a number or a numpy Generator; the same number gives the same votes.
    noise
        The law of each action's noise; default: that of the posterior, normal noise for draws.

    Returns
    -------
    Prediction
        The probability of every action.

    Examples
    --------
    >>> d = rv.Decisions([[0.0], [1.0], [3.0]], start=[0, 3], chosen=[2])
    >>> rv.predict([0.5], d)
    <Prediction: 1 decisions by average, error 0, log score -0.367>
    """
    if method not in METHODS:
        raise ValueError(f"there is no method {method!r}; choose one of {', '.join(METHODS)}")
    # everything below works on (S, K) draws
    draws = check_draws(posterior, decisions)
    law = getattr(posterior, "known_noise", None) if noise is None else noise
    # one draw: the mean, of the noise covariance too
    if method == "point":
        draws = draws.mean(axis=0, keepdims=True)
        if isinstance(law, NoiseCovariance):
            law = replace(law, covariance=law.covariance.mean(axis=0))
    if method == "vote":
        votes = _count_votes(as_generator(seed), draws, decisions, law)
        probabilities = votes / len(draws)
    else:
        probabilities = mean_choice_probabilities(decisions, draws, law)
    log_chosen = None
    if decisions.chosen is not None:
        # half a vote on top, as Jeffreys' prior would have it
        if method == "vote":
            log_chosen = np.log(
                (votes[decisions.chosen_row] + 0.5) / (len(draws) + 0.5 * decisions.sizes)
            )
        else:
            log_chosen = _log_probability_chosen(probabilities, draws, decisions, law)
    return Prediction(probabilities, method, decisions, log_chosen)


def check_draws(posterior: Any, decisions: Decisions) -> Floats:
    """(S, K) draws of the same coefficients as the decisions have; refuses all else.

    A posterior is compared by the names of its coefficients, arrays by their shape.
    """
    if not isinstance(decisions, Decisions):
        raise ValueError(f"predictions are made for Decisions, not for {type(decisions).__name__}")
    # the same coefficients in the same order, as far as names can say
    width = len(decisions.names)
    if hasattr(posterior, "known_noise"):
        check_same_coefficients(posterior.names, decisions.names)
        return np.asarray(posterior.values)
    # groups have values of their own, and the draws of transitions belong to each
    if isinstance(posterior, Posterior):
        raise ValueError(
            f"a {type(posterior).__name__} predicts by itself, by posterior.predict(...); where it "
            "has groups, select one of them first"
        )
    try:
        given = np.asarray(posterior, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"predictions need a Posterior, draws (S, {width}) or a point ({width},), not "
            f"{type(posterior).__name__}"
        ) from None
    if given.ndim == 0 or given.size == 0 or given.shape[-1] != width:
        raise ValueError(
            f"draws have shape {given.shape}, but the decisions have {width} coefficients; give "
            f"(S, {width}) or ({width},)"
        )
    if not np.isfinite(given).all():
        raise ValueError("the draws hold NaN or infinite numbers; they must be finite")
    return given.reshape(-1, width)


def check_same_coefficients(mine: tuple[str, ...], theirs: tuple[str, ...]) -> None:
    """Refuse decisions with other coefficients than the posterior's, and name the first."""
    for k, (own, other) in enumerate(zip(mine, theirs, strict=False)):
        if own != other:
            raise ValueError(
                f"coefficient {k} is {own!r} in the posterior and {other!r} in the decisions; both "
                "must have the same coefficients in the same order"
            )
    if len(mine) != len(theirs):
        longer = max(mine, theirs, key=len)
        raise ValueError(
            f"the posterior has {len(mine)} coefficients and the decisions {len(theirs)}: "
            f"{longer[min(len(mine), len(theirs))]!r} is in only one of them"
        )


def relative_utilities(draws: Floats, decisions: Decisions) -> Floats:
    """(S, P) rows @ v less the best of the decision.

    The difference keeps noise of order one from being rounded away beside large values.
    """
    # only differences within a decision matter
    utilities = np.ascontiguousarray((decisions.rows @ draws.T).T)
    best = np.maximum.reduceat(utilities, decisions.start[:-1], axis=1)
    return np.asarray(utilities - np.repeat(best, decisions.sizes, axis=1))


def _count_votes(
    rng: np.random.Generator,
    draws: Floats,
    decisions: Decisions,
    noise: Noise | NoiseCovariance | None,
) -> Ints:
    """(P,) how many draws vote for each action; some draws at a time, to bound the memory.

    A draw adds noise to rows @ v, of its own covariance where there is one.
    """
    rows = decisions.rows.shape[0]
    votes = np.zeros(rows, np.int64)
    at_once = max(1, MAX_CELLS // rows)
    # the order of draws decides the noise, however they are cut
    for first in range(0, len(draws), at_once):
        w = relative_utilities(draws[first : first + at_once], decisions)
        w += (
            _draw_noise(rng, noise, slice(first, first + at_once), decisions)
            if isinstance(noise, NoiseCovariance)
            else (noise or NormalNoise()).sample(rng, w.shape)
        )
        best = first_best(w, decisions.start) + decisions.start[:-1]
        votes += np.bincount(best.ravel(), minlength=rows)
    return votes


def _draw_noise(
    rng: np.random.Generator, noise: NoiseCovariance, which: slice, decisions: Decisions
) -> Floats:
    """(S, P) correlated noise of every row, under the covariances of some draws."""
    root = np.linalg.cholesky(noise.covariance[which])
    z = rng.standard_normal((len(root), len(decisions), root.shape[-1]))
    # the base's noise is zero, because noise is measured against it
    base = np.zeros((*z.shape[:2], 1))
    noise_of_label = np.concatenate([base, z @ root.transpose(0, 2, 1)], axis=2)
    return np.asarray(noise_of_label[:, decisions.decision_of_row, noise.label_of_row(decisions)])


def _log_probability_chosen(
    probabilities: Floats,
    draws: Floats,
    decisions: Decisions,
    noise: Noise | NoiseCovariance | None,
) -> Floats:
    """(T,) log probability of what was chosen, exact also where the probability underflows.

    There the logarithms of the draws' probabilities are averaged instead.
    """
    # below this, probabilities have lost digits; their logarithms are computed afresh
    smallest = 1e-290
    chosen = probabilities[decisions.chosen_row]
    answer = np.log(np.maximum(chosen, smallest))
    rare = np.flatnonzero(chosen < smallest)
    for first in range(0, len(rare), at_once := max(1, MAX_CELLS // len(draws))):
        now = rare[first : first + at_once]
        logs = log_likelihood(decisions[now], draws, noise)
        answer[now] = logsumexp(logs, axis=0) - np.log(len(draws))
    return answer


def first_best(values: Floats, start: Ints) -> Ints:
    """(..., T) the position of the largest of each decision's values (..., P); first of equals."""
    # the first row of each decision that reaches its maximum
    sizes, rows = np.diff(start), values.shape[-1]
    best = np.repeat(np.maximum.reduceat(values, start[:-1], axis=-1), sizes, axis=-1)
    index = np.where(values == best, np.arange(rows), rows)
    return np.asarray(np.minimum.reduceat(index, start[:-1], axis=-1) - start[:-1], dtype=np.int64)


def row_flags(decisions: Decisions, action: Ints) -> Bools:
    """(P,) true on the row of each decision's action."""
    flags = np.zeros(decisions.rows.shape[0], np.bool_)
    flags[decisions.start[:-1] + action] = True
    return flags


def action_table(decisions: Decisions, columns: dict[str, Any]) -> Any:
    """A pyarrow table with a row for each action: decision, action, and these columns."""
    import pyarrow as pa

    def to_column(labels: np.ndarray[Any, Any]) -> Any:
        # a column holds one kind, so that mixed labels become text
        return pa.array(labels if labels.dtype.kind in "biufUmM" else labels.astype(str))

    # labels of decisions are repeated for each of their actions
    number = decisions.decision_of_row
    position = np.arange(len(number)) - decisions.start[number]
    labels = {
        "decision": to_column(decisions.ids).take(pa.array(number)),
        "action": to_column(position if decisions.actions is None else decisions.actions),
    }
    return pa.table({**labels, **{name: pa.array(values) for name, values in columns.items()}})
