"""One sweep of data augmentation with interweaving, as the composite sampler makes it.

    w | v            the utilities, exactly                      (`utilities.py`)
    v | w            the value, with working parameters          (`parameter_expansion.py`)
    v | w - X v      the value given the noise                   (`interweaving.py`)

Where the prior scale is inferred, sd is drawn given v before the second, and given v and then given
the noise after it. The utilities exist only within a sweep, which begins by drawing them exactly
given the value; so moves that do not know them can stand before and after it.
"""

from typing import NamedTuple

import numpy as np

from revealed._types import Floats, Ints
from revealed.kernels import utilities
from revealed.kernels._compile import compiled_internal, inlined
from revealed.kernels.design import Design, multiply
from revealed.kernels.interweaving import (
    InterweavingDirections,
    InterweavingWorkspace,
    interweave,
)
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
from revealed.kernels.vectors import dot


class AugmentationWorkspace(NamedTuple):
    """What a sweep of data augmentation reads, and arrays that it writes to.

    design, start, chosen_row: all rows, equal ones not merged. move and interweaving: how the value
    is drawn given the utilities, and given the noise. mu, w: (P,) means of the utilities, and the
    utilities. rivals: those of the largest decision. offset: (K,) v - prior mean.
    """

    design: Design
    start: Ints
    chosen_row: Ints
    move: ExpansionMove
    interweaving: InterweavingDirections
    expansion_workspace: ExpansionWorkspace
    interweaving_workspace: InterweavingWorkspace
    mu: Floats
    w: Floats
    rivals: Floats
    offset: Floats


@inlined
def augmentation_sweep(
    rng: np.random.Generator,
    augmentation: AugmentationWorkspace,
    prior_scale: PriorScale | None,
    mode_offset: Floats,
    v: Floats,
    block_constants: Floats,
) -> bool:
    """Draw utilities given the value, the value given the utilities, the value given the noise.

    v (K,) is updated in place. An inferred prior sd is drawn first given v and the constants of its
    blocks (L,), and once more given the noise, which moves these constants too. Returns whether v
    is a value: where utilities are too large for data augmentation it is not.
    """
    multiply(augmentation.design, v, augmentation.mu)
    if not utilities.are_in_range(augmentation.mu):
        return False
    # An inferred sd is drawn given the value, and the move is that of a prior with this sd.
    sd, move = 1.0, augmentation.move
    if prior_scale is not None:
        sd = draw_prior_sd(
            rng,
            prior_scale,
            prior_quadratic_form(prior_scale, v, block_constants, augmentation.offset),
        )
        move = at_scale(prior_scale, augmentation.move, augmentation.expansion_workspace, sd)
    # Data augmentation with parameter expansion.
    utilities.draw_utilities(
        rng,
        augmentation.mu,
        augmentation.start,
        augmentation.chosen_row,
        augmentation.rivals,
        mode_offset,
        augmentation.w,
    )
    draw_expanded_value(
        rng, move, augmentation.design, augmentation.expansion_workspace, v, augmentation.w
    )
    if prior_scale is not None:
        sd = draw_prior_sd(
            rng,
            prior_scale,
            prior_quadratic_form(prior_scale, v, block_constants, augmentation.offset),
        )
        # The sd given the noise carries the whole value with it, and so the constants.
        new = rescale_given_noise(
            rng,
            prior_scale,
            augmentation.design,
            augmentation.start,
            augmentation.chosen_row,
            sd,
            v,
            augmentation.w,
            augmentation.offset,
            augmentation.mu,
        )
        for block in range(block_constants.size):
            block_constants[block] *= new / sd
        sd = new
    # The other half of interweaving: the utilities are of no use afterwards.
    interweave(
        rng,
        augmentation.interweaving,
        augmentation.start,
        augmentation.chosen_row,
        augmentation.interweaving_workspace,
        1.0 / (sd * sd),
        v,
        augmentation.w,
    )
    return bool(np.isfinite(v).all())


@compiled_internal
def prior_quadratic_form(
    prior_scale: PriorScale, v: Floats, block_constants: Floats, offset: Floats
) -> float:
    """Q of a value (K,) and the constants of its blocks (L,), as `prior_scale.py` defines it.

    The constants have a prior of their own, independent of the rest. offset (K,) is a workspace.
    """
    return mahalanobis_squared(prior_scale, v, offset) + prior_scale.constant_precision * dot(
        block_constants, block_constants
    )
