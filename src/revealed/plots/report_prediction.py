"""The part of a report about predictions of the data that a posterior was inferred from."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import numpy as np
from scipy.special import gammaln, logsumexp

from revealed._types import Floats
from revealed._validation import Seed, as_generator
from revealed.data.decisions import Decisions
from revealed.data.rankings import Rankings
from revealed.data.unique import find_kinds
from revealed.plots.prediction import calibration
from revealed.plots.report_html import picture
from revealed.results.base import Posterior
from revealed.results.loo import LIMITS, LeaveOneOut, all_observations, leave_one_out
from revealed.results.mdp import MDPPosterior
from revealed.results.prediction import Prediction
from revealed.results.ranking import RankingPosterior
from revealed.results.separate import SeparatePosterior
from revealed.results.switching import SwitchingPosterior
from revealed.results.text import count_things


@dataclass(frozen=True)
class PredictionBudget:
    """How many draws the data are predicted from, so that a page takes about half a minute.

    Attributes
    ----------
    cells
        Draws times rows, those of equal decisions once; with more, only some of the draws are
        used, and the last digits of the scores depend on which.
    cells_of_correlated_noise
        The same where probabilities are integrals, which take many times as long.
    min_draws
        At least so many: with fewer, scores depend on which were picked.
    """

    cells: int = 50_000_000
    cells_of_correlated_noise: int = 1_000_000
    min_draws: int = 50


BUDGET = PredictionBudget()


def prediction_section(post: Posterior, seed: Seed) -> str:
    """Scores of the posterior on its own data, in words and a figure, and leave-one-out."""
    some = with_fewer_draws(post, seed)
    used, total = np.prod(some.shape), np.prod(post.shape)
    picked = (
        f"<p>Worked out from {used} of {total} draws, picked at random, which keeps this page from "
        "taking long.</p>"
        if used < total
        else ""
    )
    if isinstance(some, RankingPosterior):
        return _games_in_words(some) + picked
    how = "revealed predict" if hasattr(some, "known_noise") else "posterior.predict"
    thing = "decision"
    loo = None
    if isinstance(some, SwitchingPosterior):
        thing = "sequence"
        # one sequence has no others to be predicted from
        loo = some.loo() if len(some.switching.labels) > 1 else None
    else:
        loo = some.loo()
    return _choices_in_words(predict_own(some), loo, how, thing) + picked


def with_fewer_draws(post: Posterior, seed: Seed) -> Posterior:
    """The same posterior with no more draws than can be predicted from, as one chain."""
    correlated = "noise_covariance" in post.draws
    cells = BUDGET.cells_of_correlated_noise if correlated else BUDGET.cells
    enough = max(BUDGET.min_draws, cells // _count_rows(post))
    total = int(np.prod(post.shape))
    if total <= enough:
        return post
    which = np.sort(as_generator(seed).choice(total, enough, replace=False))
    draws = {
        name: array.reshape(total, *array.shape[2:])[which][None]
        for name, array in post.draws.items()
    }
    settings = {name: value for name, value in post.settings.items() if name != "draws"}
    return type(post)(draws, post.data, post.model, post.sampler, {}, settings)


def _count_rows(post: Posterior) -> int:
    """How many rows there are to predict: actions of different decisions, or entries of games."""
    if isinstance(post.data, Decisions):
        return int(post.data.sizes[find_kinds(post.data)[0]].sum())
    if isinstance(post.data, Rankings):
        return int(post.data.start[-1])
    return len(post.data) * len(post.data.actions)


def predict_own(post: Posterior) -> Prediction:
    """The prediction of the choices that a posterior was inferred from."""
    if isinstance(post, SeparatePosterior):
        return _join([predict_own(post.select(group=label)) for label in post.groups])
    if isinstance(post, MDPPosterior):
        seen = post.trajectories
        return post.predict(seen.state_position, seen.action_position)
    # what was chosen before tells which strategy is in use
    if isinstance(post, SwitchingPosterior):
        return post.predict(post.data, filtered=True)
    found: Prediction = post.predict(post.data)  # type: ignore[attr-defined]
    return found


def _join(parts: list[Prediction]) -> Prediction:
    """The predictions of several groups as one, a group after the other."""
    before = np.cumsum([0, *(len(part.probabilities) for part in parts)])
    starts = [part.decisions.start[:-1] + n for part, n in zip(parts, before, strict=False)]
    decisions = Decisions(
        np.concatenate([part.decisions.rows for part in parts]),
        np.append(np.concatenate(starts), before[-1]),
        np.concatenate([part.decisions.chosen for part in parts]),
    )
    logs = [part.log_probability_chosen for part in parts]
    deviations = [part.score_deviations for part in parts if part.score_deviations is not None]
    return Prediction(
        np.concatenate([part.probabilities for part in parts]),
        "average",
        decisions,
        np.concatenate(logs),  # type: ignore[arg-type]
        np.concatenate([part.standard_error for part in parts]),
        np.concatenate([part.draws for part in parts]),
        parts[0].draws_available,
        np.sum(deviations, axis=0),
    )


def _choices_in_words(prediction: Prediction, loo: LeaveOneOut | None, how: str, thing: str) -> str:
    """Error, log score, leave-one-out and calibration.

    How: what predicts other decisions. thing: what is left out.
    """
    left = "" if loo is None else _loo_in_words(loo, thing)
    # the error of somebody who picks an action blindly
    guessing = prediction.guessing_error
    blind = -np.log(prediction.decisions.sizes).mean()
    count, forced = len(prediction.decisions), int((~prediction.scored).sum())
    if not prediction.scored.any():
        return (
            "<p>Every decision offers a single action, so that there is nothing to predict "
            f"rightly or wrongly.</p>{left}"
        )
    left_out = (
        f" ({count_things(forced, 'decision')} with a single action left out)" if forced else ""
    )
    figure = picture(
        calibration(prediction),
        "How often predictions came true, by how probable they were said to be; points near the "
        "diagonal are right.",
    )
    return (
        f"<p>Asked for the most likely action in each of the {count_things(count, 'decision')} "
        f"it was learnt from{left_out}, it is wrong in "
        f"<strong>{prediction.error_rate:.1%}</strong> (the paper's E_a); a blind guess "
        f"would be wrong in {guessing:.1%}. It is "
        f"{prediction.confidence[prediction.scored].mean():.0%} sure on average and right in "
        f"{1.0 - prediction.error_rate:.0%}. The mean log probability of what was chosen (log "
        f"score) is {prediction.log_score:.3f} (Monte-Carlo error "
        f"{prediction.log_score_standard_error:.1g}); 0 would be perfect, and a blind guess has "
        f"{blind:.3f}.</p>"
        "<p>These decisions are the ones it learnt from, so this flatters it: judge it by "
        f"decisions it has not seen, with <code>{how}</code>.</p>"
        f"{left}{figure}"
    )


def _games_in_words(post: RankingPosterior) -> str:
    """The log probability of the games, and leave-one-out."""
    logs = post.log_likelihood().reshape(-1, len(post.rankings))
    mean = (logsumexp(logs, axis=0) - np.log(len(logs))).mean()
    blind = "."
    if "margin" not in post.draws:
        blind = (
            f", and somebody to whom all orders are equally likely has "
            f"{_log_blind_order(post.rankings).mean():.3f}."
        )
    return (
        f"<p>The {count_things(len(post.rankings), 'game')} it was learnt from ended as they did "
        f"with a mean log probability of <strong>{mean:.3f}</strong>; 0 would be perfect{blind} "
        "It learnt from these games, so this flatters it.</p>"
        f"{_loo_in_words(leave_one_out(all_observations(logs), *post.shape), 'game')}"
    )


def _log_blind_order(rankings: Rankings) -> Floats:
    """(G,) the log probability of what is known of each order, if all orders are equally likely."""
    entries, position = np.diff(rankings.start), np.arange(len(rankings.tied))
    # a place of n entries has n! orders among themselves, of which any may have been
    first_of_place = np.maximum.accumulate(np.where(rankings.tied, 0, position))
    unseen = np.add.reduceat(np.log(position - first_of_place + 1), rankings.start[:-1])
    return np.asarray(unseen + gammaln(entries - rankings.n_ordered + 1) - gammaln(entries + 1))


def _loo_in_words(loo: LeaveOneOut, thing: str) -> str:
    """How well each observation is predicted from the others, and whether that can be relied on."""
    count = len(loo.pointwise)
    bad = loo.n_high_pareto_k
    hangs = "it" if bad == 1 else "each of them"
    trust = (
        f"The estimate can be relied on for every {thing} (Pareto k at most {LIMITS.pareto_k:g})."
        if not bad
        else f"For {count_things(bad, thing)} of {count} it cannot be relied on (Pareto k above "
        f"{LIMITS.pareto_k:g}): too much hangs on {hangs}."
    )
    return (
        f"<p>Left out one at a time, and predicted from the others (PSIS-LOO), a {escape(thing)} "
        f"has a mean log probability of <strong>{loo.elpd / count:.3f}</strong>; together "
        f"(elpd) {loo.elpd:.1f}, standard error {loo.se:.1f}, Monte-Carlo error {loo.mcse:.2g}. "
        f"{trust}</p>"
    )
