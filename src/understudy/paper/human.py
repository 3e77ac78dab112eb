"""Section 5.2, Experiment 2: a person's games, with the paper's three features and with richer ones chosen on what was learnt from."""

from __future__ import annotations

from typing import Any

import numpy as np

from understudy._arrays import Bools
from understudy.compare import left_out
from understudy.paper.figures import densities, error_curves
from understudy.paper.study import Section, Study, Tell, learn
from understudy.posterior import Posterior
from understudy.predict import predict
from understudy.priors import Gaussian
from understudy.worlds.tetris import FEATURES, Games
from understudy.worlds.tetris.features import NAMES

COUNTS = (10, 20, 50, 100)
SEEN, ALL = 100, 500
KAPPA = 2500.0
PROTOTYPE = (0.39, 0.36, 0.36, 0.41)


def run(games: Games, seed: int, quick: bool, tell: Tell) -> Study:
    """Learn from the first 10, 20, 50 and 100 straight drops, and predict those from 100 to 500."""
    sets = [name for name in NAMES if name != "bertsekas"] if quick else list(NAMES)
    decisions = {name: games.decisions(features=name) for name in sets}
    if len(decisions["paper"]) < ALL:
        raise ValueError(
            f"the games hold {len(decisions['paper'])} straight drops; Experiment 2 needs {ALL}: 100 to learn from and 400 to predict"
        )
    later = decisions["paper"][SEEN:ALL]
    wrong: dict[str, list[Bools]] = {name: [] for name in sets}
    log_scores: dict[str, list[float]] = {name: [] for name in sets}
    loo: dict[str, float] = {}
    posts: dict[tuple[str, int], Posterior] = {}
    for name, d in decisions.items():
        for count in COUNTS:
            tell(f"human: {name} features, {count} decisions")
            post = posts[name, count] = learn(d[:count], Gaussian(KAPPA), seed=seed, draws=200 if quick else 2000)
            some = post.values[:: max(1, len(post.values) // (200 if quick else 1000))]
            voted = predict(some, d[SEEN:ALL], "vote", seed=seed)
            wrong[name].append(voted.action != np.asarray(later.chosen))
            log_scores[name].append(predict(some[::4], d[SEEN:ALL]).log_score)
        loo[name] = float(left_out(posts[name, SEEN])[0].sum())
    chosen = max(loo, key=lambda name: loo[name])
    errors = {name: [float(each.mean()) for each in by_count] for name, by_count in wrong.items()}
    gain, unsure = _paired(wrong["paper"][-1], wrong[chosen][-1])
    saves_up = float(np.mean(posts["rich", SEEN]["four lines"] > 0.0))
    numbers: dict[str, Any] = {
        "straight_drops": len(decisions["paper"]), "counts": COUNTS, "errors": errors, "log_scores": log_scores,
        "loo": loo, "chosen": chosen, "gain": gain, "gain_standard_error": unsure,
        "wants_four_at_once": saves_up,
        "guessing": float(1.0 - np.mean(1.0 / later.sizes)),
    }  # fmt: skip
    ours = " / ".join(f"{e:.2f}" for e in errors["paper"])
    head = [
        "features",
        "coefficients",
        "LOO from 100",
        *(f"E_a, T = {count}" for count in COUNTS),
        "log score, T = 100",
    ]
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
        "human", "Tetris, a person",
        f"Section 5.2, Experiment 2, on a person's recorded games: {len(decisions['paper']):,} straight drops on a {games.rows} x {games.columns} board; "
        "the first 100 to learn from, the next 400 to predict.",
        numbers,
        [
            Section(
                "Three features capture much of a person",
                "even with three basis functions it is possible to capture significant information about the player's policy.",
                f"prediction errors of {ours} after 10 / 20 / 50 / 100 decisions, where guessing is wrong in {numbers['guessing']:.2f} "
                f"(a prototype on the same file: {' / '.join(f'{e:.2f}' for e in PROTOTYPE)}). From 10 to 100 decisions the error "
                f"changes by {errors['paper'][-1] - errors['paper'][0]:+.2f}, with a standard error of 0.024.",
                densities(
                    "What the first 50 decisions say", [""], FEATURES, [posts["paper", 50].values], [None],
                    "The paper's three features, kappa = 2500.",
                ),
                "Posterior of height, holes and bumps from 50 decisions.",
            ),
            Section(
                "Richer features, chosen on what was learnt from",
                "the paper stops at three.",
                f"leave-one-out predictive density over the first 100 decisions alone picks {chosen}. On the 400 decisions that played no part in it, "
                f"its error is {errors[chosen][-1]:.3f} against {errors['paper'][-1]:.3f} with the paper's three ({errors[chosen][-2]:.3f} against {errors['paper'][-2]:.3f} after 50): "
                f"{gain:.3f} fewer, decision by decision, with a standard error of {unsure:.3f}. The mean log probability of what the person did is "
                f"{log_scores[chosen][-1]:.2f} against {log_scores['paper'][-1]:.2f}. With the rich set we are {saves_up:.0%} sure that four rows removed at once are worth more to this person than the same four one by one, "
                "which no function of the board can say.",
                error_curves(
                    "Prediction error by features", COUNTS, {name: np.array([e]) for name, e in errors.items()}, {},
                    "One person's games; 400 decisions to predict, so an error of 0.36 has a standard error of 0.024.",
                ),
                "Prediction error against decisions learnt from, for every set of features.",
                (head, rows),
            ),
        ],
    )  # fmt: skip


def _paired(one: Bools, other: Bools) -> tuple[float, float]:
    """By how much the share of wrong predictions falls from one to the other, over the same decisions, and its standard error."""
    fall = one.astype(np.float64) - other
    return float(fall.mean()), float(fall.std() / np.sqrt(fall.size))
