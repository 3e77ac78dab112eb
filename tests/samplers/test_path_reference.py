"""Where chains of paths begin: a mode of path and noise together, near the noise they began with."""

from __future__ import annotations

from typing import Any

import numpy as np

import revealed as rv
from revealed._types import Floats
from revealed.kernels.state_space import evaluate_path
from revealed.samplers.builders import BuildArguments, build_state_space

TRIALS, RATE = 400, 0.3


def careless_choices(seed: int) -> rv.Decisions:
    """Choices by a value that walks, three of ten of them blind."""
    rng = np.random.default_rng(seed)
    value = 3.0 + np.cumsum(0.1 * rng.standard_normal(TRIALS))
    better = rng.standard_normal(TRIALS)
    chosen = better * value + rng.logistic(size=TRIALS) > 0.0
    chosen = np.where(rng.random(TRIALS) < RATE, rng.random(TRIALS) < 0.5, chosen)
    rows = np.zeros((2 * TRIALS, 1))
    rows[1::2, 0] = better
    start = np.arange(0, 2 * TRIALS + 1, 2)
    return rv.Decisions(rows, start, chosen.astype(np.int64), times=np.arange(TRIALS))


def slopes(sampler: Any, path: Floats, noise: Floats) -> tuple[Floats, Floats]:
    """Of the log-likelihood at a path, and of log-likelihood and prior in the noise."""
    by_path, by_noise = np.empty_like(path), np.empty_like(noise)
    evaluate_path(sampler.data, sampler.finder.work, path, noise, by_path, by_noise)
    return by_path, by_noise - noise


def test_chains_begin_at_a_mode_of_path_and_noise() -> None:
    model = rv.ChoiceModel(
        prior=rv.Normal(5.0), noise=rv.LogitNoise(lapse=rv.Lapse()), over_time=rv.RandomWalk(0.1)
    )
    sampler: Any = build_state_space(model.resolve(careless_choices(3)), BuildArguments({}, 1))
    found: list[Floats] = []
    for begin in (-1.0, 2.0):
        path, of_noise = sampler.finder.find_with_noise(sampler.start, np.array([begin]))
        by_path, by_noise = slopes(sampler, path.path, of_noise.noise)
        # of a walk whose first value and steps are normal, the slope of the prior
        pull = np.diff(path.path, axis=0, prepend=0.0, append=path.path[-1:])
        pull[:-1] /= np.where(np.arange(TRIALS) == 0, 5.0, 0.1)[:, None] ** 2
        prior = -pull[:-1] + np.append(pull[1:-1], [[0.0]], axis=0)
        assert np.abs(by_path + prior).max() < 0.05
        assert np.abs(by_noise).max() < 0.05
        # choices say something of the noise beyond its prior, whose sd is one
        assert 1.0 / np.sqrt(TRIALS) < of_noise.root[0, 0] < 0.9
        found.append(path.path)
    assert np.abs(found[0] - found[1]).max() < 0.1
    # where some choices may be blind, values are larger
    assert np.abs(found[0]).mean() > 1.05 * np.abs(sampler.start.path).mean()
