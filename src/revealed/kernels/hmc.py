"""Hamiltonian Monte Carlo on any log density, in whitened coordinates, with dual averaging.

A fresh standard normal momentum p, a path of random length with a random step size, and acceptance
by the energy (Duane, Kennedy, Pendleton and Roweth 1987; Neal 2011):

    H(x, p) = p'p / 2 - log density(x),   accept with probability min(1, exp(H_start - H_end))

The step size is adapted in warm-up by dual averaging (Hoffman and Gelman 2014, section 3.2).
"""

import math
from typing import Any, NamedTuple

import numpy as np

from revealed._types import Floats
from revealed.kernels._compile import compiled, inlined
from revealed.kernels.interrupt import stop_requested
from revealed.kernels.log_density import log_density


class PathSettings(NamedTuple):
    """What all Hamiltonian paths of the package have in common."""

    step_jitter: float
    shortest: float
    longest: float
    divergence_energy: float
    max_steps: int
    least_step_share: float
    max_coordinate: float


# step_jitter: step sizes vary by this share, so that no path comes round to where it began (Neal
# 2011, section 3.2); with none, a path as long as a period of some coordinate never moves it.
# shortest, longest: for the same reason the number of steps varies between these multiples.
# divergence_energy: an error of the energy beyond which a path has diverged and ends. exp(-200) is
# never accepted, so a larger value only wastes steps; Stan takes 1000.
# max_steps: of one path whose length is given. It bounds the time that a much too small first step
# size costs.
# least_step_share: of the initial step size, while it is adapted; below it, no path gets anywhere.
# max_coordinate: beyond it a path has diverged; the squares of larger numbers are infinite.
PATH = PathSettings(
    step_jitter=0.1,
    shortest=0.7,
    longest=1.3,
    divergence_energy=200.0,
    max_steps=500,
    least_step_share=1e-2,
    max_coordinate=1e100,
)


class DualAveraging(NamedTuple):
    """Positions of what dual averaging remembers, in an array (5,) that a state can hold.

    step_size: the one to use now. initial_step_size: where adaptation began. updates: paths seen.
    shortfall: the running mean of target minus acceptance probability, H-bar of Hoffman and Gelman.
    log_mean_step_size: the averaged iterate, whose exponential is the adapted step size.
    """

    step_size: int
    initial_step_size: int
    updates: int
    shortfall: int
    log_mean_step_size: int


ADAPTATION = DualAveraging(
    step_size=0, initial_step_size=1, updates=2, shortfall=3, log_mean_step_size=4
)


class Integrator(NamedTuple):
    """A step of a path: in each stage the momentum by kick, then the position by drift.

    In units of the step size; one evaluation of the gradient follows each stage, and after the last
    one the first kick again. A number each, so that the stages are known when a loop is compiled.
    """

    kick: tuple[float, ...]
    drift: tuple[float, ...]


# Half a step of the momentum, one of the position, half of the momentum (Neal 2011).
LEAPFROG = Integrator(kick=(0.5,), drift=(1.0,))
# Two gradients a step, with the least error of the energy in many dimensions for what they cost
# (McLachlan 1995; Blanes, Casas and Sanz-Serna 2014).
TWO_STAGES = Integrator(kick=(0.21178, 1.0 - 2.0 * 0.21178), drift=(0.5, 0.5))
# Three gradients a step, which together go further than three steps of leapfrog in many dimensions
# (Blanes, Casas and Sanz-Serna 2014).
THREE_STAGES = Integrator(
    kick=(0.11888010966548, 0.5 - 0.11888010966548, 0.5 - 0.11888010966548),
    drift=(0.29619504261126, 1.0 - 2.0 * 0.29619504261126, 0.29619504261126),
)


class HmcState(NamedTuple):
    """Where a chain is: x (D,), its log density (1,), and the gradient (D,) there."""

    x: Floats
    log_density: Floats
    gradient: Floats


class PathWorkspace(NamedTuple):
    """Arrays (D,) that a path writes to: momentum, and position and gradient at its end."""

    momentum: Floats
    x: Floats
    gradient: Floats


class PathOutcome(NamedTuple):
    """How a path went: its acceptance probability, and whether that was drawn; then its steps.

    diverging: whether the error of the energy passed `PATH.divergence_energy`, which ended it.
    """

    probability: float
    accepted: bool
    diverging: bool
    n_steps: int


def follow_path(
    rng: np.random.Generator,
    target: Any,
    workspace: Any,
    integrator: Integrator,
    step_size: float,
    min_steps: int,
    max_steps: int,
    state: HmcState,
    path: PathWorkspace,
) -> PathOutcome:
    """One path of min_steps to max_steps steps on the `log_density` of the target.

    An accepted path replaces x, log density and gradient of the state, in place. Loops call it as
    `hmc_step`; as it stands it takes a target of Python.
    """
    x, log_density_at_x, gradient = state
    momentum, end, end_gradient = path
    # A fresh momentum, and the energy to start with.
    kinetic = 0.0
    for d in range(x.size):
        momentum[d] = rng.standard_normal()
        kinetic += 0.5 * momentum[d] * momentum[d]
        end[d] = x[d]
        end_gradient[d] = gradient[d]
    energy = kinetic - log_density_at_x[0]
    # Step size and number of steps are random, but do not depend on x: the path stays reversible.
    epsilon = step_size * (1.0 + PATH.step_jitter * (2.0 * rng.random() - 1.0))
    steps = min_steps + int(rng.random() * (max_steps - min_steps + 1))
    value, probability, made = log_density_at_x[0], 1.0, 0
    for _ in range(steps):
        # With leapfrog: half a step of the momentum, one of the position, half of the momentum.
        inside = True
        for stage in range(len(integrator.kick)):
            for d in range(x.size):
                momentum[d] += integrator.kick[stage] * epsilon * end_gradient[d]
                end[d] += integrator.drift[stage] * epsilon * momentum[d]
                # written so that a NaN is outside: log densities are compiled for numbers only
                if not abs(end[d]) < PATH.max_coordinate:
                    inside = False
            if inside:
                value = log_density(target, workspace, end, -np.inf, end_gradient)
        kinetic = 0.0
        for d in range(x.size):
            momentum[d] += integrator.kick[0] * epsilon * end_gradient[d]
            kinetic += 0.5 * momentum[d] * momentum[d]
        made += 1
        # A divergent path is refused; the comparison is false for NaN, which ends it as well. So
        # does Ctrl-C, after which nobody looks at the path.
        near = inside and kinetic - value < energy + PATH.divergence_energy
        if not near or stop_requested():
            probability = 0.0
            break
    # Metropolis: accept by the error of the energy.
    diverging, accepted = probability == 0.0, False
    probability *= math.exp(min(energy - (kinetic - value), 0.0)) if probability > 0.0 else 0.0
    if rng.random() < probability:
        accepted = True
        for d in range(x.size):
            x[d] = end[d]
            gradient[d] = end_gradient[d]
        log_density_at_x[0] = value
    return PathOutcome(probability, accepted, diverging, made)


hmc_step = inlined(follow_path)


def steps_of_length(path_length: float, step_size: float) -> tuple[int, int]:
    """The least and the most steps of paths of about this length."""
    steps = path_length / step_size
    least = min(max(1, int(PATH.shortest * steps + 0.5)), PATH.max_steps)
    return least, min(max(1, int(PATH.longest * steps + 0.5)), PATH.max_steps)


range_of_steps = inlined(steps_of_length)


def init_dual_averaging(step_size: float | Floats) -> Floats:
    """The array (..., 5) with which dual averaging begins, laid out as `ADAPTATION` says."""
    zero = np.zeros_like(step_size, dtype=np.float64)
    return np.stack([step_size + zero, step_size + zero, zero, zero, np.log(step_size)], axis=-1)


@inlined
def update_step_size(
    adaptation: Floats, target_acceptance: float, probability: float, min_step_size: float
) -> None:
    """Change the step size after a path that was accepted with this probability, in place.

    One update of dual averaging. With n updates before this one, H-bar the shortfall,

        log step = log(2 initial) - sqrt(n + 1) / 0.05 * H-bar,
        log mean step = (n + 1)^-0.75 log step + (1 - (n + 1)^-0.75) log mean step.

    All that is remembered is in adaptation (5,), so that warm-up can be interrupted and resumed.
    """
    initial = adaptation[ADAPTATION.initial_step_size]
    n, shortfall = adaptation[ADAPTATION.updates], adaptation[ADAPTATION.shortfall]
    # Constants of Hoffman and Gelman: t0 = 10 (early updates count less), gamma = 0.05 (how fast
    # steps follow the shortfall), kappa = 0.75 (how fast old iterates are forgotten). They pull
    # towards ten times the initial step; here it is a good guess, and twice is enough. A step of
    # 1.9 in whitened coordinates is next to 2, where leapfrog becomes unstable.
    rate = 1.0 / (n + 11.0)
    shortfall = (1.0 - rate) * shortfall + rate * (target_acceptance - probability)
    log_step = min(math.log(2.0 * initial) - math.sqrt(n + 1.0) / 0.05 * shortfall, math.log(1.9))
    weight = (n + 1.0) ** -0.75
    adaptation[ADAPTATION.log_mean_step_size] = (
        weight * log_step + (1.0 - weight) * adaptation[ADAPTATION.log_mean_step_size]
    )
    adaptation[ADAPTATION.step_size] = max(math.exp(log_step), min_step_size)
    adaptation[ADAPTATION.updates] = n + 1.0
    adaptation[ADAPTATION.shortfall] = shortfall


@compiled
def update_step_sizes(adaptation: Floats, target_acceptance: float, probability: Floats) -> None:
    """Change the step sizes of many paths, (N, 5), as `update_step_size` changes one."""
    for n in range(probability.size):
        least = PATH.least_step_share * adaptation[n, ADAPTATION.initial_step_size]
        update_step_size(adaptation[n], target_acceptance, probability[n], least)


class PathStatistics(NamedTuple):
    """What is told of the paths that lead to each draw, (n,) each, by the names of ArviZ.

    acceptance_rate: the mean over these paths. diverging: 1 where one of them diverged, else 0.
    n_steps: of all of them. step_size: of the last. lp: the log density that the last one ended at.
    """

    acceptance_rate: Floats
    diverging: Floats
    n_steps: Floats
    step_size: Floats
    lp: Floats


def make_path_statistics(draws: int) -> PathStatistics:
    """Statistics of so many draws, to which nothing was added yet."""
    return PathStatistics(*np.zeros((len(PathStatistics._fields), draws)))


class PathPlan(NamedTuple):
    """Paths of about this length, with the step size of adaptation (5,), see `ADAPTATION`.

    Where target_acceptance is not zero, the step size learns from each path, in place.
    """

    length: float
    target_acceptance: float
    adaptation: Floats


@inlined
def hmc_move(
    rng: np.random.Generator,
    target: Any,
    workspace: Any,
    integrator: Integrator,
    plan: PathPlan,
    state: HmcState,
    statistics: PathStatistics,
    n: int,
    thin: int,
) -> bool:
    """Move along a path as planned; returns whether it was accepted.

    How it went is added to the statistics of draw n, to which `thin` paths lead.
    """
    size, adaptation = state.x.size, plan.adaptation
    path = PathWorkspace(np.empty(size), np.empty(size), np.empty(size))
    # however easily steps are accepted, one of them is no longer than the path
    step_size = min(adaptation[ADAPTATION.step_size], plan.length)
    least, most = range_of_steps(plan.length, step_size)
    outcome = hmc_step(rng, target, workspace, integrator, step_size, least, most, state, path)
    if plan.target_acceptance > 0.0:
        least_step_size = PATH.least_step_share * adaptation[ADAPTATION.initial_step_size]
        update_step_size(adaptation, plan.target_acceptance, outcome.probability, least_step_size)
    statistics.acceptance_rate[n] += outcome.probability / thin
    if outcome.diverging:
        statistics.diverging[n] = 1.0
    statistics.n_steps[n] += outcome.n_steps
    statistics.step_size[n] = step_size
    statistics.lp[n] = state.log_density[0]
    return outcome.accepted
