"""Slopes of paths that move with the sizes of their steps, against differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed._types import Floats
from revealed.kernels.block_tridiagonal import solve_lower
from revealed.kernels.joint_paths import write_theta_slope
from revealed.kernels.state_space import make_path_workspace, place_law, place_path
from revealed.samplers.builders import BuildArguments, build_state_space

LAPSING = rv.LogitNoise(lapse=rv.Lapse())
INFERRED = rv.Normal(rv.HalfStudentT(scale=2.0))
SIZE = rv.HalfStudentT(scale=0.5)


def sampler_of(prior: rv.Normal, over_time: Any) -> Any:
    """Choices among three actions by three features, in two sessions."""
    rng, count = np.random.default_rng(1), 12
    d = rv.Decisions(
        rng.standard_normal((3 * count, 3)),
        np.arange(0, 3 * count + 1, 3),
        rng.integers(0, 3, count),
        # two decisions at one time
        times=np.maximum.accumulate(np.cumsum(rng.random(count)) * (np.arange(count) != 4)),
        sessions=np.arange(count) // 6,
    )
    model = rv.ChoiceModel(prior=prior, noise=LAPSING, over_time=over_time)
    return build_state_space(model.resolve(d), BuildArguments({}, 1))


@pytest.mark.parametrize(
    ("prior", "over_time"),
    [
        (rv.Normal(2.0), rv.RandomWalk()),
        (INFERRED, rv.RandomWalk(shared=True, between_sessions=SIZE)),
        (INFERRED, rv.MeanReverting()),
    ],
)
def test_slopes_in_sizes_are_those_of_the_posterior(prior: Any, over_time: Any) -> None:
    sampler, rng = sampler_of(prior, over_time), np.random.default_rng(4)
    state = sampler.init(rng, None)
    # any stand-in will do, and one that is far from right has large slopes of r
    root = rng.standard_normal(state["curvature"].shape)
    state["curvature"] = 0.2 * root @ root.transpose(0, 2, 1)
    target, placed, point = sampler._target(state), sampler._empty_law(), sampler._empty_point()
    work = make_path_workspace(sampler.data, sampler.nodes, sampler.width)
    theta = sampler.start.theta + 0.3 * rng.standard_normal(len(sampler.known))

    def log_density(at: Floats) -> float:
        assert place_law(target.normal, work, at, placed)
        place_path(target, work, placed, state["z"], state["e"], point)
        return float(placed.log_density[0] + point.r[0])

    log_density(theta)
    solve_lower(placed.factor, sampler.process.first, point.slope, work.whitened)
    slope, differences = np.empty_like(theta), np.empty_like(theta)
    write_theta_slope(target.normal, work, placed, point, slope)
    # and as if the path did not move with the sizes
    staying = np.empty_like(theta)
    work.whitened[:], point.slope[:] = 0.0, 0.0
    write_theta_slope(target.normal, work, placed, point, staying)
    step = 1e-5
    for p, move in enumerate(step * np.eye(len(theta))):
        differences[p] = (log_density(theta + move) - log_density(theta - move)) / (2.0 * step)
    assert slope == pytest.approx(differences, rel=1e-5, abs=1e-5)
    assert staying != pytest.approx(differences, rel=1e-1, abs=1e-1)
