"""Games on a date: what everybody in a line-up is worth, by all that a model lets it depend on.

A player's worth is the sum of the skills of his labels, one for each component, and of covariates
times coefficients. A label that was never seen is drawn from the population of its component.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from revealed._types import Floats
from revealed.data.rankings import Rankings
from revealed.models.skill_nodes import component_columns
from revealed.models.skill_paths import covariates_of_entries
from revealed.results.dated_ranking import DatedRanking, without_changes
from revealed.results.line_up import check_line_up
from revealed.results.skill_sizes import draw_path


def utilities_in_game(
    post: Any, line_up: Sequence[Any], date: float, columns: Mapping[str, Any], allow_new: bool
) -> DatedRanking:
    """The players of a line-up with all that they are worth on a date, in place of skills.

    post: a `RankingPathPosterior`. columns: of each player in turn.
    """
    lacks = [name for name in post.needed_columns if name not in columns]
    if lacks:
        raise ValueError(
            f"a game depends on {', '.join(lacks)} too: give columns={{name: [...]}} with a value "
            "for each player of the line-up"
        )
    unused = [name for name in columns if name not in post.needed_columns]
    if unused:
        raise ValueError(f"nothing in this model depends on {', '.join(unused)}; leave it out")
    teams = check_line_up(line_up, post.names, allow_new)
    game = replace(Rankings.from_lists([teams]), columns=columns)
    model = without_changes(post.model)
    draws = {"skill": _utilities(post, game, date).reshape(*post.shape, -1)}
    if model.spread is None:
        draws["spread"] = post.spread
    for name in ("margin", "newcomer_mean"):
        if name in post.draws:
            draws[name] = post.draws[name]
    return DatedRanking(draws, game, model, post.sampler, settings=post.settings)


def _utilities(post: Any, game: Rankings, date: float) -> Floats:
    """(S, n) draws of what each player of one game is worth on a date, without noise."""
    # one generator for all paths; always the same numbers, so that a prediction can be repeated
    rng, wanted = np.random.default_rng(0), np.array([date])
    utility = np.zeros((len(post.drifts), len(game.players)))
    model, nodes = post.model, post.nodes
    for c, (_, labels, code) in enumerate(component_columns(game, model.components)):
        drawn = np.empty((len(utility), len(labels)))
        for k, label in enumerate(labels):
            position = nodes.position[c].get(label)
            own = slice(0, 0) if position is None else nodes.path(position)
            # of somebody before his first game nothing is known: he is one of the population
            if own.stop > own.start and nodes.times[own.start] <= date:
                drawn[:, k] = draw_path(rng, post, own, wanted)[:, 0]
            else:
                drawn[:, k] = post.spreads[:, c] * rng.standard_normal(len(utility))
                # of the players of that population one who comes now is a newcomer
                if c == 0 and "newcomer_mean" in post.draws:
                    drawn[:, k] += post.stacked("newcomer_mean")
        utility += drawn[:, code]
    if model.covariates:
        # an entry's covariates are sums over its members, so that each member has a share
        members = np.arange(len(game.players) + 1)
        every = Rankings(
            game.names,
            game.players,
            members,
            members[[0, -1]],
            np.zeros(len(game.players), np.bool_),
            np.ones(1, np.int64),
            game.ids,
            columns=game.columns,
        )
        covariates = covariates_of_entries(every, model.covariates)
        utility += post.stacked("coefficient") @ covariates.T
    return utility


def score_games(post: Any, rankings: Rankings, allow_new: bool) -> Floats:
    """(G,) log predictive probabilities of other games, at their times.

    post: a `RankingPathPosterior`.
    """
    if rankings.times is None:
        raise ValueError(
            "skills change, so that a prediction needs to know when: give the games "
            'times=..., or time="column" to the reader'
        )
    found = np.empty(len(rankings))
    for date in np.unique(rankings.times).tolist():
        # all games of a date are foretold from the same skills
        own = np.flatnonzero(rankings.times == date)
        if not post.needed_columns:
            found[own] = post.at(date).log_score(rankings.take(own), allow_new)
            continue
        for g in own.tolist():
            one = rankings.take([g])
            given = {name: one.columns[name] for name in post.needed_columns if name in one.columns}
            utility = utilities_in_game(post, one.game(0)[0], date, given, allow_new)
            found[g] = utility.log_score(one)[0]
    return found


def utilities_of_entries(post: Any, game: int) -> Floats:
    """(S, n) the utility that each entry of a game that was seen has on the day, without noise."""
    entries, nodes = slice(*post.data.start[game : game + 2]), post.nodes
    starts = nodes.entry_start[entries.start : entries.stop + 1]
    # entry by entry, the nodes of its members stand together
    skills = post.stacked("skill")[:, nodes.node[starts[0] : starts[-1]]]
    means = np.add.reduceat(skills, starts[:-1] - starts[0], axis=1)
    covariates = post.paths.covariates
    if covariates.shape[1]:
        means += post.stacked("coefficient") @ covariates[entries].T
    return np.asarray(means)
