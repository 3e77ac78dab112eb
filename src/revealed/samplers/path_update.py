"""More decisions for paths that were drawn already: chains go on from the draws there are.

What a warm-up learns is in the draws of an earlier fit: the stand-in is right on average over its
paths, coordinates of theta and noise have its covariances, and each chain begins at its last draw,
whose path goes on to the new times as the walk does. Only step sizes are adapted, which a short
warm-up is enough for. The posterior that chains leave invariant is that of all decisions, whatever
they begin with.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from revealed._types import Floats
from revealed.kernels.noise import count_coordinates
from revealed.models.choice import ResolvedChoiceModel
from revealed.models.noise_draws import name_noise
from revealed.samplers.adaptation import WindowPlan, covariance_roots, run_windows, settle_step_size
from revealed.samplers.base import Draws, State
from revealed.samplers.path_reference import NoiseReference, PathReference
from revealed.samplers.state_space import STATE_SPACE, Position, StateSpaceSampler

# One window: step sizes alone are adapted.
UPDATE = WindowPlan((1.0,), min_iterations=1)


@dataclass(frozen=True)
class CoordinateGrid:
    """Where coordinates of a noise are looked up: their prior is standard normal.

    widest: beyond, no draw is. points: between two of them the map is taken for a line, which only
    decides where chains begin.
    """

    widest: float = 8.0
    points: int = 2001


GRID = CoordinateGrid()


@dataclass(frozen=True, eq=False, kw_only=True)
class PathUpdateSampler(StateSpaceSampler):
    """The sampler of all decisions, begun from draws of a fit to fewer.

    position: theta (C, P), noise (C, E) and path (C, N, D) at which chains begin.
    of_noise: coordinates of the noise that were learnt from draws.
    """

    position: Position
    of_noise: NoiseReference

    def init(self, rng: np.random.Generator, position: Floats | None) -> State:
        """The state of the chain whose number is `position`, at its last draw."""
        assert position is not None
        c = int(position[0])
        found = super().init(rng, None)
        # chains stay apart, so that R-hat can tell whether they agree
        own = Position(*(field[c] for field in self.position))
        return self.at_position(found, own)

    def _begin_near(self, rng: np.random.Generator) -> tuple[PathReference, NoiseReference]:
        """Where a chain begins, and its noise: all by the draws, no mode is looked for."""
        return self.start, self.of_noise

    def warmup(
        self, rng: np.random.Generator, state: State, remaining: int, chunk: int
    ) -> tuple[State, int]:
        """Adapt step sizes."""
        return run_windows(self, UPDATE, rng, state, remaining, chunk)

    def end_window(self, rng: np.random.Generator, state: State, window: int) -> State:
        """Settle step sizes; coordinates are those of the earlier draws."""
        return state | {"adaptation": settle_step_size(state["adaptation"])}


def noise_of_all(draws: Floats) -> NoiseReference:
    """Coordinates of the noise that draws (n, E) of it suggest."""
    root = covariance_roots(draws, power=1.0)[0] if draws.shape[1] else np.eye(0)
    return NoiseReference(draws.mean(axis=0), root)


def update_sampler(resolved: ResolvedChoiceModel, draws: Draws, paths: Floats) -> PathUpdateSampler:
    """The sampler for all decisions, from draws of a fit to fewer of them.

    draws: (chain, draw, ...) by the names of the model's parameters. paths: (chain, draw, N, D) in
    the free coordinates, at all times, the new ones too.
    """
    over_time = resolved.over_time
    assert over_time is not None
    # draws in the coordinates that chains move in
    theta = theta_of_draws(resolved, draws)
    noise = noise_of_draws(resolved, draws)
    chains, count = theta.shape[:2]
    all_theta, all_noise = theta.reshape(chains * count, -1), noise.reshape(chains * count, -1)
    unknown = np.flatnonzero(np.isnan(over_time.known))
    root = np.zeros((theta.shape[2], len(unknown)))
    # so many draws know the covariance well
    root[unknown] = covariance_roots(all_theta[:, unknown], power=1.0)[0]
    blank = PathReference(all_theta.mean(axis=0), paths[0, -1], None, root)  # type: ignore[arg-type]
    bare = StateSpaceSampler.build(
        resolved.decisions, resolved.prior, over_time, resolved.kernel, start=blank
    )
    # some paths of all chains, spread over the draws
    some = np.linspace(0, chains * count - 1, STATE_SPACE.paths).round().astype(np.int64)
    flat = paths.reshape(chains * count, *paths.shape[2:])
    stand_in = bare.finder.mean_stand_in(flat[some], all_noise[some])
    start = PathReference(blank.theta, blank.path, stand_in, root)
    # all that a sampler of these decisions has, and what was learnt before
    fields = {name: getattr(bare, name) for name in bare.__dataclass_fields__}
    last = Position(theta[:, -1], noise[:, -1], paths[:, -1])
    return PathUpdateSampler(
        **{**fields, "given_start": start}, position=last, of_noise=noise_of_all(all_noise)
    )


def theta_of_draws(resolved: ResolvedChoiceModel, draws: Draws) -> Floats:
    """(chain, draw, P) theta of draws by name: the inverse of how the sampler names them."""
    over_time = resolved.over_time
    assert over_time is not None
    process, known = over_time.process, over_time.known
    shape = draws["value"].shape[:2]
    theta = np.broadcast_to(known, (*shape, len(known))).copy()
    for name, at in over_time.places.items():
        if name in draws:
            theta[..., at : at + process.sizes] = np.log(draws[name])
    # after sds and rates the sd of the start, then the centre
    at = process.sizes * len(over_time.places)
    if process.infers_start:
        theta[..., at] = np.log(draws["prior_sd"])
        at += 1
    if process.reverts:
        centred = draws["long_run_mean"] - resolved.prior.mean
        theta[..., at:] = centred @ resolved.prior.basis
    return theta


def noise_of_draws(resolved: ResolvedChoiceModel, draws: Draws) -> Floats:
    """(chain, draw, E) coordinates of the noise whose names have these draws.

    Each name depends on one coordinate and grows or falls with it, so that a table is turned round.
    """
    # one coordinate after the other: most models have none
    shape = draws["value"].shape[:2]
    names = name_noise(resolved.kernel, np.zeros((1, count_coordinates(resolved.kernel))))
    found = np.zeros((*shape, count_coordinates(resolved.kernel)))
    grid = np.linspace(-GRID.widest, GRID.widest, GRID.points)
    for c in range(count_coordinates(resolved.kernel)):
        z = np.zeros((GRID.points, count_coordinates(resolved.kernel)))
        z[:, c] = grid
        for name in names:
            values = np.asarray(name_noise(resolved.kernel, z)[name])
            if values[0] == values[-1]:
                continue
            # of those that fall the table is read backwards
            order = slice(None) if values[0] < values[-1] else slice(None, None, -1)
            found[..., c] = np.interp(draws[name], values[order], grid[order])
    return found
