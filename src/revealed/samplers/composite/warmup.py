"""The composite sampler's warm-up: seven steps, each of which leaves what it found in the state.

    explore            Hamiltonian moves in the coordinates of the normal approximation at the mode
    adapt_transform    whitened coordinates, from the curvature and covariance of these draws
    adapt_paths        the step size of Hamiltonian paths in them, and what moves cost
    try_hmc            effective draws per cost by Hamiltonian moves alone
    try_augmentation   the same by sweeps of data augmentation alone
    try_independence   a mixture fitted to all draws so far, and the same by independence steps
    fix_cycle          the cycle, and how many of its moves make a draw; nothing is adapted after

All decisions are made by counting (draws, rows, evaluations), never by a clock, so that the same
seed adapts the same. The draws made meanwhile are thrown away.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass
from typing import NamedTuple, Protocol

import numpy as np

from revealed._types import Floats
from revealed.data.decisions import Decisions
from revealed.kernels.composite import CompositeProblem, Cycle
from revealed.kernels.independence import Mixture
from revealed.kernels.prior_scale import PriorScale
from revealed.models.priors import ResolvedPrior
from revealed.samplers.base import Draws, State, Stats
from revealed.samplers.composite.cost import CostModel
from revealed.samplers.composite.cycle import (
    AUGMENTATION_ONLY,
    INDEPENDENCE_ONLY,
    EssPerCost,
    adapt_step_size,
    choose_cycle,
    hmc_only_cycle,
    min_ess,
    pull_towards_mode,
)
from revealed.samplers.composite.proposal import Proposal, fit_proposal, null_mixture
from revealed.samplers.composite.state import (
    pack,
    pack_mixture,
    tuning_state,
    unpack,
    unpack_mixture,
    unpack_transform,
)
from revealed.samplers.composite.transform import WhiteningTransform


@dataclass(frozen=True)
class WarmupPlan:
    """How the warm-up's iterations are spent, and what it aims at."""

    # A shorter warm-up adapts nothing and only moves away from where it began.
    min_iterations: int = 100
    # Into how many windows the warm-up is cut; a step takes one, two, or part of one.
    windows: int = 5
    # Of a window, one in so many draws at its beginning is not used: the chain is on its way.
    discarded: int = 4
    # Independence steps are cheap, so they are tried for so many windows.
    independence_windows: int = 5
    # Importance draws in each round of fitting a mixture, and as many again per coordinate.
    draws_per_coordinate: int = 500
    # The metric of Hamiltonian paths is the mean curvature at 0 and the covariance at 1. Between
    # them it serves posteriors far from normal, where the two differ.
    metric_covariance_power: float = 0.5
    # A kept draw takes as many moves as make it worth about so many independent ones: the first
    # with few coefficients; the second with many, where keeping a draw costs nothing beside a path.
    ess_per_draw: float = 0.3
    ess_per_draw_many: float = 0.1
    # At most so many moves a draw. If even these do not suffice, what was adapted is no good.
    max_moves_per_draw: int = 50


WARMUP = WarmupPlan()


class AdaptableSampler(Protocol):
    """What the warm-up needs of the composite sampler."""

    @property
    def decisions(self) -> Decisions:
        """The decisions, with equal ones not merged."""
        ...

    @property
    def resolved_prior(self) -> ResolvedPrior:
        """The prior in the decisions' coordinates."""
        ...

    @property
    def mixture_feasible(self) -> bool:
        """Whether there are few enough coordinates for a mixture."""
        ...

    @property
    def can_augment(self) -> bool:
        """Whether sweeps of data augmentation are possible."""
        ...

    def tuning_problem(self, transform: WhiteningTransform) -> CompositeProblem:
        """The posterior in these coordinates, for whoever puts a cycle or a mixture into it."""
        ...

    def prior_scale(self, width: int) -> PriorScale | None:
        """What inferring the prior scale needs, or None where it is given."""
        ...

    def whitening_from_draws(self, rng: np.random.Generator, values: Floats) -> WhiteningTransform:
        """Whitened coordinates from draws of v (n, K)."""
        ...

    def interweaving_directions(self, transform: WhiteningTransform) -> Floats:
        """(K, D) directions in which v moves when the coordinates do."""
        ...

    def sample(
        self, rng: np.random.Generator, state: State, draws: int, thin: int
    ) -> tuple[State, Draws, Stats]:
        """The state after draws * thin draws of its cycle, (draws, K) draws and their stats."""
        ...


class WarmupStep(NamedTuple):
    """A step of the warm-up, and how many windows of iterations it is said to take."""

    run: Callable[[AdaptableSampler, np.random.Generator, State, int], State]
    windows: float


def run_warmup(
    sampler: AdaptableSampler,
    rng: np.random.Generator,
    state: State,
    remaining: int,
    chunk: int,
) -> tuple[State, int]:
    """Run whole steps of the warm-up until about `chunk` iterations are made; returns how many.

    The last step takes all that remain. What a step leaves to the next stands in the state under
    "warmup/", so that a warm-up can be continued from a checkpoint.
    """
    step, window = int(state["warmup_step"][0]), int(state["warmup_window"][0])
    if step == 0 and remaining < WARMUP.min_iterations:
        return sampler.sample(rng, state, 1, remaining)[0], remaining
    # The window is fixed when the warm-up begins, so that chunks do not change it.
    window, made = window or remaining // WARMUP.windows, 0
    while made < min(chunk, remaining):
        state = STEPS[step].run(sampler, rng, state, window)
        is_last = step == len(STEPS) - 1
        made = remaining if is_last else made + int(STEPS[step].windows * window)
        step += 1
        state["warmup_step"] = np.array([step], dtype=np.float64)
        state["warmup_window"] = np.array([window], dtype=np.float64)
    return state, made


def explore(
    sampler: AdaptableSampler, rng: np.random.Generator, state: State, window: int
) -> State:
    """One window of Hamiltonian moves in the coordinates of the normal approximation at the mode.

    It shows where the posterior is; its draws of v, without the first ones, are kept.
    """
    # `init` left these coordinates.
    laplace = unpack_transform(state)
    problem = sampler.tuning_problem(laplace)
    x = pull_towards_mode(problem.target, problem.workspace, state["x"])
    _, draws = adapt_step_size(rng, problem, sampler.prior_scale(x.size), 0.3, x, window)
    return state | {"warmup/values": laplace.value(draws[window // WARMUP.discarded :])}


def adapt_transform(
    sampler: AdaptableSampler, rng: np.random.Generator, state: State, window: int
) -> State:
    """Find whitened coordinates.

    Two windows of moves in coordinates with the mean curvature over earlier draws as their unit,
    skewed to fit these; then skewed again to the new draws, and rescaled part of the way to their
    covariance.
    """
    # First round: coordinates from the draws of `explore`, and two windows of moves in them.
    values = state["warmup/values"]
    whitened = sampler.whitening_from_draws(rng, values)
    problem, x = sampler.tuning_problem(whitened), whitened.coordinates(values[-1])
    _, draws = adapt_step_size(rng, problem, sampler.prior_scale(x.size), 0.5, x, 2 * window)
    # Second round: coordinates from these draws, which are nearer to the posterior.
    values = whitened.value(draws[window // WARMUP.discarded :])
    whitened = sampler.whitening_from_draws(rng, values)
    draws = whitened.coordinates(values)
    transform = whitened.rescaled(draws, WARMUP.metric_covariance_power)
    # Interweaving moves in one direction at a time, for which the covariance's axes are best.
    directions = sampler.interweaving_directions(whitened.rescaled(draws, 1.0))
    x = transform.coordinates(whitened.value(draws[-1]))
    tuning = tuning_state(transform, directions, null_mixture(len(x)), hmc_only_cycle(0.1))
    return (
        state
        | tuning
        | {"x": x, "gradient": np.zeros_like(x), "warmup/values": whitened.value(draws)}
    )


def adapt_paths(
    sampler: AdaptableSampler, rng: np.random.Generator, state: State, window: int
) -> State:
    """Find the step size in the new coordinates, in one window, and what moves cost there.

    From this step on, draws of v are kept for fitting the mixture, and counted against their cost.
    """
    transform = unpack_transform(state)
    problem, x = sampler.tuning_problem(transform), state["x"]
    prior_scale = sampler.prior_scale(x.size)
    step_size, draws = adapt_step_size(rng, problem, prior_scale, 0.5, x, window)
    x = draws[-1].copy()
    cost = CostModel.at(problem.target, x, sampler.decisions.rows.shape[0])
    return state | {
        "x": x,
        "warmup/values": np.concatenate([state["warmup/values"], transform.value(draws)]),
        "warmup/hmc_cycle": pack(hmc_only_cycle(step_size)),
        "warmup/cost": np.array(astuple(cost)),
        "warmup/ess_per_cost": np.zeros(len(EssPerCost._fields)),
    }


def try_hmc(
    sampler: AdaptableSampler, rng: np.random.Generator, state: State, window: int
) -> State:
    """Count what Hamiltonian moves alone earn, in one window.

    Effective draws of the slowest coefficient, per move, per unit of cost.
    """
    hmc_cycle, cost, earned = _tuning_so_far(state)
    new, draws = _pilot_run(sampler, rng, state, hmc_cycle, null_mixture(cost.width), window)
    earned = earned._replace(hmc=min_ess(draws) / window / cost.hmc(hmc_cycle))
    return new | {
        "warmup/ess_per_cost": np.array(earned),
        "warmup/values": np.concatenate([state["warmup/values"], draws]),
    }


def try_augmentation(
    sampler: AdaptableSampler, rng: np.random.Generator, state: State, window: int
) -> State:
    """Count what sweeps alone earn, for no more cost than Hamiltonian moves had.

    Where sweeps are not possible, they earn nothing, and the chain stays where it was.
    """
    if not sampler.can_augment:
        return dict(state)
    hmc_cycle, cost, earned = _tuning_so_far(state)
    # At least enough draws to count effective ones by.
    affordable = window * cost.hmc(hmc_cycle) / cost.augmentation
    count = int(np.clip(affordable, min(window, WARMUP.min_iterations), window))
    new, draws = _pilot_run(sampler, rng, state, AUGMENTATION_ONLY, null_mixture(cost.width), count)
    # Utilities so large that their noise is lost to rounding: the chain stays where it was.
    if not np.isfinite(draws).all():
        return dict(state)
    earned = earned._replace(augmentation=min_ess(draws) / count / cost.augmentation)
    return new | {
        "warmup/ess_per_cost": np.array(earned),
        "warmup/values": np.concatenate([state["warmup/values"], draws]),
    }


def try_independence(
    sampler: AdaptableSampler, rng: np.random.Generator, state: State, window: int
) -> State:
    """With few coefficients, fit a mixture to all draws so far, and count what it earns.

    Independence steps are tried only if the mixture is usable. Its fit goes to the last step.
    """
    if not sampler.mixture_feasible:
        return dict(state)
    transform, (_, cost, earned) = unpack_transform(state), _tuning_so_far(state)
    # The draws of v so far were made in other coordinates; the mixture lives in the present ones.
    proposal = fit_proposal(
        rng,
        sampler.tuning_problem(transform),
        sampler.prior_scale(cost.width),
        transform.coordinates(state["warmup/values"]),
        WARMUP.draws_per_coordinate * (1 + cost.width),
    )
    new = state | pack_mixture(proposal.mixture, "warmup/mixture")
    new["warmup/efficiency"] = np.array([proposal.efficiency])
    new["warmup/pareto_k"] = np.array([proposal.pareto_k])
    if not proposal.usable:
        return new
    count = WARMUP.independence_windows * window
    new, draws = _pilot_run(sampler, rng, new, INDEPENDENCE_ONLY, proposal.mixture, count)
    per_step = min_ess(draws) / len(draws)
    earned = earned._replace(independence=per_step / cost.independence(proposal.mixture))
    return new | {"warmup/ess_per_cost": np.array(earned)}


def fix_cycle(
    sampler: AdaptableSampler, rng: np.random.Generator, state: State, window: int
) -> State:
    """Choose the cycle, and how many of its moves make a draw; then all is fixed.

    The cycle is tried once as a whole. What the steps left under "warmup/" is removed.
    """
    hmc_cycle, cost, earned = _tuning_so_far(state)
    proposal = None
    if "warmup/pareto_k" in state:
        proposal = Proposal(
            unpack_mixture(state, "warmup/mixture"),
            float(state["warmup/efficiency"][0]),
            float(state["warmup/pareto_k"][0]),
        )
    # The chosen cycle's effective draws say how many moves a kept draw should take.
    mixture, cycle = choose_cycle(earned, proposal, hmc_cycle, cost)
    count = WARMUP.independence_windows * window if cycle.independence else window
    new, draws = _pilot_run(sampler, rng, state, cycle, mixture, count)
    few = sampler.mixture_feasible or sampler.resolved_prior.scale is not None
    ess_per_draw = WARMUP.ess_per_draw if few else WARMUP.ess_per_draw_many
    wanted = ess_per_draw * len(draws) / min_ess(draws)
    moves = int(np.clip(wanted, 1, WARMUP.max_moves_per_draw))
    # Whatever was adapted is no good: take the move that needs no adapting, if it moves at all.
    if moves == WARMUP.max_moves_per_draw and earned.augmentation > 0.0:
        cycle, mixture = AUGMENTATION_ONLY, null_mixture(cost.width)
    kept = {name: array for name, array in new.items() if not name.startswith("warmup/")}
    return kept | tuning_state(
        unpack_transform(state),
        state["interweaving_directions"],
        mixture,
        cycle._replace(moves_per_draw=moves),
    )


STEPS = tuple(
    WarmupStep(run, windows)
    for run, windows in (
        (explore, 1.0),
        (adapt_transform, 2.0),
        (adapt_paths, 1.0),
        (try_hmc, 0.3),
        (try_augmentation, 0.3),
        (try_independence, 0.3),
        (fix_cycle, 0.0),
    )
)
"""The steps in order. The last one takes whatever iterations remain."""


def _tuning_so_far(state: State) -> tuple[Cycle, CostModel, EssPerCost]:
    """What earlier steps found, from their arrays in the state.

    The cycle of Hamiltonian moves, what moves cost, and what was earned by those tried so far.
    """
    evaluation, sweep, width = state["warmup/cost"].tolist()
    return (
        unpack(Cycle, state["warmup/hmc_cycle"]),
        CostModel(evaluation, sweep, int(width)),
        EssPerCost(*state["warmup/ess_per_cost"].tolist()),
    )


def _pilot_run(
    sampler: AdaptableSampler,
    rng: np.random.Generator,
    state: State,
    cycle: Cycle,
    mixture: Mixture,
    count: int,
) -> tuple[State, Floats]:
    """The state and the draws (count, K) after `count` draws by this cycle and mixture.

    They replace those of the state, and stay in it: the next step puts its own there.
    """
    directions = state["interweaving_directions"]
    tuned = state | tuning_state(unpack_transform(state), directions, mixture, cycle)
    new, drawn, _ = sampler.sample(rng, tuned, count, 1)
    return new, drawn["value"]
