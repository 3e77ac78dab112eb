"""Data augmentation and its parameter expansions: the paper's samplers (sections 3 and 4).

Each iteration draws the utilities given the value, then the value given the utilities; the expansions also rescale
and shift the utilities on the way, which leaves the posterior as it is and shortens the chain's memory.

    da             v given w
    px-scale       and a working scale z1
    px-translate   and a working translation z2 of the centred blocks
    px-both        both
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as sla
import scipy.sparse as sp

from understudy._arrays import Floats
from understudy.decisions import Decisions
from understudy.engines.base import State, Stats
from understudy.kernels.augmentation import sweep
from understudy.kernels.design import Design, multiply
from understudy.kernels.expansion import Move, Scratch
from understudy.kernels.size import Size, distance, draw_sd
from understudy.kernels.utilities import draw_utilities
from understudy.likelihood import posterior_mode, with_likely_size
from understudy.priors import Placed

MOVES = {
    "da": (False, False),
    "px-scale": (True, False),
    "px-translate": (False, True),
    "px-both": (True, True),
}
"""Engine name -> (moves the scale, translates)."""


@dataclass(frozen=True)
class Options:
    """Choices of the augmented engines.

    utilities: "exact" or "metropolis". a, b: the working scale's IG(a, b) prior, both zero for the improper one.
    newton: Newton steps that refine the paper's proposal.
    """

    utilities: str = "exact"
    a: float = 0.0
    b: float = 0.0
    newton: int = 3

    def __post_init__(self) -> None:
        if self.utilities not in ("exact", "metropolis"):
            raise ValueError(f'utilities must be "exact" or "metropolis", not {self.utilities!r}')
        if not (self.a == self.b == 0 or (self.a > 0 and self.b > 0)):
            raise ValueError(
                f"the working scale's prior IG(a, b) needs a and b both positive, or both zero for the improper one; "
                f"they are {self.a:g} and {self.b:g}"
            )
        if self.newton < 0:
            raise ValueError(f"newton counts the refining steps of the proposal and cannot be {self.newton}")


@dataclass(frozen=True, eq=False)
class Augmented:
    """One of the four moves, ready to run on one set of decisions under one prior."""

    name: str
    decisions: Decisions
    placed: Placed
    options: Options
    design: Design
    move: Move
    size: Size | None

    @staticmethod
    def build(name: str, decisions: Decisions, placed: Placed, options: Options) -> Augmented:
        """Check that the move exists for this problem, and prepare its matrices."""
        scale, translate = MOVES[name]
        if scale and placed.has_mean:
            raise ValueError(
                f'"{name}" rescales the value, which needs a prior mean of zero; use "da" or "px-translate"'
            )
        if not scale and options.a > 0:
            raise ValueError(f'a and b describe a working scale, and "{name}" has none; leave them out')
        if translate and not can_translate(decisions, placed):
            raise ValueError(
                f'"{name}" shifts a centred block of coefficients, which needs one whose rows add up to the same number '
                'for every action of a decision; use "px-scale" or "da"'
            )
        frame = Frame.of(decisions, placed, translate)
        return Augmented(
            name,
            decisions,
            placed,
            options,
            Design.of(decisions.rows),
            build_move(decisions, placed, frame, scale, options),
            build_size(placed, frame),
        )

    def start(self, rng: np.random.Generator, init: Floats | None) -> State:
        """Utilities drawn at `init`, or at a draw from twice the normal approximation at the posterior mode."""
        if init is None:
            mode, information = posterior_mode(self.decisions, with_likely_size(self.decisions, self.placed))
            root = sla.cholesky(information, lower=True)
            noise = np.sqrt(2.0) * rng.standard_normal(information.shape[0])
            init = mode + self.placed.basis @ sla.solve_triangular(root, noise, lower=True, trans="T")
        rows = self.decisions.rows.shape[0]
        mu, w, lead = np.empty(rows), np.empty(rows), np.zeros(len(self.decisions))
        multiply(self.design, init, mu)
        draw_utilities(rng, mu, self.decisions.start, self.decisions.taken, self.near(), lead, w)
        state = {"v": init.copy(), "w": w, "lead": lead}
        if self.size is None:
            return state
        return state | {"sd": np.array([draw_sd(rng, self.size, distance(self.size, init, np.empty(init.size)))])}

    def warm(self, rng: np.random.Generator, state: State, left: int, piece: int) -> tuple[State, int]:
        """Go on; there is nothing to learn."""
        made = min(left, piece)
        return self.advance(rng, state, 1, made)[0], made

    def advance(self, rng: np.random.Generator, state: State, draws: int, thin: int) -> tuple[State, Floats, Stats]:
        """Go on for draws * thin iterations."""
        new = {name: value.copy() for name, value in state.items()}
        v = new["v"]
        out, acceptance, sizes = np.empty((draws, v.size)), np.empty(draws), np.empty(draws)
        scratch = Scratch(np.empty(v.size), np.empty(self.move.factor.shape[1]), np.empty(v.size))
        steps = self.options.newton if self.options.utilities == "metropolis" else -1
        sweep(
            rng, self.design, self.decisions.start, self.decisions.taken, self.own_move(), self.size, steps, thin,
            scratch, self.near(), new["lead"], v, new["w"], new.get("sd", np.ones(1)), out, acceptance, sizes,
        )  # fmt: skip
        return new, out, {"acceptance": acceptance} | ({} if self.size is None else {"prior_sd": sizes})

    def own_move(self) -> Move:
        """The move; where the prior's size is learnt, with a factor of its own to write over."""
        if self.size is None:
            return self.move
        return self.move._replace(factor=self.move.factor.copy(), pull=self.move.pull.copy())

    def near(self) -> Floats:
        """Room for the rivals of the largest decision."""
        return np.empty(int(self.decisions.sizes.max()))


def can_translate(decisions: Decisions, placed: Placed) -> bool:
    """Whether adding a constant to each centred block leaves every choice as it is."""
    if placed.constants.shape[1] == 0:
        return False
    offsets = decisions.rows @ placed.constants
    first = offsets[decisions.start[:-1]][decisions.decision_of_row]
    return bool(np.allclose(offsets, first, rtol=1e-9, atol=1e-12))


def widest(decisions: Decisions, placed: Placed) -> str:
    """The name of the engine with every expansion that the problem allows."""
    allowed = (not placed.has_mean, can_translate(decisions, placed))
    return next(name for name, move in MOVES.items() if move == allowed)


@dataclass(frozen=True, eq=False)
class Frame:
    """The directions (K, D) a move draws in, their prior precision (D, D), and X'X along them.

    constants: those of the directions that are constants of centred blocks. spread: their prior sd, zero when flat.
    """

    directions: Floats
    precision: Floats
    gram: Floats
    constants: Floats
    offsets: Floats
    spread: float

    @staticmethod
    def of(decisions: Decisions, placed: Placed, translate: bool) -> Frame:
        """The free directions, and the constants if the move translates."""
        constants = placed.constants if translate else np.zeros((len(decisions.names), 0))
        spread = 0.0
        if translate and placed.flat:
            # Only the independent combinations of the blocks' constants shift the utilities.
            _, size, turn = sla.svd(decisions.rows @ constants, full_matrices=False)
            constants = constants @ turn[size > 1e-10 * size[0]].T
        elif translate:
            spread = float(np.sqrt(placed.precision.shape[0] / np.trace(placed.precision)))
        directions = np.hstack([placed.basis, constants])
        free = placed.basis.shape[1]
        precision = np.zeros((directions.shape[1],) * 2)
        precision[:free, :free] = placed.precision
        if spread > 0:
            precision[free:, free:] = np.eye(constants.shape[1]) / spread**2
        gram = decisions.rows.T @ decisions.rows
        gram = gram.toarray() if sp.issparse(gram) else gram
        return Frame(
            directions, precision, directions.T @ gram @ directions, constants, decisions.rows @ constants, spread
        )


def build_move(decisions: Decisions, placed: Placed, frame: Frame, scale: bool, options: Options) -> Move:
    """The matrices of a move: which directions it draws in, and the factor of their covariance given the utilities."""
    try:
        root = sla.cholesky(frame.gram + frame.precision, lower=True)
    except sla.LinAlgError:
        raise ValueError(
            "two or more features are the same to the last digit at this scale, and the prior is too wide to tell them "
            "apart; rescale the features, leave one out, or give a smaller prior variance"
        ) from None
    factor = sla.solve_triangular(root, frame.directions.T, lower=True).T
    return Move(
        factor=np.ascontiguousarray(factor),
        pull=_pull(placed),
        constants=np.ascontiguousarray(frame.constants.T),
        offsets=np.ascontiguousarray(frame.offsets.T),
        spread=frame.spread,
        scale=scale,
        shape=float(options.a),
        rate=float(options.b),
        lost=float(frame.constants.shape[1]) if placed.flat else 0.0,
    )


def build_size(placed: Placed, frame: Frame) -> Size | None:
    """What learning the prior's size needs; nothing where it is given."""
    if placed.scale is None:
        return None
    own, quad = placed.split
    gram, turn = sla.eigh(frame.gram, frame.precision)  # turn' precision turn = I, turn' gram turn is diagonal
    return Size(
        scale=placed.scale,
        width=placed.basis.shape[1],
        middle=placed.mean,
        own=own,
        quad=quad,
        slack=placed.slack,
        factor=np.ascontiguousarray(frame.directions @ turn),
        gram=np.maximum(gram, 0.0),
        pull=_pull(placed),
        spread=frame.spread,
    )


def _pull(placed: Placed) -> Floats:
    return np.asarray(placed.basis @ (placed.precision @ (placed.basis.T @ placed.mean)))


def options_from(given: dict[str, Any]) -> Options:
    """Options from a user's dictionary; an unknown name is refused."""
    known = Options.__dataclass_fields__
    for name in given:
        if name not in known:
            raise ValueError(f"unknown option {name!r}; this engine knows {', '.join(known)}")
    return Options(**given)
