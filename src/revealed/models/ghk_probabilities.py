"""Probabilities of choices under noise with a covariance: integrals over orthants.

By the GHK simulator (Geweke, Hajivassiliou, Keane; `kernels.ghk`) on a lattice of points.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from revealed._types import Bools, Floats, Ints
from revealed.data.decisions import Decisions
from revealed.kernels import ghk
from revealed.models.correlated_noise import NoiseCovariance


def ghk_log_probabilities(
    d: Decisions,
    utilities: Iterator[tuple[int, Floats]],
    draws: int,
    noise: NoiseCovariance,
    wanted: Bools,
    points: int,
    same_points: bool = False,
) -> Iterator[tuple[int, Floats]]:
    """For each draw s the log probability (P,) of every row wanted, under correlated noise.

    utilities: for each of so many draws s its mean utilities (P,).

    By sequential conditioning (`kernels.ghk`) over a lattice of so many points and their mirror
    images; a decision between two actions needs none. The first coordinate of the points is
    evenly spaced, the others go on as Richtmyer's sequence (multiples of square roots of primes)
    from draw to draw, and all are folded: an average over draws needs points that differ, and a
    difference between draws the same ones.
    """
    if noise.covariance.ndim == 3 and len(noise.covariance) != draws:
        raise ValueError(
            f"{len(noise.covariance)} noise covariances for {draws} draws of v; "
            "give one for each draw"
        )
    # The covariance of every draw, with the base action's zero row.
    label, covariance = noise.label_of_row(d), noise.full_covariance(draws)
    increments = np.sqrt(_primes(max(1, int(d.sizes.max()) - 2)))
    for s, mu in utilities:
        at = 0 if same_points else s
        lattice = (np.arange(at * points, (at + 1) * points)[:, None] + 0.5) * increments
        lattice[:, 0] = (np.arange(points) + 0.5) / points + at * increments[0]
        lattice %= 1.0
        # The baker's transform makes the integrand periodic; the ends are kept off 0 and 1.
        folded = np.clip(np.abs(2.0 * lattice - 1.0), 1e-12, 1.0 - 1e-12)
        mirrored = np.stack([np.log(folded), np.log1p(-folded)], axis=2)
        logs = np.zeros(len(mu))
        ghk.log_probabilities(mu, d.start, label, covariance[s], wanted, mirrored, logs)
        yield s, logs


def normalise(d: Decisions, logs: Floats) -> Floats:
    """(P,) probabilities that sum to one in each decision.

    Those of a decision's actions are integrated one by one, and so sum to one only nearly.
    """
    chances = np.exp(logs)
    return np.asarray(chances / np.repeat(np.add.reduceat(chances, d.start[:-1]), d.sizes))


def _primes(count: int) -> Ints:
    """(count,) the first primes: 2, 3, 5, ...

    Their square roots are irrational and independent, which Richtmyer's lattice needs.
    """
    found: list[int] = []
    number = 2
    # Trial division is enough for a handful.
    while len(found) < count:
        if all(number % p for p in found):
            found.append(number)
        number += 1
    return np.array(found)
