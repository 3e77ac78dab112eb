"""The log posterior of strategies that take turns as a function of theta, and paths on it.

Hamiltonian paths in whitened coordinates, theta = centre + root x, as `kernels/hmc.py` has them;
here steps are made by numpy, so that only the likelihood of decisions is compiled for each noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from revealed._types import Floats
from revealed.kernels.hmc import (
    ADAPTATION,
    PATH,
    TWO_STAGES,
    PathPlan,
    PathStatistics,
    steps_of_length,
    update_step_sizes,
)
from revealed.kernels.interrupt import raise_if_stopping
from revealed.kernels.noise import AnyNoise, count_coordinates
from revealed.kernels.prior_scale import HYPERPRIOR_DF
from revealed.kernels.switching import (
    LIMITS,
    SequenceData,
    SwitchingPrior,
    SwitchingWorkspace,
    count_unknowns,
    free_width,
    log_posterior,
    make_switching_workspace,
    place_unknowns,
    write_likelihoods,
)


@dataclass(frozen=True)
class ScaleWalk:
    """Moves of an inferred sd given the values, before each path.

    moves: they cost nothing. width: of a step, in sds of the log sd given the values; in one
    dimension 2.4 is best under a normal law (Gelman, Roberts and Gilks 1996), and somewhat less
    costs little.
    """

    moves: int = 10
    width: float = 1.7


SCALE_WALK = ScaleWalk()


class Whitening(NamedTuple):
    """Coordinates of paths: theta = centre + root x."""

    centre: Floats
    root: Floats

    def theta(self, x: Floats) -> Floats:
        """Theta at x.

        Where the kernels evaluate it.
        """
        return np.asarray(self.centre + self.root @ x)

    def x(self, theta: Floats) -> Floats:
        """The coordinates of theta.

        The root is square, and has an inverse.
        """
        found = np.linalg.solve(self.root, theta - self.centre)
        return np.asarray(found, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class SwitchingDensity:
    """What the posterior is made of; a workspace is one chain's own."""

    data: SequenceData
    prior: SwitchingPrior
    noise: AnyNoise

    @property
    def coordinates(self) -> int:
        """How many numbers of the noise are unknown."""
        return count_coordinates(self.noise)

    @property
    def size(self) -> int:
        """P, how many numbers are unknown."""
        return count_unknowns(self.prior, self.coordinates)

    @property
    def width(self) -> int:
        """D, the free coordinates of a value."""
        return free_width(self.prior)

    @property
    def states(self) -> int:
        """S, how many strategies there are."""
        return len(self.prior.initial)

    @property
    def scale_at(self) -> int:
        """Where theta has the log of an inferred sd.

        Behind values, switch probabilities and the initial law.
        """
        return self.states * self.width + (self.states + 1) * (self.states - 1)

    def workspace(self) -> SwitchingWorkspace:
        """Arrays for one chain.

        Threads must not share them.
        """
        return make_switching_workspace(self.data, self.prior, self.coordinates)

    def evaluate(self, work: SwitchingWorkspace, theta: Floats, gradient: Floats) -> float:
        """The log posterior at theta up to a constant; its gradient goes into gradient (P,).

        Minus infinity beyond the limits of kernels; the gradient is zero there.
        """
        count, into = self.coordinates, work.likelihoods
        gradient[:] = 0.0
        if not place_unknowns(self.prior, count, theta, into.values, work.chain):
            return -np.inf
        noise = theta[len(theta) - count :]
        write_likelihoods(self.noise, self.data.design, self.data.rivals, noise, into)
        return float(log_posterior(self.data, self.prior, work, theta, gradient))

    def curvature(self, work: SwitchingWorkspace, theta: Floats, step: float) -> Floats:
        """(P, P) minus the Hessian at theta, by central differences of slopes."""
        found = np.empty((len(theta), len(theta)))
        # slopes on both sides of each coordinate
        above, below = np.empty(len(theta)), np.empty(len(theta))
        for i in range(len(theta)):
            raise_if_stopping()
            shift = np.zeros(len(theta))
            shift[i] = step
            self.evaluate(work, theta + shift, above)
            self.evaluate(work, theta - shift, below)
            found[i] = (below - above) / (2.0 * step)
        return np.asarray(0.5 * (found + found.T))

    def move_scale(self, rng: np.random.Generator, theta: Floats) -> None:
        """Move an inferred sd given the values, in place; z follows.

        Where choices say much of the values, the sd could hardly move given z.
        """
        at, size = self.scale_at, self.states * self.width
        begun = float(theta[at])
        square = float(theta[:size] @ theta[:size]) * np.exp(2.0 * begun)
        log_scale = np.log(self.prior.scale)

        def log_density(log_sd: float) -> float:
            # normal values, half-t sd, and the Jacobian of the logarithm
            if abs(log_sd - log_scale) >= LIMITS.log_scale:
                return -np.inf
            ratio = np.exp(2.0 * (log_sd - log_scale)) / HYPERPRIOR_DF
            half_t = -0.5 * (HYPERPRIOR_DF + 1.0) * np.log1p(ratio)
            return float((1.0 - size) * log_sd - 0.5 * square * np.exp(-2.0 * log_sd) + half_t)

        log_sd, density = begun, log_density(begun)
        width = SCALE_WALK.width / np.sqrt(1.0 + 2.0 * size)
        for _ in range(SCALE_WALK.moves):
            proposed = log_sd + width * rng.standard_normal()
            new_density = log_density(proposed)
            if new_density - density > -rng.standard_exponential():
                log_sd, density = proposed, new_density
        # values stay what they are
        theta[:size] *= np.exp(begun - log_sd)
        theta[at] = log_sd

    def sample(
        self,
        rng: np.random.Generator,
        whitening: Whitening,
        plan: PathPlan,
        thin: int,
        x: Floats,
        theta: Floats,
        statistics: PathStatistics,
    ) -> None:
        """Write draws of theta (n, P), moving x along Hamiltonian paths, in place."""
        work, current = self.workspace(), Point(self, whitening)
        current.place(work, x)
        for n in range(len(theta)):
            for _ in range(thin):
                raise_if_stopping()
                # the density at the new sd is worked out afresh
                if self.prior.scale > 0.0:
                    at = whitening.theta(current.x)
                    self.move_scale(rng, at)
                    current.place(work, whitening.x(at))
                self._move(rng, work, whitening, plan, current, statistics, n, thin)
            theta[n] = whitening.theta(current.x)
        x[:] = current.x

    def _move(
        self,
        rng: np.random.Generator,
        work: SwitchingWorkspace,
        whitening: Whitening,
        plan: PathPlan,
        current: Point,
        statistics: PathStatistics,
        n: int,
        thin: int,
    ) -> None:
        """One path, as `kernels.hmc.hmc_move` makes it; how it went is added to draw n."""
        adaptation = plan.adaptation
        step_size = min(float(adaptation[ADAPTATION.step_size]), plan.length)
        least, most = steps_of_length(plan.length, step_size)
        # a fresh momentum, and the energy to start with
        momentum = rng.standard_normal(len(current.x))
        energy = 0.5 * float(momentum @ momentum) - current.value
        # step size and number of steps are random, but do not depend on x
        step = step_size * (1.0 + PATH.step_jitter * (2.0 * rng.random() - 1.0))
        steps = int(rng.integers(least, most + 1))
        kick, drift = TWO_STAGES
        end, probability, made = Point(self, whitening), 1.0, 0
        end.x, end.value, end.gradient = current.x.copy(), current.value, current.gradient
        kinetic = 0.0
        for _ in range(steps):
            for stage in range(len(kick)):
                momentum += kick[stage] * step * end.gradient
                end.place(work, end.x + drift[stage] * step * momentum)
                # nothing has a slope beyond the limits: the path has ended
                if end.value == -np.inf:
                    break
            momentum += kick[0] * step * end.gradient
            kinetic = 0.5 * float(momentum @ momentum)
            made += 1
            # false for NaN as well
            if not kinetic - end.value < energy + PATH.divergence_energy:
                probability = 0.0
                break
        # Metropolis: accept by the error of the energy
        diverging = probability == 0.0
        if not diverging:
            probability = float(np.exp(min(energy - (kinetic - end.value), 0.0)))
        if rng.random() < probability:
            current.x, current.value, current.gradient = end.x, end.value, end.gradient
        # in warm-up, one update of dual averaging
        if plan.target_acceptance > 0.0:
            update_step_sizes(adaptation[None], plan.target_acceptance, np.array([probability]))
        statistics.acceptance_rate[n] += probability / thin
        statistics.diverging[n] = max(statistics.diverging[n], float(diverging))
        statistics.n_steps[n] += made
        statistics.step_size[n] = step_size
        statistics.lp[n] = current.value


class Point:
    """Where a path is: x (P,), the log density there, and its gradient in x."""

    def __init__(self, density: SwitchingDensity, whitening: Whitening) -> None:
        self.density, self.whitening = density, whitening
        self.x = np.zeros(density.size)
        self.value, self.gradient = -np.inf, np.zeros(density.size)

    def place(self, work: SwitchingWorkspace, x: Floats) -> None:
        """Go to x.

        With value and slope there.
        """
        slope = np.empty(len(x))
        self.x = x
        self.value = self.density.evaluate(work, self.whitening.theta(x), slope)
        self.gradient = self.whitening.root.T @ slope
