"""The log evidence of values that change: by bridge sampling, and Laplace's approximation.

With the coordinates of `kernels/state_space.py`, the joint density of choices and all that is
unknown is p(theta) Z(theta) N(z) p(noise) exp(l - s), l the log-likelihood and s its stand-in. A
proposal g(theta, noise) N(z), g a multivariate t fitted to draws, leaves weights

    w = p(theta) Z(theta) p(noise) exp(l - s) / g(theta, noise)

in which z does not appear: they hardly vary, however long the path is. With n draws of the
posterior and as many of the proposal, the bridge is the root r of Meng and Wong (1996),

    r = mean over proposals of w / (w + r)  /  mean over draws of 1 / (w + r).

Stand-in and g are fitted to the first halves of chains and the bridge is made of the others. The
error has the variances of both means, that of draws with their autocorrelation
(Fruehwirth-Schnatter 2004).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.stats as st
from scipy.special import expit, log_expit, logsumexp

from revealed._types import Floats
from revealed.kernels.interrupt import raise_if_stopping
from revealed.kernels.path_process import PathProcess
from revealed.kernels.prior_scale import HYPERPRIOR_DF
from revealed.kernels.state_space import (
    LIMITS,
    NormalPaths,
    PathData,
    evaluate_path,
    is_within,
    make_placed,
    make_point,
    place_law,
    subtract_stand_in,
    write_value,
)
from revealed.results.diagnostics import mcse_mean
from revealed.samplers.path_reference import ReferenceFinder


@dataclass(frozen=True)
class BridgeSettings:
    """How bridges are made; wrong settings cost time or a refusal.

    paths: that the stand-in is fitted to. df, widen: of the proposal, which must have the longer
    tails. rounds: of the fixed point. least_draws: of each half of the posterior's. max_error: of
    the log, beyond which nothing is said. least_overlap: of the mean of w / (w + r) over
    proposals, a half where both have one law: with less, few terms make the bridge, and its error
    is not known either. Terms are bounded, so that tails of the weights do not matter as they do
    in importance sampling.
    """

    paths: int = 40
    df: float = 4.0
    widen: float = 1.2
    rounds: int = 200
    least_draws: int = 50
    max_error: float = 0.3
    least_overlap: float = 0.02


BRIDGE = BridgeSettings()


class Evidence(NamedTuple):
    """The log evidence of all choices.

    error: its Monte-Carlo standard error, NaN by Laplace's approximation. overlap: of draws and
    proposals, a half where both have one law; by a filter, the share of proposals that count; NaN
    too.
    """

    log_evidence: float
    error: float
    overlap: float


class PathDraws(NamedTuple):
    """Posterior draws (chains, n, ...): theta (P,), coordinates of the noise (E,), paths (N, D)."""

    theta: Floats
    noise: Floats
    paths: Floats


def log_constant(process: PathProcess) -> float:
    """What the kernels leave out of log Z(theta), as it does not depend on theta."""
    if process.reverts:
        return 0.0
    width, steps = len(process.size), ~process.first
    # a step between sessions has a variance of its own, whatever the gap
    if process.between:
        steps = steps & ~process.crosses
    of_start = 0.5 * float(np.linalg.slogdet(process.start_precision)[1]) * process.first.sum()
    return float(of_start - 0.5 * width * np.log(process.gap[steps]).sum())


def log_prior(process: PathProcess, theta: Floats) -> float:
    """The log prior density of what is unknown of theta.

    With the constants that moves can do without.
    """
    total = 0.0
    for p, scale in enumerate(process.scales):
        # half-t of exp(theta), with the factor exp(theta) of a density on the log scale
        if scale > 0.0:
            density = st.t.logpdf(np.exp(theta[p]) / scale, HYPERPRIOR_DF)
            total += np.log(2.0 / scale) + float(density) + theta[p]
    if process.reverts:
        # the last of theta; the sd of its prior is never inferred with it
        width = len(process.size)
        centre = theta[len(theta) - width :]
        square = float(centre @ process.start_precision @ centre)
        total += 0.5 * float(np.linalg.slogdet(process.start_precision)[1]) - 0.5 * square
        total -= 0.5 * width * np.log(2.0 * np.pi)
    return total


def laplace_evidence(data: PathData, process: PathProcess, known: Floats) -> float:
    """Laplace's approximation of the log evidence, where nothing but the path is unknown."""
    finder, none = ReferenceFinder(data, process, known), np.zeros(0)
    path = np.zeros((finder.nodes, finder.width))
    _, stand_in = finder.mode(known, path, none)
    # at the mode of the path the normal law of prior and stand-in is the approximation
    if not place_law(finder.normal(stand_in), finder.work, known, finder.placed):
        raise ValueError(
            "the normal approximation of the path is lost to rounding; give larger sds of steps"
        )
    return float(finder.placed.log_density[1]) + log_constant(process)


class Proposal:
    """A t with about the mean and covariance of draws (n, U), of theta and the noise."""

    def __init__(self, fitted: Floats) -> None:
        self.size = fitted.shape[1]
        if self.size:
            spread = np.atleast_2d(np.cov(fitted.T)) * BRIDGE.widen**2
            self.root = np.linalg.cholesky(spread + 1e-10 * np.eye(self.size))
            self.t = st.multivariate_t(fitted.mean(axis=0), spread, df=BRIDGE.df, seed=0)

    def draw(self, rng: np.random.Generator) -> Floats:
        """A draw of theta's unknown numbers and of the noise's.

        A t is a normal over the root of a chi-squared variable.
        """
        if not self.size:
            return np.zeros(0)
        scale = np.sqrt(BRIDGE.df / rng.chisquare(BRIDGE.df))
        return np.asarray(self.t.loc + scale * self.root @ rng.standard_normal(self.size))

    def log_density(self, x: Floats) -> float:
        """Of a draw; zero where nothing is unknown."""
        return float(self.t.logpdf(x)) if self.size else 0.0


class _Weights:
    """Log weights at draws and proposals.

    On one stand-in, with arrays of its own.
    """

    def __init__(self, finder: ReferenceFinder, normal: NormalPaths, proposal: Proposal) -> None:
        self.finder, self.normal, self.data = finder, normal, finder.data
        self.proposal = proposal
        self.placed = make_placed(finder.nodes, finder.width, len(finder.known))
        self.point = make_point(finder.nodes, finder.width, finder.data.coordinates)

    def at(self, x: Floats, given: Floats, is_path: bool) -> float:
        """The log weight at x and a path (N, D), or the one that such coordinates z stand for."""
        raise_if_stopping()
        finder, point = self.finder, self.point
        count = len(finder.unknown)
        theta, noise = np.where(np.isnan(finder.known), 0.0, finder.known), x[count:]
        theta[finder.unknown] = x[:count]
        if not place_law(self.normal, finder.work, theta, self.placed):
            return -np.inf
        process = finder.process
        if is_path:
            point.value[:] = given
        else:
            write_value(self.placed, process.first, given, point.value)
        if not is_within(point.value, LIMITS.value) or not (np.abs(noise) < LIMITS.noise).all():
            return -np.inf
        found = evaluate_path(
            self.data, finder.work, point.value, noise, point.slope, point.noise_slope
        )
        residual = found - subtract_stand_in(self.normal, point)
        of_noise = st.norm.logpdf(noise).sum() if len(noise) else 0.0
        log_z = float(self.placed.log_density[1]) + log_constant(process)
        return float(
            log_prior(process, theta) + log_z + of_noise + residual - self.proposal.log_density(x)
        )


def bridge_evidence(
    rng: np.random.Generator,
    data: PathData,
    process: PathProcess,
    known: Floats,
    drawn: PathDraws,
    count: int,
) -> Evidence:
    """The log evidence from posterior draws, of which about `count` are used, and its error.

    Refuses with a sentence where too few overlap with the proposal.
    """
    chains, length = drawn.theta.shape[:2]
    half = length // 2
    if chains * half < BRIDGE.least_draws:
        raise ValueError(
            f"the evidence needs at least {2 * BRIDGE.least_draws} draws, and there are "
            f"{chains * length}; fit with more"
        )
    finder = ReferenceFinder(data, process, known)
    x = np.concatenate([drawn.theta[:, :, finder.unknown], drawn.noise], axis=2)
    # the first halves: stand-in and proposal
    some = np.linspace(0, half - 1, max(1, BRIDGE.paths // chains)).astype(np.int64)
    paths = drawn.paths[:, some].reshape(-1, *drawn.paths.shape[2:])
    noise = drawn.noise[:, some].reshape(len(paths), -1)
    normal = finder.normal(finder.mean_stand_in(paths, noise))
    proposal = Proposal(x[:, :half].reshape(chains * half, -1))
    weights = _Weights(finder, normal, proposal)
    # the others: the bridge
    used = min(length - half, max(BRIDGE.least_draws, count) // chains + 1)
    kept = half + np.linspace(0, length - half - 1, used).astype(np.int64)
    at_draws = np.array(
        [[weights.at(x[c, i], drawn.paths[c, i], True) for i in kept] for c in range(chains)]
    )
    shape = drawn.paths.shape[2:]
    at_proposals = np.array(
        [
            weights.at(proposal.draw(rng), rng.standard_normal(shape), False)
            for _ in range(at_draws.size)
        ]
    )
    return _bridge(at_draws, at_proposals)


def _bridge(at_draws: Floats, at_proposals: Floats) -> Evidence:
    """The bridge from log weights at draws (chains, n) and at as many proposals (n,).

    Refuses where they overlap too little.
    """
    level = float(np.median(at_draws))
    for _ in range(BRIDGE.rounds):
        # both means in logs: w / (w + r) and 1 / (w + r)
        above = log_expit(at_proposals - level)
        below = log_expit(level - at_draws) - level
        new = float(logsumexp(above) - logsumexp(below))
        moved, level = abs(new - level), new
        if moved < 1e-10 * (1.0 + abs(level)):
            break
    above, below = expit(at_proposals - level), expit(level - at_draws)
    of_proposals = above.std(ddof=1) / np.sqrt(above.size) / above.mean()
    of_draws = 0.0
    # equal weights have no error, and no autocorrelation either
    if below.std() > 1e-12:
        of_draws = float(mcse_mean(below[:, :, None])[0]) / below.mean()
    error, overlap = float(np.hypot(of_proposals, of_draws)), float(above.mean())
    if overlap < BRIDGE.least_overlap or not error < BRIDGE.max_error:
        raise ValueError(
            "the evidence is not known: the draws and the normal law that they are compared with "
            f"overlap by {overlap:.2g}, where a half is best and {BRIDGE.least_overlap:g} the "
            f"least, and the error of the log is {error:.2g} or more; fit with more draws, give "
            'method="filter", or compare the models by post.loo()'
        )
    return Evidence(level, error, overlap)
