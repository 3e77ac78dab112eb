"""Figures: what was inferred, how it was drawn, and whether its predictions can be believed.

Every function returns a matplotlib Figure of its own: nothing is shown and no global state changes.
``figure.savefig("values.png")`` writes it. Colours are told apart by colour-blind readers and in
grey.

>>> rows = [[1.0, 3.0], [0.0, 2.0], [1.0, 2.0], [0.0, 2.0]] * 10  # tea or coffee
>>> d = rv.Decisions(rows, range(0, 41, 2), [0] * 14 + [1] * 6, names=["tea", "price"])
>>> post = rv.fit(d, rv.ChoiceModel(prior=rv.Normal(1.0)))
>>> rv.plots.posterior_densities(post).savefig("drinks.png")
"""

from revealed.plots.lapses import lapse_probabilities
from revealed.plots.noise import noise_correlations
from revealed.plots.paths import value_paths
from revealed.plots.population import shrinkage
from revealed.plots.posterior import (
    autocorrelations,
    posterior_densities,
    reward_intervals,
    traces,
    value_intervals,
)
from revealed.plots.prediction import calibration
from revealed.plots.ranking import skill_intervals
from revealed.plots.skill_paths import leaders, skill_curves
from revealed.plots.strategies import strategy_ribbons
from revealed.plots.transitions import transitions
from revealed.plots.values import hazard, reward_curve
from revealed.plots.walk_forward import walk_forward
from revealed.results.density import density

__all__ = [
    "autocorrelations",
    "calibration",
    "density",
    "hazard",
    "lapse_probabilities",
    "leaders",
    "noise_correlations",
    "posterior_densities",
    "reward_curve",
    "reward_intervals",
    "shrinkage",
    "skill_curves",
    "skill_intervals",
    "strategy_ribbons",
    "traces",
    "transitions",
    "value_intervals",
    "value_paths",
    "walk_forward",
]
