"""Exact posteriors by other means than the package's: numpy and scipy only.

Nothing here knows a kernel, a sampler or a model of the package; what is taken from it elsewhere is
what it is asked. A posterior is a weighted set of points: a fine grid, or exact independent draws.
Coordinates are such that numbers are near one: a problem says how many units its coefficients have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.stats as st
from numpy.typing import NDArray
from scipy.special import log_ndtr, logsumexp, ndtri

Floats = NDArray[np.float64]
LogDensity = Callable[[Floats], Floats]

# Log density below the largest that is left out: a part of exp(-40).
NEGLIGIBLE = 40.0
# Where the noise of the chosen action is summed by a trapezoid rule: it may trail by 60 and keep
# its digits. The error falls as exp(-2 pi^2 sd^2 / step^2), sd being how wide the summand is: at
# least 0.45 with four actions, and 0.2 with 1e5. A coarse step is for fewer than FEW rivals.
NOISE_RANGE = (-9.0, 40.0)
COARSE_STEP, FINE_STEP, FEW = 0.25, 0.08, 10
# Points of a grid that are worked on at once, for the sake of memory.
AT_ONCE = 2000
# Draws of posteriors that are drawn from exactly: their own error is a fifth of what is tested,
# which widens its law by a fiftieth.
EXACT_DRAWS = 400_000
# Tails that are compared.
TAILS = (0.02, 0.98)


@dataclass(frozen=True, eq=False)
class Exact:
    """A posterior as points (n, D) with weights (n,)."""

    points: Floats
    weight: Floats

    @property
    def mean(self) -> Floats:
        """(D,) of each column."""
        return np.asarray(self.weight @ self.points / self.weight.sum())

    @property
    def sd(self) -> Floats:
        """(D,) of each column."""
        squares = self.weight @ (self.points - self.mean) ** 2
        return np.asarray(np.sqrt(squares / self.weight.sum()))

    def tails(self, column: int) -> list[tuple[float, float]]:
        """Thresholds between points near the tails, each with the probability below it."""
        order = np.argsort(self.points[:, column])
        at, below = self.points[order, column], np.cumsum(self.weight[order])
        found = []
        for probability in TAILS:
            i = int(np.searchsorted(below, probability * below[-1]))
            # the last of equal points, of which a grid has many, and the first of the next
            i = int(np.searchsorted(at, at[i], side="right")) - 1
            found.append((0.5 * float(at[i] + at[i + 1]), float(below[i] / below[-1])))
        return found


def on_grid(log_density: LogDensity, width: int, reach: float = 12.0, points: int = 0) -> Exact:
    """A posterior within `reach` of zero, on a grid that is narrowed to where it is."""
    final = points or {1: 20_001, 2: 401}[width]
    low, high = np.full(width, -reach), np.full(width, reach)
    coarse = {1: 1001, 2: 61}[width]
    # each narrowing gains a factor of coarse / 5, where there is so much to gain
    for count in (coarse, coarse, coarse, coarse, final):
        axes = [np.linspace(a, b, count) for a, b in zip(low, high, strict=True)]
        grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, width)
        parts = [grid[i : i + AT_ONCE] for i in range(0, len(grid), AT_ONCE)]
        logs = np.concatenate([log_density(part) for part in parts])
        kept = grid[logs > logs.max() - NEGLIGIBLE]
        step = (high - low) / (count - 1)
        low, high = kept.min(axis=0) - 2.0 * step, kept.max(axis=0) + 2.0 * step
    return Exact(grid, np.exp(logs - logs.max()))


def normal_prior(sd: Any = 1.0) -> LogDensity:
    """Of independent coefficients around zero."""
    return lambda v: np.asarray(-0.5 * ((v / sd) ** 2).sum(axis=1))


def pairs(leads: Any, counts: Any = 1.0, noise_sd: float = np.sqrt(2.0)) -> LogDensity:
    """Choices between two actions: rows chosen minus rows left (T, D), each seen so many times."""
    leads = np.atleast_2d(np.asarray(leads, dtype=np.float64))
    times = np.broadcast_to(np.asarray(counts, dtype=np.float64), len(leads))
    return lambda v: np.asarray(log_ndtr(v @ leads.T / noise_sd) @ times)


def choice(leads: Any, counts: Any = 1.0, times: float = 1.0) -> LogDensity:
    """One choice among many: the chosen row minus the others (m, D), so many of each.

    The noise of the chosen action is summed out: the mean of prod Phi(z + lead)^count.
    """
    leads = np.atleast_2d(np.asarray(leads, dtype=np.float64))
    many = np.broadcast_to(np.asarray(counts, dtype=np.float64), len(leads))
    step = COARSE_STEP if many.sum() < FEW else FINE_STEP
    noise = np.arange(*NOISE_RANGE, step)
    log_weight = -0.5 * noise**2 + np.log(step / np.sqrt(2.0 * np.pi))

    def log_density(v: Floats) -> Floats:
        gaps = v @ leads.T
        inside = np.tile(log_weight, (len(v), 1))
        for j, count in enumerate(many):
            inside += count * log_ndtr(noise + gaps[:, j, None])
        return np.asarray(times * logsumexp(inside, axis=1))

    return log_density


def product(*parts: LogDensity) -> LogDensity:
    """Of independent parts: the sum of their logs."""
    return lambda v: np.asarray(sum(part(v) for part in parts))


# Without a grid


def one_pair(lead: Floats, sd: float, seed: int = 1) -> Exact:
    """One choice of two under N(0, sd^2): skew normal along the lead, the prior across it.

    Azzalini's representation: delta |z| + sqrt(1 - delta^2) z'.
    """
    rng = np.random.default_rng(seed)
    length = float(np.linalg.norm(lead))
    slope = sd * length / np.sqrt(2.0)
    delta = slope / np.sqrt(1.0 + slope**2)
    z = rng.standard_normal((EXACT_DRAWS, lead.size))
    unit = lead / length
    z -= np.outer(z @ unit, unit)
    half, rest = np.abs(rng.standard_normal(EXACT_DRAWS)), rng.standard_normal(EXACT_DRAWS)
    z += np.outer(delta * half + rest / np.sqrt(1.0 + slope**2), unit)
    return Exact(sd * z, np.ones(EXACT_DRAWS))


def orthogonal_pairs(leads: Floats, sd: float) -> tuple[Floats, Floats]:
    """Mean and sd of each coefficient after choices of two whose leads (T, K) are orthogonal.

    Along each lead the posterior is skew normal, and these are independent:
    mean = sum u_t sd delta_t sqrt(2 / pi), covariance = sd^2 (I - 2 / pi sum delta_t^2 u_t u_t').
    """
    lengths = np.linalg.norm(leads, axis=1)
    units = leads / lengths[:, None]
    slope = sd * lengths / np.sqrt(2.0)
    squared = slope**2 / (1.0 + slope**2)
    mean = sd * np.sqrt(2.0 / np.pi) * np.sqrt(squared) @ units
    return mean, sd * np.sqrt(1.0 - 2.0 / np.pi * squared @ units**2)


def symmetric_choice(actions: int, sd: float, seed: int = 2) -> Exact:
    """One choice, of the first of so many actions with a feature each, under N(0, sd^2).

    All actions are alike, so that of any draw of values and noise the best may be called first.
    """
    rng = np.random.default_rng(seed)
    v = sd * rng.standard_normal((EXACT_DRAWS, actions))
    best = (v + rng.standard_normal(v.shape)).argmax(axis=1)
    rows = np.arange(EXACT_DRAWS)
    first = v[rows, best]
    v[rows, best] = v[:, 0]
    v[:, 0] = first
    return Exact(v, np.ones(EXACT_DRAWS))


def oblique_pairs(leads: Floats, sd: float, chains: int = 4000, sweeps: int = 300) -> Exact:
    """Choices of two with any leads (T, K): the unified skew normal, by many Gibbs chains.

    The T latent leads x v + noise are normal and positive; given them v is normal. Chains begin at
    independent points and only the second half of the sweeps is used, every tenth.
    """
    rng = np.random.default_rng(3)
    count, width = leads.shape
    covariance = sd**2 * leads @ leads.T + 2.0 * np.eye(count)
    precision = np.linalg.inv(covariance)
    latent = np.abs(rng.standard_normal((chains, count))) * np.sqrt(np.diag(covariance))
    gain = sd**2 * leads.T @ precision
    spread = np.linalg.cholesky(sd**2 * (np.eye(width) - gain @ leads) + 1e-12 * np.eye(width))
    found = []
    for sweep in range(sweeps):
        for t in range(count):
            variance = 1.0 / precision[t, t]
            others = latent @ precision[:, t] - precision[t, t] * latent[:, t]
            centre, scale = -variance * others, np.sqrt(variance)
            # a normal above zero by its distribution function, from the upper end for its digits
            above = np.exp(log_ndtr(centre / scale)) * (1.0 - rng.random(chains))
            latent[:, t] = np.maximum(centre - scale * ndtri(above), 0.0)
        if sweep >= sweeps // 2 and sweep % 10 == 0:
            found.append(latent @ gain.T + rng.standard_normal((chains, width)) @ spread.T)
    points = np.concatenate(found)
    return Exact(points, np.ones(len(points)))


def prior_draws(width: int, sd: Any = 1.0, seed: int = 4) -> Exact:
    """The prior itself, where choices say nothing."""
    quantiles = ndtri((np.arange(EXACT_DRAWS) + 0.5) / EXACT_DRAWS)
    rng = np.random.default_rng(seed)
    columns = [rng.permutation(quantiles) for _ in range(width)]
    return Exact(sd * np.stack(columns, axis=1), np.ones(len(quantiles)))


# Where a scale is inferred


def with_prior_scale(log_likelihood: LogDensity, scale: float) -> Exact:
    """One coefficient v ~ N(0, sd^2) with sd ~ scale |t|, four degrees: of v / sd and log sd."""

    def log_density(u: Floats) -> Floats:
        z, log_sd = u[:, 0], u[:, 1]
        prior = -0.5 * z**2 + st.t.logpdf(np.exp(log_sd) / scale, 4) + log_sd
        return np.asarray(log_likelihood((np.exp(log_sd) * z)[:, None]) + prior)

    return on_grid(log_density, 2, reach=20.0)


def one_pair_each(leads: Floats, mean_sd: float, sd_scale: float) -> Exact:
    """A population of one coefficient, one choice of two a group: of its mean and log sd.

    The group's value is summed out: P = Phi(x mean / sqrt(2 + x^2 sd^2)), x (G,) being the lead.
    The mean is N(0, mean_sd^2) and the sd sd_scale |t|, two degrees.
    """

    def log_density(u: Floats) -> Floats:
        mean, log_sd = u[:, 0], u[:, 1]
        wide = np.sqrt(2.0 + np.exp(2.0 * log_sd)[:, None] * leads**2)
        chosen = log_ndtr(mean[:, None] * leads / wide).sum(axis=1)
        prior = -0.5 * (mean / mean_sd) ** 2 + st.t.logpdf(np.exp(log_sd) / sd_scale, 2) + log_sd
        return np.asarray(chosen + prior)

    return on_grid(log_density, 2, reach=20.0)


def two_players(first: int, second: int, sd: float) -> Exact:
    """Wins of two players with skills N(0, sd^2): of their difference."""
    both = pairs([[1.0], [-1.0]], [first, second])
    return on_grid(product(both, normal_prior(np.sqrt(2.0) * sd)), 1, reach=12.0 * sd)


def two_players_of_unknown_spread(first: int, second: int, spread_sd: float) -> Exact:
    """The same where the spread of skills is half normal: of difference / spread and log spread."""
    both = pairs([[1.0]], [first]), pairs([[-1.0]], [second])

    def log_density(u: Floats) -> Floats:
        z, log_spread = u[:, 0], u[:, 1]
        difference = (np.exp(log_spread) * z)[:, None]
        prior = -0.25 * z**2 - 0.5 * (np.exp(log_spread) / spread_sd) ** 2 + log_spread
        return np.asarray(product(*both)(difference) + prior)

    return on_grid(log_density, 2, reach=20.0)


def one_race(players: int, sd: float, seed: int = 5) -> Exact:
    """The order of one race among players with skills N(0, sd^2): of the skill at each place.

    All players are alike, so that any draw of skills and noise may be put in the order it gives.
    Skills are measured from their mean, of which games say nothing.
    """
    rng = np.random.default_rng(seed)
    count = EXACT_DRAWS // max(1, players // 20)
    skill = sd * rng.standard_normal((count, players))
    order = np.argsort(-(skill + rng.standard_normal(skill.shape)), axis=1)
    skill -= skill.mean(axis=1, keepdims=True)
    return Exact(np.take_along_axis(skill, order, axis=1), np.ones(count))
