"""Coefficients and a full noise covariance together: the exact posterior, by the GHK simulator.

Each iteration draws the simulator's normals given the parameters (nearly all are accepted), then
moves the parameters along a Hamiltonian path given them. Warm-up finds in what order to condition
(the hardest rivals first), a metric between the mean curvature and the covariance of the draws, and
a step size; then all of it stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg as sla
import scipy.sparse as sp

from revealed._types import Floats, Ints
from revealed.data.decisions import Decisions
from revealed.kernels.design import Design
from revealed.kernels.ghk import OrderedRivals, log_cdf_pairs, order_rivals
from revealed.kernels.ghk_hmc import WhitenedGHK, add_curvature, sample_chain
from revealed.kernels.ghk_posterior import (
    GHKLogPosterior,
    GHKPosteriorWorkspace,
    make_workspace,
    unpack_noise_root,
)
from revealed.kernels.hmc import PathPlan, init_dual_averaging, make_path_statistics
from revealed.kernels.interrupt import raise_if_stopping
from revealed.models.correlated_noise import ResolvedNoise
from revealed.models.likelihood import at_likely_scale, posterior_mode
from revealed.models.priors import ResolvedPrior
from revealed.samplers.adaptation import (
    WindowPlan,
    add_to_window,
    covariance_roots,
    curvature_root,
    draws_of_window,
    run_windows,
    settle_step_size,
)
from revealed.samplers.base import Draws, State, Stats
from revealed.samplers.inferred_scale import marginal_prior, sample_with_scale
from revealed.samplers.per_draw import multiply_draws


@dataclass(frozen=True)
class GHKSettings:
    """Settings of warm-up and paths, found by experiment; wrong ones cost time, not correctness.

    path_length: in whitened coordinates. target_acceptance: that dual averaging (Hoffman and Gelman
    2014) aims at; Stan's default. curvature_windows: so many of the first windows find a metric
    from curvature alone, as their draws are too few for a covariance. discarded: the share of a
    window's draws that are on their way to the posterior. curvature_draws: over how many draws
    curvature is averaged. covariance_power: how far the metric goes from mean curvature, 0, to
    covariance, 1. min_curvature: the least that is believed, in units of each coordinate's own;
    with less, a path runs off where the posterior is not concave. initial_step_size: a cautious
    one. difference_step: of the gradient, in units of theta.
    """

    path_length: float = 2.5
    target_acceptance: float = 0.8
    curvature_windows: int = 2
    discarded: float = 1.0 / 3.0
    curvature_draws: int = 8
    covariance_power: float = 0.5
    min_curvature: float = 0.05
    initial_step_size: float = 0.1
    difference_step: float = 1e-4


GHK = GHKSettings()
# After each window order, metric and step size are adapted again; after the last one the step size
# alone. Found by experiment, as the settings.
WINDOWS = WindowPlan((0.15, 0.15, 0.3, 0.4), min_iterations=60)


@dataclass(frozen=True, eq=False)
class GHKSampler:
    """The sampler, ready to run on one set of decisions under one prior."""

    decisions: Decisions
    resolved_prior: ResolvedPrior
    noise: ResolvedNoise

    @property
    def name(self) -> str:
        """What users call it."""
        return "ghk-hmc"

    @property
    def size(self) -> int:
        """D, the number of actions beside the base."""
        return len(self.noise.non_base)

    @cached_property
    def informative_decisions(self) -> Decisions:
        """The decisions with something to choose.

        The others say nothing.
        """
        return self.decisions[np.flatnonzero(self.decisions.sizes > 1)]

    @cached_property
    def row_label(self) -> Ints:
        """(P,) labels of the rows of the informative decisions."""
        return self.noise.of_row[np.repeat(self.decisions.sizes > 1, self.decisions.sizes)]

    @cached_property
    def likely_prior(self) -> ResolvedPrior:
        """The prior at its likely sd under independent noise.

        As it is where the sd is given.
        """
        return at_likely_scale(self.decisions, self.resolved_prior)

    @cached_property
    def independent_noise_mode(self) -> tuple[Floats, Floats]:
        """Under independent noise: theta at the posterior mode, and the least curvature believed.

        One number for each coordinate. The prior alone gives those of N a curvature of about one.
        """
        # independent noise less the base's has covariance I + 11', on this scale
        v, information = posterior_mode(self.decisions, self.likely_prior)
        mode = self.to_theta(v, 1.0 + np.eye(self.size))
        curvature = np.ones(len(mode))
        # differences have twice the variance, so coefficients on this scale twice the information
        curvature[: len(information)] = 2.0 * np.diag(information)
        return mode, GHK.min_curvature * curvature

    def to_theta(self, v: Floats, covariance: Floats) -> Floats:
        """The coordinates of coefficients (K,) and covariance (D, D) on any one scale.

        Both are brought to the scale where the product of the root's diagonal is one.
        """
        # the geometric mean of the root's diagonal is the scale
        root = sla.cholesky(covariance, lower=True)
        scale = np.exp(np.log(np.diag(root)).mean())
        root = root / scale
        below_diagonal = np.concatenate([root[i, :i] for i in range(self.size)])
        return np.concatenate(
            [self.resolved_prior.basis.T @ v / scale, below_diagonal, np.log(np.diag(root))[1:]]
        )

    def to_reported_scale(self, theta: Floats) -> Draws:
        """Draws of coefficients (n, K) and covariance (n, D, D), on the user's scale."""
        basis, noise = self.resolved_prior.basis, self.noise
        n_free = basis.shape[1]
        root = np.zeros((len(theta), self.size, self.size))
        for draw, into in zip(theta, root, strict=True):
            unpack_noise_root(draw, n_free, into)
        # the user's scale: first entry one, or trace D
        scale = (
            root[:, 0, 0]
            if noise.scale == "first"
            else np.sqrt((root**2).sum(axis=(1, 2)) / self.size)
        )
        covariance = root @ root.transpose(0, 2, 1) / scale[:, None, None] ** 2
        # symmetric to the last bit, which a product need not be
        row, column = np.triu_indices(self.size, 1)
        covariance[:, row, column] = covariance[:, column, row]
        value = multiply_draws(theta[:, :n_free], basis) / scale[:, None]
        return {"value": value, "noise_covariance": covariance}

    def init(self, rng: np.random.Generator, position: Floats | None) -> State:
        """At `position` with independent noise, or around the mode under it."""
        mode = (
            self.independent_noise_mode[0]
            if position is None
            else self.to_theta(position * np.sqrt(2.0), 1.0 + np.eye(self.size))
        )
        decisions = self.informative_decisions
        z = rng.standard_normal(int(decisions.start[-1]) - 2 * len(decisions))
        # a first metric from the curvature at the mode
        target, work = self._posterior(mode)
        root = self._metric(self._curvature(target, work, mode[None], z[None]))
        x = np.zeros(len(mode)) if position is not None else 0.5 * rng.standard_normal(len(mode))
        return {
            "x": x,
            "z": z,
            # theta = centre + root x; rivals are conditioned on in the order that is best at:
            "centre": mode,
            "root": root,
            "order_theta": mode,
            "adaptation": init_dual_averaging(GHK.initial_step_size),
            "done": np.zeros(1),  # iterations of the warm-up
        }

    def warmup(
        self, rng: np.random.Generator, state: State, remaining: int, chunk: int
    ) -> tuple[State, int]:
        """Adapt order, metric and step size.

        What is done so far is in the state.
        """
        return run_windows(self, WINDOWS, rng, state, remaining, chunk)

    def adapt(self, rng: np.random.Generator, state: State, count: int, window: int) -> State:
        """Iterate while the step size adapts.

        Draws of theta are added to the window's.
        """
        new = state | {name: state[name].copy() for name in ("x", "z", "adaptation")}
        return add_to_window(new, self._run(rng, new, GHK.target_acceptance, count, 1)[0])

    def end_window(self, rng: np.random.Generator, state: State, window: int) -> State:
        """Settle the step size, and but for the last window order and metric.

        z is drawn anew, as another order gives it another meaning.
        """
        new = state | {"adaptation": settle_step_size(state["adaptation"])}
        if window == len(WINDOWS.shares) - 1:
            return new
        draws = draws_of_window(state, GHK.discarded)
        centre = draws.mean(axis=0)
        target, work = self._posterior(centre)
        # curvature averaged over a few draws, each with normals of its own
        some = draws[:: max(1, len(draws) // GHK.curvature_draws)]
        normals = rng.standard_normal((len(some), len(state["z"])))
        root = self._metric(self._curvature(target, work, some, normals))
        if window >= GHK.curvature_windows:
            x = np.linalg.solve(root, (draws - centre).T).T
            root = np.ascontiguousarray(root @ covariance_roots(x, GHK.covariance_power)[0])
        z = rng.standard_normal(len(state["z"]))
        x = np.linalg.solve(root, draws[-1] - centre)
        return new | {"x": x, "z": z, "centre": centre, "root": root, "order_theta": centre}

    def sample(
        self, rng: np.random.Generator, state: State, draws: int, thin: int
    ) -> tuple[State, Draws, Stats]:
        """Make draws * thin iterations; nothing adapts."""
        new = state | {"x": state["x"].copy(), "z": state["z"].copy()}
        prepared = self._posterior(state["order_theta"])

        def sample(count: int) -> tuple[Draws, Stats]:
            theta, stats = self._run(rng, new, 0.0, count, thin, prepared)
            return self.to_reported_scale(theta), stats

        return new, *sample_with_scale(rng, self.resolved_prior, draws, sample)

    def _run(
        self,
        rng: np.random.Generator,
        state: State,
        target_acceptance: float,
        draws: int,
        thin: int,
        prepared: tuple[GHKLogPosterior, GHKPosteriorWorkspace] | None = None,
    ) -> tuple[Floats, Stats]:
        """Draws of theta and their stats; x and z of the state change in place.

        Where target_acceptance > 0, the state's adaptation changes as well. prepared: the posterior
        of this state and a workspace, where the caller has them.
        """
        posterior, work = prepared or self._posterior(state["order_theta"])
        log_cdf_z = np.empty((state["z"].size, 2))
        theta, statistics = np.empty((draws, state["x"].size)), make_path_statistics(draws)
        ghk_acceptance_rate = np.empty(draws)
        sample_chain(
            rng,
            WhitenedGHK(posterior, log_cdf_z, state["centre"], state["root"]),
            work,
            PathPlan(GHK.path_length, target_acceptance, state["adaptation"]),
            thin,
            state["x"],
            state["z"],
            theta,
            statistics,
            ghk_acceptance_rate,
        )
        raise_if_stopping()
        return theta, statistics._asdict() | {"ghk_acceptance_rate": ghk_acceptance_rate}

    def _posterior(self, theta: Floats) -> tuple[GHKLogPosterior, GHKPosteriorWorkspace]:
        """The posterior with rivals in the order that is best at theta, and a workspace."""
        return self.posterior_in_order(self.conditioning_rows(theta))

    def posterior_in_order(
        self, order: Ints, exponent: Floats | None = None
    ) -> tuple[GHKLogPosterior, GHKPosteriorWorkspace]:
        """The posterior with the rows of the rivals (R,) in this order, and a workspace.

        exponent: (T,) the power to which each informative decision counts; default: one.
        """
        d, prior, noise = self.informative_decisions, self.resolved_prior, self.noise
        # rows of the rivals less the chosen one's, in that order
        rows = d.rows[order] - d.rows[np.repeat(d.chosen_row, d.sizes - 1)]
        target = GHKLogPosterior(
            design=Design.from_rows(sp.csr_array(rows) if sp.issparse(rows) else rows),
            rivals=self._ordered_rivals(order, exponent),
            basis=prior.basis,
            precision=prior.precision,
            mean=prior.basis.T @ prior.mean,
            marginal=marginal_prior(prior, lambda: self.likely_prior),
            base=noise.base,
            df=noise.df,
            centre_root=noise.root,
            scaled_by_trace=noise.scale == "trace",
        )
        return target, make_workspace(target)

    def conditioning_rows(self, theta: Floats) -> Ints:
        """(R,) the rows of each informative decision's rivals, in the order best at theta."""
        d, basis, size = self.informative_decisions, self.resolved_prior.basis, self.size
        # utilities and noise of all labels at theta
        n_free = basis.shape[1]
        root = np.zeros((size, size))
        unpack_noise_root(theta, n_free, root)
        mu = np.asarray(d.rows @ (basis @ theta[:n_free]))
        noise = np.zeros((size + 1, size + 1))
        others = np.delete(np.arange(size + 1), self.noise.base)
        noise[np.ix_(others, others)] = root @ root.T
        rows = np.delete(np.arange(d.start[-1]), d.chosen_row)
        start = d.start - np.arange(len(d) + 1)
        order_rivals(mu, noise, self.row_label, d.chosen_row, start, rows)
        return rows

    def _ordered_rivals(self, order: Ints, exponent: Floats | None) -> OrderedRivals:
        """The rivals whose rows are in this order (R,)."""
        d = self.informative_decisions
        start = d.start - np.arange(len(d) + 1)
        # labels of the chosen one and of its rivals
        labels = np.full((len(d), self.size + 1), -1, dtype=np.int64)
        labels[:, 0] = self.row_label[d.chosen_row]
        decision = np.repeat(np.arange(len(d)), d.sizes - 1)
        labels[decision, np.arange(len(order)) - start[decision] + 1] = self.row_label[order]
        # decisions with the same labels in the same order share one Cholesky factor
        sets, choice_set = np.unique(labels, axis=0, return_inverse=True)
        powers = np.ones(len(d)) if exponent is None else exponent
        n_rivals = (sets >= 0).sum(axis=1) - 1
        return OrderedRivals(start, choice_set.ravel(), sets, n_rivals, powers)

    def _curvature(
        self, target: GHKLogPosterior, work: GHKPosteriorWorkspace, draws: Floats, z: Floats
    ) -> Floats:
        """Minus the Hessian of the log posterior, averaged over draws of theta and z (n, .)."""
        total = np.zeros((draws.shape[1],) * 2)
        width = GHK.difference_step * np.maximum(1.0, np.abs(draws).max(axis=0))
        log_cdf_z = np.empty((z.shape[1], 2))
        for theta, normals in zip(draws, z, strict=True):
            raise_if_stopping()
            log_cdf_pairs(normals, log_cdf_z)
            add_curvature(target, work, theta, log_cdf_z, width, total)
        return total / len(draws)

    def _metric(self, curvature: Floats) -> Floats:
        """Directions in which this curvature is the identity.

        Where it is hardly there or negative, it is taken as `GHK.min_curvature`.
        """
        return curvature_root(curvature, self.independent_noise_mode[1], GHK.min_curvature)
