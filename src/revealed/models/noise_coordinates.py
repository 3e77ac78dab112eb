"""Coordinates of a noise that is not known: among the coefficients, and what they make of it.

What is unknown of a noise has coordinates with a standard normal prior, which come behind the
coefficients of the value (`kernels/noise.py`): first those of the noise without lapses, then those
of the lapses.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from revealed._types import Floats, Ints
from revealed.data.blocks import Block
from revealed.data.decisions import Decisions
from revealed.kernels.coordinate_table import table_values
from revealed.kernels.noise import (
    NO_TABLE,
    AnyNoise,
    LapseArguments,
    NoiseArguments,
    count_coordinates,
)
from revealed.models.habit import weights_of


def at_coordinate(noise: AnyNoise, v: Floats) -> AnyNoise:
    """The noise that the last of v (K,) make of it, where some of it is unknown."""
    first = len(v) - count_coordinates(noise)
    if not isinstance(noise, LapseArguments):
        return _law_at(noise, v[first:])
    if noise.coordinates == 0:
        return noise._replace(noise=_law_at(noise.noise, v[first:]))
    # the noise without lapses, the coordinate of the rate, then those of habits
    z = v[len(v) - noise.coordinates :]
    log_odds = float(table_values(noise.table, z[0])[0])
    habit = noise.habit._replace(weights=weights_of(z[1:]))
    law = _law_at(noise.noise, v[first:])
    return noise._replace(noise=law, coordinates=0, log_odds=log_odds, habit=habit)


def _law_at(law: NoiseArguments, z: Floats) -> NoiseArguments:
    """The law of choices that are no lapses, at the first of z where that is its coordinate."""
    if not count_coordinates(law):
        return law
    return law._replace(parameters=parameters_at(law, z[:1]), table=NO_TABLE)


def parameters_at(law: NoiseArguments, z: Floats) -> Floats:
    """(...) what is unknown of a law, at every one of its coordinates z (...)."""
    return np.asarray(np.exp(table_values(law.table, z)[0]))


def with_noise_coordinates(d: Decisions, count: int, of_row: Ints | None = None) -> Decisions:
    """The decisions with so many columns of zeros more, which stand for coordinates of the noise.

    Utilities do not depend on these coefficients, but everything that moves coefficients moves them
    too. of_row: (P,) labels of the actions as numbers, where habits are learnt.
    """
    if count == 0:
        return d
    # dense rows stay dense, and sparse ones sparse
    zeros = sp.csr_array((d.rows.shape[0], count))
    rows = (
        sp.csr_array(sp.hstack([d.rows, zeros]))
        if sp.issparse(d.rows)
        else np.hstack([d.rows, zeros.toarray()])
    )
    # a feature may be called whatever a user likes, and no name may stand there twice
    names = (f"noise {i}" for i in range(count + len(d.names)))
    free = [name for name in names if name not in d.names][:count]
    return Decisions(
        rows,
        d.start,
        d.chosen_row - d.start[:-1],
        names=[*d.names, *free],
        actions=of_row,
        blocks=[*d.blocks, Block("noise", count)],
        times=d.times,
        sessions=d.sessions,
    )
