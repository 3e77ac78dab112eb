"""Where Laplace importance sampling draws from: a Student distribution, and a cubic surrogate.

The Student distribution has the mode and the curvature of the posterior, and tails that are heavier
than the posterior's; a skewed one (`skewed_proposals.py`) has its third derivatives too. The
surrogate is the posterior itself, with its log-likelihood replaced by a
cubic polynomial, so that proposals cost nothing to weigh:

    log surrogate(x) = cubic(x) + slope_error' x + log prior(x),

with x the coordinates in which the posterior is about standard normal. The slope error is that of
the fast likelihood at the mode, where the exact one was evaluated too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp

from revealed._types import Floats, Ints
from revealed.models.priors import ResolvedPrior
from revealed.results.psis import pareto_k
from revealed.samplers.cubic import CubicPolynomial
from revealed.samplers.laplace_settings import LAPLACE
from revealed.samplers.particles import effective_size, systematic_resample
from revealed.samplers.skewed_proposals import SkewedLaw


@dataclass(frozen=True, eq=False)
class Coordinates:
    """The map v = mean + basis (centre + root x) from coordinates x (D,) to coefficients v (K,)."""

    prior: ResolvedPrior
    centre: Floats
    root: Floats

    def values(self, x: Floats) -> Floats:
        """(n, K) the coefficients at each of x (n, D)."""
        q = self.centre + x @ self.root.T
        return np.ascontiguousarray(self.prior.mean + q @ self.prior.basis.T)

    def positions(self, values: Floats) -> Floats:
        """(n, D) the coordinates of each of values (n, K)."""
        q = (values - self.prior.mean) @ self.prior.basis
        return np.asarray(np.linalg.solve(self.root, (q - self.centre).T).T)

    def gradients(self, by_value: Floats) -> Floats:
        """(n, D) derivatives in x, from derivatives in v (n, K)."""
        return np.asarray(by_value @ self.prior.basis @ self.root)


class Proposals(NamedTuple):
    """Proposals x (n, D), and the logarithm of their density in the coordinates q, normalised."""

    x: Floats
    log_density: Floats


def draw_student(
    rng: np.random.Generator, coordinates: Coordinates, df: float, count: int
) -> Proposals:
    """Proposals from a multivariate Student distribution of unit scale in x."""
    z, log_density = _student_vectors(rng, len(coordinates.centre), df, count)
    return Proposals(z, log_density - np.log(np.diag(coordinates.root)).sum())


def draw_skewed(
    rng: np.random.Generator, coordinates: Coordinates, law: SkewedLaw, count: int
) -> Proposals:
    """Proposals that are as skewed as the posterior: Student vectors, spread and then skewed."""
    width = len(coordinates.centre)
    z, log_density = _student_vectors(rng, width, law.df, count)
    x, log_jacobian = law.skew(law.spread * z)
    log_scale = np.log(np.diag(coordinates.root)).sum() + width * np.log(law.spread)
    return Proposals(x, log_density - log_jacobian - log_scale)


def _student_vectors(
    rng: np.random.Generator, width: int, df: float, count: int
) -> tuple[Floats, Floats]:
    """(n, D) vectors of a multivariate Student distribution of unit scale, and log densities."""
    # a Student variate is a normal one over the root of a chi-square over its degrees of freedom
    z = rng.standard_normal((count, width)) * np.sqrt(df / rng.chisquare(df, count))[:, None]
    constant = gammaln(0.5 * (df + width)) - gammaln(0.5 * df) - 0.5 * width * np.log(df * np.pi)
    kernel = -0.5 * (df + width) * np.log1p((z**2).sum(axis=1) / df)
    return z, kernel + constant


@dataclass(frozen=True, eq=False)
class Surrogate:
    """The posterior with a cubic polynomial for its log-likelihood.

    slope_error: (D,) exact minus fast slope of the log-likelihood at the mode.
    """

    coordinates: Coordinates
    cubic: CubicPolynomial
    slope_error: Floats

    @property
    def law(self) -> SkewedLaw:
        """What its draws are picked from: a law that is as skewed."""
        return SkewedLaw.of(self.cubic.third_derivatives())

    def log_density(self, x: Floats) -> Floats:
        """(n,) the log posterior at each of x (n, D), up to the constant of the prior."""
        prior = self.coordinates.prior.log_density(self.coordinates.values(x))
        return np.asarray(self.cubic(x) + x @ self.slope_error + prior)

    def draw(self, rng: np.random.Generator, count: int, oversampling: int) -> SurrogateDraws:
        """So many draws, picked by weight from `oversampling` times as many skewed proposals.

        With enough of these no proposal is picked twice, so that draws are independent but for
        what the proposals share. Very many are made in portions, each with its share of the draws.
        """
        portions = -(-count * oversampling * len(self.coordinates.centre) // LAPLACE.max_numbers)
        picked, log_weights, law = [], [], self.law
        for share in np.diff(np.linspace(0, count, portions + 1).astype(np.int64)):
            proposals = draw_skewed(rng, self.coordinates, law, oversampling * int(share))
            log_density = self.log_density(proposals.x)
            logs = log_density - proposals.log_density
            keep = systematic_resample(rng, np.exp(logs - logsumexp(logs)), int(share))
            keep = rng.permutation(keep)
            picked.append(Proposals(proposals.x[keep], log_density[keep]))
            log_weights.append(logs)
        all_weights = np.concatenate(log_weights)
        log_mean = float(logsumexp(all_weights) - np.log(len(all_weights)))
        spread = 1.0 / effective_size(all_weights) - 1.0 / len(all_weights)
        x, log_density = (np.concatenate(parts) for parts in zip(*picked, strict=True))
        return SurrogateDraws(
            Proposals(x, log_density - log_mean),
            log_mean,
            float(np.sqrt(max(spread, 0.0))),
            pareto_k(all_weights),
        )


class SurrogateDraws(NamedTuple):
    """Draws of a surrogate, and how well they were picked.

    log_normaliser: the logarithm of the surrogate's integral, with the standard error `error`.
    pareto_k: of the weights they were picked by.
    """

    proposals: Proposals
    log_normaliser: float
    error: float
    pareto_k: float


class WeightedPoints(NamedTuple):
    """Points x (n, D), and weights (n,) that add up to one."""

    x: Floats
    weights: Floats


def draw_wide(rng: np.random.Generator, surrogate: Surrogate, count: int) -> WeightedPoints:
    """Points that stand for a surrogate's law by their weights, and lie further out than its draws.

    A surrogate is furthest from what it stands for in its tails, where few of its own draws would
    be. The points are normal with variance 1 + sqrt(3 / D); in any dimension their weights then
    leave about half of them effective.
    """
    width = len(surrogate.coordinates.centre)
    variance = 1.0 + np.sqrt(3.0 / width)
    x = np.sqrt(variance) * rng.standard_normal((count, width))
    log_weights = surrogate.log_density(x) + 0.5 * (x**2).sum(axis=1) / variance
    return WeightedPoints(x, np.exp(log_weights - logsumexp(log_weights)))


def weighted_sd(x: Floats, weights: Floats) -> float:
    """The sd of x, each counting by a weight; weights add up to one."""
    spread = weights @ (x - weights @ x) ** 2
    # one degree of freedom is lost to the mean, of as many as points are effective
    return float(np.sqrt(spread / (1.0 - weights @ weights)))


def log_mean_exp(logs: Floats, weights: Floats | None = None) -> tuple[float, float]:
    """The logarithm of the mean of exp(logs), and its standard error by the delta method.

    weights: what each counts for, adding up to one; None if all count the same.
    """
    w = np.full(len(logs), 1.0 / len(logs)) if weights is None else weights
    relative = np.exp(logs - logs.max())
    mean = w @ relative
    error = np.sqrt((w**2) @ (relative - mean) ** 2 / (1.0 - w @ w)) / mean
    return float(logs.max() + np.log(mean)), float(error)


def log_prior_constant(prior: ResolvedPrior) -> float:
    """The logarithm of what the density of a prior is to be multiplied with."""
    log_determinant = np.linalg.slogdet(prior.precision)[1]
    return float(0.5 * log_determinant - 0.5 * len(prior.precision) * np.log(2.0 * np.pi))


def independence_chains(
    rng: np.random.Generator, log_weights: Floats, chains: int, draws: int
) -> Ints:
    """(chains * draws,) positions of weighted proposals, visited by independence Metropolis chains.

    Each chain begins at a proposal picked by weight, and goes through proposals of its own in turn:
    it moves to the next with probability w_new / w_old. Proposals that are worth much are stayed at
    for longer, so that the chains' own autocorrelation tells how few independent draws they are
    worth; those of resampling with weights would look independent.
    """
    weights = np.exp(log_weights - logsumexp(log_weights))
    begin = rng.permutation(systematic_resample(rng, weights, chains))
    # as many proposals for each chain as there are, in an order of their own
    offered = np.resize(rng.permutation(len(log_weights)), (chains, draws))
    log_uniform = np.log(rng.random((chains, draws)))
    at = np.empty((chains, draws), dtype=np.int64)
    for c in range(chains):
        current = int(begin[c])
        for n in range(draws):
            candidate = int(offered[c, n])
            if log_uniform[c, n] < log_weights[candidate] - log_weights[current]:
                current = candidate
            at[c, n] = current
    return at.ravel()
