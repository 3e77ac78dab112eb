"""RankingPosterior: draws of skills; who is better, how sure that is, and what would come next.

Predictions average the exact probability of an order over the draws of skills, spread and margin.
"""

from __future__ import annotations

import itertools
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import logsumexp

from revealed._types import Bools, Floats
from revealed.data.rankings import Rankings, Team
from revealed.io.netcdf import Variables, read_file, to_arviz, write_file
from revealed.kernels.ranking_likelihood import log_ranking_probabilities
from revealed.results.line_up import check_line_up
from revealed.results.storage import (
    array_reader,
    draw_dimensions,
    read_stats,
    stat_variables,
)
from revealed.results.summary import Summary, summarise

# Of the file; raise it when an older version could no longer read what is written.
RANKING_FORMAT = 1


@dataclass(frozen=True, eq=False, repr=False)
class RankingPosterior:
    """Draws of everybody's skill, of their spread, and of the margin of a tie.

    Parameters
    ----------
    rankings
        The games it was inferred from.
    skills
        (chain, draw, K), summing to zero where games do not depend on their location.
    spread
        (chain, draw) the sd of skills, infinite under a flat prior.
    margin
        (chain, draw) what a win needs, zero where no two tied.
    noise
        "entry" or "player": who has a noise of its own.
    stats
        Statistics of each draw; each (chain, draw).
    settings
        How it was run.

    Examples
    --------
    >>> games = [["ann", "bob", "cid"], ["bob", "ann", "cid"], ["cid", "ann", "bob"]]
    >>> found = rv.rank(games, draws=2000)
    >>> found
    <RankingPosterior: 3 players, 3 games, 4 chains of 2000 draws>
    >>> found.win_probabilities(["ann", "cid"]).sum().round(6)
    np.float64(1.0)
    >>> [line["player"] for line in found.table()][0]
    'ann'
    """

    rankings: Rankings
    skills: Floats
    spread: Floats
    margin: Floats
    noise: str
    stats: Mapping[str, Floats] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The players."""
        return self.rankings.names

    @property
    def values(self) -> Floats:
        """(chains * draws, K) skills, the chains one after the other."""
        return self.skills.reshape(-1, len(self.names))

    def summary(self) -> Summary:
        """Means, sds and diagnostics of every skill, and whether they converged.

        Spread and margin come last, where they were inferred.
        """
        parts, names = [self.skills], list(self.names)
        for name, draws in (("spread of skills", self.spread), ("margin of a tie", self.margin)):
            # what was given, and not inferred, is the same in every draw
            if draws.min() < draws.max():
                parts.append(draws[:, :, None])
                names.append(name)
        joined = np.concatenate(parts, axis=2)
        return summarise(
            joined,
            tuple(names),
            fixed=np.zeros(joined.shape[2], np.bool_),
            interrupted=self.settings.get("complete") is False,
            requested=self.settings.get("draws"),
        )

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

    def __repr__(self) -> str:
        chains, draws, players = self.skills.shape
        return (
            f"<RankingPosterior: {players} players, {len(self.rankings)} games, {chains} chains of "
            f"{draws} draws>"
        )

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
        _, (a, b), _ = self._draw_strengths([(one,), (other,)], allow_new_players=False)
        return float((a > b).mean())

    def win_probabilities(self, line_up: Sequence[Any], allow_new_players: bool = False) -> Floats:
        """(n,) the probability of each entry to come first.

        Where games can be tied they add up to less than one: the rest is a shared first place.

        Parameters
        ----------
        line_up
            Entries: a name, or a tuple of names for a team.
        allow_new_players
            Treat players never seen before as drawn from the population of players, whose spread
            was inferred; otherwise they are refused.
        """
        teams, means, margin = self._draw_strengths(line_up, allow_new_players)
        # one entry first, and nothing said of the others
        order = np.arange(len(teams))
        first = [np.roll(order, -k) for k in order]
        return np.exp([self._log_probability(means, teams, margin, order, 1) for order in first])

    def order_probability(self, line_up: Sequence[Any], allow_new_players: bool = False) -> float:
        """The probability that the entries finish in just this order, without ties.

        The parameters are those of `win_probabilities`.
        """
        teams, means, margin = self._draw_strengths(line_up, allow_new_players)
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
        teams, means, margin = self._draw_strengths(line_up, allow_new_players)
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
            teams, means, margin = self._draw_strengths(entries, allow_new_players)
            order = np.arange(len(teams))
            found[g] = self._log_probability(means, teams, margin, order, n_ordered, tied)
        return found

    def to_arviz(self, log_likelihood: bool = False) -> Any:
        """The same as ArviZ's InferenceData (ArviZ 0.x) or xarray DataTree (ArviZ 1.x).

        Parameters
        ----------
        log_likelihood
            Add the exact log-likelihood of every game under every draw, as arviz.loo needs.
        """
        return to_arviz(self._attributes(), self._groups(log_likelihood))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a NetCDF file that `rv.load` and ArviZ read; it is there whole or not at all."""
        write_file(path, self._attributes(), self._groups(log_likelihood=False))

    @staticmethod
    def load(path: str | os.PathLike[str]) -> RankingPosterior:
        """Read a ranking that `save` wrote."""
        return read_file(path, "a ranking", RANKING_FORMAT, read_ranking)

    def _attributes(self) -> dict[str, Any]:
        """Everything that is not an array, as text."""
        return {
            "created_by": "revealed",
            "format_version": RANKING_FORMAT,
            "kind": "a ranking",
            "noise": self.noise,
            "settings": json.dumps(dict(self.settings)),
        }

    def _groups(self, log_likelihood: bool) -> dict[str, Variables]:
        """Everything that is an array, as ArviZ groups it."""
        # skills by player, spread and margin by draw
        r, (chains, draws, _), by_draw = self.rankings, self.skills.shape, ("chain", "draw")
        dimensions = draw_dimensions(chains, draws)
        groups: dict[str, Variables] = {
            "posterior": {
                **dimensions,
                "player": (("player",), np.array(self.names, dtype=object)),
                "skill": ((*by_draw, "player"), self.skills),
                "spread": (by_draw, self.spread),
                "margin": (by_draw, self.margin),
            }
        }
        if self.stats:
            groups["sample_stats"] = stat_variables(chains, draws, self.stats)
        # NetCDF has no type for mixed labels, so that all become text where not all are
        plain = all(isinstance(i, str) for i in r.ids)
        ids = np.array(r.ids if plain else [str(i) for i in r.ids], dtype=object)
        game: Variables = {"game": (("game",), ids)}
        if log_likelihood:
            logs = self._log_likelihood().reshape(chains, draws, len(r))
            groups["log_likelihood"] = {**dimensions, **game, "order": ((*by_draw, "game"), logs)}
        groups["observed_data"] = {
            **game,
            "known": (("game",), r.n_ordered),
            "tied": (("entry",), r.tied),
            "member": (("place",), r.players),
        }
        groups["constant_data"] = {
            "first": (("entry_boundary",), r.member_start),
            "start": (("game_boundary",), r.start),
        }
        return groups

    def _log_likelihood(self) -> Floats:
        """(S, G) the exact log-likelihood of every game it was inferred from, in every draw."""
        out = np.empty((len(self.values), len(self.rankings)))
        position = {name: k for k, name in enumerate(self.names)}
        for g in range(len(self.rankings)):
            teams, tied, n_ordered = self.rankings.game(g)
            means = np.stack(
                [self.values[:, [position[name] for name in team]].sum(axis=1) for team in teams],
                axis=1,
            )
            out[:, g] = log_ranking_probabilities(
                means, self._noise_sd(teams), tied, n_ordered, self.margin.ravel()
            )
        return out

    def _noise_sd(self, teams: Sequence[Team]) -> Floats:
        """(n,) the sd of the noise of each entry."""
        return np.sqrt([float(len(team)) if self.noise == "player" else 1.0 for team in teams])

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
        logs = log_ranking_probabilities(
            np.ascontiguousarray(means.T[:, order]),
            self._noise_sd(teams)[order],
            flags,
            n_ordered,
            margin,
        )
        return float(logsumexp(logs) - np.log(len(logs)))

    def _draw_strengths(
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
        every = max(1, self.values.shape[0] // averaged)
        values, spread = self.values[::every], self.spread.ravel()[::every]
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
            if self.rankings.location_free
            else 0.0
        )
        drawn = {name: spread * (rng.standard_normal(len(spread)) + location) for name in new}
        strengths = [
            sum(drawn[name] if name in drawn else values[:, position[name]] for name in team)
            for team in teams
        ]
        return teams, np.stack(strengths), self.margin.ravel()[::every]


def read_ranking(file: Any) -> RankingPosterior:
    """The ranking of an open file that `RankingPosterior.save` wrote, checked afresh."""
    get = array_reader(file)
    # put together by the constructor, which checks everything afresh
    rankings = Rankings(
        tuple(get("posterior/player").tolist()),
        get("observed_data/member"),
        get("constant_data/first"),
        get("constant_data/start"),
        get("observed_data/tied"),
        get("observed_data/known"),
        tuple(get("observed_data/game").tolist()),
    )
    skills, spread, margin = (get(f"posterior/{name}") for name in ("skill", "spread", "margin"))
    return RankingPosterior(
        rankings,
        skills,
        spread,
        margin,
        str(file.attrs["noise"]),
        read_stats(file),
        json.loads(file.attrs["settings"]),
    )
