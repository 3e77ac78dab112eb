"""The engine for very many decisions: a few passes over them, and an answer that says whether it can be trusted.

Newton's method finds the mode, a pass a step. Proposals come from a Student distribution with the mode's curvature, and one further pass finds the log
posterior at all of them. Their importance weights tell how good the approximation is: with a small Pareto k the weighted
proposals are as good as draws of the posterior, and the answer is certified; otherwise there are more proposals, from the
mean and covariance that the weights suggest, or the answer is refused.

Everything done so far is in a state of plain arrays, which is replaced whole after every piece of a pass: it can be written down and picked
up again at any moment. Random numbers come from generators of their own for every round of proposals.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.linalg as sla
from scipy.special import gammaln

from understudy._arrays import Floats
from understudy.engines.base import State
from understudy.engines.passes import Labourers, heights, prepare, slopes
from understudy.engines.sequential import draw_sizes, effective_size, systematic
from understudy.likelihood import posterior_mode, with_likely_size
from understudy.pareto import pareto_k
from understudy.priors import Placed
from understudy.shards import Shards

SOME = 4096  # decisions that show where to begin
STEPS = 30  # of Newton's method, at most; three or four are usual
NEAR = 0.05  # what a Newton step promises to gain in log posterior, below which it is the last
DEGREES = 10.0  # of the Student distribution, or twice as many as there are coordinates: beyond, its radius is far from the normal's
SPARE = 1.15  # proposals for each draw that is wanted
FAIR = 0.3  # Pareto k that is certified: below 1/2 weights have a variance, and squares, which make the sds, want it smaller still
ROUNDS = 3  # of proposals
ENOUGH = 0.8  # effective draws, as a share of those wanted
WEAK = 1e-4  # the precision that stands in for a flat prior while looking for a beginning
NEWTON_COST = 40.0  # a step of Newton's method costs as much as so many proposals

NEWTON, WEIGH, DONE = 0.0, 1.0, 2.0


class Refused(ValueError):
    """The approximation does not fit this posterior."""


@dataclass
class Laplace:
    """The engine at work on some pieces of decisions under one prior, for so many draws.

    state: the phase; v, where Newton's method looks, or the proposals; piece, how many pieces of the present pass are summed; passes and
    rounds, how many are done; and what steps and proposals came from.
    """

    shards: Shards
    labourers: Labourers
    placed: Placed
    wanted: int
    seed: int
    state: State = field(default_factory=dict)

    @property
    def degrees(self) -> float:
        """Of the Student distribution that proposals come from."""
        return max(DEGREES, 2.0 * len(self.placed.precision))

    @property
    def share(self) -> float:
        """About how much of the work is done, if Newton's method needs four passes and one round of proposals is enough."""
        if not self.state:
            return 0.0
        s, newton, weigh = self.state, 4.0 * NEWTON_COST, SPARE * self.wanted
        part = float(s["piece"][0]) / len(self.shards)
        if s["phase"][0] == NEWTON:
            return float(min(s["passes"][0] + part, 4.0) * NEWTON_COST / (newton + weigh))
        return float((newton + part * weigh) / (newton + weigh))

    def go(self) -> Iterator[float]:
        """Work, piece by piece, to the end; yields the share of work done. Raises Refused."""
        if not self.state:
            self.state = self._start()
        while self.state["phase"][0] == NEWTON:
            yield from self._pass(slopes, self.state["v"])
            self.state = self._climb()
        while self.state["phase"][0] == WEIGH:
            yield from self._pass(heights, self.state["new"])
            self.state = self._judge()

    def _generator(self, purpose: int) -> np.random.Generator:
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence(self.seed, spawn_key=(purpose,))))

    def _start(self) -> State:
        """At the mode of the first few decisions, under a prior of a likely size where that is learnt."""
        decisions, weights = self.shards.load(0)
        block = prepare(decisions[:SOME], weights[:SOME])[0]
        given = with_likely_size(block.unique, self.placed, block.offers.weight)
        weak = given.precision if not given.flat else WEAK * np.eye(len(given.precision))
        v, _ = posterior_mode(block.unique, replace(given, flat=False, precision=weak), block.offers.weight)
        return {
            "phase": np.array([NEWTON]), "piece": np.zeros(1), "passes": np.zeros(1), "rounds": np.zeros(1), "v": v,
            "sum": np.zeros((len(v) + 1, len(v) + 1)), "best": np.full(1, -np.inf), "from": v, "precision": given.precision,
        }  # fmt: skip

    def _pass(self, function: Any, v: Floats) -> Iterator[float]:
        """Add up a function of every piece, from the first that has not been added."""
        for part in self.labourers.each(function, v, first=int(self.state["piece"][0])):
            s = self.state
            self.state = {**s, "sum": s["sum"] + part, "piece": s["piece"] + 1.0}
            yield self.share

    def _climb(self) -> State:
        """A Newton step, or half of the last one where it went too far; after the last, proposals."""
        s, basis = self.state, self.placed.basis
        q = (s["v"] - self.placed.mean) @ basis
        pull = s["precision"] @ q
        height = float(s["sum"][0, 0] - 0.5 * q @ pull)
        gradient = basis.T @ s["sum"][0, 1:] - pull
        information = basis.T @ s["sum"][1:, 1:] @ basis + s["precision"]
        new = {**s, "sum": np.zeros_like(s["sum"]), "piece": np.zeros(1), "passes": s["passes"] + 1.0}
        if new["passes"][0] > STEPS:
            raise Refused(f"the mode was not found in {STEPS} passes")
        if height < s["best"][0] - 1e-6 * abs(height):
            return {**new, "v": 0.5 * (s["v"] + s["from"])}
        try:
            step = sla.cho_solve(sla.cho_factor(information), gradient)
        except sla.LinAlgError:
            raise Refused(
                "some direction of the coefficients is informed by no decision and not by the prior"
            ) from None
        if gradient @ step < NEAR:
            root = np.linalg.cholesky(sla.inv(information))
            return self._propose(new, q + step, root, round(SPARE * self.wanted))
        return {**new, "best": np.array([height]), "from": s["v"], "v": s["v"] + basis @ step}

    def _propose(self, new: State, centre: Floats, root: Floats, count: int, earlier: int = 0) -> State:
        """Proposals from a Student distribution, and a pass to weigh them, beside earlier ones that are weighed already."""
        rng, width = self._generator(1 + int(new["rounds"][0])), len(centre)
        z = rng.standard_normal((count, width)) * np.sqrt(self.degrees / rng.chisquare(self.degrees, count))[:, None]
        values = self.placed.mean + (centre + z @ root.T) @ self.placed.basis.T
        if not earlier:
            new = {**new, "proposals": np.zeros((0, values.shape[1])), "log_weights": np.zeros(0)}
        return {
            **new, "phase": np.array([WEIGH]), "centre": centre, "root": root, "new": np.ascontiguousarray(values),
            "log_density": -0.5 * (self.degrees + width) * np.log1p((z**2).sum(axis=1) / self.degrees) - np.log(np.diag(root)).sum(),
            "sum": np.zeros(count),
        }  # fmt: skip

    def _judge(self) -> State:
        """Weigh the proposals, and decide: they will do, there must be more, there must be others, or nothing can be said."""
        s = self.state
        log_weights = s["sum"] + self.placed.log_density(s["new"]) - s["log_density"]
        new = {
            **s, "piece": np.zeros(1), "passes": s["passes"] + 1.0, "rounds": s["rounds"] + 1.0,
            "proposals": np.concatenate([s["proposals"], s["new"]]), "log_weights": np.concatenate([s["log_weights"], log_weights]),
        }  # fmt: skip
        k, count, made = pareto_k(new["log_weights"]), effective_size(new["log_weights"]), len(new["log_weights"])
        if k < FAIR and count >= ENOUGH * self.wanted:
            return {**new, "phase": np.array([DONE])}
        if new["rounds"][0] == ROUNDS or (k >= FAIR and count < 10 * s["new"].shape[1]):
            raise Refused(
                f"the posterior is not close enough to normal: Pareto k {k:.2f} (should be below {FAIR}), {count:.0f} effective "
                f"draws of {self.wanted} wanted"
            )
        if k < FAIR:
            more = min(1.1 * made * self.wanted / count, 5.0 * made) - made
            return self._propose(new, s["centre"], s["root"], max(round(more), 100), made)
        w = np.exp(new["log_weights"] - new["log_weights"].max())
        q = (new["proposals"] - self.placed.mean) @ self.placed.basis
        centre = w @ q / w.sum()
        spread = (w[:, None] * (q - centre)).T @ (q - centre) / w.sum()
        return self._propose(new, centre, np.linalg.cholesky(spread), 2 * round(SPARE * self.wanted))

    def draws(self) -> tuple[Floats, dict[str, Floats], dict[str, Any]]:
        """(wanted, K) draws picked by their weights, what there is to know of each, and of all."""
        s, rng = self.state, self._generator(0)
        w = np.exp(s["log_weights"] - s["log_weights"].max())
        w /= w.sum()
        picked = rng.permutation(systematic(rng, w, self.wanted))
        values, count = s["proposals"][picked], len(w)
        stats = {"log_weight": np.log(count * w[picked])}
        if self.placed.scale is not None:
            stats["prior_sd"] = draw_sizes(rng, self.placed, values)
        elif not self.placed.flat:
            stats["log_evidence"] = np.full(self.wanted, self._log_evidence())
        told = {
            "pareto_k": pareto_k(s["log_weights"]), "effective": effective_size(s["log_weights"]), "proposals": count,
            "passes": int(s["passes"][0]), "decisions": self.shards.count,
        }  # fmt: skip
        return values, stats, told

    def _log_evidence(self) -> float:
        """The mean weight, with the constants of prior and proposals put in."""
        weights, width, degrees = self.state["log_weights"], len(self.placed.precision), self.degrees
        prior = 0.5 * np.linalg.slogdet(self.placed.precision)[1] - 0.5 * width * np.log(2.0 * np.pi)
        student = gammaln(0.5 * (degrees + width)) - gammaln(0.5 * degrees) - 0.5 * width * np.log(degrees * np.pi)
        top = weights.max()
        return float(top + np.log(np.exp(weights - top).mean()) + prior - student)
