"""What the controller will do next (paper, section 5.2), how good such predictions were, and its best policy.

Given draws v_1 .. v_S of the value, an action's predictive probability is the mean of P(action given v_n), and the
predicted action is the most likely one. Three ways to it:

    average   the mean of the exact choice probabilities over the draws
    vote      the paper's: each draw adds fresh noise to rows @ v_n and votes for the best action
    point     the exact choice probabilities at the mean of the draws

Voting tends to averaging as draws are added, with the noise of an opinion poll on top. A point estimate ignores how
unsure the value is, so its probabilities are too bold; its predicted actions are often the same.

A prediction is judged against the actions taken by the error E_a (the share of decisions it got wrong), by the log
score (the mean log probability it gave to what was taken) and by its calibration.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp

from understudy._arrays import Bools, Floats, Ints
from understudy.decisions import Decisions
from understudy.likelihood import choice_probabilities, log_likelihood, mean_choice_probabilities
from understudy.noise import KnownNoise
from understudy.posterior import Posterior

METHODS = ("average", "vote", "point")
CELLS = 4_000_000  # numbers held at once when draws and rows meet
TINY = 1e-290  # probabilities below this have lost digits; their logarithms are computed afresh


@dataclass(frozen=True, eq=False)
class Calibration:
    """Whether predictions made with probability p came true in a share p of the decisions.

    Looks at the predicted action of each decision: decisions are put into bins of equal width by its probability, and
    bins that hold none are left out. `error` is the mean distance between predicted and observed, weighted by count
    (the expected calibration error); noise alone makes it positive, so compare the bins with `standard_error` too.
    """

    low: Floats  # the bins' edges
    high: Floats
    count: Ints  # decisions in the bin
    predicted: Floats  # mean probability of the predicted action
    observed: Floats  # share of decisions in which it was taken
    standard_error: Floats  # of `observed`, were the probabilities right: binomial, with each its own probability
    error: float


@dataclass(frozen=True, eq=False, repr=False)
class Prediction:
    """The probability of every action, and where choices were seen how good it was.

    `log_taken` is the log probability of each action taken, None where choices were not seen. It is exact for
    "average" and "point", however small. A vote share may be zero, whose logarithm would sink any score, though it
    only means "fewer than one in S": there each action of the decision gets half a vote on top.
    """

    probabilities: Floats
    method: str
    decisions: Decisions
    log_taken: Floats | None

    @property
    def action(self) -> Ints:
        """(T,) the most likely action, as a position within the decision; the first of equals."""
        return _first_best(self.probabilities, self.decisions.start)

    @property
    def confidence(self) -> Floats:
        """(T,) the probability of the most likely action."""
        return np.asarray(np.maximum.reduceat(self.probabilities, self.decisions.start[:-1]))

    @property
    def error(self) -> float:
        """E_a of the paper: the share of decisions where the predicted action is not the one taken."""
        return float(1.0 - self._right().mean())

    @property
    def log_score(self) -> float:
        """The mean log probability of the actions taken; higher is better, 0 is perfect."""
        if self.log_taken is None:
            raise ValueError(_UNSEEN)
        return float(self.log_taken.mean())

    def calibration(self, bins: int = 10) -> Calibration:
        """How often predictions of each probability came true; see `Calibration`."""
        if not isinstance(bins, int | np.integer) or bins < 1:
            raise ValueError(f"bins must be a whole number, at least 1; it is {bins!r}")
        right, sure = self._right(), self.confidence
        bin_of = np.minimum((sure * bins).astype(np.int64), bins - 1)
        held = np.unique(bin_of)

        def sums(values: Any) -> Floats:
            return np.asarray(np.bincount(bin_of, weights=values, minlength=bins)[held])

        count = np.bincount(bin_of, minlength=bins)[held]
        predicted, observed = sums(sure) / count, sums(right) / count
        return Calibration(
            low=held / bins,
            high=(held + 1) / bins,
            count=count,
            predicted=predicted,
            observed=observed,
            standard_error=np.sqrt(sums(np.maximum(sure * (1.0 - sure), 0.0))) / count,
            error=float(count @ np.abs(predicted - observed) / len(self.decisions)),
        )

    def to_frame(self) -> Any:
        """A pyarrow table, one row an action: decision, action, probability, predicted, and chosen where seen."""
        d = self.decisions
        columns = {"probability": self.probabilities, "predicted": _mark(d, self.action)}
        return _table(d, columns if d.chosen is None else {**columns, "chosen": _mark(d, d.chosen)})

    def __repr__(self) -> str:
        seen = "" if self.log_taken is None else f", error {self.error:.3g}, log score {self.log_score:.3g}"
        return f"<Prediction: {len(self.decisions)} decisions by {self.method}{seen}>"

    def _right(self) -> Bools:
        if self.decisions.chosen is None:
            raise ValueError(_UNSEEN)
        return np.asarray(self.action == self.decisions.chosen)


_UNSEEN = "these decisions carry no choices (chosen is None), so the prediction cannot be compared with what was done"


@dataclass(frozen=True, eq=False, repr=False)
class Policy:
    """What the controller holds best in each decision, its noise set aside, and how sure that is.

    `optimal` (P,): the posterior probability that the action has the largest rows @ v of its decision (equals share).
    `probability` (P,): how probably the noisy controller takes it, with `low` and `high` the 5% and 95% quantiles
    over the draws: the interval tells how unsure the value leaves that probability.
    """

    optimal: Floats
    probability: Floats
    low: Floats
    high: Floats
    decisions: Decisions

    @property
    def best(self) -> Ints:
        """(T,) the action most probably optimal, as a position within the decision; the first of equals."""
        return _first_best(self.optimal, self.decisions.start)

    @property
    def certainty(self) -> Floats:
        """(T,) the posterior probability that `best` is optimal."""
        return np.asarray(np.maximum.reduceat(self.optimal, self.decisions.start[:-1]))

    def to_frame(self) -> Any:
        """A pyarrow table, one row an action: decision, action, optimal, probability, low, high, best."""
        numbers = {name: getattr(self, name) for name in ("optimal", "probability", "low", "high")}
        return _table(self.decisions, {**numbers, "best": _mark(self.decisions, self.best)})

    def __repr__(self) -> str:
        return f"<Policy: {len(self.decisions)} decisions, certainty {self.certainty.mean():.2f} on average>"


def predict(
    posterior: Posterior | Any, decisions: Decisions, method: str = "average", *, seed: int | np.random.Generator = 0
) -> Prediction:
    """Predict what is chosen in each of these decisions.

    Args:
        posterior: a Posterior; or draws (..., K); or a point (K,).
        decisions: what is offered. Where choices were seen, the prediction can be scored against them.
        method: "average", "vote" or "point".
        seed: of the votes' noise, a number or a numpy Generator; the same number gives the same votes.

    >>> d = us.Decisions([[0.0], [1.0], [3.0]], start=[0, 3], chosen=[2])
    >>> us.predict([0.5], d)
    <Prediction: 1 decisions by average, error 0, log score -0.367>
    """
    if method not in METHODS:
        raise ValueError(f"there is no method {method!r}; choose one of {', '.join(METHODS)}")
    draws = _draws(posterior, decisions)
    noise = posterior.known_noise if isinstance(posterior, Posterior) else None
    if method == "point":
        draws = draws.mean(axis=0, keepdims=True)
        noise = None if noise is None else replace(noise, covariance=noise.covariance.mean(axis=0))
    if method == "vote":
        votes = _votes(np.random.default_rng(seed), draws, decisions, noise)
        probabilities = votes / len(draws)
    else:
        probabilities = mean_choice_probabilities(decisions, draws, noise)
    log_taken = None
    if decisions.chosen is not None:
        if method == "vote":
            log_taken = np.log((votes[decisions.taken] + 0.5) / (len(draws) + 0.5 * decisions.sizes))
        else:
            log_taken = _log_taken(probabilities, draws, decisions, noise)
    return Prediction(probabilities, method, decisions, log_taken)


def policy(posterior: Posterior | Any, decisions: Decisions) -> Policy:
    """Which action is best in each of these decisions, and how sure that is; choices need not have been seen.

    Args:
        posterior: a Posterior; or draws (..., K); or a point (K,).
        decisions: what is offered, for instance ``mdp.decisions(all_states)``.

    >>> d = us.Decisions([[0.0], [1.0], [3.0]], start=[0, 3], chosen=None)
    >>> choice = us.policy(np.array([[0.5], [0.4], [-0.1]]), d)  # three draws of a value
    >>> choice.best, choice.certainty.round(2)
    (array([2]), array([0.67]))
    """
    draws = _draws(posterior, decisions)
    noise = posterior.known_noise if isinstance(posterior, Posterior) else None
    largest = abs(decisions.rows).max(axis=0)
    largest = largest.toarray().ravel() if sp.issparse(largest) else largest
    slack = 1e-12 * (np.abs(draws) @ largest)[:, None]  # equal utilities may come out different in their last digits
    parts = []
    for some in _pieces(decisions, CELLS // len(draws)):
        now = decisions[some]
        utilities = _utilities(draws, now)
        hit = (utilities >= -slack).astype(np.float64)
        hit /= np.repeat(np.add.reduceat(hit, now.start[:-1], axis=1), now.sizes, axis=1)
        chances = choice_probabilities(now, draws, noise)
        low, high = np.quantile(chances, [0.05, 0.95], axis=0)
        parts.append((hit.mean(axis=0), chances.mean(axis=0), low, high))
    optimal, probability, low, high = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Policy(optimal, probability, low, high, decisions)


def _draws(posterior: Posterior | Any, decisions: Decisions) -> Floats:
    """(S, K) draws that speak of the same coefficients as the decisions."""
    if not isinstance(decisions, Decisions):
        raise ValueError(f"predictions are made for Decisions, not for {type(decisions).__name__}")
    width = len(decisions.names)
    if isinstance(posterior, Posterior):
        for k, (mine, theirs) in enumerate(zip(posterior.names, decisions.names, strict=False)):
            if mine != theirs:
                raise ValueError(
                    f"coefficient {k} is {mine!r} in the posterior and {theirs!r} in the decisions; "
                    "both must have the same coefficients in the same order"
                )
        if len(posterior.names) != width:
            longer = max(posterior.names, decisions.names, key=len)
            raise ValueError(
                f"the posterior has {len(posterior.names)} coefficients and the decisions {width}: "
                f"{longer[min(len(posterior.names), width)]!r} is in only one of them"
            )
        return posterior.values
    try:
        given = np.asarray(posterior, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"predictions need a Posterior, draws (S, {width}) or a point ({width},), not {type(posterior).__name__}"
        ) from None
    if given.ndim == 0 or given.size == 0 or given.shape[-1] != width:
        raise ValueError(
            f"draws have shape {given.shape}, but the decisions have {width} coefficients; give (S, {width}) or ({width},)"
        )
    if not np.isfinite(given).all():
        raise ValueError("the draws hold NaN or infinite numbers; they must be finite")
    return given.reshape(-1, width)


def _utilities(draws: Floats, decisions: Decisions) -> Floats:
    """(S, P) rows @ v less the best of the decision, so that noise is not lost beside large values."""
    whole = np.ascontiguousarray((decisions.rows @ draws.T).T)
    best = np.maximum.reduceat(whole, decisions.start[:-1], axis=1)
    return np.asarray(whole - np.repeat(best, decisions.sizes, axis=1))


def _votes(rng: np.random.Generator, draws: Floats, decisions: Decisions, noise: KnownNoise | None) -> Ints:
    """(P,) how many draws vote for each action; some draws at a time, so that memory stays bounded."""
    rows = decisions.rows.shape[0]
    votes = np.zeros(rows, np.int64)
    some = max(1, CELLS // rows)
    for at in range(0, len(draws), some):
        w = _utilities(draws[at : at + some], decisions)
        w += rng.standard_normal(w.shape) if noise is None else _noise(rng, noise, slice(at, at + some), decisions)
        best = _first_best(w, decisions.start) + decisions.start[:-1]
        votes += np.bincount(best.ravel(), minlength=rows)
    return votes


def _noise(rng: np.random.Generator, noise: KnownNoise, which: slice, decisions: Decisions) -> Floats:
    """(S, P) correlated noise of every row, under the covariances of some draws."""
    root = np.linalg.cholesky(noise.covariance[which])
    fresh = rng.standard_normal((len(root), len(decisions), root.shape[-1]))
    each = np.concatenate([np.zeros((*fresh.shape[:2], 1)), fresh @ root.transpose(0, 2, 1)], axis=2)
    return np.asarray(each[:, decisions.decision_of_row, noise.label_of_row(decisions)])


def _log_taken(probabilities: Floats, draws: Floats, decisions: Decisions, noise: KnownNoise | None) -> Floats:
    """(T,) log probability of what was taken, exact also where the probability itself is too small to hold."""
    taken = probabilities[decisions.taken]
    answer = np.log(np.maximum(taken, TINY))
    rare = np.flatnonzero(taken < TINY)
    for at in range(0, len(rare), some := max(1, CELLS // len(draws))):
        now = rare[at : at + some]
        answer[now] = logsumexp(log_likelihood(decisions[now], draws, noise), axis=0) - np.log(len(draws))
    return answer


def _pieces(decisions: Decisions, rows: int) -> list[Ints]:
    """The decisions cut into runs of about so many rows, at least one decision each."""
    run = (decisions.start[1:] - 1) // max(1, rows)
    return np.split(np.arange(len(decisions)), np.flatnonzero(np.diff(run)) + 1)


def _first_best(values: Floats, start: Ints) -> Ints:
    """(..., T) the position of the largest of each decision's values (..., P); the first of equals."""
    sizes, rows = np.diff(start), values.shape[-1]
    best = np.repeat(np.maximum.reduceat(values, start[:-1], axis=-1), sizes, axis=-1)
    index = np.where(values == best, np.arange(rows), rows)
    return np.asarray(np.minimum.reduceat(index, start[:-1], axis=-1) - start[:-1], dtype=np.int64)


def _mark(decisions: Decisions, action: Ints) -> Bools:
    """(P,) true on the row of each decision's action."""
    marked = np.zeros(decisions.rows.shape[0], np.bool_)
    marked[decisions.start[:-1] + action] = True
    return marked


def _table(decisions: Decisions, columns: dict[str, Any]) -> Any:
    import pyarrow as pa

    def written(labels: np.ndarray[Any, Any]) -> Any:
        return pa.array(labels if labels.dtype.kind in "biufUmM" else labels.astype(str))  # a column holds one kind

    number = decisions.decision_of_row
    position = np.arange(len(number)) - decisions.start[number]
    labels = {
        "decision": written(decisions.ids).take(pa.array(number)),
        "action": written(position if decisions.actions is None else decisions.actions),
    }
    return pa.table({**labels, **{name: pa.array(values) for name, values in columns.items()}})
