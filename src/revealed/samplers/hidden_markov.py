"""Strategies that take turns: values, switch probabilities and initial law by Hamiltonian moves.

`kernels/switching.py` has the posterior, in which states are summed out. Here is what surrounds
it: the data as kernels take them, and the warm-up.
The posterior has a mode for every order of the labels: what chains call a strategy differs from
chain to chain; `results/relabelling.py` brings it together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg as sla

from revealed._types import Floats
from revealed.data.decisions import Decisions
from revealed.data.unique import choice_labels, deduplicate, find_kinds
from revealed.kernels.design import Design
from revealed.kernels.hmc import PathPlan, init_dual_averaging, make_path_statistics
from revealed.kernels.noise import AnyNoise
from revealed.kernels.switching import SequenceData, SwitchingPrior
from revealed.models.priors import ResolvedPrior
from revealed.models.switching import ResolvedSwitching, simplex_basis
from revealed.samplers.adaptation import (
    WindowPlan,
    add_to_window,
    covariance_roots,
    draws_of_window,
    run_windows,
    settle_step_size,
)
from revealed.samplers.base import Draws, State, Stats
from revealed.samplers.switching_density import SwitchingDensity, Whitening
from revealed.samplers.switching_starts import SwitchingStarts


@dataclass(frozen=True)
class HiddenMarkovSettings:
    """Settings of warm-up and moves; wrong ones cost time, never correctness.

    spread: of a first point about its mode, in units of the posterior's sd. path_length: about a
    quarter of a period, pi / 2. target_acceptance, initial_step_size: of dual averaging. discarded:
    the share of a window that is on its way to the posterior.
    """

    spread: float = 0.5
    path_length: float = 1.6
    target_acceptance: float = 0.8
    initial_step_size: float = 0.4
    discarded: float = 1.0 / 3.0


SETTINGS = HiddenMarkovSettings()
# All windows adapt the step size, all but the last one the metric.
WINDOWS = WindowPlan((0.15, 0.2, 0.3, 0.35), min_iterations=20)


@dataclass(frozen=True, eq=False)
class HiddenMarkovSampler:
    """The sampler, ready for one set of sequences.

    Chains share what it has, and have states of their own.
    """

    density: SwitchingDensity
    starts: SwitchingStarts

    @property
    def name(self) -> str:
        """What users see."""
        return "hidden-markov"

    @staticmethod
    def build(
        decisions: Decisions,
        prior: ResolvedPrior,
        switching: ResolvedSwitching,
        noise: AnyNoise,
    ) -> HiddenMarkovSampler:
        """The sampler for all sequences; prior: of each strategy's value."""
        # equal choices have equal likelihoods, whenever they were made
        where, kind = find_kinds(decisions, choice_labels(decisions))
        unique = deduplicate(decisions[where])
        data = SequenceData(
            Design.from_rows(unique.rival_minus_chosen),
            unique.rival_index,
            kind[switching.order].astype(np.int64),
            switching.start,
        )
        density = SwitchingDensity(data, switching_prior(prior, switching), noise)
        return HiddenMarkovSampler(density, SwitchingStarts(density))

    def init(self, rng: np.random.Generator, position: Floats | None) -> State:
        """About the best of some local modes.

        Chains start apart, and R-hat can say whether they came together.
        """
        centre, root = self.starts.find(rng)
        return {
            "x": SETTINGS.spread * rng.standard_normal(len(centre)),
            "centre": centre,
            "root": root,
            "adaptation": init_dual_averaging(SETTINGS.initial_step_size),
            "done": np.zeros(1),
        }

    def warmup(
        self, rng: np.random.Generator, state: State, remaining: int, chunk: int
    ) -> tuple[State, int]:
        """Adapt metric and step size.

        Window by window.
        """
        return run_windows(self, WINDOWS, rng, state, remaining, chunk)

    def adapt(self, rng: np.random.Generator, state: State, count: int, window: int) -> State:
        """Iterate while the step size adapts; draws are added to the window's."""
        new = state | {name: state[name].copy() for name in ("x", "adaptation")}
        theta, _ = self._run(rng, new, count, 1, SETTINGS.target_acceptance)
        return add_to_window(new, theta)

    def end_window(self, rng: np.random.Generator, state: State, window: int) -> State:
        """Settle the step size, and but for the last window the metric."""
        new = state | {"adaptation": settle_step_size(state["adaptation"])}
        draws = draws_of_window(state, SETTINGS.discarded)
        if window == len(WINDOWS.shares) - 1 or len(draws) < 2:
            return new
        # the metric that makes the window's draws standard
        centre = draws.mean(axis=0)
        whitened = np.linalg.solve(state["root"], (draws - centre).T).T
        root = np.ascontiguousarray(state["root"] @ covariance_roots(whitened, power=1.0)[0])
        # the chain goes on from where it is, in the new coordinates
        theta = state["centre"] + state["root"] @ state["x"]
        return new | {"x": np.linalg.solve(root, theta - centre), "centre": centre, "root": root}

    def sample(
        self, rng: np.random.Generator, state: State, draws: int, thin: int
    ) -> tuple[State, Draws, Stats]:
        """Make draws * thin iterations.

        Nothing is adapted.
        """
        new = state | {"x": state["x"].copy()}
        theta, stats = self._run(rng, new, draws, thin, 0.0)
        return new, self.named(theta), stats

    def _run(
        self, rng: np.random.Generator, state: State, draws: int, thin: int, target: float
    ) -> tuple[Floats, Stats]:
        """Draws of theta and their stats; x and adaptation of the state change in place."""
        density = self.density
        theta, statistics = np.empty((draws, density.size)), make_path_statistics(draws)
        density.sample(
            rng,
            Whitening(state["centre"], state["root"]),
            PathPlan(SETTINGS.path_length, target, state["adaptation"]),
            thin,
            state["x"],
            theta,
            statistics,
        )
        return theta, statistics._asdict()

    def named(self, theta: Floats) -> Draws:
        """Draws by name, from theta (n, P).

        On the scale of users.
        """
        # theta is cut where the kernels cut it
        density, count = self.density, len(theta)
        states, width, prior = density.states, density.width, density.prior
        rows, sd_at = states * width, density.scale_at
        at = sd_at - (states - 1)
        z = theta[:, :rows].reshape(count, states, width)
        if prior.scale > 0.0:
            z = z * np.exp(theta[:, sd_at])[:, None, None]
        drawn: Draws = {
            "value": (z @ prior.basis.T if prior.basis.size else z * prior.width) + prior.mean,
            "switch_probability": self._rows(theta[:, rows:at].reshape(count, states, -1)),
            "initial": self._rows(theta[:, at:sd_at]),
        }
        if prior.scale > 0.0:
            drawn["prior_sd"] = np.exp(theta[:, sd_at])
        # rates of lapses and degrees of freedom, named by the model
        if density.coordinates:
            drawn["noise"] = theta[:, -density.coordinates :]
        return drawn

    def _rows(self, u: Floats) -> Floats:
        """Probabilities (..., S) of log-ratio coordinates (..., S - 1).

        As kernels have them.
        """
        logs = u @ self.density.prior.simplex.T
        p = np.exp(logs - logs.max(axis=-1, keepdims=True))
        return np.asarray(p / p.sum(axis=-1, keepdims=True))


def switching_prior(prior: ResolvedPrior, switching: ResolvedSwitching) -> SwitchingPrior:
    """What is assumed, as kernels take it: of a value, standard normal coordinates."""
    # v = mean + B q with q of this precision, q = L^-T z
    root = sla.cholesky(prior.precision, lower=True)
    basis = prior.basis @ sla.solve_triangular(root, np.eye(len(root)), lower=True, trans="T")
    width = np.zeros(0)
    # a diagonal needs no products of matrices
    if basis.shape[0] == basis.shape[1] and not np.any(basis - np.diag(np.diag(basis))):
        basis, width = np.zeros((0, 0)), np.diag(basis).copy()
    return SwitchingPrior(
        prior.mean,
        np.ascontiguousarray(basis),
        width,
        switching.switch_shape,
        switching.initial_shape,
        simplex_basis(switching.part.states),
        0.0 if prior.scale is None else float(prior.scale),
    )
