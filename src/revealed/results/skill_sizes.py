"""How far and how fast skills change under every draw: sizes of steps, and draws of a path."""

from __future__ import annotations

from typing import Any

import numpy as np

from revealed._types import Floats
from revealed.results.path_values import Steps, draw_between


def sizes_of(post: Any, name: str) -> Floats:
    """(S, C) a size of each component, inferred or given: "spread", "drift_sd", "reversion_rate".

    post: a `RankingPathPosterior`.
    """
    # theta of what was given is the same in all draws
    if name in post.draws:
        found: Floats = post.stacked(name)
        return found
    at, count = post.paths.places[name], len(post.nodes.components)
    return np.tile(np.exp(post.paths.known[at : at + count]), (len(post.stacked("skill")), 1))


def drifts_of(post: Any) -> Floats:
    """(S, C) the sd of what a skill moves in one unit of time."""
    if not post.paths.process.reverts:
        return sizes_of(post, "drift_sd")
    # of what reverts: what is new after one unit of time
    rate, spread = sizes_of(post, "reversion_rate"), sizes_of(post, "spread")
    return np.asarray(spread * np.sqrt(-np.expm1(-2.0 * rate)))


def steps_of(post: Any, component: int) -> Steps:
    """The law of the steps of one component's paths."""
    reverts = post.paths.process.reverts
    sd = sizes_of(post, "spread" if reverts else "drift_sd")[:, [component]]
    rate = sizes_of(post, "reversion_rate")[:, [component]] if reverts else None
    return Steps(sd, rate, None, np.zeros_like(sd))


def draw_path(rng: np.random.Generator, post: Any, own: slice, wanted: Floats) -> Floats:
    """(S, M) draws of one path at any times (M,); NaN before it begins.

    rng: of what lies between and after nodes, one for all paths that are compared. own: its nodes.
    """
    # between two of its nodes a path is the bridge of its law
    steps = steps_of(post, int(post.nodes.component[own.start]))
    times, found = post.nodes.times[own], np.full((len(steps.sd), len(wanted)), np.nan)
    # one path goes through all wanted dates, in their order
    order = np.argsort(wanted, kind="stable")
    met = order[wanted[order] >= times[0]]
    paths = post.stacked("skill")[:, own, None]
    found[:, met] = draw_between(rng, steps, times, None, paths, wanted[met], None)[:, :, 0]
    return found
