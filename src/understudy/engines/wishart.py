"""Data augmentation with a full noise covariance (paper, section 4.1.4), corrected: the reference for "conditioned"."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from understudy._arrays import Floats
from understudy.decisions import Decisions
from understudy.engines.base import State, Stats
from understudy.kernels.wishart import Panel, sweep
from understudy.likelihood import posterior_mode
from understudy.noise import PlacedNoise
from understudy.priors import Placed


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
        d, noise, placed = self.decisions, self.noise, self.placed
        rows = np.asarray(d.rows.todense() if sp.issparse(d.rows) else d.rows)
        whole = np.zeros((len(d), len(noise.labels), rows.shape[1]))
        offered = np.zeros((len(d), len(noise.labels)), dtype=np.bool_)
        whole[d.decision_of_row, noise.of_row], offered[d.decision_of_row, noise.of_row] = rows, True
        others = np.delete(np.arange(len(noise.labels)), noise.base)
        design = whole[:, others] - np.where(offered[:, others, None], whole[:, [noise.base]], 0.0)
        label = noise.of_row[d.taken]
        chosen = np.where(label == noise.base, -1, label - (label > noise.base))
        return Panel(
            np.ascontiguousarray(design), np.ascontiguousarray(offered[:, others]),
            np.ascontiguousarray(offered[:, noise.base]), chosen, placed.basis, placed.precision,
            placed.basis.T @ placed.mean, noise.df, noise.root, noise.scale == "trace",
        )  # fmt: skip

    def start(self, rng: np.random.Generator, init: Floats | None) -> State:
        """At `init`, or at the mode, under independent noise; utilities with what was chosen on top."""
        v = posterior_mode(self.decisions, self.placed)[0] / np.sqrt(2.0) if init is None else init
        size = len(self.noise.others)
        panel = self.panel
        w = -np.abs(rng.standard_normal((len(self.decisions), size)))
        took = np.flatnonzero(panel.chosen >= 0)
        w[took, panel.chosen[took]] *= -1.0
        return {"v": v.copy(), "w": w, "covariance": 0.5 * (1.0 + np.eye(size))}

    def warm(self, rng: np.random.Generator, state: State, left: int, piece: int) -> tuple[State, int]:
        """Go on; there is nothing to learn."""
        made = min(left, piece)
        return self.advance(rng, state, 1, made)[0], made

    def advance(self, rng: np.random.Generator, state: State, draws: int, thin: int) -> tuple[State, Floats, Stats]:
        """Go on for draws * thin iterations."""
        new = {name: value.copy() for name, value in state.items()}
        size = len(self.noise.others)
        out, matrices = np.empty((draws, len(new["v"]))), np.empty((draws, size, size))
        accepted = np.empty(draws)
        sweep(rng, self.panel, thin, new["v"], new["w"], new["covariance"], out, matrices, accepted)
        low = np.tril_indices(size)
        return new, np.hstack([out, matrices[:, low[0], low[1]]]), {"acceptance": accepted}
