"""What the warm-ups of Hamiltonian samplers have in common: windows, step sizes, and coordinates.

A warm-up is cut into windows. Throughout a window the step size adapts by dual averaging
(`kernels/hmc.py`); where it ends, the step size begins anew from the average, and the sampler
learns from what the window saw in which coordinates paths are easy (Stan's scheme). All that is
remembered is in the state, as plain arrays: cutting a warm-up into chunks changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.linalg as sla

from revealed._types import Floats
from revealed.kernels.hmc import ADAPTATION, init_dual_averaging
from revealed.kernels.interrupt import raise_if_stopping
from revealed.samplers.base import Draws, State, Stats

# Arrays of the state whose names begin like this belong to the present window, and end with it.
WINDOW = "window/"


@dataclass(frozen=True)
class WindowPlan:
    """The windows of a warm-up.

    shares: how much of it each window takes; they sum to one. min_iterations: a shorter warm-up
    adapts nothing, and only moves away from where it began.
    """

    shares: tuple[float, ...]
    min_iterations: int = 0

    def ends(self, total: int) -> list[int]:
        """After how many iterations of a warm-up each window ends."""
        return [*(round(share * total) for share in np.cumsum(self.shares[:-1])), total]


class WindowedSampler(Protocol):
    """What `run_windows` needs of a sampler. Its states have a `done` (1,), zero at first."""

    def sample(
        self, rng: np.random.Generator, state: State, draws: int, thin: int
    ) -> tuple[State, Draws, Stats]:
        """Go on without adapting anything."""
        ...

    def adapt(self, rng: np.random.Generator, state: State, count: int, window: int) -> State:
        """Make `count` iterations of a window, counted from zero, while the step size adapts.

        `WINDOW`position (2,) of the state: iterations made in this window before, and its length.
        """
        ...

    def end_window(self, rng: np.random.Generator, state: State, window: int) -> State:
        """Learn from what the window left in the state under `WINDOW`."""
        ...


def run_windows(
    sampler: WindowedSampler,
    plan: WindowPlan,
    rng: np.random.Generator,
    state: State,
    remaining: int,
    chunk: int,
) -> tuple[State, int]:
    """Continue a warm-up by `chunk` of the `remaining` iterations.

    The new state and how many.
    """
    done = first = int(state["done"][0])
    total, last = done + remaining, done + min(chunk, remaining)
    ends = plan.ends(total)
    while done < last:
        window = int(np.searchsorted(ends, done, side="right"))
        count = min(last, ends[window]) - done
        done += count
        if total < plan.min_iterations:
            state = sampler.sample(rng, state, 1, count)[0]
            continue
        # how far this window is, and how long
        begin = ends[window - 1] if window > 0 else 0
        position = np.array([done - count - begin, ends[window] - begin], dtype=np.float64)
        state = sampler.adapt(rng, state | {f"{WINDOW}position": position}, count, window)
        raise_if_stopping()
        if done == ends[window]:
            state = sampler.end_window(rng, state, window)
            state = {name: a for name, a in state.items() if not name.startswith(WINDOW)}
    return state | {"done": np.array([done], dtype=np.float64)}, done - first


def add_to_window(state: State, draws: Floats) -> State:
    """The state with these draws (n, D) after those that the window has made before."""
    name = f"{WINDOW}draws"
    before = [state[name]] if name in state else []
    return state | {name: np.concatenate([*before, draws])}


def draws_of_window(state: State, discarded: float) -> Floats:
    """The window's draws (n, D), without the share that was still on its way to the posterior."""
    draws = state[f"{WINDOW}draws"]
    return draws[int(discarded * len(draws)) :]


def settle_step_size(adaptation: Floats) -> Floats:
    """Dual averaging (..., 5) that begins anew at the step sizes that this one has found."""
    return init_dual_averaging(np.exp(adaptation[..., ADAPTATION.log_mean_step_size]))


def covariance_roots(draws: Floats, power: float) -> tuple[Floats, Floats]:
    """The symmetric root S^(power / 2) of the covariance S of draws (n, D), and its inverse.

    S is shrunk towards the identity with the weight of D draws. Power 1 makes coordinates of
    covariance I. Where the present ones make the mean curvature the identity, 1/2 makes the new
    metric the geometric mean of covariance and inverse curvature.
    """
    count, width = draws.shape
    centred = draws - draws.mean(axis=0)
    variances, axes = np.linalg.eigh(
        (centred.T @ centred + width * np.eye(width)) / (count + width)
    )
    root = (axes * variances ** (0.5 * power)) @ axes.T
    return root, (axes * variances ** (-0.5 * power)) @ axes.T


def cholesky_of_information(information: Floats) -> Floats:
    """The lower Cholesky factor of the curvature (D, D) at a mode; refuses one without.

    Rounding leaves none where the data say a great deal more of some directions than the prior
    says of others.
    """
    try:
        return np.asarray(sla.cholesky(information, lower=True))
    except sla.LinAlgError:
        raise ValueError(
            "the prior is so wide beside what the decisions say that the posterior's curvature is "
            "lost to rounding; give a smaller prior sd, or bring the features to one scale"
        ) from None


def curvature_root(curvature: Floats, least_diagonal: Floats, least_eigenvalue: float) -> Floats:
    """A root (D, D) of the inverse of a curvature: coordinates in which it is the identity.

    least_diagonal (D,) and least_eigenvalue are put in place of less, which may be negative where a
    posterior is not concave; the latter is in units of the diagonal.
    """
    # brought to unit diagonal first, so that one threshold fits all coordinates
    sd = 1.0 / np.sqrt(np.maximum(np.diag(curvature), least_diagonal))
    eigenvalues, axes = np.linalg.eigh(curvature * np.outer(sd, sd))
    return np.ascontiguousarray(
        sd[:, None] * axes / np.sqrt(np.maximum(eigenvalues, least_eigenvalue))
    )
