"""What a page shows of lapses: the density of their rate, and which decisions they were."""

from __future__ import annotations

from typing import Any

import numpy as np

from revealed._types import Floats, Ints
from revealed.models.lapse import KnownLapse
from revealed.online import OnlineLearner
from revealed.results.density import kernel_density, normal_bandwidth
from revealed.results.lapses import find_lapses
from revealed.studio.learning.density import Curve, round_to_six_digits


def rate_curve(rates: Floats, weights: Floats) -> Curve:
    """The density of (n,) rates with weights that sum to one, as the points of a curve from zero.

    A rate is often next to zero, where kernels would spread what there is to negative numbers: what
    lies beyond zero or one is folded back, so that the curve has area one between them.
    """
    points = 80
    mean = float(weights @ rates)
    sd = float(np.sqrt(weights @ (rates - mean) ** 2))
    if not sd > 0.0:
        return {"x": [mean], "y": [0.0]}
    x, width = np.linspace(0.0, min(1.0, mean + 4.0 * sd), points), normal_bandwidth(sd, weights)
    y = sum(kernel_density(rates, place, width, weights) for place in (x, -x, 2.0 - x))
    return {
        "x": [round_to_six_digits(v) for v in x],
        "y": [round_to_six_digits(v) for v in np.asarray(y)],
    }


def lapse_payload(learner: OnlineLearner, noise: KnownLapse, picked: Ints) -> dict[str, Any]:
    """The rate with its density, and how probably each decision so far was a lapse, as JSON.

    noise: of all particles. picked: those that are asked about the decisions, by their weights.
    """
    weights, rates = np.asarray(learner.weights), np.asarray(noise.rate)
    mean = float(weights @ rates)
    decisions: list[float] = []
    if len(learner):
        found = find_lapses(learner.decisions, learner.particles[picked], noise.of_draws(picked))
        decisions = [round_to_six_digits(p) for p in found.probability]
    return {
        "mean": round_to_six_digits(mean),
        "sd": round_to_six_digits(np.sqrt(weights @ (rates - mean) ** 2)),
        "density": rate_curve(rates, weights),
        "decisions": decisions,
    }
