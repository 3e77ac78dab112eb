"""Data augmentation: the loop of the paper's samplers (section 3)."""

import numpy as np

from understudy._arrays import Floats, Ints
from understudy.kernels._jit import jit
from understudy.kernels.design import Design, multiply
from understudy.kernels.expansion import Move, Scratch, expand
from understudy.kernels.size import Size, at_size, distance, draw_sd, stretch_given_noise
from understudy.kernels.utilities import draw_utilities, move_utilities


@jit
def sweep(
    rng: np.random.Generator,
    design: Design,
    start: Ints,
    taken: Ints,
    move: Move,
    size: Size | None,
    steps: int,
    thin: int,
    scratch: Scratch,
    near: Floats,
    lead: Floats,
    v: Floats,
    w: Floats,
    sd: Floats,
    out: Floats,
    acceptance: Floats,
    sizes: Floats,
) -> None:
    """The loop: utilities given the value, then the value given the utilities. steps < 0 asks for exact utilities.

    A prior's size sd (1,) that is learnt is drawn given the value, and then given the noise; size is None where it is given.
    """
    mu, off = np.empty(w.size), np.empty(v.size)
    for n in range(out.shape[0]):
        accepted = 0.0
        for _ in range(thin):
            multiply(design, v, mu)
            if steps < 0:
                accepted += draw_utilities(rng, mu, start, taken, near, lead, w)
            else:
                accepted += move_utilities(rng, mu, start, taken, near, steps, w)
            if size is not None:
                move = at_size(size, move, sd[0])
            expand(rng, move, design, scratch, v, w)
            if size is not None:
                sd[0] = draw_sd(rng, size, distance(size, v, off))
                sd[0] = stretch_given_noise(rng, size, design, start, taken, sd[0], v, w, off, mu)
        for k in range(v.size):
            out[n, k] = v[k]
        sizes[n] = sd[0]
        acceptance[n] = accepted / thin
