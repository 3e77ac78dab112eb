"""Policies made of a posterior: play Tetris as the observed player would.

The paper's prediction of an action is a vote: each draw of the value takes its best placement,
fresh noise added, and the placement with most votes is predicted. A whole game needs thousands
of such votes, so here every draw votes once a placement, with one draw of the noise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from revealed._types import Floats
from revealed.environments.tetris.environment import Tetris
from revealed.environments.tetris.features import feature_set_named
from revealed.environments.tetris.rollout import Policy
from revealed.models.lapse import KnownLapse
from revealed.models.noise import Noise, without_lapses


def voting_policy(draws: Any, voters: int = 500, noise: Noise | KnownLapse | None = None) -> Policy:
    """A policy that plays the placement with most votes: the paper's predicted action.

    `draws` (S, K) are draws of the value; at most `voters` of them vote, evenly thinned. Fewer
    play faster, and disagree more often with the vote of all. noise: of the utilities, with the
    rate of lapses of all draws or of each where some votes are blind; default normal.
    """
    # Thinned once, not at every placement.
    every = np.atleast_2d(np.asarray(draws, dtype=np.float64))
    which = np.linspace(0, len(every) - 1, min(voters, len(every))).astype(int)
    value, law = np.ascontiguousarray(every[which]), without_lapses(noise)
    rate = _lapse_rates(noise, len(every))[which]

    def choose(rng: np.random.Generator, rows: Floats) -> int:
        # Column s of the utilities is what voter s sees; its largest entry is its vote.
        # Each voter has a decision of its own, with the noise of its actions.
        voter = np.tile(np.arange(len(value)), len(rows))
        noise = law.sample_decisions(rng, (1, voter.size), voter, np.zeros(1, np.int64))
        best = np.argmax(rows @ value.T + noise.reshape(len(rows), len(value)), axis=0)
        if rate.any():
            blind = rng.random(len(value)) < rate
            best[blind] = rng.integers(len(rows), size=int(blind.sum()))
        return int(np.argmax(np.bincount(best, minlength=len(rows))))

    return choose


def sampling_policy(draws: Any, noise: Noise | KnownLapse | None = None) -> Policy:
    """A policy that acts as one possible controller: a random draw of the value, with noise.

    `draws` is (S, K), or (K,) for a value that is known. Each placement takes another draw.
    noise: of the utilities, with the rate of lapses of all draws or of each where some placements
    are made blindly; default normal.
    """
    value, law = np.atleast_2d(np.asarray(draws, dtype=np.float64)), without_lapses(noise)
    rate = _lapse_rates(noise, len(value))

    def choose(rng: np.random.Generator, rows: Floats) -> int:
        one = rng.integers(len(value))
        if rate[one] > 0.0 and rng.random() < rate[one]:
            return int(rng.integers(len(rows)))
        return int(np.argmax(rows @ value[one] + law.sample(rng, len(rows))))

    return choose


def tetris_with_features(names: Any, rows: int = 30, columns: int = 10) -> Tetris:
    """The environment in which a posterior with these coefficient names can play."""
    return Tetris(rows, columns, features=feature_set_named(list(names), columns))


def _lapse_rates(noise: Noise | KnownLapse | None, count: int) -> Floats:
    """(count,) the rate of lapses of each draw; zero where there are none."""
    if not isinstance(noise, KnownLapse):
        return np.zeros(count)
    if noise.habit is not None:
        raise ValueError("placements have no labels, so that there are no habits among them")
    return np.broadcast_to(noise.rate, count)
