"""Where chains of paths begin, and the stand-in that makes their coordinates.

The mode of a path given theta by Newton's method, and the theta that prior and evidence of a normal
stand-in prefer. Draws are exact with any stand-in that is fixed and positive semi-definite
(`kernels/state_space.py`); the better it is, the longer paths are. With a likelihood that is not
log-concave, negative eigenvalues of the curvature are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from revealed._types import Bools, Floats
from revealed.kernels.interrupt import raise_if_stopping
from revealed.kernels.path_process import PathProcess, make_path_law, write_path_law
from revealed.kernels.skill_likelihood import SkillData
from revealed.kernels.state_space import (
    LIMITS,
    NormalPaths,
    PathData,
    add_evidence_slope,
    evaluate_path,
    make_path_workspace,
    make_placed,
    place_law,
)
from revealed.samplers.adaptation import curvature_root
from revealed.samplers.stand_ins import positive_part


@dataclass(frozen=True)
class ReferenceSettings:
    """How modes are found; wrong settings cost time, never correctness.

    step: of the differences that give curvatures, in units of the noise. newton_steps, halvings:
    at most, of a mode. gain: a mode is found where a step gains less. rounds: of path and theta in
    turn; move: of a number of theta in one of them, and settled: where it moves less, it is found.
    start_ratio: of an sd or rate to the scale of its prior, at most and on the log scale, where
    chains begin. share_of_curvature: that a stand-in has where a likelihood is not log-concave.
    least_information: of a number of theta, and least_eigenvalue: as in `curvature_root`.
    noise_rounds: of path and noise in turn, and noise_reach: of a coordinate of the noise.
    """

    step: float = 1e-3
    newton_steps: int = 50
    halvings: int = 12
    gain: float = 1e-6
    rounds: int = 8
    move: float = 1.5
    settled: float = 0.02
    start_ratio: float = 5.0
    share_of_curvature: float = 0.5
    least_information: float = 0.3
    least_eigenvalue: float = 0.05
    noise_rounds: int = 20
    noise_reach: float = 5.0


REFERENCE = ReferenceSettings()


class StandIn(NamedTuple):
    """A quadratic in place of a log-likelihood: curvature (N, D, D), linear (N, D), constant."""

    curvature: Floats
    linear: Floats
    constant: float


class PathReference(NamedTuple):
    """A likely theta (P,) with the mode of its path (N, D), a stand-in there, and a root (P, U).

    root root' is about the posterior covariance of what is unknown of theta.
    """

    theta: Floats
    path: Floats
    stand_in: StandIn
    root: Floats


class NoiseReference(NamedTuple):
    """Likely coordinates of the noise (E,) given a path, and a root (E, E) of their covariance."""

    noise: Floats
    root: Floats


class ReferenceFinder:
    """Finds modes for one set of data.

    It has arrays of its own that every search writes to: chains must not share one.
    """

    def __init__(self, data: PathData | SkillData, process: PathProcess, known: Floats) -> None:
        self.data, self.process = data, process
        self.nodes, self.width = len(process.gap), len(process.size)
        self.work = make_path_workspace(data, self.nodes, self.width)
        self.placed = make_placed(self.nodes, self.width, len(known))
        self.known, self.unknown = known, np.flatnonzero(np.isnan(known))
        self.law = make_path_law(self.nodes, self.width)
        self.steps = np.full(self.width, REFERENCE.step)
        if isinstance(data, PathData):
            # features may be on any scale: differences are taken over equal changes of utility
            largest = np.abs(data.rows).max(axis=0, initial=0.0)
            self.steps /= np.where(largest > 0.0, largest, 1.0)

    def slopes(self, path: Floats, noise: Floats) -> tuple[float, Floats]:
        """The log-likelihood of a path, and its slopes (N, D)."""
        slope = np.empty_like(path)
        found = evaluate_path(self.data, self.work, path, noise, slope, np.empty_like(noise))
        raise_if_stopping()
        return found, slope

    def curvature(self, path: Floats, noise: Floats) -> Floats:
        """(N, D, D) minus the second derivatives of the log-likelihood at a path."""
        curvature = np.empty((self.nodes, self.width, self.width))
        for k in range(self.width):
            # one coordinate of all nodes at once: nodes do not depend on one another given the path
            step = np.zeros(self.width)
            step[k] = self.steps[k]
            above, below = (self.slopes(path + move, noise)[1] for move in (step, -step))
            curvature[:, k] = (below - above) / (2.0 * step[k])
        # differences leave a matrix that is symmetric but for rounding
        return 0.5 * (curvature + curvature.transpose(0, 2, 1))

    def _usable(self, curvature: Floats) -> Floats:
        """Curvatures (N, D, D) of a stand-in: positive semi-definite ones."""
        found = positive_part(curvature)
        # far out such a likelihood is flat: a narrow stand-in would keep chains there for long
        if not self.data.is_log_concave:
            found *= REFERENCE.share_of_curvature
        return np.ascontiguousarray(found)

    def stand_in(self, path: Floats, noise: Floats) -> StandIn:
        """The quadratic with value, slope and curvature of the log-likelihood at a path."""
        curvature = self._usable(self.curvature(path, noise))
        found, slope = self.slopes(path, noise)
        # about a path q: value + slope'(x - q) - (x - q)'H (x - q) / 2, sorted by powers of x
        pull = np.einsum("nij,nj->ni", curvature, path)
        constant = found - float((slope * path).sum() + 0.5 * (path * pull).sum())
        return StandIn(curvature, slope + pull, constant)

    def mean_stand_in(self, paths: Floats, noises: Floats) -> StandIn:
        """The quadratic whose slopes and curvature are right on average over draws of paths.

        paths: (n, N, D), noises: (n, E). A normal law that is nearest to a posterior has them
        (Opper and Archambeau 2009). A constant matters to no move, and is left out.
        """
        pairs = list(zip(paths, noises, strict=True))
        # the mean first: negative curvature of some paths is made up for by that of others
        curvature = self._usable(np.mean([self.curvature(*pair) for pair in pairs], axis=0))
        slope = np.mean([self.slopes(*pair)[1] for pair in pairs], axis=0)
        pull = np.einsum("nij,nj->ni", curvature, paths.mean(axis=0))
        return StandIn(curvature, slope + pull, 0.0)

    def normal(self, stand_in: StandIn) -> NormalPaths:
        """What `place_law` needs; theta is given there.

        It has no coordinates of theta, which belong to a chain.
        """
        theta = np.where(np.isnan(self.known), 0.0, self.known)
        return NormalPaths(self.process, *stand_in, theta, np.zeros((len(theta), 0)))

    def log_density_of_path(self, theta: Floats, path: Floats, noise: Floats) -> float:
        """The log posterior density of a path given theta, up to a constant."""
        write_path_law(self.process, theta, self.law)
        u = path - self.law.centre
        first = self.process.first
        # steps within a path, then where each path begins
        step = u[1:] - self.law.decay[1:] * u[:-1]
        inner = ~first[1:]
        square = (step[inner] ** 2 / self.law.variance[1:][inner]).sum()
        starts = u[first]
        square += np.einsum("ni,ij,nj->", starts, self.law.start, starts)
        if self.process.reverts or self.process.starts > 0:
            square += (starts**2 / self.law.variance[first]).sum()
        return float(self.slopes(path, noise)[0] - 0.5 * square)

    def mode(self, theta: Floats, path: Floats, noise: Floats) -> tuple[Floats, StandIn]:
        """The mode of a path given theta, from a path near it, and the stand-in there."""
        before = self.log_density_of_path(theta, path, noise)
        for _ in range(REFERENCE.newton_steps):
            stand_in = self.stand_in(path, noise)
            if not place_law(self.normal(stand_in), self.work, theta, self.placed):
                break
            # to the mean of the normal law that prior and stand-in make: Newton's step
            move = self.placed.law.centre + self.placed.mean - path
            share, after = 1.0, -np.inf
            for _ in range(REFERENCE.halvings):
                after = self.log_density_of_path(theta, path + share * move, noise)
                if after >= before:
                    break
                # too far: a stand-in is good near its path alone
                share *= 0.5
            if not after >= before:
                break
            path = path + share * move
            if after - before < REFERENCE.gain * (1.0 + abs(before)):
                break
            before = after
        return path, self.stand_in(path, noise)

    def _objective(self, normal: NormalPaths, theta: Floats) -> tuple[float, Floats]:
        """Minus log p Z at theta, and its slope in what is unknown."""
        if not place_law(normal, self.work, theta, self.placed):
            return np.inf, np.zeros(len(self.unknown))
        add_evidence_slope(normal, self.work, self.placed)
        return -float(self.placed.log_density[0]), -self.placed.gradient[self.unknown]

    def _likely_theta(self, normal: NormalPaths, theta: Floats) -> Floats:
        """The theta that p Z prefers, not far from this one."""

        def objective(x: Floats) -> tuple[float, Floats]:
            raise_if_stopping()
            at = theta.copy()
            at[self.unknown] = x
            value, slope = self._objective(normal, at)
            # far away there is no such law; the search turns back
            return (value, slope) if np.isfinite(value) else (1e300, np.zeros_like(x))

        # the stand-in is of one path: theta may not go far on it
        start = theta[self.unknown]
        low, high = self._range()
        low = np.maximum(start - REFERENCE.move, low)
        bounds = list(zip(low, np.minimum(start + REFERENCE.move, high), strict=True))
        found = minimize(
            objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 30}
        )
        new = theta.copy()
        new[self.unknown] = found.x
        return new

    def _range(self) -> tuple[Floats, Floats]:
        """Where theta may begin: well within what there are laws of paths for."""
        most = np.full(len(self.known), LIMITS.centre)
        middle, scales = np.zeros(len(self.known)), self.process.scales
        inferred = np.flatnonzero(scales > 0.0)
        most[inferred] = REFERENCE.start_ratio
        middle[inferred] = np.log(scales[inferred])
        return (middle - most)[self.unknown], (middle + most)[self.unknown]

    def root(self, normal: NormalPaths, theta: Floats) -> Floats:
        """(P, U) a root of the covariance that p Z has about theta."""
        count, step = len(self.unknown), 0.05
        information = np.empty((count, count))
        for k in range(count):
            slopes = []
            for sign in (1.0, -1.0):
                at = theta.copy()
                at[self.unknown[k]] += sign * step
                slopes.append(self._objective(normal, at)[1])
            # of minus log p Z: positive where theta is well known
            information[k] = (slopes[0] - slopes[1]) / (2.0 * step)
        root = np.zeros((len(theta), count))
        if count > 0:
            least = np.full(count, REFERENCE.least_information)
            root[self.unknown] = curvature_root(
                0.5 * (information + information.T), least, REFERENCE.least_eigenvalue
            )
        return root

    def find(self, theta: Floats, path: Floats, noise: Floats) -> PathReference:
        """A likely theta with its path, from a guess of both; path and theta in turn."""
        for _ in range(REFERENCE.rounds):
            path, stand_in = self.mode(theta, path, noise)
            if not len(self.unknown):
                break
            # with a theta that moved the mode moves too, so they take turns
            new = self._likely_theta(self.normal(stand_in), theta)
            moved = np.abs(new - theta).max()
            theta = new
            if moved < REFERENCE.settled:
                break
        path, stand_in = self.mode(theta, path, noise)
        return self.reference(theta, path, stand_in)

    def find_with_noise(
        self, near: PathReference, noise: Floats
    ) -> tuple[PathReference, NoiseReference]:
        """A mode of path and noise together at a theta, from a guess of both.

        There may be several such modes: a high rate of lapses has large values, a low one small
        ones. Which of them is found depends on the noise to begin with.
        """
        path = near.path
        for _ in range(REFERENCE.noise_rounds):
            path = self.mode(near.theta, path, noise)[0]
            new = self.likely_noise(path, noise).noise
            moved = np.abs(new - noise).max()
            noise = new
            if moved < REFERENCE.settled:
                break
        found = near._replace(path=path, stand_in=self.stand_in(path, noise))
        return found, self.likely_noise(path, noise)

    def likely_noise(self, path: Floats, noise: Floats) -> NoiseReference:
        """The mode of the noise given a path, near these coordinates."""

        def objective(at: Floats) -> tuple[float, Floats]:
            raise_if_stopping()
            slope = np.empty_like(at)
            found = evaluate_path(self.data, self.work, path, at, np.empty_like(path), slope)
            # coordinates are standard normal before any choice
            return 0.5 * float(at @ at) - found, at - slope

        bounds = [(-REFERENCE.noise_reach, REFERENCE.noise_reach)] * len(noise)
        mode = minimize(objective, noise, jac=True, method="L-BFGS-B", bounds=bounds).x
        information, step = np.empty((len(mode), len(mode))), 1e-2
        for i, move in enumerate(step * np.eye(len(mode))):
            information[i] = (objective(mode + move)[1] - objective(mode - move)[1]) / (2.0 * step)
        # the prior's is one, and what was chosen adds to it
        least = np.ones(len(mode))
        root = curvature_root(
            0.5 * (information + information.T), least, REFERENCE.least_eigenvalue
        )
        return NoiseReference(np.asarray(mode, np.float64), root)

    def reference(self, theta: Floats, path: Floats, stand_in: StandIn) -> PathReference:
        """What chains begin with, from a theta and a path that were found, and a stand-in there."""
        return PathReference(theta, path, stand_in, self.root(self.normal(stand_in), theta))

    def within_range(self, theta: Floats) -> Floats:
        """A theta that chains may begin at, the nearest to this one."""
        low, high = self._range()
        found = theta.copy()
        found[self.unknown] = np.clip(theta[self.unknown], low, high)
        return found


def first_guess(process: PathProcess, known: Floats) -> Floats:
    """(P,) theta to begin with: what is known, half the scale of priors, and a centre at zero."""
    theta = np.zeros(len(known))
    scales = process.scales
    inferred: Bools = scales > 0.0
    theta[: len(scales)][inferred] = np.log(0.5 * scales[inferred])
    return np.where(np.isnan(known), theta, known)
