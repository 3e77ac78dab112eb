"""Data augmentation: the loop of the paper's samplers (section 3).

Each iteration draws the utilities w given the value v, then v given w with the working parameters
of `parameter_expansion.py`:

    w | v, choices    normals with the chosen one the largest    (`utilities.py`)
    v | w             a normal, by least squares                 (`parameter_expansion.py`)

Where choices may be lapses, which of them were is drawn given v as well (`lapse_indicators.py`).
"""

from typing import NamedTuple

import numpy as np

from revealed._types import Floats, Ints
from revealed.kernels._compile import compiled
from revealed.kernels.design import Design, multiply
from revealed.kernels.interrupt import stop_requested
from revealed.kernels.lapse_indicators import LapseIndicators, draw_lapses, free_utilities
from revealed.kernels.parameter_expansion import (
    ExpansionMove,
    ExpansionWorkspace,
    draw_expanded_value,
)
from revealed.kernels.prior_scale import (
    PriorScale,
    at_scale,
    draw_prior_sd,
    mahalanobis_squared,
    rescale_given_noise,
)
from revealed.kernels.utilities import draw_utilities, metropolis_utilities


class AugmentationProblem(NamedTuple):
    """Decisions and one of the paper's moves on them.

    design: (P, K) all rows. start: (T + 1,) where each decision's rows begin. chosen_row: (T,).
    """

    design: Design
    start: Ints
    chosen_row: Ints
    move: ExpansionMove


class AugmentationState(NamedTuple):
    """Where a chain is, written in place.

    v: (K,) value. w: (P,) utilities. mode_offset: (T,) where the utilities' modes were found last.
    prior_sd: (1,), one where the prior scale is given.
    """

    v: Floats
    w: Floats
    mode_offset: Floats
    prior_sd: Floats


class AugmentationDraws(NamedTuple):
    """Where draws go: values (n, K); acceptance rate of the utilities (n,); prior_sd (n,).

    lapse: (n,) the rate of lapses, not written where there are none.
    """

    values: Floats
    acceptance: Floats
    prior_sd: Floats
    lapse: Floats


@compiled
def run_data_augmentation(
    rng: np.random.Generator,
    problem: AugmentationProblem,
    prior_scale: PriorScale | None,
    lapses: LapseIndicators | None,
    newton_steps: int,
    thin: int,
    workspace: ExpansionWorkspace,
    rivals: Floats,
    state: AugmentationState,
    draws: AugmentationDraws,
) -> None:
    """Continue the chain for as many draws of `thin` iterations as `draws` has rows.

    newton_steps: of the Metropolis step's proposal; a negative number asks for exact utilities.
    prior_scale: what inferring the prior scale needs, or None where it is given. An inferred sd is
    drawn given the value, and then given the noise. lapses: None where no choice can be one. Where
    utilities are too large for data augmentation, the draws are NaN from there on.
    """
    design, start, chosen_row, move = problem
    v, w, mode_offset, sd = state
    # Means of the utilities, and v - prior mean.
    mu, offset = np.empty(w.size), np.empty(v.size)
    # A draw is the state after `thin` iterations; its acceptance is their mean.
    for n in range(draws.values.shape[0]):
        accepted = 0.0
        for _ in range(thin):
            if stop_requested():
                return
            # Utilities given the value.
            multiply(design, v, mu)
            if newton_steps < 0:
                accepted += draw_utilities(rng, mu, start, chosen_row, rivals, mode_offset, w)
            else:
                accepted += metropolis_utilities(
                    rng, mu, start, chosen_row, rivals, newton_steps, w
                )
            # Means of utilities that are out of range: there is no next value.
            if not accepted >= 0.0:
                draws.values[n:] = np.nan
                return
            # Which choices were lapses, whose utilities are bound by nothing.
            if lapses is not None:
                draw_lapses(rng, lapses, mu, start, chosen_row)
                free_utilities(rng, lapses, mu, start, w)
            # The value given the utilities, under a prior of the present sd.
            if prior_scale is not None:
                move = at_scale(prior_scale, move, workspace, sd[0])
            draw_expanded_value(rng, move, design, workspace, v, w)
            # The sd given the value; then given the noise, which is a bigger step: value and
            # utilities move with it.
            if prior_scale is not None:
                sd[0] = draw_prior_sd(rng, prior_scale, mahalanobis_squared(prior_scale, v, offset))
                sd[0] = rescale_given_noise(
                    rng, prior_scale, design, start, chosen_row, sd[0], v, w, offset, mu
                )
        for k in range(v.size):
            draws.values[n, k] = v[k]
        draws.prior_sd[n] = sd[0]
        if lapses is not None:
            draws.lapse[n] = lapses.rate[0]
        draws.acceptance[n] = accepted / thin
