"""Where chains of strategies that take turns begin: the best of several local modes.

The posterior has a mode for every order of the labels, and may have others that are worse. Each
start climbs from a clustering of its own: sequences are cut into pieces, pieces are clustered by
the slopes of their likelihood at the value that suits all choices, and each cluster's value is a
Newton step from there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize

from revealed._types import Floats, Ints
from revealed.kernels.interrupt import raise_if_stopping
from revealed.kernels.switching import SwitchingWorkspace
from revealed.models.switching import simplex_basis
from revealed.samplers.adaptation import curvature_root
from revealed.samplers.switching_density import SwitchingDensity


@dataclass(frozen=True)
class StartSettings:
    """Settings of starts; wrong ones cost time, never correctness.

    clusterings: that a chain's start is the best of; with one, chains more often begin at modes
    that are not the best. pieces: decisions that a piece of a sequence has, at least and at most;
    longer ones mix strategies, shorter ones say too little. rounds: of k-means. steps, slope: a
    climb ends after so many steps, or where it is as flat; one that is cut short begins lower.
    largest_step: of a cluster's value, in sds of what suits all. jitter: of the same, so that
    clusters without choices differ. difference: between slopes, of second derivatives; a much
    smaller one is lost to rounding. least_curvature, least_eigenvalue: that are believed, the prior
    having one.
    """

    clusterings: int = 4
    pieces: tuple[int, int] = (5, 80)
    rounds: int = 20
    steps: int = 300
    slope: float = 1e-2
    largest_step: float = 30.0
    jitter: float = 0.1
    difference: float = 1e-3
    least_curvature: float = 0.5
    least_eigenvalue: float = 0.05


START = StartSettings()


@dataclass(frozen=True, eq=False)
class SwitchingStarts:
    """What finds modes of one posterior.

    What suits all choices is found once, for all chains.
    """

    density: SwitchingDensity

    def find(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Theta at the best of some modes, and a root (P, P) of the inverse curvature there."""
        density, work = self.density, self.density.workspace()
        # climbs end at different modes: the highest counts
        best, found = -np.inf, np.zeros(density.size)
        for _ in range(START.clusterings if density.states > 1 else 1):
            theta = self.climb(work, self.cluster(rng))
            value = density.evaluate(work, theta, np.empty(density.size))
            if value > best:
                best, found = value, theta
        return found, root_at(density, work, found)

    @cached_property
    def pooled(self) -> tuple[Floats, Floats, Floats]:
        """What suits all choices, of a single strategy.

        Its theta, a root (D, D) of the inverse curvature of z there, and the slopes (U, D) of each
        kind of decision in these coordinates.
        """
        density = self.density
        prior = density.prior._replace(
            switch=np.ones((1, 1)), initial=np.ones(1), simplex=simplex_basis(1)
        )
        one = SwitchingDensity(density.data, prior, density.noise)
        # of one strategy the posterior has a single mode
        work, width = one.workspace(), density.width
        theta = climb(one, work, np.zeros(one.size), np.ones(one.size))
        root = root_at(one, work, theta)[:width, :width]
        # at the mode once more: slopes of each kind of decision are left in the workspace
        one.evaluate(work, theta, np.empty(one.size))
        start, design = density.data.rivals.start, density.data.design
        rows = (
            np.ascontiguousarray(design.columns.T)
            if design.columns.size
            else sp.csr_array(
                (design.data, design.indices, design.indptr),
                shape=(int(start[-1]), len(prior.mean)),
            )
        )
        # each decision's rivals side by side
        slopes = sp.csr_array(
            (work.likelihoods.slopes[0], np.arange(start[-1]), start),
            shape=(len(start) - 1, int(start[-1])),
        )
        scale = np.exp(theta[width]) if prior.scale > 0.0 else 1.0
        basis = prior.basis if prior.basis.size else np.diag(prior.width)
        return theta, root, np.asarray(slopes @ (rows @ (scale * basis @ root)))

    def climb(self, work: SwitchingWorkspace, theta: Floats) -> Floats:
        """A local mode of the log posterior, from theta.

        Values move in the sds of what suits all choices.
        """
        density, width = self.density, self.density.width
        # coordinates of values in sds of what suits all
        scale = np.ones(density.size)
        sd = np.sqrt((self.pooled[1] ** 2).sum(axis=1))
        scale[: density.states * width] = np.tile(sd, density.states)
        return climb(density, work, theta, scale)

    def cluster(self, rng: np.random.Generator) -> Floats:
        """Theta of a random clustering of pieces of sequences."""
        density = self.density
        pooled, root, slopes = self.pooled
        width, states, kind = density.width, density.states, density.data.kind
        starts = self._pieces(rng)
        scores = np.add.reduceat(slopes[kind], starts, axis=0)
        sizes = np.diff(np.append(starts, len(kind)))
        # fewer pieces than strategies cannot be clustered
        label = rng.integers(0, states, len(starts))
        if len(starts) > states > 1:
            label = _k_means(rng, scores / np.sqrt(sizes)[:, None], states)
        # transitions begin where all are alike
        theta = np.zeros(density.size)
        for s in range(states):
            own = label == s
            # a Newton step: slopes of the cluster's choices, curvature by their share of all
            share = max(sizes[own].sum() / sizes.sum(), 1e-3)
            step = scores[own].sum(axis=0) / share
            step *= min(1.0, START.largest_step / max(float(np.linalg.norm(step)), 1e-12))
            step += START.jitter * rng.standard_normal(width)
            theta[s * width : (s + 1) * width] = pooled[:width] + root @ step
        # an sd and the noise as they suit all choices
        theta[density.scale_at :] = pooled[width:]
        return theta

    def _pieces(self, rng: np.random.Generator) -> Ints:
        """Where pieces begin, among all decisions in order; all about as long as one another."""
        # short and long pieces as often as each other, on the log scale
        length = int(np.exp(rng.uniform(*np.log(START.pieces))))
        start = self.density.data.start
        parts = [np.arange(a, b, length) for a, b in pairwise(start)]
        return np.concatenate(parts)


def climb(
    density: SwitchingDensity, work: SwitchingWorkspace, theta: Floats, scale: Floats
) -> Floats:
    """A local mode of a log posterior from theta, in coordinates theta / scale."""

    def downhill(x: Floats) -> tuple[float, Floats]:
        raise_if_stopping()
        gradient = np.empty(len(x))
        value = density.evaluate(work, x * scale, gradient)
        # beyond the limits of kernels: far uphill, so that the search turns round
        return (1e300, gradient) if value == -np.inf else (-value, -gradient * scale)

    options = {"maxiter": START.steps, "maxcor": 20, "gtol": START.slope}
    found = minimize(downhill, theta / scale, jac=True, method="L-BFGS-B", options=options)
    return np.asarray(found.x * scale)


def root_at(density: SwitchingDensity, work: SwitchingWorkspace, theta: Floats) -> Floats:
    """A root (P, P) of the inverse curvature at theta."""
    curvature = density.curvature(work, theta, START.difference)
    least = np.full(len(theta), START.least_curvature)
    return curvature_root(curvature, least, START.least_eigenvalue)


def _k_means(rng: np.random.Generator, points: Floats, clusters: int) -> Ints:
    """(n,) the cluster of each point; from random ones of them, some rounds of Lloyd's steps."""
    centres = points[rng.choice(len(points), clusters, replace=False)]
    label = np.zeros(len(points), np.int64)
    for _ in range(START.rounds):
        # squared distances, but for what is the same for all centres
        label = np.argmin((centres**2).sum(axis=1) - 2.0 * points @ centres.T, axis=1)
        for s in range(clusters):
            # a cluster that has lost all of its points stays where it is
            if np.any(label == s):
                centres[s] = points[label == s].mean(axis=0)
    return label
