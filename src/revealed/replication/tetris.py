"""Section 5.2, Experiment 1: three players whose values are known.

They are learnt from 10, 20, 50 and 100 decisions, predicted on 400 others, and mimicked.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import numpy as np

from revealed._types import Floats
from revealed.api import fit_quietly
from revealed.environments.tetris import PIECES, Rollout, Tetris
from revealed.environments.tetris.pieces import rotations
from revealed.models.choice import ChoiceModel
from revealed.models.priors import Normal
from revealed.replication.figures import plot_densities, plot_errors
from revealed.replication.study import ReportProgress, Section, Study
from revealed.replication.tetris_mixing import acceptance_section, mixing_sections
from revealed.replication.tetris_play import style_section, survival_section, termination_section
from revealed.replication.tetris_players import (
    PLAN,
    VALUES,
    player_generator,
    player_label,
    thin_draws,
)
from revealed.results.choice import ChoicePosterior
from revealed.results.predictive import predict

PROTOTYPE = MappingProxyType(
    {
        "efficient": [
            "floor .072",
            ".200 [.09-.38]",
            ".114 [.09-.14]",
            ".084 [.05-.11]",
            ".077 [.06-.11]",
        ],
        "zig-zag": [
            "floor .141",
            ".159 [.12-.22]",
            ".145 [.12-.19]",
            ".138 [.11-.16]",
            ".141 [.12-.17]",
        ],
        "towers": [
            "floor .102",
            ".157 [.10-.29]",
            ".124 [.08-.20]",
            ".108 [.09-.13]",
            ".101 [.09-.12]",
        ],
    }
)
"""What an independent prototype found: the floor, and mean [range] over seeds by count."""


def run(seed: int, quick: bool, report_progress: ReportProgress) -> Study:
    """The study: the whole experiment.

    `quick` takes fewer seeds, games and iterations.
    """
    # seeds of each player, games by the predicted action, iterations of a chain
    seeds, games, length = (2, 10, 4000) if quick else (8, 100, 40_000)
    tetris = Tetris()
    # 500 decisions of each player, for every seed.
    rollouts = {
        name: [
            tetris.simulate(player_generator(seed, i), v, PLAN.learn_from + PLAN.predict)
            for i in range(seeds)
        ]
        for name, v in VALUES.items()
    }
    # Every player, seed and number of decisions has a posterior; sections share them.
    posts: dict[str, dict[int, list[ChoicePosterior]]] = {
        name: {count: [] for count in PLAN.counts} for name in VALUES
    }
    errors = {name: np.zeros((seeds, len(PLAN.counts))) for name in VALUES}
    floors = {name: np.zeros(seeds) for name in VALUES}
    for name, value in VALUES.items():
        for i, rollout in enumerate(rollouts[name]):
            report_progress(f"tetris: {player_label(name)}, seed {i + 1} of {seeds}")
            d = tetris.decisions(rollout)
            # knowing the true values, one is still wrong where noise decides
            floors[name][i] = predict(value, d[PLAN.learn_from :], "point").error_rate
            # each number of decisions alone, from the first one on
            for c, count in enumerate(PLAN.counts):
                post = fit_quietly(d[:count], ChoiceModel(Normal(PLAN.prior_sd)), seed=seed + i)
                errors[name][i, c] = predict(
                    thin_draws(post.values), d[PLAN.learn_from :], "vote", seed=seed + i
                ).error_rate
                posts[name][count].append(post)
    numbers: dict[str, Any] = {
        "seeds": seeds,
        "errors": errors,
        "floors": floors,
        "terminations": {
            name: [int(rollout.games.max()) for rollout in several]
            for name, several in rollouts.items()
        },
    }
    # One section for each statement of the paper; they add to the numbers.
    sections = [
        _recovery_section(posts, seed, numbers, report_progress),
        _prediction_section(errors, floors, numbers, seeds),
        _literal_actions_section(seed, 1 if quick else seeds, numbers, report_progress),
        *mixing_sections(tetris, rollouts, posts, seed, length, numbers, report_progress),
        acceptance_section(rollouts, seed, length, numbers, report_progress),
        style_section(tetris, rollouts, posts, seed),
        survival_section(tetris, posts, seed, games, numbers, report_progress),
        termination_section(seed, numbers, seeds, quick, report_progress),
    ]
    return Study(
        "tetris",
        "Tetris, three players whose values are known",
        f"Section 5.2, Experiment 1: 500 decisions on a 30 x 10 board over {seeds} seeds; the "
        "first 100 to learn from, the other 400 to predict.",
        numbers,
        sections,
    )


def _count_inside_interval(name: str, post: ChoicePosterior) -> int:
    """How many of the true values lie inside their 90 % intervals."""
    # interval by interval
    summary, truth = post.summary(), np.array(VALUES[name])
    return int(((summary.low <= truth) & (truth <= summary.high)).sum())


def _recovery_section(
    posts: dict[str, dict[int, list[ChoicePosterior]]],
    seed: int,
    numbers: dict[str, Any],
    report_progress: ReportProgress,
) -> Section:
    """Whether posteriors from 50 decisions hold the true values, under two priors.

    Adds `inside_90` to the numbers.
    """
    # The paper shows posteriors from 50 decisions.
    at_fifty = {name: by_count[50][0] for name, by_count in posts.items()}
    inside = {
        name: sum(_count_inside_interval(name, post) for post in by_count[50])
        for name, by_count in posts.items()
    }
    report_progress("tetris: the same with a smaller prior")
    # The same with a prior nearer to the true values.
    closer = {
        name: sum(
            _count_inside_interval(
                name,
                fit_quietly(post.decisions, ChoiceModel(Normal(PLAN.smaller_prior_sd)), seed=seed),
            )
            for post in by_count[50]
        )
        for name, by_count in posts.items()
    }
    coefficients = 3 * len(posts["efficient"][50])
    numbers["inside_90"] = {
        "of_each": coefficients,
        "kappa 2500": inside,
        f"kappa {PLAN.smaller_prior_sd**2:g}": closer,
    }
    counted = ", ".join(
        f"{count} of {coefficients} for {player_label(name)}" for name, count in inside.items()
    )
    return Section(
        "The values are recovered",
        "the posterior marginals from 50 decisions have significant mass in the neighbourhood of "
        "the true values, in all cases.",
        f"{counted} "
        f"true values lie inside their 90 % intervals (about {0.9 * coefficients:.0f} of "
        f"{coefficients} would, "
        "were they drawn "
        f"from the prior). With kappa = {PLAN.smaller_prior_sd**2:g} it is "
        f"{', '.join(str(count) for count in closer.values())}: 50 choices of a consistent player "
        "bound its values mostly from below, and a prior with an sd of 50 expects larger ones "
        "than these.",
        plot_densities(
            "Posteriors from 50 decisions",
            [player_label(name) for name in at_fifty],
            ["height", "holes", "bumps"],
            [post.values for post in at_fifty.values()],
            [VALUES[name] for name in at_fifty],
            "The first seed, by the default sampler.",
        ),
        "Histogram and kernel density of each coefficient for each player, with the true value.",
    )


def _prediction_section(
    errors: dict[str, Floats], floors: dict[str, Floats], numbers: dict[str, Any], seeds: int
) -> Section:
    """Prediction errors by the number of decisions learnt from, beside their floor.

    `errors` are (seeds, counts) and `floors` (seeds,) for each player: the error of somebody who
    knows the true values. Adds `gap_to_floor_at_100` to the numbers.
    """
    # A row for us and one for the prototype, player by player.
    head = ["values", "floor", *(f"T = {count}" for count in PLAN.counts)]
    rows = []
    for name, rates in errors.items():
        ours = [
            f"{rates[:, c].mean():.3f} [{rates[:, c].min():.2f}-{rates[:, c].max():.2f}]"
            for c in range(len(PLAN.counts))
        ]
        rows += [
            [player_label(name), f"{floors[name].mean():.3f}", *ours],
            ["a prototype", *PROTOTYPE[name]],
        ]
    # Does the error fall, and how near does it come to the floor?
    better = all(rates[:, -1].mean() < rates[:, 0].mean() for rates in errors.values())
    # what is left above the floor after a hundred decisions
    gap = {name: float(rates[:, -1].mean() - floors[name].mean()) for name, rates in errors.items()}
    numbers["gap_to_floor_at_100"] = gap
    return Section(
        "Predictions improve with more decisions",
        "the prediction error on the other 400 decisions falls as more are learnt from.",
        f"it {'does' if better else 'does not always'}, and reaches the floor, the error of "
        "someone who knows the true values: after 100 decisions it is "
        f"within {max(abs(g) for g in gap.values()):.3f} of it, for all three players. Errors by "
        f"vote, mean and range over {seeds} seeds.",
        plot_errors(
            "Prediction error against decisions learnt from",
            PLAN.counts,
            {player_label(n): e for n, e in errors.items()},
            {player_label(n): f.mean() for n, f in floors.items()},
            f"Mean over {seeds} seeds, with their range; dotted: the error when the true values "
            "predict.",
        ),
        "Prediction error E_a against the number of decisions, for three players.",
        (head, rows),
    )


def _literal_actions_section(
    seed: int, seeds: int, numbers: dict[str, Any], report_progress: ReportProgress
) -> Section:
    """Prediction errors where every piece has four rotations, as the paper's text has it.

    Scored by the action and by where the piece ends up. Adds `literal` to the numbers.
    """
    tetris = Tetris(actions="literal")
    by_action: dict[str, list[float]] = {name: [] for name in VALUES}
    by_place: dict[str, list[float]] = {name: [] for name in VALUES}
    for name, value in VALUES.items():
        for i in range(seeds):
            report_progress(
                f"tetris: four rotations of every piece, {player_label(name)}, "
                f"seed {i + 1} of {seeds}"
            )
            rollout = tetris.simulate(
                player_generator(seed, 1000 + i), value, PLAN.learn_from + PLAN.predict
            )
            d = tetris.decisions(rollout)
            # wrong by the action, though perhaps not by where the piece ends up
            found = predict(
                thin_draws(
                    fit_quietly(d[:50], ChoiceModel(Normal(PLAN.prior_sd)), seed=seed + i).values
                ),
                d[PLAN.learn_from :],
                "vote",
                seed=seed + i,
            )
            by_action[name].append(found.error_rate)
            by_place[name].append(_wrong_placement_rate(tetris, rollout, found.predicted))
    numbers["literal"] = {"by_action": by_action, "by_placement": by_place}
    return Section(
        "Four rotations of every piece",
        "an action is an angle of 0, 90, 180 or 270 degrees and a shift.",
        "taken literally, squares and bars have rotations that no eye and no feature can tell "
        "apart, and a prediction is wrong whenever it "
        "names another of the same: errors of "
        f"{', '.join(f'{np.mean(e):.2f}' for e in by_action.values())} after 50 decisions, "
        "whatever is known. Scored by where the piece ends up: "
        f"{', '.join(f'{np.mean(e):.2f}' for e in by_place.values())}. Everything else here "
        "offers each placement once.",
    )


def _wrong_placement_rate(tetris: Tetris, rollout: Rollout, action: Any) -> float:
    """The share of predictions that put the piece elsewhere.

    `action` are the predicted positions among the placements of decisions 100 to 500.
    """
    wrong = 0
    # the predicted placement beside the one that was made
    for t, picked in enumerate(action, PLAN.learn_from):
        # rotations that look the same are equal modulo their number
        kinds = len(rotations(PIECES[rollout.pieces[t]]))
        rotation, column = tetris.placements(rollout.boards[t], int(rollout.pieces[t]))[
            picked
        ].tolist()
        wrong += (rotation % kinds, column) != (rollout.rotations[t] % kinds, rollout.columns[t])
    return wrong / len(action)
