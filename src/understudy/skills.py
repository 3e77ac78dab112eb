"""Skills from the results of games.

    results = [["ann", "bob", "cid"], ["bob", "ann"]]          # best first
    found = us.rank(results)
    print(found)
    found.win_probabilities(["ann", "bob", "cid"])

A player's performance in a game is its skill plus normal noise of variance one; whoever performs better is in front. Skills are normal
around zero with a spread that is learnt (half-normal prior with sd 2) unless a prior is given. A team's skill is the sum of its
players'. Where games can be tied, a win needs a margin, learnt too (half-normal prior with sd 1).
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from understudy.engines.drive import CHECKPOINT_SECONDS, Checkpoint, drive, fingerprint_of, refuse_bad_checkpoint
from understudy.engines.fit import announce_compiling, pick_seed, refuse_bad_counts, warn_unless_trusted
from understudy.engines.memory import ALWAYS, DRAWS, FEWER, refuse_too_large
from understudy.engines.ranked import Ranked
from understudy.engines.run import Run
from understudy.limits import OpenEndedWarning, open_direction, open_ends
from understudy.orders import Orders
from understudy.priors import Flat, Gaussian
from understudy.ranking import Ranking

NOISES = ("entry", "player")


def rank(
    results: Any,
    prior: Gaussian | Flat | None = None,
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
    seed: int | None = 0,
    threads: int | None = None,
    progress: bool | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> Ranking:
    """Learn skills from the results of games.

    Args:
        results: Orders; a list of games, each a list of entries, best first (a name, or a tuple of names for a team); or a
            long table, any dataframe or the path of a .csv or .parquet file, with a row for each player in each game.
        prior: of every skill; unless said, normal with a spread that is learnt. us.Gaussian(variance) gives it, us.Flat() has none
            and is refused where the games set some skill no limit. Under the others that is worth an OpenEndedWarning.
        game, player, position, team: the table's columns. A position is a number, equal for a tie; anything else, such as
            "DNF", is behind all who have one. Players of one team in a game are one entry.
        winner_only: look at who won and at nothing else.
        noise: "entry" gives a team one noise, "player" one for each of its players.
        draws, warmup, chains, seed, threads, progress, checkpoint, resume, checkpoint_seconds: as in ``us.fit``.

    >>> found = us.rank([["ann", "bob"]] * 8 + [["bob", "ann"]] * 2, draws=500)
    >>> found.better("ann", "bob") > 0.9
    True
    """
    if noise not in NOISES:
        raise ValueError(f"noise must be one of {', '.join(NOISES)}; it is {noise!r}")
    spread = _spread(prior)
    refuse_bad_counts(draws=draws, warmup=warmup, chains=chains, threads=threads, seed=seed)
    file = refuse_bad_checkpoint(checkpoint, resume, checkpoint_seconds)
    orders = read_orders(results, game, player, position, team, winner_only)
    _look_for_open_ends(orders, flat=isinstance(prior, Flat))
    refuse_too_large(ALWAYS + 8.0 * DRAWS * chains * draws * len(orders.names), FEWER)
    announce_compiling(progress)
    used_seed = pick_seed(seed)
    kind = "learnt" if spread is None else "flat" if np.isinf(spread) else spread**2
    settings = {"seed": used_seed, "draws": draws, "warmup": warmup, "chains": chains, "prior": kind}
    engine = Ranked.build(orders, spread, noise)
    run = Run(engine, draws=draws, warmup=warmup, thin=1, chains=chains, seed=used_seed, init=None)
    keeper = None if file is None else Checkpoint(file, _fingerprint(orders, noise, settings), checkpoint_seconds)
    kept, stats, complete = drive(run, engine.name, threads, progress, keeper, resume)
    settings["complete"] = complete
    spreads = np.full(kept.shape[:2], np.inf) if kind == "flat" else kept[:, :, -2]
    ranking = Ranking(orders, kept[:, :, :-2], spreads, kept[:, :, -1], noise, stats, settings)
    warn_unless_trusted(ranking.summary())
    return ranking


def _fingerprint(orders: Orders, noise: str, settings: Mapping[str, Any]) -> str:
    """What a checkpoint must agree with before it is continued."""
    return fingerprint_of(
        repr((orders.names, noise, sorted(settings.items()))),
        orders.players, orders.first, orders.start, orders.tied, orders.known,
    )  # fmt: skip


def _spread(prior: Gaussian | Flat | None) -> float | None:
    """Of the skills: None to learn it, infinite under a flat prior."""
    if prior is None:
        return None
    if isinstance(prior, Flat):
        return math.inf
    plain = isinstance(prior, Gaussian) and prior.centred is None and not np.any(prior.mean)
    if plain and isinstance(prior.variance, int | float | np.number):
        variance = float(prior.variance)
        if 0.0 < variance < math.inf:
            return math.sqrt(variance)
        raise ValueError(f"the prior variance of skills must be a positive number; it is {variance:g}")
    raise ValueError(
        f"the prior of skills must be us.Gaussian(variance) with one number, or us.Flat(); it is {prior!r}"
    )


def _look_for_open_ends(orders: Orders, flat: bool) -> None:
    """Refuse what a flat prior has no posterior for; under a proper one, warn of what it decides alone."""
    found = open_ends(orders)
    if flat and not found and not (orders.sizes == 1).all():
        direction = open_direction(orders)
        found = [] if direction is None else [f"no game contradicts the direction ({direction})"]
    if found and flat:
        raise ValueError(
            f"{found[0]}, so there is no posterior under a flat prior; give us.Gaussian(variance), or leave the prior out"
        )
    if found:
        warnings.warn(
            f"{'; '.join(found)}: there the prior alone sets limits to skills", OpenEndedWarning, stacklevel=3
        )


def read_orders(results: Any, game: str, player: str, position: str, team: str | None, winner_only: bool) -> Orders:
    """What `rank` was given, as Orders."""
    if isinstance(results, Orders):
        if winner_only:
            raise ValueError("winner_only is for results that are not Orders yet; make them with winner_only=True")
        return results
    if isinstance(results, Sequence) and not isinstance(results, str):
        return Orders.of(results, winner_only)
    from understudy.table_files import read_columns

    asked = [game, player, position, *([] if team is None else [team])]
    columns = read_columns(results, asked)
    groups = None if team is None else columns[team]
    return Orders.from_columns(columns[game], columns[player], columns[position], groups, winner_only)
