"""Data augmentation and its parameter expansions: the paper's samplers (sections 3 and 4).

Each iteration draws the utilities given the value, then the value given the utilities; the
expansions also rescale and shift the utilities on the way, which leaves the posterior as it is and
shortens the chain's memory.

    da             v given w
    px-scale       and a working scale z1
    px-translate   and a working translation z2 of the sum-to-zero blocks
    px-both        both

Where choices may be lapses, indicators of lapses are drawn too (`kernels/lapse_indicators.py`), and
the rate given them. Given the indicators the utilities have the same law but that some are free, so
that the working parameters are as before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as sla

from revealed._types import Floats
from revealed.data.decisions import Decisions
from revealed.kernels.augmentation import (
    AugmentationDraws,
    AugmentationProblem,
    AugmentationState,
    run_data_augmentation,
)
from revealed.kernels.design import Design
from revealed.kernels.lapse_indicators import LapseIndicators
from revealed.kernels.parameter_expansion import ExpansionMove, ExpansionWorkspace
from revealed.kernels.prior_scale import PriorScale, draw_prior_sd, mahalanobis_squared
from revealed.kernels.utilities import draw_utilities
from revealed.models.lapse import Lapse
from revealed.models.likelihood import at_likely_scale, posterior_mode
from revealed.models.noise import NormalNoise
from revealed.models.priors import ResolvedPrior
from revealed.samplers.adaptation import cholesky_of_information
from revealed.samplers.base import Draws, State, Stats
from revealed.samplers.expansion_moves import MoveDirections, build_move, build_prior_scale


class Expansion(NamedTuple):
    """Which working parameters a sampler has."""

    rescales: bool
    translates: bool


EXPANSIONS = {
    "da": Expansion(rescales=False, translates=False),
    "px-scale": Expansion(rescales=True, translates=False),
    "px-translate": Expansion(rescales=False, translates=True),
    "px-both": Expansion(rescales=True, translates=True),
}
"""The working parameters of each sampler, by its name."""


@dataclass(frozen=True)
class AugmentationOptions:
    """Choices of the data-augmentation samplers.

    utilities: "exact" or "metropolis". a, b: the working scale's IG(a, b) prior, both zero for the
    improper one. newton: Newton steps that refine the paper's proposal of utilities.
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
                "the working scale's prior IG(a, b) needs a and b both positive, or both zero for "
                f"the improper one; they are {self.a:g} and {self.b:g}"
            )
        if self.newton < 0:
            raise ValueError(
                f"newton counts the refining steps of the proposal and cannot be {self.newton}"
            )


@dataclass(frozen=True, eq=False)
class DataAugmentationSampler:
    """One of the four samplers, ready to run on one set of decisions under one prior.

    design: the rows as the kernels take them. move: how the value is drawn given the utilities.
    prior_scale: what inferring the prior scale needs, None where it is given. lapse: None where no
    choice is a lapse.
    """

    name: str
    decisions: Decisions
    resolved_prior: ResolvedPrior
    options: AugmentationOptions
    design: Design
    move: ExpansionMove
    prior_scale: PriorScale | None
    lapse: Lapse | None = None

    @staticmethod
    def build(
        name: str,
        decisions: Decisions,
        resolved_prior: ResolvedPrior,
        options: AugmentationOptions,
        lapse: Lapse | None = None,
    ) -> DataAugmentationSampler:
        """Check that the sampler exists for this problem, and prepare its matrices.

        Raises ValueError where a working parameter would change the posterior.
        """
        rescales, translates = EXPANSIONS[name]
        # A working parameter must not be identified: each has a condition.
        if rescales and resolved_prior.has_mean:
            raise ValueError(
                f'"{name}" rescales the value, which needs a prior mean of zero; '
                'use "da" or "px-translate"'
            )
        if not rescales and options.a > 0:
            raise ValueError(
                f'a and b describe a working scale, and "{name}" has none; leave them out'
            )
        if translates and not can_translate(decisions, resolved_prior):
            raise ValueError(
                f'"{name}" shifts a sum-to-zero block of coefficients, which needs one whose rows '
                "add up to the same number for every action of a decision; "
                'use "px-scale" or "da"'
            )
        if lapse is not None and options.utilities != "exact":
            raise ValueError(
                "with lapses utilities are drawn exactly: which choices were lapses is drawn "
                'without looking at them; leave out utilities="metropolis"'
            )
        directions = MoveDirections.build(decisions, resolved_prior, translates)
        return DataAugmentationSampler(
            name,
            decisions,
            resolved_prior,
            options,
            Design.from_rows(decisions.rows),
            build_move(resolved_prior, directions, rescales, (options.a, options.b)),
            build_prior_scale(resolved_prior, directions),
            lapse,
        )

    def init(self, rng: np.random.Generator, position: Floats | None) -> State:
        """The state at `position` (K,), with utilities drawn given it.

        Default: a draw from the normal approximation at the posterior mode with twice its
        covariance, so that chains begin further apart than the posterior is wide. With lapses there
        may be several modes, and it is the mode at a rate drawn from its prior.
        """
        rate = None
        if self.lapse is not None:
            # a rate that the prior allows, and the value that suits it best
            rate = rng.beta(self.lapse.prior.a, self.lapse.prior.b)
            noise = NormalNoise().law_with_lapses(rate)
            if position is None:
                position, _ = posterior_mode(self.decisions, self.resolved_prior, noise=noise)
            # what is unknown of the noise is no coefficient here
            position = position[: len(self.decisions.names)]
        if position is None:
            likely_prior = at_likely_scale(self.decisions, self.resolved_prior)
            mode, information = posterior_mode(self.decisions, likely_prior)
            # mode + basis L'^-1 noise has the inverse information L L' as covariance.
            root = cholesky_of_information(information)
            z = np.sqrt(2.0) * rng.standard_normal(information.shape[0])
            position = mode + self.resolved_prior.basis @ sla.solve_triangular(
                root, z, lower=True, trans="T"
            )
        # Utilities exactly given the value, also for the Metropolis sampler: a start has to agree
        # with the choices.
        rows = self.decisions.rows.shape[0]
        mu, w = np.asarray(self.decisions.rows @ position), np.empty(rows)
        mode_offset = np.zeros(len(self.decisions))
        draw_utilities(
            rng,
            mu,
            self.decisions.start,
            self.decisions.chosen_row,
            self.rivals_workspace(),
            mode_offset,
            w,
        )
        state = {"v": position.copy(), "w": w, "mode_offset": mode_offset}
        if rate is not None:
            state["lapse"] = np.array([rate])
        if self.prior_scale is None:
            return state
        quad = mahalanobis_squared(self.prior_scale, position, np.empty(position.size))
        return state | {"prior_sd": np.array([draw_prior_sd(rng, self.prior_scale, quad)])}

    def warmup(
        self, rng: np.random.Generator, state: State, remaining: int, chunk: int
    ) -> tuple[State, int]:
        """Continue the chain by `chunk` iterations, or all that remain: nothing is adapted."""
        made = min(remaining, chunk)
        return self.sample(rng, state, 1, made)[0], made

    def sample(
        self, rng: np.random.Generator, state: State, draws: int, thin: int
    ) -> tuple[State, Draws, Stats]:
        """The state after draws * thin iterations, (draws, K) draws and their stats.

        acceptance_rate is that of the utilities: of proposals if exact, of decisions if Metropolis.
        """
        # The kernel writes to these; a state that was handed in stays as it is.
        new = {name: array.copy() for name, array in state.items()}
        made = AugmentationDraws(
            np.empty((draws, new["v"].size)), np.empty(draws), np.empty(draws), np.empty(draws)
        )
        run_data_augmentation(
            rng,
            self.problem,
            self.prior_scale,
            self._lapses(new),
            self.options.newton if self.options.utilities == "metropolis" else -1,
            thin,
            self.expansion_workspace(),
            self.rivals_workspace(),
            AugmentationState(
                new["v"], new["w"], new["mode_offset"], new.get("prior_sd", np.ones(1))
            ),
            made,
        )
        drawn = {"value": made.values}
        if self.prior_scale is not None:
            drawn["prior_sd"] = made.prior_sd
        if self.lapse is not None:
            drawn["lapse"] = made.lapse
        return new, drawn, {"acceptance_rate": made.acceptance}

    def _lapses(self, state: State) -> LapseIndicators | None:
        """The lapses of a chain, whose rate is in its state; None where there are none."""
        if self.lapse is None:
            return None
        # indicators are drawn anew in every iteration, so that only the rate is kept
        beta, count = self.lapse.prior, len(self.decisions)
        lapsed, log_p = np.zeros(count, np.bool_), np.empty(count)
        return LapseIndicators(float(beta.a), float(beta.b), state["lapse"], lapsed, log_p)

    @property
    def problem(self) -> AugmentationProblem:
        """The decisions and the move, as the kernel takes them."""
        d = self.decisions
        return AugmentationProblem(self.design, d.start, d.chosen_row, self.move)

    def expansion_workspace(self) -> ExpansionWorkspace:
        """Arrays for one chain's draws of the value given the utilities.

        Where the prior scale is inferred, they include the move's factor at the present scale.
        """
        width, directions = self.move.factor.shape
        infers_scale = self.prior_scale is not None
        return ExpansionWorkspace(
            cross_products=np.empty(width),
            projection=np.empty(directions),
            coefficients=np.empty(width),
            factor=np.empty((width, directions) if infers_scale else (0, 0)),
            precision_times_mean=np.empty(width if infers_scale else 0),
        )

    def rivals_workspace(self) -> Floats:
        """An array for the rivals of the largest decision."""
        return np.empty(int(self.decisions.sizes.max()))


def can_translate(decisions: Decisions, resolved_prior: ResolvedPrior) -> bool:
    """Whether adding a constant to each sum-to-zero block leaves every choice as it is.

    It does if the block's features add up to the same number for all actions of a decision.
    """
    if resolved_prior.constant_directions.shape[1] == 0:
        return False
    # What a constant adds to each row's utility, against the first row of the same decision.
    offsets = decisions.rows @ resolved_prior.constant_directions
    first = offsets[decisions.start[:-1]][decisions.decision_of_row]
    return bool(np.allclose(offsets, first, rtol=1e-9, atol=1e-12))


def most_expanded(decisions: Decisions, resolved_prior: ResolvedPrior) -> str:
    """The name of the sampler with every expansion that the problem allows."""
    # A scale needs a prior mean of zero, a translation blocks that it does not change.
    allowed = (not resolved_prior.has_mean, can_translate(decisions, resolved_prior))
    return next(name for name, expansion in EXPANSIONS.items() if expansion == allowed)


def parse_options(given: dict[str, Any]) -> AugmentationOptions:
    """Options from a user's dictionary.

    An unknown name is refused.
    """
    known = AugmentationOptions.__dataclass_fields__
    for name in given:
        if name not in known:
            raise ValueError(f"unknown option {name!r}; this sampler knows {', '.join(known)}")
    return AugmentationOptions(**given)
