"""Where Laplace importance sampling draws from: a Student distribution, and a cubic surrogate.

The Student distribution has the mode and the curvature of the posterior, and tails that are heavier
than the posterior's. The surrogate is the posterior itself, with its log-likelihood replaced by a
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
from revealed.samplers.particles import effective_size, systematic_resample


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
    # a Student variate is a normal one over the root of a chi-square over its degrees of freedom
    width = len(coordinates.centre)
    z = rng.standard_normal((count, width)) * np.sqrt(df / rng.chisquare(df, count))[:, None]
    constant = gammaln(0.5 * (df + width)) - gammaln(0.5 * df) - 0.5 * width * np.log(df * np.pi)
    log_root = np.log(np.diag(coordinates.root)).sum()
    kernel = -0.5 * (df + width) * np.log1p((z**2).sum(axis=1) / df)
    return Proposals(z, kernel + constant - log_root)


@dataclass(frozen=True, eq=False)
class Surrogate:
    """The posterior with a cubic polynomial for its log-likelihood.

    slope_error: (D,) exact minus fast slope of the log-likelihood at the mode. df: of the Student
    distribution that its draws are picked from.
    """

    coordinates: Coordinates
    cubic: CubicPolynomial
    slope_error: Floats
    df: float

    def log_density(self, x: Floats) -> Floats:
        """(n,) the log posterior at each of x (n, D), up to the constant of the prior."""
        prior = self.coordinates.prior.log_density(self.coordinates.values(x))
        return np.asarray(self.cubic(x) + x @ self.slope_error + prior)

    def draw(self, rng: np.random.Generator, count: int, oversampling: int) -> SurrogateDraws:
        """So many draws, picked by weight from `oversampling` times as many Student proposals.

        With enough of these no proposal is picked twice, so that draws are independent but for
        what the proposals share.
        """
        proposals = draw_student(rng, self.coordinates, self.df, oversampling * count)
        log_weights = self.log_density(proposals.x) - proposals.log_density
        weights = np.exp(log_weights - logsumexp(log_weights))
        picked = rng.permutation(systematic_resample(rng, weights, count))
        total = len(log_weights)
        log_mean = float(logsumexp(log_weights) - np.log(total))
        x = proposals.x[picked]
        return SurrogateDraws(
            Proposals(x, log_weights[picked] + proposals.log_density[picked] - log_mean),
            log_mean,
            float(np.sqrt(max(1.0 / effective_size(log_weights) - 1.0 / total, 0.0))),
            pareto_k(log_weights),
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
