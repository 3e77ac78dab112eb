"""The log evidence of values that change by importance sampling, paths summed over by particles.

Sizes of steps and the noise are few numbers. A multivariate t fitted to draws of them proposes
others, and a particle filter estimates the likelihood of all choices at each: the mean of

    prior * estimate / density of the proposal

is unbiased (Andrieu and Roberts 2009), whatever the posterior of paths is. Bridge sampling
(`path_evidence.py`) is much more exact where a normal law is near that posterior; under lapses it
may be near none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg as sla
import scipy.stats as st
from scipy.special import logsumexp

from revealed._types import Floats
from revealed.kernels.interrupt import raise_if_stopping
from revealed.kernels.path_filter import filter_paths
from revealed.kernels.path_process import PathLaw, PathProcess, make_path_law, write_path_law
from revealed.kernels.state_space import LIMITS, PathData, make_path_workspace
from revealed.samplers.path_evidence import BRIDGE, Evidence, PathDraws, Proposal, log_prior


@dataclass(frozen=True)
class FilterSettings:
    """How an evidence is estimated; wrong settings cost time or a refusal.

    particles: at each node. least_effective: of the proposals, below which few of them make the
    mean, and its error is not known either.
    """

    particles: int = 1000
    least_effective: float = 10.0


FILTER = FilterSettings()


def start_root(process: PathProcess, law: PathLaw) -> Floats:
    """(D, D) lower triangular root of the covariance of a path's first value."""
    if process.reverts:
        return np.diag(np.sqrt(law.variance[0]))
    return np.asarray(sla.cholesky(np.linalg.inv(law.start), lower=True))


def filter_evidence(
    rng: np.random.Generator,
    data: PathData,
    process: PathProcess,
    known: Floats,
    drawn: PathDraws,
    count: int,
) -> Evidence:
    """The log evidence from so many proposals, and its error; refused where few of them count."""
    unknown = np.flatnonzero(np.isnan(known))
    nodes, width = len(process.gap), len(process.size)
    x = np.concatenate([drawn.theta[:, :, unknown], drawn.noise], axis=2)
    proposal = Proposal(x.reshape(x.shape[0] * x.shape[1], x.shape[2]))
    # one law and one workspace, which every proposal writes to
    law, work = make_path_law(nodes, width), make_path_workspace(data, nodes, width)
    log_weights = np.full(count, -np.inf)
    for i in range(count):
        raise_if_stopping()
        at = proposal.draw(rng)
        theta, noise = np.where(np.isnan(known), 0.0, known), at[len(unknown) :]
        theta[unknown] = at[: len(unknown)]
        # nothing of the posterior is there, and numbers would overflow
        if not (np.abs(noise) < LIMITS.noise).all():
            continue
        # the likelihood with all paths summed over, but for its error
        write_path_law(process, theta, law)
        found = filter_paths(
            rng, data, process, law, start_root(process, law), noise, work, FILTER.particles
        )
        of_prior = log_prior(process, theta) + float(st.norm.logpdf(noise).sum())
        log_weights[i] = of_prior + found - proposal.log_density(at)
    return _mean_weight(log_weights)


def _mean_weight(log_weights: Floats) -> Evidence:
    """The log of the mean weight, and its error; refused where few weights make it."""
    count, log_sum = len(log_weights), float(logsumexp(log_weights))
    # weights that sum to one: few large ones make a mean that cannot be trusted
    share = np.exp(log_weights - log_sum)
    effective = 1.0 / float((share**2).sum())
    error = float(share.std(ddof=1) * np.sqrt(count))
    if effective < FILTER.least_effective or not error < BRIDGE.max_error:
        raise ValueError(
            f"the evidence is not known: {effective:.0f} of {count} proposals make it, and the "
            f"error of its log is {error:.2g} or more; give more draws"
        )
    return Evidence(log_sum - float(np.log(count)), error, effective / count)
