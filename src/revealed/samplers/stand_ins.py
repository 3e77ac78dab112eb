"""Normal stand-ins of the likelihoods of groups: where they come from, and what they do.

A stand-in exp(h'q - q'H q / 2) of a group's likelihood is what makes its coordinates z all but
independent of the population (`kernels/group_blocks.py`). Draws are exact with any that is fixed
and has H positive semi-definite; the better it is, the longer steps are. The best has for H the
mean curvature over the group's own posterior, and the mean slope for the rest: h = mean slope +
H mean q (the condition of the best normal approximation, Opper and Archambeau 2009). Warm-up starts
from Laplace's approximation, by expectation and maximisation, and then averages over draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from revealed._types import Floats
from revealed.kernels.group_batches import GroupBatches, evaluate_groups, make_batch_workspace
from revealed.kernels.group_blocks import BLOCKS
from revealed.kernels.interrupt import raise_if_stopping
from revealed.kernels.population import SD_PRIOR_DF, PopulationPrior, inverse_gamma_conditionals
from revealed.samplers.adaptation import WINDOW
from revealed.samplers.base import State


@dataclass(frozen=True)
class StandInSettings:
    """How stand-ins are found; wrong settings cost time, never correctness.

    rounds: of expectation and maximisation. halvings: of a Newton step that leads downwards.
    step: of the differences that give curvatures, in sds of the population. least_sd: of a
    population in which groups begin, in units of the noise; smaller ones begin as one point.
    """

    rounds: int = 20
    halvings: int = 6
    step: float = 0.1
    least_sd: float = 0.03


STAND_INS = StandInSettings()


class StandIns(NamedTuple):
    """H (N, D, D), positive semi-definite, and h (N, D) of every group."""

    curvature: Floats
    linear: Floats


class PopulationStart(NamedTuple):
    """Where chains begin: mean (D,), covariance (D, D), values (N, D) of groups, and stand-ins."""

    mean: Floats
    covariance: Floats
    values: Floats
    stand_ins: StandIns


def group_slopes(batches: GroupBatches, values: Floats, shared: Floats) -> tuple[Floats, Floats]:
    """The log-likelihood (N,) of each group at its value (N, D), and its gradient (N, D).

    shared: coordinates of the noise that all groups share.
    """
    logs, gradients = np.empty(len(values)), np.empty_like(values)
    evaluate_groups(batches, make_batch_workspace(batches), values, shared, logs, gradients)
    raise_if_stopping()
    return logs, gradients


def group_curvatures(batches: GroupBatches, values: Floats, shared: Floats, sd: Floats) -> Floats:
    """(N, D, D) minus the second derivatives of the log-likelihood of each group, about values.

    By central differences over a part of the population's sds (D,): a neighbourhood's mean
    curvature does as well as that of a point.
    """
    width = values.shape[1]
    found = np.empty((len(values), width, width))
    for k in range(width):
        step = np.zeros(width)
        step[k] = STAND_INS.step * sd[k]
        above, below = (group_slopes(batches, values + move, shared)[1] for move in (step, -step))
        found[:, k] = (below - above) / (2.0 * step[k])
    return 0.5 * (found + found.transpose(0, 2, 1))


def positive_part(curvature: Floats) -> Floats:
    """Symmetric matrices (N, D, D) without their negative eigenvalues.

    A likelihood that is not log-concave may have some, and rounding may.
    """
    eigenvalues, axes = np.linalg.eigh(curvature)
    kept = (axes * np.maximum(eigenvalues, 0.0)[:, None, :]) @ axes.transpose(0, 2, 1)
    return np.asarray(0.5 * (kept + kept.transpose(0, 2, 1)))


def make_stand_ins(curvature: Floats, slope: Floats, value: Floats) -> StandIns:
    """Those with these mean curvatures, and these mean slopes at the mean values (N, D)."""
    kept = positive_part(curvature)
    return StandIns(kept, slope + np.einsum("nij,nj->ni", kept, value))


class CurvatureSums(NamedTuple):
    """What a window of the warm-up sums up, in its state: values, slopes and curvatures of groups.

    number (1,): of draws.
    """

    value: Floats
    slope: Floats
    curvature: Floats
    number: Floats


def add_to_sums(
    state: State, batches: GroupBatches, values: Floats, shared: Floats, sd: Floats
) -> None:
    """Add slopes and curvatures of all groups at values (N, D) to the window's sums."""
    slope = group_slopes(batches, values, shared)[1]
    curvature = group_curvatures(batches, values, shared, sd)
    now = CurvatureSums(values, slope, curvature, np.ones(1))
    for name, array in now._asdict().items():
        key = f"{WINDOW}{name}"
        state[key] = state[key] + array if key in state else array


def averaged_stand_ins(state: State) -> State:
    """H and h by their names, from the window's sums; nothing where it has none."""
    if f"{WINDOW}number" not in state:
        return {}
    sums = CurvatureSums(*(state[f"{WINDOW}{name}"] for name in CurvatureSums._fields))
    value, slope, curvature = (total / sums.number for total in sums[:3])
    return make_stand_ins(curvature, slope, value)._asdict()


def laplace_start(batches: GroupBatches, prior: PopulationPrior, shared: Floats) -> PopulationStart:
    """A likely population with the modes of its groups: expectation and maximisation.

    Each round makes a Newton step of every group's value in the present population, and then takes
    the population that suits these values and their spread.
    """
    width, count = len(prior.scale_group), len(batches.groups.rival_start) - 1
    mean, covariance = prior.mean.copy(), np.eye(width)
    values = np.tile(mean, (count, 1))
    for _ in range(STAND_INS.rounds):
        precision = np.asarray(np.linalg.inv(covariance), np.float64)
        values, inverse = _newton_step(batches, mean, precision, values, shared, covariance)
        # the mean given the values, then the covariance and a given both
        spread = prior.precision + count * precision
        mean = np.linalg.solve(
            spread, prior.precision @ prior.mean + precision @ values.sum(axis=0)
        )
        shape, rate = inverse_gamma_conditionals(precision, prior.sd_scale, prior.scale_group)
        scale = 2.0 * SD_PRIOR_DF * (shape / rate)[prior.scale_group]
        # from the spread of values, how uncertain each of them is, and the inverse Wishart prior
        offset = values - mean
        total = np.diag(scale) + offset.T @ offset + inverse.sum(axis=0)
        covariance = total / (SD_PRIOR_DF + width - 1.0 + count)
        # with few groups the mode may be at zero, where no coordinates are left
        covariance += STAND_INS.least_sd**2 * np.eye(width)
    slope = group_slopes(batches, values, shared)[1]
    curvature = group_curvatures(batches, values, shared, np.sqrt(np.diag(covariance)))
    return PopulationStart(mean, covariance, values, make_stand_ins(curvature, slope, values))


def _newton_step(
    batches: GroupBatches,
    mean: Floats,
    precision: Floats,
    values: Floats,
    shared: Floats,
    covariance: Floats,
) -> tuple[Floats, Floats]:
    """Values after a step towards the mode of each, and the inverse curvatures (N, D, D) before.

    A group's step is halved until it leads upwards.
    """

    def log_density(at: Floats, logs: Floats) -> Floats:
        offset = at - mean
        return np.asarray(logs - 0.5 * ((offset @ precision) * offset).sum(axis=1))

    logs, slope = group_slopes(batches, values, shared)
    curvature = group_curvatures(batches, values, shared, np.sqrt(np.diag(covariance)))
    inverse = np.asarray(np.linalg.inv(positive_part(curvature) + precision), np.float64)
    step = np.einsum("nij,nj->ni", inverse, slope - (values - mean) @ precision)
    before, share = log_density(values, logs), np.ones(len(values))
    for _ in range(STAND_INS.halvings):
        proposed = values + share[:, None] * step
        worse = ~(log_density(proposed, group_slopes(batches, proposed, shared)[0]) >= before)
        if not worse.any():
            return proposed, inverse
        share[worse] *= 0.5
    return values + np.where(worse, 0.0, share)[:, None] * step, inverse


def in_lanes(array: Floats) -> Floats:
    """An array (N, m) as kernels have it: blocks of eight groups, whose numbers lie side by side.

    Filled up with zeros.
    """
    padded = np.zeros((-(-len(array) // BLOCKS.lanes) * BLOCKS.lanes, array.shape[1]))
    padded[: len(array)] = array
    return np.ascontiguousarray(
        padded.reshape(-1, BLOCKS.lanes, array.shape[1]).swapaxes(1, 2)
    ).ravel()


def triangles(curvature: Floats) -> Floats:
    """The lower triangles (N, D (D + 1) / 2) of matrices, row by row."""
    row, column = np.tril_indices(curvature.shape[1])
    return np.asarray(curvature[:, row, column])


def coordinates_of(values: Floats, mean: Floats, precision: Floats, stand_ins: StandIns) -> Floats:
    """(N, D) the coordinates z of groups with these values in a population: R'(q - m)."""
    total = precision + stand_ins.curvature
    root = np.linalg.cholesky(total)
    # the mean m of a group's stand-in in this population solves (P + H) m = P mean + h
    linear = precision @ mean + stand_ins.linear
    # R'q - R^-1 (P mean + h)
    shift = np.linalg.solve(root, linear[:, :, None])[:, :, 0]
    return np.asarray(np.einsum("nji,nj->ni", root, values) - shift)
