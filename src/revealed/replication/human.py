"""Section 5.2, Experiment 2: a person's games, with the paper's three features and richer ones.

A feature set is chosen by leave-one-out predictive density over the decisions learnt from alone;
the decisions to predict have no part in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from revealed._types import Bools
from revealed.api import fit_quietly
from revealed.environments.tetris import PAPER_FEATURES, Games
from revealed.environments.tetris.features import FEATURE_SETS
from revealed.models.choice import ChoiceModel
from revealed.models.priors import Normal
from revealed.replication.figures import plot_densities, plot_errors
from revealed.replication.study import ReportProgress, Section, Study
from revealed.results.choice import ChoicePosterior
from revealed.results.predictive import predict


@dataclass(frozen=True)
class HumanPlan:
    """The settings of the experiment, the paper's.

    counts: how many decisions are learnt from.
    first_predicted, decisions: predicted are the decisions from the first to the second number.
    prior_sd: the paper's kappa = 2500.
    prototype_errors: what an independent prototype found on the same file, count by count.
    """

    counts: tuple[int, ...] = (10, 20, 50, 100)
    first_predicted: int = 100
    decisions: int = 500
    prior_sd: float = 50.0
    prototype_errors: tuple[float, ...] = (0.39, 0.36, 0.36, 0.41)


PLAN = HumanPlan()


def run(games: Games, seed: int, quick: bool, report_progress: ReportProgress) -> Study:
    """The study: learn from the first 10, 20, 50 and 100 straight drops, predict the next 400.

    `quick` leaves out the largest feature set and makes fewer draws.
    """
    # the largest set has 21 features, and takes longest
    sets = [name for name in FEATURE_SETS if name != "bertsekas"] if quick else list(FEATURE_SETS)
    decisions = {name: games.decisions(features=name) for name in sets}
    if len(decisions["paper"]) < PLAN.decisions:
        raise ValueError(
            f"the games hold {len(decisions['paper'])} straight drops; Experiment 2 needs "
            f"{PLAN.decisions}: 100 to learn from and 400 to predict"
        )
    # The same decisions are predicted with every feature set.
    predicted = slice(PLAN.first_predicted, PLAN.decisions)
    later = decisions["paper"][predicted]
    wrong: dict[str, list[Bools]] = {name: [] for name in sets}
    log_scores: dict[str, list[float]] = {name: [] for name in sets}
    loo: dict[str, float] = {}
    posts: dict[tuple[str, int], ChoicePosterior] = {}
    for name, d in decisions.items():
        for count in PLAN.counts:
            report_progress(f"human: {name} features, {count} decisions")
            post = posts[name, count] = fit_quietly(
                d[:count],
                ChoiceModel(Normal(PLAN.prior_sd)),
                seed=seed,
                draws=200 if quick else 2000,
            )
            # voting is slow; a thousand draws vote as all would
            thinned = post.values[:: max(1, len(post.values) // (200 if quick else 1000))]
            # The paper's prediction is a vote; the log score needs probabilities.
            voted = predict(thinned, d[predicted], "vote", seed=seed)
            wrong[name].append(voted.predicted != np.asarray(later.chosen))
            log_scores[name].append(predict(thinned[::4], d[predicted]).log_score)
        # leave-one-out over the hundred decisions learnt from
        loo[name] = posts[name, PLAN.first_predicted].loo().elpd
    # the set with the best leave-one-out density
    chosen = max(loo, key=lambda name: loo[name])
    errors = {
        name: [float(outcomes.mean()) for outcomes in by_count] for name, by_count in wrong.items()
    }
    # The chosen set against the paper's, decision by decision.
    gain, gain_error = _paired_difference(wrong["paper"][-1], wrong[chosen][-1])
    # the posterior probability that four rows at once are worth more
    wants_four = float(np.mean(posts["rich", PLAN.first_predicted]["four lines"] > 0.0))
    numbers: dict[str, Any] = {
        "straight_drops": len(decisions["paper"]),
        "counts": PLAN.counts,
        "errors": errors,
        "log_scores": log_scores,
        "loo": loo,
        "chosen": chosen,
        "gain": gain,
        "gain_standard_error": gain_error,
        "wants_four_at_once": wants_four,
        "guessing": float(1.0 - np.mean(1.0 / later.sizes)),
    }
    # The table of all sets, and what the sections say.
    ours = " / ".join(f"{e:.2f}" for e in errors["paper"])
    head = [
        "features",
        "coefficients",
        "LOO from 100",
        *(f"E_a, T = {count}" for count in PLAN.counts),
        "log score, T = 100",
    ]
    # A row of the table for each set.
    rows = [
        [
            name,
            str(len(d.names)),
            f"{loo[name]:.1f}",
            *(f"{e:.3f}" for e in errors[name]),
            f"{log_scores[name][-1]:.2f}",
        ]
        for name, d in decisions.items()
    ]
    return Study(
        "human",
        "Tetris, a person",
        f"Section 5.2, Experiment 2, on a person's recorded games: {len(decisions['paper']):,} "
        f"straight drops on a {games.rows} x {games.columns} board; "
        "the first 100 to learn from, the next 400 to predict.",
        numbers,
        [
            Section(
                "Three features capture much of a person",
                "even with three basis functions it is possible to capture significant "
                "information about the player's policy.",
                f"prediction errors of {ours} after 10 / 20 / 50 / 100 decisions, where guessing "
                f"is wrong in {numbers['guessing']:.2f} "
                "(a prototype on the same file: "
                f"{' / '.join(f'{e:.2f}' for e in PLAN.prototype_errors)}). From 10 to 100 "
                "decisions the error "
                f"changes by {errors['paper'][-1] - errors['paper'][0]:+.2f}, with a standard "
                "error of 0.024.",
                plot_densities(
                    "What the first 50 decisions say",
                    [""],
                    PAPER_FEATURES,
                    [posts["paper", 50].values],
                    [None],
                    "The paper's three features, kappa = 2500.",
                ),
                "Posterior of height, holes and bumps from 50 decisions.",
            ),
            Section(
                "Richer features, chosen on what was learnt from",
                "the paper stops at three.",
                "leave-one-out predictive density over the first 100 decisions alone picks "
                f"{chosen}. On the 400 decisions that played no part in it, "
                f"its error is {errors[chosen][-1]:.3f} against {errors['paper'][-1]:.3f} with "
                f"the paper's three ({errors[chosen][-2]:.3f} against {errors['paper'][-2]:.3f} "
                "after 50): "
                f"{gain:.3f} fewer, decision by decision, with a standard error of "
                f"{gain_error:.3f}. The mean log probability of what the person did is "
                f"{log_scores[chosen][-1]:.2f} against {log_scores['paper'][-1]:.2f}. With the "
                f"rich set we are {wants_four:.0%} sure that four rows removed at once are worth "
                "more to this person than the same four one by one, "
                "which no function of the board can say.",
                plot_errors(
                    "Prediction error by features",
                    PLAN.counts,
                    {name: np.array([e]) for name, e in errors.items()},
                    {},
                    "One person's games; 400 decisions to predict, so an error of 0.36 has a "
                    "standard error of 0.024.",
                ),
                "Prediction error against decisions learnt from, for every set of features.",
                (head, rows),
            ),
        ],
    )


def _paired_difference(one: Bools, other: Bools) -> tuple[float, float]:
    """By how much the share of wrong predictions falls, and the standard error of that.

    Both are (n,) over the same decisions, so the error is that of paired differences.
    """
    # paired: both predicted the same decisions
    difference = one.astype(np.float64) - other
    return float(difference.mean()), float(difference.std() / np.sqrt(difference.size))
