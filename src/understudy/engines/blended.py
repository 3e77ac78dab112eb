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

from dataclasses import astuple, dataclass, fields
from typing import Any

import numpy as np

from understudy._arrays import Floats
from understudy.decisions import Block, Decisions
from understudy.engines.adapt import (
    Proposal,
    effective,
    learn_proposal,
    no_mixture,
    path_round,
    plan,
    wander,
    within_reach,
)
from understudy.engines.ahead import compile_elsewhere
from understudy.engines.augmented import Augmented, Options, widest
from understudy.engines.base import State, Stats
from understudy.engines.chart import Chart, chart_target
from understudy.engines.labour import Labour
from understudy.engines.tally import Tally, tally
from understudy.kernels._jit import compile_for
from understudy.kernels.blend import Latent, Map, Round, blend, from_value, sweep, to_value
from understudy.kernels.expansion import Scratch
from understudy.kernels.interweave import Weave
from understudy.kernels.mixture import Mixture, draw, log_density, refine
from understudy.kernels.size import Size
from understudy.kernels.target import Target, Work, make_work
from understudy.likelihood import posterior_mode, with_likely_size
from understudy.priors import Gaussian, Placed, place

FEW = 12  # coefficients up to which a mixture is tried
MIXTURES = 4  # random directions of interweaving a sweep
BRIEF = 100  # a warm-up shorter than this learns nothing
SHARES = (1.0, 2.0, 1.0, 0.3, 0.3, 0.3)  # of a fifth of the warm-up: what each stage but the last is said to have done
WOVEN = 30_000_000  # numbers that interweaving may hold for its directions, 240 MB; beyond, there are no sweeps
LEAPS = 5  # leaps are cheap: they are tried for so many parts
WORTH, MOST = 0.3, 50  # a kept draw takes as many moves as make it worth about this many independent ones, up to MOST
LESS = 0.1  # the same with many coefficients, where keeping a draw costs nothing beside a path
POWER = 0.5  # how far the metric goes from mean curvature, 0, to covariance, 1
SWEEPS, LEAPING = Round(0, 1, 0, 0.1, 1, 1, 1), Round(0, 0, 1, 0.1, 1, 1, 1)


@dataclass(frozen=True, eq=False)
class Blended:
    """The engine, ready to run on one set of decisions under one prior."""

    decisions: Decisions
    placed: Placed
    given: Placed  # the same, with a likely size if that is learnt
    counted: Tally
    mode: Floats
    information: Floats
    inner: Augmented
    whole: bool  # whether every decision counts in full

    @property
    def name(self) -> str:
        """What users call it."""
        return "blended"

    @staticmethod
    def build(decisions: Decisions, placed: Placed, weight: Floats | None = None) -> Blended:
        """Count what is equal, and find the mode. Weight (T,) counts decisions in parts, for which there are no sweeps."""
        compile_elsewhere(__name__, compile_late_loops.__name__, "blend.sweep")
        counted = tally(decisions, weight)
        given = with_likely_size(counted.unique, placed, counted.offers.weight)
        mode, information = posterior_mode(counted.unique, given, counted.offers.weight)
        inner = Augmented.build(widest(decisions, placed), decisions, placed, Options())
        return Blended(decisions, placed, given, counted, mode, information, inner, weight is None)

    def start(self, rng: np.random.Generator, init: Floats | None) -> State:
        """At `init`, or at a draw from twice the normal approximation at the mode; not warmed up, it takes safe steps."""
        chart = Chart.of(self.placed, self.mode, self.information)
        width = len(self.information)
        x = np.sqrt(2.0) * rng.standard_normal(width) if init is None else chart.coordinates(init)
        state = {"x": x, "gradient": np.zeros(width), "lead": np.zeros(len(self.decisions)), "stage": np.zeros(2)}
        untuned = SWEEPS if self.weaves else path_round(0.1)
        return state | _frozen(chart, chart.turn, no_mixture(width), untuned)

    def warm(self, rng: np.random.Generator, state: State, left: int, piece: int) -> tuple[State, int]:
        """Learn coordinates, step length, proposal and round: a stage at a time, and as many stages as `piece` has room for.

        What a stage leaves to the next stands in the state under "warm/", and goes when the last one is over.
        """
        stage, part = (int(number) for number in state["stage"])
        if stage == 0 and left < BRIEF:
            return self.advance(rng, state, 1, left)[0], left
        stages = (
            self._look_around, self._find_coordinates, self._find_step, self._try_paths, self._try_sweeps, self._try_leaps,
            self._choose_round,
        )  # fmt: skip
        part, made = part or left // 5, 0
        while made < min(piece, left):
            state = stages[stage](rng, state, part)
            made = left if stage == len(SHARES) else made + int(SHARES[stage] * part)
            stage += 1
            state["stage"] = np.array([stage, part], dtype=np.float64)
        return state, made

    def _look_around(self, rng: np.random.Generator, state: State, part: int) -> State:
        """One part of Hamiltonian moves in the coordinates of the normal approximation at the mode."""
        laplace = _chart(state)
        target, work = self.posterior(laplace)
        _, draws = wander(rng, target, work, 0.3, within_reach(target, work, state["x"]), part)
        return state | {"warm/known": laplace.value(draws[part // 4 :])}

    def _find_coordinates(self, rng: np.random.Generator, state: State, part: int) -> State:
        """Two parts in coordinates with the mean curvature over these draws as their unit, bent to fit them; bent again to the later
        draws, and stretched some of the way to their covariance.
        """
        values = state["warm/known"]
        flat = self.flattened(rng, values)
        target, work = self.posterior(flat)
        _, draws = wander(rng, target, work, 0.5, flat.coordinates(values[-1]), 2 * part)
        values = flat.value(draws[part // 4 :])
        flat = self.flattened(rng, values)
        draws = flat.coordinates(values)
        chart, directions = flat.stretched(draws, POWER), self.directions(flat.stretched(draws, 1.0))
        x = chart.coordinates(flat.value(draws[-1]))
        found = _frozen(chart, directions, no_mixture(len(x)), path_round(0.1))
        return state | found | {"x": x, "gradient": np.zeros_like(x), "warm/known": flat.value(draws)}

    def _find_step(self, rng: np.random.Generator, state: State, part: int) -> State:
        """One part in these coordinates finds the step; from here on, draws of v are counted against their labour."""
        chart = _chart(state)
        target, work = self.posterior(chart)
        step, draws = wander(rng, target, work, 0.5, state["x"], part)
        x = draws[-1].copy()
        return state | {
            "x": x,
            "warm/known": np.concatenate([state["warm/known"], chart.value(draws)]),
            "warm/paths": np.array(path_round(step), dtype=np.float64),
            "warm/labour": np.array(astuple(Labour.of(target, work, x, self.decisions.rows.shape[0]))),
            "warm/rates": np.zeros(3),  # effective draws for a unit of labour, by paths, sweeps and leaps
        }

    def _try_paths(self, rng: np.random.Generator, state: State, part: int) -> State:
        """One part of paths alone."""
        paths, labour, rates = _learnt(state)
        new, draws = self._tried(rng, state, paths, no_mixture(labour.width), part)
        rates[0] = effective(draws) / part / labour.path(paths)
        return new | {"warm/rates": rates, "warm/known": np.concatenate([state["warm/known"], draws])}

    def _try_sweeps(self, rng: np.random.Generator, state: State, part: int) -> State:
        """Sweeps alone, for no more labour than paths."""
        if not self.weaves:
            return dict(state)
        paths, labour, rates = _learnt(state)
        count = int(np.clip(part * labour.path(paths) / labour.sweep, min(part, BRIEF), part))
        new, draws = self._tried(rng, state, SWEEPS, no_mixture(labour.width), count)
        rates[1] = effective(draws) / count / labour.sweep
        return new | {"warm/rates": rates, "warm/known": np.concatenate([state["warm/known"], draws])}

    def _try_leaps(self, rng: np.random.Generator, state: State, part: int) -> State:
        """With few coefficients, a mixture is fitted to all draws so far, and if it is of use, leaps alone are tried."""
        if not self.few:
            return dict(state)
        chart, (_, labour, rates) = _chart(state), _learnt(state)
        target, work = self.posterior(chart)
        proposal = learn_proposal(rng, target, work, chart.coordinates(state["warm/known"]), 500 * (1 + labour.width))
        new = state | {f"warm/{name}": each for name, each in proposal.mixture._asdict().items()}
        new["warm/fit"] = np.array([proposal.efficiency, proposal.k])
        if not proposal.usable:
            return new
        new, draws = self._tried(rng, new, LEAPING, proposal.mixture, LEAPS * part)
        rates[2] = effective(draws) / len(draws) / labour.leap(proposal.mixture)
        return new | {"warm/rates": rates}

    def _choose_round(self, rng: np.random.Generator, state: State, part: int) -> State:
        """The round, and how many of its moves make a draw; then all is frozen."""
        paths, labour, rates = _learnt(state)
        proposal = None
        if "warm/fit" in state:
            proposal = Proposal(
                Mixture(*(state[f"warm/{name}"] for name in Mixture._fields)), *state["warm/fit"].tolist()
            )
        by_path, by_sweep, by_leap = rates.tolist()
        mixture, round = plan(by_path, by_sweep, by_leap, proposal, paths, labour)
        new, draws = self._tried(rng, state, round, mixture, LEAPS * part if round.leaps else part)
        worth = WORTH if self.few or self.placed.scale is not None else LESS
        moves = int(np.clip(worth * len(draws) / effective(draws), 1, MOST))
        if moves == MOST and self.weaves:  # whatever was learnt is no good: the move that needs no learning
            round, mixture = SWEEPS, no_mixture(labour.width)
        kept = {name: each for name, each in new.items() if not name.startswith("warm/")}
        return kept | _frozen(_chart(state), state["directions"], mixture, round._replace(moves=moves))

    def _tried(
        self, rng: np.random.Generator, state: State, round: Round, mixture: Mixture, count: int
    ) -> tuple[State, Floats]:
        """So many draws by a round of one's choosing."""
        tuned = state | _frozen(_chart(state), state["directions"], mixture, round)
        new, draws, _ = self.advance(rng, tuned, count, 1)
        return new, draws

    def flattened(self, rng: np.random.Generator, values: Floats) -> Chart:
        """Coordinates in which the curvature of the log posterior, averaged over some draws of v, is the identity.

        Bent ones let the constants of centred blocks loose. With few coefficients that dimension costs leaps more than
        bending gains them. A prior that ties neighbours together, such as a smooth curve's, forbids bending each by itself.
        """
        points = 4 + min(values.shape[1], 28)
        if (self.few and self.placed.constants.size) or self.given.tied:
            return Chart.flat(self.counted, self.given, values, points)
        return Chart.curved(self.counted, self.given, self.given.loosened(rng, values), points)

    def directions(self, chart: Chart) -> Floats:
        """(K, D) directions in which v moves when the coordinates do."""
        along = chart.slope[:, None] * chart.turn
        return along - self.placed.constants @ (self.placed.constants.T @ along)

    def advance(self, rng: np.random.Generator, state: State, draws: int, thin: int) -> tuple[State, Floats, Stats]:
        """Go on for draws * thin moves of the round."""
        new = state | {name: state[name].copy() for name in ("x", "gradient", "carried", "lead")}
        chart, round = _chart(state), _round(state["round"])
        target, work = self.posterior(chart)
        mixture = Mixture(*(state[f"mixture/{name}"] for name in Mixture._fields))
        out, accepted, sizes = np.empty((draws, len(chart.centre))), np.empty(draws), np.empty(draws)
        blend(
            rng, target, work, engine_map(chart, self.placed), round, mixture,
            latent_of(self.inner, state["directions"], round.sweeps > 0), self.size(len(new["x"])), thin,
            new["x"], new["gradient"], new["carried"], new["lead"], out, accepted, sizes,
        )  # fmt: skip
        return new, out, {"acceptance": accepted} | ({} if self.placed.scale is None else {"prior_sd": sizes})

    @property
    def few(self) -> bool:
        """Whether there are few enough coefficients for a mixture."""
        return len(self.information) <= FEW

    @property
    def weaves(self) -> bool:
        """Whether sweeps are possible, and there is room for them."""
        return self.whole and bool(self.decisions.rows.shape[0] * len(self.information) <= WOVEN)

    def posterior(self, chart: Chart) -> tuple[Target, Work]:
        """The log posterior in these coordinates, and room to work it out."""
        target = chart_target(self.counted, self.placed, self.given, chart)
        return target, make_work(target)

    def size(self, width: int) -> Size | None:
        """What learning the prior's size needs in so many coordinates: in curved ones, the constants' are among them."""
        return None if self.inner.size is None else self.inner.size._replace(width=width)


_ROUND = (int, int, int, float, int, int, int)
PARTS = [field.name for field in fields(Chart)]


def _chart(state: State) -> Chart:
    return Chart(*(state[f"chart/{name}"] for name in PARTS))


def _round(numbers: Floats) -> Round:
    return Round(*(kind(number) for kind, number in zip(_ROUND, numbers, strict=True)))


def _learnt(state: State) -> tuple[Round, Labour, Floats]:
    """What warm-up has found so far: the round of paths, what moves cost, and a copy of the rates."""
    value, sweep, width = state["warm/labour"].tolist()
    return _round(state["warm/paths"]), Labour(value, sweep, int(width)), state["warm/rates"].copy()


def engine_map(chart: Chart, placed: Placed) -> Map:
    """The chart as the moves need it."""
    return Map(chart.centre, chart.slope, chart.bend, chart.turn, chart.back, placed.constants)


def _frozen(chart: Chart, directions: Floats, mixture: Mixture, round: Round) -> State:
    """What warm-up has learnt, as plain arrays; what was carried along is of no more use."""
    return (
        {"directions": directions, "round": np.array(round, dtype=np.float64), "carried": np.zeros(5)}
        | {f"chart/{name}": getattr(chart, name) for name in PARTS}
        | {f"mixture/{name}": part for name, part in mixture._asdict().items()}
    )


def latent_of(inner: Augmented, directions: Floats, used: bool) -> Latent:
    """What sweeps need, along directions (K, D); next to nothing where there are none."""
    d, placed = inner.decisions, inner.placed
    if not used:
        directions = directions[:, :1]
    count, values, rows = directions.shape[1], directions.shape[0], d.rows.shape[0]
    heavy = placed.basis @ (placed.precision @ (placed.basis.T @ directions))
    weave = Weave(
        factor=np.ascontiguousarray(directions.T),
        pull=np.ascontiguousarray(heavy.T),
        centre=placed.mean,
        margins=margins_along(directions, d) if used else np.zeros((1, 0)),
        mixtures=MIXTURES,
    )
    scratch = Scratch(np.empty(values), np.empty(inner.move.factor.shape[1]), np.empty(values))
    return Latent(
        inner.design, d.start, d.taken, inner.own_move(), weave, scratch, np.empty(rows), np.empty(rows),
        inner.near(), np.empty(count), np.empty(values), np.empty(values), np.empty(rows),
    )  # fmt: skip


def margins_along(factor: Floats, decisions: Decisions) -> Floats:
    """(D, P) by how much each row falls behind the chosen one when v moves along each column of factor (K, D)."""
    turned = decisions.rows @ factor
    return np.ascontiguousarray((np.repeat(turned[decisions.taken], decisions.sizes, axis=0) - turned).T)


def compile_late_loops() -> None:
    """Compile what a first fit needs last, sweeps and the fitting of mixtures: for `compile_elsewhere`."""
    for loop, arguments in late_loops():
        compile_for(loop, arguments)


def late_loops() -> list[tuple[Any, tuple[Any, ...]]]:
    """The loops, each with arguments of the types that a fit gives it."""
    decisions = Decisions(np.eye(2), [0, 2], [0], blocks=[Block("value", 2, True)])
    inner = Augmented.build("px-both", decisions, place(Gaussian(1.0), decisions), Options())
    rng, one, square = np.random.default_rng(0), np.ones(1), np.ones((1, 1))
    latent, mixture = latent_of(inner, inner.placed.basis, True), no_mixture(1)
    map = engine_map(Chart.of(inner.placed, inner.placed.mean, square), inner.placed)
    return [
        (sweep, (rng, latent, None, one, one, one)),
        (to_value, (map, one, one, one)),
        (from_value, (map, one, one, one)),
        (draw, (rng, mixture, one, one)),
        (log_density, (mixture, one, one)),
        (refine, (square, one, one, square, np.ones((1, 1, 1)), 1.0, 1)),
    ]
