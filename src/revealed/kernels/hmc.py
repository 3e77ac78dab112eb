"""Hamiltonian Monte Carlo on the log posterior, in whitened coordinates, with dual averaging.

A fresh standard normal momentum p, a leapfrog path of random length with a random step size, and
acceptance by the energy (Duane, Kennedy, Pendleton and Roweth 1987; Neal 2011):

    H(x, p) = p'p / 2 - log posterior(x),   accept with probability min(1, exp(H_start - H_end))

The step size is adapted in warm-up by dual averaging (Hoffman and Gelman 2014, section 3.2).
"""

import math
from typing import NamedTuple

import numpy as np

from revealed._types import Floats
from revealed.kernels._compile import inlined
from revealed.kernels.log_posterior import LogPosterior, PosteriorWorkspace, log_posterior


class PathSettings(NamedTuple):
    """What all Hamiltonian paths of the package have in common."""

    step_jitter: float
    divergence_energy: float
    max_steps: int


# step_jitter: step sizes vary by this share, so that no path comes round to where it began (Neal
# 2011, section 3.2); with none, a path as long as a period of some coordinate never moves it.
# divergence_energy: an error of the energy beyond which a path has diverged and ends. exp(-200) is
# never accepted, so a larger value only wastes steps; Stan takes 1000.
# max_steps: of one path while the step size is adapted. It bounds the time that a much too small
# first step size costs.
PATH = PathSettings(step_jitter=0.1, divergence_energy=200.0, max_steps=500)


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


class HmcState(NamedTuple):
    """Where a chain is: x (D,), its log posterior log_density (1,), and the gradient (D,) there."""

    x: Floats
    log_density: Floats
    gradient: Floats


class PathWorkspace(NamedTuple):
    """Arrays (D,) that a path writes to: momentum, and position and gradient at its end."""

    momentum: Floats
    x: Floats
    gradient: Floats


@inlined
def hmc_step(
    rng: np.random.Generator,
    target: LogPosterior,
    workspace: PosteriorWorkspace,
    step_size: float,
    min_steps: int,
    max_steps: int,
    state: HmcState,
    path: PathWorkspace,
) -> float:
    """The acceptance probability of one path of min_steps to max_steps steps.

    An accepted path replaces x, log density and gradient of the state, in place.
    """
    x, log_density, gradient = state
    momentum, end, end_gradient = path
    # A fresh momentum, and the energy to start with.
    kinetic = 0.0
    for d in range(x.size):
        momentum[d] = rng.standard_normal()
        kinetic += 0.5 * momentum[d] * momentum[d]
        end[d] = x[d]
        end_gradient[d] = gradient[d]
    energy = kinetic - log_density[0]
    # Step size and number of steps are random, but do not depend on x: the path stays reversible.
    epsilon = step_size * (1.0 + PATH.step_jitter * (2.0 * rng.random() - 1.0))
    steps = min_steps + int(rng.random() * (max_steps - min_steps + 1))
    value, probability = log_density[0], 1.0
    for _ in range(steps):
        # Leapfrog: half a step of the momentum, one of the position, half of the momentum.
        for d in range(x.size):
            momentum[d] += 0.5 * epsilon * end_gradient[d]
            end[d] += epsilon * momentum[d]
        value = log_posterior(target, workspace, end, -np.inf, end_gradient)
        kinetic = 0.0
        for d in range(x.size):
            momentum[d] += 0.5 * epsilon * end_gradient[d]
            kinetic += 0.5 * momentum[d] * momentum[d]
        # A divergent path is refused; the comparison is false for NaN, which ends it as well.
        if not kinetic - value < energy + PATH.divergence_energy:
            probability = 0.0
            break
    # Metropolis: accept by the error of the energy.
    probability *= math.exp(min(energy - (kinetic - value), 0.0)) if probability > 0.0 else 0.0
    if rng.random() < probability:
        for d in range(x.size):
            x[d] = end[d]
            gradient[d] = end_gradient[d]
        log_density[0] = value
    return probability


def init_dual_averaging(step_size: float) -> Floats:
    """The array (5,) with which dual averaging begins, laid out as `ADAPTATION` says."""
    return np.array([step_size, step_size, 0.0, 0.0, math.log(step_size)])


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
