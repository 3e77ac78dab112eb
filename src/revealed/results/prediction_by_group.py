"""Predictions of decisions in parts, such as groups with values of their own, in one table."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping

import numpy as np

from revealed._types import Floats, Ints
from revealed.data.decisions import Decisions
from revealed.data.groups import decisions_by_group, group_labels
from revealed.results.draw_batches import rows_of
from revealed.results.given_draws import check_same_coefficients
from revealed.results.prediction import Prediction
from revealed.samplers.progress import RULE, progress_bar


def predict_by_group(
    names: tuple[str, ...],
    decisions: Decisions,
    method: str,
    predict_group: Callable[[Hashable, Decisions], Prediction],
) -> Prediction:
    """What each group chooses in its own decisions, in the order of the decisions.

    names: the posterior's coefficients. predict_group: a group's label and its decisions to their
    prediction.
    """
    check_same_coefficients(names, decisions.names)
    groups = decisions_by_group(group_labels(decisions))

    def predict_part(label: Hashable, which: Ints) -> Prediction:
        return predict_group(label, decisions[which])

    return join_predictions(decisions, method, groups, predict_part)


def check_new_groups(
    new_groups: Iterable[Hashable], known: Mapping[Hashable, int]
) -> set[Hashable]:
    """The labels of groups never seen before; refuses those that are known."""
    fresh = set(new_groups)
    for label in fresh:
        if label in known:
            raise ValueError(
                f"{label!r} is called new, but is one of the {len(known)} groups of this fit"
            )
    return fresh


def join_predictions(
    decisions: Decisions,
    method: str,
    parts: Mapping[Hashable, Ints],
    predict_part: Callable[[Hashable, Ints], Prediction],
) -> Prediction:
    """The prediction of all decisions from those of parts of them, each part once.

    parts: by a label of its own, the positions of its decisions.
    """
    rows, count = decisions.rows.shape[0], len(decisions)
    probabilities, errors = np.empty(rows), np.empty(rows)
    logs, draws, available = np.empty(count), np.empty(count, np.int64), 0
    score: Floats | None = None
    bar = progress_bar("prediction", total=len(parts), counted=True, after=RULE.unseen)
    with bar as completed:
        for i, (label, which) in enumerate(parts.items()):
            found = predict_part(label, which)
            own = rows_of(decisions.start, np.asarray(which))
            probabilities[own], errors[own] = found.probabilities, found.standard_error
            draws[which], available = found.draws, found.draws_available
            if found.log_probability_chosen is not None and found.score_deviations is not None:
                logs[which] = found.log_probability_chosen
                # groups share their draws, batch by batch; where they do not, products of
                # deviations are zero on average
                score = found.score_deviations + (0.0 if score is None else score)
            completed(i + 1)
    seen = decisions.chosen is not None
    return Prediction(
        probabilities, method, decisions, logs if seen else None, errors, draws, available, score
    )
