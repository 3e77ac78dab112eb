"""RankingPathPosterior: skills at every date, how fast they move, and what would come next when.

Between two games of a player his skill is drawn given both, and after the last one the path goes
on: the later, the less is known. Of a player before his first game nothing is assumed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from revealed._types import Floats
from revealed._validation import Seed, as_generator
from revealed.data.rankings import Rankings
from revealed.data.times import check_times
from revealed.models.ranking import RankingModel
from revealed.models.skill_nodes import SkillNodes
from revealed.models.skill_paths import ResolvedSkillPaths
from revealed.results.base import Columns
from revealed.results.dated_ranking import DatedRanking, of_players_met, without_changes
from revealed.results.leaders import leading_shares
from revealed.results.ranking import RankingPosterior
from revealed.results.skill_line_up import score_games, utilities_in_game, utilities_of_entries
from revealed.results.skill_sizes import draw_path, drifts_of, sizes_of
from revealed.results.skill_update import update_skills


@dataclass(frozen=True, eq=False, repr=False)
class RankingPathPosterior(RankingPosterior):
    """Draws of everybody's skill on every date on which he played.

    ``draws["skill"]`` is (chain, draw, N), a node for each player and date, which `nodes` tells of;
    ``draws["drift_sd"]`` (chain, draw, 1) is how far a skill moves in one unit of time, and
    ``draws["spread"]`` (chain, draw, 1) the sd of skills at a player's first game; of skills that
    revert it is that at any time, and ``draws["reversion_rate"]`` how fast. What was given is not
    among the draws. ``draws["margin"]`` is as of skills that do not change, and
    ``draws["newcomer_mean"]``, which skills of newcomers have in them, where newcomers have one.

    What is asked of skills without a date is answered for the last one.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> bob_wins = rng.random(60) < np.linspace(0.1, 0.9, 60)  # bob learns, over 60 games
    >>> games = [["bob", "ann"] if won else ["ann", "bob"] for won in bob_wins]
    >>> seen = rv.Rankings.from_lists(games, times=range(60))
    >>> post = rv.fit(seen, rv.RankingModel(over_time=rv.RandomWalk()), draws=1000)
    >>> post
    <RankingPathPosterior: 4 chains of 1000 draws, 2 players on 60 dates, sampler skill-paths>
    >>> post.probability_better("bob", "ann", at=5) < 0.3
    True
    >>> post.win_probabilities(["ann", "bob"], at=70).argmax()
    np.int64(1)
    """

    @property
    def paths(self) -> ResolvedSkillPaths:
        """How skills change, for these games.

        Nodes, and the process that the sampler had.
        """
        found: ResolvedSkillPaths = self.resolved.paths
        return found

    @property
    def nodes(self) -> SkillNodes:
        """Whose skill on which date each of the N numbers is."""
        return self.paths.nodes

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The players who were in some game."""
        return tuple(
            name for name, games in zip(self.data.names, self.data.games, strict=True) if games
        )

    @property
    def values(self) -> Floats:
        """(chains * draws, K) skills on the last date.

        As `at` has them.
        """
        return self._latest.values

    @property
    def times(self) -> Floats:
        """(D,) the dates of games, in order."""
        return self.nodes.dates

    @property
    def spread(self) -> Floats:
        """(chain, draw) the sd of skills at a player's first game, inferred or given."""
        given = self._model.spread
        return self.draws["spread"][:, :, 0] if given is None else np.full(self.shape, given)

    @property
    def drift_sd(self) -> Floats:
        """(chain, draw) how far a skill moves in one unit of time, inferred or given.

        Of players, where there are other components.
        """
        return np.asarray(self.drifts[:, 0].reshape(self.shape))

    @property
    def drifts(self) -> Floats:
        """(chains * draws, C) how far each component moves in one unit of time."""
        return drifts_of(self)

    @property
    def spreads(self) -> Floats:
        """(chains * draws, C) the sd of each component where its paths begin."""
        return sizes_of(self, "spread")

    @property
    def _model(self) -> RankingModel:
        """What was assumed.

        Of rankings, and of nothing else.
        """
        assert isinstance(self.model, RankingModel)
        return self.model

    @property
    def shown_players(self) -> tuple[str, ...]:
        """The players that a summary shows: those with most games.

        With thousands of them, all would take longer than the fit.
        """
        # each has two lines
        order = np.argsort(-self.data.games, kind="stable")[: min(40, len(self.names))]
        return tuple(self.data.names[k] for k in order)

    def columns(self) -> Columns:
        """Drift, spread and margin, then the first and last skills of those who played most."""
        draws, names = [], []
        for parameter in self.parameters:
            if parameter.name == "skill":
                continue
            draws.append(self.draws[parameter.name].reshape(*self.shape, -1))
            word = parameter.name.replace("_", " ")
            labels = parameter.coords[parameter.dims[0]] if parameter.dims else ("",)
            # players alone need no word of their own
            alone = labels == ("player",)
            names += [word if alone else f"{word} {label}".strip() for label in labels]
        nodes, players = self.nodes, self.nodes.labels[0]
        for n in self.shown_nodes:
            names.append(f"{players[nodes.label[n]]} at {nodes.times[n]:g}")
        draws.append(self.draws["skill"][:, :, self.shown_nodes])
        joined = np.concatenate(draws, axis=2)
        return Columns(joined, tuple(names), np.zeros(joined.shape[2], np.bool_))

    @property
    def shown_nodes(self) -> list[int]:
        """The first and the last of each of `shown_players`.

        One number for those with games on one date alone.
        """
        own = [self.nodes.path(self.nodes.position[0][player]) for player in self.shown_players]
        return [n for path in own for n in sorted({path.start, path.stop - 1})]

    def skills_at(
        self, times: Any, players: str | Sequence[str] | None = None, *, seed: Seed = 0
    ) -> Floats:
        """(S, M, P) draws of skills on these dates; NaN before a player's first game.

        Parameters
        ----------
        times
            M dates, as those of the games were; also between games, and after the last.
        players
            P of them, one or some; default: all, in the order of `names`.
        seed
            A number or a numpy Generator; the same number gives the same draws.
        """
        wanted = check_times(np.atleast_1d(np.asarray(times)), np.arange(np.size(times)), "date")
        listed = [players] if isinstance(players, str) else list(players or self.names)
        rng, count = as_generator(seed), int(np.prod(self.shape))
        found = np.full((count, len(wanted), len(listed)), np.nan)
        # one player at a time: with thousands of them all paths at once would not fit
        for p, player in enumerate(listed):
            found[:, :, p] = draw_path(rng, self, self.path_of(player), wanted)
        return found

    def path_of(self, label: str, component: str = "player") -> slice:
        """The nodes of a player, or of a label of another component.

        Refuses one who was in no game.
        """
        at = self.nodes.components.index(component)
        position = self.nodes.position[at].get(label)
        own = slice(0, 0) if position is None else self.nodes.path(position)
        if own.stop == own.start:
            some = ", ".join(self.nodes.labels[at][:8])
            raise ValueError(f"{label!r} was in no game; there are {some}")
        return own

    def at(self, time: Any, *, seed: Seed = 0) -> DatedRanking:
        """Skills on one date, of those who had played by then: as of skills that do not change.

        It has a table, probabilities of games on that date, and figures.

        Parameters
        ----------
        time
            A number, or a date where those of the games were; also after the last game.
        seed
            Of skills between and after games.
        """
        return self._dated(_as_time(time), seed)

    def _dated(self, date: float, seed: Seed = 0) -> DatedRanking:
        assert self.data.times is not None
        # the players who are compared are those who are known by then
        past = np.flatnonzero(self.data.times <= date)
        if not past.size:
            raise ValueError(
                f"nobody had played by {date:g}; the first game was at {self.times[0]:g}"
            )
        # who comes later is unknown on that date, and must not be ranked as if he were average
        games = of_players_met(self.data.take(past))
        skills = self.skills_at(date, games.names, seed=seed)[:, 0]
        draws = {"skill": skills.reshape(*self.shape, -1)}
        if self._model.spread is None:
            draws["spread"] = self.spread
        for name in ("margin", "newcomer_mean"):
            if name in self.draws:
                draws[name] = self.draws[name]
        model = without_changes(self._model)
        return DatedRanking(draws, games, model, self.sampler, settings=self.settings)

    @cached_property
    def _latest(self) -> DatedRanking:
        return self._dated(float(self.times[-1]))

    def _on(self, time: Any) -> DatedRanking:
        # skills on the last date are drawn once: two questions without a date agree
        return self._latest if time is None else self.at(time)

    def table(self, at: Any = None) -> list[dict[str, Any]]:
        """A line a player on a date, best first, as `RankingPosterior.table` has it."""
        return self._on(at).table()

    def probability_better(self, one: str, other: str, at: Any = None) -> float:
        """The probability that one player is more skilled than another on a date."""
        return self._on(at).probability_better(one, other)

    def in_game(
        self,
        line_up: Sequence[Any],
        at: Any = None,
        columns: Mapping[str, Any] | None = None,
        allow_new_players: bool = False,
    ) -> DatedRanking:
        """What those of a line-up are worth in a game on a date, with all that it depends on.

        Parameters
        ----------
        line_up, allow_new_players
            As of skills that do not change.
        at
            The date; default: that of the last game.
        columns
            Of each player of the line-up in turn, what components and covariates need, such as
            ``{"car": ["ferrari", "mercedes"]}``.
        """
        if not columns and not self.needed_columns:
            return self._on(at)
        date = self.times[-1] if at is None else _as_time(at)
        return utilities_in_game(self, line_up, float(date), columns or {}, allow_new_players)

    @property
    def needed_columns(self) -> tuple[str, ...]:
        """Columns that a game must have, for components and covariates."""
        parts = [name for component in self._model.components for name in component.split("*")]
        named = dict.fromkeys([*parts, *self._model.covariates])
        return tuple(name for name in named if name != "player")

    def win_probabilities(
        self,
        line_up: Sequence[Any],
        allow_new_players: bool = False,
        at: Any = None,
        columns: Mapping[str, Any] | None = None,
    ) -> Floats:
        """(n,) the probability of each entry to come first in a game on a date.

        The parameters are those of `in_game`.
        """
        game = self.in_game(line_up, at, columns, allow_new_players)
        return game.win_probabilities(line_up, allow_new_players)

    def order_probability(
        self,
        line_up: Sequence[Any],
        allow_new_players: bool = False,
        at: Any = None,
        columns: Mapping[str, Any] | None = None,
    ) -> float:
        """The probability that the entries finish in just this order on a date.

        The parameters are those of `in_game`.
        """
        game = self.in_game(line_up, at, columns, allow_new_players)
        return game.order_probability(line_up, allow_new_players)

    def orderings(
        self,
        line_up: Sequence[Any],
        allow_new_players: bool = False,
        at: Any = None,
        columns: Mapping[str, Any] | None = None,
    ) -> list[tuple[tuple[Any, ...], float]]:
        """Every order in which up to six entries may finish on a date, and its probability.

        The parameters are those of `in_game`.
        """
        return self.in_game(line_up, at, columns, allow_new_players).orderings(
            line_up, allow_new_players
        )

    def predict(self, line_up: Sequence[Any], *where: Any, **more: Any) -> Floats:
        """(n,) the probability of each entry to come first, as `win_probabilities` has it."""
        return self.win_probabilities(line_up, *where, **more)

    def log_score(self, rankings: Rankings, allow_new_players: bool = False) -> Floats:
        """(G,) the log predictive probability of what happened in other games, at their times.

        Each game by itself; the sum scores all of them.
        """
        return score_games(self, rankings, allow_new_players)

    def leaders(self, times: Any = None, *, draws: int = 1000) -> tuple[Floats, Floats]:
        """Who was the best, and when.

        Parameters
        ----------
        times
            M dates; default: those of the games.
        draws
            How many draws are used at most.

        Returns
        -------
        times, probability
            (M,), and (M, K) how probable it is that each of `names` is the most skilled of those
            who have played and will play again, or do so on that date.
        """
        dates = self.times if times is None else check_times(times, np.arange(np.size(times)))
        return dates, leading_shares(self, dates, draws)

    def log_likelihood(self) -> Floats:
        """(chain, draw, G) the exact log-likelihood of every game, in every draw."""
        margin, out = self.margin.ravel(), np.empty((self.shape[0] * self.shape[1], len(self.data)))
        for g in range(len(self.data)):
            teams, tied, n_ordered = self.data.game(g)
            means = utilities_of_entries(self, g)
            out[:, g] = self._log_probabilities(means, teams, tied, n_ordered, margin)
        return out.reshape(*self.shape, -1)

    def update(
        self,
        new: Rankings,
        *,
        draws: int = 100,
        warmup: int = 50,
        seed: Seed = 0,
        progress: bool | None = None,
    ) -> RankingPathPosterior:
        """The posterior of the games so far and of these, which came later.

        Chains go on from the last draws of this posterior, in coordinates that its draws have shown
        to be good. Ctrl-C before every chain has a draw is a KeyboardInterrupt.

        Parameters
        ----------
        new
            Games with times, none before the last one of this posterior; players may be new.
        draws, warmup
            Kept draws a chain, and iterations before them; a tenth of a fit's.
        seed, progress
            As of ``rv.fit``.
        """
        found: RankingPathPosterior = update_skills(self, new, draws, warmup, seed, progress)
        return found

    def _contents(self) -> str:
        return f"{len(self.names)} players on {len(self.times)} dates"


def _as_time(time: Any) -> float:
    """One time, of a number or a date."""
    return float(check_times(np.atleast_1d(np.asarray(time)), [0], "date")[0])
