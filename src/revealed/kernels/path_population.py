"""The population of paths, moved while its groups keep their coordinates.

Given each group's coordinates z (`state_space.py`) and its standardised log sds,
(log sd - log m) / s, all paths follow the population: with

    eta = (log m, log s, mean, log d, R),   root = d R as in `population.py`

the posterior in (eta, standardised log sds, z) is, exactly and whatever the stand-ins are,

    p(eta)  prod over groups of Z(log sds, mean, root) exp(r)  times standard normal densities

and a change of one number of eta is accepted by its ratio. What draws of the population given its
groups are slow for, groups that say little of themselves, this is quick for.
"""

import math
from typing import NamedTuple

import numpy as np

from revealed._types import Floats, Ints
from revealed.kernels._compile import compiled, compiled_internal
from revealed.kernels.block_tridiagonal import multiply_upper
from revealed.kernels.interrupt import stop_requested
from revealed.kernels.path_groups import GroupChains, PathGroups
from revealed.kernels.path_likelihood import PathWorkspace, evaluate_path
from revealed.kernels.path_sizes import acceptance
from revealed.kernels.population import PopulationPrior, log_density_noncentred, unpack
from revealed.kernels.prior_scale import HYPERPRIOR_DF
from revealed.kernels.state_space import (
    LIMITS,
    NormalPaths,
    PathPoint,
    Placed,
    is_within,
    place_law,
    subtract_stand_in,
    write_value,
)


class EtaMoves(NamedTuple):
    """How far numbers of eta move; other lengths cost time, never correctness.

    log_spread: of s to the sd of its prior at most, either way; further out are a few millionths of
    the prior, and digits of standardised log sds are lost. shortest, longest: of a step, in units
    of its scale, in logs.
    """

    log_spread: float
    shortest: float
    longest: float


ETA = EtaMoves(log_spread=12.0, shortest=-1.0, longest=1.5)


class StepPrior(NamedTuple):
    """The prior of m and s: m is half-t with a scale (U,) of its own, s half-normal with sd spread.

    unknown (U,): which numbers of a group's theta are inferred.
    """

    scale: Floats
    spread: float
    unknown: Ints


@compiled
def log_prior_of_steps(prior: StepPrior, k: int, log_m: float, log_s: float) -> float:
    """The log prior density of log m and log s of the k-th inferred step, up to a constant.

    Both with the factor that a density on the log scale has; minus infinity beyond `LIMITS`.
    """
    if not abs(log_m - math.log(prior.scale[k])) < LIMITS.log_ratio:
        return -np.inf
    if not abs(log_s - math.log(prior.spread)) < ETA.log_spread:
        return -np.inf
    ratio = math.exp(2.0 * log_m) / (HYPERPRIOR_DF * prior.scale[k] ** 2)
    spread = math.exp(log_s) / prior.spread
    found: float = log_m - 0.5 * (HYPERPRIOR_DF + 1.0) * math.log1p(ratio)
    return found + log_s - 0.5 * spread * spread


@compiled
def write_whole_theta(groups: PathGroups, theta: Floats, whole: Floats) -> None:
    """Write the theta of all from that of each group (G, P)."""
    for g in range(theta.shape[0]):
        for p in range(theta.shape[1]):
            whole[groups.at[g, p]] = theta[g, p]


@compiled_internal
def _log_prior_of_eta(
    steps: StepPrior, population: PopulationPrior, eta: Floats, groups: int
) -> float:
    """The log prior density of eta, and what every group's Z leaves out of its first value's."""
    count, width, total = steps.unknown.size, population.mean.size, 0.0
    for k in range(count):
        total += log_prior_of_steps(steps, k, eta[k], eta[count + k])
    theta, none = eta[2 * count :], np.zeros((width, width))
    gradient = np.empty(theta.size)
    total += log_density_noncentred(population, theta, 0.0, none[0], none, gradient)
    # the determinant of the precision of first values: prod d^-1 for each group
    for i in range(width):
        total -= groups * theta[width + i]
    return total


@compiled_internal
def _place_all(
    groups: PathGroups,
    steps: StepPrior,
    normal: NormalPaths,
    work: PathWorkspace,
    placed: Placed,
    point: PathPoint,
    z: Floats,
    standardised: Floats,
    eta: Floats,
    theta: Floats,
) -> float:
    """Write theta (G, P), law and paths of all groups at eta; returns log prod Z exp(r)."""
    write_population(groups, steps, eta)
    count = steps.unknown.size
    # log sds follow m and s
    for g in range(theta.shape[0]):
        for k in range(count):
            p = steps.unknown[k]
            theta[g, p] = eta[k] + math.exp(eta[count + k]) * standardised[g, k]
    whole = np.empty(groups.process.scales.size)
    write_whole_theta(groups, theta, whole)
    if not place_law(normal, work, whole, placed):
        return -np.inf
    # and paths the law that they have now
    write_value(placed, groups.process.first, z, point.value)
    found: float = placed.log_density[1] + _residual(groups, normal, work, point)
    return found


@compiled_internal
def _residual(
    groups: PathGroups, normal: NormalPaths, work: PathWorkspace, point: PathPoint
) -> float:
    """r of all paths: log-likelihood less stand-ins."""
    if not is_within(point.value, LIMITS.value):
        return -np.inf
    found: float = evaluate_path(
        groups.data, work, point.value, point.noise, point.slope, point.noise_slope
    )
    found -= subtract_stand_in(normal, point)
    return found


@compiled_internal
def write_population(groups: PathGroups, steps: StepPrior, eta: Floats) -> None:
    """Write mean and precision of first values into the process of all groups."""
    process, at = groups.process, 2 * steps.unknown.size
    width = process.mean.size
    root = np.empty((width, width))
    unpack(eta[at:], process.mean, root)
    inverse = np.linalg.inv(root)
    process.start_precision[:] = np.ascontiguousarray(inverse.T) @ inverse


@compiled
def move_population(
    rng: np.random.Generator,
    groups: PathGroups,
    steps: StepPrior,
    population: PopulationPrior,
    normal: NormalPaths,
    chains: GroupChains,
    work: PathWorkspace,
    placed: Placed,
    point: PathPoint,
    eta: Floats,
    scale: Floats,
    moves: int,
) -> float:
    """Move some numbers of eta, while z and standardised log sds stay; returns mean acceptance.

    scale: about how far each moves; zero where it stays. First z is written from path, theta and
    eta, in the end path and theta from these.
    """
    theta, count = chains.theta, steps.unknown.size
    whole, standardised = np.empty(groups.process.scales.size), np.empty((len(theta), count))
    for g in range(len(theta)):
        for k in range(count):
            centred = theta[g, steps.unknown[k]] - eta[k]
            standardised[g, k] = centred / math.exp(eta[count + k])
    # z of the present paths
    write_population(groups, steps, eta)
    write_whole_theta(groups, theta, whole)
    if not place_law(normal, work, whole, placed):
        return math.nan
    for n in range(len(chains.path)):
        for i in range(groups.process.mean.size):
            point.value[n, i] = chains.path[n, i] - placed.law.centre[i] - placed.mean[n, i]
    multiply_upper(placed.factor, groups.process.first, point.value, chains.z)
    point.value[:] = chains.path
    now = placed.log_density[1] + _residual(groups, normal, work, point)
    now += _log_prior_of_eta(steps, population, eta, len(theta))
    # one number after the other, each by its own ratio
    proposed, accepted, other = eta.copy(), 0.0, theta.copy()
    for n in range(moves):
        # all in turn where that is not too many
        i = n % eta.size if moves >= eta.size else int(rng.random() * eta.size)
        # steps of many lengths: what is known of one number given others is not known before
        length = scale[i] * math.exp(rng.uniform(ETA.shortest, ETA.longest))
        proposed[i] = eta[i] + length * rng.standard_normal()
        found = _place_all(
            groups, steps, normal, work, placed, point, chains.z, standardised, proposed, other
        )
        found += _log_prior_of_eta(steps, population, proposed, len(theta))
        probability = acceptance(found - now)
        accepted += probability / moves
        # of what was refused nothing is left but the law of the present point, written anew below
        if rng.random() < probability:
            eta[i], now = proposed[i], found
            chains.path[:] = point.value
            theta[:] = other
        proposed[i] = eta[i]
        if stop_requested():
            return accepted
    write_population(groups, steps, eta)
    return accepted
