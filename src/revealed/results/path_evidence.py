"""The evidence of values that change, from their draws (`samplers/path_evidence.py`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logit

from revealed._types import Floats
from revealed._validation import Seed, as_generator, check_positive
from revealed.kernels.coordinate_table import table_values
from revealed.kernels.noise import AnyNoise, LapseArguments, count_coordinates, without_lapses
from revealed.samplers.path_data import make_path_data
from revealed.samplers.path_evidence import (
    Evidence,
    PathDraws,
    bridge_evidence,
    laplace_evidence,
)
from revealed.samplers.path_filter_evidence import filter_evidence

# Coordinates of noises at which their tables are read to be inverted: standard normal before any
# choice, so that none is further out; the grid is fine enough for eight digits.
COORDINATES = np.linspace(-8.9, 8.9, 40_001)


def path_evidence(post: Any, method: str, draws: int, seed: Seed) -> Evidence:
    """The log evidence of all choices under the model of a `PathPosterior`.

    By the method that its own `evidence` documents.
    """
    if method not in ("bridge", "filter", "laplace"):
        raise ValueError(f'method must be "bridge", "filter" or "laplace"; it is {method!r}')
    check_positive("the number of draws", draws)
    resolved, over_time = post.resolved, post.over_time
    noise = resolved.kernel
    data = make_path_data(resolved.decisions, resolved.prior, over_time, noise)
    process, known = over_time.process, over_time.known
    if method != "laplace":
        estimate = bridge_evidence if method == "bridge" else filter_evidence
        return estimate(as_generator(seed), data, process, known, _drawn(post, noise), int(draws))
    if np.isnan(known).any() or count_coordinates(noise):
        raise ValueError(
            "Laplace's approximation is of the path alone: give the sizes of steps and the noise "
            'as numbers, or use method="bridge"'
        )
    return Evidence(laplace_evidence(data, process, known), np.nan, np.nan)


def _drawn(post: Any, noise: AnyNoise) -> PathDraws:
    """The draws as kernels take them.

    Theta on the log scale, coordinates of the noise, and free ones of the path.
    """
    process, prior = post.over_time.process, post.resolved.prior
    theta = np.tile(post.over_time.known, (*post.shape, 1))
    for name, at in post.over_time.places.items():
        if name in post.draws:
            theta[:, :, at : at + process.sizes] = np.log(post.draws[name])
    # then the sd of the start and the centre, in the order of theta
    at = process.sizes * len(post.over_time.places)
    if process.infers_start:
        theta[:, :, at] = np.log(post.draws["prior_sd"])
        at += 1
    if process.reverts:
        theta[:, :, at:] = (post.draws["long_run_mean"] - prior.mean) @ prior.basis
    found: list[Floats] = []
    # what is unknown of the noise without lapses comes first
    if "df" in post.draws:
        found.append(_coordinates(without_lapses(noise).table, np.log(post.draws["df"])))
    if "lapse" in post.draws:
        assert isinstance(noise, LapseArguments)
        found.append(_coordinates(noise.table, logit(post.draws["lapse"])))
    coordinates = np.stack(found, axis=2) if found else np.zeros((*post.shape, 0))
    return PathDraws(theta, coordinates, (post.draws["value"] - prior.mean) @ prior.basis)


def _coordinates(table: Floats, values: Floats) -> Floats:
    """The coordinates at which a table, which rises, has these values."""
    return np.interp(values, table_values(table, COORDINATES)[0], COORDINATES)
