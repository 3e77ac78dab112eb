"""`RankingPathPosterior.update`: more games, from the draws that there are."""

from __future__ import annotations

from typing import Any

import numpy as np

from revealed._types import Floats, Ints
from revealed._validation import Seed, as_generator
from revealed.data.rankings import Rankings
from revealed.models.ranking import ResolvedRankingModel
from revealed.results.path_values import Steps, draw_between
from revealed.results.skill_sizes import sizes_of, steps_of
from revealed.samplers.run_settings import RunSettings
from revealed.samplers.skill_update import chosen_draws, skill_update_sampler


def update_skills(
    post: Any, new: Rankings, draws: int, warmup: int, seed: Seed, progress: bool | None
) -> Any:
    """A posterior of the games of another one and of new ones; post: a `RankingPathPosterior`."""
    if not isinstance(new, Rankings) or new.times is None or not len(new):
        raise ValueError("update takes Rankings with times, and at least one game")
    if new.times.min() < post.times[-1]:
        raise ValueError(
            f"update takes games that came later: one is at {new.times.min():g}, and the last that "
            f"was seen at {post.times[-1]:g}; fit all of them with rv.fit"
        )
    data = post.data + new
    resolved = post.model.resolve(data)
    settings = RunSettings.check(
        draws=draws,
        warmup=warmup,
        chains=post.shape[0],
        thin=1,
        seed=seed,
        executor=None,
        progress=progress,
        checkpoint=None,
        resume=False,
        checkpoint_seconds=0.0,
    )
    paths = paths_to_new_dates(
        as_generator(settings.seed), post, resolved, chosen_draws(*post.shape)
    )
    sampler = skill_update_sampler(resolved, dict(post.draws), paths)
    # each chain is told its number, and begins at its own last draw
    numbers = np.arange(post.shape[0], dtype=np.float64)[:, None]
    run, complete = settings.run(sampler, init=numbers)
    made, stats = run.collect()
    recorded = settings.recorded(updated=len(new), complete=complete)
    return type(post)(resolved.name_draws(made), data, post.model, sampler.name, stats, recorded)


def paths_to_new_dates(
    rng: np.random.Generator, post: Any, resolved: ResolvedRankingModel, which: Ints
) -> Floats:
    """(n, N) some draws of skills at the nodes of all games.

    Those of games that were seen are as they were drawn; paths go on from these, and who is new is
    drawn from the population. which: (n,) draws of `post`, counted through its chains.
    """
    own = resolved.paths
    assert own is not None
    nodes, before = own.nodes, post.nodes
    found = np.empty((len(which), len(nodes)))
    skill, spread = post.stacked("skill")[which], sizes_of(post, "spread")[which]
    mean = post.stacked("newcomer_mean")[which] if "newcomer_mean" in post.draws else 0.0
    for c, labels in enumerate(nodes.labels):
        every = steps_of(post, c)
        rate = None if every.rate is None else every.rate[which]
        steps = Steps(every.sd[which], rate, None, every.centre[which])
        for k, label in enumerate(labels, start=int(nodes.label_start[c])):
            path, position = nodes.path(k), before.position[c].get(label)
            if path.stop == path.start:
                continue
            times = nodes.times[path]
            seen = slice(0, 0) if position is None else before.path(position)
            if seen.stop > seen.start:
                began, values = before.times[seen], skill[:, seen, None]
            else:
                first = spread[:, c] * rng.standard_normal(len(which))
                first = first + mean * own.newcomer[path.start]
                began, values = times[:1], first[:, None, None]
            found[:, path] = draw_between(rng, steps, began, None, values, times, None)[:, :, 0]
    return found
