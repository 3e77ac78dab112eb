"""Draws of what is unknown of a noise: from coordinates, as samplers have them, to names.

Coordinates of the noise come behind the coefficients of the value (`kernels/noise.py`). Where
groups have a population, each has some of them for itself,

    (v_i, z_i) ~ N(mean, covariance)   for each group i,

and others are shared by all groups.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np

from revealed._types import Floats
from revealed.kernels.noise import (
    AnyNoise,
    LapseArguments,
    count_coordinates,
    without_lapses,
)
from revealed.models.base import Parameter
from revealed.models.habit import habits_of
from revealed.models.lapse import rates_of
from revealed.models.noise_coordinates import parameters_at


def name_noise(kernel: AnyNoise, z: Floats) -> dict[str, Floats]:
    """What users see of the noise, by name, from its coordinates z (..., C).

    Those of the noise without lapses may be left out.
    """
    law, named = without_lapses(kernel), dict[str, Floats]()
    if count_coordinates(law) and z.shape[-1] == count_coordinates(kernel):
        named["df"] = parameters_at(law, z[..., 0])
    if not isinstance(kernel, LapseArguments):
        return named
    # behind the rate stand the coordinates of habits, one for each label
    at = z.shape[-1] - kernel.coordinates
    named |= {"lapse": rates_of(kernel.table, z[..., at])}
    return named | {"habit": habits_of(z[..., at + 1 :])} if kernel.has_habits else named


def name_draws_of_groups(
    kernel: AnyNoise, draws: Mapping[str, Floats], own: int, width: int
) -> dict[str, Floats]:
    """Draws of a population and its groups by name, from those of a sampler.

    own: how many coordinates of the noise are each group's own. width: K, of a value.
    """
    named, value = dict(draws), draws["value"]
    # what all groups share stands by itself, what is a group's own behind its value
    shared = named.pop("noise", np.empty((*value.shape[:-2], 0)))
    if own == 0:
        return named | name_noise(kernel, shared)
    named |= name_noise(kernel, value[..., width:])
    # degrees of freedom are those of all groups
    if count_coordinates(without_lapses(kernel)):
        named["df"] = parameters_at(without_lapses(kernel), shared[..., 0])
    mean, covariance = named["population_mean"], named["population_covariance"]
    named["value"] = np.ascontiguousarray(value[..., :width])
    named["population_mean"] = np.ascontiguousarray(mean[..., :width])
    named["population_covariance"] = np.ascontiguousarray(covariance[..., :width, :width])
    # the rest of the population, for groups that were never seen
    named["population_noise_mean"] = np.ascontiguousarray(mean[..., width:])
    named["population_noise_covariance"] = np.ascontiguousarray(covariance[..., width:, :])
    return named


def lapse_parameters(
    names: tuple[str, ...], groups: tuple[Hashable, ...], own: int
) -> list[Parameter]:
    """The rate of lapses; where groups differ in it, also the population of coordinates.

    names: of the coefficients.
    """
    if own == 0:
        return [Parameter("lapse")]
    of_noise = ("lapse",)
    coords = {"noise_coordinate": of_noise, "coordinate": (*names, *of_noise)}
    return [
        Parameter("lapse", ("group",), {"group": groups}),
        Parameter("population_noise_mean", ("noise_coordinate",), {"noise_coordinate": of_noise}),
        Parameter("population_noise_covariance", ("noise_coordinate", "coordinate"), coords),
    ]
