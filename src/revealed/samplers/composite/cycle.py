"""How many moves of each kind a cycle has, and how Hamiltonian paths run in it.

Each kind of move is tried in warm-up; what it earns is effective draws per unit of cost, counted
and never clocked. The cycle has the kinds that earn most, with enough moves that need no proposal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from revealed._types import Floats
from revealed.kernels.composite import (
    ChainArrays,
    CompositeProblem,
    Cycle,
    CycleState,
    TuningArrays,
    make_draw_arrays,
    run_cycles,
)
from revealed.kernels.hmc import ADAPTATION, init_dual_averaging
from revealed.kernels.independence import Mixture
from revealed.kernels.interrupt import raise_if_stopping
from revealed.kernels.log_posterior import LogPosterior, PosteriorWorkspace, log_posterior
from revealed.kernels.prior_scale import PriorScale
from revealed.results.diagnostics import ess_bulk, ess_sd
from revealed.samplers.composite.cost import CostModel
from revealed.samplers.composite.proposal import Proposal, null_mixture

# The acceptance probability that the step size of Hamiltonian paths is adapted to by dual averaging
# (Hoffman and Gelman 2014); the value is Stan's default. Lower means longer steps and more
# rejections, higher more steps in a path.
TARGET_ACCEPTANCE = 0.8
# The length of a Hamiltonian path where the posterior has sd one in every direction. A normal is
# forgotten at pi / 2; a little more serves the directions that are wider. Much shorter paths walk
# at random, much longer ones turn back.
PATH_LENGTH = 1.9


@dataclass(frozen=True)
class CycleSettings:
    """How kinds of moves are combined in a cycle, and how Hamiltonian paths run in it."""

    # Beside independence steps, both Hamiltonian moves and sweeps stay in the cycle if neither
    # earns this many times less than the other: two kinds of moves seldom fail alike. Independence
    # steps that earn this many times less than the better of them are left out.
    max_cost_ratio: float = 3.0
    # Independence steps that earn so many times more than the rest leave other moves only what the
    # proposal's fit demands.
    clearly_better: float = 2.0
    # Independence steps in a cycle, at most, so that other moves come round.
    max_independence: int = 100
    # The same where the proposal has a part with the prior's shape. The posterior then has heavy
    # tails, in which a chain may wait for the next of the other moves, and these never leave it
    # where it is: no draw is repeated more often than this. Fewer take time from moves that earn
    # more.
    max_independence_inferred_scale: int = 25
    # Steps of a Hamiltonian path, at most: it bounds the time of a path with a tiny step size.
    max_steps: float = 500.0
    # The number of steps varies between these multiples of the mean, so that no path comes back
    # to where it began.
    min_steps_ratio: float = 0.7
    max_steps_ratio: float = 1.3
    # Below this step size there is no use in trying again with a smaller one.
    min_step_size: float = 1e-4
    # How often a first point is halved towards the mode, at most; so many halvings make it zero.
    max_halvings: int = 1100


CYCLE = CycleSettings()
# Cycles of one kind of move, for trying it alone, and for a sampler that was not warmed up.
AUGMENTATION_ONLY = Cycle(
    hmc=0,
    augmentation=1,
    independence=0,
    step_size=0.1,
    min_steps=1,
    max_steps=1,
    moves_per_draw=1,
)
INDEPENDENCE_ONLY = AUGMENTATION_ONLY._replace(augmentation=0, independence=1)


class EssPerCost(NamedTuple):
    """Effective draws per unit of cost by each kind of move.

    Zero where it was not tried.
    """

    hmc: float
    augmentation: float
    independence: float


def hmc_only_cycle(step_size: float) -> Cycle:
    """A cycle of Hamiltonian moves alone, with paths of about PATH_LENGTH.

    The number of steps is PATH_LENGTH / step_size, at least one and at most max_steps.
    """
    steps = min(max(1.0, PATH_LENGTH / step_size), CYCLE.max_steps)
    return Cycle(
        hmc=1,
        augmentation=0,
        independence=0,
        step_size=step_size,
        min_steps=max(1, round(CYCLE.min_steps_ratio * steps)),
        max_steps=max(1, round(CYCLE.max_steps_ratio * steps)),
        moves_per_draw=1,
    )


def choose_cycle(
    earned: EssPerCost, proposal: Proposal | None, hmc_cycle: Cycle, cost: CostModel
) -> tuple[Mixture, Cycle]:
    """The mixture and the cycle, from what each kind of move earned and from the proposal.

    The better of Hamiltonian moves and sweeps is always in the cycle; beside independence steps the
    other one too, if it does not earn max_cost_ratio times less. Independence steps that are
    clearly better leave other moves only what the proposal's fit demands; otherwise the work is
    shared in proportion to what is earned.
    """
    # Which of the moves that need no proposal are in the cycle, and what they cost.
    best = max(earned.hmc, earned.augmentation)
    ratio = 1.0 if proposal is None else CYCLE.max_cost_ratio
    with_hmc, with_augmentation = earned.hmc * ratio >= best, earned.augmentation * ratio >= best
    safe_cost = with_hmc * cost.hmc(hmc_cycle) + with_augmentation * cost.augmentation
    safe_moves = hmc_cycle._replace(hmc=int(with_hmc), augmentation=int(with_augmentation))
    if proposal is None or not proposal.usable or earned.independence * CYCLE.max_cost_ratio < best:
        return null_mixture(cost.width), safe_moves
    # As many independence steps as leave the other moves their share of the cost.
    step_cost = cost.independence(proposal.mixture)
    safe_share = (
        proposal.min_safe_share
        if earned.independence > CYCLE.clearly_better * best
        else max(best / (best + earned.independence), proposal.min_safe_share)
    )
    steps = round(safe_cost * (1.0 - safe_share) / (safe_share * step_cost))
    most = (
        CYCLE.max_independence_inferred_scale
        if proposal.mixture.prior_part.size
        else CYCLE.max_independence
    )
    return proposal.mixture, safe_moves._replace(independence=min(max(steps, 1), most))


def min_ess(draws: Floats) -> float:
    """Effective draws of the slowest coordinate of draws (n, D) that moves at all.

    For each coordinate bulk and squares are counted, whichever are fewer. The least of many
    estimates from few draws looks worse than it is: of more than forty, one in forty is passed
    over.
    """
    ess = np.concatenate([ess_bulk(draws[None]), ess_sd(draws[None])])
    ess = np.sort(ess[np.isfinite(ess)])
    return float(max(1.0, ess[ess.size // 40])) if ess.size else float(len(draws))


def adapt_step_size(
    rng: np.random.Generator,
    problem: CompositeProblem,
    prior_scale: PriorScale | None,
    step_size: float,
    x: Floats,
    count: int,
) -> tuple[float, Floats]:
    """Make Hamiltonian moves from x (D,) while the step size is adapted; returns it and the draws.

    Where next to no path is accepted, the step size was far too large to learn from: the moves are
    made again with a tenth of it. The draws are (count, D).
    """
    draws, adaptation = np.empty((count, x.size)), init_dual_averaging(step_size)
    run_cycles(
        rng,
        *problem._replace(cycle=hmc_only_cycle(step_size)),
        prior_scale,
        1,
        ChainArrays(x.copy(), np.empty(x.size), np.empty(0)),
        CycleState(0.0, 0.0, False, False, 0),
        make_draw_arrays(count, len(problem.transform.centre), tuning=True),
        TuningArrays(draws, adaptation, PATH_LENGTH, TARGET_ACCEPTANCE, np.empty(0)),
    )
    raise_if_stopping()
    adapted = math.exp(adaptation[ADAPTATION.log_mean_step_size])
    stuck = np.mean((np.diff(draws, axis=0) == 0.0).all(axis=1)) > 0.9 if count > 1 else False
    if stuck and step_size > CYCLE.min_step_size:
        return adapt_step_size(rng, problem, prior_scale, 0.1 * step_size, x, count)
    return adapted, draws


def pull_towards_mode(target: LogPosterior, workspace: PosteriorWorkspace, x: Floats) -> Floats:
    """x (D,), halved until the log posterior is not far below that at zero, the mode.

    Hamiltonian paths that begin where the likelihood is next to zero diverge.
    """
    no_gradient = np.empty(0)
    at_mode = log_posterior(target, workspace, np.zeros_like(x), -np.inf, no_gradient)
    lowest = at_mode - 10.0 - 3.0 * len(x)
    for _ in range(CYCLE.max_halvings):
        # Written so that a log posterior that is not a number is too low as well.
        if log_posterior(target, workspace, x, -np.inf, no_gradient) >= lowest:
            return x
        x = 0.5 * x
    raise ValueError(
        "the log posterior is not a finite number at its mode; bring the features to scales that "
        "are less far apart, or give a smaller prior sd"
    )
