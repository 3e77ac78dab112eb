"""The default engine: several ways to move through the same posterior, and a warm-up that learns how to share the work.

    paths    Hamiltonian moves on the likelihood itself, without utilities: for many coefficients, sharply known
    sweeps   data augmentation with every expansion, interwoven with the value given the noise: for loosely known ones
    leaps    independence steps from a mixture fitted to the posterior: for up to a dozen coefficients

All three are exact for the same posterior, so any fixed round of them is. Warm-up finds coordinates in which the
posterior is about as wide in every direction, learns step length and mixture, and counts what an effective draw costs by
each; then it fixes the round, and nothing is learnt any more. A mixture that fits badly is told by its largest
importance weights (Pareto k) and not used; one that is used never works alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from understudy._arrays import Floats
from understudy.decisions import Decisions
from understudy.engines.adapt import effective, learn_proposal, no_mixture, path_round, plan, wander, within_reach
from understudy.engines.augmented import Augmented, Options, widest
from understudy.engines.base import State, Stats
from understudy.engines.chart import Chart, chart_target
from understudy.engines.labour import Labour
from understudy.engines.tally import Tally, tally
from understudy.kernels.blend import Latent, Map, Round, blend
from understudy.kernels.expansion import Scratch
from understudy.kernels.interweave import Weave
from understudy.kernels.mixture import Mixture
from understudy.kernels.target import Target, Work, make_work
from understudy.likelihood import information_at, posterior_mode
from understudy.priors import Placed

FEW = 12  # coefficients up to which a mixture is tried
MIXTURES = 4  # random directions of interweaving a sweep
BRIEF = 100  # a warm-up shorter than this learns nothing
WOVEN = 30_000_000  # numbers that interweaving may hold for its directions, 240 MB; beyond, there are no sweeps
LEAPS = 5  # leaps are cheap: they are tried for so many parts
WORTH, MOST = 0.3, 50  # a kept draw takes as many moves as make it worth about this many independent ones, up to MOST
POWER = 0.75  # how far the metric goes from mean curvature, 0, to covariance, 1


@dataclass(frozen=True, eq=False)
class Blended:
    """The engine, ready to run on one set of decisions under one prior."""

    decisions: Decisions
    placed: Placed
    counted: Tally
    mode: Floats
    information: Floats
    inner: Augmented

    @property
    def name(self) -> str:
        """What users call it."""
        return "blended"

    @staticmethod
    def build(decisions: Decisions, placed: Placed) -> Blended:
        """Count what is equal, and find the mode."""
        counted = tally(decisions)
        mode, information = posterior_mode(counted.unique, placed, counted.offers.weight)
        inner = Augmented.build(widest(decisions, placed), decisions, placed, Options())
        return Blended(decisions, placed, counted, mode, information, inner)

    def start(self, rng: np.random.Generator, init: Floats | None) -> State:
        """At `init`, or at a draw from twice the normal approximation at the mode; not warmed up, it takes safe steps."""
        chart = Chart.of(self.placed, self.mode, self.information)
        width = len(self.information)
        x = np.sqrt(2.0) * rng.standard_normal(width) if init is None else chart.coordinates(init)
        state = {"x": x, "gradient": np.zeros(width), "carried": np.zeros(5), "lead": np.zeros(len(self.decisions))}
        untuned = Round(0, 1, 0, 0.1, 1, 1, 1) if self.weaves else path_round(0.1)
        return state | _frozen(chart, chart, no_mixture(width), untuned)

    def warm(self, rng: np.random.Generator, state: State, left: int, piece: int) -> tuple[State, int]:
        """Learn coordinates, step length, proposal and round, all at once."""
        if left < BRIEF:
            return self.advance(rng, state, 1, left)[0], left
        return self._learn(rng, state, left // 5), left

    def _learn(self, rng: np.random.Generator, state: State, part: int) -> State:
        """Three parts of warm-up find coordinates, one or two the step in them; one each tries paths and sweeps."""
        laplace = _chart(state)
        first = self._posterior(laplace)
        _, draws = wander(rng, *first, 0.3, within_reach(*first, state["x"]), part)
        flat = self._flattened(laplace, draws[part // 4 :])
        _, draws = wander(rng, *self._posterior(flat), 0.5, flat.coordinates(laplace.value(draws[-1])), 2 * part)
        draws = draws[part // 4 :]
        for _ in range(1 if draws.shape[1] <= FEW else 2):  # a covariance of many coefficients wants more draws
            chart, wide = flat.stretched(draws, POWER), flat.stretched(draws, 1.0)
            target, work = self._posterior(chart)
            step, more = wander(rng, target, work, 0.5, chart.coordinates(flat.value(draws[-1])), part)
            draws = np.concatenate([draws, [flat.coordinates(v) for v in chart.value(more)]])
        paths = path_round(step)
        known = [chart.coordinates(v) for v in flat.value(draws)]
        x = more[-1]
        labour = Labour.of(target, work, x, self.decisions.rows.shape[0])

        new = state | {"x": x, "carried": np.zeros(5)} | _frozen(chart, wide, no_mixture(len(x)), paths)
        new, tried, _ = self.advance(rng, new, part, 1)
        by_path, by_sweep = effective(tried) / part / labour.path(paths), 0.0
        known += [chart.coordinates(v) for v in tried]
        if self.weaves:
            new |= _frozen(chart, wide, no_mixture(len(x)), Round(0, 1, 0, 0.1, 1, 1, 1)) | {"carried": np.zeros(5)}
            new, tried, _ = self.advance(rng, new, part, 1)
            by_sweep = effective(tried) / part / labour.sweep
            known += [chart.coordinates(v) for v in tried]
        proposal, by_leap = None, 0.0
        if len(x) <= FEW:
            proposal = learn_proposal(rng, target, work, np.array(known), 500 * (1 + len(x)))
            if proposal.usable:
                leaping = Round(0, 0, 1, 0.1, 1, 1, 1)
                new |= _frozen(chart, wide, proposal.mixture, leaping) | {"carried": np.zeros(5)}
                new, tried, _ = self.advance(rng, new, LEAPS * part, 1)
                by_leap = effective(tried) / len(tried) / labour.leap(proposal.mixture)
        mixture, round = plan(by_path, by_sweep, by_leap, proposal, paths, labour)
        new |= _frozen(chart, wide, mixture, round) | {"carried": np.zeros(5)}
        new, tried, _ = self.advance(rng, new, LEAPS * part if round.leaps else part, 1)
        moves = int(np.clip(WORTH * len(tried) / effective(tried), 1, MOST))
        if moves == MOST and self.weaves:  # whatever was learnt is no good: the move that needs no learning
            round, mixture = Round(0, 1, 0, 0.1, 1, 1, MOST), no_mixture(len(x))
            new |= {"carried": np.zeros(5)}
        return new | _frozen(chart, wide, mixture, round._replace(moves=moves))

    def advance(self, rng: np.random.Generator, state: State, draws: int, thin: int) -> tuple[State, Floats, Stats]:
        """Go on for draws * thin moves of the round."""
        new = state | {name: state[name].copy() for name in ("x", "gradient", "carried", "lead")}
        chart, round = _chart(state), Round(*(t(n) for t, n in zip(_ROUND, state["round"], strict=True)))
        target, work = self._posterior(chart)
        mixture = Mixture(*(state[f"mixture/{name}"] for name in Mixture._fields))
        out, accepted = np.empty((draws, len(chart.centre))), np.empty(draws)
        blend(
            rng, target, work, Map(chart.centre, chart.turn, chart.back), round, mixture,
            self._latent(state["directions"], round.sweeps > 0), thin,
            new["x"], new["gradient"], new["carried"], new["lead"], out, accepted,
        )  # fmt: skip
        return new, out, {"acceptance": accepted}

    @property
    def weaves(self) -> bool:
        """Whether there is room for sweeps."""
        return bool(self.decisions.rows.shape[0] * len(self.information) <= WOVEN)

    def _posterior(self, chart: Chart) -> tuple[Target, Work]:
        target = chart_target(self.counted, self.placed, chart)
        return target, make_work(target)

    def _flattened(self, chart: Chart, draws: Floats) -> Chart:
        """Coordinates in which the curvature of the log posterior, averaged over draws, is the identity."""
        some = draws[:: max(1, len(draws) // (4 + min(draws.shape[1], 28)))]
        weight = self.counted.offers.weight
        curvature = np.mean([information_at(self.counted.unique, self.placed, chart.value(x), weight) for x in some], 0)
        return Chart.of(self.placed, chart.value(draws.mean(axis=0)), curvature)

    def _latent(self, directions: Floats, used: bool) -> Latent:
        """What sweeps need, along directions (K, D); next to nothing where there are none."""
        d, inner = self.decisions, self.inner
        if not used:
            directions = directions[:, :1]
        count, width, rows = directions.shape[1], directions.shape[0], d.rows.shape[0]
        heavy = self.placed.basis @ (self.placed.precision @ (self.placed.basis.T @ directions))
        weave = Weave(
            factor=np.ascontiguousarray(directions.T),
            pull=np.ascontiguousarray(heavy.T),
            centre=self.placed.mean,
            margins=margins_along(directions, d) if used else np.zeros((1, 0)),
            mixtures=MIXTURES,
        )
        scratch = Scratch(np.empty(width), np.empty(inner.move.factor.shape[1]), np.empty(width))
        return Latent(
            inner.design, d.start, d.taken, inner.move, weave, scratch, np.empty(rows), np.empty(rows), inner.near(),
            np.empty(count), np.empty(width), np.empty(width), np.empty(rows),
        )  # fmt: skip


_ROUND = (int, int, int, float, int, int, int)


def _chart(state: State) -> Chart:
    return Chart(state["centre"], state["turn"], state["back"])


def _frozen(chart: Chart, wide: Chart, mixture: Mixture, round: Round) -> State:
    """What warm-up has learnt, as plain arrays."""
    return {
        "centre": chart.centre, "turn": chart.turn, "back": chart.back, "directions": wide.turn,
        "round": np.array(round, dtype=np.float64),
    } | {f"mixture/{name}": part for name, part in mixture._asdict().items()}  # fmt: skip


def margins_along(factor: Floats, decisions: Decisions) -> Floats:
    """(D, P) by how much each row falls behind the chosen one when v moves along each column of factor (K, D)."""
    turned = decisions.rows @ factor
    return np.ascontiguousarray((np.repeat(turned[decisions.taken], decisions.sizes, axis=0) - turned).T)
