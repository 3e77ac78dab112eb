"""The default engine: data augmentation with every expansion, interwoven with moves of the value given the noise.

Each iteration draws the utilities exactly given the value, then value, scale and translation given the utilities (as
`engines/augmented.py`), and then the value given the noise, along directions that suit the posterior: the columns of a
factor of its covariance in the normal approximation at the mode, and a few random mixtures of them. Nothing is tuned
while it runs, so every iteration leaves the posterior as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg as sla

from understudy._arrays import Floats, Ints
from understudy.decisions import Decisions
from understudy.engines.augmented import Augmented, Options, widest
from understudy.engines.base import State, Stats
from understudy.kernels._jit import jit
from understudy.kernels.design import Design, multiply
from understudy.kernels.expansion import Move, Scratch, expand
from understudy.kernels.interweave import Weave, interweave
from understudy.kernels.utilities import draw_utilities
from understudy.likelihood import posterior_mode
from understudy.priors import Placed

MIXTURES = 4


@dataclass(frozen=True, eq=False)
class Blended:
    """The engine, ready to run on one set of decisions under one prior."""

    inner: Augmented
    weave: Weave

    @property
    def name(self) -> str:
        """What users call it."""
        return "blended"

    @staticmethod
    def build(decisions: Decisions, placed: Placed) -> Blended:
        """Take every expansion the problem allows, and find the directions."""
        inner = Augmented.build(widest(decisions, placed), decisions, placed, Options())
        return Blended(inner, build_weave(decisions, placed))

    def start(self, rng: np.random.Generator, init: Floats | None) -> State:
        """As the augmented engines start."""
        return self.inner.start(rng, init)

    def advance(self, rng: np.random.Generator, state: State, draws: int, thin: int) -> tuple[State, Floats, Stats]:
        """Go on for draws * thin iterations."""
        d, new = self.inner.decisions, {name: value.copy() for name, value in state.items()}
        width = new["v"].size
        out, acceptance = np.empty((draws, width)), np.empty(draws)
        scratch = Scratch(np.empty(width), np.empty(self.inner.move.factor.shape[1]), np.empty(width))
        sweep(
            rng, self.inner.design, d.start, d.taken, self.inner.move, self.weave, thin, scratch,
            self.inner.near(), new["lead"], new["v"], new["w"], out, acceptance,
        )  # fmt: skip
        return new, out, {"acceptance": acceptance}


@jit
def sweep(
    rng: np.random.Generator,
    design: Design,
    start: Ints,
    taken: Ints,
    move: Move,
    weave: Weave,
    thin: int,
    scratch: Scratch,
    near: Floats,
    lead: Floats,
    v: Floats,
    w: Floats,
    out: Floats,
    acceptance: Floats,
) -> None:
    """The loop: utilities given the value, value given the utilities, value given the noise."""
    mu, margin = np.empty(w.size), np.empty(w.size)
    weights, direction, pull = np.empty(weave.factor.shape[0]), np.empty(v.size), np.empty(v.size)
    for n in range(out.shape[0]):
        accepted = 0.0
        for _ in range(thin):
            multiply(design, v, mu)
            accepted += draw_utilities(rng, mu, start, taken, near, lead, w)
            expand(rng, move, design, scratch, v, w)
            interweave(rng, weave, start, taken, weights, direction, pull, margin, v, w)
        out[n] = v
        acceptance[n] = accepted / thin


def build_weave(decisions: Decisions, placed: Placed) -> Weave:
    """Directions from the normal approximation at the posterior mode."""
    _, information = posterior_mode(decisions, placed)
    root = sla.cholesky(information, lower=True)
    turn = sla.solve_triangular(root, np.eye(len(root)), lower=True, trans="T")
    factor = placed.basis @ turn
    return Weave(
        factor=np.ascontiguousarray(factor.T),
        pull=np.ascontiguousarray((placed.basis @ (placed.precision @ turn)).T),
        centre=placed.mean,
        margins=margins_along(factor, decisions),
        mixtures=MIXTURES,
    )


def margins_along(factor: Floats, decisions: Decisions) -> Floats:
    """(D, P) by how much each row falls behind the chosen one when v moves along each column of factor (K, D)."""
    turned = decisions.rows @ factor
    return np.ascontiguousarray((np.repeat(turned[decisions.taken], decisions.sizes, axis=0) - turned).T)
