"""Data augmentation with a full noise covariance (paper, section 4.1.4), corrected: the reference for "conditioned".

What the paper takes from Imai and van Dyk (2005), with the correction of Jiao and van Dyk (2015): utilities, coefficients
and covariance in turn. The covariance S has a fixed scale. Its inverse Wishart prior is that of a^2 S, a a working
parameter, so that

    a^2 given S               tr(C C' S^-1) / chi-squared of df D
    a^2 S given a w and a v   inverse Wishart, times a^-K where v is flat: the density of a v is that of v over a^K

The factor is what was missing: the inverse Wishart is only proposed, and accepted with min(1, (old a / new a)^K) under
a flat prior, times the ratio of the prior of v under a Gaussian one. Then v, w and S are all divided by the one new a.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg as sla
import scipy.sparse as sp

from understudy._arrays import Bools, Floats, Ints
from understudy.decisions import Decisions
from understudy.engines.base import State, Stats
from understudy.kernels.wishart import draw_utilities
from understudy.likelihood import posterior_mode
from understudy.noise import PlacedNoise
from understudy.priors import Placed


@dataclass(frozen=True, eq=False)
class Panel:
    """T decisions among D labels and the base, utilities less the base's.

    design (T, D, K): rows less the base's; zero where a label is not offered, whose utility is then its noise. The base
    counts as zero where it is not offered. chosen (T,): the label taken, or -1 for the base.
    """

    design: Floats
    offered: Bools
    base_offered: Bools
    chosen: Ints


@dataclass(frozen=True, eq=False)
class Wishart:
    """The engine, ready to run on one set of decisions under one prior."""

    decisions: Decisions
    placed: Placed
    noise: PlacedNoise

    @property
    def name(self) -> str:
        """What users call it."""
        return "da"

    @cached_property
    def panel(self) -> Panel:
        """The decisions as utilities less the base's."""
        d, noise = self.decisions, self.noise
        rows = np.asarray(d.rows.todense() if sp.issparse(d.rows) else d.rows)
        whole = np.zeros((len(d), len(noise.labels), rows.shape[1]))
        offered = np.zeros((len(d), len(noise.labels)), dtype=np.bool_)
        whole[d.decision_of_row, noise.of_row], offered[d.decision_of_row, noise.of_row] = rows, True
        others = np.delete(np.arange(len(noise.labels)), noise.base)
        design = whole[:, others] - np.where(offered[:, others, None], whole[:, [noise.base]], 0.0)
        label = noise.of_row[d.taken]
        chosen = np.where(label == noise.base, -1, label - (label > noise.base))
        return Panel(
            design, np.ascontiguousarray(offered[:, others]), np.ascontiguousarray(offered[:, noise.base]), chosen
        )

    def start(self, rng: np.random.Generator, init: Floats | None) -> State:
        """At `init`, or at the mode, under independent noise; utilities with what was chosen on top."""
        v = posterior_mode(self.decisions, self.placed)[0] / np.sqrt(2.0) if init is None else init
        size = len(self.noise.others)
        w = -np.abs(rng.standard_normal((len(self.decisions), size)))
        took = np.flatnonzero(self.panel.chosen >= 0)
        w[took, self.panel.chosen[took]] *= -1.0
        return {"v": v.copy(), "w": w, "covariance": 0.5 * (1.0 + np.eye(size))}

    def warm(self, rng: np.random.Generator, state: State, left: int, piece: int) -> tuple[State, int]:
        """Go on; there is nothing to learn."""
        made = min(left, piece)
        return self.advance(rng, state, 1, made)[0], made

    def advance(self, rng: np.random.Generator, state: State, draws: int, thin: int) -> tuple[State, Floats, Stats]:
        """Go on for draws * thin iterations."""
        v, w, covariance = state["v"], state["w"].copy(), state["covariance"]
        low = np.tril_indices(len(covariance))
        out, accepted = np.empty((draws, len(v) + len(low[0]))), np.zeros(draws)
        panel = self.panel
        for n in range(draws):
            for _ in range(thin):
                inverse = np.asarray(np.linalg.inv(covariance), dtype=np.float64)
                draw_utilities(rng, panel.offered, panel.base_offered, panel.chosen, panel.design @ v, inverse, w)
                v = self._coefficients(rng, w, inverse)
                v, w, covariance, moved = self._covariance(rng, v, w, covariance)
                accepted[n] += moved / thin
            out[n] = np.concatenate([v, covariance[low]])
        return {"v": v, "w": w, "covariance": covariance}, out, {"acceptance": accepted}

    def _coefficients(self, rng: np.random.Generator, w: Floats, inverse: Floats) -> Floats:
        """V given utilities and covariance: v = basis q, q normal."""
        design, placed = self.panel.design, self.placed
        weighted = np.einsum("tdk,de->tek", design, inverse).reshape(-1, design.shape[2])
        gram, pull = weighted.T @ design.reshape(weighted.shape), weighted.T @ w.ravel()
        root = sla.cholesky(placed.basis.T @ gram @ placed.basis + placed.precision, lower=True)
        pull = placed.basis.T @ pull + placed.precision @ (placed.basis.T @ placed.mean)
        half = sla.solve_triangular(root, pull, lower=True) + rng.standard_normal(len(root))
        return np.asarray(placed.basis @ sla.solve_triangular(root, half, lower=True, trans="T"))

    def _covariance(
        self, rng: np.random.Generator, v: Floats, w: Floats, covariance: Floats
    ) -> tuple[Floats, Floats, Floats, bool]:
        """The covariance given utilities and coefficients, all three rescaled; whether the proposal was accepted."""
        noise, placed, size = self.noise, self.placed, len(covariance)
        apart = sla.solve_triangular(sla.cholesky(covariance, lower=True), noise.root, lower=True)
        old = np.sqrt(np.sum(apart**2) / rng.chisquare(noise.df * size))
        off = old * (w - self.panel.design @ v)
        wide = draw_inverse_wishart(rng, noise.df + len(w), noise.root @ noise.root.T + off.T @ off)
        new = np.sqrt(wide[0, 0] if noise.scale == "first" else np.trace(wide) / size)
        ratio = old / new
        log_ratio = placed.basis.shape[1] * np.log(ratio) + placed.log_density(ratio * v) - placed.log_density(v)
        if log_ratio < -rng.standard_exponential():
            return v, w, covariance, False
        return ratio * v, ratio * w, wide / new**2, True


def draw_inverse_wishart(rng: np.random.Generator, df: float, scatter: Floats) -> Floats:
    """IW(df, scatter), by Bartlett's decomposition."""
    size = len(scatter)
    bartlett = np.tril(rng.standard_normal((size, size)), -1)
    bartlett[np.diag_indices(size)] = np.sqrt(rng.chisquare(df - np.arange(size)))
    root = sla.cholesky(scatter, lower=True) @ sla.solve_triangular(bartlett, np.eye(size), lower=True).T
    return np.asarray(root @ root.T)
