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
from revealed.kernels.hmc import init_dual_averaging
from revealed.kernels.noise import NORMAL, NoiseArguments
from revealed.kernels.unknown_transitions import (
    PathMetric,
    RowChoices,
    TransitionRows,
    ValuePrior,
    make_workspace,
    sample_adapting_step,
    sample_chain,
)
from revealed.models.likelihood import posterior_mode
from revealed.models.priors import ResolvedPrior
from revealed.samplers.base import State, Stats
from revealed.samplers.composite.cycle import min_ess


@dataclass(frozen=True)
class UnknownTransitionsSettings:
    """Settings of warm-up and paths; wrong ones cost time, never correctness.

    path_length: in units of the posterior's sds. target_acceptance: that dual averaging (Hoffman
    and Gelman 2014) aims at; Stan's default. min_warmup: a shorter one adapts nothing. windows:
    shares of warm-up; each adapts a step size, and all but the last how far the next should reach;
    what remains measures. initial_step_size: that of a chain that was not warmed up. ess_per_draw,
    max_moves_per_draw: a kept draw takes as many iterations as make it worth about this many
    independent ones, up to a maximum. min_shape: a cell with less than this of prior and
    transitions has a tail that no one step size suits; its steps grow no longer. prior_draws: how
    many draws a cell's first guess of its spread counts as.
    """

    path_length: float = 1.9
    target_acceptance: float = 0.8
    min_warmup: int = 100
    windows: tuple[float, ...] = (0.1, 0.25, 0.25, 0.2)
    initial_step_size: float = 0.05
    ess_per_draw: float = 0.4
    max_moves_per_draw: int = 20
    min_shape: float = 0.5
    prior_draws: float = 20.0


SETTINGS = UnknownTransitionsSettings()


@dataclass(frozen=True, eq=False)
class UnknownTransitionsSampler:
    """The sampler, ready to run on the decisions and transitions of one controller.

    mode (K,) and information: the value's posterior where rows are at their means.
    """

    rows: TransitionRows
    choices: RowChoices
    resolved_prior: ResolvedPrior
    mode: Floats
    information: Floats

    @property
    def name(self) -> str:
        """What users call it."""
        return "transitions-hmc"

    @staticmethod
    def build(
        rows: TransitionRows,
        choices: RowChoices,
        resolved_prior: ResolvedPrior,
        different_choices: Decisions,
        noise: NoiseArguments = NORMAL,
    ) -> UnknownTransitionsSampler:
        """Find the value's mode where the rows are what transitions alone say.

        different_choices: one decision for each different choice, with these rows.
        """
        # each different choice counts as often as it was made
        mode, information = posterior_mode(
            different_choices, resolved_prior, choices.rival_index.weight, noise
        )
        under_noise = choices._replace(noise=noise)
        return UnknownTransitionsSampler(rows, under_noise, resolved_prior, mode, information)

    @property
    def _initial_value_root(self) -> Floats:
        """(K, D) by which standard normals become v's spread about the mode."""
        # information = L L', so that L'^-1 has the inverse information as its square
        root = sla.cholesky(self.information, lower=True)
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
            np.ascontiguousarray(prior.basis @ prior.precision @ prior.basis.T), prior.mean
        )

    def init(self, rng: np.random.Generator, position: Floats | None) -> State:
        """The value at `position`, or about its mode with twice the variance; rows by their prior.

        The rows' prior includes the transitions counted. t is the logarithm of gamma draws, with
        Gamma(a) = Gamma(a + 1) U^(1/a), which does not underflow.
        """
        # wider than the posterior, so that chains begin apart
        value_root, shape = np.ascontiguousarray(self._initial_value_root), self.rows.shape
        v = (
            self.mode + np.sqrt(2.0) * (value_root @ rng.standard_normal(value_root.shape[1]))
            if position is None
            else position.copy()
        )
        t = np.log(rng.standard_gamma(shape + 1.0)) - rng.standard_exponential(shape.size) / shape
        return {
            "v": v,
            "t": t,
            "value_root": value_root,
            "cell_sd": self._initial_cell_sd,
            "step_size": np.array([SETTINGS.initial_step_size]),
            "moves_per_draw": np.ones(1),
            "adaptation": init_dual_averaging(2.0 * SETTINGS.initial_step_size),
            # iterations of the warm-up, and draws of v and t in the present window
            "done": np.zeros(1),
            "window_draws": np.empty((0, v.size + t.size)),
        }

    def warmup(
        self, rng: np.random.Generator, state: State, remaining: int, chunk: int
    ) -> tuple[State, int]:
        """Adapt reach, step size and thinning; what is done so far is in the state."""
        done = int(state["done"][0])
        total = done + remaining
        # too few iterations to adapt anything
        if total < SETTINGS.min_warmup:
            count = min(chunk, remaining)
            return self.sample(rng, state, 1, count)[0] | {
                "done": np.array([done + count], dtype=np.float64)
            }, count
        # the windows that adapt, and what remains for measuring
        windows = len(SETTINGS.windows)
        ends = [0, *np.cumsum([int(s * total) for s in SETTINGS.windows]).tolist(), total]
        window = int(np.searchsorted(ends, done, side="right"))
        count = min(chunk, ends[window] - done)
        new = (
            self._adapt(rng, state, count)
            if window <= windows
            else self._measure(rng, state, count)
        )
        new["done"] = np.array([done + count], dtype=np.float64)
        if done + count == ends[window]:
            new = self._end_window(new, window)
        # the rest of the chunk, if a window ended within it
        if count < min(chunk, remaining):
            new, more = self.warmup(rng, new, remaining - count, chunk - count)
            count += more
        return new, count

    def _adapt(self, rng: np.random.Generator, state: State, count: int) -> State:
        """Iterate while the step size adapts; draws of v and t are added to the window's."""
        new = state | {name: state[name].copy() for name in ("v", "t", "adaptation")}
        draws = np.empty((count, new["v"].size + new["t"].size))
        step_size = sample_adapting_step(
            rng,
            self.rows,
            self.choices,
            self._value_prior,
            make_workspace(self.rows, self.choices, new["v"].size),
            self._metric(new),
            new["adaptation"],
            SETTINGS.target_acceptance,
            new["v"],
            new["t"],
            draws,
        )
        return new | {
            "step_size": np.array([step_size]),
            "window_draws": np.concatenate([state["window_draws"], draws]),
        }

    def _measure(self, rng: np.random.Generator, state: State, count: int) -> State:
        """Iterate with all that was adapted, to see how independent draws are."""
        # one iteration a draw, since moves_per_draw is still one
        new, draws, _ = self.sample(rng, state, count, 1)
        return new | {"window_draws": np.concatenate([state["window_draws"], draws])}

    def _end_window(self, state: State, window: int) -> State:
        """What the draws of a window say.

        Those of the first windows how far to reach, those of the last how many iterations make a
        kept draw.
        """
        # every window begins dual averaging afresh
        draws, width = state["window_draws"], state["v"].size
        new = state | {
            "adaptation": init_dual_averaging(2.0 * SETTINGS.initial_step_size),
            "window_draws": draws[:0],
        }
        if window > len(SETTINGS.windows):
            # iterations per effective draw of the slowest quantity
            moves = round(SETTINGS.ess_per_draw * len(draws) / min_ess(draws))
            return new | {
                "moves_per_draw": np.array([np.clip(moves, 1, SETTINGS.max_moves_per_draw)])
            }
        if window == len(SETTINGS.windows):
            return new
        # the first quarter of a window is still on its way to the posterior
        late = draws[len(draws) // 4 :]
        return new | {
            "value_root": self._adapted_value_root(np.ascontiguousarray(late[:, :width])),
            "cell_sd": self._adapted_cell_sd(np.ascontiguousarray(late[:, width:])),
        }

    def _adapted_value_root(self, values: Floats) -> Floats:
        """The root (K, D) in whose coordinates draws of v are about one wide.

        Shrunk towards the first guess with the weight of D draws.
        """
        first = self._initial_value_root
        # draws in the coordinates of the first guess, where the shrunk covariance has a root
        x = np.linalg.lstsq(first, (values - values.mean(axis=0)).T, rcond=None)[0]
        width = first.shape[1]
        variances, axes = np.linalg.eigh((x @ x.T + width * np.eye(width)) / (len(values) + width))
        return np.ascontiguousarray(first @ (axes * np.sqrt(variances)) @ axes.T)

    def _adapted_cell_sd(self, t: Floats) -> Floats:
        """The sd of each cell over draws of t, never beyond the first guess."""
        # a weighted mean of the variance of the draws and that of the first guess
        first, weight = self._initial_cell_sd, SETTINGS.prior_draws
        variance = (len(t) * t.var(axis=0) + weight * first**2) / (len(t) + weight)
        return np.asarray(np.minimum(np.sqrt(variance), first))

    def sample(
        self, rng: np.random.Generator, state: State, draws: int, thin: int
    ) -> tuple[State, Floats, Stats]:
        """Make draws * thin steps, each of as many iterations as warm-up found a draw needs.

        A draw is the value (K) and then the probability of every cell (C).
        """
        new = state | {name: state[name].copy() for name in ("v", "t")}
        out = np.empty((draws, new["v"].size + new["t"].size))
        # the kernel changes v and t of the new state in place
        acceptance_rate, row_acceptance_rate = np.empty(draws), np.empty(draws)
        sample_chain(
            rng,
            self.rows,
            self.choices,
            self._value_prior,
            make_workspace(self.rows, self.choices, new["v"].size),
            self._metric(state),
            float(state["step_size"][0]),
            thin * int(state["moves_per_draw"][0]),
            new["v"],
            new["t"],
            out,
            acceptance_rate,
            row_acceptance_rate,
        )
        stats = {"acceptance_rate": acceptance_rate, "row_acceptance_rate": row_acceptance_rate}
        return new, out, stats

    def _metric(self, state: State) -> PathMetric:
        """How far paths reach, from the state."""
        return PathMetric(state["value_root"], state["cell_sd"], SETTINGS.path_length)
