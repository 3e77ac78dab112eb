"""The sampler for unknown transitions: the value and every row p(. | x, a) are drawn together.

An iteration is a Hamiltonian path of everything at once and an update of each row
(`kernels/unknown_transitions.py`). Warm-up adapts how far paths should reach: the value's
covariance, each cell's spread, the step size, and how many iterations make a kept draw; then it is
all fixed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg as sla

from revealed._types import Floats
from revealed.data.decisions import Decisions
from revealed.kernels.hmc import PathPlan, init_dual_averaging, make_path_statistics
from revealed.kernels.noise import count_coordinates
from revealed.kernels.unknown_transitions import (
    RowChoices,
    TransitionRows,
    ValueAndRows,
    ValuePrior,
    make_workspace,
    sample_chain,
    write_probabilities,
)
from revealed.models.likelihood import at_likely_scale, posterior_mode
from revealed.models.priors import ResolvedPrior
from revealed.samplers.adaptation import (
    WindowPlan,
    add_to_window,
    covariance_roots,
    draws_of_window,
    run_windows,
    settle_step_size,
)
from revealed.samplers.base import Draws, State, Stats
from revealed.samplers.composite.cycle import min_ess
from revealed.samplers.inferred_scale import marginal_prior, sample_with_scale


@dataclass(frozen=True)
class UnknownTransitionsSettings:
    """Settings of warm-up and paths; wrong ones cost time, never correctness.

    path_length: in units of the posterior's sds. target_acceptance: that dual averaging (Hoffman
    and Gelman 2014) aims at; Stan's default. discarded: the share of a window's draws that are on
    their way to the posterior. initial_step_size: that of a chain that was not warmed up.
    ess_per_draw,
    max_moves_per_draw: a kept draw takes as many iterations as make it worth about this many
    independent ones, up to a maximum. min_shape: a cell with less than this of prior and
    transitions has a tail that no one step size suits; its steps grow no longer. prior_draws: how
    many draws a cell's first guess of its spread counts as.
    """

    path_length: float = 1.9
    target_acceptance: float = 0.8
    discarded: float = 0.25
    initial_step_size: float = 0.05
    ess_per_draw: float = 0.4
    max_moves_per_draw: int = 20
    min_shape: float = 0.5
    prior_draws: float = 20.0


SETTINGS = UnknownTransitionsSettings()
# Each but the last adapts a step size, the first three also how far the next should reach. The last
# one adapts nothing, and measures how independent draws are.
WINDOWS = WindowPlan((0.1, 0.25, 0.25, 0.2, 0.2), min_iterations=100)


@dataclass(frozen=True, eq=False)
class UnknownTransitionsSampler:
    """The sampler, ready to run on the decisions and transitions of one controller.

    different_choices: one decision for each different choice, with rows at their means.
    """

    rows: TransitionRows
    choices: RowChoices
    resolved_prior: ResolvedPrior
    different_choices: Decisions

    @property
    def name(self) -> str:
        """What users call it."""
        return "transitions-hmc"

    @cached_property
    def _likely_prior(self) -> ResolvedPrior:
        """The prior as it is, or at a scale that suits the choices."""
        choices = self.choices
        return at_likely_scale(
            self.different_choices, self.resolved_prior, choices.rival_index.weight, choices.noise
        )

    @cached_property
    def _start(self) -> tuple[Floats, Floats]:
        """Mode (K,) and information of the value's posterior where rows are at their means.

        Found when a chain begins: one that goes on does not need it.
        """
        # each different choice counts as often as it was made
        weight = self.choices.rival_index.weight
        return posterior_mode(
            self.different_choices, self._likely_prior, weight, self.choices.noise
        )

    @property
    def _initial_value_root(self) -> Floats:
        """(K, D) by which standard normals become v's spread about the mode."""
        # information = L L', so that L'^-1 has the inverse information as its square
        root = sla.cholesky(self._start[1], lower=True)
        return np.asarray(
            self.resolved_prior.basis @ sla.solve_triangular(root, np.eye(len(root)), lower=True).T
        )

    @cached_property
    def _initial_cell_sd(self) -> Floats:
        """(C,) the sd of each cell's log g, by its mean curvature."""
        return np.asarray(1.0 / np.sqrt(np.maximum(self.rows.shape, SETTINGS.min_shape)))

    @cached_property
    def _value_prior(self) -> ValuePrior:
        """The prior of all coefficients, as the kernels want it."""
        prior = self.resolved_prior
        return ValuePrior(
            np.ascontiguousarray(prior.basis @ prior.precision @ prior.basis.T),
            prior.mean,
            marginal_prior(prior, lambda: self._likely_prior),
        )

    def init(self, rng: np.random.Generator, position: Floats | None) -> State:
        """The value at `position`, or about its mode with twice the variance; rows by their prior.

        The rows' prior includes the transitions counted. t is the logarithm of gamma draws, with
        Gamma(a) = Gamma(a + 1) U^(1/a), which does not underflow.
        """
        # wider than the posterior, so that chains begin apart
        value_root, shape = np.ascontiguousarray(self._initial_value_root), self.rows.shape
        v = (
            self._start[0] + np.sqrt(2.0) * (value_root @ rng.standard_normal(value_root.shape[1]))
            if position is None
            else position.copy()
        )
        # of the noise from its prior: there may be several modes
        count = count_coordinates(self.choices.noise)
        if position is None and count > 0:
            v[len(v) - count :] = rng.standard_normal(count)
        t = np.log(rng.standard_gamma(shape + 1.0)) - rng.standard_exponential(shape.size) / shape
        return {
            "v": v,
            "t": t,
            "value_root": value_root,
            "cell_sd": self._initial_cell_sd,
            "adaptation": init_dual_averaging(SETTINGS.initial_step_size),
            "moves_per_draw": np.ones(1),
            "done": np.zeros(1),  # iterations of the warm-up
        }

    def warmup(
        self, rng: np.random.Generator, state: State, remaining: int, chunk: int
    ) -> tuple[State, int]:
        """Adapt reach, step size and thinning; what is done so far is in the state."""
        return run_windows(self, WINDOWS, rng, state, remaining, chunk)

    def adapt(self, rng: np.random.Generator, state: State, count: int, window: int) -> State:
        """Iterate while the step size adapts; draws of v and t are added to the window's.

        The last window changes nothing, and only sees how independent draws are.
        """
        new = state | {name: state[name].copy() for name in ("v", "t", "adaptation")}
        last = window == len(WINDOWS.shares) - 1
        target_acceptance = 0.0 if last else SETTINGS.target_acceptance
        return add_to_window(new, self._run(rng, new, target_acceptance, count, 1)[0])

    def end_window(self, rng: np.random.Generator, state: State, window: int) -> State:
        """What the draws of a window say.

        Those of the first windows how far to reach, those of the last how many iterations make a
        kept draw.
        """
        windows, width = len(WINDOWS.shares), state["v"].size
        if window == windows - 1:
            # iterations per effective draw of the slowest quantity
            draws = draws_of_window(state, 0.0).copy()
            write_probabilities(self.rows, width, draws)
            moves = round(SETTINGS.ess_per_draw * len(draws) / min_ess(draws))
            return state | {
                "moves_per_draw": np.array([np.clip(moves, 1, SETTINGS.max_moves_per_draw)])
            }
        new = state | {"adaptation": settle_step_size(state["adaptation"])}
        if window == windows - 2:
            return new
        late = draws_of_window(state, SETTINGS.discarded)
        return new | {
            "value_root": self._adapted_value_root(late[:, :width]),
            "cell_sd": self._adapted_cell_sd(np.ascontiguousarray(late[:, width:])),
        }

    def _adapted_value_root(self, values: Floats) -> Floats:
        """The root (K, D) in whose coordinates draws of v are about one wide.

        Shrunk towards the first guess with the weight of D draws.
        """
        first = self._initial_value_root
        # draws in the coordinates of the first guess, where the shrunk covariance has a root
        x = np.linalg.lstsq(first, (values - values.mean(axis=0)).T, rcond=None)[0].T
        return np.ascontiguousarray(first @ covariance_roots(x, 1.0)[0])

    def _adapted_cell_sd(self, t: Floats) -> Floats:
        """The sd of each cell over draws of t, never beyond the first guess."""
        # a weighted mean of the variance of the draws and that of the first guess
        first, weight = self._initial_cell_sd, SETTINGS.prior_draws
        variance = (len(t) * t.var(axis=0) + weight * first**2) / (len(t) + weight)
        return np.asarray(np.minimum(np.sqrt(variance), first))

    def sample(
        self, rng: np.random.Generator, state: State, draws: int, thin: int
    ) -> tuple[State, Draws, Stats]:
        """Make draws * thin steps, each of as many iterations as warm-up found a draw needs.

        A transition is the probability of each possible cell (C).
        """
        new = state | {name: state[name].copy() for name in ("v", "t")}
        width, moves = new["v"].size, thin * int(state["moves_per_draw"][0])

        def sample(count: int) -> tuple[Draws, Stats]:
            out, stats = self._run(rng, new, 0.0, count, moves)
            write_probabilities(self.rows, width, out)
            return {"value": out[:, :width], "transition": out[:, width:]}, stats

        return new, *sample_with_scale(rng, self.resolved_prior, draws, sample)

    def _run(
        self,
        rng: np.random.Generator,
        state: State,
        target_acceptance: float,
        draws: int,
        thin: int,
    ) -> tuple[Floats, Stats]:
        """(draws, K + C) draws of v and t, and their stats; v and t of the state follow, in place.

        Where target_acceptance > 0, the state's adaptation changes as well.
        """
        v, t = state["v"], state["t"]
        out, statistics = np.empty((draws, v.size + t.size)), make_path_statistics(draws)
        row_acceptance_rate = np.empty(draws)
        sample_chain(
            rng,
            ValueAndRows(
                self.rows,
                self.choices,
                self._value_prior,
                state["value_root"],
                state["cell_sd"],
                v,
                t,
            ),
            make_workspace(self.rows, self.choices, v.size),
            PathPlan(SETTINGS.path_length, target_acceptance, state["adaptation"]),
            thin,
            out,
            statistics,
            row_acceptance_rate,
        )
        return out, statistics._asdict() | {"row_acceptance_rate": row_acceptance_rate}
