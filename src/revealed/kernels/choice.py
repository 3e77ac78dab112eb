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
    choice_formula,
    choice_independent,
    choice_logit,
    lapse,
    mean_probabilities,
)
from revealed.kernels._compile import compiled
from revealed.kernels.choice_fast import ChoiceWorkspace, RivalIndex
from revealed.kernels.design import Design, multiply, transpose_multiply
from revealed.kernels.noise import (
    AnyNoise,
    LapseArguments,
    count_coordinates,
    has_lapses,
    read_coordinates,
    read_slopes,
)

lapse_log_likelihood = lapse.log_likelihood
independent_log_likelihood = choice_independent.log_likelihood


def log_likelihood(
    noise: AnyNoise,
    utility_gap: Floats,
    rival_index: RivalIndex,
    workspace: ChoiceWorkspace,
    floor: float,
    slope: Floats,
) -> float:
    """The sum of log P over all decisions, from the rivals' utility gaps (R,), for loops.

    After the gaps come the coordinates of the noise, where it has any (`noise.py`). Minus infinity
    once it is sure to be below `floor`. Its derivative in all of them goes into slope, unless that
    is empty.
    """
    raise NotImplementedError("only loops call this")


@overload(log_likelihood, strict=False, inline="always")  # type: ignore[untyped-decorator]
def _choose_log_likelihood(
    noise: Any, utility_gap: Any, rival_index: Any, workspace: Any, floor: Any, slope: Any
) -> Any:
    def with_lapses(
        noise: Any,
        utility_gap: Floats,
        rival_index: RivalIndex,
        workspace: ChoiceWorkspace,
        floor: float,
        slope: Floats,
    ) -> float:
        return lapse_log_likelihood(noise, utility_gap, rival_index, workspace, floor, slope)

    def without_lapses(
        noise: Any,
        utility_gap: Floats,
        rival_index: RivalIndex,
        workspace: ChoiceWorkspace,
        floor: float,
        slope: Floats,
    ) -> float:
        return independent_log_likelihood(noise, utility_gap, rival_index, workspace, floor, slope)

    return with_lapses if has_lapses(noise) else without_lapses


@compiled
def add_log_likelihoods(
    noise: AnyNoise,
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
    size = rivals + count_coordinates(noise)
    utility_gap, gradient = np.empty(size), np.empty(width)
    slope = np.empty(size if len(gradients) > 0 else 0)
    for s in range(len(values)):
        multiply(design, values[s], utility_gap[:rivals])
        read_coordinates(values[s], utility_gap, rivals)
        out[s] += log_likelihood(noise, utility_gap, rival_index, workspace, -np.inf, slope)
        # gaps are linear in the value: the slopes in the gaps go back through the design
        if len(gradients) > 0:
            transpose_multiply(design, slope[:rivals], gradient)
            read_slopes(slope, rivals, gradient)
            for k in range(width):
                gradients[s, k] += gradient[k]


def log_probabilities(
    noise: AnyNoise, mu: Floats, start: Ints, chosen_row: Ints, out: Floats
) -> None:
    """Write log P of the chosen row of each decision into out (T,).

    mu: (P,) rows @ v. start: (T + 1,) where each decision's rows begin. chosen_row: (T,).
    """
    if isinstance(noise, LapseArguments):
        # first as if there were no lapses, then what they leave of it
        log_probabilities(noise.noise, mu, start, chosen_row, out)
        out[:] = np.logaddexp(noise.log_attends + out, noise.log_blind(np.diff(start)))
        return
    if noise.kind is None:
        choice_exact.log_probabilities(mu, start, chosen_row, out)
    else:
        choice_formula.log_probabilities(noise, mu, start, chosen_row, out)


def log_likelihood_and_gradient(
    noise: AnyNoise, mu: Floats, start: Ints, chosen_row: Ints, gradient: Floats
) -> float:
    """The sum of log P over all decisions.

    Its derivative in mu goes into gradient (P,).
    """
    if isinstance(noise, LapseArguments):
        # the slope of each decision counts as probably as its choice was no lapse
        log_p = np.empty(chosen_row.size)
        log_likelihood_and_gradient(noise.noise, mu, start, chosen_row, gradient)
        log_probabilities(noise.noise, mu, start, chosen_row, log_p)
        log_total = np.logaddexp(noise.log_attends + log_p, noise.log_blind(np.diff(start)))
        gradient *= np.repeat(np.exp(noise.log_attends + log_p - log_total), np.diff(start))
        return float(log_total.sum())
    if noise.kind is None:
        return choice_exact.log_likelihood_and_gradient(mu, start, chosen_row, gradient)
    return choice_formula.log_likelihood_and_gradient(noise, mu, start, chosen_row, gradient)


def all_probabilities(noise: AnyNoise, mu: Floats, start: Ints, out: Floats) -> None:
    """Write the probability of every action of every decision into out (P,)."""
    if isinstance(noise, LapseArguments):
        # blind choices are shared evenly among the actions offered; habits know the chosen alone
        assert not noise.has_habits
        all_probabilities(noise.noise, mu, start, out)
        blind = np.repeat(1.0 / np.diff(start), np.diff(start))
        out[:] = np.exp(noise.log_attends) * out + np.exp(noise.log_rate) * blind
        return
    if noise.kind is None:
        choice_exact.all_probabilities(mu, start, out)
    elif noise.is_logit:
        choice_logit.all_probabilities(mu, start, out)
    else:
        choice_formula.all_probabilities(noise, mu, start, out)


def add_probabilities(noise: AnyNoise, mu: Floats, start: Ints, batch: Ints, out: Floats) -> None:
    """Add the probability of every action under draw s to column batch[s] of out (P, B).

    mu: (P, S) rows @ v of each draw. Under normal noise each is off by less than 3e-7
    (`mean_probabilities.py`).
    """
    if not isinstance(noise, LapseArguments) and noise.is_normal:
        mean_probabilities.add_probabilities(mu, start, batch, out)
        return
    # a formula has no loop for many draws together
    one = np.empty(len(mu))
    for s in range(mu.shape[1]):
        all_probabilities(noise, np.ascontiguousarray(mu[:, s]), start, one)
        out[:, batch[s]] += one
