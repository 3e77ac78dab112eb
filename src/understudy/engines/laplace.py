"""The engine for very many decisions: a few passes over them, and an answer that says whether it can be trusted.

Newton's method finds the mode, a pass a step. Proposals come from a Student distribution with the mode's curvature, and one further pass finds the log
posterior at all of them. Their importance weights tell how good the approximation is: with a Pareto k below 1/2 the weighted
proposals are as good as draws of the posterior, and the answer is certified; otherwise there are more proposals, from the
mean and covariance that the weights suggest, or the answer is refused.

Everything done so far is in a state of plain arrays, piece by piece of a pass, so that it can be written down and picked up again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg as sla
from scipy.special import gammaln

from understudy._arrays import Floats
from understudy.diagnostics import pareto_k
from understudy.engines.passes import Labourers, heights, prepare, slopes
from understudy.engines.sequential import draw_sizes, effective_size, systematic
from understudy.likelihood import posterior_mode, with_likely_size
from understudy.priors import Placed
from understudy.shards import Shards

SOME = 4096  # decisions that show where to begin
STEPS = 30  # of Newton's method, at most; three or four are usual
NEAR = 0.05  # what a Newton step promises to gain in log posterior, below which it is the last
DEGREES = 10.0  # of the Student distribution
SPARE = 1.15  # proposals for each draw that is wanted
FAIR, POOR = 0.5, 0.7  # Pareto k: below the first the weights are certified, beyond the second more proposals do not help
ROUNDS = 3  # of proposals
ENOUGH = 0.8  # effective draws, as a share of those wanted
WEAK = 1e-4  # the precision that stands in for a flat prior while looking for a beginning

NEWTON, WEIGH, DONE = 0.0, 1.0, 2.0


class Refused(ValueError):
    """The approximation does not fit this posterior."""


@dataclass
class Laplace:
    """The engine at work on some pieces of decisions under one prior, for so many draws."""

    shards: Shards
    labourers: Labourers
    placed: Placed
    wanted: int
    rng: np.random.Generator
    state: dict[str, Floats]

    @staticmethod
    def begin(shards: Shards, labourers: Labourers, placed: Placed, wanted: int, rng: np.random.Generator) -> Laplace:
        """At the mode of the first few decisions."""
        return Laplace(shards, labourers, placed, wanted, rng, {})

    @property
    def passes(self) -> int:
        """How many passes have been begun."""
        return int(self.state["passes"][0]) if self.state else 0

    @property
    def share(self) -> float:
        """About how much of the work is done: a step of Newton's method costs as much as forty proposals."""
        if not self.state:
            return 0.0
        s, steps, proposals = self.state, 4.0 * 40.0, SPARE * self.wanted
        part = float(s["piece"][0]) / len(self.shards)
        if s["phase"][0] == NEWTON:
            return float(min(self.passes - 1 + part, 4.0) * 40.0 / (steps + proposals))
        return float((steps + part * proposals) / (steps + proposals)) if s["phase"][0] == WEIGH else 1.0

    def go(self) -> Iterator[float]:
        """Work, piece by piece, to the end; yields the share of work done. Raises Refused."""
        if not self.state:
            self._start()
        while self.state["phase"][0] == NEWTON:
            yield from self._pass(slopes, self.state["v"])
            self._climb()
        while self.state["phase"][0] == WEIGH:
            yield from self._pass(heights, self.state["proposals"])
            self._judge()

    def _start(self) -> None:
        some = self.shards.load(0)
        block = prepare(some[:SOME])[0]
        placed = replace(self.given(block), flat=False)
        if self.placed.flat:
            placed = replace(placed, precision=WEAK * np.eye(len(placed.precision)))
        v, _ = posterior_mode(block.unique, placed, block.offers.weight)
        given = self.given(block)
        width = len(v)
        self.state = {
            "phase": np.array([NEWTON]), "piece": np.zeros(1), "passes": np.ones(1), "sum": np.zeros((width + 1, width + 1)), "v": v,
            "best": np.full(1, -np.inf), "from": v, "precision": given.precision, "rounds": np.zeros(1),
        }  # fmt: skip

    def given(self, block: Any) -> Placed:
        """The prior, at a likely size where that is learnt."""
        return with_likely_size(block.unique, self.placed, block.offers.weight)

    def _pass(self, function: Any, v: Floats) -> Iterator[float]:
        s = self.state
        for part in self.labourers.each(function, v, first=int(s["piece"][0])):
            s["sum"] = s["sum"] + part
            s["piece"] = s["piece"] + 1.0
            yield self.share
        s["piece"], s["passes"] = np.zeros(1), s["passes"] + 1.0

    def _climb(self) -> None:
        """A Newton step, or half of the last one where it went too far; after the last, proposals."""
        s, basis = self.state, self.placed.basis
        q = (s["v"] - self.placed.mean) @ basis
        pull = s["precision"] @ q
        height = float(s["sum"][0, 0] - 0.5 * q @ pull)
        gradient = basis.T @ s["sum"][0, 1:] - pull
        information = basis.T @ s["sum"][1:, 1:] @ basis + s["precision"]
        s["sum"] = np.zeros_like(s["sum"])
        if height < s["best"][0] - 1e-6 * abs(height):
            s["v"] = 0.5 * (s["v"] + s["from"])
        else:
            try:
                step = sla.cho_solve(sla.cho_factor(information), gradient)
            except sla.LinAlgError:
                raise Refused("some direction of the coefficients is not informed by any decision or by the prior") from None
            s["best"], s["from"] = np.array([height]), s["v"]
            s["v"] = s["v"] + basis @ step
            if gradient @ step < NEAR:
                self._propose((s["v"] - self.placed.mean) @ basis, sla.inv(information), round(SPARE * self.wanted))
                return
        if self.passes > STEPS:
            raise Refused(f"the mode was not found in {STEPS} passes")

    def _propose(self, centre: Floats, covariance: Floats, count: int) -> None:
        """Proposals from a Student distribution, and a pass to weigh them."""
        root, width = np.linalg.cholesky(0.5 * (covariance + covariance.T)), len(centre)
        z = self.rng.standard_normal((count, width)) * np.sqrt(DEGREES / self.rng.chisquare(DEGREES, count))[:, None]
        log_density = -0.5 * (DEGREES + width) * np.log1p((z**2).sum(axis=1) / DEGREES) - np.log(np.diag(root)).sum()
        values = self.placed.mean + (centre + z @ root.T) @ self.placed.basis.T
        self.state |= {
            "phase": np.array([WEIGH]), "proposals": np.ascontiguousarray(values), "log_density": log_density, "sum": np.zeros(count),
        }  # fmt: skip

    def _judge(self) -> None:
        """Weigh the proposals, together with earlier ones, and decide."""
        s = self.state
        weights = s["sum"] + self.placed.log_density(s["proposals"]) - s["log_density"]
        s["rounds"] = s["rounds"] + 1.0
        k, count = pareto_k(weights), effective_size(weights)
        if k < FAIR and count >= ENOUGH * self.wanted:
            s["log_weights"], s["phase"] = weights, np.array([DONE])
            return
        if s["rounds"][0] == ROUNDS or count < 10 * s["proposals"].shape[1]:
            raise Refused(
                f"the posterior is not close enough to normal: Pareto k {k:.2f} (should be below {FAIR}), {count:.0f} effective "
                f"draws of {self.wanted} wanted"
            )
        w = np.exp(weights - weights.max())
        q = (s["proposals"] - self.placed.mean) @ self.placed.basis
        centre = w @ q / w.sum()
        spread = (w[:, None] * (q - centre)).T @ (q - centre) / w.sum()
        more = min(4.0, 1.5 * self.wanted / count) if k < FAIR else 2.0
        self._propose(centre, spread, round(more * SPARE * self.wanted))

    def draws(self) -> tuple[Floats, dict[str, Floats], dict[str, Any]]:
        """(wanted, K) draws picked by their weights, what there is to know of each, and of all."""
        s = self.state
        w = np.exp(s["log_weights"] - s["log_weights"].max())
        w /= w.sum()
        picked = self.rng.permutation(systematic(self.rng, w, self.wanted))
        values, count = s["proposals"][picked], len(w)
        stats = {"log_weight": np.log(count * w[picked])}
        if self.placed.scale is not None:
            stats["prior_sd"] = draw_sizes(self.rng, self.placed, values)
        elif not self.placed.flat:
            stats["log_evidence"] = np.full(self.wanted, self._log_evidence())
        told = {
            "pareto_k": pareto_k(s["log_weights"]), "effective": effective_size(s["log_weights"]), "proposals": count,
            "passes": self.passes - 1, "decisions": self.shards.count,
        }  # fmt: skip
        return values, stats, told

    def _log_evidence(self) -> float:
        """The mean weight, with the constants of prior and proposals put in."""
        weights, width = self.state["log_weights"], len(self.placed.precision)
        prior = 0.5 * np.linalg.slogdet(self.placed.precision)[1] - 0.5 * width * np.log(2.0 * np.pi)
        student = (
            gammaln(0.5 * (DEGREES + width)) - gammaln(0.5 * DEGREES) - 0.5 * width * np.log(DEGREES * np.pi)
        )
        top = weights.max()
        return float(top + np.log(np.exp(weights - top).mean()) + prior - student)
