"""What the controller will do next (paper, section 5.2).

Given draws v_1 .. v_S of the value, an action's predictive probability is the mean of
P(action given v_n), and the predicted action is the most likely one. Three ways to it:

    average   the mean of the exact choice probabilities over the draws
    vote      the paper's: each draw adds fresh noise to rows @ v_n and votes for the best action
    point     the exact choice probabilities at the mean of the draws

Voting tends to averaging as draws are added, with the noise of an opinion poll on top. A point
estimate ignores how unsure the value is, so its probabilities are too bold; its predicted actions
are often the same.

Equal decisions are worked out once, and each over as many draws as its probabilities need
(`averaging.py`); how many, and the Monte-Carlo error of every probability, are in the result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import logsumexp

from revealed._types import Floats, Ints
from revealed._validation import Seed, as_generator
from revealed.data.decisions import Decisions
from revealed.data.unique import find_kinds
from revealed.models.correlated_noise import NoiseCovariance
from revealed.models.drawn_probabilities import LIMITS, DrawnProbabilities
from revealed.models.lapse import KnownLapse
from revealed.models.likelihood import log_likelihood
from revealed.models.noise import KnownNoise, Noise, label_of_row, without_lapses
from revealed.results.averaging import Average, average_probabilities, point_probabilities
from revealed.results.draw_batches import (
    DrawBatches,
    jackknife_deviations,
    leave_batches_out,
    plan_draws,
    rows_of,
)
from revealed.results.given_draws import chain_shape, check_draws
from revealed.results.prediction import Prediction
from revealed.results.votes import MAX_CELLS, count_votes, score_votes

METHODS = ("average", "vote", "point")

Rare = Callable[[Ints], tuple[Floats, Floats]]
"""The log probability of what was chosen in these n decisions, and its deviations (n, B)."""


def predict(
    posterior: Any,
    decisions: Decisions,
    method: str = "average",
    *,
    seed: Seed = 0,
    noise: KnownNoise | None = None,
    draws: int | str | None = None,
) -> Prediction:
    """Predict what is chosen in each of these decisions.

    Parameters
    ----------
    posterior
        A ChoicePosterior; or draws (S, K), or (chain, draw, K); or a point (K,).
    decisions
        What is offered. Where choices were seen, the prediction can be scored against them.
    method
        "average", "vote" or "point".
    seed
        Of the votes' noise, a number or a numpy Generator; the same number gives the same votes.
    noise
        The law of each action's noise; default: that of the posterior, normal noise for draws.
    draws
        How many draws are used: "all", or at most so many, spread over the chains. Default: an
        average has for each decision as many as bring the Monte-Carlo error of its probabilities
        down to 0.002, and to a tenth of those above 0.002, if there are as many; vote and point
        have all.

    Returns
    -------
    Prediction
        The probability of every action, with its Monte-Carlo error.

    Examples
    --------
    >>> d = rv.Decisions([[0.0], [1.0], [3.0]], start=[0, 3], chosen=[2])
    >>> rv.predict([0.5], d)
    <Prediction: 1 decisions by average, error 0, log score -0.367>
    >>> values = np.random.default_rng(1).normal(0.5, 0.1, (4000, 1))  # as a posterior has them
    >>> rv.predict(values, d)
    <Prediction: 1 decisions by average, error 0, log score -0.371; 1280 of 4000 draws, Mon...>
    """
    if method not in METHODS:
        raise ValueError(f"there is no method {method!r}; choose one of {', '.join(METHODS)}")
    # everything below works on (S, K) draws
    values = check_draws(posterior, decisions)
    law = getattr(posterior, "known_noise", None) if noise is None else noise
    wanted = "all" if draws is None and method != "average" else draws
    batches = plan_draws(*chain_shape(posterior, values), wanted)
    if method == "vote":
        found = _predict_by_votes(as_generator(seed), values, decisions, law, batches)
    else:
        found = _predict_exactly(values, decisions, law, batches, method)
    # one value that was given is not drawn, and has no such error
    if np.ndim(posterior) == 1 and method != "vote":
        exact = np.zeros_like(found.standard_error)
        none = None if found.score_deviations is None else np.empty(0)
        return replace(found, standard_error=exact, score_deviations=none)
    return found


def _predict_by_votes(
    rng: np.random.Generator,
    values: Floats,
    decisions: Decisions,
    law: KnownNoise | None,
    batches: DrawBatches,
) -> Prediction:
    """The prediction by vote shares."""
    average, chosen = count_votes(rng, values, decisions, law, batches)
    logs, score = None, None
    if decisions.chosen is not None:
        logs, deviations = score_votes(average, chosen, decisions, batches)
        score = deviations.sum(axis=0)
    return Prediction(
        average.probabilities,
        "vote",
        decisions,
        logs,
        average.standard_error,
        average.draws,
        len(values),
        score,
    )


def _predict_exactly(
    values: Floats,
    decisions: Decisions,
    law: KnownNoise | None,
    batches: DrawBatches,
    method: str,
) -> Prediction:
    """The prediction by exact probabilities, of equal decisions once.

    method: "average" or "point".
    """
    smallest = LIMITS.smallest
    if not isinstance(law, NoiseCovariance):
        smallest = LIMITS.smallest_under(without_lapses(law))
    where, kind = find_kinds(decisions, of_row=label_of_row(law, decisions))
    unique = decisions if len(where) == len(decisions) else decisions[where]
    times = times_chosen(decisions, kind, unique.start)
    used = batches.used
    own_batch = batches.batch[used]
    if method == "average":
        add = DrawnProbabilities(unique, values, law, _points_of_draw(law, len(values)))
        average = average_probabilities(unique.start, add, batches, times, smallest)

        def rare(which: Ints) -> tuple[Floats, Floats]:
            logs = log_likelihood(decisions[which], values[used], noise_of_draws(law, used))
            return average_logs(logs, own_batch)
    else:
        # the mean of the draws, then the means without each batch of them
        at = _with_jackknife(values[used], own_batch)
        law_at = law
        if isinstance(law, NoiseCovariance) and law.covariance.ndim == 3:
            law_at = replace(law, covariance=_with_jackknife(law.covariance[used], own_batch))
        if isinstance(law, KnownLapse):
            law_at = law.apply(lambda draws: _with_jackknife(draws[used], own_batch))
        elif isinstance(law, Noise):
            law_at = law.of_draws(lambda draws: _with_jackknife(draws[used], own_batch))
        # differences between draws need the same points, and not as many
        rough = DrawnProbabilities(unique, at, law_at, 4 * LIMITS.points, same_points=True)
        fine = replace(rough, points=_points_of_draw(law, 1))

        def add_point(which: Ints, draws: Ints, batch: Ints, out: Floats) -> None:
            fine(which, draws[:1], batch[:1], out)
            rough(which, draws[1:], batch[1:], out)

        average = point_probabilities(unique.start, add_point, len(at) - 1, times, smallest)
        average = replace(average, draws=np.full(len(unique), len(used)))

        def rare(which: Ints) -> tuple[Floats, Floats]:
            logs = log_likelihood(decisions[which], at, law_at).T
            return logs[:, 0], jackknife_deviations(logs[:, 1:])

    return make_prediction(
        method, decisions, kind, unique.start, average, rare, smallest, len(values)
    )


def _points_of_draw(law: KnownNoise | None, draws: int) -> int:
    """Points of the lattice for each of so many draws.

    Independent noise has no use for them.
    """
    return (
        max(LIMITS.points, law.points // draws)
        if isinstance(law, NoiseCovariance)
        else LIMITS.points
    )


def noise_of_draws(law: KnownNoise | None, which: Ints) -> KnownNoise | None:
    """The noise of some draws, where each has a covariance, lapses or df of its own."""
    if isinstance(law, NoiseCovariance) and law.covariance.ndim == 3:
        return replace(law, covariance=law.covariance[which])
    if isinstance(law, KnownLapse):
        return law.of_draws(which)
    return law.of_draws(lambda draws: draws[which]) if isinstance(law, Noise) else law


def _with_jackknife(draws: Floats, batch: Ints) -> Floats:
    """(B + 1, ...) the mean of draws (S, ...), then their means without each batch.

    batch: (S,) of each draw.
    """
    return np.concatenate([draws.mean(axis=0, keepdims=True), leave_batches_out(draws, batch)])


def make_prediction(
    method: str,
    decisions: Decisions,
    kind: Ints,
    start: Ints,
    average: Average,
    rare: Rare,
    smallest: float,
    draws_available: int,
) -> Prediction:
    """The prediction of all decisions from the average of their kinds.

    kind: (T,) of each decision. start: where the rows of each kind begin. rare: for choices of a
    probability below `smallest`.
    """
    row = rows_of(start, kind)
    logs, score = None, None
    if decisions.chosen is not None:
        chosen = start[kind] + decisions.chosen
        probability = average.probabilities[chosen]
        logs, score = np.log(np.maximum(probability, smallest)), average.score.copy()
        # equal choices in equal decisions once, some at a time
        few = np.flatnonzero(probability < smallest)
        _, first, same = np.unique(chosen[few], return_index=True, return_inverse=True)
        for begin in range(0, len(first), at_once := max(1, MAX_CELLS // draws_available)):
            now = few[first[begin : begin + at_once]]
            found, deviations = rare(now)
            for i in range(len(now)):
                own = few[same == begin + i]
                logs[own] = found[i]
                score += len(own) * deviations[i]
    return Prediction(
        average.probabilities[row],
        method,
        decisions,
        logs,
        average.standard_error[row],
        average.draws[kind],
        draws_available,
        score,
    )


def average_logs(logs: Floats, batch: Ints) -> tuple[Floats, Floats]:
    """The log (n,) of mean probabilities from their logs in each draw (S, n), and its deviations.

    batch: (S,) of each draw.
    """
    total = logsumexp(logs, axis=0)
    share = np.exp(logs - total)
    weight = np.bincount(batch) / len(batch)
    deviations = np.stack([share[batch == b].sum(axis=0) for b in range(len(weight))], axis=1)
    return total - np.log(len(batch)), deviations - weight


def times_chosen(decisions: Decisions, kind: Ints, start: Ints) -> Floats:
    """How often each row of the kinds was chosen."""
    if decisions.chosen is None:
        return np.zeros(start[-1])
    rows = start[kind] + decisions.chosen
    return np.bincount(rows, minlength=start[-1]).astype(np.float64)
