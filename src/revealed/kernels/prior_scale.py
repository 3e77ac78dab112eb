"""An inferred prior scale: v ~ N(mean, sd^2 S) with sd ~ scale |t|, t Student with four df.

The sd is not part of a chain's state: it is integrated out, or drawn exactly from its law given
the value where a move needs it. With D coordinates and Q = (v - mean)' S^-1 (v - mean), that law
has a log-concave density in u = log(4 scale^2 / sd^2),

    a u - c log(1 + exp u) - z exp u,   a = (D + 4) / 2,   c = 5 / 2,   z = Q / (8 scale^2),

and the prior of v with sd integrated out is a function of Q alone, held as a table of its
logarithm in log Q. Given the noise and (v - mean) / sd instead, the choices only say that sd lies
in an interval, and its law is the hyperprior cut to it. a, c and z have these meanings below.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from revealed._types import Floats, Ints
from revealed.kernels._compile import compiled, compiled_internal, inlined, inlined_formula
from revealed.kernels.design import Design, multiply
from revealed.kernels.parameter_expansion import ExpansionMove, ExpansionWorkspace
from revealed.kernels.vectors import dot

# Degrees of freedom of the half-Student-t hyperprior. Four has a finite variance, a tail that lets
# the data overrule the scale, and a closed-form tail probability: `student_tail` holds for it only.
HYPERPRIOR_DF = 4.0


class TableGrid(NamedTuple):
    """Where the log marginal prior is tabulated: the ends in log Q, and knots per unit of log Q.

    values_at_once: of the quadrature behind it, as many as take some megabytes.
    """

    low: float
    high: float
    knots_per_unit: int
    values_at_once: int = 1000


# With eight knots a unit the log prior is right to 2e-7 and its slope to 5e-6, for D from 1 to 300.
# Beyond the ends it is continued as a straight line in log Q, which is right to ten digits but for
# D = 1 on the left, where it is off by 0.01 at exp(-70), closer to the mean than any draw comes.
GRID = TableGrid(low=-60.0, high=60.0, knots_per_unit=8)
# Q is not taken to be smaller: at Q = 0 with D = 1 the law of sd would not be proper.
SMALLEST_Q = math.exp(GRID.low)


class EnvelopeLimits(NamedTuple):
    """After how many steps the loops of a draw of sd end; a few of each are needed.

    max_proposals: of the draw. max_reach_changes: of the envelope's tangent points.
    """

    max_proposals: int = 1000
    max_reach_changes: int = 200


ENVELOPE = EnvelopeLimits()


class PriorScale(NamedTuple):
    """What is needed to infer the scale of a prior.

    scale: of the hyperprior. dimension: D, the coordinates whose scale it is. mean: (K,) the prior
    mean. prior_diag or prior_full: S^-1 as in `LogPosterior`, the constants of sum-to-zero blocks
    given precision `constant_precision`. unscaled: how many coefficients, the last ones, are not of
    the value: the scale leaves them alone. Then the expansion move at any sd: with
    F F' = (X'X + S^-1 / sd^2)^-1, F = eigenvectors / sqrt(gram_eigenvalues + 1 / sd^2), and with
    precision_times_mean (K,) and translation_sd those of sd = 1.
    """

    scale: float
    dimension: int
    mean: Floats
    prior_diag: Floats
    prior_full: Floats
    constant_precision: float
    eigenvectors: Floats
    gram_eigenvalues: Floats
    precision_times_mean: Floats
    translation_sd: float
    unscaled: int = 0


def log_marginal(quad: Floats, dimension: int, scale: float) -> tuple[Floats, Floats]:
    """The log prior at each Q (n,) with sd integrated out, and its slope in log Q.

    Both are up to a constant, and by the trapezoid rule in u about the peak of the integrand. Some
    thousand at a time: their nodes together may be gigabytes.
    """
    parts = np.array_split(quad, -(-quad.size // GRID.values_at_once) or 1)
    logs, slopes = zip(*(_log_marginal(part, dimension, scale) for part in parts), strict=True)
    return np.concatenate(logs), np.concatenate(slopes)


def _log_marginal(quad: Floats, dimension: int, scale: float) -> tuple[Floats, Floats]:
    """As `log_marginal`, all at a time."""
    a = 0.5 * (dimension + HYPERPRIOR_DF)
    c = 0.5 * (HYPERPRIOR_DF + 1.0)
    z = quad[:, None] / (2.0 * HYPERPRIOR_DF * scale**2)
    # With D = 1 the density has a pole at zero, though a mild one.
    z = np.maximum(z, 1e-200)
    # The peak solves a quadratic in exp u; which root formula is used avoids cancellation.
    half = 0.5 * (a - c - z)
    root = np.sqrt(half**2 + z * a)
    peak = np.log(np.where(half > 0.0, (half + root) / z, a / np.maximum(root - half, 1e-300)))
    # To the left the density falls like exp((D - 1) / 2 u); with D = 1 there is a plateau as wide
    # as log z.
    left = (
        min(100.0, 100.0 / (dimension - 1) + 20.0 / np.sqrt(dimension - 1))
        if dimension > 1
        else 100.0
    )
    right = min(12.0, left) if dimension > 1 else 100.0
    u = peak + np.linspace(
        -left, right, round((left + right) / min(0.1, 0.7 / np.sqrt(dimension))) + 1
    )
    logs = a * u - c * np.logaddexp(0.0, u) - z * np.exp(u)
    top = logs.max(axis=1, keepdims=True)
    weight = np.exp(logs - top)
    total = weight.sum(axis=1)
    return top[:, 0] + np.log(total), -(weight * z * np.exp(u)).sum(axis=1) / total


@lru_cache(maxsize=8)
def marginal_table(dimension: int, scale: float) -> Floats:
    """(n, 2) the log prior with sd integrated out, and its slope in log Q, at the knots of GRID."""
    knots = np.linspace(
        GRID.low, GRID.high, round((GRID.high - GRID.low) * GRID.knots_per_unit) + 1
    )
    return np.ascontiguousarray(np.stack(log_marginal(np.exp(knots), dimension, scale), axis=1))


@inlined_formula
def interpolate_log_marginal(table: Floats, quad: float) -> tuple[float, float]:
    """The log prior at Q, and minus twice its slope in Q, which is the mean of 1 / sd^2.

    A cubic Hermite spline between the knots, straight lines beyond them.
    """
    q = max(quad, 1e-300)
    position = (math.log(q) - GRID.low) * GRID.knots_per_unit
    i = min(max(int(position), 0), table.shape[0] - 2)
    t = position - i
    # Heights and slopes (per knot) at both ends of the interval.
    left, right = table[i, 0], table[i + 1, 0]
    rise, fall = table[i, 1] / GRID.knots_per_unit, table[i + 1, 1] / GRID.knots_per_unit
    if t < 0.0:
        return left + rise * t, -2.0 * rise * GRID.knots_per_unit / q
    if t > 1.0:
        return right + fall * (t - 1.0), -2.0 * fall * GRID.knots_per_unit / q
    square, cube = 3.0 * (right - left) - 2.0 * rise - fall, 2.0 * (left - right) + rise + fall
    return (
        left + t * (rise + t * (square + t * cube)),
        -2.0 * (rise + t * (2.0 * square + 3.0 * t * cube)) * GRID.knots_per_unit / q,
    )


class MarginalPrior(NamedTuple):
    """The prior of a value whose scale may be inferred: normal, or with the scale integrated out.

    table: of the log prior in log Q, empty where the scale is given. pole_softening: how much
    further out, in Q, the slope is taken; see `LogPosterior`.
    """

    table: Floats
    pole_softening: float


@compiled_internal
def log_prior_of_quad(prior: MarginalPrior, quad: float) -> tuple[float, float]:
    """The log prior at Q up to a constant, and the precision by which its slope is that of -Q / 2.

    Any slope that depends on the position alone leaves the law of Hamiltonian paths exact.
    """
    if prior.table.size == 0:
        return -0.5 * quad, 1.0
    precision = interpolate_log_marginal(prior.table, quad + prior.pole_softening)[1]
    return interpolate_log_marginal(prior.table, quad)[0], precision


@inlined_formula
def _log_density(u: float, a: float, c: float, z: float) -> tuple[float, float]:
    """Log density of u given Q, up to a constant, and its slope in u."""
    t = math.exp(u)
    return a * u - c * math.log1p(t) - z * t, a - c * t / (1.0 + t) - z * t


@compiled
def draw_prior_sd(rng: np.random.Generator, prior_scale: PriorScale, quad: float) -> float:
    """Draw sd given Q = `quad`, exactly.

    Rejection under an envelope with a flat top and exponential sides, which are tangents of the
    log density about where it has fallen by one; Devroye (1986, section VII.2) has such envelopes
    for log-concave densities.
    """
    # in a compiled loop a NaN would find no end
    if not quad < np.inf:
        return np.nan
    a, c = 0.5 * (prior_scale.dimension + HYPERPRIOR_DF), 0.5 * (HYPERPRIOR_DF + 1.0)
    z = max(quad, SMALLEST_Q) / (2.0 * HYPERPRIOR_DF * prior_scale.scale * prior_scale.scale)
    half = 0.5 * (a - c - z)
    root = math.sqrt(half * half + z * a)
    peak = math.log((half + root) / z if half > 0.0 else a / (root - half))
    top = _log_density(peak, a, c, z)[0]
    left, right = (
        _tangent_point(peak, -1.0, top, a, c, z),
        _tangent_point(peak, 1.0, top, a, c, z),
    )
    # Where each tangent meets the flat top.
    height, rise = _log_density(left, a, c, z)
    begin = left + (top - height) / rise
    height, fall = _log_density(right, a, c, z)
    end = right + (top - height) / fall
    area = 1.0 / rise + (end - begin) - 1.0 / fall
    for _ in range(ENVELOPE.max_proposals):
        # One of the three pieces of the envelope, by area, and a point below it.
        position = area * rng.random()
        e = rng.standard_exponential()
        if position < 1.0 / rise:
            u, bound = begin - e / rise, top - e
        elif position < 1.0 / rise - 1.0 / fall:
            u, bound = end - e / fall, top - e
        else:
            u, bound = begin + (end - begin) * rng.random(), top
        if bound - rng.standard_exponential() <= _log_density(u, a, c, z)[0]:
            return 2.0 * prior_scale.scale * math.exp(-0.5 * u)
    # Never by chance, as one proposal in three or more is accepted: the numbers are out of range.
    return np.nan


@inlined
def _tangent_point(peak: float, side: float, top: float, a: float, c: float, z: float) -> float:
    """A u where the density is about 1/e of its peak: on the left for side -1, on the right for 1.

    The first guess is one sd of the normal with the peak's curvature; it is moved until the log
    density has fallen by 0.5 to 3. Any point there gives an exact envelope.
    """
    t = math.exp(peak)
    reach = 1.0 / math.sqrt(c * t / (1.0 + t) ** 2 + z * t)
    u = peak + side * reach
    for _ in range(ENVELOPE.max_reach_changes):
        if not _log_density(u, a, c, z)[0] > top - 0.5:
            break
        reach *= 2.0
        u = peak + side * reach
    for _ in range(ENVELOPE.max_reach_changes):
        if not _log_density(u, a, c, z)[0] < top - 3.0:
            break
        reach *= 0.7
        u = peak + side * reach
    return u


@compiled
def student_tail(t: float) -> float:
    """P(|T| > t) of a Student T with four degrees of freedom.

    It is d^2 (3 - d) / 2 with d = 1 - t / sqrt(4 + t^2).
    """
    hypotenuse = math.sqrt(HYPERPRIOR_DF + t * t)
    d = HYPERPRIOR_DF / (hypotenuse * (hypotenuse + t))
    return d * d * (3.0 - d) / 2.0


@compiled
def student_tail_inverse(probability: float) -> float:
    """The t with P(|T| > t) = probability: the cubic of `student_tail`, solved by an angle."""
    angle = 2.0 / 3.0 * math.asin(math.sqrt(0.5 * probability))
    d = 2.0 * math.sin(0.5 * angle) ** 2 + math.sqrt(3.0) * math.sin(angle)
    return max(2.0 * (1.0 - d) / math.sqrt(d * (2.0 - d)), 0.0)


@compiled
def mahalanobis_squared(prior_scale: PriorScale, v: Floats, offset: Floats) -> float:
    """Q of v (K,), but for what the scale leaves alone; v - mean is written into offset (K,)."""
    total = 0.0
    for k in range(v.size):
        offset[k] = v[k] - prior_scale.mean[k]
    for k in range(v.size - prior_scale.unscaled):
        total += offset[k] * (
            dot(prior_scale.prior_full[k], offset)
            if prior_scale.prior_full.size > 0
            else prior_scale.prior_diag[k] * offset[k]
        )
    return total


@compiled_internal
def at_scale(
    prior_scale: PriorScale, move: ExpansionMove, workspace: ExpansionWorkspace, sd: float
) -> ExpansionMove:
    """The move under a prior of this sd; its factor and mean lie in the workspace.

    In the eigenvectors of X'X against S^-1, (X'X + S^-1 / sd^2)^-1 is diagonal at every sd, so
    that nothing has to be factorised again.
    """
    precision = 1.0 / (sd * sd)
    for k in range(prior_scale.eigenvectors.shape[0]):
        for d in range(prior_scale.gram_eigenvalues.size):
            workspace.factor[k, d] = prior_scale.eigenvectors[k, d] / math.sqrt(
                prior_scale.gram_eigenvalues[d] + precision
            )
        workspace.precision_times_mean[k] = prior_scale.precision_times_mean[k] * precision
    return ExpansionMove(
        workspace.factor,
        workspace.precision_times_mean,
        move.constants,
        move.constant_utilities,
        prior_scale.translation_sd * sd,
        move.rescales,
        move.scale_shape,
        move.scale_rate,
        move.lost_df,
        prior_scale.prior_diag,
        prior_scale.prior_full,
        precision,
    )


@compiled_internal
def rescale_given_noise(
    rng: np.random.Generator,
    prior_scale: PriorScale,
    design: Design,
    start: Ints,
    chosen_row: Ints,
    sd: float,
    v: Floats,
    w: Floats,
    offset: Floats,
    offset_utility: Floats,
) -> float:
    """Draw sd given the noise and (v - mean) / sd; returns the new sd.

    The value v (K,) and the utilities w (P,) follow it. offset (K,) and offset_utility (P,) are
    workspaces for v - mean and X (v - mean).
    """
    for k in range(v.size):
        offset[k] = v[k] - prior_scale.mean[k]
    multiply(design, offset, offset_utility)
    # The interval of relative changes under which every chosen utility stays the largest.
    low, high = -1.0, np.inf
    for t in range(chosen_row.size):
        c = chosen_row[t]
        for j in range(start[t], start[t + 1]):
            slope, gap = offset_utility[c] - offset_utility[j], w[c] - w[j]
            if slope > 0.0:
                low = max(low, -gap / slope)
            elif slope < 0.0:
                high = min(high, -gap / slope)
    # The half-Student-t hyperprior cut to that interval, by inversion of its tail probability.
    most = student_tail(sd * max(1.0 + low, 0.0) / prior_scale.scale)
    least = student_tail(sd * (1.0 + high) / prior_scale.scale) if high < np.inf else 0.0
    new = prior_scale.scale * student_tail_inverse(least + (most - least) * rng.random())
    change = new / sd - 1.0
    # Rounding, at the edge of a far interval, must not contradict a choice.
    if not low <= change <= high:
        return sd
    for k in range(v.size):
        v[k] += change * offset[k]
    for p in range(w.size):
        w[p] += change * offset_utility[p]
    return new
