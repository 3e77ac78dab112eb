"""The probability of choices under a noise: which loops work it out.

Normal noise has loops of its own, `choice_fast.py` and `choice_exact.py`; any other has a formula,
which `choice_formula.py` evaluates decision by decision, that of logit noise also `choice_logit.py`
for all decisions together. Loops choose between the two when they are
compiled, by the type of their noise; what is called from Python chooses when it is called.
"""

from typing import Any

import numpy as np
from numba.extending import overload

from revealed._types import Floats, Ints
from revealed.kernels import (
    choice_exact,
    choice_fast,
    choice_formula,
    choice_logit,
    mean_probabilities,
)
from revealed.kernels._compile import compiled
from revealed.kernels.choice_fast import ChoiceWorkspace, RivalIndex
from revealed.kernels.design import Design, multiply, transpose_multiply
from revealed.kernels.noise import NoiseArguments, formula_of

normal_log_likelihood = choice_fast.log_likelihood
logit_log_likelihood = choice_logit.log_likelihood
formula_log_likelihood = choice_formula.log_likelihood


def log_likelihood(
    noise: NoiseArguments,
    utility_gap: Floats,
    rival_index: RivalIndex,
    workspace: ChoiceWorkspace,
    floor: float,
    slope: Floats,
) -> float:
    """The sum of log P over all decisions, from the rivals' utility gaps (R,), for loops.

    Minus infinity once it is sure to be below `floor`. Its derivative in every gap goes into slope
    (R,), unless that is empty.
    """
    raise NotImplementedError("only loops call this")


@overload(log_likelihood, strict=False, inline="always")  # type: ignore[untyped-decorator]
def _choose_log_likelihood(
    noise: Any, utility_gap: Any, rival_index: Any, workspace: Any, floor: Any, slope: Any
) -> Any:
    def under_normal_noise(
        noise: NoiseArguments,
        utility_gap: Floats,
        rival_index: RivalIndex,
        workspace: ChoiceWorkspace,
        floor: float,
        slope: Floats,
    ) -> float:
        return normal_log_likelihood(utility_gap, rival_index, workspace, floor, slope)

    def under_logit_noise(
        noise: NoiseArguments,
        utility_gap: Floats,
        rival_index: RivalIndex,
        workspace: ChoiceWorkspace,
        floor: float,
        slope: Floats,
    ) -> float:
        return logit_log_likelihood(noise, utility_gap, rival_index, workspace, floor, slope)

    def by_formula(
        noise: NoiseArguments,
        utility_gap: Floats,
        rival_index: RivalIndex,
        workspace: ChoiceWorkspace,
        floor: float,
        slope: Floats,
    ) -> float:
        return formula_log_likelihood(noise, utility_gap, rival_index, workspace, floor, slope)

    kind = formula_of(noise)
    if kind is None:
        return under_normal_noise
    return under_logit_noise if kind.is_logit else by_formula


@compiled
def add_log_likelihoods(
    noise: NoiseArguments,
    design: Design,
    rival_index: RivalIndex,
    workspace: ChoiceWorkspace,
    values: Floats,
    out: Floats,
    gradients: Floats,
) -> None:
    """Add log P of all choices at each of values (S, K) to out (S,).

    design: (R, K) the rivals' rows minus those of the chosen actions, so that design v are gaps.
    gradients: (S, K), to which the gradient at each of values is added; (0, K) for none.
    """
    rivals, width = rival_index.multiplicity.size, values.shape[1]
    utility_gap, gradient = np.empty(rivals), np.empty(width)
    slope = np.empty(rivals if len(gradients) > 0 else 0)
    for s in range(len(values)):
        multiply(design, values[s], utility_gap)
        out[s] += log_likelihood(noise, utility_gap, rival_index, workspace, -np.inf, slope)
        # gaps are linear in the value: the slopes in the gaps go back through the design
        if len(gradients) > 0:
            transpose_multiply(design, slope, gradient)
            for k in range(width):
                gradients[s, k] += gradient[k]


def log_probabilities(
    noise: NoiseArguments, mu: Floats, start: Ints, chosen_row: Ints, out: Floats
) -> None:
    """Write log P of the chosen row of each decision into out (T,).

    mu: (P,) rows @ v. start: (T + 1,) where each decision's rows begin. chosen_row: (T,).
    """
    if noise.kind is None:
        choice_exact.log_probabilities(mu, start, chosen_row, out)
    else:
        choice_formula.log_probabilities(noise, mu, start, chosen_row, out)


def log_likelihood_and_gradient(
    noise: NoiseArguments, mu: Floats, start: Ints, chosen_row: Ints, gradient: Floats
) -> float:
    """The sum of log P over all decisions.

    Its derivative in mu goes into gradient (P,).
    """
    if noise.kind is None:
        return choice_exact.log_likelihood_and_gradient(mu, start, chosen_row, gradient)
    return choice_formula.log_likelihood_and_gradient(noise, mu, start, chosen_row, gradient)


def all_probabilities(noise: NoiseArguments, mu: Floats, start: Ints, out: Floats) -> None:
    """Write the probability of every action of every decision into out (P,)."""
    if noise.kind is None:
        choice_exact.all_probabilities(mu, start, out)
    elif noise.is_logit:
        choice_logit.all_probabilities(mu, start, out)
    else:
        choice_formula.all_probabilities(noise, mu, start, out)


def add_probabilities(
    noise: NoiseArguments, mu: Floats, start: Ints, batch: Ints, out: Floats
) -> None:
    """Add the probability of every action under draw s to column batch[s] of out (P, B).

    mu: (P, S) rows @ v of each draw. Under normal noise each is off by less than 2e-8
    (`mean_probabilities.py`).
    """
    if noise.kind is None:
        mean_probabilities.add_probabilities(mu, start, batch, out)
        return
    one = np.empty(len(mu))
    for s in range(mu.shape[1]):
        all_probabilities(noise, np.ascontiguousarray(mu[:, s]), start, one)
        out[:, batch[s]] += one
