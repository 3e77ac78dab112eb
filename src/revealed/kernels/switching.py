"""The log posterior of strategies that take turns, and its slopes.

Somebody has S strategies, each with a value v_s of its own; which one is in use is a Markov chain
that nobody sees (`hidden_markov.py`). States are summed out; slopes are means given the choices
(Fisher's identity),

    d log p / d v_s = sum_t gamma_t(s) d l_t(s) / d v_s
    d log p / d log switch_ij = sum_t p(state t = i, state t + 1 = j | all choices)

theta: z of each strategy, v_s = mean + sd B z_s with z standard normal; log-ratio coordinates of
the rows of switch, then of initial, p = softmax(B' u) with an orthonormal B, in which a Dirichlet
law has density prod p^alpha; log sd where it is inferred; coordinates of the noise.

Only `write_likelihoods` knows the noise; all else is compiled once.
"""

import math
from typing import NamedTuple

import numpy as np

from revealed._types import Floats, Ints
from revealed.kernels._compile import compiled
from revealed.kernels.choice import log_likelihood
from revealed.kernels.choice_fast import ChoiceWorkspace, RivalIndex, make_choice_workspace
from revealed.kernels.design import Design, multiply, transpose_multiply
from revealed.kernels.hidden_markov import (
    Chain,
    Smoothed,
    filter_and_smooth,
    make_smoothed,
    write_relative,
)
from revealed.kernels.noise import AnyNoise
from revealed.kernels.prior_scale import HYPERPRIOR_DF


class SwitchingLimits(NamedTuple):
    """Where paths are given up; larger ones overflow.

    log_ratio: of two probabilities of a row, so that none is below 1e-100. log_scale: of the log of
    an inferred sd to the scale of its prior. noise: of its coordinates, which are standard normal
    before any choice. value: of a coefficient.
    """

    log_ratio: float
    log_scale: float
    noise: float
    value: float


LIMITS = SwitchingLimits(log_ratio=230.0, log_scale=20.0, noise=30.0, value=1e30)


class SequenceData(NamedTuple):
    """What was chosen, sequence by sequence.

    design (R, K): of rivals less those of the chosen actions, of U different decisions. rivals: of
    each. kind (T,): which of these every decision is. start (N + 1,): where each sequence begins.
    """

    design: Design
    rivals: RivalIndex
    kind: Ints
    start: Ints


class SwitchingPrior(NamedTuple):
    """What is assumed of values, transitions and the initial law.

    mean (K,), basis (K, D): v = mean + sd basis z; where basis is (0, 0) it is diagonal, with width
    (K,). switch (S, S) and initial (S,): of their Dirichlet laws. simplex (S, S - 1): orthonormal,
    columns that sum to zero. scale: of the half-t prior of sd, 0 where it is known to be one.
    """

    mean: Floats
    basis: Floats
    width: Floats
    switch: Floats
    initial: Floats
    simplex: Floats
    scale: float


class Likelihoods(NamedTuple):
    """Log P of every kind of decision under every value, and its slopes.

    values (S, K). logs (U, S), slopes (S, R) and own (S, U, E): of each decision in its gaps and in
    the coordinates of the noise. gaps (R,), gap and slope: of one decision, are written to.
    """

    values: Floats
    logs: Floats
    slopes: Floats
    own: Floats
    gaps: Floats
    gap: Floats
    slope: Floats
    choice: ChoiceWorkspace


class SwitchingWorkspace(NamedTuple):
    """Arrays that the log posterior writes to.

    relative (U, S): exp of the logs less their largest (U,). weighted (R,), by_value (K,): slopes.
    """

    likelihoods: Likelihoods
    chain: Chain
    relative: Floats
    largest: Floats
    weighted: Floats
    by_value: Floats
    smoothed: Smoothed


def make_likelihoods(
    design: Design, rivals: RivalIndex, states: int, width: int, coordinates: int
) -> Likelihoods:
    """Arrays for the likelihoods of these decisions under S values of so many coefficients."""
    kinds, size = len(rivals.weight), len(rivals.multiplicity)
    most = int(np.diff(rivals.start).max(initial=1)) + coordinates
    return Likelihoods(
        np.zeros((states, width)),
        np.zeros((kinds, states)),
        np.zeros((states, size)),
        np.zeros((states, kinds, coordinates)),
        np.zeros(size),
        np.zeros(most),
        np.zeros(most),
        make_choice_workspace(rivals),
    )


def make_switching_workspace(
    data: SequenceData, prior: SwitchingPrior, coordinates: int
) -> SwitchingWorkspace:
    """Arrays for one chain; coordinates: of the noise.

    No two chains may share them.
    """
    states, width, kinds = len(prior.initial), len(prior.mean), len(data.rivals.weight)
    return SwitchingWorkspace(
        make_likelihoods(data.design, data.rivals, states, width, coordinates),
        Chain(np.zeros((states, states)), np.zeros(states)),
        np.zeros((kinds, states)),
        np.zeros(kinds),
        np.zeros(len(data.rivals.multiplicity)),
        np.zeros(width),
        make_smoothed(len(data.kind), kinds, states),
    )


def count_unknowns(prior: SwitchingPrior, coordinates: int) -> int:
    """P, how many numbers theta has; coordinates: of the noise.

    Each of S + 1 laws of S probabilities has S - 1.
    """
    states = len(prior.initial)
    chain = (states + 1) * (states - 1)
    return states * free_width(prior) + chain + (prior.scale > 0.0) + coordinates


def free_width(prior: SwitchingPrior) -> int:
    """D, the free coordinates of a value.

    As many as the basis has columns.
    """
    return prior.basis.shape[1] if prior.basis.size else len(prior.width)


@compiled
def place_value(prior: SwitchingPrior, z: Floats, scale: float, value: Floats) -> None:
    """Write the value (K,) of coordinates z (D,).

    scale: the sd, where it is inferred; else one.
    """
    for k in range(value.size):
        value[k] = prior.mean[k]
        if prior.basis.size > 0:
            for d in range(z.size):
                value[k] += scale * prior.basis[k, d] * z[d]
        else:
            value[k] += scale * prior.width[k] * z[k]


@compiled
def place_row(simplex: Floats, u: Floats, row: Floats) -> bool:
    """Write the probabilities (S,) of log-ratio coordinates u (S - 1,).

    False beyond `LIMITS`, where they would be too small.
    """
    # relative to the largest, so that nothing overflows
    largest = -np.inf
    for j in range(row.size):
        row[j] = 0.0
        for i in range(u.size):
            row[j] += simplex[j, i] * u[i]
        largest = max(largest, row[j])
    total = 0.0
    for j in range(row.size):
        # written so that a NaN is outside
        if not largest - row[j] < LIMITS.log_ratio:
            return False
        row[j] = math.exp(row[j] - largest)
        total += row[j]
    for j in range(row.size):
        row[j] /= total
    return True


@compiled
def write_row_slope(
    simplex: Floats, row: Floats, alpha: Floats, counts: Floats, slope: Floats
) -> float:
    """The log Dirichlet density of a row; slopes (S - 1,) of it and of expected counts."""
    # of log p_j in u the slope is B_j - sum p B: shape and counts less their share of the total
    value, total = 0.0, 0.0
    slope[:] = 0.0
    for j in range(row.size):
        total += alpha[j] + counts[j]
        value += alpha[j] * math.log(row[j])
    for j in range(row.size):
        excess = alpha[j] + counts[j] - total * row[j]
        for i in range(slope.size):
            slope[i] += simplex[j, i] * excess
    return value


@compiled
def write_likelihoods(
    noise: AnyNoise, design: Design, rivals: RivalIndex, z: Floats, out: Likelihoods
) -> None:
    """Write log P of each kind of decision under each value, and its slopes.

    z (E,): coordinates of the noise.
    """
    start, multiplicity, _ = rivals
    coordinates = z.size
    begin, once = np.zeros(2, np.int64), np.ones(1)
    # strategy by strategy: each has gaps of its own
    for s in range(out.values.shape[0]):
        multiply(design, out.values[s], out.gaps)
        for u in range(start.size - 1):
            low, count = start[u], start[u + 1] - start[u]
            out.logs[u, s] = 0.0
            for i in range(coordinates):
                out.own[s, u, i] = 0.0
            # a single action is always chosen
            if count == 0:
                continue
            # one decision by itself, and behind its gaps the coordinates of the noise
            begin[1] = count
            for j in range(count):
                out.gap[j] = out.gaps[low + j]
            for i in range(coordinates):
                out.gap[count + i] = z[i]
            out.logs[u, s] = log_likelihood(
                noise,
                out.gap[: count + coordinates],
                RivalIndex(begin, multiplicity[low : low + count], once),
                out.choice,
                -np.inf,
                out.slope[: count + coordinates],
            )
            # slopes are kept until it is known how often each counts
            for j in range(count):
                out.slopes[s, low + j] = out.slope[j]
            for i in range(coordinates):
                out.own[s, u, i] = out.slope[count + i]


@compiled
def place_unknowns(
    prior: SwitchingPrior, coordinates: int, theta: Floats, values: Floats, chain: Chain
) -> bool:
    """Write values (S, K) and chain at theta; false beyond `LIMITS`, where nothing is evaluated."""
    states, free = prior.initial.size, prior.simplex.shape[1]
    width = prior.basis.shape[1] if prior.basis.size > 0 else prior.width.size
    rows, sd_at = states * width, states * width + (states + 1) * free
    for i in range(coordinates):
        if not abs(theta[theta.size - 1 - i]) < LIMITS.noise:
            return False
    scale = 1.0
    if prior.scale > 0.0:
        if not abs(theta[sd_at] - math.log(prior.scale)) < LIMITS.log_scale:
            return False
        scale = math.exp(theta[sd_at])
    for s in range(states):
        place_value(prior, theta[s * width : (s + 1) * width], scale, values[s])
        for k in range(values.shape[1]):
            if not abs(values[s, k]) < LIMITS.value:
                return False
        at = rows + s * free
        if not place_row(prior.simplex, theta[at : at + free], chain.switch[s]):
            return False
    at = rows + states * free
    return bool(place_row(prior.simplex, theta[at : at + free], chain.initial))


@compiled
def log_posterior(
    data: SequenceData,
    prior: SwitchingPrior,
    work: SwitchingWorkspace,
    theta: Floats,
    gradient: Floats,
) -> float:
    """The log posterior at theta up to a constant; its gradient goes into gradient (P,).

    After `place_unknowns` and `write_likelihoods`.
    """
    states, free = prior.initial.size, prior.simplex.shape[1]
    likelihoods, smoothed = work.likelihoods, work.smoothed
    width = prior.basis.shape[1] if prior.basis.size > 0 else prior.width.size
    coordinates, start = likelihoods.own.shape[2], data.rivals.start
    rows, sd_at = states * width, states * width + (states + 1) * free
    scale, value = 1.0, 0.0
    if prior.scale > 0.0:
        scale = math.exp(theta[sd_at])
        # half-t, with the Jacobian of the logarithm
        ratio = math.exp(2.0 * (theta[sd_at] - math.log(prior.scale))) / HYPERPRIOR_DF
        value += theta[sd_at] - 0.5 * (HYPERPRIOR_DF + 1.0) * math.log1p(ratio)
        gradient[sd_at] = 1.0 - (HYPERPRIOR_DF + 1.0) * ratio / (1.0 + ratio)
    # states summed out
    write_relative(likelihoods.logs, work.relative, work.largest)
    value += filter_and_smooth(
        data.kind, data.start, work.chain, work.relative, work.largest, smoothed
    )
    # slopes by Fisher's identity; transitions first
    for s in range(states + 1):
        at = rows + s * free
        last = s == states
        value += write_row_slope(
            prior.simplex,
            work.chain.initial if last else work.chain.switch[s],
            prior.initial if last else prior.switch[s],
            smoothed.begun if last else smoothed.counts[s],
            gradient[at : at + free],
        )
    # noise: standard normal before any choice
    for i in range(coordinates):
        p = theta.size - coordinates + i
        value -= 0.5 * theta[p] * theta[p]
        gradient[p] = -theta[p]
        for s in range(states):
            for u in range(likelihoods.logs.shape[0]):
                gradient[p] += smoothed.weight[u, s] * likelihoods.own[s, u, i]
    # values: each decision counts as often as it was made in this state
    for s in range(states):
        for u in range(likelihoods.logs.shape[0]):
            for r in range(start[u], start[u + 1]):
                work.weighted[r] = smoothed.weight[u, s] * likelihoods.slopes[s, r]
        # gaps are linear in the value: slopes go back through the design
        transpose_multiply(data.design, work.weighted, work.by_value)
        for d in range(width):
            p = s * width + d
            total = 0.0
            if prior.basis.size > 0:
                for k in range(work.by_value.size):
                    total += prior.basis[k, d] * work.by_value[k]
            else:
                total = prior.width[d] * work.by_value[d]
            # standard normal z, whose values grow with the sd
            value -= 0.5 * theta[p] * theta[p]
            gradient[p] = scale * total - theta[p]
            if prior.scale > 0.0:
                gradient[sd_at] += scale * total * theta[p]
    return value
