"""What strengths of players say of games: pairs whose order was seen, and winners.

Given the strengths u of a game's entries in S draws, the probability that i comes in front of j is

    logit noise     mean over draws of 1 / (1 + exp(u_j - u_i)),
    normal noise    mean over draws of Phi((u_i - u_j - margin) / sqrt(sd_i^2 + sd_j^2)),

and under normal noise the rest is a tie. Pairs and winners are scored given that there was no tie,
which an order that was seen says already.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit, log_expit, log_ndtr, logsumexp, softmax

from revealed._types import Bools, Floats, Ints
from revealed.data.entries import Team
from revealed.data.rankings import Rankings
from revealed.kernels.interrupt import raise_if_stopping
from revealed.models.ranking import RankingModel
from revealed.results.forecasts import Scores, score_actions, score_pairs
from revealed.results.ranking import RankingPosterior
from revealed.results.skill_line_up import utilities_in_game
from revealed.results.skill_paths import RankingPathPosterior


class KnownPairs(NamedTuple):
    """Pairs of entries whose order was seen: (P,) game, better and worse entry of all entries."""

    game: Ints
    better: Ints
    worse: Ints


def known_pairs(games: Rankings) -> KnownPairs:
    """All pairs of entries of a game, one of which was seen in front of the other."""
    # what holds for entries, then for pairs of them
    sizes, entries = np.diff(games.start), np.arange(len(games.tied))
    # entries of one place share the position of its first; those in no order are never in front
    place = np.maximum.accumulate(np.where(games.tied, 0, entries))
    offset = entries - np.repeat(games.start[:-1], sizes)
    ordered = offset < np.repeat(games.n_ordered, sizes)
    found = []
    # games of one size at a time
    for size in np.unique(sizes):
        which = np.flatnonzero(sizes == size)
        first, second = np.triu_indices(int(size), 1)
        better = (games.start[which][:, None] + first).ravel()
        worse = (games.start[which][:, None] + second).ravel()
        seen = ordered[better] & (place[better] != place[worse])
        found.append((np.repeat(which, len(first))[seen], better[seen], worse[seen]))
    game, better, worse = (np.concatenate(parts) for parts in zip(*found, strict=True))
    # in the order of the games
    order = np.argsort(game, kind="stable")
    return KnownPairs(game[order], better[order], worse[order])


def single_winners(games: Rankings) -> Bools:
    """(G,) whether one entry alone came first.

    Of a shared first place there is no winner to be foretold.
    """
    return ~games.tied[games.start[:-1] + 1]


def pairs_alone(games: Rankings) -> bool:
    """Whether all games are of two entries.

    Then winners are pairs, and are not scored twice.
    """
    return bool((np.diff(games.start) == 2).all())


class GameScores(NamedTuple):
    """Scores of all known pairs, and of all games with a single winner.

    Both in the order of the games.
    """

    pairs: Scores
    winners: Scores


@dataclass(frozen=True, eq=False)
class GameForecast:
    """One game as a posterior sees it before it is played.

    teams: its entries. means (n, S), margin (S,): draws of their strengths, and of the margin.
    """

    posterior: RankingPosterior
    teams: list[Team]
    means: Floats
    margin: Floats

    @property
    def is_logit(self) -> bool:
        """Whether orders have the law of Plackett and Luce.

        Otherwise noise is normal.
        """
        assert isinstance(self.posterior.model, RankingModel)
        return self.posterior.model.is_logit

    def log_better(self, better: Ints, worse: Ints) -> Floats:
        """(p,) log probabilities that entries come in front of others.

        better, worse: (p,) positions of these and those.
        """
        found = np.empty(len(better))
        # draw by draw, then the mean over them: that is the predictive probability
        for p, (i, j) in enumerate(zip(better, worse, strict=True)):
            gap = self.means[i] - self.means[j]
            if self.is_logit:
                logs = log_expit(gap)
            else:
                scale = np.sqrt(self.posterior.noise_variance(self.teams[i], self.teams[j]))
                logs = log_ndtr((gap - self.margin) / scale)
            found[p] = logsumexp(logs) - np.log(len(logs))
        return found

    def win_probabilities(self) -> Floats:
        """(n,) the probability of each entry to come first.

        Alone: a shared first place is left out.
        """
        if self.is_logit:
            return np.asarray(softmax(self.means, axis=0).mean(axis=1))
        return self.posterior.first_place(self.teams, self.means, self.margin)


def score_posterior(posterior: RankingPosterior, games: Rankings) -> GameScores:
    """How well a posterior foretells games.

    Players never seen are drawn from the population. Of skills that change, at their times.
    """
    pairs = known_pairs(games)
    first = np.searchsorted(pairs.game, np.arange(len(games) + 1))
    # both ways round: what is left to one is a tie
    first_better, first_worse = np.empty(len(pairs.game)), np.empty(len(pairs.game))
    winners: list[Floats] = []
    dated: dict[float, RankingPosterior] = {}
    for g in range(len(games)):
        raise_if_stopping()
        own = slice(first[g], first[g + 1])
        i, j = pairs.better[own] - games.start[g], pairs.worse[own] - games.start[g]
        then = posterior
        if isinstance(posterior, RankingPathPosterior):
            assert games.times is not None
            time = float(games.times[g])
            if posterior.needed_columns:
                # what cars and tracks add differs from game to game
                one = games.take([g])
                given = {name: one.columns[name] for name in posterior.needed_columns}
                then = utilities_in_game(posterior, one.game(0)[0], time, given, True)
            else:
                # the skills of one date serve all its games
                if time not in dated:
                    dated[time] = posterior.at(time)
                then = dated[time]
        forecast = GameForecast(then, *then.draw_strengths(games.game(g)[0], True))
        first_better[own], first_worse[own] = forecast.log_better(i, j), forecast.log_better(j, i)
        winners.append(forecast.win_probabilities())
    return GameScores(score_pairs(first_better, first_worse), score_winners(games, winners))


def score_winners(games: Rankings, probability: list[Floats]) -> Scores:
    """Scores of the winners of games that have one, from probabilities to win.

    These need not sum to one: shared first places are left aside.
    """
    kept = [
        p / p.sum() for p, single in zip(probability, single_winners(games), strict=True) if single
    ]
    if not kept:
        return Scores(np.empty(0), np.empty(0), np.empty(0))
    # line-ups one after the other, as actions of decisions are
    start = np.concatenate([[0], np.cumsum([len(p) for p in kept])])
    # entries stand in their order: the winner is the first
    return score_actions(np.concatenate(kept), start, np.zeros(len(kept), np.int64))


def score_ratings(ratings: Floats, games: Rankings) -> GameScores:
    """How well ratings (K,) on the logistic scale foretell games.

    An entry's rating is the mean of its players', and orders have the law of Plackett and Luce, in
    which pairs are logistic: ratings alone say nothing of more than two.
    """
    # entries follow one another, and so do their members
    strength = np.add.reduceat(ratings[games.players], games.member_start[:-1]) / games.sizes
    pairs = known_pairs(games)
    gap = strength[pairs.better] - strength[pairs.worse]
    single = single_winners(games)
    if pairs_alone(games):
        # hundreds of thousands of games of two at once: who wins is the pair
        first = expit(strength[0::2] - strength[1::2])[single]
        both, line_ups = np.stack([first, 1.0 - first], axis=1).ravel(), len(first)
        winners = score_actions(both, 2 * np.arange(line_ups + 1), np.zeros(line_ups, np.int64))
    else:
        logs = [strength[a:b] for a, b in zip(games.start[:-1], games.start[1:], strict=True)]
        winners = score_winners(games, [np.exp(log - logsumexp(log)) for log in logs])
    return GameScores(score_pairs(log_expit(gap), log_expit(-gap)), winners)
