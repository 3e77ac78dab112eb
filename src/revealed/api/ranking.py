"""`rank`: skills from the results of games.

    results = [["ann", "bob", "cid"], ["bob", "ann"]]          # best first
    found = rv.rank(results)
    found.table()
    found.win_probabilities(["ann", "bob", "cid"])

A player's performance in a game is its skill plus normal noise of variance one; whoever performs
better is in front. Skills are normal around zero, with a spread that is inferred (half-normal prior
with sd 2) where no prior is given. A team's skill is the sum of its players'. Where games can be
tied, a win needs a margin, inferred too (half-normal prior with sd 1).
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from revealed._validation import Seed
from revealed.api.run_settings import RunSettings, announce_compiling, warn_unless_converged
from revealed.data.rankings import Rankings
from revealed.io.checkpoints import CHECKPOINTS
from revealed.models.priors import Flat, Normal
from revealed.models.propriety import (
    UnboundedSkillWarning,
    unbounded_skills,
    unbounded_team_direction,
)
from revealed.results.ranking import RankingPosterior
from revealed.samplers.memory import FEWER_DRAWS, MEMORY, refuse_too_large
from revealed.samplers.ranking_hmc import RankingSampler


def rank(
    results: Any,
    prior: Normal | Flat | None = None,
    *,
    game: str = "game",
    player: str = "player",
    position: str = "position",
    team: str | None = None,
    winner_only: bool = False,
    noise: str = "entry",
    draws: int = 1000,
    warmup: int = 500,
    chains: int = 4,
    seed: Seed = 0,
    threads: int | None = None,
    progress: bool | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    checkpoint_seconds: float = CHECKPOINTS.seconds,
) -> RankingPosterior:
    """Infer skills from the results of games.

    Parameters
    ----------
    results
        Rankings; a list of games, each a list of entries, best first (a name, or a tuple of names
        for a team); or a long table, any dataframe or the path of a .csv or .parquet file, with a
        row for each player in each game.
    prior
        Of every skill; default: normal, with a spread that is inferred. rv.Normal(sd) gives it,
        rv.Flat() has none and is refused where the games leave some skill unbounded. Under the
        others that is worth an UnboundedSkillWarning.
    game, player, position, team
        The table's columns. A position is a number, equal for a tie; anything else, such as "DNF",
        is behind all who have one. Players of one team in a game are one entry.
    winner_only
        Use who won and nothing else.
    noise
        "entry" gives a team one noise, "player" one for each of its players.
    draws, warmup, chains, seed, threads, progress, checkpoint, resume, checkpoint_seconds
        As in ``rv.fit``.

    Returns
    -------
    RankingPosterior
        Draws of skills, of their spread and of the margin of a tie.

    Examples
    --------
    >>> found = rv.rank([["ann", "bob"]] * 8 + [["bob", "ann"]] * 2, draws=500)
    >>> found.probability_better("ann", "bob") > 0.9
    True
    """
    kinds = ("entry", "player")
    if noise not in kinds:
        raise ValueError(f"noise must be one of {', '.join(kinds)}; it is {noise!r}")
    spread = _prior_spread(prior)
    # check what was given
    settings = RunSettings.check(
        draws=draws,
        warmup=warmup,
        chains=chains,
        seed=seed,
        threads=threads,
        progress=progress,
        checkpoint=checkpoint,
        resume=resume,
        checkpoint_seconds=checkpoint_seconds,
    )
    rankings = read_rankings(results, game, player, position, team, winner_only)
    _check_bounded(rankings, flat=isinstance(prior, Flat))
    # the skills of all players make the most of the draws
    size = 8.0 * MEMORY.draws * chains * draws * len(rankings.names)
    refuse_too_large(MEMORY.always + size, FEWER_DRAWS)
    announce_compiling(progress)
    # recorded as version 0.1.0 did, so that files of both can be compared
    kind = "learnt" if spread is None else "flat" if np.isinf(spread) else spread**2
    recorded = settings.recorded(prior=kind)
    # every iteration is kept: an option to thin would only be recorded here
    del recorded["thin"]
    sampler = RankingSampler.build(rankings, spread, noise)
    run, complete = settings.run(
        sampler,
        recorded,
        (rankings.names, noise),
        rankings.players,
        rankings.member_start,
        rankings.start,
        rankings.tied,
        rankings.n_ordered,
    )
    # a draw is the skills, their spread and the margin of a tie
    kept, stats = run.collect()
    spreads = np.full(kept.shape[:2], np.inf) if kind == "flat" else kept[:, :, -2]
    ranking = RankingPosterior(
        rankings,
        kept[:, :, :-2],
        spreads,
        kept[:, :, -1],
        noise,
        stats,
        {**recorded, "complete": complete},
    )
    warn_unless_converged(ranking.summary())
    return ranking


def _prior_spread(prior: Normal | Flat | None) -> float | None:
    """The sd of skills that a prior says: None to infer it, infinite under a flat prior."""
    if prior is None:
        return None
    if isinstance(prior, Flat):
        return math.inf
    # skills are exchangeable before any game: one mean, zero, and one sd
    plain = isinstance(prior, Normal) and prior.sum_to_zero is None and not np.any(prior.mean)
    if plain and prior.covariance is None and isinstance(prior.sd, int | float | np.number):
        sd = float(prior.sd)
        if 0.0 < sd < math.inf:
            return sd
        raise ValueError(f"the prior sd of skills must be a positive number; it is {sd:g}")
    raise ValueError(
        f"the prior of skills must be rv.Normal(sd) with one number, or rv.Flat(); it is {prior!r}"
    )


def _check_bounded(rankings: Rankings, flat: bool) -> None:
    """Refuse what a flat prior has no posterior for; warn of what a proper one decides alone.

    The warning points at the caller of `rank`, from which this must be called directly.
    """
    found = unbounded_skills(rankings)
    # of teams, sums of skills may be unbounded where no single skill is
    if flat and not found and not (rankings.sizes == 1).all():
        direction = unbounded_team_direction(rankings)
        found = [] if direction is None else [f"no game contradicts the direction ({direction})"]
    if found and flat:
        raise ValueError(
            f"{found[0]}, so there is no posterior under a flat prior; give rv.Normal(sd), or "
            "leave the prior out"
        )
    if found:
        warnings.warn(
            f"{'; '.join(found)}: there the prior alone sets limits to skills",
            UnboundedSkillWarning,
            stacklevel=3,
        )


def read_rankings(
    results: Any, game: str, player: str, position: str, team: str | None, winner_only: bool
) -> Rankings:
    """What `rank` was given, as Rankings; the arguments are those of `rank`."""
    if isinstance(results, Rankings):
        if winner_only:
            raise ValueError(
                "winner_only is for results that are not Rankings yet; make them with "
                "winner_only=True"
            )
        return results
    # lists of names, best first; all else is a table or the path of one
    if isinstance(results, Sequence) and not isinstance(results, str):
        return Rankings.from_lists(results, winner_only)
    from revealed.io.files import read_columns

    asked = [game, player, position, *([] if team is None else [team])]
    columns = read_columns(results, asked)
    teams = None if team is None else columns[team]
    return Rankings.from_columns(
        columns[game], columns[player], columns[position], teams, winner_only
    )
