"""RankingPosterior: draws of skills; who is better, how sure that is, and what would come next.

Predictions average the exact probability of an order over the draws of skills, spread and margin.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import logsumexp

from revealed._types import Bools, Floats
from revealed.data.entries import Team
from revealed.data.rankings import Rankings
from revealed.kernels import plackett_luce
from revealed.kernels.ranking_likelihood import log_ranking_probabilities
from revealed.models.ranking import RankingModel
from revealed.results.base import Columns, Posterior
from revealed.results.line_up import check_line_up


@dataclass(frozen=True, eq=False, repr=False)
class RankingPosterior(Posterior):
    """Draws of everybody's skill, of their spread, and of the margin of a tie.

    ``draws["skill"]`` is (chain, draw, K), summing to zero where games do not depend on their
    location; ``draws["spread"]`` (chain, draw) the sd of skills, where that was inferred; and
    ``draws["margin"]`` (chain, draw) what a win needs, where some tied under normal noise.

    Examples
    --------
    >>> games = [["ann", "bob", "cid"], ["bob", "ann", "cid"], ["cid", "ann", "bob"]]
    >>> found = rv.fit(games, rv.RankingModel(), draws=2000)
    >>> found
    <RankingPosterior: 4 chains of 2000 draws, 3 players, 3 games, sampler ranking-hmc>
    >>> found.win_probabilities(["ann", "cid"]).sum().round(6)
    np.float64(1.0)
    >>> [line["player"] for line in found.table()][0]
    'ann'
    """

    main: ClassVar[str] = "skill"

    @property
    def rankings(self) -> Rankings:
        """The games it was inferred from."""
        found: Rankings = self.data
        return found

    @property
    def names(self) -> tuple[str, ...]:
        """The players."""
        return self.rankings.names

    @property
    def values(self) -> Floats:
        """(chains * draws, K) skills, the chains one after the other."""
        return self.stacked("skill")

    @property
    def _strengths(self) -> Floats:
        """(chains * draws, K) skills that new players are compared with.

        Not relative to one another, where these have a level of their own.
        """
        return self.values

    @property
    def _location_is_free(self) -> bool:
        """Whether skills lie about a level that the population is drawn around.

        They sum to zero then.
        """
        return self.rankings.location_free

    @property
    def spread(self) -> Floats:
        """(chain, draw) the sd of skills, inferred or given; infinite under a flat prior."""
        assert isinstance(self.model, RankingModel)
        given = self.model.spread
        return self.draws["spread"] if given is None else np.full(self.shape, given)

    @property
    def margin(self) -> Floats:
        """(chain, draw) what a win needs; zero where no two tied, and under logit noise."""
        return self.draws["margin"] if "margin" in self.draws else np.zeros(self.shape)

    def columns(self) -> Columns:
        """Every skill, then spread and margin, where they were inferred."""
        parts, names = [self.draws["skill"]], list(self.names)
        for name, label in (("spread", "spread of skills"), ("margin", "margin of a tie")):
            # what was given, and not inferred, has no draws
            if name in self.draws:
                parts.append(self.draws[name][:, :, None])
                names.append(label)
        joined = np.concatenate(parts, axis=2)
        return Columns(joined, tuple(names), np.zeros(joined.shape[2], np.bool_))

    def table(self) -> list[dict[str, Any]]:
        """A line a player, best first.

        Returns
        -------
        list of dict
            player; skill, its sd and its 90 % interval, low and high; likely places, place_low and
            place_high; best, the probability to be the best; games.
        """
        # the place of each player in each draw
        values = self.values
        places = 1 + np.argsort(np.argsort(-values, axis=1), axis=1)
        low, high = np.quantile(values, [0.05, 0.95], axis=0)
        best, worst = np.quantile(places, [0.05, 0.95], axis=0, method="nearest")
        games, lines = self.rankings.games, []
        # by mean skill, which orders players as win probabilities mostly do
        for k in np.argsort(-values.mean(axis=0)):
            lines.append(
                {
                    "player": self.names[k],
                    "skill": float(values[:, k].mean()),
                    "sd": float(values[:, k].std()),
                    "low": float(low[k]),
                    "high": float(high[k]),
                    "place_low": int(best[k]),
                    "place_high": int(worst[k]),
                    "best": float((places[:, k] == 1).mean()),
                    "games": int(games[k]),
                }
            )
        return lines

    def _contents(self) -> str:
        return f"{len(self.names)} players, {len(self.rankings)} games"

    def __str__(self) -> str:
        # more lines than this would push the message below off the screen
        most = 20
        lines = self.table()
        wide = max(len(line["player"]) for line in lines[:most])
        text = [f"{'':{wide}}  skill    sd   places   games"]
        for line in lines[:most]:
            places = f"{line['place_low']}-{line['place_high']}"
            text.append(
                f"{line['player']:{wide}}  {line['skill']:5.2f}  {line['sd']:4.2f}  {places:>7}  "
                f"{line['games']:6d}"
            )
        if len(lines) > most:
            text.append(f"... and {len(lines) - most} more players")
        return "\n".join([*text, self.summary().message])

    def probability_better(self, one: str, other: str) -> float:
        """The probability that one player is more skilled than another.

        Of skills, without the noise of a game; `win_probabilities` has that too.
        """
        _, (a, b), _ = self.draw_strengths([(one,), (other,)], allow_new_players=False)
        return float((a > b).mean())

    def win_probabilities(self, line_up: Sequence[Any], allow_new_players: bool = False) -> Floats:
        """(n,) the probability of each entry to come first.

        Where games can be tied they add up to less than one: the rest is a shared first place.
        Under logit noise they add up to one: of a tie only the order was not seen.

        Parameters
        ----------
        line_up
            Entries: a name, or a tuple of names for a team.
        allow_new_players
            Treat players never seen before as drawn from the population of players, whose spread
            was inferred; otherwise they are refused.
        """
        return self.first_place(*self.draw_strengths(line_up, allow_new_players))

    def first_place(self, teams: Sequence[Team], means: Floats, margin: Floats) -> Floats:
        """(n,) the probability of each team to come first, from draws of what they are worth.

        Parameters
        ----------
        teams
            Who is in each.
        means, margin
            (n, S) draws of their strengths, and (S,) of the margin.
        """
        # one entry first, and nothing said of the others
        order = np.arange(len(teams))
        first = [np.roll(order, -k) for k in order]
        return np.exp([self._log_probability(means, teams, margin, order, 1) for order in first])

    def noise_variance(self, *teams: Team) -> float:
        """The variance of the sum of the noises of teams, under normal noise."""
        assert isinstance(self.model, RankingModel)
        of_player = self.model.team_noise == "player"
        return float(sum(len(team) if of_player else 1 for team in teams))

    def order_probability(self, line_up: Sequence[Any], allow_new_players: bool = False) -> float:
        """The probability that the entries finish in just this order, without ties.

        The parameters are those of `win_probabilities`.
        """
        teams, means, margin = self.draw_strengths(line_up, allow_new_players)
        order = np.arange(len(teams))
        return float(np.exp(self._log_probability(means, teams, margin, order, len(teams))))

    def orderings(
        self, line_up: Sequence[Any], allow_new_players: bool = False
    ) -> list[tuple[tuple[Any, ...], float]]:
        """Every order in which up to six entries may finish, and its probability.

        The most likely comes first; the parameters are those of `win_probabilities`.
        """
        # six entries have 720 orders; seven already have 5040
        most = 6
        if len(line_up) > most:
            raise ValueError(
                f"{len(line_up)} entries have {math.factorial(len(line_up))} orderings; they are "
                f"listed for up to {most} entries, and order_probability has the one you ask for"
            )
        teams, means, margin = self.draw_strengths(line_up, allow_new_players)
        found = [
            (
                tuple(line_up[k] for k in order),
                float(np.exp(self._log_probability(means, teams, margin, order, len(teams)))),
            )
            for order in map(np.array, itertools.permutations(range(len(teams))))
        ]
        return sorted(found, key=lambda pair: -pair[1])

    def log_score(self, rankings: Rankings, allow_new_players: bool = False) -> Floats:
        """(G,) the log predictive probability of what happened in other games.

        Each game by itself; the sum scores all of them.
        """
        found = np.empty(len(rankings))
        # games are scored one by one, as if each came next
        for g in range(len(rankings)):
            entries, tied, n_ordered = rankings.game(g)
            teams, means, margin = self.draw_strengths(entries, allow_new_players)
            order = np.arange(len(teams))
            found[g] = self._log_probability(means, teams, margin, order, n_ordered, tied)
        return found

    def predict(self, line_up: Sequence[Any], allow_new_players: bool = False) -> Floats:
        """(n,) the probability of each entry to come first, as `win_probabilities` has it."""
        return self.win_probabilities(line_up, allow_new_players)

    def log_likelihood(self) -> Floats:
        """(chain, draw, G) the exact log-likelihood of every game, in every draw."""
        out = np.empty((len(self.values), len(self.rankings)))
        position = {name: k for k, name in enumerate(self.names)}
        for g in range(len(self.rankings)):
            teams, tied, n_ordered = self.rankings.game(g)
            means = np.stack(
                [self.values[:, [position[name] for name in team]].sum(axis=1) for team in teams],
                axis=1,
            )
            out[:, g] = self._log_probabilities(means, teams, tied, n_ordered, self.margin.ravel())
        return out.reshape(*self.shape, len(self.rankings))

    def _log_probabilities(
        self, means: Floats, teams: Sequence[Team], tied: Bools, n_ordered: int, margin: Floats
    ) -> Floats:
        """(S,) log probabilities of teams in this order, under S sets of their strengths (S, n)."""
        assert isinstance(self.model, RankingModel)
        if self.model.is_logit:
            return plackett_luce.log_probabilities(means, tied, n_ordered)
        of_player = self.model.team_noise == "player"
        sd = np.sqrt([float(len(team)) if of_player else 1.0 for team in teams])
        return log_ranking_probabilities(means, sd, tied, n_ordered, margin)

    def _log_probability(
        self,
        means: Floats,
        teams: Sequence[Team],
        margin: Floats,
        order: Any,
        n_ordered: int,
        tied: Bools | None = None,
    ) -> float:
        """Log of the mean over draws of the probability that teams finish in this order.

        means: (n, S) strengths of the teams. n_ordered: how many places of the order are known.
        """
        flags = np.zeros(len(teams), np.bool_) if tied is None else tied
        logs = self._log_probabilities(
            np.ascontiguousarray(means.T[:, order]),
            [teams[k] for k in order],
            flags,
            n_ordered,
            margin,
        )
        return float(logsumexp(logs) - np.log(len(logs)))

    def draw_strengths(
        self, line_up: Sequence[Any], allow_new_players: bool
    ) -> tuple[list[Team], Floats, Floats]:
        """The teams of a line-up, (n, S) draws of their skills, and (S,) of the margin.

        A new player is drawn from the population. Where skills sum to zero, the population's mean
        lies around theirs by spread / sqrt(K).
        """
        # predictions average over so many draws; more hardly change them and take long
        averaged = 1000
        teams = check_line_up(line_up, self.names, allow_new_players)
        # thinned evenly, so that all chains take part
        strengths = self._strengths
        every = max(1, strengths.shape[0] // averaged)
        values, spread = strengths[::every], self.spread.ravel()[::every]
        position = {name: k for k, name in enumerate(self.names)}
        new = sorted({name for team in teams for name in team if name not in position})
        if new and np.isinf(spread).any():
            raise ValueError(
                f"under a flat prior nothing is known of {new[0]!r}, who was in no game; give "
                "rv.Normal(sd)"
            )
        # always the same numbers, so that a prediction can be repeated
        rng = np.random.default_rng(0)
        location = (
            rng.standard_normal(len(spread)) / np.sqrt(len(self.names))
            if self._location_is_free
            else 0.0
        )
        if "newcomer_mean" in self.draws:
            location = location + self.stacked("newcomer_mean")[::every] / spread
        drawn = {name: spread * (rng.standard_normal(len(spread)) + location) for name in new}
        summed = [
            sum(drawn[name] if name in drawn else values[:, position[name]] for name in team)
            for team in teams
        ]
        return teams, np.stack(summed), self.margin.ravel()[::every]
