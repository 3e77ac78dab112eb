"""Predictions where groups have values of their own: each by its group, in one table."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np

from revealed.data.decisions import Decisions
from revealed.data.groups import decisions_by_group, group_labels
from revealed.results.prediction import Prediction, check_same_coefficients


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
    probabilities, logs = np.empty(decisions.rows.shape[0]), np.empty(len(decisions))
    for label, which in decisions_by_group(group_labels(decisions)).items():
        found = predict_group(label, decisions[which])
        rows = np.concatenate([np.arange(*decisions.start[t : t + 2]) for t in which])
        probabilities[rows] = found.probabilities
        chosen = found.log_probability_chosen
        logs[which] = 0.0 if chosen is None else chosen
    return Prediction(probabilities, method, decisions, None if decisions.chosen is None else logs)
